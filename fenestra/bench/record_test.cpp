// What results say, without a clock: cases, verdicts of the bars, records as JSON and the page.
#include <fenestra/bench/bars.hpp>
#include <fenestra/bench/case.hpp>
#include <fenestra/bench/made_up_test.hpp>
#include <fenestra/bench/page.hpp>
#include <fenestra/bench/record.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <nlohmann/json.hpp>

namespace fenestra::bench {
namespace {

Bar bar_in(const Record& record, const std::string& text) {
  for (const Bar& bar : judge(record)) {
    if (bar.text.find(text) != std::string::npos) {
      return bar;
    }
  }
  ADD_FAILURE() << "no bar with " << text;
  return {};
}

// Cases.

class CasesFile {
 public:
  explicit CasesFile(const std::string& text) { std::ofstream(path_) << text; }
  ~CasesFile() { std::remove(path_.c_str()); }
  std::vector<Case> read() const { return read_cases(path_); }

 private:
  std::string path_ = ::testing::TempDir() + "bench_cases.txt";
};

TEST(BenchCases, BothLayoutsComeOfOneLine) {
  const std::vector<Case> cases =
      CasesFile("a | conv | F D | dense both | x=Nx3x8x9 w=4x3x5x7 padding=1\n").read();
  ASSERT_EQ(cases.size(), 2U);
  EXPECT_EQ(cases[0].with_batch(2), "x=2x3x8x9 w=4x3x5x7 padding=1");
  EXPECT_EQ(cases[1].with_batch(2), "x=2x8x9x3 w=5x7x3x4 padding=1 layout=channels_last");
  EXPECT_FALSE(cases[0].is_channels_last());
  EXPECT_TRUE(cases[1].is_channels_last());
  EXPECT_EQ(cases[1].name, "a last");
  EXPECT_EQ(cases[1].directions, "FD");
}

TEST(BenchCases, SizesComeOfOneLine) {
  const std::vector<Case> cases =
      CasesFile("# comment\n\n@G | conv | F | grows:space sizes:7,14 | x=4x2xGxG w=2x2x3x3\n")
          .read();
  ASSERT_EQ(cases.size(), 2U);
  EXPECT_EQ(cases[1].name, "@14");
  EXPECT_EQ(cases[1].problem, "x=4x2x14x14 w=2x2x3x3");
  EXPECT_EQ(cases[1].number("at:"), 14);
  EXPECT_FALSE(cases[1].has_batch());
}

TEST(BenchCases, ALineThatIsNoneIsNamed) {
  try {
    CasesFile("a | conv | F\n").read();
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("a | conv | F"), std::string::npos);
  }
}

TEST(BenchCases, ThoseOfTheBenchParse) {
  const std::vector<Case> cases = read_cases(FENESTRA_BENCH_CASES);
  EXPECT_GT(cases.size(), 100U);
  for (const Case& one : cases) {
    EXPECT_EQ(
        std::count_if(
            cases.begin(), cases.end(), [&](const Case& other) { return other.name == one.name; }),
        1)
        << one.name;
  }
}

// Bars.

TEST(BenchBars, TheBestPeerCounts) {
  Result r = conv_result("a", 'F', 1.0);
  EXPECT_EQ(r.against_best(), std::nullopt);
  r.torch = seconds(3);
  EXPECT_EQ(r.against_best(), 3);
  r.plain = seconds(1.5);
  EXPECT_EQ(r.best_peer()->name, "oneDNN");
  EXPECT_EQ(r.against_best(), 1.5);
  r.xnnpack = seconds(0.5);
  EXPECT_EQ(r.best_peer()->name, "XNNPACK");
  // Its own layout, which costs reorders, is not compared.
  r.any = seconds(0.1);
  EXPECT_EQ(r.against_best(), 0.5);
}

TEST(BenchBars, NeedEachCaseAndTheMean) {
  Result fast = conv_result("fast", 'F', 1);
  fast.torch = seconds(2);
  Result slow = conv_result("slow", 'D', 1);
  slow.torch = seconds(0.95);
  const std::string text = "conv f32, channels first";
  Bar bar = bar_in(record_of({fast, slow}), text);
  EXPECT_TRUE(bar.holds());
  EXPECT_EQ(bar.cases, 2);
  EXPECT_DOUBLE_EQ(bar.worst, 0.95);
  EXPECT_EQ(bar.worst_case, "slow D batch 1, 1 thread");
  EXPECT_EQ(bar.worst_kernel, "conv_f32_gemm_avx2");
  EXPECT_EQ(bar.worst_share, 1.0);
  EXPECT_NEAR(bar.geometric_mean(), std::sqrt(1.9), 1e-12);
  EXPECT_EQ(bar.needed(), ">= 0.90, mean >= 1.10");
  EXPECT_EQ(bar.found(), "mean 1.38, worst 0.95");
  // One case below its own bar.
  slow.torch = seconds(0.8);
  bar = bar_in(record_of({fast, slow}), text);
  EXPECT_FALSE(bar.holds());
  EXPECT_EQ(bar.missed, 1);
  // All above theirs, but not the mean.
  fast.torch = slow.torch = seconds(1);
  bar = bar_in(record_of({fast, slow}), text);
  EXPECT_FALSE(bar.holds());
  EXPECT_EQ(bar.missed, 0);
}

TEST(BenchBars, WithoutACaseAreNotMet) {
  for (const Bar& bar : judge(record_of({}))) {
    EXPECT_EQ(bar.cases, 0) << bar.text;
    EXPECT_FALSE(bar.holds()) << bar.text;
  }
}

TEST(BenchBars, LayoutsTypesAndPlotsAreKeptApart) {
  Result last = conv_result("a last", 'F', 1);
  last.what.tags = {"last"};
  last.torch = seconds(1);
  Result wide = conv_result("b", 'F', 1);
  wide.what.tags = {"f64", "dense"};
  wide.torch = seconds(1);
  Result growing = conv_result("c", 'F', 1);
  growing.what.tags = {"grows:batch"};
  growing.torch = seconds(1);
  const Record record = record_of({last, wide, growing});
  EXPECT_EQ(bar_in(record, "conv f32, channels first").cases, 0);
  EXPECT_EQ(bar_in(record, "conv f32, channels last").cases, 1);
  EXPECT_EQ(bar_in(record, "dense f64: share of f64 peak").cases, 1);
  EXPECT_EQ(bar_in(record, "dense F and D").cases, 0);
}

TEST(BenchBars, AtMostHoldsTheOtherWayRound) {
  Result call = conv_result("call", 'F', 0.7e-6);
  call.what.tags = {"overhead"};
  Bar bar = bar_in(record_of({call}), "3x3 on 8x8: microseconds");
  EXPECT_TRUE(bar.holds());
  EXPECT_EQ(bar.found(), "0.70");
  call.ours = seconds(0.9e-6);
  bar = bar_in(record_of({call}), "3x3 on 8x8: microseconds");
  EXPECT_FALSE(bar.holds());
  EXPECT_EQ(bar.needed(), "<= 0.80");
}

TEST(BenchBars, RaggedChannelsAreHeldAgainstFullOnes) {
  Result ragged = conv_result("17", 'F', 2);
  ragged.what.tags = {"ragged:17"};
  Result full = conv_result("16", 'F', 1);
  full.what.tags = {"full:17"};
  EXPECT_DOUBLE_EQ(bar_in(record_of({ragged, full}), "ragged").worst, 0.5);
  full.threads = 2;
  EXPECT_EQ(bar_in(record_of({ragged, full}), "ragged").cases, 0);
}

TEST(BenchBars, TwoThreadsAreHeldAgainstOne) {
  const Result one = conv_result("a", 'F', 1);
  Result two = conv_result("a", 'F', 0.5);
  two.threads = 2;
  EXPECT_DOUBLE_EQ(bar_in(record_of({one, two}), "2 threads x 1, above").worst, 2);
}

TEST(BenchBars, ChoicesAreJudgedForEachInstructionSet) {
  Record record = record_of({});
  for (int i = 0; i < 19; ++i) {
    record.choices.push_back(choice_of("avx512", 1.05));
  }
  record.choices.push_back(choice_of("avx512", 1.5));
  record.choices.push_back(choice_of("avx2", 1.2));
  EXPECT_TRUE(bar_in(record, "choice of kernel, avx512").holds());
  const Bar bar = bar_in(record, "choice of kernel, avx2");
  EXPECT_FALSE(bar.holds());
  EXPECT_EQ(bar.worst, 0);
  EXPECT_EQ(bar.worst_kernel, "conv_f32_gemm");
  EXPECT_NE(bar.worst_case.find("takes 1.20 x the time of conv_f32_direct"), std::string::npos);
}

TEST(BenchBars, BrokenBitsAreShownWithTheirCommand) {
  Record record = record_of({});
  record.bits.problems = 7;
  EXPECT_TRUE(bar_in(record, "same bits").holds());
  record.bits.failure = "fenestra check bits \"conv ...\"";
  const Bar bar = bar_in(record, "same bits");
  EXPECT_FALSE(bar.holds());
  EXPECT_EQ(bar.worst_case, record.bits.failure);
}

// Records and the page.

TEST(BenchRecord, ComesBackFromJson) {
  const Record record = everything();
  const nlohmann::json json = to_json(record);
  const Record again = record_from_json(nlohmann::json::parse(json.dump()));
  EXPECT_EQ(to_json(again), json);
  EXPECT_EQ(page_html(again), page_html(record));
  EXPECT_EQ(json.at("bars").size(), judge(record).size());
}

TEST(BenchRecord, RefusesOtherJson) {
  EXPECT_THROW(record_from_json(nlohmann::json::parse("{\"isa\": 3}")), Error);
  EXPECT_THROW(record_from_json(nlohmann::json::parse("nothing", nullptr, false)), Error);
}

TEST(BenchPage, HasEveryPart) {
  const std::string text = page_html(everything());
  for (const char* id : {"bars", "peers", "peak", "growth", "choice", "numbers"}) {
    EXPECT_NE(text.find("<h2 id=\"" + std::string(id) + "\">"), std::string::npos) << id;
    EXPECT_NE(text.find("href=\"#" + std::string(id) + "\""), std::string::npos) << id;
  }
  EXPECT_NE(text.find("3x3 &lt;64&gt;"), std::string::npos);
  EXPECT_NE(text.find("Batch, forward"), std::string::npos);
  EXPECT_NE(text.find("takes 1.30 x the time of conv_f32_direct"), std::string::npos);
  // One file that asks for nothing.
  for (const char* outside : {"http:", "https:", "url(", "@import", "<script"}) {
    EXPECT_EQ(text.find(outside), std::string::npos) << outside;
  }
}

TEST(BenchPage, OfNothingHasTheBarsAlone) {
  const std::string text = page_html(Record{});
  EXPECT_NE(text.find("<h2 id=\"bars\">"), std::string::npos);
  EXPECT_EQ(text.find("<h2 id=\"peers\">"), std::string::npos);
  EXPECT_EQ(text.find("<h2 id=\"growth\">"), std::string::npos);
}

}  // namespace
}  // namespace fenestra::bench
