// A plugin whose MPI starts, and loses every message: two ranks, as far as each of them can tell.
#include <fenestra/ranks/mpi_table.hpp>

#include <cstdio>

namespace {

// A code that is an exit code of the tool, too.
constexpr int kLost = 3;

constexpr FenestraMpiTable kTable = {
    .version = kFenestraMpiVersion,
    .start = [] { return 0; },
    .rank = [](int* result) { return *result = 0; },
    .size =
        [](int* result) {
          *result = 2;
          return 0;
        },
    .begin =
        [](const FenestraMessage*, std::size_t, const FenestraMessage*, std::size_t, int, void**) {
          return kLost;
        },
    .test = [](void*, int*) { return kLost; },
    .wait = [](void*) { return kLost; },
    .drop = [](void*) {},
    .finish = [] { return 0; },
    .text = [](int,
               char* buffer,
               std::size_t size) { std::snprintf(buffer, size, "the wire is cut"); }};

}  // namespace

extern "C" __attribute__((visibility("default"))) const FenestraMpiTable* fenestra_mpi_table() {
  return &kTable;
}
