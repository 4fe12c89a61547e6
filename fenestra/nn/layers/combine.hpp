// Layers made of layers: Sequential, Residual, Branches, and squeeze-and-excitation.
#pragma once

#include <fenestra/nn/layer.hpp>
#include <fenestra/nn/layers/conv.hpp>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fenestra::nn {

/// One layer after the other; each is named by its number, or by a name.
///
///   Sequential net{Conv(1, 8, {.kernel = 3}), Relu(), Flatten(), Linear(5408, 10)};
template <class T>
class FENESTRA_API BasicSequential {
 public:
  using Scalar = T;
  static constexpr std::string_view kind = "sequential";

  BasicSequential() = default;
  BasicSequential(std::initializer_list<Layer<T>> layers) {
    for (const Layer<T>& layer : layers) {
      add(layer);
    }
  }

  BasicSequential& add(Layer<T> layer) { return add(std::to_string(size()), std::move(layer)); }
  /// Names have no dot and are there once.
  BasicSequential& add(std::string name, Layer<T> layer);

  std::size_t size() const { return layers_.size(); }
  Layer<T>& operator[](std::size_t i) { return layers_[i].second; }
  const Layer<T>& operator[](std::size_t i) const { return layers_[i].second; }

  Value<T> operator()(const Value<T>& x, Pass<T>& pass) const;

  template <class F>
  void slots(F&& f) {
    for (auto& [name, layer] : layers_) {
      f(std::string_view(name), layer);
    }
  }
  Description describe() const;
  static BasicSequential build(const Description& description);

 private:
  std::vector<std::pair<std::string, Layer<T>>> layers_;
};
using Sequential = BasicSequential<float>;

template <class T>
struct ResidualSettings {
  std::optional<Layer<T>> projection = {};  ///< what the short cut does; nothing where not given
  std::optional<Layer<T>> after = {};       ///< of the sum
};

/// body(x) + x, or after(body(x) + projection(x)).
template <class T>
class FENESTRA_API BasicResidual {
 public:
  using Scalar = T;
  using Settings = ResidualSettings<T>;
  static constexpr std::string_view kind = "residual";

  explicit BasicResidual(Layer<T> body, Settings settings = {});

  Value<T> operator()(const Value<T>& x, Pass<T>& pass) const;

  template <class F>
  void slots(F&& f) {
    f("body", body_);
    f("projection", settings_.projection);
    f("after", settings_.after);
  }
  Description describe() const;
  static BasicResidual build(const Description& description);

 private:
  Layer<T> body_;
  Settings settings_;
};
using Residual = BasicResidual<float>;

/// Every branch on the same x; the results one after the other along the channels.
template <class T>
class FENESTRA_API BasicBranches {
 public:
  using Scalar = T;
  static constexpr std::string_view kind = "branches";

  BasicBranches(std::initializer_list<Layer<T>> branches) : BasicBranches(std::vector(branches)) {}
  explicit BasicBranches(std::vector<Layer<T>> branches);

  Value<T> operator()(const Value<T>& x, Pass<T>& pass) const;

  template <class F>
  void slots(F&& f) {
    std::size_t i = 0;
    for (Layer<T>& branch : branches_) {
      f(std::to_string(i++), branch);
    }
  }
  Description describe() const;
  static BasicBranches build(const Description& description);

 private:
  std::vector<Layer<T>> branches_;
};
using Branches = BasicBranches<float>;

struct SqueezeExciteSettings {
  bool hard = true;  ///< the gate is a hard sigmoid, otherwise a sigmoid
};

/// x times a gate for each channel, computed from the channels' means by two linear layers with a
/// rectifier between.
template <class T>
class FENESTRA_API BasicSqueezeExcite {
 public:
  using Scalar = T;
  static constexpr std::string_view kind = "squeeze_excite";

  BasicSqueezeExcite(Index channels, Index squeezed, const SqueezeExciteSettings& settings = {});

  Value<T> operator()(const Value<T>& x) const;
  Value<T> operator()(const Value<T>& x, Pass<T>& pass) const {
    return pass.observed(kind, x, (*this)(x));
  }

  template <class F>
  void slots(F&& f) {
    f("squeeze", squeeze_);
    f("excite", excite_);
  }
  Description describe() const;
  static BasicSqueezeExcite build(const Description& description);

 private:
  Index channels_;
  Index squeezed_;
  SqueezeExciteSettings settings_;
  BasicLinear<T> squeeze_;
  BasicLinear<T> excite_;
};
using SqueezeExcite = BasicSqueezeExcite<float>;

}  // namespace fenestra::nn
