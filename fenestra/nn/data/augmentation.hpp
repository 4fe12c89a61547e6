// Augmentation: the same sample a little different in every epoch.
//
// All that is random comes from a key, which the loader makes of seed, epoch and sample: never from
// a thread, a batch or what was drawn before. Masks, and targets with the spatial extents of their
// sample, move as the sample does, masks by the nearest cell; cut-out and noise are on the sample
// alone, so that reconstruction learns to undo them. Cells that come in from outside are 0, before
// normalisation, and class 0 in a mask.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/base/key.hpp>
#include <fenestra/nn/data/dataset.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <string>
#include <string_view>

namespace fenestra::nn {

/// In the order in which they are applied.
struct Augmentation {
  Index padding = 0;         ///< cells of zeros added on every side before the crop
  Shape crop = {};           ///< extents of a window cut anywhere; empty: the sample's own
  double flip = 0;           ///< probability that the last axis is reversed: left and right
  double flip_vertical = 0;  ///< of the last but one: top and bottom
  Index shift = 0;           ///< every axis by a whole number of cells from -shift to shift
  double rotate = 0;  ///< degrees, from -rotate to rotate, about the centre of the last two axes
  Index cut_out = 0;  ///< side of a box of zeros centred on any cell
  double noise = 0;   ///< standard deviation of normal noise

  friend bool operator==(const Augmentation&, const Augmentation&) = default;
  /// Whether anything would change.
  bool any() const { return *this != Augmentation{}; }
};

/// Throws `invalid_option` where a number is out of range, `invalid_extent` for a crop that samples
/// of this shape (channels, spatial...) have not, `rank_mismatch` where they lack axes.
FENESTRA_API void check_fits(const Augmentation& augmentation, const Shape& sample_shape);

/// The shape that samples have afterwards.
FENESTRA_API Shape augmented_shape(const Augmentation& augmentation, const Shape& sample_shape);

FENESTRA_API Sample augment(const Sample& sample, const Augmentation& augmentation, const Key& key);

/// "shift=2,flip=0.5,noise=0.1": names as above, `crop=24x24`; "" and "none" are none. Throws
/// `unknown_choice`, with the nearest name, or `invalid_option`.
FENESTRA_API Augmentation parse_augmentation(std::string_view text);
/// The opposite; "none" where nothing is set.
FENESTRA_API std::string to_string(const Augmentation& augmentation);

// The pieces, with numbers instead of chance. Tensors are (channels, spatial...).

/// y[c, i, ...] = x[c, i - by[0], ...], 0 from outside; `by` has a number for every spatial axis.
FENESTRA_API Tensor<float> shifted(const Tensor<float>& x, const Shape& by);
/// Spatial axis `axis` reversed.
FENESTRA_API Tensor<float> flipped(const Tensor<float>& x, int axis);
/// Anticlockwise as a picture is seen (rows from the top), about the centre, by linear
/// interpolation; exact for multiples of 90 degrees on squares.
FENESTRA_API Tensor<float> rotated(const Tensor<float>& x, double degrees);

}  // namespace fenestra::nn
