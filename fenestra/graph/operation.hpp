// What a graph asks of an operation. Passes, printer, planner and executor ask these questions and
// never an operation's name; the operators themselves, and how they are differentiated, are one
// layer up.
//
// An operation is immutable and belongs to one scalar type. Its kernel is the same with everything
// decided: which candidate runs, with which tables. Both may be shared between threads.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/graph/data_type.hpp>
#include <fenestra/tensor/box.hpp>
#include <fenestra/tensor/condition.hpp>
#include <fenestra/tensor/selection.hpp>
#include <fenestra/tensor/shape.hpp>
#include <fenestra/tensor/split.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra::graph {

class Graph;

/// The memory of one call. `in` points to as many Tensor<T> as the node has inputs, T being the
/// operation's scalar; `out` to the elements of the result.
struct Call {
  const void* in = nullptr;
  std::size_t count = 0;
  std::span<const Selection> data = {};
  void* out = nullptr;
  SelectionBuffer workspace = {};  ///< empty where nobody reads it
  void* scratch = nullptr;         ///< of at least `scratch_bytes`, on a 64-byte boundary
  const void* packed = nullptr;    ///< what `pack` wrote of the input that `packing` names, if any
};

/// The form in which a kernel would rather read one of its inputs. It makes that form for itself in
/// every call, unless it is given it.
struct Packing {
  int input = 0;
  std::size_t bytes = 0;  ///< 0: it reads all inputs as they are
};

class FENESTRA_API Kernel {
 public:
  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  virtual ~Kernel() = default;

  /// <op>_<dtype>_<algorithm> where there was a choice, else empty.
  virtual std::string_view name() const { return {}; }
  virtual std::size_t scratch_bytes() const { return 0; }
  virtual Packing packing() const { return {}; }
  /// Writes the packed form of an input with these elements to memory on a 64-byte boundary.
  virtual void pack(const void*, void*) const {}
  virtual void run(const Call& call) const = 0;
};

class FENESTRA_API Operation {
 public:
  Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  virtual ~Operation() = default;

  virtual std::string_view name() const = 0;
  /// Everything that distinguishes it from others of its name and input shapes, in words.
  virtual std::string attributes() const = 0;
  /// Whether both compute the same of the same inputs.
  virtual bool equals(const Operation& other) const = 0;
  /// Equal operations have equal hashes.
  std::size_t hash() const;

  virtual DataType result_type() const = 0;
  virtual Shape result_shape(std::span<const Shape> in) const = 0;
  /// What a run can leave for derivatives.
  virtual SelectionType workspace() const { return {}; }

  /// The result is the first input's elements under another shape: nothing runs.
  virtual bool aliases_input() const { return false; }
  /// The result may be written over input i, where that has the result's shape.
  virtual bool may_overwrite(int) const { return false; }
  /// How it treats the samples along axis 0 of its result; none where it does not treat them one by
  /// one. What it reads of indices and leaves of them is cut with the result.
  virtual std::optional<Split> split(std::span<const Shape>) const { return std::nullopt; }
  /// Itself on `count` samples; for operations that have a split.
  virtual std::shared_ptr<const Operation> piece(Index) const { return nullptr; }
  /// Itself on a part of its result, from inputs of these shapes. Every cell has the bits it has in
  /// the whole as long as the same kernel runs. None where it has no such form: where its cells
  /// depend on all of an input, or on what another operation left.
  virtual std::optional<TileOf<std::shared_ptr<const Operation>>> tile(std::span<const Shape>,
                                                                       const Box&) const {
    return std::nullopt;
  }
  /// Where the channels of its activations stand, for people; empty where it does not ask.
  virtual std::string layout() const { return {}; }
  /// What the numbers of input i must fulfil, where they are given; none where all will do.
  virtual std::optional<Condition> condition(int) const { return std::nullopt; }
  /// Multiplications with an addition, 0 where the operation does not count them.
  virtual Index multiply_adds() const { return 0; }

  virtual std::unique_ptr<const Kernel> prepare() const = 0;

  /// For an operation that scales and shifts each channel of what `source` computes: appends a node
  /// that does so at no cost of its own, by asking the source to; kNoNode where it cannot.
  virtual NodeId folded(const std::shared_ptr<Graph>&, NodeId, NodeId) const { return kNoNode; }
  /// Appends scale * y + shift of its result y, a number of each per channel, computed at once;
  /// kNoNode where the operation cannot take them in.
  virtual NodeId scaled(const std::shared_ptr<Graph>&, NodeId, NodeId, NodeId) const {
    return kNoNode;
  }
  /// Appends what `reader` computes of the result of `node`, which nobody else reads, in one
  /// operation with it; kNoNode where the operation cannot take it in.
  virtual NodeId with_epilogue(const std::shared_ptr<Graph>&, NodeId, NodeId) const {
    return kNoNode;
  }
};

}  // namespace fenestra::graph
