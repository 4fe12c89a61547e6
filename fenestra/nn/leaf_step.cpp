// Steps in leaves, compiled for float and double.
#include <fenestra/base/memory.hpp>
#include <fenestra/base/version.hpp>
#include <fenestra/kernels/isa.hpp>
#include <fenestra/nn/checksum.hpp>
#include <fenestra/nn/gradient_spans.hpp>
#include <fenestra/nn/leaf_step.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

namespace fenestra::nn::detail {

namespace {

// Elements of a bucket, or more where a gradient is larger: 4 MB take some milliseconds on a wire,
// long beside the latency of their messages and short beside a backward pass.
constexpr Index kBucket = Index{1} << 20;

/// How a batch is cut: into parts of `size` samples, but for the last one, and these into tiles,
/// where there are any. A leaf is one tile of one part.
struct Cut {
  Index samples;
  Index size;
  std::span<const Index> tiles;  ///< the cells of each; the first one is a whole one

  Index parts() const { return size == 0 ? 1 : (samples - 1) / size + 1; }
  Index tiles_of_part() const { return std::max<Index>(1, static_cast<Index>(tiles.size())); }
  Index leaves() const { return parts() * tiles_of_part(); }
  Index begin(Index leaf) const { return leaf / tiles_of_part() * size; }
  Index count(Index leaf) const { return std::min(size, samples - begin(leaf)); }
  Index tile(Index leaf) const { return leaf % tiles_of_part(); }
  /// Of a whole leaf; exactly 1 where it is one.
  double share(Index leaf) const {
    const double of_samples = ratio(count(leaf), size);
    return tiles.empty() ? of_samples : of_samples * tile_share(tiles[index(tile(leaf))]);
  }
  /// Of whole leaves, the number that the batch is; exactly 1 where it is a single one.
  double total() const {
    const double of_samples = ratio(samples, size);
    Index cells = 0;
    for (const Index tile : tiles) {
      cells += tile;
    }
    return tiles.empty() ? of_samples : of_samples * tile_share(cells);
  }

 private:
  static std::size_t index(Index i) { return static_cast<std::size_t>(i); }
  double tile_share(Index cells) const { return ratio(cells, tiles[0]); }
  /// Exactly 1 for equal numbers, none at all included.
  static double ratio(Index a, Index b) {
    return a == b ? 1 : static_cast<double>(a) / static_cast<double>(b);
  }
};

Cut cut_of(Index samples, Index leaf, std::span<const Index> tiles = {}) {
  return {samples, leaf == 0 ? samples : std::min(leaf, samples), tiles};
}

template <class N>
void require_rows(const Tensor<N>& x, const Cut& cut) {
  if (x.shape()[0] != cut.samples) {
    throw Error(ErrorCode::shape_mismatch,
                "trainer: a batch of " + std::to_string(cut.samples) + " samples has labels or " +
                    "targets " + to_string(x.shape()) + "\n  fix: one for each sample");
  }
}

template <class N>
Tensor<N> rows(const Tensor<N>& x, Index begin, Index count, const Cut& cut) {
  // What nobody filled has no axis, or no samples.
  if (x.rank() == 0 || x.size() == 0) {
    return x;
  }
  require_rows(x, cut);
  Shape shape = x.shape();
  shape[0] = count;
  Tensor<N> part = Tensor<N>::uninitialised(shape);
  const Index row = x.size() / cut.samples;
  std::copy_n(x.data() + begin * row, part.size(), part.mutable_data());
  return part;
}

/// The samples of `count` whole leaves, where they lie.
template <class T>
Batch<T> leaves_of(const Batch<T>& batch, Index first, Index count, const Cut& cut) {
  const auto seen = [&]<class N>(const Tensor<N>& x) {
    if (x.rank() == 0 || x.size() == 0) {
      return x;
    }
    require_rows(x, cut);
    Shape shape = x.shape();
    shape[0] = count * cut.size;
    return Tensor<N>::view(x.data() + cut.begin(first) * (x.size() / cut.samples), shape);
  };
  return {
      .inputs = seen(batch.inputs), .labels = seen(batch.labels), .targets = seen(batch.targets)};
}

template <class T>
Batch<T> leaf_of(const Batch<T>& batch, Index leaf, const Cut& cut) {
  const Index begin = cut.begin(leaf);
  const Index count = cut.count(leaf);
  return {.inputs = rows(batch.inputs, begin, count, cut),
          .labels = rows(batch.labels, begin, count, cut),
          .targets = rows(batch.targets, begin, count, cut)};
}

// --- What ranks tell each other before they add ------------------------------------------------

struct LeafFigures {
  double loss = 0;  ///< times the leaf's share of a whole leaf
  Index labels = 0;
  Index correct = 0;

