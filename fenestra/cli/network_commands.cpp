// Options of the commands on networks.
#include <fenestra/cli/bench_model.hpp>
#include <fenestra/cli/command_line.hpp>
#include <fenestra/cli/evaluate.hpp>
#include <fenestra/cli/gradcheck.hpp>
#include <fenestra/cli/onnx.hpp>
#include <fenestra/cli/run_model.hpp>
#include <fenestra/cli/train.hpp>
#include <fenestra/nn/any_optimiser.hpp>
#include <fenestra/nn/data/open.hpp>
#include <fenestra/nn/losses.hpp>
#include <fenestra/nn/models/make.hpp>

#include <CLI/CLI.hpp>

#include <cmath>
#include <memory>

namespace fenestra::cli {

namespace {

// Options that several commands have.

template <class Value>
void add_count(CLI::App& command,
               const std::string& name,
               Value& value,
               const std::string& meaning,
               const std::string& type = "N") {
  command.add_option(name, value, meaning)->check(whole_number<Index>(1))->type_name(type);
}

void add_threads(CLI::App& command, std::optional<int>& threads) {
  command.add_option("--threads", threads, "threads to run on")
      ->check(whole_number<int>(1))
      ->type_name("N");
}

template <class Seed>
void add_seed(CLI::App& command, Seed& seed, const std::string& meaning) {
  command.add_option("--seed", seed, meaning)
      ->check(whole_number<std::uint64_t>(0))
      ->type_name("S");
}

void add_model_file(CLI::App& command, std::string& file) {
  command.add_option("file", file, "a model file, checkpoint or ONNX file")
      ->required()
      ->type_name("FILE");
}

void add_file_or_model(CLI::App& command, CommandLine& line, std::string& model) {
  CLI::Option* option =
      command.add_option("model", model, "a model file, or the name of a ready model");
  option->required()->type_name("FILE|MODEL");
  line.words[option] = nn::model_names();
}

/// `data` is a string, or one that may be left out.
template <class Text>
CLI::Option* add_data(CLI::App& command,
                      CommandLine& line,
                      Text& data,
                      const std::string& meaning = "as for train") {
  CLI::Option* option = command.add_option("--data", data, meaning)->type_name("DATA");
  for (const nn::DatasetKind& kind : nn::dataset_kinds()) {
    line.words[option].emplace_back(kind.name);
  }
  return option;
}

/// The first word of a text with options: "sgd momentum=0.9".
template <class Text>
void add_optimiser(CLI::App& command,
                   CommandLine& line,
                   Text& optimiser,
                   const std::string& meaning) {
  CLI::Option* option = command.add_option("--optimiser,--optimizer", optimiser, meaning);
  option->type_name("TEXT");
  line.words[option] = nn::optimiser_names();
}
template <class Text>
void add_loss(CLI::App& command, CommandLine& line, Text& loss, const std::string& meaning) {
  CLI::Option* option = command.add_option("--loss", loss, meaning);
  option->type_name("TEXT");
  line.words[option] = nn::loss_names();
}

void add_input(CLI::App& command,
               std::optional<std::string>& input,
               const std::string& name = "--input") {
  command.add_option(name, input, "of one sample, where it is not known: 1x28x28")
      ->type_name("SHAPE");
}

/// A finite number that `fits` says yes to.
template <class Fits>
CLI::Validator real_number(const std::string& what, const Fits& fits) {
  const auto complaint = [what, fits](const std::string& text) {
    double number = 0;
    const char* end = text.data() + text.size();
    const auto [next, failure] = std::from_chars(text.data(), end, number);
    const bool good =
        failure == std::errc() && next == end && std::isfinite(number) && fits(number);
    return good ? std::string() : "\"" + text + "\" is not " + what;
  };
  return CLI::Validator(complaint, "");
}

/// How much of the data there is, and how much of it is held out.
template <class Options>
void add_data_parts(CLI::App& command, Options& options) {
  add_count(command, "--count", options.count, "samples of generated data");
  command.add_option("--held-out", options.held_out, "share of data without parts, 0.1 by default")
      ->check(real_number("a number between 0 and 1",
                          [](double number) { return number > 0 && number < 1; }))
      ->type_name("F");
}

/// What the command does, told whether it answers in JSON.
template <class Options>
void set_action(CLI::App* command,
                CommandLine& line,
                const std::shared_ptr<Options>& options,
                ExitCode (*run)(const Options&)) {
  line.actions[command] = [options, run, &line] {
    options->json = line.json;
    return run(*options);
  };
}

std::string model_list() {
  std::string text;
  for (const nn::ModelEntry& entry : nn::model_entries()) {
    text += "  " + entry.name +
            std::string(20 - std::min<std::size_t>(19, entry.name.size()), ' ') + entry.text + "\n";
  }
  return text;
}

std::string data_list() {
  std::string text;
  for (const nn::DatasetKind& kind : nn::dataset_kinds()) {
    std::string name(kind.name);
    if (!kind.argument.empty()) {
      name += kind.argument.front() == '[' ? "[:" + std::string(kind.argument.substr(1))
                                           : ":" + std::string(kind.argument);
    }
    text += "  " + name + std::string(20 - std::min<std::size_t>(19, name.size()), ' ') +
            std::string(kind.what) + "\n";
  }
  return text;
}

void add_train(CLI::App& app, CommandLine& line) {
  const auto o = std::make_shared<TrainOptions>();
  CLI::App* command = app.add_subcommand("train", "Train a network: progress, model file, report");
  CLI::Option* model = command->add_option("model", o->model, "its name, see below");
  model->required()->type_name("MODEL");
  line.words[model] = nn::model_names();
  add_data(*command, line, o->data, "what to learn from, see below")->required();
  add_count(*command, "--epochs", o->epochs, "times through the data");
  add_count(*command, "--batch", o->batch, "samples in a step");
  add_optimiser(*command,
                line,
                o->optimiser,
                "sgd, adam, adamw (default), rmsprop, lion, lamb; with options: \"sgd "
                "momentum=0.9\"");
  const auto positive = [](double number) { return number > 0; };
  command->add_option("--rate", o->rate, "how far a step goes, at most")
      ->check(real_number("a number above 0", positive))
      ->type_name("R");
  command
      ->add_option("--schedule",
                   o->schedule,
                   "of the rate: constant, step, cosine, linear, one-cycle (default); \"cosine "
                   "warmup=1epochs\"")
      ->type_name("TEXT");
  add_loss(*command,
           line,
           o->loss,
           "cross-entropy (default, \"cross-entropy smoothing=0.1\"), dice, focal, bce, "
           "mse, l1, huber");
  command
      ->add_option("--augmentation",
                   o->augmentation,
                   "\"shift=1,rotate=10,flip=0.5,noise=0.05,cut_out=4\" or none")
      ->type_name("TEXT");
  add_seed(*command, o->seed, "of weights, order and augmentation, 1 by default");
  command->add_option("--width", o->width, "factor on the channels inside, 1 by default")
      ->check(real_number("a number above 0", positive))
      ->type_name("F");
  command->add_option("--size", o->size, "resize samples to this, e.g. 32x32")->type_name("SIZE");
  add_data_parts(*command, *o);
  add_count(*command,
            "--patience",
            o->patience,
            "stop after so many epochs without a better score, and keep the best weights");
  command->add_option("--average", o->average, "decay of averaged weights, e.g. 0.99")
      ->check(real_number("a number from 0 to below 1",
                          [](double number) { return number >= 0 && number < 1; }))
      ->type_name("F");
  command->add_option("--clip", o->clip, "largest norm of all gradients together")
      ->check(real_number("a number above 0", positive))
      ->type_name("F");
  add_count(*command,
            "--leaf",
            o->leaf,
            "cut batches into leaves of so many samples: the same result for any number of "
            "processes");
  command
      ->add_option("--tile",
                   o->tile,
                   "cut large pictures too, e.g. 512x512 of the mask: memory is what a tile takes")
      ->type_name("SIZE");
  add_threads(*command, o->threads);
  command
      ->add_option("--output,--checkpoints",
                   o->output,
                   "folder of model, checkpoint and report; runs/MODEL-DATA by default")
      ->type_name("FOLDER");
  command->add_option("--report", o->report, "the report's file, report.html in it by default")
      ->type_name("FILE");
  command->add_option("--show", o->show, "draw so many held-out pictures with predictions")
      ->check(whole_number<Index>(0))
      ->type_name("N");
  command->add_flag("--gradcheck", o->gradcheck, "check the gradients of the trained network");
  command->add_flag("--resume", o->resume, "go on with the run in the folder");
  command->add_flag("--resume-or-start",
                    o->resume_or_start,
                    "go on where there is a checkpoint, otherwise begin");
  command->add_flag("--force", o->force, "replace the run in the folder");
  command->add_flag("--eager", o->eager, "without compiling steps");
  add_json(*command, line, "print a line of JSON for each event");
  command->footer("\nModels:\n" + model_list() + "\nData:\n" + data_list() +
                  "\nExamples:\n"
                  "  fenestra train lenet --data digits\n"
                  "  fenestra train small_resnet --data fashion --epochs 20 --patience 3\n"
                  "  fenestra train unet --data shapes --output runs/shapes\n"
                  "  fenestra train mobilenet_v2 --data folder:photos --size 96x96 --width 0.5\n"
                  "  fenestra train lenet --data digits --resume\n"
                  "  mpirun -n 4 fenestra train resnet18 --data folder:photos --leaf 8\n"
                  "  fenestra train unet --data shapes --size 512x512 --batch 2 --tile 128x128\n"
                  "\nCtrl-C ends after the step, with a checkpoint and exit code 130; a second one "
                  "at once.");
  set_action(command, line, o, train);
}

void add_preparation(CLI::App& command, PreparationOptions& options) {
  command.add_option("--size", options.size, "resize pictures to this, e.g. 224x224")
      ->type_name("SIZE");
  command.add_option("--mean", options.mean, "per channel, taken off cells from 0 to 1")
      ->type_name("A,B,C");
  command.add_option("--scale", options.scale, "per channel, to divide by afterwards")
      ->type_name("A,B,C");
}

void add_eval(CLI::App& app, CommandLine& line) {
  const auto o = std::make_shared<EvalOptions>();
  CLI::App* command = app.add_subcommand("eval", "How good a model file is on held-out data");
  add_model_file(*command, o->file);
  add_data(*command, line, o->data)->required();
  add_input(*command, o->input);
  add_preparation(*command, o->preparation);
  add_count(*command, "--batch", o->batch, "samples at once, 64 by default");
  add_data_parts(*command, *o);
  add_threads(*command, o->threads);
  command->add_flag("--train-part", o->training_part, "on the part that is learnt from instead");
  add_json(*command, line);
  command->footer(
      "\nExamples:\n"
      "  fenestra eval runs/lenet-digits/model.safetensors --data digits");
  set_action(command, line, o, evaluate_command);
}

void add_run(CLI::App& app, CommandLine& line) {
  const auto o = std::make_shared<RunOptions>();
  const auto named = std::make_shared<RunNamedOptions>();
  const auto layout = std::make_shared<std::string>("nchw");
  CLI::App* command = app.add_subcommand("run", "What a model says about pictures or arrays");
  add_model_file(*command, o->file);
  command->add_option("pictures", o->input, "a picture, a folder of pictures, or an .npy file")
      ->type_name("INPUT");
  command
      ->add_option("--input",
                   named->inputs,
                   "of an ONNX model, by name: x=picture.png, x=array.npy; outputs go to the "
                   "--output-dir")
      ->allow_extra_args(false)
      ->type_name("NAME=FILE");
  command->add_option("--output-dir", named->folder, "folder of outputs by name, an .npy each")
      ->type_name("FOLDER");
  add_preparation(*command, o->preparation);
  one_of(line,
         command->add_option("--layout", *layout, "of pictures for --input, nchw by default"),
         {"nchw", "nhwc"});
  add_count(*command, "--top", o->top, "classes to name, 3 by default", "K");
  command
      ->add_option(
          "-o,--output", o->output, "a .png for one mask or picture, a .npy for all results")
      ->type_name("FILE");
  add_input(*command, o->sample, "--input-shape");
  add_threads(*command, o->threads);
  command->add_flag("--force", o->force, "replace the output if it exists");
  add_json(*command, line);
  command->footer(
      "\nExamples:\n"
      "  fenestra run runs/lenet-digits/model.safetensors picture.png --top 5\n"
      "  fenestra run runs/unet-shapes/model.safetensors photo.png --output mask.png\n"
      "  fenestra run runs/lenet-digits/model.safetensors folder --json\n"
      "  fenestra run net.onnx photo.png --mean 0.485,0.456,0.406 --scale 0.229,0.224,0.225\n"
      "  fenestra run net.onnx --input x=photo.png --size 224x224 --output-dir results");
  line.actions[command] = [o, named, layout, &line] {
    o->json = line.json;
    if (named->inputs.empty() && o->input.empty()) {
      throw UsageError("run: an INPUT is missing, or --input NAME=FILE");
    }
    if (named->inputs.empty()) {
      return run_command(*o);
    }
    if (!o->input.empty() || !is_onnx(o->file) || named->folder.empty()) {
      throw UsageError(
          "run: --input NAME=FILE is for ONNX files, without another INPUT, and needs an "
          "--output-dir");
    }
    named->file = o->file;
    named->preparation = o->preparation;
    named->channels_last = *layout == "nhwc";
    named->threads = o->threads;
    named->force = o->force;
    named->json = line.json;
    return run_named_command(*named);
  };
}

void add_convert(CLI::App& app, CommandLine& line) {
  const auto o = std::make_shared<ConvertOptions>();
  CLI::App* command =
      app.add_subcommand("convert", "Weights and models between ONNX, safetensors and npz");
  command->add_option("from", o->from, ".onnx, .safetensors or .npz")
      ->required()
      ->type_name("FROM");
  command->add_option("to", o->to, ".safetensors, .onnx or .npz")->required()->type_name("TO");
  command
      ->add_option("--model",
                   o->model,
                   "the .onnx or .safetensors model that TO is, with the weights of FROM")
      ->type_name("FILE");
  add_input(*command, o->input);
  command->add_flag("--force", o->force, "replace the file if it exists");
  add_json(*command, line);
  command->footer(
      "\nExamples:\n"
      "  fenestra convert runs/lenet-digits/model.safetensors lenet.onnx\n"
      "  fenestra convert net.onnx weights.safetensors\n"
      "  fenestra convert weights.safetensors other.onnx --model net.onnx\n"
      "  fenestra convert runs/lenet-digits/model.safetensors weights.npz\n"
      "  fenestra convert weights.npz other.safetensors --model "
      "runs/lenet-digits/model.safetensors");
  set_action(command, line, o, convert_command);
}

void add_finetune(CLI::App& app, CommandLine& line) {
  const auto o = std::make_shared<FinetuneOptions>();
  CLI::App* command = app.add_subcommand("finetune", "Train an ONNX model on, and write it back");
  command->add_option("file", o->file, "an ONNX file")->required()->type_name("FILE");
  add_data(*command, line, o->data)->required();
  command
      ->add_option("--head", o->head, "a new last layer for so many classes, 0: as the data have")
      ->check(whole_number<Index>(0))
      ->type_name("CLASSES");
  command->add_option("--cut", o->cut, "cut the model at this value and put a new head there")
      ->type_name("VALUE");
  command
      ->add_option(
          "--freeze", o->freeze, "weights that stay, by name: \"features.*\"; again for more")
      ->allow_extra_args(false)
      ->type_name("PATTERN");
  command->add_option("--train", o->train, "only these weights are trained; again for more")
      ->allow_extra_args(false)
      ->type_name("PATTERN");
  one_of(line,
         command->add_option("--bn",
                             o->batch_norm,
                             "batch norm by the model's statistics or the batch's; the latter from "
                             "batches of 16 on"),
         {"frozen", "batch"});
  add_loss(*command, line, o->loss, "as for train");
  add_optimiser(*command, line, o->optimiser, "\"adamw rate=0.001\" by default");
  command->add_option("--schedule", o->schedule, "cosine by default")->type_name("TEXT");
  command->add_option("--augmentation", o->augmentation, "none by default")->type_name("TEXT");
  add_count(*command, "--epochs", o->epochs, "times through the data, 5 by default");
  add_count(*command, "--batch", o->batch, "samples in a step, 32 by default");
  add_count(
      *command, "--patience", o->patience, "stop after so many epochs without a better score");
  add_data_parts(*command, *o);
  command->add_option("--clip", o->clip, "largest norm of all gradients together")
      ->check(real_number("a number above 0", [](double number) { return number > 0; }))
      ->type_name("F");
  add_seed(*command, o->seed, "of the head, order and augmentation, 1 by default");
  add_input(*command, o->input);
  add_preparation(*command, o->preparation);
  add_threads(*command, o->threads);
  command
      ->add_option("-o,--output",
                   o->output,
                   "the new file, FILE-tuned.onnx by default; checkpoint and report go beside it")
      ->type_name("FILE");
  command->add_option("--report", o->report, "another place for the report")->type_name("FILE");
  command->add_flag(
      "--resume", o->resume, "go on from the checkpoint: the same options, perhaps more --epochs");
  command->add_flag("--eager", o->eager, "without compiling steps");
  command->add_flag("--force", o->force, "begin anew and replace the files that are there");
  add_json(*command, line, "print a line of JSON for each event");
  command->footer(
      "\nExamples:\n"
      "  fenestra finetune net.onnx --data folder:photos --head 0 --train 'fc.*'\n"
      "  fenestra finetune net.onnx --data folder:photos --cut features_out --freeze 'features.*'\n"
      "  fenestra finetune lenet.onnx --data digits --epochs 3 --bn frozen --output tuned.onnx");
  set_action(command, line, o, finetune_command);
}

void add_summary(CLI::App& app, CommandLine& line) {
  const auto o = std::make_shared<SummaryOptions>();
  CLI::App* command = app.add_subcommand("summary", "The layers of a model: shapes and costs");
  add_file_or_model(*command, line, o->model);
  add_input(*command, o->input);
  add_count(*command, "--batch", o->batch, "samples at once, 1 by default");
  add_json(*command, line);
  command->footer(
      "\nExamples:\n"
      "  fenestra summary mobilenet_v2\n"
      "  fenestra summary runs/lenet-digits/model.safetensors");
  set_action(command, line, o, summary_command);
}

void add_bench(CLI::App& app, CommandLine& line) {
  const auto o = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "How long a call of a compiled model takes");
  add_file_or_model(*command, line, o->model);
  add_input(*command, o->input);
  add_count(*command, "--batch", o->batch, "samples in a call, 1 by default");
  command->add_flag("--step", o->step, "a training step without its optimiser, not inference");
  command->add_option("--time", o->seconds, "seconds to repeat calls for, 1 by default")
      ->check(real_number("a number above 0", [](double number) { return number > 0; }))
      ->type_name("S");
  add_threads(*command, o->threads);
  add_json(*command, line);
  command->footer(
      "\nExamples:\n"
      "  fenestra bench net.onnx --threads 1\n"
      "  fenestra bench runs/lenet-digits/model.safetensors --batch 64\n"
      "  fenestra bench mobilenet_v2 --step --batch 8 --json");
  set_action(command, line, o, bench_command);
}

void add_gradcheck(CLI::App& app, CommandLine& line) {
  const auto o = std::make_shared<GradcheckOptions>();
  CLI::App* command =
      app.add_subcommand("gradcheck", "The gradients of a model against difference quotients");
  add_file_or_model(*command, line, o->file);
  add_data(*command, line, o->data, "samples to take; left out: drawn ones");
  add_input(*command, o->input);
  add_count(*command, "--samples", o->samples, "how many, 4 by default");
  add_count(*command, "--directions", o->directions, "for each parameter, 2 by default");
  add_seed(*command, o->seed, "of samples and directions, 1 by default");
  add_json(*command, line);
  command->footer(
      "\nExamples:\n"
      "  fenestra gradcheck runs/lenet-digits/model.safetensors --data digits\n"
      "  fenestra gradcheck mobilenet_v2 --input 3x32x32\n"
      "\nExit code 1: gradients differ.");
  set_action(command, line, o, gradcheck_command);
}

}  // namespace

void add_networks(CLI::App& app, CommandLine& line) {
  add_train(app, line);
  add_eval(app, line);
  add_run(app, line);
  add_finetune(app, line);
  add_convert(app, line);
  add_infer(app, line);
  add_summary(app, line);
  add_bench(app, line);
  add_gradcheck(app, line);
}

}  // namespace fenestra::cli
