// A trainer whose pictures are cut into tiles: the step of one tile, and inference tile by tile.
#include <fenestra/nn/trainer_state.hpp>

#include <limits>
#include <utility>

namespace fenestra::nn {

template <KernelScalar T>
detail::Found<T> TrainerCore<T>::State::find_in_tile(const std::vector<Slot<T>>& all,
                                                     const Batch<T>& batch,
                                                     Index tile,
                                                     const Key& key,
                                                     const detail::GradientRoom<T>& room) {
  const detail::TileStepParts<T> of = tile_parts(all);
  const Batch<T> part = tile_steps.part(of, batch, tile);
  Tensor<T> numbers;
  const detail::BatchView<T> seen = view(part, numbers);
  detail::Found<T> found;
  found.findings = &tile_steps.program(of, batch.inputs.shape(), tile, seen, found.traced)
                        .run(all, seen, key, room);
  detail::read_figures(found, part.labels);
  return found;
}

template <KernelScalar T>
Tensor<T> TrainerCore<T>::State::infer_in_tiles(const Tensor<T>& x) const {
  const auto model = [&](const Value<T>& part, Pass<T>& pass) { return parts.forward(part, pass); };
  // One sample at a time: a tile of all of them would take as many times the memory.
  Shape one = x.shape();
  const Index samples = one.rank() > 0 ? std::exchange(one[0], 1) : 0;
  TiledNetwork<T> tiled(trace_network<T>(model, one),
                        {.tile = options.tile, .memory = std::numeric_limits<std::size_t>::max()});
  Shape all = tiled.output();
  all[0] = samples;
  Tensor<T> scores = Tensor<T>::uninitialised(all);
  const TileSource<T> source = tensor_source(x);
  const TileSink<T> sink = tensor_sink(scores);
  for (Index sample = 0; sample < samples; ++sample) {
    const auto at = [sample](Box box) {
      box.begin[0] = sample;
      return box;
    };
    tiled.run({one, [&](const Box& box, T* out) { source.read(at(box), out); }},
              {.begin = {},
               .write = [&](const Box& box, const T* values) { sink.write(at(box), values); }});
  }
  return scores;
}

// The rest of the class is compiled in trainer_core.cpp.
#define FENESTRA_TRAINER_TILES(T)                                                                \
  template detail::Found<T> TrainerCore<T>::State::find_in_tile(const std::vector<Slot<T>>&,     \
                                                                const Batch<T>&,                 \
                                                                Index,                           \
                                                                const Key&,                      \
                                                                const detail::GradientRoom<T>&); \
  template Tensor<T> TrainerCore<T>::State::infer_in_tiles(const Tensor<T>&) const;
FENESTRA_TRAINER_TILES(float)
FENESTRA_TRAINER_TILES(double)

}  // namespace fenestra::nn
