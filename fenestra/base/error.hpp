// What goes wrong, as a value and as an exception.
//
// A caller's mistake is a `Fault` while it can still be decided at compile time (a plain,
// constexpr, comparable value) and a thrown `Error` at run time. Codes are stable and are what
// tests compare; texts may improve. Our own mistakes are assertions, never errors.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace fenestra {

/// Every size, extent, offset and count. Signed, so that differences are safe to form.
using Index = std::int64_t;

/// Stable identity of a mistake. Append only: the names below are printed, stored and compared.
enum class ErrorCode {
  none,
  invalid_kernel,
  invalid_stride,
  invalid_dilation,
  invalid_padding,
  invalid_output_padding,
  invalid_output_size,
  invalid_groups,
  invalid_extent,  ///< the size of a tensor, of a picture, of a set of samples
  invalid_beta,
  invalid_divisor,
  invalid_exponent,
  invalid_index,
  kernel_exceeds_input,
  empty_output,
  channels_not_divisible,
  rank_mismatch,
  channel_mismatch,
  bias_mismatch,
  shape_mismatch,
  dtype_mismatch,
  overflow,
  division_by_zero,
  ambiguous_comparison,
  bad_problem,  ///< a text of a problem that does not parse
  unknown_operator,
  kernel_refused,
  foreign_variable,  ///< of another tape, transform or graph
  released_graph,
  bad_file,
  unknown_model,  ///< a network or a layer that nothing is known of
  memory_limit,
  bad_environment,
  unsupported,     ///< of something known: a combination that nobody computes
  unknown_choice,  ///< a word that is none of those there are
  not_compiled,
  invalid_graph,
  invalid_option,  ///< a number, a name or a text out of its range; sizes are `invalid_extent`
  wrong_context,   ///< a context or a pass that is not for this call
  read_only,       ///< a constant where something is overwritten
  diverged,        ///< a loss that is no finite number any more
};

/// The stable spelling of a code, e.g. "kernel-exceeds-input".
constexpr std::string_view code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::none: return "none";
    case ErrorCode::invalid_kernel: return "invalid-kernel";
    case ErrorCode::invalid_stride: return "invalid-stride";
    case ErrorCode::invalid_dilation: return "invalid-dilation";
    case ErrorCode::invalid_padding: return "invalid-padding";
    case ErrorCode::invalid_output_padding: return "invalid-output-padding";
    case ErrorCode::invalid_output_size: return "invalid-output-size";
    case ErrorCode::invalid_groups: return "invalid-groups";
    case ErrorCode::invalid_extent: return "invalid-extent";
    case ErrorCode::invalid_beta: return "invalid-beta";
    case ErrorCode::invalid_divisor: return "invalid-divisor";
    case ErrorCode::invalid_exponent: return "invalid-exponent";
    case ErrorCode::invalid_index: return "invalid-index";
    case ErrorCode::kernel_exceeds_input: return "kernel-exceeds-input";
    case ErrorCode::empty_output: return "empty-output";
    case ErrorCode::channels_not_divisible: return "channels-not-divisible";
    case ErrorCode::rank_mismatch: return "rank-mismatch";
    case ErrorCode::channel_mismatch: return "channel-mismatch";
    case ErrorCode::bias_mismatch: return "bias-mismatch";
    case ErrorCode::shape_mismatch: return "shape-mismatch";
    case ErrorCode::dtype_mismatch: return "dtype-mismatch";
    case ErrorCode::overflow: return "overflow";
    case ErrorCode::division_by_zero: return "division-by-zero";
    case ErrorCode::ambiguous_comparison: return "ambiguous-comparison";
    case ErrorCode::bad_problem: return "bad-problem";
    case ErrorCode::unknown_operator: return "unknown-operator";
    case ErrorCode::kernel_refused: return "kernel-refused";
    case ErrorCode::foreign_variable: return "foreign-variable";
    case ErrorCode::released_graph: return "released-graph";
    case ErrorCode::bad_file: return "bad-file";
    case ErrorCode::unknown_model: return "unknown-model";
    case ErrorCode::memory_limit: return "memory-limit";
    case ErrorCode::bad_environment: return "bad-environment";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::unknown_choice: return "unknown-choice";
    case ErrorCode::not_compiled: return "not-compiled";
    case ErrorCode::invalid_graph: return "invalid-graph";
    case ErrorCode::invalid_option: return "invalid-option";
    case ErrorCode::wrong_context: return "wrong-context";
    case ErrorCode::read_only: return "read-only";
    case ErrorCode::diverged: return "diverged";
  }
  return "unknown";
}

/// The argument or option at fault. An enumeration, so that a `Fault` can be a template argument.
enum class Argument {
  none,
  x,
  w,
  b,
  y,
  indices,
  kernel,
  stride,
  padding,
  dilation,
  groups,
  output_padding,
  output_size,
  beta,
  divisor_override,
  exponent,
  gamma,
  mean,
  var,
  labels,
};

