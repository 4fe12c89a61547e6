// Communicator: the ranks of a run, and bytes between them. That is all the library asks of MPI, or
// of whatever else moves bytes: what is added is added by us, in an order of our own, so that no
// result depends on who moved it.
//
//   auto communicator = ranks::mpi_communicator();                  // under mpirun
//   ranks::run_ranks(4, [](const auto& communicator) { ... });      // four threads, for tests
//
// Read on: docs/decisions/0027-leaves-and-ranks.md.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/base/export.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace fenestra::ranks {

/// A message did not get through: a rank is gone, or MPI failed. Its code is `bad_environment`; its
/// type says that nothing was said wrongly, so that another start may do.
class LostRank : public Error {
 public:
  explicit LostRank(const std::string& text) : Error(ErrorCode::bad_environment, text) {}
};

struct Outgoing {
  int to = 0;
  std::span<const std::byte> bytes = {};
};
struct Incoming {
  int from = 0;
  std::span<std::byte> bytes = {};
};

/// Messages under way. Their memory must last until they are done, and so must this: letting go of
/// it before gives up what is still missing.
class Exchange {
 public:
  virtual ~Exchange() = default;

  /// Whether all of them are done; never waits. MPI moves bytes while somebody asks, and not
  /// otherwise.
  virtual bool poll() = 0;
  /// Until all of them are done.
  virtual void wait() = 0;
};

/// Used by one thread at a time. A rank that calls something with others in it waits for them; all
/// ranks make the same calls in the same order.
class Communicator {
 public:
  virtual ~Communicator() = default;

  /// From 0 to size() - 1.
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Begins to send and to receive all of these, to and from other ranks. What one rank sends
  /// another on one channel, from 0 to kChannels - 1, arrives in the order of the calls and lists;
  /// the sizes of the two sides must agree. Throws LostRank where a rank is gone, and so do the
  /// functions of the exchange.
  virtual std::unique_ptr<Exchange> start(std::span<const Outgoing> sends,
                                          std::span<const Incoming> receives,
                                          int channel) = 0;
  /// The same on channel 0, to its end.
  void exchange(std::span<const Outgoing> sends, std::span<const Incoming> receives) {
    start(sends, receives, 0)->wait();
  }
};
/// MPI has at least so many.
inline constexpr int kChannels = 32768;

using CommunicatorPtr = std::shared_ptr<Communicator>;

/// What every rank said, in the order of the ranks. Lengths may differ.
FENESTRA_API std::vector<std::vector<std::byte>> all_gather(Communicator& communicator,
                                                            std::span<const std::byte> said);
/// The same where all say equally much, which is one exchange less.
FENESTRA_API std::vector<std::vector<std::byte>> all_gather_equal(Communicator& communicator,
                                                                  std::span<const std::byte> said);
/// Whether any rank said yes.
FENESTRA_API bool any(Communicator& communicator, bool said);

/// Calls f(communicator) on `ranks` threads of this process, 1 <= ranks, and waits for them. Throws
/// what the first of them threw; those that wait for one that has ended throw LostRank.
FENESTRA_API void run_ranks(int ranks, const std::function<void(const CommunicatorPtr&)>& f);

}  // namespace fenestra::ranks
