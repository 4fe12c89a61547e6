// `fenestra help`: what `--help` prints, for those who type it first.
#include <fenestra/cli/command_line.hpp>
#include <fenestra/cli/wrap.hpp>

#include <iostream>

namespace fenestra::cli {

void add_help(CLI::App& app, CommandLine& line) {
  const auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("help", "How the tool or one of its commands is used");
  CLI::Option* option =
      command->add_option("command", *words, "of which one; left out: of the tool");
  option->type_name("TEXT");
  command->footer(
      "\nExamples:\n  fenestra help\n  fenestra help explain model\n  fenestra help explain conv");
  line.actions[command] = [&app, &line, words] {
    const CLI::App* about = &app;
    std::string path;  // "explain model "
    for (const std::string& word : *words) {
      std::vector<std::string> names;
      const CLI::App* next = nullptr;
      for (const CLI::App* part : about->get_subcommands([](const CLI::App*) { return true; })) {
        names.push_back(part->get_name());
        next = part->get_name() == word ? part : next;
      }
      if (const auto found = line.topics.find(about); found != line.topics.end()) {
        const CommandLine::Topic& topic = found->second;
        const std::vector<std::string>& about_words = line.words.at(topic.option);
        if (std::find(about_words.begin(), about_words.end(), word) != about_words.end()) {
          std::cout << topic.help(word, false);
          return fine;
        }
        names.insert(names.end(), about_words.begin(), about_words.end());
      }
      if (next == nullptr) {
        throw UsageError("there is no command \"" + path + word + "\"" + did_you_mean(word, names));
      }
      about = next;
      path += word + " ";
    }
    const std::string name = app.get_name() + (path.empty() ? "" : " ") + path;
    std::cout << wrapped(
        about->get_formatter()->make_help(
            about, name.substr(0, name.find_last_not_of(' ') + 1), CLI::AppFormatMode::Normal),
        terminal_of(Stream::out));
    return fine;
  };
}

}  // namespace fenestra::cli
