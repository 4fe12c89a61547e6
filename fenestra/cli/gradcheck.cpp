// `fenestra gradcheck`: a model's gradients along random directions against difference quotients.
//
// A quotient with step h is wrong by truncation, which the change between h and 2h estimates, and
// by rounding, u|loss|/h. Rectifiers and maxima have kinks: where a step crosses one, the quotient
// is of neither side. A smaller step crosses fewer, so that smaller ones are tried where the first
// does not agree; a gradient that is wrong agrees with none, since what is explained must stay
// small beside the gradient itself.
#include <fenestra/base/text.hpp>
#include <fenestra/cli/gradcheck.hpp>
#include <fenestra/cli/table.hpp>
#include <fenestra/cli/terminal.hpp>
#include <fenestra/cli/text.hpp>
#include <fenestra/cli/wrap.hpp>
#include <fenestra/engine/tape.hpp>
#include <fenestra/nn/data/loader.hpp>
#include <fenestra/nn/initialise.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>

namespace fenestra::cli {

namespace {

/// A step explains at most this share of the gradient's length; more proves nothing.
constexpr double kMostExplained = 1e-3;

Tensor<double> unit_direction(const Shape& shape, const Key& key) {
  Tensor<double> direction(shape);
  double squares = 0;
  std::uint64_t position = 0;
  for (double& number : direction.mutable_values()) {
    number = key.normal(position++);
    squares += number * number;
  }
  for (double& number : direction.mutable_values()) {
    number /= std::sqrt(squares);
  }
  return direction;
}

double inner(const Tensor<double>& a, const Tensor<double>& b) {
  double sum = 0;
  for (Index i = 0; i < a.size(); ++i) {
    sum += a[i] * b[i];
  }
  return sum;
}

/// Loss of a model with one parameter moved.
class MovedLoss {
 public:
  MovedLoss(nn::Layer<double> model,
            const Tensor<double>& x,
            const nn::Target<double>& target,
            const std::string& loss,
            const Key& masks)
      : model_(std::move(model)),
        slots_(nn::slots<double>(model_)),
        x_(x),
        target_(target),
        loss_(nn::Loss<double>::make(loss)),
        masks_(masks) {}

  const std::vector<nn::Slot<double>>& slots() const { return slots_; }

  Value<double> value() const {
    nn::Pass<double> pass = nn::Pass<double>::training(masks_);
    return loss_(model_(Value<double>(x_), pass), target_);
  }

  double along(std::size_t slot, const Tensor<double>& direction, double step) const {
    Value<double>& at = *slots_[slot].value;
    const Value<double> before = at;
    Tensor<double> moved = before.tensor();
    double* const numbers = moved.mutable_data();
    for (Index i = 0; i < moved.size(); ++i) {
      numbers[i] += step * direction[i];
    }
    at = Value<double>(std::move(moved));
    const double loss = value().tensor()[0];
    at = before;
    return loss;
  }

