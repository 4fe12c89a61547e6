// The tree along which leaves are added: node (k, j) is node (k-1, 2j) plus node (k-1, 2j+1), and
// where there is no right one, the left one itself. It depends on the number of leaves alone;
// whoever has neighbouring nodes adds them. Not installed.
#pragma once

#include <fenestra/base/error.hpp>

#include <utility>
#include <vector>

namespace fenestra::ranks {

/// The sum of the leaves [index << level, (index + 1) << level), as far as there are any.
struct TreeNode {
  int level = 0;
  Index index = 0;

  friend bool operator==(const TreeNode&, const TreeNode&) = default;
};

/// [begin, end)
struct LeafRange {
  Index begin = 0;
  Index end = 0;

  friend bool operator==(const LeafRange&, const LeafRange&) = default;
};

/// The part of the leaves that a rank computes; none where ranks are more than leaves.
constexpr LeafRange leaves_of(int rank, int ranks, Index leaves) {
  return {leaves * rank / ranks, leaves * (rank + 1) / ranks};
}

/// Takes nodes from left to right and adds those that meet, by add(left, right), which changes the
/// left one.
template <class Payload, class Add>
class TreeSum {
 public:
  struct Entry {
    TreeNode node;
    Payload payload;
  };

  TreeSum(Index leaves, Add add) : leaves_(leaves), add_(std::move(add)) {}

  void push(TreeNode node, Payload payload) {
    entries_.push_back({node, std::move(payload)});
    while (joins() || rises()) {
    }
  }
  /// What could not be added, from left to right; in the end the root alone.
  std::vector<Entry>& entries() { return entries_; }

 private:
  bool joins() {
    if (entries_.size() < 2) {
      return false;
    }
    Entry& right = entries_.back();
    Entry& left = entries_[entries_.size() - 2];
    if (left.node.level != right.node.level || left.node.index + 1 != right.node.index ||
        left.node.index % 2 != 0) {
      return false;
    }
    add_(left.payload, right.payload);
    entries_.pop_back();
    entries_.back().node = above(entries_.back().node);
    return true;
  }
  /// A left one that will never have a right one.
  bool rises() {
    TreeNode& node = entries_.back().node;
    const bool is_root = node.index == 0 && (Index{1} << node.level) >= leaves_;
    if (is_root || node.index % 2 != 0 || ((node.index + 1) << node.level) < leaves_) {
      return false;
    }
    node = above(node);
    return true;
  }
  static TreeNode above(TreeNode node) { return {node.level + 1, node.index / 2}; }

  Index leaves_;
  Add add_;
  std::vector<Entry> entries_;
};

/// The nodes that a rank is left with when it has added all that it can of its leaves.
inline std::vector<TreeNode> nodes_of(LeafRange range, Index leaves) {
  struct Nothing {};
  const auto add = [](Nothing&, const Nothing&) {};
  TreeSum<Nothing, decltype(add)> sum(leaves, add);
  for (Index leaf = range.begin; leaf < range.end; ++leaf) {
    sum.push({0, leaf}, {});
  }
  std::vector<TreeNode> nodes;
  for (const auto& entry : sum.entries()) {
    nodes.push_back(entry.node);
  }
  return nodes;
}

}  // namespace fenestra::ranks
