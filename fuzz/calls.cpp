// Fuzzes operator calls: a line with an operator and its problem, then the bytes that its tensors
// are made of. See one_call.hpp for what must hold.
#include <fenestra/base/error.hpp>
#include <fenestra/ops/list.hpp>

#include <fuzz/calls.hpp>
#include <fuzz/lines.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace fenestra::fuzz {
namespace {

template <class... Ops>
std::array<Call, sizeof...(Ops)> calls(TypeList<Ops...>) {
  return {make_call<Ops>()...};
}

/// Replaces one number of the line: bytes flipped at random seldom leave a problem that is
/// accepted.
std::string with_another_number(std::string line, std::minstd_rand& random) {
  static constexpr const char* kNumbers[] = {"0",
                                             "1",
                                             "2",
                                             "3",
                                             "4",
                                             "5",
                                             "7",
                                             "8",
                                             "9",
                                             "16",
                                             "17",
                                             "31",
                                             "33",
                                             "-1",
                                             "2147483647",
                                             "4294967296",
                                             "4611686018427387904",
                                             "9223372036854775807"};
  std::vector<std::size_t> starts;
  const auto is_digit = [&](std::size_t at) {
    return std::isdigit(static_cast<unsigned char>(line[at])) != 0;
  };
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (is_digit(at) && (at == 0 || !is_digit(at - 1))) {
      starts.push_back(at);
    }
  }
  if (starts.empty()) {
    return line;
  }
  const std::size_t start = starts[random() % starts.size()];
  std::size_t end = start;
  while (end < line.size() && is_digit(end)) {
    ++end;
  }
  // Small ones mostly.
  const std::size_t choices = random() % 4 == 0 ? std::size(kNumbers) : 9;
  return line.replace(start, end - start, kNumbers[random() % choices]);
}

}  // namespace
}  // namespace fenestra::fuzz

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data,
                                               std::size_t size,
                                               std::size_t max_size,
                                               unsigned seed) {
  std::minstd_rand random(seed);
  if (random() % 2 == 0) {
    return LLVMFuzzerMutate(data, size, max_size);
  }
  const std::string all(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(all.find('\n'), all.size());
  const std::string changed =
      fenestra::fuzz::with_another_number(all.substr(0, end), random) + all.substr(end);
  const std::size_t length = std::min(changed.size(), max_size);
  std::memcpy(data, changed.data(), length);
  return length;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace fuzz = fenestra::fuzz;
  static const auto calls = fuzz::calls(fenestra::Operators{});
  const fuzz::Line line(data, size);
  for (const fuzz::Call& call : calls) {
    if (call.name == line.op) {
      try {
        call.call(line.problem, fuzz::Bytes(line.rest));
      } catch (const fenestra::Error&) {
        return 0;  // refused
      }
    }
  }
  return 0;
}
