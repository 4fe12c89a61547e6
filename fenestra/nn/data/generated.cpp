// Shapes, tones and volumes. What is drawn is decided by a key of the sample; values are averaged
// over a few places in every cell, so that edges are smooth as in a photograph, and masks are taken
// at the cell's centre.
#include <fenestra/nn/data/generated.hpp>

#include <fenestra/base/key.hpp>
#include <fenestra/nn/data/noise.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

namespace fenestra::nn {

namespace {

void check_at_least(const char* dataset, const char* option, Index got, Index least, Index most) {
  if (got < least || got > most) {
    throw Error(ErrorCode::invalid_extent,
                std::string(dataset) + ": " + option + " = " + std::to_string(got) +
                    "\n  fix: " + std::to_string(least) + " to " + std::to_string(most));
  }
}
void check_noise(const char* dataset, double noise) {
  if (!(noise >= 0 && noise <= 100)) {
    throw Error(ErrorCode::invalid_option,
                std::string(dataset) + ": noise = " + std::to_string(noise) + "\n  fix: 0 to 100");
  }
}
constexpr Index kMostSamples = Index{1} << 40;
constexpr Index kMostExtent = 4096;

Key sample_key(const char* dataset, std::uint64_t seed, Index i) {
  return Key(seed).fold(dataset).fold(static_cast<std::uint64_t>(i));
}

/// Draws one number after the other; the order of the calls is part of the definition.
class Draws {
 public:
  explicit Draws(const Key& key) : key_(key) {}
  double between(double low, double high) { return low + (high - low) * key_.uniform(position_++); }
  Index below(Index count) {
    return static_cast<Index>(key_.below(position_++, static_cast<std::uint64_t>(count)));
  }

 private:
  Key key_;
  std::uint64_t position_ = 0;
};

// --- shapes --------------------------------------------------------------------------------------

enum ShapeClass : Index { kBackground, kCircle, kBox, kTriangle };

struct Figure {
  Index kind = kCircle;
  double x = 0, y = 0;  ///< centre, the picture being 1 wide
  double radius = 0;    ///< of the circle, or of the one around it
  double stretch = 1;   ///< height of a box by its width
  double cosine = 1, sine = 0;
  std::array<float, 3> colour = {};

  bool contains(double px, double py) const {
    const double u = cosine * (px - x) + sine * (py - y);
    const double v = -sine * (px - x) + cosine * (py - y);
    switch (kind) {
      case kCircle: return u * u + v * v < radius * radius;
      case kBox: {
        const double half = radius / std::sqrt(1 + stretch * stretch);
        return std::abs(u) < half && std::abs(v) < half * stretch;
      }
      default:  // three half planes at a distance of half the radius
        return v < radius / 2 && std::numbers::sqrt3 * u - v < radius &&
               -std::numbers::sqrt3 * u - v < radius;
    }
  }
};

class Shapes final : public Dataset {
 public:
  explicit Shapes(const ShapesOptions& options)
      : Dataset({.name = "shapes",
                 .task = Task::segmentation,
                 .sample_shape = {options.channels, options.size, options.size},
                 .classes = {"background", "circle", "box", "triangle"}}),
        options_(options) {}

  Index size() const override { return options_.count; }

