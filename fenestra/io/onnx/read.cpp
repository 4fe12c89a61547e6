// Messages of a model, read into structs.
//
// A message that is no element of a list may come in pieces, which are merged: every function here
// adds to what it is given. Fields without a meaning here are passed over; a model is written by
// patching the file's bytes (patch.cpp), so they are not lost.
#include <fenestra/base/file.hpp>
#include <fenestra/io/onnx/fields.hpp>
#include <fenestra/io/onnx/tensor_parts.hpp>
#include <fenestra/io/source.hpp>
#include <fenestra/io/stranger.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

namespace fenestra::onnx {

namespace {

class ModelReader {
 public:
  ModelReader(std::shared_ptr<const WireFile> file, std::optional<std::filesystem::path> folder)
      : file_(std::move(file)), externals_(std::move(folder)) {}

  Model model() {
    using F = fields::Model;
    Model model;
    model.file = file_;
    bool has_graph = false;
    WireReader message(*file_);
    for (Field field; message.next(field);) {
      switch (field.number) {
        case F::ir_version: model.ir_version = message.signed_number(field); break;
        case F::producer: model.producer = message.text(field); break;
        case F::producer_version: model.producer_version = message.text(field); break;
        case F::graph:
          has_graph = true;
          graph(message.nested(field), model.graph);
          break;
        case F::opset: opset(message.nested(field), model.opsets); break;
        case F::metadata: entry(message.nested(field), model.metadata); break;
        case F::function: model.functions.push_back(function(message.nested(field))); break;
        default: break;
      }
    }
    if (!has_graph) {
      throw Error(ErrorCode::bad_file,
                  file_->name +
                      ": has no graph: it is protobuf, but no ONNX model\n  fix: a "
                      "model, not a tensor (.pb) or another message");
    }
    return model;
  }

 private:
  /// Of a domain that has two names.
  static std::string domain(std::string name) { return name == "ai.onnx" ? std::string() : name; }

  void opset(WireReader message, Opsets& opsets) const {
    std::string name;
    Index version = 0;
    for (Field field; message.next(field);) {
      if (field.number == fields::Opset::domain) {
        name = domain(message.text(field));
      } else if (field.number == fields::Opset::version) {
        version = message.signed_number(field);
      }
    }
    opsets[name] = version;
  }

  static void entry(WireReader message, io::Metadata& metadata) {
    std::string key;
    std::string value;
    for (Field field; message.next(field);) {
      if (field.number == fields::Entry::key) {
        key = message.text(field);
      } else if (field.number == fields::Entry::value) {
        value = message.text(field);
      }
    }
    metadata[key] = value;
  }

  void graph(WireReader message, Graph& graph) {
    using F = fields::Graph;
    for (Field field; message.next(field);) {
      switch (field.number) {
        case F::node: graph.nodes.push_back(node(message.nested(field))); break;
        case F::name: graph.name = message.text(field); break;
        case F::initializer: graph.initializers.push_back(tensor(message.nested(field))); break;
        case F::input: graph.inputs.push_back(value_info(message.nested(field))); break;
        case F::output: graph.outputs.push_back(value_info(message.nested(field))); break;
        case F::value_info: graph.value_infos.push_back(value_info(message.nested(field))); break;
        case F::sparse_initializer:
          graph.sparse_initializers.push_back(sparse_name(message.nested(field)));
          break;
        default: break;
      }
    }
  }

  std::string sparse_name(WireReader message) const {
    std::string name;
    for (Field field; message.next(field);) {
      if (field.number == fields::SparseTensor::values) {
        WireReader values = message.nested(field);
        for (Field part; values.next(part);) {
          if (part.number == fields::Tensor::name) {
            name = values.text(part);
          }
        }
      }
    }
    return name;
  }

  TensorData tensor(WireReader message) {
    TensorParts parts;
    parts.read(message);
    return parts.finish(file_, externals_);
  }

  Node node(WireReader message) {
    using F = fields::Node;
    Node node;
    for (Field field; message.next(field);) {
      switch (field.number) {
        case F::input: node.inputs.push_back(message.text(field)); break;
        case F::output: node.outputs.push_back(message.text(field)); break;
        case F::name: node.name = message.text(field); break;
        case F::op_type: node.op_type = message.text(field); break;
        case F::attribute: node.attributes.push_back(attribute(message.nested(field))); break;
        case F::domain: node.domain = domain(message.text(field)); break;
        default: break;
      }
    }
    return node;
  }

