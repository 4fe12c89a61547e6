// Datasets from files: digits, the MNIST family, arrays. Folders of pictures are in folder.cpp.
#include <fenestra/nn/data/sources.hpp>

#include <fenestra/io/idx.hpp>
#include <fenestra/io/npy.hpp>
#include <fenestra/io/npy_header.hpp>
#include <fenestra/io/npz.hpp>
#include <fenestra/io/source.hpp>
#include <fenestra/nn/data/places.hpp>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fenestra::nn {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& file, const std::string& what, const std::string& fix) {
  throw Error(ErrorCode::bad_file, file.string() + ": " + what + "\n  fix: " + fix);
}

/// Divides all values, after a look that they are what bytes can be.
void scale_levels(Tensor<float>& x, float most, const std::string& name) {
  Index place = 0;
  for (float& value : x.mutable_values()) {
    if (!(value >= 0 && value <= most)) {
      refuse(name,
             "value " + std::to_string(value) + " at position " + std::to_string(place),
             "levels from 0 to " + std::to_string(static_cast<int>(most)));
    }
    value /= most;
    ++place;
  }
}

/// (samples, height, width) as (samples, 1, height, width).
template <class T>
Tensor<T> with_channel(const Tensor<T>& x) {
  return x.reshaped(Shape{x.shape()[0], 1, x.shape()[1], x.shape()[2]});
}

void check_rank(const fs::path& file, const Shape& shape, int rank, const std::string& axes) {
  if (shape.rank() != rank) {
    refuse(file, "an array " + to_string(shape), "another file: this one should be " + axes);
  }
}

void check_counts(const fs::path& images, Index samples, const fs::path& labels, Index count) {
  if (samples != count) {
    throw Error(ErrorCode::bad_file,
                images.string() + ": " + std::to_string(samples) + " pictures, " + labels.string() +
                    ": " + std::to_string(count) +
                    " labels\n  fix: two files of the same part of the data");
  }
}

std::vector<std::string> digit_names() {
  return {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
}

// --- IDX -----------------------------------------------------------------------------------------

/// "train-images-idx3-ubyte" in the spellings in which it is passed around.
std::vector<std::string> idx_names(const std::string& part, const std::string& kind) {
  std::vector<std::string> names;
  for (const char* joint : {"-", "."}) {
    for (const char* suffix : {"", ".gz"}) {
      names.push_back(part + joint + kind + suffix);
    }
  }
  return names;
}

struct IdxPart {
  Tensor<std::uint8_t> x;
  Tensor<Index> labels;
};

IdxPart read_idx_part(std::string_view dataset, const fs::path& folder, const std::string& part) {
  const auto find = [&](const std::vector<std::string>& names) {
    fs::path file = first_file(folder, names);
    if (file.empty()) {
      refuse_missing(dataset, names.front() + " (nor .gz)", {folder});
    }
    return file;
  };
  const fs::path image_file = find(idx_names(part + "-images", "idx3-ubyte"));
  const fs::path label_file = find(idx_names(part + "-labels", "idx1-ubyte"));
  auto x = io::load_idx<std::uint8_t>(image_file);
  check_rank(image_file, x.shape(), 3, "(samples, height, width)");
  auto labels = io::load_idx<Index>(label_file);
  check_rank(label_file, labels.shape(), 1, "(samples,)");
  check_counts(image_file, x.shape()[0], label_file, labels.size());
  return {with_channel(x), std::move(labels)};
}

DatasetPtr idx_dataset(std::string name,
                       std::vector<std::string> classes,
                       Split which,
                       const fs::path& given) {
  const std::string prefix = which == Split::test ? "t10k" : "train";
  const fs::path folder = find_place(name, given, idx_names(prefix + "-images", "idx3-ubyte"));
  IdxPart part = read_idx_part(name, folder, prefix);
  return array_dataset(
      std::move(part.x), std::move(part.labels), std::move(classes), std::move(name));
}

// --- arrays --------------------------------------------------------------------------------------

/// Arrays by name, whatever file they are in.
struct ArrayFile {
  std::string name;  ///< of the file, for messages
  std::function<bool(const std::string&)> has;
  std::function<io::NumberType(const std::string&)> type;
  std::function<Tensor<float>(const std::string&)> read_real;
  std::function<Tensor<Index>(const std::string&)> read_whole;

  std::optional<std::string> first_of(const std::vector<std::string>& names) const {
    const auto found = std::find_if(names.begin(), names.end(), has);
    return found == names.end() ? std::nullopt : std::optional(*found);
  }
};

std::vector<std::string> sample_names(const std::string& suffix) {
  return {"x" + suffix, "images" + suffix};
}
std::vector<std::string> answer_names(const std::string& suffix) {
  return {"y" + suffix, "labels" + suffix, "masks" + suffix, "targets" + suffix};
}

bool is_whole(io::NumberType type) {
  switch (type) {
    case io::NumberType::f8_e5m2:
    case io::NumberType::f8_e4m3:
    case io::NumberType::f16:
    case io::NumberType::bf16:
    case io::NumberType::f32:
    case io::NumberType::f64: return false;
    default: return true;
  }
}

Tensor<float> channels_first(const Tensor<float>& x) {
  const Index n = x.shape()[0], cells = x.shape()[1] * x.shape()[2], channels = x.shape()[3];
  auto y = Tensor<float>::uninitialised(Shape{n, channels, x.shape()[1], x.shape()[2]});
  float* out = y.mutable_data();
  for (Index i = 0; i < n * channels; ++i) {
    const float* in = x.data() + i / channels * cells * channels + i % channels;
    for (Index cell = 0; cell < cells; ++cell) {
      *out++ = in[cell * channels];
    }
  }
  return y;
}

/// Pictures as NumPy keeps them, to (samples, channels, height, width), 0 to 1.
Tensor<float> pictures(const std::string& file, Tensor<float> x) {
  scale_levels(x, 255, file);
  const auto is_channels = [](Index extent) { return extent == 1 || extent == 3 || extent == 4; };
  if (x.rank() == 3) {
    return with_channel(x);
  }
  if (x.rank() == 4 && is_channels(x.shape()[3])) {
    return channels_first(x);
  }
  if (x.rank() == 4 && is_channels(x.shape()[1])) {
    return x;
  }
  refuse(file,
         "pictures of bytes " + to_string(x.shape()),
         "(samples, height, width), or 1, 3 or 4 channels last or first; numbers that are no "
         "pictures as float32");
}

DatasetPtr read_arrays(const ArrayFile& file, const std::string& suffix, const std::string& name) {
  const auto x_name = file.first_of(sample_names(suffix));
  if (!x_name) {
    refuse(file.name,
           "there is no array x" + suffix + " or images" + suffix,
           "name the samples x (with x_test where there is a test part) and the labels y");
  }
  auto x = file.read_real(*x_name);
  if (file.type(*x_name) == io::NumberType::u8) {
    x = pictures(file.name + ": " + *x_name, std::move(x));
  }
  const auto y_name = file.first_of(answer_names(suffix));
  if (!y_name) {
    auto targets = x;
    return target_dataset(std::move(x), std::move(targets), name);
  }
  if (!is_whole(file.type(*y_name))) {
    return target_dataset(std::move(x), file.read_real(*y_name), name);
  }
  auto y = file.read_whole(*y_name);
  return y.rank() > 1 ? mask_dataset(std::move(x), std::move(y), {}, name)
                      : array_dataset(std::move(x), std::move(y), {}, name);
}

DatasetPtr arrays_dataset(const ArrayFile& file,
                          const std::string& name,
                          Split which,
                          const HeldOut& held_out) {
  const bool has_test = file.first_of(sample_names("_test")).has_value();
  const bool has_train = file.first_of(sample_names("_train")).has_value();
  if (has_test && which == Split::test) {
    return read_arrays(file, "_test", name);
  }
  DatasetPtr all = read_arrays(file, has_train ? "_train" : "", name);
  if (has_test) {
    return all;
  }
  const TrainAndTest parts = split(all, held_out.share, held_out.seed);
  return which == Split::train ? parts.train : parts.test;
}

}  // namespace

