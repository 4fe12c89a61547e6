// `fenestra check` on an ONNX file. Apart from the other commands on such files, so that the
// command itself needs no networks.
#pragma once

#include <fenestra/cli/command.hpp>

#include <string_view>

namespace fenestra::cli {

/// By the ending of its name.
bool is_onnx(std::string_view file);

/// Lists all that keeps a model from running or from being trained. `problem` says shapes:
/// "x=1x3x224x224".
ExitCode check_onnx(const CheckOptions& options);

}  // namespace fenestra::cli
