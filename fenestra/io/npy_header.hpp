// The header of a .npy file: a dictionary in the notation of Python, read to the letter.
//
// Not installed. Nothing is guessed: a key that is missing, unknown or there twice, a type that is
// no number, an extent that does not fit are refused with the byte at which they stand.
#pragma once

#include <fenestra/base/file.hpp>
#include <fenestra/tensor/shape.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace fenestra::io {

inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

/// What the header says, held against the size of the file: the numbers are all there, and nothing
/// after them.
struct NpyHeader {
  char kind = 'f';  ///< f, i, u or b, as NumPy names them
  int width = 4;    ///< bytes
  bool fortran = false;
  Shape shape;
  std::uint64_t begin = 0;  ///< of the numbers
  Index count = 0;
};

/// Throws `bad_file` with the byte offset, what was expected and what was found.
NpyHeader read_npy_header(const InputFile& file);

[[noreturn]] void fail_npy(const InputFile& file,
                           std::uint64_t offset,
                           std::string_view expected,
                           std::string_view found,
                           std::string_view fix = "write it with numpy.save");

}  // namespace fenestra::io
