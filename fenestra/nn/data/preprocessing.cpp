// Sizes and statistics of samples, and the text in which a model file keeps them.
#include <fenestra/nn/data/preprocessing.hpp>

#include <fenestra/base/key.hpp>
#include <fenestra/io/json.hpp>
#include <fenestra/nn/data/permutation.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>

namespace fenestra::nn {

namespace {

// A model file is a stranger's: resizing must not take all memory on its word.
constexpr Index kMostCells = Index{1} << 26;

void check_size(const Shape& size) {
  const auto cells = size.elements();
  if (!cells || *cells < 1 || *cells > kMostCells) {
    throw Error(ErrorCode::invalid_extent,
                "preprocessing: size = " + to_string(size) + "\n  fix: extents from 1, at most " +
                    std::to_string(kMostCells) + " cells");
  }
}

void check_spatial(const char* what, const Shape& got, int spatial, const Shape& size) {
  if (spatial != size.rank()) {
    throw Error(ErrorCode::rank_mismatch,
                std::string(what) + ": " + to_string(got) + " has " + std::to_string(spatial) +
                    " spatial axes, size = " + to_string(size) +
                    "\n  fix: one extent for each spatial axis");
  }
  check_size(size);
}

/// How one output cell is made of input cells: weights of `begin`, `begin` + 1, ...
struct Taps {
  Index begin = 0;
  std::vector<float> weights = {};
};

std::vector<Taps> triangle_taps(Index from, Index to) {
  const double ratio = static_cast<double>(from) / static_cast<double>(to);
  const double reach = std::max(ratio, 1.0);
  std::vector<Taps> all;
  for (Index cell = 0; cell < to; ++cell) {
    const double centre = (static_cast<double>(cell) + 0.5) * ratio;
    Taps taps{.begin = std::max<Index>(0, static_cast<Index>(std::floor(centre - reach)))};
    const Index end = std::min(from, static_cast<Index>(std::ceil(centre + reach)));
    std::vector<double> weights;
    double sum = 0;
    for (Index i = taps.begin; i < end; ++i) {
      const double away = std::abs(static_cast<double>(i) + 0.5 - centre) / reach;
      weights.push_back(std::max(0.0, 1 - away));
      sum += weights.back();
    }
    for (const double weight : weights) {
      taps.weights.push_back(static_cast<float>(weight / sum));
    }
    all.push_back(std::move(taps));
  }
  return all;
}

Tensor<float> resized_axis(const Tensor<float>& x, int axis, Index extent) {
  Shape shape = x.shape();
  const Index from = shape[axis];
  shape[axis] = extent;
  Index outer = 1, inner = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    (i < axis ? outer : inner) *= i == axis ? 1 : shape[i];
  }
  const std::vector<Taps> all = triangle_taps(from, extent);
  Tensor<float> y(shape);
  float* out = y.mutable_data();
  for (Index o = 0; o < outer; ++o) {
    for (const Taps& taps : all) {
      const float* in = x.data() + (o * from + taps.begin) * inner;
      for (const float weight : taps.weights) {
        for (Index i = 0; i < inner; ++i) {
          out[i] += weight * in[i];
        }
        in += inner;
      }
      out += inner;
    }
  }
  return y;
}

template <class Number>
void append_number(std::string& text, Number number) {
  char digits[64];
  const auto end = std::to_chars(digits, digits + sizeof digits, number);
  text.append(digits, end.ptr);
}

template <class Numbers>
std::string json_array(const Numbers& numbers) {
  std::string text;
  for (const auto number : numbers) {
    text += text.empty() ? "[" : ",";
    append_number(text, number);
  }
  return text.empty() ? "[]" : text + "]";
}

}  // namespace

