// parity_cases: writes the records of cases.hpp to stdout, for parity.py to compare with torch.
//
//   parity_cases --list
//   parity_cases NAME SEED COUNT       the problems drawn by SEED, SEED + 1, ...
//   parity_cases NAME SEED PROBLEM     this problem, its inputs drawn by SEED
#include <fenestra/ops/list.hpp>
#include <tests/parity/cases.hpp>

#include <array>
#include <cstdlib>
#include <exception>
#include <string>

namespace fenestra::parity {
namespace {

template <class... Ops>
std::array<Cases, sizeof...(Ops)> all_cases(TypeList<Ops...>) {
  return {make_cases<Ops>()...};
}

int usage() {
  std::fputs("usage: parity_cases --list | NAME SEED COUNT | NAME SEED PROBLEM\n", stderr);
  return 2;
}

int run(int argc, char** argv) {
  const auto list = all_cases(Operators{});
  if (argc == 2 && std::string_view(argv[1]) == "--list") {
    for (const Cases& cases : list) {
      std::puts(std::string(cases.name).c_str());
    }
    return 0;
  }
  if (argc != 4) {
    return usage();
  }
  const std::uint64_t seed = std::strtoull(argv[2], nullptr, 10);
  const std::string_view last(argv[3]);
  const bool is_problem = last.find('=') != std::string_view::npos;
  const std::uint64_t count = is_problem ? 1 : std::strtoull(argv[3], nullptr, 10);
  for (const Cases& cases : list) {
    if (cases.name != std::string_view(argv[1])) {
      continue;
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      cases.write(seed + i, is_problem ? last : std::string_view(), stdout);
      std::fflush(stdout);  // so that what was written before a crash tells its seed
    }
    return 0;
  }
  return usage();
}

}  // namespace
}  // namespace fenestra::parity

int main(int argc, char** argv) {
  try {
    return fenestra::parity::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "parity_cases: %s\n", error.what());
    return 3;
  }
}
