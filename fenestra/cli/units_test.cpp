#include <fenestra/base/text.hpp>
#include <fenestra/cli/units.hpp>
#include <fenestra/cli/usage_error.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fenestra::cli {
namespace {

TEST(Units, TimesAreWrittenAsPeopleReadThem) {
  EXPECT_EQ(time_text(0), "0 us");
  EXPECT_EQ(time_text(123e-6), "123 us");
  EXPECT_EQ(time_text(0.00234), "2.3 ms");
  EXPECT_EQ(time_text(0.035), "35 ms");
  EXPECT_EQ(time_text(0.9996), "1.0 s");
  EXPECT_EQ(time_text(2.345), "2.3 s");
  EXPECT_EQ(time_text(59.96), "1:00");
  EXPECT_EQ(time_text(65), "1:05");
  EXPECT_EQ(time_text(3599.7), "1:00:00");
  EXPECT_EQ(time_text(2 * 3600 + 3 * 60 + 45), "2:03:45");
  EXPECT_EQ(time_text(100 * 3600), "100:00:00");
}

TEST(Units, WhatIsNoTimeIsADash) {
  EXPECT_EQ(time_text(-1), "-");
  EXPECT_EQ(time_text(std::nan("")), "-");
  EXPECT_EQ(time_text(std::numeric_limits<double>::infinity()), "-");
  EXPECT_EQ(time_text(1e300), "-");
}

TEST(Units, BytesAreReadWithAndWithoutUnits) {
  EXPECT_EQ(parse_bytes("0"), 0U);
  EXPECT_EQ(parse_bytes("300"), 300U);
  EXPECT_EQ(parse_bytes("300B"), 300U);
  EXPECT_EQ(parse_bytes("64k"), 64'000U);
  EXPECT_EQ(parse_bytes("10MB"), 10'000'000U);
  EXPECT_EQ(parse_bytes("10 mb"), 10'000'000U);
  EXPECT_EQ(parse_bytes("1MiB"), 1U << 20U);
  EXPECT_EQ(parse_bytes("1.5GiB"), 3U << 29U);
  EXPECT_EQ(parse_bytes(".5kB"), 500U);
  EXPECT_EQ(parse_bytes("18446744073709551615"), std::numeric_limits<std::size_t>::max());
}

TEST(Units, WhatIsPrintedInWholeUnitsIsReadBack) {
  for (const std::size_t bytes : {1UL, 260UL, 1UL << 10U, 3UL << 20U, 2UL << 30U}) {
    EXPECT_EQ(parse_bytes(bytes_text(bytes)), bytes) << bytes_text(bytes);
  }
}

TEST(Units, OtherBytesAreRefusedWithAReason) {
  const auto why = [](const char* text) -> std::string {
    try {
      return "read as " + std::to_string(parse_bytes(text));
    } catch (const UsageError& error) {
      return error.what();
    }
  };
  const auto expect = [&](const char* text, const char* reason) {
    EXPECT_NE(why(text).find(reason), std::string::npos) << text << ": " << why(text);
  };
  expect("", "empty");
  expect("MB", "does not begin with a digit");
  expect("-1", "does not begin with a digit");
  expect("+1", "does not begin with a digit");
  expect(" 1", "does not begin with a digit");
  expect("nan", "does not begin with a digit");
  expect("10XB", "\"XB\" is no unit");
  expect("1e3", "\"e3\" is no unit");
  expect("10MB ", "is no unit");
  expect("1.2.3", "is no unit");
  expect(".", "not a number");
  expect("99999999999999999999", "too large");
  expect("18446744073709551615kB", "too large");
  expect("99999999.5TB", "too large");
}

}  // namespace
}  // namespace fenestra::cli
