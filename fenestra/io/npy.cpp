// .npy: a magic string, a header that is a Python dictionary in text, then the numbers.
#include <fenestra/io/file.hpp>
#include <fenestra/io/npy.hpp>
#include <fenestra/tensor/transform.hpp>

#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra::io {

static_assert(std::endian::native == std::endian::little,
              "the reader copies little-endian numbers as they are");

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

[[noreturn]] void fail(const std::filesystem::path& path,
                       std::size_t offset,
                       const std::string& expected,
                       const std::string& found) {
  throw Error(ErrorCode::bad_file,
              path.string() + ": at byte " + std::to_string(offset) + ": expected " + expected +
                  ", found " + found + "\n  fix: write it with numpy.save");
}

/// What the header says.
struct Header {
  char kind = 'f';  ///< f, i, u or b, as NumPy names them
  int width = 4;    ///< bytes
  bool fortran = false;
  Shape shape;
  std::size_t begin = 0;  ///< of the numbers
};

/// The text after `'key': ` in the header's dictionary.
std::string_view entry(const std::filesystem::path& path,
                       std::string_view text,
                       std::string_view key,
                       std::size_t at) {
  const std::string quoted = "'" + std::string(key) + "':";
  const std::size_t found = text.find(quoted);
  if (found == std::string_view::npos) {
    fail(path, at, quoted, "a header without it");
  }
  std::string_view rest = text.substr(found + quoted.size());
  while (!rest.empty() && rest.front() == ' ') {
    rest.remove_prefix(1);
  }
  return rest;
}

Header read_header(const std::filesystem::path& path, std::string_view bytes) {
  if (bytes.substr(0, kMagic.size()) != kMagic) {
    fail(
        path, 0, "the magic string \\x93NUMPY", bytes.empty() ? "an empty file" : "something else");
  }
  if (bytes.size() < 10) {
    fail(path, bytes.size(), "a header", "the end of the file");
  }
  const auto byte = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(bytes[i]));
  };
  const std::size_t version = byte(6);
  if (version < 1 || version > 3) {
    fail(path, 6, "format version 1, 2 or 3", std::to_string(version));
  }
  const std::size_t text_at = version == 1 ? 10 : 12;
  if (bytes.size() < text_at) {
    fail(path, bytes.size(), "the header's length", "the end of the file");
  }
  const std::size_t length =
      byte(8) + (byte(9) << 8) + (version == 1 ? 0 : (byte(10) << 16) + (byte(11) << 24));
  if (bytes.size() < text_at + length) {
    fail(path,
         bytes.size(),
         "a header of " + std::to_string(length) + " bytes",
         "the end of the file");
  }
  const std::string_view text = bytes.substr(text_at, length);
  Header header;
  header.begin = text_at + length;

  const std::string_view descr = entry(path, text, "descr", text_at);
  // '<f4' and the like; '|u1' and '|b1' have no byte order.
  if (descr.size() < 5 || descr[0] != '\'' || (descr[1] != '<' && descr[1] != '|') ||
      descr[4] != '\'' || std::string_view("fiub").find(descr[2]) == std::string_view::npos) {
    fail(path,
         text_at,
         "a little-endian number type such as '<f4'",
         std::string(descr.substr(0, 8)));
  }
  header.kind = descr[2];
  header.width = descr[3] - '0';
  const bool known = header.kind == 'f' ? header.width == 4 || header.width == 8
                                        : header.width == 1 || header.width == 2 ||
                                              header.width == 4 || header.width == 8;
  if (!known) {
    fail(path, text_at, "a number of 1, 2, 4 or 8 bytes", std::string(descr.substr(0, 5)));
  }
  header.fortran = entry(path, text, "fortran_order", text_at).substr(0, 4) == "True";

  std::string_view shape = entry(path, text, "shape", text_at);
  if (shape.empty() || shape.front() != '(') {
    fail(path, text_at, "a shape in parentheses", std::string(shape.substr(0, 8)));
  }
  shape.remove_prefix(1);
  while (!shape.empty() && shape.front() != ')') {
    if (shape.front() == ' ' || shape.front() == ',') {
      shape.remove_prefix(1);
      continue;
    }
    Index extent = 0;
    const auto [end, failure] = std::from_chars(shape.data(), shape.data() + shape.size(), extent);
    if (failure != std::errc() || extent < 0 || header.shape.rank() == kMaxRank) {
      fail(path, text_at, "at most 16 extents", std::string(shape.substr(0, 16)));
    }
    header.shape.push_back(extent);
    shape.remove_prefix(static_cast<std::size_t>(end - shape.data()));
  }
  return header;
}

