// Average pooling and its adjoint on vectors.
//
// Forward, each source row is summed over its own taps once, then the summed rows of a window are,
// then one division. The adjoint is the same with windows and cells exchanged: y_bar is summed over
// the windows of each cell along the row, then across rows; where all windows have one divisor the
// sum is divided, else every share is. Short rows are in planes.cpp.
#include <fenestra/kernels/simd.hpp>

#include <fenestra/ops/avg_pool/divisors.hpp>
#include <fenestra/ops/avg_pool/kernels.hpp>
#include <fenestra/ops/avg_pool/planes.hpp>
#include <fenestra/ops/avg_pool/spec.hpp>
#include <fenestra/ops/pool_links.hpp>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fenestra/ops/avg_pool/kernels.cpp"
#include <hwy/foreach_target.h>
//
#include <fenestra/ops/pool_sums-inl.hpp>
#include <hwy/highway.h>

#ifndef FENESTRA_AVG_POOL_CALL
#define FENESTRA_AVG_POOL_CALL
namespace fenestra::pooling {

template <class T>
struct AvgCall {
  Plan plan;
  Tiling tiling;
  Divisors divisors;
  AvgPoolArguments<T> args;
};

/// Numbers of a prepared row: of windows, or of the cells of as many steps.
template <class T>
Index avg_run(const Plan& plan, Index columns) {
  return columns * (plan.to_cells ? plan.last().stride : 1) * plan.inner + kSlack;
}

}  // namespace fenestra::pooling
#endif  // FENESTRA_AVG_POOL_CALL

HWY_BEFORE_NAMESPACE();
namespace fenestra::pooling {
namespace HWY_NAMESPACE {

struct Plain {
  template <class D, class V>
  HWY_INLINE V operator()(D, V v) const {
    return v;
  }
};

/// Divides a sum by the divisor of its window.
template <class T>
class Divide {
 public:
  explicit Divide(const AvgCall<T>& call)
      : call_(&call), divisor_(static_cast<T>(call.divisors.uniform)) {}

  void carve(Carver& carver, Index columns) {
    table_ = is_uniform() ? nullptr : carver.take<T>(columns * call_->plan.inner + kSlack);
  }
  void start(Columns columns) {
    const Index inner = call_->plan.inner;
    for (Index o = columns.begin; !is_uniform() && o < columns.end; ++o) {
      fill(table_ + (o - columns.begin) * inner,
           inner,
           static_cast<T>(call_->divisors.of_column(call_->plan, o)));
    }
    if (!is_uniform()) {
      fill(table_ + columns.count() * inner, kSlack, T(1));
    }
  }
  void row(Index row) {
    if (!is_uniform()) {
      divisor_ = static_cast<T>(call_->divisors.of_row(call_->plan, row));
    }
  }
  void position(Index row, Index column) {
    if (!is_uniform()) {
      divisor_ = static_cast<T>(call_->divisors.of_row(call_->plan, row) *
                                call_->divisors.of_column(call_->plan, column));
    }
    table_ = nullptr;
  }
  template <class D, class V>
  HWY_INLINE V operator()(D d, V sum, Index i) const {
    const auto divisor = hn::Set(d, divisor_);
    return table_ == nullptr ? hn::Div(sum, divisor)
                             : hn::Div(sum, hn::Mul(divisor, hn::LoadU(d, table_ + i)));
  }

 private:
  bool is_uniform() const { return call_->divisors.uniform != 0; }

  const AvgCall<T>* call_;
  T divisor_;
  T* table_ = nullptr;
};

/// The tiles of the adjoint: a prepared row is a row of y_bar spread over the cells of the block.
template <class T>
class AvgSpread {
 public:
  explicit AvgSpread(const AvgCall<T>& call)
      : call_(call),
        plan_(call.plan),
        a_(call.plan.last()),
        inner_(call.plan.inner),
        run_(avg_run<T>(call.plan, call.tiling.columns_per_block)),
        uniform_(call.divisors.uniform != 0) {}

