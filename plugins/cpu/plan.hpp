// SPDX-License-Identifier: Apache-2.0
// Ops as the core asks for them, and plans, which are ops that are ready to run.
#pragma once

#include <compute/plugin.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace compute::cpu {

// A checked view of a compute_plugin_op of any struct size; valid as long as that is.
class Op {
 public:
  explicit Op(const compute_plugin_op* op);

  const compute_plugin_op& description() const { return op_; }
  std::string_view name() const { return {op_.name.data, static_cast<size_t>(op_.name.size)}; }
  int32_t version() const { return op_.version; }
  bool deterministic() const { return (op_.flags & COMPUTE_OP_DETERMINISTIC) != 0; }
  bool fast_math() const { return (op_.flags & COMPUTE_OP_FAST_MATH) != 0; }
  int32_t input_count() const { return op_.input_count; }
  int32_t output_count() const { return op_.output_count; }
  int32_t tensor_count() const { return op_.input_count + op_.output_count; }
  int32_t scalar_count() const { return op_.scalar_count; }
  compute_dtype scalar_dtype(int32_t index) const { return op_.scalar_dtypes[index]; }
  const compute_plugin_tensor& tensor(int32_t index) const;
  const compute_plugin_tensor& input(int32_t index) const { return tensor(index); }
  const compute_plugin_tensor& output(int32_t index) const { return tensor(op_.input_count + index); }
  int32_t expression_count() const { return op_.expression_count; }
  const compute_plugin_expression& expression(int32_t index) const { return *op_.expressions[index]; }

  // Attributes; those that are not given have these defaults.
  std::span<const int64_t> integers(std::string_view name) const;
  int64_t integer(std::string_view name, int64_t otherwise) const;
  std::string_view text(std::string_view name) const;
  compute_dtype dtype(std::string_view name) const;

  // The first attribute whose name is none of these.
  std::optional<std::string_view> unknown_attribute(std::span<const std::string_view> known) const;

 private:
  const compute_attribute* find(std::string_view name, int32_t kind) const;
  const compute_attribute& attribute(int32_t index) const;

  compute_plugin_op op_{};
};

// Why an op is not taken.
struct Refusal {
  int32_t reason;
  int32_t argument = -1;
  std::string text;
  std::string hint;
};

// An op that is ready to run. Immutable: any number of threads may run it at once.
class Plan {
 public:
  Plan() = default;
  virtual ~Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // A plan lives until its owner and every queued run have released it.
  void retain() const { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() const {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  // Computes, on the calling thread and the pool; on return all is done. Allocates nothing. Throws Error where a fault is found
  // and `run` has no fault record.
  virtual void run(const compute_plugin_run& run) const = 0;

  int32_t tensor_count = 0;
  int32_t scalar_count = 0;
  int32_t reports_faults = 0;
  int64_t workspace_bytes = 0;

 private:
  mutable std::atomic<int32_t> references_{1};
};

// A primitive that the plugin takes.
struct Primitive {
  std::string_view name;
  // Whether prepare() would succeed, and if not, why.
  std::optional<Refusal> (*refuse)(const Op& op);
  std::unique_ptr<Plan> (*prepare)(const Op& op);
};

// Nothing if there is no such primitive or it refuses `op`; then *out_refusal says why.
const Primitive* find_primitive(const Op& op, Refusal* out_refusal);

std::unique_ptr<Plan> prepare(const Op& op);

// ---- For the primitives ---------------------------------------------------------------------------------------------

inline char* address(const compute_plugin_operand& operand) {
  return reinterpret_cast<char*>(static_cast<uintptr_t>(operand.buffer)) + operand.offset_bytes;
}

// An index that is out of range. Writes the fault record, or throws KERNEL_FAILED if the run has none.
void report_index_fault(const compute_plugin_run& run, std::string_view op, int32_t argument, int64_t value, int64_t limit,
                        int64_t position);

const char* dtype_name(compute_dtype dtype);
bool is_complex(compute_dtype dtype);

// A refusal for a tensor whose dtype is not one of this plugin's.
std::optional<Refusal> refuse_dtypes(const Op& op);

}  // namespace compute::cpu
