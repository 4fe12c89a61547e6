// Layers made of layers.
#include <fenestra/nn/layers/activation.hpp>
#include <fenestra/nn/layers/combine.hpp>
#include <fenestra/nn/layers/fields.hpp>
#include <fenestra/ops/concat/call.hpp>
#include <fenestra/ops/elementwise/call.hpp>
#include <fenestra/ops/pool/call.hpp>
#include <fenestra/ops/reshape/call.hpp>

#include <string>
#include <utility>

namespace fenestra::nn {

template <class A>
void list_fields(const SqueezeExciteSettings&, A&& a) {
  a("hard", &SqueezeExciteSettings::hard);
}

namespace {

constexpr std::string_view kPlace = "layer at ";

/// A layer of a container; what it refuses is said with its place in the model.
template <class T>
Value<T> call_part(const Layer<T>& layer, std::string_view name, const Value<T>& x, Pass<T>& pass) {
  const auto scope = pass.enter(name);
  try {
    return layer(x, pass);
  } catch (const Error& error) {
    const std::string text = error.what();
    if (text.starts_with(kPlace)) {
      throw;  // by a container further in
    }
    throw Error(
        error.op(), error.fault(), std::string(kPlace) + "\"" + pass.scope() + "\": " + text);
  }
}

[[noreturn]] void refuse_list(std::string_view kind) {
  throw Error(ErrorCode::bad_file,
              "layer \"" + std::string(kind) +
                  "\": \"layers\" is not a list\n  fix: [{\"layer\": "
                  "...}, ...]");
}

template <class T>
Description::List described(const std::vector<Layer<T>>& layers) {
  Description::List list;
  for (const Layer<T>& layer : layers) {
    list.push_back(layer.describe());
  }
  return list;
}

/// The layers of the field "layers".
template <class T>
std::vector<Layer<T>> built(FieldReader& reader, std::string_view kind) {
  const Description* list = reader.part("layers");
  if (reader.lists()) {
    return {};
  }
  if (list == nullptr || list->list() == nullptr) {
    refuse_list(kind);
  }
  std::vector<Layer<T>> layers;
  for (const Description& item : *list->list()) {
    layers.push_back(build_layer<T>(item));
  }
  return layers;
}

}  // namespace

// --- sequential --------------------------------------------------------------------------------

template <class T>
BasicSequential<T>& BasicSequential<T>::add(std::string name, Layer<T> layer) {
  bool is_new = !name.empty() && name.find('.') == std::string::npos;
  for (const auto& [known, other] : layers_) {
    is_new = is_new && known != name;
  }
  if (!is_new) {
    throw Error(ErrorCode::invalid_option,
                "layer \"sequential\": name \"" + name +
                    "\"\n  fix: a name without a dot that no other layer of it has");
  }
  layers_.emplace_back(std::move(name), std::move(layer));
  return *this;
}

template <class T>
Value<T> BasicSequential<T>::operator()(const Value<T>& x, Pass<T>& pass) const {
  Value<T> y = x;
  for (const auto& [name, layer] : layers_) {
    y = call_part(layer, name, y, pass);
  }
  return pass.observed_whole(kind, x, std::move(y));
}

template <class T>
Description BasicSequential<T>::describe() const {
  Description result = Description::of_layer(kind);
  Description::List list;
  Description::List names;
  bool is_numbered = true;
  for (const auto& [name, layer] : layers_) {
    is_numbered = is_numbered && name == std::to_string(list.size());
    list.push_back(layer.describe());
    names.emplace_back(name);
  }
  if (!is_numbered) {
    result.add("names", std::move(names));
  }
  result.add("layers", std::move(list));
  return result;
}

template <class T>
BasicSequential<T> BasicSequential<T>::build(const Description& description) {
  FieldReader reader(description);
  std::vector<Layer<T>> layers = built<T>(reader, kind);
  const Description* names = reader.part("names");
  reader.finish();
  if (names != nullptr && (names->list() == nullptr || names->list()->size() != layers.size())) {
    throw Error(ErrorCode::bad_file,
                "layer \"sequential\": \"names\" does not name its " +
                    std::to_string(layers.size()) + " layers\n  fix: a list of as many words");
  }
  BasicSequential result;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    std::string name = std::to_string(i);
    if (names != nullptr) {
      const std::string* word = (*names->list())[i].word();
      name = word != nullptr ? *word : std::string();
    }
    result.add(name, std::move(layers[i]));
  }
  return result;
}

// --- residual ----------------------------------------------------------------------------------

template <class T>
BasicResidual<T>::BasicResidual(Layer<T> body, Settings settings)
    : body_(std::move(body)), settings_(std::move(settings)) {}

