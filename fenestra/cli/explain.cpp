// `fenestra explain`: the geometry of one problem in words, numbers and a drawing.
#include <fenestra/base/parallel.hpp>
#include <fenestra/base/text.hpp>
#include <fenestra/cli/command_line.hpp>
#include <fenestra/cli/operator_help.hpp>
#include <fenestra/cli/text.hpp>
#include <fenestra/cli/wrap.hpp>
#include <fenestra/kernels/isa.hpp>
#include <fenestra/ops/entry.hpp>
#include <fenestra/spec/describe.hpp>

#include <algorithm>
#include <charconv>
#include <string>

namespace fenestra::cli {

namespace {

/// Spatial axes of an operator on activations.
int spatial_rank(const Description& d) {
  return d.output.shape.rank() - (d.batched.value_or(false) ? 2 : 1);
}

std::string axis_label(const Description& d, int axis) { return axis_name(spatial_rank(d), axis); }

std::string_view role_name(Role role) {
  switch (role) {
    case Role::activation: return "activation";
    case Role::weight: return "weight";
    case Role::channels: return "one per output channel";
    case Role::scalar: return "scalar";
  }
  return "";
}

std::string_view rule_name(ExtentRule rule) {
  switch (rule) {
    case ExtentRule::floor: return "floor";
    case ExtentRule::ceil: return "ceil";
    case ExtentRule::transposed: return "transposed";
    case ExtentRule::adaptive: return "adaptive";
  }
  return "";
}

bool has_weight(const Description& d) {
  return std::any_of(d.inputs.begin(), d.inputs.end(), [](const TensorInfo& info) {
    return info.role == Role::weight;
  });
}

/// The tensor whose cells the windows cover: x, or y where the operator is a transposed one.
std::string_view covered(const Description& d) {
  return d.windows[0].rule == ExtentRule::transposed ? "y" : "x";
}

/// The axis to draw, from its number or its name; -1 where there is nothing to draw.
int drawn_axis(const ExplainOptions& options, const Description& d) {
  const int rank = d.windows.rank();
  if (!options.axis) {
    return rank - 1;
  }
  if (rank == 0) {
    throw UsageError("--axis: " + *options.op + " has no windows to draw");
  }
  std::string names;
  for (int axis = 0; axis < rank; ++axis) {
    if (*options.axis == axis_label(d, axis)) {
      return axis;
    }
    names += (axis > 0 ? ", " : "") + std::to_string(axis);
    if (rank <= 3) {
      names += " (" + axis_label(d, axis) + ")";
    }
  }
  int axis = -1;
  const char* end = options.axis->data() + options.axis->size();
  const auto [next, failure] = std::from_chars(options.axis->data(), end, axis);
  if (failure != std::errc() || next != end || axis < 0 || axis >= rank) {
    throw UsageError("--axis: there is no axis " + *options.axis + " here, only " + names);
  }
  return axis;
}

// For people.

std::string tensor_text(const Description& d) {
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const TensorInfo& info, const std::string& remark) {
    std::string role(d.layout ? role_name(info.role) : "tensor");
    if (d.layout && info.role == Role::activation) {
      role += " " + activation_label(spatial_rank(d), *d.batched, *d.layout);
    }
    rows.push_back({std::string(info.name),
                    to_string(info.shape),
                    role + remark,
                    grouped(info.shape.elements().value_or(0))});
  };
  for (const TensorInfo& info : d.inputs) {
    add(info, "");
  }
  for (const TensorInfo& info : d.data) {
    add(info, ", integers");
  }
  add(d.output, "");
  std::size_t digits = 0;
  for (const auto& row : rows) {
    digits = std::max(digits, row.back().size());
  }
  for (auto& row : rows) {
    row.back().insert(0, digits - row.back().size(), ' ');
  }
  return "tensors, with their elements\n" + columns(rows, 2);
}

std::string extent_text(const Description& d) {
  std::vector<std::vector<std::string>> rows;
  for (int axis = 0; axis < d.windows.rank(); ++axis) {
    rows.push_back({axis_label(d, axis), extent_formula(d.windows[axis])});
  }
  std::string_view formula;
  switch (d.windows[0].rule) {
    case ExtentRule::floor:
      formula = "o = floor((i + pl + pr - K)/s) + 1, K = d*(k - 1) + 1";
      break;
    case ExtentRule::ceil:
      formula = "o = floor((i + pl + pr - K + s - 1)/s) + 1, K = d*(k - 1) + 1";
      break;
    case ExtentRule::transposed:
      formula = "o = (i - 1)*s - pl - pr + K + op, K = d*(k - 1) + 1";
      break;
    case ExtentRule::adaptive:
      formula = "bin j of o covers [floor(j*i/o), ceil((j + 1)*i/o))";
      break;
  }
  return "output extents: " + std::string(formula) + "\n" + columns(rows, 2);
}

std::string note_text(const Description& d, const AxisNote& note) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t axis = 0; axis < note.axes.size(); ++axis) {
    const auto [low, high] = note.axes[axis];
    rows.push_back({axis_label(d, static_cast<int>(axis)),
                    std::to_string(low) + (low == high ? "" : " .. " + std::to_string(high))});
  }
  return std::string(note.text) + "\n" + columns(rows, 2);
}

