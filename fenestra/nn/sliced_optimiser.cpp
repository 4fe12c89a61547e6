// Pieces of parameters and of what an optimiser remembers, compiled for float and double.
#include <fenestra/nn/gradient_spans.hpp>
#include <fenestra/nn/sliced_optimiser.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <variant>

namespace fenestra::nn::detail {

namespace {

/// Names under which an optimiser keeps the state of pieces.
std::vector<std::string> piece_names(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    names.push_back(std::to_string(i));
  }
  return names;
}

/// "mean.w" is of the part "mean" and of w.
std::pair<std::string, std::string> parts_of(const std::string& name) {
  const std::size_t dot = name.find('.');
  return {name.substr(0, dot), dot == std::string::npos ? "" : name.substr(dot + 1)};
}

constexpr const char* kSteps = "steps";

/// Entries one after the other: the lengths of name and numbers, and both.
template <class T>
std::vector<std::byte> packed(const io::TensorMap& state) {
  std::vector<std::byte> bytes;
  const auto append = [&](const void* data, std::size_t size) {
    const auto* const from = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), from, from + size);
  };
  for (const auto& [name, tensor] : state) {
    if (const auto* numbers = std::get_if<Tensor<T>>(&tensor)) {
      const std::uint64_t lengths[] = {name.size(),
                                       static_cast<std::uint64_t>(numbers->size()) * sizeof(T)};
      append(lengths, sizeof lengths);
      append(name.data(), name.size());
      append(numbers->data(), lengths[1]);
    }
  }
  return bytes;
}

template <class T, class F>
void for_each_packed(std::span<const std::byte> bytes, const F& f) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    std::uint64_t lengths[2] = {};
    std::memcpy(lengths, bytes.data() + at, sizeof lengths);
    at += sizeof lengths;
    const std::string name(reinterpret_cast<const char*>(bytes.data() + at), lengths[0]);
    at += lengths[0];
    f(name, bytes.subspan(at, lengths[1]));
    at += lengths[1];
  }
}

template <class T>
std::vector<const Slot<T>*> trained_of(std::span<const Slot<T>> slots) {
  std::vector<const Slot<T>*> trained;
  for (const Slot<T>& slot : slots) {
    if (slot.trained) {
      trained.push_back(&slot);
    }
  }
  return trained;
}

}  // namespace

template <class T>
double norm_of_pieces(const GradientLayout& layout,
                      std::span<const std::span<T>> pieces,
                      ranks::Communicator& communicator) {
  std::vector<double> own;
  for (const std::span<T>& piece : pieces) {
    const std::vector<double> blocks = squares_of_blocks<T>(piece);
    own.insert(own.end(), blocks.begin(), blocks.end());
  }
  // All blocks of all gradients, in order, as if they were in one place.
  std::vector<std::vector<double>> blocks;
  for (const Index size : layout.sizes) {
    blocks.emplace_back(static_cast<std::size_t>((size + kGradientBlock - 1) / kGradientBlock));
  }
  const auto all = ranks::all_gather(communicator, std::as_bytes(std::span(own)));
  for (int rank = 0; rank < communicator.size(); ++rank) {
    const std::byte* from = all[static_cast<std::size_t>(rank)].data();
    for (const GradientPiece& piece : rank_pieces(layout, rank, communicator.size())) {
      const auto count =
          static_cast<std::size_t>((piece.size + kGradientBlock - 1) / kGradientBlock);
      std::memcpy(blocks[piece.gradient].data() + piece.begin / kGradientBlock,
                  from,
                  count * sizeof(double));
      from += count * sizeof(double);
    }
  }
  double total = 0;
  for (const std::vector<double>& gradient : blocks) {
    for (const double block : gradient) {
      total += block;
    }
  }
  return std::sqrt(total);
}

/// The new weights of this rank's pieces to all ranks, and theirs to where they belong.
template <class T>
void share_pieces(const GradientLayout& layout,
                  std::span<Tensor<T>* const> parameters,
                  ranks::Communicator& communicator) {
  const auto elements = [&](const GradientPiece& piece) {
    return std::as_writable_bytes(
        std::span(parameters[piece.gradient]->mutable_data() + piece.begin,
                  static_cast<std::size_t>(piece.size)));
  };
  const int ranks = communicator.size();
  const std::vector<GradientPiece> own = rank_pieces(layout, communicator.rank(), ranks);
  std::vector<ranks::Outgoing> sends;
  std::vector<ranks::Incoming> receives;
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == communicator.rank()) {
      continue;
    }
    for (const GradientPiece& piece : own) {
      sends.push_back({rank, elements(piece)});
    }
    for (const GradientPiece& piece : rank_pieces(layout, rank, ranks)) {
      receives.push_back({rank, elements(piece)});
    }
  }
  communicator.exchange(sends, receives);
}

template <class T>
void step_in_pieces(Optimiser<T>& optimiser,
                    std::span<Tensor<T>* const> parameters,
                    const Found<T>& found,
                    LeafSteps<T>& steps,
                    ranks::Communicator& communicator) {
  const std::vector<GradientPiece> pieces =
      rank_pieces(steps.layout(), communicator.rank(), communicator.size());
  std::vector<ParameterPiece<T>> moved;
  std::vector<Tensor<T>> gradients;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const GradientPiece& piece = pieces[i];
    moved.emplace_back(*parameters[piece.gradient], piece.begin, piece.size);
    gradients.push_back(Tensor<T>::view(found.gradients[i].data(), Shape{piece.size}));
  }
  for (Tensor<T>* parameter : parameters) {
    parameter->mutable_data();  // storage of its own, before anything changes
  }
  optimiser.step(std::move(moved), std::span<const Tensor<T>>(gradients));
  if (ranks::sends_directly(communicator.size())) {
    share_pieces<T>(steps.layout(), parameters, communicator);
    return;
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    std::copy_n(parameters[pieces[i].gradient]->mutable_data() + pieces[i].begin,
                pieces[i].size,
                found.gradients[i].data());
  }
  const std::vector<std::span<T>> all = steps.gather();
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::copy(all[i].begin(), all[i].end(), parameters[i]->mutable_data());
  }
}

