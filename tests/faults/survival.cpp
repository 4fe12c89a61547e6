// The series of failures, and the sample of a long one.
#include <fenestra/base/error.hpp>
#include <fenestra/base/memory.hpp>
#include <fenestra/base/parallel.hpp>
#include <tests/faults/failing_memory.hpp>
#include <tests/faults/survival.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <random>
#include <thread>

namespace fenestra::faults {

namespace {

/// Failures of one series, from its beginning and drawn from the rest.
constexpr std::int64_t kFirst = 120;
constexpr std::int64_t kDrawn = 30;
constexpr std::uint32_t kSeed = 20;

struct Outcome {
  std::optional<Tensors> result;
  bool as_promised = true;  ///< nothing else than bad_alloc or an Error was thrown
  bool met = false;         ///< an allocation was refused
};

Outcome call_with_failure(const Call& call, std::int64_t which, Failing failing) {
  Outcome outcome;
  std::thread thread([&] {
    const FailingMemory memory(which, failing);
    try {
      outcome.result = call();
    } catch (const std::bad_alloc&) {
    } catch (const Error&) {
    } catch (...) {
      outcome.as_promised = false;
    }
    outcome.met = memory.refused() > 0;
  });
  thread.join();
  return outcome;
}

Tensors call_in_peace(const Call& call) {
  Tensors result;
  std::thread thread([&] { result = call(); });
  thread.join();
  return result;
}

std::int64_t count_allocations(const Call& call) {
  std::int64_t count = 0;
  std::thread thread([&] {
    const std::int64_t before = allocations();
    const Tensors result = call();
    count = allocations() - before;
  });
  thread.join();
  return count;
}

/// What is cached is no leak.
std::int64_t living_uncached() {
  release_memory();
  return living();
}

/// 1, 2, 3, ... to `kFirst`, a sample of those up to `count`, and a few after them, where the call
/// succeeds.
std::vector<std::int64_t> numbers(std::int64_t count) {
  std::vector<std::int64_t> result;
  for (std::int64_t i = 1; i <= std::min(count, kFirst); ++i) {
    result.push_back(i);
  }
  std::mt19937 random(kSeed);
  for (std::int64_t i = 0; count > kFirst && i < kDrawn; ++i) {
    result.push_back(std::uniform_int_distribution<std::int64_t>(kFirst + 1, count)(random));
  }
  for (std::int64_t i = 1; i <= 3; ++i) {
    result.push_back(count + i);
  }
  return result;
}

}  // namespace

bool same_bits(const Tensors& a, const Tensors& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const Tensor<float>& x, const Tensor<float>& y) {
        return x.shape() == y.shape() &&
               (x.size() == 0 ||
                std::memcmp(
                    x.data(), y.data(), static_cast<std::size_t>(x.size()) * sizeof(float)) == 0);
      });
}

void expect_survival(const std::string& what, const Call& call) {
  expect_survival(
      what, [] {}, call);
}

void expect_survival(const std::string& what,
                     const std::function<void()>& before,
                     const Call& call) {
  SCOPED_TRACE(what + ", seed " + std::to_string(kSeed));
  before();
  const Tensors expected = call_in_peace(call);
  before();
  ASSERT_TRUE(same_bits(call_in_peace(call), expected)) << "the call differs from time to time";
  before();
  const std::int64_t count = count_allocations(call);
  // A worker that had nothing to do so far keeps its scratch from now on.
  const std::int64_t workers = 16 * (threads() - 1);
  const std::vector<std::int64_t> which = numbers(count);
  before();
  const std::int64_t baseline = living_uncached();
  for (const Failing failing : {Failing::once, Failing::on}) {
    for (const std::int64_t number : which) {
      const auto where = [&] {
        return " at allocation " + std::to_string(number) + " of " + std::to_string(count) +
               (failing == Failing::on ? " and all after it" : "");
      };
      Outcome outcome = call_with_failure(call, number, failing);
      ASSERT_TRUE(outcome.as_promised) << "something else was thrown" << where();
      ASSERT_TRUE(outcome.met || outcome.result) << "thrown without a failure" << where();
      ASSERT_TRUE(!outcome.result || same_bits(*outcome.result, expected)) << "bits" << where();
      outcome.result.reset();
      before();
      const std::int64_t now = living_uncached();
      ASSERT_LE(now, baseline + workers) << "leaked" << where();
      ASSERT_GE(now, baseline - workers) << "freed what was there before" << where();
      if (number % 8 == 1) {
        ASSERT_TRUE(same_bits(call_in_peace(call), expected)) << "bits after failing" << where();
        before();
      }
    }
  }
  ASSERT_TRUE(same_bits(call_in_peace(call), expected)) << "other bits afterwards";
}

}  // namespace fenestra::faults
