// RNN, GRU and LSTM: the gates of all steps from the input at once, then step by step.
#include <fenestra/io/onnx/call.hpp>
#include <fenestra/io/onnx/integers.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/matmul/matmul.hpp>
#include <fenestra/ops/where/where.hpp>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace fenestra::onnx {

namespace {

template <class T>
using Curve = std::function<Value<T>(const Value<T>&)>;

template <class T>
Curve<T> function_of(const Call<T>& c,
                     std::string name,
                     std::optional<double> a,
                     std::optional<double> b) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  if (name == "sigmoid") {
    return [](const Value<T>& x) { return sigmoid(x); };
  }
  if (name == "tanh") {
    return [](const Value<T>& x) { return tanh(x); };
  }
  if (name == "relu") {
    return [](const Value<T>& x) { return relu(x); };
  }
  if (name == "softsign") {
    return [](const Value<T>& x) { return x / (abs(x) + 1); };
  }
  if (name == "softplus") {
    return [](const Value<T>& x) { return softplus(x); };
  }
  if (name == "leakyrelu") {
    return [slope = a.value_or(0.01)](const Value<T>& x) { return leaky_relu(x, slope); };
  }
  if (name == "elu") {
    return [alpha = a.value_or(1)](const Value<T>& x) { return elu(x, alpha); };
  }
  if (name == "affine") {
    return [alpha = a.value_or(1), beta = b.value_or(0)](const Value<T>& x) {
      return x * alpha + beta;
    };
  }
  if (name == "scaledtanh") {
    return [alpha = a.value_or(1), beta = b.value_or(1)](const Value<T>& x) {
      return tanh(x * beta) * alpha;
    };
  }
  if (name == "hardsigmoid") {
    return [alpha = a.value_or(0.2), beta = b.value_or(0.5)](const Value<T>& x) {
      return clip(x * alpha + beta, 0, 1);
    };
  }
  c.refuse("the activation " + name,
           "one of Sigmoid, Tanh, Relu, Softsign, Softplus, LeakyRelu, "
           "Elu, Affine, ScaledTanh, HardSigmoid");
}

/// What one direction is made of.
template <class T>
struct Cell {
  Index hidden = 0;
  std::vector<Curve<T>> functions;
  Value<T> w;  ///< (gates * hidden, input)
  // (hidden, gates * hidden): transposed once, since every step multiplies by it, and a product by
  // few rows reads such a matrix where it lies.
  Value<T> r;
  std::optional<Value<T>> r_candidate;  ///< (hidden, hidden), the last gate's, where it is apart
  Value<T> w_bias;
  Value<T> r_bias;
  std::optional<Value<T>> peephole;  ///< (3 * hidden)
  double clip = 0;                   ///< 0: none
  bool flag = false;                 ///< linear_before_reset of a GRU, input_forget of an LSTM

  /// Columns of gate `i`.
  Value<T> gate(const Value<T>& all, Index i) const {
    return slice(all, all.rank() - 1, i * hidden, hidden);
  }
  /// The state's part of the gates.
  Value<T> from_state(const Value<T>& h) const { return matmul_matrices(h, r, {}, &r_bias); }
  Value<T> apply(std::size_t f, const Value<T>& x) const {
    return functions[f](clip > 0 ? fenestra::clip(x, -clip, clip) : x);
  }
};

/// Hidden state, and that of the cell in an LSTM.
template <class T>
struct State {
  Value<T> h;
  Value<T> c;
};

/// From the input's part of the gates (batch, gates * hidden), biases added.
template <class T>
using Advance = State<T> (*)(const Cell<T>&, const Value<T>&, const State<T>&);

template <class T>
State<T> advance_rnn(const Cell<T>& cell, const Value<T>& from_x, const State<T>& state) {
  return {cell.apply(0, from_x + cell.from_state(state.h)), state.c};
}