  void add(const LeafFigures& other) {
    loss += other.loss;
    labels += other.labels;
    correct += other.correct;
  }
};

/// Before a step: what must be equal.
struct Terms {
  std::uint64_t step = 0;
  std::uint64_t samples = 0;
  std::uint64_t leaf = 0;
  std::uint64_t tiles = 0;
  std::uint64_t model = 0;  ///< a checksum of weights and kernels, where it is asked for
};

/// After the leaves.
struct Said {
  std::vector<std::uint64_t> buffers = {};  ///< slots that change, where the rank has leaves
  std::vector<LeafFigures> figures = {};

  std::vector<std::uint64_t> words() const {
    std::vector<std::uint64_t> all{buffers.size(), figures.size()};
    all.insert(all.end(), buffers.begin(), buffers.end());
    for (const LeafFigures& f : figures) {
      all.push_back(std::bit_cast<std::uint64_t>(f.loss));
      all.push_back(static_cast<std::uint64_t>(f.labels));
      all.push_back(static_cast<std::uint64_t>(f.correct));
    }
    return all;
  }
  static Said from(const std::vector<std::byte>& bytes) {
    std::vector<std::uint64_t> words(bytes.size() / sizeof(std::uint64_t));
    std::memcpy(words.data(), bytes.data(), words.size() * sizeof(std::uint64_t));
    Said said;
    const std::uint64_t* at = words.data() + 2;
    said.buffers.assign(at, at + words[0]);
    at += words[0];
    for (std::uint64_t i = 0; i < words[1]; ++i, at += 3) {
      said.figures.push_back(
          {std::bit_cast<double>(at[0]), static_cast<Index>(at[1]), static_cast<Index>(at[2])});
    }
    return said;
  }
};

template <class T>
std::uint64_t checksum_of(std::span<const Slot<T>> slots) {
  Checksum sum;
  sum.add(std::string(version));
  sum.add(std::string(kernels::isa_name()));
  for (const Slot<T>& slot : slots) {
    const Tensor<T>& value = std::as_const(*slot.value).plain();
    sum.add(slot.name);
    sum.add(value.data(), static_cast<std::size_t>(value.size()) * sizeof(T));
  }
  return sum.value();
}

void require_equal(const char* what,
                   std::size_t rank,
                   std::uint64_t theirs,
                   std::uint64_t first,
                   const char* fix) {
  if (theirs != first) {
    throw Error(ErrorCode::bad_environment,
                std::string("trainer: ") + what + " " + std::to_string(theirs) + " on rank " +
                    std::to_string(rank) + ", " + std::to_string(first) +
                    " on rank 0\n  fix: " + fix);
  }
}

/// Throws on all ranks alike where they do not agree.
void agree(const Terms& mine, ranks::Communicator& communicator) {
  std::vector<Terms> all;
  for (const std::vector<std::byte>& bytes :
       ranks::all_gather_equal(communicator, std::as_bytes(std::span(&mine, 1)))) {
    std::memcpy(&all.emplace_back(), bytes.data(), sizeof(Terms));
    const Terms& said = all.back();
    const Terms& first = all.front();
    const std::size_t rank = all.size() - 1;
    require_equal("step", rank, said.step, first.step, "resume all ranks from one checkpoint");
    require_equal("samples in the batch =",
                  rank,
                  said.samples,
                  first.samples,
                  "the same data on all ranks; a rank takes its part itself");
    require_equal("leaf =", rank, said.leaf, first.leaf, "the same leaf on all ranks");
    require_equal("tiles =", rank, said.tiles, first.tiles, "the same tile on all ranks");
    require_equal("checksum of weights and kernels =",
                  rank,
                  said.model,
                  first.model,
                  "the same seed or checkpoint, the same version and, for machines of different "
                  "kinds, the same FENESTRA_ISA on all ranks");
  }
}

/// What all ranks said, in order.
std::vector<Said> told(const Said& mine, ranks::Communicator* communicator) {
  if (communicator == nullptr || communicator->size() == 1) {
    return {mine};
  }
  const std::vector<std::uint64_t> words = mine.words();
  std::vector<Said> all;
  for (const std::vector<std::byte>& bytes :
       ranks::all_gather(*communicator, std::as_bytes(std::span(words)))) {
    all.push_back(Said::from(bytes));
  }
  return all;
}

LeafFigures total_of(const std::vector<Said>& all, Index leaves) {
  const auto add = [](LeafFigures& left, const LeafFigures& right) { left.add(right); };
  ranks::TreeSum<LeafFigures, decltype(add)> tree(leaves, add);
  Index leaf = 0;
  for (const Said& said : all) {
    for (const LeafFigures& figures : said.figures) {
      tree.push({0, leaf++}, figures);
    }
  }
  return tree.entries().front().payload;
}

}  // namespace

RankShare share_of(int rank, int ranks, Index samples, Index leaf) {
  const Cut cut = cut_of(samples, leaf);
  const ranks::LeafRange own = ranks::leaves_of(rank, ranks, cut.leaves());
  return {own.begin * cut.size, std::min(samples, own.end * cut.size)};
}

Index GradientLayout::largest() const {
  Index most = 0;
  for (const ranks::ElementRange& range : gradients) {
    most = std::max(most, range.size());
  }
  return most;
}

template <class T>
GradientLayout gradient_layout(std::span<const Slot<T>> slots) {
  constexpr Index kLine = static_cast<Index>(kAlignment / sizeof(T));
  GradientLayout layout;
  for (auto slot = slots.rbegin(); slot != slots.rend(); ++slot) {
    if (!slot->trained) {
      continue;
    }
    const Index size = slot->value->shape().elements().value();
    const Index begin = layout.elements;
    layout.elements += (size + kLine - 1) / kLine * kLine;
    layout.gradients.push_back({begin, layout.elements});
    layout.sizes.push_back(size);
    for (Index cut = 0; cut < size; cut += kGradientBlock) {
      layout.cuts.push_back(begin + cut);
    }
    if (layout.elements - (layout.ends.empty() ? 0 : layout.ends.back()) >= kBucket) {
      layout.ends.push_back(layout.elements);
    }
  }
  if (layout.ends.empty() || layout.ends.back() != layout.elements) {
    layout.ends.push_back(layout.elements);
  }
  std::reverse(layout.gradients.begin(), layout.gradients.end());
  std::reverse(layout.sizes.begin(), layout.sizes.end());
  return layout;
}

std::vector<GradientPiece> rank_pieces(const GradientLayout& layout, int rank, int ranks) {
  std::vector<GradientPiece> pieces;
  // Gradients lie in the vector from the last one to the first.
  std::size_t gradient = layout.gradients.size();
  for (const ranks::ElementRange& slice : ranks::slices_of(layout.ends, layout.cuts, rank, ranks)) {
    while (gradient > 0 && layout.gradients[gradient - 1].begin < slice.end) {
      const Index first = layout.gradients[gradient - 1].begin;
      const Index begin = std::max(slice.begin, first);
      const Index end = std::min(slice.end, first + layout.sizes[gradient - 1]);
      if (begin < end) {
        pieces.push_back({gradient - 1, begin - first, end - begin, begin});
      }
      if (layout.gradients[gradient - 1].end > slice.end) {
        break;
      }
      --gradient;
    }
  }
  return pieces;
}

/// What buffers become: the mean over the leaves. They are few, and go when all leaves are done.
template <class T>
void LeafSteps<T>::add_buffers(const LeafTask<T>& task, Index leaves, double divisor) {
  std::vector<Shape> shapes{Shape{1}, Shape{0}};
  Index elements = 0;
  for (const std::size_t buffer : findings_.buffers) {
    shapes.push_back(task.slots[buffer].value->shape());
    elements += shapes.back().elements().value();
  }
  findings_.results.resize(shapes.size());
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (findings_.results[i].shape() != shapes[i]) {
      findings_.results[i] = Tensor<T>::uninitialised(shapes[i]);
    }
  }
  buffer_sum_.start({.leaves = leaves,
                     .elements = elements,
                     .divisor = divisor,
                     .communicator = task.communicator,
                     .channel = 0});
  const int ranks = task.communicator == nullptr ? 1 : task.communicator->size();
  const int rank = task.communicator == nullptr ? 0 : task.communicator->rank();
  const Index first = ranks::leaves_of(rank, ranks, leaves).begin;
  for (std::size_t i = 0; i < leaf_buffers_.size(); ++i) {
    T* const memory =
        buffer_sum_.begin_leaf(first + static_cast<Index>(i), static_cast<T>(leaf_shares_[i]));
    std::copy(leaf_buffers_[i].begin(), leaf_buffers_[i].end(), memory);
    buffer_sum_.ready({0, elements});
    buffer_sum_.end_leaf();
  }
  const T* sum = buffer_sum_.finish().data();
  for (Tensor<T>& tensor : findings_.buffer_values()) {
    std::copy_n(sum, tensor.size(), tensor.mutable_data());
    sum += tensor.size();
  }
}

