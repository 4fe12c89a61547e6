// Tensors for people: to_string and <<, brackets nested by axis as NumPy writes them. Of more than
// a thousand elements only the first and last three along each axis are written.
#pragma once

#include <fenestra/tensor/tensor.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <ostream>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

namespace fenestra {

namespace detail {

template <class T>
std::string element_text(const T& element) {
  if constexpr (std::is_floating_point_v<T>) {
    // As many digits as it takes, eight at the most.
    char shortest[64];
    const auto end = std::to_chars(shortest, shortest + sizeof shortest, element).ptr;
    char rounded[64];
    const int length =
        std::snprintf(rounded, sizeof rounded, "%.8Lg", static_cast<long double>(element));
    return length < end - shortest ? std::string(rounded) : std::string(shortest, end);
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_string(element);
  } else if constexpr (requires { to_string(element); }) {
    return to_string(element);
  } else {
    std::ostringstream out;
    out << element;
    return out.str();
  }
}

/// Writes the elements that are shown, all as wide as the widest.
template <class T>
class TensorText {
 public:
  explicit TensorText(const Tensor<T>& tensor)
      : tensor_(tensor), abbreviates_(tensor.size() > kMostElements) {
    visit(0, 0, [this](Index at) { width_ = std::max(width_, element_text(tensor_[at]).size()); });
  }
  std::string text() {
    write(0, 0);
    return std::move(out_);
  }

 private:
  static constexpr Index kMostElements = 1000;
  static constexpr Index kEdge = 3;

  bool leaves_out(Index extent) const { return abbreviates_ && extent > 2 * kEdge; }
  /// Calls f(i) for the places along an axis that are shown, and gap() where some are left out.
  template <class F, class Gap>
  void along(Index extent, const F& f, const Gap& gap) const {
    for (Index i = 0; i < extent; ++i) {
      if (leaves_out(extent) && i == kEdge) {
        gap();
        i = extent - kEdge;
      }
      f(i);
    }
  }
  template <class F>
  void visit(int axis, Index at, const F& f) const {
    if (axis == tensor_.rank()) {
      return f(at);
    }
    const Index extent = tensor_.shape()[axis];
    along(
        extent, [&](Index i) { visit(axis + 1, at * extent + i, f); }, [] {});
  }
  void write(int axis, Index at) {
    if (axis == tensor_.rank()) {
      const std::string element = element_text(tensor_[at]);
      out_.append(width_ - element.size(), ' ').append(element);
      return;
    }
    const Index extent = tensor_.shape()[axis];
    const bool innermost = axis + 1 == tensor_.rank();
    // A blank line between matrices, two between stacks of them.
    const std::string next =
        innermost ? ", "
                  : "," + std::string(static_cast<std::size_t>(tensor_.rank() - axis - 1), '\n') +
                        std::string(static_cast<std::size_t>(axis) + 1, ' ');
    bool first = true;
    const auto separate = [&] {
      out_ += first ? "" : next;
      first = false;
    };
    out_ += '[';
    along(
        extent,
        [&](Index i) {
          separate();
          write(axis + 1, at * extent + i);
        },
        [&] {
          separate();
          out_ += "...";
        });
    out_ += ']';
  }

  const Tensor<T>& tensor_;
  bool abbreviates_;
  std::size_t width_ = 0;
  std::string out_;
};

}  // namespace detail

template <class T>
std::string to_string(const Tensor<T>& tensor) {
  return detail::TensorText<T>(tensor).text();
}

template <class T>
std::ostream& operator<<(std::ostream& out, const Tensor<T>& tensor) {
  return out << to_string(tensor);
}

}  // namespace fenestra
