// ONNX files as networks of the command line: loaded, checked, converted.
#include <fenestra/base/nearest.hpp>
#include <fenestra/cli/network.hpp>
#include <fenestra/cli/onnx.hpp>
#include <fenestra/cli/text.hpp>
#include <fenestra/io/npz.hpp>
#include <fenestra/io/onnx.hpp>
#include <fenestra/io/safetensors.hpp>
#include <fenestra/nn/model_file.hpp>
#include <fenestra/nn/model_info.hpp>

#include <algorithm>
#include <charconv>
#include <iostream>
#include <map>
#include <sstream>
#include <utility>

namespace fenestra::cli {

namespace {

/// "1x28x28" where the model says all extents of its only input but the first.
std::optional<std::string> declared_input(const std::vector<onnx::ValueInfo>& inputs) {
  if (inputs.size() != 1 || !inputs[0].dims || inputs[0].dims->size() < 2) {
    return std::nullopt;
  }
  Shape shape;
  for (std::size_t axis = 1; axis < inputs[0].dims->size(); ++axis) {
    const onnx::Dimension& dim = (*inputs[0].dims)[axis];
    if (!dim.extent) {
      return std::nullopt;
    }
    shape.push_back(*dim.extent);
  }
  return extents(shape);
}

std::vector<double> parse_numbers(const std::string& text, std::string_view what) {
  std::vector<double> numbers;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    double number = 0;
    const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (failed != std::errc() || end != word.data() + word.size()) {
      throw UsageError(std::string(what) + ": \"" + text +
                       "\" is not a list of numbers, such as 0.485,0.456,0.406");
    }
    numbers.push_back(number);
  }
  return numbers;
}

/// "x=1x3x224x224 y=1x4" by name.
std::map<std::string, Shape> parse_shapes(const std::string& text) {
  std::map<std::string, Shape> shapes;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t equals = word.rfind('=');
    if (equals == std::string::npos || equals == 0) {
      throw UsageError("\"" + word + "\" is no shape of an input, such as x=1x3x224x224");
    }
    shapes.emplace(word.substr(0, equals), parse_extents(word.substr(equals + 1), word));
  }
  return shapes;
}

/// Shapes must be those of inputs.
void require_inputs(const onnx::Model& model, const std::map<std::string, Shape>& shapes) {
  std::vector<std::string> names;
  for (const onnx::ValueInfo& input : model.graph.inputs) {
    if (model.graph.find_initializer(input.name) == nullptr) {
      names.push_back(input.name);
    }
  }
  for (const auto& [name, shape] : shapes) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      throw UsageError(name + "=" + extents(shape) + ": " + unknown_name("input", name, names));
    }
  }
}

}  // namespace

bool is_onnx(std::string_view file) { return file.ends_with(".onnx"); }

template <class T>
nn::LoadedModel<T> load_onnx(const std::string& file) {
  onnx::Model model = onnx::read_model(std::filesystem::path(file));
  nn::ModelInfo info = nn::detail::info_from(model.metadata, file);
  const std::string scores = onnx::scores_value(model);
  const onnx::Network<T> network(std::move(model), {.outputs = {scores}});
  if (!info.more.contains(kInputKey)) {
    if (const std::optional<std::string> input = declared_input(network.inputs())) {
      info.more.emplace(kInputKey, *input);
    }
  }
  return {nn::Layer<T>(network), std::move(info)};
}

template nn::LoadedModel<float> load_onnx(const std::string&);
template nn::LoadedModel<double> load_onnx(const std::string&);

void apply(const PreparationOptions& options, nn::Preprocessing& preprocessing) {
  if (options.size) {
    preprocessing.size = parse_extents(*options.size, "--size");
  }
  if (options.mean) {
    preprocessing.mean = parse_numbers(*options.mean, "--mean");
  }
  if (options.scale) {
    preprocessing.scale = parse_numbers(*options.scale, "--scale");
  }
}