template <class T>
Value<T> BasicResidual<T>::operator()(const Value<T>& x, Pass<T>& pass) const {
  const Value<T> moved = call_part(body_, "body", x, pass);
  const Value<T> kept =
      settings_.projection ? call_part(*settings_.projection, "projection", x, pass) : x;
  if (moved.shape() != kept.shape()) {
    throw Error(std::string(kind),
                {.code = ErrorCode::shape_mismatch, .argument = Argument::x},
                "layer \"residual\": the body gives " + to_string(moved.shape()) +
                    ", the short cut " + to_string(kept.shape()) +
                    "\n  fix: a body that keeps the shape, or a projection to the body's");
  }
  Value<T> y = add(moved, kept);
  if (settings_.after) {
    y = call_part(*settings_.after, "after", y, pass);
  }
  return pass.observed_whole(kind, x, std::move(y));
}

template <class T>
Description BasicResidual<T>::describe() const {
  Description result = Description::of_layer(kind);
  result.add("body", body_.describe());
  if (settings_.projection) {
    result.add("projection", settings_.projection->describe());
  }
  if (settings_.after) {
    result.add("after", settings_.after->describe());
  }
  return result;
}

template <class T>
BasicResidual<T> BasicResidual<T>::build(const Description& description) {
  FieldReader reader(description);
  const Description* body = reader.part("body");
  const Description* projection = reader.part("projection");
  const Description* after = reader.part("after");
  reader.finish();
  if (body == nullptr) {
    throw Error(ErrorCode::bad_file, "layer \"residual\": \"body\" is missing\n  fix: give it");
  }
  Settings settings;
  if (projection != nullptr) {
    settings.projection = build_layer<T>(*projection);
  }
  if (after != nullptr) {
    settings.after = build_layer<T>(*after);
  }
  return BasicResidual(build_layer<T>(*body), std::move(settings));
}

// --- branches ----------------------------------------------------------------------------------

template <class T>
BasicBranches<T>::BasicBranches(std::vector<Layer<T>> branches) : branches_(std::move(branches)) {
  if (branches_.empty()) {
    throw Error(ErrorCode::invalid_option, "layer \"branches\": no branch\n  fix: at least one");
  }
}

template <class T>
Value<T> BasicBranches<T>::operator()(const Value<T>& x, Pass<T>& pass) const {
  std::vector<Value<T>> results;
  for (std::size_t i = 0; i < branches_.size(); ++i) {
    results.push_back(call_part(branches_[i], std::to_string(i), x, pass));
  }
  return pass.observed_whole(kind, x, concat(results, 1));
}

template <class T>
Description BasicBranches<T>::describe() const {
  Description result = Description::of_layer(kind);
  result.add("layers", described(branches_));
  return result;
}

template <class T>
BasicBranches<T> BasicBranches<T>::build(const Description& description) {
  FieldReader reader(description);
  std::vector<Layer<T>> layers = built<T>(reader, kind);
  reader.finish();
  return BasicBranches(std::move(layers));
}

// --- squeeze_excite ----------------------------------------------------------------------------

template <class T>
BasicSqueezeExcite<T>::BasicSqueezeExcite(Index channels,
                                          Index squeezed,
                                          const SqueezeExciteSettings& settings)
    : channels_(channels),
      squeezed_(squeezed),
      settings_(settings),
      squeeze_(channels, squeezed),
      excite_(squeezed, channels) {}

template <class T>
Value<T> BasicSqueezeExcite<T>::operator()(const Value<T>& x) const {
  if (x.rank() < 3 || x.shape()[1] != channels_) {
    throw Error(std::string(kind),
                {.code = ErrorCode::channel_mismatch, .argument = Argument::x, .needed = channels_},
                "layer \"squeeze_excite\": x = " + to_string(x.shape()) + "\n  fix: (N, " +
                    std::to_string(channels_) + ", spatial...)");
  }
  const Value<T> pooled = adaptive_avg_pool(x, global_pool(), x.rank() - 2);
  const Value<T> means = reshape(pooled, Shape{x.shape()[0], channels_});
  const Value<T> scores = excite_(relu(squeeze_(means)));
  const Value<T> gate = settings_.hard ? hard_sigmoid(scores) : sigmoid(scores);
  return mul(x, reshape(gate, pooled.shape()));
}

template <class T>
Description BasicSqueezeExcite<T>::describe() const {
  return describe_layer(
      kind, settings_, NeededField{"channels", channels_}, NeededField{"squeezed", squeezed_});
}

template <class T>
BasicSqueezeExcite<T> BasicSqueezeExcite<T>::build(const Description& description) {
  return layer_of<BasicSqueezeExcite, SqueezeExciteSettings>(
      description, NeededField<Index>{"channels"}, NeededField<Index>{"squeezed"});
}

template class BasicSequential<float>;
template class BasicSequential<double>;
template class BasicResidual<float>;
template class BasicResidual<double>;
template class BasicBranches<float>;
template class BasicBranches<double>;
template class BasicSqueezeExcite<float>;
template class BasicSqueezeExcite<double>;

}  // namespace fenestra::nn