constexpr std::string_view argument_name(Argument argument) {
  switch (argument) {
    case Argument::none: return "";
    case Argument::x: return "x";
    case Argument::w: return "w";
    case Argument::b: return "b";
    case Argument::y: return "y";
    case Argument::indices: return "indices";
    case Argument::kernel: return "kernel";
    case Argument::stride: return "stride";
    case Argument::padding: return "padding";
    case Argument::dilation: return "dilation";
    case Argument::groups: return "groups";
    case Argument::output_padding: return "output_padding";
    case Argument::output_size: return "output_size";
    case Argument::beta: return "beta";
    case Argument::divisor_override: return "divisor_override";
    case Argument::exponent: return "p";
    case Argument::gamma: return "gamma";
    case Argument::mean: return "mean";
    case Argument::var: return "var";
    case Argument::labels: return "labels";
  }
  return "";
}

/// A mistake as a constexpr value: what, in which argument, on which axis, the number found and the
/// number needed. Structural, so the typed graph can report it from a template argument.
struct Fault {
  ErrorCode code = ErrorCode::none;
  Argument argument = Argument::none;
  int axis = -1;     ///< spatial axis, -1 where the fault is not on one
  Index got = 0;     ///< the offending number
  Index needed = 0;  ///< the bound or number it is compared with

  /// True when something is wrong.
  constexpr explicit operator bool() const { return code != ErrorCode::none; }
  friend constexpr bool operator==(const Fault&, const Fault&) = default;
};

/// A language whose callers read messages.
enum class Language { cpp, python };

namespace detail {

// Around the two spellings of `spelled`; no text of a person has them.
inline constexpr char kSpellingBegin = '\x01';
inline constexpr char kSpellingNext = '\x02';
inline constexpr char kSpellingEnd = '\x03';

}  // namespace detail

/// A piece of an `Error`'s text that languages spell differently: `Error` shows each its own.
inline std::string spelled(std::string_view cpp, std::string_view python) {
  std::string text(1, detail::kSpellingBegin);
  text.append(cpp) += detail::kSpellingNext;
  text.append(python) += detail::kSpellingEnd;
  return text;
}
/// An option with its value: "{.retain = true}", "retain=True".
inline std::string spelled_option(std::string_view name, bool value) {
  const std::string text(name);
  return spelled("{." + text + (value ? " = true}" : " = false}"),
                 text + (value ? "=True" : "=False"));
}
/// An argument by the library's name, and as Python functions call it, after PyTorch.
inline std::string spelled_argument(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kPython[] = {{"x", "input"},
                                                                       {"w", "weight"},
                                                                       {"b", "bias"},
                                                                       {"kernel", "kernel_size"},
                                                                       {"p", "norm_type"},
                                                                       {"labels", "target"}};
  for (const auto& [cpp, python] : kPython) {
    if (cpp == name) {
      return spelled(cpp, python);
    }
  }
  return std::string(name);
}

/// The text with every `spelled` piece in one language.
inline std::string text_in(Language language, std::string_view text) {
  std::string result;
  result.reserve(text.size());
  bool shown = true;
  for (const char c : text) {
    if (c == detail::kSpellingBegin) {
      shown = language == Language::cpp;
    } else if (c == detail::kSpellingNext) {
      shown = language == Language::python;
    } else if (c == detail::kSpellingEnd) {
      shown = true;
    } else if (shown) {
      result += c;
    }
  }
  return result;
}

/// A caller's mistake. `what()` is the whole text: operator, argument, got, needed, and the
/// smallest change that works, in the words of C++; `text` has it in those of another language.
class Error : public std::runtime_error {
 public:
  /// `text` may hold pieces that are `spelled`.
  Error(ErrorCode code, const std::string& text) : Error({}, Fault{.code = code}, text) {}
  Error(std::string op, Fault fault, const std::string& text)
      : std::runtime_error(text_in(Language::cpp, text)),
        op_(std::move(op)),
        spellings_(text.find(detail::kSpellingBegin) != std::string::npos ? text : std::string()),
        fault_(fault) {}

  std::string text(Language language) const {
    return spellings_.empty() ? std::string(what()) : text_in(language, spellings_);
  }

  ErrorCode code() const noexcept { return fault_.code; }
  /// The operator that refused, empty where none is involved.
  const std::string& op() const noexcept { return op_; }
  /// The argument at fault, by name; empty where none is involved.
  std::string_view argument() const noexcept { return argument_name(fault_.argument); }
  /// The spatial axis at fault, -1 where none is.
  int axis() const noexcept { return fault_.axis; }
  const Fault& fault() const noexcept { return fault_; }

 private:
  std::string op_;
  std::string spellings_;  ///< the text with all of them; empty where it has none
  Fault fault_;
};

}  // namespace fenestra
