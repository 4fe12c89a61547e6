// Tiles: their size, their programs, and the loop over them; see tiles.hpp.
#include <fenestra/base/memory.hpp>
#include <fenestra/base/text.hpp>
#include <fenestra/engine/program.hpp>
#include <fenestra/graph/plan.hpp>
#include <fenestra/kernels/numerics.hpp>
#include <fenestra/nn/tile_graph.hpp>
#include <fenestra/nn/tiles.hpp>
#include <fenestra/ops/slice/region.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace fenestra::nn {

namespace {

// Programs kept: a picture has 3 ^ rank kinds of tiles where it is cut evenly, and twice as many
// extents at its ends.
constexpr std::size_t kMostPrograms = 64;
// The search for a size goes in steps of this many cells, so that tiles begin at cache lines and at
// cells of coarser levels.
constexpr Index kStep = 16;

/// Copies a box of a dense tensor to a dense one, or back.
template <class T, class From, class To>
void copy_box(const Shape& shape, const Box& box, From* from, To* to, bool out_of_box) {
  Region region = whole_region(shape);
  region.begin = box.begin;
  region.count = box.count;
  const StridedRegion whole = strided(shape, region);
  const Shape dense = strided(box.shape(), whole_region(box.shape())).strides;
  if (out_of_box) {
    copy_region<T>(from, dense, to + whole.offset, whole.strides, box.shape());
  } else {
    copy_region<T>(from + whole.offset, whole.strides, to, dense, box.shape());
  }
}

}  // namespace

namespace detail {

void LayerNames::layer(const std::string& name, std::string_view kind) {
  const std::string text =
      name.empty() ? "(" + std::string(kind) + ")" : "\"" + name + "\" (" + std::string(kind) + ")";
  names_.resize(static_cast<std::size_t>(graph_.size()), text);
}

std::vector<std::string> LayerNames::finish() { return std::move(names_); }

}  // namespace detail

template <class T>
struct TiledNetwork<T>::State {
  detail::TileGraph<T> graph;
  TracedNetwork network;  ///< for messages
  TileOptions options;
  detail::TileGrid grid;
  std::map<std::string, std::shared_ptr<const Program<T>>> programs;
  Index compiled = 0;

  State(const TracedNetwork& traced, const TileOptions& wanted)
      : graph(detail::tile_graph<T>(traced, detail::TileKernels::of_whole)),
        network(traced),
        options(wanted),
        grid{graph.output(), {}} {}

  int rank() const { return grid.rank(); }
  Index extent(int axis) const { return graph.output()[axis + 2]; }

  detail::GraphTile cut(const Box& output) const {
    try {
      return graph.tile(output);
    } catch (const detail::TileRefusal& refusal) {
      detail::throw_refused(refusal, network);
    }
  }
  std::shared_ptr<const Program<T>> program(const graph::Graph& of) {
    const std::string key = to_string(of);
    if (const auto known = programs.find(key); known != programs.end()) {
      return known->second;
    }
    if (programs.size() == kMostPrograms) {
      programs.clear();
    }
    ++compiled;
    // What is folded into weights has other bits.
    const CompileOptions compile{
        .numerics = Numerics::strict, .fold = false, .batch_tiling = std::nullopt};
    return programs[key] = std::make_shared<const Program<T>>(of, compile);
  }
  /// What a tile takes beside other programs that are kept, each with weights as its kernels read
  /// them; forgets those where that is too much.
  void keep_what_fits(std::size_t bytes, const std::shared_ptr<const Program<T>>& at_hand) {
    for (const auto& [key, program] : programs) {
      bytes += program == at_hand ? 0 : program->plan().constant_bytes();
    }
    if (bytes > options.memory) {
      std::erase_if(programs, [&](const auto& entry) { return entry.second != at_hand; });
    }
  }
  std::size_t bytes(const detail::GraphTile& part, const Program<T>& of) const {
    const auto cells =
        static_cast<std::size_t>(*part.input.shape().elements() + *part.output.shape().elements());
    return of.peak_bytes() + of.plan().constant_bytes() + cells * sizeof(T);
  }
  /// Bytes that tiles of this size take, nearly: the most of the first, one in the middle and the
  /// last of full size. One that begins elsewhere between the cells of coarser levels may take
  /// more.
  std::size_t bytes_of(const Shape& size) {
    grid.tile = size;
    std::size_t most = 0;
    for (const int where : {0, 1, 2}) {
      Index number = 0;
      for (int axis = 0; axis < rank(); ++axis) {
        const Index last = std::max<Index>(extent(axis) / size[axis] - 1, 0);
        number = number * grid.tiles_along(axis) + last * where / 2;
      }
      const detail::GraphTile part = cut(grid.box(number));
      most = std::max(most, bytes(part, *program(part.graph)));
      programs.clear();
    }
    return most;
  }
  Shape square(Index side) const {
    Shape size;
    for (int axis = 0; axis < rank(); ++axis) {
      size.push_back(std::min(side, extent(axis)));
    }
    return size;
  }
  /// A box and what is left of it, along its longest axis; throws where it is one cell.
  std::pair<Box, Box> halves(const Box& box, std::size_t needed) const {
    int longest = 0;
    for (int axis = 1; axis < rank(); ++axis) {
      longest = box.count[axis + 2] > box.count[longest + 2] ? axis : longest;
    }
    const Index cells = box.count[longest + 2];
    if (cells == 1) {
      throw_cell_refused(needed);
    }
    std::pair<Box, Box> parts(box, box);
    parts.first.count[longest + 2] = cells / 2;
    parts.second.begin[longest + 2] += cells / 2;
    parts.second.count[longest + 2] -= cells / 2;
    return parts;
  }
  [[noreturn]] void throw_cell_refused(std::size_t needed) const {
    throw Error(ErrorCode::memory_limit,
                "tiles: one cell of the output takes " + std::to_string(needed) +
                    " bytes, the limit is " + std::to_string(options.memory) +
                    "\n  fix: a larger limit");
  }
  bool fits(const Shape& size) { return bytes_of(size) <= options.memory; }

