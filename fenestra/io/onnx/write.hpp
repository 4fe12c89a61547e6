// Models out: the file that was read, with some of its numbers changed and everything else as it
// was, byte for byte. Names, order, metadata, versions and fields that nobody here knows survive.
//
//   onnx::save_model("tuned.onnx", model, {.tensors = {{"fc.weight", w}}});
//
// Networks made of layers are written by export.hpp.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/io/onnx/model.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra::onnx {

struct Changes {
  /// By the name of an initialiser, or of the value that a Constant makes. The element type stays
  /// the file's; the shape may be another. Equal numbers change nothing.
  io::TensorMap tensors = {};
  /// Added, or instead of those of the same key.
  io::Metadata metadata = {};
};

/// The bytes of the changed model. Numbers in other files become part of it. Throws `bad_file` for
/// a name that the model does not have.
FENESTRA_API std::string patched(const Model& model, const Changes& changes);
/// The same into a file, whole or not at all. In the folder of the model, numbers in other files
/// stay there.
FENESTRA_API void save_model(const std::filesystem::path& path,
                             const Model& model,
                             const Changes& changes = {});

// --- Other heads -------------------------------------------------------------------------------

/// The last layer with weights on the way to the first output: what knows the classes.
struct Head {
  std::string node;    ///< as problems name it
  std::string weight;  ///< of an initialiser
  std::string bias;    ///< empty where there is none
  std::string logits;  ///< the value that it makes, with the bias
  int class_axis = 0;  ///< of the weight
  Index classes = 0;
};
/// Throws `unsupported` where the model ends with something else, and says with what.
FENESTRA_API Head find_head(const Model& model);

/// The value that the first output is made of by a closing Softmax, which losses bring themselves;
/// the output itself where there is none.
FENESTRA_API std::string scores_value(const Model& model);

/// The same model with a last layer for another number of classes. The new weights are drawn from
/// `seed`, the new biases are 0.
FENESTRA_API Model with_classes(const Model& model, Index classes, std::uint64_t seed = 0);
/// The model up to `value`, whose shape for one sample is given (batch first), and a new head after
/// it: the mean over space, where there is any, and a linear layer, "head.weight" and "head.bias".
/// Throws `unknown_choice` where no node makes the value.
FENESTRA_API Model with_head_at(const Model& model,
                                std::string_view value,
                                const Shape& shape,
                                Index classes,
                                std::uint64_t seed = 0);

}  // namespace fenestra::onnx
