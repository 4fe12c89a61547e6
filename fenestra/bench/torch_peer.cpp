// The two pipes to torch_peer.py.
#include <fenestra/bench/torch_peer.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>

namespace fenestra::bench {

namespace {

nlohmann::json request_of(const Case& what,
                          char direction,
                          const std::string& problem,
                          int threads) {
  return {{"op", what.op},
          {"problem", problem},
          {"direction", std::string(1, direction)},
          {"type", what.is_double() ? "f64" : "f32"},
          {"threads", threads}};
}

}  // namespace

TorchPeer::TorchPeer(const std::string& script) {
  int requests[2];
  int answers[2];
  if (script.empty() || pipe(requests) != 0 || pipe(answers) != 0) {
    return;
  }
  std::signal(SIGPIPE, SIG_IGN);  // a child that ends shows as an answer that does not come
  process_ = fork();
  if (process_ == 0) {
    dup2(requests[0], STDIN_FILENO);
    dup2(answers[1], STDOUT_FILENO);
    for (const int end : {requests[0], requests[1], answers[0], answers[1]}) {
      close(end);
    }
    execl("/usr/bin/python3", "python3", script.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  close(requests[0]);
  close(answers[1]);
  to_ = fdopen(requests[1], "w");
  from_ = fdopen(answers[0], "r");
  const auto greeting = nlohmann::json::parse(read_line(), nullptr, false);
  if (greeting.is_object()) {
    version_ = greeting.value("version", "");
  }
}

TorchPeer::~TorchPeer() {
  if (to_ != nullptr) {
    std::fclose(to_);
    std::fclose(from_);
    waitpid(process_, nullptr, 0);
  }
}

void TorchPeer::sample(const Case& what,
                       char direction,
                       const std::string& problem,
                       int threads,
                       const Effort& effort,
                       std::vector<double>& times) {
  if (version_.empty()) {
    return;
  }
  nlohmann::json request = request_of(what, direction, problem, threads);
  request["effort"] = {
      {"seconds", effort.seconds}, {"runs", effort.runs}, {"warm_up", effort.warm_up}};
  const nlohmann::json measured = answer(request);
  for (const double seconds : measured.at("times")) {
    times.push_back(seconds);
  }
}

std::optional<double> TorchPeer::peak_memory(const Case& what,
                                             char direction,
                                             const std::string& problem,
                                             int threads) {
  if (version_.empty()) {
    return std::nullopt;
  }
  return answer(request_of(what, direction, problem, threads)).at("memory").get<double>();
}

nlohmann::json TorchPeer::answer(const nlohmann::json& request) {
  const std::string line = request.dump() + "\n";
  std::fwrite(line.data(), 1, line.size(), to_);
  std::fflush(to_);
  auto answer = nlohmann::json::parse(read_line(), nullptr, false);
  if (!answer.is_object()) {
    throw Error(ErrorCode::bad_environment,
                "bench: torch_peer.py gave no answer to " + request.dump() +
                    "\n  fix: see its message above, or run with --no-torch");
  }
  return answer;
}

std::string TorchPeer::read_line() {
  std::string line;
  for (int c = std::fgetc(from_); c != EOF && c != '\n'; c = std::fgetc(from_)) {
    line.push_back(static_cast<char>(c));
  }
  return line;
}

}  // namespace fenestra::bench
