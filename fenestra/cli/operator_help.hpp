// What a problem string of an operator may say.
#pragma once

#include <fenestra/check/entry.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace fenestra::cli {

struct OperatorField {
  std::string_view name;
  std::string_view meaning;
  std::string_view otherwise;  ///< what is taken where it is left out; "" where it may not be
  std::vector<std::string> choices = {};  ///< the words that it may be, if it is a word
  bool is_required = false;               ///< of the operator's example
};

/// The fields that the operator reads, found by asking its parser: those of all its functions.
std::vector<OperatorField> operator_fields(const check::OperatorEntry& entry);

/// What `fenestra explain OPERATOR --help` prints. Throws `unknown_operator`.
std::string operator_help(std::string_view name, bool as_json);

/// ", did you mean stride?" for the first field of the problem that the operator does not have.
std::string meant_field(const check::OperatorEntry& entry, std::string_view problem);

}  // namespace fenestra::cli
