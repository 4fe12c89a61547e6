// Network<T>: an ONNX model that runs, as an ordinary function of values. Tapes, jvp, vmap and
// compile work on it as on any other, and nn::Trainer trains it.
//
//   onnx::Network<float> net(onnx::read_model("net.onnx"));
//   Tensor<float> y = net(x);
//   auto results = net.run({{"image", image}, {"size", Tensor<Index>(Shape{2}, {480, 640})}});
//
// Its weights are slots under the names of the initialisers. A floating-point initialiser (or
// Constant) is trained where an operator reads it as weights, or where it has more than one element
// and is no setting (a bound, an exponent, scales). Statistics of batch norm are buffers; so are
// weights that were frozen. Shapes come from the inputs that are given; a model's own are labels.
//
// All that keeps a model from running is said at once, when it is made, one line each.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/io/onnx/datum.hpp>
#include <fenestra/io/onnx/model.hpp>
#include <fenestra/nn/pass.hpp>
#include <fenestra/nn/slots.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra::onnx {

/// With which statistics batch norm works in training.
enum class BatchNormMode {
  frozen,  ///< the model's own, as in inference
  batch,   ///< those of the batch; the model's own follow with the momentum the node says
};

struct NetworkOptions {
  /// Bytes that one result of an operator may have.
  std::uint64_t budget = std::uint64_t{4} << 30;
  BatchNormMode batch_norm = BatchNormMode::frozen;
  /// Values to give instead of the model's outputs; what only those need is left out.
  std::vector<std::string> outputs = {};
};

/// Numbers of a model that have a slot.
template <class T>
struct Weight {
  std::string name;
  bool trained = true;
  bool is_statistic = false;  ///< of batch norm
  nn::Parameter<T> parameter = {};
  nn::Buffer<T> buffer = {};  ///< where it is not trained

  const Value<T>& value() const { return trained ? parameter.value : buffer.value; }
  Value<T>& value() { return trained ? parameter.value : buffer.value; }
};

template <class T>
struct Plan;

template <class T>
class FENESTRA_API Network {
 public:
  using Scalar = T;
  using Data = std::map<std::string, Datum<T>, std::less<>>;
  /// As summaries and Python call it.
  static constexpr std::string_view kind = "onnx";

  /// Throws `unknown_operator` with all that keeps the model from running.
  explicit Network(Model model, const NetworkOptions& options = {});

  /// What must be given, and what comes out. Dimensions are what the model says.
  const std::vector<ValueInfo>& inputs() const;
  const std::vector<ValueInfo>& outputs() const;
  const Model& model() const;
  const NetworkOptions& options() const { return options_; }
  void set_batch_norm(BatchNormMode mode) { options_.batch_norm = mode; }

  /// Inputs and outputs by name. An initialiser may be given too, and is used instead.
  Data run(const Data& inputs) const;
  Data run(const Data& inputs, nn::Pass<T>& pass) const;
  /// The only input and the first output.
  Value<T> operator()(const Value<T>& x) const;
  Value<T> operator()(const Value<T>& x, nn::Pass<T>& pass) const;
  Tensor<T> operator()(const Tensor<T>& x) const { return (*this)(Value<T>(x)).tensor(); }

  /// In the order of the file.
  const std::vector<Weight<T>>& weights() const { return weights_; }
  std::vector<Weight<T>>& weights() { return weights_; }
  /// Null where there is none of this name.
  const Weight<T>* find_weight(std::string_view name) const;
  Weight<T>* find_weight(std::string_view name);
  /// A weight that is frozen has no derivative and stays; statistics are never trained.
  void set_trained(std::string_view name, bool trained);

  /// What would go wrong with inputs of these shapes: nothing is computed but shapes. Inputs that
  /// are not named have the model's extents.
  std::vector<Problem> check(const std::map<std::string, Shape>& shapes = {}) const;
  /// Weights from which no derivative reaches an output, with the node that stops it.
  std::vector<Problem> cut_off() const;

  template <class F>
  void slots(F&& f) {
    for (Weight<T>& weight : weights_) {
      if (weight.trained) {
        f(std::string_view(weight.name), weight.parameter);
      } else {
        f(std::string_view(weight.name), weight.buffer);
      }
    }
  }

 private:
  Data run(const Data& inputs, nn::Pass<T>* pass) const;
  Value<T> call(const Value<T>& x, nn::Pass<T>* pass) const;

  NetworkOptions options_;
  std::vector<Weight<T>> weights_;
  std::shared_ptr<const Plan<T>> plan_;
};

extern template class Network<float>;
extern template class Network<double>;

/// What keeps a model from running, whatever the inputs are.
FENESTRA_API std::vector<Problem> problems(const Model& model, const NetworkOptions& options = {});
/// The same, and what would go wrong with inputs of these shapes where nothing is in its way;
/// inputs that are not named have the model's extents.
FENESTRA_API std::vector<Problem> problems(const Model& model,
                                           const std::map<std::string, Shape>& shapes,
                                           const NetworkOptions& options = {});

}  // namespace fenestra::onnx
