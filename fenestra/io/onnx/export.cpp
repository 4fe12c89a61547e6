// Layers as nodes, kind by kind.
#include <fenestra/base/version.hpp>
#include <fenestra/io/onnx/encode.hpp>
#include <fenestra/io/onnx/export.hpp>
#include <fenestra/io/onnx/fields.hpp>
#include <fenestra/io/onnx/wire.hpp>
#include <fenestra/nn/layers/fields.hpp>
#include <fenestra/nn/layers/pool.hpp>

#include <cmath>
#include <map>
#include <numbers>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace fenestra::onnx {

namespace {

using nn::Description;

constexpr Index kOpset = 17;
constexpr Index kIrVersion = 8;

/// A value of the graph and its shape for one sample.
struct Flow {
  std::string value;
  Shape shape;

  int spatial_rank() const { return shape.rank() - 2; }
};

template <class V>
V field(const Description& layer, std::string_view name, V value) {
  if (const Description* const found = layer.find(name)) {
    nn::from_description(*found, value);
  }
  return value;
}

std::string joined(const std::string& name, std::string_view part) {
  return name.empty() ? std::string(part) : name + "." + std::string(part);
}

std::vector<Index> per_axis(const PerAxis& values, int rank) {
  std::vector<Index> result;
  for (int axis = 0; axis < rank; ++axis) {
    result.push_back(values[axis]);
  }
  return result;
}

class Exporter {
 public:
  Exporter(const io::TensorMap& tensors, const nn::Summary& summary)
      : tensors_(tensors),
        is_double_(!tensors.empty() &&
                   std::holds_alternative<Tensor<double>>(tensors.begin()->second)) {
    for (const nn::SummaryRow& row : summary.rows) {
      shapes_.insert_or_assign(row.name, row.output);
    }
  }

  std::string run(const Description& model,
                  const nn::Summary& summary,
                  const io::Metadata& metadata) {
    const Flow input{"input", summary.input};
    const Flow output = layer(model, "", input);
    append_bytes(nodes_,
                 fields::Graph::node,
                 NodeBytes("Identity", "output", {output.value}, {"output"}).bytes());
    std::string graph = nodes_;
    append_bytes(graph, fields::Graph::name, "fenestra");
    graph += initializers_;
    append_bytes(graph, fields::Graph::input, info("input", summary.input));
    append_bytes(graph, fields::Graph::output, info("output", summary.output));
    std::string out;
    append_number(out, fields::Model::ir_version, static_cast<std::uint64_t>(kIrVersion));
    append_bytes(out, fields::Model::producer, "fenestra");
    append_bytes(out, fields::Model::producer_version, version);
    append_bytes(out, fields::Model::graph, graph);
    append_bytes(out, fields::Model::opset, encode_opset("", kOpset));
    for (const auto& [key, value] : metadata) {
      append_bytes(out, fields::Model::metadata, encode_entry(key, value));
    }
    return out;
  }

 private:
  std::string info(std::string_view name, const Shape& shape) const {
    ValueInfo info{.name = std::string(name),
                   .type = is_double_ ? ElementType::float64 : ElementType::float32,
                   .is_tensor = true,
                   .dims = std::vector<Dimension>{{std::nullopt, "N"}}};
    for (int axis = 1; axis < shape.rank(); ++axis) {
      info.dims->push_back({shape[axis], {}});
    }
    return encode_value_info(info);
  }

  [[noreturn]] static void refuse(const std::string& name,
                                  const std::string& kind,
                                  const std::string& why,
                                  const std::string& fix) {
    throw Error(ErrorCode::unsupported,
                "onnx: layer " + (name.empty() ? kind : name + " (" + kind + ")") +
                    " cannot be written: " + why + "\n  fix: " + fix);
  }

  // --- Building blocks -------------------------------------------------------------------------

  std::string fresh(std::string name) {
    const std::string base = name;
    for (int i = 2; !names_.insert(name).second; ++i) {
      name = base + "_" + std::to_string(i);
    }
    return name;
  }

