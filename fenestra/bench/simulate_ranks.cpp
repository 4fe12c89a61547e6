// simulate_ranks: the sum of leaves (ranks/leaf_sum.hpp) on simulated ranks, by SimGrid. Actors run
// our own code, bytes and all, over a communicator whose messages take the time of a network; what
// a rank computes is the time that `ranks_bench plan` measured. Not the trainer itself: of a step
// there are its agreement, its gradients and its figures. Run by scripts/simulate-ranks.
//
//   simulate_ranks PLAN RANKS BANDWIDTH(Gb/s) LATENCY(us) tree|ring overlap|after
#include <fenestra/base/parallel.hpp>
#include <fenestra/ranks/leaf_sum.hpp>

#include <simgrid/s4u.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace {

namespace fn = fenestra;
namespace sg = simgrid::s4u;
using fn::Index;
using fn::ranks::ElementRange;

// A thousandth of the vector is there, and its messages count a thousandfold: 1,024 vectors of
// ResNet-18 would be 48 GB.
constexpr Index kScale = 1024;
// Of what a link of Ethernet carries, packets of TCP are so much: 1448 of 1538 bytes.
constexpr double kPayload = 1448.0 / 1538.0;

/// A step as it was measured.
struct Plan {
  struct Step {
    double seconds = 0;
    std::vector<ElementRange> found = {};
  };
  std::vector<Index> ends = {};
  std::vector<Step> steps = {};

  double seconds() const {
    double total = 0;
    for (const Step& step : steps) {
      total += step.seconds;
    }
    return total;
  }
};

Index scaled(Index element) { return (element + kScale - 1) / kScale; }

Plan read_plan(const std::string& path) {
  std::ifstream file(path);
  Plan plan;
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    if (kind == "buckets") {
      for (Index end = 0; words >> end;) {
        plan.ends.push_back(scaled(end));
      }
    } else if (kind == "step") {
      Plan::Step step;
      words >> step.seconds;
      for (Index begin = 0, end = 0; words >> begin >> end;) {
        step.found.push_back({scaled(begin), scaled(end)});
      }
      plan.steps.push_back(std::move(step));
    }
  }
  if (plan.ends.empty() || plan.steps.empty()) {
    throw std::runtime_error(path + ": no plan of `ranks_bench plan`");
  }
  return plan;
}

using Message = std::vector<std::byte>;

std::string box_name(int from, int to, int channel) {
  return std::to_string(from) + " " + std::to_string(to) + " " + std::to_string(channel);
}

class SimulatedExchange : public fn::ranks::Exchange {
 public:
  SimulatedExchange(std::vector<sg::CommPtr> sends,
                    std::span<const fn::ranks::Incoming> receives,
                    int rank,
                    int channel)
      : sends_(std::move(sends)),
        receives_(receives.begin(), receives.end()),
        messages_(receives.size()) {
    for (std::size_t i = 0; i < receives_.size(); ++i) {
      arrivals_.push_back(sg::Mailbox::by_name(box_name(receives_[i].from, rank, channel))
                              ->get_async<Message>(&messages_[i]));
    }
  }

  bool poll() override {
    while (!arrivals_.empty() && arrivals_.back()->test()) {
      arrivals_.pop_back();
    }
    while (arrivals_.empty() && !sends_.empty() && sends_.back()->test()) {
      sends_.pop_back();
    }
    return arrivals_.empty() && sends_.empty() && deliver();
  }
  void wait() override {
    for (const auto* comms : {&arrivals_, &sends_}) {
      for (const sg::CommPtr& comm : *comms) {
        comm->wait();
      }
    }
    deliver();
  }

 private:
  bool deliver() {
    for (std::size_t i = 0; i < receives_.size(); ++i) {
      if (messages_[i]->size() != receives_[i].bytes.size()) {
        throw std::runtime_error("a message of another size than was expected");
      }
      std::copy(messages_[i]->begin(), messages_[i]->end(), receives_[i].bytes.begin());
      delete messages_[i];
    }
    receives_.clear();
    return true;
  }

  std::vector<sg::CommPtr> sends_;
  std::vector<fn::ranks::Incoming> receives_;
  std::vector<Message*> messages_;
  std::vector<sg::CommPtr> arrivals_;
};