ExitCode check_onnx(const CheckOptions& options) {
  const std::map<std::string, Shape> shapes = parse_shapes(options.problem.value_or(""));
  onnx::Model model = onnx::read_model(std::filesystem::path(options.op));
  const std::size_t nodes = model.graph.nodes.size();
  const Index opset = model.opset();
  require_inputs(model, shapes);
  std::vector<onnx::Problem> found;
  std::vector<onnx::Problem> open;  // said when shapes are not
  for (onnx::Problem& problem : onnx::problems(model, shapes)) {
    // Shapes that nobody said, and numbers that come with the inputs, are no fault of the model.
    (problem.is_open ? open : found).push_back(std::move(problem));
  }
  std::vector<onnx::Problem> cut_off;
  if (onnx::problems(model).empty()) {
    cut_off = onnx::Network<float>(std::move(model)).cut_off();
  }
  if (options.json) {
    const auto list = [](const std::vector<onnx::Problem>& problems) {
      Json json = Json::array();
      for (const onnx::Problem& p : problems) {
        json.push_back(
            {{"node", p.node}, {"operator", p.op}, {"problem", p.text}, {"fix", p.help}});
      }
      return json;
    };
    print_json({{"model", options.op},
                {"opset", opset},
                {"nodes", nodes},
                {"problems", list(found)},
                {"open", list(open)},
                {"cut_off", list(cut_off)}});
    return found.empty() ? fine : law_broken;
  }
  std::cout << options.op << ": " << nodes << " nodes, opset " << opset << "\n";
  for (const onnx::Problem& problem : found) {
    std::cout << "  " << to_string(problem) << "\n";
  }
  for (const onnx::Problem& problem : open) {
    std::cout << "  not checked: " << to_string(problem) << "\n";
  }
  for (const onnx::Problem& problem : cut_off) {
    std::cout << "  cannot be trained: " << to_string(problem) << "\n";
  }
  std::cout << (found.empty() ? "it runs\n"
                              : std::to_string(found.size()) +
                                    (found.size() == 1 ? " problem\n" : " problems\n"));
  return found.empty() ? fine : law_broken;
}

// --- convert -----------------------------------------------------------------------------------

namespace {

/// All tensors of floating-point numbers that a graph and its branches name.
void add_tensors(const onnx::Graph& graph, io::TensorMap& tensors) {
  const auto add = [&](const std::string& name, const onnx::TensorData& tensor) {
    if (onnx::is_floating(tensor.type)) {
      tensors.emplace(name, tensor.read_nearest());
    }
  };
  for (const onnx::TensorData& tensor : graph.initializers) {
    add(tensor.name, tensor);
  }
  for (const onnx::Node& node : graph.nodes) {
    const onnx::Attribute* const value = node.op_type == "Constant" ? node.find("value") : nullptr;
    if (value != nullptr && value->t && !node.outputs.empty()) {
      add(node.outputs[0], *value->t);
    }
    for (const onnx::Attribute& attribute : node.attributes) {
      if (attribute.g) {
        add_tensors(*attribute.g, tensors);
      }
    }
  }
}

io::TensorMap tensors_of(const onnx::Model& model) {
  io::TensorMap tensors;
  add_tensors(model.graph, tensors);
  for (const auto& [name, origin] : onnx::copies_of(model.graph)) {
    tensors.emplace(name, origin->read_nearest());
  }
  return tensors;
}

std::string joined_names(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += "\n    " + name;
  }
  return text;
}

/// The numbers of a file of any of the formats, by name.
io::TensorMap tensors_in(const std::string& file) {
  return is_onnx(file)            ? tensors_of(onnx::read_model(std::filesystem::path(file)))
         : file.ends_with(".npz") ? io::load_npz(file)
                                  : io::load_safetensors(file).tensors;
}

