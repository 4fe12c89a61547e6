// A primitive of one's own whose function is not the one that the contract declares.
// expect: a primitive's functions have the types that PrimitiveBase declares
#include <fenestra/rules.hpp>

#include <optional>
#include <span>
#include <string_view>

namespace fn = fenestra;

struct Twice : fn::PrimitiveBase<Twice> {
  static constexpr std::string_view name = "twice";

  static fn::Shape result_shape(const fn::Shape& x) { return x; }
  template <class T>
  void run(std::span<const fn::Tensor<T>> in,
           std::span<const fn::Selection>,
           T* out,
           const fn::SelectionBuffer&) const {
    for (fn::Index i = 0; i < in[0].size(); ++i) {
      out[i] = in[0][i] + in[0][i];
    }
  }
  template <class V>
  V vjp(int, const fn::Saved<V>&, const V& y_bar) const {
    return fn::apply(*this, y_bar);
  }
  template <class V>
  std::optional<V> jvp(const fn::Saved<V>&, std::span<const std::optional<V>> dots) const {
    return fn::apply(*this, *dots[0]);
  }
#ifdef REFUSED
  static bool may_overwrite() { return true; }
#else
  static bool may_overwrite(int) { return true; }
#endif
  static bool needs(int, int) { return false; }
  friend bool operator==(const Twice&, const Twice&) = default;
};

const fn::PrimitiveOf<Twice, float> twice(Twice{});
