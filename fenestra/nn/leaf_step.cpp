// Steps in leaves, compiled for float and double.
#include <fenestra/base/parallel.hpp>
#include <fenestra/base/version.hpp>
#include <fenestra/kernels/isa.hpp>
#include <fenestra/nn/checksum.hpp>
#include <fenestra/nn/leaf_step.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

namespace fenestra::nn::detail {

namespace {

constexpr Index kRange = 16384;

/// How a batch is cut: into parts of `size` samples, but for the last one, and these into tiles,
/// where there are any. A leaf is one tile of one part.
struct Cut {
  Index samples;
  Index size;
  std::span<const Index> tiles;  ///< the cells of each; the first one is a whole one

  Index parts() const { return (samples - 1) / size + 1; }
  Index tiles_of_part() const { return std::max<Index>(1, static_cast<Index>(tiles.size())); }
  Index leaves() const { return parts() * tiles_of_part(); }
  Index begin(Index leaf) const { return leaf / tiles_of_part() * size; }
  Index count(Index leaf) const { return std::min(size, samples - begin(leaf)); }
  Index tile(Index leaf) const { return leaf % tiles_of_part(); }
  /// Of a whole leaf; exactly 1 where it is one.
  double share(Index leaf) const {
    const double of_samples = static_cast<double>(count(leaf)) / static_cast<double>(size);
    return tiles.empty() ? of_samples : of_samples * tile_share(tiles[index(tile(leaf))]);
  }
  /// Of whole leaves, the number that the batch is; exactly 1 where it is a single one.
  double total() const {
    const double of_samples = static_cast<double>(samples) / static_cast<double>(size);
    Index cells = 0;
    for (const Index tile : tiles) {
      cells += tile;
    }
    return tiles.empty() ? of_samples : of_samples * tile_share(cells);
  }

 private:
  static std::size_t index(Index i) { return static_cast<std::size_t>(i); }
  double tile_share(Index cells) const {
    return static_cast<double>(cells) / static_cast<double>(tiles[0]);
  }
};

Cut cut_of(Index samples, Index leaf, std::span<const Index> tiles = {}) {
  return {samples, leaf == 0 ? samples : std::min(leaf, samples), tiles};
}

template <class N>
Tensor<N> rows(const Tensor<N>& x, Index begin, Index count, const Cut& cut) {
  // What nobody filled has no axis, or no samples.
  if (x.rank() == 0 || x.size() == 0) {
    return x;
  }
  if (x.shape()[0] != cut.samples) {
    throw Error(ErrorCode::shape_mismatch,
                "trainer: a batch of " + std::to_string(cut.samples) + " samples has labels or " +
                    "targets " + to_string(x.shape()) + "\n  fix: one for each sample");
  }
  Shape shape = x.shape();
  shape[0] = count;
  Tensor<N> part = Tensor<N>::uninitialised(shape);
  const Index row = x.size() / cut.samples;
  std::copy_n(x.data() + begin * row, part.size(), part.mutable_data());
  return part;
}

template <class T>
Batch<T> leaf_of(const Batch<T>& batch, Index leaf, const Cut& cut) {
  const Index begin = cut.begin(leaf);
  const Index count = cut.count(leaf);
  return {.inputs = rows(batch.inputs, begin, count, cut),
          .labels = rows(batch.labels, begin, count, cut),
          .targets = rows(batch.targets, begin, count, cut)};
}

template <class T>
void scale_by(std::span<Tensor<T>> tensors, T factor) {
  for (Tensor<T>& tensor : tensors) {
    T* const x = tensor.mutable_data();
    parallel_for(tensor.size(), kRange, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        x[i] *= factor;
      }
    });
  }
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

struct Said {
  std::uint64_t step = 0;
  std::uint64_t samples = 0;
  std::uint64_t leaf = 0;
  std::uint64_t tiles = 0;
  std::uint64_t model = 0;  ///< a checksum of weights and kernels, where it is asked for
  std::vector<std::uint64_t> buffers = {};  ///< slots that change, where the rank has leaves
  std::vector<LeafFigures> figures = {};

