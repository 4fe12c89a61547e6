// The command lines of train, eval, run, summary and gradcheck.
#pragma once

#include <fenestra/cli/command.hpp>

#include <functional>
#include <vector>

namespace CLI {
class App;
}

namespace fenestra::cli {

/// A command that CLI11 knows, and what it does once its options are read.
struct RegisteredCommand {
  CLI::App* app;
  std::function<ExitCode()> run;
};

/// `json` is the flag that all commands share; what is returned keeps the options alive.
std::vector<RegisteredCommand> add_network_commands(CLI::App& app, bool& json);

}  // namespace fenestra::cli
