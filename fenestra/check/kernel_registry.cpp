// The operators of the list that have laws on kernels.
#include <fenestra/check/kernel_entry.hpp>
#include <fenestra/ops/list.hpp>

namespace fenestra::check {

namespace {

template <class... Ops>
std::vector<KernelEntry> entries(TypeList<Ops...>) {
  std::vector<KernelEntry> list;
  for (const std::optional<KernelEntry>& entry : {make_kernel_entry<Ops>()...}) {
    if (entry) {
      list.push_back(*entry);
    }
  }
  return list;
}

}  // namespace

std::span<const KernelEntry> kernel_registry() {
  static const std::vector<KernelEntry> list = entries(Operators{});
  return list;
}

}  // namespace fenestra::check
