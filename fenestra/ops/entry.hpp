// An operator of the list without its type: what the command line, the bench and the laws ask of it
// by name. Not installed. The laws themselves are in check/, whose entries are these and more.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/base/nearest.hpp>
#include <fenestra/ops/kernel_choice.hpp>
#include <fenestra/ops/operator.hpp>
#include <fenestra/spec/describe.hpp>
#include <fenestra/spec/problem.hpp>
#include <fenestra/spec/random.hpp>
#include <fenestra/spec/window.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra {

/// A problem, read and validated, in words a tool can print.
struct Description {
  std::string problem;  ///< canonical problem string
  std::vector<TensorInfo> inputs;
  std::vector<TensorInfo> data;
  TensorInfo output;
  std::optional<Layout> layout;  ///< nothing where the operator is not one on activations
  std::optional<bool> batched;   ///< likewise
  Windows windows;               ///< rank 0 where the operator has none
  std::optional<Costs> costs;
  std::vector<AxisNote> notes;
  std::vector<KernelChoice> kernels;  ///< of operators that have kernels of their own
};

struct OperatorEntry {
  std::string_view name;
  std::string_view summary;
  std::string_view example;
  std::vector<ProblemField> (*options)();  ///< fields of problems that are options
  std::span<const OwnField> own_fields;    ///< others that this operator has and few do
  Description (*describe)(std::string_view problem);
  std::string (*random_problem)(Random& random);
  /// Seconds that a candidate takes for one direction of a problem, the least of the runs that fit
  /// into `budget` (at least one), on the threads that are set; nothing where the direction is not
  /// one that a caller can ask for by itself, and for the specification on large problems.
  std::optional<double> (*time)(std::string_view problem,
                                const KernelChoice& choice,
                                double budget);
};

/// Every operator of the list, in its order.
std::span<const OperatorEntry> operators();

/// The entry called `name`; throws `unknown_operator`, which says what `kind` of thing is meant,
/// with the nearest name and those there are.
template <class Entry>
const Entry& find_entry(std::span<const Entry> entries,
                        std::string_view name,
                        std::string_view kind = "operator") {
  std::vector<std::string_view> names;
  for (const Entry& entry : entries) {
    if (entry.name == name) {
      return entry;
    }
    names.push_back(entry.name);
  }
  throw Error(ErrorCode::unknown_operator, unknown_name(kind, name, names));
}

inline const OperatorEntry& find_operator(std::string_view name) {
  return find_entry(operators(), name);
}

/// A candidate's name up to the algorithm, which comes last: what a caller says with its type.
inline std::string_view kernel_type(const KernelChoice& choice) {
  return std::string_view(choice.name).substr(0, choice.name.rfind('_'));
}

/// Compiled once per operator, in a translation unit of its own.
template <Operator Op>
OperatorEntry make_entry();

}  // namespace fenestra
