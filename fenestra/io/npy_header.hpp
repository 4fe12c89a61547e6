// The header of a .npy file: a dictionary in the notation of Python, read to the letter.
//
// Not installed. Nothing is guessed: a key that is missing, unknown or there twice, a type that is
// no number, an extent that does not fit are refused with the byte at which they stand.
#pragma once

#include <fenestra/io/source.hpp>
#include <fenestra/io/tensor_map.hpp>
#include <fenestra/tensor/shape.hpp>

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace fenestra::io {

inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

/// What the header says, held against the size of the file: the numbers are all there, and nothing
/// after them.
struct NpyHeader {
  NumberType type = NumberType::f32;
  std::endian order = std::endian::little;
  bool fortran = false;
  Shape shape;
  std::uint64_t begin = 0;  ///< of the numbers
  Index count = 0;
};

/// Reads the header of a file of `size` bytes from its beginning; the numbers come next. Throws
/// `bad_file` with the byte offset, what was expected and what was found; `file` is for messages.
NpyHeader read_npy_header(const ReadBytes& read, std::uint64_t size, std::string_view file);

/// Reads the numbers after the header, in C order.
template <class T>
Tensor<T> read_npy_array(const NpyHeader& header, const ReadBytes& read, std::string_view file);

/// The bytes before the numbers of a tensor of T, which is float, double or Index.
template <class T>
std::string npy_header(const Shape& shape);

}  // namespace fenestra::io