  /// A node of one output, with the attributes that `set` gives it.
  template <class Set>
  std::string node(std::string_view op,
                   const std::string& name,
                   const std::vector<std::string>& inputs,
                   const Set& set) {
    const std::string output = fresh((name.empty() ? "" : name + "/") + std::string(op));
    NodeBytes bytes(op, output, inputs, {output});
    set(bytes);
    append_bytes(nodes_, fields::Graph::node, bytes.bytes());
    return output;
  }
  std::string node(std::string_view op,
                   const std::string& name,
                   const std::vector<std::string>& inputs) {
    return node(op, name, inputs, [](NodeBytes&) {});
  }

  std::string initializer(const std::string& name, const io::AnyTensor& tensor) {
    const std::string own = fresh(name);
    append_bytes(
        initializers_, fields::Graph::initializer, encode_tensor(own, type_of(tensor), tensor));
    return own;
  }
  /// Numbers of the network's own type.
  std::string constant(const std::string& name, const Shape& shape, std::vector<double> values) {
    if (is_double_) {
      return initializer(name, Tensor<double>(shape, std::move(values)));
    }
    return initializer(name,
                       Tensor<float>(shape, std::vector<float>(values.begin(), values.end())));
  }
  std::string scalar(const std::string& name, double value) {
    return constant(name, Shape{}, {value});
  }
  std::string integers(const std::string& name, std::vector<Index> values) {
    const Shape shape{static_cast<Index>(values.size())};
    return initializer(name, Tensor<Index>(shape, std::move(values)));
  }
  /// A slot of the model under its own name; in another shape where one is given.
  std::string slot(const std::string& name, const std::optional<Shape>& shape = {}) {
    const io::AnyTensor& tensor = tensors_.find(name)->second;
    if (!shape) {
      return initializer(name, tensor);
    }
    return std::visit(
        [&]<class T>(const Tensor<T>& numbers) {
          return initializer(
              name,
              Tensor<T>(*shape, std::vector<T>(numbers.values().begin(), numbers.values().end())));
        },
        tensor);
  }
  bool has(const std::string& name) const { return tensors_.contains(name); }

  /// The shape that the summary found for the layer, or that of the input.
  Flow made(const std::string& name, const Flow& x, std::string value) const {
    const auto found = shapes_.find(name);
    return {std::move(value), found == shapes_.end() ? x.shape : found->second};
  }

  static void set_window(NodeBytes& node, const Description& layer, int rank, bool has_dilation) {
    const PerAxis kernel = field(layer, "kernel", PerAxis(1));
    PerAxis stride = field(layer, "stride", PerAxis());
    node.set("kernel_shape", per_axis(kernel, rank));
    node.set("strides",
             stride.is_given() ? per_axis(stride, rank) : default_strides(layer, kernel, rank));
    if (has_dilation) {
      node.set("dilations", per_axis(field(layer, "dilation", PerAxis(1)), rank));
    }
    const Padding padding = field(layer, "padding", Padding(0));
    if (padding.is_same) {
      node.set("auto_pad", std::string_view("SAME_UPPER"));
      return;
    }
    node.set("pads", pads_of(padding, rank));
  }
  static std::vector<Index> pads_of(const Padding& padding, int rank) {
    std::vector<Index> pads = per_axis(padding.low, rank);
    for (const Index high : per_axis(padding.high, rank)) {
      pads.push_back(high);
    }
    return pads;
  }
  /// Of a convolution 1, of a pool its kernel.
  static std::vector<Index> default_strides(const Description& layer,
                                            const PerAxis& kernel,
                                            int rank) {
    return layer.kind().ends_with("pool") ? per_axis(kernel, rank)
                                          : std::vector<Index>(static_cast<std::size_t>(rank), 1);
  }

  // --- Layers ----------------------------------------------------------------------------------

