// `fenestra explain OPERATOR --help`. Options say themselves what they mean. Which other fields an
// operator has is asked of its parser, so that the list cannot miss one that it reads or name one
// that it does not; what those mean that many operators have stands here.
#include <fenestra/base/error.hpp>
#include <fenestra/base/nearest.hpp>
#include <fenestra/cli/operator_help.hpp>
#include <fenestra/cli/text.hpp>
#include <fenestra/cli/wrap.hpp>

#include <algorithm>
#include <optional>
#include <utility>

namespace fenestra::cli {

namespace {

/// Stand for all options of the operator, but for the layout, which is the last of the fields; and
/// for the shapes and the other fields that the operator says itself.
constexpr std::string_view kOptions = "options";
constexpr std::string_view kLayout = "layout";
constexpr std::string_view kOwnShapes = "own shapes";
constexpr std::string_view kOwnFields = "own fields";

/// What many operators have, in the order in which fields are printed.
constexpr OwnField kFields[] = {
    {"f", "which function", "the first of them"},
    {"x", "shape of the input: 8x3x32x32"},
    {"w", "shape of the weight: 16x3x3x3"},
    {.name = kOwnShapes, .meaning = {}},
    {"a", "shape of the first operand"},
    {"b", "shape of the second operand"},
    {.name = kOptions, .meaning = {}},
    {"bias", "whether there is one", "false"},
    {.name = kOwnFields, .meaning = {}},
    {"batched", "whether the first axis of x is the batch", "what the rank of x says"},
};

std::vector<std::string> split(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(end + separator.size());
  }
}

std::string_view key_of(std::string_view field) { return field.substr(0, field.find('=')); }

/// The problem without the field.
std::string without(std::string_view problem, std::string_view name) {
  std::string rest;
  for (const std::string& field : split(problem, " ")) {
    if (!field.empty() && key_of(field) != name) {
      rest += field + " ";
    }
  }
  return rest;
}

/// What the operator says to a problem; nothing where it takes it.
std::string complaint(const OperatorEntry& entry, const std::string& problem) {
  try {
    entry.describe(problem);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// What the parser says it expects at the byte, or nothing where it stumbled elsewhere.
std::optional<std::string> expected_at(const std::string& complaint, std::size_t byte) {
  const std::string head = ": at byte " + std::to_string(byte) + ": expected ";
  const std::size_t begin = complaint.find(head);
  if (begin == std::string::npos) {
    return std::nullopt;
  }
  const std::size_t from = begin + head.size();
  return complaint.substr(from, complaint.rfind(", found ") - from);
}

/// Nobody reads this value as anything, so whoever reads the field complains of it.
constexpr std::string_view kNothing = "?";

/// What the parser expects the field to be, if it reads it in this problem.
std::optional<std::string> expected_value(const OperatorEntry& entry,
                                          std::string_view problem,
                                          std::string_view name) {
  const std::string text = without(problem, name) + std::string(name) + "=";
  return expected_at(complaint(entry, text + std::string(kNothing)), text.size());
}

/// Problems that between them use every function of the operator.
std::vector<std::string> problems_of(const OperatorEntry& entry) {
  constexpr int kProblems = 60;
  std::vector<std::string> problems{std::string(entry.example)};
  Random random(1);
  for (int i = 0; i < kProblems; ++i) {
    problems.push_back(entry.random_problem(random));
  }
  return problems;
}

/// Words of a complaint: "ignore or zero". Numbers and flags are told by the meaning.
std::vector<std::string> choices_of(const std::string& expected) {
  const std::vector<std::string> words = split(expected, " or ");
  const bool is_flag = words.front() == "false";
  const bool is_number = words.front().find(' ') != std::string::npos;
  return words.size() > 1 && !is_flag && !is_number ? words : std::vector<std::string>{};
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : ", ") + word;
  }
  return text;
}

std::string fields_text(const std::vector<ProblemField>& fields) {
  std::vector<std::vector<std::string>> rows;
  for (const ProblemField& field : fields) {
    std::string about(field.help);
    if (!field.choices.empty()) {
      about += ": " + joined(field.choices);
    }
    if (field.is_required) {
      about += "; required";
    } else if (!field.otherwise.empty()) {
      about += "; left out: " + field.otherwise;
    }
    rows.push_back({std::string(field.name), about});
  }
  return columns(rows, 2);
}

}  // namespace

