// Layers of every kind that is exported, with samples for them: what the test of exports and the
// comparison with ONNX Runtime go through. Not installed.
#pragma once

#include <fenestra/tensor/shape.hpp>

#include <string_view>

namespace fenestra::onnx {

struct ExportedLayer {
  std::string_view description;
  Shape sample;  ///< (channels, spatial...)
};

inline constexpr ExportedLayer kExportedLayers[] = {
    {R"({"layer":"conv","in":4,"out":6,"kernel":3,"padding":1,"stride":2,"groups":2})", {4, 8, 6}},
    {R"({"layer":"conv","in":4,"out":2,"kernel":[3,2],"padding":"same","bias":false})", {4, 8, 6}},
    {R"({"layer":"conv","in":4,"out":2,"kernel":3,"padding":[[1,0],[0,2]],"dilation":2})",
     {4, 8, 6}},
    {R"({"layer":"conv_transpose","in":4,"out":3,"kernel":3,"stride":2,"padding":1})", {4, 8, 6}},
    {R"({"layer":"conv_transpose","in":4,"out":2,"kernel":3,"stride":2,"output_padding":1})",
     {4, 8, 6}},
    {R"({"layer":"linear","in":6,"out":5})", {4, 8, 6}},
    {R"({"layer":"batch_norm","channels":4,"epsilon":0.001})", {4, 8, 6}},
    {R"({"layer":"batch_norm","channels":4,"affine":false})", {4, 8, 6}},
    {R"({"layer":"group_norm","groups":2,"channels":4})", {4, 8, 6}},
    {R"({"layer":"group_norm","groups":4,"channels":4,"affine":false})", {4, 8, 6}},
    {R"({"layer":"instance_norm","channels":4})", {4, 8, 6}},
    {R"({"layer":"layer_norm","shape":[8,6]})", {4, 8, 6}},
    {R"({"layer":"layer_norm","shape":[4],"channels":true})", {4, 8, 6}},
    {R"({"layer":"max_pool","kernel":3,"stride":2,"padding":1})", {4, 8, 6}},
    {R"({"layer":"max_pool","kernel":[2,3],"ceil_mode":true})", {4, 8, 6}},
    {R"({"layer":"avg_pool","kernel":2})", {4, 8, 6}},
    {R"({"layer":"avg_pool","kernel":3,"stride":2,"padding":1,"count_include_pad":false})",
     {4, 8, 6}},
    {R"({"layer":"lp_pool","kernel":2})", {4, 8, 6}},
    {R"({"layer":"adaptive_avg_pool","output_size":[4,3]})", {4, 8, 6}},
    {R"({"layer":"adaptive_max_pool","output_size":1})", {4, 8, 6}},
    {R"({"layer":"global_avg_pool"})", {4, 8, 6}},
    {R"({"layer":"global_max_pool"})", {4, 8, 6}},
    {R"({"layer":"identity"})", {4, 8, 6}},
    {R"({"layer":"flatten"})", {4, 8, 6}},
    {R"({"layer":"dropout","drop":0.3})", {4, 8, 6}},
    {R"({"layer":"dropout","drop":0.3,"channels":true})", {4, 8, 6}},
    {R"({"layer":"upsample","factor":2})", {4, 8, 6}},
    {R"({"layer":"upsample","factor":[2,3],"bilinear":true})", {4, 8, 6}},
    {R"({"layer":"upsample","factor":2,"bilinear":true,"align_corners":true})", {4, 8, 6}},
    {R"({"layer":"channel_scale","channels":4,"begin":1})", {4, 8, 6}},
    {R"({"layer":"squeeze_excite","channels":4,"squeezed":2})", {4, 8, 6}},
    {R"({"layer":"squeeze_excite","channels":4,"squeezed":2,"hard":false})", {4, 8, 6}},
    {R"({"layer":"relu"})", {4, 8, 6}},
    {R"({"layer":"relu6"})", {4, 8, 6}},
    {R"({"layer":"leaky_relu","slope":0.2})", {4, 8, 6}},
    {R"({"layer":"elu","slope":0.5})", {4, 8, 6}},
    {R"({"layer":"sigmoid"})", {4, 8, 6}},
    {R"({"layer":"hard_sigmoid"})", {4, 8, 6}},
    {R"({"layer":"tanh"})", {4, 8, 6}},
    {R"({"layer":"silu"})", {4, 8, 6}},
    {R"({"layer":"hard_swish"})", {4, 8, 6}},
    {R"({"layer":"gelu"})", {4, 8, 6}},
    {R"({"layer":"mish"})", {4, 8, 6}},
    {R"({"layer":"softplus"})", {4, 8, 6}},
    {R"({"layer":"sequential","layers":[
            {"layer":"conv","in":1,"out":4,"kernel":3,"padding":1},
            {"layer":"residual",
             "body":{"layer":"sequential","names":["conv","norm"],
                     "layers":[{"layer":"conv","in":4,"out":8,"kernel":3,"padding":1},
                               {"layer":"batch_norm","channels":8}]},
             "projection":{"layer":"conv","in":4,"out":8},
             "after":{"layer":"relu"}},
            {"layer":"branches","layers":[{"layer":"identity"},
                                          {"layer":"conv","in":8,"out":3,"kernel":3,"padding":1}]},
            {"layer":"global_avg_pool"},{"layer":"flatten"},
            {"layer":"linear","in":11,"out":5}]})",
     {1, 9, 9}},
    {R"({"layer":"conv","in":2,"out":3,"kernel":[3],"padding":1})", {2, 11}},
};

}  // namespace fenestra::onnx
