// Networks cut into stages for ranks that have rows; see tile_graph.hpp.
#include <fenestra/nn/tile_assembly.hpp>

#include <algorithm>
#include <utility>

namespace fenestra::nn::detail {

/// Finds who computes and who needs what, and where ranks must meet.
template <class T>
class TileGraph<T>::SlabPlanner {
 public:
  SlabPlanner(const TileGraph& of, int rank, int ranks)
      : of_(of),
        rank_(static_cast<std::size_t>(rank)),
        ranks_(static_cast<std::size_t>(ranks)),
        tensors_(index(of.whole_.size())),
        found_(index(of.whole_.size())),
        stage_(index(of.whole_.size())) {}

  SlabPlan plan() {
    follow();
    SlabPlan plan{of_.input_, of_.output_, {}, {}};
    for (NodeId id = 0; id <= of_.output_; ++id) {
      if (found_[index(id)] && id != of_.input_) {
        stage_[index(id)] = stage_after_inputs(id);
      }
    }
    plan.stages.resize(index(stage_[index(of_.output_)]) + 1);
    for (std::size_t s = 0; s < plan.stages.size(); ++s) {
      plan.stages[s] = stage(static_cast<Index>(s));
      for (const std::vector<NodeId>* list : {&plan.stages[s].in, &plan.stages[s].out}) {
        for (const NodeId id : *list) {
          plan.tensors[id] = *tensors_[index(id)];
        }
      }
    }
    return plan;
  }

 private:
  /// Where the rows of a node are: an axis, and an atom of it.
  struct Place {
    std::size_t axis;
    std::size_t atom;
  };
  Place place_of(NodeId id) const {
    const std::vector<Axis>& axes = of_.axes_[index(id)];
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      for (std::size_t k = 0; k < axes[axis].size(); ++k) {
        if (axes[axis][k].axis == 2) {
          return {axis, k};
        }
      }
    }
    throw TooFewRows{id, 1};
  }
  Ranges with_rows(NodeId id, const IndexRange& rows) const {
    const std::vector<Axis>& axes = of_.axes_[index(id)];
    Ranges ranges(axes.size());
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      for (const Atom& atom : axes[axis]) {
        ranges[axis].push_back({0, atom.extent});
      }
    }
    const Place place = place_of(id);
    ranges[place.axis][place.atom] = rows;
    return ranges;
  }
  SlabTensor tensor_of(NodeId id) const {
    const Place place = place_of(id);
    const std::vector<Axis>& axes = of_.axes_[index(id)];
    SlabTensor tensor;
    tensor.whole = of_.whole_.node(id).shape;
    tensor.axis = static_cast<int>(place.axis);
    tensor.rows = axes[place.axis][place.atom].extent;
    bool is_behind = false;
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      for (std::size_t k = 0; k < axes[axis].size(); ++k) {
        if (axis == place.axis && k == place.atom) {
          is_behind = true;
        } else {
          (is_behind ? tensor.inner : tensor.outer) *= axes[axis][k].extent;
        }
      }
    }
    if (tensor.rows < static_cast<Index>(ranks_)) {
      throw TooFewRows{id, tensor.rows};
    }
    for (Index r = 0; r < static_cast<Index>(ranks_); ++r) {
      const auto count = static_cast<Index>(ranks_);
      tensor.own.push_back({tensor.rows * r / count, tensor.rows * (r + 1) / count});
    }
    // The picture is read by whoever needs it: nobody owns it.
    tensor.has = id == of_.input_ ? std::vector<IndexRange>(ranks_) : tensor.own;
    return tensor;
  }
  SlabTensor& tensor(NodeId id) {
    std::optional<SlabTensor>& known = tensors_[index(id)];
    if (!known) {
      known = tensor_of(id);
    }
    return *known;
  }
  /// What every rank asks of every node, from the output backwards.
  void follow() {
    std::vector<bool> is_needed(index(of_.whole_.size()));
    is_needed[index(of_.output_)] = true;
    for (NodeId id = of_.output_; id >= 0; --id) {
      if (!is_needed[index(id)]) {
        continue;
      }
      const SlabTensor& own = tensor(id);
      const std::vector<NodeId>& in = of_.whole_.node(id).in;
      for (std::size_t r = 0; r < ranks_; ++r) {
        std::optional<NodeTile> tile = of_.node_tile(id, with_rows(id, own.own[r]));
        for (std::size_t i = 0; i < tile->in.size(); ++i) {
          if (of_.depends(in[i])) {
            is_needed[index(in[i])] = true;
            const Place place = place_of(in[i]);
            IndexRange& has = tensor(in[i]).has[r];
            has = hull(has, tile->in[i][place.axis][place.atom]);
          }
        }
        if (r == rank_) {
          found_[index(id)] = std::move(tile);
        }
      }
    }
  }
  bool is_exchanged(NodeId id) const {
    const SlabTensor& tensor = *tensors_[index(id)];
    return id != of_.input_ && tensor.has != tensor.own;
  }
  Index stage_after_inputs(NodeId id) const {
    Index stage = 0;
    for (const NodeId in : of_.whole_.node(id).in) {
      if (of_.depends(in)) {
        stage = std::max(stage, stage_[index(in)] + (is_exchanged(in) ? 1 : 0));
      }
    }
    return stage;
  }
  SlabStage stage(Index number) {
    std::vector<NodeId> nodes;
    std::vector<NodeId> in;
    std::vector<std::pair<NodeId, Ranges>> out;
    Found local(found_.size());
    for (NodeId id = 0; id <= of_.output_; ++id) {
      if (!found_[index(id)] || id == of_.input_) {
        continue;
      }
      for (const NodeId read : of_.whole_.node(id).in) {
        const bool is_kept =
            of_.depends(read) && (read == of_.input_ || stage_[index(read)] != stage_[index(id)]);
        if (is_kept && stage_[index(id)] == number) {
          tensor(read).last_stage = number;
          if (std::find(in.begin(), in.end(), read) == in.end()) {
            in.push_back(read);
          }
        } else if (is_kept && stage_[index(read)] == number && read != of_.input_) {
          add_output(out, read);
        }
      }
      if (stage_[index(id)] == number) {
        nodes.push_back(id);
        local[index(id)] = found_[index(id)];
      }
    }
    if (stage_[index(of_.output_)] == number) {
      add_output(out, of_.output_);
    }
    for (const NodeId id : in) {
      local[index(id)] = NodeTile{with_rows(id, tensor(id).has[rank_]), {}, {}, nullptr};
    }
    SlabStage stage{Assembly(of_, local).stage(in, nodes, out), in, {}};
    for (const auto& [id, ranges] : out) {
      stage.out.push_back(id);
    }
    return stage;
  }
  void add_output(std::vector<std::pair<NodeId, Ranges>>& out, NodeId id) {
    for (const auto& [known, ranges] : out) {
      if (known == id) {
        return;
      }
    }
    out.emplace_back(id, with_rows(id, tensor(id).own[rank_]));
  }

  const TileGraph& of_;
  std::size_t rank_;
  std::size_t ranks_;
  std::vector<std::optional<SlabTensor>> tensors_;
  Found found_;
  std::vector<Index> stage_;
};

template <class T>
SlabPlan TileGraph<T>::slabs(int rank, int ranks) const {
  return SlabPlanner(*this, rank, ranks).plan();
}

template SlabPlan TileGraph<float>::slabs(int, int) const;
template SlabPlan TileGraph<double>::slabs(int, int) const;

}  // namespace fenestra::nn::detail
