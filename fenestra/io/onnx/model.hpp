// What an ONNX file says, as plain structs: nothing is checked against operators here, nothing is
// computed. Weights stay where they are, in the file's bytes, until `read` makes a tensor of them.
//
//   const onnx::Model model = onnx::read_model("net.onnx");
//   for (const onnx::Node& node : model.graph.nodes) ...
//   Tensor<float> w = model.graph.initializers[0].read<float>();
//
// What runs one is a `Network` (network.hpp).
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/io/tensor_map.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra::onnx {

struct WireFile;

/// The numbers are the format's own.
enum class ElementType : int {
  undefined = 0,
  float32 = 1,
  uint8 = 2,
  int8 = 3,
  uint16 = 4,
  int16 = 5,
  int32 = 6,
  int64 = 7,
  string = 8,
  boolean = 9,
  float16 = 10,
  float64 = 11,
  uint32 = 12,
  uint64 = 13,
  complex64 = 14,
  complex128 = 15,
  bfloat16 = 16,
};

/// "float32", "int64"; "type 23" for one that has no name here.
FENESTRA_API std::string type_name(ElementType type);
/// How files store it; nothing for strings, complex numbers and types of less than 16 bits that are
/// no integers.
FENESTRA_API std::optional<io::NumberType> number_type(ElementType type);
inline bool is_floating(ElementType type) {
  return type == ElementType::float32 || type == ElementType::float64 ||
         type == ElementType::float16 || type == ElementType::bfloat16;
}

/// Numbers of a file, not yet read.
class FENESTRA_API TensorData {
 public:
  std::string name;
  ElementType type = ElementType::undefined;
  Shape shape;

  /// T is float, double or Index. Floating-point numbers are rounded to T, integers must be exact
  /// in T. The sizes have been compared with the file's by then. Throws `bad_file`.
  template <class T>
  Tensor<T> read() const;
  /// Numbers of 16 bits are widened; integers and truth values are Index.
  io::AnyTensor read_nearest() const;

  /// Where the numbers are.
  enum class Storage { none, raw, floats, ints, longs, doubles, unsigneds, strings, external };
  Storage storage = Storage::none;
  /// Raw bytes, or the pieces of a repeated field, packed or one number each.
  std::vector<std::span<const std::byte>> pieces;
  /// Numbers in another file.
  struct External {
    std::string location;  ///< relative to the folder of the model
    std::uint64_t offset = 0;
    std::optional<std::uint64_t> length;
  };
  External external;
  /// Fills bytes from an offset of the external file on; empty where it was not opened.
  std::function<void(std::uint64_t, std::span<std::byte>)> external_bytes;
  std::shared_ptr<const WireFile> file;
};

/// A number, a label, or neither where nothing is known.
struct Dimension {
  std::optional<Index> extent;
  std::string label;
};

struct ValueInfo {
  std::string name;
  ElementType type = ElementType::undefined;
  bool is_tensor = true;  ///< no sequence, map or optional
  /// Nothing where the rank is not known.
  std::optional<std::vector<Dimension>> dims;
};

struct Graph;

/// The numbers are the format's own.
enum class AttributeType : int {
  undefined = 0,
  real = 1,
  integer = 2,
  string = 3,
  tensor = 4,
  graph = 5,
  reals = 6,
  integers = 7,
  strings = 8,
  tensors = 9,
  graphs = 10,
};

/// "a number", "a list of integers"; "of type 12" for one that has no name here.
FENESTRA_API std::string kind_name(AttributeType type);

struct Attribute {
  std::string name;
  AttributeType type = AttributeType::undefined;
  float f = 0;
  Index i = 0;
  std::string s;
  std::shared_ptr<const TensorData> t;
  std::shared_ptr<const Graph> g;
  std::vector<float> floats;
  std::vector<Index> ints;
  std::vector<std::string> strings;
  std::vector<TensorData> tensors;
  /// In a function: the attribute of the call that this one takes its value from.
  std::string reference;
};

struct Node {
  std::string name;
  std::string op_type;
  std::string domain;               ///< "" for the standard's own, also where a file says "ai.onnx"
  std::vector<std::string> inputs;  ///< "" for one that is left out
  std::vector<std::string> outputs;
  std::vector<Attribute> attributes;

  /// Nothing where there is none.
  const Attribute* find(std::string_view attribute) const {
    for (const Attribute& known : attributes) {
      if (known.name == attribute) {
        return &known;
      }
    }
    return nullptr;
  }
};

inline bool is_identity(const Node& node) {
  return node.op_type == "Identity" && node.domain.empty() && node.inputs.size() == 1 &&
         node.outputs.size() == 1;
}

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<TensorData> initializers;
  std::vector<std::string> sparse_initializers;  ///< by name; their numbers are not read
  std::vector<ValueInfo> inputs;                 ///< before IR 4 the initialisers are among them
  std::vector<ValueInfo> outputs;
  std::vector<ValueInfo> value_infos;

  const TensorData* find_initializer(std::string_view initializer) const {
    for (const TensorData& known : initializers) {
      if (known.name == initializer) {
        return &known;
      }
    }
    return nullptr;
  }
};

