// Every picture is made in three steps: the planes of a tensor side by side, a colour for each
// cell, a PNG in base 64.
#include <fenestra/base/page.hpp>
#include <fenestra/cli/report_colours.hpp>
#include <fenestra/cli/report_picture.hpp>
#include <fenestra/io/image.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace fenestra::cli {

namespace {

constexpr Index kMostSlices = 4;  ///< of a volume
constexpr Index kMostSide = 256;  ///< larger pictures are shown smaller anyway
constexpr Index kPixelArt = 96;   ///< smaller pictures are enlarged to sharp squares
constexpr Index kMostLines = 4;   ///< channels of a signal
constexpr Index kMostPoints = 300;

/// A picture of floats: (channels, height, width). Signals have the height 1.
struct Planes {
  Index channels = 0;
  Index height = 0;
  Index width = 0;
  std::vector<float> values;

  float at(Index c, Index y, Index x) const {
    return values[static_cast<std::size_t>((c * height + y) * width + x)];
  }
  std::span<const float> plane(Index c) const {
    const auto size = static_cast<std::size_t>(height * width);
    return {values.data() + static_cast<std::size_t>(c) * size, size};
  }
};

/// Slices of a volume lie side by side.
template <class T>
Planes planes_of(const Tensor<T>& tensor) {
  const Shape& shape = tensor.shape();
  const int rank = shape.rank();
  const Index depth = rank == 4 ? shape[1] : 1;
  const Index slices = std::min(depth, kMostSlices);
  const Index height = rank == 2 ? 1 : shape[rank - 2];
  const Index width = shape[rank - 1];
  Planes planes{.channels = shape[0], .height = height, .width = slices * width, .values = {}};
  planes.values.reserve(static_cast<std::size_t>(shape[0] * height * slices * width));
  for (Index c = 0; c < shape[0]; ++c) {
    for (Index y = 0; y < height; ++y) {
      for (Index s = 0; s < slices; ++s) {
        const Index slice = (2 * s + 1) * depth / (2 * slices);
        const T* row = tensor.data() + ((c * depth + slice) * height + y) * width;
        for (Index x = 0; x < width; ++x) {
          planes.values.push_back(static_cast<float>(row[x]));
        }
      }
    }
  }
  return planes;
}

struct Range {
  float low = 0;
  float high = 1;
  float part(float value) const {
    return high > low ? std::clamp((value - low) / (high - low), 0.0F, 1.0F) : 0.5F;
  }
};

/// Of the finite values; 0 to 0 where there are none.
Range range_of(std::span<const float> values) {
  Range range{0, 0};
  bool is_first = true;
  for (const float value : values) {
    if (std::isfinite(value)) {
      range.low = is_first ? value : std::min(range.low, value);
      range.high = is_first ? value : std::max(range.high, value);
      is_first = false;
    }
  }
  return range;
}

/// What lies in 0 to 1 is shown as it is.
Range picture_range(std::span<const float> values) {
  const Range range = range_of(values);
  return range.low >= 0 && range.high <= 1 ? Range{} : range;
}

// Markup.

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t at) {
      return at < bytes.size() ? static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at]))
                               : 0U;
    };
    const std::uint32_t bits = byte(i) << 16U | byte(i + 1) << 8U | byte(i + 2);
    for (std::size_t digit = 0; digit < 4; ++digit) {
      const bool is_padding = i + digit > bytes.size();
      text += is_padding ? '=' : kDigits[bits >> (18U - 6U * digit) & 63U];
    }
  }
  return text;
}

/// Every so many-th pixel where a picture is larger than it is ever shown.
template <class ColourAt>
std::string image_markup(Index height, Index width, std::string_view alt, ColourAt&& colour_at) {
  const Index step = (std::max(height, width) + kMostSide - 1) / kMostSide;
  io::Image image{.height = (height + step - 1) / step,
                  .width = (width + step - 1) / step,
                  .channels = 3,
                  .bytes = {}};
  image.bytes.reserve(static_cast<std::size_t>(3 * image.height * image.width));
  for (Index y = 0; y < height; y += step) {
    for (Index x = 0; x < width; x += step) {
      const Colour colour = colour_at(y, x);
      image.bytes.insert(image.bytes.end(), colour.begin(), colour.end());
    }
  }
  const bool is_strip = height == 1 && width > 1;
  const std::string style = is_strip                                          ? "strip"
                            : std::max(image.height, image.width) < kPixelArt ? "sharp"
                                                                              : "";
  return "<img" + (style.empty() ? "" : " class=\"" + style + "\"") +
         " src=\"data:image/png;base64," + base64(io::encode_png(image)) + "\" alt=\"" +
         page::escaped(alt) + "\" width=\"" + std::to_string(image.width) + "\" height=\"" +
         std::to_string(image.height) + "\">";
}