std::string drawing_title(const Description& d, int axis) {
  switch (d.windows[axis].rule) {
    case ExtentRule::transposed:
      return "windows on " + axis_label(d, axis) +
             ", of the forward convolution: a cell of x adds to its window in y";
    case ExtentRule::adaptive: return "bins on " + axis_label(d, axis);
    default: return "windows on " + axis_label(d, axis);
  }
}

std::string cost_text(const Description& d) {
  return columns(
      {{"parameters", grouped(d.costs->parameters)},
       {has_weight(d) ? "multiply-adds" : "cell visits", grouped(d.costs->multiply_adds)}},
      0);
}

std::string drawing_text(const Description& d, int axis) {
  std::string text = drawing_title(d, axis) + "\n";
  for (const std::string& line : draw_windows(d.windows[axis])) {
    text += "  " + line + "\n";
  }
  return text + "  (" + drawing_legend(d.windows[axis]) + ")\n";
}

/// A candidate, whether it is the one that runs, and the seconds it takes where that was asked for.
struct ShownKernel {
  KernelChoice choice;
  bool runs = false;
  std::optional<double> seconds;
};

/// Candidates in the order in which they are asked; the first of each direction and type that
/// accepts is the one that runs.
std::vector<ShownKernel> shown_kernels(const OperatorEntry& entry,
                                       const Description& d,
                                       bool with_times) {
  constexpr double kSeconds = 0.2;  // for each
  std::vector<ShownKernel> shown;
  for (const KernelChoice& choice : d.kernels) {
    const bool accepts = choice.refusal.empty();
    const bool is_first = std::none_of(shown.begin(), shown.end(), [&](const ShownKernel& other) {
      return other.runs && other.choice.direction == choice.direction &&
             kernel_type(other.choice) == kernel_type(choice);
    });
    shown.push_back({choice, accepts && is_first, {}});
    if (with_times && choice.able) {
      shown.back().seconds = entry.time(d.problem, choice, kSeconds);
    }
  }
  return shown;
}

std::string kernels_text(const std::vector<ShownKernel>& shown, bool with_times) {
  if (shown.empty()) {
    return "kernels: none of its own\n";
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& [choice, runs, seconds] : shown) {
    const std::string said = runs ? "chosen" : choice.refusal.empty() ? "accepts" : choice.refusal;
    rows.push_back({choice.direction, choice.name, said});
    if (with_times) {
      rows.back().insert(rows.back().begin() + 2,
                         seconds ? decimal(1e6 * *seconds, 1) + " us" : "");
    }
  }
  return "kernels, in the order in which they are asked (instruction set: " +
         std::string(kernels::isa_name()) +
         (with_times ? ", threads: " + std::to_string(threads()) + ", least of several runs" : "") +
         ")\n" +
         (with_times ? columns(rows, 2, {Align::left, Align::left, Align::right})
                     : columns(rows, 2));
}

void print_text(const OperatorEntry& entry,
                const Description& d,
                int axis,
                const ExplainOptions& options) {
  std::string text = std::string(entry.name) + "\n  " + std::string(entry.summary) + "\n  " +
                     d.problem + "\n\n" + tensor_text(d);
  if (d.windows.rank() > 0) {
    text += "\n" + extent_text(d);
  }
  for (const AxisNote& note : d.notes) {
    text += "\n" + note_text(d, note);
  }
  if (d.costs) {
    text += "\n" + cost_text(d);
  }
  if (axis >= 0) {
    text += "\n" + drawing_text(d, axis);
  }
  if (options.kernels) {
    text += "\n" + kernels_text(shown_kernels(entry, d, options.time), options.time);
  }
  std::cout << fitted(text, terminal_of(Stream::out));
}

