// The metadata of model files, and the check of their tensors.
#include <fenestra/base/version.hpp>
#include <fenestra/nn/checksum.hpp>
#include <fenestra/nn/model_file.hpp>
#include <fenestra/nn/model_info.hpp>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

namespace fenestra::nn {

namespace {

constexpr std::string_view kFormatKey = "fenestra.format";
constexpr std::string_view kVersionKey = "fenestra.version";
constexpr std::string_view kArchitectureKey = "fenestra.architecture";
constexpr std::string_view kNameKey = "fenestra.name";
constexpr std::string_view kClassesKey = "fenestra.classes";
constexpr std::string_view kPreprocessingKey = "fenestra.preprocessing";
constexpr std::string_view kChecksumKey = "fenestra.checksum";
constexpr std::string_view kFormat = "1";

[[noreturn]] void refuse(const std::string& file, const std::string& got, const std::string& fix) {
  throw Error(ErrorCode::bad_file, file + ": " + got + "\n  fix: " + fix);
}

/// A field of a description as a list; empty where it is not there.
Description::List list_at(const Description& from,
                          std::string_view name,
                          const std::string& file,
                          std::string_view key) {
  const Description* field = from.find(name);
  if (field == nullptr) {
    return {};
  }
  if (field->list() == nullptr) {
    refuse(
        file, "\"" + std::string(name) + "\" of " + std::string(key) + " is not a list", "a list");
  }
  return *field->list();
}

std::string count_text(double count) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, count).ptr);
}

/// A number of a description, 1 where there is none.
double factor(const Description& layer, std::string_view name) {
  const Description* field = layer.find(name);
  return field != nullptr && field->number() != nullptr ? *field->number() : 1;
}

double product(const Description::List& list) {
  double all = 1;
  for (const Description& item : list) {
    all *= item.number() != nullptr ? *item.number() : 1;
  }
  return all;
}

/// Numbers that the layer needs memory for, and all that it is made of; at least nearly so. In
/// floating point, which has no overflow.
double numbers_of(const Description& layer) {
  double count = 0;
  const Description* shape = layer.find("shape");
  if (layer.find("out") != nullptr) {
    count = factor(layer, "in") * factor(layer, "out") / std::max(1.0, factor(layer, "groups"));
    const Description* kernel = layer.find("kernel");
    if (kernel != nullptr && kernel->list() != nullptr) {
      count *= product(*kernel->list());
    } else {
      count *= factor(layer, "kernel") * factor(layer, "kernel");  // of two axes
    }
  } else if (layer.find("channels") != nullptr) {
    count = factor(layer, "channels") * factor(layer, "squeezed");
  } else if (shape != nullptr && shape->list() != nullptr) {
    count = product(*shape->list());
  }
  for (const auto& [name, field] : *layer.fields()) {
    if (field.fields() != nullptr) {
      count += numbers_of(field);
    }
    for (const Description& part : field.list() != nullptr ? *field.list() : Description::List{}) {
      count += part.fields() != nullptr ? numbers_of(part) : 0;
    }
  }
  return count;
}

/// Before anything is built: a few bytes of text can ask for more memory than there is. What has no
/// tensors in a file (a norm without scale and shift) is counted too, hence the margin.
void require_numbers(const Description& architecture,
                     const io::SafetensorsReader& reader,
                     const std::string& file) {
  constexpr double kMargin = 1 << 20;
  double stored = 0;
  for (const io::SafetensorsEntry& entry : reader.entries()) {
    stored += static_cast<double>(entry.shape.elements().value_or(0));
  }
  const double needed = architecture.fields() != nullptr ? numbers_of(architecture) : 0;
  // Written so that what is no number is refused.
  if (!(needed <= 2 * stored + kMargin)) {
    refuse(file,
           std::string(kArchitectureKey) + " has layers with " + count_text(needed) +
               " numbers, the tensors have " + count_text(stored),
           "the file as it was saved");
  }
}

/// Files of other programs have no checksum, and are taken as they are.
void require_undamaged(const io::SafetensorsReader& reader, const std::string& file) {
  const auto expected = reader.metadata().find(kChecksumKey);
  if (expected == reader.metadata().end()) {
    return;
  }
  const std::string found =
      detail::checksum_of(io::load_safetensors(file).tensors, reader.metadata(), kChecksumKey);
  if (found != expected->second) {
    refuse(file,
           "the checksum is " + found + ", expected " + expected->second.substr(0, 40) +
               ": numbers or texts in the file are not those that were saved",
           "the file as it was saved; where it was changed on purpose, without " +
               std::string(kChecksumKey) + " in its metadata");
  }
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += "\n    " + name;
  }
  return text;
}

}  // namespace

