// `fenestra explain model`: the layers of a whole network, ready or from a file, and its plan.
#include <fenestra/base/file.hpp>
#include <fenestra/base/parallel.hpp>
#include <fenestra/cli/command_line.hpp>
#include <fenestra/cli/explain_network.hpp>
#include <fenestra/cli/network.hpp>
#include <fenestra/cli/network_drawing.hpp>
#include <fenestra/cli/receptive_field.hpp>
#include <fenestra/cli/text.hpp>
#include <fenestra/cli/wrap.hpp>
#include <fenestra/graph/explain.hpp>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace fenestra::cli {

namespace {

constexpr std::size_t kRuns = 5;

struct Explained {
  graph::Report report;
  nn::Summary layers;
  LayerTree tree;
};

std::string_view form_words(ModelForm form) {
  switch (form) {
    case ModelForm::run: return "forward pass";
    case ModelForm::step: return "training step";
    case ModelForm::infer: return "inference";
  }
  return "";
}

/// Seconds of each step, the median of some runs after the first, in which threads and kernels get
/// their scratch.
template <class T>
std::vector<double> profile(const Program<T>& program, const std::vector<RunArgument>& arguments) {
  Context<T> context(program);
  std::vector<Tensor<T>> results;
  for (const Shape& shape : program.result_shapes()) {
    results.emplace_back(shape);
  }
  program.run(context, arguments, results);
  std::vector<std::vector<double>> runs;
  for (std::size_t i = 0; i < kRuns; ++i) {
    runs.push_back(program.profile(ProgramForm::run, context, arguments, results));
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
                        const std::function<std::vector<RunArgument>()>& arguments) {
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
    seconds = profile(program, arguments());
    report.seconds = seconds;
    report.subtitle += ", median of " + std::to_string(kRuns) + " runs";
  }
  return graph::make_report(program.plan(), report);
}

/// A model of another tool describes itself by its nodes alone.
template <class T>
LayerTree tree_of(const Network<T>& network) {
  return layer_tree(
      network.name,
      nn::detail::described(network.model).value_or(nn::Description::of_layer(kListOfNodes)),
      network.layers);
}

template <class T>
Explained explained_model(const ExplainModelOptions& options) {
  const NetworkProgram<T> compiled = compile_network<T>(options);
  const Network<T>& network = compiled.network;
  return {.report = report_of(
              options, network.name, compiled.program, [&] { return compiled.arguments(); }),
          .layers = network.layers,
          .tree = tree_of(network)};
}

// For programs.

std::string_view place_name(graph::Place::Kind kind) {
  switch (kind) {
    case graph::Place::Kind::none: return "none";
    case graph::Place::Kind::arena: return "arena";
    case graph::Place::Kind::argument: return "argument";
    case graph::Place::Kind::output: return "output";
    case graph::Place::Kind::constant: return "constant";
    case graph::Place::Kind::worker: return "worker";
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
  if (place.kind == Kind::arena || place.kind == Kind::worker) {
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
          {"packed_bytes", step.packed_bytes},
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
  for (const graph::ReportGroup& group : report.groups) {
    groups.push_back({{"first_step", group.first},
                      {"last_step", group.end - 1},
                      {group.by_channels ? "channels" : "samples", group.samples},
                      {"piece", group.piece},
                      {"workers", group.workers},
                      {"worker_bytes", group.worker_bytes}});
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

/// The page of the plan, with the drawing of the layers before its first part.
std::string page_of(const Explained& model) {
  std::string page = graph::explain(model.report, graph::ExplainFormat::html);
  const std::size_t at = page.find("<h2>");
  return page.insert(at == page.npos ? page.find("</body>") : at,
                     "<h2>Layers</h2>\n<p>" +
                         std::string(model.tree.kind == kListOfNodes
                                         ? "Nodes in the order in which they run; blue ones"
                                         : "Data goes down; blue layers") +
                         " have parameters. Shapes are of one sample.</p>\n<div class=\"wide\">\n" +
                         tree_svg(model.tree, SvgPlace::page) + "</div>\n");
}

std::string explained(const Explained& model, const ExplainModelOptions& options) {
  const graph::Report& report = model.report;
  switch (options.format) {
    case ModelFormat::dot: return graph::explain(report, graph::ExplainFormat::dot);
    case ModelFormat::html: return page_of(model);
    case ModelFormat::json: {
      Json json = report_json(report);
      json["layers"] = layers_json(model.layers);
      json["parameters"] = model.layers.parameters;
      return json_text(json);
    }
    default: {
      // A file has no width.
      Terminal terminal = terminal_of(Stream::out);
      if (options.output) {  // a file is as wide as it must be, and has no colours
        terminal.has_width = terminal.has_colour = false;
      }
      return fitted(tree_text(model.tree, terminal) + "\n" +
                        graph::explain(report, graph::ExplainFormat::text),
                    terminal);
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

/// Writes what `make_text` gives to where the options say.
template <class MakeText>
ExitCode answer(const ExplainModelOptions& options, const MakeText& make_text) {
  // Before a long computation, not after it.
  if (options.output) {
    require_free(*options.output, options.force);
  }
  const std::string text = make_text();
  if (options.output) {
    replace_file(*options.output, {text});
  } else {
    std::cout << text;
  }
  return fine;
}

/// The layers alone: nothing is planned for them.
ExitCode draw_model(const ExplainModelOptions& options) {
  return answer(options, [&] {
    const Network<float> network =
        load_or_make_network<float>(options.model, options.input, Weights::zero);
    return tree_svg(tree_of(network), SvgPlace::file);
  });
}

}  // namespace

ExitCode explain_model(const ExplainModelOptions& options) {
  if (options.threads) {
    set_threads(*options.threads);
  }
  return answer(options, [&] {
    if (options.receptive_field) {
      return receptive_field(options);
    }
    return explained(options.type == graph::DataType::f64 ? explained_model<double>(options)
                                                          : explained_model<float>(options),
                     options);
  });
}

std::string command_for_model(const std::string& name) {
  std::error_code ignored;
  const auto& models = nn::model_entries();
  const bool is_model = std::filesystem::is_regular_file(name, ignored) ||
                        std::any_of(models.begin(), models.end(), [&](const nn::ModelEntry& model) {
                          return model.name == name;
                        });
  return is_model ? shell_line({program_name(), "explain", "model", name}) : std::string();
}

void add_explain_model(CLI::App& explain, CommandLine& line) {
  const auto options = std::make_shared<ExplainModelOptions>();
  const auto threads = std::make_shared<int>(0);
  const auto output = std::make_shared<std::string>();
  const auto form = std::make_shared<std::string>("run");
  const auto type = std::make_shared<std::string>("f32");
  const auto format = std::make_shared<std::string>("text");
  CLI::App* command = explain.add_subcommand(
      "model", "A whole network: its layers, and the plan: steps, kernels, memory, costs");
  CLI::Option* model =
      command->add_option("model", options->model, "a model file, or the name of a ready model");
  model->required();
  line.words[model] = nn::model_names();
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
  command->add_flag("--receptive-field",
                    options->receptive_field,
                    "what one cell of the output sees of every layer, instead: text, json or svg");
  one_of(line,
         command->add_option(
             "--format",
             *format,
             "text by default; svg is a drawing of the layers, dot the plan for Graphviz, html a "
             "page with both"),
         {"text", "svg", "dot", "html", "json"});
  CLI::Option* output_option =
      command->add_option("-o,--output", *output, "a new file; left out: standard output");
  output_option->type_name("FILE");
  command->add_flag("--force", options->force, "replace the file if it exists");
  add_json(*command, line, "the same as --format json");
  command->footer(
      "\nExamples:\n"
      "  fenestra explain model lenet\n"
      "  fenestra explain model resnet18 --form infer --batch 1 --threads 1\n"
      "  fenestra explain model unet --form step --batch 2 --profile --format html\n"
      "  fenestra explain model unet --form step --batch 2 --memory-limit 16MB\n"
      "  fenestra explain model lenet --form step --format dot\n"
      "  fenestra explain model unet --receptive-field\n"
      "  fenestra explain model runs/lenet-digits/model.safetensors\n"
      "  fenestra explain model runs/lenet-digits/model.safetensors --format svg");
  line.actions[command] = [=, &line] {
    options->threads = given(threads_option, *threads);
    options->output = given(output_option, *output);
    const bool draws = *format == "svg" && !line.json;
    if (draws && !options->receptive_field) {
      return draw_model(*options);
    }
    options->form = meaning<ModelForm>(
        *form, {{"run", ModelForm::run}, {"step", ModelForm::step}, {"infer", ModelForm::infer}});
    options->type = meaning<graph::DataType>(
        *type, {{"f32", graph::DataType::f32}, {"f64", graph::DataType::f64}});
    options->format = meaning<ModelFormat>(line.json ? "json"
                                           : draws   ? "html"
                                                     : *format,
                                           {{"text", ModelFormat::text},
                                            {"dot", ModelFormat::dot},
                                            {"html", ModelFormat::html},
                                            {"json", ModelFormat::json}});
    return explain_model(*options);
  };
}

}  // namespace fenestra::cli
