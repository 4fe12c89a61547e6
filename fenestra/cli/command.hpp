// The commands of the tool: their options as plain values, and a function each. How they are read
// from a command line is command_line.hpp's, reporting errors main.cpp's; a command prints its
// result only once it has all of it.
#pragma once

#include <fenestra/cli/usage_error.hpp>
#include <fenestra/graph/operation.hpp>

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace fenestra::cli {

/// How this program was called: what to type to call it again.
inline std::string& program_name() {
  static std::string name = "fenestra";
  return name;
}

enum ExitCode {
  fine = 0,
  law_broken = 1,
  bad_usage = 2,
  bad_input = 3,
  lost_rank = 4,
  was_interrupted = 130
};

/// Added to the codes 1 to 3 by `train --resume-or-start`: another start would end the same way.
/// MPI and its launchers end with small codes of their own, which must not be taken for these.
inline constexpr int kNotAgain = 100;

/// Keys in the order in which they are written.
using Json = nlohmann::ordered_json;

struct ExplainOptions {
  std::optional<std::string> op;  ///< nothing: list the operators
  std::optional<std::string> problem;
  std::optional<std::string> axis;  ///< number or name of the axis to draw; nothing: the last one
  bool kernels = false;             ///< list the kernel candidates too
  bool time = false;                ///< and how long each takes
  bool json = false;
};

enum class ModelForm {
  run,    ///< the forward pass, given its parameters
  step,   ///< a training step that replaces them
  infer,  ///< parameters are constants
};
enum class ModelFormat { text, dot, html, json };

struct ExplainModelOptions {
  std::string model;                 ///< built in, ready, or a file
  std::optional<std::string> input;  ///< of one sample, for files that do not say it
  Index batch = 8;
  ModelForm form = ModelForm::run;
  graph::DataType type = graph::DataType::f32;
  std::optional<int> threads;    ///< nothing: as many as the library would take
  std::size_t memory_limit = 0;  ///< bytes of the arena; 0: as many as it needs
  bool profile = false;          ///< run it, and tell the time of each step
  bool receptive_field = false;  ///< what one cell of the output sees, instead
  ModelFormat format = ModelFormat::text;
  std::optional<std::string> output;  ///< nothing: standard output
  bool force = false;                 ///< replace what is there
};

struct CheckOptions {
  std::string op;  ///< or "all", "kernels", "bits"
  std::optional<std::string> problem;
  std::optional<std::int64_t> cases;  ///< random problems per operator, where none is given
  std::optional<double> minutes;      ///< kernels and bits: how long
  bool hash = false;                  ///< bits: print one number for all results, compare nothing
  std::uint64_t seed = 1;
  bool json = false;
};

ExitCode info(bool as_json);
ExitCode explain(const ExplainOptions& options);
ExitCode explain_model(const ExplainModelOptions& options);
ExitCode check(const CheckOptions& options);
/// The laws on kernels: integers, and bits.
ExitCode check_kernels(const CheckOptions& options);
ExitCode check_bits(const CheckOptions& options);

}  // namespace fenestra::cli
