// Options of the commands on networks.
#include <fenestra/cli/command_line.hpp>
#include <fenestra/cli/evaluate.hpp>
#include <fenestra/cli/gradcheck.hpp>
#include <fenestra/cli/run_model.hpp>
#include <fenestra/cli/train.hpp>

#include <CLI/CLI.hpp>

#include <cmath>
#include <memory>

namespace fenestra::cli {

namespace {

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
  command->add_option("model", o->model, "its name, see below")->required()->type_name("MODEL");
  command->add_option("--data", o->data, "what to learn from, see below")
      ->required()
      ->type_name("DATA");
  command->add_option("--epochs", o->epochs, "times through the data")
      ->check(whole_number<Index>(1))
      ->type_name("N");
  command->add_option("--batch", o->batch, "samples in a step")
      ->check(whole_number<Index>(1))
      ->type_name("N");
  command
      ->add_option("--optimiser,--optimizer",
                   o->optimiser,
                   "sgd, adam, adamw (default), rmsprop, lion, lamb; with options: \"sgd "
                   "momentum=0.9\"")
      ->type_name("TEXT");
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
  command
      ->add_option("--loss",
                   o->loss,
                   "cross-entropy (default, \"cross-entropy smoothing=0.1\"), dice, focal, bce, "
                   "mse, l1, huber")
      ->type_name("TEXT");
  command
      ->add_option("--augmentation",
                   o->augmentation,
                   "\"shift=1,rotate=10,flip=0.5,noise=0.05,cut_out=4\" or none")
      ->type_name("TEXT");
  command->add_option("--seed", o->seed, "of weights, order and augmentation, 1 by default")
      ->check(whole_number<std::uint64_t>(0))
      ->type_name("S");
  command->add_option("--width", o->width, "factor on the channels inside, 1 by default")
      ->check(real_number("a number above 0", positive))
      ->type_name("F");
  command->add_option("--size", o->size, "resize samples to this, e.g. 32x32")->type_name("SIZE");
  command->add_option("--count", o->count, "samples of generated data")
      ->check(whole_number<Index>(1))
      ->type_name("N");
  command->add_option("--held-out", o->held_out, "share of data without parts, 0.1 by default")
      ->check(real_number("a number between 0 and 1",
                          [](double number) { return number > 0 && number < 1; }))
      ->type_name("F");
  command
      ->add_option("--patience",
                   o->patience,
                   "stop after so many epochs without a better score, and keep the best weights")
      ->check(whole_number<Index>(1))
      ->type_name("N");
  command->add_option("--average", o->average, "decay of averaged weights, e.g. 0.99")
      ->check(real_number("a number from 0 to below 1",
                          [](double number) { return number >= 0 && number < 1; }))
      ->type_name("F");
  command->add_option("--clip", o->clip, "largest norm of all gradients together")
      ->check(real_number("a number above 0", positive))
      ->type_name("F");
  command->add_option("--threads", o->threads, "threads to run on")
      ->check(whole_number<int>(1))
      ->type_name("N");
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
                  "\nCtrl-C ends after the step, with a checkpoint and exit code 130; a second one "
                  "at once.");
  line.actions[command] = [o, &line] {
    o->json = line.json;
    return train(*o);
  };
}

void add_eval(CLI::App& app, CommandLine& line) {
  const auto o = std::make_shared<EvalOptions>();
  CLI::App* command = app.add_subcommand("eval", "How good a model file is on held-out data");
  command->add_option("file", o->file, "a model file or checkpoint")->required()->type_name("FILE");
  command->add_option("--data", o->data, "as for train")->required()->type_name("DATA");
  command
      ->add_option("--input", o->input, "what the model takes, if the file does not say: 1x28x28")
      ->type_name("SHAPE");
  command->add_option("--batch", o->batch, "samples at once, 64 by default")
      ->check(whole_number<Index>(1))
      ->type_name("N");
  command->add_option("--count", o->count, "samples of generated data")
      ->check(whole_number<Index>(1))
      ->type_name("N");
  command->add_option("--held-out", o->held_out, "share of data without parts, 0.1 by default")
      ->check(real_number("a number between 0 and 1",
                          [](double number) { return number > 0 && number < 1; }))
      ->type_name("F");
  command->add_option("--threads", o->threads, "threads to run on")
      ->check(whole_number<int>(1))
      ->type_name("N");
  command->add_flag("--train-part", o->training_part, "on the part that is learnt from instead");
  add_json(*command, line);
  command->footer(
      "\nExamples:\n"
      "  fenestra eval runs/lenet-digits/model.safetensors --data digits");
  line.actions[command] = [o, &line] {
    o->json = line.json;
    return evaluate_command(*o);
  };
}

