// Batches of a dataset, in an order that is a function of seed and epoch, made ahead on a thread.
//
//   Loader<float> loader(dataset, {.batch = 64, .seed = 1});
//   for (int epoch = 0; epoch < 10; ++epoch) {
//     while (auto batch = loader.next()) { ... batch->inputs, batch->labels ... }
//   }
//
// The place is a `Cursor`, two numbers. A loader with the same dataset and options that is put
// there gives the same batches to the last bit, whatever was loaded before and however far ahead
// its thread was.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/nn/data/augmentation.hpp>
#include <fenestra/nn/data/dataset.hpp>
#include <fenestra/nn/data/preprocessing.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace fenestra::nn {

/// What the task has no use for is an empty tensor, shape (0,).
template <class T>
struct Batch {
  Tensor<T> inputs = {};      ///< (samples, channels, spatial...), normalised
  Tensor<Index> labels = {};  ///< classification: (samples,); segmentation: (samples, spatial...)
  Tensor<T> targets = {};     ///< reconstruction: (samples, ...), as the dataset has them
  std::vector<Index> which = {};  ///< the dataset's index of every sample

  Index size() const { return static_cast<Index>(which.size()); }
};

/// Where a loader is.
struct Cursor {
  Index epoch = 0;
  Index next = 0;  ///< samples of the epoch that have been handed out

  friend bool operator==(const Cursor&, const Cursor&) = default;
};

struct LoaderOptions {
  Index batch = 32;
  std::uint64_t seed = 0;
  bool shuffle = true;     ///< otherwise in the dataset's order
  bool drop_last = false;  ///< leave out the batch that is not full at the end of an epoch
  Index prefetch = 2;      ///< batches made ahead on a thread; 0: each when it is asked for
  Augmentation augmentation = {};
  Preprocessing preprocessing = {};
};

/// Whether a sample is needed: by the cursor of its batch, its place in it, and the batch's size.
using SharePredicate = std::function<bool(const Cursor& batch, Index place, Index samples)>;

/// Used by one thread at a time. The thread that makes batches starts with the first `next`, rests
/// between epochs, and ends with the loader, after the sample it is at.
template <class T>
class FENESTRA_API Loader {
 public:
  /// Throws `invalid_extent` for an empty dataset, a batch below 1, or one that would always be
  /// dropped, `invalid_option` for a prefetch below 0; and what the checks of augmentation and
  /// preprocessing throw.
  explicit Loader(DatasetPtr dataset, const LoaderOptions& options = {});
  ~Loader();
  Loader(Loader&&) noexcept;
  Loader& operator=(Loader&&) noexcept;

  /// The next batch; nothing where the epoch ends, and then the first one of the next epoch. An
  /// error of a sample is thrown here, when its batch is due, with the sample's name; the cursor
  /// stays before that batch.
  std::optional<Batch<T>> next();

  /// Of the batch that comes next. {e, all samples} is before the end of epoch e has been told.
  Cursor cursor() const;
  /// Goes on there. Throws `invalid_index` for a place that no epoch has.
  void seek(Cursor cursor);
  /// For those who compute a part of each batch: of the others, samples are not made, and hold no
  /// particular numbers. The shapes of batches stay. Empty: all are made.
  void set_share(SharePredicate wants);

  Index batches_per_epoch() const;
  /// (channels, spatial...) of the inputs, after augmentation and preprocessing.
  const Shape& sample_shape() const;
  const Dataset& dataset() const;
  const LoaderOptions& options() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

extern template class Loader<float>;
extern template class Loader<double>;

}  // namespace fenestra::nn
