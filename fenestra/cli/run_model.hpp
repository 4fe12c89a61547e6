// `fenestra run`: what a model says about pictures or arrays. `fenestra summary`: what it is.
#pragma once

#include <fenestra/cli/command.hpp>

#include <optional>
#include <string>

namespace fenestra::cli {

struct RunOptions {
  std::string file;
  std::string input;                       ///< a picture, a folder of pictures, an .npy file
  std::optional<std::string> sample = {};  ///< "1x28x28", for model files that do not say it
  std::optional<std::string> output = {};  ///< .png of one picture, .npy of all
  std::optional<int> threads = {};
  Index top = 3;
  bool force = false;
  bool json = false;
};
ExitCode run_command(const RunOptions& options);

struct SummaryOptions {
  std::string model;  ///< a file, or the name of a ready model
  std::optional<std::string> input = {};
  Index batch = 1;
  bool json = false;
};
ExitCode summary_command(const SummaryOptions& options);

}  // namespace fenestra::cli
