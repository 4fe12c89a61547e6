// From a plan to the facts that people ask about.
#include <fenestra/graph/names.hpp>
#include <fenestra/graph/report.hpp>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace fenestra::graph {

namespace {

class ReportMaker {
 public:
  ReportMaker(const Plan& plan, const ReportOptions& options)
      : plan_(plan), graph_(plan.graph()), options_(options) {}

  Report make() {
    report_.title = options_.title;
    report_.subtitle = options_.subtitle;
    report_.is_profiled = !options_.seconds.empty();
    add_groups();
    report_.multiply_adds = plan_.multiply_adds();
    report_.seconds = std::accumulate(options_.seconds.begin(), options_.seconds.end(), 0.0);
    report_.arena_bytes = plan_.arena_bytes();
    report_.constant_bytes = plan_.constant_bytes();
    add_values();
    for (std::size_t i = 0; i < plan_.steps().size(); ++i) {
      add_step(i);
    }
    add_outputs();
    add_buffers();
    add_operations();
    return std::move(report_);
  }

 private:
  /// The node that computed or holds what `id` names.
  NodeId source(NodeId id) const {
    while (graph_.node(id).operation && graph_.node(id).operation->aliases_input()) {
      id = graph_.node(id).in[0];
    }
    return id;
  }

  std::string name_of(NodeId id) const {
    const Node& node = graph_.node(id);
    if (node.is_argument() && !node.name.empty()) {
      return node.name;
    }
    const std::string number = node.kind == NodeKind::constant ? scalar_text(node) : "";
    return number.empty() ? "%" + std::to_string(id) : number;
  }

  void add_groups() {
    for (const PieceLoop& loop : plan_.loops()) {
      report_.groups.push_back({loop, false});
    }
    for (const ChannelLoop& loop : plan_.channel_loops()) {
      ReportGroup& group = report_.groups.emplace_back();
      group.first = loop.first;
      group.end = loop.end;
      group.samples = loop.view.channels;
      group.piece = loop.piece;
      group.by_channels = true;
    }
    std::sort(report_.groups.begin(),
              report_.groups.end(),
              [](const ReportGroup& a, const ReportGroup& b) { return a.first < b.first; });
  }

  void add_values() {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.node(id);
      if (node.kind == NodeKind::operation) {
        continue;
      }
      report_.values.push_back({id,
                                node.kind,
                                node.kind == NodeKind::constant ? scalar_text(node) : node.name,
                                node.type,
                                node.shape,
                                node.bytes()});
    }
  }

  void add_step(std::size_t i) {
    const Step& step = plan_.steps()[i];
    const Node& node = graph_.node(step.node);
    PartName name = part_name(node.name);
    ReportStep line{.node = step.node,
                    .part = std::move(name.part),
                    .is_backward = name.is_backward,
                    .operation = std::string(node.operation->name()),
                    .attributes = node.operation->attributes(),
                    .type = node.type,
                    .shape = node.shape,
                    .layout = node.operation->layout(),
                    .kernel = std::string(step.kernel->name())};
    if (step.rest && step.rest->name() != step.kernel->name()) {
      line.kernel += ", " + std::string(step.rest->name());
    }
    for (const NodeId id : node.in) {
      line.reads.push_back({source(id), name_of(source(id)), graph_.node(id).shape, false});
    }
    for (const NodeId id : node.data) {
      const bool is_workspace = graph_.node(id).type != DataType::index;
      const NodeId from = is_workspace ? id : source(id);
      line.reads.push_back({from,
                            name_of(from) + (is_workspace ? ".workspace" : ""),
                            graph_.selection_type(id).shape,
                            is_workspace});
    }
    line.result = {node.bytes(), plan_.result(step.node)};
    if (plan_.workspace(step.node).kind != Place::Kind::none) {
      line.workspace = {plan_.workspace_bytes(step.node), plan_.workspace(step.node)};
    }
    if (step.scratch.kind != Place::Kind::none) {
      line.scratch = {step.scratch_bytes(), step.scratch};
    }
    line.packed_bytes = step.packed_bytes();
    line.multiply_adds = node.operation->multiply_adds();
    line.seconds = report_.is_profiled ? options_.seconds[i] : 0;
    const auto& groups = report_.groups;
    const auto group = std::upper_bound(
        groups.begin(), groups.end(), i, [](std::size_t at, const ReportGroup& candidate) {
          return at < candidate.end;
        });
    if (group != groups.end() && group->first <= i) {
      line.group = static_cast<std::size_t>(group - groups.begin());
    }
    const Place::Kind kind = line.result.place.kind;
    const bool is_callers = kind == Place::Kind::argument || kind == Place::Kind::output;
    report_.bytes_without_reuse += (is_callers ? 0 : line.result.bytes) + line.workspace.bytes;
    report_.steps.push_back(std::move(line));
  }

