// oneDNN's primitives for the three contractions, kept per geometry; see onednn.hpp.
//
// oneDNN's conventions that live here and nowhere else: dilation 0 is dense, groups are a leading
// axis of the weights, bias is an operand of the forward primitive only.
#include <fenestra/base/parallel.hpp>
#include <fenestra/kernels/scratch.hpp>
#include <fenestra/ops/conv/kernels/gemm.hpp>
#include <fenestra/ops/conv/kernels/onednn.hpp>

#include <dnnl.hpp>

#ifdef FENESTRA_HAVE_OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace fenestra::detail {

namespace {

using dnnl::memory;

// Samples are passed through blocked layouts in chunks of about this size, so that what a reorder
// wrote is still in the last-level cache when the convolution reads it.
constexpr Index kChunkBytes = 8 << 20;
// With at least this many channels on both sides the weight gradient is as fast on plain tensors as
// on blocked ones and needs no reorders: 256 @14 and 512 @7 1.2 to 1.8 times as fast, 128 @28
// equal, 64 @56 slower by a third.
constexpr Index kPlainWeightGradChannels = 128;

// oneDNN 2.6.3 gives other weight gradients than the definition on AVX-512 where the last axis has
// a stride, low padding of 15 or more and some 30 to 50 windows, as x=256x1x80 w=48x1x6 stride=3
// padding=15 dilation=3. 175,000 random problems found none outside; from half of that on it is
// refused.
constexpr Index kWrongPadding = 8;

/// Which operands oneDNN may lay out as it likes, at the price of a reorder.
enum class Freedom {
  none,     ///< everything stays plain
  weights,  ///< activations stay plain
  all,
};

/// Decided by a rule, not by timing, so that the same call gives the same bits in every run.
Freedom freedom(const ConvProblem& problem) {
  const ConvGeometry& g = problem.geometry;
  if (g.layout == Layout::channels_last && g.groups > 1) {
    return Freedom::weights;  // depthwise 96 @112: 3 to 4x faster than blocked with reorders
  }
  if (g.groups > 1) {
    return Freedom::all;
  }
  if (g.windows.taps() == 1) {
    return Freedom::none;  // 1x1 256 -> 64 @56: 1.2x faster than blocked with reorders
  }
  if (problem.direction == ConvDirection::weight_grad &&
      std::min(g.in_channels, g.out_channels) >= kPlainWeightGradChannels) {
    return Freedom::none;
  }
  return Freedom::all;
}

const dnnl::engine& cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

/// Dims and strides of one operand in oneDNN's order of axes.
struct Operand {
  memory::dims dims;
  memory::dims strides;

  memory::desc plain() const { return {dims, memory::data_type::f32, strides}; }
  memory::desc any() const { return {dims, memory::data_type::f32, memory::format_tag::any}; }
};

Operand activation(const ActivationMap& map, const Shape& spatial) {
  const bool last = map.layout == Layout::channels_last;
  Operand a{{map.batch, map.channels}, {map.channels * map.cells, last ? 1 : map.cells}};
  Index stride = map.cells * (last ? map.channels : 1);
  for (int axis = 0; axis < spatial.rank(); ++axis) {
    stride /= spatial[axis];
    a.dims.push_back(spatial[axis]);
    a.strides.push_back(stride);
  }
  return a;
}

Operand weights(const ConvGeometry& g) {
  const bool last = g.layout == Layout::channels_last;
  const Index taps = g.windows.taps();
  const Index out_stride = last ? 1 : g.group_in() * taps;
  const Index in_stride = last ? g.out_channels : taps;
  Operand w;
  if (g.groups > 1) {
    w = {{g.groups}, {g.group_out() * out_stride}};
  }
  w.dims.insert(w.dims.end(), {g.group_out(), g.group_in()});
  w.strides.insert(w.strides.end(), {out_stride, in_stride});
  Index stride = taps * (last ? g.group_in() * g.out_channels : 1);
  for (int axis = 0; axis < g.rank(); ++axis) {
    stride /= g.windows[axis].kernel;
    w.dims.push_back(g.windows[axis].kernel);
    w.strides.push_back(stride);
  }
  return w;
}

/// A primitive, the layouts it wants and the reorders from and to plain ones. Immutable, shared by
/// threads.
struct Plan {
  struct Slot {
    int argument = 0;
    memory::desc plain;
    memory::desc wanted;
    dnnl::reorder::primitive_desc description;
    dnnl::reorder reorder;
    bool copied() const { return plain != wanted; }
    std::size_t bytes() const { return copied() ? wanted.get_size() : 0; }
  };
  dnnl::primitive primitive;
  Slot lhs;
  Slot rhs;
  Slot out;
  memory::desc bias;
  bool has_bias = false;
  memory::desc scratchpad;
  Index samples = 0;

