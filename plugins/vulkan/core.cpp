// SPDX-License-Identifier: Apache-2.0
#include "core.hpp"

namespace vulkan {

const compute_plugin_core* core = nullptr;

compute_error* make_error(compute_error_code code, std::string_view message, int64_t native_code) {
  compute_plugin_error_info info = {};
  info.struct_size = sizeof info;
  info.struct_type = COMPUTE_PLUGIN_STRUCT_ERROR_INFO;
  info.code = code;
  info.argument = -1;
  info.native_code = native_code;
  info.message = text(message);
  return core->error_new(&info);
}

void understand_flags(uint32_t flags, const char* what, uint32_t known) {
  if ((flags & ~known) < 65536) return;
  throw Failure(COMPUTE_ERROR_UNSUPPORTED, std::string("vulkan: ") + what + " has flags that must be understood");
}

void understand_chain(const void* next, const char* what) {
  for (; next != nullptr; next = static_cast<const compute_struct_header*>(next)->next) {
    if ((static_cast<const compute_struct_header*>(next)->struct_type & COMPUTE_STRUCT_MUST_UNDERSTAND) != 0) {
      throw Failure(COMPUTE_ERROR_UNSUPPORTED,
                    std::string("vulkan: ") + what + " has an entry that must be understood");
    }
  }
}

void understand_op(const compute_plugin_op& op) {
  understand(op, "the op");
  for (int32_t i = 0; i < op.input_count + op.output_count; ++i)
    understand(element(op.tensors, i), "a tensor of the op");
  for (int32_t i = 0; i < op.attribute_count; ++i) understand(element(op.attributes, i), "an attribute of the op");
  for (int32_t i = 0; i < op.expression_count; ++i) understand(*op.expressions[i], "an expression of the op");
}

void log_line(int32_t level, std::string_view category, const std::string& line) {
  core->log(level, category.data(), std::ssize(category), line.data(), std::ssize(line));
}

}  // namespace vulkan
