// Torch as a peer: a child process running torch_peer.py, asked one measurement at a time.
#pragma once

#include <fenestra/bench/case.hpp>
#include <fenestra/bench/sample.hpp>

#include <cstdio>
#include <optional>
#include <string>
#include <vector>
#include <nlohmann/json_fwd.hpp>

namespace fenestra::bench {

/// Absent (`version()` empty) where there is no interpreter or no torch; asking it then gives
/// nothing.
class TorchPeer {
 public:
  explicit TorchPeer(const std::string& script);
  ~TorchPeer();
  TorchPeer(const TorchPeer&) = delete;
  TorchPeer& operator=(const TorchPeer&) = delete;

  const std::string& version() const { return version_; }
  void sample(const Case& what,
              char direction,
              const std::string& problem,
              int threads,
              const Effort& effort,
              std::vector<double>& times);
  /// Bytes that a call takes at most, above what stays.
  std::optional<double> peak_memory(const Case& what,
                                    char direction,
                                    const std::string& problem,
                                    int threads);

 private:
  nlohmann::json answer(const nlohmann::json& request);
  std::string read_line();

  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
  int process_ = -1;
  std::string version_;
};

}  // namespace fenestra::bench
