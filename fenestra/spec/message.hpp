// Turns a `Fault` into the text a person reads: operator, shapes, the formula with its numbers, and
// a fix.
//
// Run time only. The numbers come from the fault and from the axis it names, never from a second
// computation.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/spec/window.hpp>
#include <fenestra/tensor/layout.hpp>
#include <fenestra/tensor/shape.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra {

/// "height" and so on, counted from the innermost axis; "axis 2" where axes have no common names.
inline std::string axis_name(int rank, int axis) {
  static constexpr std::string_view kNames[] = {"depth", "height", "width"};
  if (rank == 1) {
    return "length";
  }
  if (rank > 3) {
    return "axis " + std::to_string(axis);
  }
  return std::string(kNames[3 - rank + axis]);
}

/// "(N,C,H,W)" for an activation with `rank` spatial axes.
inline std::string activation_label(int rank, bool batched, Layout layout) {
  static constexpr std::string_view kLetters = "DHW";
  std::string spatial;
  for (int axis = 0; axis < rank; ++axis) {
    if (axis > 0) {
      spatial += ",";
    }
    if (rank == 1) {
      spatial += "L";
    } else if (rank <= 3) {
      spatial += kLetters[static_cast<std::size_t>(3 - rank + axis)];
    } else {
      spatial += "S" + std::to_string(axis);
    }
  }
  const std::string inner = layout == Layout::channels_first ? "C," + spatial : spatial + ",C";
  return std::string("(") + (batched ? "N," : "") + inner + ")";
}

/// Everything a message needs besides the fault itself.
struct FaultContext {
  struct Named {
    std::string label;  ///< e.g. "x (N,C,H,W)"
    Shape shape;
  };
  std::string_view op;
  std::vector<Named> shapes;
  std::string options;  ///< e.g. "stride 2, padding 0"
  int rank = 0;         ///< spatial axes
  WindowAxis axis;      ///< the axis at fault, as far as it was resolved
};

