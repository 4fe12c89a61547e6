// Datasets that are computed: no file, any number of samples, each a function of seed and index.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/nn/data/dataset.hpp>

#include <cstdint>

namespace fenestra::nn {

struct ShapesOptions {
  Index count = 1000;
  Index size = 64;      ///< height and width; at least 16
  Index channels = 1;   ///< 1 grey, 3 coloured
  double noise = 0.05;  ///< standard deviation of what is added to every value
  std::uint64_t seed = 0;
};
/// Pictures of one to four circles, boxes and triangles, brighter than the sloping background,
/// rotated anyhow, seldom touching, with the class of every pixel: "background", "circle", "box",
/// "triangle".
FENESTRA_API DatasetPtr shapes_dataset(const ShapesOptions& options = {});

struct TonesOptions {
  Index count = 1000;
  Index length = 256;  ///< at least 32
  double noise = 0.1;  ///< standard deviation of what is added to every value
  std::uint64_t seed = 0;
};
/// Signals (1, length) from -1 to 1 of one kind each: "sine", "square", "saw", "chirp", "noise", of
/// any pitch, phase and loudness.
FENESTRA_API DatasetPtr tones_dataset(const TonesOptions& options = {});

struct VolumesOptions {
  Index count = 500;
  Index size = 16;      ///< depth, height and width; at least 8
  double noise = 0.05;  ///< standard deviation of what is added to every value
  std::uint64_t seed = 0;
};
/// Volumes (1, size, size, size) with one body each: "ball", "cube", "shell", "rod".
FENESTRA_API DatasetPtr volumes_dataset(const VolumesOptions& options = {});

}  // namespace fenestra::nn
