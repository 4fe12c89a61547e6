// The loader: one function makes the batch of any cursor; a thread may call it ahead of time.
#include <fenestra/nn/data/loader.hpp>

#include <fenestra/base/key.hpp>
#include <fenestra/nn/data/permutation.hpp>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace fenestra::nn {

namespace {

Shape with_first(Index first, const Shape& rest) {
  Shape shape{first};
  for (const Index extent : rest) {
    shape.push_back(extent);
  }
  return shape;
}

Shape spatial_of(const Shape& sample) {
  Shape spatial;
  for (int axis = 1; axis < sample.rank(); ++axis) {
    spatial.push_back(sample[axis]);
  }
  return spatial;
}

}  // namespace

template <class T>
struct Loader<T>::State {
  // Constant after construction, read by both threads.
  DatasetPtr dataset;
  LoaderOptions options;
  Shape sample_shape;   ///< of the inputs
  Shape target_shape;   ///< of one target, after augmentation
  Index per_epoch = 0;  ///< samples handed out in an epoch

  /// What `next` gives: a batch, the end of an epoch (neither), or an error.
  struct Item {
    std::optional<Batch<T>> batch = {};
    std::exception_ptr error = {};
  };

  // The caller's alone.
  Cursor cursor;
  std::thread thread;
  bool refused_thread = false;

  // Shared, under the mutex. The thread makes items for `ahead` while it is `wanted`; a seek begins
  // a new `generation`, and what was made for an older one is dropped.
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Item> made;
  std::shared_ptr<const SharePredicate> share;
  Cursor ahead;
  std::uint64_t generation = 0;
  bool wanted = false;
  bool stopping = false;

  ~State() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    changed.notify_all();
    if (thread.joinable()) {
      thread.join();
    }
  }

  /// Drops what was made ahead. Under the mutex.
  void restart() {
    made.clear();
    wanted = false;
    ++generation;
  }

  Index samples_of(const Cursor& at) const {
    const Index count = std::min(options.batch, per_epoch - at.next);
    return options.drop_last && count < options.batch ? 0 : count;
  }
  /// The place after the item at `at`.
  Cursor after(const Cursor& at) const {
    const Index count = samples_of(at);
    return count > 0 ? Cursor{at.epoch, at.next + count} : Cursor{at.epoch + 1, 0};
  }

  void write_sample(Batch<T>& batch, Index place, Index index, Index epoch) const {
    Sample sample = dataset->get(index);
    if (options.augmentation.any()) {
      const Key key = Key(options.seed)
                          .fold("augment")
                          .fold(static_cast<std::uint64_t>(epoch))
                          .fold(static_cast<std::uint64_t>(index));
      sample = augment(sample, options.augmentation, key);
    }
    const Shape& size = options.preprocessing.size;
    if (size.rank() > 0) {
      sample.image = resized(sample.image, size);
    }
    normalise_into(options.preprocessing,
                   sample.image,
                   batch.inputs.mutable_data() + place * sample.image.size());
    switch (dataset->task()) {
      case Task::classification: batch.labels.mutable_data()[place] = sample.label; break;
      case Task::segmentation: {
        const Tensor<Index> mask = size.rank() > 0 ? resized_mask(sample.mask, size) : sample.mask;
        std::copy_n(mask.data(), mask.size(), batch.labels.mutable_data() + place * mask.size());
        break;
      }
      case Task::reconstruction: {
        const Tensor<float> target =
            resizes_target() ? resized(sample.target, size) : sample.target;
        std::transform(target.data(),
                       target.data() + target.size(),
                       batch.targets.mutable_data() + place * target.size(),
                       [](float value) { return static_cast<T>(value); });
        break;
      }
    }
  }

  /// Targets with the extents of their samples stay like them.
  bool moves_target() const {
    const Shape& target = dataset->info().target_shape;
    return dataset->task() == Task::reconstruction && target.rank() > 1 &&
           spatial_of(target) == spatial_of(dataset->sample_shape());
  }
  bool resizes_target() const { return moves_target() && options.preprocessing.size.rank() > 0; }

  /// A function of the cursor: no batch depends on another, nor on who asks.
  Item make(const Cursor& at, const SharePredicate* wants) const {
    const Index count = samples_of(at);
    if (count == 0) {
      return {};
    }
    const Task task = dataset->task();
    const Shape none{0};
    Batch<T> batch{
        .inputs = Tensor<T>::uninitialised(with_first(count, sample_shape)),
        .labels =
            Tensor<Index>(task == Task::classification ? Shape{count}
                          : task == Task::segmentation ? with_first(count, spatial_of(sample_shape))
                                                       : none),
        .targets = Tensor<T>(task == Task::reconstruction ? with_first(count, target_shape) : none),
        .which = {}};
    const Permutation order(
        Key(options.seed).fold("shuffle").fold(static_cast<std::uint64_t>(at.epoch)),
        dataset->size());
    for (Index place = 0; place < count; ++place) {
      const Index i = at.next + place;
      batch.which.push_back(options.shuffle ? order(i) : i);
      if (wants == nullptr || (*wants)(at, place, count)) {
        write_sample(batch, place, batch.which.back(), at.epoch);
      }
    }
    return {.batch = std::move(batch)};
  }

  Item make_or_fail(const Cursor& at, const SharePredicate* wants) const {
    try {
      return make(at, wants);
    } catch (...) {
      return {.error = std::current_exception()};
    }
  }

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] {
        return stopping || (wanted && static_cast<Index>(made.size()) < options.prefetch);
      });
      if (stopping) {
        return;
      }
      const Cursor at = ahead;
      const std::uint64_t now = generation;
      const std::shared_ptr<const SharePredicate> wants = share;
      lock.unlock();
      Item item = make_or_fail(at, wants.get());
      lock.lock();
      if (now != generation) {
        continue;
      }
      // An epoch's end and an error are as far as it goes until the caller has seen them.
      wanted = item.batch.has_value();
      ahead = after(at);
      made.push_back(std::move(item));
      changed.notify_all();
    }
  }

  /// Whether there is a thread; where the system gives none, batches are made when asked for.
  bool starts_thread() {
    if (!thread.joinable() && !refused_thread) {
      // Signals are for the threads of the program.
      sigset_t all;
      sigset_t before;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
      try {
        thread = std::thread([this] { run(); });
      } catch (const std::system_error&) {
        refused_thread = true;
      }
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }
    return !refused_thread;
  }

  Item take() {
    if (options.prefetch == 0 || !starts_thread()) {
      return make_or_fail(cursor, share.get());
    }
    std::unique_lock lock(mutex);
    if (!wanted && made.empty()) {
      wanted = true;
      ahead = cursor;
      changed.notify_all();
    }
    changed.wait(lock, [&] { return !made.empty(); });
    Item item = std::move(made.front());
    made.pop_front();
    changed.notify_all();
    return item;
  }
};

