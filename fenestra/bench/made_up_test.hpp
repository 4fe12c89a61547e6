// Records of runs that never happened, for tests of what is said of them.
#pragma once

#include <fenestra/bench/record.hpp>

#include <string>
#include <utility>
#include <vector>

namespace fenestra::bench {

inline Times seconds(double time) { return {time, time}; }

/// A convolution of one second at the machine's limit.
inline Result conv_result(const std::string& name, char direction, double ours) {
  Result r;
  r.what = {name, "conv", "FDWP", {}, "x=Nx4x8x8 w=4x4x3x3"};
  r.direction = direction;
  r.batch = 1;
  r.problem = r.what.with_batch(1);
  r.kernel = "conv_f32_gemm_avx2";
  r.ours = seconds(ours);
  r.limit = 1;
  return r;
}

inline Record record_of(std::vector<Result> results) {
  Record record;
  record.isa = "avx2";
  record.results = std::move(results);
  return record;
}

inline Choice choice_of(const std::string& isa, double ratio) {
  return {isa,
          "conv x=1x2x3x3 w=2x2x3x3",
          "",
          "forward",
          "conv_f32_gemm",
          "conv_f32_direct",
          ratio * 1e-3,
          1e-3};
}

/// Something of everything, with a name that must stay text.
inline Record everything() {
  Result a = conv_result("3x3 <64>", 'F', 2);
  a.what.tags = {"dense", "both"};
  a.plain = Times{3, 2.5};
  a.any = seconds(1);
  a.torch = seconds(4);
  Result model = conv_result("net", 'C', 0.5);
  model.what.op = "lenet5";
  model.what.tags = {"compiled:3"};
  model.limit = 0;
  model.memory = 1e6;
  model.torch_memory = 4e6;
  model.torch = seconds(2);
  model.eager = seconds(1);
  std::vector<Result> results = {a, model};
  for (const char* size : {"1", "4", "16"}) {
    Result growing = conv_result(std::string("batch ") + size, 'F', 2);
    growing.what.tags = {"grows:batch", std::string("at:") + size};
    growing.torch = seconds(3);
    results.push_back(growing);
  }
  Record record = record_of(std::move(results));
  record.torch = "1.13";
  record.seconds = 90;
  record.limits = {{1, 1e11, 5e10, 8e10, 1e10}};
  record.choices = {choice_of("avx2", 1.3)};
  record.bits = {12, ""};
  return record;
}

}  // namespace fenestra::bench