namespace detail {

io::Metadata metadata_of(const std::optional<Description>& architecture, const ModelInfo& info) {
  io::Metadata metadata = info.more;
  metadata[std::string(kFormatKey)] = kFormat;
  metadata[std::string(kVersionKey)] = version;
  if (architecture) {
    metadata[std::string(kArchitectureKey)] = architecture->text();
  }
  if (!info.name.empty()) {
    metadata[std::string(kNameKey)] = info.name;
  }
  if (!info.classes.empty()) {
    Description::List classes(info.classes.begin(), info.classes.end());
    metadata[std::string(kClassesKey)] = Description(std::move(classes)).text();
  }
  if (info.preprocessing != Preprocessing{}) {
    metadata[std::string(kPreprocessingKey)] = to_json(info.preprocessing);
  }
  return metadata;
}

void write_model(const std::filesystem::path& path,
                 const io::TensorMap& tensors,
                 const std::optional<Description>& architecture,
                 const ModelInfo& info) {
  io::Metadata metadata = metadata_of(architecture, info);
  metadata[std::string(kChecksumKey)] = checksum_of(tensors, metadata, kChecksumKey);
  io::save_safetensors(path, tensors, metadata);
}

ModelInfo read_info(const io::SafetensorsReader& reader, const std::string& file) {
  return info_from(reader.metadata(), file);
}

ModelInfo info_from(const io::Metadata& metadata, const std::string& file) {
  ModelInfo info;
  for (const auto& [key, value] : metadata) {
    if (key == kFormatKey) {
      if (value != kFormat) {
        refuse(file,
               std::string(kFormatKey) + " is \"" + value.substr(0, 40) +
                   "\", this library reads \"" + std::string(kFormat) + "\"",
               "a newer library");
      }
    } else if (key == kNameKey) {
      info.name = value;
    } else if (key == kClassesKey) {
      const Description classes = Description::parse(value);
      for (const Description& item :
           list_at(Description::Fields{{"classes", classes}}, "classes", file, kClassesKey)) {
        if (item.word() == nullptr) {
          refuse(file, std::string(kClassesKey) + " has " + item.text().substr(0, 40), "words");
        }
        info.classes.push_back(*item.word());
      }
    } else if (key == kPreprocessingKey) {
      info.preprocessing = preprocessing_from_json(value, file);
    } else if (key != kArchitectureKey && key != kVersionKey && key != kChecksumKey) {
      info.more.emplace(key, value);
    }
  }
  return info;
}

Description read_architecture(const io::SafetensorsReader& reader, const std::string& file) {
  const auto found = reader.metadata().find(kArchitectureKey);
  if (found == reader.metadata().end()) {
    refuse(
        file,
        "has weights, but does not say of which layers (no " + std::string(kArchitectureKey) + ")",
        "load_weights into a model of the program, or save a model of the library's layers");
  }
  Description architecture = Description::parse(found->second);
  require_numbers(architecture, reader, file);
  return architecture;
}

void require_tensors(const io::SafetensorsReader& reader,
                     const std::vector<WantedTensor>& wanted,
                     const std::string& file) {
  std::vector<std::string> missing;
  std::vector<std::string> other_shapes;
  std::map<std::string, bool, std::less<>> known;
  for (const WantedTensor& tensor : wanted) {
    known.emplace(tensor.name, true);
    const io::SafetensorsEntry* entry = reader.find(tensor.name);
    if (entry == nullptr) {
      missing.push_back(tensor.name + " " + to_string(tensor.shape));
    } else if (entry->shape != tensor.shape) {
      other_shapes.push_back(tensor.name + ": " + to_string(entry->shape) + ", the model has " +
                             to_string(tensor.shape));
    }
  }
  std::vector<std::string> unexpected;
  for (const io::SafetensorsEntry& entry : reader.entries()) {
    if (known.find(entry.name) == known.end() && !entry.name.starts_with(kOptimiserPrefix) &&
        !entry.name.starts_with(kAveragePrefix)) {
      unexpected.push_back(entry.name + " " + to_string(entry.shape));
    }
  }
  if (missing.empty() && other_shapes.empty() && unexpected.empty()) {
    require_undamaged(reader, file);
    return;
  }
  std::string text = file + ": its tensors are not those of the model";
  const auto add = [&](const char* title, const std::vector<std::string>& names) {
    if (!names.empty()) {
      text +=
          "\n  " + std::string(title) + " (" + std::to_string(names.size()) + "):" + listed(names);
    }
  };
  add("missing in the file", missing);
  add("in the file, not in the model", unexpected);
  add("of another shape in the file", other_shapes);
  throw Error(ErrorCode::shape_mismatch,
              text + "\n  fix: the file of this model, or the model of this file (load_model)");
}

}  // namespace detail

ModelInfo load_info(const std::filesystem::path& path) {
  return detail::read_info(io::SafetensorsReader(path), path.string());
}

}  // namespace fenestra::nn
