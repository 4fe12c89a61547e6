// `fenestra explain model`: the plan of a whole network, built in or from a file.
#include <fenestra/base/file.hpp>
#include <fenestra/base/parallel.hpp>
#include <fenestra/check/entry.hpp>
#include <fenestra/cli/command_line.hpp>
#include <fenestra/cli/explain_network.hpp>
#include <fenestra/cli/text.hpp>
#include <fenestra/cli/train_watch.hpp>
#include <fenestra/nn/model_programs.hpp>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

namespace fenestra::cli {

namespace {

constexpr std::size_t kRuns = 5;

struct Explained {
  graph::Report report;
  std::optional<nn::Summary> layers = {};  ///< of models made of layers
};

std::string_view form_words(ModelForm form) {
  switch (form) {
    case ModelForm::run: return "forward pass";
    case ModelForm::step: return "training step";
    case ModelForm::infer: return "inference";
  }
  return "";
}

template <class Model, class T>
Program<T> compiled(const ExplainModelOptions& options, const std::vector<Tensor<T>>& parameters) {
  const CompileOptions how{.memory_limit = options.memory_limit};
  switch (options.form) {
    case ModelForm::step:
      return nn::compile_training_step<Model, T>(parameters, options.batch, how);
    case ModelForm::infer: return nn::compile_inference<Model, T>(parameters, options.batch, how);
    default: return nn::compile_forward<Model, T>(parameters, options.batch, how);
  }
}

/// Seconds of each step, the median of some runs after the first, in which threads and kernels get
/// their scratch.
template <class T>
std::vector<double> profile(const Program<T>& program, const std::vector<Given>& given) {
  Context<T> context(program);
  std::vector<Tensor<T>> results;
  for (const Shape& shape : program.result_shapes()) {
    results.emplace_back(shape);
  }
  program.run(context, given, results);
  std::vector<std::vector<double>> runs;
  for (std::size_t i = 0; i < kRuns; ++i) {
    runs.push_back(program.profile(ProgramForm::run, context, given, results));
  }
  std::vector<double> seconds;
  for (std::size_t step = 0; step < runs[0].size(); ++step) {
    std::vector<double> times;
    for (const std::vector<double>& run : runs) {
      times.push_back(run[step]);
    }
    std::sort(times.begin(), times.end());
    seconds.push_back(times[kRuns / 2]);
  }
  return seconds;
}

/// The report of a program; `given` is what a run is given, asked for where it is profiled.
template <class T>
graph::Report report_of(const ExplainModelOptions& options,
                        const std::string& name,
                        const Program<T>& program,
                        const std::function<std::vector<Given>()>& given) {
  const std::string threads_text =
      std::to_string(threads()) + (threads() == 1 ? " thread" : " threads");
  graph::ReportOptions report{
      .title = name + ", " + std::string(form_words(options.form)),
      .subtitle = "batch " + std::to_string(options.batch) + ", " +
                  std::string(graph::data_type_name(graph::DataTypeOf<T>::value)) + ", " +
                  threads_text};
  if (options.memory_limit > 0) {
    report.subtitle += ", at most " + bytes_text(options.memory_limit);
  }
  std::vector<double> seconds;
  if (options.profile) {
    seconds = profile(program, given());
    report.seconds = seconds;
    report.subtitle += ", median of " + std::to_string(kRuns) + " runs";
  }
  return graph::make_report(program.plan(), report);
}

template <class Model, class T>
Explained explained_builtin(const ExplainModelOptions& options) {
  Random random(1);
  // A step writes them.
  std::vector<Tensor<T>> parameters = Model::template initial<T>(random);
  const Program<T> program = compiled<Model, T>(options, parameters);
  const auto x = nn::uniform<T>(Model::input(options.batch), random, 1.0);
  const auto targets = nn::random_targets<Model, T>(options.batch, random);
  const Tensor<T> rate(Shape{}, T(1e-3));
  return {.report = report_of(options, options.model, program, [&] {
            std::vector<Given> given;
            if (options.form != ModelForm::infer) {
              given.assign(parameters.begin(), parameters.end());
            }
            given.emplace_back(x);
            if (options.form == ModelForm::step) {
              given.emplace_back(targets);
              given.emplace_back(rate);
            }
            return given;
          })};
}

template <class T>
Explained explained_network(const ExplainModelOptions& options) {
  const NetworkProgram<T> compiled_network = compile_network<T>(options);
  const Network<T>& network = compiled_network.network;
  return {.report = report_of(options,
                              network.name,
                              compiled_network.program,
                              [&] { return compiled_network.given(); }),
          .layers = network.layers};
}

template <class T>
Explained explained_model(const ExplainModelOptions& options) {
  if (options.model == nn::LeNet5::name) {
    return explained_builtin<nn::LeNet5, T>(options);
  }
  if (options.model == nn::UNet::name) {
    return explained_builtin<nn::UNet, T>(options);
  }
  if (options.model == nn::ResNet18::name) {
    return explained_builtin<nn::ResNet18, T>(options);
  }
  return explained_network<T>(options);
}

// For programs.

std::string_view place_name(graph::Place::Kind kind) {
  switch (kind) {
    case graph::Place::Kind::none: return "none";
    case graph::Place::Kind::arena: return "arena";
    case graph::Place::Kind::given: return "given";
    case graph::Place::Kind::output: return "output";
    case graph::Place::Kind::constant: return "constant";
    case graph::Place::Kind::lane: return "lane";
  }
  return "";
}

Json memory_json(const graph::ReportMemory& memory) {
  using Kind = graph::Place::Kind;
  const graph::Place& place = memory.place;
  if (place.kind == Kind::none) {
    return nullptr;
  }
  Json json = {{"bytes", memory.bytes}, {"place", place_name(place.kind)}};
  if (place.kind == Kind::arena || place.kind == Kind::lane) {
    json["offset"] = place.offset;
  } else {
    json["number"] = place.index;
  }
  return json;
}

Json text_json(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json node_json(graph::NodeId node) { return node == graph::kNoNode ? Json(nullptr) : Json(node); }

Json step_json(const graph::Report& report, const graph::ReportStep& step) {
  Json reads = Json::array();
  for (const graph::ReportRead& read : step.reads) {
    reads.push_back({{"node", read.source},
                     {"name", read.name},
                     {"shape", shape_json(read.shape)},
                     {"workspace", read.is_workspace}});
  }
  return {{"node", step.node},
          {"operation", step.operation},
          {"attributes", text_json(step.attributes)},
          {"reads", std::move(reads)},
          {"type", graph::data_type_name(step.type)},
          {"shape", shape_json(step.shape)},
          {"layout", text_json(step.layout)},
          {"kernel", text_json(step.kernel)},
          {"group", step.group ? Json(*step.group) : Json(nullptr)},
          {"result", memory_json(step.result)},
          {"workspace", memory_json(step.workspace)},
          {"scratch", memory_json(step.scratch)},
          {"multiply_adds", step.multiply_adds},
          {"seconds", report.is_profiled ? Json(step.seconds) : Json(nullptr)}};
}

Json report_json(const graph::Report& report) {
  Json values = Json::array();
  for (const graph::ReportValue& value : report.values) {
    values.push_back({{"node", value.node},
                      {"kind", graph::node_kind_name(value.kind)},
                      {"name", text_json(value.name)},
                      {"type", graph::data_type_name(value.type)},
                      {"shape", shape_json(value.shape)},
                      {"bytes", value.bytes}});
  }
  Json steps = Json::array();
  for (const graph::ReportStep& step : report.steps) {
    steps.push_back(step_json(report, step));
  }
  Json groups = Json::array();
  for (const graph::PieceLoop& group : report.groups) {
    groups.push_back({{"first_step", group.first},
                      {"last_step", group.end - 1},
                      {"samples", group.samples},
                      {"piece", group.piece},
                      {"lanes", group.lanes},
                      {"lane_bytes", group.lane_bytes}});
  }
  Json outputs = Json::array();
  for (const graph::ReportOutput& output : report.outputs) {
    outputs.push_back({{"name", output.name},
                       {"node", output.source},
                       {"shape", shape_json(output.shape)},
                       {"overwrites", node_json(output.overwrites)},
                       {"copied", output.is_copied}});
  }
  return {{"title", report.title},
          {"subtitle", report.subtitle},
          {"multiply_adds", report.multiply_adds},
          {"arena_bytes", report.arena_bytes},
          {"bytes_without_reuse", report.bytes_without_reuse},
          {"constant_bytes", report.constant_bytes},
          {"seconds", report.is_profiled ? Json(report.seconds) : Json(nullptr)},
          {"values", std::move(values)},
          {"steps", std::move(steps)},
          {"groups", std::move(groups)},
          {"outputs", std::move(outputs)}};
}

Json layer_json(const nn::Summary& layers) {
  Json rows = Json::array();
  for (const nn::SummaryRow& row : layers.rows) {
    rows.push_back({{"name", row.name},
                    {"layer", row.kind},
                    {"output", shape_json(row.output)},
                    {"parameters", row.parameters},
                    {"multiply_adds", row.multiply_adds}});
  }
  return rows;
}

std::string explained(const Explained& model, const ExplainModelOptions& options) {
  const graph::Report& report = model.report;
  switch (options.format) {
    case ModelFormat::dot: return graph::explain(report, graph::ExplainFormat::dot);
    case ModelFormat::html: return graph::explain(report, graph::ExplainFormat::html);
    case ModelFormat::json: {
      Json json = report_json(report);
      if (model.layers) {
        json["layers"] = layer_json(*model.layers);
        json["parameters"] = model.layers->parameters;
      }
      return json_text(json);
    }
    default: {
      // A file has no width.
      const Terminal terminal = options.output ? Terminal{} : terminal_of(Stream::out);
      return (model.layers ? summary_table(*model.layers, terminal) + "\n" : "") +
             graph::explain(report, graph::ExplainFormat::text);
    }
  }
}

/// One of the words that stand for values; CLI11 has refused others.
template <class Value>
Value meaning(const std::string& word,
              std::initializer_list<std::pair<std::string_view, Value>> words) {
  for (const auto& [name, value] : words) {
    if (name == word) {
      return value;
    }
  }
  return words.begin()->second;
}

}  // namespace

ExitCode explain_model(const ExplainModelOptions& options) {
  // Before a long computation, not after it.
  if (options.output) {
    require_free(*options.output, options.force);
  }
  if (options.threads) {
    set_threads(*options.threads);
  }
  const std::string text =
      explained(options.type == graph::DataType::f64 ? explained_model<double>(options)
                                                     : explained_model<float>(options),
                options);
  if (options.output) {
    replace_file(*options.output, {text});
  } else {
    std::cout << text;
  }
  return fine;
}

void add_explain_model(CLI::App& explain, CommandLine& line) {
  const auto options = std::make_shared<ExplainModelOptions>();
  const auto threads = std::make_shared<int>(0);
  const auto output = std::make_shared<std::string>();
  const auto form = std::make_shared<std::string>("run");
  const auto type = std::make_shared<std::string>("f32");
  const auto format = std::make_shared<std::string>("text");
  CLI::App* command = explain.add_subcommand(
      "model", "The plan of a whole network: steps, groups, kernels, memory, costs");
  CLI::Option* model = command->add_option(
      "model", options->model, "lenet5, unet or resnet18; a model file; or a model of `train`");
  model->required();
  line.words[model] = nn::model_names();
  line.words[model].emplace_back(nn::LeNet5::name);
  command
      ->add_option(
          "--input", options->input, "what a model file takes, if it does not say: 1x28x28")
      ->type_name("SHAPE");
  command->add_option("--batch", options->batch, "samples at once, 8 by default")
      ->check(whole_number<std::int64_t>(1))
      ->type_name("N");
  one_of(line,
         command->add_option("--form",
                             *form,
                             "the forward pass, the default; a training step; or inference with "
                             "constant parameters"),
         {"run", "step", "infer"});
  one_of(line,
         command->add_option("--dtype", *type, "of all numbers, f32 by default"),
         {"f32", "f64"});
  CLI::Option* threads_option =
      command->add_option("--threads", *threads, "threads to plan for and to run on");
  threads_option->check(whole_number<int>(1))->type_name("N");
  command
      ->add_option("--memory-limit",
                   options->memory_limit,
                   "what a run may take, e.g. 16MB: what waits too long is computed again")
      ->transform(byte_count(1))
      ->type_name("BYTES");
  command->add_flag("--profile", options->profile, "run it, and tell the time of each step");
  one_of(
      line,
      command->add_option("--format", *format, "text by default; dot is for Graphviz, html a page"),
      {"text", "dot", "html", "json"});
  CLI::Option* output_option =
      command->add_option("--output", *output, "a new file; left out: standard output");
  output_option->type_name("FILE");
  command->add_flag("--force", options->force, "replace the file if it exists");
  add_json(*command, line, "the same as --format json");
  command->footer(
      "\nExamples:\n"
      "  fenestra explain model lenet5\n"
      "  fenestra explain model resnet18 --form infer --batch 1 --threads 1\n"
      "  fenestra explain model unet --form step --batch 2 --profile --format html\n"
      "  fenestra explain model unet --form step --batch 2 --memory-limit 16MB\n"
      "  fenestra explain model lenet5 --form step --format dot\n"
      "  fenestra explain model runs/lenet-digits/model.safetensors");
  line.actions[command] = [=, &line] {
    options->threads = given(threads_option, *threads);
    options->output = given(output_option, *output);
    options->form = meaning<ModelForm>(
        *form, {{"run", ModelForm::run}, {"step", ModelForm::step}, {"infer", ModelForm::infer}});
    options->type = meaning<graph::DataType>(
        *type, {{"f32", graph::DataType::f32}, {"f64", graph::DataType::f64}});
    options->format = meaning<ModelFormat>(line.json ? "json" : *format,
                                           {{"text", ModelFormat::text},
                                            {"dot", ModelFormat::dot},
                                            {"html", ModelFormat::html},
                                            {"json", ModelFormat::json}});
    return explain_model(*options);
  };
}

}  // namespace fenestra::cli
