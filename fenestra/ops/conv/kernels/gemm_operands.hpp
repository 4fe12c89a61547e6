// What the products of a convolution read besides patches, and where their tiles go: weights of a
// stride phase, y_bar, the cells of small samples. Part of gemm.cpp, which includes it. Not
// installed.
#pragma once

#include <fenestra/kernels/gemm.hpp>
#include <fenestra/ops/conv/kernels/gemm_grids.hpp>
#include <fenestra/ops/conv/kernels/patches.hpp>

#include <algorithm>

namespace fenestra::detail {

/// What follows a forward convolution, for runs of rows.
template <class T>
class RowFinisher final : public kernels::Finisher<T> {
 public:
  explicit RowFinisher(const ConvFinish<T>* finish) : finish_(finish) {}
  void finish(T* first, Index count) const override { finish_->run(first, count); }

 private:
  const ConvFinish<T>* finish_;
};

/// Cells of samples so small that they share panels, channels first: stored, and finished sample by
/// sample where there is something to finish.
template <class T>
class SampleSink final : public kernels::TileSink<T> {
 public:
  SampleSink(const GridTarget<T>& target, Index sample_cells, const ConvFinish<T>* finish)
      : target_(target), sample_cells_(sample_cells), cells_(target), finish_(finish) {}

  void store(const kernels::TileRange& range, const T* tile, Index ld) const override {
    cells_.store(range, tile, ld);
    for (Index j = range.j0; finish_ != nullptr && j < range.j1;) {
      const Index sample = j / sample_cells_;
      const Index end = std::min((sample + 1) * sample_cells_, range.j1);
      T* cells = target_.data + sample * target_.grid->axes[0].target_stride + j % sample_cells_;
      for (Index i = range.i0; i < range.i1; ++i) {
        finish_->run(cells + i * target_.channel_stride, end - j);
      }
      j = end;
    }
  }

 private:
  GridTarget<T> target_;
  Index sample_cells_;
  CellSink<T> cells_;
  const ConvFinish<T>* finish_;
};

/// The weights of one phase: phase_taps[j] is the number of the phase's tap j.
template <class T>
struct PhaseWeights {
  const T* w;
  Index group_in;
  Index group_out;
  Index out_channels;
  Index taps;
  const Index* phase_taps;
  Index phase_count;
};

/// Channels first: lines are input channels, depths (output channel, tap).
template <class T>
class PhasePanels final : public kernels::PanelSource<T> {
 public:
  explicit PhasePanels(const PhaseWeights<T>& weights) : weights_(weights) {}
  void pack(const kernels::PanelRange& range, Index width, T* dst) const override;

 private:
  const PhaseWeights<T>& weights_;
};

template <class T>
void PhasePanels<T>::pack(const kernels::PanelRange& range, Index width, T* dst) const {
  const PhaseWeights<T>& p = weights_;
  const bool all_taps = p.phase_count == p.taps;
  const Index step = p.group_in * p.taps;
  const Index ahead = std::min(p.group_out * step, (range.k1 / p.phase_count + 1) * step);
  for (Index k = range.k0; k < range.k1;) {
    const Index co = k / p.phase_count;
    const Index j = k % p.phase_count;
    const Index length = std::min(range.k1 - k, p.phase_count - j);
    const T* src = p.w + co * step + range.first * p.taps;
#if defined(__GNUC__)
    // Output channels are pages apart; eight of them ahead hide the latency of memory.
    constexpr Index kLine = 8;  // elements of a cache line, at least
    if ((co + 8) * step < ahead) {
      for (Index element = 0; element < range.count * p.taps; element += kLine) {
        __builtin_prefetch(src + 8 * step + element);
      }
    }
#endif
    if (all_taps) {
      kernels::transpose(src + j, p.taps, range.count, length, dst, width);
    } else {
      for (Index t = 0; t < length; ++t) {
        for (Index i = 0; i < range.count; ++i) {
          dst[t * width + i] = src[i * p.taps + p.phase_taps[j + t]];
        }
      }
    }
    dst += length * width;
    k += length;
  }
}

/// Channels last: lines are input channels, depths (tap, output channel).
template <class T>
class PhaseColumns final : public kernels::ColumnSource<T> {
 public:
  explicit PhaseColumns(const PhaseWeights<T>& weights) : weights_(weights) {}
  void pack(const kernels::PanelRange& range, Index width, T* dst) const override;

 private:
  const PhaseWeights<T>& weights_;
};

template <class T>
void PhaseColumns<T>::pack(const kernels::PanelRange& range, Index width, T* dst) const {
  const PhaseWeights<T>& p = weights_;
  const Index depth = range.k1 - range.k0;
  for (Index line = 0; line < range.count; line += width, dst += width * depth) {
    const Index count = std::min(width, range.count - line);
    if (count < width) {
      std::fill(dst, dst + width * depth, T(0));
    }
    for (Index k = range.k0; k < range.k1;) {
      const Index co = k % p.group_out;
      const Index length = std::min(range.k1 - k, p.group_out - co);
      const Index ci = p.phase_taps[k / p.group_out] * p.group_in + range.first + line;
      kernels::transpose(p.w + ci * p.out_channels + co,
                         p.out_channels,
                         count,
                         length,
                         dst + (k - range.k0) * width,
                         width);
      k += length;
    }
  }
}

/// Rows of y_bar, channels first: one segment per sample.
template <class T>
class SampleRows final : public kernels::RowSource<T> {
 public:
  explicit SampleRows(const Group<T>& group) : s_(group) {}
  void starts(Index first, Index count, Index s0, Index s1, const T** table) const override {
    const T* y_bar = s_.arguments.rhs + (s_.group * s_.g.group_out() + first) * s_.y.channel;
    for (Index n = s0; n < s1; ++n) {
      for (Index i = 0; i < count; ++i) {
        *table++ = y_bar + n * s_.y.sample + i * s_.y.channel;
      }
    }
  }

 private:
  const Group<T>& s_;
};

/// Channels last: the tile is transposed on its way into w_bar (k x co).
template <class T>
class WeightSink final : public kernels::TileSink<T> {
 public:
  explicit WeightSink(const Group<T>& group) : s_(group) {}
  void store(const kernels::TileRange& range, const T* tile, Index ld) const override {
    const Index channels = s_.g.out_channels;
    T* out = s_.arguments.out + s_.group * s_.g.group_out() + range.j0 * channels + range.i0;
    kernels::transpose(tile, ld, range.i1 - range.i0, range.j1 - range.j0, out, channels);
  }

 private:
  const Group<T>& s_;
};

}  // namespace fenestra::detail