  void set(Slot& slot,
           int argument,
           const memory::desc& plain,
           const memory::desc& wanted,
           bool result) {
    slot.argument = argument;
    slot.plain = plain;
    slot.wanted = wanted;
    if (slot.copied()) {
      const memory::desc& from = result ? slot.wanted : slot.plain;
      const memory::desc& to = result ? slot.plain : slot.wanted;
      dnnl::primitive_attr attributes;
      attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
      slot.description = {cpu(), from, cpu(), to, attributes};
      slot.reorder = dnnl::reorder(slot.description);
      if (slot.description.scratchpad_desc().get_size() > scratchpad.get_size()) {
        scratchpad = slot.description.scratchpad_desc();
      }
    }
  }
};

Plan make_plan(const ConvProblem& problem, bool has_bias) {
  const ConvGeometry& g = problem.geometry;
  const Freedom free = freedom(problem);
  const Operand x = activation(g.x_map(), g.windows.in_shape());
  const Operand y = activation(g.y_map(), g.windows.out_shape());
  const Operand w = weights(g);
  const auto wanted = [&](const Operand& o, Freedom least) {
    return free >= least ? o.any() : o.plain();
  };
  const memory::desc x_desc = wanted(x, Freedom::all);
  const memory::desc y_desc = wanted(y, Freedom::all);
  const memory::desc w_desc = wanted(w, Freedom::weights);
  memory::dims strides, dilations, low, high;
  for (int axis = 0; axis < g.rank(); ++axis) {
    const WindowAxis& a = g.windows[axis];
    strides.push_back(a.stride);
    dilations.push_back(a.dilation - 1);
    low.push_back(a.pad_low);
    high.push_back(a.pad_high);
  }
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  constexpr auto kDirect = dnnl::algorithm::convolution_direct;
  Plan plan;
  plan.samples = g.batch;
  plan.has_bias = has_bias;
  plan.bias = {{g.out_channels}, memory::data_type::f32, memory::format_tag::x};
  const auto forward = [&](dnnl::prop_kind kind) {
    const auto d =
        has_bias
            ? dnnl::convolution_forward::desc(
                  kind, kDirect, x_desc, w_desc, plan.bias, y_desc, strides, dilations, low, high)
            : dnnl::convolution_forward::desc(
                  kind, kDirect, x_desc, w_desc, y_desc, strides, dilations, low, high);
    return dnnl::convolution_forward::primitive_desc(d, attributes, cpu());
  };
  switch (problem.direction) {
    case ConvDirection::forward: {
      const auto pd = forward(dnnl::prop_kind::forward_inference);
      plan.primitive = dnnl::convolution_forward(pd);
      plan.scratchpad = pd.scratchpad_desc();
      plan.set(plan.lhs, DNNL_ARG_SRC, x.plain(), pd.src_desc(), false);
      plan.set(plan.rhs, DNNL_ARG_WEIGHTS, w.plain(), pd.weights_desc(), false);
      plan.set(plan.out, DNNL_ARG_DST, y.plain(), pd.dst_desc(), true);
      break;
    }
    case ConvDirection::input_grad: {
      const dnnl::convolution_backward_data::primitive_desc pd(
          {kDirect, x_desc, w_desc, y_desc, strides, dilations, low, high},
          attributes,
          cpu(),
          forward(dnnl::prop_kind::forward_training));
      plan.primitive = dnnl::convolution_backward_data(pd);
      plan.scratchpad = pd.scratchpad_desc();
      plan.set(plan.lhs, DNNL_ARG_DIFF_DST, y.plain(), pd.diff_dst_desc(), false);
      plan.set(plan.rhs, DNNL_ARG_WEIGHTS, w.plain(), pd.weights_desc(), false);
      plan.set(plan.out, DNNL_ARG_DIFF_SRC, x.plain(), pd.diff_src_desc(), true);
      break;
    }
    case ConvDirection::weight_grad: {
      const dnnl::convolution_backward_weights::primitive_desc pd(
          {kDirect, x_desc, w_desc, y_desc, strides, dilations, low, high},
          attributes,
          cpu(),
          forward(dnnl::prop_kind::forward_training));
      plan.primitive = dnnl::convolution_backward_weights(pd);
      plan.scratchpad = pd.scratchpad_desc();
      plan.set(plan.lhs, DNNL_ARG_SRC, x.plain(), pd.src_desc(), false);
      plan.set(plan.rhs, DNNL_ARG_DIFF_DST, y.plain(), pd.diff_dst_desc(), false);
      plan.set(plan.out, DNNL_ARG_DIFF_WEIGHTS, w.plain(), pd.diff_weights_desc(), true);
      break;
    }
  }
  return plan;
}

/// The most recently used plans. Thread-safe: look-up and insertion under a mutex, plans immutable;
/// a plan that is dropped while it runs lives until its last user is done.
class PlanCache {
 public:
  struct Key {
    ConvProblem problem;
    bool has_bias = false;
    int threads = 1;  ///< oneDNN decides blocking by it
    bool operator==(const Key& o) const {
      return problem.direction == o.problem.direction && problem.geometry == o.problem.geometry &&
             has_bias == o.has_bias && threads == o.threads;
    }
  };

