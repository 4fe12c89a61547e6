// What convolutions take in of their readers, and the rules of what comes out; see fused.hpp.
#include <fenestra/ops/compile_rules.hpp>
#include <fenestra/ops/conv/fused.hpp>

namespace fenestra {

FENESTRA_COMPILE_RULES(FusedConvPrimitive)

namespace {

/// The struct behind a primitive, null where it is another one.
template <class P, class T>
const P* struct_of(const Primitive<T>& primitive) {
  const auto* alike = dynamic_cast<const PrimitiveOf<P, T>*>(&primitive);
  return alike != nullptr ? &alike->primitive() : nullptr;
}

template <class T>
std::shared_ptr<const Primitive<T>> fuse(FusedConvPrimitive fused,
                                         const Primitive<T>& reader,
                                         std::size_t input) {
  if (fused.epilogue.activation) {
    return nullptr;
  }
  if (const auto* unary = struct_of<UnaryPrimitive>(reader)) {
    fused.epilogue.activation = unary->call;
  } else if (const auto* binary = struct_of<BinaryPrimitive>(reader);
             binary != nullptr && binary->f == BinaryFunction::add && binary->a == binary->shape &&
             binary->b == binary->shape && !fused.epilogue.has_sum()) {
    fused.epilogue.sum =
        input == 0 ? ConvEpilogue::Sum::result_first : ConvEpilogue::Sum::residual_first;
  } else {
    return nullptr;
  }
  fused.title += "+" + std::string(reader.name());
  const Primitive<T>* const made = new PrimitiveOf<FusedConvPrimitive, T>(fused);
  return std::shared_ptr<const Primitive<T>>(made);
}

}  // namespace

template <KernelScalar T>
std::shared_ptr<const Primitive<T>> FusedConvPrimitive::with_epilogue(const Primitive<T>& reader,
                                                                      std::size_t input) const {
  return fuse(*this, reader, input);
}

template <KernelScalar T>
std::shared_ptr<const Primitive<T>> ConvPrimitive::with_epilogue(const Primitive<T>& reader,
                                                                 std::size_t input) const {
  // Other directions store cells out of order, where nothing is complete before all is.
  if (direction != ConvDirection::forward) {
    return nullptr;
  }
  return fuse(FusedConvPrimitive{{}, g, has_bias, {}, std::string(display_name())}, reader, input);
}

template std::shared_ptr<const Primitive<float>> ConvPrimitive::with_epilogue(
    const Primitive<float>&, std::size_t) const;
template std::shared_ptr<const Primitive<double>> ConvPrimitive::with_epilogue(
    const Primitive<double>&, std::size_t) const;
template std::shared_ptr<const Primitive<float>> FusedConvPrimitive::with_epilogue(
    const Primitive<float>&, std::size_t) const;
template std::shared_ptr<const Primitive<double>> FusedConvPrimitive::with_epilogue(
    const Primitive<double>&, std::size_t) const;

}  // namespace fenestra
