// The files of `fenestra infer`: what is read as a network takes it, and results as a file holds
// them, part by part. What is made of a part on the way takes little memory, however large it is.
#pragma once

#include <fenestra/cli/network.hpp>
#include <fenestra/io/regions.hpp>
#include <fenestra/nn/data/preprocessing.hpp>
#include <fenestra/nn/tiles.hpp>
#include <fenestra/tensor/box.hpp>
#include <fenestra/tensor/shape.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra::cli {

/// "3x4096x4096:u8"; f32 where no type is said.
io::RawFormat parse_raw(std::string_view text);

/// The picture as the network takes it, (1, channels, spatial...): the axis of samples and that of
/// a single channel may be missing in the file.
Shape input_shape(const Shape& file, const Shape& sample, const std::string& name);

/// Numbers of the file as the network was trained on them.
nn::TileSource<float> prepared_source(const io::RegionReader& reader,
                                      const Shape& shape,
                                      const nn::Preprocessing& preprocessing);

/// The output's file: arrays hold the numbers, pictures the classes of cells (their numbers in
/// .pgm, their colours in .ppm) or what was drawn.
class ResultFile {
 public:
  /// For an output (1, scores, spatial...).
  ResultFile(const std::string& path, io::RegionFormat format, nn::Task task, const Shape& output);

  void write(const Box& box, const float* values);
  void commit() { writer_.commit(); }

 private:
  bool draws() const {
    return format_ == io::RegionFormat::pgm || format_ == io::RegionFormat::ppm;
  }
  Shape shape_of(const Shape& output) const;
  void draw(const Box& box, const float* values);

  io::RegionFormat format_;
  nn::Task task_;
  Shape file_;
  io::RegionWriter writer_;
};

/// Cells of a band, nearly: 1 MiB of floats.
inline constexpr Index kBandCells = Index{1} << 18;

/// Calls f(box, values) for some rows of a part (1, channels, rows, ...) after others.
template <class F>
void for_each_band(const Box& box, const float* values, F&& f) {
  const Index channels = box.count[1];
  const Index rows = box.count[2];
  const Index cells = box.shape().elements().value();
  if (cells <= kBandCells) {
    f(box, values);
    return;
  }
  const Index row = cells / (channels * rows);
  const Index most = std::clamp<Index>(kBandCells / (channels * row), 1, rows);
  std::vector<float> band;
  for (Index begin = 0; begin < rows; begin += most) {
    const Index count = std::min(most, rows - begin);
    Box part = box;
    part.begin[2] += begin;
    part.count[2] = count;
    band.resize(static_cast<std::size_t>(channels * count * row));
    for (Index c = 0; c < channels; ++c) {
      std::copy_n(values + (c * rows + begin) * row, count * row, band.data() + c * count * row);
    }
    f(part, band.data());
  }
}

}  // namespace fenestra::cli
