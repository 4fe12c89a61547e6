// The tool without the laws: in place of cli/check.cpp stands no command at all. Everything else is
// linked without the harness, so a command that needs it for more than `check` does not build.
#include <fenestra/cli/command_line.hpp>

namespace fenestra::cli {

void add_check(CLI::App&, CommandLine&) {}

}  // namespace fenestra::cli