  std::shared_ptr<const Plan> get(const Key& key) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = index_.find(key); found != index_.end()) {
        order_.splice(order_.begin(), order_, found->second);
        return found->second->second;
      }
    }
    // Creation takes milliseconds; others go on meanwhile. Two threads may create the same plan.
    auto plan = std::make_shared<const Plan>(make_plan(key.problem, key.has_bias));
    const std::lock_guard lock(mutex_);
    if (const auto found = index_.find(key); found != index_.end()) {
      return found->second->second;
    }
    order_.emplace_front(key, plan);
    index_.emplace(key, order_.begin());
    if (order_.size() > kOnednnPlans) {
      index_.erase(order_.back().first);
      order_.pop_back();
    }
    return plan;
  }
  std::size_t size() {
    const std::lock_guard lock(mutex_);
    return order_.size();
  }

 private:
  struct Hash {
    std::size_t operator()(const Key& key) const {
      const std::size_t seed = hash_value(key.problem.geometry);
      return detail::hash_combine(
          seed, static_cast<Index>(key.problem.direction) * 2 + (key.has_bias ? 1 : 0));
    }
  };
  using Entry = std::pair<Key, std::shared_ptr<const Plan>>;
  std::mutex mutex_;
  std::list<Entry> order_;
  std::unordered_map<Key, std::list<Entry>::iterator, Hash> index_;
};

PlanCache& cache() {
  static PlanCache plans;
  return plans;
}

/// Lets oneDNN use as many threads as parallel_for would, in the calling thread only.
class TeamSize {
 public:
#ifdef FENESTRA_HAVE_OPENMP
  TeamSize() : before_(omp_get_max_threads()) { omp_set_num_threads(threads()); }
  ~TeamSize() { omp_set_num_threads(before_); }

 private:
  int before_;
#else
  TeamSize() = default;
#endif
 public:
  TeamSize(const TeamSize&) = delete;
  TeamSize& operator=(const TeamSize&) = delete;
};

/// Samples that pass at once: a divisor of the batch.
Index chunk_samples(const ConvProblem& problem) {
  const ConvGeometry& g = problem.geometry;
  if (problem.direction == ConvDirection::weight_grad || freedom(problem) != Freedom::all) {
    return g.batch;
  }
  const Index sample =
      (g.in_channels * g.windows.in_cells() + g.out_channels * g.windows.out_cells()) *
      static_cast<Index>(sizeof(float));
  Index chunk = std::min(g.batch, std::max<Index>(kChunkBytes / std::max<Index>(sample, 1), 1));
  while (g.batch % chunk != 0) {
    --chunk;
  }
  return chunk;
}

