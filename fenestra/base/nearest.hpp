// The name somebody probably meant: for messages only, nothing is ever corrected silently. Not
// installed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra {

/// Insertions, deletions and replacements that turn `a` into `b`.
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = i;
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row[b.size()];
}

/// The nearest of `names`, or nothing where none is near: what was typed is how one begins, as
/// "--augment" is; or at most a third of the letters differ (two in a short name); or it goes on
/// where a name ends, as in "max_pool2d".
template <class Names>
std::string_view nearest_name(std::string_view typed, const Names& names) {
  constexpr std::size_t kLongest = 64;   // the distance costs the product of the lengths
  constexpr std::size_t kBeginning = 4;  // with fewer letters many names begin
  if (typed.size() > kLongest) {
    return {};
  }
  std::string_view best;
  for (const std::string_view name : names) {
    if (typed.size() >= kBeginning && name.starts_with(typed) &&
        (best.empty() || name.size() < best.size())) {
      best = name;
    }
  }
  if (!best.empty()) {
    return best;
  }
  std::size_t best_distance = std::max<std::size_t>(2, typed.size() / 3) + 1;
  for (const std::string_view name : names) {
    const std::size_t distance = edit_distance(typed, name);
    if (distance < best_distance && distance < name.size()) {
      best_distance = distance;
      best = name;
    }
  }
  if (!best.empty()) {
    return best;
  }
  for (const std::string_view name : names) {
    if (typed.starts_with(name) && name.size() > best.size()) {
      best = name;
    }
  }
  return best;
}

/// ", did you mean x?" where a name is near, else nothing.
template <class Names>
std::string did_you_mean(std::string_view typed, const Names& names) {
  const std::string nearest(nearest_name(typed, names));
  return nearest.empty() ? "" : ", did you mean " + nearest + "?";
}

/// Refuses a name that stands for nothing of its kind.
template <class Names>
std::string unknown_name(std::string_view kind, std::string_view typed, const Names& names) {
  std::string known;
  for (const std::string_view name : names) {
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  return "no " + std::string(kind) + " is called \"" + std::string(typed) + "\"" +
         did_you_mean(typed, names) + "\n  fix: one of " + known;
}

}  // namespace fenestra
