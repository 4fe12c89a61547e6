// Datasets and loaders for Python (python/fenestra/datasets.py).
#include <fenestra/nn/data/generated.hpp>
#include <fenestra/nn/data/open.hpp>
#include <fenestra/python/loader.hpp>
#include <fenestra/python/module.hpp>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace fenestra::python {

namespace py = pybind11;

namespace {

nn::Split split_of(const std::string& name) {
  if (name != "train" && name != "test") {
    throw Error(ErrorCode::unknown_choice,
                "open_dataset: split = '" + name + "'\n  fix: 'train' or 'test'");
  }
  return name == "test" ? nn::Split::test : nn::Split::train;
}

AnyDataset open(const std::string& text,
                const std::string& split,
                const py::object& size,
                int channels,
                Index count,
                double held_out,
                std::uint64_t seed) {
  const nn::OpenOptions options{
      .split = split_of(split),
      .size = size.is_none() ? Shape() : shape_in(size, {"open_dataset", "size"}),
      .channels = channels,
      .count = count,
      .held_out = {.share = held_out, .seed = seed}};
  const WithoutGil released;
  return {nn::open_dataset(text, options)};
}

Tensor<float> numbers_in(const py::object& object, std::string_view argument) {
  return numbers_of<float>(object, {"array_dataset", argument}, "a dataset is");
}

/// Labels of samples or of cells, or targets.
AnyDataset of_arrays(const py::object& x,
                     const py::object& y,
                     bool is_labels,
                     const std::vector<std::string>& classes,
                     const std::string& name) {
  Tensor<float> samples = numbers_in(x, "x");
  if (!is_labels) {
    return {nn::target_dataset(std::move(samples), numbers_in(y, "y"), name)};
  }
  Tensor<Index> labels = to_integers(y.ptr(), {"array_dataset", "y"});
  return {labels.rank() > 1
              ? nn::mask_dataset(std::move(samples), std::move(labels), classes, name)
              : nn::array_dataset(std::move(samples), std::move(labels), classes, name)};
}

/// (image, label, mask or target)
py::tuple sample_of(const AnyDataset& dataset, Index i) {
  const nn::Sample sample = [&] {
    const WithoutGil released;
    return dataset.held->get(i);
  }();
  py::object answer;
  switch (dataset.held->task()) {
    case nn::Task::classification: answer = py::int_(sample.label); break;
    case nn::Task::segmentation: answer = stolen(to_python(sample.mask)); break;
    case nn::Task::reconstruction: answer = stolen(to_python(Value<float>(sample.target))); break;
  }
  return py::make_tuple(stolen(to_python(Value<float>(sample.image))), answer);
}

template <class T>
py::object batch_tuple(const nn::Batch<T>& batch) {
  const auto values = [](const Tensor<T>& tensor) {
    return tensor.size() > 0 ? stolen(to_python(Value<T>(tensor))) : py::object(py::none());
  };
  return py::make_tuple(
      stolen(to_python(Value<T>(batch.inputs))),
      batch.labels.size() > 0 ? stolen(to_python(batch.labels)) : py::object(py::none()),
      values(batch.targets),
      py::cast(batch.which));
}

}  // namespace

AnyLoader::AnyLoader(const AnyDataset& dataset, const nn::LoaderOptions& options, bool is_double)
    : dataset_(dataset) {
  if (is_double) {
    loader_ = std::make_unique<nn::Loader<double>>(dataset.held, options);
  } else {
    loader_ = std::make_unique<nn::Loader<float>>(dataset.held, options);
  }
}

AnyLoader::~AnyLoader() {
  // Its thread may be at a sample whose memory is Python's.
  const WithoutGil released;
  std::visit([](auto& loader) { loader.reset(); }, loader_);
}

py::object AnyLoader::next() {
  const InUse::Hold hold(use_, "loader");
  return std::visit(
      [](auto& loader) -> py::object {
        const auto batch = [&] {
          const WithoutGil released;
          return loader->next();
        }();
        return batch ? batch_tuple(*batch) : py::none();
      },
      loader_);
}

nn::Cursor AnyLoader::cursor() {
  const InUse::Hold hold(use_, "loader");
  return std::visit([](auto& loader) { return loader->cursor(); }, loader_);
}

void AnyLoader::seek(nn::Cursor cursor) {
  const InUse::Hold hold(use_, "loader");
  std::visit(
      [&](auto& loader) {
        const WithoutGil released;
        loader->seek(cursor);
      },
      loader_);
}

