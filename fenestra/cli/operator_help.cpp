// `fenestra explain OPERATOR --help`. Options say themselves what they mean. Which other fields an
// operator has is asked of its parser, so that the list cannot miss one that it reads or name one
// that it does not; what those mean stands here.
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

using check::OperatorEntry;

struct FieldWords {
  std::string_view op;  ///< "": of all that have no line of their own
  std::string_view name;
  std::string_view meaning;
  std::string_view otherwise = {};
};

/// Stands for all options of the operator, but for the layout, which is the last of the fields.
constexpr std::string_view kOptions = "";
constexpr std::string_view kLayout = "layout";
constexpr std::string_view kAxisWords = "the axis; from the last one where negative";

/// In the order in which they are printed, those before the options first.
constexpr FieldWords kWords[] = {
    {"", "f", "which function", "the first of them"},
    {"", "x", "shape of the input: 8x3x32x32"},
    {"", "w", "shape of the weight: 16x3x3x3"},
    {"where", "mask", "shape of what chooses between a and b"},
    {"", "a", "shape of the first operand"},
    {"", "b", "shape of the second operand"},
    {"reshape", "y", "shape of the result; an extent of -1 is what is left"},
    {"slice", "shape", "shape of the whole"},
    {"gather", "indices", "shape of the indices"},
    {"", kOptions, ""},
    {"normalise", "groups", "parts of the channels, of group_norm", "1"},
    {"", "bias", "whether there is one", "false"},
    {"elementwise", "p", "exponent, of power", "1"},
    {"elementwise", "slope", "below zero, of leaky_relu", "1"},
    {"elementwise", "low", "lower bound, of clip", "1"},
    {"elementwise", "high", "upper bound, of clip", "1"},
    {"elementwise", "factor", "of scale", "1"},
    {"elementwise", "alpha", "limit below zero, of elu", "1"},
    {"pad", "low", "cells added before each axis: 0,0,1,1", "0 on each axis"},
    {"pad", "high", "cells added behind each axis: 0,0,1,1", "0 on each axis"},
    {"normalise", "affine", "whether there are a scale and a shift", "true"},
    {"normalise", "axes", "how many of the last axes, of layer_norm", "1"},
    {"", "keep", "whether axes that go stay with extent 1", "false"},
    {"concat", "axis", kAxisWords, "0"},
    {"", "axis", kAxisWords, "-1"},
    {"concat", "extents", "of the parts on the axis: 4,8"},
    {"cumsum", "reverse", "whether it starts at the end", "false"},
    {"sort", "count", "how many of the sorted are kept", "all of them"},
    {"sort", "descending", "whether the largest comes first", "false"},
    {"gather", "slices", "whether an index takes a whole slice", "false"},
    {"transpose", "order", "the axes in their new order, each once: 0,2,1"},
    {"slice", "begin", "first cell on each axis: 0,1", "0, or the last one where step < 0"},
    {"slice", "count", "cells on each axis: 2,6", "as many as there are"},
    {"slice", "step", "from one cell to the next: 1,2", "1 on each axis"},
    {"", "batched", "whether the first axis of x is the batch", "what the rank of x says"},
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

bool has_line_of_its_own(const OperatorEntry& entry, std::string_view name) {
  for (const FieldWords& words : kWords) {
    if (words.op == entry.name && words.name == name) {
      return true;
    }
  }
  return false;
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
  const std::vector<ProblemField> options = entry.options();
  const auto is_option = [&](std::string_view name) {
    return std::ranges::find(options, name, &ProblemField::name) != options.end();
  };
  std::vector<ProblemField> fields;
  for (const FieldWords& words : kWords) {
    if (words.name == kOptions) {
      fields.insert(fields.end(), options.begin(), options.end());
      continue;
    }
    if (is_option(words.name) ||
        (words.op != entry.name && (!words.op.empty() || has_line_of_its_own(entry, words.name)))) {
      continue;
    }
    for (const std::string& problem : problems) {
      if (const auto expected = expected_value(entry, problem, words.name)) {
        const std::string rest = without(entry.example, words.name);
        const std::string missing = std::string(words.name) + "=...";
        fields.push_back(
            {.name = words.name,
             .help = words.meaning,
             .otherwise = std::string(words.otherwise),
             .choices = choices_of(*expected),
             .is_required = expected_at(complaint(entry, rest), rest.size()) == missing});
        break;
      }
    }
  }
  std::ranges::stable_partition(fields, [](const ProblemField& f) { return f.name != kLayout; });
  return fields;
}

std::string operator_help(std::string_view name, bool as_json) {
  const OperatorEntry& entry = check::find_operator(name);
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
