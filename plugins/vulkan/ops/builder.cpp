// SPDX-License-Identifier: Apache-2.0
#include "builder.hpp"

#include "accumulator.hpp"

namespace vulkan {

int64_t product(const Shape& shape) {
  int64_t n = 1;
  for (const int64_t extent : shape) n *= extent;
  return n;
}

// ---- Op -------------------------------------------------------------------------------------------------------------

Op::Op(const compute_plugin_op& op) : op_(op) {
  for (int32_t i = 0; i < op.input_count + op.output_count; ++i) {
    const compute_plugin_tensor& given = element(op.tensors, i);
    Tensor& tensor = tensors_.emplace_back();
    tensor.is_absent = given.rank < 0;
    if (tensor.is_absent) continue;
    if (given.layout != COMPUTE_PLUGIN_LAYOUT_STRIDED)
      throw Refused{COMPUTE_PLUGIN_REFUSE_LAYOUT, i, "a layout that the plugin does not know"};
    if (given.dtype < COMPUTE_DTYPE_BOOL || given.dtype > COMPUTE_DTYPE_COMPLEX128)
      throw Refused{COMPUTE_PLUGIN_REFUSE_DTYPE, i, "a dtype that the plugin does not know"};
    tensor.dtype = given.dtype;
    tensor.alignment = given.alignment;
    tensor.shape.assign(given.shape, given.shape + given.rank);
    for (int32_t axis = 0; axis < given.rank; ++axis)
      tensor.strides.push_back(given.strides[axis] * bytes_of(given.dtype));
  }
}

const compute_attribute* Op::find(std::string_view name) const {
  for (int32_t i = 0; i < op_.attribute_count; ++i) {
    const compute_attribute& attribute = element(op_.attributes, i);
    if (std::string_view(attribute.name, static_cast<size_t>(attribute.name_size)) == name) return &attribute;
  }
  return nullptr;
}

std::vector<int64_t> Op::integers(std::string_view name) const {
  const compute_attribute* found = find(name);
  if (found == nullptr) return {};
  const auto* values = static_cast<const int64_t*>(found->values);
  return {values, values + found->count};
}

std::vector<int32_t> Op::dtypes(std::string_view name) const {
  const compute_attribute* found = find(name);
  if (found == nullptr) return {};
  const auto* values = static_cast<const compute_dtype*>(found->values);
  return {values, values + found->count};
}

std::vector<std::string> Op::strings(std::string_view name) const {
  const compute_attribute* found = find(name);
  std::vector<std::string> all;
  if (found == nullptr) return all;
  const auto* values = static_cast<const compute_string*>(found->values);
  for (int64_t i = 0; i < found->count; ++i) all.emplace_back(view(values[i]));
  return all;
}

int64_t Op::integer(std::string_view name, int64_t otherwise) const {
  const auto all = integers(name);
  return all.empty() ? otherwise : all[0];
}

std::string Op::string(std::string_view name) const {
  const auto all = strings(name);
  return all.empty() ? "" : all[0];
}

void require_dtypes(const Device& device, const compute_plugin_op& op) {
  if (device.physical.features.float64) return;
  const auto require = [](int32_t dtype, int32_t argument) {
    if (needs_float64(dtype))
      throw Refused{COMPUTE_PLUGIN_REFUSE_DTYPE, argument, "float64 needs the feature shaderFloat64",
                    "cast to float32"};
  };
  for (int32_t i = 0; i < op.input_count + op.output_count; ++i) {
    const compute_plugin_tensor& tensor = element(op.tensors, i);
    if (tensor.rank >= 0) require(tensor.dtype, i);
  }
  for (int32_t i = 0; i < op.expression_count; ++i)
    for (int32_t k = 0; k < op.expressions[i]->node_count; ++k) require(op.expressions[i]->nodes[k].dtype, -1);
}

// ---- Spaces ---------------------------------------------------------------------------------------------------------

Space Space::collapsed(bool keep) const {
  if (keep) return *this;
  Space joined;
  joined.strides.resize(strides.size());
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 1) continue;
    bool joins = !joined.shape.empty();
    for (size_t t = 0; joins && t < strides.size(); ++t)
      joins = joined.strides[t].back() == strides[t][axis] * shape[axis];
    if (joins) {
      joined.shape.back() *= shape[axis];
      for (size_t t = 0; t < strides.size(); ++t) joined.strides[t].back() = strides[t][axis];
    } else {
      joined.shape.push_back(shape[axis]);
      for (size_t t = 0; t < strides.size(); ++t) joined.strides[t].push_back(strides[t][axis]);
    }
  }
  return joined;
}