/// Version of each domain's operators; "" is the standard's own.
using Opsets = std::map<std::string, Index, std::less<>>;

/// An operator that the file itself defines.
struct Function {
  std::string domain;
  std::string name;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> attributes;  ///< that a call may give
  std::vector<Attribute> default_attributes;
  std::vector<Node> nodes;
  Opsets opsets;
};

struct Model {
  Index ir_version = 0;
  std::string producer;
  std::string producer_version;
  Opsets opsets;
  io::Metadata metadata;
  Graph graph;
  std::vector<Function> functions;
  /// The bytes that all of it points into.
  std::shared_ptr<const WireFile> file;

  FENESTRA_API const std::string& file_name() const;
  /// 1 where the file says nothing about the domain.
  Index opset(std::string_view domain = {}) const {
    const auto found = opsets.find(domain);
    return found == opsets.end() ? 1 : found->second;
  }
};

/// The newest version of the standard's operators that is known here.
inline constexpr Index kNewestOpset = 26;

struct ReadOptions {
  /// A model of a newer one is refused.
  Index newest_opset = kNewestOpset;
};

/// Throws `bad_file`: there is no file, it is empty, a web page, a pointer of Git LFS, no protobuf,
/// has no graph, an opset that is too new, or sizes that do not fit.
FENESTRA_API Model read_model(const std::filesystem::path& path, const ReadOptions& options = {});
/// A copy of bytes in memory is kept; `name` is for messages. Tensors in other files cannot be
/// read.
FENESTRA_API Model read_model(std::span<const std::byte> bytes,
                              std::string name,
                              const ReadOptions& options = {});

/// Something that keeps a model from running, or from being trained. One line, never numbers of
/// tensors.
struct Problem {
  std::string node = {};  ///< its name, "#12" where it has none, "" where no node is concerned
  std::string op = {};    ///< with its version: "Conv-11"
  std::string text = {};
  std::string help = {};  ///< what would help; may be empty
  bool is_open = false;   ///< shapes or numbers decide that nobody has said yet
};
FENESTRA_API std::string to_string(const Problem& problem);

/// Tensors of their own that a file states as Identity of an initialiser, by name. Exporters do so
/// with parameters that happen to be equal, such as a new norm's weight and its running variance.
/// An initialiser that is read by one name only has no copy, whatever the name is.
FENESTRA_API std::map<std::string, const TensorData*, std::less<>> copies_of(const Graph& graph);

/// What is wrong with names: defined twice, used before they are defined or never, cycles, outputs
/// that nothing makes. Sub-graphs are looked at too.
FENESTRA_API std::vector<Problem> name_problems(const Model& model);

}  // namespace fenestra::onnx
