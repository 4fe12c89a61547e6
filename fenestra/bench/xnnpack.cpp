// XNNPACK called directly, in f32: convolutions of two dimensions, channels last, with constant
// weights. It has no gradients and no other layout. Without the library nothing is timed.
#include <fenestra/bench/work.hpp>

#ifdef FENESTRA_HAVE_XNNPACK

#include <fenestra/ops/conv/op.hpp>

#include <pthreadpool.h>
#include <xnnpack.h>

#include <limits>
#include <memory>
#include <vector>

namespace fenestra::bench {

namespace {

/// Input channels of the widest vectors may be read behind the end.
constexpr std::size_t kExtra = XNN_EXTRA_BYTES / sizeof(float);

/// An operator with everything it works on; frees in the reverse order.
struct Operator {
  std::vector<float> x, w, y;
  std::unique_ptr<pthreadpool, decltype(&pthreadpool_destroy)> threads{nullptr,
                                                                       &pthreadpool_destroy};
  std::unique_ptr<xnn_operator, decltype(&xnn_delete_operator)> made{nullptr, &xnn_delete_operator};

  Operator(const ConvGeometry& g, int thread_count)
      : x(static_cast<std::size_t>(g.x_shape().elements().value_or(0)) + kExtra, 1.0F),
        w(static_cast<std::size_t>(g.w_shape().elements().value_or(0)) + kExtra, 1.0F),
        y(static_cast<std::size_t>(g.y_shape().elements().value_or(0)) + kExtra),
        threads(pthreadpool_create(static_cast<std::size_t>(thread_count)), &pthreadpool_destroy) {}
};

std::uint32_t small(Index number) { return static_cast<std::uint32_t>(number); }
std::size_t size(Index number) { return static_cast<std::size_t>(number); }

/// Null where XNNPACK does not take the problem.
std::shared_ptr<Operator> make_conv(const ConvGeometry& g, int threads) {
  const auto made = std::make_shared<Operator>(g, threads);
  const WindowAxis& rows = g.windows[0];
  const WindowAxis& columns = g.windows[1];
  // The weights are all ones: whether taps or channels come first does not matter to their time.
  xnn_operator_t result = nullptr;
  constexpr float kAny = std::numeric_limits<float>::infinity();
  if (xnn_create_convolution2d_nhwc_f32(small(rows.pad_low),
                                        small(columns.pad_high),
                                        small(rows.pad_high),
                                        small(columns.pad_low),
                                        small(rows.kernel),
                                        small(columns.kernel),
                                        small(rows.stride),
                                        small(columns.stride),
                                        small(rows.dilation),
                                        small(columns.dilation),
                                        small(g.groups),
                                        size(g.group_in()),
                                        size(g.group_out()),
                                        size(g.in_channels),
                                        size(g.out_channels),
                                        made->w.data(),
                                        nullptr,
                                        -kAny,
                                        kAny,
                                        0,
                                        &result) != xnn_status_success) {
    return nullptr;
  }
  made->made.reset(result);
  return xnn_setup_convolution2d_nhwc_f32(result,
                                          size(g.batch),
                                          size(rows.in),
                                          size(columns.in),
                                          made->x.data(),
                                          made->y.data(),
                                          made->threads.get()) == xnn_status_success
             ? made
             : nullptr;
}

}  // namespace

std::function<void()> make_xnnpack(const Case& what,
                                   char direction,
                                   const std::string& problem,
                                   int threads) {
  if (what.op != Conv::name || direction != 'P' || what.is_double() || !has_xnnpack()) {
    return {};
  }
  const ConvGeometry g = Conv::parse(problem);
  if (g.rank() != 2 || g.layout != Layout::channels_last) {
    return {};
  }
  const std::shared_ptr<Operator> made = make_conv(g, threads);
  if (!made) {
    return {};
  }
  return [made] { xnn_run_operator(made->made.get(), made->threads.get()); };
}

bool has_xnnpack() {
  static const bool ready = xnn_initialize(nullptr) == xnn_status_success;
  return ready;
}

}  // namespace fenestra::bench

#else

namespace fenestra::bench {

std::function<void()> make_xnnpack(const Case&, char, const std::string&, int) { return {}; }

bool has_xnnpack() { return false; }

}  // namespace fenestra::bench

#endif  // FENESTRA_HAVE_XNNPACK