void define_datasets(py::module_& module) {
  py::class_<AnyDataset>(module, "_Dataset", "Samples by index.")
      .def("__len__", [](const AnyDataset& d) { return d.held->size(); })
      .def("sample", &sample_of, py::arg("index"))
      .def(
          "sample_name",
          [](const AnyDataset& d, Index i) { return d.held->sample_name(i); },
          py::arg("index"))
      .def_property_readonly("name", [](const AnyDataset& d) { return d.held->info().name; })
      .def_property_readonly(
          "task", [](const AnyDataset& d) { return std::string(nn::task_name(d.held->task())); })
      .def_property_readonly(
          "sample_shape", [](const AnyDataset& d) { return shape_tuple(d.held->sample_shape()); })
      .def_property_readonly("classes", [](const AnyDataset& d) { return d.held->classes(); })
      .def(
          "subset",
          [](const AnyDataset& d, std::vector<Index> which) {
            return AnyDataset{nn::subset(d.held, std::move(which))};
          },
          py::arg("which"))
      .def("as_reconstruction",
           [](const AnyDataset& d) { return AnyDataset{nn::as_reconstruction(d.held)}; })
      .def(
          "split",
          [](const AnyDataset& d, double held_out, std::uint64_t seed) {
            const nn::TrainAndTest parts = nn::split(d.held, held_out, seed);
            return std::pair(AnyDataset{parts.train}, AnyDataset{parts.test});
          },
          py::arg("held_out"),
          py::arg("seed"))
      .def("normalisation", [](const AnyDataset& d) {
        const WithoutGil released;
        return nn::to_json(nn::normalisation_of(*d.held));
      });
  py::class_<AnyLoader>(module, "_Loader", "Batches of a dataset.")
      .def(py::init([](const AnyDataset& dataset,
                       Index batch,
                       std::uint64_t seed,
                       bool shuffle,
                       bool drop_last,
                       Index prefetch,
                       const std::string& augmentation,
                       const std::string& preprocessing,
                       bool is_double) {
             nn::LoaderOptions options{.batch = batch,
                                       .seed = seed,
                                       .shuffle = shuffle,
                                       .drop_last = drop_last,
                                       .prefetch = prefetch};
             options.augmentation = nn::parse_augmentation(augmentation);
             if (!preprocessing.empty()) {
               options.preprocessing = nn::preprocessing_from_json(preprocessing, "preprocessing");
             }
             return std::make_unique<AnyLoader>(dataset, options, is_double);
           }),
           py::arg("dataset"),
           py::arg("batch"),
           py::arg("seed"),
           py::arg("shuffle"),
           py::arg("drop_last"),
           py::arg("prefetch"),
           py::arg("augmentation"),
           py::arg("preprocessing"),
           py::arg("double"))
      .def("next", &AnyLoader::next)
      .def_property_readonly("cursor",
                             [](AnyLoader& loader) {
                               const nn::Cursor cursor = loader.cursor();
                               return py::make_tuple(cursor.epoch, cursor.next);
                             })
      .def(
          "seek",
          [](AnyLoader& loader, Index epoch, Index next) {
            loader.seek({epoch, next});
          },
          py::arg("epoch"),
          py::arg("next"))
      .def_property_readonly("batches_per_epoch", &AnyLoader::batches_per_epoch)
      .def_property_readonly("sample_shape",
                             [](AnyLoader& loader) { return shape_tuple(loader.sample_shape()); });
  module.def("_open_dataset",
             &open,
             py::arg("text"),
             py::arg("split"),
             py::arg("size"),
             py::arg("channels"),
             py::arg("count"),
             py::arg("held_out"),
             py::arg("seed"));
  module.def("_array_dataset",
             &of_arrays,
             py::arg("x"),
             py::arg("y"),
             py::arg("is_labels"),
             py::arg("classes"),
             py::arg("name"));
  module.def(
      "_preprocess",
      [](const std::string& preprocessing, const py::object& sample) {
        const Tensor<float> image =
            numbers_of<float>(sample, {"preprocess", "sample"}, "samples are");
        return stolen(to_python(Value<float>(nn::preprocess<float>(
            nn::preprocessing_from_json(preprocessing, "preprocessing"), image))));
      },
      py::arg("preprocessing"),
      py::arg("sample"));
  module.def("_how_to_get", &nn::how_to_get, py::arg("name"));
  module.def("_dataset_kinds", [] {
    py::list result;
    for (const nn::DatasetKind& kind : nn::dataset_kinds()) {
      result.append(py::make_tuple(
          std::string(kind.name), std::string(kind.argument), std::string(kind.what)));
    }
    return result;
  });
}

}  // namespace fenestra::python