 protected:
  Sample read(Index i) const override {
    const Key key = sample_key("shapes", options_.seed, i);
    Draws draws(key);
    const auto colour = [&](double low, double high) {
      std::array<float, 3> c;
      for (float& value : c) {
        value = static_cast<float>(draws.between(low, high));
      }
      return c;
    };
    const auto dark = colour(0.05, 0.3);
    const double slope_x = draws.between(-0.15, 0.15);
    const double slope_y = draws.between(-0.15, 0.15);
    std::vector<Figure> figures;
    const Index wanted = 1 + draws.below(4);
    // Some tries find no place: figures may touch and hide a little of each other, not more, or
    // nobody could say what is hidden.
    for (int tries = 0; tries < 12 && static_cast<Index>(figures.size()) < wanted; ++tries) {
      Figure figure;
      figure.kind = kCircle + draws.below(3);
      figure.radius = draws.between(0.12, 0.28);
      figure.x = draws.between(0.15, 0.85);
      figure.y = draws.between(0.15, 0.85);
      figure.stretch = draws.between(0.5, 2);
      const double angle = draws.between(0, 2 * std::numbers::pi);
      figure.cosine = std::cos(angle);
      figure.sine = std::sin(angle);
      figure.colour = colour(0.5, 1);
      const bool is_free = std::none_of(figures.begin(), figures.end(), [&](const Figure& other) {
        return std::hypot(figure.x - other.x, figure.y - other.y) <
               0.85 * (figure.radius + other.radius);
      });
      if (is_free) {
        figures.push_back(figure);
      }
    }
    Sample sample{.image = Tensor<float>(sample_shape()),
                  .mask = Tensor<Index>(Shape{options_.size, options_.size})};
    const auto top_at = [&](double x, double y) -> const Figure* {
      const auto top = std::find_if(
          figures.rbegin(), figures.rend(), [&](const Figure& f) { return f.contains(x, y); });
      return top == figures.rend() ? nullptr : &*top;
    };
    float* out = sample.image.mutable_data();
    Index* mask = sample.mask.mutable_data();
    const Index cells = options_.size * options_.size;
    const double step = 1.0 / static_cast<double>(options_.size);
    for (Index cell = 0; cell < cells; ++cell) {
      const double left = static_cast<double>(cell % options_.size) * step;
      const double top = static_cast<double>(cell / options_.size) * step;
      for (const double u : {0.25, 0.75}) {
        for (const double v : {0.25, 0.75}) {
          const double x = left + u * step, y = top + v * step;
          const Figure* figure = top_at(x, y);
          const auto slope = static_cast<float>(slope_x * (x - 0.5) + slope_y * (y - 0.5));
          for (Index c = 0; c < options_.channels; ++c) {
            const auto channel = static_cast<std::size_t>(c);
            out[c * cells + cell] +=
                (figure == nullptr ? dark[channel] + slope : figure->colour[channel]) / 4;
          }
        }
      }
      const Figure* figure = top_at(left + step / 2, top + step / 2);
      mask[cell] = figure == nullptr ? Index{kBackground} : figure->kind;
    }
    add_noise(sample.image.mutable_values(), options_.noise, key.fold("noise"));
    return sample;
  }

 private:
  ShapesOptions options_;
};

// --- tones ---------------------------------------------------------------------------------------

class Tones final : public Dataset {
 public:
  explicit Tones(const TonesOptions& options)
      : Dataset({.name = "tones",
                 .task = Task::classification,
                 .sample_shape = {1, options.length},
                 .classes = {"sine", "square", "saw", "chirp", "noise"}}),
        options_(options) {}

  Index size() const override { return options_.count; }

 protected:
  Sample read(Index i) const override {
    const Key key = sample_key("tones", options_.seed, i);
    Draws draws(key);
    Sample sample{.image = Tensor<float>(sample_shape()), .label = draws.below(class_count())};
    const auto length = static_cast<double>(options_.length);
    // Three periods at least, to be told from a slope; eight cells at least in each.
    const double periods = draws.between(3, length / 8);
    const double phase = draws.between(0, 1);
    const double loudness = draws.between(0.4, 1);
    // The chirp ends an octave or two above where it begins.
    const double rise = draws.between(1, 3);
    const double begin = periods / (1 + rise / 2);
    const Key white = key.fold("white");
    float* out = sample.image.mutable_data();
    for (Index t = 0; t < options_.length; ++t) {
      const double at = static_cast<double>(t) / length;
      const bool is_chirp = sample.label == 3;
      const double turns = phase + (is_chirp ? begin * at * (1 + rise * at / 2) : periods * at);
      const double part = turns - std::floor(turns);  // of the period, 0 to 1
      double value = 0;
      switch (sample.label) {
        case 0:
        case 3: value = std::sin(2 * std::numbers::pi * part); break;
        case 1: value = part < 0.5 ? 1 : -1; break;
        case 2: value = 2 * part - 1; break;
        default: value = 2 * white.uniform(static_cast<std::uint64_t>(t)) - 1; break;
      }
      out[t] = static_cast<float>(loudness * value);
    }
    add_noise(sample.image.mutable_values(), options_.noise, key.fold("noise"));
    return sample;
  }

