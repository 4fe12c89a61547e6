// The matrix product against its definition: every access of the operands, every tail, every
// instruction set, within the a-priori bound of a sum of n products.
#include <fenestra/base/parallel.hpp>
#include <fenestra/kernels/gemm.hpp>
#include <fenestra/kernels/isa.hpp>
#include <fenestra/spec/random.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

namespace fenestra::kernels {
namespace {

template <class T>
std::vector<T> random_values(Index count, Random& random) {
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& value : values) {
    value = static_cast<T>(random.real());
  }
  return values;
}

struct Variant {
  bool a_transposed = false;
  bool b_transposed = false;
  bool spread = false;  ///< no stride is 1
  bool accumulate = false;
  bool row_bias = false;
  bool column_bias = false;
};

/// A matrix of lines x depth somewhere in memory.
template <class T>
struct Matrix {
  std::vector<T> values;
  StridedOperand<T> operand;

  Matrix(Index lines, Index depth, bool depth_adjacent, bool spread, Random& random)
      : values(random_values<T>(lines * depth * (spread ? 2 : 1) + 1, random)) {
    const Index unit = spread ? 2 : 1;
    operand = depth_adjacent ? StridedOperand<T>{values.data(), depth * unit, unit}
                             : StridedOperand<T>{values.data(), unit, lines * unit};
  }
  T at(Index line, Index k) const {
    return operand.data[line * operand.line_stride + k * operand.depth_stride];
  }
};

template <class T>
std::vector<T> product(const GemmSize& size,
                       const Variant& v,
                       const Matrix<T>& a,
                       const Matrix<T>& b,
                       const std::vector<T>& bias,
                       const std::vector<T>& before) {
  std::vector<T> c = before;
  gemm_strided<T>(size,
                  a.operand,
                  b.operand,
                  {.data = c.data(),
                   .row_stride = size.columns,
                   .accumulate = v.accumulate,
                   .row_bias = v.row_bias ? bias.data() : nullptr,
                   .column_bias = v.column_bias ? bias.data() : nullptr});
  return c;
}

template <class T>
void expect_within_bound(const GemmSize& size, const Variant& v, Random& random) {
  using Wide = std::conditional_t<std::is_same_v<T, float>, double, long double>;
  const Matrix<T> a(size.rows, size.depth, !v.a_transposed, v.spread, random);
  const Matrix<T> b(size.columns, size.depth, v.b_transposed, v.spread, random);
  const auto bias = random_values<T>(std::max(size.rows, size.columns), random);
  auto before = random_values<T>(size.rows * size.columns, random);
  if (!v.accumulate) {
    std::fill(before.begin(), before.end(), std::numeric_limits<T>::quiet_NaN());
  }
  const auto c = product(size, v, a, b, bias, before);
  // Products, what was there, and two biases.
  const auto n = static_cast<long double>(size.depth + 3);
  const auto gamma = [&](long double u) { return n * u / (1 - n * u); };
  const long double factor = gamma(std::numeric_limits<T>::epsilon() / 2.0L) +
                             gamma(std::numeric_limits<Wide>::epsilon() / 2.0L);
  for (Index i = 0; i < size.rows; ++i) {
    for (Index j = 0; j < size.columns; ++j) {
      const auto at = static_cast<std::size_t>(i * size.columns + j);
      Wide sum = 0;
      Wide magnitude = 0;
      const auto add = [&](Wide term) {
        sum += term;
        magnitude += std::fabs(term);
      };
      for (Index k = 0; k < size.depth; ++k) {
        add(static_cast<Wide>(a.at(i, k)) * static_cast<Wide>(b.at(j, k)));
      }
      add(v.accumulate ? static_cast<Wide>(before[at]) : 0);
      add(v.row_bias ? static_cast<Wide>(bias[static_cast<std::size_t>(i)]) : 0);
      add(v.column_bias ? static_cast<Wide>(bias[static_cast<std::size_t>(j)]) : 0);
      ASSERT_LE(std::fabs(static_cast<long double>(c[at]) - static_cast<long double>(sum)),
                factor * static_cast<long double>(magnitude))
          << isa_name() << " " << size.rows << "x" << size.columns << "x" << size.depth << " at "
          << i << "," << j;
    }
  }
}

class Gemm : public ::testing::TestWithParam<std::string_view> {
 protected:
  ScopedIsa isa_{GetParam()};
};

TEST_P(Gemm, StaysWithinTheBoundAtEveryTailOfRowsAndColumns) {
  Random random(1);
  for (Index rows = 1; rows <= 14 && !HasFatalFailure(); ++rows) {
    for (Index columns = 1; columns <= 4 * 16 + 3; columns += random.between(1, 5)) {
      const Variant v{.a_transposed = random.chance(2),
                      .b_transposed = random.chance(2),
                      .spread = random.chance(4),
                      .accumulate = random.chance(2),
                      .row_bias = random.chance(2),
                      .column_bias = random.chance(2)};
      expect_within_bound<float>({rows, columns, random.between(0, 9)}, v, random);
      expect_within_bound<double>({rows, columns, random.between(0, 9)}, v, random);
    }
  }
}

TEST_P(Gemm, StaysWithinTheBoundAcrossBlocks) {
  Random random(2);
  for (const GemmSize size : {GemmSize{7, 9, 1000},
                              GemmSize{130, 300, 20},
                              GemmSize{3, 1100, 330},
                              GemmSize{800, 20, 3},
                              GemmSize{25, 17, 641}}) {
    for (int i = 0; i < 8 && !HasFatalFailure(); ++i) {
      const Variant v{.a_transposed = i % 2 == 1,
                      .b_transposed = i / 2 % 2 == 1,
                      .spread = i == 7,
                      .accumulate = i / 4 % 2 == 1,
                      .row_bias = i % 3 == 0,
                      .column_bias = i % 3 == 1};
      expect_within_bound<float>(size, v, random);
      expect_within_bound<double>(size, v, random);
    }
  }
}

TEST_P(Gemm, GivesTheSameBitsOnAnyNumberOfThreads) {
  Random random(3);
  const int before_threads = threads();
  for (const GemmSize size : {GemmSize{70, 333, 500}, GemmSize{300, 33, 100}}) {
    for (const bool transposed : {false, true}) {
      const Variant v{.a_transposed = transposed, .b_transposed = !transposed};
      const Matrix<float> a(size.rows, size.depth, !v.a_transposed, false, random);
      const Matrix<float> b(size.columns, size.depth, v.b_transposed, false, random);
      const std::vector<float> c(static_cast<std::size_t>(size.rows * size.columns));
      set_threads(1);
      const auto one = product(size, v, a, b, c, c);
      for (const int count : {2, 7}) {
        set_threads(count);
        EXPECT_TRUE(one == product(size, v, a, b, c, c)) << count << " threads";
      }
    }
  }
  set_threads(before_threads);
}

/// Numbers beside the transpose stay as they were.
template <class T>
void expect_transposed(Index rows, Index columns) {
  const Index src_stride = columns + 3;
  const Index dst_stride = rows + 2;
  std::vector<T> src(static_cast<std::size_t>(rows * src_stride));
  for (std::size_t i = 0; i < src.size(); ++i) {
    src[i] = static_cast<T>(i + 1);
  }
  std::vector<T> dst(static_cast<std::size_t>(columns * dst_stride));
  transpose(src.data(), src_stride, rows, columns, dst.data(), dst_stride);
  for (Index j = 0; j < columns; ++j) {
    for (Index i = 0; i < dst_stride; ++i) {
      const T wanted = i < rows ? src[static_cast<std::size_t>(i * src_stride + j)] : T(0);
      ASSERT_EQ(dst[static_cast<std::size_t>(j * dst_stride + i)], wanted)
          << rows << " x " << columns << ", row " << i << ", column " << j;
    }
  }
}

TEST_P(Gemm, TransposesAtEveryTailOfRowsAndColumns) {
  for (Index rows = 1; rows <= 35 && !HasFatalFailure(); ++rows) {
    for (Index columns = 1; columns <= 35 && !HasFatalFailure(); ++columns) {
      expect_transposed<float>(rows, columns);
      expect_transposed<double>(rows, columns);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, Gemm, ::testing::ValuesIn(supported_isas()), [](const auto& isa) {
  return std::string(isa.param);
});

TEST(Isa, TheOneInUseIsTheBestSupportedAndScopesGoDownAndBack) {
  const auto names = supported_isas();
  ASSERT_FALSE(names.empty());
  const std::string best(isa_name());
  EXPECT_EQ(best, names.front());
  for (const std::string_view name : names) {
    const ScopedIsa scope(name);
    EXPECT_EQ(isa_name(), name);
  }
  EXPECT_EQ(isa_name(), best);
}

TEST(Isa, AnUnknownNameIsRefused) {
  try {
    const ScopedIsa scope("abacus");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kernel_refused);
  }
}

}  // namespace
}  // namespace fenestra::kernels
