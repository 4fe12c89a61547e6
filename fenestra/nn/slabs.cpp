// Slabs: the stages of a rank, and the rows that pass between ranks; see slabs.hpp.
#include <fenestra/base/memory.hpp>
#include <fenestra/base/parallel.hpp>
#include <fenestra/engine/program.hpp>
#include <fenestra/graph/packing.hpp>
#include <fenestra/kernels/numerics.hpp>
#include <fenestra/nn/slabs.hpp>
#include <fenestra/nn/tile_graph.hpp>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>

namespace fenestra::nn {

namespace {

using detail::SlabTensor;
using graph::NodeId;

// Elements that a thread copies at a time.
constexpr Index kCopied = 16384;

IndexRange common(const IndexRange& a, const IndexRange& b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

/// Copies rows between two tensors that hold the rows `from_has` and `to_has` of one node.
template <class T>
void copy_rows(const SlabTensor& of,
               const IndexRange& rows,
               const T* from,
               const IndexRange& from_has,
               T* to,
               const IndexRange& to_has) {
  const Index run = rows.count() * of.inner;
  const Index runs_of_range = std::max<Index>(1, kCopied / std::max<Index>(1, run));
  parallel_for(of.outer, runs_of_range, [&](Index begin, Index end) {
    for (Index o = begin; o < end; ++o) {
      std::copy_n(from + (o * from_has.count() + rows.begin - from_has.begin) * of.inner,
                  run,
                  to + (o * to_has.count() + rows.begin - to_has.begin) * of.inner);
    }
  });
}

CompileOptions strict_options() {
  // As tiles are compiled: what is folded into weights has other bits.
  return {.numerics = Numerics::strict, .fold = false, .batch_tiling = std::nullopt};
}

/// The stages of one rank, compiled, in one block of memory: arenas, results, and what is sent and
/// received share it as far as they are not needed at the same time. Fresh pages cost more than
/// messages do, so the block is kept from one picture to the next.
template <class T>
class Stages {
 public:
  /// The plan must outlive it.
  Stages(const detail::SlabPlan& plan, int rank, int ranks)
      : me_(static_cast<std::size_t>(rank)), ranks_(static_cast<std::size_t>(ranks)) {
    const auto count = static_cast<Index>(plan.stages.size());
    const auto last_use = [&](NodeId id) {
      return time(id == plan.output ? count : plan.tensors.at(id).last_stage);
    };
    const SlabTensor& picture = plan.tensors.at(plan.input);
    places_[plan.input] = take(bytes_of(picture, picture.has[me_]), 0, last_use(plan.input));
    stages_.reserve(plan.stages.size());
    for (Index s = 0; s < count; ++s) {
      const detail::SlabStage& of = plan.stages[static_cast<std::size_t>(s)];
      Stage& stage = stages_.emplace_back(Program<T>(of.graph, strict_options()));
      stage.arena = take(stage.program.peak_bytes(), time(s), time(s));
      for (const NodeId id : of.out) {
        stage.results.push_back(result(plan.tensors.at(id), s, last_use(id)));
        places_[id] = stage.results.back().all;
      }
    }
    bytes_ = graph::pack(buffers_);
    memory_.reset(std::aligned_alloc(kAlignment, bytes_ + kAlignment));
    if (memory_ == nullptr) {
      throw OutOfMemory("the slabs of a network", bytes_);
    }
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      Stage& stage = stages_[s];
      stage.context.emplace(stage.program, reinterpret_cast<std::byte*>(at(stage.arena)));
      for (const NodeId id : plan.stages[s].in) {
        const SlabTensor& of = plan.tensors.at(id);
        stage.inputs.push_back(Tensor<T>::view(at(places_.at(id)), of.shape(of.has[me_].count())));
      }
    }
    input_ = at(places_.at(plan.input));
    output_ = at(places_.at(plan.output));
  }

  std::size_t bytes() const { return bytes_; }
  /// Where the rows of the picture go that the rank has.
  T* input() { return input_; }
  /// The bytes that this rank sent.
  std::size_t run(ranks::Communicator& communicator) {
    std::size_t sent = 0;
    for (Stage& stage : stages_) {
      const std::vector<RunArgument> arguments(stage.inputs.cbegin(), stage.inputs.cend());
      std::vector<T*> results;
      for (const Result& result : stage.results) {
        results.push_back(at(result.own));
      }
      stage.program.run(*stage.context, arguments, results);
      sent += exchange(stage.results, communicator);
    }
    return sent;
  }
  /// The rank's own rows of it.
  const T* output() const { return output_; }

 private:
  /// Rows to or from another rank, which lie together.
  struct Message {
    std::size_t rank;
    IndexRange rows;
    std::size_t place;
  };
  /// What a stage computes of a node, and with rows of others what the rank has of it: the same
  /// place where it needs none.
  struct Result {
    const SlabTensor* of;
    std::size_t own;
    std::size_t all;
    std::vector<Message> sends = {};
    std::vector<Message> receives = {};
  };
  struct Stage {
    explicit Stage(Program<T> compiled) : program(std::move(compiled)) {}

    Program<T> program;
    std::size_t arena = 0;
    std::optional<Context<T>> context = {};
    std::vector<Tensor<T>> inputs = {};
    std::vector<Result> results = {};
  };
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  /// When a stage runs; it exchanges rows right after.
  static NodeId time(Index stage) { return static_cast<NodeId>(2 * stage); }
  static std::size_t bytes_of(const SlabTensor& of, const IndexRange& rows) {
    return static_cast<std::size_t>(of.outer * rows.count() * of.inner) * sizeof(T);
  }
  /// Memory from one time to another: the number of its buffer.
  std::size_t take(std::size_t bytes, NodeId first, NodeId last) {
    const std::size_t lines = (bytes + kAlignment - 1) / kAlignment;
    buffers_.push_back({.bytes = lines * kAlignment, .first = first, .last = last});
    return buffers_.size() - 1;
  }
  T* at(std::size_t place) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(memory_.get()) + buffers_[place].offset);
  }
  Result result(const SlabTensor& of, Index stage, NodeId last_use) {
    const NodeId computed = time(stage);
    const NodeId exchanged = computed + 1;
    const bool has_all = of.has[me_] == of.own[me_];
    Result result{
        &of, take(bytes_of(of, of.own[me_]), computed, has_all ? last_use : exchanged), 0};
    result.all = has_all ? result.own : take(bytes_of(of, of.has[me_]), exchanged, last_use);
    const auto add = [&](std::vector<Message>& list, std::size_t rank, const IndexRange& rows) {
      if (rank != me_ && !rows.empty()) {
        list.push_back({rank, rows, take(bytes_of(of, rows), exchanged, exchanged)});
      }
    };
    for (std::size_t other = 0; other < ranks_; ++other) {
      add(result.sends, other, common(of.own[me_], of.has[other]));
      add(result.receives, other, common(of.own[other], of.has[me_]));
    }
    return result;
  }
  /// Sends rows of what a stage computed, and puts together what this rank has of it.
  std::size_t exchange(const std::vector<Result>& results, ranks::Communicator& communicator) {
    std::vector<ranks::Outgoing> sends;
    std::vector<ranks::Incoming> receives;
    std::size_t sent = 0;
    for (const Result& result : results) {
      const SlabTensor& of = *result.of;
      for (const Message& message : result.sends) {
        T* const rows = at(message.place);
        copy_rows(of, message.rows, at(result.own), of.own[me_], rows, message.rows);
        const std::size_t bytes = bytes_of(of, message.rows);
        sends.push_back(
            {static_cast<int>(message.rank), {reinterpret_cast<const std::byte*>(rows), bytes}});
        sent += bytes;
      }
      for (const Message& message : result.receives) {
        receives.push_back(
            {static_cast<int>(message.rank),
             {reinterpret_cast<std::byte*>(at(message.place)), bytes_of(of, message.rows)}});
      }
    }
    const std::unique_ptr<ranks::Exchange> under_way = communicator.start(sends, receives, 0);
    for (const Result& result : results) {
      const SlabTensor& of = *result.of;
      if (result.all != result.own) {
        const IndexRange& own = of.own[me_];
        copy_rows(of, own, at(result.own), own, at(result.all), of.has[me_]);
      }
    }
    under_way->wait();
    for (const Result& result : results) {
      for (const Message& message : result.receives) {
        const SlabTensor& of = *result.of;
        copy_rows(of, message.rows, at(message.place), message.rows, at(result.all), of.has[me_]);
      }
    }
    return sent;
  }