template <class T>
State<T> advance_gru(const Cell<T>& cell, const Value<T>& from_x, const State<T>& state) {
  const Value<T> from_h = cell.from_state(state.h);
  const Value<T> z = cell.apply(0, cell.gate(from_x, 0) + cell.gate(from_h, 0));
  const Value<T> r = cell.apply(0, cell.gate(from_x, 1) + cell.gate(from_h, 1));
  Value<T> reset = r * cell.gate(from_h, 2);
  if (!cell.flag) {
    const Value<T> bias = cell.gate(cell.r_bias, 2);
    reset = matmul_matrices(Value<T>(r * state.h), *cell.r_candidate, {}, &bias);
  }
  const Value<T> candidate = cell.apply(1, cell.gate(from_x, 2) + reset);
  return {(1 - z) * candidate + z * state.h, state.c};
}

template <class T>
State<T> advance_lstm(const Cell<T>& cell, const Value<T>& from_x, const State<T>& state) {
  const Value<T> all = from_x + cell.from_state(state.h);
  const auto peeked = [&](Index i, const Value<T>& c) {
    const Index gate = i == 0 ? 0 : i == 1 ? 1 : 2;  // the order i, o, f
    const Value<T> sum = cell.gate(all, gate);
    return cell.peephole ? sum + cell.gate(*cell.peephole, i) * c : sum;
  };
  const Value<T> input = cell.apply(0, peeked(0, state.c));
  const Value<T> forget = cell.flag ? Value<T>(1 - input) : cell.apply(0, peeked(2, state.c));
  const Value<T> candidate = cell.apply(1, cell.gate(all, 3));
  const Value<T> c = forget * state.c + input * candidate;
  const Value<T> output = cell.apply(0, peeked(1, c));
  return {output * cell.functions[2](c), c};
}

/// What the operators differ in.
template <class T>
struct Kind {
  Index gates;
  std::vector<std::string> functions;
  Advance<T> advance;
  std::string_view flag;
};

/// Axis 0 or 1 of a state where the batch comes first.
template <class T>
Value<T> batch_moved(const Value<T>& x, bool batch_first) {
  return batch_first ? transpose(x, {1, 0, 2}) : x;
}

template <class T>
Cell<T> cell_of(const Call<T>& c, const Kind<T>& kind, Index direction, Index hidden) {
  const auto part = [&](std::size_t i) {
    const Value<T> all = c.value(i);
    Shape shape;
    for (int axis = 1; axis < all.rank(); ++axis) {
      shape.push_back(all.shape()[axis]);
    }
    return reshape(slice(all, 0, direction, 1), shape);
  };
  Cell<T> cell;
  cell.hidden = hidden;
  cell.w = part(1);
  cell.r = transpose(part(2), {1, 0});
  if (kind.gates == 3) {
    cell.r_candidate = cell.gate(cell.r, 2);
  }
  cell.clip = c.real("clip", 0);
  cell.flag = !kind.flag.empty() && c.flag(kind.flag);
  const Index rows = kind.gates * hidden;
  const Value<T> bias = c.has(3) ? part(3) : Value<T>(Tensor<T>(Shape{2 * rows}));
  cell.w_bias = slice(bias, 0, 0, rows);
  cell.r_bias = slice(bias, 0, rows, rows);
  if (c.has(7)) {
    cell.peephole = part(7);
  }
  const Attribute* names = c.node.find("activations");
  const Attribute* alphas = c.node.find("activation_alpha");
  const Attribute* betas = c.node.find("activation_beta");
  const std::size_t count = kind.functions.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = static_cast<std::size_t>(direction) * count + i;
    const auto number = [&](const Attribute* list) -> std::optional<double> {
      return list != nullptr && at < list->floats.size()
                 ? std::optional<double>(static_cast<double>(list->floats[at]))
                 : std::nullopt;
    };
    const std::string name =
        names != nullptr && at < names->strings.size() ? names->strings[at] : kind.functions[i];
    cell.functions.push_back(function_of(c, name, number(alphas), number(betas)));
  }
  return cell;
}