  Index slot_size() const { return run_; }
  void carve(Carver& carver) {
    shares_ = carver.take<T>(uniform_ ? 0 : a_.out * inner_ + kSlack);
    divisors_ = carver.take<T>(uniform_ ? 0 : a_.out);
    rows_ = carver.take<const T*>(most_row_links(plan_));
    const Index cells = call_.tiling.columns_per_block * a_.stride;
    cell_links_ = carver.take<CellLink>(cells * most_links(a_, true, false));
  }
  void start(Columns columns) {
    columns_ = columns;
    cells_ = {std::max<Index>(columns.begin * a_.stride - a_.pad_low, 0),
              std::min(columns.end * a_.stride - a_.pad_low, a_.in)};
    inside_ = inside_cells(a_, columns);
    direct_ = (a_.stride == 1 || (a_.stride == 2 && inner_ == 1 && a_.kernel > 1)) &&
              inside_.count() * inner_ >= lanes(Wide<T>());
    cell_link_count_ = 0;
    if (direct_) {
      cell_link_count_ =
          list_cell_links(a_, columns.begin, columns.begin + inside_.begin, cell_links_);
      cell_link_count_ += list_cell_links(
          a_, columns.begin + inside_.end, columns.end, cell_links_ + cell_link_count_);
    }
    for (Index o = 0; !uniform_ && o < a_.out; ++o) {
      divisors_[o] = static_cast<T>(call_.divisors.of_column(plan_, o));
    }
  }
  void prepare(T* slot, Index plane, Index source_row) {
    const T* y_bar =
        call_.args.in + plane * plan_.source_plane_size() + source_row * plan_.source_row_size();
    if (!uniform_) {
      const T outer = static_cast<T>(call_.divisors.of_row(plan_, source_row));
      for (Index o = 0; o < a_.out; ++o) {
        for (Index c = 0; c < inner_; ++c) {
          shares_[o * inner_ + c] = y_bar[o * inner_ + c] / (outer * divisors_[o]);
        }
      }
      y_bar = shares_;
    }
    if (!direct_) {
      spread(y_bar, slot);
      return;
    }
    // The cell of phase 0 at the first step of the block, in the slot.
    T* to = slot + (columns_.begin * a_.stride - a_.pad_low - cells_.begin) * inner_;
    const Wide<T> d;
    const Index from = inside_.begin * inner_;
    const T* at = y_bar + (columns_.begin - last_step(a_)) * inner_ + from;
    if (a_.stride == 1) {
      for_exact(d, inside_.count() * inner_, [&](Index i, Index) HWY_ATTR {
        hn::StoreU(windows(d, at + i, 0), d, to + from + i);
      });
    } else {
      for_exact(d, inside_.count(), [&](Index i, Index) HWY_ATTR {
        hn::StoreInterleaved2(windows(d, at + i, 0), windows(d, at + i, 1), d, to + 2 * (from + i));
      });
    }
    ends(y_bar, slot);
  }
  void pad(T*) const {}
  void emit(const SlotLink* links, Index count, const T* slots, Index plane, Index dest_row) const {
    T* x_bar = call_.args.out + plane * plan_.dest_plane_size() + dest_row * plan_.dest_row_size() +
               cells_.begin * inner_;
    const Index n = cells_.count() * inner_;
    if (count == 0) {
      fill(x_bar, n, T(0));
      return;
    }
    for (Index l = 0; l < count; ++l) {
      rows_[l] = slots + links[l].slot * run_;
    }
    switch (count) {
      case 1: combine<1>(1, n, x_bar); break;
      case 2: combine<2>(2, n, x_bar); break;
      case 3: combine<3>(3, n, x_bar); break;
      default: combine<0>(count, n, x_bar);
    }
  }

 private:
  /// The sum over the windows of cells of one phase; `at` is the window of the last tap's step.
  template <class D>
  HWY_INLINE hn::Vec<D> windows(D d, const T* at, Index phase) const {
    auto sum = hn::Zero(d);
    for (Index t = a_.kernel - 1; t >= 0; --t) {
      if (a_.stride == 1 || tap_parity(t) == phase) {
        sum = hn::Add(sum, hn::LoadU(d, at + (last_step(a_) - tap_step(a_, t)) * inner_));
      }
    }
    return sum;
  }
  Index tap_parity(Index t) const { return (t * a_.dilation) & 1; }

