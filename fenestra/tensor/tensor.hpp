// Tensor<T>: a value. Dense, row-major, any scalar, any rank.
//
// Copies share storage and are O(1); the first write through a shared tensor gives it storage of
// its own, so no tensor ever changes because another one did. Memory that is not ours, or that we
// lent to somebody, is read and never written. Reading is safe from many threads; writing needs the
// tensor to oneself. Strided memory enters by `copy_strided` and nothing else: operators never see
// strides.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/base/memory.hpp>
#include <fenestra/tensor/shape.hpp>

#include <algorithm>
#include <concepts>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace fenestra {

namespace detail {

[[noreturn]] inline void throw_out_of_memory(const Shape& shape, std::size_t bytes) {
  std::string what;
  try {
    what = "a tensor " + to_string(shape);
  } catch (const std::bad_alloc&) {
    // Not even for a few words.
  }
  throw OutOfMemory(what.empty() ? "a tensor" : what.c_str(), bytes);
}

}  // namespace detail

template <class T>
class Tensor {
 public:
  using Scalar = T;

  /// A rank-0 tensor holding zero.
  Tensor() : Tensor(Shape{}) {}
  /// Every element zero.
  explicit Tensor(const Shape& shape) : Tensor(shape, T(0)) {}
  Tensor(const Shape& shape, const T& fill)
      : shape_(shape), size_(checked_size(shape)), storage_(allocate(shape, size_)) {
    std::fill_n(storage_.get(), size_, fill);
  }
  Tensor(const Shape& shape, std::span<const T> values)
      : shape_(shape), size_(checked_size(shape)), storage_(allocate(shape, size_)) {
    require_count(static_cast<Index>(values.size()));
    std::copy(values.begin(), values.end(), storage_.get());
  }
  Tensor(const Shape& shape, std::initializer_list<T> values)
      : Tensor(shape, std::span<const T>(values.begin(), values.size())) {}
  Tensor(const Shape& shape, const std::vector<T>& values)
      : Tensor(shape, std::span<const T>(values)) {}

  /// Elements of a plain number type are left as they are in memory; others start as zero. For
  /// results that are overwritten whole.
  static Tensor uninitialised(const Shape& shape) { return Tensor(shape, Raw{}); }

  /// Somebody else's memory, which `owner` keeps alive: `shape.elements()` scalars that are only
  /// read. `writable` says whether `lend` may show it to others for writing.
  static Tensor borrowed(const Shape& shape, std::shared_ptr<T[]> owner, bool writable = false) {
    Tensor result(shape, std::move(owner));
    result.access_ = writable ? Access::shared : Access::read_only;
    return result;
  }
  /// The same without an owner and without an allocation: the memory must outlive the tensor, its
  /// copies and its reshapes, and must not change while one of them is read.
  static Tensor view(const T* data, const Shape& shape) {
    return borrowed(shape, std::shared_ptr<T[]>(std::shared_ptr<void>(), const_cast<T*>(data)));
  }

  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  Index size() const { return size_; }

  const T* data() const { return storage_.get(); }
  /// Write access; detaches from tensors that share the storage, and from memory that is only
  /// viewed.
  T* mutable_data() {
    if (access_ != Access::own || storage_.use_count() > 1) {
      detach();
    }
    return storage_.get();
  }
  /// The storage, for writing by others: they and this tensor see each other's changes, tensors
  /// that shared the storage before do not. The library itself no longer writes to it.
  std::shared_ptr<T[]> lend() {
    if (access_ == Access::read_only || (access_ == Access::own && storage_.use_count() > 1)) {
      detach();
    }
    access_ = Access::shared;
    return storage_;
  }
  std::span<const T> values() const { return {data(), static_cast<std::size_t>(size_)}; }
  std::span<T> mutable_values() { return {mutable_data(), static_cast<std::size_t>(size_)}; }

  const T& operator[](Index flat) const { return storage_.get()[flat]; }
  /// The element at (i, j, ...), one number for each axis; checked.
  template <std::convertible_to<Index>... I>
  const T& at(I... i) const {
    const Index place[] = {static_cast<Index>(i)..., 0};
    return storage_.get()[flat_index(place, static_cast<int>(sizeof...(I)))];
  }
  template <std::convertible_to<Index>... I>
  T& mutable_at(I... i) {
    const Index place[] = {static_cast<Index>(i)..., 0};
    const Index flat = flat_index(place, static_cast<int>(sizeof...(I)));
    return mutable_data()[flat];
  }