int plain_group_size(const Device& device) { return device.physical.kind == COMPUTE_DEVICE_KIND_CPU ? 64 : 256; }

// ---- Kernels --------------------------------------------------------------------------------------------------------

KernelBuilder::KernelBuilder(Device& d, Plan& plan, bool query, std::string_view name)
    : device(d), source(d.physical.features), plan_(plan), query_(query), local_(plain_group_size(d)) {
  sign(name);
}

int KernelBuilder::word(int64_t value) {
  launch_.words.push_back(value);
  return static_cast<int>(launch_.words.size()) - 1;
}

int KernelBuilder::tensor(int32_t position) {
  const int slot = word(0);
  launch_.bindings.push_back({slot, Binding::kTensor, position});
  return slot;
}

int KernelBuilder::workspace(int64_t offset) {
  const int slot = word(0);
  launch_.bindings.push_back({slot, Binding::kWorkspace, offset});
  return slot;
}

int KernelBuilder::scalars(int32_t first, int32_t count) {
  const int slot = static_cast<int>(launch_.words.size());
  for (int32_t i = 0; i < count; ++i) {
    launch_.bindings.push_back({word(0), Binding::kScalar, first + i});
    word(0);
  }
  return slot;
}

int KernelBuilder::fault() {
  const int slot = word(0);
  launch_.bindings.push_back({slot, Binding::kFault, 0});
  plan_.reports_faults = true;
  return slot;
}

int KernelBuilder::counters() {
  const int slot = word(0);
  launch_.bindings.push_back({slot, Binding::kCounters, 0});
  return slot;
}

std::string KernelBuilder::scalar(int slot, int32_t index, int32_t dtype) {
  const std::string low = "uint64_t(" + at(slot + 2 * index) + ")", high = "uint64_t(" + at(slot + 2 * index + 1) + ")";
  if (bits_of(dtype) == 128)
    return "dvec2(packDouble2x32(unpackUint2x32(" + low + ")),packDouble2x32(unpackUint2x32(" + high + ")))";
  return value_from(dtype, bits_of(dtype) == 64 ? low : "uint(" + low + ")");
}

Axes KernelBuilder::axes(const Space& space) {
  Axes axes;
  axes.rank = static_cast<int>(space.shape.size());
  axes.wide_index = space.count() >= (int64_t{1} << 31);
  axes.shape_slot = static_cast<int>(launch_.words.size());
  for (const int64_t extent : space.shape) word(extent);
  axes.stride_slot = static_cast<int>(launch_.words.size());
  std::string signature = std::to_string(axes.rank);
  for (const Shape& strides : space.strides) {
    const bool is_zero = std::all_of(strides.begin(), strides.end(), [](int64_t stride) { return stride == 0; });
    axes.is_zero.push_back(is_zero);
    signature += is_zero ? 'z' : 's';
    if (is_zero) continue;
    int64_t span = 0;
    for (size_t axis = 0; axis < strides.size(); ++axis) {
      word(strides[axis]);
      span += std::abs(strides[axis]) * (space.shape[axis] - 1);
    }
    axes.wide_offset |= span >= (int64_t{1} << 31);
  }
  sign(signature + (axes.wide_index ? 'w' : 'n') + (axes.wide_offset ? 'w' : 'n'));
  return axes;
}