  Attribute attribute(WireReader message) {
    using F = fields::Attribute;
    Attribute result;
    AttributeType seen = AttributeType::undefined;  // models of IR 1 do not say the type
    std::optional<TensorParts> tensor_parts;
    std::shared_ptr<Graph> own_graph;
    for (Field field; message.next(field);) {
      switch (field.number) {
        case F::name: result.name = message.text(field); break;
        case F::f:
          result.f = message.real(field);
          seen = AttributeType::real;
          break;
        case F::i:
          result.i = message.signed_number(field);
          seen = AttributeType::integer;
          break;
        case F::s:
          result.s = text_of(message.bytes(field));
          seen = AttributeType::string;
          break;
        case F::t:
          if (!tensor_parts) {
            tensor_parts.emplace();
          }
          tensor_parts->read(message.nested(field));
          seen = AttributeType::tensor;
          break;
        case F::g:
          if (!own_graph) {
            own_graph = std::make_shared<Graph>();
          }
          graph(message.nested(field), *own_graph);
          seen = AttributeType::graph;
          break;
        case F::floats:
          reals(message, field, result.floats);
          seen = AttributeType::reals;
          break;
        case F::ints:
          for_each_varint(message, field, [&](std::uint64_t value) {
            result.ints.push_back(static_cast<Index>(value));
          });
          seen = AttributeType::integers;
          break;
        case F::strings:
          result.strings.emplace_back(text_of(message.bytes(field)));
          seen = AttributeType::strings;
          break;
        case F::tensors:
          result.tensors.push_back(tensor(message.nested(field)));
          seen = AttributeType::tensors;
          break;
        case F::graphs: seen = AttributeType::graphs; break;
        case F::type: result.type = static_cast<AttributeType>(message.number(field)); break;
        case F::reference: result.reference = message.text(field); break;
        default: break;
      }
    }
    if (tensor_parts) {
      result.t = std::make_shared<const TensorData>(tensor_parts->finish(file_, externals_));
    }
    result.g = std::move(own_graph);
    if (result.type == AttributeType::undefined) {
      result.type = seen;
    }
    const bool has_value = (result.type != AttributeType::tensor || result.t != nullptr) &&
                           (result.type != AttributeType::graph || result.g != nullptr);
    if (!has_value && result.reference.empty()) {
      throw Error(ErrorCode::bad_file,
                  file_->name + ": attribute " + io::shown(result.name) +
                      " says that it is a tensor or a graph and has none\n  fix: a model that the "
                      "onnx checker accepts");
    }
    return result;
  }

  static void reals(const WireReader& message, const Field& field, std::vector<float>& out) {
    if (field.type != WireType::bytes) {
      out.push_back(message.real(field));
      return;
    }
    if (field.bytes.size() % sizeof(float) != 0) {
      message.refuse_here(
          field.whole.data(), "numbers of 4 bytes", std::to_string(field.bytes.size()) + " bytes");
    }
    const std::size_t before = out.size();
    out.resize(before + field.bytes.size() / sizeof(float));
    if (!field.bytes.empty()) {
      std::memcpy(out.data() + before, field.bytes.data(), field.bytes.size());
    }
  }

  ValueInfo value_info(WireReader message) const {
    ValueInfo info;
    for (Field field; message.next(field);) {
      if (field.number == fields::ValueInfo::name) {
        info.name = message.text(field);
      } else if (field.number == fields::ValueInfo::type) {
        type(message.nested(field), info);
      }
    }
    return info;
  }

  void type(WireReader message, ValueInfo& info) const {
    using F = fields::Type;
    for (Field field; message.next(field);) {
      switch (field.number) {
        case F::tensor: tensor_type(message.nested(field), info); break;
        case F::sequence:
        case F::map:
        case F::sparse:
        case F::optional: info.is_tensor = false; break;
        default: break;
      }
    }
  }

