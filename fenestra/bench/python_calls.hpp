// What a call costs from Python, compiled beside eager, by a script in a process of its own.
#pragma once

#include <fenestra/bench/case.hpp>

#include <optional>
#include <string>

namespace fenestra::bench {

/// `package` is the folder in which the Python package was built. Nothing where there is none.
std::optional<Result> measure_python_calls(const std::string& script, const std::string& package);

}  // namespace fenestra::bench
