// Times and sizes as people write them. `bytes_text` of base/text.hpp is the opposite of
// `parse_bytes`.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fenestra::cli {

/// "120 us", "35 ms", "2.3 s", "1:05", "2:03:45" (hours); "-" for what is no time.
std::string time_text(double seconds);

/// "300", "10MB", "1.5 GiB", "64k": kB, MB, GB, TB are powers of 1000, KiB, MiB, GiB, TiB of 1024;
/// case does not matter. Throws `UsageError`, which says what is wrong with it.
std::size_t parse_bytes(std::string_view text);

}  // namespace fenestra::cli
