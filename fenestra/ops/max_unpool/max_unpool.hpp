// Max unpooling on any value type: a scatter by flat indices, adjoint to a gather.
#pragma once

#include <fenestra/engine/primitive_base.hpp>
#include <fenestra/ops/max_unpool/call.hpp>
#include <fenestra/ops/max_unpool/geometry.hpp>
#include <fenestra/ops/max_unpool/spec.hpp>

namespace fenestra {

/// Places x's values into y, or reads them back. The selection holds the last writers only.
struct PlacementPrimitive : PrimitiveBase<PlacementPrimitive> {
  static constexpr std::string_view name = "max_unpool";
  MaxUnpoolGeometry g;
  bool reads_back = false;

  std::string_view display_name() const { return reads_back ? "max_unpool_gather" : name; }
  constexpr Shape result_shape(const Shape&) const {
    return reads_back ? g.x_shape() : g.y_shape();
  }
  template <class T>
  void run(std::span<const Tensor<T>> in,
           std::span<const Selection> data,
           T* out,
           const SelectionBuffer&) const {
    const Index* indices = data[0].indices().data();
    if (reads_back) {
      spec::gather(in[0].data(), indices, g.y_map(), g.x_map(), out);
    } else {
      spec::scatter(in[0].data(), indices, g.y_map(), g.x_map(), out);
    }
  }
  std::string attributes() const { return to_string(g); }
  std::string layout() const { return std::string(layout_name(g.layout)); }
  template <class V>
  V vjp(int, const Saved<V>& saved, const V& bar) const {
    return apply(PlacementPrimitive{{}, g, !reads_back}, {bar}, {saved.data[0]});
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>& saved, std::span<const std::optional<V>> dots) const {
    return apply(*this, {*dots[0]}, {saved.data[0]});
  }
  static constexpr bool needs(int, int) { return false; }
  friend bool operator==(const PlacementPrimitive&, const PlacementPrimitive&) = default;
};

/// Of values and of a graph, whose numbers are checked when they are given.
FENESTRA_API Indices last_writers(const Indices& indices, const MaxUnpoolGeometry& g);
namespace graph {
FENESTRA_API Data last_writers(const Data& indices, const MaxUnpoolGeometry& g);
}  // namespace graph

inline namespace generic {

template <AnyValue V>
constexpr V max_unpool(const V& x,
                       const Tensor<Index>& indices,
                       const MaxUnpoolOptions& options,
                       int named_rank = 0) {
  const MaxUnpoolGeometry g = max_unpool_geometry(x.shape(), options, named_rank);
  return apply(PlacementPrimitive{{}, g}, {x}, {IndicesOf<V>(spec::last_writers(indices, g))});
}
/// With indices that are no tensor yet: `last_writers` for them is found by their type.
template <AnyValue V>
  requires HasOwnIndices<V>
constexpr V max_unpool(const V& x,
                       const IndicesOf<V>& indices,
                       const MaxUnpoolOptions& options,
                       int named_rank = 0) {
  const MaxUnpoolGeometry g = max_unpool_geometry(x.shape(), options, named_rank);
  return apply(PlacementPrimitive{{}, g}, {x}, {last_writers(indices, g)});
}

}  // namespace generic

}  // namespace fenestra
