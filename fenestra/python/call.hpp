// Calls of compiled functions: arguments taken apart, results put together; see call.cpp.
#pragma once

#include <pybind11/pybind11.h>

#include <optional>

namespace fenestra::python {

/// The arrays among arguments whose signature has the key `key`; nothing where it has another, or
/// an argument belongs to a transform or a tape.
std::optional<pybind11::list> arguments_of(const pybind11::tuple& args,
                                           const pybind11::dict& keywords,
                                           const pybind11::handle& key);

/// A tree like another, in which integers stand for the places of the values.
pybind11::object put_together(const pybind11::handle& like, const pybind11::list& values);

}  // namespace fenestra::python
