// Choosing what to compute again: what frees the most bytes where memory is short, for its work.
//
// Planning is cheap beside what is planned, so nothing is estimated that a plan can tell: every
// step of the search is judged by the plan of the graph that it leads to.
#include <fenestra/graph/copier.hpp>
#include <fenestra/graph/lifetimes.hpp>
#include <fenestra/graph/plan.hpp>
#include <fenestra/graph/recompute.hpp>
#include <fenestra/graph/simplify.hpp>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fenestra::graph {

namespace {

/// What a byte read or written costs beside a multiplication with its addition: kernels do tens of
/// these in a nanosecond, in which memory moves about ten bytes.
constexpr double kWorkPerByte = 4;
/// What is so many times smaller than what is freed is kept instead of computed again.
constexpr std::size_t kSmall = 8;
/// Choices taken at once. More are quicker to find and worse: each one is chosen without seeing
/// what the others need at their places. Half the memory of a U-Net takes 1.29 times the
/// multiply-adds with one or three at once, 1.49 times with four.
constexpr std::size_t kAtOnce = 3;
/// Plans of one search; that of a residual network down to a third of its memory takes 10.
constexpr int kMostPlans = 100;
/// Where to aim, in parts of the memory without copies, when aiming at the limit itself fails. A
/// search takes one way and may end early; a lower aim takes another. They do not depend on the
/// limit, so what one search is told to be the least, the next one finds.
constexpr double kAims[] = {0.8, 0.65, 0.5, 0.4, 0.3, 0.2, 0.1};

std::size_t index(NodeId id) { return static_cast<std::size_t>(id); }

/// Bytes of the arena from node `first` on, `end` not included.
struct Span {
  std::size_t bytes = 0;
  NodeId first = 0;
  NodeId end = 0;
};

/// To run `chain` again in front of `at`; from there on its copies are read.
struct Choice {
  NodeId at = kNoNode;
  std::vector<NodeId> chain = {};  ///< ascending, with aliases
  std::vector<NodeId> kept = {};   ///< what the chain reads and does not compute
  std::vector<Span> freed = {};
  std::vector<Span> taken = {};  ///< by what is kept for the chain alone
  double saved = 0;
  double work = 0;
};

/// Bytes of the arena that are taken while each node runs.
std::vector<std::size_t> live_bytes(const Plan& plan) {
  const NodeId size = plan.graph().size();
  std::vector<std::size_t> begun(index(size) + 1);
  std::vector<std::size_t> ended(index(size) + 1);
  for (const Buffer& buffer : plan.buffers()) {
    begun[index(buffer.first)] += buffer.bytes;
    ended[index(std::min(buffer.last + 1, size))] += buffer.bytes;
  }
  std::vector<std::size_t> live(index(size));
  std::size_t bytes = 0;
  for (std::size_t t = 0; t < live.size(); ++t) {
    bytes += begun[t];
    bytes -= ended[t];
    live[t] = bytes;
  }
  return live;
}

/// How far above a target a plan is at each node.
class Excess {
 public:
  Excess(const Plan& plan, std::size_t target) {
    for (const std::size_t bytes : live_bytes(plan)) {
      bytes_.push_back(bytes > target ? static_cast<double>(bytes - target) : 0.0);
    }
  }
  double total() const { return std::accumulate(bytes_.begin(), bytes_.end(), 0.0); }
  /// How much of it the spans are.
  double of(const std::vector<Span>& spans) const {
    double sum = 0;
    for (const Span& span : spans) {
      for (NodeId t = span.first; t < span.end; ++t) {
        sum += std::min(static_cast<double>(span.bytes), bytes_[index(t)]);
      }
    }
    return sum;
  }
  void remove(const std::vector<Span>& spans) {
    for (const Span& span : spans) {
      for (NodeId t = span.first; t < span.end; ++t) {
        bytes_[index(t)] = std::max(0.0, bytes_[index(t)] - static_cast<double>(span.bytes));
      }
    }
  }

 private:
  std::vector<double> bytes_;
};

/// What could be computed again in a planned graph.
class Choices {
 public:
  Choices(const Plan& plan, const Excess& excess)
      : plan_(plan), graph_(plan.graph()), lifetimes_(graph_), excess_(excess) {
    find_memory();
  }

