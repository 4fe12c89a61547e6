// The list of operators.
#include <fenestra/io/onnx/call.hpp>

#include <algorithm>

namespace fenestra::onnx {

const std::vector<Operator>& operators() {
  static const std::vector<Operator> sorted = [] {
    OperatorList list;
    add_activations(list);
    add_arithmetic(list);
    add_control(list);
    add_linear(list);
    add_losses(list);
    add_movement(list);
    add_norms(list);
    add_recurrent(list);
    add_reductions(list);
    add_resizing(list);
    add_sampling(list);
    add_selection(list);
    add_shapes(list);
    add_windows(list);
    std::vector<Operator> all = list.all();
    std::sort(all.begin(), all.end(), [](const Operator& a, const Operator& b) {
      return a.name < b.name;
    });
    return all;
  }();
  return sorted;
}

const Operator* find_operator(std::string_view name) {
  const std::vector<Operator>& all = operators();
  const auto found =
      std::lower_bound(all.begin(), all.end(), name, [](const Operator& a, std::string_view b) {
        return a.name < b;
      });
  return found != all.end() && found->name == name ? &*found : nullptr;
}

}  // namespace fenestra::onnx