template <class T>
io::TensorMap gathered_state(const Optimiser<T>& optimiser,
                             std::span<const Slot<T>> slots,
                             ranks::Communicator& communicator) {
  const GradientLayout layout = gradient_layout(slots);
  const int rank = communicator.rank();
  const int ranks = communicator.size();
  const io::TensorMap own = optimiser.state(piece_names(rank_pieces(layout, rank, ranks).size()));
  std::vector<std::vector<std::byte>> parts(static_cast<std::size_t>(ranks));
  parts[static_cast<std::size_t>(rank)] = packed<T>(own);
  const std::uint64_t length = parts[static_cast<std::size_t>(rank)].size();
  const auto lengths = ranks::all_gather_equal(communicator, std::as_bytes(std::span(&length, 1)));
  if (rank != 0) {
    const ranks::Outgoing send{0, parts[static_cast<std::size_t>(rank)]};
    communicator.exchange(std::span(&send, length > 0 ? 1 : 0), {});
    return {};
  }
  std::vector<ranks::Incoming> receives;
  for (int other = 1; other < ranks; ++other) {
    std::uint64_t theirs = 0;
    std::memcpy(&theirs, lengths[static_cast<std::size_t>(other)].data(), sizeof theirs);
    std::vector<std::byte>& part = parts[static_cast<std::size_t>(other)];
    part.resize(theirs);
    if (theirs > 0) {
      receives.push_back({other, part});
    }
  }
  communicator.exchange({}, receives);

  const std::vector<const Slot<T>*> trained = trained_of(slots);
  io::TensorMap state;
  if (const auto steps = own.find(kSteps); steps != own.end()) {
    state[kSteps] = steps->second;
  }
  for (int other = 0; other < ranks; ++other) {
    const std::vector<GradientPiece> pieces = rank_pieces(layout, other, ranks);
    for_each_packed<T>(parts[static_cast<std::size_t>(other)],
                       [&](const std::string& name, std::span<const std::byte> numbers) {
                         const auto [part, number] = parts_of(name);
                         const GradientPiece& piece = pieces[std::stoul(number)];
                         const Slot<T>& slot = *trained[piece.gradient];
                         const std::string whole = part + "." + slot.name;
                         auto found = state.find(whole);
                         if (found == state.end()) {
                           found = state.emplace(whole, Tensor<T>(slot.value->shape())).first;
                         }
                         T* const to =
                             std::get<Tensor<T>>(found->second).mutable_data() + piece.begin;
                         std::memcpy(to, numbers.data(), numbers.size());
                       });
  }
  return state;
}

template <class T>
void set_pieces_of_state(Optimiser<T>& optimiser,
                         std::span<const Slot<T>> slots,
                         const io::TensorMap& state,
                         const ranks::Communicator& communicator) {
  const std::vector<GradientPiece> pieces =
      rank_pieces(gradient_layout(slots), communicator.rank(), communicator.size());
  const std::vector<const Slot<T>*> trained = trained_of(slots);
  const std::vector<std::string> names = piece_names(pieces.size());
  std::vector<Shape> shapes;
  for (const GradientPiece& piece : pieces) {
    shapes.push_back(Shape{piece.size});
  }
  io::TensorMap own;
  for (const auto& [name, tensor] : state) {
    if (name == kSteps) {
      own[name] = tensor;
      continue;
    }
    const auto [part, slot] = parts_of(name);
    const T* const from = std::get<Tensor<T>>(tensor).data();
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const GradientPiece& piece = pieces[i];
      if (trained[piece.gradient]->name == slot) {
        own[part + "." + names[i]] = Tensor<T>(
            shapes[i], std::span(from + piece.begin, static_cast<std::size_t>(piece.size)));
      }
    }
  }
  optimiser.set_state(names, shapes, own);
}

template double norm_of_pieces(const GradientLayout&,
                               std::span<const std::span<float>>,
                               ranks::Communicator&);
template double norm_of_pieces(const GradientLayout&,
                               std::span<const std::span<double>>,
                               ranks::Communicator&);
template void step_in_pieces(Optimiser<float>&,
                             std::span<Tensor<float>* const>,
                             const Found<float>&,
                             LeafSteps<float>&,
                             ranks::Communicator&);
template void step_in_pieces(Optimiser<double>&,
                             std::span<Tensor<double>* const>,
                             const Found<double>&,
                             LeafSteps<double>&,
                             ranks::Communicator&);
template io::TensorMap gathered_state(const Optimiser<float>&,
                                      std::span<const Slot<float>>,
                                      ranks::Communicator&);
template io::TensorMap gathered_state(const Optimiser<double>&,
                                      std::span<const Slot<double>>,
                                      ranks::Communicator&);
template void set_pieces_of_state(Optimiser<float>&,
                                  std::span<const Slot<float>>,
                                  const io::TensorMap&,
                                  const ranks::Communicator&);
template void set_pieces_of_state(Optimiser<double>&,
                                  std::span<const Slot<double>>,
                                  const io::TensorMap&,
                                  const ranks::Communicator&);

}  // namespace fenestra::nn::detail
