// einsum: sums of products by letters, for one or two tensors: "ij,jk->ik", "bij->bji", "ij->".
//
// Letters that only one tensor has and the result lacks are summed first; then the axes are brought
// into the order of a stack of matrix products, and the result into its own. Without "->" the
// result has the letters that occur once, in alphabetical order. A letter twice in one tensor (a
// diagonal) and "..." are refused.
#pragma once

#include <fenestra/engine/apply.hpp>
#include <fenestra/ops/matmul/matmul.hpp>
#include <fenestra/ops/reduce/reduce.hpp>
#include <fenestra/ops/reshape/reshape.hpp>
#include <fenestra/ops/transpose/transpose.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra {

/// The letters of the axes of each tensor and of the result.
struct EinsumLetters {
  std::vector<std::string> in;
  std::string out;
};

namespace detail {

[[noreturn]] inline void throw_einsum(std::string_view text,
                                      const std::string& what,
                                      const std::string& fix) {
  throw Error("einsum",
              {.code = ErrorCode::shape_mismatch, .argument = Argument::none},
              "einsum: \"" + std::string(text) + "\": " + what + "\n  fix: " + fix);
}

inline std::string letters_of(std::string_view text, std::string_view part) {
  std::string letters;
  for (const char c : part) {
    if (c == ' ') {
      continue;
    }
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) {
      throw_einsum(text,
                   std::string("'") + c + "' names no axis",
                   "letters from a to z and A to Z; there is no \"...\"");
    }
    if (letters.find(c) != std::string::npos) {
      throw_einsum(text,
                   std::string("'") + c + "' twice in one tensor",
                   "a letter for each axis; diagonals are not taken");
    }
    letters += c;
  }
  return letters;
}

/// x with its axes in the order of `to`, all of which it has; axes that are not there are summed.
template <AnyValue V>
V in_order(const V& x, const std::string& letters, const std::string& to) {
  AxisList summed;
  std::string kept;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    if (to.find(letters[i]) == std::string::npos) {
      summed.push_back(static_cast<int>(i));
    } else {
      kept += letters[i];
    }
  }
  const V rest = summed.empty() ? x : sum(x, {.axes = summed});
  std::vector<int> order;
  for (const char c : to) {
    order.push_back(static_cast<int>(kept.find(c)));
  }
  return transpose(rest, std::span<const int>(order));
}

}  // namespace detail

/// "ij,jk->ik" for `count` tensors taken apart; throws where it is none.
inline EinsumLetters parse_einsum(std::string_view text, std::size_t count) {
  EinsumLetters letters;
  const std::size_t arrow = text.find("->");
  const std::string_view left = text.substr(0, arrow);
  std::size_t at = 0;
  for (;;) {
    const std::size_t comma = left.find(',', at);
    const std::size_t end = comma == std::string_view::npos ? left.size() : comma;
    letters.in.push_back(detail::letters_of(text, left.substr(at, end - at)));
    if (comma == std::string_view::npos) {
      break;
    }
    at = comma + 1;
  }
  if (letters.in.size() != count) {
    detail::throw_einsum(
        text,
        std::to_string(letters.in.size()) + " tensors named, " + std::to_string(count) + " given",
        "one or two, with a comma between them");
  }
  std::string all;
  for (const std::string& part : letters.in) {
    all += part;
  }
  if (arrow != std::string_view::npos) {
    letters.out = detail::letters_of(text, text.substr(arrow + 2));
    for (const char c : letters.out) {
      if (all.find(c) == std::string::npos) {
        detail::throw_einsum(text,
                             std::string("'") + c + "' of the result is in no tensor",
                             "letters of the tensors behind the arrow");
      }
    }
    return letters;
  }
  for (const char c : all) {
    if (std::count(all.begin(), all.end(), c) == 1) {
      letters.out += c;
    }
  }
  std::sort(letters.out.begin(), letters.out.end());
  return letters;
}

namespace detail {

inline void require_letters(std::string_view text, const std::string& letters, const Shape& x) {
  if (static_cast<int>(letters.size()) != x.rank()) {
    throw_einsum(text,
                 "\"" + letters + "\" for a tensor " + to_string(x),
                 "a letter for each of its " + std::to_string(x.rank()) + " axes");
  }
}

}  // namespace detail

inline namespace generic {

template <AnyValue V>
V einsum(std::string_view text, const V& x) {
  const EinsumLetters letters = parse_einsum(text, 1);
  detail::require_letters(text, letters.in[0], x.shape());
  return detail::in_order(x, letters.in[0], letters.out);
}

template <AnyValue V>
V einsum_values(std::string_view text, const V& a, const V& b) {
  const EinsumLetters letters = parse_einsum(text, 2);
  const std::string& of_a = letters.in[0];
  const std::string& of_b = letters.in[1];
  detail::require_letters(text, of_a, a.shape());
  detail::require_letters(text, of_b, b.shape());
  // The letters of a stack of products (stack, rows, depth) * (stack, depth, columns).
  std::string stack, rows, depth, columns;
  Shape shape;  // of the result, in the order stack, rows, columns
  Index sizes[] = {1, 1, 1, 1};
  const auto in = [](const std::string& text_of, char c) {
    return text_of.find(c) != std::string::npos;
  };
  for (std::size_t i = 0; i < of_a.size(); ++i) {
    const char c = of_a[i];
    const Index extent = a.shape()[static_cast<int>(i)];
    const bool kept = in(letters.out, c);
    if (in(of_b, c)) {
      const Index other = b.shape()[static_cast<int>(of_b.find(c))];
      if (other != extent) {
        detail::throw_einsum(text,
                             std::string("'") + c + "' is " + std::to_string(extent) + " in " +
                                 to_string(a.shape()) + " and " + std::to_string(other) + " in " +
                                 to_string(b.shape()),
                             "equal extents for a letter");
      }
      (kept ? stack : depth) += c;
      sizes[kept ? 0 : 2] *= extent;
    } else if (kept) {
      rows += c;
      sizes[1] *= extent;
    }
  }
  for (std::size_t i = 0; i < of_b.size(); ++i) {
    if (!in(of_a, of_b[i]) && in(letters.out, of_b[i])) {
      columns += of_b[i];
      sizes[3] *= b.shape()[static_cast<int>(i)];
    }
  }
  const std::string found = stack + rows + columns;
  for (const char c : found) {
    shape.push_back(in(of_a, c) ? a.shape()[static_cast<int>(of_a.find(c))]
                                : b.shape()[static_cast<int>(of_b.find(c))]);
  }
  const V left =
      reshape(detail::in_order(a, of_a, stack + rows + depth), Shape{sizes[0], sizes[1], sizes[2]});
  const V right = reshape(detail::in_order(b, of_b, stack + depth + columns),
                          Shape{sizes[0], sizes[2], sizes[3]});
  const V product = stack.empty() ? matmul(reshape(left, Shape{sizes[1], sizes[2]}),
                                           reshape(right, Shape{sizes[2], sizes[3]}))
                                  : matmul(left, right);
  return detail::in_order(reshape(product, shape), found, letters.out);
}

}  // namespace generic

}  // namespace fenestra