  Flow layer(const Description& d, const std::string& name, const Flow& x) {
    const std::string& kind = d.kind();
    if (kind == "sequential") {
      return sequence(d, name, x);
    }
    if (kind == "residual") {
      return residual(d, name, x);
    }
    if (kind == "branches") {
      return branches(d, name, x);
    }
    if (kind == "identity") {
      return x;
    }
    if (kind == "conv" || kind == "conv_transpose") {
      return made(name, x, convolution(d, name, x));
    }
    if (kind == "linear") {
      return made(name, x, linear(name, x));
    }
    if (kind.ends_with("_norm")) {
      return made(name, x, norm(d, name, x));
    }
    if (kind.ends_with("_pool")) {
      return made(name, x, pool(d, name, x));
    }
    if (kind == "flatten") {
      return made(name, x, flatten(name, x));
    }
    if (kind == "dropout") {
      return field(d, "channels", false)
                 ? x  // ONNX drops single elements only; in inference both do nothing
                 : made(name,
                        x,
                        node("Dropout",
                             name,
                             {x.value, initializer(joined(name, "drop"), ratio(d))}));
    }
    if (kind == "upsample") {
      return made(name, x, upsample(d, name, x));
    }
    if (kind == "channel_scale") {
      return made(name, x, node("Mul", name, {x.value, slot(joined(name, "weight"), channels(x))}));
    }
    if (kind == "squeeze_excite") {
      return made(name, x, squeeze_excite(d, name, x));
    }
    return made(name, x, activation(d, name, x));
  }

  static io::AnyTensor ratio(const Description& d) {
    return Tensor<float>(Shape{}, static_cast<float>(field(d, "drop", 0.5)));
  }
  /// (C, 1, ...): a number for each channel.
  static Shape channels(const Flow& x) {
    Shape shape{x.shape[1]};
    for (int axis = 0; axis < x.spatial_rank(); ++axis) {
      shape.push_back(1);
    }
    return shape;
  }

  Flow sequence(const Description& d, const std::string& name, Flow x) {
    const Description* const names = d.find("names");
    std::size_t i = 0;
    for (const Description& part : *d.find("layers")->list()) {
      const std::string own = names != nullptr ? *(*names->list())[i].word() : std::to_string(i);
      x = layer(part, joined(name, own), x);
      ++i;
    }
    return x;
  }

  Flow residual(const Description& d, const std::string& name, const Flow& x) {
    const Flow body = layer(*d.find("body"), joined(name, "body"), x);
    const Description* const projection = d.find("projection");
    const Flow around =
        projection != nullptr ? layer(*projection, joined(name, "projection"), x) : x;
    const Flow sum{node("Add", name, {body.value, around.value}), body.shape};
    const Description* const after = d.find("after");
    return after != nullptr ? layer(*after, joined(name, "after"), sum) : sum;
  }

  Flow branches(const Description& d, const std::string& name, const Flow& x) {
    std::vector<std::string> values;
    Shape shape;
    Index all_channels = 0;
    std::size_t i = 0;
    for (const Description& part : *d.find("layers")->list()) {
      const Flow y = layer(part, joined(name, std::to_string(i++)), x);
      values.push_back(y.value);
      shape = y.shape;
      all_channels += y.shape[1];
    }
    shape[1] = all_channels;
    return {node("Concat", name, values, [](NodeBytes& n) { n.set("axis", Index{1}); }), shape};
  }

  std::string convolution(const Description& d, const std::string& name, const Flow& x) {
    std::vector<std::string> inputs{x.value, slot(joined(name, "weight"))};
    if (has(joined(name, "bias"))) {
      inputs.push_back(slot(joined(name, "bias")));
    }
    const bool is_transposed = d.kind() == "conv_transpose";
    return node(is_transposed ? "ConvTranspose" : "Conv", name, inputs, [&](NodeBytes& n) {
      set_window(n, d, x.spatial_rank(), true);
      n.set("group", field(d, "groups", Index{1}));
      if (is_transposed) {
        n.set("output_padding", per_axis(field(d, "output_padding", PerAxis(0)), x.spatial_rank()));
      }
    });
  }

  std::string linear(const std::string& name, const Flow& x) {
    const std::string weight = slot(joined(name, "weight"));
    const bool has_bias = has(joined(name, "bias"));
    if (x.shape.rank() == 2) {
      std::vector<std::string> inputs{x.value, weight};
      if (has_bias) {
        inputs.push_back(slot(joined(name, "bias")));
      }
      return node("Gemm", name, inputs, [](NodeBytes& n) { n.set("transB", Index{1}); });
    }
    const std::string transposed = node("Transpose", name, {weight}, [](NodeBytes& n) {
      n.set("perm", std::vector<Index>{1, 0});
    });
    const std::string y = node("MatMul", name, {x.value, transposed});
    return has_bias ? node("Add", name, {y, slot(joined(name, "bias"))}) : y;
  }

