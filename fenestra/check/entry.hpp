// An operator of the list without its type: what the command line and the tests ask of it by name.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/base/nearest.hpp>
#include <fenestra/check/law.hpp>
#include <fenestra/ops/kernel_choice.hpp>
#include <fenestra/ops/operator.hpp>
#include <fenestra/spec/describe.hpp>
#include <fenestra/spec/problem.hpp>
#include <fenestra/spec/random.hpp>
#include <fenestra/spec/window.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra::check {

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
  std::vector<LawOutcome> (*check)(std::string_view problem, std::uint64_t seed);
};

/// Every operator of the list, in its order.
std::span<const OperatorEntry> registry();

/// The entry called `name`; throws `unknown_operator` with the nearest name and those there are.
inline const OperatorEntry& find_operator(std::string_view name) {
  std::vector<std::string_view> names;
  for (const OperatorEntry& entry : registry()) {
    if (entry.name == name) {
      return entry;
    }
    names.push_back(entry.name);
  }
  throw Error(ErrorCode::unknown_operator, unknown_name("operator", name, names));
}

/// Compiled once per operator, in a translation unit of its own.
template <Operator Op>
OperatorEntry make_entry();

}  // namespace fenestra::check
