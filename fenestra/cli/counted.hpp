// "1 class", "1,000 classes".
#pragma once

#include <fenestra/base/text.hpp>
#include <fenestra/tensor/shape.hpp>

#include <string>
#include <string_view>

namespace fenestra::cli {

inline std::string counted(Index count, std::string_view one, std::string_view many) {
  return grouped(count) + " " + std::string(count == 1 ? one : many);
}

}  // namespace fenestra::cli
