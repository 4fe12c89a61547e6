// How good the choice among kernel candidates is: the time of the chosen one beside that of the
// best, on layers of known networks and on random problems.
#pragma once

#include <fenestra/bench/record.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace fenestra::bench {

struct ChoiceEffort {
  double seconds = 60;     ///< for each instruction set
  double budget = 0.002;   ///< for one candidate in one turn
  std::uint64_t seed = 1;  ///< of the random problems
};

/// Layers of networks in both layouts and random problems, by turns, until the time is up; on one
/// thread, on AVX-512 and AVX2 where the machine has them. A case is a direction and type of a
/// problem that more than one candidate accepts, the specification not counted: where one alone
/// does there is nothing to choose.
std::vector<Choice> measure_choices(const ChoiceEffort& effort);

/// The law on bits for so many seconds.
BitsLaw check_bits(double seconds, std::uint64_t seed);

}  // namespace fenestra::bench