void check_fits(const Preprocessing& preprocessing, Index channels) {
  if (preprocessing.size.rank() > 0) {
    check_size(preprocessing.size);
  }
  const auto require = [&](const char* name, const std::vector<double>& numbers) {
    if (!numbers.empty() && static_cast<Index>(numbers.size()) != channels) {
      throw Error(ErrorCode::channel_mismatch,
                  std::string("preprocessing: ") + name + " has " + std::to_string(numbers.size()) +
                      " numbers, samples have " + std::to_string(channels) +
                      " channels\n  fix: one for each channel, or none");
    }
    for (const double number : numbers) {
      if (!std::isfinite(number) || (name[0] == 's' && number == 0)) {
        throw Error(ErrorCode::invalid_option,
                    std::string("preprocessing: ") + name + " = " + std::to_string(number) +
                        "\n  fix: finite numbers, no scale 0");
      }
    }
  };
  require("mean", preprocessing.mean);
  require("scale", preprocessing.scale);
}

template <class T>
void normalise_into(const Preprocessing& preprocessing, const Tensor<float>& sample, T* out) {
  const Index channels = sample.shape()[0];
  const Index cells = channels == 0 ? 0 : sample.size() / channels;
  const float* in = sample.data();
  for (Index c = 0; c < channels; ++c) {
    const auto channel = static_cast<std::size_t>(c);
    const T mean = static_cast<T>(preprocessing.mean.empty() ? 0 : preprocessing.mean[channel]);
    const T scale = static_cast<T>(preprocessing.scale.empty() ? 1 : preprocessing.scale[channel]);
    const T factor = 1 / scale;  // a product is several times as quick as a quotient
    for (Index i = 0; i < cells; ++i) {
      out[i] = (static_cast<T>(in[i]) - mean) * factor;
    }
    in += cells;
    out += cells;
  }
}
template void normalise_into<float>(const Preprocessing&, const Tensor<float>&, float*);
template void normalise_into<double>(const Preprocessing&, const Tensor<float>&, double*);

template <class T>
Tensor<T> preprocess(const Preprocessing& preprocessing, const Tensor<float>& sample) {
  if (sample.rank() < 1) {
    throw Error(
        ErrorCode::rank_mismatch,
        "preprocessing: sample = " + to_string(sample.shape()) + "\n  fix: (channels, spatial...)");
  }
  check_fits(preprocessing, sample.shape()[0]);
  const Tensor<float> x =
      preprocessing.size.rank() > 0 ? resized(sample, preprocessing.size) : sample;
  auto y = Tensor<T>::uninitialised(x.shape());
  normalise_into(preprocessing, x, y.mutable_data());
  return y;
}
template Tensor<float> preprocess<float>(const Preprocessing&, const Tensor<float>&);
template Tensor<double> preprocess<double>(const Preprocessing&, const Tensor<float>&);

Preprocessing normalisation_of(const Dataset& dataset, Index most) {
  const Index count = dataset.size();
  if (count < 1 || most < 1) {
    throw Error(count < 1 ? ErrorCode::invalid_extent : ErrorCode::invalid_option,
                "normalisation: " + std::to_string(std::min(count, most)) + " samples of " +
                    dataset.info().name + "\n  fix: at least one");
  }
  const auto channels = static_cast<std::size_t>(dataset.sample_shape()[0]);
  // Means and squared deviations of samples are merged: sums of squares would cancel where the mean
  // is large.
  std::vector<double> mean(channels), squares(channels);
  const Index looked_at = std::min(count, most);
  // Any order of a dataset may have a period (every sixth of MNIST is thinner than the rest).
  const Permutation order(Key(0).fold("statistics"), count);
  double cells_before = 0;
  for (Index n = 0; n < looked_at; ++n) {
    const Index sample = looked_at == count ? n : order(n);
    const Tensor<float> x = dataset.get(sample).image;
    const Index cells = x.size() / x.shape()[0];
    const auto cells_now = static_cast<double>(cells);
    for (std::size_t c = 0; c < channels; ++c) {
      const auto values =
          x.values().subspan(c * static_cast<std::size_t>(cells), static_cast<std::size_t>(cells));
      double sum = 0;
      for (const float value : values) {
        sum += static_cast<double>(value);
      }
      if (!std::isfinite(sum)) {
        throw Error(
            ErrorCode::bad_file,
            "normalisation: sample " + std::to_string(sample) + " of " + dataset.info().name +
                ", channel " + std::to_string(c) +
                ": not all of its numbers are finite\n  fix: data without NaN and infinity");
      }
      const double here = sum / cells_now;
      double deviations = 0;
      for (const float value : values) {
        const double away = static_cast<double>(value) - here;
        deviations += away * away;
      }
      const double all = cells_before + cells_now;
      const double apart = here - mean[c];
      mean[c] += apart * cells_now / all;
      squares[c] += deviations + apart * apart * cells_before * cells_now / all;
    }
    cells_before += cells_now;
  }
  Preprocessing result{.size = {}, .mean = mean, .scale = {}};
  for (const double square : squares) {
    result.scale.push_back(std::max(1e-6, std::sqrt(square / cells_before)));
  }
  return result;
}