  /// The best first.
  std::vector<Choice> find() {
    std::vector<Choice> found;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (!graph_.node(id).runs() || is_output_[index(id)]) {
        continue;
      }
      for (const NodeId at : late_places(id)) {
        if (std::optional<Choice> choice = choice_of(id, at)) {
          found.push_back(std::move(*choice));
        }
      }
    }
    std::stable_sort(found.begin(), found.end(), [](const Choice& a, const Choice& b) {
      return a.saved * b.work > b.saved * a.work;
    });
    return found;
  }

 private:
  /// The memory that a node writes: what of the arena it takes, and who reads it, ascending.
  struct Memory {
    std::size_t bytes = 0;
    std::vector<NodeId> readers = {};

    bool is_read_from(NodeId at) const { return !readers.empty() && readers.back() >= at; }
  };

  void find_memory() {
    const std::size_t size = index(graph_.size());
    results_.resize(size);
    workspaces_.resize(size);
    source_.resize(size);
    aliases_.resize(size);
    is_output_.resize(size);
    overwritten_.resize(size, graph_.size());
    chosen_.resize(size, 0);
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.node(id);
      source_[index(id)] = id;
      if (node.operation && node.operation->aliases_input()) {
        source_[index(id)] = source_[index(node.in[0])];
        aliases_[index(source_[index(id)])].push_back(id);
        continue;
      }
      if (plan_.result(id).kind == Place::Kind::arena) {
        results_[index(id)].bytes = node.bytes();
      }
      if (plan_.workspace(id).kind == Place::Kind::arena) {
        workspaces_[index(id)].bytes = plan_.workspace_bytes(id);
      }
      for (const NodeId input : node.in) {
        memory(input, false).readers.push_back(id);
      }
      for (const NodeId input : node.data) {
        memory(input, is_workspace(input)).readers.push_back(id);
      }
    }
    for (const Output& output : graph_.outputs()) {
      is_output_[index(source_[index(output.node)])] = true;
      if (output.overwrites != kNoNode && plan_.result(output.node).kind == Place::Kind::argument) {
        overwritten_[index(output.overwrites)] = lifetimes_.first(lifetimes_.root(output.node));
      }
    }
  }
  bool is_workspace(NodeId data) const { return graph_.node(data).type != DataType::index; }
  Memory& memory(NodeId id, bool workspace) {
    return workspace ? workspaces_[index(id)] : results_[index(source_[index(id)])];
  }

  /// In front of what copies of `id` could stand: its readers, or the groups that these are in.
  std::vector<NodeId> late_places(NodeId id) const {
    std::vector<NodeId> places;
    for (const Memory* of : {&results_[index(id)], &workspaces_[index(id)]}) {
      for (const NodeId reader : of->readers) {
        places.push_back(lifetimes_.first(reader));
      }
    }
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    return places;
  }
  /// The first node for which memory that `last` reads last is free.
  NodeId free_after(NodeId last) const {
    const Index group = lifetimes_.group(last);
    return (group < 0 ? last : graph_.groups()[static_cast<std::size_t>(group)].last()) + 1;
  }
  /// When memory that `id` writes would be free if it were written again at `at`.
  Span gap(const Memory& of, NodeId id, NodeId at) const {
    if (!of.is_read_from(at)) {
      return {};
    }
    const auto late = std::lower_bound(of.readers.begin(), of.readers.end(), at);
    return {of.bytes, free_after(late == of.readers.begin() ? id : *(late - 1)), at};
  }

  std::optional<Choice> choice_of(NodeId id, NodeId at) {
    Choice choice{.at = at};
    std::size_t bytes = 0;
    for (const Memory* of : {&results_[index(id)], &workspaces_[index(id)]}) {
      if (const Span span = gap(*of, id, at); span.bytes > 0 && span.first < span.end) {
        choice.freed.push_back(span);
        bytes += span.bytes;
      }
    }
    choice.saved = excess_.of(choice.freed);
    ++choice_;
    if (choice.saved <= 0 || !run_again(choice, id, bytes)) {
      return std::nullopt;
    }
    choice.saved -= excess_.of(choice.taken);
    if (choice.saved <= 0) {
      return std::nullopt;
    }
    std::sort(choice.chain.begin(), choice.chain.end());
    return choice;
  }
  /// Puts `id` and what it needs into the chain; false where something cannot be had at its place.
  bool run_again(Choice& choice, NodeId id, std::size_t freed) {
    // No recursion: chains can be as long as the graph.
    std::vector<NodeId> to_run{id};
    while (!to_run.empty()) {
      const NodeId next = to_run.back();
      to_run.pop_back();
      if (std::exchange(chosen_[index(next)], choice_) == choice_) {
        continue;
      }
      const Node& node = graph_.node(next);
      choice.chain.push_back(next);
      for (const NodeId alias : aliases_[index(next)]) {
        if (alias < choice.at) {
          choice.chain.push_back(alias);
        }
      }
      double moved = static_cast<double>(node.bytes());
      for (const NodeId input : node.in) {
        moved += static_cast<double>(graph_.node(input).bytes());
        if (!provide(choice, source_[index(input)], false, freed, to_run)) {
          return false;
        }
      }
      for (const NodeId input : node.data) {
        if (!provide(choice, source_[index(input)], is_workspace(input), freed, to_run)) {
          return false;
        }
      }
      choice.work += static_cast<double>(node.operation->multiply_adds()) + kWorkPerByte * moved;
    }
    return true;
  }
  /// Sees to it that the chain can read `input`: it is alive, or is kept alive, or joins it.
  bool provide(Choice& choice,
               NodeId input,
               bool workspace,
               std::size_t freed,
               std::vector<NodeId>& to_run) {
    const Node& node = graph_.node(input);
    if (node.kind != NodeKind::operation) {
      return choice.at <= overwritten_[index(input)];
    }
    const Memory& of = memory(input, workspace);
    const bool alive = of.is_read_from(choice.at) || (!workspace && is_output_[index(input)]);
    const std::size_t bytes = workspace ? plan_.workspace_bytes(input) : node.bytes();
    if (!alive && bytes * kSmall > freed) {
      to_run.push_back(input);
      return true;
    }
    if (!alive) {
      const NodeId last = of.readers.empty() ? input : of.readers.back();
      choice.taken.push_back({bytes, free_after(last), choice.at});
    }
    choice.kept.push_back(input);
    return true;
  }

  const Plan& plan_;
  const Graph& graph_;
  Lifetimes lifetimes_;
  const Excess& excess_;
  std::vector<Memory> results_;
  std::vector<Memory> workspaces_;
  std::vector<NodeId> source_;  ///< the node whose result it is, itself or what an alias stands for
  std::vector<std::vector<NodeId>> aliases_;
  std::vector<bool> is_output_;
  std::vector<NodeId> overwritten_;  ///< who writes over a parameter; copies read it before
  std::vector<int> chosen_;          ///< the number of the choice whose chain it joined last
  int choice_ = 0;
};