template <class T>
Results<T> recurrent_rule(Call<T>& c, const Kind<T>& kind) {
  const bool batch_first = c.flag("layout");
  const Value<T> x = batch_moved(c.value(0), batch_first);
  const std::string order = c.text("direction", "forward");
  if (order != "forward" && order != "reverse" && order != "bidirectional") {
    c.refuse_attribute("direction", order);
  }
  if (x.rank() != 3 || c.at(2).rank() != 3) {
    c.refuse("x = " + to_string(x.shape()) + ", R = " + to_string(c.shape(2)),
             "three axes each",
             ErrorCode::rank_mismatch);
  }
  const Index steps = x.shape()[0];
  const Index batch = x.shape()[1];
  const Index hidden = c.shape(2)[2];
  const Index directions = order == "bidirectional" ? 2 : 1;
  // The largest of what is made: the gates of all steps, or all states of both directions.
  c.require_budget(Shape{steps, batch, std::max<Index>(kind.gates, directions), hidden});
  const bool has_lengths = c.has(4);
  const std::vector<Index> lengths = has_lengths ? c.list(4) : std::vector<Index>();
  /// 1 for the sequences that have this step.
  const auto active = [&](Index t) {
    Tensor<T> mask(Shape{batch, 1});
    for (std::size_t i = 0; i < lengths.size() && i < static_cast<std::size_t>(batch); ++i) {
      mask.mutable_data()[i] = t < lengths[i] ? T(1) : T(0);
    }
    return Value<T>(mask);
  };
  const Value<T> zero(Tensor<T>(Shape{batch, hidden}));
  std::vector<Value<T>> sequences, last_h, last_c;
  for (Index d = 0; d < directions; ++d) {
    const Cell<T> cell = cell_of(c, kind, d, hidden);
    const auto initial = [&](std::size_t i) {
      return c.has(i) ? reshape(slice(batch_moved(c.value(i), batch_first), 0, d, 1),
                                Shape{batch, hidden})
                      : zero;
    };
    State<T> state{initial(5), initial(6)};
    const Value<T> from_x = linear(x, cell.w, cell.w_bias);
    std::vector<Value<T>> outputs(static_cast<std::size_t>(steps));
    const bool reverse = order == "reverse" || d == 1;
    for (Index i = 0; i < steps; ++i) {
      const Index t = reverse ? steps - 1 - i : i;
      const Value<T> now = reshape(slice(from_x, 0, t, 1), Shape{batch, kind.gates * hidden});
      const State<T> next = kind.advance(cell, now, state);
      if (has_lengths) {
        const Value<T> mask = active(t);
        state = {where(mask, next.h, state.h), where(mask, next.c, state.c)};
        outputs[static_cast<std::size_t>(t)] = where(mask, next.h, zero);
      } else {
        state = next;
        outputs[static_cast<std::size_t>(t)] = next.h;
      }
    }
    sequences.push_back(stack(outputs, 0));
    last_h.push_back(state.h);
    last_c.push_back(state.c);
  }
  const Value<T> y = stack(sequences, 1);  // (steps, directions, batch, hidden)
  Results<T> results = c.same(batch_first ? transpose(y, {2, 0, 1, 3}) : y);
  results.emplace_back(batch_moved(stack(last_h, 0), batch_first), c.at(0).type());
  results.emplace_back(batch_moved(stack(last_c, 0), batch_first), c.at(0).type());
  return results;
}

}  // namespace

void add_recurrent(OperatorList& list) {
  list.family("recurrent");
  list.add("RNN", {1, 7, 14, 22}, []<class T>(Call<T>& c) -> Results<T> {
    return recurrent_rule(c, Kind<T>{1, {"Tanh"}, &advance_rnn<T>, ""});
  });
  list.add("GRU", {1, 3, 7, 14, 22}, []<class T>(Call<T>& c) -> Results<T> {
    return recurrent_rule(c,
                          Kind<T>{3, {"Sigmoid", "Tanh"}, &advance_gru<T>, "linear_before_reset"});
  });
  list.add("LSTM", {1, 7, 14, 22}, []<class T>(Call<T>& c) -> Results<T> {
    return recurrent_rule(
        c, Kind<T>{4, {"Sigmoid", "Tanh", "Tanh"}, &advance_lstm<T>, "input_forget"});
  });
}

}  // namespace fenestra::onnx
