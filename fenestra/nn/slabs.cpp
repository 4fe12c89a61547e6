// Slabs: the stages of a rank, and the rows that pass between ranks; see slabs.hpp.
#include <fenestra/engine/program.hpp>
#include <fenestra/kernels/numerics.hpp>
#include <fenestra/nn/slabs.hpp>
#include <fenestra/nn/tile_graph.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace fenestra::nn {

namespace {

using detail::SlabTensor;
using graph::NodeId;

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
  for (Index o = 0; o < of.outer; ++o) {
    std::copy_n(from + (o * from_has.count() + rows.begin - from_has.begin) * of.inner,
                run,
                to + (o * to_has.count() + rows.begin - to_has.begin) * of.inner);
  }
}

template <class T>
std::size_t bytes_of(const Tensor<T>& x) {
  return static_cast<std::size_t>(x.size()) * sizeof(T);
}

CompileOptions strict_options() {
  // As tiles are compiled: what is folded into weights has other bits.
  return {.numerics = Numerics::strict, .fold = false, .batch_tiling = std::nullopt};
}

}  // namespace

template <class T>
struct SlabNetwork<T>::State {
  detail::TileGraph<T> graph;
  ranks::CommunicatorPtr communicator;
  Halos halos;
  detail::SlabPlan plan;

  State(const TracedNetwork& network, ranks::CommunicatorPtr given, Halos wanted)
      : graph(detail::tile_graph<T>(network, detail::TileKernels::of_whole)),
        communicator(std::move(given)),
        halos(ranks() == 1 ? Halos::recomputed : wanted) {
    detail::require_space(graph.output());
    try {
      if (halos == Halos::exchanged) {
        plan = graph.slabs(rank(), ranks());
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

  /// What this rank has of a node: its own rows, and those that it needs of others.
  Tensor<T> completed(NodeId id, const Tensor<T>& own, const std::vector<Tensor<T>>& received) {
    const SlabTensor& of = tensor(id);
    Tensor<T> all = Tensor<T>::uninitialised(of.shape(of.has[me()].count()));
    copy_rows(of, of.own[me()], own.data(), of.own[me()], all.mutable_data(), of.has[me()]);
    for (std::size_t other = 0; other < received.size(); ++other) {
      const IndexRange rows = common(of.own[other], of.has[me()]);
      if (other != me() && !rows.empty()) {
        copy_rows(of, rows, received[other].data(), rows, all.mutable_data(), of.has[me()]);
      }
    }
    return all;
  }

  /// Sends rows of what a stage computed, and puts what this rank has of it into `held`.
  std::size_t exchange(const detail::SlabStage& stage,
                       std::vector<Tensor<T>>& results,
                       std::map<NodeId, Tensor<T>>& held) {
    const auto count = static_cast<std::size_t>(ranks());
    std::vector<Tensor<T>> packed;
    std::vector<std::vector<Tensor<T>>> received(stage.out.size(), std::vector<Tensor<T>>(count));
    packed.reserve(stage.out.size() * count);
    std::vector<ranks::Outgoing> sends;
    std::vector<ranks::Incoming> receives;
    std::size_t sent = 0;
    for (std::size_t k = 0; k < stage.out.size(); ++k) {
      const SlabTensor& of = tensor(stage.out[k]);
      for (std::size_t other = 0; other < count; ++other) {
        if (other == me()) {
          continue;
        }
        if (const IndexRange rows = common(of.own[me()], of.has[other]); !rows.empty()) {
          Tensor<T> part = Tensor<T>::uninitialised(of.shape(rows.count()));
          copy_rows(of, rows, results[k].data(), of.own[me()], part.mutable_data(), rows);
          packed.push_back(std::move(part));
          sends.push_back(
              {static_cast<int>(other), std::as_bytes(std::as_const(packed.back()).values())});
          sent += bytes_of(packed.back());
        }
        if (const IndexRange rows = common(of.own[other], of.has[me()]); !rows.empty()) {
          Tensor<T>& part = received[k][other];
          part = Tensor<T>::uninitialised(of.shape(rows.count()));
          receives.push_back(
              {static_cast<int>(other), std::as_writable_bytes(part.mutable_values())});
        }
      }
    }
    if (ranks() > 1) {
      communicator->exchange(sends, receives);
    }
    for (std::size_t k = 0; k < stage.out.size(); ++k) {
      const SlabTensor& of = tensor(stage.out[k]);
      held[stage.out[k]] = of.has[me()] == of.own[me()]
                               ? results[k]
                               : completed(stage.out[k], results[k], received[k]);
      results[k] = Tensor<T>();  // before the next one takes memory
      received[k].clear();
    }
    return sent;
  }

  Tensor<T> read(const TileSource<T>& source, const Box& box, SlabReport& report) const {
    Tensor<T> x = Tensor<T>::uninitialised(box.shape());
    source.read(box, x.mutable_data());
    report.input_share = static_cast<double>(x.size()) /
                         static_cast<double>(std::max<Index>(1, *source.shape.elements()));
    return x;
  }
  /// Results of a program, on memory that is given back at once.
  std::vector<Tensor<T>> results_of(const graph::Graph& of,
                                    std::span<const RunArgument> arguments,
                                    std::size_t held,
                                    SlabReport& report) const {
    const Program<T> program(of, strict_options());
    Context<T> context(program);
    std::vector<Tensor<T>> results = program.execute_new(ProgramForm::run, context, arguments);
    for (const Tensor<T>& result : results) {
      held += bytes_of(result);
    }
    report.bytes = std::max(report.bytes, held + program.peak_bytes());
    return results;
  }

  Tensor<T> run_stages(const TileSource<T>& source, SlabReport& report) {
    std::map<NodeId, Tensor<T>> held;
    Box part(graph.input());
    part.set(2, tensor(plan.input).has[me()]);
    held[plan.input] = read(source, part, report);
    for (std::size_t s = 0; s < plan.stages.size(); ++s) {
      const detail::SlabStage& stage = plan.stages[s];
      std::vector<RunArgument> arguments;
      for (const NodeId id : stage.in) {
        arguments.emplace_back(std::as_const(held.at(id)));
      }
      std::size_t bytes = 0;
      for (const auto& [id, x] : held) {
        bytes += bytes_of(x);
      }
      std::vector<Tensor<T>> results = results_of(stage.graph, arguments, bytes, report);
      std::erase_if(held, [&](const auto& entry) {
        return tensor(entry.first).last_stage == static_cast<Index>(s);
      });
      report.sent += exchange(stage, results, held);
    }
    return std::move(held.at(plan.output));
  }
  Tensor<T> recompute(const TileSource<T>& source, const Box& own, SlabReport& report) {
    const detail::GraphTile tile = graph.tile(own);
    const Tensor<T> x = read(source, tile.input, report);
    const RunArgument arguments[] = {RunArgument(x)};
    return std::move(results_of(tile.graph, arguments, bytes_of(x), report)[0]);
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
      exchanges ? s.run_stages(source, report) : s.recompute(source, report.own, report);
  if (sink.begin) {
    sink.begin(report.output);
  }
  sink.write(report.own, y.data());
  return report;
}

template class SlabNetwork<float>;
template class SlabNetwork<double>;

}  // namespace fenestra::nn