void KernelBuilder::locate(const Axes& axes, const std::string& prefix, const std::string& index, bool positions) {
  const std::string I = axes.index_type(), O = axes.offset_type();
  const size_t operands = axes.is_zero.size();
  for (size_t t = 0; t < operands; ++t) out += O + " " + prefix + std::to_string(t) + "=" + O + "(0);";
  for (int axis = 0; axis < axes.rank && positions; ++axis)
    out += I + " " + prefix + "x" + std::to_string(axis) + "=" + I + "(0);";
  out += "\n{" + I + " rest=" + index + ";\n";
  for (int axis = axes.rank - 1; axis >= 0; --axis) {
    if (axis > 0)
      out += "{" + I + " s=" + number(axes.shape_slot + axis, I) + ",q=rest/s,p=rest-q*s;rest=q;";
    else
      out += "{" + I + " p=rest;";
    int row = 0;
    for (size_t t = 0; t < operands; ++t) {
      if (axes.is_zero[t]) continue;
      out +=
          prefix + std::to_string(t) + "+=" + O + "(p)*" + number(axes.stride_slot + row * axes.rank + axis, O) + ";";
      ++row;
    }
    if (positions) out += prefix + "x" + std::to_string(axis) + "=p;";
    out += "}\n";
  }
  out += "}\n";
}

void KernelBuilder::begin_loop(int count_slot, const std::string& type) {
  out += "void main(){\n" + type + " n=" + number(count_slot, type) + ";\nfor(" + type + " i=" + type +
         "(gl_GlobalInvocationID.x);i<n;i+=" + type + "(gl_NumWorkGroups.x*" + std::to_string(local_) + "u)){\n";
}

// Subgroups of the largest size fill the group, and hold the types of the state.
bool KernelBuilder::can_shuffle(const Accumulator& state) const {
  const Features& features = device.physical.features;
  if (!features.shuffle || features.subgroup_size_max == 0) return false;
  for (size_t i = 0; i < state.parts(); ++i) {
    const char c = class_of(state.part_dtype(i));
    if (c == 'l' || c == 'm' || c == 'z') return false;
  }
  return local_ % static_cast<int>(features.subgroup_size_max) == 0;
}

void KernelBuilder::declare_shared(const Accumulator& state, const std::string& h, int times) {
  for (size_t i = 0; i < state.parts(); ++i)
    out += "shared " + state.type(i) + " " + h + std::to_string(i) + "[" + std::to_string(local_ * times) + "];\n";
}

void KernelBuilder::combine_group(const Accumulator& state, const std::string& q, const std::string& h) {
  std::vector<std::string> theirs, first;
  if (can_shuffle(state)) {
    shuffles_ = true;
    out += "for(uint d=gl_SubgroupSize/2u;d>0u;d>>=1){";
    for (size_t i = 0; i < state.parts(); ++i) {
      theirs.push_back("t" + std::to_string(i));
      out += state.type(i) + " " + theirs[i] + "=subgroupShuffleXor(" + q + std::to_string(i) + ",d);";
    }
    out += state.merge(q, theirs) + "}\nif(gl_SubgroupInvocationID==0u){";
    for (size_t i = 0; i < state.parts(); ++i) {
      out += h + std::to_string(i) + "[gl_SubgroupID]=" + q + std::to_string(i) + ";";
      first.push_back(h + std::to_string(i) + "[0]");
      theirs[i] = h + std::to_string(i) + "[g]";
    }
    out += "}barrier();\n" + state.assign(q, first) + "for(uint g=1u;g<gl_NumSubgroups;++g){" + state.merge(q, theirs) +
           "}\n";
    return;
  }
  for (size_t i = 0; i < state.parts(); ++i) {
    const std::string array = h + std::to_string(i);
    theirs.push_back(array + "[lid+d]");
    first.push_back(array + "[0]");
    out += array + "[lid]=" + q + std::to_string(i) + ";";
  }
  out += "barrier();\nfor(uint d=" + std::to_string(local_ / 2) + "u;d>0u;d>>=1){if(lid<d){" + state.merge(q, theirs);
  for (size_t i = 0; i < state.parts(); ++i) out += h + std::to_string(i) + "[lid]=" + q + std::to_string(i) + ";";
  out += "}barrier();}\n" + state.assign(q, first) + "\n";
}

