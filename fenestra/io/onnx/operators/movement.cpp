// Operators that move elements and compute nothing. Values and integers go the same way.
#include <fenestra/io/onnx/call.hpp>
#include <fenestra/io/onnx/integers.hpp>
#include <fenestra/ops/gather/gather.hpp>
#include <fenestra/ops/pad/pad.hpp>

#include <algorithm>
#include <limits>

namespace fenestra::onnx {

namespace {

template <class T>
Results<T> concat_rule(Call<T>& c) {
  const Index given = c.since < 4 ? c.integer("axis", 1) : c.integer("axis");
  const int axis = resolve_axis(given, c.at(0).rank());
  bool known = true;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    known = known && !c.at(i).is_real() && c.at(i).is_known();
  }
  Shape result = c.shape(0);
  Checked extent = 0;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    extent = extent + (axis < c.at(i).rank() ? c.shape(i)[axis] : 0);
  }
  result[axis] = extent.ok() ? extent.value() : kMaxElements + 1;
  c.require_budget(result);
  if (known) {
    std::vector<Tensor<Index>> parts;
    for (std::size_t i = 0; i < c.inputs.size(); ++i) {
      parts.push_back(c.at(i).numbers());
    }
    return c.same(concatenated(parts, axis));
  }
  std::vector<Value<T>> parts;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    parts.push_back(c.value(i));
  }
  return c.same(concatenated(parts, axis));
}

/// Sizes from an input or an attribute, or parts as equal as they can be, the last one smaller.
template <class T>
Results<T> split_rule(Call<T>& c) {
  const int axis = resolve_axis(c.integer("axis", 0), c.at(0).rank());
  const Index extent = c.shape(0)[axis];
  std::vector<Index> sizes = c.list_or(1, "split").value_or(std::vector<Index>());
  if (sizes.empty()) {
    const auto parts = static_cast<Index>(c.node.outputs.size());
    if (parts < 1 || c.integer("num_outputs", parts) != parts) {
      c.refuse("attribute num_outputs differs from " + std::to_string(parts) + " outputs",
               "equal numbers");
    }
    const Index size = (extent + parts - 1) / parts;
    for (Index i = 0; i < parts; ++i) {
      sizes.push_back(std::clamp<Index>(extent - i * size, 0, size));
    }
  }
  Results<T> results;
  Index begin = 0;
  for (const Index size : sizes) {
    const AxisRange range{axis, begin, size, 1};
    results.push_back(moved(c.at(0), [&](const auto& x) { return cut(x, std::span(&range, 1)); }));
    begin += size;
  }
  if (begin != extent) {
    c.refuse("axis " + std::to_string(axis) + " of " + to_string(c.shape(0)) +
                 " into parts with the sum " + std::to_string(begin),
             "parts that fit",
             ErrorCode::shape_mismatch);
  }
  return results;
}

/// Begin, count and step on one axis, with ends clamped as the standard says.
AxisRange clamped(int axis, Index extent, Index start, Index end, Index step) {
  if (step == 0) {
    throw Error(ErrorCode::invalid_stride, "a slice with step 0\n  fix: another step");
  }
  const auto bound = [&](Index at, Index least, Index most) {
    at = at < 0 ? at + extent : at;
    return std::clamp(at, least, most);
  };
  // Negative numbers count from the end; those that leave it twice stay at the border.
  start = start < -extent ? (step > 0 ? 0 : -1)
                          : bound(start, step > 0 ? 0 : -1, step > 0 ? extent : extent - 1);
  end = end < -extent ? (step > 0 ? 0 : -1) : bound(end, step > 0 ? 0 : -1, extent);
  Index count = 0;
  if (step > 0 && end > start) {
    count = (end - start - 1) / step + 1;
  } else if (step < 0 && start > end) {
    count = step == std::numeric_limits<Index>::min() ? 1 : (start - end - 1) / -step + 1;
  }
  return {axis, count == 0 ? 0 : start, count, count == 0 ? 1 : step};
}

