// Augmentation: whole-cell moves as one table of sources per axis, rotation by interpolation, then
// what is done to the values.
#include <fenestra/nn/data/augmentation.hpp>

#include <fenestra/nn/data/noise.hpp>
#include <fenestra/nn/words.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace fenestra::nn {

namespace {

constexpr Index kOutside = -1;
constexpr Index kMostCells = Index{1} << 20;  // of a shift, padding or box; sums cannot overflow

/// The cell of the input that each cell of the output shows, or `kOutside`.
using Sources = std::vector<Index>;

Sources all_of(Index extent) {
  Sources sources(static_cast<std::size_t>(extent));
  for (Index i = 0; i < extent; ++i) {
    sources[static_cast<std::size_t>(i)] = i;
  }
  return sources;
}

/// A window of `extent` cells from `begin` on; what is not in the input is outside.
Sources window(const Sources& from, Index begin, Index extent) {
  Sources sources(static_cast<std::size_t>(extent), kOutside);
  for (Index i = 0; i < extent; ++i) {
    const Index at = begin + i;
    if (at >= 0 && at < static_cast<Index>(from.size())) {
      sources[static_cast<std::size_t>(i)] = from[static_cast<std::size_t>(at)];
    }
  }
  return sources;
}

/// Moves all channels of (channels, spatial...) by the sources of its spatial axes.
template <class T>
Tensor<T> gathered(const Tensor<T>& x, const std::vector<Sources>& sources) {
  Shape shape{x.shape()[0]};
  for (const Sources& axis : sources) {
    shape.push_back(static_cast<Index>(axis.size()));
  }
  auto y = Tensor<T>::uninitialised(shape);
  T* out = y.mutable_data();
  const std::size_t last = sources.size() - 1;
  const auto copy = [&](const auto& self, std::size_t axis, const T* in, Index size) -> void {
    const Index inner = size / x.shape()[static_cast<int>(axis) + 1];
    for (const Index source : sources[axis]) {
      const T* from = in == nullptr || source == kOutside ? nullptr : in + source * inner;
      if (axis < last) {
        self(self, axis + 1, from, inner);
      } else {
        *out++ = from == nullptr ? T(0) : *from;
      }
    }
  };
  const Index plane = x.shape()[0] == 0 ? 0 : x.size() / x.shape()[0];
  for (Index c = 0; c < x.shape()[0]; ++c) {
    copy(copy, 0, x.data() + c * plane, plane);
  }
  return y;
}

struct Turn {
  double cosine = 1;
  double sine = 0;
};

/// Quarter turns are exact: only what is left of them goes through the functions.
Turn turn_by(double degrees) {
  const double quarters = std::round(degrees / 90);
  const double rest = (degrees - 90 * quarters) * (std::numbers::pi / 180);
  const double c = std::cos(rest), s = std::sin(rest);
  switch (static_cast<int>(std::fmod(std::fmod(quarters, 4) + 4, 4))) {
    case 1: return {-s, c};
    case 2: return {-c, -s};
    case 3: return {s, -c};
    default: return {c, s};
  }
}

/// Turns every plane of the last two axes; `value(plane, row, column)` reads at any real place.
template <class T, class Value>
Tensor<T> rotated(const Tensor<T>& x, double degrees, const Value& value) {
  const Index height = x.shape()[x.rank() - 2];
  const Index width = x.shape()[x.rank() - 1];
  const Turn turn = turn_by(degrees);
  const double middle_row = static_cast<double>(height - 1) / 2;
  const double middle_column = static_cast<double>(width - 1) / 2;
  auto y = Tensor<T>::uninitialised(x.shape());
  T* out = y.mutable_data();
  for (const T* plane = x.data(); plane != x.data() + x.size(); plane += height * width) {
    for (Index i = 0; i < height; ++i) {
      const double down = static_cast<double>(i) - middle_row;
      for (Index j = 0; j < width; ++j) {
        const double right = static_cast<double>(j) - middle_column;
        *out++ = value(plane,
                       middle_row + turn.sine * right + turn.cosine * down,
                       middle_column + turn.cosine * right - turn.sine * down);
      }
    }
  }
  return y;
}

struct Plane {
  Index height = 0;
  Index width = 0;