/// All that does not fit is said at once.
void require_weights(const io::TensorMap& given,
                     const io::TensorMap& known,
                     const ConvertOptions& options) {
  std::vector<std::string> strange;
  for (const auto& [name, tensor] : given) {
    const auto found = known.find(name);
    if (found == known.end()) {
      strange.push_back(name + ": the model has none of this name");
      continue;
    }
    const auto shape = [](const io::AnyTensor& any) {
      return std::visit([](const auto& t) { return t.shape(); }, any);
    };
    if (shape(tensor) != shape(found->second)) {
      strange.push_back(name + ": " + to_string(shape(tensor)) + ", the model has " +
                        to_string(shape(found->second)));
    }
  }
  if (!strange.empty()) {
    throw Error(ErrorCode::shape_mismatch,
                options.from + ": " + std::to_string(strange.size()) + " of " +
                    std::to_string(given.size()) + " tensors do not fit " + *options.model + ":" +
                    joined_names(strange) + "\n  fix: the weights of this model");
  }
}

/// The model with the weights of a file; all must fit.
std::string replace_weights(const ConvertOptions& options) {
  io::TensorMap given = tensors_in(options.from);
  const std::size_t count = given.size();
  std::size_t of = 0;
  if (is_onnx(options.to)) {
    const onnx::Model model = onnx::read_model(std::filesystem::path(*options.model));
    const io::TensorMap known = tensors_of(model);
    require_weights(given, known, options);
    of = known.size();
    onnx::save_model(options.to, model, {.tensors = std::move(given)});
  } else {
    nn::LoadedModel<float> network = nn::load_model<float>(*options.model);
    const io::TensorMap known = nn::model_tensors(network.model);
    require_weights(given, known, options);
    of = known.size();
    for (const nn::Slot<float>& slot : nn::slots<float>(network.model)) {
      if (const auto found = given.find(slot.name); found != given.end()) {
        *slot.value = std::visit(
            [](const auto& tensor) {
              const auto values = tensor.values();
              return Tensor<float>(tensor.shape(),
                                   std::vector<float>(values.begin(), values.end()));
            },
            found->second);
      }
    }
    nn::save_model(options.to, network.model, network.info);
  }
  return std::to_string(count) + " of " + std::to_string(of) + " weights replaced";
}

}  // namespace

ExitCode convert_command(const ConvertOptions& options) {
  require_free(options.to, options.force);
  std::string done;
  const bool to_npz = options.to.ends_with(".npz");
  const bool to_safetensors = options.to.ends_with(".safetensors");
  const bool from_safetensors = !is_onnx(options.from) && !options.from.ends_with(".npz");
  if (options.model && !to_npz) {
    done = replace_weights(options);
  } else if (to_npz ? !options.from.ends_with(".npz") : to_safetensors && !from_safetensors) {
    const io::TensorMap tensors = tensors_in(options.from);
    if (to_npz) {
      io::save_npz(options.to, tensors);
    } else {
      io::save_safetensors(options.to,
                           tensors,
                           is_onnx(options.from)
                               ? onnx::read_model(std::filesystem::path(options.from)).metadata
                               : io::Metadata());
    }
    done = std::to_string(tensors.size()) + " weights";
  } else if (is_onnx(options.to) && from_safetensors) {
    const Network<float> network = load_network<float>(options.from, options.input);
    nn::ModelInfo info = network.info;
    info.more[std::string(kInputKey)] = extents(network.input);
    onnx::export_model(options.to, network.model, network.input, info);
    done = "a network of " + std::to_string(network.layers.rows.size()) + " layers";
  } else {
    throw UsageError("convert: from " + options.from + " to " + options.to +
                     ": two of .onnx, .safetensors and .npz, and from .npz to .onnx with --model");
  }
  if (options.json) {
    print_json({{"from", options.from}, {"to", options.to}, {"done", done}});
  } else {
    std::cout << options.to << ": " << done << "\n";
  }
  return fine;
}

}  // namespace fenestra::cli
