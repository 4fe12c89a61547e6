// The plugin: MPI behind the table of mpi_table.hpp. MPI moves bytes from rank to rank and computes
// nothing.
#include <fenestra/ranks/mpi_table.hpp>

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <new>
#include <vector>

namespace {

// Counts are of type int: longer messages go in pieces.
constexpr std::size_t kLargest = std::size_t{1} << 30;

MPI_Comm world = MPI_COMM_NULL;

int start() {
  int is_started = 0;
  int code = MPI_Initialized(&is_started);
  if (code == MPI_SUCCESS && is_started == 0) {
    int level = 0;
    code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
  }
  if (code == MPI_SUCCESS && world == MPI_COMM_NULL) {
    // Messages of our own, and failures as codes.
    code = MPI_Comm_dup(MPI_COMM_WORLD, &world);
    if (code == MPI_SUCCESS) {
      code = MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    }
  }
  return code;
}

int rank(int* result) { return MPI_Comm_rank(world, result); }
int size(int* result) { return MPI_Comm_size(world, result); }

template <class Start>
int for_each_piece(const FenestraMessage& message, const Start& begin) {
  std::size_t done = 0;
  do {
    const std::size_t count = std::min(kLargest, message.size - done);
    const int code = begin(static_cast<char*>(message.bytes) + done, static_cast<int>(count));
    if (code != MPI_SUCCESS) {
      return code;
    }
    done += count;
  } while (done < message.size);
  return MPI_SUCCESS;
}

struct Exchange {
  std::vector<MPI_Request> receives;
  std::vector<MPI_Request> sends;
};

int begin(const FenestraMessage* sends,
          std::size_t send_count,
          const FenestraMessage* receives,
          std::size_t receive_count,
          int channel,
          void** result) try {
  auto* const exchange = new Exchange;
  *result = exchange;
  int code = MPI_SUCCESS;
  for (std::size_t i = 0; i < receive_count && code == MPI_SUCCESS; ++i) {
    code = for_each_piece(receives[i], [&](char* bytes, int count) {
      MPI_Request& request = exchange->receives.emplace_back(MPI_REQUEST_NULL);
      return MPI_Irecv(bytes, count, MPI_BYTE, receives[i].rank, channel, world, &request);
    });
  }
  for (std::size_t i = 0; i < send_count && code == MPI_SUCCESS; ++i) {
    code = for_each_piece(sends[i], [&](char* bytes, int count) {
      MPI_Request& request = exchange->sends.emplace_back(MPI_REQUEST_NULL);
      return MPI_Isend(bytes, count, MPI_BYTE, sends[i].rank, channel, world, &request);
    });
  }
  return code;
} catch (const std::bad_alloc&) {
  return MPI_ERR_NO_MEM;
}

int test(void* given, int* is_done) {
  auto& exchange = *static_cast<Exchange*>(given);
  *is_done = 0;
  for (std::vector<MPI_Request>* requests : {&exchange.receives, &exchange.sends}) {
    int all = 0;
    const int code = MPI_Testall(
        static_cast<int>(requests->size()), requests->data(), &all, MPI_STATUSES_IGNORE);
    if (code != MPI_SUCCESS || all == 0) {
      return code;
    }
  }
  *is_done = 1;
  return MPI_SUCCESS;
}

int wait(void* given) {
  auto& exchange = *static_cast<Exchange*>(given);
  for (std::vector<MPI_Request>* requests : {&exchange.receives, &exchange.sends}) {
    const int code =
        MPI_Waitall(static_cast<int>(requests->size()), requests->data(), MPI_STATUSES_IGNORE);
    if (code != MPI_SUCCESS) {
      return code;
    }
  }
  return MPI_SUCCESS;
}

void drop(void* given) {
  auto* const exchange = static_cast<Exchange*>(given);
  // Done ones are null. Others are left by a rank that fails: what it still waits for must not be
  // written into memory that is gone.
  for (MPI_Request& request : exchange->receives) {
    if (request != MPI_REQUEST_NULL) {
      MPI_Cancel(&request);
      MPI_Request_free(&request);
    }
  }
  for (MPI_Request& request : exchange->sends) {
    if (request != MPI_REQUEST_NULL) {
      MPI_Request_free(&request);
    }
  }
  delete exchange;
}

int finish() {
  int is_finished = 0;
  const int code = MPI_Finalized(&is_finished);
  return code != MPI_SUCCESS || is_finished != 0 ? code : MPI_Finalize();
}

void text(int code, char* buffer, std::size_t buffer_size) {
  char message[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  if (MPI_Error_string(code, message, &length) != MPI_SUCCESS) {
    std::snprintf(message, sizeof message, "which MPI cannot explain (%d)", code);
  }
  std::snprintf(buffer, buffer_size, "%s", message);
}

constexpr FenestraMpiTable kTable = {
    kFenestraMpiVersion, start, rank, size, begin, test, wait, drop, finish, text};

}  // namespace

extern "C" __attribute__((visibility("default"))) const FenestraMpiTable* fenestra_mpi_table() {
  return &kTable;
}
