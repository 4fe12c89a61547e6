// Reading cases.txt.
#include <fenestra/bench/case.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace fenestra::bench {

namespace {

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  const std::size_t end = text.find_last_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) {
    parts.push_back(part);
  }
  return parts;
}

std::optional<double> ratio(const std::optional<Times>& peer, const Times& ours) {
  return peer ? std::optional(peer->median / ours.median) : std::nullopt;
}

/// x=NxCxS.. becomes x=NxS..xC, w=OxIxK.. becomes w=K..xIxO.
std::string channels_last(const std::string& problem) {
  std::string result;
  for (const std::string& field : split(problem, ' ')) {
    std::string changed = field;
    if (field.starts_with("x=") || field.starts_with("w=")) {
      std::vector<std::string> extents = split(field.substr(2), 'x');
      if (field[0] == 'x') {
        std::rotate(extents.begin() + 1, extents.begin() + 2, extents.end());
      } else {
        std::swap(extents[0], extents[1]);
        std::rotate(extents.begin(), extents.begin() + 2, extents.end());
      }
      changed = field.substr(0, 2);
      for (const std::string& extent : extents) {
        changed += (changed.size() == 2 ? "" : "x") + extent;
      }
    }
    result += (result.empty() ? "" : " ") + changed;
  }
  return result + " layout=channels_last";
}

std::string with_size(std::string text, const std::string& size) {
  for (std::size_t at = text.find('G'); at != std::string::npos; at = text.find('G', at)) {
    text.replace(at, 1, size);
  }
  return text;
}

/// The cases that one line stands for.
std::vector<Case> expanded(const Case& line) {
  std::vector<Case> cases;
  for (const std::string& size : split(line.word("sizes:"), ',')) {
    Case one = line;
    one.name = with_size(line.name, size);
    one.problem = with_size(line.problem, size);
    one.tags.push_back("at:" + size);
    cases.push_back(one);
  }
  if (cases.empty()) {
    cases.push_back(line);
  }
  if (line.has("both")) {
    const std::size_t count = cases.size();
    for (std::size_t i = 0; i < count; ++i) {
      Case last = cases[i];
      last.name += " last";
      last.problem = channels_last(last.problem);
      last.tags.push_back("last");
      cases.push_back(std::move(last));
    }
  }
  return cases;
}

}  // namespace

bool Case::has(std::string_view tag) const {
  return std::find(tags.begin(), tags.end(), tag) != tags.end();
}

std::string Case::word(std::string_view prefix) const {
  for (const std::string& tag : tags) {
    if (tag.starts_with(prefix)) {
      return tag.substr(prefix.size());
    }
  }
  return "";
}

std::optional<double> Case::number(std::string_view prefix) const {
  const std::string text = word(prefix);
  return text.empty() ? std::nullopt : std::optional(std::stod(text));
}

bool Case::has_batch() const { return problem.starts_with("x=Nx"); }

std::string Case::with_batch(Index batch) const {
  return has_batch() ? "x=" + std::to_string(batch) + problem.substr(3) : problem;
}

std::vector<Case> read_cases(const std::string& file) {
  std::ifstream in(file);
  if (!in) {
    throw Error(ErrorCode::bad_file,
                "bench: no file " + file + "\n  fix: run from the root, or --cases FILE");
  }
  std::vector<Case> cases;
  for (std::string line; std::getline(in, line);) {
    if (trimmed(line).empty() || trimmed(line)[0] == '#') {
      continue;
    }
    std::vector<std::string> fields = split(line, '|');
    for (std::string& field : fields) {
      field = trimmed(field);
    }
    if (fields.size() != 5) {
      throw Error(ErrorCode::bad_file,
                  "bench: " + file + ": expected name | operator | directions | tags | problem, " +
                      "found \"" + line + "\"");
    }
    Case one{fields[0], fields[1], fields[2], {}, fields[4]};
    std::erase(one.directions, ' ');
    std::istringstream tags(fields[3]);
    for (std::string tag; tags >> tag;) {
      one.tags.push_back(tag);
    }
    for (Case& real : expanded(one)) {
      cases.push_back(std::move(real));
    }
  }
  return cases;
}

std::optional<double> Result::against_plain() const { return ratio(plain, ours); }

std::optional<double> Result::against_torch() const { return ratio(torch, ours); }

std::optional<double> Result::against_strict() const { return ratio(strict, ours); }

std::optional<double> Result::against_eager() const { return ratio(eager, ours); }

std::optional<Result::Peer> Result::best_peer() const {
  std::optional<Peer> best;
  const auto add = [&](std::string_view name, const std::optional<Times>& times) {
    if (times && (!best || times->median < best->times.median)) {
      best = Peer{name, *times};
    }
  };
  add("oneDNN", plain);
  add("torch", torch);
  add("XNNPACK", xnnpack);
  return best;
}

std::optional<double> Result::against_best() const {
  const std::optional<Peer> best = best_peer();
  return best ? ratio(best->times, ours) : std::nullopt;
}

std::optional<double> Result::share() const {
  return limit > 0 ? std::optional(limit / ours.median) : std::nullopt;
}

std::string Result::label() const {
  return what.name + " " + direction + (batch > 0 ? " batch " + std::to_string(batch) : "") + ", " +
         std::to_string(threads) + (threads == 1 ? " thread" : " threads");
}

}  // namespace fenestra::bench
