// Writes every kind of layer as an ONNX file into a folder, with an input and what the layer says
// about it, for scripts/compare-onnxruntime: N.onnx, N.x and N.y (float32), and index.txt.
#include <fenestra/io/onnx/export.hpp>
#include <fenestra/io/onnx/export_layers_test.hpp>
#include <fenestra/nn/layers.hpp>

#include <cmath>
#include <filesystem>
#include <iostream>
#include <string>

namespace fenestra {
namespace {

/// scale * sin(step * i + phase)
Tensor<float> wave(const Shape& shape, double step, double phase, double scale) {
  Tensor<float> tensor(shape);
  Index i = 0;
  for (float& value : tensor.mutable_values()) {
    value = static_cast<float>(scale * std::sin(step * static_cast<double>(i++) + phase));
  }
  return tensor;
}

void write(const std::filesystem::path& path, const Tensor<float>& tensor) {
  const auto bytes = std::as_bytes(tensor.values());
  replace_file(path, {{reinterpret_cast<const char*>(bytes.data()), bytes.size()}});
}

void write_layers(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::string index;
  int number = 0;
  for (const onnx::ExportedLayer& entry : onnx::kExportedLayers) {
    auto layer = nn::build_layer<float>(entry.description);
    double phase = 0;
    for (const nn::Slot<float>& slot : nn::slots<float>(layer)) {
      Tensor<float> numbers = wave(slot.value->shape(), 0.7, ++phase, 0.4);
      if (slot.name.ends_with("running_var")) {
        numbers = numbers.map([](float x) { return 0.5F + std::fabs(x); });
      }
      *slot.value = numbers;
    }
    Shape batch{2};
    std::string extents = "2";
    for (const Index extent : entry.sample) {
      batch.push_back(extent);
      extents += "x" + std::to_string(extent);
    }
    const Tensor<float> x = wave(batch, 1.3, 0, 2);
    const std::string name = std::to_string(number++);
    onnx::export_model(folder / (name + ".onnx"), layer, entry.sample);
    write(folder / (name + ".x"), x);
    write(folder / (name + ".y"), nn::infer(layer, x));
    index += name + " " + extents + " " + std::string(layer.kind()) + "\n";
  }
  replace_file(folder / "index.txt", {index});
}

}  // namespace
}  // namespace fenestra

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: export_layers FOLDER\n";
    return 2;
  }
  fenestra::write_layers(argv[1]);
  return 0;
}