template <class T>
Results<T> slice_rule(Call<T>& c) {
  const bool by_inputs = c.since >= 10;
  const std::vector<Index> starts = by_inputs ? c.list(1) : c.integers("starts");
  const std::vector<Index> ends = by_inputs ? c.list(2) : c.integers("ends");
  const std::optional<std::vector<Index>> axes = c.list_or(3, "axes");
  const std::vector<Index> steps = c.has(4) ? c.list(4) : std::vector<Index>(starts.size(), 1);
  if (ends.size() != starts.size() || steps.size() != starts.size() ||
      (axes && axes->size() != starts.size())) {
    c.refuse("starts, ends, axes and steps differ in length", "lists of one length");
  }
  const Shape shape = c.shape(0);
  std::vector<AxisRange> ranges;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const int axis = resolve_axis(axes ? (*axes)[i] : static_cast<Index>(i), shape.rank());
    ranges.push_back(clamped(axis, shape[axis], starts[i], ends[i], steps[i]));
  }
  return {moved(c.at(0), [&](const auto& x) { return cut(x, ranges); })};
}

/// 0 keeps an extent unless `allowzero`, -1 is what the others leave.
template <class T>
Results<T> reshape_rule(Call<T>& c) {
  const std::vector<Index> wanted = c.since >= 5 ? c.list(1) : c.integers("shape");
  const Shape from = c.shape(0);
  Shape to;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const bool keeps = wanted[i] == 0 && !c.flag("allowzero") && static_cast<int>(i) < from.rank();
    to.push_back(keeps ? from[static_cast<int>(i)] : wanted[i]);
  }
  if (from.elements() == 0) {  // nothing says what -1 is
    for (int axis = 0; axis < to.rank(); ++axis) {
      to[axis] = std::max<Index>(to[axis], 0);
    }
  }
  return {moved(c.at(0), [&](const auto& x) { return reshaped(x, to); })};
}

template <class T>
Results<T> flatten_rule(Call<T>& c) {
  const Shape from = c.shape(0);
  const Index axis = c.integer("axis", 1);
  const int at = axis == from.rank() ? from.rank() : resolve_axis(axis, from.rank());
  Shape to{1, 1};
  for (int i = 0; i < from.rank(); ++i) {
    to[i < at ? 0 : 1] *= from[i];
  }
  return {moved(c.at(0), [&](const auto& x) { return reshaped(x, to); })};
}

template <class T>
Results<T> transpose_rule(Call<T>& c) {
  const int rank = c.at(0).rank();
  std::vector<int> order = resolve_axes(c.integers("perm"), rank);
  if (!c.given("perm")) {
    for (int axis = rank - 1; axis >= 0; --axis) {
      order.push_back(axis);
    }
  }
  return {moved(c.at(0), [&](const auto& x) { return transposed(x, order); })};
}

template <class T>
Results<T> squeeze_rule(Call<T>& c) {
  const Shape from = c.shape(0);
  const std::optional<std::vector<Index>> given = c.list_or(1, "axes");
  const std::vector<int> axes = resolve_axes(given.value_or(std::vector<Index>()), from.rank());
  Shape to;
  for (int axis = 0; axis < from.rank(); ++axis) {
    const bool named = std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (named && from[axis] != 1) {
      c.refuse("axis " + std::to_string(axis) + " of " + to_string(from) + " is not 1",
               "axes of one element",
               ErrorCode::shape_mismatch);
    }
    if (given ? !named : from[axis] != 1) {
      to.push_back(from[axis]);
    }
  }
  return {moved(c.at(0), [&](const auto& x) { return reshaped(x, to); })};
}

template <class T>
Results<T> unsqueeze_rule(Call<T>& c) {
  const Shape from = c.shape(0);
  const std::vector<Index> given = c.list_or(1, "axes").value_or(std::vector<Index>());
  const int rank = from.rank() + static_cast<int>(given.size());
  const std::vector<int> axes = resolve_axes(given, rank);
  Shape to;
  int next = 0;
  for (int axis = 0; axis < rank; ++axis) {
    const bool is_new = std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (!is_new && next == from.rank()) {
      c.refuse("axes are named twice", "different axes");
    }
    to.push_back(is_new ? 1 : from[next++]);
  }
  return {moved(c.at(0), [&](const auto& x) { return reshaped(x, to); })};
}

