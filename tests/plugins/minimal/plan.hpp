// SPDX-License-Identifier: Apache-2.0
// Plans: prepared ops. They are immutable and may run on several streams concurrently.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "minimal.hpp"
#include "program.hpp"

namespace minimal {

// A tensor as a plan sees it, and the bytes around its first element that a run touches.
struct Tensor {
  explicit Tensor(const compute_plugin_tensor& tensor);  // throws Refused, and Failure for a promise that is too weak

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  bool row_major() const;
  // Bytes from the first element to the one at `position`; repeated axes have stride 0.
  int64_t offset(const int64_t* position) const;

  int32_t dtype;
  int64_t element_bytes;
  int32_t alignment;  // promised, in bytes
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // bytes
  int64_t first_byte = 0;
  int64_t end_byte = 0;
};

struct Plan;

// What one run works on: the address of every tensor's first element, and the scalars.
struct Operands {
  std::vector<std::byte*> tensors;
  std::vector<compute_plugin_scalar> scalars;
};

// A primitive: how it is prepared, beyond tensors and expressions, and how it runs. `run` returns a fault, with the
// code NONE on success.
struct Primitive {
  std::string_view name;
  void (*prepare)(Plan& plan, const compute_plugin_op& op);  // throws Refused
  compute_plugin_fault (*run)(const Plan& plan, const Operands& operands);
  bool reports_faults;
  int32_t tensors, expressions;  // that it has at most; -1: any number
  std::string_view attributes;   // names, each between blanks
};

// The primitive of that name; NULL if the plugin leaves the op to core's decomposition.
const Primitive* find_primitive(std::string_view name);
const Primitive* find_vendor_op(std::string_view name);

struct Plan {
  explicit Plan(const compute_plugin_op& op);  // throws Refused

  const Tensor& output(int64_t index) const { return tensors[input_count + index]; }

  const Primitive* primitive;
  int64_t input_count;
  std::vector<Tensor> tensors;  // inputs, then outputs
  std::vector<Program> programs;
  std::vector<int64_t> kept;     // the axes of the index space, ascending,
  std::vector<int64_t> reduced;  // but for those that are combined
  int64_t axis = 0;              // of gather and scatter

  Function locate = nullptr;   // gather, scatter: an element of the indices as int64
  Function widen = nullptr;    // copy, scatter: converts an element to the computed dtype
  Function combine = nullptr;  // reduce, scatter: two values into one; NULL: the later one stays
  Function narrow = nullptr;   // scatter: the way back
  int64_t scalar_count;
  int64_t before_scalars = 0;  // reduce: scalars of the first program

  // row: per stage, per program, and per stored result.
  std::vector<Function> combines;
  std::vector<int64_t> first_scalars;
  std::vector<int64_t> stored;
  std::vector<Function> narrows;
};

// A plan's handle points to one of these, so that queued runs keep a plan that core has released.
using SharedPlan = std::shared_ptr<const Plan>;

// The op and all that it points to.
void understand_all(const compute_plugin_op& op);

// A run, prepared for execution on a stream's thread. Refuses inaccessible memory.
std::function<void()> make_task(const SharedPlan& plan, const compute_plugin_run& run, Device& device);

}  // namespace minimal
