// NumPy's .npy files: dense arrays in and out.
//
// Reads versions 1 to 3 of the format, little-endian numbers of any common width, C and Fortran
// order; writes version 1, C order. Numbers are converted to the tensor's type; integers that it
// cannot hold exactly are refused.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/base/export.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <filesystem>

namespace fenestra::io {

/// T is float, double or Index. Throws `bad_file` with the byte offset, what was expected and what
/// was found.
template <class T>
FENESTRA_API Tensor<T> load_npy(const std::filesystem::path& path);

/// Written to a temporary name beside `path`, synced and renamed; an existing file is replaced.
template <class T>
FENESTRA_API void save_npy(const std::filesystem::path& path, const Tensor<T>& tensor);

}  // namespace fenestra::io
