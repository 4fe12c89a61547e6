// Choosing and placing elements by integers, and integers from data: what ends detectors and begins
// language models.
#include <fenestra/io/onnx/call.hpp>
#include <fenestra/io/onnx/integers.hpp>
#include <fenestra/ops/cumsum/cumsum.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/pad/pad.hpp>
#include <fenestra/ops/sort/sort.hpp>
#include <fenestra/ops/where/where.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace fenestra::onnx {

namespace {

Index checked_index(Index index, Index extent) {
  if (index < -extent || index >= extent) {
    throw Error(ErrorCode::invalid_index,
                "index " + std::to_string(index) + " of " + std::to_string(extent) +
                    "\n  fix: from " + std::to_string(-extent) + " to " +
                    std::to_string(extent - 1));
  }
  return index < 0 ? index + extent : index;
}

// --- Placing -------------------------------------------------------------------------------------

Index reduced(const std::string& reduction, Index old, Index update) {
  if (reduction == "add") {
    return old + update;
  }
  if (reduction == "mul") {
    return old * update;
  }
  if (reduction == "max") {
    return std::max(old, update);
  }
  return reduction == "min" ? std::min(old, update) : update;
}

template <class T>
Value<T> reduced(const std::string& reduction, const Value<T>& old, const Value<T>& update) {
  if (reduction == "add") {
    return old + update;
  }
  if (reduction == "mul") {
    return old * update;
  }
  if (reduction == "max") {
    return maximum(old, update);
  }
  return reduction == "min" ? Value<T>(minimum(old, update)) : update;
}

/// `data` with `updates` at these cells. A cell that is named again is met in a round of its own,
/// so that every reduction is one of whole tensors.
template <class T>
Results<T> placed(const Call<T>& c, const Tensor<Index>& cells, const Datum<T>& updates) {
  const std::string reduction = c.text("reduction", "none");
  constexpr std::string_view kKnown[] = {"none", "add", "mul", "max", "min"};
  if (std::find(std::begin(kKnown), std::end(kKnown), reduction) == std::end(kKnown)) {
    c.refuse_attribute("reduction", reduction);
  }
  if (!c.at(0).is_real() && c.at(0).is_known() && updates.is_known()) {
    Tensor<Index> data = c.at(0).numbers();
    const Tensor<Index> given = updates.numbers();
    for (Index i = 0; i < cells.size(); ++i) {
      Index& place = data.mutable_data()[cells[i]];
      place = wrapped(c.at(0).type(), reduced(reduction, place, given[i]));
    }
    return c.same(data);
  }
  const Shape shape = c.shape(0);
  std::vector<Index> seen(static_cast<std::size_t>(shape.elements().value_or(0)));
  std::vector<std::vector<Index>> rounds;
  for (Index i = 0; i < cells.size(); ++i) {
    const Index round = seen[static_cast<std::size_t>(cells[i])]++;
    if (round == static_cast<Index>(rounds.size())) {
      rounds.emplace_back();
    }
    rounds[static_cast<std::size_t>(round)].push_back(i);
  }
  Value<T> y = c.value(0);
  const Value<T> flat = reshape(updates.value(), Shape{cells.size()});
  for (const std::vector<Index>& round : rounds) {
    const Tensor<Index> chosen = vector_of(round);
    const Tensor<Index> at = chosen.map([&](Index i) { return cells[i]; });
    Tensor<T> mask(shape);
    for (const Index cell : at.values()) {
      mask.mutable_data()[cell] = T(1);
    }
    const Value<T> spread = place(picked(flat, chosen), Indices(at), shape);
    y = where(Value<T>(mask), reduced(reduction, y, spread), y);
  }
  return c.same(y);
}

template <class T>
Results<T> scatter_elements(Call<T>& c) {
  const Shape shape = c.shape(0);
  const int axis = resolve_axis(c.integer("axis", 0), shape.rank());
  const Tensor<Index> indices = c.at(1).numbers();
  if (indices.rank() != shape.rank() || indices.shape() != c.shape(2)) {
    c.refuse("data " + to_string(shape) + ", indices " + to_string(indices.shape()) + ", updates " +
                 to_string(c.shape(2)),
             "equal ranks, and updates of the shape of the indices",
             ErrorCode::shape_mismatch);
  }
  const std::vector<Index> strides = dense_strides(shape);
  Tensor<Index> cells(indices.shape());
  for (Index i = 0; i < indices.size(); ++i) {
    Index rest = i;
    Index cell = 0;
    for (int a = shape.rank() - 1; a >= 0; --a) {
      const Index at = rest % indices.shape()[a];
      rest /= indices.shape()[a];
      cell += (a == axis ? checked_index(indices[i], shape[a]) : checked_index(at, shape[a])) *
              strides[static_cast<std::size_t>(a)];
    }
    cells.mutable_data()[i] = cell;
  }
  return placed(c, cells, c.at(2));
}

/// For each tuple of indices the cells of the slice that it names; the first `batch` axes are those
/// of the indices too.
template <class T>
Tensor<Index> slice_cells(const Call<T>& c, const Tensor<Index>& indices, int batch) {
  const Shape shape = c.shape(0);
  const Index last = indices.rank() > 0 ? indices.shape()[indices.rank() - 1] : 0;
  const int width = static_cast<int>(std::min<Index>(last, kMaxRank + 1));
  if (indices.rank() < 1 || batch < 0 || batch + width > shape.rank() || batch >= indices.rank()) {
    throw Error(ErrorCode::shape_mismatch,
                "indices " + to_string(indices.shape()) + " into " + to_string(shape) +
                    "\n  fix: tuples of at most as many numbers as there are axes");
  }
  const std::vector<Index> strides = dense_strides(shape);
  Shape result;
  Index tuples = 1;
  Index of_batch = 1;
  for (int axis = 0; axis + 1 < indices.rank(); ++axis) {
    result.push_back(indices.shape()[axis]);
    tuples *= indices.shape()[axis];
    of_batch *= axis >= batch ? indices.shape()[axis] : 1;
  }
  Index slice = 1;
  for (int axis = batch + width; axis < shape.rank(); ++axis) {
    result.push_back(shape[axis]);
    slice *= shape[axis];
  }
  const Index sample = batch > 0 ? strides[static_cast<std::size_t>(batch - 1)] : 0;
  c.require_budget(result);
  Tensor<Index> cells(result);
  for (Index i = 0; i < tuples; ++i) {
    Index begin = batch > 0 ? i / of_batch * sample : 0;
    for (int k = 0; k < width; ++k) {
      begin += checked_index(indices[i * width + k], shape[batch + k]) *
               strides[static_cast<std::size_t>(batch + k)];
    }
    for (Index j = 0; j < slice; ++j) {
      cells.mutable_data()[i * slice + j] = begin + j;
    }
  }
  return cells;
}

template <class T>
Results<T> scatter_nd(Call<T>& c) {
  const Tensor<Index> cells = slice_cells(c, c.at(1).numbers(), 0);
  if (cells.shape() != c.shape(2)) {
    c.refuse("updates " + to_string(c.shape(2)) + " for slices " + to_string(cells.shape()),
             "equal shapes",
             ErrorCode::shape_mismatch);
  }
  return placed(c, cells, c.at(2));
}

// --- Choosing ------------------------------------------------------------------------------------

template <class T>
Results<T> top_k(Call<T>& c) {
  const Index count = c.since >= 10 ? c.one(1) : c.integer("k");
  const int axis = resolve_axis(c.integer("axis", -1), c.at(0).rank());
  const Sorted<Value<T>> found =
      topk(c.value(0), count, {.axis = axis, .largest = c.flag("largest", true)});
  Results<T> results = c.same(found.values);
  results.emplace_back(found.indices);
  return results;
}

template <class T>
Results<T> one_hot(Call<T>& c) {
  const Tensor<Index> indices = c.at(0).numbers();
  const Index depth = c.one(1);
  const int axis = resolve_axis(c.integer("axis", -1), indices.rank() + 1);
  Shape shape;
  Index inner = 1;
  for (int i = 0; i <= indices.rank(); ++i) {
    const Index extent = i == axis ? depth : indices.shape()[i < axis ? i : i - 1];
    shape.push_back(extent);
    inner *= i > axis ? extent : 1;
  }
  c.require_budget(shape);
  Tensor<Index> hot(shape);
  for (Index i = 0; i < indices.size(); ++i) {
    const Index at = indices[i] < 0 ? indices[i] + depth : indices[i];
    if (at >= 0 && at < depth) {
      hot.mutable_data()[(i / inner * depth + at) * inner + i % inner] = 1;
    }
  }
  return {moved(c.at(2), [&](const auto& values) { return picked(values, hot); })};
}

template <class T>
Results<T> cumsum_rule(Call<T>& c) {
  const int axis = resolve_axis(c.one(1), c.at(0).rank());
  const bool reverse = c.flag("reverse");
  Value<T> x = c.value(0);
  const Index extent = x.shape()[axis];
  if (c.flag("exclusive") && extent > 0) {
    x = pad(slice(x, axis, reverse ? 1 : 0, extent - 1),
            {reverse ? LowHigh(0, 1) : LowHigh(1, 0)},
            {.axes = {axis}});
  }
  const Value<T> y = cumsum(x, axis, reverse);
  return !c.at(0).is_real() && c.at(0).is_known() ? c.same(Datum<T>(y).numbers()) : c.same(y);
}

template <class T>
Results<T> non_zero(Call<T>& c) {
  const Datum<T>& x = c.at(0);
  const Tensor<Index> mask =
      x.is_real()
          ? Datum<T>(not_equal(detached(x.value()), scalar_constant<Value<T>>(T(0)))).numbers()
          : x.numbers();
  const Shape shape = mask.shape();
  std::vector<Index> found;
  for (Index i = 0; i < mask.size(); ++i) {
    if (mask[i] != 0) {
      found.push_back(i);
    }
  }
  const auto count = static_cast<Index>(found.size());
  Tensor<Index> places(Shape{shape.rank(), count});
  const std::vector<Index> strides = dense_strides(shape);
  for (int axis = 0; axis < shape.rank(); ++axis) {
    for (Index i = 0; i < count; ++i) {
      places.mutable_data()[axis * count + i] = found[static_cast<std::size_t>(i)] /
                                                strides[static_cast<std::size_t>(axis)] %
                                                shape[axis];
    }
  }
  return {Datum<T>(places)};
}

template <class T>
Results<T> trilu(Call<T>& c) {
  const Shape shape = c.shape(0);
  if (shape.rank() < 2) {
    c.refuse("x = " + to_string(shape), "a matrix", ErrorCode::rank_mismatch);
  }
  const Index k = c.has(1) ? c.one(1) : 0;
  const bool upper = c.flag("upper", true);
  const Index rows = shape[shape.rank() - 2];
  const Index columns = shape[shape.rank() - 1];
  Tensor<Index> mask(Shape{rows, columns});
  for (Index i = 0; i < mask.size(); ++i) {
    const Index offset = i % columns - i / columns;
    mask.mutable_data()[i] = (upper ? offset >= k : offset <= k) ? 1 : 0;
  }
  if (!c.at(0).is_real() && c.at(0).is_known()) {
    return c.same(combine(c.at(0).numbers(), mask, [](Index a, Index b) { return a * b; }));
  }
  return c.same(where(Datum<T>(mask).value(), c.value(0), scalar_constant<Value<T>>(T(0))));
}

// --- Boxes ---------------------------------------------------------------------------------------

struct Box {
  double low[2];
  double high[2];

