// Datasets in memory, and datasets made of others.
#include <fenestra/nn/data/dataset.hpp>

#include <fenestra/base/key.hpp>
#include <fenestra/nn/data/permutation.hpp>

#include <algorithm>
#include <cmath>

namespace fenestra::nn {

namespace {

/// The extents without the first: those of one sample.
Shape without_first(const Shape& shape) {
  Shape rest;
  for (int axis = 1; axis < shape.rank(); ++axis) {
    rest.push_back(shape[axis]);
  }
  return rest;
}

Shape spatial_extents(const Shape& sample) { return without_first(sample); }

[[noreturn]] void refuse_shape(const std::string& what, const std::string& fix) {
  throw Error(ErrorCode::shape_mismatch, what + "\n  fix: " + fix);
}

/// Part i along the first axis, in the memory of the whole, which it keeps.
template <class T>
Tensor<T> part(const std::shared_ptr<const Tensor<T>>& all, Index i, const Shape& shape) {
  const Index size = all->size() / all->shape()[0];
  // Borrowed memory is only read, so the cast lets nobody write.
  return Tensor<T>::borrowed(shape,
                             std::shared_ptr<T[]>(all, const_cast<T*>(all->data()) + i * size));
}

class Arrays final : public Dataset {
 public:
  Arrays(DatasetInfo about, Tensor<float> x, Tensor<Index> labels, Tensor<float> targets)
      : Dataset(std::move(about)),
        x_(std::make_shared<const Tensor<float>>(std::move(x))),
        labels_(std::make_shared<const Tensor<Index>>(std::move(labels))),
        targets_(std::make_shared<const Tensor<float>>(std::move(targets))) {}

  Index size() const override { return x_->shape()[0]; }

 protected:
  Sample read(Index i) const override {
    Sample sample{.image = part(x_, i, sample_shape())};
    switch (task()) {
      case Task::classification: sample.label = (*labels_)[i]; break;
      case Task::segmentation:
        sample.mask = part(labels_, i, spatial_extents(sample_shape()));
        break;
      case Task::reconstruction: sample.target = part(targets_, i, info().target_shape); break;
    }
    return sample;
  }

 private:
  std::shared_ptr<const Tensor<float>> x_;
  std::shared_ptr<const Tensor<Index>> labels_;
  std::shared_ptr<const Tensor<float>> targets_;
};

class Levels final : public Dataset {
 public:
  Levels(DatasetInfo about, Tensor<std::uint8_t> x, Tensor<Index> labels)
      : Dataset(std::move(about)), x_(std::move(x)), labels_(std::move(labels)) {}

  Index size() const override { return labels_.size(); }

 protected:
  Sample read(Index i) const override {
    auto image = Tensor<float>::uninitialised(sample_shape());
    const Index cells = image.size();
    std::transform(x_.data() + i * cells,
                   x_.data() + (i + 1) * cells,
                   image.mutable_data(),
                   [](std::uint8_t level) { return static_cast<float>(level) / 255.0F; });
    return {.image = std::move(image), .label = labels_[i]};
  }

