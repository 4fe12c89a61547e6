// Affinity masks and cgroup quotas, read from the system. What cannot be read limits nothing.
#include <fenestra/base/processors.hpp>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>
#include <vector>

#ifdef __linux__
#include <sched.h>
#endif

namespace fenestra::detail {

namespace {

/// The processors of a quota, rounded up: a process that may use one and a half keeps two busy most
/// of the time. 0 where the numbers are no quota.
int whole_processors(std::int64_t quota, std::int64_t period) {
  if (quota <= 0 || period <= 0) {
    return 0;
  }
  return static_cast<int>(std::min<std::int64_t>((quota - 1) / period + 1, 1 << 20));
}

/// The smaller limit, 0 being none.
int tighter(int a, int b) { return a == 0 || (b != 0 && b < a) ? b : a; }

/// "150000 100000", or "max 100000" for no quota.
int quota_v2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  std::int64_t quota = 0;
  std::int64_t period = 0;
  return file >> quota >> period ? whole_processors(quota, period) : 0;
}

/// Two files; -1 for no quota.
int quota_v1(const std::string& folder) {
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us");
  std::ifstream period_file(folder + "/cpu.cfs_period_us");
  std::int64_t quota = 0;
  std::int64_t period = 0;
  return quota_file >> quota && period_file >> period ? whole_processors(quota, period) : 0;
}

bool lists(std::string_view list, std::string_view item) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (list.substr(0, comma) == item) {
      return true;
    }
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

/// One mounted hierarchy that can hold quotas: `top` of its cgroups is seen at `folder`.
struct Hierarchy {
  int version;
  std::string top;
  std::string folder;
};

/// Lines of mountinfo: "36 35 0:31 /top /folder options ... - type source options".
std::vector<Hierarchy> hierarchies(const std::string& root) {
  std::vector<Hierarchy> found;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) {
      continue;
    }
    std::istringstream place(line.substr(0, dash));
    std::istringstream kind(line.substr(dash + 3));
    std::string skipped;
    std::string top;
    std::string folder;
    std::string type;
    std::string source;
    std::string options;
    place >> skipped >> skipped >> skipped >> top >> folder;
    kind >> type >> source >> options;
    if (type == "cgroup2") {
      found.push_back({2, top, folder});
    } else if (type == "cgroup" && lists(options, "cpu")) {
      found.push_back({1, top, folder});
    }
  }
  return found;
}

/// The process's cgroup in hierarchies of a version: lines "0::/path" (2), "4:cpu,cpuacct:/path"
/// (1). Empty where there is none.
std::string own_cgroup(const std::string& root, int version) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) {
      continue;
    }
    const std::string_view controllers =
        std::string_view(line).substr(first + 1, second - first - 1);
    if (version == 2 ? controllers.empty() : lists(controllers, "cpu")) {
      return line.substr(second + 1);
    }
  }
  return {};
}

/// `path` as seen from `top`; a container sees its own cgroup as the top of the mount, and a path
/// from outside that leads nowhere.
std::string below(const std::string& path, const std::string& top) {
  if (top == "/") {
    return path == "/" ? "" : path;
  }
  const bool inside =
      path.starts_with(top) && (path.size() == top.size() || path[top.size()] == '/');
  return inside ? path.substr(top.size()) : "";
}

}  // namespace

int processors_by_affinity() {
#ifdef __linux__
  // The kernel refuses a mask that is smaller than its own.
  for (int room = 1024; room <= (1 << 20); room *= 2) {
    std::vector<cpu_set_t> mask(CPU_ALLOC_SIZE(static_cast<std::size_t>(room)) / sizeof(cpu_set_t));
    const std::size_t bytes = mask.size() * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, mask.data()) == 0) {
      return std::max(1, CPU_COUNT_S(bytes, mask.data()));
    }
  }
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int processors_by_quota(const std::string& root) {
  int limit = 0;
  for (const Hierarchy& hierarchy : hierarchies(root)) {
    const std::string top = root + hierarchy.folder;
    std::string folder = top + below(own_cgroup(root, hierarchy.version), hierarchy.top);
    while (true) {
      limit = tighter(limit, hierarchy.version == 2 ? quota_v2(folder) : quota_v1(folder));
      if (folder.size() <= top.size()) {
        break;
      }
      folder.erase(folder.rfind('/'));
    }
  }
  return limit;
}

int available_processors() { return tighter(processors_by_affinity(), processors_by_quota("")); }

}  // namespace fenestra::detail
