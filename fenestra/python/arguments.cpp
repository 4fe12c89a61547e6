// What the arguments of functions mean: see arguments.hpp.
#include <fenestra/python/arguments.hpp>

namespace fenestra::python {

namespace {

constexpr std::string_view kCommon =
    "input: a tensor, an array, a number or a list of numbers.\n"
    "other: the second operand, of a shape that broadcasts with the first.\n"
    "exponent: the exponents, of a shape that broadcasts with the input's.\n"
    "tensors: a list of tensors or arrays.\n"
    "kernel_size: the extents of a window: one for all axes or one per axis; a list also says how "
    "many spatial axes there are.\n"
    "stride: cells from one window to the next: one for all axes or one per axis. Pools take the "
    "kernel's size where it is not given.\n"
    "padding: cells added around the input: an int, one per axis, a (low, high) pair per axis, "
    "'same' or 'valid'.\n"
    "return_indices: True also returns the places of the maxima.\n"
    "layout: 'channels_first', (N, C, spatial...), or 'channels_last', (N, spatial..., C).\n"
    "axis: an axis, several, or None for all; negative ones count from the last.\n"
    "reduction: 'mean' or 'sum' of all losses, or 'none' for each by itself.\n"
    "eps: what is added to the variance before its root is taken.\n"
    "indices: whole numbers, places along the axis.\n"
    "correction: what is taken off the number of elements before it divides; 1 for samples of a "
    "larger whole.\n"
    "condition: True or not 0 where the first is taken; truth values or numbers.\n"
    "letters: one letter for each axis of each operand, and of the result after '->'.\n"
    "alpha: how deep the function goes for negative numbers.\n"
    "start_axis: the first axis that is joined.\n"
    "end_axis: the last axis that is joined.\n"
    "parts: the number of equal parts, or a list of their extents.\n"
    "k: how many are taken.\n"
    "largest: False takes the smallest ones.\n";

}  // namespace

std::string_view argument_text(std::string_view lines, std::string_view name) {
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    if (line.starts_with(name) && line.substr(name.size()).starts_with(": ")) {
      return line.substr(name.size() + 2);
    }
    lines.remove_prefix(line.size() + (line.size() < lines.size() ? 1 : 0));
  }
  return {};
}

std::string_view common_argument_text(std::string_view name) {
  return argument_text(kCommon, name);
}

}  // namespace fenestra::python