  std::vector<std::uint64_t> words() const {
    std::vector<std::uint64_t> all{
        step, samples, leaf, tiles, model, buffers.size(), figures.size()};
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
    Said said{words[0], words[1], words[2], words[3], words[4]};
    const std::uint64_t* at = words.data() + 7;
    said.buffers.assign(at, at + words[5]);
    at += words[5];
    for (std::uint64_t i = 0; i < words[6]; ++i, at += 3) {
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

/// What all ranks said, in order; throws on all of them alike where they do not agree.
std::vector<Said> told(const Said& mine, ranks::Communicator* communicator) {
  if (communicator == nullptr || communicator->size() == 1) {
    return {mine};
  }
  const std::vector<std::uint64_t> words = mine.words();
  std::vector<Said> all;
  for (const std::vector<std::byte>& bytes :
       ranks::all_gather(*communicator, std::as_bytes(std::span(words)))) {
    all.push_back(Said::from(bytes));
    const Said& said = all.back();
    const Said& first = all.front();
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

/// Tensors for what a step of all leaves found: as many as there are, of the right shapes.
template <class T>
void make_room(StepFindings<T>& findings, std::span<const Slot<T>> slots) {
  std::vector<Shape> shapes{Shape{1}, Shape{0}};
  for (const std::size_t buffer : findings.buffers) {
    shapes.push_back(slots[buffer].value->shape());
  }
  for (const Slot<T>& slot : slots) {
    if (slot.trained) {
      shapes.push_back(slot.value->shape());
    }
  }
  findings.results.resize(shapes.size());
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (findings.results[i].shape() != shapes[i]) {
      findings.results[i] = Tensor<T>::uninitialised(shapes[i]);
    }
  }
}

}  // namespace

RankShare share_of(int rank, int ranks, Index samples, Index leaf) {
  const Cut cut = cut_of(samples, leaf);
  const ranks::LeafRange own = ranks::leaves_of(rank, ranks, cut.leaves());
  return {own.begin * cut.size, std::min(samples, own.end * cut.size)};
}

template <class T>
Found<T> LeafSteps<T>::run(const Batch<T>& batch,
                           const LeafTask<T>& task,
                           const RunLeaf& run_leaf) {
  const Index samples = batch.inputs.rank() > 0 ? batch.inputs.shape()[0] : 0;
  if (samples < 1) {
    throw Error(ErrorCode::invalid_extent,
                "trainer: inputs = " + to_string(batch.inputs.shape()) +
                    " cannot be cut into leaves\n  fix: (samples, channels, spatial...)");
  }
  const Cut cut = cut_of(samples, task.leaf, task.tiles);
  const int ranks = task.communicator == nullptr ? 1 : task.communicator->size();
  const int rank = task.communicator == nullptr ? 0 : task.communicator->rank();
  const ranks::LeafRange own = ranks::leaves_of(rank, ranks, cut.leaves());
  Said mine{.step = static_cast<std::uint64_t>(task.step),
            .samples = static_cast<std::uint64_t>(samples),
            .leaf = static_cast<std::uint64_t>(task.leaf),
            .tiles = task.tiles.size(),
            .model = ranks > 1 && !has_agreed_ ? checksum_of(task.slots) : 0};

  Found<T> found;
  sum_.start(cut.leaves());
  std::vector<std::span<const T>> pieces;
  for (Index leaf = own.begin; leaf < own.end; ++leaf) {
    const Key key =
        leaf == 0 ? task.key : task.key.fold("leaf").fold(static_cast<std::uint64_t>(leaf));
    const bool is_whole = cut.parts() == 1;
    const Found<T> part =
        run_leaf(is_whole ? batch : leaf_of(batch, leaf, cut), cut.tile(leaf), key);
    found.traced = found.traced || part.traced;
    StepFindings<T>& findings = *part.findings;
    const double share = cut.share(leaf);
    if (share != 1) {
      scale_by(findings.buffer_values(), static_cast<T>(share));
      scale_by(findings.gradients(), static_cast<T>(share));
    }
    mine.figures.push_back({part.loss * share, part.labels, part.correct});
    mine.buffers.assign(findings.buffers.begin(), findings.buffers.end());
    pieces.clear();
    for (const Tensor<T>& tensor : std::span<const Tensor<T>>(findings.results).subspan(2)) {
      pieces.emplace_back(tensor.data(), static_cast<std::size_t>(tensor.size()));
    }
    sum_.add(leaf, pieces);
  }

  const std::vector<Said> all = told(mine, task.communicator);
  has_agreed_ = true;
  const LeafFigures total = total_of(all, cut.leaves());
  const double divisor = cut.total();
  found.loss = total.loss / divisor;
  found.labels = total.labels;
  found.correct = total.correct;

  const auto with_leaves =
      std::find_if(all.begin(), all.end(), [](const Said& said) { return !said.figures.empty(); });
  findings_.buffers.assign(with_leaves->buffers.begin(), with_leaves->buffers.end());
  make_room(findings_, task.slots);
  Index elements = 0;
  const std::span<Tensor<T>> results = std::span(findings_.results).subspan(2);
  for (const Tensor<T>& tensor : results) {
    elements += tensor.size();
  }
  const T* sum = sum_.finish(elements, task.communicator).data();
  for (Tensor<T>& tensor : results) {
    T* const out = tensor.mutable_data();
    const T by = static_cast<T>(divisor);
    parallel_for(tensor.size(), kRange, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        out[i] = sum[i] / by;
      }
    });
    sum += tensor.size();
  }
  found.findings = &findings_;
  return found;
}

template class LeafSteps<float>;
template class LeafSteps<double>;

}  // namespace fenestra::nn::detail
