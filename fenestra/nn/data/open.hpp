// Any dataset by a word, for command lines: "digits", "mnist:FOLDER", "shapes".
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/nn/data/dataset.hpp>
#include <fenestra/nn/data/sources.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace fenestra::nn {

struct OpenOptions {
  Split split = Split::train;
  Shape size = {};        ///< spatial extents, for folders and generated data; empty: theirs
  int channels = 0;       ///< 1 or 3, for folders and shapes; 0: theirs
  Index count = 0;        ///< samples, for generated data; 0: 2000 to learn from, 400 held out
  HeldOut held_out = {};  ///< for sources without parts; its seed is also that of generated data
};

/// A kind of dataset that `open_dataset` knows.
struct DatasetKind {
  std::string_view name;      ///< "folder"
  std::string_view argument;  ///< "PATH" after a colon, "[FOLDER]" where it may be left out, or ""
  std::string_view what;      ///< one line
};
FENESTRA_API std::span<const DatasetKind> dataset_kinds();

/// Opens "name" or "name:argument". Throws `unknown_choice` for a name that nothing has, with the
/// nearest one, `invalid_option` for arguments and options that the dataset does not take,
/// `invalid_extent` for a size that it cannot have; otherwise what sources.hpp and generated.hpp
/// say.
FENESTRA_API DatasetPtr open_dataset(std::string_view text, const OpenOptions& options = {});

/// What to type to have the files of a dataset; empty where it needs none.
FENESTRA_API std::string how_to_get(std::string_view name);

}  // namespace fenestra::nn
