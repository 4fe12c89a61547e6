// Copies a model's bytes with changes.
#include <fenestra/io/onnx/encode.hpp>
#include <fenestra/io/onnx/fields.hpp>
#include <fenestra/io/onnx/rewrite.hpp>
#include <fenestra/io/onnx/wire.hpp>
#include <fenestra/io/source.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <type_traits>
#include <utility>

namespace fenestra::onnx {

namespace {

template <class T>
bool same_bits(const Tensor<T>& a, const Tensor<T>& b) {
  return a.shape() == b.shape() &&
         (a.values().empty() ||
          std::memcmp(a.values().data(), b.values().data(), a.values().size_bytes()) == 0);
}

bool same_bits(const io::AnyTensor& a, const io::AnyTensor& b) {
  return std::visit(
      []<class A, class B>(const Tensor<A>& one, const Tensor<B>& other) {
        if constexpr (std::is_same_v<A, B>) {
          return same_bits(one, other);
        } else {
          return false;
        }
      },
      a,
      b);
}

/// Whether the file says these numbers already, to the bit.
bool says(const TensorData& tensor, const io::AnyTensor& numbers) {
  return tensor.shape == shape_of(numbers) &&
         std::visit(
             [&]<class T>(const Tensor<T>& wanted) { return same_bits(tensor.read<T>(), wanted); },
             numbers);
}

/// The pieces of a tensor's message as one, with other numbers; what else it has is copied.
std::string rewritten_tensor(const WireFile& file,
                             const std::vector<Bytes>& pieces,
                             const TensorData& tensor,
                             const io::AnyTensor& numbers) {
  using F = fields::Tensor;
  std::string out;
  for (const Index extent : shape_of(numbers)) {
    append_number(out, F::dims, static_cast<std::uint64_t>(extent));
  }
  for (const Bytes& piece : pieces) {
    const WireFile inner{file.name, piece};
    WireReader message(inner);
    for (Field field; message.next(field);) {
      switch (field.number) {
        case F::dims:
        case F::floats:
        case F::ints:
        case F::strings:
        case F::longs:
        case F::raw:
        case F::doubles:
        case F::unsigneds:
        case F::external:
        case F::location: break;
        default: out += text_of(field.whole);
      }
    }
  }
  append_bytes(out, F::raw, raw_bytes(tensor.type, numbers));
  return out;
}

class Rewriter {
 public:
  Rewriter(const Model& model, const Edit& edit) : model_(model), edit_(edit) {}

  std::string run() {
    using F = fields::Model;
    std::size_t graphs_left = 0;
    WireReader count(*model_.file);
    for (Field field; count.next(field);) {
      graphs_left += field.number == F::graph ? 1 : 0;
    }
    std::string out;
    Walk main{&model_.graph, true};
    WireReader message(*model_.file);
    for (Field field; message.next(field);) {
      if (field.number == F::graph) {
        std::string body = graph(message.nested(field), main);
        if (--graphs_left == 0) {
          body += edit_.added;
        }
        append_bytes(out, F::graph, body);
      } else if (field.number != F::metadata || !replaces(message.nested(field))) {
        out += text_of(field.whole);
      }
    }
    for (const auto& [key, value] : edit_.metadata) {
      append_bytes(out, F::metadata, encode_entry(key, value));
    }
    for (const auto& [name, tensor] : edit_.tensors) {
      if (!written_.contains(name)) {
        throw Error(ErrorCode::bad_file,
                    model_.file_name() + ": has no initialiser or Constant called " +
                        io::shown(name) + " to be changed\n  fix: a name of the model");
      }
    }
    return out;
  }

 private:
  /// How far a graph has been copied, which may come in pieces.
  struct Walk {
    const Graph* graph = nullptr;
    bool is_main = false;
    std::size_t node = 0;
    std::size_t tensor = 0;
  };

  bool replaces(WireReader entry) const {
    for (Field field; entry.next(field);) {
      if (field.number == fields::Entry::key) {
        return edit_.metadata.contains(text_of(entry.bytes(field)));
      }
    }
    return false;
  }

  std::string graph(WireReader message, Walk& walk) {
    using F = fields::Graph;
    std::string out;
    for (Field field; message.next(field);) {
      switch (field.number) {
        case F::node:
          if (!walk.is_main || !edit_.dropped_nodes.contains(walk.node)) {
            const Node& known = walk.graph->nodes[walk.node];
            if (walk.is_main && is_changed_copy(known)) {
              append_bytes(out, F::node, constant_node(known));
            } else {
              node(message.nested(field), field, known, out);
            }
          }
          ++walk.node;
          break;
        case F::initializer:
          initializer(field, walk.graph->initializers[walk.tensor++], walk.is_main, out);
          break;
        default:
          if (!walk.is_main || !info(message, field, out)) {
            out += text_of(field.whole);
          }
      }
    }
    return out;
  }

  /// Whether inputs, outputs and values of the main graph are others, or none.
  bool info(const WireReader& message, const Field& field, std::string& out) const {
    using F = fields::Graph;
    if (field.number == F::input || field.number == F::value_info) {
      return edit_.dropped_infos.contains(name_of(message.nested(field)));
    }
    if (field.number != F::output) {
      return false;
    }
    const auto found = edit_.outputs.find(name_of(message.nested(field)));
    if (found != edit_.outputs.end()) {
      append_bytes(out, F::output, encode_value_info(found->second));
      return true;
    }
    return edit_.drops_outputs;
  }

