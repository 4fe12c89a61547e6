// `fenestra launch`: a training on several processes, started again where one of them dies. It
// knows nothing of MPI but the name of the program that starts it.
#include <fenestra/base/error.hpp>
#include <fenestra/cli/command_line.hpp>
#include <fenestra/cli/text.hpp>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <system_error>
#include <thread>

extern char** environ;

namespace fenestra::cli {

namespace {

struct LaunchOptions {
  int processes = 1;
  int restarts = 0;
  bool fewer = false;
  std::string mpirun = "mpirun";
  std::vector<std::string> words = {};
};

volatile std::sig_atomic_t child = 0;
volatile std::sig_atomic_t was_told = 0;

/// Hands signals on to the launcher, which hands them on to the ranks.
class SignalsForChild {
 public:
  SignalsForChild() {
    was_told = 0;
    struct sigaction action = {};
    action.sa_handler = [](int number) {
      was_told = 1;
      if (child != 0) {
        kill(static_cast<pid_t>(child), number);
      }
    };
    sigaction(SIGINT, &action, &interrupt_before_);
    sigaction(SIGTERM, &action, &terminate_before_);
  }
  ~SignalsForChild() {
    sigaction(SIGINT, &interrupt_before_, nullptr);
    sigaction(SIGTERM, &terminate_before_, nullptr);
  }
  SignalsForChild(const SignalsForChild&) = delete;
  SignalsForChild& operator=(const SignalsForChild&) = delete;

 private:
  struct sigaction interrupt_before_ = {};
  struct sigaction terminate_before_ = {};
};

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPause{50};  // between two looks at the launcher
// A launcher that lives takes note of the end of a process at once.
constexpr std::chrono::seconds kPatience{10};

/// The letter of a process in /proc: S where it sleeps, T where it was stopped, Z where it has
/// ended and nobody has taken note; 0 where there is none.
char state_of(const std::string& process) {
  std::ifstream file("/proc/" + process + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(") ");
  return name_end == std::string::npos || name_end + 2 >= text.size() ? '\0' : text[name_end + 2];
}

/// Whether a launcher has children, all of which have ended without it taking note. mpirun of Open
/// MPI 4.1 may stop so, for ever: where a rank is killed at a bad moment, it waits for a lock of
/// its own while it ends the job.
bool has_dead_children_only(pid_t launcher) {
  const std::string number = std::to_string(launcher);
  if (const char state = state_of(number); state == 'T' || state == 't') {
    return false;  // somebody has stopped it
  }
  bool has_some = false;
  std::error_code failed;
  const std::string threads = "/proc/" + number + "/task";
  for (std::filesystem::directory_iterator thread(threads, failed), end; !failed && thread != end;
       thread.increment(failed)) {
    std::ifstream file(thread->path() / "children");
    for (std::string process; file >> process;) {
      if (state_of(process) != 'Z') {
        return false;
      }
      has_some = true;
    }
  }
  return has_some;
}

/// The exit code of the words, run to their end; as shells say it, 128 and the signal.
int run_words(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  pid_t started = 0;
  const int failed =
      posix_spawnp(&started, arguments[0], nullptr, nullptr, arguments.data(), environ);
  if (failed != 0) {
    throw Error(ErrorCode::bad_environment,
                words[0] + ": cannot be started: " + std::strerror(failed) +
                    "\n  fix: install MPI (Debian: openmpi-bin), or name its launcher with "
                    "--mpirun");
  }
  child = started;
  int status = 0;
  std::optional<Clock::time_point> alone_since;
  while (true) {
    const pid_t ended = waitpid(started, &status, WNOHANG);
    if (ended == started || (ended < 0 && errno != EINTR)) {
      break;
    }
    if (!has_dead_children_only(started)) {
      alone_since.reset();
    } else if (!alone_since) {
      alone_since = Clock::now();
    } else if (Clock::now() - *alone_since > kPatience) {
      std::cerr << "fenestra launch: " << words[0]
                << " waits for processes that have ended: it is killed\n"
                << std::flush;
      kill(started, SIGKILL);
      alone_since.reset();
    }
    std::this_thread::sleep_for(kPause);
  }
  child = 0;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int launch(const LaunchOptions& options) {
  if (options.words.empty() || options.words[0] != "train") {
    throw UsageError(
        "launch starts a training: fenestra launch -n 4 -- train MODEL --data DATA "
        "--leaf 8");
  }
  for (const std::string& word : options.words) {
    if (word == "--resume" || word == "--force" || word == "--resume-or-start") {
      throw UsageError(word +
                       ": launch goes on where there is a checkpoint, and begins where there "
                       "is none");
    }
  }
  if (geteuid() == 0) {
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  }
  // What PMIx shares by memory is locked by whoever reads it; a rank that is killed meanwhile would
  // leave mpirun waiting for ever.
  setenv("PMIX_MCA_gds", "hash", 0);
  // More processes than processors are slow, not wrong.
  setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);

  const SignalsForChild listens;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  int processes = options.processes;
  for (int restart = 0;; ++restart) {
    std::vector<std::string> words{options.mpirun, "-n", std::to_string(processes), self};
    words.insert(words.end(), options.words.begin(), options.words.end());
    words.emplace_back("--resume-or-start");
    const int code = run_words(words);
    if (was_told != 0) {
      return was_interrupted;
    }
    // What was said wrongly is wrong the next time, too.
    if (code == kNotAgain + law_broken || code == kNotAgain + bad_usage ||
        code == kNotAgain + bad_input) {
      return code - kNotAgain;
    }
    if (code == fine || code == was_interrupted || restart == options.restarts) {
      return code;
    }
    processes = options.fewer ? std::max(1, processes - 1) : processes;
    std::cerr << "fenestra launch: the job ended with code " << code << "; start " << restart + 1
              << " of " << options.restarts << " again, with " << processes << " processes\n"
              << std::flush;
  }
}

}  // namespace

void add_launch(CLI::App& app, CommandLine& line) {
  const auto o = std::make_shared<LaunchOptions>();
  CLI::App* command =
      app.add_subcommand("launch", "Train on several processes, and again where one dies");
  command->add_option("-n,--processes", o->processes, "how many, 1 by default")
      ->check(whole_number<int>(1))
      ->type_name("N");
  command->add_option("--restarts", o->restarts, "how often to start again, 0 by default")
      ->check(whole_number<int>(0))
      ->type_name("K");
  command->add_flag("--fewer", o->fewer, "each time with one process less");
  command->add_option("--mpirun", o->mpirun, "the program that starts them, mpirun by default")
      ->type_name("PROGRAM");
  command->add_option("words", o->words, "after --: train and its options")->type_name("WORDS");
  command->footer(
      "\nThe training goes on from its last checkpoint, and ends with the weights of one that "
      "never "
      "stopped.\n"
      "\nExamples:\n"
      "  fenestra launch -n 4 --restarts 3 -- train lenet --data digits --leaf 8\n"
      "  fenestra launch -n 8 --restarts 7 --fewer -- train unet --data shapes --leaf 4");
  line.actions[command] = [o] { return static_cast<ExitCode>(launch(*o)); };
}

}  // namespace fenestra::cli