template <class T>
Results<T> expand_rule(Call<T>& c) {
  const Shape to = broadcast_shape("expand", c.shape(0), shape_of(c.list(1)));
  c.require_budget(to);
  return {moved(c.at(0), [&](const auto& x) { return expanded(x, to); })};
}

/// Every axis becomes (repeats, extent) and then one again.
template <class T>
Results<T> tile_rule(Call<T>& c) {
  const Shape from = c.shape(0);
  std::vector<Index> repeats;
  if (c.since >= 6) {
    repeats = c.list(1);
  } else {
    repeats.assign(static_cast<std::size_t>(from.rank()), 1);
    repeats[static_cast<std::size_t>(resolve_axis(c.one(2), from.rank()))] = c.one(1);
  }
  if (static_cast<int>(repeats.size()) != from.rank() || from.rank() > kMaxRank / 2) {
    c.refuse(std::to_string(repeats.size()) + " repeats for " + to_string(from),
             "one for each axis, at most 8 axes",
             ErrorCode::rank_mismatch);
  }
  Shape apart;
  Shape wide;
  Shape to;
  for (int axis = 0; axis < from.rank(); ++axis) {
    const Index times = repeats[static_cast<std::size_t>(axis)];
    const Checked extent = Checked(times) * from[axis];
    apart.push_back(1);
    apart.push_back(from[axis]);
    wide.push_back(times);
    wide.push_back(from[axis]);
    to.push_back(times >= 0 && extent.ok() ? extent.value() : kMaxElements + 1);
  }
  c.require_budget(to);
  return {moved(c.at(0),
                [&](const auto& x) { return reshaped(expanded(reshaped(x, apart), wide), to); })};
}

// --- Padding -------------------------------------------------------------------------------------

/// Integers, cell by cell: which cell of x each one of y repeats along each axis, -1 for none.
Tensor<Index> padded(const Tensor<Index>& x,
                     const std::vector<LowHigh>& pads,
                     PadMode mode,
                     Index fill) {
  const PadGeometry g = resolve_pad(x.shape(), pads, {.mode = mode});
  Tensor<Index> y(g.y(), fill);
  const std::vector<Index> strides = dense_strides(x.shape());
  std::vector<AxisMap> maps;
  for (int axis = 0; axis < x.rank(); ++axis) {
    maps.push_back(g.adds_constants() ? AxisMap() : g.map(axis));
  }
  for (Index cell = 0; cell < y.size(); ++cell) {
    Index rest = cell;
    Index source = 0;
    for (int axis = x.rank() - 1; axis >= 0; --axis) {
      const Index at = rest % g.y()[axis];
      rest /= g.y()[axis];
      const Index from =
          g.adds_constants()
              ? at - g.low[axis]
              : maps[static_cast<std::size_t>(axis)].first[static_cast<std::size_t>(at)];
      if (from < 0 || from >= x.shape()[axis]) {
        source = -1;
        break;
      }
      source += from * strides[static_cast<std::size_t>(axis)];
    }
    if (source >= 0) {
      y.mutable_data()[cell] = x[source];
    }
  }
  return y;
}

