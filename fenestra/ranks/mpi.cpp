// Loading the plugin, and a communicator over its table.
#include <fenestra/base/error.hpp>
#include <fenestra/ranks/mpi.hpp>
#include <fenestra/ranks/mpi_table.hpp>

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

namespace fenestra::ranks {

namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "fenestra_mpi.so";

[[noreturn]] void refuse(const std::string& what, const std::string& fix) {
  throw Error(ErrorCode::bad_environment, "MPI: " + what + "\n  fix: " + fix);
}

/// Where the plugin may be, best first.
std::vector<fs::path> places() {
  std::vector<fs::path> all;
  if (const char* said = std::getenv("FENESTRA_MPI"); said != nullptr && *said != '\0') {
    all.emplace_back(said);
    return all;
  }
  static const char here = 0;
  Dl_info info = {};
  if (dladdr(&here, &info) != 0 && info.dli_fname != nullptr) {
    std::error_code failed;
    fs::path file = fs::canonical(info.dli_fname, failed);
    if (failed) {
      file = fs::canonical("/proc/self/exe", failed);
    }
    const fs::path folder = file.parent_path();
    all.push_back(folder / kFile);
    all.push_back(folder / "fenestra" / kFile);
    all.push_back(folder / FENESTRA_LIBRARY_FROM_PROGRAM / "fenestra" / kFile);
  }
  return all;
}

const FenestraMpiTable& load() {
  std::string tried;
  for (const fs::path& place : places()) {
    std::error_code ignored;
    if (!fs::exists(place, ignored)) {
      tried += "\n  not there: " + place.string();
      continue;
    }
    // MPI libraries load parts of their own, which need its symbols.
    void* const library = dlopen(place.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) {
      const char* const why = dlerror();
      tried += "\n  " + place.string() + " cannot be loaded: " + (why != nullptr ? why : "");
      continue;
    }
    void* const found = dlsym(library, "fenestra_mpi_table");
    if (found == nullptr) {
      refuse(place.string() + " is no plugin", "the file that was built with this library");
    }
    const FenestraMpiTable* const table = reinterpret_cast<FenestraMpiEntry>(found)();
    if (table->version != kFenestraMpiVersion) {
      refuse(place.string() + " has version " + std::to_string(table->version) + ", needed " +
                 std::to_string(kFenestraMpiVersion),
             "the file that was built with this library");
    }
    return *table;
  }
  refuse("the plugin " + std::string(kFile) + " was not found" + tried,
         "build with MPI (Debian: libopenmpi-dev, openmpi-bin), or say where it is with "
         "FENESTRA_MPI");
}

void require(const FenestraMpiTable& table, int code) {
  if (code != 0) {
    char text[1024] = {};
    table.text(code, text, sizeof text);
    throw LostRank("MPI: code " + std::to_string(code) + ", " + text +
                   "\n  fix: see what the launcher says, and start again");
  }
}

class MpiExchange : public Exchange {
 public:
  MpiExchange(const FenestraMpiTable& table,
              std::span<const FenestraMessage> sends,
              std::span<const FenestraMessage> receives,
              int channel)
      : table_(table) {
    const int code = table_.begin(
        sends.data(), sends.size(), receives.data(), receives.size(), channel, &messages_);
    if (code != 0) {
      drop();
      require(table_, code);
    }
  }
  ~MpiExchange() override { drop(); }
  MpiExchange(const MpiExchange&) = delete;
  MpiExchange& operator=(const MpiExchange&) = delete;

  bool poll() override {
    int is_done = 0;
    require(table_, table_.test(messages_, &is_done));
    return is_done != 0;
  }
  void wait() override { require(table_, table_.wait(messages_)); }

 private:
  void drop() {
    if (messages_ != nullptr) {
      table_.drop(messages_);
    }
  }

  const FenestraMpiTable& table_;
  void* messages_ = nullptr;
};

class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator() : table_(load()) {
    require(table_, table_.start());
    require(table_, table_.rank(&rank_));
    require(table_, table_.size(&size_));
  }
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;
  void finish() { table_.finish(); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::unique_ptr<Exchange> start(std::span<const Outgoing> sends,
                                  std::span<const Incoming> receives,
                                  int channel) override {
    std::vector<FenestraMessage> out;
    std::vector<FenestraMessage> in;
    for (const Outgoing& send : sends) {
      // MPI's own functions take what they only read as const.
      out.push_back({send.to, const_cast<std::byte*>(send.bytes.data()), send.bytes.size()});
    }
    for (const Incoming& receive : receives) {
      in.push_back({receive.from, receive.bytes.data(), receive.bytes.size()});
    }
    return std::make_unique<MpiExchange>(table_, out, in, channel);
  }

 private:
  const FenestraMpiTable& table_;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace

int launched_ranks() {
  const auto number = [](const char* name) {
    const char* const text = std::getenv(name);
    return text == nullptr ? 0 : std::max(0, std::atoi(text));
  };
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (number(name) > 0) {
      return number(name);
    }
  }
  // PMIx does not say how many; Slurm does.
  return std::getenv("PMIX_RANK") == nullptr ? 0 : std::max(1, number("SLURM_NTASKS"));
}

namespace {

/// MPI starts once in a process and cannot start again, so that it lasts as long as the process;
/// what users hold are handles.
struct World {
  std::mutex mutex;
  MpiCommunicator* communicator = nullptr;
  std::weak_ptr<Communicator> handle;
  bool ended_well = false;
};

World& world() {
  static World* const world = new World;  // outlives everybody who holds a handle
  return *world;
}

}  // namespace

CommunicatorPtr mpi_communicator() {
  World& w = world();
  const std::lock_guard lock(w.mutex);
  if (CommunicatorPtr held = w.handle.lock()) {
    return held;
  }
  if (w.communicator == nullptr) {
    w.communicator = new MpiCommunicator;
    // Where an error takes this rank away, others must not take it for the end of the run: the
    // launcher ends them when a process ends that has not told MPI so.
    std::atexit([] {
      if (world().ended_well) {
        world().communicator->finish();
      }
    });
  }
  w.ended_well = false;
  const CommunicatorPtr handle(w.communicator, [](Communicator*) {
    const std::lock_guard released(world().mutex);
    world().ended_well = std::uncaught_exceptions() == 0;
  });
  w.handle = handle;
  return handle;
}

}  // namespace fenestra::ranks
