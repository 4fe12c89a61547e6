// The trainer's work: steps, inference, evaluation and the loop around them.
#include <fenestra/nn/gradient_spans.hpp>
#include <fenestra/nn/trainer_core.hpp>
#include <fenestra/nn/trainer_state.hpp>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <utility>

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

void require_option(const char* option,
                    double value,
                    bool fits,
                    const char* needed,
                    ErrorCode code = ErrorCode::invalid_option) {
  if (!fits) {
    throw Error(
        code,
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

/// A part of each batch, for as long as it lives.
template <class T>
class ShareScope {
 public:
  ShareScope(Loader<T>& loader, SharePredicate wants) : loader_(loader), is_set_(wants != nullptr) {
    if (is_set_) {
      loader_.set_share(std::move(wants));
    }
  }
  ~ShareScope() {
    if (is_set_) {
      loader_.set_share({});
    }
  }
  ShareScope(const ShareScope&) = delete;
  ShareScope& operator=(const ShareScope&) = delete;

 private:
  Loader<T>& loader_;
  bool is_set_;
};

int rank_of_batch(std::size_t number, int ranks) {
  return static_cast<int>(number % static_cast<std::size_t>(ranks));
}

/// What the ranks found in their batches: losses in the order of the batches, and all counts.
void join_evaluations(ranks::Communicator& communicator,
                      std::vector<double>& losses,
                      Evaluation& result) {
  std::vector<std::int64_t> said{result.confusion ? result.confusion->classes() : 0,
                                 result.per_cell ? 1 : 0};
  for (const double loss : losses) {
    said.push_back(std::bit_cast<std::int64_t>(loss));
  }
  if (result.confusion) {
    const Tensor<Index>& counts = result.confusion->counts();
    said.insert(said.end(), counts.data(), counts.data() + counts.size());
  }
  result.confusion.reset();
  const auto parts = ranks::all_gather(communicator, std::as_bytes(std::span(said)));
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    std::vector<std::int64_t> words(parts[rank].size() / sizeof(std::int64_t));
    std::memcpy(words.data(), parts[rank].data(), parts[rank].size());
    for (std::size_t i = 0; i < losses.size(); ++i) {
      if (rank_of_batch(i, communicator.size()) == static_cast<int>(rank)) {
        losses[i] = std::bit_cast<double>(words[2 + i]);
      }
    }
    if (const Index classes = words[0]; classes > 0) {
      Tensor<Index> counts(Shape{classes, classes});
      std::copy_n(words.data() + 2 + losses.size(), counts.size(), counts.mutable_data());
      if (!result.confusion) {
        result.confusion.emplace(classes);
      }
      result.confusion->add_counts(counts);
      result.per_cell = words[1] != 0;
    }
  }
}

}  // namespace

template <KernelScalar T>
void detail::read_figures(Found<T>& found, const Tensor<Index>& labels) {
  found.loss = found.findings->loss();
  const Tensor<T>& scores = found.findings->scores();
  if (labels.size() > 0 && shape_of_labels(scores.shape()) == labels.shape()) {
    const Tensor<Index> said = said_classes(scores);
    found.labels = labels.size();
    for (Index i = 0; i < said.size(); ++i) {
      found.correct += said[i] == labels[i] ? 1 : 0;
    }
  }
}

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
  require_option("leaf", static_cast<double>(said.leaf), said.leaf >= 0, "leaf >= 0");
  for (const Index extent : said.tile) {
    require_option("tile",
                   static_cast<double>(extent),
                   extent >= 1,
                   "tile >= 1 along each axis",
                   ErrorCode::invalid_extent);
  }
  if (said.tile.rank() > 0 && !said.compiled) {
    throw Error(ErrorCode::unsupported,
                "trainer: tiles are programs of their own, and compiled = false\n  fix: compiled = "
                "true, or no tile");
  }
  if (said.communicator && said.communicator->size() > 1 && said.leaf == 0 &&
      said.tile.rank() == 0) {
    throw Error(ErrorCode::invalid_option,
                "trainer: " + std::to_string(said.communicator->size()) +
                    " ranks and no leaf, so that results would depend on the number of ranks\n"
                    "  fix: leaf = 8, or any number of samples, for every number of ranks the "
                    "same");
  }
  std::optional<Loss<T>> new_loss;
  if (!own_loss) {
    new_loss = Loss<T>::make(said.loss);
    if (said.tile.rank() > 0 && !new_loss->is_mean_of_cells()) {
      throw Error(ErrorCode::unsupported,
                  "trainer: " + new_loss->name() +
                      " compares sums over the whole picture, so that tiles cannot be added up\n"
                      "  fix: cross-entropy, focal, bce or another mean over cells, or no tile");
    }
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
      throw Error(ErrorCode::invalid_option,
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
detail::StepProgram<T>& TrainerCore<T>::State::program_of(const std::vector<Slot<T>>& all,
                                                          const detail::BatchView<T>& seen) {
  auto* program = step_programs.find([&](const auto& known) { return known.fits(seen); });
  if (program == nullptr) {
    program = step_programs.add(parts, loss, std::span<const Slot<T>>(all), seen);
    has_traced = true;
  }
  return *program;
}

template <KernelScalar T>
Index TrainerCore<T>::State::joint_leaves(const std::vector<Slot<T>>& all,
                                          const Batch<T>& leaf,
                                          Index count) {
  if (!options.compiled) {
    return 1;
  }
  Tensor<T> numbers;
  return program_of(all, view(leaf, numbers)).joint_batches(count);
}

template <KernelScalar T>
std::vector<detail::Found<T>> TrainerCore<T>::State::find_joint(
    const std::vector<Slot<T>>& all,
    const Batch<T>& leaves,
    std::span<const Key> keys,
    std::span<const detail::GradientRoom<T>> rooms) {
  const auto count = static_cast<Index>(keys.size());
  const auto part = [&]<class N>(const Tensor<N>& x, Index i) {
    if (x.rank() == 0 || x.size() == 0) {
      return x;
    }
    return Tensor<N>::view(x.data() + i * (x.size() / count),
                           with_samples(x.shape(), x.shape()[0] / count));
  };
  Tensor<T> numbers;
  const detail::BatchView<T> seen = view(leaves, numbers);
  const Batch<T> first{.inputs = part(leaves.inputs, 0),
                       .labels = part(leaves.labels, 0),
                       .targets = part(leaves.targets, 0)};
  Tensor<T> first_numbers;
  const std::span<detail::StepFindings<T>> findings =
      program_of(all, view(first, first_numbers)).run_joint(all, seen, keys, rooms);
  std::vector<detail::Found<T>> found(findings.size());
  for (std::size_t i = 0; i < findings.size(); ++i) {
    found[i].findings = &findings[i];
    found[i].traced = std::exchange(has_traced, false);
    detail::read_figures(found[i], part(leaves.labels, static_cast<Index>(i)));
  }
  return found;
}

template <KernelScalar T>
detail::Found<T> TrainerCore<T>::State::find(const std::vector<Slot<T>>& all,
                                             const Batch<T>& batch,
                                             const Key& key,
                                             const detail::GradientRoom<T>& room) {
  Tensor<T> numbers;
  const detail::BatchView<T> seen = view(batch, numbers);
  detail::Found<T> found;
  if (options.compiled) {
    found.findings = &program_of(all, seen).run(all, seen, key, room);
    found.traced = std::exchange(has_traced, false);
  } else {
    eager = detail::step_eagerly<T>(parts, loss, all, seen, key, room);
    found.findings = &eager;
  }
  detail::read_figures(found, batch.labels);
  return found;
}

template <KernelScalar T>
Tensor<T> TrainerCore<T>::State::infer(const std::vector<Slot<T>>& all, const Tensor<T>& x) {
  if (has_tiles()) {
    return infer_in_tiles(x);
  }
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

template <KernelScalar T>
SharePredicate TrainerCore<T>::State::share_of_samples() const {
  if (!has_ranks() || has_tiles()) {
    return {};  // which samples a rank's tiles are of is known when their scores are
  }
  return [rank = options.communicator->rank(),
          ranks = options.communicator->size(),
          leaf = options.leaf](const Cursor&, Index place, Index samples) {
    const detail::RankShare own = detail::share_of(rank, ranks, samples, leaf);
    return own.begin <= place && place < own.end;
  };
}

template <KernelScalar T>
SharePredicate TrainerCore<T>::State::share_of_batches(const Loader<T>& loader) const {
  if (!has_ranks()) {
    return {};
  }
  return [rank = options.communicator->rank(),
          ranks = options.communicator->size(),
          size = loader.options().batch](const Cursor& batch, Index, Index) {
    return rank_of_batch(static_cast<std::size_t>(batch.next / size), ranks) == rank;
  };
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
  const Key key = Key(s.options.seed).fold("masks").fold(static_cast<std::uint64_t>(s.steps));

  std::vector<Index> tiles;
  if (s.has_tiles()) {
    tiles = s.tile_steps.cells(s.tile_parts(all), batch.inputs.shape());
  }
  const detail::Found<T> found = s.leaf_steps.run(
      batch,
      {.leaf = s.options.leaf,
       .tiles = tiles,
       .communicator = s.options.communicator.get(),
       .slots = all,
       .step = s.steps,
       .key = key,
       .is_sliced = s.is_sliced()},
      [&](const Batch<T>& leaf,
          Index tile,
          const Key& leaf_key,
          const detail::GradientRoom<T>& room) {
        return s.has_tiles() ? s.find_in_tile(all, leaf, tile, leaf_key, room)
                             : s.find(all, leaf, leaf_key, room);
      },
      {.count = [&](const Batch<T>& leaf, Index count) { return s.joint_leaves(all, leaf, count); },
       .run =
           [&](const Batch<T>& leaves,
               std::span<const Key> keys,
               std::span<const detail::GradientRoom<T>> rooms) {
             return s.find_joint(all, leaves, keys, rooms);
           }});
  result.loss = found.loss;
  result.labels = found.labels;
  result.correct = found.correct;
  result.traced = found.traced;
  detail::StepFindings<T>& findings = *found.findings;
  if (s.options.clip_value > 0) {
    detail::clamp_elements<T>(found.gradients, s.options.clip_value);
  }
  if (s.options.clip_norm > 0) {
    result.gradient_norm =
        s.is_sliced() ? detail::norm_of_pieces<T>(
                            s.leaf_steps.layout(), found.gradients, *s.options.communicator)
                      : detail::norm_of<T>(found.gradients);
    detail::limit_norm<T>(found.gradients, result.gradient_norm, s.options.clip_norm);
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
  if (s.is_sliced()) {
    detail::step_in_pieces<T>(
        s.optimiser, parameters, found, s.leaf_steps, *s.options.communicator);
  } else {
    std::vector<Tensor<T>> gradients;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      gradients.push_back(Tensor<T>::view(found.gradients[i].data(), parameters[i]->shape()));
    }
    s.optimiser.step(std::span<Tensor<T>* const>(parameters),
                     std::span<const Tensor<T>>(gradients));
  }
  // From here on nothing throws.
  const std::span<Tensor<T>> buffers = findings.buffer_values();
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    std::swap(all[findings.buffers[i]].value->plain(), buffers[i]);
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
Evaluation TrainerCore<T>::evaluate(Loader<T>& loader, const std::function<bool()>& go_on) {
  const Clock clock;
  State& s = *state_;
  const std::vector<Slot<T>> all = s.slots();
  const detail::AverageScope<T> scope(all, s.average ? &s.average->values() : nullptr);
  Evaluation result;
  std::vector<double> losses;  // of batches, each times its samples
  const ShareScope<T> share(loader, s.share_of_batches(loader));
  loader.seek({});
  const std::size_t count =
      s.has_ranks() ? static_cast<std::size_t>(s.options.communicator->size()) : 1;
  const auto evaluate_batch = [&](const Batch<T>& batch) {
    Tensor<T> numbers;
    const detail::BatchView<T> view = s.view(batch, numbers);
    const Tensor<T> scores = s.infer(all, batch.inputs);
    Target<T> target;
    if (view.labels != nullptr) {
      target.labels = Indices(*view.labels);
    }
    if (view.values != nullptr) {
      target.values = Value<T>(*view.values);
    }
    losses.back() = static_cast<double>(s.loss(Value<T>(scores), target).tensor()[0]) *
                    static_cast<double>(batch.inputs.shape()[0]);
    if (batch.labels.size() > 0 && shape_of_labels(scores.shape()) == batch.labels.shape()) {
      if (!result.confusion) {
        result.confusion.emplace(std::max<Index>(2, scores.shape()[1]));
        result.per_cell = scores.rank() > 2;
      }
      result.confusion->add(said_classes(scores), batch.labels);
    }
  };
  while (const std::optional<Batch<T>> batch = loader.next()) {
    losses.push_back(0);
    result.samples += batch->inputs.shape()[0];
    if (!s.has_ranks() || rank_of_batch(losses.size() - 1, s.options.communicator->size()) ==
                              s.options.communicator->rank()) {
      evaluate_batch(*batch);
    }
    // Ranks answer together, and only when each has had a batch: they would wait for one another.
    if (go_on && losses.size() % count == 0) {
      const bool stops = !go_on();
      if (s.has_ranks() ? ranks::any(*s.options.communicator, stops) : stops) {
        break;
      }
    }
  }
  loader.seek({});
  if (s.has_ranks()) {
    join_evaluations(*s.options.communicator, losses, result);
  }
  double loss = 0;
  for (const double part : losses) {
    loss += part;
  }
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
  const ShareScope<T> share(loader, s.share_of_samples());
  loader.seek(s.cursor);
  FitResult result{.best_score = s.best_score};
  const auto save_checkpoint = [&] {
    if (!options.checkpoint.empty()) {
      save(options.checkpoint);
    }
  };
  const auto is_told = [&] { return options.stop != nullptr && options.stop->load(); };
  // Ranks stop together, whoever was told.
  const auto is_stopped = [&] {
    return s.has_ranks() ? ranks::any(*s.options.communicator, is_told()) : is_told();
  };
  const auto stopped_here = [&] {
    save_checkpoint();
    result.end = FitEnd::stopped;
    result.epochs = s.cursor.epoch;
    return result;
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
      if (is_stopped()) {
        return stopped_here();
      }
      if (options.checkpoint_every > 0 && s.steps % options.checkpoint_every == 0) {
        save_checkpoint();
      }
    }
    EpochResult epoch{.epoch = s.cursor.epoch,
                      .samples = s.epoch_samples,
                      .labels = s.epoch_labels,
                      .correct = s.epoch_correct};
    epoch.loss = s.epoch_samples == 0 ? 0 : s.epoch_loss / static_cast<double>(s.epoch_samples);
    if (options.validation != nullptr) {
      epoch.validation = evaluate(*options.validation, [&] {
        if (options.on_validation_batch) {
          options.on_validation_batch();
        }
        return !is_told();
      });
      if (is_stopped()) {
        return stopped_here();  // the cursor stands at the end of the epoch, before its validation
      }
      if (options.validation == &loader) {
        loader.set_share(s.share_of_samples());
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
  state_->tile_steps.clear();
  state_->inference_programs.clear();
  state_->leaf_steps.forget();
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

template void detail::read_figures(Found<float>&, const Tensor<Index>&);
template void detail::read_figures(Found<double>&, const Tensor<Index>&);
template class TrainerCore<float>;
template class TrainerCore<double>;

}  // namespace fenestra::nn