template <class T>
Results<T> pad_rule(Call<T>& c) {
  const std::string mode = c.text("mode", "constant");
  std::vector<Index> given;
  if (c.since >= 11) {
    given = c.list(1);
  } else {
    given = c.integers(c.since >= 2 ? "pads" : "paddings");
  }
  const int rank = c.at(0).rank();
  std::vector<int> axes;
  if (c.has(3)) {
    axes = resolve_axes(c.list(3), rank);
  } else {
    for (int axis = 0; axis < rank; ++axis) {
      axes.push_back(axis);
    }
  }
  if (given.size() != 2 * axes.size()) {
    c.refuse(std::to_string(given.size()) + " pads for " + std::to_string(axes.size()) + " axes",
             "a begin for each axis, then an end for each",
             ErrorCode::rank_mismatch);
  }
  // Negative ones take away.
  std::vector<LowHigh> pads(static_cast<std::size_t>(rank), LowHigh(0, 0));
  std::vector<AxisRange> kept;
  Shape result = c.shape(0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Index low = given[i];
    const Index high = given[axes.size() + i];
    const Index extent = result[axes[i]];
    if (std::min(low, high) < -extent || std::max(low, high) > kMaxElements) {
      c.refuse("pads " + std::to_string(low) + " and " + std::to_string(high) + " of " +
                   std::to_string(extent) + " cells",
               "fewer",
               low < 0 || high < 0 ? ErrorCode::invalid_padding : ErrorCode::memory_limit);
    }
    pads[static_cast<std::size_t>(axes[i])] = {std::max<Index>(low, 0), std::max<Index>(high, 0)};
    const Index left = std::min<Index>(low, 0);
    kept.push_back({axes[i], -left, extent + left + std::min<Index>(high, 0), 1});
    const Checked total = Checked(extent) + low + high;
    result[axes[i]] = total.ok() ? total.value() : kMaxElements + 1;
  }
  c.require_budget(result);
  const PadMode chosen = mode == "constant"  ? PadMode::constant
                         : mode == "reflect" ? PadMode::reflect
                         : mode == "edge"    ? PadMode::replicate
                                             : PadMode::circular;
  if (chosen == PadMode::circular && mode != "wrap") {
    c.refuse_attribute("mode", mode);
  }
  double fill = c.real("value", 0);
  if (c.since >= 11 && c.has(2)) {
    const std::optional<double> number = c.known_number(2);
    if (!number) {
      c.refuse_unknown("the constant", "a constant");
    }
    fill = *number;
  }
  return {moved(c.at(0), [&](const auto& x) {
    if constexpr (std::is_same_v<std::decay_t<decltype(x)>, Tensor<Index>>) {
      return padded(cut(x, kept), pads, chosen, c.since >= 11 && c.has(2) ? c.one(2) : Index(fill));
    } else {
      return pad(cut(x, kept), pads, {.mode = chosen, .value = fill});
    }
  })};
}

// --- Blocks --------------------------------------------------------------------------------------

constexpr Index kLargestBlock = 1 << 20;  // whose square is a number

template <class T>
Results<T> depth_to_space(Call<T>& c) {
  const Shape x = c.shape(0);
  const Index b = c.integer("blocksize");
  const std::string mode = c.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") {
    c.refuse_attribute("mode", mode);
  }
  if (x.rank() != 4 || b < 1 || b > kLargestBlock || x[1] % (b * b) != 0) {
    c.refuse("x = " + to_string(x) + ", blocksize " + std::to_string(b),
             "four axes, and channels that the block divides",
             ErrorCode::shape_mismatch);
  }
  const Index channels = x[1] / (b * b);
  const bool deep = mode == "DCR";
  const Shape apart =
      deep ? Shape{x[0], b, b, channels, x[2], x[3]} : Shape{x[0], channels, b, b, x[2], x[3]};
  const std::vector<int> order =
      deep ? std::vector<int>{0, 3, 4, 1, 5, 2} : std::vector<int>{0, 1, 4, 2, 5, 3};
  return {moved(c.at(0), [&](const auto& v) {
    return reshaped(transposed(reshaped(v, apart), order),
                    Shape{x[0], channels, x[2] * b, x[3] * b});
  })};
}