// For programs.

Json tensor_json(const TensorInfo& info) {
  return {{"name", info.name},
          {"shape", shape_json(info.shape)},
          {"role", info.role == Role::channels ? "channels" : role_name(info.role)},
          {"elements", info.shape.elements().value_or(0)}};
}

Json tensors_json(const std::vector<TensorInfo>& infos) {
  Json list = Json::array();
  for (const TensorInfo& info : infos) {
    list.push_back(tensor_json(info));
  }
  return list;
}

Json axes_json(const Description& d) {
  Json axes = Json::array();
  for (int axis = 0; axis < d.windows.rank(); ++axis) {
    const WindowAxis& a = d.windows[axis];
    axes.push_back({{"name", axis_label(d, axis)},
                    {"rule", rule_name(a.rule)},
                    {"cells", a.in},
                    {"windows", a.out},
                    {"kernel", a.kernel},
                    {"stride", a.stride},
                    {"dilation", a.dilation},
                    {"pad_low", a.pad_low},
                    {"pad_high", a.pad_high},
                    {"formula", extent_formula(a)}});
  }
  return axes;
}

Json notes_json(const Description& d) {
  Json notes = Json::object();
  for (const AxisNote& note : d.notes) {
    Json axes = Json::array();
    for (std::size_t axis = 0; axis < note.axes.size(); ++axis) {
      axes.push_back({{"name", axis_label(d, static_cast<int>(axis))},
                      {"low", note.axes[axis].low},
                      {"high", note.axes[axis].high}});
    }
    notes[std::string(note.key)] = std::move(axes);
  }
  return notes;
}

Json kernels_json(const std::vector<ShownKernel>& shown) {
  Json list = Json::array();
  for (const auto& [choice, runs, seconds] : shown) {
    list.push_back({{"direction", choice.direction},
                    {"name", choice.name},
                    {"refusal", choice.refusal.empty() ? Json(nullptr) : Json(choice.refusal)},
                    {"chosen", runs},
                    {"seconds", seconds ? Json(*seconds) : Json(nullptr)}});
  }
  return list;
}

void print_as_json(const OperatorEntry& entry,
                   const Description& d,
                   int axis,
                   const ExplainOptions& options) {
  Json json = {{"operator", entry.name},
               {"summary", entry.summary},
               {"problem", d.problem},
               {"layout", d.layout ? Json(layout_name(*d.layout)) : Json(nullptr)},
               {"batched", d.batched ? Json(*d.batched) : Json(nullptr)},
               {"inputs", tensors_json(d.inputs)},
               {"data", tensors_json(d.data)},
               {"output", tensor_json(d.output)},
               {"windows_over", nullptr},
               {"axes", axes_json(d)},
               {"notes", notes_json(d)},
               {"parameters", nullptr},
               {"multiply_adds", nullptr},
               {"cell_visits", nullptr},
               {"drawing", nullptr}};
  if (d.costs) {
    json["parameters"] = d.costs->parameters;
    json[has_weight(d) ? "multiply_adds" : "cell_visits"] = d.costs->multiply_adds;
  }
  if (axis >= 0) {
    json["windows_over"] = covered(d);
    json["drawing"] = {{"axis", axis},
                       {"name", axis_label(d, axis)},
                       {"lines", draw_windows(d.windows[axis])},
                       {"legend", drawing_legend(d.windows[axis])}};
  }
  if (options.kernels) {
    json["kernels"] = kernels_json(shown_kernels(entry, d, options.time));
    json["isa"] = kernels::isa_name();
  }
  print_json(json);
}

void list_operators(bool as_json) {
  if (as_json) {
    Json list = Json::array();
    for (const OperatorEntry& entry : operators()) {
      list.push_back(
          {{"name", entry.name}, {"summary", entry.summary}, {"example", entry.example}});
    }
    print_json({{"operators", std::move(list)}});
    return;
  }
  const Terminal terminal = terminal_of(Stream::out);
  for (const OperatorEntry& entry : operators()) {
    std::cout << entry.name << "\n"
              << wrapped("  " + std::string(entry.summary) + "\n", terminal)
              << "  fenestra explain " << entry.name << " \"" << entry.example << "\"\n";
  }
}

