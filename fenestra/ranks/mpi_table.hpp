// What the plugin `fenestra_mpi` offers, in C: the only part that is compiled with MPI's header,
// loaded when it is needed. Not installed.
#pragma once

#include <cstddef>

extern "C" {

struct FenestraMessage {
  int rank;  ///< whom it goes to, or comes from
  void* bytes;
  std::size_t size;
};

/// Functions give 0, or a code that `text` explains.
struct FenestraMpiTable {
  int version;  ///< of this struct
  int (*start)(void);
  int (*rank)(int* result);
  int (*size)(int* result);
  /// Begins all of these; sends are not written to. What it makes is for the three below, and
  /// `drop` must be called in the end.
  int (*begin)(const FenestraMessage* sends,
               std::size_t send_count,
               const FenestraMessage* receives,
               std::size_t receive_count,
               int channel,
               void** exchange);
  int (*test)(void* exchange, int* is_done);
  int (*wait)(void* exchange);
  void (*drop)(void* exchange);
  int (*finish)(void);
  void (*text)(int code, char* buffer, std::size_t size);
};

constexpr int kFenestraMpiVersion = 2;
using FenestraMpiEntry = const FenestraMpiTable* (*)(void);
}
