// SPDX-License-Identifier: Apache-2.0
// convolution, its two gradients and convolution_transpose: a primitive each, or a sum over overlapping windows of a
// padded tensor.
#include <algorithm>
#include <array>

#include "core/ops/rules.hpp"
#include "core/ops/steps.hpp"
#include "core/text/printable.hpp"

namespace compute {

namespace {

constexpr int64_t kGreatest = int64_t{1} << 31;  // of strides, dilations and pads, exclusive
constexpr int32_t kMostSpatial = 3;

using Extents = std::vector<int64_t>;

// A convolution of `input` [n, c_in, input…] and weight [c_out, c_in / groups, kernel…] to [n, c_out, output…].
struct Convolution {
  int64_t n = 0, c_in = 0, c_out = 0, groups = 1;
  Extents input, kernel, output, strides, dilations, begin, end;
  compute_dtype dtype = COMPUTE_DTYPE_NONE;

  size_t spatial() const { return kernel.size(); }
  Extents input_shape() const { return joined({n, c_in}, input); }
  Extents weight_shape() const { return joined({c_out, c_in / groups}, kernel); }
  Extents output_shape() const { return joined({n, c_out}, output); }

  static Extents joined(Extents first, const Extents& rest) {
    first.insert(first.end(), rest.begin(), rest.end());
    return first;
  }
};

// ---- Attributes -----------------------------------------------------------------------------------------------------

// One value per spatial axis, each in [least, 2^31); all `otherwise` where none is given.
Extents list_of(const OpCall& call, std::string_view name, size_t spatial, int64_t otherwise, int64_t least) {
  const int32_t index = attribute_index(call, name);
  Extents list(spatial, otherwise);
  if (!call.attributes.has(index)) return list;
  const std::span<const int64_t> given = call.attributes.int64_list(index);
  if (given.empty() && otherwise >= least) return list;
  if (given.size() != spatial) {
    refuse_attribute(call, name,
                     std::string(name) + " has " + std::to_string(given.size()) + " values; expected " +
                         std::to_string(spatial) + ", one per spatial axis");
  }
  for (const int64_t value : given) {
    if (value >= least && value < kGreatest) continue;
    refuse_attribute(call, name,
                     std::string(name) + " holds " + std::to_string(value) + "; expected at least " +
                         std::to_string(least) + " and less than 2^31");
  }
  list.assign(given.begin(), given.end());
  return list;
}

// The extent that a kernel covers.
int64_t reach(const Convolution& c, size_t axis) { return (c.kernel[axis] - 1) * c.dilations[axis] + 1; }

// The attributes common to all four ops. The kernel's extents are known, and the input's if `pads_input`.
void read_geometry(const OpCall& call, Convolution& c) {
  c.groups = call.attributes.int64(attribute_index(call, "groups"));
  if (c.groups < 1) refuse_attribute(call, "groups", "groups is " + std::to_string(c.groups) + "; it must be positive");
  for (const int64_t extent : c.kernel) {
    if (extent < 1 || extent >= kGreatest)
      refuse(call, "the kernel has shape " + shape_text(c.kernel) + "; its extents must be positive");
  }
  c.strides = list_of(call, "strides", c.spatial(), 1, 1);
  c.dilations = list_of(call, "dilations", c.spatial(), 1, 1);
  c.begin = list_of(call, "pads_begin", c.spatial(), 0, 0);
  c.end = list_of(call, "pads_end", c.spatial(), 0, 0);
}

enum class Padding { kExplicit, kSame, kValid };

Padding read_padding(const OpCall& call) {
  const std::string_view padding = call.attributes.string(attribute_index(call, "padding"));
  if (padding == "explicit") return Padding::kExplicit;
  if (padding != "same" && padding != "valid")
    refuse_attribute(call, "padding", "padding is " + in_quotes(padding) + ", not one of explicit, same, valid");
  for (const char* pads : {"pads_begin", "pads_end"}) {
    if (call.attributes.has(attribute_index(call, pads)) &&
        !call.attributes.int64_list(attribute_index(call, pads)).empty())
      refuse_attribute(call, pads, std::string(pads) + " is given with padding " + in_quotes(padding));
  }
  return padding == "same" ? Padding::kSame : Padding::kValid;
}

// The pads and the output's extents, from the input's and the kernel's extents.
void complete_forward(const OpCall& call, Convolution& c) {
  const Padding padding = read_padding(call);
  for (size_t i = 0; i < c.spatial(); ++i) {
    if (padding == Padding::kSame) {
      const int64_t extent = (c.input[i] + c.strides[i] - 1) / c.strides[i];
      const int64_t total = std::max<int64_t>((extent - 1) * c.strides[i] + reach(c, i) - c.input[i], 0);
      c.begin[i] = extent == 0 ? 0 : total / 2;
      c.end[i] = extent == 0 ? 0 : total - total / 2;
      c.output.push_back(extent);
      continue;
    }
    const int64_t padded = c.input[i] + c.begin[i] + c.end[i];
    if (padded < reach(c, i)) {
      refuse(call, "the kernel covers " + std::to_string(reach(c, i)) + " elements along spatial axis " +
                       std::to_string(i) + ", but the padded input has " + std::to_string(padded));
    }
    c.output.push_back((padded - reach(c, i)) / c.strides[i] + 1);
  }
}

// ---- Operands -------------------------------------------------------------------------------------------------------

Extents spatial_of(const OperandDesc& x) { return {x.shape + 2, x.shape + x.rank}; }

// Checks dtypes and ranks of the two factors.
void read_factors(const OpCall& call, Convolution& c) {
  c.dtype = promote_inputs(call, DtypeClass::kNumeric);
  for (int32_t i = 0; i < 2; ++i) {
    const OperandDesc& x = call.inputs[static_cast<size_t>(i)];
    if (x.rank < 3 || x.rank > 2 + kMostSpatial) {
      refuse(call,
             call.schema.input_name(i) + " has rank " + std::to_string(x.rank) +
                 "; expected 3, 4 or 5: two axes for batch and channels, then 1 to 3 spatial axes",
             i);
    }
  }
  if (call.inputs[0].rank != call.inputs[1].rank) {
    refuse(call,
           call.schema.input_name(0) + " of shape " + shape_text(call.inputs[0].extents()) + " and " +
               call.schema.input_name(1) + " of shape " + shape_text(call.inputs[1].extents()) + " differ in rank",
           1);
  }
}

void check_groups(const OpCall& call, const Convolution& c) {
  if (c.c_in % c.groups == 0 && c.c_out % c.groups == 0) return;
  refuse_attribute(call, "groups",
                   std::to_string(c.c_in) + " input channels and " + std::to_string(c.c_out) +
                       " output channels cannot be divided into " + std::to_string(c.groups) + " groups");
}

// Refuses an operand whose shape does not fit the others'.
void check_shape(const OpCall& call, int32_t index, const Extents& expected) {
  const std::span<const int64_t> given = call.inputs[static_cast<size_t>(index)].extents();
  if (std::equal(given.begin(), given.end(), expected.begin(), expected.end())) return;
  refuse(call, call.schema.input_name(index) + " has shape " + shape_text(given) + "; expected " + shape_text(expected),
         index);
}

void check_bias(const OpCall& call, int64_t channels) {
  if (call.inputs.size() > 2 && call.inputs[2].dtype != COMPUTE_DTYPE_NONE) check_shape(call, 2, {channels});
}

Convolution read_convolution(const OpCall& call) {
  Convolution c;
  read_factors(call, c);
  const OperandDesc &x = call.inputs[0], &weight = call.inputs[1];
  c.n = x.shape[0];
  c.c_in = x.shape[1];
  c.c_out = weight.shape[0];
  c.input = spatial_of(x);
  c.kernel = spatial_of(weight);
  read_geometry(call, c);
  check_groups(call, c);
  check_shape(call, 1, c.weight_shape());
  complete_forward(call, c);
  check_bias(call, c.c_out);
  return c;
}

// As the convolution whose gradient it is: x is the gradient of its output.
Convolution read_transpose(const OpCall& call) {
  Convolution c;
  read_factors(call, c);
  const OperandDesc &x = call.inputs[0], &weight = call.inputs[1];
  c.n = x.shape[0];
  c.c_out = x.shape[1];
  c.output = spatial_of(x);
  c.kernel = spatial_of(weight);
  read_geometry(call, c);
  c.c_in = weight.shape[1] * c.groups;
  check_groups(call, c);
  check_shape(call, 1, c.weight_shape());
  const Extents more = list_of(call, "output_padding", c.spatial(), 0, 0);
  const bool same = read_padding(call) == Padding::kSame;
  for (size_t i = 0; i < c.spatial(); ++i) {
    if (more[i] >= std::max(c.strides[i], c.dilations[i])) {
      refuse_attribute(call, "output_padding",
                       "output_padding " + std::to_string(more[i]) + " of spatial axis " + std::to_string(i) +
                           " must be less than its stride or its dilation");
    }
    const int64_t whole = (c.output[i] - 1) * c.strides[i] + reach(c, i) + more[i];
    if (same) {
      const int64_t total = std::max<int64_t>(whole - c.output[i] * c.strides[i], 0);
      c.begin[i] = total / 2;
      c.end[i] = total - total / 2;
    }
    const int64_t extent = same ? c.output[i] * c.strides[i] : whole - c.begin[i] - c.end[i];
    if (extent < 0 || c.output[i] == 0) {
      refuse(call, "x has shape " + shape_text(x.extents()) + "; nothing is left along spatial axis " +
                       std::to_string(i) + " after padding");
    }
    c.input.push_back(extent);
  }
  check_bias(call, c.c_in);
  return c;
}

Convolution read_grad_input(const OpCall& call) {
  Convolution c;
  read_factors(call, c);
  const OperandDesc &dy = call.inputs[0], &weight = call.inputs[1];
  c.n = dy.shape[0];
  c.c_out = dy.shape[1];
  c.kernel = spatial_of(weight);
  read_geometry(call, c);
  c.c_in = weight.shape[1] * c.groups;
  c.input = list_of(call, "shape", c.spatial(), -1, 0);
  check_groups(call, c);
  check_shape(call, 1, c.weight_shape());
  complete_forward(call, c);
  check_shape(call, 0, c.output_shape());
  return c;
}

Convolution read_grad_weight(const OpCall& call) {
  Convolution c;
  read_factors(call, c);
  const OperandDesc &dy = call.inputs[0], &x = call.inputs[1];
  c.n = x.shape[0];
  c.c_in = x.shape[1];
  c.c_out = dy.shape[1];
  c.input = spatial_of(x);
  c.kernel = Extents(c.input.size(), 1);
  c.kernel = list_of(call, "kernel", c.spatial(), 0, 1);
  read_geometry(call, c);
  check_groups(call, c);
  complete_forward(call, c);
  check_shape(call, 0, c.output_shape());
  return c;
}

std::vector<OutputDesc> infer_convolution(const OpCall& call) {
  const Convolution c = read_convolution(call);
  return {{c.dtype, c.output_shape()}};
}
std::vector<OutputDesc> infer_transpose(const OpCall& call) {
  const Convolution c = read_transpose(call);
  return {{c.dtype, c.input_shape()}};
}
std::vector<OutputDesc> infer_grad_input(const OpCall& call) {
  const Convolution c = read_grad_input(call);
  return {{c.dtype, c.input_shape()}};
}
std::vector<OutputDesc> infer_grad_weight(const OpCall& call) {
  const Convolution c = read_grad_weight(call);
  return {{c.dtype, c.weight_shape()}};
}

// ---- Views ----------------------------------------------------------------------------------------------------------

// Axes in the order in which a view is built.
class View {
 public:
  explicit View(const StepOperand& of) : view_(of) {
    view_.shape.clear();
    view_.strides.clear();
  }
  View& axis(int64_t extent, int64_t stride) {
    view_.shape.push_back(extent);
    view_.strides.push_back(stride);
    return *this;
  }
  View& repeated(int64_t extent) { return axis(extent, 0); }
  View& repeated(const Extents& extents) {
    for (const int64_t extent : extents) axis(extent, 0);
    return *this;
  }
  StepOperand take() const { return view_; }
  void move(int64_t elements) { view_.offset += elements; }

