// The weight gradient of the direct convolution: dot products along rows, accumulated per weight in
// vectors that are summed at the end. Part of direct.cpp, which includes it. Not installed.
#pragma once

#include <fenestra/base/parallel.hpp>
#include <fenestra/kernels/scratch.hpp>
#include <fenestra/ops/conv/kernels/direct_axes.hpp>
#include <fenestra/ops/conv/kernels/direct_tiles.hpp>

#include <algorithm>

namespace fenestra::detail {

/// One job is a tile of output channels of a group: all their weights, all samples in order.
template <class T>
class WeightGrad {
 public:
  WeightGrad(const ConvProblem& problem, const ConvArguments<T>& arguments)
      : g_(problem.geometry),
        arguments_(arguments),
        loops_(direct_loops<T>()),
        axes_(g_.windows),
        outer_taps_(axes_.outer_product(&WindowAxis::kernel)),
        outer_(axes_.outer_product(&WindowAxis::out)),
        in_plane_(axes_.row.in * axes_.column.in),
        in_stride_(axes_.outer_product(&WindowAxis::in) * in_plane_),
        out_plane_(axes_.row.out * axes_.column.out),
        plane_taps_(axes_.row.kernel * axes_.column.kernel) {
    const WindowAxis& column = axes_.column;
    y_pitch_ = round_up(column.out, loops_.lanes);
    phase_pitch_ = round_up(y_pitch_ + column.last_step(), loops_.lanes);
    const Index row_bytes =
        (std::max<Index>(planes(), 1) * pitch() * axes_.row.stride + kTileChannels * y_pitch_) *
        static_cast<Index>(sizeof(T));
    band_rows_ = std::min(axes_.row.out, std::max(2 * kStripBytes / row_bytes, axes_.row.span()));
    offsets_ = frame_.take<Index>(plane_taps_);
    for (Index r = 0; r < axes_.row.kernel; ++r) {
      for (Index t = 0; t < column.kernel; ++t) {
        offsets_[r * column.kernel + t] = r * axes_.row.dilation * pitch() +
                                          column.tap_phase(t) * phase_pitch_ + column.tap_step(t);
      }
    }
  }

  void run() {
    const Index tiles = ceil_of(g_.group_out(), kTileChannels);
    const auto body = [&](Index begin, Index end) {
      for (Index job = begin; job < end; ++job) {
        const Index tile = job % tiles;
        run_job(job / tiles, tile * g_.group_out() / tiles, (tile + 1) * g_.group_out() / tiles);
      }
    };
    if (g_.multiply_adds() < kSerialWork) {
      body(0, g_.groups * tiles);
    } else {
      fenestra::parallel_for(g_.groups * tiles, 1, body);
    }
  }

 private:
  Index planes() const { return g_.group_in() * outer_taps_; }
  Index pitch() const { return axes_.column.stride * phase_pitch_; }
  Index strip_rows(Index rows) const { return axes_.row.spanned(rows); }

  void run_job(Index group, Index c0, Index c1) {
    const Index channels = c1 - c0;
    const Index count = planes() * channels * plane_taps_;
    PlaneList<T> list;
    PlaneList<T> targets;
    kernels::ScratchFrame frame;
    list.take(frame, planes());
    targets.take(frame, kTileChannels);
    T* strip = frame.take<T>(planes() * strip_rows(band_rows_) * pitch());
    T* y = frame.take<T>(kTileChannels * band_rows_ * y_pitch_);
    T* sums = frame.take<T>(count * (loops_.lanes + 1));
    std::fill(sums, sums + count * loops_.lanes, T(0));
    const Index first_out = group * g_.group_out() + c0;
    for (Index n = 0; n < g_.batch; ++n) {
      for (Index outer = 0; outer < outer_; ++outer) {
        list.fill(axes_,
                  false,
                  outer,
                  arguments_.lhs + (n * g_.in_channels + group * g_.group_in()) * in_stride_,
                  g_.group_in(),
                  in_stride_,
                  in_plane_);
        const T* y_bar =
            arguments_.rhs + ((n * g_.out_channels + first_out) * outer_ + outer) * out_plane_;
        for (Index c = 0; c < channels; ++c) {
          targets.data[c] = y_bar + c * outer_ * out_plane_;
        }
        for (Index row0 = 0; row0 < axes_.row.out; row0 += band_rows_) {
          add_band(list, targets.data, channels, row0, strip, y, sums);
        }
      }
    }
    T* totals = sums + count * loops_.lanes;
    loops_.sum_lanes(sums, count, totals);
    for (Index c = 0; c < channels; ++c) {
      T* w_bar = arguments_.out + (first_out + c) * planes() * plane_taps_;
      for (Index p = 0; p < planes(); ++p) {
        std::copy_n(
            totals + (p * channels + c) * plane_taps_, plane_taps_, w_bar + p * plane_taps_);
      }
    }
  }

  void add_band(const PlaneList<T>& list,
                const T* const* y_bar,
                Index channels,
                Index row0,
                T* strip,
                T* y,
                T* sums) {
    const Index rows = std::min(band_rows_, axes_.row.out - row0);
    const Index copied = strip_rows(rows);
    loops_.fill_strip({.plane = list.data,
                       .planes = list.count,
                       .source_rows = axes_.row.in,
                       .source_width = axes_.column.in,
                       .first_row = axes_.row.window(row0).first,
                       .rows = copied,
                       .first_column = axes_.column.window(0).first,
                       .stride = axes_.column.stride,
                       .phase_pitch = phase_pitch_,
                       .dst = strip});
    loops_.fill_strip({.plane = y_bar,
                       .planes = channels,
                       .source_rows = axes_.row.out,
                       .source_width = axes_.column.out,
                       .first_row = row0,
                       .rows = rows,
                       .first_column = 0,
                       .stride = 1,
                       .phase_pitch = y_pitch_,
                       .dst = y});
    loops_.add_dots({.strip = strip,
                     .plane_pitch = copied * pitch(),
                     .pitch = pitch(),
                     .planes = list.count,
                     .weight_plane = list.weight_plane,
                     .taps = plane_taps_,
                     .offset = offsets_,
                     .row_step = axes_.row.stride * pitch(),
                     .y = y,
                     .y_pitch = y_pitch_,
                     .channels = channels,
                     .rows = rows,
                     .width = axes_.column.out,
                     .sums = sums});
  }

  const ConvGeometry& g_;
  const ConvArguments<T>& arguments_;
  const DirectLoops<T>& loops_;
  kernels::ScratchFrame frame_;
  Axes axes_;
  Index outer_taps_;
  Index outer_;
  Index in_plane_;
  Index in_stride_;
  Index out_plane_;
  Index plane_taps_;
  Index y_pitch_ = 0;
  Index phase_pitch_ = 0;
  Index band_rows_ = 1;
  Index* offsets_ = nullptr;
};

}  // namespace fenestra::detail
