// Layers by the names of their kinds: the only list of them.
#include <fenestra/nn/layer_fields.hpp>
#include <fenestra/nn/layers.hpp>
#include <fenestra/nn/layers/fields.hpp>

#include <map>
#include <string>
#include <vector>

namespace fenestra::nn {

namespace {

template <class T>
using Builders = std::map<std::string_view, Layer<T> (*)(const Description&)>;

template <class T, class... Ls>
void add_builders(Builders<T>& to) {
  (to.emplace(Ls::kind, [](const Description& d) { return Layer<T>(Ls::build(d)); }), ...);
}

template <class T>
const Builders<T>& builders() {
  static const Builders<T> kAll = [] {
    Builders<T> all;
    add_builders<T,
                 BasicConv<T>,
                 BasicConvTranspose<T>,
                 BasicLinear<T>,
                 BasicBatchNorm<T>,
                 BasicGroupNorm<T>,
                 BasicInstanceNorm<T>,
                 BasicLayerNorm<T>,
                 BasicMaxPool<T>,
                 BasicAvgPool<T>,
                 BasicSmoothMaxPool<T>,
                 BasicLpPool<T>,
                 BasicAdaptiveMaxPool<T>,
                 BasicAdaptiveAvgPool<T>,
                 BasicGlobalMaxPool<T>,
                 BasicGlobalAvgPool<T>,
                 BasicIdentity<T>,
                 BasicFlatten<T>,
                 BasicUpsample<T>,
                 BasicDropout<T>,
                 BasicChannelScale<T>,
                 BasicSequential<T>,
                 BasicResidual<T>,
                 BasicBranches<T>,
                 BasicSqueezeExcite<T>>(all);
    [&]<int... i>(std::integer_sequence<int, i...>) {
      add_builders<T, BasicActivation<T, static_cast<Nonlinearity>(i)>...>(all);
    }(std::make_integer_sequence<int, kNonlinearities>{});
    return all;
  }();
  return kAll;
}

}  // namespace

std::vector<std::string> layer_kinds() {
  std::vector<std::string> kinds;
  for (const auto& [kind, build] : builders<float>()) {
    kinds.emplace_back(kind);
  }
  return kinds;
}

std::vector<LayerField> layer_fields(std::string_view kind) {
  Description question = Description::of_layer(kind);
  question.add(std::string(kWhichFields), true);
  try {
    build_layer<float>(question);
  } catch (const FieldList& answer) {
    return answer.fields;
  }
  return {};
}

template <class T>
Layer<T> build_layer(const Description& description) {
  const std::string& kind = description.kind();
  const auto found = builders<T>().find(kind);
  if (found == builders<T>().end()) {
    std::string all;
    for (const std::string& known : layer_kinds()) {
      all += (all.empty() ? "" : ", ") + known;
    }
    throw Error(ErrorCode::unknown_model,
                "layer \"" + kind + "\" does not exist\n  fix: one of " + all);
  }
  return found->second(description);
}
template Layer<float> build_layer(const Description& description);
template Layer<double> build_layer(const Description& description);

}  // namespace fenestra::nn
