// What the arguments of functions mean, for docstrings.
#pragma once

#include <string_view>

namespace fenestra::python {

/// What "name: text" lines say of an argument; empty where they do not name it.
std::string_view argument_text(std::string_view lines, std::string_view name);

/// What an argument of this name means in every operator; empty where that is for the operator's
/// own signature to say.
std::string_view common_argument_text(std::string_view name);

}  // namespace fenestra::python
