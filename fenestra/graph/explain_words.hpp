// The words that all forms of an explanation share. Internal: not installed.
#pragma once

#include <fenestra/base/text.hpp>
#include <fenestra/graph/report.hpp>

#include <string>
#include <string_view>

namespace fenestra::graph {

inline std::string type_text(DataType type, const Shape& shape) {
  return std::string(data_type_name(type)) + " " + to_string(shape);
}

inline std::string place_text(const Place& place) {
  switch (place.kind) {
    case Place::Kind::none: return "-";
    case Place::Kind::arena: return "@" + std::to_string(place.offset);
    case Place::Kind::argument: return "argument " + std::to_string(place.index);
    case Place::Kind::output: return "output " + std::to_string(place.index);
    case Place::Kind::constant: return "constant";
    case Place::Kind::worker: return "worker @" + std::to_string(place.offset);
  }
  return "";
}

inline std::string_view role_name(Buffer::Role role) {
  switch (role) {
    case Buffer::Role::result: return "result";
    case Buffer::Role::workspace: return "workspace";
    case Buffer::Role::scratch: return "scratch";
    case Buffer::Role::workers: return "workers";
  }
  return "";
}

inline std::string counted(std::size_t count, const std::string& noun) {
  return grouped(static_cast<std::int64_t>(count)) + " " + noun + (count == 1 ? "" : "s");
}

/// "11 pieces of 6 samples, 2 workers of 110 KiB", "64 pieces of 1 channel"
inline std::string group_text(const ReportGroup& group) {
  if (group.by_channels) {
    return counted(static_cast<std::size_t>(group.pieces()), "piece") + " of " +
           counted(static_cast<std::size_t>(group.piece), "channel");
  }
  return counted(static_cast<std::size_t>(group.pieces()), "piece") + " of " +
         counted(static_cast<std::size_t>(group.piece), "sample") + ", " +
         counted(static_cast<std::size_t>(group.workers), "worker") +
         (group.worker_bytes > 0 ? " of " + bytes_text(group.worker_bytes) : "");
}

/// "12.3 us"
inline std::string seconds_text(double seconds) {
  if (seconds >= 1) {
    return decimal(seconds, 2) + " s";
  }
  return seconds >= 1e-3 ? decimal(seconds * 1e3, 2) + " ms" : decimal(seconds * 1e6, 1) + " us";
}

inline std::string percent_text(double part) { return decimal(100 * part, 1) + " %"; }

/// Thousand millions of multiply-adds per second; empty where there are none or no time.
inline std::string rate_text(Index multiply_adds, double seconds) {
  return multiply_adds > 0 && seconds > 0
             ? decimal(static_cast<double>(multiply_adds) / seconds * 1e-9, 1)
             : "";
}

/// How much smaller the arena is than memory without reuse, as a part of it.
inline double saved_part(const Report& report) {
  return report.bytes_without_reuse > report.arena_bytes
             ? 1 - static_cast<double>(report.arena_bytes) /
                       static_cast<double>(report.bytes_without_reuse)
             : 0;
}

}  // namespace fenestra::graph
