// Layer<T>: any layer behind one type, which is what containers of layers hold.
//
// Anything that can be called with a value, and perhaps a pass, is a layer: those of nn/layers, a
// class of the program with slots, a function. A copy is independent; numbers are shared until one
// of the two writes (see Tensor).
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/base/export.hpp>
#include <fenestra/nn/description.hpp>
#include <fenestra/nn/pass.hpp>
#include <fenestra/nn/slots.hpp>

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace fenestra::nn {

template <class T>
class Layer;

namespace detail {

template <class L, class T>
concept CalledWithPass = requires(const L& layer, const Value<T>& x, Pass<T>& pass) {
  { layer(x, pass) } -> std::convertible_to<Value<T>>;
};
template <class L, class T>
concept CalledAlone = requires(const L& layer, const Value<T>& x) {
  { layer(x) } -> std::convertible_to<Value<T>>;
};

}  // namespace detail

/// What Layer<T> can be made of. That it can be copied is not asked here: of a container that is
/// made from a Layer, the question would depend on itself.
template <class L, class T>
concept LayerLike = !std::same_as<std::remove_cvref_t<L>, Layer<T>> &&
                    (detail::CalledWithPass<L, T> || detail::CalledAlone<L, T>);

template <class T>
class Layer {
 public:
  using Scalar = T;

  template <LayerLike<T> L>
  Layer(L layer) : held_(std::make_unique<HeldLayer<L>>(std::move(layer))) {}
  Layer(const Layer& other) : held_(other.held_->copy()) {}
  Layer(Layer&&) noexcept = default;
  Layer& operator=(const Layer& other) {
    held_ = other.held_->copy();
    return *this;
  }
  Layer& operator=(Layer&&) noexcept = default;
  ~Layer() = default;

  Value<T> operator()(const Value<T>& x, Pass<T>& pass) const { return held_->call(x, pass); }

  /// "conv", "sequential", ...; "custom" for a class that does not say.
  std::string_view kind() const { return held_->kind(); }
  /// Throws `unknown_model` for a class or function of the program, which no file can name.
  Description describe() const { return held_->describe(); }
  template <class F>
  void slots(F&& f) {
    held_->visit([&](const std::string& name, Parameter<T>* parameter, Buffer<T>* buffer) {
      if (parameter != nullptr) {
        f(std::string_view(name), *parameter);
      } else {
        f(std::string_view(name), *buffer);
      }
    });
  }
  /// The layer itself, where it is an L; otherwise null.
  template <class L>
  L* as() {
    auto* held = dynamic_cast<HeldLayer<L>*>(held_.get());
    return held != nullptr ? &held->layer : nullptr;
  }
  template <class L>
  const L* as() const {
    return const_cast<Layer*>(this)->as<L>();
  }

 private:
  using Visitor = std::function<void(const std::string&, Parameter<T>*, Buffer<T>*)>;

  struct Held {
    virtual ~Held() = default;
    virtual std::unique_ptr<Held> copy() const = 0;
    virtual Value<T> call(const Value<T>& x, Pass<T>& pass) const = 0;
    virtual std::string_view kind() const = 0;
    virtual Description describe() const = 0;
    virtual void visit(const Visitor& visitor) = 0;
  };

  template <class L>
  struct HeldLayer final : Held {
    explicit HeldLayer(L held) : layer(std::move(held)) {}
    std::unique_ptr<Held> copy() const override { return std::make_unique<HeldLayer>(layer); }
    Value<T> call(const Value<T>& x, Pass<T>& pass) const override {
      if constexpr (detail::CalledWithPass<L, T>) {
        return layer(x, pass);
      } else {
        return pass.observed(kind(), x, layer(x));
      }
    }
    std::string_view kind() const override {
      if constexpr (requires { std::string_view(L::kind); }) {
        return L::kind;
      } else {
        return "custom";
      }
    }
    Description describe() const override {
      if constexpr (Describable<L>) {
        return layer.describe();
      } else {
        throw Error(ErrorCode::unknown_model,
                    "layer: a class or function of the program has no description\n  fix: layers "
                    "of fenestra/nn/layers only, or a describe() of its own");
      }
    }
    void visit(const Visitor& visitor) override {
      for_each_slot(layer, [&]<class S>(const std::string& name, S& slot) {
        static_assert(std::is_same_v<typename S::Scalar, T>, "fenestra: a layer of another scalar");
        if constexpr (std::is_same_v<S, Parameter<T>>) {
          visitor(name, &slot, nullptr);
        } else {
          visitor(name, nullptr, &slot);
        }
      });
    }

    L layer;
  };

  std::unique_ptr<Held> held_;
};

/// The output of a model in inference. Watching it, or training, takes a pass.
template <class Model, class T>
Value<T> infer(const Model& model, const Value<T>& x) {
  Pass<T> pass = Pass<T>::inference();
  return model(x, pass);
}
template <class Model, class T>
Tensor<T> infer(const Model& model, const Tensor<T>& x) {
  return infer(model, Value<T>(x)).tensor();
}

/// The layer that a description or its text says. Throws `unknown_model` for a kind that does not
/// exist, `bad_file` for a description that is wrong.
template <class T>
FENESTRA_API Layer<T> build_layer(const Description& description);
template <class T>
Layer<T> build_layer(std::string_view text) {
  return build_layer<T>(Description::parse(text));
}

/// All kinds of layers that can be built, sorted.
FENESTRA_API std::vector<std::string> layer_kinds();

}  // namespace fenestra::nn