template <class T>
Found<T> LeafSteps<T>::run(const Batch<T>& batch,
                           const LeafTask<T>& task,
                           const RunLeaf& run_leaf,
                           const Joint& joint) {
  const Index samples = batch.inputs.rank() > 0 ? batch.inputs.shape()[0] : 0;
  if (task.leaf > 0 && samples < 1) {
    throw Error(ErrorCode::invalid_extent,
                "trainer: inputs = " + to_string(batch.inputs.shape()) +
                    " cannot be cut into leaves\n  fix: (samples, channels, spatial...)");
  }
  const Cut cut = cut_of(samples, task.leaf, task.tiles);
  const int ranks = task.communicator == nullptr ? 1 : task.communicator->size();
  const int rank = task.communicator == nullptr ? 0 : task.communicator->rank();
  const ranks::LeafRange own = ranks::leaves_of(rank, ranks, cut.leaves());
  if (ranks > 1) {
    agree({.step = static_cast<std::uint64_t>(task.step),
           .samples = static_cast<std::uint64_t>(samples),
           .leaf = static_cast<std::uint64_t>(task.leaf),
           .tiles = task.tiles.size(),
           .model = has_agreed_ ? 0 : checksum_of(task.slots)},
          *task.communicator);
    has_agreed_ = true;
  }
  const double divisor = cut.total();

  Found<T> found;
  Said mine;
  layout_ = gradient_layout(task.slots);
  ++weights_;
  leaf_buffers_.clear();
  leaf_shares_.clear();
  sum_.start({.leaves = cut.leaves(),
              .elements = layout_.elements,
              .ends = layout_.ends,
              .cuts = task.is_sliced ? layout_.cuts : std::vector<Index>(),
              .divisor = divisor,
              .gathers = !task.is_sliced,
              .communicator = task.communicator,
              .channel = 1});
  const auto key_of = [&](Index leaf) {
    return leaf == 0 ? task.key : task.key.fold("leaf").fold(static_cast<std::uint64_t>(leaf));
  };
  const auto note = [&](Said& said, double share, const Found<T>& part) {
    found.traced = found.traced || part.traced;
    StepFindings<T>& findings = *part.findings;
    said.figures.push_back({part.loss * share, part.labels, part.correct});
    said.buffers.assign(findings.buffers.begin(), findings.buffers.end());
    leaf_shares_.push_back(share);
    std::vector<T>& buffers = leaf_buffers_.emplace_back();
    for (const Tensor<T>& tensor : findings.buffer_values()) {
      buffers.insert(buffers.end(), tensor.data(), tensor.data() + tensor.size());
    }
  };
  const bool is_whole = cut.parts() == 1;
  for (Index leaf = own.begin; leaf < own.end;) {
    // The last leaf of the batch may be smaller.
    const Index full = std::min(own.end, samples / std::max<Index>(1, cut.size)) - leaf;
    const Index count = joint.count && task.tiles.empty() && full > 1
                            ? joint.count(leaves_of(batch, leaf, 1, cut), full)
                            : 1;
    if (count > 1) {
      sum_.begin_leaves(leaf, count, layout_.largest());
      std::vector<Key> keys;
      std::vector<GradientRoom<T>> rooms;
      for (Index i = 0; i < count; ++i) {
        keys.push_back(key_of(leaf + i));
        rooms.push_back(room_of(static_cast<std::size_t>(i)));
      }
      const std::vector<Found<T>> parts =
          joint.run(leaves_of(batch, leaf, count, cut), keys, rooms);
      for (const Found<T>& part : parts) {
        note(mine, cut.share(leaf++), part);
      }
    } else {
      sum_.begin_leaf(leaf, static_cast<T>(cut.share(leaf)));
      const Found<T> part = run_leaf(
          is_whole ? batch : leaf_of(batch, leaf, cut), cut.tile(leaf), key_of(leaf), room_of(0));
      note(mine, cut.share(leaf++), part);
    }
    sum_.end_leaves();
  }

  const std::vector<Said> all = told(mine, task.communicator);
  const LeafFigures total = total_of(all, cut.leaves());
  found.loss = total.loss / divisor;
  found.labels = total.labels;
  found.correct = total.correct;
  const auto with_leaves =
      std::find_if(all.begin(), all.end(), [](const Said& said) { return !said.figures.empty(); });
  findings_.buffers.assign(with_leaves->buffers.begin(), with_leaves->buffers.end());
  add_buffers(task, cut.leaves(), divisor);
  T* const sum = sum_.finish().data();
  if (task.is_sliced) {
    for (const GradientPiece& piece : rank_pieces(layout_, rank, ranks)) {
      found.gradients.emplace_back(sum + piece.place, static_cast<std::size_t>(piece.size));
    }
  } else {
    found.gradients = whole_gradients(sum);
  }
  found.findings = &findings_;
  return found;
}