  /// The cells at the ends of the block, each from the windows that see it.
  void ends(const T* y_bar, T* slot) const {
    clear(slot, columns_.begin, columns_.begin + inside_.begin);
    clear(slot, columns_.begin + inside_.end, columns_.end);
    for (Index k = 0; k < cell_link_count_; ++k) {
      const CellLink& link = cell_links_[k];
      T* to = slot + (link.cell - cells_.begin) * inner_;
      for (Index c = 0; c < inner_; ++c) {
        to[c] += y_bar[link.window * inner_ + c];
      }
    }
  }
  void clear(T* slot, Index begin, Index end) const {
    const Index first = std::max<Index>(begin * a_.stride - a_.pad_low, 0);
    const Index last = std::min(end * a_.stride - a_.pad_low, a_.in);
    fill(slot + (first - cells_.begin) * inner_, (last - first) * inner_, T(0));
  }
  /// All cells of the block, from window to window.
  void spread(const T* y_bar, T* slot) const {
    fill(slot, cells_.count() * inner_, T(0));
    const Index first = std::max<Index>(columns_.begin - last_step(a_), 0);
    const Index last = std::min(columns_.end, a_.out);
    for (Index o = first; o < last; ++o) {
      const Window window = a_.window(o);
      for (Index t = 0; t < a_.kernel; ++t) {
        const Index cell = window.cell(t);
        if (cell >= cells_.begin && cell < cells_.end) {
          T* to = slot + (cell - cells_.begin) * inner_;
          for (Index c = 0; c < inner_; ++c) {
            to[c] += y_bar[o * inner_ + c];
          }
        }
      }
    }
  }
  template <int kRows>
  HWY_INLINE void combine(Index rows, Index n, T* x_bar) const {
    const Wide<T> d;
    const T* const* from = rows_;
    const auto divisor = hn::Set(d, static_cast<T>(call_.divisors.uniform));
    const bool divides = uniform_ && call_.divisors.uniform != 1;
    for_padded(d, n, [&](Index i, Index part) HWY_ATTR {
      auto sum = hn::LoadU(d, from[0] + i);
      for (Index l = 1; l < (kRows > 0 ? kRows : rows); ++l) {
        sum = hn::Add(sum, hn::LoadU(d, from[l] + i));
      }
      store_part(d, divides ? hn::Div(sum, divisor) : sum, x_bar + i, part);
    });
  }

  const AvgCall<T>& call_;
  const Plan& plan_;
  const WindowAxis a_;
  const Index inner_;
  const Index run_;
  const bool uniform_;
  Columns columns_;
  Columns cells_;
  Columns inside_;
  bool direct_ = false;
  T* shares_ = nullptr;
  T* divisors_ = nullptr;
  const T** rows_ = nullptr;
  CellLink* cell_links_ = nullptr;
  Index cell_link_count_ = 0;
};

/// Cells one by one: the sum of the shares of their windows.
template <class D, class T>
struct SharePositions {
  const AvgCall<T>& call;

  template <int kVectors>
  HWY_INLINE void run(const Entry* entries, Index count, Index source, Index dest) const {
    const D d;
    const Divisors& divisors = call.divisors;
    hn::Vec<D> sum[kVectors];
    FENESTRA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      sum[v] = hn::Zero(d);
    }
    for (Index e = 0; e < count; ++e) {
      const T* from = call.args.in + source + entries[e].offset;
      const auto divisor = hn::Set(
          d,
          divisors.uniform != 0 ? T(1)
                                : static_cast<T>(divisors.of_row(call.plan, entries[e].row) *
                                                 divisors.of_column(call.plan, entries[e].column)));
      FENESTRA_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        const auto y_bar = hn::LoadU(d, from + v * lanes(d));
        sum[v] = hn::Add(sum[v], divisors.uniform != 0 ? y_bar : hn::Div(y_bar, divisor));
      }
    }
    const auto all = hn::Set(d, static_cast<T>(divisors.uniform));
    FENESTRA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(divisors.uniform != 0 ? hn::Div(sum[v], all) : sum[v],
                 d,
                 call.args.out + dest + v * lanes(d));
    }
  }
  void operator()(const Entry* entries, Index count, Index plane, Index end_plane, Index at) const {
    for_position(D(), call.plan, plane, end_plane, at, *this, entries, count);
  }
};

template <class T>
void avg_rows(const AvgCall<T>& call, Index begin, Index end) {
  if (call.plan.to_cells) {
    AvgSpread<T> op(call);
    run_tiles<T>(call.plan, call.tiling, op, begin, end);
  } else {
    SumForward<T, Plain, Divide<T>> op(
        call.plan, call.tiling, call.args.in, call.args.out, Plain(), Divide<T>(call));
    run_tiles<T>(call.plan, call.tiling, op, begin, end);
  }
}

