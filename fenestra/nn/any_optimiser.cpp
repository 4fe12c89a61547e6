// Optimisers by name, and their state under names.
#include <fenestra/nn/any_optimiser.hpp>
#include <fenestra/nn/words.hpp>

#include <algorithm>
#include <type_traits>
#include <utility>

namespace fenestra::nn {

namespace {

// The options of each, in the order in which they are printed.
template <class F>
void for_each_option(SgdOptions& o, const F& f) {
  f("rate", o.rate);
  f("momentum", o.momentum);
  f("nesterov", o.nesterov);
  f("weight_decay", o.weight_decay);
}
template <class F>
void for_each_option(AdamOptions& o, const F& f) {
  f("rate", o.rate);
  f("beta1", o.beta1);
  f("beta2", o.beta2);
  f("epsilon", o.epsilon);
  f("weight_decay", o.weight_decay);
}
template <class F>
void for_each_option(RmsPropOptions& o, const F& f) {
  f("rate", o.rate);
  f("smoothing", o.smoothing);
  f("epsilon", o.epsilon);
  f("momentum", o.momentum);
  f("centred", o.centred);
  f("weight_decay", o.weight_decay);
}
template <class F>
void for_each_option(LionOptions& o, const F& f) {
  f("rate", o.rate);
  f("beta1", o.beta1);
  f("beta2", o.beta2);
  f("weight_decay", o.weight_decay);
}
template <class F>
void for_each_option(LambOptions& o, const F& f) {
  f("rate", o.rate);
  f("beta1", o.beta1);
  f("beta2", o.beta2);
  f("epsilon", o.epsilon);
  f("weight_decay", o.weight_decay);
}

/// The options as (key, text), only those that are said.
std::vector<std::pair<std::string, std::string>> said(const OptimiserOptions& o) {
  std::vector<std::pair<std::string, std::string>> result;
  const auto add = [&](const char* key, const auto& option) {
    if (option) {
      result.emplace_back(key, detail::number_text(static_cast<double>(*option)));
    }
  };
  add("rate", o.rate);
  add("momentum", o.momentum);
  add("nesterov", o.nesterov);
  add("beta1", o.beta1);
  add("beta2", o.beta2);
  add("epsilon", o.epsilon);
  add("smoothing", o.smoothing);
  add("centred", o.centred);
  add("weight_decay", o.weight_decay);
  return result;
}

template <class Options>
Options with_options(Options options,
                     std::string_view text,
                     const std::string& name,
                     const std::vector<std::pair<std::string, std::string>>& given) {
  for (const auto& [key, value] : given) {
    bool found = false;
    std::vector<std::string_view> known;
    for_each_option(options, [&](const char* option, auto& place) {
      known.emplace_back(option);
      if (key != option) {
        return;
      }
      found = true;
      if constexpr (std::is_same_v<decltype(place), bool&>) {
        if (value != "0" && value != "1" && value != "true" && value != "false") {
          detail::throw_words(
              "optimiser", text, key + " = \"" + value + "\"", key + "=true or " + key + "=false");
        }
        place = value == "1" || value == "true";
      } else {
        place = detail::parse_number("optimiser", text, key, value);
      }
    });
    if (!found) {
      detail::throw_unknown_option("optimiser", text, name, key, known);
    }
  }
  return options;
}

template <class T>
std::string_view name_of(const Sgd<T>&) {
  return "sgd";
}
template <class T>
std::string_view name_of(const Adam<T>& adam) {
  return adam.options().decoupled ? "adamw" : "adam";
}
template <class T>
std::string_view name_of(const RmsProp<T>&) {
  return "rmsprop";
}
template <class T>
std::string_view name_of(const Lion<T>&) {
  return "lion";
}
template <class T>
std::string_view name_of(const Lamb<T>&) {
  return "lamb";
}

[[noreturn]] void throw_state(const std::string& problem) {
  throw Error(ErrorCode::bad_file,
              "optimiser state: " + problem +
                  "\n  fix: the state of the same optimiser and the same parameters");
}

template <class State>
constexpr bool kCounts = requires(State& state) { state.steps; };

}  // namespace

std::vector<std::string> optimiser_names() {
  return {"sgd", "adam", "adamw", "rmsprop", "lion", "lamb"};
}

template <KernelScalar T>
Optimiser<T> Optimiser<T>::make(std::string_view text, const OptimiserOptions& options) {
  detail::Words words = detail::parse_words("optimiser", text);
  for (auto& option : said(options)) {
    words.options.push_back(std::move(option));
  }
  const auto with = [&](const auto& defaults) {
    return with_options(defaults, text, words.name, words.options);
  };
  if (words.name == "sgd") {
    return Sgd<T>(with(SgdOptions{}));
  }
  if (words.name == "adam") {
    return Adam<T>(with(AdamOptions{}));
  }
  if (words.name == "adamw") {
    return Adam<T>(with(AdamOptions{.weight_decay = 0.01, .decoupled = true}));
  }
  if (words.name == "rmsprop") {
    return RmsProp<T>(with(RmsPropOptions{}));
  }
  if (words.name == "lion") {
    return Lion<T>(with(LionOptions{}));
  }
  if (words.name == "lamb") {
    return Lamb<T>(with(LambOptions{}));
  }
  detail::throw_unknown("optimiser", text, words.name, optimiser_names());
}

template <KernelScalar T>
std::string_view Optimiser<T>::name() const {
  return std::visit([](const auto& one) { return name_of(one); }, one_);
}

template <KernelScalar T>
std::string Optimiser<T>::text() const {
  std::string text(name());
  std::visit(
      [&](const auto& one) {
        auto options = one.options();
        for_each_option(options, [&](const char* key, const auto& value) {
          text += " " + std::string(key) + "=" + detail::number_text(static_cast<double>(value));
        });
      },
      one_);
  return text;
}

template <KernelScalar T>
double Optimiser<T>::rate() const {
  return std::visit([](const auto& one) { return one.options().rate; }, one_);
}

template <KernelScalar T>
void Optimiser<T>::set_rate(double rate) {
  std::visit([&](auto& one) { one.set_rate(rate); }, one_);
}

template <KernelScalar T>
void Optimiser<T>::step(std::span<Tensor<T>* const> parameters,
                        std::span<const Tensor<T>> gradients) {
  std::vector<detail::ParameterPiece<T>> pieces;
  for (Tensor<T>* parameter : parameters) {
    pieces.emplace_back(*parameter);
  }
  step(std::move(pieces), gradients);
}

template <KernelScalar T>
void Optimiser<T>::step(std::vector<detail::ParameterPiece<T>> pieces,
                        std::span<const Tensor<T>> gradients) {
  const detail::Update<T> update(name(), std::move(pieces), gradients);
  std::visit([&](auto& one) { one.step(update); }, one_);
}

template <KernelScalar T>
io::TensorMap Optimiser<T>::state(std::span<const std::string> names) const {
  io::TensorMap result;
  std::visit(
      [&](const auto& one) {
        auto state = one.state();
        if constexpr (kCounts<decltype(state)>) {
          result["steps"] = Tensor<Index>(Shape{}, state.steps);
        }
        state.parts([&](const char* part, std::vector<Tensor<T>>& tensors) {
          if (!tensors.empty() && tensors.size() != names.size()) {
            throw Error(ErrorCode::shape_mismatch,
                        "optimiser: " + std::to_string(names.size()) + " names, its state is of " +
                            std::to_string(tensors.size()) +
                            " parameters\n  fix: the names of all parameters, in their order");
          }
          for (std::size_t i = 0; i < tensors.size(); ++i) {
            result[std::string(part) + "." + names[i]] = tensors[i];
          }
        });
      },
      one_);
  return result;
}

template <KernelScalar T>
std::size_t Optimiser<T>::state_bytes() const {
  std::size_t bytes = 0;
  std::visit(
      [&](const auto& one) {
        auto state = one.state();
        state.parts([&](const char*, std::vector<Tensor<T>>& tensors) {
          for (const Tensor<T>& tensor : tensors) {
            bytes += static_cast<std::size_t>(tensor.size()) * sizeof(T);
          }
        });
      },
      one_);
  return bytes;
}

template <KernelScalar T>
void Optimiser<T>::set_state(std::span<const std::string> names,
                             std::span<const Shape> shapes,
                             const io::TensorMap& given) {
  std::visit(
      [&](auto& one) {
        std::remove_cvref_t<decltype(one.state())> state;
        std::size_t used = 0;
        if constexpr (kCounts<decltype(state)>) {
          const auto steps = given.find("steps");
          if (steps == given.end()) {
            throw_state("no \"steps\"");
          }
          const auto* count = std::get_if<Tensor<Index>>(&steps->second);
          if (count == nullptr || count->size() != 1 || (*count)[0] < 0) {
            throw_state("\"steps\" is not one integer of 0 or more");
          }
          state.steps = (*count)[0];
          ++used;
        }
        state.parts([&](const char* part, std::vector<Tensor<T>>& tensors) {
          for (std::size_t i = 0; i < names.size(); ++i) {
            const std::string name = std::string(part) + "." + names[i];
            const auto found = given.find(name);
            if (found == given.end()) {
              // A part is there for all parameters or for none.
              if (!tensors.empty()) {
                throw_state("no \"" + name + "\"");
              }
              continue;
            }
            const auto* tensor = std::get_if<Tensor<T>>(&found->second);
            if (tensor == nullptr || tensor->shape() != shapes[i]) {
              throw_state("\"" + name + "\" is not of the parameter's type and shape " +
                          to_string(shapes[i]));
            }
            if (tensors.size() != i) {
              throw_state("no \"" + std::string(part) + "." + names[tensors.size()] + "\"");
            }
            tensors.push_back(*tensor);
            ++used;
          }
        });
        if (used != given.size()) {
          throw_state(std::to_string(given.size()) + " tensors, " + std::to_string(used) +
                      " of them of this optimiser and its parameters");
        }
        one.restore(std::move(state));
      },
      one_);
}

template class Optimiser<float>;
template class Optimiser<double>;

}  // namespace fenestra::nn