 private:
  Tensor<std::uint8_t> x_;
  Tensor<Index> labels_;
};

void check_samples(const std::string& name, const Shape& x) {
  if (x.rank() < 2) {
    throw Error(ErrorCode::rank_mismatch,
                name + ": x = " + to_string(x) + "\n  fix: (samples, channels, spatial...)");
  }
}

/// Names for classes that have none, and a refusal of labels that have no class.
std::vector<std::string> named(const std::string& name,
                               const Tensor<Index>& labels,
                               std::vector<std::string> classes) {
  const auto values = labels.values();
  const auto largest = std::max_element(values.begin(), values.end());
  if (classes.empty()) {
    constexpr Index kMost = 100'000;  // a class has a name, so a label out of place costs memory
    if (largest != values.end() && *largest >= kMost) {
      throw Error(ErrorCode::invalid_index,
                  name + ": label " + std::to_string(*largest) + " at position " +
                      std::to_string(largest - values.begin()) + "\n  fix: labels from 0 to " +
                      std::to_string(kMost - 1));
    }
    for (Index c = 0; largest != values.end() && c <= *largest; ++c) {
      classes.push_back(std::to_string(c));
    }
  }
  const auto count = static_cast<Index>(classes.size());
  const auto bad =
      std::find_if(values.begin(), values.end(), [&](Index c) { return c < 0 || c >= count; });
  if (bad != values.end()) {
    throw Error(ErrorCode::invalid_index,
                name + ": label " + std::to_string(*bad) + " at position " +
                    std::to_string(bad - values.begin()) + ", classes " + std::to_string(count) +
                    "\n  fix: labels from 0 to the number of classes less one");
  }
  return classes;
}

/// Of samples with one label each, after a look that they fit.
DatasetInfo labelled_info(const Shape& x,
                          const Tensor<Index>& labels,
                          std::vector<std::string> classes,
                          std::string name) {
  check_samples(name, x);
  if (labels.shape() != Shape{x[0]}) {
    refuse_shape(name + ": x = " + to_string(x) + " has " + std::to_string(x[0]) +
                     " samples, labels = " + to_string(labels.shape()),
                 "one label for each sample");
  }
  classes = named(name, labels, std::move(classes));
  return {.name = std::move(name),
          .task = Task::classification,
          .sample_shape = without_first(x),
          .classes = std::move(classes)};
}

class Subset final : public Dataset {
 public:
  Subset(DatasetPtr whole, std::vector<Index> which)
      : Dataset(whole->info()), whole_(std::move(whole)), which_(std::move(which)) {}

  Index size() const override { return static_cast<Index>(which_.size()); }
  std::string sample_name(Index i) const override { return whole_->sample_name(original(i)); }

 protected:
  Sample read(Index i) const override { return read_from(*whole_, original(i)); }

 private:
  Index original(Index i) const { return which_[static_cast<std::size_t>(i)]; }

  DatasetPtr whole_;
  std::vector<Index> which_;
};

class Reconstruction final : public Dataset {
 public:
  explicit Reconstruction(DatasetPtr original)
      : Dataset({.name = original->info().name,
                 .task = Task::reconstruction,
                 .sample_shape = original->sample_shape(),
                 .classes = {},
                 .target_shape = original->sample_shape()}),
        original_(std::move(original)) {}

  Index size() const override { return original_->size(); }
  std::string sample_name(Index i) const override { return original_->sample_name(i); }

 protected:
  Sample read(Index i) const override {
    Sample sample{.image = read_from(*original_, i).image};
    sample.target = sample.image;
    return sample;
  }

