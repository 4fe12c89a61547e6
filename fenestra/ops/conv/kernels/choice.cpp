// The convolution family on float and double: chooses candidates and runs them.
#include <fenestra/kernels/isa.hpp>
#include <fenestra/ops/conv/candidates.hpp>
#include <fenestra/ops/conv/conv.hpp>
#include <fenestra/ops/conv/kernels/samples.hpp>
#include <fenestra/ops/elementwise/kernels/loops.hpp>

#include <algorithm>

namespace fenestra {

namespace {

/// The problem as kernels see it: what they keep and walk by stride and dilation is what windows
/// need.
ConvProblem for_kernels(ConvDirection direction, const ConvGeometry& g) {
  ConvProblem seen{direction, g};
  for (int axis = 0; axis < g.rank(); ++axis) {
    seen.geometry.windows.axes[axis] = g.windows[axis].simplified();
  }
  return seen;
}

/// Why only the specification takes a problem, or null. Kernels walk the extent that windows span
/// and keep tables by stride, which padding, strides and dilations can make far larger than what is
/// there to compute.
const char* refuse_sparse(const ConvGeometry& g) {
  constexpr Index kFactor = 16;
  constexpr Index kFree = 1024;
  constexpr Index kLongStride = 64;       // below, tables are small whatever the kernel
  constexpr Index kLongestStride = 4096;  // above, tables are never worth their memory
  const Index cells = g.in_channels * g.windows.in_cells();
  const Index products = g.out_channels * g.windows.out_cells() * g.group_in() * g.windows.taps();
  for (int axis = 0; axis < g.rank(); ++axis) {
    const WindowAxis& a = g.windows[axis];
    if (a.spanned(a.out) / kFactor > a.in + a.out + kFree) {
      return "windows span far more than the input";
    }
    if (a.stride >= kLongStride && a.stride / kFactor >= a.span() &&
        (products <= cells / 8 || a.stride >= kLongestStride)) {
      return "windows leave nearly all of the input out";
    }
  }
  return nullptr;
}

/// Fills what has no term in it, and says whether that was all.
template <class T>
bool is_done(ConvDirection direction, const ConvGeometry& g, T* out) {
  const bool has_terms = g.batch > 0;
  switch (direction) {
    case ConvDirection::forward: return !has_terms || g.out_channels == 0;
    case ConvDirection::input_grad: return !has_terms || g.in_channels == 0;
    case ConvDirection::weight_grad: break;
  }
  const Index weights = g.out_channels * g.group_in() * g.windows.taps();
  if (!has_terms) {
    std::fill_n(out, weights, T(0));
  }
  return !has_terms || weights == 0;
}

}  // namespace

template <KernelScalar T>
const ConvKernel<T>& choose_conv(ConvDirection direction, const ConvGeometry& g) {
  const ConvProblem seen = for_kernels(direction, g);
  const auto candidates = conv_candidates<T>();
  // A tile runs on the candidate of its whole, whatever it looks like by itself.
  const bool told = kernels::if_refused() == kernels::IfRefused::run;
  return told || refuse_sparse(seen.geometry) == nullptr ? kernels::choose(candidates, seen)
                                                         : candidates.back();
}

template <KernelScalar T>
void run_conv(const ConvKernel<T>& kernel,
              ConvDirection direction,
              const ConvGeometry& g,
              const T* lhs,
              const T* rhs,
              const T* bias,
              T* out) {
  if (!is_done(direction, g, out)) {
    kernel.run(for_kernels(direction, g), {lhs, rhs, bias, out});
  }
}

template <class T>
void ConvFinish<T>::run(T* first, Index count) const {
  const detail::ElementwiseLoops<T>& loops = detail::elementwise_loops<T>();
  if (epilogue_.has_sum()) {
    const detail::RunOperand<T> result{first, 1};
    const detail::RunOperand<T> residual{residual_ + (first - out_), 1};
    const bool result_first = epilogue_.sum == ConvEpilogue::Sum::result_first;
    loops.binary(BinaryFunction::add,
                 result_first ? result : residual,
                 result_first ? residual : result,
                 first,
                 count);
  }
  if (epilogue_.activation) {
    loops.unary(*epilogue_.activation, first, first, count);
  }
}

std::optional<Split> conv_split(ConvDirection direction,
                                const ConvGeometry& g,
                                std::size_t inputs) {
  if (!g.batched || direction == ConvDirection::weight_grad) {
    return std::nullopt;
  }
  constexpr Index kLeastCells = 256;
  const Index cells = sample_elements(g.x_shape()) + sample_elements(g.y_shape());
  const Index spatial = std::min(g.windows.in_cells(), g.windows.out_cells());
  Split split{std::vector<bool>(inputs, false)};
  split.in[0] = true;
  split.least = 1 + std::max(2 * g.w_shape().elements().value_or(0) / std::max<Index>(cells, 1),
                             (kLeastCells - 1) / std::max<Index>(spatial, 1));
  // In f64, whose vectors hold half as many, pieces of two vectors do no harm.
  const Index together = g.batch > 0 && refuse_sparse(g) == nullptr
                             ? detail::samples_at_once<float>(for_kernels(direction, g))
                             : 0;
  if (g.batch >= together) {
    split.least = std::max(split.least, together);
  }
  return split;
}

template class ConvFinish<float>;
template class ConvFinish<double>;

template <KernelScalar T>
PreparedConv<T>::PreparedConv(const ConvPrimitive& conv, const ConvEpilogue& epilogue)
    : conv_(conv),
      epilogue_(epilogue),
      kernel_(&choose_conv<T>(conv.direction, conv.g)),
      isa_(kernels::isa_name()) {
  if (kernel_->packed_elements != nullptr && conv.g.multiply_adds() > 0) {
    packed_elements_ =
        static_cast<std::size_t>(kernel_->packed_elements(for_kernels(conv.direction, conv.g)));
  }
}

template <KernelScalar T>
bool PreparedConv<T>::is_packed_here() const {
  return isa_ == kernels::isa_name();
}

template <KernelScalar T>
void PreparedConv<T>::pack_elements(const T* w, T* packed) const {
  if (is_packed_here()) {
    kernel_->pack(for_kernels(conv_.direction, conv_.g), {.rhs = w, .out = packed});
  }
}

template <KernelScalar T>
void PreparedConv<T>::compute(std::span<const Tensor<T>> in,
                              std::span<const Selection>,
                              T* out,
                              const SelectionBuffer&,
                              void*,
                              const T* packed) const {
  if (is_done(conv_.direction, conv_.g, out)) {
    return;
  }
  const ConvFinish<T> finish(epilogue_, epilogue_.has_sum() ? in.back().data() : nullptr, out);
  kernel_->run(for_kernels(conv_.direction, conv_.g),
               {.lhs = in[0].data(),
                .rhs = in[1].data(),
                .bias = conv_.has_bias ? in[2].data() : nullptr,
                .out = out,
                .packed = packed != nullptr && is_packed_here() ? packed : nullptr,
                .finish = epilogue_.is_empty() ? nullptr : &finish});
}

template class PreparedConv<float>;
template class PreparedConv<double>;

template const ConvKernel<float>& choose_conv(ConvDirection, const ConvGeometry&);
template const ConvKernel<double>& choose_conv(ConvDirection, const ConvGeometry&);
template void run_conv(const ConvKernel<float>&,
                       ConvDirection,
                       const ConvGeometry&,
                       const float*,
                       const float*,
                       const float*,
                       float*);
template void run_conv(const ConvKernel<double>&,
                       ConvDirection,
                       const ConvGeometry&,
                       const double*,
                       const double*,
                       const double*,
                       double*);

std::vector<KernelChoice> conv_kernels(const ConvGeometry& g) {
  std::vector<KernelChoice> choices;
  const auto list = [&](const auto& candidates, ConvDirection direction) {
    const ConvProblem seen = for_kernels(direction, g);
    const char* sparse = refuse_sparse(seen.geometry);
    kernels::for_each_candidate(candidates, seen, [&](const auto& candidate, const char* refusal) {
      const bool dense = sparse == nullptr || candidate.name == candidates.back().name;
      refusal = dense ? refusal : sparse;
      choices.push_back({std::string(ConvPrimitive::direction_name(direction)),
                         std::string(candidate.name),
                         refusal != nullptr ? refusal : "",
                         dense && candidate.can_run(seen)});
    });
  };
  for (const ConvDirection direction :
       {ConvDirection::forward, ConvDirection::input_grad, ConvDirection::weight_grad}) {
    list(conv_candidates<float>(), direction);
    list(conv_candidates<double>(), direction);
  }
  return choices;
}

}  // namespace fenestra