 private:
  TonesOptions options_;
};

// --- volumes -------------------------------------------------------------------------------------

class Volumes final : public Dataset {
 public:
  explicit Volumes(const VolumesOptions& options)
      : Dataset({.name = "volumes",
                 .task = Task::classification,
                 .sample_shape = {1, options.size, options.size, options.size},
                 .classes = {"ball", "cube", "shell", "rod"}}),
        options_(options) {}

  Index size() const override { return options_.count; }

 protected:
  Sample read(Index i) const override {
    const Key key = sample_key("volumes", options_.seed, i);
    Draws draws(key);
    Sample sample{.image = Tensor<float>(sample_shape()), .label = draws.below(class_count())};
    const std::array<double, 3> centre = {
        draws.between(0.4, 0.6), draws.between(0.4, 0.6), draws.between(0.4, 0.6)};
    const double radius = draws.between(0.22, 0.38);
    const double bright = draws.between(0.6, 1);
    const auto along = static_cast<std::size_t>(draws.below(3));  // the rod's axis
    const auto contains = [&](const std::array<double, 3>& place) {
      std::array<double, 3> away;
      double square = 0, largest = 0;
      for (std::size_t axis = 0; axis < 3; ++axis) {
        away[axis] = std::abs(place[axis] - centre[axis]);
        square += away[axis] * away[axis];
        largest = std::max(largest, away[axis]);
      }
      switch (sample.label) {
        case 0: return square < radius * radius;
        case 1: return largest < 0.8 * radius;  // of about the volume of the ball
        case 2: return square < radius * radius && square > 0.4 * radius * radius;
        default:
          return square - away[along] * away[along] < 0.2 * radius * radius &&
                 away[along] < 1.2 * radius;
      }
    };
    const double step = 1.0 / static_cast<double>(options_.size);
    const Index size = options_.size;
    float* out = sample.image.mutable_data();
    for (Index cell = 0; cell < size * size * size; ++cell) {
      const std::array<Index, 3> corner = {cell / (size * size), cell / size % size, cell % size};
      for (int part = 0; part < 8; ++part) {
        std::array<double, 3> place;
        for (std::size_t axis = 0; axis < 3; ++axis) {
          const double inside = (part >> axis) % 2 == 0 ? 0.25 : 0.75;
          place[axis] = (static_cast<double>(corner[axis]) + inside) * step;
        }
        out[cell] += contains(place) ? static_cast<float>(bright / 8) : 0.0F;
      }
    }
    add_noise(sample.image.mutable_values(), options_.noise, key.fold("noise"));
    return sample;
  }

 private:
  VolumesOptions options_;
};

}  // namespace

DatasetPtr shapes_dataset(const ShapesOptions& options) {
  check_at_least("shapes", "count", options.count, 1, kMostSamples);
  check_at_least("shapes", "size", options.size, 16, kMostExtent);
  if (options.channels != 1 && options.channels != 3) {
    throw Error(ErrorCode::invalid_option,
                "shapes: channels = " + std::to_string(options.channels) + "\n  fix: 1 or 3");
  }
  check_noise("shapes", options.noise);
  return std::make_shared<const Shapes>(options);
}

DatasetPtr tones_dataset(const TonesOptions& options) {
  check_at_least("tones", "count", options.count, 1, kMostSamples);
  check_at_least("tones", "length", options.length, 32, Index{1} << 24);
  check_noise("tones", options.noise);
  return std::make_shared<const Tones>(options);
}

DatasetPtr volumes_dataset(const VolumesOptions& options) {
  check_at_least("volumes", "count", options.count, 1, kMostSamples);
  check_at_least("volumes", "size", options.size, 8, 256);
  check_noise("volumes", options.noise);
  return std::make_shared<const Volumes>(options);
}

}  // namespace fenestra::nn