template <class T>
GradientRoom<T> LeafSteps<T>::room_of(std::size_t number) {
  GradientRoom<T> room{.weights = weights_};
  for (const ranks::ElementRange& range : layout_.gradients) {
    room.memory.push_back(sum_.room(number, range));
  }
  room.found = [this, number](std::span<const std::size_t> gradients) {
    for (const std::size_t gradient : gradients) {
      const ranks::ElementRange& range = layout_.gradients[gradient];
      // What fills up the line is added too, and may have been another gradient's.
      T* const memory = sum_.room(number, range);
      std::fill(memory + layout_.sizes[gradient], memory + range.size(), T(0));
      sum_.ready(number, range);
    }
    sum_.poll();
  };
  return room;
}

template <class T>
std::vector<std::span<T>> LeafSteps<T>::whole_gradients(T* vector) const {
  std::vector<std::span<T>> gradients;
  for (std::size_t i = 0; i < layout_.gradients.size(); ++i) {
    gradients.emplace_back(vector + layout_.gradients[i].begin,
                           static_cast<std::size_t>(layout_.sizes[i]));
  }
  return gradients;
}

template <class T>
std::vector<std::span<T>> LeafSteps<T>::gather() {
  return whole_gradients(sum_.gather().data());
}

template GradientLayout gradient_layout(std::span<const Slot<float>>);
template GradientLayout gradient_layout(std::span<const Slot<double>>);
template class LeafSteps<float>;
template class LeafSteps<double>;

}  // namespace fenestra::nn::detail
