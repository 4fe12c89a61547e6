// Datasets and loaders as the Python module holds them.
#pragma once

#include <fenestra/nn/data/loader.hpp>
#include <fenestra/python/network.hpp>

#include <pybind11/pybind11.h>

#include <memory>
#include <variant>

namespace fenestra::python {

struct AnyDataset {
  nn::DatasetPtr held;
};

class AnyLoader {
 public:
  AnyLoader(const AnyDataset& dataset, const nn::LoaderOptions& options, bool is_double);
  ~AnyLoader();
  AnyLoader(const AnyLoader&) = delete;
  AnyLoader& operator=(const AnyLoader&) = delete;

  /// (inputs, labels, targets, which), or None at the end of an epoch.
  pybind11::object next();
  nn::Cursor cursor();
  void seek(nn::Cursor cursor);
  Index batches_per_epoch() const {
    return std::visit([](const auto& loader) { return loader->batches_per_epoch(); }, loader_);
  }
  const Shape& sample_shape() const {
    return std::visit([](const auto& loader) -> const Shape& { return loader->sample_shape(); },
                      loader_);
  }

  /// Null where it is of the other scalar.
  template <class T>
  nn::Loader<T>* as() {
    auto* loader = std::get_if<std::unique_ptr<nn::Loader<T>>>(&loader_);
    return loader != nullptr ? loader->get() : nullptr;
  }
  InUse& use() { return use_; }

 private:
  AnyDataset dataset_;
  std::variant<std::unique_ptr<nn::Loader<float>>, std::unique_ptr<nn::Loader<double>>> loader_;
  InUse use_;
};

}  // namespace fenestra::python
