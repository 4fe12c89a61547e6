// What frames promise of their pieces: where they lie, how long they stay, what it costs to take
// them again, and what happens where there is no memory.
#include <fenestra/kernels/scratch.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <new>
#include <thread>
#include <utility>
#include <vector>

namespace fenestra::kernels {
namespace {

constexpr Index kLine = 64;
// More than a thread gets at first.
constexpr Index kLarge = 300'000;

/// Runs in a thread of its own, whose scratch is as cold as in a new process.
template <class F>
void in_new_thread(F f) {
  std::thread(std::move(f)).join();
}

/// Pieces with what was written into them.
class Pieces {
 public:
  void take(ScratchFrame& frame, Index bytes) {
    const auto number = static_cast<std::uint8_t>(pieces_.size() + 1);
    auto* piece = frame.take<std::uint8_t>(bytes);
    std::fill_n(piece, bytes, number);
    pieces_.emplace_back(piece, bytes);
  }
  void expect_kept() const {
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      const auto [piece, bytes] = pieces_[i];
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(piece) % kLine, 0u) << "piece " << i;
      EXPECT_EQ(std::count(piece, piece + bytes, static_cast<std::uint8_t>(i + 1)), bytes)
          << "piece " << i;
    }
  }
  const std::uint8_t* operator[](std::size_t i) const { return pieces_[i].first; }

 private:
  std::vector<std::pair<const std::uint8_t*, Index>> pieces_;
};

TEST(Scratch, PiecesAreAlignedApartAndStayWhileMoreIsTaken) {
  in_new_thread([] {
    const ScratchFrame outermost;
    ScratchFrame around;
    Pieces pieces;
    for (const Index bytes : {Index{1}, kLine, kLine + 1, kLarge, Index{0}, Index{7}}) {
      pieces.take(around, bytes);
    }
    for (int i = 0; i < 3; ++i) {
      Pieces inner;
      ScratchFrame frame;
      inner.take(frame, kLarge << i);
      inner.take(frame, 5);
      inner.take(frame, kLarge);
      inner.expect_kept();
    }
    pieces.take(around, kLarge);
    pieces.expect_kept();
    EXPECT_NE(around.take<float>(0), nullptr);
  });
}

TEST(Scratch, WhatAFrameGaveBackIsTakenAgain) {
  in_new_thread([] {
    ScratchFrame around;
    around.take<double>(3);
    const auto first = [] {
      ScratchFrame frame;
      frame.take<char>(kLarge);
      return frame.take<char>(100);
    };
    const char* const before = first();
    EXPECT_EQ(first(), before);
  });
}

TEST(Scratch, ACallThatIsMadeAgainFindsAllItNeedsInOneChunk) {
  in_new_thread([] {
    const auto call = [] {
      Pieces pieces;
      ScratchFrame around;
      pieces.take(around, kLine);
      for (const Index bytes : {kLarge, 2 * kLarge}) {
        const ScratchFrame between;
        ScratchFrame frame;
        pieces.take(frame, bytes);
        pieces.take(frame, 8 * kLine);
      }
      return pieces;
    };
    call();
    const Pieces warm = call();
    // Each piece follows the one before it, and the second frame begins where the first one did.
    EXPECT_EQ(warm[1], warm[0] + kLine);
    EXPECT_EQ(warm[2], warm[1] + (kLarge + kLine - 1) / kLine * kLine);
    EXPECT_EQ(warm[3], warm[1]);
    EXPECT_EQ(warm[4], warm[3] + (2 * kLarge + kLine - 1) / kLine * kLine);
    const Pieces again = call();
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(again[i], warm[i]) << "piece " << i;
    }
  });
}

TEST(Scratch, WithoutMemoryItThrowsAndCanBeAskedAgain) {
  in_new_thread([] {
    constexpr Index kMost = std::numeric_limits<Index>::max();
    for (int i = 0; i < 2; ++i) {
      ScratchFrame frame;
      EXPECT_THROW(frame.take<char>(kMost), std::bad_alloc);
      EXPECT_THROW(frame.take<char>(kMost - 128), std::bad_alloc);
      EXPECT_THROW(frame.take<char>(kMost / 2), std::bad_alloc);
      EXPECT_THROW(frame.take<double>(kMost / 4), std::bad_alloc);  // the product is no size
      EXPECT_THROW(frame.take<char>(-1), std::bad_alloc);
      Pieces pieces;
      pieces.take(frame, kLarge);
      EXPECT_THROW(frame.take<char>(kMost / 2), std::bad_alloc);
      pieces.take(frame, kLarge);
      try {
        ScratchFrame inner;
        pieces.take(inner, 0);
        inner.take<char>(kMost / 2);
        FAIL() << "there was memory";
      } catch (const std::bad_alloc&) {
      }
      pieces.take(frame, kLarge);
      pieces.expect_kept();
    }
  });
}

TEST(Scratch, ThreadsHaveTheirOwn) {
  ScratchFrame frame;
  Pieces pieces;
  pieces.take(frame, kLarge);
  in_new_thread([] {
    ScratchFrame other;
    Pieces others;
    others.take(other, 0);
    others.take(other, kLarge);
    others.expect_kept();
  });
  pieces.expect_kept();
}

TEST(Scratch, ObjectsKeepWhatTheyWereMadeOf) {
  struct Pair {
    Index a;
    double b;
  };
  ScratchFrame frame;
  const Pair* const pair = frame.make<Pair>(Index{3}, 0.5);
  frame.take<char>(kLarge);
  EXPECT_EQ(pair->a, 3);
  EXPECT_EQ(pair->b, 0.5);
}

TEST(Scratch, SpoilingChangesAllThatIsFreeAndNothingElse) {
  in_new_thread([] {
    spoil_scratch();  // there is none yet
    {
      ScratchFrame frame;
      std::fill_n(frame.take<std::uint8_t>(kLarge), kLarge, std::uint8_t{0});
    }
    ScratchFrame frame;
    Pieces pieces;
    pieces.take(frame, kLine);
    spoil_scratch();
    const auto* const free = frame.take<std::uint8_t>(kLarge - kLine);
    EXPECT_EQ(std::count(free, free + kLarge - kLine, std::uint8_t{0xff}), kLarge - kLine);
    pieces.expect_kept();
  });
}

}  // namespace
}  // namespace fenestra::kernels
