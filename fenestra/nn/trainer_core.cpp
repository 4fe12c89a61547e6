// The trainer's work: steps, inference, evaluation and the loop around them.
#include <fenestra/nn/trainer_core.hpp>
#include <fenestra/nn/trainer_state.hpp>

#include <chrono>
#include <cmath>

namespace fenestra::nn {

namespace {

class Clock {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void require_option(const char* option, double value, bool fits, const char* needed) {
  if (!fits) {
    throw Error(
        ErrorCode::invalid_extent,
        std::string("trainer: ") + option + " = " + std::to_string(value) + "\n  fix: " + needed);
  }
}

/// The shape of labels that go with scores; nothing where scores have no classes.
std::optional<Shape> shape_of_labels(const Shape& scores) {
  if (scores.rank() < 2 || scores[1] < 1) {
    return std::nullopt;
  }
  Shape shape;
  for (int axis = 0; axis < scores.rank(); ++axis) {
    if (axis != 1) {
      shape.push_back(scores[axis]);
    }
  }
  return shape;
}

/// The classes that scores say; one score alone says yes or no.
template <class T>
Tensor<Index> said_classes(const Tensor<T>& scores) {
  if (scores.shape()[1] != 1) {
    return predicted_classes(scores);
  }
  Tensor<Index> classes(*shape_of_labels(scores.shape()));
  Index* const out = classes.mutable_data();
  for (Index i = 0; i < classes.size(); ++i) {
    out[i] = scores[i] > T(0) ? 1 : 0;
  }
  return classes;
}

}  // namespace

double Evaluation::score() const {
  if (!confusion) {
    return -loss;
  }
  return per_cell ? confusion->mean_iou() : confusion->accuracy();
}

// --- State -------------------------------------------------------------------------------------

template <KernelScalar T>
void TrainerCore<T>::State::configure(const TrainerOptions& said) {
  require_option("clip_norm",
                 said.clip_norm,
                 std::isfinite(said.clip_norm) && said.clip_norm >= 0,
                 "clip_norm >= 0");
  require_option("clip_value",
                 said.clip_value,
                 std::isfinite(said.clip_value) && said.clip_value >= 0,
                 "clip_value >= 0");
  require_option(
      "average", said.average, said.average >= 0 && said.average < 1, "0 <= average < 1");
  std::optional<Loss<T>> new_loss;
  if (!own_loss) {
    new_loss = Loss<T>::make(said.loss);
  }
  LossFunction<T> new_function = own_loss ? parts.loss : LossFunction<T>(*new_loss);
  const Schedule new_schedule = Schedule::parse(said.schedule);
  Optimiser<T> new_optimiser = Optimiser<T>::make(said.optimiser);
  TrainerOptions new_options = said;
  new_options.optimiser = new_optimiser.text();
  options = std::move(new_options);
  named_loss = std::move(new_loss);
  loss = std::move(new_function);
  optimiser = std::move(new_optimiser);
  rate = optimiser.rate();
  schedule = new_schedule;
  resolved = new_schedule;
  average.reset();
  if (said.average > 0) {
    average.emplace(said.average);
  }
}

template <KernelScalar T>
std::vector<Slot<T>> TrainerCore<T>::State::slots() const {
  std::vector<Slot<T>> all = parts.slots();
  for (const Slot<T>& slot : all) {
    if (slot.name.starts_with("optimiser.")) {
      throw Error(ErrorCode::bad_problem,
                  "trainer: the model has a slot " + slot.name +
                      ", a name that checkpoints use for the optimiser\n  fix: another name for "
                      "the member");
    }
  }
  return all;
}

template <KernelScalar T>
detail::BatchView<T> TrainerCore<T>::State::view(const Batch<T>& batch, Tensor<T>& numbers) const {
  detail::BatchView<T> view{.inputs = &batch.inputs};
  const bool has_labels = batch.labels.size() > 0;
  const bool has_targets = batch.targets.size() > 0;
  if (has_labels && (own_loss || named_loss->takes_labels())) {
    view.labels = &batch.labels;
  }
  if (has_targets && (own_loss || (named_loss->takes_values() && view.labels == nullptr))) {
    view.values = &batch.targets;
  }
  if (view.labels == nullptr && view.values == nullptr && has_labels) {
    // A loss of numbers, and labels: one score for each, that 1 is to be.
    Shape shape{batch.labels.shape()[0], 1};
    for (int axis = 1; axis < batch.labels.rank(); ++axis) {
      shape.push_back(batch.labels.shape()[axis]);
    }
    numbers = Tensor<T>::uninitialised(shape);
    T* const out = numbers.mutable_data();
    for (Index i = 0; i < numbers.size(); ++i) {
      out[i] = static_cast<T>(batch.labels[i]);
    }
    view.values = &numbers;
  }
  if (view.labels == nullptr && view.values == nullptr) {
    throw Error(
        ErrorCode::dtype_mismatch,
        "trainer: the batch of " + to_string(batch.inputs.shape()) + " has " +
            (has_targets ? "targets, and " + options.loss + " compares with labels"
                         : "neither labels nor targets") +
            "\n  fix: " +
            (has_targets ? ".loss = \"mse\" or another one of numbers" : "fill one of them"));
  }
  return view;
}

template <KernelScalar T>
Tensor<T> TrainerCore<T>::State::infer(const std::vector<Slot<T>>& all, const Tensor<T>& x) {
  if (!options.compiled) {
    Pass<T> pass = Pass<T>::inference();
    return parts.forward(Value<T>(x), pass).tensor();
  }
  auto* program = inference_programs.find([&](const auto& known) { return known.fits(x.shape()); });
  if (program == nullptr) {
    program = inference_programs.add(parts, std::span<const Slot<T>>(all), x.shape());
  }
  return program->run(all, x);
}

// --- The trainer -------------------------------------------------------------------------------

template <KernelScalar T>
TrainerCore<T>::TrainerCore(Parts parts, const TrainerOptions& options)
    : state_(std::make_unique<State>(std::move(parts), options)) {
  state_->slots();
}
template <KernelScalar T>
TrainerCore<T>::~TrainerCore() = default;
template <KernelScalar T>
TrainerCore<T>::TrainerCore(TrainerCore&&) noexcept = default;
template <KernelScalar T>
TrainerCore<T>& TrainerCore<T>::operator=(TrainerCore&&) noexcept = default;

template <KernelScalar T>
StepResult TrainerCore<T>::step(const Batch<T>& batch) {
  const Clock clock;
  State& s = *state_;
  StepResult result{.step = s.steps,
                    .samples = batch.inputs.rank() > 0 ? batch.inputs.shape()[0] : 0};
  result.rate = s.rate * s.resolved(s.steps);
  const std::vector<Slot<T>> all = s.slots();
  Tensor<T> numbers;
  const detail::BatchView<T> view = s.view(batch, numbers);
  const Key key = Key(s.options.seed).fold("masks").fold(static_cast<std::uint64_t>(s.steps));

  detail::StepFindings<T> eager;
  detail::StepFindings<T>* found = &eager;
  if (s.options.compiled) {
    auto* program = s.step_programs.find([&](const auto& known) { return known.fits(view); });
    result.traced = program == nullptr;
    if (program == nullptr) {
      program = s.step_programs.add(s.parts, s.loss, std::span<const Slot<T>>(all), view);
    }
    found = &program->run(all, view, key);
  } else {
    eager = detail::step_eagerly<T>(s.parts, s.loss, all, view, key);
  }

  result.loss = found->loss();
  const Tensor<T>& scores = found->scores();
  if (batch.labels.size() > 0 && shape_of_labels(scores.shape()) == batch.labels.shape()) {
    const Tensor<Index> said = said_classes(scores);
    result.labels = batch.labels.size();
    for (Index i = 0; i < said.size(); ++i) {
      result.correct += said[i] == batch.labels[i] ? 1 : 0;
    }
  }
  const std::span<Tensor<T>> gradients = found->gradients();
  if (s.options.clip_value > 0) {
    clip_by_value<T>(gradients, s.options.clip_value);
  }
  if (s.options.clip_norm > 0) {
    result.gradient_norm = clip_by_norm<T>(gradients, s.options.clip_norm);
  }
  std::vector<Tensor<T>*> parameters;
  for (const Slot<T>& slot : all) {
    if (slot.trained) {
      parameters.push_back(&slot.value->plain());
    }
  }
  if (s.average) {
    s.average->prepare(parameters);
  }
  s.optimiser.set_rate(result.rate);
  s.optimiser.step(std::span<Tensor<T>* const>(parameters),
                   std::span<const Tensor<T>>(gradients.data(), gradients.size()));
  // From here on nothing throws.
  const std::span<Tensor<T>> buffers = found->buffer_values();
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    std::swap(all[found->buffers[i]].value->plain(), buffers[i]);
  }
  ++s.steps;
  if (s.average) {
    s.average->add(parameters);
  }
  result.seconds = clock.seconds();
  return result;
}

template <KernelScalar T>
Tensor<T> TrainerCore<T>::predict(const Tensor<T>& x) {
  const std::vector<Slot<T>> all = state_->slots();
  const detail::AverageScope<T> scope(all, state_->average ? &state_->average->values() : nullptr);
  return state_->infer(all, x);
}

template <KernelScalar T>
Evaluation TrainerCore<T>::evaluate(Loader<T>& loader) {
  const Clock clock;
  State& s = *state_;
  const std::vector<Slot<T>> all = s.slots();
  const detail::AverageScope<T> scope(all, s.average ? &s.average->values() : nullptr);
  Evaluation result;
  double loss = 0;
  loader.seek({});
  while (const std::optional<Batch<T>> batch = loader.next()) {
    Tensor<T> numbers;
    const detail::BatchView<T> view = s.view(*batch, numbers);
    const Tensor<T> scores = s.infer(all, batch->inputs);
    Target<T> target;
    if (view.labels != nullptr) {
      target.labels = Indices(*view.labels);
    }
    if (view.values != nullptr) {
      target.values = Value<T>(*view.values);
    }
    const Index samples = batch->inputs.shape()[0];
    loss += static_cast<double>(s.loss(Value<T>(scores), target).tensor()[0]) *
            static_cast<double>(samples);
    result.samples += samples;
    if (batch->labels.size() > 0 && shape_of_labels(scores.shape()) == batch->labels.shape()) {
      if (!result.confusion) {
        result.confusion.emplace(std::max<Index>(2, scores.shape()[1]));
        result.per_cell = scores.rank() > 2;
      }
      result.confusion->add(said_classes(scores), batch->labels);
    }
  }
  loader.seek({});
  result.loss = result.samples == 0 ? 0 : loss / static_cast<double>(result.samples);
  result.seconds = clock.seconds();
  return result;
}

template <KernelScalar T>
FitResult TrainerCore<T>::fit(Loader<T>& loader, Index epochs, const FitOptions<T>& options) {
  State& s = *state_;
  require_option("epochs", static_cast<double>(epochs), epochs >= 0, "epochs >= 0");
  if (epochs > 0) {
    s.resolved = s.schedule.of_run(epochs * loader.batches_per_epoch(), loader.batches_per_epoch());
  }
  loader.seek(s.cursor);
  FitResult result{.best_score = s.best_score};
  const auto save_checkpoint = [&] {
    if (!options.checkpoint.empty()) {
      save(options.checkpoint);
    }
  };
  while (s.cursor.epoch < epochs) {
    const Clock clock;
    while (const std::optional<Batch<T>> batch = loader.next()) {
      const StepResult step = this->step(*batch);
      s.cursor = loader.cursor();
      s.epoch_loss += step.loss * static_cast<double>(step.samples);
      s.epoch_samples += step.samples;
      s.epoch_labels += step.labels;
      s.epoch_correct += step.correct;
      if (options.on_step) {
        options.on_step(step);
      }
      if (!std::isfinite(step.loss)) {
        result.end = FitEnd::diverged;
        result.epochs = s.cursor.epoch;
        return result;
      }
      const bool stopped = options.stop != nullptr && options.stop->load();
      if (stopped || (options.checkpoint_every > 0 && s.steps % options.checkpoint_every == 0)) {
        save_checkpoint();
      }
      if (stopped) {
        result.end = FitEnd::stopped;
        result.epochs = s.cursor.epoch;
        return result;
      }
    }
    EpochResult epoch{.epoch = s.cursor.epoch,
                      .samples = s.epoch_samples,
                      .labels = s.epoch_labels,
                      .correct = s.epoch_correct};
    epoch.loss = s.epoch_samples == 0 ? 0 : s.epoch_loss / static_cast<double>(s.epoch_samples);
    if (options.validation != nullptr) {
      epoch.validation = evaluate(*options.validation);
      if (options.validation == &loader) {
        loader.seek({s.cursor.epoch + 1, 0});
      }
    }
    epoch.score = epoch.validation ? epoch.validation->score() : -epoch.loss;
    epoch.is_best = epoch.score > s.best_score;
    s.epochs_since_best = epoch.is_best ? 0 : s.epochs_since_best + 1;
    s.best_score = epoch.is_best ? epoch.score : s.best_score;
    s.cursor = {s.cursor.epoch + 1, 0};
    s.start_epoch();
    epoch.seconds = clock.seconds();
    result.best_score = s.best_score;
    result.validation = epoch.validation;
    save_checkpoint();
    if (options.on_epoch) {
      options.on_epoch(epoch);
    }
    if (options.patience > 0 && s.epochs_since_best >= options.patience) {
      result.end = FitEnd::patience;
      break;
    }
  }
  result.epochs = s.cursor.epoch;
  return result;
}

template <KernelScalar T>
void TrainerCore<T>::restart_programs() {
  state_->step_programs.clear();
  state_->inference_programs.clear();
}

template <KernelScalar T>
const TrainerOptions& TrainerCore<T>::options() const {
  return state_->options;
}
template <KernelScalar T>
Index TrainerCore<T>::steps() const {
  return state_->steps;
}
template <KernelScalar T>
Cursor TrainerCore<T>::cursor() const {
  return state_->cursor;
}
template <KernelScalar T>
void TrainerCore<T>::set_cursor(Cursor cursor) {
  state_->cursor = cursor;
}
template <KernelScalar T>
double TrainerCore<T>::best_score() const {
  return state_->best_score;
}
template <KernelScalar T>
io::Metadata& TrainerCore<T>::metadata() {
  return state_->metadata;
}
template <KernelScalar T>
const std::vector<Tensor<T>>& TrainerCore<T>::averages() const {
  static const std::vector<Tensor<T>> none;
  return state_->average ? state_->average->values() : none;
}

template class TrainerCore<float>;
template class TrainerCore<double>;

}  // namespace fenestra::nn