  std::string flatten(const std::string& name, const Flow& x) {
    return node("Flatten", name, {x.value}, [](NodeBytes& n) { n.set("axis", Index{1}); });
  }

  /// The slot, or as many times `value` where the layer has none.
  std::string slot_or(const std::string& name, Index count, double value) {
    return has(name) ? slot(name)
                     : constant(name,
                                Shape{count},
                                std::vector<double>(static_cast<std::size_t>(count), value));
  }

  std::string norm(const Description& d, const std::string& name, const Flow& x) {
    const auto epsilon = static_cast<float>(field(d, "epsilon", 1e-5));
    const auto set_epsilon = [&](NodeBytes& n) { n.set("epsilon", epsilon); };
    const Index count = x.shape.rank() > 1 ? x.shape[1] : 1;
    const std::string weight = joined(name, "weight");
    const std::string bias = joined(name, "bias");
    if (d.kind() == "batch_norm") {
      return node("BatchNormalization",
                  name,
                  {x.value,
                   slot_or(weight, count, 1),
                   slot_or(bias, count, 0),
                   slot(joined(name, "running_mean")),
                   slot(joined(name, "running_var"))},
                  [&](NodeBytes& n) {
                    n.set("epsilon", epsilon);
                    n.set("momentum", static_cast<float>(1 - field(d, "momentum", 0.1)));
                  });
    }
    if (d.kind() == "instance_norm") {
      return node("InstanceNormalization",
                  name,
                  {x.value, slot_or(weight, count, 1), slot_or(bias, count, 0)},
                  set_epsilon);
    }
    if (d.kind() == "group_norm") {
      // Each group as a channel of its own: before opset 21 there is no usable operator.
      const Index groups = field(d, "groups", Index{1});
      const std::string grouped =
          node("Reshape", name, {x.value, integers(joined(name, "groups"), {0, groups, -1})});
      const auto size = static_cast<std::size_t>(groups);
      const std::string plain =
          node("InstanceNormalization",
               name,
               {grouped,
                constant(joined(name, "ones"), Shape{groups}, std::vector<double>(size, 1)),
                constant(joined(name, "zeros"), Shape{groups}, std::vector<double>(size, 0))},
               set_epsilon);
      std::string y = node("Reshape", name, {plain, node("Shape", name, {x.value})});
      if (has(weight)) {
        y = node("Mul", name, {y, slot(weight, channels(x))});
        y = node("Add", name, {y, slot(bias, channels(x))});
      }
      return y;
    }
    const bool over_channels = field(d, "channels", false);
    const Shape shape = field(d, "shape", Shape{});
    const auto size = static_cast<std::size_t>(shape.elements().value_or(1));
    std::vector<Index> there{0};
    std::vector<Index> back{0, x.shape.rank() - 1};
    for (int axis = 2; axis < x.shape.rank(); ++axis) {
      there.push_back(axis);
      back.push_back(axis - 1);
    }
    there.push_back(1);
    const std::string input =
        over_channels
            ? node("Transpose", name, {x.value}, [&](NodeBytes& n) { n.set("perm", there); })
            : x.value;
    const std::string gamma =
        has(weight) ? slot(weight) : constant(weight, shape, std::vector<double>(size, 1));
    std::vector<std::string> inputs{input, gamma};
    if (has(bias)) {
      inputs.push_back(slot(bias));
    }
    const std::string y = node("LayerNormalization", name, inputs, [&](NodeBytes& n) {
      n.set("axis", over_channels ? Index{-1} : Index{-shape.rank()});
      n.set("epsilon", epsilon);
    });
    return over_channels ? node("Transpose", name, {y}, [&](NodeBytes& n) { n.set("perm", back); })
                         : y;
  }

