// The convolution of operands whose channels lie in blocks, as an operation of a graph. It comes
// into being when a program is laid out, after all derivatives have been taken, so it has no rules.
#include <fenestra/graph/operation.hpp>
#include <fenestra/ops/conv/conv.hpp>
#include <fenestra/ops/conv/kernels.hpp>
#ifdef FENESTRA_HAVE_ONEDNN
#include <fenestra/ops/conv/kernels_onednn.hpp>
#endif

namespace fenestra {

#ifdef FENESTRA_HAVE_ONEDNN

namespace {

class BlockedConvKernel final : public graph::Kernel {
 public:
  BlockedConvKernel(const ConvGeometry& g, bool has_bias, const detail::ConvBlocks& blocks)
      : problem_{ConvDirection::forward, g}, has_bias_(has_bias), blocks_(blocks) {}

  std::string_view name() const override { return "conv_f32_onednn"; }
  void run(const graph::Call& call) const override {
    const auto* in = static_cast<const Tensor<float>*>(call.in);
    detail::run_conv_onednn_in_blocks(problem_,
                                      blocks_,
                                      {in[0].data(),
                                       in[1].data(),
                                       has_bias_ ? in[2].data() : nullptr,
                                       static_cast<float*>(call.out)});
  }

 private:
  ConvProblem problem_;
  bool has_bias_;
  detail::ConvBlocks blocks_;
};

class BlockedConv final : public graph::Operation {
 public:
  BlockedConv(const ConvGeometry& g, bool has_bias, const detail::ConvBlocks& blocks)
      : g_(g), has_bias_(has_bias), blocks_(blocks) {}

  std::string_view name() const override { return ConvPrimitive::name; }
  std::string attributes() const override {
    const auto text = [](const char* what, Index block) {
      return block > 0 ? std::string(", ") + what + " in blocks of " + std::to_string(block)
                       : std::string();
    };
    return to_string(g_) + text("x", blocks_.lhs) + text("y", blocks_.out);
  }
  std::string layout() const override {
    const auto text = [&](Index block) {
      return block > 0 ? "blocks of " + std::to_string(block) : std::string(layout_name(g_.layout));
    };
    return blocks_.lhs == blocks_.out ? text(blocks_.out)
                                      : text(blocks_.lhs) + " to " + text(blocks_.out);
  }
  bool equals(const Operation& other) const override {
    const auto* same = dynamic_cast<const BlockedConv*>(&other);
    return same != nullptr && same->g_ == g_ && same->has_bias_ == has_bias_ &&
           same->blocks_ == blocks_;
  }
  graph::DataType result_type() const override { return graph::DataType::f32; }
  Shape result_shape(std::span<const Shape>) const override { return g_.y_shape(); }
  bool needs(int, int) const override { return false; }
  std::optional<Split> split(std::span<const Shape> in) const override {
    return conv_split(ConvDirection::forward, g_, in.size());
  }
  std::shared_ptr<const Operation> piece(Index count) const override {
    ConvGeometry some = g_;
    some.batch = count;
    return std::make_shared<const BlockedConv>(some, has_bias_, blocks_);
  }
  Index multiply_adds() const override { return g_.multiply_adds(); }
  std::unique_ptr<const graph::Kernel> prepare() const override {
    return std::make_unique<const BlockedConvKernel>(g_, has_bias_, blocks_);
  }
  void vjp(const std::shared_ptr<graph::Graph>&,
           graph::NodeId,
           graph::NodeId,
           const std::vector<bool>&,
           std::vector<graph::NodeId>&) const override {
    throw_no_rule();
  }
  graph::NodeId jvp(const std::shared_ptr<graph::Graph>&,
                    graph::NodeId,
                    const std::vector<graph::NodeId>&) const override {
    throw_no_rule();
  }
  graph::NodeId sum(const std::shared_ptr<graph::Graph>&,
                    graph::NodeId,
                    graph::NodeId) const override {
    throw_no_rule();
  }

 private:
  [[noreturn]] static void throw_no_rule() {
    throw Error(
        ErrorCode::unknown_operator,
        "conv: a graph whose layouts are chosen is not differentiated\n  fix: differentiate "
        "first");
  }

  ConvGeometry g_;
  bool has_bias_;
  detail::ConvBlocks blocks_;
};

}  // namespace

Index conv_block(ConvDirection direction, const ConvGeometry& g) {
  const ConvProblem problem{direction, g};
  if (direction != ConvDirection::forward ||
      kernels::choose(conv_candidates<float>(), problem).run != detail::run_conv_onednn) {
    return 0;
  }
  return detail::onednn_block(problem);
}

std::shared_ptr<const graph::Operation> conv_in_blocks(const ConvGeometry& g,
                                                       bool has_bias,
                                                       Index x_block,
                                                       Index y_block) {
  return std::make_shared<const BlockedConv>(
      g, has_bias, detail::ConvBlocks{.lhs = x_block, .out = y_block});
}

#else

Index conv_block(ConvDirection, const ConvGeometry&) { return 0; }

std::shared_ptr<const graph::Operation> conv_in_blocks(const ConvGeometry&, bool, Index, Index) {
  return nullptr;
}

#endif

}  // namespace fenestra