/// As the operator describes it; where it does not know a field, with the one that was meant.
Description described(const OperatorEntry& entry, const std::string& problem) {
  try {
    return entry.describe(problem);
  } catch (const Error& error) {
    const std::string text = error.what();
    if (error.code() != ErrorCode::bad_problem || text.find("expected a field of ") == text.npos) {
      throw;
    }
    throw Error(ErrorCode::bad_problem,
                text + meant_field(entry, problem) + "\n  fix: the fields that `fenestra explain " +
                    std::string(entry.name) + " --help` lists");
  }
}

/// The operator. A model, which a command of its own explains, is easily taken for one.
const OperatorEntry& operator_of(const std::string& word, const std::string& problem) {
  try {
    return find_operator(word);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::unknown_operator) {
      for (const std::string& name : {word, problem}) {
        const std::string command = command_for_model(name);
        if (!command.empty()) {
          throw Error(ErrorCode::unknown_operator,
                      name + ": this is a model, not an operator\n  fix: " + command);
        }
      }
    }
    throw;
  }
}

}  // namespace

ExitCode explain(const ExplainOptions& options) {
  if (!options.op) {
    list_operators(options.json);
    return fine;
  }
  const OperatorEntry& entry = operator_of(*options.op, options.problem.value_or(""));
  if (!options.problem) {
    throw UsageError("explain " + *options.op + " needs a problem, e.g. \"" +
                     std::string(entry.example) + "\"; its fields: fenestra explain " +
                     *options.op + " --help");
  }
  const Description description = described(entry, *options.problem);
  const int axis = drawn_axis(options, description);
  if (options.json) {
    print_as_json(entry, description, axis, options);
  } else {
    print_text(entry, description, axis, options);
  }
  return fine;
}

void add_explain(CLI::App& app, CommandLine& line) {
  const auto options = std::make_shared<ExplainOptions>();
  const auto op = std::make_shared<std::string>();
  // A problem may come in one argument or in several: the quotes are easily forgotten.
  const auto problem = std::make_shared<std::vector<std::string>>();
  const auto axis = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("explain", "Geometry, sizes, costs and a drawing of one problem");
  CLI::Option* op_option =
      command->add_option("operator", *op, "its name; left out: list the operators");
  for (const OperatorEntry& entry : operators()) {
    line.words[op_option].emplace_back(entry.name);
  }
  CLI::Option* problem_option =
      command->add_option("problem", *problem, "a problem string, e.g. \"x=1x3x8x8 kernel=2\"");
  problem_option->type_name("TEXT");
  CLI::Option* axis_option =
      command->add_option("--axis", *axis, "spatial axis to draw: a number from 0, or a name");
  axis_option->type_name("AXIS");
  CLI::Option* kernels_option = command->add_flag(
      "--kernels", options->kernels, "list the kernel candidates and why some do not apply");
  command->add_flag("--time", options->time, "time those that apply, on the threads there are")
      ->needs(kernels_option);
  add_json(*command, line);
  command->footer(
      "\nExamples:\n"
      "  fenestra explain conv \"x=8x3x32x32 w=16x3x3x3 stride=2 padding=1\"\n"
      "  fenestra explain conv_transpose \"x=1x8x7x7 w=8x4x4x4 stride=2 padding=1\" --axis height\n"
      "  fenestra explain conv --help\n"
      "  fenestra explain conv \"x=1x64x56x56 w=64x64x3x3 padding=1\" --kernels --time\n"
      "  fenestra explain max_pool \"x=1x64x112x112 kernel=3 stride=2 padding=1\" --json");
  line.actions[command] = [=, &line] {
    line.about = *op;
    options->op = given(op_option, *op);
    options->problem = given(problem_option, CLI::detail::join(*problem, " "));
    options->axis = given(axis_option, *axis);
    options->json = line.json;
    return explain(*options);
  };
  line.topics[command] = {op_option, operator_help};
  add_explain_model(*command, line);
}

}  // namespace fenestra::cli
