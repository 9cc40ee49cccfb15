// SPDX-License-Identifier: Apache-2.0
// The kernel kit: an expression as GLSL, which the plugin reports as a remedy, so that `compute doctor` shows it.
#include <compute_kit/combination.hpp>
#include <compute_kit/emit.hpp>
#include <compute_kit/entry.hpp>
#include <compute_kit/expression.hpp>
#include <compute_kit/glsl.hpp>
#include <compute_kit/grammar.hpp>
#include <compute_kit/known_ranges.hpp>
#include <compute_kit/prelude.hpp>

namespace {

namespace kit = compute::common;

// exp(x)
std::string text_of_exp() {
  compute_plugin_node nodes[2] = {};
  nodes[0] = {COMPUTE_PLUGIN_NODE_INPUT, COMPUTE_DTYPE_FLOAT32, 0, 0, 0, {}};
  nodes[1] = {COMPUTE_PLUGIN_NODE_CALL, COMPUTE_DTYPE_FLOAT32, COMPUTE_PLUGIN_INTRINSIC_EXP, 1, 0, {}};
  const int32_t operands[] = {0}, outputs[] = {1};
  compute_plugin_expression expression = {};
  expression.struct_size = sizeof expression;
  expression.node_count = 2;
  expression.input_count = expression.output_count = 1;
  expression.nodes = nodes;
  expression.operands = operands;
  expression.operand_total = 1;
  expression.outputs = outputs;
  const kit::Dialect dialect = kit::glsl_dialect(false);
  kit::Functions functions(dialect);
  std::string text;
  kit::print_expression(expression, {[](int32_t) { return std::string("x"); }, {}, {}}, "w", functions, text);
  const bool has_function = functions.text().find(" exp_f32(f32 x)") != std::string::npos;
  return has_function && !kit::portable_prelude(dialect).empty() ? text : "no function";
}

compute_error* enumerate(const compute_plugin_sink* sink) {
  return kit::guard([&] {
    std::string text = text_of_exp();
    for (char& c : text) c = c == '\n' ? ' ' : c;
    kit::Requirement requirement;
    requirement.name = "kernelsrt";
    requirement.remedy = text;
    requirement.required = true;
    requirement.state = COMPUTE_PLUGIN_LIBRARY_MISSING;
    kit::emit(*sink, requirement);
  });
}

constexpr compute_plugin_table kTable = [] {
  compute_plugin_table table = {};
  table.table_size = sizeof table;
  table.enumerate = enumerate;
  table.device_open = [](uint64_t, const compute_plugin_device_options*, uint64_t*,
                         const compute_plugin_device_table**) -> compute_error* {
    return kit::make_error(COMPUTE_ERROR_UNSUPPORTED, "kernels has no devices");
  };
  return table;
}();

}  // namespace

extern "C" COMPUTE_PLUGIN_EXPORT const compute_plugin_manifest* compute_plugin_query(void) {
  static const compute_plugin_manifest manifest = kit::make_manifest("kernels", "0.1.0");
  return &manifest;
}

extern "C" COMPUTE_PLUGIN_EXPORT compute_error* compute_plugin_open(uint32_t version, const compute_plugin_core* core,
                                                                    const compute_plugin_table** out_table) {
  return kit::open_plugin("kernels", version, core, kTable, out_table);
}