/// Whether one of them reads, where it stands, what the other frees there.
bool collide(const Choice& a, const Choice& b) {
  const auto reads_freed = [](const Choice& reader, const Choice& other) {
    return std::any_of(
               other.freed.begin(),
               other.freed.end(),
               [&](const Span& span) { return span.first <= reader.at && reader.at < span.end; }) &&
           std::any_of(reader.kept.begin(), reader.kept.end(), [&](NodeId id) {
             return std::binary_search(other.chain.begin(), other.chain.end(), id);
           });
  };
  return reads_freed(a, b) || reads_freed(b, a);
}

/// As many of the best as do not collide and still matter beside those before them.
std::vector<Choice> best_together(const std::vector<Choice>& choices,
                                  Excess excess,
                                  std::size_t most) {
  std::vector<Choice> result;
  for (const Choice& choice : choices) {
    if (result.size() == most) {
      break;
    }
    if (excess.of(choice.freed) > excess.of(choice.taken) &&
        std::none_of(result.begin(), result.end(), [&](const Choice& other) {
          return collide(choice, other);
        })) {
      excess.remove(choice.freed);
      result.push_back(choice);
    }
  }
  return result;
}

Graph with_copies(const Graph& graph, std::vector<Choice> choices) {
  std::stable_sort(
      choices.begin(), choices.end(), [](const Choice& a, const Choice& b) { return a.at < b.at; });
  Copier copier(graph);
  const auto place = [&](NodeId id) { copier.set_place(id, copier.append(copier.moved(id))); };
  auto next = choices.begin();
  for (NodeId id = 0; id < graph.size(); ++id) {
    std::vector<NodeId> again;
    for (; next != choices.end() && next->at == id; ++next) {
      again.insert(again.end(), next->chain.begin(), next->chain.end());
    }
    std::sort(again.begin(), again.end());
    again.erase(std::unique(again.begin(), again.end()), again.end());
    std::for_each(again.begin(), again.end(), place);
    place(id);
  }
  // An operation whose only readers were late ones has moved.
  return eliminate_dead(copier.finish());
}

