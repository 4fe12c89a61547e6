// The engine, compiled for float and double: how every primitive runs, and what tapes ask of a
// value. Here, not in engine/, because the sums and constants in it are operators.
#include <fenestra/engine/tape.hpp>
#include <fenestra/ops/rules.hpp>

namespace fenestra {

FENESTRA_ENGINE_FOR(, float)
FENESTRA_ENGINE_FOR(, double)
template class Tape<float>;
template class Tape<double>;

}  // namespace fenestra
