// .npy: a header (npy_header.hpp), then the numbers.
#include <fenestra/base/file.hpp>
#include <fenestra/io/npy.hpp>
#include <fenestra/io/npy_header.hpp>
#include <fenestra/io/numbers.hpp>
#include <fenestra/tensor/transform.hpp>

#include <algorithm>
#include <vector>

namespace fenestra::io {

template <class T>
Tensor<T> read_npy_array(const NpyHeader& header, const ReadBytes& read, std::string_view file) {
  const int rank = header.shape.rank();
  Shape stored = header.shape;
  if (header.fortran) {
    std::reverse(stored.extents, stored.extents + rank);
  }
  const Tensor<T> tensor = read_tensor<T>(
      {.type = header.type, .order = header.order, .file = file, .offset = header.begin},
      read,
      stored);
  if (!header.fortran) {
    return tensor;
  }
  std::vector<int> reversed;
  for (int axis = rank - 1; axis >= 0; --axis) {
    reversed.push_back(axis);
  }
  return permuted(tensor, reversed);
}

template <class T>
Tensor<T> load_npy(const std::filesystem::path& path) {
  const ByteSource source = ByteSource::file(path);
  const ReadBytes read = source.from(0);
  const NpyHeader header = read_npy_header(read, source.size(), source.name());
  return read_npy_array<T>(header, read, source.name());
}

template <class T>
void save_npy(const std::filesystem::path& path, const Tensor<T>& tensor) {
  const auto bytes = static_cast<std::size_t>(tensor.size()) * sizeof(T);
  replace_file(
      path, {npy_header<T>(tensor.shape()), {reinterpret_cast<const char*>(tensor.data()), bytes}});
}

template Tensor<float> read_npy_array(const NpyHeader&, const ReadBytes&, std::string_view);
template Tensor<float> load_npy(const std::filesystem::path&);
template void save_npy(const std::filesystem::path&, const Tensor<float>&);
template Tensor<double> read_npy_array(const NpyHeader&, const ReadBytes&, std::string_view);
template Tensor<double> load_npy(const std::filesystem::path&);
template void save_npy(const std::filesystem::path&, const Tensor<double>&);
template Tensor<Index> read_npy_array(const NpyHeader&, const ReadBytes&, std::string_view);
template Tensor<Index> load_npy(const std::filesystem::path&);
template void save_npy(const std::filesystem::path&, const Tensor<Index>&);

}  // namespace fenestra::io