DatasetPtr digits_dataset(Split which, const fs::path& given) {
  const fs::path folder = find_place("digits", given, {"images.npy"});
  const fs::path image_file = folder / "images.npy", label_file = folder / "labels.npy";
  if (first_file(folder, {"labels.npy"}).empty()) {
    refuse_missing("digits", "labels.npy", {folder});
  }
  auto x = io::load_npy<float>(image_file);
  check_rank(image_file, x.shape(), 3, "(samples, 8, 8)");
  auto labels = io::load_npy<Index>(label_file);
  check_rank(label_file, labels.shape(), 1, "(samples,)");
  check_counts(image_file, x.shape()[0], label_file, labels.size());
  scale_levels(x, 16, image_file.string());
  std::vector<Index> chosen;
  for (Index i = 0; i < labels.size(); ++i) {
    if ((i % 10 == 9) == (which == Split::test)) {
      chosen.push_back(i);
    }
  }
  return subset(array_dataset(with_channel(x), std::move(labels), digit_names(), "digits"),
                std::move(chosen));
}

DatasetPtr mnist_dataset(Split which, const fs::path& folder) {
  return idx_dataset("mnist", digit_names(), which, folder);
}

DatasetPtr fashion_dataset(Split which, const fs::path& folder) {
  return idx_dataset("fashion",
                     {"T-shirt",
                      "trousers",
                      "pullover",
                      "dress",
                      "coat",
                      "sandal",
                      "shirt",
                      "sneaker",
                      "bag",
                      "ankle boot"},
                     which,
                     folder);
}

DatasetPtr npz_dataset(const fs::path& path, Split which, const HeldOut& held_out) {
  const io::NpzReader reader(path);
  const ArrayFile file{
      .name = path.string(),
      .has =
          [&](const std::string& name) {
            return std::find(reader.names().begin(), reader.names().end(), name) !=
                   reader.names().end();
          },
      .type = [&](const std::string& name) { return reader.array(name).type; },
      .read_real = [&](const std::string& name) { return reader.read<float>(name); },
      .read_whole = [&](const std::string& name) { return reader.read<Index>(name); }};
  return arrays_dataset(file, path.filename().string(), which, held_out);
}

DatasetPtr npy_dataset(const fs::path& folder, Split which, const HeldOut& held_out) {
  const auto path_of = [&](const std::string& name) { return folder / (name + ".npy"); };
  const ArrayFile file{
      .name = folder.string(),
      .has =
          [&](const std::string& name) {
            std::error_code error;
            return fs::is_regular_file(path_of(name), error);
          },
      .type =
          [&](const std::string& name) {
            const auto source = io::ByteSource::file(path_of(name));
            return io::read_npy_header(source.from(0), source.size(), source.name()).type;
          },
      .read_real = [&](const std::string& name) { return io::load_npy<float>(path_of(name)); },
      .read_whole = [&](const std::string& name) { return io::load_npy<Index>(path_of(name)); }};
  return arrays_dataset(file, folder.filename().string(), which, held_out);
}

}  // namespace fenestra::nn
