// `fenestra explain OPERATOR --help`. Which fields an operator has is asked of its parser, so that
// the list cannot miss one that it reads or name one that it does not; what they mean stands here.
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

constexpr std::string_view kAxisWords = "the axis; from the last one where negative";

/// In the order in which they are printed.
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
    {"", "kernel", "cells of a window: 3 for all axes, or 3,2"},
    {"max_unpool",
     "kernel",
     "cells of a window of the pool: 2 for all axes, or 2,3",
     "what output_size says"},
    {"conv", "stride", "cells from one window to the next: 2, or 2,1", "1"},
    {"conv_transpose", "stride", "cells from one window to the next: 2, or 2,1", "1"},
    {"", "stride", "cells from one window to the next: 2, or 2,1", "the kernel"},
    {"", "padding", "cells added at the edges: 1, 1,0, low:high as in 1:0,0:1, same or valid", "0"},
    {"", "dilation", "cells from one tap of a window to the next", "1"},
    {"", "output_padding", "cells that the output gets at its high edge", "0"},
    {"", "output_size", "extents of the output: 7,7"},
    {"conv_transpose", "output_size", "extents of the output: 7,7", "what the windows cover"},
    {"max_unpool", "output_size", "extents of the output: 7,7", "what the windows cover"},
    {"conv", "groups", "parts that the channels are cut into", "1"},
    {"conv_transpose", "groups", "parts that the channels are cut into", "1"},
    {"normalise", "groups", "parts of the channels, of group_norm", "1"},
    {"", "bias", "whether there is one", "false"},
    {"", "ceil_mode", "whether a last window may reach over the edge", "false"},
    {"", "pad_cells", "what padding is to a maximum: nothing, or zeros", "ignore"},
    {"", "count_include_pad", "whether padding counts in a mean", "true"},
    {"", "divisor_override", "what sums are divided by", "the cells that count"},
    {"", "beta", "sharpness: the larger, the closer to the maximum", "1"},
    {"", "normalised", "whether equal cells give their own value", "false"},
    {"lp_pool", "p", "exponent", "2"},
    {"elementwise", "p", "exponent, of power", "1"},
    {"elementwise", "slope", "below zero, of leaky_relu", "1"},
    {"elementwise", "low", "lower bound, of clip", "1"},
    {"elementwise", "high", "upper bound, of clip", "1"},
    {"elementwise", "factor", "of scale", "1"},
    {"elementwise", "alpha", "limit below zero, of elu", "1"},
    {"pad", "low", "cells added before each axis: 0,0,1,1", "0 on each axis"},
    {"pad", "high", "cells added behind each axis: 0,0,1,1", "0 on each axis"},
    {"pad", "value", "of the added cells, in mode constant", "0"},
    {"", "mode", "where the numbers of new cells come from", "the first of them"},
    {"resize", "size", "extents of the output: 16, or 16,8", "what the scale gives"},
    {"resize", "scale", "factor on the extents: 2, or 2,1.5", "what the size gives"},
    {"resize", "align_corners", "whether the corner cells stay where they are", "false"},
    {"normalise", "affine", "whether there are a scale and a shift", "true"},
    {"normalise", "axes", "how many of the last axes, of layer_norm", "1"},
    {"normalise", "eps", "added to the variance", "1e-5"},
    {"reduce", "axes", "the axes that go: 0,2", "all of them"},
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
    {"", "transpose_a", "whether the last two axes of a are swapped", "false"},
    {"", "transpose_b", "whether the last two axes of b are swapped", "false"},
    {"", "reduction", "what becomes of the losses of the samples", "mean"},
    {"", "batched", "whether the first axis of x is the batch", "what the rank of x says"},
    {"", "layout", "where the channels are", "channels_first"},
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

std::string fields_text(const std::vector<OperatorField>& fields) {
  std::vector<std::vector<std::string>> rows;
  for (const OperatorField& field : fields) {
    std::string about(field.meaning);
    if (!field.choices.empty()) {
      about += ": " + joined(field.choices);
    }
    if (field.is_required) {
      about += "; required";
    } else if (!field.otherwise.empty()) {
      about += "; left out: " + std::string(field.otherwise);
    }
    rows.push_back({std::string(field.name), about});
  }
  return columns(rows, 2);
}

}  // namespace

std::vector<OperatorField> operator_fields(const OperatorEntry& entry) {
  const std::vector<std::string> problems = problems_of(entry);
  std::vector<OperatorField> fields;
  for (const FieldWords& words : kWords) {
    if (words.op != entry.name && (!words.op.empty() || has_line_of_its_own(entry, words.name))) {
      continue;
    }
    for (const std::string& problem : problems) {
      if (const auto expected = expected_value(entry, problem, words.name)) {
        const std::string rest = without(entry.example, words.name);
        const std::string missing = std::string(words.name) + "=...";
        fields.push_back(
            {.name = words.name,
             .meaning = words.meaning,
             .otherwise = words.otherwise,
             .choices = choices_of(*expected),
             .is_required = expected_at(complaint(entry, rest), rest.size()) == missing});
        break;
      }
    }
  }
  return fields;
}

std::string operator_help(std::string_view name, bool as_json) {
  const OperatorEntry& entry = check::find_operator(name);
  const std::vector<OperatorField> fields = operator_fields(entry);
  if (as_json) {
    Json list = Json::array();
    for (const OperatorField& field : fields) {
      const bool has_default = !field.is_required && !field.otherwise.empty();
      list.push_back({{"name", field.name},
                      {"meaning", field.meaning},
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
  const std::vector<OperatorField> fields = operator_fields(entry);
  for (const OperatorField& field : fields) {
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
