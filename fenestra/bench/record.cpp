// Records as JSON.
#include <fenestra/bench/bars.hpp>
#include <fenestra/bench/record.hpp>

#include <nlohmann/json.hpp>

namespace fenestra::bench {

namespace {

using Json = nlohmann::json;

Json json_of(std::optional<double> value) { return value ? Json(*value) : Json(nullptr); }

Json json_of(const std::optional<Times>& taken) {
  return taken ? Json{{"median", taken->median}, {"least", taken->least}} : Json(nullptr);
}

std::optional<double> number_in(const Json& json, const char* key) {
  const Json& value = json.at(key);
  return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

std::optional<Times> times_in(const Json& json, const char* key) {
  const Json& value = json.at(key);
  return value.is_null() ? std::nullopt
                         : std::optional(Times{value.at("median"), value.at("least")});
}

Json json_of(const Result& r) {
  return {{"case", r.what.name},
          {"operator", r.what.op},
          {"tags", r.what.tags},
          {"problem", r.problem},
          {"type", r.what.is_double() ? "f64" : "f32"},
          {"direction", std::string(1, r.direction)},
          {"threads", r.threads},
          {"batch", r.batch},
          {"layout", r.what.is_channels_last() ? "last" : "first"},
          {"kernel", r.kernel},
          {"ours", json_of(std::optional(r.ours))},
          {"bytes", r.bytes},
          {"limit", r.limit},
          {"onednn_plain", json_of(r.plain)},
          {"onednn_any", json_of(r.any)},
          {"torch", json_of(r.torch)},
          {"xnnpack", json_of(r.xnnpack)},
          {"strict", json_of(r.strict)},
          {"eager", json_of(r.eager)},
          {"memory", json_of(r.memory)},
          {"torch_memory", json_of(r.torch_memory)}};
}

Result result_of(const Json& json) {
  Result r;
  r.what.name = json.at("case");
  r.what.op = json.at("operator");
  r.what.tags = json.at("tags").get<std::vector<std::string>>();
  r.problem = json.at("problem");
  r.what.problem = r.problem;
  r.what.directions = json.at("direction");
  r.direction = r.what.directions.at(0);
  r.threads = json.at("threads");
  r.batch = json.at("batch");
  r.kernel = json.at("kernel");
  r.ours = times_in(json, "ours").value();
  r.bytes = json.at("bytes");
  r.limit = json.at("limit");
  r.plain = times_in(json, "onednn_plain");
  r.any = times_in(json, "onednn_any");
  r.torch = times_in(json, "torch");
  r.xnnpack = times_in(json, "xnnpack");
  r.strict = times_in(json, "strict");
  r.eager = times_in(json, "eager");
  r.memory = number_in(json, "memory");
  r.torch_memory = number_in(json, "torch_memory");
  return r;
}

Json json_of(const Choice& choice) {
  return {{"isa", choice.isa},
          {"problem", choice.problem},
          {"source", choice.source},
          {"direction", choice.direction},
          {"chosen", choice.chosen},
          {"best", choice.best},
          {"chosen_seconds", choice.chosen_seconds},
          {"best_seconds", choice.best_seconds}};
}

Json json_of(const Bar& bar) {
  return {{"bar", bar.text},
          {"each", json_of(bar.each)},
          {"mean", json_of(bar.mean)},
          {"at_least", bar.at_least},
          {"met", bar.holds()},
          {"geometric_mean", bar.geometric_mean()},
          {"worst", bar.worst},
          {"worst_case", bar.worst_case},
          {"worst_kernel", bar.worst_kernel},
          {"worst_share", json_of(bar.worst_share)},
          {"cases", bar.cases},
          {"missed", bar.missed}};
}

}  // namespace

Json to_json(const Record& record) {
  Json all = {{"isa", record.isa},
              {"onednn", record.onednn},
              {"torch", record.torch},
              {"xnnpack", record.has_xnnpack},
              {"quick", record.is_quick},
              {"seconds", record.seconds},
              {"left_out", record.left_out},
              {"bits", {{"problems", record.bits.problems}, {"failure", record.bits.failure}}},
              {"limits", Json::array()},
              {"results", Json::array()},
              {"choices", Json::array()},
              {"bars", Json::array()}};
  for (const Limits& limits : record.limits) {
    all["limits"].push_back({{"threads", limits.threads},
                             {"f32_flops", limits.f32_flops},
                             {"f64_flops", limits.f64_flops},
                             {"cached_copy", limits.cached_copy},
                             {"memory_copy", limits.memory_copy}});
  }
  for (const Result& result : record.results) {
    all["results"].push_back(json_of(result));
  }
  for (const Choice& choice : record.choices) {
    all["choices"].push_back(json_of(choice));
  }
  for (const Bar& bar : judge(record)) {
    all["bars"].push_back(json_of(bar));
  }
  return all;
}

Record record_from_json(const Json& json) {
  try {
    Record record;
    record.isa = json.at("isa");
    record.onednn = json.at("onednn");
    record.torch = json.at("torch");
    record.has_xnnpack = json.at("xnnpack");
    record.is_quick = json.at("quick");
    record.seconds = json.at("seconds");
    record.left_out = json.at("left_out");
    record.bits.problems = json.at("bits").at("problems");
    record.bits.failure = json.at("bits").at("failure");
    for (const Json& one : json.at("limits")) {
      record.limits.push_back({one.at("threads"),
                               one.at("f32_flops"),
                               one.at("f64_flops"),
                               one.at("cached_copy"),
                               one.at("memory_copy")});
    }
    for (const Json& one : json.at("results")) {
      record.results.push_back(result_of(one));
    }
    for (const Json& one : json.at("choices")) {
      record.choices.push_back({one.at("isa"),
                                one.at("problem"),
                                one.at("source"),
                                one.at("direction"),
                                one.at("chosen"),
                                one.at("best"),
                                one.at("chosen_seconds"),
                                one.at("best_seconds")});
    }
    return record;
  } catch (const std::exception& error) {
    throw Error(ErrorCode::bad_file,
                std::string("bench: not a record: ") + error.what() +
                    "\n  fix: a file that `fenestra_bench --json` wrote");
  }
}

}  // namespace fenestra::bench