 private:
  DatasetPtr original_;
};

}  // namespace

std::string_view task_name(Task task) {
  switch (task) {
    case Task::classification: return "classification";
    case Task::segmentation: return "segmentation";
    case Task::reconstruction: return "reconstruction";
  }
  return "";
}

Dataset::~Dataset() = default;

std::string Dataset::sample_name(Index i) const { return "sample " + std::to_string(i); }

Sample Dataset::get(Index i) const {
  if (i < 0 || i >= size()) {
    throw Error(ErrorCode::invalid_index,
                info_.name + ": sample " + std::to_string(i) + " of " + std::to_string(size()) +
                    "\n  fix: 0 to " + std::to_string(size() - 1));
  }
  Sample sample;
  try {
    sample = read(i);
  } catch (const Error& error) {
    throw Error(error.code(), info_.name + ": " + sample_name(i) + ": " + error.what());
  }
  const auto require = [&](const char* what, const Shape& got, const Shape& needed) {
    if (got != needed) {
      throw Error(ErrorCode::shape_mismatch,
                  info_.name + ": " + sample_name(i) + ": " + what + " = " + to_string(got) +
                      ", the dataset's samples have " + to_string(needed));
    }
  };
  require("image", sample.image.shape(), info_.sample_shape);
  switch (info_.task) {
    case Task::classification:
      if (sample.label < 0 || sample.label >= class_count()) {
        throw Error(ErrorCode::invalid_index,
                    info_.name + ": " + sample_name(i) + ": label " + std::to_string(sample.label) +
                        " of " + std::to_string(class_count()) + " classes");
      }
      break;
    case Task::segmentation:
      require("mask", sample.mask.shape(), spatial_extents(info_.sample_shape));
      break;
    case Task::reconstruction: require("target", sample.target.shape(), info_.target_shape); break;
  }
  return sample;
}

DatasetPtr array_dataset(Tensor<float> x,
                         Tensor<Index> labels,
                         std::vector<std::string> classes,
                         std::string name) {
  DatasetInfo about = labelled_info(x.shape(), labels, std::move(classes), std::move(name));
  return std::make_shared<const Arrays>(
      std::move(about), std::move(x), std::move(labels), Tensor<float>());
}
DatasetPtr array_dataset(Tensor<std::uint8_t> x,
                         Tensor<Index> labels,
                         std::vector<std::string> classes,
                         std::string name) {
  DatasetInfo about = labelled_info(x.shape(), labels, std::move(classes), std::move(name));
  return std::make_shared<const Levels>(std::move(about), std::move(x), std::move(labels));
}

DatasetPtr mask_dataset(Tensor<float> x,
                        Tensor<Index> masks,
                        std::vector<std::string> classes,
                        std::string name) {
  check_samples(name, x.shape());
  Shape needed{x.shape()[0]};
  for (int axis = 2; axis < x.rank(); ++axis) {
    needed.push_back(x.shape()[axis]);
  }
  if (masks.shape() != needed) {
    refuse_shape(name + ": x = " + to_string(x.shape()) + ", masks = " + to_string(masks.shape()),
                 "masks " + to_string(needed) + ", one class for every cell");
  }
  classes = named(name, masks, std::move(classes));
  DatasetInfo about{.name = std::move(name),
                    .task = Task::segmentation,
                    .sample_shape = without_first(x.shape()),
                    .classes = std::move(classes)};
  return std::make_shared<const Arrays>(
      std::move(about), std::move(x), std::move(masks), Tensor<float>());
}

DatasetPtr target_dataset(Tensor<float> x, Tensor<float> targets, std::string name) {
  check_samples(name, x.shape());
  if (targets.rank() < 1 || targets.shape()[0] != x.shape()[0]) {
    refuse_shape(name + ": x = " + to_string(x.shape()) + " has " + std::to_string(x.shape()[0]) +
                     " samples, targets = " + to_string(targets.shape()),
                 "one target for each sample");
  }
  DatasetInfo about{.name = std::move(name),
                    .task = Task::reconstruction,
                    .sample_shape = without_first(x.shape()),
                    .classes = {},
                    .target_shape = without_first(targets.shape())};
  return std::make_shared<const Arrays>(
      std::move(about), std::move(x), Tensor<Index>(), std::move(targets));
}

DatasetPtr subset(DatasetPtr dataset, std::vector<Index> which) {
  for (const Index i : which) {
    if (i < 0 || i >= dataset->size()) {
      throw Error(ErrorCode::invalid_index,
                  "subset: sample " + std::to_string(i) + " of " + std::to_string(dataset->size()) +
                      "\n  fix: 0 to " + std::to_string(dataset->size() - 1));
    }
  }
  return std::make_shared<const Subset>(std::move(dataset), std::move(which));
}

DatasetPtr as_reconstruction(DatasetPtr dataset) {
  return std::make_shared<const Reconstruction>(std::move(dataset));
}

TrainAndTest split(const DatasetPtr& dataset, double held_out, std::uint64_t seed) {
  const Index count = dataset->size();
  if (!(held_out > 0 && held_out < 1)) {
    throw Error(ErrorCode::invalid_option,
                "split: held_out = " + std::to_string(held_out) +
                    "\n  fix: a share between 0 and 1, e.g. 0.1");
  }
  if (count < 2) {
    throw Error(ErrorCode::invalid_extent,
                "split: " + dataset->info().name + " has " + std::to_string(count) +
                    " samples\n  fix: at least 2, so that both parts have one");
  }
  const auto wanted = static_cast<Index>(std::llround(held_out * static_cast<double>(count)));
  const Index held = std::clamp<Index>(wanted, 1, count - 1);
  const Permutation order(Key(seed).fold("split"), count);
  std::vector<bool> is_held(static_cast<std::size_t>(count));
  for (Index i = 0; i < held; ++i) {
    is_held[static_cast<std::size_t>(order(i))] = true;
  }
  std::vector<Index> train, test;
  for (Index i = 0; i < count; ++i) {
    (is_held[static_cast<std::size_t>(i)] ? test : train).push_back(i);
  }
  return {subset(dataset, std::move(train)), subset(dataset, std::move(test))};
}

}  // namespace fenestra::nn