  static std::string name_of(WireReader info) {
    std::string name;
    for (Field field; info.next(field);) {
      if (field.number == fields::ValueInfo::name) {
        name = info.text(field);
      }
    }
    return name;
  }

  /// The numbers that a tensor is to have instead; null where it stays.
  const io::AnyTensor* wanted(std::string_view name, const TensorData& tensor) {
    const auto found = edit_.tensors.find(name);
    if (found != edit_.tensors.end()) {
      written_.insert(found->first);
      if (!says(tensor, *found->second)) {
        return found->second;
      }
    }
    if (tensor.storage == TensorData::Storage::external && edit_.inline_external) {
      inlined_ = tensor.read_nearest();
      return &inlined_;
    }
    return nullptr;
  }

  void initializer(const Field& field, const TensorData& tensor, bool is_main, std::string& out) {
    if (is_main && edit_.dropped_tensors.contains(tensor.name)) {
      return;
    }
    if (const io::AnyTensor* const numbers = wanted(tensor.name, tensor)) {
      append_bytes(out,
                   fields::Graph::initializer,
                   rewritten_tensor(*model_.file, {field.bytes}, tensor, *numbers));
    } else {
      out += text_of(field.whole);
    }
  }

  /// A copy of an initialiser that has other numbers now is a Constant from now on.
  bool is_changed_copy(const Node& node) {
    const auto copy = is_identity(node) ? copies_.find(node.outputs[0]) : copies_.end();
    const auto wanted =
        copy != copies_.end() ? edit_.tensors.find(copy->first) : edit_.tensors.end();
    if (wanted == edit_.tensors.end()) {
      return false;
    }
    written_.insert(wanted->first);
    // What it would copy: a changed copy before it, or the initialiser.
    for (const std::string& read : {node.inputs[0], copy->second->name}) {
      if (const auto changed = edit_.tensors.find(read); changed != edit_.tensors.end()) {
        return !same_bits(*changed->second, *wanted->second);
      }
    }
    return !says(*copy->second, *wanted->second);
  }

  void node(WireReader message, const Field& field, const Node& known, std::string& out) {
    const bool has_branches = std::any_of(known.attributes.begin(),
                                          known.attributes.end(),
                                          [](const Attribute& one) { return one.g != nullptr; });
    const Attribute* const value =
        known.op_type == "Constant" && known.domain.empty() ? known.find("value") : nullptr;
    const io::AnyTensor* const numbers = value != nullptr && value->t && known.outputs.size() == 1
                                             ? wanted(known.outputs[0], *value->t)
                                             : nullptr;
    if (numbers == nullptr && !has_branches) {
      out += text_of(field.whole);
      return;
    }
    std::string body;
    for (Field part; message.next(part);) {
      const Attribute* const attribute = part.number == fields::Node::attribute
                                             ? known.find(name_of_attribute(message, part))
                                             : nullptr;
      if (attribute != nullptr && attribute->g) {
        append_bytes(body, part.number, branch(message.nested(part), *attribute->g));
      } else if (attribute != nullptr && attribute == value && numbers != nullptr) {
        append_bytes(body, part.number, constant(message.nested(part), *value->t, *numbers));
      } else {
        body += text_of(part.whole);
      }
    }
    append_bytes(out, fields::Graph::node, body);
  }

  /// In the place of a copy: the same name and result, with numbers of its own.
  std::string constant_node(const Node& copy) const {
    const std::string& name = copy.outputs[0];
    return NodeBytes("Constant", copy.name, {}, copy.outputs)
        .set_tensor("value",
                    encode_tensor(
                        name, copies_.find(name)->second->type, *edit_.tensors.find(name)->second))
        .bytes();
  }

  /// An attribute whose graph may hold tensors.
  std::string branch(WireReader attribute, const Graph& known) {
    std::string out;
    Walk walk{&known};
    for (Field field; attribute.next(field);) {
      if (field.number == fields::Attribute::g) {
        append_bytes(out, field.number, graph(attribute.nested(field), walk));
      } else {
        out += text_of(field.whole);
      }
    }
    return out;
  }

  /// The attribute of a Constant with other numbers.
  std::string constant(WireReader attribute,
                       const TensorData& tensor,
                       const io::AnyTensor& numbers) const {
    std::string out;
    std::vector<Bytes> pieces;
    for (Field field; attribute.next(field);) {
      if (field.number == fields::Attribute::t) {
        pieces.push_back(field.bytes);
      } else {
        out += text_of(field.whole);
      }
    }
    append_bytes(
        out, fields::Attribute::t, rewritten_tensor(*model_.file, pieces, tensor, numbers));
    return out;
  }

  static std::string name_of_attribute(const WireReader& node, const Field& field) {
    std::string name;
    WireReader attribute = node.nested(field);
    for (Field part; attribute.next(part);) {
      if (part.number == fields::Attribute::name) {
        name = attribute.text(part);
      }
    }
    return name;
  }

  const Model& model_;
  const Edit& edit_;
  const std::map<std::string, const TensorData*, std::less<>> copies_ = copies_of(model_.graph);
  std::set<std::string, std::less<>> written_;
  io::AnyTensor inlined_;
};

}  // namespace

std::string rewritten(const Model& model, const Edit& edit) { return Rewriter(model, edit).run(); }

Model reread(const Model& model, const Edit& edit) {
  const std::string bytes = rewritten(model, edit);
  return read_model(bytes_of(bytes), model.file_name(), {.newest_opset = model.opset()});
}

}  // namespace fenestra::onnx
