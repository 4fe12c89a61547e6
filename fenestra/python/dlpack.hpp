// The exchange structures of DLPack, version 0: the few that a tensor in main memory needs. Layout
// fixed by the standard, names ours.
#pragma once

#include <cstdint>

namespace fenestra::python {

struct DlDevice {
  std::int32_t type;  ///< 1: main memory
  std::int32_t id;
};
struct DlType {
  std::uint8_t code;  ///< 2: IEEE floating point
  std::uint8_t bits;
  std::uint16_t lanes;
};
struct DlTensor {
  void* data;
  DlDevice device;
  std::int32_t rank;
  DlType type;
  std::int64_t* shape;
  std::int64_t* strides;  ///< in elements; null: dense
  std::uint64_t byte_offset;
};
struct DlManagedTensor {
  DlTensor tensor;
  void* context;
  void (*deleter)(DlManagedTensor*);
};

inline constexpr std::int32_t kDlMainMemory = 1;
inline constexpr std::uint8_t kDlFloat = 2;

}  // namespace fenestra::python
