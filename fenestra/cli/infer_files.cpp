// Reading and writing by parts for `fenestra infer`.
#include <fenestra/cli/infer_files.hpp>
#include <fenestra/cli/report_colours.hpp>
#include <fenestra/cli/run_model.hpp>
#include <fenestra/cli/text.hpp>

#include <cstddef>
#include <span>
#include <utility>

namespace fenestra::cli {

namespace {

/// A box of (1, channels, spatial...) as one of `rank` axes.
Box without_leading(const Box& box, int rank) {
  Box result;
  for (int axis = box.rank() - rank; axis < box.rank(); ++axis) {
    result.begin.push_back(box.begin[axis]);
    result.count.push_back(box.count[axis]);
  }
  return result;
}

}  // namespace

io::RawFormat parse_raw(std::string_view text) {
  constexpr std::pair<std::string_view, io::NumberType> kTypes[] = {{"u8", io::NumberType::u8},
                                                                    {"u16", io::NumberType::u16},
                                                                    {"i16", io::NumberType::i16},
                                                                    {"f16", io::NumberType::f16},
                                                                    {"f32", io::NumberType::f32},
                                                                    {"f64", io::NumberType::f64}};
  const std::size_t colon = text.find(':');
  io::RawFormat raw{.shape = parse_extents(text.substr(0, colon), "--raw")};
  if (colon == std::string_view::npos) {
    return raw;
  }
  const std::string_view name = text.substr(colon + 1);
  for (const auto& [known, type] : kTypes) {
    if (name == known) {
      raw.type = type;
      return raw;
    }
  }
  throw UsageError("--raw: \"" + std::string(name) + "\" is none of u8, u16, i16, f16, f32, f64");
}

Shape input_shape(const Shape& file, const Shape& sample, const std::string& name) {
  const int spatial_rank = sample.rank() - 1;
  const bool fits = file.rank() == spatial_rank       ? sample[0] == 1
                    : file.rank() == spatial_rank + 1 ? file[0] == sample[0]
                    : file.rank() == spatial_rank + 2 ? file[0] == 1 && file[1] == sample[0]
                                                      : false;
  if (!fits || file.elements().value_or(0) == 0) {
    throw Error(ErrorCode::shape_mismatch,
                name + ": an array " + to_string(file) + "; the model takes " +
                    sample_words(sample) + "\n  fix: one picture (channels, spatial...) with " +
                    std::to_string(sample[0]) + (sample[0] == 1 ? " channel" : " channels"));
  }
  Shape shape{1, sample[0]};
  for (int axis = file.rank() - spatial_rank; axis < file.rank(); ++axis) {
    shape.push_back(file[axis]);
  }
  return shape;
}

nn::TileSource<float> prepared_source(const io::RegionReader& reader,
                                      const Shape& shape,
                                      const nn::Preprocessing& preprocessing) {
  nn::check_fits(preprocessing, shape[1]);
  return {shape, [&reader, preprocessing](const Box& box, float* out) {
            reader.read(without_leading(box, reader.shape().rank()), out);
            const Shape sample = without_leading(box, box.rank() - 1).shape();
            if (reader.has_bytes()) {
              for (float& number :
                   std::span(out, static_cast<std::size_t>(sample.elements().value()))) {
                number /= 255;
              }
            }
            nn::normalise_into(preprocessing, Tensor<float>::view(out, sample), out);
          }};
}

ResultFile::ResultFile(const std::string& path,
                       io::RegionFormat format,
                       nn::Task task,
                       const Shape& output)
    : format_(format), task_(task), file_(shape_of(output)), writer_(path, format, file_) {}

Shape ResultFile::shape_of(const Shape& output) const {
  Shape result;
  if (!(draws() && task_ == nn::Task::segmentation)) {
    result.push_back(output[1]);
  } else if (format_ == io::RegionFormat::ppm) {
    result.push_back(3);
  }
  for (int axis = 2; axis < output.rank(); ++axis) {
    result.push_back(output[axis]);
  }
  return result;
}

void ResultFile::write(const Box& box, const float* values) {
  if (!draws()) {
    writer_.write(without_leading(box, file_.rank()), values);
    return;
  }
  for_each_band(box, values, [&](const Box& band, const float* numbers) { draw(band, numbers); });
}

void ResultFile::draw(const Box& box, const float* values) {
  Box part = without_leading(box, file_.rank());
  const Shape shape = without_leading(box, box.rank() - 1).shape();
  const Tensor<float> scores = Tensor<float>::view(values, shape);
  if (task_ != nn::Task::segmentation) {
    writer_.write(part, drawn(scores).data());
    return;
  }
  const Tensor<Index> mask = mask_of(scores);
  const Index channels = format_ == io::RegionFormat::ppm ? 3 : 1;
  Tensor<float> levels(Shape{channels, mask.size()});
  for (Index i = 0; i < mask.size(); ++i) {
    const Colour colour = colour_of_class(mask[i]);
    for (Index c = 0; c < channels; ++c) {
      levels.mutable_data()[c * mask.size() + i] =
          channels == 1 ? static_cast<float>(std::min<Index>(mask[i], 255)) / 255
                        : static_cast<float>(colour[static_cast<std::size_t>(c)]) / 255;
    }
  }
  if (channels == 3) {
    part.set(0, {0, 3});
  }
  writer_.write(part, levels.data());
}

}  // namespace fenestra::cli