template <class T>
Loader<T>::Loader(DatasetPtr dataset, const LoaderOptions& options)
    : state_(std::make_unique<State>()) {
  const Index count = dataset->size();
  if (count < 1) {
    throw Error(ErrorCode::invalid_extent,
                "loader: " + dataset->info().name + " has no samples\n  fix: at least one");
  }
  if (options.batch < 1) {
    throw Error(ErrorCode::invalid_extent,
                "loader: batch = " + std::to_string(options.batch) + "\n  fix: at least 1");
  }
  if (options.drop_last && count < options.batch) {
    throw Error(ErrorCode::invalid_extent,
                "loader: batch = " + std::to_string(options.batch) + " of " +
                    std::to_string(count) +
                    " samples is never full, and drop_last leaves it out\n  fix: batch at most " +
                    std::to_string(count) + ", or drop_last = false");
  }
  if (options.prefetch < 0) {
    throw Error(ErrorCode::invalid_option,
                "loader: prefetch = " + std::to_string(options.prefetch) +
                    "\n  fix: batches to make ahead, 0 for none");
  }
  const Shape& original = dataset->sample_shape();
  if (original.rank() < 1) {
    throw Error(ErrorCode::rank_mismatch,
                "loader: samples = " + to_string(original) + "\n  fix: (channels, spatial...)");
  }
  check_fits(options.augmentation, original);
  check_fits(options.preprocessing, original[0]);
  const Shape& size = options.preprocessing.size;
  if (size.rank() > 0 && size.rank() != original.rank() - 1) {
    throw Error(ErrorCode::rank_mismatch,
                "loader: samples " + to_string(original) + " have " +
                    std::to_string(original.rank() - 1) + " spatial axes, preprocessing.size = " +
                    to_string(size) + "\n  fix: one extent for each spatial axis");
  }
  State& state = *state_;
  state.dataset = std::move(dataset);
  state.options = options;
  state.per_epoch = count;
  const auto prepared = [&](Shape shape) {
    shape = augmented_shape(options.augmentation, shape);
    for (int axis = 0; axis < size.rank(); ++axis) {
      shape[axis + 1] = size[axis];
    }
    return shape;
  };
  state.sample_shape = prepared(original);
  state.target_shape = state.dataset->info().target_shape;
  if (state.moves_target()) {
    state.target_shape = prepared(state.target_shape);
  }
}

template <class T>
Loader<T>::~Loader() = default;
template <class T>
Loader<T>::Loader(Loader&&) noexcept = default;
template <class T>
Loader<T>& Loader<T>::operator=(Loader&&) noexcept = default;

template <class T>
std::optional<Batch<T>> Loader<T>::next() {
  State& state = *state_;
  typename State::Item item = state.take();
  if (item.error) {
    std::rethrow_exception(item.error);
  }
  state.cursor = state.after(state.cursor);
  return std::move(item.batch);
}

template <class T>
Cursor Loader<T>::cursor() const {
  return state_->cursor;
}

template <class T>
void Loader<T>::seek(Cursor cursor) {
  State& state = *state_;
  if (cursor.epoch < 0 || cursor.next < 0 || cursor.next > state.per_epoch) {
    throw Error(ErrorCode::invalid_index,
                "loader: cursor {epoch " + std::to_string(cursor.epoch) + ", next " +
                    std::to_string(cursor.next) + "}\n  fix: an epoch from 0, next from 0 to " +
                    std::to_string(state.per_epoch) + ", the number of samples");
  }
  const std::lock_guard lock(state.mutex);
  state.cursor = cursor;
  state.restart();
}

template <class T>
void Loader<T>::set_share(SharePredicate wants) {
  State& state = *state_;
  auto share = wants ? std::make_shared<const SharePredicate>(std::move(wants)) : nullptr;
  const std::lock_guard lock(state.mutex);
  state.share = std::move(share);
  state.restart();
}

template <class T>
Index Loader<T>::batches_per_epoch() const {
  const Index count = state_->per_epoch;
  const Index batch = state_->options.batch;
  return state_->options.drop_last ? count / batch : (count - 1) / batch + 1;
}

template <class T>
const Shape& Loader<T>::sample_shape() const {
  return state_->sample_shape;
}
template <class T>
const Dataset& Loader<T>::dataset() const {
  return *state_->dataset;
}
template <class T>
const LoaderOptions& Loader<T>::options() const {
  return state_->options;
}

template class Loader<float>;
template class Loader<double>;

}  // namespace fenestra::nn