 private:
  nn::Layer<double> model_;
  std::vector<nn::Slot<double>> slots_;
  const Tensor<double>& x_;
  const nn::Target<double>& target_;
  nn::Loss<double> loss_;
  Key masks_;
};

/// The gradients of all trained slots, and the loss.
std::pair<std::vector<Tensor<double>>, double> analytic_gradients(const MovedLoss& loss) {
  Tape<double> tape;
  std::vector<Value<double>> before;
  std::vector<Value<double>> parameters;
  for (const nn::Slot<double>& slot : loss.slots()) {
    before.push_back(*slot.value);
    if (slot.trained) {
      parameters.push_back(tape.parameter(*slot.value, slot.name));
      *slot.value = parameters.back();
    }
  }
  const Value<double> value = loss.value();
  for (std::size_t i = 0; i < before.size(); ++i) {
    *loss.slots()[i].value = before[i];
  }
  const Gradients<double> found = tape.backward(value);
  std::vector<Tensor<double>> gradients;
  for (const Value<double>& parameter : parameters) {
    gradients.push_back(found[parameter].tensor());
  }
  return {std::move(gradients), value.tensor()[0]};
}

GradientRow checked_direction(const MovedLoss& loss,
                              std::size_t slot,
                              const Tensor<double>& gradient,
                              const Tensor<double>& direction,
                              double at_rest) {
  constexpr double u = std::numeric_limits<double>::epsilon() / 2;
  GradientRow row{.parameter = loss.slots()[slot].name, .shape = gradient.shape()};
  row.analytic = inner(gradient, direction);
  const double length = std::sqrt(inner(gradient, gradient));
  const double scale = std::fmax(1.0, std::fabs(at_rest));
  double best_excess = std::numeric_limits<double>::infinity();
  for (const double factor : {1.0, 1e-1, 1e-2}) {
    // The step that balances truncation (h^2) and rounding (u/h), and smaller ones.
    const double h = std::cbrt(3 * u) * factor;
    const double fine =
        (loss.along(slot, direction, h) - loss.along(slot, direction, -h)) / (2 * h);
    const double coarse =
        (loss.along(slot, direction, 2 * h) - loss.along(slot, direction, -2 * h)) / (4 * h);
    const double rounding = 64 * u * scale / h;
    const double truncation = std::fmin(std::fabs(coarse - fine), kMostExplained * length);
    const double allowed = truncation + rounding;
    const double difference = std::fabs(row.analytic - fine);
    if (const double excess = difference / allowed; !(excess >= best_excess)) {
      best_excess = excess;
      row.numeric = fine;
      row.allowed = allowed;
      row.agrees = difference <= allowed;
    }
    if (row.agrees) {
      break;
    }
  }
  return row;
}

double excess_of(const GradientRow& row) {
  return std::fabs(row.analytic - row.numeric) / row.allowed;
}

std::string short_number(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", number);
  return text;
}

Tensor<double> drawn_input(const Network<double>& network, Index samples, const Key& key) {
  Shape shape{samples};
  for (const Index extent : network.input) {
    shape.push_back(extent);
  }
  Tensor<double> x(shape);
  std::uint64_t position = 0;
  for (double& number : x.mutable_values()) {
    number = key.normal(position++);
  }
  return x;
}

/// Labels or numbers drawn for scores of this shape.
nn::Target<double> drawn_target(const Network<double>& network, Index samples, const Key& key) {
  nn::Target<double> target;
  const Shape& scores = network.layers.output;
  const Index classes = scores[1];
  Shape shape{samples};
  if (network.task != nn::Task::reconstruction && classes > 1) {
    for (int axis = 2; axis < scores.rank(); ++axis) {
      shape.push_back(scores[axis]);
    }
    Tensor<Index> labels(shape);
    std::uint64_t position = 0;
    for (Index& label : labels.mutable_values()) {
      label = static_cast<Index>(key.below(position++, static_cast<std::uint64_t>(classes)));
    }
    target.labels = Indices(std::move(labels));
    return target;
  }
  for (int axis = 1; axis < scores.rank(); ++axis) {
    shape.push_back(scores[axis]);
  }
  Tensor<double> values(shape);
  std::uint64_t position = 0;
  for (double& value : values.mutable_values()) {
    value = key.uniform(position++);
  }
  target.values = Value<double>(std::move(values));
  return target;
}

}  // namespace

bool GradientCheck::agrees() const {
  return std::all_of(rows.begin(), rows.end(), [](const GradientRow& row) { return row.agrees; });
}

std::string GradientCheck::verdict() const {
  const auto worst =
      std::max_element(rows.begin(), rows.end(), [](const GradientRow& a, const GradientRow& b) {
        return excess_of(a) < excess_of(b);
      });
  if (worst == rows.end()) {
    return "gradients: the model has no parameters";
  }
  const auto differing =
      std::count_if(rows.begin(), rows.end(), [](const GradientRow& row) { return !row.agrees; });
  const std::string at = worst->parameter + ": " + short_number(worst->analytic) +
                         " by the chain rule, " + short_number(worst->numeric) + " by differences";
  return agrees()
             ? "gradients agree with difference quotients in all " + std::to_string(rows.size()) +
                   " parameters (" + grouped(numbers) + " numbers); the farthest is " + at
             : "gradients DIFFER from difference quotients in " + std::to_string(differing) +
                   " of " + std::to_string(rows.size()) + " parameters; the farthest is " + at;
}

GradientCheck check_gradients(const nn::Layer<double>& model,
                              const Tensor<double>& x,
                              const nn::Target<double>& target,
                              const std::string& loss_text,
                              Index directions,
                              std::uint64_t seed,
                              const std::function<void(std::size_t, std::size_t)>& progress) {
  const Key key(seed);
  const MovedLoss loss(model, x, target, loss_text, key.fold("masks"));
  const auto [gradients, at_rest] = analytic_gradients(loss);
  GradientCheck result{
      .rows = {}, .directions = directions, .samples = x.shape()[0], .loss = at_rest};
  std::size_t next = 0;
  for (std::size_t slot = 0; slot < loss.slots().size(); ++slot) {
    if (!loss.slots()[slot].trained) {
      continue;
    }
    const Tensor<double>& gradient = gradients[next++];
    result.numbers += gradient.size();
    std::optional<GradientRow> worst;
    for (Index i = 0; i < directions; ++i) {
      const Key own = key.fold(loss.slots()[slot].name).fold(static_cast<std::uint64_t>(i));
      const GradientRow row =
          checked_direction(loss, slot, gradient, unit_direction(gradient.shape(), own), at_rest);
      if (!worst || !(excess_of(row) <= excess_of(*worst))) {
        worst = row;
      }
    }
    result.rows.push_back(*worst);
    if (progress) {
      progress(next, gradients.size());
    }
  }
  return result;
}

GradientCheck check_network_gradients(
    const Network<double>& network,
    const nn::Dataset* data,
    Index samples,
    Index directions,
    std::uint64_t seed,
    const std::function<void(std::size_t, std::size_t)>& progress) {
  const Key key = Key(seed).fold("samples");
  Tensor<double> x;
  nn::Target<double> target = drawn_target(network, samples, key.fold("target"));
  if (data != nullptr) {
    samples = std::min(samples, data->size());
    nn::Loader<double> loader(
        nn::subset(std::shared_ptr<const nn::Dataset>(std::shared_ptr<void>(), data),
                   [&] {
                     std::vector<Index> which;
                     for (Index i = 0; i < samples; ++i) {
                       which.push_back(i * data->size() / samples);
                     }
                     return which;
                   }()),
        {.batch = samples,
         .shuffle = false,
         .prefetch = 0,
         .preprocessing = network.info.preprocessing});
    const nn::Batch<double> batch = *loader.next();
    x = batch.inputs;
    target = {};
    if (batch.labels.size() > 0) {
      target.labels = Indices(batch.labels);
    } else {
      target.values = Value<double>(batch.targets);
    }
  } else {
    x = drawn_input(network, samples, key.fold("x"));
  }
  const auto said = network.info.more.find(kLossKey);
  const std::string fitting = target.labels ? "cross-entropy" : "bce";
  const std::string loss = said != network.info.more.end() ? said->second : fitting;
  return check_gradients(network.model, x, target, loss, directions, seed, progress);
}

ExitCode gradcheck_command(const GradcheckOptions& options) {
  const Network<double> network = load_or_make_network<double>(options.file, options.input);
  nn::DatasetPtr data;
  if (options.data) {
    data = open_for({.text = *options.data}, nn::Split::test, network.task, network.input);
    require_fit(network, *data);
  }
  GradientCheck check;
  {
    ProgressLine line;
    check = check_network_gradients(
        network,
        data.get(),
        options.samples,
        options.directions,
        options.seed,
        [&](std::size_t done, std::size_t of) {
          line.show([&] {
            return ProgressState{
                .label = "parameter " + std::to_string(done) + "/" + std::to_string(of),
                .part = static_cast<double>(done) / static_cast<double>(of),
                .details = {}};
          });
        });
  }
  if (options.json) {
    Json rows = Json::array();
    for (const GradientRow& row : check.rows) {
      rows.push_back({{"parameter", row.parameter},
                      {"shape", shape_json(row.shape)},
                      {"analytic", row.analytic},
                      {"numeric", row.numeric},
                      {"explained", row.allowed},
                      {"agrees", row.agrees}});
    }
    print_json({{"model", network.name},
                {"data", options.data ? Json(*options.data) : Json(nullptr)},
                {"samples", check.samples},
                {"directions", check.directions},
                {"loss", check.loss},
                {"agrees", check.agrees()},
                {"parameters", std::move(rows)}});
  } else {
    std::vector<std::vector<std::string>> table{
        {"parameter", "shape", "chain rule", "differences", "apart", "explained", ""}};
    for (const GradientRow& row : check.rows) {
      table.push_back({row.parameter,
                       extents(row.shape),
                       short_number(row.analytic),
                       short_number(row.numeric),
                       short_number(std::fabs(row.analytic - row.numeric)),
                       short_number(row.allowed),
                       row.agrees ? "agrees" : "DIFFERS"});
    }
    const Terminal terminal = terminal_of(Stream::out);
    std::cout << table_text(table,
                            {.align = {Align::left,
                                       Align::left,
                                       Align::right,
                                       Align::right,
                                       Align::right,
                                       Align::right,
                                       Align::left}},
                            terminal)
              << wrapped(check.verdict() + "\n", terminal);
  }
  return check.agrees() ? fine : law_broken;
}

}  // namespace fenestra::cli
