// An optimiser whose work and state ranks share: each moves its pieces of the parameters
// (leaf_step.hpp) and remembers what belongs to them, and all of them get what each has made.
// Elements are moved one by one, so that the bits are those of the whole; LAMB, which scales by
// norms of tensors, runs whole. Not installed; the inside of trainer_core.hpp.
#pragma once

#include <fenestra/nn/any_optimiser.hpp>
#include <fenestra/nn/leaf_step.hpp>

#include <span>
#include <string>
#include <vector>

namespace fenestra::nn::detail {

/// Whether it moves every element by itself.
template <class T>
bool is_elementwise(const Optimiser<T>& optimiser) {
  return optimiser.name() != "lamb";
}

/// The norm of all gradients, whose pieces ranks have.
template <class T>
double norm_of_pieces(const GradientLayout& layout,
                      std::span<const std::span<T>> pieces,
                      ranks::Communicator& communicator);

/// One step of this rank's pieces, and then of all: the weights of `parameters` are the new ones.
template <class T>
void step_in_pieces(Optimiser<T>& optimiser,
                    std::span<Tensor<T>* const> parameters,
                    const Found<T>& found,
                    LeafSteps<T>& steps,
                    ranks::Communicator& communicator);

/// The state of the whole, on rank 0; elsewhere nothing. All ranks must call it.
template <class T>
io::TensorMap gathered_state(const Optimiser<T>& optimiser,
                             std::span<const Slot<T>> slots,
                             ranks::Communicator& communicator);

/// Takes this rank's pieces of the state of the whole, which `names` and `shapes` fit.
template <class T>
void set_pieces_of_state(Optimiser<T>& optimiser,
                         std::span<const Slot<T>> slots,
                         const io::TensorMap& state,
                         const ranks::Communicator& communicator);

}  // namespace fenestra::nn::detail
