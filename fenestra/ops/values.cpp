// The engine, compiled for float and double: how every primitive runs, and what tapes ask of a
// value. Here, not in engine/, because the sums and constants in it are operators.
#include <fenestra/engine/custom_primitive.hpp>
#include <fenestra/engine/tape_rules.hpp>
#include <fenestra/ops/rules.hpp>

namespace fenestra {

FENESTRA_ENGINE_FOR(, float)
FENESTRA_ENGINE_FOR(, double)
FENESTRA_TAPE_FOR(, float)
FENESTRA_TAPE_FOR(, double)
template Value<float> detail::apply_custom(std::shared_ptr<const CustomRule<float>>,
                                           const std::vector<Value<float>>&);
template Value<double> detail::apply_custom(std::shared_ptr<const CustomRule<double>>,
                                            const std::vector<Value<double>>&);

}  // namespace fenestra
