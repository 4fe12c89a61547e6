// The tree over leaves, and bytes between ranks that are threads.
#include <fenestra/base/error.hpp>
#include <fenestra/ranks/communicator.hpp>
#include <fenestra/ranks/tree.hpp>

#include <gtest/gtest.h>

namespace fenestra::ranks {
namespace {

TEST(LeafTree, RangesOfRanksAreAllLeavesOnce) {
  for (const Index leaves : {1, 2, 3, 7, 8, 24, 65}) {
    for (int ranks = 1; ranks <= 9; ++ranks) {
      Index next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const LeafRange range = leaves_of(rank, ranks, leaves);
        EXPECT_EQ(range.begin, next);
        EXPECT_LE(range.end - range.begin, (leaves + ranks - 1) / ranks);
        next = range.end;
      }
      EXPECT_EQ(next, leaves);
    }
  }
}

TEST(LeafTree, ARankIsLeftWithFewNodes) {
  EXPECT_EQ(nodes_of({0, 8}, 8), (std::vector<TreeNode>{{3, 0}}));
  EXPECT_EQ(nodes_of({8, 16}, 64), (std::vector<TreeNode>{{3, 1}}));
  EXPECT_EQ(nodes_of({3, 6}, 8), (std::vector<TreeNode>{{0, 3}, {1, 2}}));
  // The last one of an odd number stands for its pair.
  EXPECT_EQ(nodes_of({1, 3}, 3), (std::vector<TreeNode>{{0, 1}, {1, 1}}));
  EXPECT_EQ(nodes_of({4, 4}, 8), (std::vector<TreeNode>{}));
  EXPECT_EQ(nodes_of({0, 1}, 1), (std::vector<TreeNode>{{0, 0}}));
}

TEST(Communicator, GathersWhatRanksSayHoweverLongItIs) {
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 11}) {
    run_ranks(ranks, [&](const CommunicatorPtr& communicator) {
      const std::vector<std::byte> mine(static_cast<std::size_t>(communicator->rank()),
                                        static_cast<std::byte>(communicator->rank()));
      const auto all = all_gather(*communicator, mine);
      const auto word = static_cast<std::byte>(communicator->rank());
      const auto words = all_gather_equal(*communicator, std::span(&word, 1));
      for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank) {
        EXPECT_EQ(all[rank], std::vector<std::byte>(rank, static_cast<std::byte>(rank)));
        EXPECT_EQ(words[rank], std::vector<std::byte>(1, static_cast<std::byte>(rank)));
      }
      EXPECT_TRUE(any(*communicator, communicator->rank() == ranks - 1));
      EXPECT_FALSE(any(*communicator, false));
    });
  }
}

TEST(Communicator, ChannelsDoNotWaitForEachOther) {
  run_ranks(2, [](const CommunicatorPtr& communicator) {
    const int other = 1 - communicator->rank();
    const std::byte mine[] = {std::byte{1}, std::byte{2}};
    std::byte theirs[2] = {};
    const auto receive = [&](int channel, std::size_t i) {
      const Outgoing sends[] = {{other, std::span(mine).subspan(i, 1)}};
      const Incoming receives[] = {{other, std::span(theirs).subspan(i, 1)}};
      return communicator->start(sends, receives, channel);
    };
    // One of the ranks begins with the other channel.
    const bool is_first = communicator->rank() == 0;
    const auto a = receive(is_first ? 3 : 4, is_first ? 0 : 1);
    const auto b = receive(is_first ? 4 : 3, is_first ? 1 : 0);
    b->wait();
    while (!a->poll()) {
    }
    EXPECT_EQ(theirs[0], std::byte{1});
    EXPECT_EQ(theirs[1], std::byte{2});
  });
}

TEST(Communicator, ARankThatEndsDoesNotLeaveOthersWaiting) {
  struct OwnError {};
  EXPECT_THROW(run_ranks(3,
                         [](const CommunicatorPtr& communicator) {
                           if (communicator->rank() == 1) {
                             throw OwnError();
                           }
                           any(*communicator, true);
                         }),
               OwnError);
  EXPECT_THROW(run_ranks(2,
                         [](const CommunicatorPtr& communicator) {
                           if (communicator->rank() == 1) {
                             any(*communicator, true);
                           }
                         }),
               Error);
  EXPECT_THROW(run_ranks(0, [](const CommunicatorPtr&) {}), Error);
}

}  // namespace
}  // namespace fenestra::ranks
