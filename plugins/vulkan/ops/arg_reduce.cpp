// SPDX-License-Identifier: Apache-2.0
// arg_reduce: the position of the first maximum or minimum along an axis. The first NaN counts as either.
#include "ops.hpp"

namespace vulkan {

void arg_reduce(const Request& request) {
  const Op& op = request.op;
  const auto axis = static_cast<size_t>(op.integer("axis", 0));
  const bool is_max = op.string("kind") == "max";
  const int32_t from = op.input(0).dtype, dtype = class_of(from) == 'h' ? int32_t{COMPUTE_DTYPE_FLOAT32} : from;
  const char c = class_of(dtype);
  if (is_complex(c)) throw Refused{COMPUTE_PLUGIN_REFUSE_DTYPE, 0, "complex numbers have no order"};
  const int64_t length = op.input(0).shape[axis];
  Space lines;
  lines.shape = op.output(0).shape;
  for (const Tensor& tensor : op.tensors()) lines.strides.push_back(tensor.strides);
  lines.strides[0][axis] = 0;
  lines = lines.collapsed(false);
  const int64_t count = lines.count();
  if (count < 64 && length > 65536)
    throw Refused{COMPUTE_PLUGIN_REFUSE_SHAPE, 0, "a few long lines are faster as reductions"};
  const bool by_group = length >= 64;
  const int64_t step = op.input(0).strides[axis];
  KernelBuilder k(request.device, request.plan, request.query, is_max ? "argmax" : "argmin");
  k.sign(from);
  k.sign(by_group ? "group" : "item");
  if (by_group) k.use_group_size(64);
  const bool is_long = length / (by_group ? 64 : 1) > 60000;
  if (is_long) throw Refused{COMPUTE_PLUGIN_REFUSE_SHAPE, 0, "the axis is too long"};
  const int x = k.tensor(0), y = k.tensor(1), count_slot = k.word(count), length_slot = k.word(length),
            step_slot = k.word(step);
  const Axes axes = k.axes(lines);
  const auto text = [&] {
    const std::string T = type_of(dtype), I = axes.index_type();
    const bool has_nan = is_real(c);
    if (has_nan) k.source.use("isnan", c);
    // Whether (value, position) comes before (best, at).
    const auto better = [&](const std::string& v, const std::string& p) {
      const std::string more =
          c == 'b' ? (is_max ? "(" + v + "&&!best)" : "(!" + v + "&&best)") : "(" + v + (is_max ? ">" : "<") + "best)";
      const std::string plain = "(" + more + "||(" + v + "==best&&" + p + "<at))";
      if (!has_nan) return plain;
      return "(q_isnan(" + v + ")?(!q_isnan(best)||" + p + "<at):(!q_isnan(best)&&" + plain + "))";
    };
    if (by_group) {
      k.out += "shared " + T + " hv[64];shared uint hp[64];\nvoid main(){uint lid=gl_LocalInvocationID.x;" + I +
               " n=" + k.number(count_slot, I) + ";\nfor(" + I + " i=" + I + "(gl_WorkGroupID.x);i<n;i+=" + I +
               "(gl_NumWorkGroups.x)){\n";
    } else {
      k.begin_loop(count_slot, I);
    }
    k.locate(axes, "o", "i", false);
    const auto value = [&](const std::string& at) {
      return k.source.convert(from, dtype,
                              load(from, k.address(x, "int64_t(o0)+int64_t(" + at + ")*" + k.at(step_slot))));
    };
    const std::string first = by_group ? "lid" : "0u";
    k.out += "uint m=" + k.number(length_slot, "uint") + ",at=" + first + ";" + T + " best=" + value("at") +
             ";\nfor(uint j=at+" + (by_group ? "64u" : "1u") + ";j<m;j+=" + (by_group ? "64u" : "1u") + "){" + T +
             " v=" + value("j") + ";if(" + better("v", "j") + "){best=v;at=j;}}\n";
    if (by_group) {
      k.out += "hv[lid]=best;hp[lid]=at;barrier();\nfor(uint d=32u;d>0u;d>>=1){if(lid<d){" + T +
               " v=hv[lid+d];uint p=hp[lid+d];if(" + better("v", "p") +
               "){best=v;at=p;hv[lid]=v;hp[lid]=p;}}barrier();}\nif(lid==0u){";
    }
    k.out += store(COMPUTE_DTYPE_INT64, k.address(y, "o1"), "int64_t(at)") + "\n";
    if (by_group) k.out += "}barrier();\n";
    k.end_loop();
  };
  if (by_group)
    k.finish(std::min<int64_t>(count, 32768), text);
  else
    k.finish_loop(count, text);
}

}  // namespace vulkan
