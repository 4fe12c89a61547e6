// Print the plan: what a program does, node by node, with the kernel, the memory and the time of
// each.
#include <fenestra/fenestra.hpp>
#include <fenestra/graph/plan.hpp>

#include <cstdio>

namespace fn = fenestra;

int main() {
  const auto model = [](const auto& x, const auto& w, const auto& b) {
    return fn::max_pool(fn::relu(fn::conv(x, w, b, {.padding = 1})), {.kernel = 2});
  };
  const fn::Tensor<float> x(fn::Shape{8, 3, 32, 32}, 0.5F);
  const fn::Tensor<float> w(fn::Shape{16, 3, 3, 3}, 0.1F);
  const fn::Tensor<float> b(fn::Shape{16}, 0.0F);

  const auto program = fn::compile<float>(model, x.shape(), w.shape(), b.shape());
  std::printf("%s\n", program.explain().c_str());

  fn::Context<float> context(program);
  std::vector<fn::Tensor<float>> results{fn::Tensor<float>(program.result_shapes()[0])};
  const std::vector<fn::RunArgument> arguments{x, w, b};
  program.run(context, arguments, results);  // the first run warms up
  const auto seconds = program.profile(fn::ProgramForm::run, context, arguments, results);
  std::printf("%s",
              program
                  .explain(fn::ProgramForm::run,
                           fn::graph::ExplainFormat::text,
                           {.title = "with the time of each step", .seconds = seconds})
                  .c_str());
  return seconds.size() == program.plan().steps().size() ? 0 : 1;
}
