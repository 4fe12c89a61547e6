// What nodes of a graph are called by, and what their results are made of.
#pragma once

#include <fenestra/tensor/shape.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace fenestra::graph {

/// The place of a node in its graph.
using NodeId = Index;
inline constexpr NodeId kNoNode = -1;
/// What prints call a node.
inline std::string reference(NodeId id) { return "%" + std::to_string(id); }

enum class DataType { f32, f64, index };

constexpr std::string_view data_type_name(DataType type) {
  switch (type) {
    case DataType::f32: return "f32";
    case DataType::f64: return "f64";
    case DataType::index: return "index";
  }
  return "";
}

constexpr std::size_t bytes_of(DataType type) {
  return type == DataType::f32 ? sizeof(float) : sizeof(double);
}

template <class T>
struct DataTypeOf;
template <>
struct DataTypeOf<float> {
  static constexpr DataType value = DataType::f32;
};
template <>
struct DataTypeOf<double> {
  static constexpr DataType value = DataType::f64;
};
template <>
struct DataTypeOf<Index> {
  static constexpr DataType value = DataType::index;
};

}  // namespace fenestra::graph
