// `fenestra explain model --receptive-field`.
#pragma once

#include <fenestra/cli/command.hpp>

#include <string>

namespace fenestra::cli {

/// What one cell of the output sees, as the format of the options says. Throws `memory_limit` with
/// the layer's name where it sees everything.
std::string receptive_field(const ExplainModelOptions& options);

}  // namespace fenestra::cli
