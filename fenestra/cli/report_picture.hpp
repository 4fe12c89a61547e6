// Tensors as pictures of a page: an <img> with the PNG inside, or drawn lines for signals.
//
// Cells that are not finite are magenta: a page must not hide them.
#pragma once

#include <fenestra/cli/report.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <string>
#include <string_view>

namespace fenestra::cli {

/// Whether there is something to show: rank 2 to 4 and no axis empty.
bool is_sample(const Tensor<float>& tensor);

/// A sample as it looks: grey, colours, some slices of a volume, lines. Numbers outside 0 to 1 are
/// stretched so that the least is black and the greatest white. `alt` is plain text.
std::string sample_markup(const Tensor<float>& sample, std::string_view alt);

/// One channel of a sample in false colours, the least dark, the greatest bright.
std::string channel_markup(const Tensor<float>& maps, Index channel, std::string_view alt);

/// One filter (out, in, extents...): three input channels as colours, any other as one channel
/// from blue (negative) over white to red.
std::string filter_markup(const Tensor<float>& filters, Index out, Index in, std::string_view alt);
/// Whether the three input channels of filters are shown as the colours of one picture.
bool has_colour_filters(const Tensor<float>& filters);

/// The size of the gradient, bright where it is large; and the same laid over the sample.
std::string gradient_markup(const Saliency& saliency, std::string_view alt);
std::string overlay_markup(const Saliency& saliency, std::string_view alt);

/// A colour for each class.
std::string mask_markup(const Tensor<Index>& mask, std::string_view alt);
/// Where two masks differ.
std::string difference_markup(const Tensor<Index>& a, const Tensor<Index>& b, std::string_view alt);
/// The colour of a class in masks, "#4c9be8".
std::string class_colour(Index number);

/// |a - b|, black where they are equal.
std::string difference_markup(const Tensor<float>& a, const Tensor<float>& b, std::string_view alt);

/// A matrix of counts, for when it is too large for a table; each row is scaled by its sum.
std::string matrix_markup(const Tensor<Index>& matrix, std::string_view alt);

}  // namespace fenestra::cli
