// If: one of two graphs, as numbers say that are there.
#include <fenestra/io/onnx/call.hpp>

namespace fenestra::onnx {

void add_control(OperatorList& list) {
  list.family("control");
  list.add("If", {1, 11, 13, 16, 19, 21, 23, 24, 25}, []<class T>(Call<T>& c) -> Results<T> {
    const Attribute& branch = c.required(c.one(0) != 0 ? "then_branch" : "else_branch");
    if (!branch.g) {
      c.refuse("attribute " + branch.name + " is no graph", "a correct model");
    }
    return c.run.run_graph(*branch.g);
  });
}

}  // namespace fenestra::onnx
