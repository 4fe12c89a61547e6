// Files that are whole or not there: how everything here is written.
#pragma once

#include <fenestra/base/export.hpp>

#include <filesystem>
#include <initializer_list>
#include <string_view>

namespace fenestra::io {

/// Writes the parts one after the other to a temporary name beside `path`, syncs and renames; an
/// existing file is replaced. Throws `bad_file`.
FENESTRA_API void replace_file(const std::filesystem::path& path,
                               std::initializer_list<std::string_view> parts);

}  // namespace fenestra::io