 private:
  StepOperand view_;
};

bool all_zero(const Extents& list) {
  return std::ranges::all_of(list, [](int64_t x) { return x == 0; });
}

// x with zeros around it.
StepOperand padded(Steps& steps, const StepOperand& x, const Convolution& c) {
  if (all_zero(c.begin) && all_zero(c.end)) return x;
  Extents shape = x.shape;
  for (size_t i = 0; i < c.spatial(); ++i) shape[2 + i] += c.begin[i] + c.end[i];
  const StepOperand whole = steps.temporary(x.dtype, shape);
  steps.fill(whole, {});
  StepOperand inside = whole;
  for (size_t i = 0; i < c.spatial(); ++i)
    inside = narrowed(std::move(inside), static_cast<int32_t>(2 + i), c.begin[i], c.input[i]);
  if (has_elements(x.shape)) steps.copy(x, inside);
  return whole;
}

// The output's gradient on the grid of the input, with the zeros between and around its elements over which a kernel
// slides: element 0 meets the last element of the kernel at element 0 of the input.
StepOperand spread(Steps& steps, const StepOperand& dy, const Convolution& c) {
  Extents shape = dy.shape;
  StepOperand src = dy;
  View to(dy);
  bool same = true, any = true;
  std::vector<std::array<int64_t, 2>> ranges;
  for (size_t i = 0; i < c.spatial(); ++i) {
    const int64_t extent = c.input[i] + reach(c, i) - 1, before = reach(c, i) - 1 - c.begin[i];
    const int64_t first = before >= 0 ? 0 : (-before + c.strides[i] - 1) / c.strides[i];
    const int64_t count =
        std::min(c.output[i], (extent - 1 - before) < 0 ? 0 : (extent - 1 - before) / c.strides[i] + 1) - first;
    any = any && count > 0;
    same = same && before == 0 && extent == c.output[i] && c.strides[i] == 1;
    ranges.push_back({first, before + first * c.strides[i]});
    shape[2 + i] = extent;
    src.shape[2 + i] = count;
    src.offset += first * dy.strides[2 + i];
  }
  if (same) return dy;
  const StepOperand whole = steps.temporary(dy.dtype, shape);
  steps.fill(whole, {});
  if (!any) return whole;
  StepOperand inside = whole;
  for (size_t i = 0; i < c.spatial(); ++i) {
    inside.offset += ranges[i][1] * whole.strides[2 + i];
    inside.shape[2 + i] = src.shape[2 + i];
    inside.strides[2 + i] = whole.strides[2 + i] * c.strides[i];
  }
  steps.copy(src, inside);
  return whole;
}

// ---- Sums -----------------------------------------------------------------------------------------------------------

std::vector<int64_t> last_axes(size_t rank, size_t count) {
  std::vector<int64_t> axes;
  for (size_t i = rank - count; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  return axes;
}

// output [first axes of the space] = the sum of x * y over the last `count` axes, plus the bias per channel, which is
// on axes 1 and 2.
void sum_products(Steps& steps, const StepOperand& x, const StepOperand& y, size_t count, const StepOperand& bias,
                  StepOperand output) {
  const std::vector<int64_t> axes = last_axes(x.shape.size(), count);
  const compute_dtype computed = computed_in(output.dtype);
  const auto kept = static_cast<std::ptrdiff_t>(x.shape.size() - count);
  for (size_t i = 0; i < count; ++i) output = with_axis(std::move(output), static_cast<int32_t>(output.shape.size()));
  const StepOperand sums = bias.is_absent() ? output : steps.temporary(computed, output.shape);
  steps.reduce("sum", computed, axes, {"x * y"}, {x, y}, {"x"}, sums);
  if (bias.is_absent()) return;
  View terms(bias);
  terms.repeated(output.shape[0])
      .axis(output.shape[1], bias.strides[0] * output.shape[2])
      .axis(output.shape[2], bias.strides[0])
      .repeated(Extents(output.shape.begin() + 3, output.shape.begin() + kept))
      .repeated(Extents(count, 1));
  const std::string sum = "x + " + convert_text("y", bias.dtype, computed);
  steps.map({convert_text("(" + sum + ")", computed, output.dtype)}, {sums, terms.take()}, output);
}

// An operand's axis of channels as groups and the channels of one.
StepOperand in_groups(const StepOperand& x, size_t axis, int64_t groups) {
  StepOperand view = x;
  const int64_t each = x.shape[axis] / groups;
  view.shape[axis] = each;
  const auto at = static_cast<std::ptrdiff_t>(axis);
  view.shape.insert(view.shape.begin() + at, groups);
  view.strides.insert(view.strides.begin() + at, x.strides[axis] * each);
  return view;
}

// Space [n, groups, c_out / groups, output…, c_in / groups, kernel…].
void lower_forward(Steps& steps, const Convolution& c, const StepOperand& x, const StepOperand& weight,
                   const StepOperand& bias, const StepOperand& output) {
  const size_t spatial = c.spatial();
  const StepOperand from = padded(steps, x, c);
  const int64_t each = c.c_in / c.groups;
  View windows(from), factors(weight);
  windows.axis(c.n, from.strides[0]).axis(c.groups, from.strides[1] * each).repeated(c.c_out / c.groups);
  for (size_t i = 0; i < spatial; ++i) windows.axis(c.output[i], from.strides[2 + i] * c.strides[i]);
  windows.axis(each, from.strides[1]);
  for (size_t i = 0; i < spatial; ++i) windows.axis(c.kernel[i], from.strides[2 + i] * c.dilations[i]);
  factors.repeated(c.n)
      .axis(c.groups, weight.strides[0] * (c.c_out / c.groups))
      .axis(c.c_out / c.groups, weight.strides[0])
      .repeated(c.output)
      .axis(each, weight.strides[1]);
  for (size_t i = 0; i < spatial; ++i) factors.axis(c.kernel[i], weight.strides[2 + i]);
  sum_products(steps, windows.take(), factors.take(), 1 + spatial, bias, in_groups(output, 1, c.groups));
}

// Space [n, groups, c_in / groups, input…, c_out / groups, kernel…, backwards].
void lower_grad_input(Steps& steps, const Convolution& c, const StepOperand& dy, const StepOperand& weight,
                      const StepOperand& bias, const StepOperand& output) {
  const size_t spatial = c.spatial();
  const StepOperand from = spread(steps, dy, c);
  const int64_t each = c.c_out / c.groups;
  View windows(from), factors(weight);
  windows.axis(c.n, from.strides[0]).axis(c.groups, from.strides[1] * each).repeated(c.c_in / c.groups);
  for (size_t i = 0; i < spatial; ++i) windows.axis(c.input[i], from.strides[2 + i]);
  windows.axis(each, from.strides[1]);
  for (size_t i = 0; i < spatial; ++i) windows.axis(c.kernel[i], from.strides[2 + i] * c.dilations[i]);
  factors.repeated(c.n)
      .axis(c.groups, weight.strides[0] * each)
      .axis(c.c_in / c.groups, weight.strides[1])
      .repeated(c.input)
      .axis(each, weight.strides[0]);
  for (size_t i = 0; i < spatial; ++i) {
    factors.axis(c.kernel[i], -weight.strides[2 + i]);
    factors.move((c.kernel[i] - 1) * weight.strides[2 + i]);
  }
  sum_products(steps, windows.take(), factors.take(), 1 + spatial, bias, in_groups(output, 1, c.groups));
}

// Space [groups, c_out / groups, c_in / groups, kernel…, n, output…].
void lower_grad_weight(Steps& steps, const Convolution& c, const StepOperand& dy, const StepOperand& x,
                       const StepOperand& output) {
  const size_t spatial = c.spatial();
  const StepOperand from = padded(steps, x, c);
  const int64_t each_in = c.c_in / c.groups, each_out = c.c_out / c.groups;
  View windows(from), factors(dy);
  factors.axis(c.groups, dy.strides[1] * each_out).axis(each_out, dy.strides[1]).repeated(each_in).repeated(c.kernel);
  factors.axis(c.n, dy.strides[0]);
  for (size_t i = 0; i < spatial; ++i) factors.axis(c.output[i], dy.strides[2 + i]);
  windows.axis(c.groups, from.strides[1] * each_in).repeated(each_out).axis(each_in, from.strides[1]);
  for (size_t i = 0; i < spatial; ++i) windows.axis(c.kernel[i], from.strides[2 + i] * c.dilations[i]);
  windows.axis(c.n, from.strides[0]);
  for (size_t i = 0; i < spatial; ++i) windows.axis(c.output[i], from.strides[2 + i] * c.strides[i]);
  sum_products(steps, factors.take(), windows.take(), 1 + spatial, {}, in_groups(output, 0, c.groups));
}

// ---- Lowering -------------------------------------------------------------------------------------------------------

void add_attributes(Step& step, const Convolution& c) {
  const auto add = [&](const char* name, const Extents& values) {
    StepAttribute& attribute = step.attributes.emplace_back();
    attribute.name = name;
    attribute.integers = values;
  };
  add("strides", c.strides);
  add("dilations", c.dilations);
  add("pads_begin", c.begin);
  add("pads_end", c.end);
  add("groups", {c.groups});
}

// Nothing is added up: zeros, or the bias of channels, which are axis 1.
void lower_nothing(Steps& steps, const StepOperand& bias, const StepOperand& output) {
  if (bias.is_absent()) return steps.fill(output, {});
  View terms(bias);
  terms.repeated(output.shape[0]).axis(output.shape[1], bias.strides[0]);
  terms.repeated(Extents(output.shape.begin() + 2, output.shape.end()));
  steps.copy(terms.take(), output);
}

enum class Kind { kForward, kGradInput, kGradWeight };

std::optional<Lowering> lower_kind(const OpCall& call, const LoweringTarget& target, int32_t alternative,
                                   const Convolution& c, Kind kind) {
  Steps steps(call, target);
  const StepOperand output = steps.output();
  StepOperand bias = steps.input(2);
  if (!bias.is_absent()) bias = steps.as_dtype(bias, output.dtype);
  if (!has_elements(call.inputs[0].extents()) || !has_elements(call.inputs[1].extents())) {
    if (alternative > 0) return std::nullopt;
    lower_nothing(steps, bias, output);
    return steps.take();
  }
  if (alternative > 1) return std::nullopt;
  const StepOperand first = steps.as_dtype(steps.input(0), output.dtype);
  const StepOperand second = steps.as_dtype(steps.input(1), output.dtype);
  if (alternative == 0) {
    constexpr const char* kNames[] = {"convolution", "convolution_grad_input", "convolution_grad_weight"};
    std::vector<StepOperand> inputs = {first, second};
    if (kind != Kind::kGradWeight) inputs.push_back(bias);
    add_attributes(steps.add(kNames[static_cast<int>(kind)], std::move(inputs), output), c);
    return steps.take();
  }
  switch (kind) {
    case Kind::kForward:
      lower_forward(steps, c, first, second, bias, output);
      break;
    case Kind::kGradInput:
      lower_grad_input(steps, c, first, second, bias, output);
      break;
    case Kind::kGradWeight:
      lower_grad_weight(steps, c, first, second, output);
      break;
  }
  return steps.take();
}

std::optional<Lowering> lower_convolution(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_kind(call, target, alternative, read_convolution(call), Kind::kForward);
}
std::optional<Lowering> lower_transpose(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_kind(call, target, alternative, read_transpose(call), Kind::kGradInput);
}
std::optional<Lowering> lower_grad_input(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_kind(call, target, alternative, read_grad_input(call), Kind::kGradInput);
}
std::optional<Lowering> lower_grad_weight(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_kind(call, target, alternative, read_grad_weight(call), Kind::kGradWeight);
}

}  // namespace

const OpRules convolution_1_rules{infer_convolution, lower_convolution};
const OpRules convolution_grad_input_1_rules{infer_grad_input, lower_grad_input};
const OpRules convolution_grad_weight_1_rules{infer_grad_weight, lower_grad_weight};
const OpRules convolution_transpose_1_rules{infer_transpose, lower_transpose};

}  // namespace compute
