// Shapes, constants, types, and the choice between two.
#include <fenestra/io/onnx/call.hpp>
#include <fenestra/io/onnx/integers.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/where/where.hpp>

#include <algorithm>
#include <cmath>

namespace fenestra::onnx {

namespace {

/// x with another type. Numbers towards zero, truth values by being zero or not.
template <class T>
Datum<T> cast(const Datum<T>& x, ElementType to) {
  if (!number_type(to)) {
    throw Error(ErrorCode::dtype_mismatch,
                "a cast to " + type_name(to) + "\n  fix: numbers or truth values");
  }
  if (is_floating(to)) {
    return Datum<T>(x.value(), to);
  }
  if (x.as_indices() != nullptr) {
    return Datum<T>(x.indices(), to);
  }
  if (to == ElementType::boolean) {
    if (x.as_numbers() != nullptr) {
      return Datum<T>(x.numbers().map([](Index n) { return Index{n != 0}; }), to);
    }
    return Datum<T>(not_equal(x.value(), scalar_constant<Value<T>>(T(0))), to);
  }
  if (x.is_known()) {
    return Datum<T>(x.numbers().map([&](Index n) { return wrapped(to, n); }), to);
  }
  const Value<T> value = x.value();
  return Datum<T>(sign(value) * floor(abs(value)), to);
}

/// Before version 6 a type is a word.
template <class T>
ElementType cast_target(const Call<T>& c) {
  const Attribute& to = c.required("to");
  if (c.since >= 6 || to.s.empty()) {
    return static_cast<ElementType>(to.i);
  }
  constexpr std::pair<std::string_view, ElementType> kWords[] = {
      {"FLOAT", ElementType::float32},
      {"UINT8", ElementType::uint8},
      {"INT8", ElementType::int8},
      {"UINT16", ElementType::uint16},
      {"INT16", ElementType::int16},
      {"INT32", ElementType::int32},
      {"INT64", ElementType::int64},
      {"BOOL", ElementType::boolean},
      {"FLOAT16", ElementType::float16},
      {"DOUBLE", ElementType::float64},
      {"UINT32", ElementType::uint32},
      {"UINT64", ElementType::uint64},
  };
  for (const auto& [word, type] : kWords) {
    if (word == to.s) {
      return type;
    }
  }
  c.refuse_attribute("to", to.s);
}

template <class T>
Datum<T> from_file(const TensorData& tensor) {
  return is_floating(tensor.type) ? Datum<T>(tensor.read<T>(), tensor.type)
                                  : Datum<T>(tensor.read<Index>(), tensor.type);
}

template <class T>
Results<T> constant_rule(Call<T>& c) {
  if (const Attribute* value = c.node.find("value"); value != nullptr && value->t) {
    return {from_file<T>(*value->t)};
  }
  if (const Attribute* value = c.node.find("value_float")) {
    return {Datum<T>(Tensor<T>(Shape{}, static_cast<T>(value->f)), ElementType::float32)};
  }
  if (const Attribute* value = c.node.find("value_int")) {
    return {Datum<T>(Tensor<Index>(Shape{}, value->i))};
  }
  if (const Attribute* value = c.node.find("value_ints")) {
    return {Datum<T>(vector_of(value->ints))};
  }
  if (const Attribute* value = c.node.find("value_floats")) {
    Tensor<T> numbers(Shape{static_cast<Index>(value->floats.size())});
    std::copy(value->floats.begin(), value->floats.end(), numbers.mutable_data());
    return {Datum<T>(numbers, ElementType::float32)};
  }
  c.refuse("a constant of strings, or a sparse one", "dense numbers");
}

template <class T>
Results<T> constant_of_shape(Call<T>& c) {
  const Shape shape = shape_of(c.list(0));
  c.require_budget(shape);
  const Attribute* value = c.node.find("value");
  if (value == nullptr || !value->t) {
    return {Datum<T>(Tensor<T>(shape), ElementType::float32)};
  }
  const Datum<T> one = from_file<T>(*value->t);
  if (one.shape().elements() != 1) {
    c.refuse("attribute value has the shape " + to_string(one.shape()), "one element");
  }
  if (const Tensor<Index>* number = one.as_numbers()) {
    return {Datum<T>(Tensor<Index>(shape, (*number)[0]), one.type())};
  }
  return {Datum<T>(Tensor<T>(shape, one.value().plain()[0]), one.type())};
}

template <class T>
Results<T> shape_rule(Call<T>& c) {
  const Shape shape = c.shape(0);
  const auto bound = [&](Index at) {
    return std::clamp<Index>(at < 0 ? at + shape.rank() : at, 0, shape.rank());
  };
  const Index begin = bound(c.integer("start", 0));
  const Index end = bound(c.integer("end", shape.rank()));
  std::vector<Index> extents;
  for (Index axis = begin; axis < end; ++axis) {
    extents.push_back(shape[static_cast<int>(axis)]);
  }
  return {Datum<T>(vector_of(extents))};
}

template <class T>
Results<T> range_rule(Call<T>& c) {
  const auto length = [&](double start, double limit, double delta) {
    if (delta == 0 || !std::isfinite((limit - start) / delta)) {
      c.refuse("a range with step " + std::to_string(delta), "numbers with an end");
    }
    const double count = std::max(std::ceil((limit - start) / delta), 0.0);
    c.require_budget(Shape{count < 0x1p52 ? static_cast<Index>(count) : kMaxElements + 1});
    return static_cast<Index>(count);
  };
  if (!c.at(0).is_real()) {
    const Index start = c.one(0);
    const Index delta = c.one(2);
    const Index count = length(
        static_cast<double>(start), static_cast<double>(c.one(1)), static_cast<double>(delta));
    Tensor<Index> numbers(Shape{count});
    for (Index i = 0; i < count; ++i) {
      numbers.mutable_data()[i] = start + i * delta;
    }
    return c.same(numbers);
  }
  double bounds[3];
  for (std::size_t i = 0; i < 3; ++i) {
    const std::optional<double> known = c.known_number(i);
    if (!known) {
      c.refuse_unknown("a bound", "constants");
    }
    bounds[i] = *known;
  }
  const Index count = length(bounds[0], bounds[1], bounds[2]);
  Tensor<T> numbers(Shape{count});
  for (Index i = 0; i < count; ++i) {
    numbers.mutable_data()[i] = static_cast<T>(bounds[0] + static_cast<double>(i) * bounds[2]);
  }
  return {Datum<T>(numbers, c.at(0).type())};
}

template <class T>
Results<T> where_rule(Call<T>& c) {
  const ElementType type = c.at(1).type();
  require_broadcast_budget(c, c.shape(1), c.shape(2));
  if (!check_broadcast(c.shape(1), c.shape(2))) {
    require_broadcast_budget(c, c.shape(0), broadcast_shape("where", c.shape(1), c.shape(2)));
  }
  if (c.at(0).is_known() && !c.at(1).is_real() && c.at(1).is_known() && c.at(2).is_known()) {
    const Tensor<Index> mask = c.at(0).numbers();
    // Twice two operands: chosen or not, then both.
    const auto chosen = [&](std::size_t i, bool when) {
      return combine(
          mask, c.at(i).numbers(), [&](Index m, Index n) { return (m != 0) == when ? n : 0; });
    };
    const Tensor<Index> a = chosen(1, true);
    const Tensor<Index> b = chosen(2, false);
    return {Datum<T>(combine(a, b, [](Index x, Index y) { return x + y; }), type)};
  }
  return {Datum<T>(where(c.value(0), c.value(1), c.value(2)), type)};
}

}  // namespace

void add_shapes(OperatorList& list) {
  list.family("shape");
  list.add("Cast", {1, 6, 9, 13, 19, 21, 23, 24, 25}, []<class T>(Call<T>& c) -> Results<T> {
    return {cast(c.at(0), cast_target(c))};
  });
  list.add("CastLike", {15, 19, 21, 23, 24, 25}, []<class T>(Call<T>& c) -> Results<T> {
    return {cast(c.at(0), c.at(1).type())};
  });
  list.add("Constant",
           {1, 9, 11, 12, 13, 19, 21, 23, 24, 25},
           []<class T>(Call<T>& c) -> Results<T> { return constant_rule(c); });
  list.add(
      "ConstantOfShape",
      {9, 20, 21, 23, 24, 25},
      []<class T>(Call<T>& c) -> Results<T> { return constant_of_shape(c); },
      Derivative::none);
  list.add(
      "Shape",
      {1, 13, 15, 19, 21, 23, 24, 25},
      []<class T>(Call<T>& c) -> Results<T> { return shape_rule(c); },
      Derivative::none);
  list.add(
      "Size",
      {1, 13, 19, 21, 23, 24, 25},
      []<class T>(Call<T>& c) -> Results<T> {
        return {Datum<T>(Tensor<Index>(Shape{}, c.shape(0).elements().value_or(0)))};
      },
      Derivative::none);
  list.add(
      "Range",
      {11},
      []<class T>(Call<T>& c) -> Results<T> { return range_rule(c); },
      Derivative::none);
  list.add("Where", {9, 16}, []<class T>(Call<T>& c) -> Results<T> { return where_rule(c); });
}

}  // namespace fenestra::onnx
