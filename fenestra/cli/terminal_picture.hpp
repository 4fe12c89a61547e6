// Small pictures made of characters: a curve in one line, and samples side by side.
#pragma once

#include <fenestra/cli/terminal.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace fenestra::cli {

/// A curve in one line of at most `width` characters, a mean of neighbours for each where there are
/// more values; blank where they are not finite. Positive values that span decades are drawn by
/// their logarithm.
std::string sparkline(std::span<const double> values, std::size_t width, bool has_unicode);

struct CaptionedPicture {
  Tensor<float> sample;  ///< (H, W) or (C, H, W), whose channels are averaged
  std::string caption;
  bool is_wrong = false;  ///< the caption is red, where there are colours
};

/// Grey pictures with their captions below, as many in a row as the terminal has room for. Bright
/// is much ink. With colours a character holds two pixels in true shades; without, it is a shade or
/// a half block; without Unicode, a letter. Larger pictures are averaged down to `most_columns`.
/// Throws `rank_mismatch` where a sample is no picture.
std::string picture_rows(std::span<const CaptionedPicture> pictures,
                         const Terminal& terminal,
                         std::size_t most_columns = 28);

}  // namespace fenestra::cli
