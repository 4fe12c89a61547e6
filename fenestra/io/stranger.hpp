// What a file is that was given instead of a model or weights. Not installed.
#pragma once

#include <string_view>

namespace fenestra::io {

/// A kind of file, by its first bytes.
struct Stranger {
  std::string_view what;  ///< "a web page"; empty where the bytes do not say
  std::string_view fix;
};
/// `start` is the whole file or its first bytes, 512 are enough.
Stranger stranger_of(std::string_view start);

/// Throws `bad_file` with what the file is, where that can be said: "is a web page, no ONNX model".
/// `needed` is what somebody wanted to read, and no stranger itself.
void refuse_stranger(std::string_view file, std::string_view start, std::string_view needed);

/// Whether it is text that people read.
bool is_text(std::string_view start);

}  // namespace fenestra::io