  std::size_t me_;
  std::size_t ranks_;
  std::vector<graph::Buffer> buffers_;
  std::map<NodeId, std::size_t> places_;  ///< of what the rank has
  std::vector<Stage> stages_;
  std::size_t bytes_ = 0;
  std::unique_ptr<void, Free> memory_;
  T* input_ = nullptr;
  T* output_ = nullptr;
};

}  // namespace

template <class T>
struct SlabNetwork<T>::State {
  detail::TileGraph<T> graph;
  ranks::CommunicatorPtr communicator;
  Halos halos;
  detail::SlabPlan plan;
  std::optional<Stages<T>> stages;  ///< where rows are exchanged

  State(const TracedNetwork& network, ranks::CommunicatorPtr given, Halos wanted)
      : graph(detail::tile_graph<T>(network, detail::TileKernels::of_whole)),
        communicator(std::move(given)),
        halos(ranks() == 1 ? Halos::recomputed : wanted) {
    detail::require_space(graph.output());
    try {
      if (halos == Halos::exchanged) {
        plan = graph.slabs(rank(), ranks());
        stages.emplace(plan, rank(), ranks());
      } else if (graph.output()[2] < ranks()) {
        throw detail::TooFewRows{network.graph.outputs().at(0).node, graph.output()[2]};
      }
    } catch (const detail::TileRefusal& refusal) {
      detail::throw_refused(refusal, network);
    } catch (const detail::TooFewRows& few) {
      throw Error(ErrorCode::invalid_extent,
                  "slabs: layer " + network.layers[static_cast<std::size_t>(few.node)] + " has " +
                      std::to_string(few.rows) + (few.rows == 1 ? " row" : " rows") + " for " +
                      std::to_string(ranks()) + " ranks\n  fix: fewer ranks, or a larger picture");
    }
  }

