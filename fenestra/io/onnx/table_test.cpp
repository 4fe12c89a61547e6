// docs/onnx-operators.md is what the list of operators says. scripts/onnx-operators writes it.
#include <fenestra/io/onnx/official_test.hpp>

#include <gtest/gtest.h>

#include <cstdlib>

namespace fenestra::onnx::official {
namespace {

/// "1, 6, 13+": the last one holds for all that follow.
std::string versions_text(const std::vector<int>& versions) {
  std::string text;
  for (const int version : versions) {
    text += (text.empty() ? "" : ", ") + std::to_string(version);
  }
  return text + "+";
}

std::string_view derivative_text(Derivative derivative) {
  switch (derivative) {
    case Derivative::full: return "yes";
    case Derivative::flat: return "zero";
    case Derivative::none: return "none";
  }
  return "";
}

std::string table(const fs::path& root, const std::string& by_hand) {
  std::map<std::string, int> official;
  for (const Case& test : cases(root)) {
    for (const std::string& op : test.operators) {
      ++official[op];
    }
  }
  std::ostringstream out;
  out << "# ONNX operators\n\n"
         "What `fenestra::onnx::Network` runs, from `scripts/onnx-operators`; a test compares it "
         "with "
         "the list in the library.\nModels of opsets 1 to "
      << kNewestOpset
      << " are read; of an operator the newest version holds that is not above the model's.\n"
         "Versions are those in which the standard's text changed. The official tests are of "
         "opsets up to 17, and the versions up to\nthere are those of its schemas. What came later "
         "is compared with ONNX Runtime 1.30, version by version, by\n"
         "`scripts/compare-onnxruntime`: all but GlobalLpPool 22 and RoiAlign 22, which it does "
         "not "
         "run (that version added a type).\n\n"
         "VJP and JVP: *yes*, by the rules of the library's own operators; *zero* wherever there "
         "is "
         "one (steps); *none*, the\nresult is integers, truth values or a constant. Tested by: the "
         "number of official tests that contain it, whose outputs\nare compared and whose "
         "derivatives are compared with differences and with each other; *loops*, by "
         "`operators_test.cpp`.\n\n"
         "| operator | versions | family | forward | VJP | JVP | tested by |\n"
         "|---|---|---|---|---|---|---|\n";
  for (const Operator& op : operators()) {
    const std::string name(op.name);
    const bool loops = by_hand.find("\"" + name + "\"") != std::string::npos;
    const int count = official[name];
    const std::string tests = (count > 0 ? std::to_string(count) + " official" : "") +
                              (count > 0 && loops ? ", " : "") + (loops ? "loops" : "");
    EXPECT_NE(tests, "") << name << " is tested by nothing";
    const std::string_view derivative = derivative_text(op.derivative);
    out << "| " << name << " | " << versions_text(op.versions) << " | " << op.family << " | yes | "
        << derivative << " | " << derivative << " | " << tests << " |\n";
  }
  return out.str();
}

std::string contents(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(OperatorTable, IsCurrent) {
  const fs::path root = FENESTRA_ONNX_TESTDATA;
  if (!fs::is_directory(root / "node")) {
    GTEST_SKIP() << "no official vectors; scripts/install-packages installs libonnx-testdata";
  }
  const fs::path here = FENESTRA_ONNX_TABLE;
  const std::string now =
      table(root, contents(fs::path(FENESTRA_ONNX_FAILURES).parent_path() / "operators_test.cpp"));
  if (const char* write = std::getenv("FENESTRA_WRITE_TABLE"); write != nullptr) {
    std::ofstream(write) << now;
    return;
  }
  EXPECT_EQ(contents(here), now) << "fix: scripts/onnx-operators";
}

}  // namespace
}  // namespace fenestra::onnx::official