  template <class T>
  T at(const T* values, Index row, Index column) const {
    return row < 0 || row >= height || column < 0 || column >= width ? T(0)
                                                                     : values[row * width + column];
  }
};

template <class T>
Plane plane_of(const Tensor<T>& x) {
  return {x.shape()[x.rank() - 2], x.shape()[x.rank() - 1]};
}

/// The largest whole number that is not above; the library's is a call for every cell.
Index floor_of(double value) {
  const auto whole = static_cast<Index>(value);
  return whole - (static_cast<double>(whole) > value ? 1 : 0);
}

Tensor<float> turned_linear(const Tensor<float>& x, double degrees) {
  return rotated(x, degrees, [plane = plane_of(x)](const float* values, double row, double column) {
    const Index top = floor_of(row), left = floor_of(column);
    const auto down = static_cast<float>(row - static_cast<double>(top));
    const auto right = static_cast<float>(column - static_cast<double>(left));
    const float above =
        (1 - right) * plane.at(values, top, left) + right * plane.at(values, top, left + 1);
    const float below =
        (1 - right) * plane.at(values, top + 1, left) + right * plane.at(values, top + 1, left + 1);
    return (1 - down) * above + down * below;
  });
}

Tensor<Index> turned_nearest(const Tensor<Index>& x, double degrees) {
  return rotated(x, degrees, [plane = plane_of(x)](const Index* values, double row, double column) {
    return plane.at(values, floor_of(row + 0.5), floor_of(column + 0.5));
  });
}

void check_rank(const char* what, const Tensor<float>& x, int spatial) {
  if (x.rank() < spatial + 1) {
    throw Error(ErrorCode::rank_mismatch,
                std::string(what) + ": x = " + to_string(x.shape()) + "\n  fix: (channels, " +
                    (spatial > 1 ? "..., height, width)" : "spatial...)"));
  }
}

/// Whole numbers from -most to most.
Index between(const Key& key, std::uint64_t position, Index most) {
  return static_cast<Index>(key.below(position, 2 * static_cast<std::uint64_t>(most) + 1)) - most;
}

/// Sources of every spatial axis after crop, flips and shift; nothing where all stay in place.
std::vector<Sources> moves(const Augmentation& how, const Shape& shape, const Key& key) {
  const int spatial = shape.rank() - 1;
  std::vector<Sources> all;
  bool moved = false;
  for (int axis = 0; axis < spatial; ++axis) {
    const Index extent = shape[axis + 1];
    const auto position = static_cast<std::uint64_t>(axis);
    Sources sources = all_of(extent);
    const Index cut = how.crop.rank() > 0 ? how.crop[axis] : extent;
    const auto places = static_cast<std::uint64_t>(extent + 2 * how.padding - cut + 1);
    const auto begin = static_cast<Index>(key.fold("crop").below(position, places)) - how.padding;
    if (begin != 0 || cut != extent) {
      sources = window(sources, begin, cut);
      moved = true;
    }
    const double chance = axis == spatial - 1   ? how.flip
                          : axis == spatial - 2 ? how.flip_vertical
                                                : 0;
    if (chance > 0 && key.fold("flip").uniform(position) < chance) {
      std::reverse(sources.begin(), sources.end());
      moved = true;
    }
    if (const Index by = how.shift > 0 ? between(key.fold("shift"), position, how.shift) : 0;
        by != 0) {
      sources = window(sources, -by, static_cast<Index>(sources.size()));
      moved = true;
    }
    all.push_back(std::move(sources));
  }
  return moved ? all : std::vector<Sources>{};
}

void cut_out(Tensor<float>& x, Index side, const Key& key) {
  const int spatial = x.rank() - 1;
  Index begin[kMaxRank] = {}, end[kMaxRank] = {};
  for (int axis = 0; axis < spatial; ++axis) {
    const Index extent = x.shape()[axis + 1];
    const auto centre = static_cast<Index>(
        key.below(static_cast<std::uint64_t>(axis), static_cast<std::uint64_t>(extent)));
    begin[axis] = centre - side / 2;
    end[axis] = begin[axis] + side;
  }
  Index place[kMaxRank] = {};
  for (float& value : x.mutable_values()) {
    bool inside = true;
    for (int axis = 0; axis < spatial; ++axis) {
      inside = inside && place[axis] >= begin[axis] && place[axis] < end[axis];
    }
    value = inside ? 0.0F : value;
    for (int axis = spatial - 1; axis >= 0 && ++place[axis] == x.shape()[axis + 1]; --axis) {
      place[axis] = 0;
    }
  }
}

/// (spatial...) as (1, spatial...), to be moved like a sample of one channel.
Tensor<Index> with_channel(const Tensor<Index>& mask) {
  Shape shape{1};
  for (const Index extent : mask.shape()) {
    shape.push_back(extent);
  }
  return mask.reshaped(shape);
}
Tensor<Index> without_channel(const Tensor<Index>& mask) {
  Shape shape;
  for (int axis = 1; axis < mask.rank(); ++axis) {
    shape.push_back(mask.shape()[axis]);
  }
  return mask.reshaped(shape);
}

bool same_spatial(const Shape& a, const Shape& b) {
  return a.rank() == b.rank() && a.rank() > 0 && std::equal(a.begin() + 1, a.end(), b.begin() + 1);
}

[[noreturn]] void refuse_field(const std::string& field,
                               const std::string& got,
                               const std::string& fix,
                               ErrorCode code = ErrorCode::invalid_option) {
  throw Error(code, "augmentation: " + field + " = " + got + "\n  fix: " + fix);
}

}  // namespace

