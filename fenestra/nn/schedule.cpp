// The text form of schedules, and spans that become steps.
#include <fenestra/nn/schedule.hpp>
#include <fenestra/nn/words.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace fenestra::nn {

namespace {

constexpr std::array<std::pair<Schedule::Kind, const char*>, 5> kKinds{{
    {Schedule::Kind::constant, "constant"},
    {Schedule::Kind::step, "step"},
    {Schedule::Kind::cosine, "cosine"},
    {Schedule::Kind::linear, "linear"},
    {Schedule::Kind::one_cycle, "one-cycle"},
}};

constexpr std::string_view kEpochs = "epochs";

TrainingSpan parse_span(std::string_view text, const std::string& key, std::string_view value) {
  const bool epochs = value.ends_with(kEpochs);
  if (epochs) {
    value.remove_suffix(kEpochs.size());
  }
  const double amount = detail::parse_number("schedule", text, key, value);
  if (!(amount >= 0 && amount < 1e15) || (!epochs && amount != std::floor(amount))) {
    throw Error(ErrorCode::invalid_option,
                "schedule: \"" + std::string(text) + "\": " + key + " = " +
                    detail::number_text(amount) + "\n  fix: a whole number of steps, or " + key +
                    "=NUMBER" + std::string(kEpochs));
  }
  return {amount, epochs};
}

std::string span_text(const TrainingSpan& span) {
  return detail::number_text(span.amount) + (span.epochs ? std::string(kEpochs) : "");
}

TrainingSpan in_steps(const TrainingSpan& span, Index steps_per_epoch) {
  return span.epochs
             ? TrainingSpan{std::round(span.amount * static_cast<double>(steps_per_epoch)), false}
             : span;
}

Index whole(const TrainingSpan& span) { return static_cast<Index>(span.amount); }

void require(std::string_view text, const char* key, double value, bool fits, const char* needed) {
  if (!fits) {
    throw Error(ErrorCode::invalid_option,
                "schedule: \"" + std::string(text) + "\": " + key + " = " +
                    detail::number_text(value) + "\n  fix: " + needed);
  }
}

}  // namespace

Schedule Schedule::parse(std::string_view text) {
  const detail::Words words = detail::parse_words("schedule", text);
  Schedule s;
  const auto found = std::find_if(
      kKinds.begin(), kKinds.end(), [&](const auto& known) { return words.name == known.second; });
  if (found == kKinds.end()) {
    std::vector<std::string_view> names;
    for (const auto& [kind, name] : kKinds) {
      names.emplace_back(name);
    }
    detail::throw_unknown("schedule", text, words.name, names);
  }
  s.kind_ = found->first;
  const bool cycles = s.kind_ == Kind::one_cycle;
  const bool falls = s.kind_ == Kind::cosine || s.kind_ == Kind::linear;
  const bool steps_down = s.kind_ == Kind::step;
  for (const auto& [key, value] : words.options) {
    const auto number = [&] { return detail::parse_number("schedule", text, key, value); };
    if (key == "warmup" && !cycles) {
      s.warmup_ = parse_span(text, key, value);
    } else if (key == "steps" && (falls || cycles)) {
      s.steps_ = parse_span(text, key, value);
    } else if (key == "every" && steps_down) {
      s.every_ = parse_span(text, key, value);
      require(text, "every", s.every_.amount, s.every_.amount > 0, "every > 0");
    } else if (key == "factor" && steps_down) {
      s.factor_ = number();
      require(text, "factor", s.factor_, s.factor_ >= 0 && s.factor_ <= 1, "0 <= factor <= 1");
    } else if (key == "least" && falls) {
      s.least_ = number();
      require(text, "least", s.least_, s.least_ >= 0 && s.least_ <= 1, "0 <= least <= 1, a share");
    } else if (key == "rise" && cycles) {
      s.rise_ = number();
      require(text, "rise", s.rise_, s.rise_ >= 0 && s.rise_ <= 1, "0 <= rise <= 1");
    } else if (key == "divisor" && cycles) {
      s.divisor_ = number();
      require(text, "divisor", s.divisor_, s.divisor_ >= 1 && s.divisor_ < 1e30, "divisor >= 1");
    } else if (key == "final_divisor" && cycles) {
      s.final_divisor_ = number();
      require(text,
              "final_divisor",
              s.final_divisor_,
              s.final_divisor_ >= 1 && s.final_divisor_ < 1e30,
              "final_divisor >= 1");
    } else {
      using Names = std::vector<std::string_view>;
      detail::throw_unknown_option("schedule",
                                   text,
                                   words.name,
                                   key,
                                   cycles       ? Names{"steps", "rise", "divisor", "final_divisor"}
                                   : falls      ? Names{"warmup", "steps", "least"}
                                   : steps_down ? Names{"warmup", "every", "factor"}
                                                : Names{"warmup"});
    }
  }
  return s;
}

