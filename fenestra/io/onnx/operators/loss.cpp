// Losses of labels: negative log likelihood, and cross entropy of scores.
#include <fenestra/io/onnx/call.hpp>
#include <fenestra/io/onnx/integers.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/gather/gather.hpp>
#include <fenestra/ops/loss/loss.hpp>
#include <fenestra/ops/softmax/softmax.hpp>

namespace fenestra::onnx {

namespace {

/// Minus the weighted log probabilities (N, C, ...) of the labels (N, ...). A label that is to be
/// ignored weighs nothing.
template <class T>
Value<T> label_loss(const Call<T>& c, const Value<T>& log_probabilities) {
  const std::string reduction = c.text("reduction", "mean");
  if (reduction != "mean" && reduction != "sum" && reduction != "none") {
    c.refuse_attribute("reduction", reduction);
  }
  const Shape lines = c.shape(1);
  std::optional<Value<T>> weight;  // of each label; nothing: 1
  Indices labels = c.at(1).indices();
  if (c.given("ignore_index")) {
    const Index ignored = c.integer("ignore_index");
    const Tensor<Index> given = c.at(1).numbers();
    weight = Value<T>(given.map([&](Index label) { return label == ignored ? T(0) : T(1); }));
    labels = Indices(given.map([&](Index label) { return label == ignored ? Index{0} : label; }));
  }
  if (c.has(2)) {
    const Value<T> of_label = take(c.value(2), labels, 0);
    weight = weight ? *weight * of_label : of_label;
  }
  const Indices cells = label_cells(log_probabilities.shape(), labels);
  Value<T> loss = neg(fenestra::take(log_probabilities, cells, lines));
  loss = weight ? loss * *weight : loss;
  if (reduction == "none") {
    return loss;
  }
  if (reduction == "sum") {
    return sum(loss);
  }
  return weight ? sum(loss) / sum(*weight) : mean(loss);
}

}  // namespace

void add_losses(OperatorList& list) {
  list.family("loss");
  list.add("NegativeLogLikelihoodLoss", {12, 13, 22}, []<class T>(Call<T>& c) -> Results<T> {
    return c.same(label_loss(c, c.value(0)));
  });
  list.add("SoftmaxCrossEntropyLoss", {12, 13}, []<class T>(Call<T>& c) -> Results<T> {
    const Value<T> log_probabilities = log_softmax(c.value(0), 1);
    Results<T> results = c.same(label_loss(c, log_probabilities));
    results.emplace_back(log_probabilities, c.at(0).type());
    return results;
  });
}

}  // namespace fenestra::onnx
