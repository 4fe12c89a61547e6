// The names that are stored and compared, and what an `Error` carries.
#include <fenestra/base/error.hpp>

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace fenestra {
namespace {

template <Fault fault>
constexpr ErrorCode code_of = fault.code;

static_assert(code_of<Fault{.code = ErrorCode::invalid_stride, .axis = 1}> ==
                  ErrorCode::invalid_stride,
              "a fault is a template argument");
static_assert(!Fault{} && Fault{.code = ErrorCode::overflow});

TEST(Error, EveryCodeHasANameOfItsOwnInLowerCaseAndHyphens) {
  std::set<std::string_view> names;
  int code = 0;
  for (; code_name(static_cast<ErrorCode>(code)) != "unknown"; ++code) {
    const std::string_view name = code_name(static_cast<ErrorCode>(code));
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"), std::string_view::npos);
  }
  EXPECT_GT(code, static_cast<int>(ErrorCode::diverged)) << "a code without a name";
  EXPECT_EQ(code_name(ErrorCode::kernel_exceeds_input), "kernel-exceeds-input");
}

TEST(Error, EveryArgumentHasANameOfItsOwn) {
  std::set<std::string_view> names;
  int argument = static_cast<int>(Argument::none) + 1;
  for (; !argument_name(static_cast<Argument>(argument)).empty(); ++argument) {
    const std::string_view name = argument_name(static_cast<Argument>(argument));
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  EXPECT_GT(argument, static_cast<int>(Argument::exponent)) << "an argument without a name";
  EXPECT_EQ(argument_name(Argument::none), "");
}

TEST(Error, CarriesOperatorCodeArgumentAxisAndText) {
  const Fault fault{.code = ErrorCode::invalid_stride,
                    .argument = Argument::stride,
                    .axis = 1,
                    .got = 0,
                    .needed = 1};
  const Error error("conv", fault, "the text");
  EXPECT_EQ(error.op(), "conv");
  EXPECT_EQ(error.code(), ErrorCode::invalid_stride);
  EXPECT_EQ(error.argument(), "stride");
  EXPECT_EQ(error.axis(), 1);
  EXPECT_EQ(error.fault(), fault);
  EXPECT_STREQ(error.what(), "the text");
}

TEST(Error, WithoutAnOperatorNamesNoneAndNoAxis) {
  const Error error(ErrorCode::overflow, "too large");
  EXPECT_EQ(error.code(), ErrorCode::overflow);
  EXPECT_EQ(error.op(), "");
  EXPECT_EQ(error.argument(), "");
  EXPECT_EQ(error.axis(), -1);
}

TEST(Error, EachLanguageHasItsOwnWords) {
  const Error error(ErrorCode::released_graph,
                    "backward: released\n  fix: " + spelled_option("retain", true) + ", outside " +
                        spelled("NoGrad", "no_grad"));
  EXPECT_STREQ(error.what(), "backward: released\n  fix: {.retain = true}, outside NoGrad");
  EXPECT_EQ(error.text(Language::cpp), error.what());
  EXPECT_EQ(error.text(Language::python),
            "backward: released\n  fix: retain=True, outside no_grad");
  const Error plain(ErrorCode::bad_file, "nothing to translate");
  EXPECT_EQ(plain.text(Language::python), "nothing to translate");
  EXPECT_EQ(text_in(Language::python, spelled_argument("kernel") + spelled_argument("stride")),
            "kernel_sizestride");
  EXPECT_EQ(text_in(Language::cpp, spelled_argument("kernel")), "kernel");
}

}  // namespace
}  // namespace fenestra
