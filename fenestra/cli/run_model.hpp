// `fenestra run`: what a model says about pictures or arrays. `fenestra infer`: the same on a
// picture that is larger than memory. `fenestra summary`: what it is.
#pragma once

#include <fenestra/cli/command.hpp>
#include <fenestra/cli/onnx.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <cstddef>
#include <optional>
#include <string>

namespace fenestra::cli {

struct RunOptions {
  std::string file;
  std::string input;                       ///< a picture, a folder of pictures, an .npy file
  std::optional<std::string> sample = {};  ///< "1x28x28", for model files that do not say it
  std::optional<std::string> output = {};  ///< .png of one picture, .npy of all
  PreparationOptions preparation = {};
  std::optional<int> threads = {};
  Index top = 3;
  bool force = false;
  bool json = false;
};
ExitCode run_command(const RunOptions& options);

/// The class of every cell, from scores (classes, spatial...).
Tensor<Index> mask_of(const Tensor<float>& scores);
/// Scores of cells as they are drawn, 0 to 1.
Tensor<float> drawn(const Tensor<float>& scores);

struct InferOptions {
  std::string model;                       ///< a file, or the name of a ready model
  std::string input;                       ///< .npy, PGM, PPM, or raw numbers
  std::string output;                      ///< .npy, .raw, .pgm, .ppm
  std::string tile = "auto";               ///< or its extents, "512x512"
  std::optional<std::size_t> memory = {};  ///< for everything
  std::string halos = "recompute";         ///< or "exchange", between processes
  std::optional<std::string> raw = {};     ///< "3x4096x4096:u8", of raw numbers
  std::optional<std::string> sample = {};  ///< "1x28x28", for model files that do not say it
  std::optional<int> threads = {};
  bool force = false;
  bool json = false;
};
ExitCode infer_command(const InferOptions& options);

struct SummaryOptions {
  std::string model;  ///< a file, or the name of a ready model
  std::optional<std::string> input = {};
  Index batch = 1;
  bool json = false;
};
ExitCode summary_command(const SummaryOptions& options);

}  // namespace fenestra::cli
