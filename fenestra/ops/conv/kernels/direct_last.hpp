// The direct convolution of channels-last tensors: every sample is transposed into planes on its
// way in, and its result back on the way out. Part of direct.cpp, which includes it. For
// groups so narrow that a product over channels has nothing to multiply. Not installed.
#pragma once

#include <fenestra/base/parallel.hpp>
#include <fenestra/kernels/gemm.hpp>
#include <fenestra/kernels/scratch.hpp>
#include <fenestra/ops/conv/kernels/direct_axes.hpp>
#include <fenestra/ops/conv/kernels/direct_weights.hpp>

#include <algorithm>

namespace fenestra::detail {

/// Runs `Correlate`, forward and input gradient of one sample in planes, and WeightGrad.
template <class T, class Correlate>
class DirectLast {
 public:
  DirectLast(const ConvProblem& problem, const ConvArguments<T>& arguments)
      : batch_(problem.geometry.batch),
        sample_(problem),
        arguments_(arguments),
        work_(problem.geometry.multiply_adds()) {
    sample_.geometry.layout = Layout::channels_first;
    sample_.geometry.batch = 1;
  }

  /// Writes the weights as `Correlate` reads them.
  void pack(T* packed) const {
    kernels::ScratchFrame frame;
    T* w = frame.take<T>(weights());
    turn_weights(arguments_.rhs, true, w);
    Correlate::pack(sample_, w, packed);
  }

  void run() const {
    if (sample_.direction == ConvDirection::weight_grad) {
      add_samples();
    } else {
      correlate_samples();
    }
  }

 private:
  const ConvGeometry& g() const { return sample_.geometry; }
  Index weights() const { return g().out_channels * group_weights(); }
  Index group_weights() const { return g().group_in() * g().windows.taps(); }

  /// In ranges over the threads, or at once where waking them costs more.
  template <class Body>
  void spread(Index n, const Body& body) const {
    if (work_ < kSerialWork) {
      body(Index{0}, n);
    } else {
      fenestra::parallel_for(n, 1, body);
    }
  }

  // Channels transposed at a time: a cache line of each cell is read whole.
  static constexpr Index kTransposed = 64 / static_cast<Index>(sizeof(T));

  /// The sample at `from` in planes, brought to `to` unless it is a plane.
  const T* in_planes(const T* from, const ActivationMap& map, T* to) const {
    if (map.channels == 1) {
      return from;
    }
    transpose_planes(from, map, true, to);
    return to;
  }
  /// (cells, channels) to (channels, cells), or back.
  void transpose_planes(const T* from, const ActivationMap& map, bool to_planes, T* to) const {
    spread(ceil_of(map.channels, kTransposed), [&](Index begin, Index end) {
      for (Index c = begin * kTransposed; c < std::min(end * kTransposed, map.channels);
           c += kTransposed) {
        const Index count = std::min(kTransposed, map.channels - c);
        if (to_planes) {
          kernels::transpose(
              from + c, map.channels, map.cells, count, to + c * map.cells, map.cells);
        } else {
          kernels::transpose(
              from + c * map.cells, map.cells, count, map.cells, to + c, map.channels);
        }
      }
    });
  }
  /// (taps, group_in, out) to (out, group_in, taps), or back.
  void turn_weights(const T* from, bool to_planes, T* to) const {
    const Index taps = g().windows.taps();
    const Index tap_step = g().group_in() * g().out_channels;
    for (Index ci = 0; ci < g().group_in(); ++ci) {
      const Index first = ci * taps;
      const Index last = ci * g().out_channels;
      if (to_planes) {
        kernels::transpose(
            from + last, tap_step, taps, g().out_channels, to + first, group_weights());
      } else {
        kernels::transpose(
            from + first, group_weights(), g().out_channels, taps, to + last, tap_step);
      }
    }
  }

  void correlate_samples() const {
    const bool forward = sample_.direction == ConvDirection::forward;
    const ActivationMap source = forward ? g().x_map() : g().y_map();
    const ActivationMap target = forward ? g().y_map() : g().x_map();
    const Index in = source.channels * source.cells;
    const Index out = target.channels * target.cells;
    kernels::ScratchFrame frame;
    const T* packed = arguments_.packed;
    if (packed == nullptr) {
      T* own = frame.take<T>(Correlate::packed_elements(g()));
      pack(own);
      packed = own;
    }
    const auto body = [&](Index begin, Index end) {
      kernels::ScratchFrame samples;
      T* lhs = samples.take<T>(in);
      T* result = samples.take<T>(out);
      for (Index n = begin; n < end; ++n) {
        T* sample = arguments_.out + n * out;
        const bool is_plane = target.channels == 1;
        const ConvArguments<T> planes{.lhs = in_planes(arguments_.lhs + n * in, source, lhs),
                                      .bias = arguments_.bias,
                                      .out = is_plane ? sample : result,
                                      .packed = packed};
        Correlate(sample_, planes).run();
        if (!is_plane) {
          transpose_planes(result, target, false, sample);
        }
        if (arguments_.finish != nullptr) {
          spread(out, [&](Index first, Index last) {
            arguments_.finish->run(sample + first, last - first);
          });
        }
      }
    };
    // A sample for each thread, or all threads on each sample.
    if (batch_ >= threads()) {
      spread(batch_, body);
    } else {
      body(0, batch_);
    }
  }

  void add_samples() const {
    const Index x_size = g().in_channels * g().windows.in_cells();
    const Index y_size = g().out_channels * g().windows.out_cells();
    kernels::ScratchFrame frame;
    T* x = frame.take<T>(x_size);
    T* y_bar = frame.take<T>(y_size);
    T* part = frame.take<T>(weights());
    T* sum = frame.take<T>(weights());
    std::fill(sum, sum + weights(), T(0));
    for (Index n = 0; n < batch_; ++n) {
      const ConvArguments<T> planes{in_planes(arguments_.lhs + n * x_size, g().x_map(), x),
                                    in_planes(arguments_.rhs + n * y_size, g().y_map(), y_bar),
                                    nullptr,
                                    part};
      WeightGrad<T>(sample_, planes).run();
      for (Index i = 0; i < weights(); ++i) {
        sum[i] += part[i];
      }
    }
    turn_weights(sum, false, arguments_.out);
  }

  Index batch_;
  ConvProblem sample_;  // of planes
  const ConvArguments<T>& arguments_;
  Index work_;
};

}  // namespace fenestra::detail