void execute(const Plan& plan, const ConvArguments<float>& arguments, Index chunks) {
  kernels::ScratchFrame frame;
  const auto take = [&](std::size_t bytes) {
    return frame.take<std::byte>(static_cast<Index>(bytes));
  };
  const auto wrap = [](const memory::desc& desc, const void* data) {
    return memory(desc, cpu(), const_cast<void*>(data));
  };
  thread_local dnnl::stream stream(cpu());
  memory lhs = wrap(plan.lhs.plain, arguments.lhs);
  memory rhs = wrap(plan.rhs.plain, arguments.rhs);
  memory out = wrap(plan.out.plain, arguments.out);
  const auto blocked = [&](const Plan::Slot& slot, const memory& plain) {
    return slot.copied() ? wrap(slot.wanted, take(slot.bytes())) : plain;
  };
  const memory lhs_wanted = blocked(plan.lhs, lhs);
  const memory rhs_wanted = blocked(plan.rhs, rhs);
  const memory out_wanted = blocked(plan.out, out);
  const void* pad = take(plan.scratchpad.get_size());
  const memory scratchpad = wrap(plan.scratchpad, pad);
  std::unordered_map<int, memory> operands{{plan.lhs.argument, lhs_wanted},
                                           {plan.rhs.argument, rhs_wanted},
                                           {plan.out.argument, out_wanted},
                                           {DNNL_ARG_SCRATCHPAD, scratchpad}};
  if (plan.has_bias) {
    operands.emplace(DNNL_ARG_BIAS, wrap(plan.bias, arguments.bias));
  }
  const auto reorder = [&](const Plan::Slot& slot, const memory& from, const memory& to) {
    if (slot.copied()) {
      slot.reorder.execute(stream,
                           {{DNNL_ARG_FROM, from},
                            {DNNL_ARG_TO, to},
                            {DNNL_ARG_SCRATCHPAD, wrap(slot.description.scratchpad_desc(), pad)}});
    }
  };
  reorder(plan.rhs, rhs, rhs_wanted);
  for (Index chunk = 0; chunk < chunks; ++chunk) {
    if (chunk > 0) {
      const auto advance = [&](memory& m, const Plan::Slot& slot, const float* data) {
        m.set_data_handle(const_cast<float*>(data) +
                          chunk * static_cast<Index>(slot.plain.get_size() / sizeof(float)));
      };
      advance(lhs, plan.lhs, arguments.lhs);
      advance(out, plan.out, arguments.out);
    }
    reorder(plan.lhs, lhs, lhs_wanted);
    plan.primitive.execute(stream, operands);
    reorder(plan.out, out_wanted, out);
  }
  stream.wait();
}

/// Bias of an input gradient (a transposed convolution), which oneDNN has no operand for.
void add_bias(const ActivationMap& map, const float* bias, float* out) {
  if (map.layout == Layout::channels_last) {
    fenestra::parallel_for(map.batch * map.cells, 1024, [&](Index begin, Index end) {
      for (Index cell = begin; cell < end; ++cell) {
        for (Index c = 0; c < map.channels; ++c) {
          out[cell * map.channels + c] += bias[c];
        }
      }
    });
    return;
  }
  fenestra::parallel_for(map.batch * map.channels, 1, [&](Index begin, Index end) {
    for (Index plane = begin; plane < end; ++plane) {
      for (Index cell = 0; cell < map.cells; ++cell) {
        out[plane * map.cells + cell] += bias[plane % map.channels];
      }
    }
  });
}

}  // namespace

const char* onednn_lacks(const ConvProblem& problem) {
  const ConvGeometry& g = problem.geometry;
  if (g.rank() > 3) {
    return "oneDNN has no more than 3 spatial axes";
  }
  if (g.batch == 0 || g.in_channels == 0 || g.out_channels == 0) {
    return "oneDNN does not take empty tensors";
  }
  for (int axis = 0; axis < g.rank(); ++axis) {
    const WindowAxis& a = g.windows[axis];
    if (a.windows_within(a.padded()) != a.out) {
      return "oneDNN cannot express the output padding";
    }
  }
  const WindowAxis& last = g.windows[g.rank() - 1];
  if (problem.direction == ConvDirection::weight_grad && last.stride > 1 &&
      std::max(last.pad_low, last.pad_high) >= kWrongPadding) {
    return "oneDNN's weight gradient is wrong on AVX-512 with a stride and much padding";
  }
  return nullptr;
}

const char* refuse_conv_onednn(const ConvProblem& problem) {
  if (kernels::forced_kernel() != kOnednnName) {
    return "runs only where it is asked for by name";
  }
  return onednn_lacks(problem);
}

namespace {

PlanCache::Key key_of(const ConvProblem& problem, bool has_bias, Index samples) {
  PlanCache::Key key{problem, has_bias, threads()};
  key.problem.geometry.batch = samples;
  key.problem.geometry.batched = true;
  key.problem.geometry.has_bias = false;
  return key;
}

}  // namespace

void run_conv_onednn(const ConvProblem& problem, const ConvArguments<float>& arguments) {
  try {
    [[maybe_unused]] const TeamSize team;
    const Index samples = chunk_samples(problem);
    const bool forward = problem.direction == ConvDirection::forward;
    const PlanCache::Key key = key_of(problem, forward && arguments.bias != nullptr, samples);
    execute(*cache().get(key), arguments, problem.geometry.batch / samples);
    if (!forward && arguments.bias != nullptr) {
      add_bias(problem.geometry.x_map(), arguments.bias, arguments.out);
    }
    if (arguments.finish != nullptr) {
      arguments.finish->run(arguments.out, problem.geometry.y_shape().elements().value_or(0));
    }
  } catch (const std::exception&) {
    run_conv_gemm(problem, arguments);
  }
}

std::size_t onednn_cached() { return cache().size(); }

}  // namespace fenestra::detail