template <class T>
Results<T> space_to_depth(Call<T>& c) {
  const Shape x = c.shape(0);
  const Index b = c.integer("blocksize");
  if (x.rank() != 4 || b < 1 || b > kLargestBlock || x[2] % b != 0 || x[3] % b != 0) {
    c.refuse("x = " + to_string(x) + ", blocksize " + std::to_string(b),
             "four axes, and a height and width that the block divides",
             ErrorCode::shape_mismatch);
  }
  const std::vector<int> order{0, 3, 5, 1, 2, 4};
  return {moved(c.at(0), [&](const auto& v) {
    return reshaped(transposed(reshaped(v, Shape{x[0], x[1], x[2] / b, b, x[3] / b, b}), order),
                    Shape{x[0], x[1] * b * b, x[2] / b, x[3] / b});
  })};
}

/// Slices (or elements) of x by indices of every kind.
template <class T>
Results<T> gather_rule(Call<T>& c, bool slices) {
  const int axis = resolve_axis(c.integer("axis", 0), c.at(0).rank());
  const GatherGeometry g = gather_geometry(c.shape(0), c.shape(1), axis, slices);
  c.require_budget(g.y_shape());
  if (c.at(1).as_indices() != nullptr && c.at(0).as_numbers() == nullptr) {
    const Indices cells = gather_cells(g, c.at(1).indices());
    return c.same(fenestra::take(c.value(0), cells, g.y_shape()));
  }
  const Tensor<Index> cells =
      gather_cells(g, Selection(c.at(1).numbers())).indices().reshaped(g.y_shape());
  return {moved(c.at(0), [&](const auto& x) { return picked(x, cells); })};
}

}  // namespace

void add_movement(OperatorList& list) {
  list.family("movement");
  list.add(
      "Concat", {1, 4, 11, 13}, []<class T>(Call<T>& c) -> Results<T> { return concat_rule(c); });
  list.add(
      "Split", {1, 2, 11, 13, 18}, []<class T>(Call<T>& c) -> Results<T> { return split_rule(c); });
  list.add(
      "Slice", {1, 10, 11, 13}, []<class T>(Call<T>& c) -> Results<T> { return slice_rule(c); });
  list.add("Reshape", {1, 5, 13, 14, 19, 21, 23, 24, 25}, []<class T>(Call<T>& c) -> Results<T> {
    return reshape_rule(c);
  });
  list.add("Flatten", {1, 9, 11, 13, 21, 23, 24, 25}, []<class T>(Call<T>& c) -> Results<T> {
    return flatten_rule(c);
  });
  list.add("Transpose", {1, 13, 21, 23, 24, 25}, []<class T>(Call<T>& c) -> Results<T> {
    return transpose_rule(c);
  });
  list.add("Squeeze", {1, 11, 13, 21, 23, 24, 25}, []<class T>(Call<T>& c) -> Results<T> {
    return squeeze_rule(c);
  });
  list.add("Unsqueeze", {1, 11, 13, 21, 23, 24, 25}, []<class T>(Call<T>& c) -> Results<T> {
    return unsqueeze_rule(c);
  });
  list.add("Expand", {8, 13}, []<class T>(Call<T>& c) -> Results<T> { return expand_rule(c); });
  list.add("Tile", {1, 6, 13}, []<class T>(Call<T>& c) -> Results<T> { return tile_rule(c); });
  list.add("Pad", {1, 2, 11, 13, 18, 19, 21, 23, 24, 25}, []<class T>(Call<T>& c) -> Results<T> {
    return pad_rule(c);
  });
  list.add("DepthToSpace", {1, 11, 13}, []<class T>(Call<T>& c) -> Results<T> {
    return depth_to_space(c);
  });
  list.add(
      "SpaceToDepth", {1, 13}, []<class T>(Call<T>& c) -> Results<T> { return space_to_depth(c); });
  list.add("Gather", {1, 11, 13}, []<class T>(Call<T>& c) -> Results<T> {
    return gather_rule(c, true);
  });
  list.add("GatherElements", {11, 13}, []<class T>(Call<T>& c) -> Results<T> {
    return gather_rule(c, false);
  });
  list.add("Identity", {1, 13, 14, 16, 19, 21, 23, 24, 25}, []<class T>(Call<T>& c) -> Results<T> {
    return {c.at(0)};
  });
}

}  // namespace fenestra::onnx
