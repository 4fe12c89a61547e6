// `fenestra man`: the manual page in troff, made of what the commands say of themselves.
#include <fenestra/base/version.hpp>
#include <fenestra/cli/command_line.hpp>

#include <iostream>
#include <sstream>

namespace fenestra::cli {

namespace {

constexpr std::pair<std::string_view, std::string_view> kEnvironment[] = {
    {"FENESTRA_THREADS", "How many threads compute; by default as many as there are processors."},
    {"FENESTRA_ISA", "The best instruction set that kernels may use, e.g. avx2 or baseline."},
    {"FENESTRA_KERNEL", "The kernel that operators take, by name, where it applies."},
    {"FENESTRA_DATA",
     "The folder in which datasets are looked for first: digits, mnist and others."},
    {"FENESTRA_MPI", "The plugin, a file, by which processes that MPI started find each other."},
    {"COLUMNS", "How wide tables and pictures may be, instead of what the terminal says."},
    {"NO_COLOR", "Where it is set, nothing is coloured."},
};

/// Text in which troff sees nothing of its own.
std::string troff(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  // A line must not begin like a request.
  return result.starts_with('.') || result.starts_with('\'') ? "\\&" + result : result;
}

std::string bold(std::string_view text) { return "\\fB" + troff(text) + "\\fR"; }
std::string slanted(std::string_view text) { return "\\fI" + troff(text) + "\\fR"; }

/// "N", "{run,step,infer}", or nothing for a flag.
std::string value_name(const CLI::Option* option) {
  return option->get_items_expected_max() > 0 ? option->get_type_name() : "";
}

std::string option_entry(const CLI::Option* option) {
  std::string head;
  if (option->get_positional()) {
    head = slanted(option->get_name(true));
  } else {
    const auto add = [&](const std::string& name) {
      head += (head.empty() ? "" : ", ") + bold(name);
    };
    for (const std::string& name : option->get_snames()) {
      add("-" + name);
    }
    for (const std::string& name : option->get_lnames()) {
      add("--" + name);
    }
    const std::string value = value_name(option);
    head += value.empty() ? "" : " " + slanted(value);
  }
  return ".TP\n" + head + "\n" + troff(option->get_description()) + "\n";
}

/// Lines that are indented are shown as they are; others are text.
std::string footer_text(const CLI::App& command) {
  std::istringstream lines(command.get_footer());
  std::string text;
  bool is_example = false;
  for (std::string one; std::getline(lines, one);) {
    const bool is_indented = one.starts_with("  ");
    if (is_indented != is_example) {
      text += is_indented ? ".RS 2\n.nf\n" : ".fi\n.RE\n";
      is_example = is_indented;
    }
    if (one.empty()) {
      text += ".PP\n";
    } else {
      text += troff(is_indented ? one.substr(2) : one) + "\n";
    }
  }
  return text + (is_example ? ".fi\n.RE\n" : "");
}

std::string usage_line(const CLI::App& command, const std::string& path) {
  std::string text = bold(path) + " [" + slanted("options") + "]";
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) {
      const std::string name =
          slanted(option->get_name(true)) + (option->get_items_expected_max() > 1 ? "..." : "");
      text += option->get_required() ? " " + name : " [" + name + "]";
    }
  }
  return text;
}

void add_commands_of(const CLI::App& app, const std::string& path, std::string& text) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    const std::string name = path + " " + command->get_name();
    text += ".SS " + bold(name) + "\n" + usage_line(*command, name) + "\n.PP\n" +
            troff(command->get_description()) + ".\n";
    for (const CLI::Option* option : command->get_options()) {
      text += option_entry(option);
    }
    text += footer_text(*command);
    add_commands_of(*command, name, text);
  }
}

std::string manual_page(const CLI::App& app) {
  const std::string name = app.get_name();
  std::string text =
      ".TH FENESTRA 1 \"\" \"fenestra " + troff(version) + "\" \"User Commands\"\n.SH NAME\n" +
      name + " \\- differentiable sliding\\-window operators\n.SH SYNOPSIS\n" + bold(name) + " [" +
      slanted("options") + "] " + slanted("command") + " [" + slanted("arguments") +
      "]\n.SH DESCRIPTION\n" + troff(app.get_description()) + "\n.SH OPTIONS\n";
  for (const CLI::Option* option : app.get_options()) {
    text += option_entry(option);
  }
  text += footer_text(app);
  text += ".SH COMMANDS\n";
  add_commands_of(app, name, text);
  text += ".SH ENVIRONMENT\n";
  for (const auto& [variable, meaning] : kEnvironment) {
    text += ".TP\n" + bold(variable) + "\n" + troff(meaning) + "\n";
  }
  return text;
}

}  // namespace

void add_man(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("man", "The manual page, as troff");
  command->footer("\nExamples:\n  fenestra man\n\nTo read it:  fenestra man | man -l -");
  line.actions[command] = [&app] {
    std::cout << manual_page(app);
    return fine;
  };
}

}  // namespace fenestra::cli
