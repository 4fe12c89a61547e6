// ONNX: models of other tools in, run, differentiated, trained and written back.
//
//   onnx::Network<float> net = onnx::load<float>("net.onnx");
//   Tensor<float> y = net(x);                                  // tapes, jvp, vmap, compile: as any
//   net.find_weight("fc.weight")->value() = w;                 // function of values
//   onnx::save("tuned.onnx", net);                             // the file, with these numbers
//   onnx::export_model("own.onnx", layers, Shape{1, 28, 28});  // a network of our own layers
#pragma once

#include <fenestra/io/onnx/export.hpp>
#include <fenestra/io/onnx/model.hpp>
#include <fenestra/io/onnx/network.hpp>
#include <fenestra/io/onnx/write.hpp>

#include <filesystem>
#include <string>

namespace fenestra::onnx {

/// A model that runs. Throws `bad_file`, or `unknown_operator` with all that keeps it from running.
template <class T>
Network<T> load(const std::filesystem::path& path, const NetworkOptions& options = {}) {
  return Network<T>(read_model(path), options);
}

/// The weights of a network by the names of the file.
template <class T>
io::TensorMap weights_of(const Network<T>& network) {
  io::TensorMap tensors;
  for (const Weight<T>& weight : network.weights()) {
    tensors.emplace(weight.name, weight.value().tensor());
  }
  return tensors;
}

/// The file that the network was read from, with its weights as they are now; those that did not
/// change stay to the byte.
template <class T>
void save(const std::filesystem::path& path,
          const Network<T>& network,
          const io::Metadata& metadata = {}) {
  save_model(path, network.model(), {.tensors = weights_of(network), .metadata = metadata});
}

}  // namespace fenestra::onnx