void add_run(CLI::App& app, CommandLine& line) {
  const auto o = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "What a model says about pictures or arrays");
  command->add_option("file", o->file, "a model file or checkpoint")->required()->type_name("FILE");
  command->add_option("input", o->input, "a picture, a folder of pictures, or an .npy file")
      ->required()
      ->type_name("INPUT");
  command->add_option("--top", o->top, "classes to name, 3 by default")
      ->check(whole_number<Index>(1))
      ->type_name("K");
  command
      ->add_option("--output", o->output, "a .png for one mask or picture, a .npy for all results")
      ->type_name("FILE");
  command->add_option("--input-shape", o->sample, "what the model takes, if the file does not say")
      ->type_name("SHAPE");
  command->add_option("--threads", o->threads, "threads to run on")
      ->check(whole_number<int>(1))
      ->type_name("N");
  command->add_flag("--force", o->force, "replace the output if it exists");
  add_json(*command, line);
  command->footer(
      "\nExamples:\n"
      "  fenestra run runs/lenet-digits/model.safetensors picture.png --top 5\n"
      "  fenestra run runs/unet-shapes/model.safetensors photo.png --output mask.png\n"
      "  fenestra run runs/lenet-digits/model.safetensors folder --json");
  line.actions[command] = [o, &line] {
    o->json = line.json;
    return run_command(*o);
  };
}

void add_summary(CLI::App& app, CommandLine& line) {
  const auto o = std::make_shared<SummaryOptions>();
  CLI::App* command = app.add_subcommand("summary", "The layers of a model: shapes and costs");
  command->add_option("model", o->model, "a model file, or the name of a ready model")
      ->required()
      ->type_name("FILE|MODEL");
  command->add_option("--input", o->input, "of one sample: 3x224x224")->type_name("SHAPE");
  command->add_option("--batch", o->batch, "samples at once, 1 by default")
      ->check(whole_number<Index>(1))
      ->type_name("N");
  add_json(*command, line);
  command->footer(
      "\nExamples:\n"
      "  fenestra summary mobilenet_v2\n"
      "  fenestra summary runs/lenet-digits/model.safetensors");
  line.actions[command] = [o, &line] {
    o->json = line.json;
    return summary_command(*o);
  };
}

void add_gradcheck(CLI::App& app, CommandLine& line) {
  const auto o = std::make_shared<GradcheckOptions>();
  CLI::App* command =
      app.add_subcommand("gradcheck", "The gradients of a model against difference quotients");
  command->add_option("model", o->file, "a model file, or the name of a ready model")
      ->required()
      ->type_name("FILE|MODEL");
  command->add_option("--data", o->data, "samples to take; left out: drawn ones")
      ->type_name("DATA");
  command->add_option("--input", o->input, "of one sample: 3x32x32")->type_name("SHAPE");
  command->add_option("--samples", o->samples, "how many, 4 by default")
      ->check(whole_number<Index>(1))
      ->type_name("N");
  command->add_option("--directions", o->directions, "for each parameter, 2 by default")
      ->check(whole_number<Index>(1))
      ->type_name("N");
  command->add_option("--seed", o->seed, "of samples and directions, 1 by default")
      ->check(whole_number<std::uint64_t>(0))
      ->type_name("S");
  add_json(*command, line);
  command->footer(
      "\nExamples:\n"
      "  fenestra gradcheck runs/lenet-digits/model.safetensors --data digits\n"
      "  fenestra gradcheck mobilenet_v2 --input 3x32x32\n"
      "\nExit code 1: gradients differ.");
  line.actions[command] = [o, &line] {
    o->json = line.json;
    return gradcheck_command(*o);
  };
}

}  // namespace

void add_networks(CLI::App& app, CommandLine& line) {
  add_train(app, line);
  add_eval(app, line);
  add_run(app, line);
  add_summary(app, line);
  add_gradcheck(app, line);
}

}  // namespace fenestra::cli