namespace detail {

inline std::string parenthesised(Index value) {
  return value < 0 ? "(" + std::to_string(value) + ")" : std::to_string(value);
}

struct Explanation {
  std::string cause;
  std::string fix;
};

inline Explanation explain_axis_fault(const Fault& f, const FaultContext& context) {
  const WindowAxis& a = context.axis;
  const std::string name = axis_name(context.rank, f.axis);
  const std::string argument = spelled_argument(argument_name(f.argument));
  const auto num = [](Index value) { return parenthesised(value); };
  switch (f.code) {
    case ErrorCode::kernel_exceeds_input: {
      const Index span = f.got;
      const Index overhang = a.rule == ExtentRule::ceil ? a.stride - 1 : 0;
      const std::string ceil = a.rule == ExtentRule::ceil ? " + " + num(overhang) : "";
      return {"floor((" + num(a.in) + " + " + num(a.pad_low) + " + " + num(a.pad_high) + " - " +
                  num(span) + ceil + ")/" + num(a.stride) +
                  ") + 1 = " + num(floor_div(f.needed - span, a.stride) + 1) + "   no window fits",
              "padding >= " + num(ceil_div(span - overhang - a.in, 2)) + " on " + name +
                  ", or input " + name + " >= " + num(span - overhang - a.pad_low - a.pad_high)};
    }
    case ErrorCode::empty_output: {
      const Index base = a.base_extent();
      const Checked lacking = Checked(1) - a.in;
      return {"(" + num(a.out) + " - 1)*" + num(a.stride) + " - " + num(a.pad_low) + " - " +
                  num(a.pad_high) + " + " + num(a.span()) + " + " + num(a.in - base) + " = " +
                  num(a.in) + "   no output is left",
              (lacking.ok() ? "padding smaller by " + num(lacking.value()) + " in total"
                            : "far smaller padding") +
                  " on " + name};
    }
    case ErrorCode::invalid_output_padding:
      return {"output_padding = " + num(f.got) + ", needed: 0 <= output_padding < max(stride " +
                  num(a.stride) + ", dilation " + num(a.dilation) + ")",
              "output_padding between 0 and " + num(f.needed) + " on " + name};
    case ErrorCode::invalid_output_size: {
      if (a.rule == ExtentRule::adaptive) {
        return {"output_size = " + num(f.got) + ", needed >= 1", "output_size >= 1 on " + name};
      }
      const Checked largest = Checked(f.needed) + (std::max(a.stride, a.dilation) - 1);
      const Index smallest = std::max<Index>(f.needed, 1);
      std::string fix = "output_size >= " + num(smallest) + " on " + name;
      if (largest.ok() && largest.value() < 1) {
        fix = "less padding on " + name + ", which leaves no output of any size";
      } else if (largest.ok()) {
        fix =
            "output_size between " + num(smallest) + " and " + num(largest.value()) + " on " + name;
      }
      return {"output_size = " + num(f.got) + ", (" + num(a.out) + " - 1)*" + num(a.stride) +
                  " - " + num(a.pad_low) + " - " + num(a.pad_high) + " + " + num(a.span()) + " = " +
                  num(f.needed) + " without output padding",
              fix};
    }
    case ErrorCode::overflow:
      return {"input " + num(a.rule == ExtentRule::transposed ? a.out : a.in) + ", kernel " +
                  num(a.kernel) + ", stride " + num(a.stride) + ", dilation " + num(a.dilation) +
                  ", padding " + num(a.pad_low) + " + " + num(a.pad_high) +
                  " do not fit into 64 bits",
              "smaller numbers on " + name};
    case ErrorCode::invalid_extent:
      return {"input extent = " + num(f.got) + ", needed >= 1", "input " + name + " >= 1"};
    default:
      return {argument + " = " + num(f.got) + ", needed >= " + num(f.needed),
              argument + " >= " + num(f.needed) + " on " + name};
  }
}

inline Explanation explain_plain_fault(const Fault& f) {
  const std::string argument = spelled_argument(argument_name(f.argument));
  const std::string got = std::to_string(f.got);
  const std::string needed = std::to_string(f.needed);
  switch (f.code) {
    case ErrorCode::rank_mismatch:
      switch (f.argument) {
        case Argument::x:
          return {argument + " has " + got + " axes, needed " + needed + " (a batch) or " +
                      std::to_string(f.needed - 1) + " (one sample)",
                  "add or remove axes of " + argument};
        case Argument::w:
          return {argument + " has " + got + " axes, needed 3 to " +
                      std::to_string(kMaxSpatialRank + 2),
                  "two channel axes and one axis per spatial dimension"};
        case Argument::kernel:
          if (f.got < 1 || f.got > kMaxSpatialRank) {
            return {"the number of spatial axes is " + got + ", needed 1 to " + needed,
                    argument + " with one value per spatial axis"};
          }
          [[fallthrough]];
        default:
          return {argument + " has " + got + " values for " + needed + " axes",
                  "one value for all axes, or " + needed + " values"};
      }
    case ErrorCode::channel_mismatch:
      return {spelled_argument("x") + " has " + got + " channels, " + spelled_argument("w") +
                  " takes " + needed,
              spelled_argument("w") + " for " + got + " channels, or " + spelled_argument("x") +
                  " with " + needed};
    case ErrorCode::channels_not_divisible:
      return {std::string(f.argument == Argument::w ? "output" : "input") + " channels " + got +
                  " are not divisible by groups " + needed,
              "groups that divide " + got};
    case ErrorCode::bias_mismatch:
      return {spelled_argument("b") + " has " + got + " elements on one axis, needed " + needed,
              spelled_argument("b") + " of shape (" + needed + ",)"};
    case ErrorCode::shape_mismatch:
      return {argument + " has another shape than the geometry asks for", "equal shapes"};
    case ErrorCode::overflow:
      return {"the number of elements or multiply-adds passes the limit of 2^53",
              "smaller extents"};
    case ErrorCode::invalid_groups: return {"groups = " + got + ", needed >= 1", "groups >= 1"};
    case ErrorCode::invalid_divisor:
      return {"divisor_override = " + got + ", needed: any number but 0",
              "leave it out, or another divisor"};
    case ErrorCode::invalid_exponent:
      return {argument + " is not a finite number above 0", argument + " > 0"};
    case ErrorCode::invalid_beta:
      return {"beta is zero or not finite",
              "a finite beta other than 0 (negative: smooth minimum)"};
    case ErrorCode::invalid_extent:
      return {argument + " has the extent " + got + ", needed >= " + needed, "extents >= 0"};
    default: return {argument + " = " + got + ", needed " + needed, "another " + argument};
  }
}

}  // namespace detail

inline Error make_error(const Fault& fault, const FaultContext& context) {
  std::string text = std::string(context.op) + ":";
  for (const auto& named : context.shapes) {
    // "x (N,C,H,W)": the name, then what its axes are.
    const std::size_t name = std::min(named.label.find(' '), named.label.size());
    text += (&named == context.shapes.data() ? " " : ", ") +
            spelled_argument(std::string_view(named.label).substr(0, name)) +
            named.label.substr(name) + " = " + to_string(named.shape);
  }
  if (!context.options.empty()) {
    text += ", " + context.options;
  }
  const bool on_axis = fault.axis >= 0;
  const auto explanation =
      on_axis ? detail::explain_axis_fault(fault, context) : detail::explain_plain_fault(fault);
  text += "\n  " + (on_axis ? axis_name(context.rank, fault.axis) + ": " : std::string()) +
          explanation.cause;
  text += "\n  fix: " + explanation.fix;
  return Error(std::string(context.op), fault, text);
}

}  // namespace fenestra
