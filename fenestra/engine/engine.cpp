// What the engine says and reckons with no scalar at all.
#include <fenestra/base/error.hpp>
#include <fenestra/engine/gradcheck.hpp>
#include <fenestra/engine/transforms.hpp>
#include <fenestra/engine/value.hpp>
#include <fenestra/engine/vmap.hpp>

#include <cmath>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra {

BatchIndices<Selection> plain_items(std::string_view op, const Indices& data) {
  const BatchIndices<Indices> items = data.items(data.level());
  if (items.indices.level() != 0) {
    throw Error(std::string(op),
                {.code = ErrorCode::unsupported, .argument = Argument::indices},
                std::string(op) +
                    ": its integer data has two hidden axes\n  fix: one vmap, with "
                    "the axes folded into one");
  }
  return {items.indices.plain(), items.count};
}

std::string GradcheckReport::text() const {
  std::ostringstream out;
  out.precision(17);
  out << (ok ? "gradients agree" : "gradients differ") << " on " << checked
      << " elements; worst: argument " << argument << ", element " << element << ": analytic "
      << analytic << ", numeric " << numeric << ", difference " << std::fabs(analytic - numeric)
      << ", explained " << allowed;
  return out.str();
}

namespace detail {

void throw_value_error(const Shape& shape, std::string_view why) {
  throw Error(ErrorCode::foreign_variable, "value: " + to_string(shape) + " " + std::string(why));
}

std::vector<int> moved_axis(std::string_view what, int rank, int from, int to) {
  const auto resolved = [&](int axis) {
    const int at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank) {
      throw Error(ErrorCode::rank_mismatch,
                  "vmap: axis " + std::to_string(axis) + " of " + std::string(what) + " with " +
                      std::to_string(rank) + " axes\n  fix: an axis from " + std::to_string(-rank) +
                      " to " + std::to_string(rank - 1));
    }
    return at;
  };
  const int source = resolved(from);
  const int target = resolved(to);
  std::vector<int> order;
  for (int axis = 0; axis < rank; ++axis) {
    if (axis != source) {
      order.push_back(axis);
    }
  }
  order.insert(order.begin() + target, source);
  return order;
}

void require_single_element(std::string_view transform, const Shape& y) {
  if (y.elements() == 1) {
    return;
  }
  throw Error(std::string(transform),
              {.code = ErrorCode::shape_mismatch, .argument = Argument::y},
              std::string(transform) + ": the function returned " + to_string(y) +
                  ", needed a single element\n  fix: sum or mean of it, or vjp with a seed");
}

}  // namespace detail

}  // namespace fenestra
