// The colours in which the pictures of a report show numbers and classes.
#pragma once

#include <fenestra/base/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace fenestra::cli {

using Colour = std::array<std::uint8_t, 3>;  ///< red, green, blue
inline constexpr Colour kNotFinite = {255, 0, 255};

/// The colour at `part`, 0 to 1, of a row of colours that lie evenly apart.
template <std::size_t n>
Colour mixed(const std::array<Colour, n>& anchors, float part) {
  const float place = std::clamp(part, 0.0F, 1.0F) * static_cast<float>(n - 1);
  const auto below = std::min(static_cast<std::size_t>(place), n - 2);
  const float rest = place - static_cast<float>(below);
  Colour colour{};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto low = static_cast<float>(anchors[below][i]);
    const auto high = static_cast<float>(anchors[below + 1][i]);
    colour[i] = static_cast<std::uint8_t>(std::lround(low + rest * (high - low)));
  }
  return colour;
}

/// Dark blue over green to yellow: evenly brighter, also for the colour-blind and in grey.
inline Colour map_colour(float part) {
  constexpr std::array<Colour, 5> kAnchors = {
      {{68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}, {253, 231, 37}}};
  return mixed(kAnchors, part);
}
/// Black over red to yellow.
inline Colour heat_colour(float part) {
  constexpr std::array<Colour, 5> kAnchors = {
      {{0, 0, 4}, {87, 16, 110}, {188, 55, 84}, {249, 142, 9}, {252, 255, 164}}};
  return mixed(kAnchors, part);
}
/// Blue, white, red; 0.5 is white.
inline Colour signed_colour(float part) {
  constexpr std::array<Colour, 5> kAnchors = {
      {{5, 72, 128}, {104, 160, 204}, {247, 247, 247}, {224, 120, 96}, {140, 12, 37}}};
  return mixed(kAnchors, part);
}

/// Dark for class 0, which is the background nearly always.
inline constexpr std::array<Colour, 12> kClassColours = {{{43, 48, 56},
                                                          {76, 155, 232},
                                                          {242, 163, 58},
                                                          {91, 185, 116},
                                                          {228, 98, 111},
                                                          {166, 125, 219},
                                                          {70, 189, 198},
                                                          {242, 207, 74},
                                                          {155, 107, 74},
                                                          {215, 127, 179},
                                                          {143, 163, 173},
                                                          {181, 204, 75}}};

inline Colour colour_of_class(Index number) {
  // After the last colour begin again, without the background's.
  constexpr auto kCount = static_cast<Index>(kClassColours.size());
  return number < 0 ? Colour{128, 128, 128}
                    : kClassColours[static_cast<std::size_t>(
                          number < kCount ? number : 1 + (number - kCount) % (kCount - 1))];
}

}  // namespace fenestra::cli
