// What `explain --kernels` says of a problem: every candidate of every direction, in the order in
// which they are asked.
#pragma once

#include <string>
#include <vector>

namespace fenestra {

struct KernelChoice {
  std::string direction;  ///< e.g. "input_grad"
  std::string name;       ///< <op>_<dtype>_<algorithm>
  std::string refusal;    ///< why it does not apply; empty where it does
  bool able = false;      ///< it could run all the same, if slowly
};

}  // namespace fenestra
