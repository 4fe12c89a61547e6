// Arrays and pictures in files, read and written by parts, so that they may be larger than memory.
//
// NumPy's .npy (C order), PGM and PPM with binary samples, and raw numbers whose shape somebody
// says. Pictures are (channels, height, width) with numbers from 0 to 1, as `load_image` and
// `to_tensor` give them.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/io/tensor_map.hpp>
#include <fenestra/tensor/box.hpp>
#include <fenestra/tensor/shape.hpp>

#include <filesystem>
#include <memory>
#include <optional>

namespace fenestra::io {

/// What a raw file holds: numbers in C order, little endian, and nothing else.
struct RawFormat {
  Shape shape;
  NumberType type = NumberType::f32;
};

/// A file that is read by parts. Safe to read from many threads. Every failure throws `bad_file`.
class FENESTRA_API RegionReader {
 public:
  /// The format is told from the first bytes; with `raw` they are numbers.
  explicit RegionReader(const std::filesystem::path& path,
                        const std::optional<RawFormat>& raw = std::nullopt);
  ~RegionReader();
  RegionReader(RegionReader&&) noexcept;
  RegionReader& operator=(RegionReader&&) noexcept;

  const Shape& shape() const;
  /// True where its numbers are bytes of a file that says nothing about their meaning: 0 to 255.
  bool has_bytes() const;
  /// The numbers of `box`, which lies inside the shape, in C order. T is float or double.
  template <class T>
  void read(const Box& box, T* out) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

enum class RegionFormat {
  npy,  ///< of f32
  raw,  ///< f32, little endian
  pgm,  ///< (1, height, width) or (height, width): bytes, 0 to 255
  ppm,  ///< (3, height, width): bytes
};

/// The format that a name stands for by its ending: .npy, .raw, .pgm, .ppm; none for others.
FENESTRA_API std::optional<RegionFormat> region_format(const std::filesystem::path& path);

/// A file that is written by parts, in any order, and appears under its name with `commit`, as
/// `OutputFile` does. Parts that are never written are 0. For one thread. Every failure throws
/// `bad_file`, a shape that the format does not have `shape_mismatch`.
class FENESTRA_API RegionWriter {
 public:
  RegionWriter(const std::filesystem::path& path, RegionFormat format, const Shape& shape);
  ~RegionWriter();
  RegionWriter(RegionWriter&&) noexcept;
  RegionWriter& operator=(RegionWriter&&) noexcept;

  /// `values` has the cells of `box` in C order. Pictures hold round(255 v), with 0 for what is
  /// below 0 or not a number and 255 for what is above 1.
  void write(const Box& box, const float* values);
  /// Everything was written.
  void commit();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

extern template FENESTRA_API void RegionReader::read(const Box&, float*) const;
extern template FENESTRA_API void RegionReader::read(const Box&, double*) const;

}  // namespace fenestra::io