  /// The largest multiple of `step` between `low`, which fits, and `high`, which does not.
  Index between(Index low, Index high, Index step) {
    while (high - low > step) {
      const Index middle = low + (high - low) / step / 2 * step;
      (fits(square(middle)) ? low : high) = middle;
    }
    return low;
  }
  void choose() {
    Index longest = 1;
    for (int axis = 0; axis < rank(); ++axis) {
      longest = std::max(longest, extent(axis));
    }
    Index side = 0;
    if (fits(square(longest))) {
      side = longest;
    } else if (longest > kStep && fits(square(kStep))) {
      Index high = 2 * kStep;
      for (side = kStep; high < longest && fits(square(high)); high *= 2) {
        side = high;
      }
      side = between(side, high, kStep);
    } else if (const std::size_t least = bytes_of(square(1)); least <= options.memory) {
      side = between(1, std::min(longest, kStep), 1);
    } else {
      throw_cell_refused(least);
    }
    grid.tile = square(side);
  }
  void set_tile() {
    if (options.tile.rank() == 0) {
      choose();
      return;
    }
    grid = detail::TileGrid::of(graph.output(), options.tile);
    if (const std::size_t needed = bytes_of(grid.tile); needed > options.memory) {
      throw Error(ErrorCode::memory_limit,
                  "tiles: tiles of " + detail::size_text(grid.tile) + " take " +
                      std::to_string(needed) + " bytes, the limit is " +
                      std::to_string(options.memory) + "\n  fix: smaller tiles, or a larger limit");
    }
  }
};

template <class T>
TiledNetwork<T>::TiledNetwork(const TracedNetwork& network, const TileOptions& options)
    : state_(std::make_unique<State>(network, options)) {
  if (options.first < 0 || options.stride < 1) {
    throw Error(ErrorCode::invalid_option,
                "tiles: first = " + std::to_string(options.first) + ", stride = " +
                    std::to_string(options.stride) + "\n  fix: first >= 0, stride >= 1");
  }
  detail::require_space(state_->graph.output());
  state_->set_tile();
}

template <class T>
TiledNetwork<T>::~TiledNetwork() = default;
template <class T>
TiledNetwork<T>::TiledNetwork(TiledNetwork&&) noexcept = default;
template <class T>
TiledNetwork<T>& TiledNetwork<T>::operator=(TiledNetwork&&) noexcept = default;

template <class T>
const Shape& TiledNetwork<T>::output() const {
  return state_->graph.output();
}
template <class T>
const Shape& TiledNetwork<T>::tile() const {
  return state_->grid.tile;
}