void KernelBuilder::scan_group(const Accumulator& state, const std::string& q, const std::string& b,
                               const std::string& c, const std::string& h) {
  std::vector<std::string> left, right;
  std::string save;
  for (size_t i = 0; i < state.parts(); ++i) {
    const std::string n = std::to_string(i);
    left.push_back("l" + n);
    right.push_back("r" + n);
    save += state.type(i) + " r" + n + "=" + q + n + ";";
  }
  // <q> becomes the combination of `left` and itself: the left operand comes first.
  const std::string prepend = save + state.assign(q, left) + state.merge(q, right);
  const auto at = [&](const std::string& index) {
    std::vector<std::string> all;
    for (size_t i = 0; i < state.parts(); ++i) all.push_back(h + std::to_string(i) + "[" + index + "]");
    return all;
  };
  const auto keep = [&](const std::string& index) {
    std::string text;
    const std::vector<std::string> places = at(index);
    for (size_t i = 0; i < places.size(); ++i) text += places[i] + "=" + q + std::to_string(i) + ";";
    return text;
  };
  if (can_shuffle(state)) {
    shuffles_ = true;
    std::string from_left;
    for (size_t i = 0; i < state.parts(); ++i)
      from_left += state.type(i) + " " + left[i] + "=subgroupShuffle(" + q + std::to_string(i) + ",from);";
    out +=
        "for(uint d=1u;d<gl_SubgroupSize;d<<=1){uint from=gl_SubgroupInvocationID-(gl_SubgroupInvocationID>=d?d:0u);" +
        from_left + "if(gl_SubgroupInvocationID>=d){" + prepend +
        "}}\nif(gl_SubgroupInvocationID==gl_SubgroupSize-1u){" + keep("turn+gl_SubgroupID") +
        "}barrier();\nfor(uint g=0u;g<gl_NumSubgroups;++g){if(g==gl_SubgroupID){" + state.assign(b, state.names(c)) +
        "}" + state.merge(c, at("turn+g")) + "}\n{uint from=max(gl_SubgroupInvocationID,1u)-1u;" + from_left +
        "if(gl_SubgroupInvocationID>0u){" + state.merge(b, left) + "}}\nturn=" + std::to_string(local_) + "u-turn;\n";
    return;
  }
  const std::string n = std::to_string(local_);
  std::string from_left;
  for (size_t i = 0; i < state.parts(); ++i)
    from_left += state.type(i) + " " + left[i] + "=" + h + std::to_string(i) + "[lid>=d?lid-d:lid];";
  out += "barrier();" + keep("lid") + "barrier();\nfor(uint d=1u;d<" + n + "u;d<<=1){" + from_left +
         "barrier();if(lid>=d){" + prepend + keep("lid") + "}barrier();}\n" + state.assign(b, state.names(c)) +
         "if(lid>0u){" + state.merge(b, at("lid-1u")) + "}" + state.merge(c, at(n + "-1u")) + "\n";
}

