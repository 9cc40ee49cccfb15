// SPDX-License-Identifier: Apache-2.0
// Calls ops by name, as tests write them: attributes by name, operands without memory.
#pragma once

#include <compute/compute.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"
#include "core/ops/infer.hpp"
#include "core/ops/lower.hpp"
#include "core/ops/schema.hpp"
#include "core/ops/shapes.hpp"
#include "tests/unit/test_attributes.hpp"

namespace compute {

struct TestTensor {
  compute_dtype dtype = COMPUTE_DTYPE_NONE;
  std::vector<int64_t> shape, strides;
  bool is_scalar = false, weak = false;

  OperandDesc desc() const {
    return {dtype, static_cast<int32_t>(shape.size()), shape.data(), strides.data(), is_scalar, weak};
  }
};

// Row-major.
inline TestTensor like(compute_dtype dtype, const std::vector<int64_t>& shape) {
  return {dtype, shape, row_major_strides(shape)};
}

inline TestTensor scalar_like(compute_dtype dtype, bool weak = false) { return {dtype, {}, {}, true, weak}; }

// A call with everything that OpCall refers to.
struct TestCall {
  const OpSchema& schema;
  Attributes attributes;
  std::vector<TestTensor> inputs;
  std::vector<OperandDesc> descs;

  TestCall(std::string_view op, std::vector<TestTensor> tensors, const TestAttributes& given = {})
      : schema(find_op(op, 0)), inputs(std::move(tensors)) {
    std::vector<RunTimeValue> run_time(schema.run_time.size());
    read_attributes(schema, given.list().data(), static_cast<int64_t>(given.list().size()), attributes,
                    run_time.data());
    check_operand_counts(schema, static_cast<int64_t>(inputs.size()), schema.output_count);
    for (const TestTensor& input : inputs) descs.push_back(input.desc());
  }
  OpCall call() const { return {schema, attributes, descs}; }
  std::vector<OutputDesc> infer() const { return compute::infer(call()).outputs; }

  std::optional<Lowering> lower(int32_t alternative, bool in_place = false) const {
    const Inference inference = compute::infer(call());
    std::vector<std::vector<int64_t>> strides;
    std::vector<LoweringTarget::Output> outputs;
    for (const OutputDesc& desc : inference.outputs) strides.push_back(row_major_strides(desc.shape));
    for (size_t i = 0; i < strides.size(); ++i)
      outputs.push_back({inference.outputs[i].dtype, inference.outputs[i].shape, strides[i]});
    return compute::lower(call(), inference, {outputs, in_place, true}, alternative);
  }
};

// The message of the Error that `f` throws; "" and a failure if it throws none.
template <class F>
std::string error_of(F&& f, compute_error_code code = COMPUTE_ERROR_INVALID_ARGUMENT) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, code) << error.message;
    return error.message;
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace compute
