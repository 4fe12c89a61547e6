// What is done to a picture before a network sees it, as a value: a model file keeps it beside the
// weights, so that a picture is prepared for inference as it was for training.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/nn/data/dataset.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace fenestra::nn {

struct Preprocessing {
  Shape size = {};                ///< spatial extents to resize to; empty: as they come
  std::vector<double> mean = {};  ///< per channel, subtracted; empty: 0
  std::vector<double> scale =
      {};  ///< per channel, divided by afterwards (times its inverse); empty: 1

  friend bool operator==(const Preprocessing&, const Preprocessing&) = default;
};

/// Throws `invalid_extent`, `channel_mismatch` or, for a mean or a scale, `invalid_option` unless
/// it fits samples of `channels` channels.
FENESTRA_API void check_fits(const Preprocessing& preprocessing, Index channels);

/// Resizes and normalises (channels, spatial...). T is float or double.
template <class T>
FENESTRA_API Tensor<T> preprocess(const Preprocessing& preprocessing, const Tensor<float>& sample);

/// Only the normalisation: as many numbers as the sample has, from `out` on, which may be where
/// they are. `check_fits` has passed.
template <class T>
FENESTRA_API void normalise_into(const Preprocessing& preprocessing,
                                 const Tensor<float>& sample,
                                 T* out);

/// Mean and standard deviation of every channel over the samples, each `scale` at least 1e-6 (a
/// channel that never changes is not blown up); at most `most` samples, the same in every call, are
/// looked at.
FENESTRA_API Preprocessing normalisation_of(const Dataset& dataset, Index most = 10'000);

/// One line of JSON: {"size":[28,28],"mean":[0.13],"scale":[0.31]}; every number comes back to the
/// last bit.
FENESTRA_API std::string to_json(const Preprocessing& preprocessing);
/// The opposite. Throws `bad_file`; `name` is for messages.
FENESTRA_API Preprocessing preprocessing_from_json(std::string_view text, std::string_view name);

/// (channels, spatial...) with other spatial extents: per axis a triangle filter, as wide as a new
/// cell where that is larger than an old one, so that what is made smaller does not alias.
FENESTRA_API Tensor<float> resized(const Tensor<float>& sample, const Shape& size);
/// (spatial...): the nearest cell.
FENESTRA_API Tensor<Index> resized_mask(const Tensor<Index>& mask, const Shape& size);

}  // namespace fenestra::nn
