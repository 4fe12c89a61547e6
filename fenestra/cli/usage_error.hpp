// A command line that asks for something the command does not offer.
#pragma once

#include <stdexcept>

namespace fenestra::cli {

class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace fenestra::cli