  void add_outputs() {
    std::vector<bool> is_copied(graph_.outputs().size());
    for (const OutputCopy& copy : plan_.copies()) {
      is_copied[static_cast<std::size_t>(copy.output)] = true;
    }
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      const Output& output = graph_.outputs()[i];
      report_.outputs.push_back({output.name,
                                 source(output.node),
                                 graph_.node(output.node).shape,
                                 output.overwrites,
                                 is_copied[i]});
    }
  }

  void add_buffers() {
    const auto& steps = plan_.steps();
    // The last node of a group may be an alias, and a buffer may outlive all steps.
    const auto after = [&](NodeId id) {
      return static_cast<std::size_t>(
          std::upper_bound(steps.begin(),
                           steps.end(),
                           id,
                           [](NodeId node, const Step& step) { return node < step.node; }) -
          steps.begin());
    };
    for (const Buffer& buffer : plan_.buffers()) {
      report_.buffers.push_back({buffer, after(buffer.first) - 1, after(buffer.last) - 1});
    }
  }

  void add_operations() {
    auto& all = report_.operations;
    for (const ReportStep& step : report_.steps) {
      auto found = std::find_if(all.begin(), all.end(), [&](const ReportOperation& operation) {
        return operation.name == step.operation;
      });
      if (found == all.end()) {
        found = all.insert(all.end(), {.name = step.operation});
      }
      found->steps += 1;
      found->multiply_adds += step.multiply_adds;
      found->seconds += step.seconds;
    }
    std::stable_sort(
        all.begin(), all.end(), [](const ReportOperation& a, const ReportOperation& b) {
          return std::tuple(a.seconds, a.multiply_adds, a.steps) >
                 std::tuple(b.seconds, b.multiply_adds, b.steps);
        });
  }

  const Plan& plan_;
  const Graph& graph_;
  const ReportOptions& options_;
  Report report_;
};

double part(double of, double all) { return all > 0 ? of / all : 0; }

template <class T>
const T* find_node(const std::vector<T>& all, NodeId node) {
  const auto found = std::lower_bound(
      all.begin(), all.end(), node, [](const T& one, NodeId id) { return one.node < id; });
  return found != all.end() && found->node == node ? &*found : nullptr;
}

template <class T>
double share_of(const Report& report, const T& one) {
  return report.is_profiled ? part(one.seconds, report.seconds)
                            : part(static_cast<double>(one.multiply_adds),
                                   static_cast<double>(report.multiply_adds));
}

}  // namespace

const ReportStep* Report::find_step(NodeId node) const { return find_node(steps, node); }
const ReportValue* Report::find_value(NodeId node) const { return find_node(values, node); }
double Report::share(const ReportStep& step) const { return share_of(*this, step); }
double Report::share(const ReportOperation& operation) const { return share_of(*this, operation); }

Report make_report(const Plan& plan, const ReportOptions& options) {
  if (!options.seconds.empty() && options.seconds.size() != plan.steps().size()) {
    throw Error(ErrorCode::shape_mismatch,
                "report: " + std::to_string(options.seconds.size()) + " times for a plan of " +
                    std::to_string(plan.steps().size()) +
                    " steps\n  fix: what profile() returned for this form of this program");
  }
  return ReportMaker(plan, options).make();
}

}  // namespace fenestra::graph
