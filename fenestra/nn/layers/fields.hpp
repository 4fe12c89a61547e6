// Options of layers as fields of a description, listed once for both directions. Not installed.
//
// A list is `list_fields(options, a)`, which calls a("stride", options.stride) for each field. With
// a FieldWriter it adds those that differ from the default to a description; with a FieldReader it
// fills the options from one, and refuses what it does not know.
#pragma once

#include <fenestra/nn/description.hpp>
#include <fenestra/nn/layer_fields.hpp>
#include <fenestra/spec/options.hpp>

#include <cmath>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace fenestra::nn {

// --- Values of fields ----------------------------------------------------------------------------

inline Description to_description(bool value) { return value; }
inline Description to_description(double value) { return value; }
inline Description to_description(Index value) { return static_cast<double>(value); }
inline Description to_description(const std::string& value) { return value; }
inline Description to_description(const PerAxis& value) {
  if (value.count <= 0) {
    return static_cast<double>(value.values[0]);
  }
  Description::List list;
  for (int axis = 0; axis < value.count; ++axis) {
    list.emplace_back(static_cast<double>(value.values[axis]));
  }
  return list;
}
inline Description to_description(const Padding& value) {
  if (value.is_same) {
    return std::string("same");
  }
  if (value.low == value.high) {
    return to_description(value.low);
  }
  Description::List list;
  for (int axis = 0; axis < value.low.count; ++axis) {
    list.emplace_back(Description::List{static_cast<double>(value.low[axis]),
                                        static_cast<double>(value.high[axis])});
  }
  return list;
}
inline Description to_description(const Shape& value) {
  Description::List list;
  for (int axis = 0; axis < value.rank(); ++axis) {
    list.emplace_back(static_cast<double>(value[axis]));
  }
  return list;
}

inline Description to_description(PadCells cells) {
  return std::string(cells == PadCells::zero ? "zero" : "ignore");
}
inline Description to_description(const OptionalIndex& value) {
  return static_cast<double>(value.value);
}

/// What a field cannot be.
struct BadField {
  std::string needed;
};

inline void from_description(const Description& from, bool& to) {
  if (from.boolean() == nullptr) {
    throw BadField{"true or false"};
  }
  to = *from.boolean();
}
inline void from_description(const Description& from, double& to) {
  if (from.number() == nullptr) {
    throw BadField{"a number"};
  }
  to = *from.number();
}
inline void from_description(const Description& from, Index& to) {
  const double* number = from.number();
  if (number == nullptr || std::nearbyint(*number) != *number || std::fabs(*number) > 0x1p53) {
    throw BadField{"a whole number"};
  }
  to = static_cast<Index>(*number);
}
inline void from_description(const Description& from, std::string& to) {
  if (from.word() == nullptr) {
    throw BadField{"a word in quotes"};
  }
  to = *from.word();
}
inline void from_description(const Description& from, PerAxis& to) {
  Index value = 0;
  if (const Description::List* list = from.list();
      list != nullptr && !list->empty() && list->size() <= kMaxSpatialRank) {
    to = PerAxis();
    for (const Description& item : *list) {
      from_description(item, value);
      to.push_back(value);
    }
  } else if (from.number() != nullptr) {
    from_description(from, value);
    to = value;
  } else {
    throw BadField{"a whole number, or one for each axis"};
  }
}
inline void from_description(const Description& from, Padding& to) {
  const Description::List* list = from.list();
  if (from.word() != nullptr && *from.word() == "same") {
    to = same;
  } else if (list != nullptr && !list->empty() && list->front().list() != nullptr) {
    to.low = to.high = PerAxis();
    for (const Description& item : *list) {
      PerAxis pair;
      from_description(item, pair);
      if (pair.count != 2 || to.low.count == kMaxSpatialRank) {
        throw BadField{"a pair [low, high] for each axis"};
      }
      to.push_back({pair[0], pair[1]});
    }
  } else {
    PerAxis both;
    from_description(from, both);
    to = both;
  }
}
inline void from_description(const Description& from, Shape& to) {
  const Description::List* list = from.list();
  if (list == nullptr || list->size() > kMaxRank) {
    throw BadField{"a list of extents"};
  }
  to = Shape();
  for (const Description& item : *list) {
    Index extent = 0;
    from_description(item, extent);
    to.push_back(extent);
  }
}

inline void from_description(const Description& from, PadCells& to) {
  std::string word;
  from_description(from, word);
  if (word != "zero" && word != "ignore") {
    throw BadField{"\"ignore\" or \"zero\""};
  }
  to = word == "zero" ? PadCells::zero : PadCells::ignore;
}
inline void from_description(const Description& from, OptionalIndex& to) {
  Index value = 0;
  from_description(from, value);
  to = value;
}

/// See LayerField::type.
template <class V>
constexpr std::string_view field_type() {
  if constexpr (std::is_same_v<V, bool>) {
    return "flag";
  } else if constexpr (std::is_same_v<V, double>) {
    return "number";
  } else if constexpr (std::is_same_v<V, Index>) {
    return "whole";
  } else if constexpr (std::is_same_v<V, OptionalIndex>) {
    return "optional whole";
  } else if constexpr (std::is_same_v<V, PerAxis>) {
    return "axes";
  } else if constexpr (std::is_same_v<V, Padding>) {
    return "padding";
  } else if constexpr (std::is_same_v<V, Shape>) {
    return "extents";
  } else if constexpr (std::is_same_v<V, PadCells>) {
    return "pad cells";
  } else {
    static_assert(std::is_same_v<V, std::string>, "fenestra: a field without a name for its type");
    return "word";
  }
}