  void tensor_type(WireReader message, ValueInfo& info) const {
    for (Field field; message.next(field);) {
      if (field.number == fields::TensorType::element) {
        info.type = static_cast<ElementType>(message.number(field));
      } else if (field.number == fields::TensorType::shape) {
        if (!info.dims) {
          info.dims.emplace();
        }
        WireReader shape = message.nested(field);
        for (Field dim; shape.next(dim);) {
          if (dim.number == fields::Dims::dim) {
            info.dims->push_back(dimension(shape.nested(dim)));
          }
        }
      }
    }
  }

  static Dimension dimension(WireReader message) {
    Dimension dimension;
    for (Field field; message.next(field);) {
      if (field.number == fields::Dim::extent) {
        const Index extent = message.signed_number(field);
        // Some writers say -1, and 0 for a batch, where they mean that they do not know.
        dimension = extent > 0 ? Dimension{extent, {}} : Dimension{};
      } else if (field.number == fields::Dim::label) {
        dimension = {std::nullopt, message.text(field)};
      }
    }
    return dimension;
  }

  Function function(WireReader message) {
    using F = fields::Function;
    Function function;
    for (Field field; message.next(field);) {
      switch (field.number) {
        case F::name: function.name = message.text(field); break;
        case F::input: function.inputs.push_back(message.text(field)); break;
        case F::output: function.outputs.push_back(message.text(field)); break;
        case F::attribute: function.attributes.push_back(message.text(field)); break;
        case F::node: function.nodes.push_back(node(message.nested(field))); break;
        case F::opset: opset(message.nested(field), function.opsets); break;
        case F::domain: function.domain = domain(message.text(field)); break;
        case F::default_attribute:
          function.default_attributes.push_back(attribute(message.nested(field)));
          break;
        default: break;
      }
    }
    return function;
  }

  std::shared_ptr<const WireFile> file_;
  ExternalFiles externals_;
};

Model read_bytes(std::shared_ptr<const WireFile> file,
                 std::optional<std::filesystem::path> folder,
                 const ReadOptions& options) {
  const std::string name = file->name;
  const std::string_view start = text_of(file->bytes).substr(0, 512);
  Model model;
  try {
    model = ModelReader(file, std::move(folder)).model();
  } catch (const Error&) {
    io::refuse_stranger(name, start, "ONNX model");
    if (io::is_text(start)) {
      throw Error(
          ErrorCode::bad_file,
          name + ": is text, not protobuf\n  fix: the model itself, not a message about it");
    }
    throw;
  }
  if (model.opset() > options.newest_opset) {
    throw Error(ErrorCode::bad_file,
                name + ": opset too new: it is made of operators of version " +
                    std::to_string(model.opset()) + ", known are those up to " +
                    std::to_string(options.newest_opset) +
                    "\n  fix: export it for opset 17 or convert it; ReadOptions::newest_opset "
                    "reads it as it is");
  }
  return model;
}

std::shared_ptr<std::byte[]> allocate(const std::string& name, std::uint64_t size) {
  try {
    return std::shared_ptr<std::byte[]>(new std::byte[size]);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::memory_limit,
                name + ": its " + std::to_string(size) +
                    " bytes do not fit into memory\n  fix: a machine with more, or weights in "
                    "external data");
  }
}

}  // namespace

Model read_model(const std::filesystem::path& path, const ReadOptions& options) {
  const InputFile input(path);
  const std::shared_ptr<std::byte[]> bytes = allocate(path.string(), input.size());
  input.read(0, {reinterpret_cast<char*>(bytes.get()), input.size()});
  auto file = std::make_shared<const WireFile>(
      WireFile{path.string(), Bytes(bytes.get(), input.size()), bytes});
  return read_bytes(std::move(file), path.parent_path(), options);
}

Model read_model(std::span<const std::byte> bytes, std::string name, const ReadOptions& options) {
  const std::shared_ptr<std::byte[]> copy = allocate(name, bytes.size());
  std::copy(bytes.begin(), bytes.end(), copy.get());
  auto file =
      std::make_shared<const WireFile>(WireFile{std::move(name), {copy.get(), bytes.size()}, copy});
  return read_bytes(std::move(file), std::nullopt, options);
}

const std::string& Model::file_name() const { return file->name; }

}  // namespace fenestra::onnx