  int rank() const { return communicator ? communicator->rank() : 0; }
  int ranks() const { return communicator ? communicator->size() : 1; }
  const SlabTensor& tensor(NodeId id) const { return plan.tensors.at(id); }
  std::size_t me() const { return static_cast<std::size_t>(rank()); }
  Box own(int of_rank) const {
    const int axis = halos == Halos::exchanged ? tensor(plan.output).axis : 2;
    const Index rows = graph.output()[axis];
    Box box(graph.output());
    box.set(axis, {rows * of_rank / ranks(), rows * (of_rank + 1) / ranks()});
    return box;
  }

  void read(const TileSource<T>& source, const Box& box, T* x, SlabReport& report) const {
    source.read(box, x);
    report.input_share = static_cast<double>(*box.shape().elements()) /
                         static_cast<double>(std::max<Index>(1, *source.shape.elements()));
  }
  Tensor<T> exchange(const TileSource<T>& source, SlabReport& report) {
    Box part(graph.input());
    part.set(2, tensor(plan.input).has[me()]);
    read(source, part, stages->input(), report);
    report.sent = stages->run(*communicator);
    report.bytes = stages->bytes();
    return Tensor<T>::view(stages->output(), report.own.shape());
  }
  Tensor<T> recompute(const TileSource<T>& source, const Box& own, SlabReport& report) {
    const detail::GraphTile tile = graph.tile(own);
    Tensor<T> x = Tensor<T>::uninitialised(tile.input.shape());
    read(source, tile.input, x.mutable_data(), report);
    const Program<T> program(tile.graph, strict_options());
    Context<T> context(program);
    const RunArgument arguments[] = {RunArgument(std::as_const(x))};
    Tensor<T> y = std::move(program.execute_new(ProgramForm::run, context, arguments)[0]);
    report.bytes = program.peak_bytes() + static_cast<std::size_t>(x.size() + y.size()) * sizeof(T);
    return y;
  }
};

template <class T>
SlabNetwork<T>::SlabNetwork(const TracedNetwork& network,
                            ranks::CommunicatorPtr communicator,
                            Halos halos)
    : state_(std::make_unique<State>(network, std::move(communicator), halos)) {}

template <class T>
SlabNetwork<T>::~SlabNetwork() = default;
template <class T>
SlabNetwork<T>::SlabNetwork(SlabNetwork&&) noexcept = default;
template <class T>
SlabNetwork<T>& SlabNetwork<T>::operator=(SlabNetwork&&) noexcept = default;

template <class T>
const Shape& SlabNetwork<T>::output() const {
  return state_->graph.output();
}

template <class T>
Box SlabNetwork<T>::own(int rank) const {
  return state_->own(rank);
}

template <class T>
SlabReport SlabNetwork<T>::run(const TileSource<T>& source, const TileSink<T>& sink) {
  State& s = *state_;
  if (source.shape != s.graph.input()) {
    throw Error(ErrorCode::shape_mismatch,
                "slabs: the picture is " + to_string(source.shape) + ", the network was cut for " +
                    to_string(s.graph.input()) + "\n  fix: a picture of that shape");
  }
  SlabReport report{.output = output(), .own = s.own(s.rank())};
  const bool exchanges = s.halos == Halos::exchanged;
  report.stages = exchanges ? static_cast<Index>(s.plan.stages.size()) : 1;
  const Tensor<T> y =
      exchanges ? s.exchange(source, report) : s.recompute(source, report.own, report);
  if (sink.begin) {
    sink.begin(report.output);
  }
  sink.write(report.own, y.data());
  return report;
}

template class SlabNetwork<float>;
template class SlabNetwork<double>;

}  // namespace fenestra::nn