template <class ToColour>
std::string plane_markup(
    const Planes& planes, Index c, Range range, std::string_view alt, ToColour&& to_colour) {
  return image_markup(planes.height, planes.width, alt, [&](Index y, Index x) {
    const float value = planes.at(c, y, x);
    return std::isfinite(value) ? to_colour(range.part(value)) : kNotFinite;
  });
}

/// Lines over a common range; gaps where values are not finite.
std::string lines_markup(const Planes& planes, std::string_view alt) {
  const Range range = range_of(planes.values);
  std::string text =
      "<svg class=\"signal\" viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\""
      " role=\"img\" aria-label=\"" +
      page::escaped(alt) + "\">";
  const Index width = planes.width;
  const Index step = (width + kMostPoints - 1) / kMostPoints;
  for (Index c = 0; c < std::min(planes.channels, kMostLines); ++c) {
    text += "<path class=\"line" + std::to_string(c) + "\" d=\"";
    bool is_open = false;
    const auto point = [&](Index x, float value) {
      const double left =
          width > 1 ? 1000.0 * static_cast<double>(x) / static_cast<double>(width - 1) : 0;
      text += (is_open ? "L" : "M") + decimal(left, 1) + " " +
              decimal(96 - 92 * static_cast<double>(range.part(value)), 1);
      is_open = true;
    };
    for (Index x = 0; x < width; x += step) {
      // The least and the greatest of what one point of the drawing stands for.
      const std::span<const float> piece = planes.plane(c).subspan(
          static_cast<std::size_t>(x), static_cast<std::size_t>(std::min(step, width - x)));
      const bool is_finite =
          std::all_of(piece.begin(), piece.end(), [](float v) { return std::isfinite(v); });
      if (!is_finite) {
        is_open = false;
        continue;
      }
      const auto [low, high] = std::minmax_element(piece.begin(), piece.end());
      point(x, *low);
      if (*high > *low) {
        point(x, *high);
      }
    }
    text += "\"/>";
  }
  return text + "</svg>";
}

bool is_signal(const Tensor<float>& tensor) { return tensor.rank() == 2; }

/// Of a tensor without channels: the same cells as one.
template <class T>
Tensor<T> one_channel(const Tensor<T>& tensor) {
  Shape shape{1};
  for (const Index extent : tensor.shape()) {
    shape.push_back(extent);
  }
  return tensor.reshaped(shape);
}

/// The largest of the channels.
Planes magnitudes(const Saliency& saliency) {
  const Tensor<float>& gradient = saliency.gradient;
  const Planes all =
      planes_of(gradient.rank() < saliency.sample.rank() ? one_channel(gradient) : gradient);
  Planes one{.channels = 1, .height = all.height, .width = all.width, .values = {}};
  for (Index i = 0; i < all.height * all.width; ++i) {
    float most = 0;
    for (Index c = 0; c < all.channels; ++c) {
      const float size = std::abs(all.plane(c)[static_cast<std::size_t>(i)]);
      // What is not a number stays what it is.
      most = size <= most || std::isnan(most) ? most : size;
    }
    one.values.push_back(most);
  }
  return one;
}

/// From zero to the greatest; all dark where there is nothing but zeros.
Range heat_range(const Planes& sizes) {
  const float most = range_of(sizes.values).high;
  return {0, most > 0 ? most : 1};
}

}  // namespace

bool is_sample(const Tensor<float>& tensor) {
  return tensor.rank() >= 2 && tensor.rank() <= 4 && tensor.size() > 0;
}

std::string sample_markup(const Tensor<float>& sample, std::string_view alt) {
  const Planes planes = planes_of(sample);
  if (is_signal(sample)) {
    return lines_markup(planes, alt);
  }
  const Range range = picture_range(planes.values);
  const bool has_colours = planes.channels >= 3;
  return image_markup(planes.height, planes.width, alt, [&](Index y, Index x) {
    Colour colour{};
    for (Index i = 0; i < 3; ++i) {
      const float value = planes.at(has_colours ? i : 0, y, x);
      if (!std::isfinite(value)) {
        return kNotFinite;
      }
      colour[static_cast<std::size_t>(i)] =
          static_cast<std::uint8_t>(std::lround(255 * range.part(value)));
    }
    return colour;
  });
}

std::string channel_markup(const Tensor<float>& maps, Index channel, std::string_view alt) {
  Planes planes = planes_of(maps);
  if (is_signal(maps)) {
    const std::span<const float> plane = planes.plane(channel);
    return lines_markup({.channels = 1,
                         .height = 1,
                         .width = planes.width,
                         .values = std::vector<float>(plane.begin(), plane.end())},
                        alt);
  }
  return plane_markup(planes, channel, range_of(planes.plane(channel)), alt, map_colour);
}