/// What is there before anybody says it; nothing where the layer finds it out by itself.
template <class V>
std::optional<Description> standard_of(const V& value) {
  if constexpr (std::is_same_v<V, PerAxis>) {
    return value.is_given() ? std::optional(to_description(value)) : std::nullopt;
  } else if constexpr (std::is_same_v<V, OptionalIndex>) {
    return value.given ? std::optional(to_description(value)) : std::nullopt;
  } else {
    return to_description(value);
  }
}

/// A field of this name in a description asks which fields there are, see `layer_fields`. It is an
/// error like any other field that nobody knows.
inline constexpr std::string_view kWhichFields = "";

class FieldList : public Error {
 public:
  FieldList(const std::string& what, std::vector<LayerField> list)
      : Error(ErrorCode::bad_file, what), fields(std::move(list)) {}

  std::vector<LayerField> fields;
};

/// The options of an operator list their fields themselves. Layers have the channels first.
template <class Options, class A>
  requires requires { Options::fields([](std::string_view, auto, const FieldInfo&) {}); }
void list_fields(const Options&, A&& a) {
  Options::fields([&]<class V>(std::string_view name, V Options::*member, const FieldInfo&) {
    if constexpr (!std::is_same_v<V, Layout>) {
      a(name, member);
    }
  });
}

/// The options of an operator, from the settings of its layer that have the same names.
template <class Options, class Settings>
Options operator_options(const Settings& settings) {
  Options options;
  list_fields(options, [&]<class V>(std::string_view name, V Options::*to) {
    list_fields(settings, [&]<class W>(std::string_view other, W Settings::*from) {
      if constexpr (std::is_same_v<V, W>) {
        if (name == other) {
          options.*to = settings.*from;
        }
      }
    });
  });
  return options;
}

// --- The two directions --------------------------------------------------------------------------

/// Adds what differs from `defaults`, field by field in the order of the list.
template <class Options>
class FieldWriter {
 public:
  FieldWriter(Description& to, const Options& options) : to_(to), options_(options) {}
  template <class M>
  void operator()(std::string_view name, M Options::*member) const {
    static const Options kDefaults{};
    if (!(options_.*member == kDefaults.*member)) {
      to_.add(std::string(name), to_description(options_.*member));
    }
  }

 private:
  Description& to_;
  const Options& options_;
};

/// Reads fields of one description and remembers which names there are.
class FieldReader {
 public:
  explicit FieldReader(const Description& from) : from_(from) {}

  /// Whether only the list of fields is wanted: nothing is missing then.
  bool lists() const { return from_.find(kWhichFields) != nullptr; }

  template <class V>
  void optional(std::string_view name, V& to) {
    known_.push_back({std::string(name), std::string(field_type<V>()), false, standard_of<V>(to)});
    if (const Description* field = from_.find(name)) {
      try {
        from_description(*field, to);
      } catch (const BadField& bad) {
        throw Error(ErrorCode::bad_file,
                    "layer \"" + from_.kind() + "\": " + std::string(name) + " = " +
                        field->text().substr(0, 40) + "\n  fix: " + bad.needed);
      }
    }
  }
  template <class V>
  V needed(std::string_view name) {
    V value{};
    optional(name, value);
    known_.back().needed = true;
    known_.back().standard.reset();
    if (from_.find(name) == nullptr && !lists()) {
      throw Error(ErrorCode::bad_file,
                  "layer \"" + from_.kind() + "\": \"" + std::string(name) +
                      "\" is missing\n  fix: give it");
    }
    return value;
  }
  /// A part that is read by somebody else; null where it is not there.
  const Description* part(std::string_view name) {
    known_.push_back({std::string(name), "part"});
    return from_.find(name);
  }
  template <class Options>
  Options options() {
    Options result;
    list_fields(result, [&](std::string_view name, auto Options::*member) {
      optional(name, result.*member);
    });
    return result;
  }
  /// Every field must have been asked for.
  void finish() const {
    for (const auto& [name, value] : *from_.fields()) {
      bool is_known = name == "layer";
      std::string all;
      for (const LayerField& known : known_) {
        is_known = is_known || known.name == name;
        all += (all.empty() ? "" : ", ") + known.name;
      }
      if (!is_known) {
        throw FieldList("layer \"" + from_.kind() + "\": unknown field \"" + name +
                            "\"\n  fix: " + (all.empty() ? "it has no fields" : "one of " + all),
                        known_);
      }
    }
  }

 private:
  const Description& from_;
  std::vector<LayerField> known_;
};

template <class Options>
void add_fields(Description& to, const Options& options) {
  list_fields(options, FieldWriter<Options>(to, options));
}

/// A field that must be there, by its name.
template <class V>
struct NeededField {
  std::string_view name;
  V value = {};  ///< of a layer that is described
};
template <class V>
NeededField(std::string_view, V) -> NeededField<V>;

/// A layer's needed fields, then those of its settings.
template <class Settings, class... V>
Description describe_layer(std::string_view kind,
                           const Settings& settings,
                           const NeededField<V>&... needed) {
  Description result = Description::of_layer(kind);
  (result.add(std::string(needed.name), to_description(needed.value)), ...);
  add_fields(result, settings);
  return result;
}

/// The layer that `describe_layer` describes, from the values of the needed fields and the
/// settings.
template <class Made, class Settings, class... V>
Made layer_of(const Description& description, const NeededField<V>&... needed) {
  FieldReader reader(description);
  const std::tuple<V...> values{reader.needed<V>(needed.name)...};
  const auto settings = reader.options<Settings>();
  reader.finish();
  return std::apply([&](const V&... value) { return Made(value..., settings); }, values);
}

}  // namespace fenestra::nn
