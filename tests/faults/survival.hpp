// What every call must survive: each of its allocations failing in turn.
#pragma once

#include <fenestra/tensor/tensor.hpp>

#include <functional>
#include <string>
#include <vector>

namespace fenestra::faults {

using Tensors = std::vector<Tensor<float>>;

/// A call that gives the same tensors whenever it is made.
using Call = std::function<Tensors()>;

/// Makes the call again and again, with the 1st, 2nd, 3rd, ... allocation failing, alone and with
/// all after it, until it succeeds; of calls with many allocations the first ones and a sample of
/// the others. Expects std::bad_alloc or an Error, as many living allocations as before, and the
/// same bits when the call is made in peace. Calls are made in a new thread each, so that its
/// scratch has to be found again.
void expect_survival(const std::string& what, const Call& call);

/// The same with `before` called, in peace, in front of each call: what undoes a half-made one.
void expect_survival(const std::string& what,
                     const std::function<void()>& before,
                     const Call& call);

/// Equal shapes and bits.
bool same_bits(const Tensors& a, const Tensors& b);

}  // namespace fenestra::faults
