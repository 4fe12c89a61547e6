// Models with other numbers.
#include <fenestra/base/file.hpp>
#include <fenestra/io/onnx/rewrite.hpp>
#include <fenestra/io/onnx/write.hpp>

#include <system_error>
#include <utility>

namespace fenestra::onnx {

namespace {

Edit edit_of(const Changes& changes) {
  Edit edit;
  for (const auto& [name, tensor] : changes.tensors) {
    edit.tensors.emplace(name, &tensor);
  }
  edit.metadata = changes.metadata;
  return edit;
}

std::filesystem::path folder_of(const std::filesystem::path& file) {
  std::error_code ignored;
  return std::filesystem::weakly_canonical(
      file.has_parent_path() ? file.parent_path() : std::filesystem::path("."), ignored);
}

}  // namespace

std::string patched(const Model& model, const Changes& changes) {
  return rewritten(model, edit_of(changes));
}

void save_model(const std::filesystem::path& path, const Model& model, const Changes& changes) {
  Edit edit = edit_of(changes);
  edit.inline_external = folder_of(path) != folder_of(model.file_name());
  replace_file(path, {rewritten(model, edit)});
}

}  // namespace fenestra::onnx