  std::string pool(const Description& d, const std::string& name, const Flow& x) {
    const std::string& kind = d.kind();
    const int rank = x.spatial_rank();
    if (kind == "global_avg_pool" || kind == "global_max_pool") {
      return node(
          kind == "global_avg_pool" ? "GlobalAveragePool" : "GlobalMaxPool", name, {x.value});
    }
    if (kind == "adaptive_avg_pool" || kind == "adaptive_max_pool") {
      return adaptive_pool(d, name, x);
    }
    const auto dilation = per_axis(field(d, "dilation", PerAxis(1)), rank);
    const bool is_dilated = dilation != std::vector<Index>(dilation.size(), 1);
    const bool ceil = field(d, "ceil_mode", false);
    if (kind == "max_pool") {
      if (field(d, "pad_cells", PadCells::ignore) == PadCells::zero &&
          !(field(d, "padding", Padding(0)) == Padding(0))) {
        refuse(name, kind, "padding cells of 0 in a maximum", "padding cells that are ignored");
      }
      return node("MaxPool", name, {x.value}, [&](NodeBytes& n) {
        set_window(n, d, rank, true);
        n.set("ceil_mode", Index{ceil});
      });
    }
    if (is_dilated) {
      refuse(name, kind, "dilation came with opset 19", "a pool without dilation");
    }
    if (kind == "avg_pool") {
      if (d.find("divisor_override") != nullptr) {
        refuse(name, kind, "a divisor of its own", "a pool that divides by its cells");
      }
      return node("AveragePool", name, {x.value}, [&](NodeBytes& n) {
        set_window(n, d, rank, false);
        n.set("ceil_mode", Index{ceil});
        n.set("count_include_pad",
              Index{field(d, "count_include_pad", AvgPoolOptions{}.count_include_pad)});
      });
    }
    if (kind == "lp_pool") {
      const double p = field(d, "p", LpPoolOptions{}.p);
      if (std::nearbyint(p) != p || ceil) {
        refuse(name, kind, "a broken exponent or ceil mode", "a whole exponent and floor mode");
      }
      return node("LpPool", name, {x.value}, [&](NodeBytes& n) {
        set_window(n, d, rank, false);
        n.set("p", static_cast<Index>(p));
      });
    }
    refuse(name, kind, "ONNX has no such operator", "max_pool");
  }

  /// A pool of equal windows, where the input's extents are multiples of the output's.
  std::string adaptive_pool(const Description& d, const std::string& name, const Flow& x) {
    const int rank = x.spatial_rank();
    const std::vector<Index> sizes = per_axis(field(d, "output_size", PerAxis(1)), rank);
    std::vector<Index> kernel;
    bool is_global = true;
    for (int axis = 0; axis < rank; ++axis) {
      const Index extent = x.shape[2 + axis];
      const Index size = sizes[static_cast<std::size_t>(axis)];
      is_global = is_global && size == 1;
      if (size < 1 || extent % size != 0) {
        refuse(name,
               d.kind(),
               std::to_string(extent) + " cells into " + std::to_string(size) +
                   " windows, which are not equal",
               "an output size that divides the input's");
      }
      kernel.push_back(extent / size);
    }
    const bool is_max = d.kind() == "adaptive_max_pool";
    if (is_global) {
      return node(is_max ? "GlobalMaxPool" : "GlobalAveragePool", name, {x.value});
    }
    return node(is_max ? "MaxPool" : "AveragePool", name, {x.value}, [&](NodeBytes& n) {
      n.set("kernel_shape", kernel);
      n.set("strides", kernel);
    });
  }

  std::string upsample(const Description& d, const std::string& name, const Flow& x) {
    const PerAxis factor = field(d, "factor", PerAxis(2));
    const bool is_linear = field(d, "bilinear", false);
    const bool aligned = field(d, "align_corners", false);
    std::vector<float> scales{1, 1};
    for (const Index scale : per_axis(factor, x.spatial_rank())) {
      scales.push_back(static_cast<float>(scale));
    }
    const Shape shape{static_cast<Index>(scales.size())};
    const std::string given =
        initializer(joined(name, "scales"), Tensor<float>(shape, std::move(scales)));
    return node("Resize", name, {x.value, "", given}, [&](NodeBytes& n) {
      n.set("mode", std::string_view(is_linear ? "linear" : "nearest"));
      n.set("coordinate_transformation_mode",
            std::string_view(!is_linear ? "asymmetric"
                             : aligned  ? "align_corners"
                                        : "half_pixel"));
      if (!is_linear) {
        n.set("nearest_mode", std::string_view("floor"));
      }
    });
  }

