// Reports of plans: that they say what the plan does, as text, for Graphviz and as a page.
#include <fenestra/graph/explain.hpp>
#include <fenestra/graph/testing_test.hpp>

#include <gtest/gtest.h>

#include <numeric>
#include <set>

namespace fenestra::graph {
namespace {

/// A chain and an operation that run piece by piece, an alias, one that needs everything, and an
/// update.
Graph small_graph() {
  Builder<double> builder;
  const auto x = builder.input({4, 6}, "x");
  const auto w = builder.parameter({6}, "w");
  const auto y = softmax(exp(mul(x, w)));
  builder.output(sum(reshape(y, {24})), "total");
  builder.update(w, scale(w, 0.5));
  return builder.graph();
}

/// Groups whatever can be grouped, on any machine the same way.
CompileOptions in_pieces() {
  return {.threads = 2,
          .batch_tiling =
              BatchTilingOptions{.cache_bytes = 1, .least_bytes = 0, .pieces_may_be_slow = true}};
}

/// Most kinds of layers, with its gradients.
Program<double> network() {
  const auto loss = [](const auto& x, const auto& labels, const auto& w, const auto& v) {
    const auto y = max_pool(relu(conv(x, w, {.padding = 1})), {.kernel = 2});
    return cross_entropy(linear(reshape(y, {y.shape()[0], -1}), v), labels);
  };
  CompileOptions options = in_pieces();
  options.value_and_grad = true;
  return compile<double>(loss,
                         Shape{4, 3, 8, 8},
                         DataShape{Shape{4}},
                         sample_tensor<double>({4, 3, 3, 3}),
                         sample_tensor<double>({5, 64}),
                         options);
}

std::vector<double> times_of(const Plan& plan) {
  std::vector<double> seconds(plan.steps().size());
  std::iota(seconds.begin(), seconds.end(), 1.0);
  return seconds;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST(Report, SaysWhatThePlanSays) {
  const Program<double> program = network();
  const Plan& plan = program.plan(ProgramForm::value_and_grad);
  const Report report = make_report(plan);
  ASSERT_EQ(report.steps.size(), plan.steps().size());
  EXPECT_EQ(report.arena_bytes, plan.arena_bytes());
  EXPECT_EQ(report.constant_bytes, plan.constant_bytes());
  Index work = 0;
  std::size_t grouped_steps = 0;
  for (std::size_t i = 0; i < report.steps.size(); ++i) {
    const ReportStep& step = report.steps[i];
    EXPECT_EQ(step.node, plan.steps()[i].node);
    EXPECT_TRUE(step.kernel.starts_with(plan.steps()[i].kernel->name()));
    EXPECT_EQ(step.result.place, plan.result(step.node));
    EXPECT_EQ(step.workspace.place, plan.workspace(step.node));
    EXPECT_EQ(step.scratch.place, plan.steps()[i].scratch);
    work += step.multiply_adds;
    grouped_steps += step.group ? 1 : 0;
  }
  EXPECT_EQ(report.multiply_adds, work);
  ASSERT_FALSE(report.groups.empty());
  std::size_t members = 0;
  for (const PieceLoop& group : report.groups) {
    members += group.end - group.first;
  }
  EXPECT_EQ(members, grouped_steps);
}

TEST(Report, RunsOfChannelsAreGroups) {
  Builder<double> builder;
  builder.output(relu(batch_norm(builder.input({2, 3, 4, 4}, "x")).y), "y");
  const Program<double> program(builder.graph(), in_pieces());
  const Report report = make_report(program.plan());
  ASSERT_EQ(report.groups.size(), 1U);
  EXPECT_TRUE(report.groups[0].by_channels);
  for (const ReportStep& step : report.steps) {
    EXPECT_EQ(step.group, std::optional<std::size_t>(0)) << step.operation;
  }
  EXPECT_TRUE(contains(program.explain(), "+ 3 pieces of 1 channel\n"));
}

TEST(Report, BuffersThatAreNeededAtOnceDoNotOverlap) {
  const Program<double> program = network();
  for (const ProgramForm form : {ProgramForm::run, ProgramForm::value_and_grad}) {
    const Report report = make_report(program.plan(form));
    ASSERT_FALSE(report.buffers.empty());
    for (const ReportBuffer& a : report.buffers) {
      EXPECT_LE(a.buffer.offset + a.buffer.bytes, report.arena_bytes);
      EXPECT_LE(a.first, a.last);
      EXPECT_LT(a.last, report.steps.size());
      for (const ReportBuffer& b : report.buffers) {
        const bool meet_in_time = a.first <= b.last && b.first <= a.last;
        const bool meet_in_space = a.buffer.offset < b.buffer.offset + b.buffer.bytes &&
                                   b.buffer.offset < a.buffer.offset + a.buffer.bytes;
        EXPECT_TRUE(&a == &b || !meet_in_time || !meet_in_space)
            << a.buffer.node << " and " << b.buffer.node;
      }
    }
  }
}

TEST(Report, EveryResultInTheArenaLiesInABufferWhenItIsWritten) {
  const Program<double> program = network();
  const Report report = make_report(program.plan(ProgramForm::value_and_grad));
  for (std::size_t i = 0; i < report.steps.size(); ++i) {
    const ReportMemory& result = report.steps[i].result;
    if (result.place.kind != Place::Kind::arena) {
      continue;
    }
    EXPECT_TRUE(std::any_of(report.buffers.begin(),
                            report.buffers.end(),
                            [&](const ReportBuffer& placed) {
                              return placed.buffer.offset == result.place.offset &&
                                     placed.buffer.bytes >= result.bytes && placed.first <= i &&
                                     i <= placed.last;
                            }))
        << "step " << i;
  }
}

TEST(Report, ReadersOfAnAliasReadItsSource) {
  const Program<double> program(small_graph());
  const Report report = make_report(program.plan());
  for (const ReportStep& step : report.steps) {
    EXPECT_NE(step.operation, "reshape");
    for (const ReportRead& read : step.reads) {
      EXPECT_TRUE(report.find_step(read.source) != nullptr ||
                  report.find_value(read.source) != nullptr);
    }
  }
}

TEST(Report, OperationsThatKnowTheirChannelsSayTheirLayout) {
  Builder<float> builder;
  const auto x = builder.input({2, 8, 8, 3}, "x");
  builder.output(max_pool(x, {.kernel = 2, .layout = Layout::channels_last}), "y");
  const Program<float> program(builder.graph());
  EXPECT_EQ(make_report(program.plan()).steps[0].layout, "channels_last");
  EXPECT_TRUE(contains(program.explain(), "  channels_last  "));
}

TEST(Report, SharesAddUpToOne) {
  const Program<double> program = network();
  const Plan& plan = program.plan(ProgramForm::value_and_grad);
  const std::vector<double> seconds = times_of(plan);
  for (const Report& report : {make_report(plan), make_report(plan, {.seconds = seconds})}) {
    double steps = 0;
    double operations = 0;
    for (const ReportStep& step : report.steps) {
      steps += report.share(step);
    }
    for (const ReportOperation& operation : report.operations) {
      operations += report.share(operation);
    }
    // One rounding per quotient and per sum.
    const double bound =
        2.0 * static_cast<double>(report.steps.size()) * std::numeric_limits<double>::epsilon();
    EXPECT_NEAR(steps, 1, bound);
    EXPECT_NEAR(operations, 1, bound);
  }
}

TEST(Report, RefusesTimesOfAnotherPlan) {
  const Program<double> program(small_graph());
  const double seconds[] = {1.0};
  try {
    make_report(program.plan(), {.seconds = seconds});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::shape_mismatch);
  }
}

TEST(Explain, TextHasStepsGroupsPlacesAndTotals) {
  const Program<double> program(small_graph(), in_pieces());
  EXPECT_EQ(
      program.explain(),
      "run\n"
      "\n"
      "arguments and constants\n"
      "  %0  input      x  f64 (4, 6)  192 B\n"
      "  %1  parameter  w  f64 (6,)     48 B\n"
      "\n"
      "steps\n"
      "  node  operation  reads  result      layout  kernel   bytes  place       multiply-adds\n"
      "+ 4 pieces of 1 sample, 2 workers of 64 B @192\n"
      "| %2    chain      x w    f64 (4, 6)  -       mul+exp  192 B  worker @0               -\n"
      "| %3    softmax    %2     f64 (4, 6)  -       -        192 B  @0                      -\n"
      "  %4    scale      w      f64 (6,)    -       -         48 B  argument 1              -\n"
      "  %6    sum_to     %3     f64 (1,)    -       -          8 B  output 0                -\n"
      "\n"
      "outputs\n"
      "  total  %6  ()\n"
      "  w      %4  (6,)  over %1\n"
      "\n"
      "operation  steps  multiply-adds  share\n"
      "chain          1              -  0.0 %\n"
      "softmax        1              -  0.0 %\n"
      "scale          1              -  0.0 %\n"
      "sum_to         1              -  0.0 %\n"
      "\n"
      "steps          4 (1 group)\n"
      "multiply-adds  0\n"
      "arena          320 bytes (320 B, 384 B without reuse)\n"
      "constants      0 bytes\n");
}

TEST(Explain, GraphvizDrawsAFramePerGroupAndAnEdgePerRead) {
  const Program<double> program(small_graph(), in_pieces());
  EXPECT_EQ(program.explain(ProgramForm::run, ExplainFormat::dot),
            "digraph plan {\n"
            "  label=\"run\"; labelloc=t; fontname=\"Helvetica\";\n"
            "  node [shape=box, style=filled, fillcolor=\"#ffffff\", fontname=\"Helvetica\", "
            "fontsize=11];\n"
            "  edge [fontname=\"Helvetica\", fontsize=9, color=\"#555555\"];\n"
            "  n0 [label=\"x\\n"
            "f64 (4, 6)\", shape=oval, fillcolor=\"#cfe5ff\"];\n"
            "  n1 [label=\"w\\n"
            "f64 (6,)\", shape=cylinder, fillcolor=\"#ffe3b8\"];\n"
            "  subgraph cluster_0 {\n"
            "    label=\"4 pieces of 1 sample, 2 workers of 64 B\"; style=\"rounded,filled\"; "
            "color=\"#3a7d44\"; fillcolor=\"#e7f4e4\";\n"
            "    n2 [label=\"%2 chain\\nmul+exp\"];\n"
            "    n3 [label=\"%3 softmax\"];\n"
            "  }\n"
            "  n4 [label=\"%4 scale\"];\n"
            "  n6 [label=\"%6 sum_to\"];\n"
            "  n0 -> n2 [label=\"(4, 6)\"];\n"
            "  n1 -> n2 [label=\"(6,)\"];\n"
            "  n2 -> n3 [label=\"(4, 6)\"];\n"
            "  n1 -> n4 [label=\"(6,)\"];\n"
            "  n3 -> n6 [label=\"(24,)\"];\n"
            "  output0 [label=\"total\\n"
            "()\", shape=box, peripheries=2, fillcolor=\"#e2d8f3\"];\n"
            "  n6 -> output0 [label=\"()\"];\n"
            "  n4 -> n1 [label=\"replaces\", style=dotted, constraint=false];\n"
            "}\n");
}

TEST(Explain, APageHasARowForEveryStepAndValue) {
  const Program<double> program = network();
  const Plan& plan = program.plan(ProgramForm::value_and_grad);
  const Report report = make_report(plan);
  const std::string page = explain(report, ExplainFormat::html);
  for (const Node& node : plan.graph().nodes()) {
    const auto id = static_cast<NodeId>(&node - plan.graph().nodes().data());
    EXPECT_EQ(count_of(page, "id=\"n" + std::to_string(id) + "\""),
              node.kind != NodeKind::operation || node.runs() ? 1u : 0u)
        << id;
  }
  EXPECT_EQ(count_of(page, "class=\"buffer "), report.buffers.size());
  EXPECT_EQ(count_of(page, "<tr class=\"group\">"), report.groups.size());
}

TEST(Explain, NamesCannotBreakAPageOrADrawing) {
  Builder<double> builder;
  builder.output(exp(builder.input({3}, "<b>&\"\\")), "\"</title>");
  const Program<double> program(builder.graph());
  const ReportOptions options{.title = "<script>"};
  const std::string page = program.explain(ProgramForm::run, ExplainFormat::html, options);
  EXPECT_FALSE(contains(page, "<script>"));
  EXPECT_TRUE(contains(page, "&lt;b&gt;&amp;&quot;\\"));
  const std::string drawing = program.explain(ProgramForm::run, ExplainFormat::dot, options);
  EXPECT_TRUE(contains(drawing, "label=\"<b>&\\\"\\\\\\nf64 (3,)\""));
}

TEST(Explain, AProfileAddsTimes) {
  const Program<double> program = network();
  const Plan& plan = program.plan(ProgramForm::value_and_grad);
  const std::vector<double> seconds = times_of(plan);
  for (const ExplainFormat format :
       {ExplainFormat::text, ExplainFormat::dot, ExplainFormat::html}) {
    EXPECT_FALSE(contains(explain(make_report(plan), format), "2.00 s"));
    EXPECT_TRUE(contains(explain(make_report(plan, {.seconds = seconds}), format), "2.00 s"));
  }
}

TEST(Explain, AGraphWithoutStepsIsExplainedToo) {
  Builder<double> builder;
  builder.output(builder.input({2}, "x"), "y");
  const Program<double> program(builder.graph());
  EXPECT_TRUE(contains(program.explain(), "steps          0 (0 groups)"));
  EXPECT_TRUE(contains(program.explain(ProgramForm::run, ExplainFormat::html), "</html>"));
}

}  // namespace
}  // namespace fenestra::graph
