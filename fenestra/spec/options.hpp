// The per-axis options every sliding-window operator shares, as structural values.
//
// A scalar, one value per axis, and one (low, high) pair per axis are different things here and
// stay different until a rank is known: nothing has to guess what four integers in a row mean.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/tensor/layout.hpp>
#include <fenestra/tensor/shape.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string_view>

namespace fenestra {

/// One value for all axes, or one value per axis: `.stride = 2`, `.stride = {2, 1}`.
struct PerAxis {
  Index values[kMaxSpatialRank] = {};
  int count = 0;  ///< 0: `values[0]` holds for every axis; -1: not given

  constexpr PerAxis(std::integral auto value) : values{static_cast<Index>(value)} {}
  constexpr PerAxis(std::initializer_list<Index> list) : PerAxis() {
    for (const Index value : list) {
      push_back(value);
    }
    if (!is_given()) {
      throw Error(ErrorCode::rank_mismatch, "a per-axis option needs at least one value");
    }
  }
  /// Not given; also an empty list to be filled by `push_back`.
  constexpr PerAxis() : count(-1) {}

  constexpr void push_back(Index value) {
    if (count == kMaxSpatialRank) {
      throw Error(ErrorCode::rank_mismatch, "a per-axis option has at most 8 values");
    }
    count = count < 0 ? 1 : count + 1;
    values[count - 1] = value;
  }
  constexpr bool is_given() const { return count >= 0; }
  constexpr bool is_scalar() const { return count <= 0; }
  /// True where the option says something for each of `rank` axes.
  constexpr bool fits(int rank) const { return is_scalar() || count == rank; }
  constexpr Index operator[](int axis) const { return is_scalar() ? values[0] : values[axis]; }
  friend constexpr bool operator==(const PerAxis&, const PerAxis&) = default;
};

/// Some axes of a tensor, by number; negative ones count from the last.
struct AxisList {
  int values[kMaxRank] = {};
  int count = 0;

  constexpr AxisList() = default;
  constexpr AxisList(std::initializer_list<int> list) {
    for (const int axis : list) {
      push_back(axis);
    }
  }
  constexpr explicit AxisList(std::span<const int> list) {
    for (const int axis : list) {
      push_back(axis);
    }
  }
  constexpr void push_back(int axis) {
    if (count == kMaxRank) {
      throw Error(ErrorCode::rank_mismatch, "a tensor has at most 16 axes to name");
    }
    values[count++] = axis;
  }
  constexpr bool empty() const { return count == 0; }
  constexpr std::size_t size() const { return static_cast<std::size_t>(count); }
  constexpr int operator[](std::size_t i) const { return values[i]; }
  constexpr const int* begin() const { return values; }
  constexpr const int* end() const { return values + count; }
  friend constexpr bool operator==(const AxisList&, const AxisList&) = default;
};

/// An integer or nothing, as a structural type.
struct OptionalIndex {
  bool given = false;
  Index value = 0;

  constexpr OptionalIndex() = default;
  constexpr OptionalIndex(std::integral auto v) : given(true), value(static_cast<Index>(v)) {}
  friend constexpr bool operator==(const OptionalIndex&, const OptionalIndex&) = default;
};

/// Padding of one axis on its low and its high side. Two arguments, always: `{1}` is not a pair.
struct LowHigh {
  Index low;
  Index high;
  constexpr LowHigh(Index low_side, Index high_side) : low(low_side), high(high_side) {}
  friend constexpr bool operator==(const LowHigh&, const LowHigh&) = default;
};

struct SamePadding {};
struct ValidPadding {};
/// Output extent ceil(i / stride), the surplus cell on the high side.
inline constexpr SamePadding same;
/// No padding.
inline constexpr ValidPadding valid;

/// `1`, `{1, 2}` (per axis, both sides), `{{1, 0}, {0, 1}}` (low and high per axis), `same`,
/// `valid`.
struct Padding {
  PerAxis low = 0;
  PerAxis high = 0;
  bool is_same = false;

  constexpr Padding() = default;
  constexpr Padding(std::integral auto both) : low(both), high(both) {}
  constexpr Padding(std::initializer_list<Index> per_axis) : low(per_axis), high(per_axis) {}
  constexpr Padding(const PerAxis& both) : low(both), high(both) {}
  constexpr Padding(std::initializer_list<LowHigh> pairs) : low(), high() {
    for (const LowHigh& pair : pairs) {
      push_back(pair);
    }
  }
  constexpr Padding(SamePadding) : is_same(true) {}
  constexpr Padding(ValidPadding) {}

  constexpr void push_back(LowHigh pair) {
    low.push_back(pair.low);
    high.push_back(pair.high);
  }
  constexpr bool fits(int rank) const { return is_same || (low.fits(rank) && high.fits(rank)); }
  friend constexpr bool operator==(const Padding&, const Padding&) = default;
};

/// What the padded cells of a max-like pool are.
enum class PadCells {
  ignore,  ///< absent: they cannot win and carry no weight
  zero,    ///< literal zeros that take part, but never receive gradient
};

// --- Fields of options structs ------------------------------

/// The names of an enumeration's values, from 0 on.
template <class E>
inline constexpr std::array<std::string_view, 0> enum_names = {};
template <>
inline constexpr std::array<std::string_view, 2> enum_names<Layout> = {"channels_first",
                                                                       "channels_last"};
template <>
inline constexpr std::array<std::string_view, 2> enum_names<PadCells> = {"ignore", "zero"};

/// Where an option stands among the arguments of a function in a scripting language.
enum class Place {
  in_order,  ///< as in the list of fields
  first,     ///< before the others, so that it must be given
  last,      ///< behind the others
  by_keyword,
  nowhere,  ///< no option there, but an input with a derivative
};

/// What is to be said of a field beside its name, type and default. An options struct lists its
/// fields once, in the order of its members: `fields(visit)` calls visit("stride",
/// &ConvOptions::stride, {.help = help::kStride}) for each of them. Problem strings, what `explain
/// OP --help` says of them, descriptions of layers and scripting languages all read this list.
struct FieldInfo {
  std::string_view help = {};       ///< one line for people; none: not a field of problem strings
  std::string_view otherwise = {};  ///< what holds where it is left out, if it has no default
  bool required = false;
  bool always_printed = false;     ///< the default too
  std::string_view argument = {};  ///< its name as an argument, where that is another
  std::string_view alias = {};     ///< a second one
  Place place = Place::in_order;
};

/// Of fields that several operators have.
namespace help {
inline constexpr std::string_view kStride = "cells from one window to the next: 2, or 2,1";
inline constexpr std::string_view kPadding =
    "cells added at the edges: 1, 1,0, low:high as in 1:0,0:1, same or valid";
inline constexpr std::string_view kDilation = "cells from one tap of a window to the next";
inline constexpr std::string_view kGroups = "parts that the channels are cut into";
inline constexpr std::string_view kOutputSize = "extents of the output: 7,7";
inline constexpr std::string_view kMode = "where the numbers of new cells come from";
inline constexpr std::string_view kAxis = "the axis; from the last one where negative";
inline constexpr std::string_view kKeep = "whether axes that go stay with extent 1";
}  // namespace help

/// The field of options that say where the channels are.
template <class O, class Visit>
constexpr void layout_field(Visit&& field) {
  field("layout", &O::layout, {.help = "where the channels are", .place = Place::by_keyword});
}

}  // namespace fenestra
