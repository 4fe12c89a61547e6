// The commands of the tool: their options as plain values, and a function each. Parsing the command
// line and reporting errors is main.cpp's; a command prints its result only once it has all of it.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace fenestra::cli {

enum ExitCode { fine = 0, law_broken = 1, bad_usage = 2, bad_input = 3 };

/// A command line that asks for something the command does not offer.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Keys in the order in which they are written.
using Json = nlohmann::ordered_json;

struct ExplainOptions {
  std::optional<std::string> op;  ///< nothing: list the operators
  std::optional<std::string> problem;
  std::optional<std::string> axis;  ///< number or name of the axis to draw; nothing: the last one
  bool kernels = false;             ///< list the kernel candidates too
  bool json = false;
};

struct CheckOptions {
  std::string op;  ///< or "all"
  std::optional<std::string> problem;
  std::optional<std::int64_t> cases;  ///< random problems per operator, where none is given
  std::uint64_t seed = 1;
  bool json = false;
};

ExitCode explain(const ExplainOptions& options);
ExitCode check(const CheckOptions& options);

/// What each law says, a line each: for the help of `check`.
std::string law_list();

}  // namespace fenestra::cli
