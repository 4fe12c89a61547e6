// Call<T>: one node of a graph that is being run, as the rule of its operator sees it; and the list
// of operators. Not installed.
//
// A rule turns any version of its operator into calls of the library's operators. `since` is the
// newest version of the operator's text that is not above the model's, so rules ask for that and
// never for the opset. Rules throw; whoever runs the node adds its name.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/io/onnx/datum.hpp>
#include <fenestra/io/onnx/model.hpp>
#include <fenestra/nn/pass.hpp>

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fenestra::onnx {

template <class T>
using Results = std::vector<Datum<T>>;

/// What a rule may ask of the run it belongs to.
template <class T>
struct RunContext {
  nn::Pass<T>* pass = nullptr;    ///< nothing: inference
  bool batch_statistics = false;  ///< batch norm in training: those of the batch
  std::uint64_t budget = 0;       ///< bytes that one result may have
  std::function<Results<T>(const Graph&)> run_graph;
  /// The buffer that a value is, or null.
  std::function<const nn::Buffer<T>*(int)> buffer;
};

template <class T>
class Call {
 public:
  const Node& node;
  int since;
  std::vector<const Datum<T>*> inputs;  ///< null where one is left out
  const std::vector<int>& values;       ///< the numbers of the inputs in the run
  const RunContext<T>& run;
  nn::LayerReach reach = {};  ///< what rules of windows say about themselves, for summaries

  // --- Inputs ----------------------------------------------------------------------------------

  bool has(std::size_t i) const { return i < inputs.size() && inputs[i] != nullptr; }
  const Datum<T>& at(std::size_t i) const {
    if (!has(i)) {
      refuse("input " + std::to_string(i) + " is missing", "a model that gives it");
    }
    return *inputs[i];
  }
  Value<T> value(std::size_t i) const { return at(i).value(); }
  Shape shape(std::size_t i) const { return at(i).shape(); }
  /// The integers of an input, in a list.
  std::vector<Index> list(std::size_t i) const {
    const Tensor<Index> numbers = at(i).numbers();
    return {numbers.values().begin(), numbers.values().end()};
  }
  /// The integer of an input with one element.
  Index one(std::size_t i) const {
    const std::vector<Index> all = list(i);
    if (all.size() != 1) {
      refuse("input " + std::to_string(i) + " has " + std::to_string(all.size()) +
                 " elements, needed one",
             "a scalar");
    }
    return all[0];
  }
  /// The number of an input that has one, if its numbers are there.
  std::optional<double> known_number(std::size_t i) const {
    const Datum<T>& datum = at(i);
    if (!datum.is_known() || datum.shape().elements() != 1) {
      return std::nullopt;
    }
    const Value<T>* value = datum.as_value();
    return value != nullptr ? static_cast<double>(detached(*value).plain()[0])
                            : static_cast<double>((*datum.as_numbers())[0]);
  }
  /// Whether nothing can be differentiated by it.
  bool is_constant(std::size_t i) const {
    const Value<T>* value = at(i).as_value();
    return value == nullptr || value->level() == 0;
  }

  // --- Attributes ------------------------------------------------------------------------------

  bool given(std::string_view attribute) const { return node.find(attribute) != nullptr; }
  Index integer(std::string_view attribute, Index otherwise) const {
    const Attribute* found = find(attribute, AttributeType::integer);
    return found != nullptr ? found->i : otherwise;
  }
  Index integer(std::string_view attribute) const {
    required(attribute);
    return integer(attribute, 0);
  }
  bool flag(std::string_view attribute, bool otherwise = false) const {
    return integer(attribute, otherwise ? 1 : 0) != 0;
  }
  double real(std::string_view attribute, double otherwise) const {
    const Attribute* found = find(attribute, AttributeType::real);
    return found != nullptr ? static_cast<double>(found->f) : otherwise;
  }
  std::string text(std::string_view attribute, std::string_view otherwise) const {
    const Attribute* found = find(attribute, AttributeType::string);
    return found != nullptr ? found->s : std::string(otherwise);
  }
  std::vector<Index> integers(std::string_view attribute) const {
    const Attribute* found = find(attribute, AttributeType::integers);
    return found != nullptr ? found->ints : std::vector<Index>();
  }
  /// Throws where it is of another type; files of old tools name none.
  const Attribute* find(std::string_view attribute, AttributeType type) const {
    const Attribute* found = node.find(attribute);
    if (found != nullptr && found->type != type && found->type != AttributeType::undefined) {
      refuse("attribute " + std::string(attribute) + " is " + kind_name(found->type) + ", needed " +
                 kind_name(type),
             "a correct model",
             ErrorCode::dtype_mismatch);
    }
    return found;
  }
  const Attribute& required(std::string_view attribute) const {
    const Attribute* found = node.find(attribute);
    if (found == nullptr) {
      refuse("attribute " + std::string(attribute) + " is missing", "a model that has it");
    }
    return *found;
  }
  /// What newer versions give as an input and older ones as an attribute; nothing where neither is
  /// there.
  std::optional<std::vector<Index>> list_or(std::size_t input, std::string_view attribute) const {
    if (has(input)) {
      return list(input);
    }
    return given(attribute) ? std::optional(integers(attribute)) : std::nullopt;
  }

  // --- Outputs ---------------------------------------------------------------------------------

  bool wants(std::size_t output) const {
    return output < node.outputs.size() && !node.outputs[output].empty();
  }
  /// One result, of the type of the first input.
  Results<T> same(Value<T> y) const { return {Datum<T>(std::move(y), at(0).type())}; }
  Results<T> same(Tensor<Index> y) const { return {Datum<T>(std::move(y), at(0).type())}; }

  // --- Refusals --------------------------------------------------------------------------------

  [[noreturn]] void refuse(const std::string& what,
                           const std::string& help,
                           ErrorCode code = ErrorCode::unsupported) const {
    throw Error(code, what + "\n  fix: " + help);
  }
  /// For what runs eagerly and not in a trace.
  [[noreturn]] void refuse_unknown(const std::string& what, const std::string& help) const {
    refuse(what + " depends on data that has no numbers here", help, ErrorCode::foreign_variable);
  }
  [[noreturn]] void refuse_attribute(std::string_view attribute, const std::string& got) const {
    refuse("attribute " + std::string(attribute) + " = " + got + " is not known",
           "a model with another value, exported by a newer tool perhaps");
  }
  /// Before memory is asked for.
  void require_budget(const Shape& result) const {
    const std::optional<Index> elements = result.elements();
    if (!elements || static_cast<std::uint64_t>(*elements) > run.budget / sizeof(T)) {
      refuse("a result of shape " + to_string(result) + " passes the budget of " +
                 std::to_string(run.budget) + " bytes",
             "smaller inputs, or a larger budget",
             ErrorCode::memory_limit);
    }
  }
};

template <class T>
using Rule = Results<T> (*)(Call<T>&);

/// Whether derivatives pass an operator.
enum class Derivative {
  full,
  flat,  ///< zero wherever there is one: rounding, comparisons
  none,  ///< its results are integers, or it takes only integers
};

struct Operator {
  std::string_view name;
  std::string_view family;
  std::vector<int> versions;  ///< those with a text of their own, ascending
  Rule<float> on_floats;
  Rule<double> on_doubles;
  Derivative derivative = Derivative::full;

  template <class T>
  Rule<T> rule() const {
    if constexpr (std::is_same_v<T, float>) {
      return on_floats;
    } else {
      return on_doubles;
    }
  }
  /// The newest that is not above `opset`; 0 where the operator is younger.
  int since(Index opset) const {
    int newest = 0;
    for (const int version : versions) {
      newest = version <= opset ? version : newest;
    }
    return newest;
  }
};

/// The operators of one family, written down by the function of its file.
class OperatorList {
 public:
  void family(std::string_view name) { family_ = name; }
  /// `rule` is a lambda without captures: []<class T>(Call<T>&) -> Results<T>.
  template <class F>
  void add(std::string_view name,
           std::vector<int> versions,
           F rule,
           Derivative derivative = Derivative::full) {
    all_.push_back({name, family_, std::move(versions), rule, rule, derivative});
  }
  const std::vector<Operator>& all() const { return all_; }

 private:
  std::string_view family_;
  std::vector<Operator> all_;
};

void add_activations(OperatorList& list);
void add_arithmetic(OperatorList& list);
void add_control(OperatorList& list);
void add_linear(OperatorList& list);
void add_losses(OperatorList& list);
void add_movement(OperatorList& list);
void add_norms(OperatorList& list);
void add_recurrent(OperatorList& list);
void add_reductions(OperatorList& list);
void add_resizing(OperatorList& list);
void add_sampling(OperatorList& list);
void add_selection(OperatorList& list);
void add_shapes(OperatorList& list);
void add_windows(OperatorList& list);

/// All of them, sorted by name.
const std::vector<Operator>& operators();
/// Null where there is no such operator.
const Operator* find_operator(std::string_view name);

}  // namespace fenestra::onnx
