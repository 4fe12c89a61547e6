// Messages made by hand, a line each, for tests of models; shares nothing with the writer. Not
// installed.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>

namespace fenestra::onnx::hand {

inline std::string varint(std::uint64_t value) {
  std::string out;
  do {
    const auto low = static_cast<unsigned char>(value % 128);
    value /= 128;
    out += static_cast<char>(value != 0 ? low + 128 : low);
  } while (value != 0);
  return out;
}
/// A field with a number.
inline std::string num(unsigned field, std::uint64_t value) {
  return varint(field * 8) + varint(value);
}
/// A field with bytes: a text, a message or packed numbers.
inline std::string sub(unsigned field, std::string_view bytes) {
  return varint(field * 8 + 2) + varint(bytes.size()) + std::string(bytes);
}
template <class T>
std::string plain(std::initializer_list<T> values) {
  std::string out(values.size() * sizeof(T), '\0');
  std::memcpy(out.data(), values.begin(), out.size());
  return out;
}
inline std::string fixed32(unsigned field, float value) {
  return varint(field * 8 + 5) + plain({value});
}

inline std::string dims(std::initializer_list<std::uint64_t> extents) {
  std::string out;
  for (const std::uint64_t extent : extents) {
    out += num(1, extent);
  }
  return out;
}
/// float32 numbers, raw.
inline std::string floats(std::string_view name, std::initializer_list<float> values) {
  return dims({values.size()}) + num(2, 1) + sub(8, name) + sub(9, plain(values));
}
inline std::string node(std::string_view op,
                        std::initializer_list<std::string_view> inputs,
                        std::initializer_list<std::string_view> outputs,
                        std::string_view rest = {}) {
  std::string out;
  for (const std::string_view input : inputs) {
    out += sub(1, input);
  }
  for (const std::string_view output : outputs) {
    out += sub(2, output);
  }
  return out + sub(4, op) + std::string(rest);
}
/// float32 of one unknown extent, called n.
inline std::string value(std::string_view name) {
  return sub(1, name) + sub(2, sub(1, num(1, 1) + sub(2, sub(1, sub(2, "n")))));
}
inline std::string model(std::string_view graph, std::uint64_t opset = 13) {
  return num(1, 8) + sub(2, "by hand") + sub(8, num(2, opset)) + sub(7, graph);
}
/// y = x + w
inline std::string sum_graph(std::string_view tensor) {
  return sub(1, node("Add", {"x", "w"}, {"y"})) + sub(5, tensor) + sub(11, value("x")) +
         sub(12, value("y"));
}
inline std::string sum_model() { return model(sum_graph(floats("w", {1, 2, 3}))); }

}  // namespace fenestra::onnx::hand
