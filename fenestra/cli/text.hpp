// JSON on standard output. Columns and numbers are in base/text.hpp.
#pragma once

#include <fenestra/base/text.hpp>
#include <fenestra/cli/command.hpp>
#include <fenestra/tensor/shape.hpp>

#include <nlohmann/json.hpp>

#include <iostream>
#include <string>

// Compiled once, in json.cpp: otherwise every command compiles what it uses of it.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace fenestra::cli {

/// Bytes that are no UTF-8, which a command line may hold, become the replacement character.
inline std::string json_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

inline Json shape_json(const Shape& shape) {
  Json list = Json::array();
  for (const Index extent : shape) {
    list.push_back(extent);
  }
  return list;
}

inline void print_json(const Json& json) { std::cout << json_text(json); }

}  // namespace fenestra::cli
