// Where the files of known datasets may be, and what to do when they are not. Not installed.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra::nn {

/// Folders in which "digits", "mnist" or "fashion" is looked for, first things first.
std::vector<std::filesystem::path> places_of(std::string_view dataset);

/// Throws `bad_file`: what is missing, where it was looked for, how to get it.
[[noreturn]] void refuse_missing(std::string_view dataset,
                                 const std::string& missing,
                                 const std::vector<std::filesystem::path>& looked_in);

/// `given`, or the first of the dataset's places that has the file; throws as above.
std::filesystem::path find_place(std::string_view dataset,
                                 const std::filesystem::path& given,
                                 const std::vector<std::string>& file_names);

/// The first of the names that is a file in the folder; empty where none is.
std::filesystem::path first_file(const std::filesystem::path& folder,
                                 const std::vector<std::string>& names);

}  // namespace fenestra::nn
