// Finding chains, the operation that a chain is, and its loop over strips.
#include <fenestra/base/parallel.hpp>
#include <fenestra/graph/chain.hpp>
#include <fenestra/graph/copier.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <memory>
#include <queue>
#include <string>
#include <utility>
#include <vector>

namespace fenestra::graph {

namespace {

/// Members of one chain; more than networks have, and few enough for strips of a cache line.
constexpr std::size_t kMostMembers = 32;
/// Inputs of one member.
constexpr std::size_t kMostOperands = 4;
/// Of a strip: a member's strips, two read and one written, take a third of a first-level cache of
/// 32 KiB, and a call of a member's loop is small beside its 1024 floats.
constexpr std::size_t kStripBytes = 4096;
/// For all inner values of a strip, on the stack of the thread that computes them.
constexpr std::size_t kStripsBytes = 16384;
/// Elements that one thread takes at a time: a multiple of all strips, and work enough to wake it.
constexpr Index kChainGrain = 16384;

struct ChainMember {
  std::shared_ptr<const Operation> operation;
  /// Below the number of the chain's inputs: an input; from there on: what an earlier member
  /// computes.
  std::vector<std::size_t> in;
};

/// Which inner values may lie in the same place: each lives from its member to its last reader.
class ChainSlots {
 public:
  ChainSlots(const std::vector<ChainMember>& members, std::size_t inputs)
      : of_(members.size() - 1) {
    std::vector<std::size_t> last(of_.size());
    for (std::size_t m = 0; m < members.size(); ++m) {
      for (const std::size_t in : members[m].in) {
        if (in >= inputs) {
          last[in - inputs] = m;
        }
      }
    }
    std::vector<std::size_t> free;
    for (std::size_t m = 0; m < of_.size(); ++m) {
      // A member may write over what it reads last.
      for (std::size_t v = 0; v < m; ++v) {
        if (last[v] == m) {
          free.push_back(of_[v]);
        }
      }
      if (free.empty()) {
        free.push_back(count_++);
      }
      of_[m] = free.back();
      free.pop_back();
    }
  }

  std::size_t count() const { return count_; }
  std::size_t of(std::size_t member) const { return of_[member]; }

 private:
  std::vector<std::size_t> of_;
  std::size_t count_ = 0;
};

template <class T>
class ChainKernel final : public ElementwiseKernel {
 public:
  ChainKernel(const std::vector<ChainMember>& members,
              const std::vector<Shape>& in,
              const Shape& shape)
      : elements_(shape.elements().value_or(0)) {
    const ChainSlots slots(members, in.size());
    // Whole cache lines, so that no strip shares one with the next.
    constexpr std::size_t kLine = 64;
    const std::size_t bytes = std::min(kStripBytes, kStripsBytes / slots.count()) / kLine * kLine;
    strip_ = static_cast<Index>(bytes / sizeof(T));
    for (std::size_t m = 0; m < members.size(); ++m) {
      Member member;
      member.owned = members[m].operation->prepare();
      member.kernel = dynamic_cast<const ElementwiseKernel*>(member.owned.get());
      assert(member.kernel != nullptr);
      for (const std::size_t from : members[m].in) {
        if (from < in.size()) {
          const bool follows = in[from] == shape;
          member.in.push_back({follows ? Operand::Kind::strip : Operand::Kind::whole, from});
        } else {
          member.in.push_back({Operand::Kind::inner, slots.of(from - in.size())});
        }
      }
      member.is_last = m + 1 == members.size();
      member.slot = member.is_last ? 0 : slots.of(m);
      name_ += (m == 0 ? "" : "+") + std::string(members[m].operation->name());
      members_.push_back(std::move(member));
    }
  }

  /// What runs in the loop, in its order.
  std::string_view name() const override { return name_; }
  void run(const Call& call) const override {
    const auto* in = static_cast<const Tensor<T>*>(call.in);
    T* out = static_cast<T*>(call.out);
    parallel_for(elements_, kChainGrain, [&](Index begin, Index end) {
      run_strips([&](std::size_t i) { return in[i].data(); }, 0, begin, end, out);
    });
  }
  void run_range(std::span<const void* const> in,
                 Index begin,
                 Index count,
                 void* out) const override {
    run_strips([&](std::size_t i) { return static_cast<const T*>(in[i]); },
               begin,
               begin,
               begin + count,
               static_cast<T*>(out));
  }