std::string to_json(const Preprocessing& preprocessing) {
  return "{\"size\":" + json_array(preprocessing.size) +
         ",\"mean\":" + json_array(preprocessing.mean) +
         ",\"scale\":" + json_array(preprocessing.scale) + "}";
}

Preprocessing preprocessing_from_json(std::string_view text, std::string_view name) {
  if (const auto bad = io::first_not_utf8(text); bad != std::string_view::npos) {
    throw Error(ErrorCode::bad_file,
                std::string(name) + ": at byte " + std::to_string(bad) +
                    ": expected UTF-8, found another byte");
  }
  Preprocessing result;
  io::JsonReader reader(text, name, 0);
  const auto number = [&] {
    const std::uint64_t begin = reader.offset();
    double value = 0;
    const auto rest = text.substr(std::min<std::size_t>(begin, text.size()));
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (error != std::errc() || !std::isfinite(value)) {
      reader.refuse_here("a number");
    }
    reader.skip();  // refuses what from_chars takes and JSON does not
    return value;
  };
  reader.object([&](const std::string& key) {
    if (key == "size") {
      reader.array([&] {
        if (result.size.rank() == kMaxSpatialRank) {
          reader.refuse_here("at most " + std::to_string(kMaxSpatialRank) + " extents");
        }
        const std::uint64_t extent = reader.whole_number();
        result.size.push_back(static_cast<Index>(
            std::min<std::uint64_t>(extent, static_cast<std::uint64_t>(kMaxElements))));
      });
    } else if (key == "mean") {
      reader.array([&] { result.mean.push_back(number()); });
    } else if (key == "scale") {
      reader.array([&] { result.scale.push_back(number()); });
    } else {
      reader.refuse_here("size, mean or scale, not the key " + io::json_string(key) + ":");
    }
  });
  reader.end();
  try {
    check_fits(result, static_cast<Index>(std::max(result.mean.size(), result.scale.size())));
  } catch (const Error& error) {
    throw Error(ErrorCode::bad_file, std::string(name) + ": " + error.what());
  }
  return result;
}

Tensor<float> resized(const Tensor<float>& sample, const Shape& size) {
  check_spatial("resize", sample.shape(), sample.rank() - 1, size);
  if (sample.size() == 0) {
    throw Error(ErrorCode::invalid_extent,
                "resize: " + to_string(sample.shape()) + " has no cells to resize");
  }
  Tensor<float> y = sample;
  for (int axis = 0; axis < size.rank(); ++axis) {
    if (y.shape()[axis + 1] != size[axis]) {
      y = resized_axis(y, axis + 1, size[axis]);
    }
  }
  return y;
}

Tensor<Index> resized_mask(const Tensor<Index>& mask, const Shape& size) {
  check_spatial("resize", mask.shape(), mask.rank(), size);
  if (mask.size() == 0) {
    throw Error(ErrorCode::invalid_extent,
                "resize: " + to_string(mask.shape()) + " has no cells to resize");
  }
  auto y = Tensor<Index>::uninitialised(size);
  Index place[kMaxRank] = {};
  for (Index& out : y.mutable_values()) {
    Index from = 0;
    for (int axis = 0; axis < size.rank(); ++axis) {
      // The centre of the new cell lies in this old one; exact in whole numbers.
      const Index cell = (2 * place[axis] + 1) * mask.shape()[axis] / (2 * size[axis]);
      from = from * mask.shape()[axis] + cell;
    }
    out = mask[from];
    for (int axis = size.rank() - 1; axis >= 0 && ++place[axis] == size[axis]; --axis) {
      place[axis] = 0;
    }
  }
  return y;
}

}  // namespace fenestra::nn