std::vector<ProblemField> operator_fields(const OperatorEntry& entry) {
  const std::vector<std::string> problems = problems_of(entry);
  std::vector<ProblemField> fields;
  const auto is_listed = [&](std::string_view name) {
    return std::ranges::find(fields, name, &ProblemField::name) != fields.end();
  };
  const std::vector<ProblemField> options = entry.options();
  const auto is_option = [&](std::string_view name) {
    return std::ranges::find(options, name, &ProblemField::name) != options.end();
  };
  const auto list = [&](const OwnField& field) {
    for (const std::string& problem : problems) {
      if (const auto expected = expected_value(entry, problem, field.name)) {
        const std::string rest = without(entry.example, field.name);
        const std::string missing = std::string(field.name) + "=...";
        fields.push_back(
            {.name = field.name,
             .help = field.meaning,
             .otherwise = std::string(field.otherwise),
             .choices = choices_of(*expected),
             .is_required = expected_at(complaint(entry, rest), rest.size()) == missing});
        break;
      }
    }
  };
  const auto own = [&](std::string_view name) {
    return std::ranges::find(entry.own_fields, name, &OwnField::name);
  };
  for (const OwnField& field : kFields) {
    if (field.name == kOptions) {
      fields.insert(fields.end(), options.begin(), options.end());
    } else if (field.name == kOwnShapes || field.name == kOwnFields) {
      for (const OwnField& its : entry.own_fields) {
        if (its.is_shape == (field.name == kOwnShapes) && !is_listed(its.name)) {
          list(its);
        }
      }
    } else if (!is_option(field.name)) {
      const auto its = own(field.name);
      list(its != entry.own_fields.end() ? *its : field);
    }
  }
  std::ranges::stable_partition(fields, [](const ProblemField& f) { return f.name != kLayout; });
  return fields;
}

std::string operator_help(std::string_view name, bool as_json) {
  const OperatorEntry& entry = find_operator(name);
  const std::vector<ProblemField> fields = operator_fields(entry);
  if (as_json) {
    Json list = Json::array();
    for (const ProblemField& field : fields) {
      const bool has_default = !field.is_required && !field.otherwise.empty();
      list.push_back({{"name", field.name},
                      {"meaning", field.help},
                      {"choices", field.choices.empty() ? Json(nullptr) : Json(field.choices)},
                      {"required", field.is_required},
                      {"default", has_default ? Json(field.otherwise) : Json(nullptr)}});
    }
    return json_text({{"operator", entry.name},
                      {"summary", entry.summary},
                      {"example", entry.example},
                      {"fields", std::move(list)}});
  }
  const std::string op(entry.name);
  const std::string example = op + " \"" + std::string(entry.example) + "\"\n";
  return wrapped(op + "\n  " + std::string(entry.summary) + "\n\nFields of a problem:\n" +
                     fields_text(fields) + "\nExamples:\n  fenestra explain " + example +
                     "  fenestra check " + example +
                     "\nOptions of the command: fenestra explain --help\n",
                 terminal_of(Stream::out));
}

std::string meant_field(const OperatorEntry& entry, std::string_view problem) {
  std::vector<std::string_view> names;
  const std::vector<ProblemField> fields = operator_fields(entry);
  for (const ProblemField& field : fields) {
    names.push_back(field.name);
  }
  for (const std::string& field : split(problem, " ")) {
    const std::string_view key = key_of(field);
    if (!key.empty() && std::find(names.begin(), names.end(), key) == names.end()) {
      return did_you_mean(key, names);
    }
  }
  return "";
}

}  // namespace fenestra::cli