 private:
  struct Operand {
    enum class Kind {
      whole,  ///< an input that is repeated
      strip,  ///< an input, at the strip
      inner,  ///< a slot
    };
    Kind kind = Kind::whole;
    std::size_t number = 0;
  };
  struct Member {
    std::unique_ptr<const Kernel> owned;
    const ElementwiseKernel* kernel = nullptr;
    std::vector<Operand> in;
    std::size_t slot = 0;  ///< of its result; the last one's is the chain's
    bool is_last = false;
  };

  /// Elements [begin, end), of operands that follow the result and of the result itself from
  /// element `first` on.
  template <class Inputs>
  void run_strips(const Inputs& in, Index first, Index begin, Index end, T* out) const {
    alignas(64) std::array<std::byte, kStripsBytes> inner;
    T* const slots = reinterpret_cast<T*>(inner.data());
    for (Index at = begin; at < end; at += strip_) {
      run_strip(in, first, at, std::min(strip_, end - at), slots, out + (at - first));
    }
  }
  template <class Inputs>
  void run_strip(const Inputs& in, Index first, Index at, Index count, T* slots, T* out) const {
    std::array<const void*, kMostOperands> pointers{};
    const auto slot = [&](std::size_t number) {
      return slots + static_cast<Index>(number) * strip_;
    };
    for (const Member& member : members_) {
      for (std::size_t i = 0; i < member.in.size(); ++i) {
        const Operand& operand = member.in[i];
        switch (operand.kind) {
          case Operand::Kind::whole: pointers[i] = in(operand.number); break;
          case Operand::Kind::strip: pointers[i] = in(operand.number) + (at - first); break;
          case Operand::Kind::inner: pointers[i] = slot(operand.number); break;
        }
      }
      member.kernel->run_range(std::span(pointers).first(member.in.size()),
                               at,
                               count,
                               member.is_last ? out : slot(member.slot));
    }
  }

  Index elements_ = 0;
  Index strip_ = 0;
  std::vector<Member> members_;
  std::string name_;
};

/// Made when everything has been differentiated, so it has no rules.
class ChainOperation final : public Operation {
 public:
  ChainOperation(std::vector<ChainMember> members,
                 std::vector<Shape> in,
                 const Shape& shape,
                 DataType type)
      : members_(std::move(members)), in_(std::move(in)), shape_(shape), type_(type) {}

