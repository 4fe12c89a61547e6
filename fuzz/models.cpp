// Fuzzes the reader of model files: a file is refused with an error, or gives a model that
// describes itself as the file does and holds the file's numbers.
#include <fenestra/base/error.hpp>
#include <fenestra/nn/model_file.hpp>

#include <fuzz/bytes.hpp>

#include <span>
#include <string>

namespace fenestra::fuzz {
namespace {

void read_model(std::span<const std::byte> bytes) {
  const std::string file = "input";
  const io::SafetensorsReader reader(bytes, file);
  nn::detail::read_info(reader, file);
  const nn::Description architecture = nn::detail::read_architecture(reader, file);
  nn::Layer<float> model = nn::build_layer<float>(architecture);
  const std::string text = model.describe().text();
  if (nn::build_layer<float>(nn::Description::parse(text)).describe().text() != text) {
    complain("a model does not describe itself: " + text);
  }
  nn::detail::fill_from<float>(reader, model, file);
  for (const nn::Slot<float>& slot : nn::slots<float>(model)) {
    if (slot.value->shape() != reader.find(slot.name)->shape) {
      complain(slot.name + " has another shape than its entry");
    }
  }
}

}  // namespace
}  // namespace fenestra::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    fenestra::fuzz::read_model(std::as_bytes(std::span(data, size)));
  } catch (const fenestra::Error&) {
    return 0;
  }
  return 0;
}
