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

std::optional<double> ratio(std::optional<double> peer, double ours) {
  return peer ? std::optional(*peer / ours) : std::nullopt;
}

}  // namespace

bool Case::has(std::string_view tag) const {
  return std::find(tags.begin(), tags.end(), tag) != tags.end();
}

bool Case::is_weak(char direction) const {
  return std::any_of(tags.begin(), tags.end(), [&](const std::string& tag) {
    return tag.starts_with("weak:") && tag.find(direction, 5) != std::string::npos;
  });
}

std::optional<double> Case::number(std::string_view prefix) const {
  for (const std::string& tag : tags) {
    if (tag.starts_with(prefix)) {
      return std::stod(tag.substr(prefix.size()));
    }
  }
  return std::nullopt;
}

bool Case::has_batch() const { return problem.starts_with("x=Nx"); }

std::string Case::with_batch(Index batch) const {
  return has_batch() ? "x=" + std::to_string(batch) + problem.substr(3) : problem;
}

std::vector<Case> read_cases(const std::string& file) {
  std::ifstream in(file);
  if (!in) {
    throw Error(ErrorCode::bad_problem,
                "bench: no file " + file + "\n  fix: run from the root, or --cases FILE");
  }
  std::vector<Case> cases;
  for (std::string line; std::getline(in, line);) {
    if (trimmed(line).empty() || trimmed(line)[0] == '#') {
      continue;
    }
    std::vector<std::string> fields;
    std::istringstream parts(line);
    for (std::string field; std::getline(parts, field, '|');) {
      fields.push_back(trimmed(field));
    }
    if (fields.size() != 5) {
      throw Error(ErrorCode::bad_problem,
                  "bench: " + file + ": expected name | operator | directions | tags | problem, " +
                      "found \"" + line + "\"");
    }
    Case one{fields[0], fields[1], fields[2], {}, fields[4]};
    std::erase(one.directions, ' ');
    std::istringstream tags(fields[3]);
    for (std::string tag; tags >> tag;) {
      one.tags.push_back(tag);
    }
    cases.push_back(std::move(one));
  }
  return cases;
}

std::optional<double> Result::against_plain() const { return ratio(plain, ours); }

std::optional<double> Result::against_torch() const { return ratio(torch, ours); }

std::optional<double> Result::against_strict() const { return ratio(strict, ours); }
std::optional<double> Result::against_eager() const { return ratio(eager, ours); }

std::optional<double> Result::against_best() const {
  if (plain && torch) {
    return std::min(*plain, *torch) / ours;
  }
  return plain ? against_plain() : against_torch();
}

std::string Result::label() const {
  return what.name + " " + direction + (batch > 0 ? " batch " + std::to_string(batch) : "") + ", " +
         std::to_string(threads) + (threads == 1 ? " thread" : " threads");
}

}  // namespace fenestra::bench
