// `fenestra eval`: a model file on held-out data.
#include <fenestra/base/parallel.hpp>
#include <fenestra/base/text.hpp>
#include <fenestra/cli/evaluate.hpp>
#include <fenestra/cli/table.hpp>
#include <fenestra/cli/text.hpp>
#include <fenestra/cli/wrap.hpp>
#include <fenestra/nn/data/loader.hpp>
#include <fenestra/nn/metrics.hpp>

#include <cmath>
#include <iostream>

namespace fenestra::cli {

namespace {

std::string percent_text(double share) { return decimal(100 * share, 2) + " %"; }

std::string confusion_text(const nn::ConfusionMatrix& matrix,
                           const std::vector<std::string>& names,
                           const Terminal& terminal) {
  const std::vector<std::vector<std::string>> rows = nn::table_rows(matrix, names);
  std::vector<Align> align(rows[0].size(), Align::right);
  align[0] = Align::left;
  return table_text(rows, {.align = align}, terminal);
}

Json number_or_null(double number) { return std::isfinite(number) ? Json(number) : Json(nullptr); }

}  // namespace

std::vector<double> probabilities(const float* scores, Index classes, Index stride) {
  std::vector<double> result;
  double most = -std::numeric_limits<double>::infinity();
  for (Index i = 0; i < classes; ++i) {
    result.push_back(static_cast<double>(scores[i * stride]));
    most = std::max(most, result.back());
  }
  if (classes == 1) {  // one score alone says yes or no
    const double yes = 1 / (1 + std::exp(-result[0]));
    return {1 - yes, yes};
  }
  double sum = 0;
  for (double& p : result) {
    p = std::exp(p - most);
    sum += p;
  }
  for (double& p : result) {
    p /= sum;
  }
  return result;
}

std::string score_text(const nn::Evaluation& evaluation, nn::Task task) {
  const std::string samples = grouped(evaluation.samples) + " held-out samples";
  if (!evaluation.confusion || task == nn::Task::reconstruction) {
    return "loss " + decimal(evaluation.loss, 4) + " on " + samples;
  }
  if (task == nn::Task::segmentation) {
    return "mean IoU " + decimal(evaluation.confusion->mean_iou(), 4) + " on " + samples + ", " +
           percent_text(evaluation.confusion->accuracy()) + " of their cells right";
  }
  return percent_text(evaluation.confusion->accuracy()) + " of " + samples + " right (" +
         grouped(evaluation.confusion->total() - evaluation.confusion->correct()) + " wrong)";
}

std::string evaluation_text(const nn::Evaluation& evaluation,
                            nn::Task task,
                            const std::vector<std::string>& classes) {
  const Terminal terminal = terminal_of(Stream::out);
  std::string text;
  if (task == nn::Task::classification && evaluation.confusion && classes.size() <= 20) {
    text += confusion_text(*evaluation.confusion, classes, terminal) + "\n";
  }
  if (task == nn::Task::segmentation && evaluation.confusion) {
    std::vector<std::vector<std::string>> table{{"class", "IoU"}};
    const std::vector<double> each = evaluation.confusion->iou();
    for (std::size_t i = 0; i < each.size(); ++i) {
      table.push_back({i < classes.size() ? classes[i] : std::to_string(i),
                       std::isnan(each[i]) ? "-" : decimal(each[i], 4)});
    }
    text += table_text(table, {.align = {Align::left, Align::right}}, terminal) + "\n";
  }
  const std::string score = score_text(evaluation, task);
  const std::string loss = ", loss " + decimal(evaluation.loss, 4);
  // Of reconstructions the loss is the score.
  const bool says_loss = !evaluation.confusion || task == nn::Task::reconstruction;
  return text + wrapped(score + (says_loss ? "" : loss) + "\n", terminal);
}

Json evaluation_json(const nn::Evaluation& evaluation,
                     nn::Task task,
                     const std::vector<std::string>& classes) {
  Json json = {{"task", nn::task_name(task)},
               {"samples", evaluation.samples},
               {"loss", number_or_null(evaluation.loss)}};
  if (evaluation.confusion) {
    json["accuracy"] = evaluation.confusion->accuracy();
    if (task == nn::Task::segmentation) {
      json["mean_iou"] = evaluation.confusion->mean_iou();
      Json each = Json::array();
      for (const double iou : evaluation.confusion->iou()) {
        each.push_back(number_or_null(iou));
      }
      json["iou"] = std::move(each);
    }
    json["classes"] = classes;
    Json rows = Json::array();
    const Index n = evaluation.confusion->classes();
    for (Index i = 0; i < n; ++i) {
      Json row = Json::array();
      for (Index j = 0; j < n; ++j) {
        row.push_back(evaluation.confusion->counts()[i * n + j]);
      }
      rows.push_back(std::move(row));
    }
    json["confusion"] = std::move(rows);
  }
  return json;
}

ExitCode evaluate_command(const EvalOptions& options) {
  if (options.threads) {
    set_threads(*options.threads);
  }
  Network<float> network = load_network<float>(options.file, options.input);
  const nn::DatasetPtr data =
      open_for({.text = options.data, .count = options.count, .held_out = options.held_out},
               options.training_part ? nn::Split::train : nn::Split::test,
               network.task,
               network.input);
  apply(options.preparation, network.info.preprocessing);
  if (is_onnx(options.file)) {
    // What other tools write says neither names nor, often, a size.
    if (network.info.classes.empty()) {
      network.info.classes = data->classes();
    }
    if (network.info.preprocessing.size.rank() == 0 &&
        spatial(data->sample_shape()) != spatial(network.input)) {
      network.info.preprocessing.size = spatial(network.input);
    }
  }
  require_fit(network, *data);
  const auto said = network.info.more.find(kLossKey);
  nn::TrainerOptions how;
  if (said != network.info.more.end()) {
    how.loss = said->second;
  } else if (network.task == nn::Task::reconstruction) {
    how.loss = "bce";
  }
  nn::Trainer<nn::Layer<float>> trainer(network.model, how);
  nn::Loader<float> loader(
      data,
      {.batch = options.batch, .shuffle = false, .preprocessing = network.info.preprocessing});
  const nn::Evaluation evaluation = trainer.evaluate(loader);
  if (options.json) {
    Json json = {{"model", network.name}, {"data", options.data}};
    json.update(evaluation_json(evaluation, network.task, network.info.classes));
    json["seconds"] = evaluation.seconds;
    print_json(json);
    return fine;
  }
  std::cout << wrapped(network.name + " on " + data->info().name + ", " +
                           (options.training_part ? "the part to learn from"
                                                  : "the part that is held out") +
                           ": " + std::string(kind_of_samples(network.input.rank() - 1)) + " " +
                           preparation_words(network.info.preprocessing, data->sample_shape()) +
                           "\n\n",
                       terminal_of(Stream::out))
            << evaluation_text(evaluation, network.task, network.info.classes);
  return fine;
}

}  // namespace fenestra::cli