template <class T>
TileReport TiledNetwork<T>::run(const TileSource<T>& source, const TileSink<T>& sink) {
  State& s = *state_;
  if (source.shape != s.graph.input()) {
    throw Error(ErrorCode::shape_mismatch,
                "tiles: the picture is " + to_string(source.shape) + ", the network was cut for " +
                    to_string(s.graph.input()) + "\n  fix: a picture of that shape");
  }
  Index number = std::min(s.options.first, s.grid.count());
  TileReport report{.output = s.graph.output(),
                    .tile = s.grid.tile,
                    .tiles = (s.grid.count() - number + s.options.stride - 1) / s.options.stride};
  if (sink.begin) {
    sink.begin(report.output);
  }
  s.compiled = 0;
  std::shared_ptr<const Program<T>> program;
  std::optional<Context<T>> context;
  std::vector<Tensor<T>> results(1);
  Tensor<T> x;
  double read = 0;
  std::vector<Box> waiting;  // the next one last
  for (Index done = 0; done < report.tiles;) {
    if (waiting.empty()) {
      waiting.push_back(s.grid.box(number));
      number += s.options.stride;
    }
    const detail::GraphTile part = s.cut(waiting.back());
    std::shared_ptr<const Program<T>> needed = s.program(part.graph);
    const std::size_t bytes = s.bytes(part, *needed);
    if (bytes > s.options.memory) {
      auto [first, second] = s.halves(waiting.back(), bytes);
      waiting.back() = std::move(second);
      waiting.push_back(std::move(first));
      ++report.tiles;
      continue;
    }
    waiting.pop_back();
    if (needed != program) {
      context.reset();  // before the next one takes its memory
      x = Tensor<T>();
      results[0] = Tensor<T>();
      s.keep_what_fits(bytes, needed);
      program = std::move(needed);
      // Tensors of other sizes, which nobody asks for any more.
      release_memory();
      context.emplace(*program);
      x = Tensor<T>::uninitialised(part.input.shape());
      results[0] = Tensor<T>::uninitialised(part.output.shape());
    }
    source.read(part.input, x.mutable_data());
    const RunArgument arguments[] = {RunArgument(std::as_const(x))};
    program->run(*context, arguments, results);
    sink.write(part.output, results[0].data());
    report.bytes = std::max(report.bytes, bytes);
    read += static_cast<double>(x.size());
    ++done;
    if (s.options.progress) {
      s.options.progress(done, report.tiles);
    }
  }
  report.programs = s.compiled;
  report.input_share = read / static_cast<double>(source.shape.elements().value_or(1));
  return report;
}

template <class T>
std::vector<LayerCells> needed_layers(const TracedNetwork& network, const Box& output) {
  const detail::TileGraph<T> graph = detail::tile_graph<T>(network, detail::TileKernels::of_whole);
  std::vector<std::optional<Box>> boxes;
  try {
    boxes = graph.needed(output);
  } catch (const detail::TileRefusal& refusal) {
    detail::throw_refused(refusal, network);
  }
  // Of each layer the last node that is needed: its result.
  std::vector<LayerCells> fields;
  for (std::size_t id = 0; id < boxes.size(); ++id) {
    if (!boxes[id]) {
      continue;
    }
    if (fields.empty() || fields.back().layer != network.layers[id]) {
      fields.push_back({network.layers[id], {}, {}});
    }
    fields.back().output = network.graph.node(static_cast<graph::NodeId>(id)).shape;
    fields.back().cells = *boxes[id];
  }
  return fields;
}

template <class T>
TileSource<T> tensor_source(const Tensor<T>& x) {
  return {x.shape(),
          [x](const Box& box, T* out) { copy_box<T>(x.shape(), box, x.data(), out, false); }};
}

template <class T>
TileSink<T> tensor_sink(Tensor<T>& y) {
  return {[&y](const Shape& shape) { y = Tensor<T>::uninitialised(shape); },
          [&y](const Box& box, const T* values) {
            copy_box<T>(y.shape(), box, values, y.mutable_data(), true);
          }};
}

#define FENESTRA_INSTANTIATE_TILES(T)                                                  \
  template class TiledNetwork<T>;                                                      \
  template FENESTRA_API std::vector<LayerCells> needed_layers<T>(const TracedNetwork&, \
                                                                 const Box&);          \
  template FENESTRA_API TileSource<T> tensor_source(const Tensor<T>&);                 \
  template FENESTRA_API TileSink<T> tensor_sink(Tensor<T>&)

FENESTRA_INSTANTIATE_TILES(float);
FENESTRA_INSTANTIATE_TILES(double);
#undef FENESTRA_INSTANTIATE_TILES

}  // namespace fenestra::nn