  std::string squeeze_excite(const Description& d, const std::string& name, const Flow& x) {
    const Flow means{flatten(name, {node("GlobalAveragePool", name, {x.value}), x.shape}),
                     Shape{1, x.shape[1]}};
    const std::string squeezed = node("Relu", name, {linear(joined(name, "squeeze"), means)});
    const std::string excited = linear(joined(name, "excite"), {squeezed, Shape{1, 1}});
    const std::string gate =
        field(d, "hard", true) ? hard_sigmoid(name, excited) : node("Sigmoid", name, {excited});
    std::vector<Index> axes;
    for (int axis = 2; axis < x.shape.rank(); ++axis) {
      axes.push_back(axis);
    }
    const std::string wide =
        node("Unsqueeze", name, {gate, integers(joined(name, "axes"), std::move(axes))});
    return node("Mul", name, {x.value, wide});
  }

  std::string hard_sigmoid(const std::string& name, const std::string& x) {
    return node("HardSigmoid", name, {x}, [](NodeBytes& n) {
      n.set("alpha", 1.0F / 6);
      n.set("beta", 0.5F);
    });
  }

  std::string activation(const Description& d, const std::string& name, const Flow& x) {
    const std::string& kind = d.kind();
    const auto plain = [&](std::string_view op) { return node(op, name, {x.value}); };
    const auto sloped = [&](std::string_view op, double fallback) {
      return node(op, name, {x.value}, [&](NodeBytes& n) {
        n.set("alpha", static_cast<float>(field(d, "slope", fallback)));
      });
    };
    if (kind == "relu") {
      return plain("Relu");
    }
    if (kind == "relu6") {
      const std::string least = scalar(joined(name, "min"), 0);
      return node("Clip", name, {x.value, least, scalar(joined(name, "max"), 6)});
    }
    if (kind == "leaky_relu") {
      return sloped("LeakyRelu", 0.01);
    }
    if (kind == "elu") {
      return sloped("Elu", 1);
    }
    if (kind == "sigmoid") {
      return plain("Sigmoid");
    }
    if (kind == "hard_sigmoid") {
      return hard_sigmoid(name, x.value);
    }
    if (kind == "tanh") {
      return plain("Tanh");
    }
    if (kind == "silu") {
      return node("Mul", name, {x.value, plain("Sigmoid")});
    }
    if (kind == "hard_swish") {
      return plain("HardSwish");
    }
    if (kind == "softplus") {
      return plain("Softplus");
    }
    if (kind == "mish") {
      return node("Mul", name, {x.value, node("Tanh", name, {plain("Softplus")})});
    }
    if (kind == "gelu") {
      const std::string root = scalar(joined(name, "root"), std::numbers::sqrt2);
      const std::string erf = node("Erf", name, {node("Div", name, {x.value, root})});
      const std::string one = node("Add", name, {erf, scalar(joined(name, "one"), 1)});
      const std::string twice = node("Mul", name, {x.value, one});
      return node("Mul", name, {twice, scalar(joined(name, "half"), 0.5)});
    }
    refuse(name, kind, "this writer does not know it", "layers of fenestra/nn/layers");
  }

  const io::TensorMap& tensors_;
  bool is_double_;
  std::map<std::string, Shape, std::less<>> shapes_;
  std::set<std::string, std::less<>> names_{"input", "output"};
  std::string nodes_;
  std::string initializers_;
};

}  // namespace

std::string detail::exported(const nn::Description& description,
                             const io::TensorMap& tensors,
                             const nn::Summary& summary,
                             const io::Metadata& metadata) {
  return Exporter(tensors, summary).run(description, summary, metadata);
}

}  // namespace fenestra::onnx
