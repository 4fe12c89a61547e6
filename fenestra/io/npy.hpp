// NumPy's .npy files: dense arrays in and out.
//
// Reads versions 1 to 3 of the format, numbers and truth values of any common width in either byte
// order, C and Fortran order; writes version 1, C order. Numbers are converted to the tensor's
// type: integers that it cannot hold exactly are refused, and so are numbers that would become
// infinite. Objects, structures and texts are no numbers, and a file with more or less than its
// header says is damaged.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/base/export.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <filesystem>

namespace fenestra::io {

/// T is float, double or Index; the file is a regular one. Throws `bad_file` with the byte offset,
/// what was expected and what was found, before anything of a size that the file does not have is
/// allocated.
template <class T>
FENESTRA_API Tensor<T> load_npy(const std::filesystem::path& path);

/// Whole or not at all, as `OutputFile` (base/file.hpp) writes: an existing regular file is
/// replaced and its permissions are kept. Throws `bad_file`.
template <class T>
FENESTRA_API void save_npy(const std::filesystem::path& path, const Tensor<T>& tensor);

}  // namespace fenestra::io