  std::string_view name() const override { return "chain"; }
  std::string attributes() const override {
    std::string text;
    for (std::size_t m = 0; m < members_.size(); ++m) {
      const Operation& operation = *members_[m].operation;
      text += m == 0 ? "" : "; ";
      text += m + 1 < members_.size() ? "t" + std::to_string(m) + " = " : "";
      text += std::string(operation.name()) + "(";
      for (std::size_t i = 0; i < members_[m].in.size(); ++i) {
        const std::size_t from = members_[m].in[i];
        text += i == 0 ? "" : ", ";
        text += from < in_.size() ? "x" + std::to_string(from)
                                  : "t" + std::to_string(from - in_.size());
      }
      text += ")";
      if (const std::string own = operation.attributes(); !own.empty()) {
        text += " " + own;
      }
    }
    return text;
  }
  bool equals(const Operation& other) const override {
    const auto* alike = dynamic_cast<const ChainOperation*>(&other);
    return alike != nullptr && alike->in_ == in_ && alike->shape_ == shape_ &&
           alike->type_ == type_ &&
           std::equal(members_.begin(),
                      members_.end(),
                      alike->members_.begin(),
                      alike->members_.end(),
                      [](const ChainMember& a, const ChainMember& b) {
                        return a.in == b.in && a.operation->equals(*b.operation);
                      });
  }
  DataType result_type() const override { return type_; }
  Shape result_shape(std::span<const Shape>) const override { return shape_; }
  /// The last member writes a strip when all others have read theirs.
  bool may_overwrite(int i) const override {
    return std::all_of(members_.begin(), members_.end(), [&](const ChainMember& member) {
      for (std::size_t k = 0; k < member.in.size(); ++k) {
        if (member.in[k] == static_cast<std::size_t>(i) &&
            !member.operation->may_overwrite(static_cast<int>(k))) {
          return false;
        }
      }
      return true;
    });
  }
  /// That of its members, where they agree on their inputs and cut what they hand on.
  std::optional<Split> split(std::span<const Shape> in) const override {
    Split whole;
    std::vector<std::optional<bool>> is_cut(in.size() + members_.size(), std::nullopt);
    std::fill(is_cut.begin() + static_cast<std::ptrdiff_t>(in.size()), is_cut.end(), true);
    for (const ChainMember& member : members_) {
      std::vector<Shape> shapes;
      for (const std::size_t from : member.in) {
        shapes.push_back(from < in.size() ? in[from] : shape_);
      }
      const std::optional<Split> split = member.operation->split(shapes);
      if (!split) {
        return std::nullopt;
      }
      for (std::size_t i = 0; i < member.in.size(); ++i) {
        std::optional<bool>& cut = is_cut[member.in[i]];
        if (cut.value_or(split->in[i]) != split->in[i]) {
          return std::nullopt;
        }
        cut = split->in[i];
      }
      whole.least = std::max(whole.least, split->least);
    }
    for (std::size_t i = 0; i < in.size(); ++i) {
      whole.in.push_back(is_cut[i].value_or(false));
    }
    return whole;
  }
  std::shared_ptr<const Operation> piece(Index count) const override {
    const std::optional<Split> whole = split(in_);
    std::vector<ChainMember> members = members_;
    for (ChainMember& member : members) {
      member.operation = member.operation->piece(count);
    }
    std::vector<Shape> in = in_;
    for (std::size_t i = 0; i < in.size(); ++i) {
      in[i] = whole->in[i] ? with_samples(in[i], count) : in[i];
    }
    return std::make_shared<const ChainOperation>(
        std::move(members), std::move(in), with_samples(shape_, count), type_);
  }
  std::unique_ptr<const Kernel> prepare() const override {
    if (type_ == DataType::f32) {
      return std::make_unique<const ChainKernel<float>>(members_, in_, shape_);
    }
    return std::make_unique<const ChainKernel<double>>(members_, in_, shape_);
  }

 private:
  std::vector<ChainMember> members_;
  std::vector<Shape> in_;
  Shape shape_;
  DataType type_;
};

/// Which nodes of a graph run together.
class ChainFinder {
 public:
  explicit ChainFinder(const Graph& graph)
      : graph_(graph),
        readers_(at(graph.size())),
        last_use_(readers_.size(), kNoNode),
        position_(readers_.size()),
        root_(readers_.size(), kNoNode),
        members_(readers_.size()),
        is_elementwise_(readers_.size()),
        is_output_(readers_.size()),
        is_overwritten_(readers_.size()) {
    find_uses();
    for (NodeId id = graph.size() - 1; id >= 0; --id) {
      if (root(id) == kNoNode && is_elementwise(id)) {
        grow(id);
      }
    }
    for (NodeId id = graph.size() - 1; id >= 0; --id) {
      if (may_repeat(id)) {
        repeat(id);
      }
    }
  }

  /// Whether it runs in chains that others end, and nowhere else.
  bool is_inner(NodeId id) const { return root(id) != kNoNode && root(id) != id; }
  /// Of the chain that ends with `id`, ascending; of a node that ends none, itself or nothing.
  std::vector<NodeId> members(NodeId id) const {
    std::vector<NodeId> result = members_[at(id)];
    std::sort(result.begin(), result.end());
    return result;
  }

 private:
  static constexpr NodeId kSeveral = -2;  ///< in place of a root: several chains have it