  double area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
};

double overlap(const Box& a, const Box& b) {
  double common = 1;
  for (int i = 0; i < 2; ++i) {
    common *= std::max(std::min(a.high[i], b.high[i]) - std::max(a.low[i], b.low[i]), 0.0);
  }
  const double all = a.area() + b.area() - common;
  return all > 0 ? common / all : 0;
}

template <class T>
Results<T> non_max_suppression(Call<T>& c) {
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    if (!c.at(i).is_known()) {
      c.refuse_unknown("which boxes stay",
                       "run the network outside compile and vmap, or cut it before this node");
    }
  }
  const Tensor<T> boxes = detached(c.value(0)).plain();
  const Tensor<T> scores = detached(c.value(1)).plain();
  if (boxes.rank() != 3 || scores.rank() != 3 || boxes.shape()[2] != 4 ||
      boxes.shape()[0] != scores.shape()[0] || boxes.shape()[1] != scores.shape()[2]) {
    c.refuse("boxes " + to_string(boxes.shape()) + ", scores " + to_string(scores.shape()),
             "boxes (batch, n, 4) and scores (batch, classes, n)",
             ErrorCode::shape_mismatch);
  }
  const Index most = c.has(2) ? c.one(2) : 0;
  const double threshold = c.has(3) ? c.known_number(3).value_or(0) : 0;
  const std::optional<double> least = c.has(4) ? c.known_number(4) : std::nullopt;
  const bool centred = c.flag("center_point_box");
  const Index count = boxes.shape()[1];
  const auto box_at = [&](Index sample, Index i) {
    const T* p = boxes.data() + (sample * count + i) * 4;
    Box box{};
    for (int axis = 0; axis < 2; ++axis) {
      const double a = static_cast<double>(p[axis]);
      const double b = static_cast<double>(p[axis + 2]);
      box.low[axis] = centred ? a - b / 2 : std::min(a, b);
      box.high[axis] = centred ? a + b / 2 : std::max(a, b);
    }
    return box;
  };
  std::vector<Index> found;
  for (Index line = 0; line < scores.shape()[0] * scores.shape()[1]; ++line) {
    const Index sample = line / scores.shape()[1];
    const T* of_class = scores.data() + line * count;
    std::vector<Index> order;
    for (Index i = 0; i < count; ++i) {
      if (!least || static_cast<double>(of_class[i]) > *least) {
        order.push_back(i);
      }
    }
    std::stable_sort(
        order.begin(), order.end(), [&](Index a, Index b) { return of_class[a] > of_class[b]; });
    std::vector<Box> kept;
    for (const Index i : order) {
      if (static_cast<Index>(kept.size()) >= most) {
        break;
      }
      const Box box = box_at(sample, i);
      if (std::none_of(kept.begin(), kept.end(), [&](const Box& other) {
            return overlap(box, other) > threshold;
          })) {
        kept.push_back(box);
        found.insert(found.end(), {sample, line % scores.shape()[1], i});
      }
    }
  }
  return {Datum<T>(vector_of(found).reshaped(Shape{static_cast<Index>(found.size()) / 3, 3}))};
}

}  // namespace

