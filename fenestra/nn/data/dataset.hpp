// Datasets: samples by index, each a picture, signal or volume with what a network is to say about
// it. A dataset only answers; order, batches and augmentation are the loader's (loader.hpp), and
// files are opened in sources.hpp and open.hpp.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/base/export.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fenestra::nn {

/// What a network is to say about a sample.
enum class Task {
  classification,  ///< one class
  segmentation,    ///< one class for every cell
  reconstruction,  ///< numbers: the sample itself, or others
};

/// "classification", "segmentation", "reconstruction".
FENESTRA_API std::string_view task_name(Task task);

/// One sample. Tensors may share the dataset's memory.
struct Sample {
  Tensor<float> image = {};   ///< (channels, spatial...)
  Index label = 0;            ///< classification: the class
  Tensor<Index> mask = {};    ///< segmentation: (spatial...), the class of every cell
  Tensor<float> target = {};  ///< reconstruction: of any shape, the same for all samples
};

/// What is the same for all samples of a dataset.
struct DatasetInfo {
  std::string name = {};  ///< for people: "digits"
  Task task = Task::classification;
  Shape sample_shape = {};                ///< (channels, spatial...)
  std::vector<std::string> classes = {};  ///< empty where there are none
  Shape target_shape = {};                ///< of one sample's `target`; reconstruction only
};

/// Immutable: all of it may be called from many threads.
class FENESTRA_API Dataset {
 public:
  virtual ~Dataset();
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  const DatasetInfo& info() const { return info_; }
  Task task() const { return info_.task; }
  const Shape& sample_shape() const { return info_.sample_shape; }
  const std::vector<std::string>& classes() const { return info_.classes; }
  /// Number of classes.
  Index class_count() const { return static_cast<Index>(info_.classes.size()); }

  virtual Index size() const = 0;
  /// Sample i of 0 .. size() - 1. Throws `invalid_index`, what the dataset throws (`bad_file`, with
  /// the file's path), and `shape_mismatch` or `invalid_index` where a sample is not what `info`
  /// promises, with the sample's name.
  Sample get(Index i) const;
  /// What to call a sample in a message: "sample 17", or its file.
  virtual std::string sample_name(Index i) const;

 protected:
  explicit Dataset(DatasetInfo info) : info_(std::move(info)) {}
  /// `i` is in range. Safe from many threads.
  virtual Sample read(Index i) const = 0;
  /// The same of another dataset, for those made of others: one `get` is enough to check and name
  /// a sample.
  static Sample read_from(const Dataset& other, Index i) { return other.read(i); }

 private:
  DatasetInfo info_;
};

using DatasetPtr = std::shared_ptr<const Dataset>;

// Arrays in memory, which samples share: nothing is copied when a sample is asked for. The first
// axis of every array is the sample's. Classes without names are called "0", "1", ... up to the
// largest label.

/// x (samples, channels, spatial...), labels (samples,).
FENESTRA_API DatasetPtr array_dataset(Tensor<float> x,
                                      Tensor<Index> labels,
                                      std::vector<std::string> classes = {},
                                      std::string name = "arrays");
/// The same of levels, which stay bytes: a sample is made when it is asked for, 0 to 255 as 0 to 1.
FENESTRA_API DatasetPtr array_dataset(Tensor<std::uint8_t> x,
                                      Tensor<Index> labels,
                                      std::vector<std::string> classes = {},
                                      std::string name = "arrays");
/// masks (samples, spatial...).
FENESTRA_API DatasetPtr mask_dataset(Tensor<float> x,
                                     Tensor<Index> masks,
                                     std::vector<std::string> classes = {},
                                     std::string name = "arrays");
/// targets (samples, ...).
FENESTRA_API DatasetPtr target_dataset(Tensor<float> x,
                                       Tensor<float> targets,
                                       std::string name = "arrays");

/// The samples `which` of another dataset, in that order; one may be there more than once.
FENESTRA_API DatasetPtr subset(DatasetPtr dataset, std::vector<Index> which);

/// The same samples, each with itself as its target: for autoencoders.
FENESTRA_API DatasetPtr as_reconstruction(DatasetPtr dataset);

struct TrainAndTest {
  DatasetPtr train;
  DatasetPtr test;
};
/// Holds out the share `held_out` of the samples (rounded to a number, at least one and not all),
/// chosen by the seed alone; both parts keep the order of the samples.
FENESTRA_API TrainAndTest split(const DatasetPtr& dataset, double held_out, std::uint64_t seed);

}  // namespace fenestra::nn