std::string Schedule::text() const {
  std::string text;
  for (const auto& [kind, name] : kKinds) {
    if (kind == kind_) {
      text = name;
    }
  }
  const auto add = [&](const char* key, const std::string& value) {
    text += " " + std::string(key) + "=" + value;
  };
  if (warmup_.amount > 0) {
    add("warmup", span_text(warmup_));
  }
  if (steps_.amount > 0) {
    add("steps", span_text(steps_));
  }
  switch (kind_) {
    case Kind::constant: break;
    case Kind::step:
      add("every", span_text(every_));
      add("factor", detail::number_text(factor_));
      break;
    case Kind::cosine:
    case Kind::linear: add("least", detail::number_text(least_)); break;
    case Kind::one_cycle:
      add("rise", detail::number_text(rise_));
      add("divisor", detail::number_text(divisor_));
      add("final_divisor", detail::number_text(final_divisor_));
      break;
  }
  return text;
}

Schedule Schedule::of_run(Index steps, Index steps_per_epoch) const {
  if (steps < 1 || steps_per_epoch < 1) {
    throw Error(ErrorCode::invalid_option,
                "schedule: a run of " + std::to_string(steps) + " steps, " +
                    std::to_string(steps_per_epoch) + " in each epoch\n  fix: at least one");
  }
  Schedule s = *this;
  s.warmup_ = in_steps(warmup_, steps_per_epoch);
  s.every_ = in_steps(every_, steps_per_epoch);
  s.every_.amount = std::max(1.0, s.every_.amount);
  if (steps_.amount > 0) {
    s.steps_ = in_steps(steps_, steps_per_epoch);
  } else if (kind_ != Kind::constant && kind_ != Kind::step) {
    s.steps_ = {static_cast<double>(steps), false};
  }
  return s;
}

bool Schedule::is_resolved() const {
  if (warmup_.epochs) {
    return false;
  }
  switch (kind_) {
    case Kind::constant: return true;
    case Kind::step: return !every_.epochs;
    default: return !steps_.epochs && steps_.amount > 0;
  }
}

double Schedule::operator()(Index step) const {
  if (!is_resolved()) {
    throw Error(ErrorCode::invalid_option,
                "schedule: \"" + text() +
                    "\" does not know how many steps the run has\n  fix: say " +
                    (kind_ == Kind::step ? "every=STEPS" : "steps=STEPS") +
                    ", or ask of_run(steps, steps_per_epoch)");
  }
  const Index warmup = whole(warmup_);
  if (step < warmup) {
    return static_cast<double>(step + 1) / static_cast<double>(warmup + 1);
  }
  // A warm-up as long as the run leaves nothing to fall.
  const Index rest = std::max<Index>(1, whole(steps_) - warmup);
  const Index at = step - warmup;
  switch (kind_) {
    case Kind::constant: return 1;
    case Kind::step: return StepRate{1, whole(every_), factor_}(at);
    case Kind::cosine: return CosineRate{1, rest, least_}(at);
    case Kind::linear: return LinearRate{1, rest, least_}(at);
    case Kind::one_cycle:
      return OneCycleRate{
          1, std::max<Index>(2, whole(steps_)), rise_, divisor_, final_divisor_}(step);
  }
  return 1;
}

}  // namespace fenestra::nn
