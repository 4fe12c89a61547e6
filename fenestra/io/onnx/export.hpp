// Networks made of this library's layers, written as ONNX (opset 17): what other runtimes read.
//
//   onnx::export_model("net.onnx", net, Shape{1, 28, 28}, {.classes = {"cat", "dog"}});
//
// Initialisers have the dotted names of the slots. Classes and preparation go into the metadata, as
// in our own model files. Dropout is written as such, batch norm is never folded.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/base/file.hpp>
#include <fenestra/io/onnx/model.hpp>
#include <fenestra/nn/model_file.hpp>
#include <fenestra/nn/summary.hpp>

#include <filesystem>
#include <string>

namespace fenestra::onnx {

namespace detail {

/// The model as its description and numbers say, for samples of the summary's input.
FENESTRA_API std::string exported(const nn::Description& description,
                                  const io::TensorMap& tensors,
                                  const nn::Summary& summary,
                                  const io::Metadata& metadata);

}  // namespace detail

/// The bytes of the file. `sample` is (channels, spatial...); the batch stays open. Throws
/// `unsupported` for a layer that ONNX has nothing for, `unknown_model` for a class of the program.
template <class Model>
std::string exported(const Model& model, const Shape& sample, const nn::ModelInfo& info = {}) {
  Shape batch{1};
  for (const Index extent : sample) {
    batch.push_back(extent);
  }
  return detail::exported(model.describe(),
                          nn::model_tensors(model),
                          nn::summary(model, batch),
                          nn::detail::metadata_of(std::nullopt, info));
}
/// The same into a file, whole or not at all.
template <class Model>
void export_model(const std::filesystem::path& path,
                  const Model& model,
                  const Shape& sample,
                  const nn::ModelInfo& info = {}) {
  replace_file(path, {exported(model, sample, info)});
}

}  // namespace fenestra::onnx
