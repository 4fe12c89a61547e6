// What is made of `exchange`, and ranks that are threads.
#include <fenestra/base/error.hpp>
#include <fenestra/ranks/communicator.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace fenestra::ranks {

namespace {

/// Every rank's bytes to every other one, into parts whose sizes are known.
void exchange_all(Communicator& communicator,
                  std::span<const std::byte> said,
                  std::vector<std::vector<std::byte>>& parts) {
  std::vector<Outgoing> sends;
  std::vector<Incoming> receives;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    std::vector<std::byte>& part = parts[static_cast<std::size_t>(rank)];
    if (rank == communicator.rank()) {
      part.assign(said.begin(), said.end());
      continue;
    }
    if (!said.empty()) {
      sends.push_back({rank, said});
    }
    if (!part.empty()) {
      receives.push_back({rank, part});
    }
  }
  communicator.exchange(sends, receives);
}

// --- Ranks that are threads --------------------------------------------------------------------

using Message = std::vector<std::byte>;

struct World {
  explicit World(int ranks)
      : size(ranks),
        boxes(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks)),
        has_ended(static_cast<std::size_t>(ranks)) {}

  std::deque<Message>& box(int from, int to) {
    return boxes[static_cast<std::size_t>(from) * static_cast<std::size_t>(size) +
                 static_cast<std::size_t>(to)];
  }

  const int size;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::deque<Message>> boxes;
  std::vector<bool> has_ended;
};

class ThreadCommunicator : public Communicator {
 public:
  ThreadCommunicator(World& world, int rank) : world_(world), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return world_.size; }

  void exchange(std::span<const Outgoing> sends, std::span<const Incoming> receives) override {
    std::unique_lock lock(world_.mutex);
    for (const Outgoing& send : sends) {
      world_.box(rank_, send.to).emplace_back(send.bytes.begin(), send.bytes.end());
    }
    world_.changed.notify_all();
    for (const Incoming& receive : receives) {
      std::deque<Message>& box = world_.box(receive.from, rank_);
      const auto is_gone = [&] { return world_.has_ended[static_cast<std::size_t>(receive.from)]; };
      world_.changed.wait(lock, [&] { return !box.empty() || is_gone(); });
      if (box.empty()) {
        throw Error(ErrorCode::bad_environment,
                    "rank " + std::to_string(rank_) + " waits for rank " +
                        std::to_string(receive.from) +
                        ", which has ended\n  fix: the same calls on all ranks");
      }
      const Message message = std::move(box.front());
      box.pop_front();
      if (message.size() != receive.bytes.size()) {
        throw Error(ErrorCode::bad_environment,
                    "rank " + std::to_string(rank_) + " has " + std::to_string(message.size()) +
                        " bytes of rank " + std::to_string(receive.from) + ", expected " +
                        std::to_string(receive.bytes.size()) +
                        "\n  fix: the same calls on all ranks");
      }
      std::copy(message.begin(), message.end(), receive.bytes.begin());
    }
  }

 private:
  World& world_;
  int rank_;
};

}  // namespace

std::vector<std::vector<std::byte>> all_gather(Communicator& communicator,
                                               std::span<const std::byte> said) {
  const auto ranks = static_cast<std::size_t>(communicator.size());
  const std::uint64_t length = said.size();
  std::vector<std::vector<std::byte>> lengths(ranks, std::vector<std::byte>(sizeof length));
  exchange_all(communicator, std::as_bytes(std::span(&length, 1)), lengths);
  std::vector<std::vector<std::byte>> parts(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::uint64_t theirs = 0;
    std::memcpy(&theirs, lengths[rank].data(), sizeof theirs);
    parts[rank].resize(theirs);
  }
  exchange_all(communicator, said, parts);
  return parts;
}

bool any(Communicator& communicator, bool said) {
  const std::byte mine{said};
  std::vector<std::vector<std::byte>> parts(static_cast<std::size_t>(communicator.size()),
                                            std::vector<std::byte>(1));
  exchange_all(communicator, std::span(&mine, 1), parts);
  return std::any_of(
      parts.begin(), parts.end(), [](const auto& part) { return part[0] != std::byte{0}; });
}

void run_ranks(int ranks, const std::function<void(const CommunicatorPtr&)>& f) {
  if (ranks < 1) {
    throw Error(ErrorCode::invalid_extent,
                "run_ranks: ranks = " + std::to_string(ranks) + "\n  fix: at least 1");
  }
  World world(ranks);
  std::exception_ptr first;
  std::vector<std::thread> threads;
  const auto run = [&](int rank) {
    std::exception_ptr thrown;
    try {
      f(std::make_shared<ThreadCommunicator>(world, rank));
    } catch (...) {
      thrown = std::current_exception();
    }
    const std::lock_guard lock(world.mutex);
    first = first ? first : thrown;
    world.has_ended[static_cast<std::size_t>(rank)] = true;
    world.changed.notify_all();
  };
  for (int rank = 1; rank < ranks; ++rank) {
    threads.emplace_back(run, rank);
  }
  run(0);
  for (std::thread& thread : threads) {
    thread.join();
  }
  if (first) {
    std::rethrow_exception(first);
  }
}

}  // namespace fenestra::ranks
