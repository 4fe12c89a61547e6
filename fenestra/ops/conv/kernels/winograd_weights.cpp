// The weight gradient of the transformed convolution: transformed y_bar times transformed x, summed
// over the tiles; see winograd.cpp.
#include <fenestra/ops/conv/kernels/winograd_parts.hpp>

namespace fenestra::detail::winograd {

namespace {

// The weight gradient transforms its data again for every part of its sums, so parts are larger:
// at 256 @14 and 512 @7 1.5 times faster than with 8 and 4 MiB.
constexpr Index kBothDataBytes = 16 << 20;
constexpr Index kSumsBytes = 12 << 20;

/// The rows of a product are the channels whose weights lie further apart: of y channels first, of
/// x channels last.
template <class T>
class WinogradWeightGrad {
 public:
  WinogradWeightGrad(const ConvProblem& problem, const ConvArguments<T>& arguments)
      : g_(problem.geometry), arguments_(arguments), loops_(winograd_loops<T>()) {
    const WindowAxis& row = g_.windows[0];
    const WindowAxis& column = g_.windows[1];
    const bool last = g_.layout == Layout::channels_last;
    Reader<T>& x = last ? left_ : right_;
    x.read = loops_.read_data;
    x.image = {arguments.lhs, g_.in_channels, row.in, column.in, last};
    x.first_row = row.window(0).first;
    x.first_column = column.window(0).first;
    Reader<T>& y_bar = last ? right_ : left_;
    y_bar.read = loops_.read_cotangent;
    y_bar.image = {arguments.rhs, g_.out_channels, row.out, column.out, last};
    y_bar.side = kTileSide;
    grid_ = {ceil_of(row.out, kTileSide), ceil_of(column.out, kTileSide), g_.batch};
    choose_parts();
    left_.dst = frame_.take<T>(kProducts * left_.product);
    right_.dst = frame_.take<T>(kProducts * right_.product);
    sums_ = frame_.take<T>(kProducts * sums_product_);
    offsets_ = frame_.take<Index>(part_rows_ * grid_.columns);
    for (Index k = 0; k < part_rows_ * grid_.columns; ++k) {
      offsets_[k] = k * right_.pitch;
    }
  }

  void run() {
    Index ready = -1;  // the part of the batch that is transformed
    for (Index i0 = 0; i0 < lefts(); i0 += part_lefts_) {
      const Index i1 = std::min(i0 + part_lefts_, lefts());
      for (Index r0 = 0; r0 < grid_.all_rows(); r0 += part_rows_) {
        const Index r1 = std::min(r0 + part_rows_, grid_.all_rows());
        if (ready != r0) {
          read_part(loops_, left_, grid_, r0, r1);
          read_part(loops_, right_, grid_, r0, r1);
          ready = r0;
        }
        add_products(i0, i1, (r1 - r0) * grid_.columns, r0 > 0);
      }
      write_part(i0, i1);
    }
  }

 private:
  Index lefts() const { return left_.image.channels; }
  Index rights() const { return right_.image.channels; }
  Index sums_pitch() const { return round_up(rights(), loops_.block); }

  void choose_parts() {
    constexpr auto kBytes = static_cast<Index>(sizeof(T));
    // The products walk down the tiles of a channel: tiles a power of two apart would share few
    // sets of the cache.
    const auto pitch = [&](const Reader<T>& reader) {
      return odd_lines<T>(round_up(reader.image.channels, loops_.block));
    };
    const Index data_row = kProducts * grid_.columns * (pitch(left_) + pitch(right_)) * kBytes;
    part_rows_ = part_of(grid_.all_rows(), kBothDataBytes / data_row);
    left_.shape(pitch(left_), part_rows_ * grid_.columns);
    right_.shape(pitch(right_), part_rows_ * grid_.columns);
    part_lefts_ = part_of(lefts(), kSumsBytes / (kProducts * sums_pitch() * kBytes));
    sums_product_ = odd_lines<T>(part_lefts_ * sums_pitch());
  }

  void add_products(Index i0, Index i1, Index tiles, bool accumulate) {
    fenestra::parallel_for(kProducts, 1, [&](Index begin, Index end) {
      for (Index e = begin; e < end; ++e) {
        const PanelColumns<T> right({.data = right_.dst + e * right_.product,
                                     .panel_stride = loops_.block,
                                     .depth_stride = right_.pitch,
                                     .width = loops_.block,
                                     .offsets = offsets_});
        kernels::gemm<T>({i1 - i0, sums_pitch(), tiles},
                         {.access = LeftAccess::lines,
                          .data = left_.dst + e * left_.product + i0,
                          .depth_stride = left_.pitch},
                         {.columns = &right},
                         {.data = sums_ + e * sums_product_,
                          .row_stride = sums_pitch(),
                          .accumulate = accumulate});
      }
    });
  }

  void write_part(Index i0, Index i1) {
    fenestra::parallel_for(i1 - i0, 8, [&](Index begin, Index end) {
      ScratchFrame frame;
      T* taps = frame.take<T>(kWinogradTaps * sums_pitch());
      for (Index i = begin; i < end; ++i) {
        loops_.write_weights(
            {sums_ + i * sums_pitch(), sums_product_, sums_pitch()}, sums_pitch(), taps);
        T* out = arguments_.out +
                 (i0 + i) * rights() * (g_.layout == Layout::channels_first ? kWinogradTaps : 1);
        if (g_.layout == Layout::channels_first) {
          kernels::transpose(taps, sums_pitch(), kWinogradTaps, rights(), out, kWinogradTaps);
          continue;
        }
        for (Index tap = 0; tap < kWinogradTaps; ++tap) {
          std::copy_n(taps + tap * sums_pitch(), rights(), out + tap * lefts() * rights());
        }
      }
    });
  }

  const ConvGeometry& g_;
  const ConvArguments<T>& arguments_;
  const WinogradLoops<T>& loops_;
  ScratchFrame frame_;
  Reader<T> left_;
  Reader<T> right_;
  TileGrid grid_;
  Index part_rows_ = 1;
  Index part_lefts_ = 1;
  Index sums_product_ = 0;
  T* sums_ = nullptr;  // [product][left channel][right channel]
  Index* offsets_ = nullptr;
};

}  // namespace

template <class T>
void run_weight_grad(const ConvProblem& problem, const ConvArguments<T>& arguments) {
  WinogradWeightGrad<T>(problem, arguments).run();
}

template void run_weight_grad(const ConvProblem&, const ConvArguments<float>&);
template void run_weight_grad(const ConvProblem&, const ConvArguments<double>&);

}  // namespace fenestra::detail::winograd
