// What metadata say about a model, whatever file they come from. Not installed.
#pragma once

#include <fenestra/nn/model_file.hpp>

#include <string>

namespace fenestra::nn::detail {

/// The opposite of `metadata_of`, but for the architecture; `file` is for messages. Throws
/// `bad_file`.
FENESTRA_API ModelInfo info_from(const io::Metadata& metadata, const std::string& file);

}  // namespace fenestra::nn::detail
