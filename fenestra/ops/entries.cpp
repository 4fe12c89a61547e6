// The operators of the list, by name. Built from the list itself, not by self-registration.
#include <fenestra/ops/entry.hpp>
#include <fenestra/ops/list.hpp>

#include <array>

namespace fenestra {

namespace {

template <class... Ops>
std::array<OperatorEntry, sizeof...(Ops)> entries(TypeList<Ops...>) {
  return {make_entry<Ops>()...};
}

}  // namespace

std::span<const OperatorEntry> operators() {
  static const auto list = entries(Operators{});
  return list;
}

}  // namespace fenestra
