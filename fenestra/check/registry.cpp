// The laws of the operators of the list, by name. Built from the list itself, not by
// self-registration.
#include <fenestra/check/entry.hpp>
#include <fenestra/ops/list.hpp>

#include <array>

namespace fenestra::check {

namespace {

template <class... Ops>
std::array<LawEntry, sizeof...(Ops)> entries(TypeList<Ops...>) {
  return {make_law_entry<Ops>()...};
}

}  // namespace

std::span<const LawEntry> registry() {
  static const auto list = entries(Operators{});
  return list;
}

}  // namespace fenestra::check
