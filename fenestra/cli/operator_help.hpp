// What a problem string of an operator may say.
#pragma once

#include <fenestra/ops/entry.hpp>
#include <fenestra/spec/problem.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace fenestra::cli {

/// The fields that the operator reads, those of all its functions.
std::vector<ProblemField> operator_fields(const OperatorEntry& entry);

/// What `fenestra explain OPERATOR --help` prints. Throws `unknown_operator`.
std::string operator_help(std::string_view name, bool as_json);

/// ", did you mean stride?" for the first field of the problem that the operator does not have.
std::string meant_field(const OperatorEntry& entry, std::string_view problem);

}  // namespace fenestra::cli
