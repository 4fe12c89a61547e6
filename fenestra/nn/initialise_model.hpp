// Initial weights of a model: drawn for each parameter from a key of its own, made of the run's key
// and the parameter's name. The same seed gives the same weights on every machine, and a layer more
// or less changes no other.
#pragma once

#include <fenestra/base/key.hpp>
#include <fenestra/nn/initialise.hpp>
#include <fenestra/nn/slots.hpp>

#include <string>

namespace fenestra::nn {

template <class T>
Tensor<T> draw_initial(const Shape& shape, const Initial& initial, const Key& key) {
  KeyDraws draws(key);
  switch (initial.draw) {
    case Initial::Draw::uniform: return uniform<T>(shape, draws, initial.scale);
    case Initial::Draw::normal: return normal<T>(shape, draws, initial.scale);
    default: return constant<T>(shape, initial.scale);
  }
}

/// Draws every parameter that says how it begins; layers do. Buffers stay as they are.
template <class Model>
void initialise(Model& model, const Key& key) {
  for_each_slot(model, [&]<class S>(const std::string& name, S& slot) {
    using T = typename S::Scalar;
    if constexpr (std::is_same_v<S, Parameter<T>>) {
      if (slot.initial.draw != Initial::Draw::none) {
        slot.value = draw_initial<T>(slot.value.shape(), slot.initial, key.fold(name));
      }
    }
  });
}

}  // namespace fenestra::nn