void add_selection(OperatorList& list) {
  list.family("selection");
  list.add("TopK", {1, 10, 11, 24}, []<class T>(Call<T>& c) -> Results<T> { return top_k(c); });
  list.add("OneHot", {9, 11}, []<class T>(Call<T>& c) -> Results<T> { return one_hot(c); });
  list.add("CumSum", {11, 14}, []<class T>(Call<T>& c) -> Results<T> { return cumsum_rule(c); });
  list.add("GatherND", {11, 12, 13}, []<class T>(Call<T>& c) -> Results<T> {
    const Tensor<Index> cells =
        slice_cells(c,
                    c.at(1).numbers(),
                    static_cast<int>(std::clamp<Index>(c.integer("batch_dims", 0), -1, kMaxRank)));
    return {moved(c.at(0), [&](const auto& x) { return picked(x, cells); })};
  });
  list.add("ScatterElements", {11, 13, 16, 18}, []<class T>(Call<T>& c) -> Results<T> {
    return scatter_elements(c);
  });
  list.add(
      "Scatter", {9, 11}, []<class T>(Call<T>& c) -> Results<T> { return scatter_elements(c); });
  list.add("ScatterND", {11, 13, 16, 18}, []<class T>(Call<T>& c) -> Results<T> {
    return scatter_nd(c);
  });
  list.add("Trilu", {14}, []<class T>(Call<T>& c) -> Results<T> { return trilu(c); });
  list.add(
      "NonZero",
      {9, 13},
      []<class T>(Call<T>& c) -> Results<T> { return non_zero(c); },
      Derivative::none);
  list.add(
      "NonMaxSuppression",
      {10, 11},
      []<class T>(Call<T>& c) -> Results<T> { return non_max_suppression(c); },
      Derivative::none);
}

}  // namespace fenestra::onnx