  /// The same elements under another shape of equal size; shares storage.
  Tensor reshaped(const Shape& shape) const {
    Tensor result = *this;
    result.shape_ = shape;
    if (checked_size(shape) != size_) {
      throw Error(ErrorCode::shape_mismatch,
                  "reshape: " + to_string(shape_) + " has " + std::to_string(size_) +
                      " elements, " + to_string(shape) + " does not");
    }
    return result;
  }

  /// Elementwise conversion by `f`, e.g. to another scalar.
  template <class F>
  auto map(F&& f) const {
    using U = std::decay_t<decltype(f(std::declval<const T&>()))>;
    Tensor<U> result(shape_);
    U* out = result.mutable_data();
    for (Index i = 0; i < size_; ++i) {
      out[i] = f((*this)[i]);
    }
    return result;
  }

  friend bool operator==(const Tensor& a, const Tensor& b) {
    return a.shape_ == b.shape_ && std::equal(a.data(), a.data() + a.size_, b.data());
  }

 private:
  enum class Access : unsigned char {
    own,        ///< written by whoever holds the storage alone
    shared,     ///< others write to it
    read_only,  ///< nobody here may write to it
  };
  struct Raw {};
  Tensor(const Shape& shape, Raw)
      : shape_(shape), size_(checked_size(shape)), storage_(allocate(shape, size_)) {}
  Tensor(const Shape& shape, std::shared_ptr<T[]> storage)
      : shape_(shape), size_(checked_size(shape)), storage_(std::move(storage)) {}

  Index flat_index(const Index* place, int axes) const {
    if (axes != rank()) {
      throw Error(ErrorCode::rank_mismatch,
                  "tensor: " + std::to_string(axes) + " indices for the shape " +
                      to_string(shape_) + "\n  fix: one index for each axis");
    }
    Index flat = 0;
    for (int axis = 0; axis < axes; ++axis) {
      if (place[axis] < 0 || place[axis] >= shape_[axis]) {
        throw Error(ErrorCode::invalid_index,
                    "tensor: index " + std::to_string(place[axis]) + " on axis " +
                        std::to_string(axis) + " of the shape " + to_string(shape_) +
                        "\n  fix: 0 to " + std::to_string(shape_[axis] - 1));
      }
      flat = flat * shape_[axis] + place[axis];
    }
    return flat;
  }
  void detach() {
    auto own = allocate(shape_, size_);
    std::copy_n(storage_.get(), size_, own.get());
    storage_ = std::move(own);
    access_ = Access::own;
  }
  static Index checked_size(const Shape& shape) {
    const auto n = shape.elements();
    if (!n) {
      throw Error(ErrorCode::overflow, "tensor: no storage can hold the shape " + to_string(shape));
    }
    return *n;
  }
  static std::shared_ptr<T[]> allocate(const Shape& shape, Index size) {
    const auto count = static_cast<std::size_t>(size);
    if constexpr (std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>) {
      const std::size_t bytes = count * sizeof(T);
      T* buffer = static_cast<T*>(detail::BufferCache::instance().allocate(bytes));
      if (buffer == nullptr) {
        detail::throw_out_of_memory(shape, bytes);
      }
      return std::shared_ptr<T[]>(
          buffer, [bytes](T* p) { detail::BufferCache::instance().release(p, bytes); });
    } else {
      return std::make_shared_for_overwrite<T[]>(count);
    }
  }
  void require_count(Index count) const {
    if (count != size_) {
      throw Error(ErrorCode::shape_mismatch,
                  "tensor: shape " + to_string(shape_) + " has " + std::to_string(size_) +
                      " elements, " + std::to_string(count) + " values given");
    }
  }

  Shape shape_;
  Index size_;
  std::shared_ptr<T[]> storage_;
  Access access_ = Access::own;
};

/// A dense tensor from memory with any strides (in elements, negative ones too).
template <class T>
Tensor<T> copy_strided(const T* data, const Shape& shape, std::span<const Index> strides) {
  if (static_cast<int>(strides.size()) != shape.rank()) {
    throw Error(ErrorCode::rank_mismatch,
                "copy_strided: shape " + to_string(shape) + " needs one stride per axis, got " +
                    std::to_string(strides.size()));
  }
  Tensor<T> result(shape);
  T* out = result.mutable_data();
  Index position[kMaxRank] = {};
  Index offset = 0;
  for (Index i = 0; i < result.size(); ++i) {
    out[i] = data[offset];
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      const Index stride = strides[static_cast<std::size_t>(axis)];
      offset += stride;
      if (++position[axis] < shape[axis]) {
        break;
      }
      offset -= stride * shape[axis];
      position[axis] = 0;
    }
  }
  return result;
}

}  // namespace fenestra
