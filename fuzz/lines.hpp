// Inputs that begin with a line of text, `conv x=1x3x8x8 w=4x3x3x3`: an operator and its problem.
// Text, so that a seed can be read and written by hand.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace fenestra::fuzz {

struct Line {
  std::string_view op;
  std::string_view problem;
  std::span<const std::uint8_t> rest;  ///< what follows the line

  Line(const std::uint8_t* data, std::size_t size) {
    const std::string_view all(reinterpret_cast<const char*>(data), size);
    const std::string_view line = all.substr(0, all.find('\n'));
    op = line.substr(0, line.find(' '));
    problem = line.substr(op.size());
    rest = std::span(data, size).subspan(line.size() < size ? line.size() + 1 : size);
  }
};

}  // namespace fenestra::fuzz
