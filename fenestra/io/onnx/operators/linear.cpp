// Products of matrices, and sums of products by letters.
#include <fenestra/io/onnx/call.hpp>
#include <fenestra/io/onnx/integers.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/matmul/einsum.hpp>
#include <fenestra/ops/matmul/matmul.hpp>

#include <algorithm>
#include <string>

namespace fenestra::onnx {

namespace {

/// Before memory is asked for a product; factors that do not fit are refused by it.
template <class T>
void require_product_budget(const Call<T>& c,
                            const Shape& a,
                            const Shape& b,
                            const MatMulOptions& options = {}) {
  using namespace fenestra::detail;
  if (!check_matmul(a, b, options)) {
    c.require_budget(matmul_geometry(as_row(a), as_column(b), options).y);
  }
}

/// alpha A B + beta C.
template <class T>
Results<T> gemm_rule(Call<T>& c) {
  const bool transpose_a = c.flag("transA");
  const bool transpose_b = c.flag("transB");
  const double alpha = c.real("alpha", 1);
  const double beta = c.real("beta", 1);
  c.reach.whole = true;
  const Value<T> a = c.value(0);
  const Value<T> b = c.value(1);
  const MatMulOptions options{.transpose_a = transpose_a, .transpose_b = transpose_b};
  require_product_budget(c, a.shape(), b.shape(), options);
  const bool biased = c.has(2) && beta != 0;
  if (biased && !transpose_a && transpose_b && alpha == 1 && beta == 1 && b.rank() == 2 &&
      c.shape(2) == Shape{b.shape()[0]}) {
    return c.same(linear(a, b, c.value(2)));
  }
  Value<T> y = matmul(a, b, options);
  y = alpha == 1 ? y : scale(y, alpha);
  if (biased) {
    const Value<T> bias = c.value(2);
    y = y + (beta == 1 ? bias : scale(bias, beta));
  }
  return c.same(y);
}

/// The letters of one operand, with those that "..." stands for, which are digits.
std::string with_letters(std::string text, int rank) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  const std::size_t dots = text.find("...");
  if (dots == std::string::npos) {
    return text;
  }
  const int count = rank - (static_cast<int>(text.size()) - 3);
  if (count > 10) {
    throw Error(ErrorCode::rank_mismatch, "\"...\" stands for more than 10 axes\n  fix: fewer");
  }
  std::string hidden;
  for (int i = count - 1; i >= 0; --i) {
    hidden += static_cast<char>('0' + i);
  }
  return text.replace(dots, 3, hidden);
}

/// An operand and the letter of each of its axes.
template <class T>
struct Lettered {
  Value<T> value;
  std::string letters;
};

/// Without letters that stand twice: the diagonal of those axes.
template <class T>
void take_diagonals(Lettered<T>& operand) {
  for (std::size_t i = 0; i < operand.letters.size(); ++i) {
    const std::size_t j = operand.letters.find(operand.letters[i], i + 1);
    if (j == std::string::npos) {
      continue;
    }
    const Shape shape = operand.value.shape();
    const Index extent = shape[static_cast<int>(i)];
    const std::vector<Index> strides = dense_strides(shape);
    std::vector<Index> steps;
    Shape result;
    for (std::size_t axis = 0; axis < operand.letters.size(); ++axis) {
      if (axis != j) {
        result.push_back(shape[static_cast<int>(axis)]);
        steps.push_back(strides[axis] + (axis == i ? strides[j] : 0));
      }
    }
    Tensor<Index> cells(shape);
    for (Index cell = 0; cell < cells.size(); ++cell) {
      cells.mutable_data()[cell] = cell;
    }
    if (extent != shape[static_cast<int>(j)]) {
      throw Error(ErrorCode::shape_mismatch,
                  "a letter stands for the extents " + std::to_string(extent) + " and " +
                      std::to_string(shape[static_cast<int>(j)]) + "\n  fix: equal extents");
    }
    operand.value = picked(operand.value, copy_strided(cells.data(), result, steps));
    operand.letters.erase(j, 1);
    --i;
  }
}

/// Extents of one are broadcast where the letter comes from "...".
template <class T>
void drop_ones(Lettered<T>& operand, const Lettered<T>& other) {
  Shape kept;
  std::string letters;
  for (std::size_t i = 0; i < operand.letters.size(); ++i) {
    const char letter = operand.letters[i];
    const Index extent = operand.value.shape()[static_cast<int>(i)];
    const bool shared = other.letters.find(letter) != std::string::npos;
    if (letter >= '0' && letter <= '9' && extent == 1 && shared) {
      continue;
    }
    kept.push_back(extent);
    letters += letter;
  }
  operand.value = reshape(operand.value, kept);
  operand.letters = letters;
}

/// Letters as `einsum` takes them: hidden axes become letters that the equation does not have.
std::string plain(std::string letters, const std::string& equation) {
  std::string unused;
  for (char letter = 'A'; letter <= 'Z'; ++letter) {
    if (equation.find(letter) == std::string::npos) {
      unused += letter;
    }
  }
  for (char& letter : letters) {
    const auto hidden = static_cast<std::size_t>(letter - '0');
    if (letter >= '0' && letter <= '9') {
      if (hidden >= unused.size()) {
        throw Error(ErrorCode::rank_mismatch,
                    "the equation has too many letters\n  fix: fewer, or small ones");
      }
      letter = unused[hidden];
    }
  }
  return letters;
}

template <class T>
Results<T> einsum_rule(Call<T>& c) {
  const std::string equation = c.required("equation").s;
  const std::size_t arrow = equation.find("->");
  const auto named = [&](const std::string& letters) { return plain(letters, equation); };
  std::vector<Lettered<T>> operands;
  int most_hidden = 0;
  std::string rest = equation.substr(0, arrow);
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string letters = with_letters(rest.substr(0, comma), c.at(i).rank());
    rest = comma < rest.size() ? rest.substr(comma + 1) : "";
    if (static_cast<int>(letters.size()) != c.at(i).rank()) {
      c.refuse("equation '" + equation + "', operand " + std::to_string(i) + " = " +
                   to_string(c.shape(i)),
               "a letter for each axis");
    }
    operands.push_back({c.value(i), letters});
    most_hidden = std::max(
        most_hidden, static_cast<int>(std::count_if(letters.begin(), letters.end(), [](char l) {
          return l >= '0' && l <= '9';
        })));
  }
  std::string out;
  if (arrow != std::string::npos) {
    std::string wanted = equation.substr(arrow + 2);
    const bool hidden = wanted.find("...") != std::string::npos;
    const auto visible = static_cast<int>(
        std::count_if(wanted.begin(), wanted.end(), [](char l) { return l != ' ' && l != '.'; }));
    out = with_letters(wanted, visible + (hidden ? most_hidden : 0));
  } else {
    std::string all;
    for (const Lettered<T>& operand : operands) {
      all += operand.letters;
    }
    for (int i = most_hidden - 1; i >= 0; --i) {
      out += static_cast<char>('0' + i);
    }
    std::string sorted = all;
    std::sort(sorted.begin(), sorted.end());
    for (const char letter : sorted) {
      if ((letter < '0' || letter > '9') && std::count(all.begin(), all.end(), letter) == 1) {
        out += letter;
      }
    }
  }
  for (Lettered<T>& operand : operands) {
    take_diagonals(operand);
  }
  while (operands.size() > 1) {
    Lettered<T>& a = operands[0];
    Lettered<T>& b = operands[1];
    drop_ones(a, b);
    drop_ones(b, a);
    // What the result or another operand still asks for stays.
    std::string kept;
    Shape result;
    for (const Lettered<T>* of : {&a, &b}) {
      for (std::size_t at = 0; at < of->letters.size(); ++at) {
        const char letter = of->letters[at];
        bool needed = out.find(letter) != std::string::npos;
        for (std::size_t i = 2; i < operands.size(); ++i) {
          needed = needed || operands[i].letters.find(letter) != std::string::npos;
        }
        if (needed && kept.find(letter) == std::string::npos) {
          kept += letter;
          result.push_back(of->value.shape()[static_cast<int>(at)]);
        }
      }
    }
    c.require_budget(result);
    a.value =
        einsum(named(a.letters) + "," + named(b.letters) + "->" + named(kept), a.value, b.value);
    a.letters = kept;
    operands.erase(operands.begin() + 1);
  }
  return c.same(einsum(named(operands[0].letters) + "->" + named(out), operands[0].value));
}

}  // namespace

void add_linear(OperatorList& list) {
  list.family("linear");
  list.add("MatMul", {1, 9, 13}, []<class T>(Call<T>& c) -> Results<T> {
    // Of a map with channels last it is a layer on each cell.
    c.reach.whole = c.at(0).rank() < 4;
    require_product_budget(c, c.shape(0), c.shape(1));
    return c.same(matmul(c.value(0), c.value(1)));
  });
  list.add(
      "Gemm", {1, 6, 7, 9, 11, 13}, []<class T>(Call<T>& c) -> Results<T> { return gemm_rule(c); });
  list.add("Einsum", {12}, []<class T>(Call<T>& c) -> Results<T> { return einsum_rule(c); });
}

}  // namespace fenestra::onnx