  static std::size_t at(NodeId id) { return static_cast<std::size_t>(id); }
  /// The member of its chain that stands last, itself where it is alone, kNoNode where it is not
  /// elementwise or not seen yet.
  NodeId root(NodeId id) const { return root_[at(id)]; }
  /// The node whose memory `id` is.
  NodeId source(NodeId id) const {
    while (graph_.node(id).operation && graph_.node(id).operation->aliases_input()) {
      id = graph_.node(id).in[0];
    }
    return id;
  }

  void find_uses() {
    NodeId position = 0;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.node(id);
      is_elementwise_[at(id)] = find_elementwise(id);
      position_[at(id)] = position;
      position += node.runs() ? 1 : 0;
      for (const NodeId input : node.in) {
        readers_[at(input)].push_back(id);
        if (node.runs()) {
          last_use_[at(source(input))] = id;
        }
      }
    }
    for (const Output& output : graph_.outputs()) {
      is_output_[at(output.node)] = true;
      last_use_[at(source(output.node))] = graph_.size();
      if (output.overwrites != kNoNode) {
        is_overwritten_[at(output.overwrites)] = true;
      }
    }
  }

  /// What cannot be written over an input of its result's shape is not elementwise, and its kernel
  /// need not be asked.
  bool find_elementwise(NodeId id) const {
    const Node& node = graph_.node(id);
    if (!node.runs() || !node.data.empty() || node.workspace.form != SelectionForm::none ||
        node.in.size() > kMostOperands) {
      return false;
    }
    bool may_overwrite = false;
    for (std::size_t i = 0; i < node.in.size(); ++i) {
      if (node.operation->condition(static_cast<int>(i))) {
        return false;
      }
      may_overwrite = may_overwrite || (graph_.node(node.in[i]).shape == node.shape &&
                                        node.operation->may_overwrite(static_cast<int>(i)));
    }
    return may_overwrite &&
           dynamic_cast<const ElementwiseKernel*>(node.operation->prepare().get()) != nullptr;
  }

  bool is_elementwise(NodeId id) const { return is_elementwise_[at(id)]; }

  /// Finds the chain that ends with `id`.
  void grow(NodeId id) {
    std::priority_queue<NodeId> inputs;  // the last first: whoever may read one has been met
    std::vector<NodeId>& members = members_[at(id)];
    const auto join = [&](NodeId member) {
      root_[at(member)] = id;
      members.push_back(member);
      for (const NodeId input : graph_.node(member).in) {
        inputs.push(input);
      }
    };
    join(id);
    while (!inputs.empty() && members.size() < kMostMembers) {
      const NodeId input = inputs.top();
      inputs.pop();
      if (root(input) == kNoNode && joins(input, members)) {
        join(input);
      }
    }
  }
  bool joins(NodeId id, const std::vector<NodeId>& members) const {
    const NodeId last = members.front();
    const Node& node = graph_.node(id);
    return node.shape == graph_.node(last).shape && node.type == graph_.node(last).type &&
           !is_output_[at(id)] &&
           std::all_of(readers_[at(id)].begin(),
                       readers_[at(id)].end(),
                       [&](NodeId reader) { return root(reader) == last; }) &&
           is_elementwise(id) &&
           (position_[at(id)] + static_cast<NodeId>(members.size()) == position_[at(last)] ||
            may_wait(id, last));
  }
  /// Whether `id` may run as late as `last`, with other operations in between: what it reads is
  /// there by then anyway. Without operations in between there is no question: all that the chain
  /// reads is there when its first member runs, and its result may lie where a member's could.
  bool may_wait(NodeId id, NodeId last) const {
    const std::vector<NodeId>& in = graph_.node(id).in;
    return std::all_of(in.begin(), in.end(), [&](NodeId input) {
      const NodeId from = source(input);
      return last_use_[at(from)] >= last ||
             (graph_.node(from).kind != NodeKind::operation && !is_overwritten_[at(from)]);
    });
  }

