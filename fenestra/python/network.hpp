// Networks as the Python module holds them: layers and passes of float or double, and who uses what
// is computed on without the interpreter's lock.
#pragma once

#include <fenestra/nn/layer.hpp>
#include <fenestra/nn/model_file.hpp>
#include <fenestra/python/object.hpp>
#include <fenestra/python/value.hpp>

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>

namespace fenestra::python {

/// What Python's layers hold. Who computes has the layer as it was when it began, whatever another
/// thread makes of it meanwhile: changes go into a copy. Asked and changed under the interpreter's
/// lock.
class AnyLayer {
 public:
  template <class T>
  AnyLayer(nn::Layer<T> made) : held_(std::make_shared<nn::Layer<T>>(std::move(made))) {
    nn::Layer<T>& layer = *std::get<std::shared_ptr<nn::Layer<T>>>(held_);
    // Buffers get identities of their own now, and not while somebody computes.
    nn::slots<T>(layer);
    const auto description = nn::detail::described(layer);
    structure_ = description ? description->text() : std::to_string(new_level());
  }

  bool is_double() const { return held_.index() == 1; }
  /// Equal where the layers are, but for their numbers: the description, or a number where
  /// functions of the program are among them.
  const std::string& structure() const { return structure_; }

  /// Null where it is of the other scalar.
  template <class T>
  std::shared_ptr<const nn::Layer<T>> as() const {
    const auto* held = std::get_if<std::shared_ptr<nn::Layer<T>>>(&held_);
    return held != nullptr ? *held : nullptr;
  }
  /// f(layer)
  template <class F>
  auto read(const F& f) const {
    return std::visit(
        [&]<class T>(const std::shared_ptr<nn::Layer<T>>& held) {
          const std::shared_ptr<const nn::Layer<T>> mine = held;
          return f(*mine);
        },
        held_);
  }
  /// f(layer, its slots), which only reads them.
  template <class F>
  auto read_slots(const F& f) const {
    return std::visit(
        [&]<class T>(const std::shared_ptr<nn::Layer<T>>& held) {
          const std::shared_ptr<nn::Layer<T>> mine = held;
          return f(*mine, nn::slots<T>(*mine));
        },
        held_);
  }
  /// f(layer) on a copy, which is the layer afterwards; nothing has changed where f throws.
  template <class F>
  void change(const F& f) {
    std::visit(
        [&]<class T>(std::shared_ptr<nn::Layer<T>>& held) {
          auto copy = std::make_shared<nn::Layer<T>>(*held);
          f(*copy);
          held = std::move(copy);
        },
        held_);
  }

 private:
  std::variant<std::shared_ptr<nn::Layer<float>>, std::shared_ptr<nn::Layer<double>>> held_;
  std::string structure_;
};

/// Of an object that computes without the interpreter's lock: one thread at a time. Asked and
/// changed under the lock.
class InUse {
 public:
  class Hold {
   public:
    /// `what` is "trainer" or "loader".
    Hold(InUse& use, std::string_view what) : use_(use) {
      if (use.depth_ > 0 && use.thread_ != std::this_thread::get_id()) {
        set_text(PyExc_RuntimeError,
                 std::string(what) + ": another thread uses it\n  fix: one thread at a time");
        throw PythonError();
      }
      use.thread_ = std::this_thread::get_id();
      ++use.depth_;
    }
    ~Hold() { --use_.depth_; }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    InUse& use_;
  };

  bool is_nested() const { return depth_ > 1; }

 private:
  std::thread::id thread_;
  int depth_ = 0;
};

/// A pass of the program, for layers of both scalars; or one that the library makes and lends to a
/// function of the program while it runs.
class AnyPass {
 public:
  explicit AnyPass(const std::optional<Key>& key);
  explicit AnyPass(nn::Pass<float>* lent) : single_(lent) {}
  explicit AnyPass(nn::Pass<double>* lent) : double_(lent) {}

  template <class T>
  nn::Pass<T>& on() {
    nn::Pass<T>* pass = nullptr;
    if constexpr (std::is_same_v<T, float>) {
      pass = single_;
    } else {
      pass = double_;
    }
    if (pass == nullptr) {
      throw Error(ErrorCode::wrong_context,
                  "pass: it is over, or of another dtype\n  fix: use it inside the call that gave "
                  "it, or make one: nn.Pass.training(key)");
    }
    return *pass;
  }
  bool is_training() const;
  /// What was lent is taken back.
  void end() { single_ = nullptr, double_ = nullptr; }
  void observe(const pybind11::object& observer);
  InUse& use() { return *use_; }

 private:
  std::unique_ptr<InUse> use_ = std::make_unique<InUse>();
  std::unique_ptr<nn::Pass<float>> own_single_;
  std::unique_ptr<nn::Pass<double>> own_double_;
  nn::Pass<float>* single_ = nullptr;
  nn::Pass<double>* double_ = nullptr;
};

/// The numbers of an argument, outside every transform.
template <class T>
Tensor<T> numbers_of(const pybind11::handle& object, const Where& where, std::string_view owner) {
  Value<T> value = value_in<T>(object.ptr(), where, owner);
  if (value.level() != 0) {
    throw Error(ErrorCode::foreign_variable,
                where.text() +
                    " belongs to a transform, a tape or a compiled function\n  fix: outside of it");
  }
  return std::move(value).tensor();
}

/// The shape that Python says, as `argument` of `function`.
Shape shape_in(const pybind11::handle& object, const Where& where);

pybind11::dict info_dict(const nn::ModelInfo& info);
nn::ModelInfo info_from(const pybind11::dict& info);

}  // namespace fenestra::python
