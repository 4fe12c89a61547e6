// Tensor<T>: a value. Dense, row-major, any scalar, any rank.
//
// Copies share storage and are O(1); the first write through a shared tensor gives it storage of
// its own, so no tensor ever changes because another one did. Reading is safe from many threads;
// writing needs the tensor to oneself. Strided memory enters by `copy_strided` and nothing else:
// operators never see strides. `view` reads memory that somebody else owns, and is the one
// exception to owning what is read.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/base/memory.hpp>
#include <fenestra/tensor/shape.hpp>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace fenestra {

template <class T>
class Tensor {
 public:
  using Scalar = T;

  /// A rank-0 tensor holding zero.
  Tensor() : Tensor(Shape{}) {}
  /// Every element zero.
  explicit Tensor(const Shape& shape) : Tensor(shape, T(0)) {}
  Tensor(const Shape& shape, const T& fill)
      : shape_(shape), size_(checked_size(shape)), storage_(allocate(size_)) {
    std::fill_n(storage_.get(), size_, fill);
  }
  Tensor(const Shape& shape, std::span<const T> values)
      : shape_(shape), size_(checked_size(shape)), storage_(allocate(size_)) {
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

  /// Reads dense memory of `shape` that the caller owns, without a copy or an allocation. The
  /// memory must outlive the tensor, its copies and its reshapes, and must not change while one of
  /// them is read. Writing to such a tensor gives it storage of its own first.
  static Tensor view(const T* data, const Shape& shape) { return Tensor(shape, data, Raw{}); }

  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  Index size() const { return size_; }

  const T* data() const { return storage_.get(); }
  /// Write access; detaches from tensors that share the storage, and from memory that is only
  /// viewed.
  T* mutable_data() {
    if (storage_.use_count() != 1) {
      auto own = allocate(size_);
      std::copy_n(storage_.get(), size_, own.get());
      storage_ = std::move(own);
    }
    return storage_.get();
  }
  std::span<const T> values() const { return {data(), static_cast<std::size_t>(size_)}; }
  std::span<T> mutable_values() { return {mutable_data(), static_cast<std::size_t>(size_)}; }

  const T& operator[](Index flat) const { return storage_.get()[flat]; }

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
  struct Raw {};
  Tensor(const Shape& shape, Raw)
      : shape_(shape), size_(checked_size(shape)), storage_(allocate(size_)) {}
  // A view has a pointer without an owner, so that its use count is 0.
  Tensor(const Shape& shape, const T* data, Raw)
      : shape_(shape),
        size_(checked_size(shape)),
        storage_(std::shared_ptr<void>(), const_cast<T*>(data)) {}

  static Index checked_size(const Shape& shape) {
    const auto n = shape.elements();
    if (!n) {
      throw Error(ErrorCode::overflow, "tensor: no storage can hold the shape " + to_string(shape));
    }
    return *n;
  }
  static std::shared_ptr<T[]> allocate(Index size) {
    const auto count = static_cast<std::size_t>(size);
    if constexpr (std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>) {
      const std::size_t bytes = count * sizeof(T);
      T* buffer = static_cast<T*>(detail::BufferCache::instance().allocate(bytes));
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