template <class D, class T>
void avg_positions(const AvgCall<T>& call, Index planes_per_block, Index begin, Index end) {
  if (call.plan.to_cells) {
    run_positions(call.plan, planes_per_block, begin, end, SharePositions<D, T>{call});
    return;
  }
  Divide<T> divide(call);
  run_positions(call.plan,
                planes_per_block,
                begin,
                end,
                SumPositions<D, T, Plain, Divide<T>>{
                    call.plan, call.args.in, call.args.out, Plain(), divide});
}

/// Planes that are one window each: all cells count, unless the divisor is given.
template <class T>
void avg_whole(const AvgCall<T>& call, Index begin, Index end) {
  if (!call.plan.to_cells) {
    sum_whole(call.plan.source_plane_size(),
              call.args.in,
              call.args.out,
              Plain(),
              Divide<T>(call),
              begin,
              end);
    return;
  }
  const Index n = call.plan.dest_plane_size();
  for (Index plane = begin; plane < end; ++plane) {
    fill(call.args.out + plane * n, n, call.args.in[plane] / static_cast<T>(call.divisors.uniform));
  }
}

void avg_rows_f32(const AvgCall<float>& c, Index b, Index e) { avg_rows(c, b, e); }
void avg_rows_f64(const AvgCall<double>& c, Index b, Index e) { avg_rows(c, b, e); }
void avg_whole_f32(const AvgCall<float>& c, Index b, Index e) { avg_whole(c, b, e); }
void avg_whole_f64(const AvgCall<double>& c, Index b, Index e) { avg_whole(c, b, e); }
void avg_channels_f32(const AvgCall<float>& c, Index b, Index e) {
  avg_positions<Wide<float>>(c, 1, b, e);
}
void avg_channels_f64(const AvgCall<double>& c, Index b, Index e) {
  avg_positions<Wide<double>>(c, 1, b, e);
}
void avg_generic_f32(const AvgCall<float>& c, Index b, Index e) {
  avg_positions<Single<float>>(c, kGenericPlanes, b, e);
}
void avg_generic_f64(const AvgCall<double>& c, Index b, Index e) {
  avg_positions<Single<double>>(c, kGenericPlanes, b, e);
}

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::pooling
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fenestra {
namespace pooling {

HWY_EXPORT(avg_rows_f32);
HWY_EXPORT(avg_rows_f64);
HWY_EXPORT(avg_whole_f32);
HWY_EXPORT(avg_whole_f64);
HWY_EXPORT(avg_channels_f32);
HWY_EXPORT(avg_channels_f64);
HWY_EXPORT(avg_generic_f32);
HWY_EXPORT(avg_generic_f64);

namespace {

/// The best instruction set of this machine.
void run_rows_on(const AvgCall<float>& call, Index begin, Index end) {
  HWY_DYNAMIC_DISPATCH(avg_rows_f32)(call, begin, end);
}
void run_rows_on(const AvgCall<double>& call, Index begin, Index end) {
  HWY_DYNAMIC_DISPATCH(avg_rows_f64)(call, begin, end);
}
void run_whole_on(const AvgCall<float>& call, Index begin, Index end) {
  HWY_DYNAMIC_DISPATCH(avg_whole_f32)(call, begin, end);
}
void run_whole_on(const AvgCall<double>& call, Index begin, Index end) {
  HWY_DYNAMIC_DISPATCH(avg_whole_f64)(call, begin, end);
}
void run_channels_on(const AvgCall<float>& call, Index begin, Index end) {
  HWY_DYNAMIC_DISPATCH(avg_channels_f32)(call, begin, end);
}
void run_channels_on(const AvgCall<double>& call, Index begin, Index end) {
  HWY_DYNAMIC_DISPATCH(avg_channels_f64)(call, begin, end);
}
void run_generic_on(const AvgCall<float>& call, Index begin, Index end) {
  HWY_DYNAMIC_DISPATCH(avg_generic_f32)(call, begin, end);
}
void run_generic_on(const AvgCall<double>& call, Index begin, Index end) {
  HWY_DYNAMIC_DISPATCH(avg_generic_f64)(call, begin, end);
}

template <class T>
AvgCall<T> make_call(const AvgPoolProblem& problem, const AvgPoolArguments<T>& args) {
  const Plan plan(problem.geometry.pool, problem.direction == AvgPoolDirection::input_grad);
  return {plan, Tiling{}, Divisors(plan, problem.geometry), args};
}

const char* refuse_whole(const AvgPoolProblem& problem) {
  return is_whole(problem.geometry.pool) ? nullptr
                                         : "needs channels first and one window per plane";
}

const char* refuse_channels(const AvgPoolProblem& problem) {
  const PoolGeometry& g = problem.geometry.pool;
  return g.layout == Layout::channels_last && g.channels >= kFewChannels
             ? nullptr
             : "needs channels last and at least 32 channels";
}

const char* refuse_rows(const AvgPoolProblem& problem) {
  return Plan(problem.geometry.pool, false).refuse_rows();
}

const char* accept(const AvgPoolProblem&) { return nullptr; }

template <class T>
void run_rows(const AvgPoolProblem& problem, const AvgPoolArguments<T>& args) {
  AvgCall<T> call = make_call(problem, args);
  call.tiling = make_tiling(call.plan, [&](Index columns) {
    return avg_run<T>(call.plan, columns) * static_cast<Index>(sizeof(T));
  });
  for_tiles(call.plan, call.tiling, [&](Index b, Index e) { run_rows_on(call, b, e); });
}

template <class T>
void run_whole(const AvgPoolProblem& problem, const AvgPoolArguments<T>& args) {
  const AvgCall<T> call = make_call(problem, args);
  const Index size = std::max(call.plan.dest_plane_size(), call.plan.source_plane_size());
  parallel_for(call.plan.planes, grain_of(call.plan.planes, size), [&](Index b, Index e) {
    run_whole_on(call, b, e);
  });
}

template <class T>
void run_channels(const AvgPoolProblem& problem, const AvgPoolArguments<T>& args) {
  const AvgCall<T> call = make_call(problem, args);
  for_positions(call.plan, 1, [&](Index b, Index e) { run_channels_on(call, b, e); });
}

template <class T>
void run_generic(const AvgPoolProblem& problem, const AvgPoolArguments<T>& args) {
  const AvgCall<T> call = make_call(problem, args);
  for_positions(call.plan, kGenericPlanes, [&](Index b, Index e) { run_generic_on(call, b, e); });
}

/// The specification on copies of the arguments.
template <class T>
void run_spec(const AvgPoolProblem& problem, const AvgPoolArguments<T>& args) {
  const AvgPoolGeometry& g = problem.geometry;
  const bool forward = problem.direction == AvgPoolDirection::forward;
  const Shape shape = forward ? g.pool.x_shape() : g.pool.y_shape();
  const Tensor<T> in(shape,
                     std::span<const T>(args.in, static_cast<std::size_t>(*shape.elements())));
  const Tensor<T> out = forward ? spec::avg_pool(in, g) : spec::avg_pool_vjp(in, g);
  std::copy(out.data(), out.data() + out.size(), args.out);
}

template <class T>
constexpr bool kF32 = std::is_same_v<T, float>;

}  // namespace
}  // namespace pooling

template <class T>
std::span<const AvgPoolCandidate<T>> avg_pool_candidates() {
  using namespace pooling;
  static constexpr AvgPoolCandidate<T> candidates[] = {
      {kF32<T> ? "avg_pool_f32_whole" : "avg_pool_f64_whole", refuse_whole, run_whole<T>},
      {kF32<T> ? "avg_pool_f32_channels" : "avg_pool_f64_channels",
       refuse_channels,
       run_channels<T>},
      {kF32<T> ? "avg_pool_f32_planes" : "avg_pool_f64_planes",
       refuse_avg_planes<T>,
       run_avg_planes<T>},
      {kF32<T> ? "avg_pool_f32_rows" : "avg_pool_f64_rows", refuse_rows, run_rows<T>},
      {kF32<T> ? "avg_pool_f32_generic" : "avg_pool_f64_generic", accept, run_generic<T>},
      {kF32<T> ? "avg_pool_f32_spec" : "avg_pool_f64_spec", accept, run_spec<T>},
  };
  return candidates;
}

template std::span<const AvgPoolCandidate<float>> avg_pool_candidates<float>();
template std::span<const AvgPoolCandidate<double>> avg_pool_candidates<double>();

}  // namespace fenestra
#endif  // HWY_ONCE
