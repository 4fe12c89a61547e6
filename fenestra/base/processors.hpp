// How many processors this process may keep busy: what the affinity mask and the quotas of its
// cgroups leave of the machine. Internal: not installed. Read on: docs/threads.md.
#pragma once

#include <string>

namespace fenestra::detail {

/// Processors in the affinity mask of the calling thread, at least 1.
int processors_by_affinity();

/// Processors that the quotas of the process's cgroup and of every cgroup above it allow, version 1
/// or 2, rounded up; 0 where there is no quota. Files are read below `root`, which is empty for the
/// running system.
int processors_by_quota(const std::string& root);

/// The smaller of both, at least 1.
int available_processors();

}  // namespace fenestra::detail