class SimulatedCommunicator : public fn::ranks::Communicator {
 public:
  SimulatedCommunicator(int rank, int size) : rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::unique_ptr<fn::ranks::Exchange> start(std::span<const fn::ranks::Outgoing> sends,
                                             std::span<const fn::ranks::Incoming> receives,
                                             int channel) override {
    // Gradients are scaled, what ranks tell each other on channel 0 is not.
    const auto scale = static_cast<std::uint64_t>(channel == 0 ? 1 : kScale);
    std::vector<sg::CommPtr> comms;
    for (const fn::ranks::Outgoing& send : sends) {
      comms.push_back(sg::Mailbox::by_name(box_name(rank_, send.to, channel))
                          ->put_async(new Message(send.bytes.begin(), send.bytes.end()),
                                      send.bytes.size() * scale));
      ++messages;
    }
    return std::make_unique<SimulatedExchange>(std::move(comms), receives, rank_, channel);
  }

  static inline std::size_t messages = 0;

 private:
  int rank_;
  int size_;
};

/// What others do, beside which ours is drawn: partial sums go around, so that it is no tree.
class RingSum {
 public:
  RingSum(const Plan& plan, SimulatedCommunicator& ranks) : plan_(plan), ranks_(ranks) {
    missing_ = plan.ends;
    for (std::size_t b = missing_.size(); b-- > 1;) {
      missing_[b] -= missing_[b - 1];
    }
    memory_.resize(static_cast<std::size_t>(plan.ends.back()) * sizeof(float));
    rounds_.resize(missing_.size(), 0);
    exchanges_.resize(missing_.size());
  }
  void ready(ElementRange range) {
    for (std::size_t b = 0; b < missing_.size(); ++b) {
      const Index begin = b == 0 ? 0 : plan_.ends[b - 1];
      const Index overlap = std::min(plan_.ends[b], range.end) - std::max(begin, range.begin);
      missing_[b] -= std::max<Index>(0, overlap);
    }
    poll();
  }
  bool poll() {
    bool all = true;
    for (std::size_t b = 0; b < missing_.size(); ++b) {
      while (missing_[b] == 0 && rounds_[b] < 2 * (ranks_.size() - 1)) {
        if (exchanges_[b] != nullptr && !exchanges_[b]->poll()) {
          break;
        }
        rounds_[b] += exchanges_[b] != nullptr ? 1 : 0;
        exchanges_[b] = nullptr;
        if (rounds_[b] < 2 * (ranks_.size() - 1)) {
          start_round(b);
        }
      }
      all = all && rounds_[b] == 2 * (ranks_.size() - 1);
    }
    return all;
  }
  void finish() {
    for (std::size_t b = 0; b < missing_.size(); ++b) {
      while (rounds_[b] < 2 * (ranks_.size() - 1)) {
        if (exchanges_[b] != nullptr) {
          exchanges_[b]->wait();
          exchanges_[b] = nullptr;
          ++rounds_[b];
        }
        if (rounds_[b] < 2 * (ranks_.size() - 1)) {
          start_round(b);
        }
      }
    }
  }

 private:
  void start_round(std::size_t b) {
    const Index begin = b == 0 ? 0 : plan_.ends[b - 1];
    const Index size = std::max<Index>(1, (plan_.ends[b] - begin) / ranks_.size());
    const auto slice = std::span(memory_).first(static_cast<std::size_t>(size) * sizeof(float));
    const fn::ranks::Outgoing send{(ranks_.rank() + 1) % ranks_.size(), slice};
    const fn::ranks::Incoming receive{(ranks_.rank() + ranks_.size() - 1) % ranks_.size(), slice};
    exchanges_[b] =
        ranks_.start(std::span(&send, 1), std::span(&receive, 1), 1 + static_cast<int>(b));
  }

  const Plan& plan_;
  SimulatedCommunicator& ranks_;
  std::vector<Index> missing_;
  std::vector<int> rounds_;
  std::vector<std::unique_ptr<fn::ranks::Exchange>> exchanges_;
  Message memory_;  ///< of all messages: nobody looks at them
};

struct Options {
  Plan plan;
  int ranks = 1;
  double bandwidth = 0;  ///< bits per second
  double latency = 0;    ///< seconds from rank to rank
  bool is_ring = false;
  bool overlaps = true;
};

