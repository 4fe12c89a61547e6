// `fenestra summary`: the layers of a model file or a ready model.
#include <fenestra/base/text.hpp>
#include <fenestra/cli/network.hpp>
#include <fenestra/cli/network_drawing.hpp>
#include <fenestra/cli/run_model.hpp>
#include <fenestra/cli/text.hpp>
#include <fenestra/cli/train_watch.hpp>
#include <fenestra/cli/wrap.hpp>

#include <iostream>

namespace fenestra::cli {

namespace {

std::string joined_names(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

}  // namespace

ExitCode summary_command(const SummaryOptions& options) {
  const Network<float> network =
      load_or_make_network<float>(options.model, options.input, Weights::zero);
  Shape shape{options.batch};
  for (const Index extent : network.input) {
    shape.push_back(extent);
  }
  const nn::Summary summary = nn::summary(network.model, shape);
  if (options.json) {
    Json more = Json::object();
    for (const auto& [key, value] : network.info.more) {
      if (!key.starts_with("train.") && !key.starts_with("fenestra.")) {
        more[key] = value;
      }
    }
    print_json({{"model", network.name},
                {"name", network.info.name},
                {"task", nn::task_name(network.task)},
                {"input", shape_json(summary.input)},
                {"output", shape_json(summary.output)},
                {"parameters", summary.parameters},
                {"buffers", summary.buffers},
                {"multiply_adds", summary.multiply_adds},
                {"classes", network.info.classes},
                {"preprocessing", Json::parse(nn::to_json(network.info.preprocessing))},
                {"metadata", std::move(more)},
                {"layers", layers_json(summary)}});
    return fine;
  }
  const Terminal terminal = terminal_of(Stream::out);
  // A path has no blank to be broken at; its ends say most.
  constexpr std::size_t kNames = 12;
  const bool is_cut = terminal.has_width && terminal.width > 2 * kNames;
  std::vector<std::vector<std::string>> facts{
      {"model",
       is_cut ? shortened_middle(network.name, terminal.width - kNames, terminal.has_unicode)
              : network.name}};
  if (!network.info.name.empty() && network.info.name != network.name) {
    facts.push_back({"name", network.info.name});
  }
  facts.push_back({"takes", sample_words(network.input)});
  if (network.info.preprocessing != nn::Preprocessing{}) {
    const nn::Preprocessing& p = network.info.preprocessing;
    std::string words = p.size.rank() > 0 ? "resized to " + extents(p.size) : "";
    for (std::size_t i = 0; i < p.mean.size(); ++i) {
      words += (words.empty() ? "" : ", ") + ("minus " + decimal(p.mean[i], 3)) +
               (i < p.scale.size() ? " over " + decimal(p.scale[i], 3) : "");
    }
    facts.push_back({"prepared", words});
  }
  if (!network.info.classes.empty()) {
    facts.push_back({"classes", joined_names(network.info.classes)});
  }
  for (const std::string_view key : {kDataKey, kLossKey, std::string_view("score")}) {
    if (const auto found = network.info.more.find(key); found != network.info.more.end()) {
      facts.push_back({std::string(key), found->second});
    }
  }
  facts.push_back(
      {"parameters",
       grouped(summary.parameters) +
           (summary.buffers > 0 ? ", and " + grouped(summary.buffers) + " numbers in buffers"
                                : "")});
  std::cout << fitted(wrapped(columns(facts, 0), terminal), terminal) << "\n"
            << summary_table(summary, terminal);
  return fine;
}

}  // namespace fenestra::cli