std::string KernelBuilder::complete_text() const {
  const Features& features = device.physical.features;
  std::string text =
      "#version 460\n"
      "#extension GL_EXT_buffer_reference:require\n"
      "#extension GL_EXT_shader_explicit_arithmetic_types_int64:require\n"
      "#extension GL_EXT_shader_8bit_storage:require\n"
      "#extension GL_EXT_shader_16bit_storage:require\n"
      "#extension GL_EXT_control_flow_attributes:require\n";
  if (features.float64) text += "#extension GL_EXT_shader_explicit_arithmetic_types_float64:require\n";
  if (shuffles_)
    text += "#extension GL_KHR_shader_subgroup_basic:require\n#extension GL_KHR_shader_subgroup_shuffle:require\n";
  if (votes_) text += "#extension GL_KHR_shader_subgroup_ballot:require\n";
  if (features.int64_atomics) text += "#extension GL_EXT_shader_atomic_int64:require\n";
  text += "#define HAS_FLOAT64 " + std::string(features.float64 ? "1\n" : "0\n");
  text += "#define FUSED_32 " + std::string(device.is_fused[0] ? "1\n" : "0\n") + "#define FUSED_64 " +
          (device.is_fused[1] ? "1\n" : "0\n");
  text += "#define KEEPS_NAN_32 " + std::string(features.keeps_special_values[0] ? "1\n" : "0\n") +
          "#define KEEPS_NAN_64 " + (features.keeps_special_values[1] ? "1\n" : "0\n");
  text += "layout(local_size_x=" + std::to_string(local_) +
          ") in;\n"
          "layout(buffer_reference,std430,buffer_reference_align=1) buffer B8{uint8_t v;};\n"
          "layout(buffer_reference,std430,buffer_reference_align=2) buffer B16{uint16_t v;};\n"
          "layout(buffer_reference,std430,buffer_reference_align=4) buffer B32{uint v;};\n"
          "layout(buffer_reference,std430,buffer_reference_align=8) buffer B64{uint64_t v;};\n"
          "layout(buffer_reference,std430,buffer_reference_align=1) coherent buffer C8{uint8_t v;};\n"
          "layout(buffer_reference,std430,buffer_reference_align=2) coherent buffer C16{uint16_t v;};\n"
          "layout(buffer_reference,std430,buffer_reference_align=4) coherent buffer C32{uint v;};\n"
          "layout(buffer_reference,std430,buffer_reference_align=8) coherent buffer C64{uint64_t v;};\n"
          "layout(buffer_reference,std430,buffer_reference_align=8) buffer W2{uvec2 v;};\n"
          "layout(buffer_reference,std430,buffer_reference_align=16) buffer W4{uvec4 v;};\n";
  const std::string count = std::to_string(std::max<size_t>(launch_.words.size(), 1));
  if (launch_.words.size() * sizeof(int64_t) <= features.push_bytes) {
    text += "layout(push_constant) uniform Arguments{int64_t v[" + count + "];} a;\n";
  } else {
    text += "layout(buffer_reference,std430,buffer_reference_align=8) readonly buffer Arguments{int64_t v[" + count +
            "];};\nlayout(push_constant) uniform Push{Arguments a;};\n";
  }
  return text + source.library() + out;
}

void KernelBuilder::finish(int64_t groups_x, const std::function<void()>& text, int64_t groups_y, int64_t groups_z) {
  sign(local_);
  sign(static_cast<int64_t>(launch_.words.size()));
  launch_.groups = {static_cast<uint32_t>(groups_x), static_cast<uint32_t>(groups_y), static_cast<uint32_t>(groups_z)};
  launch_.kernel = device.find_kernel(key_);
  if (launch_.kernel == nullptr) {
    text();  // refuses what cannot be expressed
    if (!query_) launch_.kernel = device.add_kernel(key_, complete_text(), shuffles_, &plan_.kernels_compiled);
  }
  plan_.launches.push_back(std::move(launch_));
}

void KernelBuilder::finish_loop(int64_t count, const std::function<void()>& text) {
  // Each work-item gets one position, or on large spaces several. Some drivers end loops after 65535 rounds.
  constexpr int64_t kMostGroups = 16384;
  finish(std::clamp<int64_t>((count + local_ - 1) / local_, 1, kMostGroups), text);
}

}  // namespace vulkan