template <class From, class T>
void convert(const std::filesystem::path& path,
             const char* bytes,
             Tensor<T>& out,
             std::size_t begin) {
  T* to = out.mutable_data();
  for (Index i = 0; i < out.size(); ++i) {
    From value;
    std::memcpy(&value, bytes + static_cast<std::size_t>(i) * sizeof(From), sizeof(From));
    to[i] = static_cast<T>(value);
    if constexpr (std::is_integral_v<From> || std::is_integral_v<T>) {
      if (static_cast<From>(to[i]) != value) {
        fail(path,
             begin + static_cast<std::size_t>(i) * sizeof(From),
             "a number the tensor's type holds exactly",
             std::to_string(value));
      }
    }
  }
}

template <class T>
void convert_any(const std::filesystem::path& path,
                 const Header& h,
                 const char* bytes,
                 Tensor<T>& out) {
  const auto as = [&]<class From>(From) { convert<From>(path, bytes, out, h.begin); };
  if (h.kind == 'f') {
    return h.width == 4 ? as(float{}) : as(double{});
  }
  const bool is_signed = h.kind == 'i';
  switch (h.width) {
    case 1: return is_signed ? as(std::int8_t{}) : as(std::uint8_t{});
    case 2: return is_signed ? as(std::int16_t{}) : as(std::uint16_t{});
    case 4: return is_signed ? as(std::int32_t{}) : as(std::uint32_t{});
    default: return is_signed ? as(std::int64_t{}) : as(std::uint64_t{});
  }
}

template <class T>
constexpr std::string_view type_name() {
  if constexpr (std::is_same_v<T, float>) {
    return "<f4";
  } else if constexpr (std::is_same_v<T, double>) {
    return "<f8";
  } else {
    return "<i8";
  }
}

}  // namespace

template <class T>
Tensor<T> load_npy(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw Error(ErrorCode::bad_file,
                path.string() + ": cannot be read\n  fix: the path of a .npy file");
  }
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)),
                                std::istreambuf_iterator<char>());
  const Header header = read_header(path, std::string_view(bytes.data(), bytes.size()));
  const auto count = header.shape.elements();
  if (!count) {
    fail(path, header.begin, "a shape that fits into memory", to_string(header.shape));
  }
  const std::size_t needed =
      static_cast<std::size_t>(*count) * static_cast<std::size_t>(header.width);
  if (bytes.size() - header.begin < needed) {
    fail(path,
         bytes.size(),
         std::to_string(needed) + " bytes of numbers for " + to_string(header.shape),
         std::to_string(bytes.size() - header.begin));
  }
  Shape stored = header.shape;
  if (header.fortran) {
    for (int axis = 0; axis < stored.rank(); ++axis) {
      stored[axis] = header.shape[stored.rank() - 1 - axis];
    }
  }
  Tensor<T> tensor = Tensor<T>::uninitialised(stored);
  convert_any(path, header, bytes.data() + header.begin, tensor);
  if (!header.fortran) {
    return tensor;
  }
  std::vector<int> reversed;
  for (int axis = stored.rank() - 1; axis >= 0; --axis) {
    reversed.push_back(axis);
  }
  return permuted(tensor, reversed);
}

template <class T>
void save_npy(const std::filesystem::path& path, const Tensor<T>& tensor) {
  std::string shape = "(";
  for (const Index extent : tensor.shape()) {
    shape += std::to_string(extent) + ", ";
  }
  std::string text = "{'descr': '" + std::string(type_name<T>()) +
                     "', 'fortran_order': False, 'shape': " + shape + "), }";
  // The numbers start at a multiple of 64 bytes, as the format asks.
  text.append((64 - (kMagic.size() + 4 + text.size() + 1) % 64) % 64, ' ');
  text += '\n';
  std::string header(kMagic);
  header += '\x01';
  header += '\x00';
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  header += text;

  const auto bytes = static_cast<std::size_t>(tensor.size()) * sizeof(T);
  replace_file(path, {header, {reinterpret_cast<const char*>(tensor.data()), bytes}});
}

template Tensor<float> load_npy(const std::filesystem::path&);
template Tensor<double> load_npy(const std::filesystem::path&);
template Tensor<Index> load_npy(const std::filesystem::path&);
template void save_npy(const std::filesystem::path&, const Tensor<float>&);
template void save_npy(const std::filesystem::path&, const Tensor<double>&);
template void save_npy(const std::filesystem::path&, const Tensor<Index>&);

}  // namespace fenestra::io