bool has_colour_filters(const Tensor<float>& filters) {
  return filters.rank() == 4 && filters.shape()[1] == 3;
}

std::string filter_markup(const Tensor<float>& filters, Index out, Index in, std::string_view alt) {
  // One filter is a sample of `in` channels.
  Shape one;
  for (int axis = 1; axis < filters.rank(); ++axis) {
    one.push_back(filters.shape()[axis]);
  }
  const Tensor<float> filter =
      Tensor<float>::view(filters.data() + out * (filters.size() / filters.shape()[0]), one);
  if (has_colour_filters(filters)) {
    const Planes planes = planes_of(filter);
    const Range range = range_of(planes.values);
    return sample_markup(filter.map([&](float v) { return std::isfinite(v) ? range.part(v) : v; }),
                         alt);
  }
  const Planes planes = planes_of(filter);
  const Range range = range_of(planes.plane(in));
  const float most = std::max(std::abs(range.low), std::abs(range.high));
  return plane_markup(planes, in, {-most, most}, alt, signed_colour);
}

std::string gradient_markup(const Saliency& saliency, std::string_view alt) {
  const Planes size = magnitudes(saliency);
  return plane_markup(size, 0, heat_range(size), alt, heat_colour);
}

std::string overlay_markup(const Saliency& saliency, std::string_view alt) {
  const Planes size = magnitudes(saliency);
  const Planes sample = planes_of(saliency.sample);
  const Range heat = heat_range(size);
  const Range light = picture_range(sample.values);
  return image_markup(sample.height, sample.width, alt, [&](Index y, Index x) {
    const float strength = size.at(0, y, x);
    float grey = 0;
    for (Index c = 0; c < sample.channels; ++c) {
      grey += light.part(sample.at(c, y, x)) / static_cast<float>(sample.channels);
    }
    if (!std::isfinite(strength) || !std::isfinite(grey)) {
      return kNotFinite;
    }
    // Half as bright as the sample, and lit where the gradient is large.
    const float part = heat.part(strength);
    Colour colour = heat_colour(part);
    for (std::uint8_t& channel : colour) {
      const float mix = 110 * grey * (1 - part) + static_cast<float>(channel) * std::sqrt(part);
      channel = static_cast<std::uint8_t>(std::lround(std::min(mix, 255.0F)));
    }
    return colour;
  });
}

std::string mask_markup(const Tensor<Index>& mask, std::string_view alt) {
  const Planes planes = planes_of(one_channel(mask));
  return image_markup(planes.height, planes.width, alt, [&](Index y, Index x) {
    return colour_of_class(static_cast<Index>(planes.at(0, y, x)));
  });
}

std::string difference_markup(const Tensor<Index>& a,
                              const Tensor<Index>& b,
                              std::string_view alt) {
  const Planes first = planes_of(one_channel(a));
  const Planes second = planes_of(one_channel(b));
  return image_markup(first.height, first.width, alt, [&](Index y, Index x) {
    const float truth = first.at(0, y, x);
    return truth < 0 || truth == second.at(0, y, x) ? Colour{43, 48, 56} : Colour{255, 94, 77};
  });
}

std::string class_colour(Index number) {
  const Colour colour = colour_of_class(number);
  char text[8];
  std::snprintf(text, sizeof text, "#%02x%02x%02x", colour[0], colour[1], colour[2]);
  return text;
}

std::string difference_markup(const Tensor<float>& a,
                              const Tensor<float>& b,
                              std::string_view alt) {
  Tensor<float> distance(a.shape());
  for (Index i = 0; i < a.size(); ++i) {
    distance.mutable_data()[i] = std::abs(a[i] - b[i]);
  }
  return is_signal(a) ? sample_markup(distance, alt)
                      : gradient_markup({.sample = a, .gradient = distance, .caption = ""}, alt);
}

std::string matrix_markup(const Tensor<Index>& matrix, std::string_view alt) {
  const Index count = matrix.shape()[0];
  return image_markup(count, count, alt, [&](Index y, Index x) {
    double sum = 0;
    for (Index i = 0; i < count; ++i) {
      sum += static_cast<double>(matrix.at(y, i));
    }
    // A root, so that single mistakes are seen beside hundreds of right answers.
    return heat_colour(
        sum > 0 ? static_cast<float>(std::sqrt(static_cast<double>(matrix.at(y, x)) / sum)) : 0);
  });
}

}  // namespace fenestra::cli
