// `fenestra bench`: how long a call of a compiled model takes here.
#pragma once

#include <fenestra/cli/command.hpp>

#include <optional>
#include <string>

namespace fenestra::cli {

struct BenchOptions {
  std::string model;                      ///< a file, or the name of a ready model
  std::optional<std::string> input = {};  ///< of one sample, for files that do not say it
  Index batch = 1;
  bool step = false;   ///< a training step without its optimiser instead of inference
  double seconds = 1;  ///< calls are repeated for so long
  std::optional<int> threads = {};
  bool json = false;
};
ExitCode bench_command(const BenchOptions& options);

}  // namespace fenestra::cli
