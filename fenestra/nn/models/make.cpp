// The list of ready models.
#include <fenestra/nn/models/convnext.hpp>
#include <fenestra/nn/models/lenet.hpp>
#include <fenestra/nn/models/make.hpp>
#include <fenestra/nn/models/mobilenet.hpp>
#include <fenestra/nn/models/resnet.hpp>
#include <fenestra/nn/models/small.hpp>
#include <fenestra/nn/models/unet.hpp>

#include <cmath>

namespace fenestra::nn {

const std::vector<ModelEntry>& model_entries() {
  static const std::vector<ModelEntry> kAll{
      {"autoencoder", "small pictures through 32 numbers and back", {1, 28, 28}, "picture"},
      {"convnext_tiny", "ConvNeXt-tiny", {3, 224, 224}, "classes"},
      {"dilated_1d", "dilated residual network for series", {1, 256}, "classes"},
      {"lenet", "LeNet-5 with rectifiers", {1, 28, 28}, "classes"},
      {"mobilenet_v2", "MobileNetV2", {3, 224, 224}, "classes"},
      {"mobilenet_v3_small", "MobileNetV3-small", {3, 224, 224}, "classes"},
      {"resnet18", "ResNet-18", {3, 224, 224}, "classes"},
      {"small_resnet", "ResNet-20 for pictures of 28x28 or 32x32", {3, 32, 32}, "classes"},
      {"unet", "U-Net of four levels", {1, 64, 64}, "mask"},
      {"volume_net", "three stages for volumes", {1, 16, 16, 16}, "classes"},
  };
  return kAll;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const ModelEntry& entry : model_entries()) {
    names.push_back(entry.name);
  }
  return names;
}

const ModelEntry& model_entry(std::string_view name) {
  std::string all;
  for (const ModelEntry& entry : model_entries()) {
    if (entry.name == name) {
      return entry;
    }
    all += (all.empty() ? "" : ", ") + entry.name;
  }
  throw Error(ErrorCode::unknown_model,
              "model \"" + std::string(name) + "\" does not exist\n  fix: one of " + all);
}

template <class T>
Layer<T> make_model(std::string_view name, const ModelOptions& options) {
  const std::string& known = model_entry(name).name;
  if (!(options.width > 0 && options.width <= 64) || options.classes < 0 || options.channels < 0) {
    throw Error(ErrorCode::invalid_option,
                "model \"" + known + "\": width = " + std::to_string(options.width) +
                    ", classes = " + std::to_string(options.classes) +
                    ", channels = " + std::to_string(options.channels) +
                    "\n  fix: 0 < width <= 64, and the others 0 (as published) or more");
  }
  if (known == "autoencoder") {
    return autoencoder<T>(options);
  }
  if (known == "convnext_tiny") {
    return convnext_tiny<T>(options);
  }
  if (known == "dilated_1d") {
    return dilated_1d<T>(options);
  }
  if (known == "lenet") {
    return lenet<T>(options);
  }
  if (known == "mobilenet_v2") {
    return mobilenet_v2<T>(options);
  }
  if (known == "mobilenet_v3_small") {
    return mobilenet_v3_small<T>(options);
  }
  if (known == "resnet18") {
    return resnet18<T>(options);
  }
  if (known == "small_resnet") {
    return small_resnet<T>(options);
  }
  if (known == "unet") {
    return unet<T>(options);
  }
  return volume_net<T>(options);
}
template Layer<float> make_model(std::string_view name, const ModelOptions& options);
template Layer<double> make_model(std::string_view name, const ModelOptions& options);

}  // namespace fenestra::nn
