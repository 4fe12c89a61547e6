// Fuzzes the reader of ONNX files: a file is refused with an error, or every tensor that it has is
// read or refused for its numbers, its names are checked, and written without a change it is read
// again as the same.
#include <fenestra/base/error.hpp>
#include <fenestra/io/onnx/model.hpp>
#include <fenestra/io/onnx/write.hpp>

#include <fuzz/bytes.hpp>

#include <span>
#include <string>

namespace fenestra::fuzz {
namespace {

void read_tensor(const onnx::TensorData& tensor) {
  try {
    tensor.read_nearest();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_file) {
      throw;
    }
  }
}

void read_all(std::span<const std::byte> bytes) {
  const onnx::Model model = onnx::read_model(bytes, "input");
  for (const onnx::TensorData& tensor : model.graph.initializers) {
    read_tensor(tensor);
  }
  for (const onnx::Node& node : model.graph.nodes) {
    for (const onnx::Attribute& attribute : node.attributes) {
      if (attribute.t) {
        read_tensor(*attribute.t);
      }
    }
  }
  onnx::name_problems(model);
  const std::string again = onnx::patched(model, {.metadata = {{"fuzz", "yes"}}});
  const onnx::Model reread = onnx::read_model(std::as_bytes(std::span(again)), "again");
  if (reread.graph.nodes.size() != model.graph.nodes.size() ||
      reread.graph.initializers.size() != model.graph.initializers.size() ||
      reread.metadata.at("fuzz") != "yes") {
    complain("what was written is another model");
  }
}

}  // namespace
}  // namespace fenestra::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    fenestra::fuzz::read_all(std::as_bytes(std::span(data, size)));
  } catch (const fenestra::Error&) {
    return 0;
  }
  return 0;
}
