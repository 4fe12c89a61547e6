// What is made of `exchange`, and ranks that are threads.
#include <fenestra/base/error.hpp>
#include <fenestra/ranks/communicator.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace fenestra::ranks {

namespace {

/// Every rank's bytes to every other one, into parts whose sizes are known. In each round a rank
/// hands on all that it has to one that is twice as far away: messages to log N ranks instead of N.
void exchange_all(Communicator& communicator,
                  std::span<const std::byte> said,
                  std::vector<std::vector<std::byte>>& parts) {
  const int ranks = communicator.size();
  const int me = communicator.rank();
  const auto part_after = [&](int i) -> std::vector<std::byte>& {
    return parts[static_cast<std::size_t>((me + i) % ranks)];
  };
  part_after(0).assign(said.begin(), said.end());
  for (int known = 1; known < ranks; known *= 2) {
    const int count = std::min(known, ranks - known);
    std::vector<std::byte> out;
    std::size_t size = 0;
    for (int i = 0; i < count; ++i) {
      out.insert(out.end(), part_after(i).begin(), part_after(i).end());
      size += part_after(known + i).size();
    }
    std::vector<std::byte> in(size);
    const Outgoing send{(me + ranks - known) % ranks, out};
    const Incoming receive{(me + known) % ranks, in};
    communicator.exchange(std::span(&send, out.empty() ? 0 : 1),
                          std::span(&receive, in.empty() ? 0 : 1));
    auto at = in.begin();
    for (int i = 0; i < count; ++i) {
      std::vector<std::byte>& part = part_after(known + i);
      std::copy_n(at, part.size(), part.begin());
      at += static_cast<std::ptrdiff_t>(part.size());
    }
  }
}

// --- Ranks that are threads --------------------------------------------------------------------

using Message = std::vector<std::byte>;

struct World {
  explicit World(int ranks)
      : size(ranks),
        boxes(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks)),
        has_ended(static_cast<std::size_t>(ranks)) {}

  std::deque<Message>& box(int from, int to, int channel) {
    return boxes[static_cast<std::size_t>(from) * static_cast<std::size_t>(size) +
                 static_cast<std::size_t>(to)][channel];
  }

  const int size;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::map<int, std::deque<Message>>> boxes;  ///< by channel
  std::vector<bool> has_ended;
};

/// What is still to be received; what is sent lies in the boxes at once.
class ThreadExchange : public Exchange {
 public:
  ThreadExchange(World& world, int rank, std::span<const Incoming> receives, int channel)
      : world_(world),
        rank_(rank),
        channel_(channel),
        receives_(receives.begin(), receives.end()) {}

  bool poll() override {
    const std::lock_guard lock(world_.mutex);
    while (next_ < receives_.size() && take()) {
    }
    return next_ == receives_.size();
  }
  void wait() override {
    std::unique_lock lock(world_.mutex);
    while (next_ < receives_.size()) {
      world_.changed.wait(lock, [&] { return take(); });
    }
  }

 private:
  /// The next message, if it is there.
  bool take() {
    const Incoming& receive = receives_[next_];
    std::deque<Message>& box = world_.box(receive.from, rank_, channel_);
    if (box.empty()) {
      if (world_.has_ended[static_cast<std::size_t>(receive.from)]) {
        throw LostRank("rank " + std::to_string(rank_) + " waits for rank " +
                       std::to_string(receive.from) +
                       ", which has ended\n  fix: the same calls on all ranks");
      }
      return false;
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
    ++next_;
    return true;
  }

  World& world_;
  int rank_;
  int channel_;
  std::vector<Incoming> receives_;
  std::size_t next_ = 0;
};

class ThreadCommunicator : public Communicator {
 public:
  ThreadCommunicator(World& world, int rank) : world_(world), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return world_.size; }

  std::unique_ptr<Exchange> start(std::span<const Outgoing> sends,
                                  std::span<const Incoming> receives,
                                  int channel) override {
    {
      const std::lock_guard lock(world_.mutex);
      for (const Outgoing& send : sends) {
        world_.box(rank_, send.to, channel).emplace_back(send.bytes.begin(), send.bytes.end());
      }
    }
    world_.changed.notify_all();
    return std::make_unique<ThreadExchange>(world_, rank_, receives, channel);
  }

 private:
  World& world_;
  int rank_;
};

}  // namespace

std::vector<std::vector<std::byte>> all_gather_equal(Communicator& communicator,
                                                     std::span<const std::byte> said) {
  std::vector<std::vector<std::byte>> parts(static_cast<std::size_t>(communicator.size()),
                                            std::vector<std::byte>(said.size()));
  exchange_all(communicator, said, parts);
  return parts;
}

std::vector<std::vector<std::byte>> all_gather(Communicator& communicator,
                                               std::span<const std::byte> said) {
  const std::uint64_t length = said.size();
  const auto lengths = all_gather_equal(communicator, std::as_bytes(std::span(&length, 1)));
  std::vector<std::vector<std::byte>> parts(lengths.size());
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    std::uint64_t theirs = 0;
    std::memcpy(&theirs, lengths[rank].data(), sizeof theirs);
    parts[rank].resize(theirs);
  }
  exchange_all(communicator, said, parts);
  return parts;
}

bool any(Communicator& communicator, bool said) {
  const std::byte mine{said};
  const auto parts = all_gather_equal(communicator, std::span(&mine, 1));
  return std::any_of(
      parts.begin(), parts.end(), [](const auto& part) { return part[0] != std::byte{0}; });
}

void run_ranks(int ranks, const std::function<void(const CommunicatorPtr&)>& f) {
  if (ranks < 1) {
    throw Error(ErrorCode::invalid_option,
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
