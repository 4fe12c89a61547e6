// Pictures in folders, one for each class.
#include <fenestra/io/image.hpp>
#include <fenestra/nn/data/preprocessing.hpp>
#include <fenestra/nn/data/sources.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace fenestra::nn {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& path, const std::string& what, const std::string& fix) {
  throw Error(ErrorCode::bad_file, path.string() + ": " + what + "\n  fix: " + fix);
}

constexpr const char* kArrangement =
    "one sub-folder for each class, with its pictures: PATH/cat/1.png, PATH/dog/7.jpg";

bool is_picture(const fs::path& path) {
  constexpr std::array<std::string_view, 7> kKnown = {
      ".png", ".jpg", ".jpeg", ".bmp", ".pgm", ".ppm", ".pnm"};
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  return std::find(kKnown.begin(), kKnown.end(), ending) != kKnown.end();
}

/// What is in a folder and not hidden, by name: the order of a directory is anything.
std::vector<fs::path> entries(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> found;
  fs::directory_iterator at(folder, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    if (!at->path().filename().string().starts_with('.')) {
      found.push_back(at->path());
    }
  }
  if (error) {
    refuse(folder, error.message(), kArrangement);
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

std::vector<std::string> classes_in(const fs::path& folder) {
  std::vector<std::string> classes;
  for (const fs::path& entry : entries(folder)) {
    if (is_folder(entry)) {
      classes.push_back(entry.filename().string());
    }
  }
  if (classes.empty()) {
    refuse(folder, "there is no sub-folder in it", kArrangement);
  }
  return classes;
}

struct Picture {
  fs::path file;
  Index label = 0;
};

std::vector<Picture> pictures_in(const fs::path& folder, const std::vector<std::string>& classes) {
  std::vector<Picture> pictures;
  for (const std::string& name : classes_in(folder)) {
    const auto found = std::find(classes.begin(), classes.end(), name);
    if (found == classes.end()) {
      refuse(folder / name,
             "the part to learn from has no class of this name",
             "the same class folders in train and test");
    }
    const std::size_t before = pictures.size();
    for (const fs::path& entry : entries(folder / name)) {
      if (is_picture(entry) && !is_folder(entry)) {
        pictures.push_back({entry, found - classes.begin()});
      }
    }
    if (pictures.size() == before) {
      refuse(folder / name,
             "there is no picture in this class",
             "PNG, JPEG, BMP, PGM or PPM files in it, or no such folder");
    }
  }
  return pictures;
}

class Pictures final : public Dataset {
 public:
  Pictures(DatasetInfo about, fs::path folder, std::vector<Picture> pictures, bool resizes)
      : Dataset(std::move(about)),
        folder_(std::move(folder)),
        pictures_(std::move(pictures)),
        resizes_(resizes) {}

  Index size() const override { return static_cast<Index>(pictures_.size()); }
  std::string sample_name(Index i) const override {
    return "sample " + std::to_string(i) + " (" +
           picture(i).file.lexically_relative(folder_).string() + ")";
  }

 protected:
  Sample read(Index i) const override {
    const Shape size{sample_shape()[1], sample_shape()[2]};
    const io::Image image =
        io::load_image(picture(i).file, {.channels = static_cast<int>(sample_shape()[0])});
    const bool differs = image.height != size[0] || image.width != size[1];
    if (differs && !resizes_) {
      refuse(picture(i).file,
             std::to_string(image.height) + " x " + std::to_string(image.width) +
                 " pixels (height x width), the first picture has " + std::to_string(size[0]) +
                 " x " + std::to_string(size[1]),
             "say to which size all are to be resized");
    }
    Tensor<float> x = io::to_tensor(image);
    return {.image = differs ? resized(x, size) : std::move(x), .label = picture(i).label};
  }

 private:
  const Picture& picture(Index i) const { return pictures_[static_cast<std::size_t>(i)]; }

  fs::path folder_;
  std::vector<Picture> pictures_;
  bool resizes_;
};

}  // namespace

DatasetPtr folder_dataset(const fs::path& folder, Split which, const FolderOptions& options) {
  if (!is_folder(folder)) {
    refuse(folder, "there is no such folder", kArrangement);
  }
  if (options.channels != 0 && options.channels != 1 && options.channels != 3) {
    throw Error(ErrorCode::invalid_option,
                "folder: channels = " + std::to_string(options.channels) +
                    "\n  fix: 1 for grey, 3 for colours, 0 for those of the first picture");
  }
  if (options.size.rank() != 0 &&
      (options.size.rank() != 2 || options.size[0] < 1 || options.size[1] < 1)) {
    throw Error(ErrorCode::invalid_extent,
                "folder: size = " + to_string(options.size) + "\n  fix: (height, width)");
  }
  const bool has_parts = is_folder(folder / "train") && is_folder(folder / "test");
  const fs::path first_part = has_parts ? folder / "train" : folder;
  std::vector<std::string> classes = classes_in(first_part);
  std::vector<Picture> first = pictures_in(first_part, classes);
  Shape size = options.size;
  int channels = options.channels;
  if (size.rank() == 0 || channels == 0) {
    const io::Image image = io::load_image(first.front().file);
    size = size.rank() == 0 ? Shape{image.height, image.width} : size;
    channels = channels == 0 ? (image.channels <= 2 ? 1 : 3) : channels;
  }
  std::vector<Picture> chosen =
      has_parts && which == Split::test ? pictures_in(folder / "test", classes) : std::move(first);
  DatasetInfo about{.name = folder.filename().empty() ? folder.parent_path().filename().string()
                                                      : folder.filename().string(),
                    .task = Task::classification,
                    .sample_shape = {channels, size[0], size[1]},
                    .classes = std::move(classes)};
  auto all = std::make_shared<const Pictures>(
      std::move(about), folder, std::move(chosen), options.size.rank() > 0);
  if (has_parts) {
    return all;
  }
  const TrainAndTest parts = split(all, options.held_out.share, options.held_out.seed);
  return which == Split::train ? parts.train : parts.test;
}

}  // namespace fenestra::nn
