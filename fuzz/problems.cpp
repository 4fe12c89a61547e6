// Fuzzes the problem strings of every operator: what is refused is refused with an error, and what
// is accepted prints, parses back, compares and hashes equal, and can be described.
#include <fenestra/base/error.hpp>
#include <fenestra/base/nearest.hpp>
#include <fenestra/ops/list.hpp>
#include <fenestra/spec/describe.hpp>

#include <fuzz/bytes.hpp>
#include <fuzz/lines.hpp>

#include <array>
#include <string>
#include <string_view>

namespace fenestra::fuzz {
namespace {

/// What `fenestra explain` asks for.
template <class Op>
void describe(const typename Op::Geometry& g) {
  Op::inputs(g);
  Op::output(g);
  Op::algebra(g);
  if constexpr (requires { Op::data(g); }) {
    Op::data(g);
  }
  if constexpr (requires { Op::costs(g); }) {
    Op::costs(g);
  }
  if constexpr (requires { Op::notes(g); }) {
    Op::notes(g);
  }
  if constexpr (requires { Op::kernels(g); }) {
    Op::kernels(g);
  }
  if constexpr (requires { Op::windows(g); }) {
    const Windows windows = Op::windows(g);
    for (int axis = 0; axis < windows.rank(); ++axis) {
      extent_formula(windows[axis]);
      draw_windows(windows[axis]);
      drawing_legend(windows[axis]);
    }
  }
}

template <class Op>
void parse(std::string_view problem) {
  const auto g = Op::parse(problem);
  const std::string printed = to_string(g);
  try {
    const auto again = Op::parse(printed);
    if (!(again == g) || hash_value(again) != hash_value(g) || to_string(again) != printed) {
      complain(std::string(Op::name) + ": \"" + printed + "\" reads back as another geometry");
    }
  } catch (const Error& error) {
    complain(std::string(Op::name) + ": prints \"" + printed +
             "\" and refuses it: " + error.what());
  }
  describe<Op>(g);
}

struct Parser {
  std::string_view name;
  void (*parse)(std::string_view problem);
};

template <class... Ops>
constexpr std::array<Parser, sizeof...(Ops)> parsers(TypeList<Ops...>) {
  return {Parser{Ops::name, &parse<Ops>}...};
}

}  // namespace
}  // namespace fenestra::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace fuzz = fenestra::fuzz;
  static constexpr auto kParsers = fuzz::parsers(fenestra::Operators{});
  const fuzz::Line line(data, size);
  for (const fuzz::Parser& parser : kParsers) {
    if (parser.name == line.op) {
      try {
        parser.parse(line.problem);
      } catch (const fenestra::Error&) {
        return 0;  // refused, as most are
      }
      return 0;
    }
  }
  std::array<std::string_view, kParsers.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) {
    names[i] = kParsers[i].name;
  }
  fenestra::unknown_name("operator", line.op, names);
  return 0;
}