  /// Whether every chain that reads `id`, which nobody else does, reads what it is computed from,
  /// too. Then it can be computed in each of them: reading and keeping it costs more than the
  /// arithmetic, and nothing else has to be kept for that.
  bool may_repeat(NodeId id) const {
    if (root(id) != id || members_[at(id)].size() > 1 || is_output_[at(id)]) {
      return false;
    }
    const std::vector<NodeId>& in = graph_.node(id).in;
    return std::all_of(readers_[at(id)].begin(), readers_[at(id)].end(), [&](NodeId reader) {
      const NodeId last = root(reader);
      return last >= 0 && graph_.node(last).shape == graph_.node(id).shape &&
             members_[at(last)].size() < kMostMembers &&
             std::all_of(in.begin(), in.end(), [&](NodeId input) { return reads(last, input); });
    });
  }
  /// Whether the chain that ends with `last` reads `id`, or could at no cost.
  bool reads(NodeId last, NodeId id) const {
    return graph_.node(id).kind == NodeKind::constant ||
           std::any_of(members_[at(last)].begin(), members_[at(last)].end(), [&](NodeId member) {
             const std::vector<NodeId>& in = graph_.node(member).in;
             return std::find(in.begin(), in.end(), id) != in.end();
           });
  }
  void repeat(NodeId id) {
    for (const NodeId reader : readers_[at(id)]) {
      std::vector<NodeId>& members = members_[at(root(reader))];
      if (std::find(members.begin(), members.end(), id) == members.end()) {
        members.push_back(id);
      }
    }
    root_[at(id)] = kSeveral;
    members_[at(id)].clear();
  }

  const Graph& graph_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<NodeId> last_use_;  ///< of memory, by running nodes
  std::vector<NodeId> position_;  ///< among the nodes that run
  std::vector<NodeId> root_;
  std::vector<std::vector<NodeId>> members_;  ///< of the chain that a node ends
  std::vector<bool> is_elementwise_;
  std::vector<bool> is_output_;
  std::vector<bool> is_overwritten_;
};

/// The chain of `members` as a node; what it reads stands in `from` as yet.
Node chain_node(const Graph& from, const std::vector<NodeId>& members) {
  const Node& last = from.node(members.back());
  std::vector<NodeId> inputs;
  const auto find = [](const std::vector<NodeId>& all, NodeId id) {
    return static_cast<std::size_t>(std::find(all.begin(), all.end(), id) - all.begin());
  };
  const auto is_member = [&](NodeId id) {
    return std::binary_search(members.begin(), members.end(), id);
  };
  for (const NodeId member : members) {
    for (const NodeId input : from.node(member).in) {
      if (!is_member(input)) {
        inputs.push_back(input);
      }
    }
  }
  // The oldest first, and so first to be written over: what waited in the memory of the parameter
  // that the chain replaces can stay there.
  std::sort(inputs.begin(), inputs.end());
  inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
  std::vector<ChainMember> chain;
  for (const NodeId member : members) {
    ChainMember next{from.node(member).operation, {}};
    for (const NodeId input : from.node(member).in) {
      next.in.push_back(is_member(input) ? inputs.size() + find(members, input)
                                         : find(inputs, input));
    }
    chain.push_back(std::move(next));
  }
  std::vector<Shape> shapes;
  for (const NodeId input : inputs) {
    shapes.push_back(from.node(input).shape);
  }
  return {.kind = NodeKind::operation,
          .type = last.type,
          .shape = last.shape,
          .name = last.name,
          .operation = std::make_shared<const ChainOperation>(
              std::move(chain), std::move(shapes), last.shape, last.type),
          .in = std::move(inputs)};
}

}  // namespace

Graph chain_elementwise(const Graph& graph) {
  const ChainFinder chains(graph);
  Copier copier(graph);
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (chains.is_inner(id)) {
      continue;
    }
    const std::vector<NodeId> members = chains.members(id);
    if (members.size() < 2) {
      copier.set_place(id, copier.append(copier.moved(id)));
      continue;
    }
    Node node = chain_node(graph, members);
    for (NodeId& input : node.in) {
      input = copier.place(input);
    }
    copier.set_place(id, copier.append(std::move(node)));
  }
  return copier.finish();
}

}  // namespace fenestra::graph
