// Description: what a layer is, as data that reads and prints as JSON. A model of layers describes
// itself, goes into a file as text, and is built again from it (`build_layer`).
//
//   {"layer": "conv", "in": 3, "out": 16, "kernel": 3, "padding": 1}
//
// Only what differs from the default is written.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/base/export.hpp>
#include <fenestra/spec/options.hpp>

#include <concepts>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace fenestra::nn {

class FENESTRA_API Description {
 public:
  using List = std::vector<Description>;
  using Fields = std::vector<std::pair<std::string, Description>>;

  /// Exactly a bool: a text must not become one.
  template <std::same_as<bool> B>
  Description(B value) : form_(value) {}
  Description(double value) : form_(value) {}
  Description(std::string text) : form_(std::move(text)) {}
  Description(List list) : form_(std::move(list)) {}
  Description(Fields fields) : form_(std::move(fields)) {}
  /// A layer of this kind, without fields so far.
  static Description of_layer(std::string_view kind) {
    return Fields{{"layer", std::string(kind)}};
  }

  /// Throws `bad_file` with the place and what was expected.
  static Description parse(std::string_view text);
  /// JSON on one line.
  std::string text() const;
  /// For people: a line for each layer.
  std::string outline() const;

  /// Null where it is something else.
  const bool* boolean() const { return std::get_if<bool>(&form_); }
  const double* number() const { return std::get_if<double>(&form_); }
  const std::string* word() const { return std::get_if<std::string>(&form_); }
  const List* list() const { return std::get_if<List>(&form_); }
  const Fields* fields() const { return std::get_if<Fields>(&form_); }
  /// A field, or null.
  const Description* find(std::string_view name) const;
  /// The kind of the layer that this describes; throws `bad_file` where it describes none.
  const std::string& kind() const;

  void add(std::string name, Description value) {
    std::get<Fields>(form_).emplace_back(std::move(name), std::move(value));
  }

 private:
  std::variant<bool, double, std::string, List, Fields> form_;
};

/// A layer that says what it is.
template <class L>
concept Describable = requires(const L& layer) {
  { layer.describe() } -> std::same_as<Description>;
};

/// "conv(in=3, out=16, kernel=3)"; what a layer is made of follows on lines of its own.
template <Describable L>
std::string to_string(const L& layer) {
  return layer.describe().outline();
}
template <Describable L>
std::ostream& operator<<(std::ostream& out, const L& layer) {
  return out << to_string(layer);
}

}  // namespace fenestra::nn