/// A graph with its plan, and the smallest arena on the way to it.
struct State {
  Graph graph;
  Plan plan;
  std::size_t least = 0;

  std::size_t bytes() const { return plan.arena_bytes(); }
};

class Search {
 public:
  Search(const Graph& graph, const RecomputeOptions& options) : graph_(graph), options_(options) {}

  State start() const { return state(graph_); }
  bool fits(const State& state) const { return state.bytes() <= options_.memory_limit; }
  /// Copies more and more until the arena fits the limit or the aim, or nothing helps.
  State walk(State now, std::size_t aim) const {
    int plans = 0;
    while (!fits(now) && now.bytes() > aim) {
      const std::vector<std::size_t> live = live_bytes(now.plan);
      const std::size_t peak = *std::max_element(live.begin(), live.end());
      // Holes between buffers do not go away by themselves.
      const std::size_t holes = now.bytes() - peak;
      std::optional<State> next = step(now, aim > holes ? aim - holes : 0, plans);
      if (!next) {
        break;
      }
      next->least = std::min(next->least, now.least);
      now = std::move(*next);
    }
    return now;
  }

 private:
  State state(Graph graph) const {
    Plan plan = planned(graph);
    const std::size_t bytes = plan.arena_bytes();
    return {std::move(graph), std::move(plan), bytes};
  }
  /// As programs plan it.
  Plan planned(const Graph& graph) const {
    if (!options_.batch_tiling) {
      return Plan(graph, options_.workers);
    }
    const std::vector<ChannelRun> runs = channel_runs(graph, *options_.batch_tiling);
    return Plan(tile_batch(graph, *options_.batch_tiling, runs), options_.workers, runs);
  }
  /// A state with less excess, if there is one: the best few choices together, or fewer of them.
  std::optional<State> step(const State& now, std::size_t target, int& plans) const {
    const Excess excess(now.plan, target);
    const double before = excess.total();
    std::vector<Choice> choices = Choices(now.plan, excess).find();
    std::size_t most = kAtOnce;
    while (plans++ < kMostPlans) {
      const std::vector<Choice> best = best_together(choices, excess, most);
      if (best.empty()) {
        break;
      }
      State next = state(with_copies(now.graph, best));
      if (fits(next) || Excess(next.plan, target).total() < before) {
        return next;
      }
      most = std::max<std::size_t>(1, best.size() / 2);
      if (best.size() == 1) {
        choices.erase(choices.begin());
      }
    }
    return std::nullopt;
  }

  const Graph& graph_;
  const RecomputeOptions& options_;
};

}  // namespace

Graph recompute(const Graph& graph, const RecomputeOptions& options) {
  const Search search(graph, options);
  State start = search.start();
  const std::size_t without = start.bytes();
  State found = search.walk(std::move(start), options.memory_limit);
  if (search.fits(found)) {
    return std::move(found.graph);
  }
  std::size_t least = without;
  for (const double part : kAims) {
    const double aim = part * static_cast<double>(without);
    found = search.walk(search.start(), static_cast<std::size_t>(aim));
    if (search.fits(found)) {
      return std::move(found.graph);
    }
    least = std::min(least, found.least);
  }
  throw Error(ErrorCode::memory_limit,
              "compile: a memory limit of " + std::to_string(options.memory_limit) +
                  " bytes, the arena takes " + std::to_string(without) + ", and " +
                  std::to_string(least) + " with everything computed again that helps\n  fix: " +
                  std::to_string(least) + " bytes or more, or fewer samples");
}

}  // namespace fenestra::graph