/// Computes, and calls ready(range) and poll() as the trainer does.
template <class Ready, class Poll>
void compute(const Options& options, const Ready& ready, const Poll& poll) {
  if (!options.overlaps) {
    sg::this_actor::sleep_for(options.plan.seconds());
    ready(ElementRange{0, options.plan.ends.back()});
    return;
  }
  for (const Plan::Step& step : options.plan.steps) {
    sg::this_actor::sleep_for(step.seconds);
    for (const ElementRange& range : step.found) {
      ready(range);
    }
    poll();
  }
}

/// One step of a rank with one leaf.
void run_rank(const Options& options, int rank, double& end) {
  SimulatedCommunicator communicator(rank, options.ranks);
  const std::uint64_t terms[4] = {};
  fn::ranks::all_gather_equal(communicator, std::as_bytes(std::span(terms)));
  if (options.is_ring) {
    RingSum sum(options.plan, communicator);
    compute(
        options, [&](ElementRange range) { sum.ready(range); }, [&] { sum.poll(); });
    sum.finish();
  } else {
    fn::ranks::LeafSum<float> sum;
    const Index elements = options.plan.ends.back();
    sum.start({.leaves = options.ranks,
               .elements = elements,
               .ends = options.plan.ends,
               .communicator = &communicator,
               .channel = 1});
    std::fill_n(sum.begin_leaf(rank), elements, static_cast<float>(rank));
    compute(
        options, [&](ElementRange range) { sum.ready(range); }, [&] { sum.poll(); });
    sum.end_leaf();
    fn::ranks::all_gather(communicator, std::as_bytes(std::span(terms)));
    // Below 2^24: exact.
    const auto expected = static_cast<float>(options.ranks * (options.ranks - 1) / 2);
    for (const float element : sum.finish()) {
      if (element != expected) {
        throw std::runtime_error("a wrong sum");
      }
    }
  }
  end = std::max(end, sg::Engine::get_clock());
}

int simulate(int argc, char** argv) {
  sg::Engine engine(&argc, argv);
  if (argc != 7) {
    throw std::runtime_error("PLAN RANKS BANDWIDTH(Gb/s) LATENCY(us) tree|ring overlap|after");
  }
  Options options{.plan = read_plan(argv[1]),
                  .ranks = std::atoi(argv[2]),
                  .bandwidth = std::atof(argv[3]) * 1e9,
                  .latency = std::atof(argv[4]) * 1e-6,
                  .is_ring = std::string(argv[5]) == "ring",
                  .overlaps = std::string(argv[6]) == "overlap"};
  // Bandwidth and latency as they are said, without the factors that fit SimGrid to long distances.
  sg::Engine::set_config("network/model:CM02");
  sg::Engine::set_config("contexts/stack-size:256");
  auto* const zone = sg::create_star_zone("cluster");
  std::vector<sg::Host*> hosts;
  for (int rank = 0; rank < options.ranks; ++rank) {
    const std::string name = std::to_string(rank);
    hosts.push_back(zone->create_host(name, 1e9));
    auto* const link =
        zone->create_split_duplex_link("link" + name, options.bandwidth / 8 * kPayload)
            ->set_latency(options.latency / 2);
    zone->add_route(hosts.back()->get_netpoint(),
                    nullptr,
                    nullptr,
                    nullptr,
                    {{link, sg::LinkInRoute::Direction::UP}},
                    true);
  }
  zone->seal();
  double end = 0;
  for (int rank = 0; rank < options.ranks; ++rank) {
    sg::Actor::create("rank", hosts[static_cast<std::size_t>(rank)], [&options, rank, &end] {
      run_rank(options, rank, end);
    });
  }
  engine.run();
  const double compute = options.plan.seconds();
  std::printf(
      "{\"ranks\": %d, \"gigabits\": %g, \"way\": \"%s\", \"overlap\": %s, "
      "\"compute\": %.6f, \"step\": %.6f, \"efficiency\": %.4f, \"messages\": %zu}\n",
      options.ranks,
      options.bandwidth / 1e9,
      argv[5],
      options.overlaps ? "true" : "false",
      compute,
      end,
      compute / end,
      SimulatedCommunicator::messages);
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  fn::set_threads(1);
  return simulate(argc, argv);
} catch (const std::exception& error) {
  std::cerr << "simulate_ranks: " << error.what() << "\n";
  return 2;
}
