// Messages of models as bytes, for whoever writes one. Not installed.
#pragma once

#include <fenestra/io/onnx/model.hpp>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fenestra::onnx {

/// The bytes that a file stores for the numbers; floating-point ones are rounded to `type`,
/// integers must fit. Throws `dtype_mismatch`.
std::string raw_bytes(ElementType type, const io::AnyTensor& tensor);
const Shape& shape_of(const io::AnyTensor& tensor);

/// float32, float64 or int64.
ElementType type_of(const io::AnyTensor& tensor);
std::string encode_tensor(std::string_view name, ElementType type, const io::AnyTensor& tensor);
std::string encode_value_info(const ValueInfo& info);
std::string encode_opset(std::string_view domain, Index version);
std::string encode_entry(std::string_view key, std::string_view value);

/// A node, attribute by attribute.
class NodeBytes {
 public:
  NodeBytes(std::string_view op,
            std::string_view name,
            const std::vector<std::string>& inputs,
            const std::vector<std::string>& outputs);
  NodeBytes& set(std::string_view attribute, Index value);
  NodeBytes& set(std::string_view attribute, float value);
  NodeBytes& set(std::string_view attribute, std::string_view value);
  NodeBytes& set(std::string_view attribute, const std::vector<Index>& values);
  NodeBytes& set_tensor(std::string_view attribute, std::string_view tensor);
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace fenestra::onnx
