// Files that people have instead: pages about a download, pointers, archives, other formats.
#include <fenestra/base/error.hpp>
#include <fenestra/io/json.hpp>
#include <fenestra/io/stranger.hpp>

#include <algorithm>
#include <cctype>
#include <string>

namespace fenestra::io {

namespace {

constexpr std::size_t kLooked = 512;

bool is_web_page(std::string_view start) {
  const std::size_t first = start.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || start[first] != '<') {
    return false;
  }
  std::string lower(start);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return lower.find("<!doctype") != std::string::npos || lower.find("<html") != std::string::npos ||
         lower.find("<?xml") != std::string::npos;
}

/// Eight bytes with the length of a header, and the header, an object of JSON.
bool is_safetensors(std::string_view start) {
  return start.size() > 10 && start[8] == '{' &&
         start.substr(5, 3) == std::string_view("\0\0\0", 3);
}

}  // namespace

Stranger stranger_of(std::string_view start) {
  start = start.substr(0, kLooked);
  if (start.empty()) {
    return {"empty", "a file that was written to its end"};
  }
  if (start.starts_with("version https://git-lfs")) {
    return {"a pointer of Git LFS", "git lfs pull, or the file itself from its server"};
  }
  if (is_web_page(start)) {
    return {"a web page", "download the file itself, not the page about it"};
  }
  if (start.starts_with("PK\x03\x04")) {
    return {"a zip archive",
            "unpack it; a checkpoint of PyTorch has to be exported, by torch.onnx.export or "
            "safetensors.torch.save_file"};
  }
  if (start.starts_with("\x1f\x8b")) {
    return {"a gzip archive", "unpack it"};
  }
  if (start.size() > 2 && start[0] == '\x80' && start[1] >= 2 && start[1] <= 5) {
    return {"a pickle of Python",
            "export it, by torch.onnx.export or safetensors.torch.save_file: a pickle runs code"};
  }
  if (start.starts_with("\x89PNG") || start.starts_with("\xff\xd8\xff")) {
    return {"a picture", "the file of the model"};
  }
  if (start.starts_with("\x89HDF")) {
    return {"an HDF5 file", "export it to ONNX, by tf2onnx for one"};
  }
  if (start.starts_with("\x93NUMPY")) {
    return {"an .npy array", "the file of the model"};
  }
  if (is_safetensors(start)) {
    return {"a safetensors file", "fenestra convert makes ONNX of a network trained here"};
  }
  return {};
}

void refuse_stranger(std::string_view file, std::string_view start, std::string_view needed) {
  const Stranger stranger = stranger_of(start);
  if (!stranger.what.empty()) {
    throw Error(ErrorCode::bad_file,
                std::string(file) + ": is " + std::string(stranger.what) + ", no " +
                    std::string(needed) + "\n  fix: " + std::string(stranger.fix));
  }
}

bool is_text(std::string_view start) {
  // A letter of several bytes may be cut off at the end.
  const std::size_t bad = first_not_utf8(start);
  return (bad == std::string_view::npos || (bad > 0 && bad + 4 > start.size())) &&
         std::all_of(start.begin(), start.end(), [](unsigned char c) {
           return (c >= ' ' && c != 0x7f) || c == '\n' || c == '\r' || c == '\t';
         });
}

}  // namespace fenestra::io
