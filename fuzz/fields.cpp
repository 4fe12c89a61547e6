// Fuzzes the readers of one field each, that operators read their problems with: shapes, lists per
// axis, padding, numbers, choices. What a reader accepts must be what it would print.
#include <fenestra/base/error.hpp>
#include <fenestra/spec/problem.hpp>

#include <fuzz/bytes.hpp>

#include <string>
#include <string_view>

namespace fenestra::fuzz {
namespace {

/// Reads `text` as the field f=... with `read`; a refusal is fine.
template <class Read>
void read_field(std::string_view text, Read&& read) {
  try {
    Problem problem(text);
    read(problem);
    problem.finish("fuzz");
  } catch (const Error&) {
    return;
  }
}

/// Options of one field.
template <class V>
struct OneField {
  V f{};

  template <class Visit>
  static constexpr void fields(Visit&& field) {
    field("f", &OneField::f, {.help = "anything"});
  }
};

/// Reads an option of type V; what it prints must read as what prints the same.
template <class V>
void read_option(std::string_view text) {
  read_field(text, [](Problem& p) {
    const std::string printed = field_text(p.options<OneField<V>>().f);
    if (printed.empty()) {
      return;
    }
    const std::string again = field_text(Problem("f=" + printed).options<OneField<V>>().f);
    if (again != printed) {
      complain("an option prints as " + printed + ", then as " + again);
    }
  });
}

void read_all(std::string_view text) {
  read_field(text, [](Problem& p) {
    const Shape shape = p.shape("f");
    if (Problem("f=" + problem_text(shape)).shape("f") != shape) {
      complain("a shape prints as " + problem_text(shape));
    }
  });
  read_field(text, [](Problem& p) { p.axis_list("f"); });
  read_field(text, [](Problem& p) {
    const std::vector<Index> list = p.integers("f");
    if (!list.empty() && Problem("f=" + list_text(list)).integers("f") != list) {
      complain("integers print as " + list_text(list));
    }
  });
  read_field(text, [](Problem& p) {
    const double value = p.real("f", 0);
    const double again = Problem("f=" + problem_text(value)).real("f", 0);
    if (!(again == value) && !(again != again && value != value)) {
      complain("a number prints as " + problem_text(value));
    }
  });
  read_field(text, [](Problem& p) { p.reals("f"); });
  read_option<bool>(text);
  read_option<Index>(text);
  read_option<int>(text);
  read_option<OptionalIndex>(text);
  read_option<double>(text);
  read_option<PerAxis>(text);
  read_option<Padding>(text);
  read_option<AxisList>(text);
  read_option<Layout>(text);
  read_option<PadCells>(text);
}

}  // namespace
}  // namespace fenestra::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  fenestra::fuzz::read_all(text);
  fenestra::fuzz::read_all("f=" + std::string(text));
  return 0;
}
