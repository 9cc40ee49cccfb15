// SPDX-License-Identifier: Apache-2.0
// Calls ops by name, as tests write them: attributes by name, results by running every alternative lowering.
#pragma once

#include <compute/compute.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/ops/infer.hpp"
#include "core/ops/schema.hpp"
#include "core/ops/shapes.hpp"
#include "tests/unit/lowering_evaluator.hpp"
#include "tests/unit/test_attributes.hpp"

namespace compute {

// A call with everything that OpCall refers to.
struct TestCall {
  const OpSchema& schema;
  Attributes attributes;
  std::vector<RunTimeValue> run_time;
  std::vector<TestTensor> inputs;
  std::vector<OperandDesc> descs;

  TestCall(std::string_view op, std::vector<TestTensor> tensors, const TestAttributes& given = {})
      : schema(find_op(op, 0)), run_time(schema.run_time.size()), inputs(std::move(tensors)) {
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

// The result of every lowering except a composite one; all must agree. Also runs one into an output with other strides,
// and as on a GPU with COMPUTE_DETERMINISTIC.
inline TestTensor run_op(std::string_view op, std::vector<TestTensor> inputs, const TestAttributes& attributes = {}) {
  TestCall test(op, std::move(inputs), attributes);
  const Inference inference = infer(test.call());
  const OutputDesc& desc = inference.outputs[0];
  std::optional<TestTensor> result;
  for (const bool strided : {false, true}) {
    for (int32_t alternative = 0;; ++alternative) {
      TestTensor output = empty_tensor(desc.dtype, desc.shape);
      if (strided && output.count() > 0) {
        // Column-major, backwards, every second element.
        int64_t stride = -2;
        for (size_t i = 0; i < desc.shape.size(); ++i) {
          output.strides[i] = stride;
          stride *= desc.shape[i];
        }
        const int64_t size = dtype_size(desc.dtype);
        output.bytes.assign(static_cast<size_t>(2 * output.count() * size), 0xA5);
        output.start = (2 * output.count() - 2) * size;
      }
      const LoweringTarget::Output target{desc.dtype, desc.shape, output.strides};
      const std::optional<Lowering> lowering =
          lower(test.call(), inference, {{&target, 1}, false, true, strided, strided}, alternative);
      if (!lowering) {
        EXPECT_GT(alternative, 0);
        break;
      }
      if (lowering->is_composite) continue;
      std::vector<TestTensor> outputs{std::move(output)};
      LoweringEvaluator evaluator(&test.schema, test.inputs, outputs, test.run_time);
      evaluator.run(*lowering);
      if (!result) {
        result = outputs[0];
      } else {
        const auto a = values(*result), b = values(outputs[0]);
        EXPECT_EQ(a.size(), b.size());
        for (size_t i = 0; i < a.size(); ++i) {
          const bool same = a[i] == b[i] || (std::isnan(a[i].real()) && std::isnan(b[i].real()));
          EXPECT_TRUE(same) << op << ", alternative " << alternative << ", element " << i << ": " << a[i] << " and "
                            << b[i];
        }
      }
    }
  }
  return *result;
}

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
