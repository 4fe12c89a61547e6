// What a scripting language needs to know of an operator's functions: names, arguments, options and
// documentation. `signature.hpp` in an operator's folder is written with these words; nothing here
// knows a language.
//
//   struct ConvSignature {
//     template <class D>
//     static void declare(D& declarer) {
//       declarer.function({.name = "conv", ...},
//                         [](const auto& x, const auto& w, const auto& b, const ConvOptions& o)
//                         {...}, Input{"input"}, Input{"weight"}, OptionalInput{"bias"},
//                         Options<ConvOptions>{});
//     }
//   };
//
// The callable takes one argument for each word, of the type the word stands for; V is the value
// type the declarer chooses. The struct is named like the operator's descriptor.
#pragma once

#include <fenestra/engine/value_traits.hpp>
#include <fenestra/ops/operator.hpp>
#include <fenestra/spec/options.hpp>
#include <fenestra/tensor/layout.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <optional>
#include <string_view>

namespace fenestra::signature {

/// A function. With `ranks` it also exists as name1d, name2d and name3d, and the callable takes the
/// number of spatial axes as a last argument, 0 where the name says none.
struct About {
  std::string_view name;
  std::string_view text;               ///< what it computes; one paragraph or more
  std::string_view shapes;             ///< "input (N, C, ...) -> output (N, C, ...)"
  std::string_view example;            ///< Python, as doctest reads it; `fn` and `np` are there
  std::string_view result = "Tensor";  ///< its type
  bool ranks = false;
  /// "name: text" lines for arguments that mean more than their name says in every operator.
  std::string_view arguments = {};
  /// The example of name1d and the others: %name stands for the name, %nd for its 1d, and %4 for 4
  /// on each spatial axis.
  std::string_view ranked_example = {};
};

// --- Words for arguments ------------------------------

/// A tensor: V.
struct Input {
  std::string_view name;
};
/// A tensor of which only matters where it is 0, or truth values: V.
struct Mask {
  std::string_view name;
};
/// A tensor or nothing: std::optional<V>.
struct OptionalInput {
  std::string_view name;
};
/// Some tensors: std::vector<V>.
struct InputList {
  std::string_view name;
};
/// Integers that belong to the values: IndicesOf<V>.
struct Data {
  std::string_view name;
};
/// Something else: T, which must be given unless there is a default.
template <class T>
struct Plain {
  std::string_view name;
  std::optional<T> otherwise = std::nullopt;
  bool keyword_only = false;
};
/// An options struct, each field an argument, see FieldInfo: O.
template <class O>
struct Options {};

/// A result with indices where they were asked for.
template <AnyValue V>
struct WithIndices {
  V y;
  std::optional<IndicesOf<V>> indices;
};

}  // namespace fenestra::signature