void check_fits(const Augmentation& how, const Shape& sample_shape) {
  const int spatial = sample_shape.rank() - 1;
  const auto require_cells = [](const char* name, Index cells) {
    if (cells < 0 || cells > kMostCells) {
      refuse_field(name, std::to_string(cells), "0 to " + std::to_string(kMostCells));
    }
  };
  require_cells("padding", how.padding);
  require_cells("shift", how.shift);
  require_cells("cut_out", how.cut_out);
  const auto require_real = [](const char* name, double number, double most, const char* fix) {
    if (!(number >= 0 && number <= most)) {
      refuse_field(name, detail::number_text(number), fix);
    }
  };
  require_real("flip", how.flip, 1, "a probability, 0 to 1");
  require_real("flip_vertical", how.flip_vertical, 1, "a probability, 0 to 1");
  require_real("rotate", how.rotate, 180, "0 to 180 degrees");
  require_real("noise", how.noise, 1e6, "a standard deviation, 0 to a million");
  Augmentation moving = how;
  moving.noise = 0;
  const int needed = how.rotate > 0 || how.flip_vertical > 0 ? 2 : moving.any() ? 1 : 0;
  if (spatial < needed) {
    throw Error(ErrorCode::rank_mismatch,
                "augmentation: samples " + to_string(sample_shape) + " have " +
                    std::to_string(spatial) + " spatial axes, " + to_string(how) + " needs " +
                    std::to_string(needed) + "\n  fix: leave out what this data has no axes for");
  }
  if (how.crop.rank() > 0 && how.crop.rank() != spatial) {
    refuse_field("crop",
                 to_string(how.crop),
                 std::to_string(spatial) + " extents, one per axis",
                 ErrorCode::invalid_extent);
  }
  for (int axis = 0; axis < how.crop.rank(); ++axis) {
    const Index most = sample_shape[axis + 1] + 2 * how.padding;
    if (how.crop[axis] < 1 || how.crop[axis] > most) {
      refuse_field("crop",
                   to_string(how.crop),
                   "on axis " + std::to_string(axis) + " 1 to " + std::to_string(most) +
                       ", the extent with padding on both sides",
                   ErrorCode::invalid_extent);
    }
  }
}

Shape augmented_shape(const Augmentation& how, const Shape& sample_shape) {
  Shape shape = sample_shape;
  for (int axis = 0; axis < how.crop.rank(); ++axis) {
    shape[axis + 1] = how.crop[axis];
  }
  return shape;
}

Sample augment(const Sample& sample, const Augmentation& how, const Key& key) {
  const Shape& shape = sample.image.shape();
  check_fits(how, shape);
  const bool has_mask = sample.mask.rank() > 0 && sample.mask.rank() == shape.rank() - 1;
  const bool moves_target = same_spatial(sample.target.shape(), shape);
  Sample result = sample;
  if (const std::vector<Sources> sources = moves(how, shape, key); !sources.empty()) {
    result.image = gathered(result.image, sources);
    if (has_mask) {
      result.mask = without_channel(gathered(with_channel(result.mask), sources));
    }
    if (moves_target) {
      result.target = gathered(result.target, sources);
    }
  }
  if (how.rotate > 0) {
    const double degrees = how.rotate * (2 * key.fold("rotate").uniform(0) - 1);
    result.image = turned_linear(result.image, degrees);
    if (has_mask) {
      result.mask = turned_nearest(result.mask, degrees);
    }
    if (moves_target) {
      result.target = turned_linear(result.target, degrees);
    }
  }
  if (how.cut_out > 0) {
    cut_out(result.image, how.cut_out, key.fold("cut_out"));
  }
  if (how.noise > 0) {
    add_noise(result.image.mutable_values(), how.noise, key.fold("noise"));
  }
  return result;
}

Tensor<float> shifted(const Tensor<float>& x, const Shape& by) {
  check_rank("shifted", x, by.rank());
  if (by.rank() != x.rank() - 1) {
    throw Error(ErrorCode::rank_mismatch,
                "shifted: x = " + to_string(x.shape()) + ", by = " + to_string(by) +
                    "\n  fix: one number for each spatial axis");
  }
  std::vector<Sources> sources;
  for (int axis = 0; axis < by.rank(); ++axis) {
    const Index extent = x.shape()[axis + 1];
    sources.push_back(window(all_of(extent), -std::clamp(by[axis], -extent, extent), extent));
  }
  return gathered(x, sources);
}

Tensor<float> flipped(const Tensor<float>& x, int axis) {
  check_rank("flipped", x, 1);
  if (axis < 0 || axis >= x.rank() - 1) {
    throw Error(ErrorCode::invalid_index,
                "flipped: axis " + std::to_string(axis) + " of " + to_string(x.shape()) +
                    "\n  fix: a spatial axis, 0 to " + std::to_string(x.rank() - 2));
  }
  std::vector<Sources> sources;
  for (int i = 0; i < x.rank() - 1; ++i) {
    sources.push_back(all_of(x.shape()[i + 1]));
  }
  std::reverse(sources[static_cast<std::size_t>(axis)].begin(),
               sources[static_cast<std::size_t>(axis)].end());
  return gathered(x, sources);
}

Tensor<float> rotated(const Tensor<float>& x, double degrees) {
  check_rank("rotated", x, 2);
  if (!std::isfinite(degrees)) {
    throw Error(ErrorCode::invalid_option,
                "rotated: degrees = " + std::to_string(degrees) + "\n  fix: a finite number");
  }
  return turned_linear(x, degrees);
}

}  // namespace fenestra::nn
