// SPDX-License-Identifier: Apache-2.0
// The list of tests, independent of devices.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "session.hpp"

namespace compute::conformance {

struct Test {
  std::string group;
  std::string name;
  std::function<void(const Session&)> body;
  Level level = Level::QUICK;      // the least level at which it runs
  std::string op = {};             // for the support matrix: the op and the dtype that the test is about
  std::vector<Dtype> dtypes = {};  // dtypes without which the device need not run it
  int needs = COMPUTE_DTYPE_LEVEL_ARITHMETIC;
  bool runs_ops = true;  // fails if no op reached the device
};

class Registry {
 public:
  explicit Registry(Level level) : level_(level) {}

  Level level() const { return level_; }
  void add(Test test);
  const std::vector<Test>& tests() const { return tests_; }

 private:
  Level level_;
  std::vector<Test> tests_;
};

/// The ops of the library, each with the bound and the class of dtypes that its schema states.
struct OpRow {
  std::string name;
  std::string classes;  // of an elementwise op
  std::string bound;
  bool elementwise;
};
std::vector<OpRow> op_rows();
bool in_class(Dtype dtype, const std::string& dtype_class);
/// The bound of a row as tested for a result of `dtype`: at least 8 ULP for complex results.
Bound bound_of(const OpRow& row, Dtype dtype);
Bound bound_of(const std::string& op, Dtype dtype);
/// The dtypes that a level tests: every one at full, one of each kind below.
std::vector<Dtype> tested_dtypes(Level level);

// One per file.
void add_collective_tests(Registry& registry);
void add_convolution_tests(Registry& registry);
void add_creation_tests(Registry& registry);
void add_determinism_tests(Registry& registry);
void add_device_tests(Registry& registry);
void add_dlpack_tests(Registry& registry);
void add_elementwise_tests(Registry& registry);
void add_error_tests(Registry& registry);
void add_expression_tests(Registry& registry);
void add_float8_tests(Registry& registry);
void add_fourier_tests(Registry& registry);
void add_gradient_tests(Registry& registry);
void add_graph_tests(Registry& registry);
void add_host_tests(Registry& registry);
void add_interop_tests(Registry& registry);
void add_kernel_tests(Registry& registry);
void add_linalg_tests(Registry& registry);
void add_matmul_tests(Registry& registry);
void add_memory_tests(Registry& registry);
void add_movement_tests(Registry& registry);
void add_network_tests(Registry& registry);
void add_promotion_tests(Registry& registry);
void add_quantized_tests(Registry& registry);
void add_random_tests(Registry& registry);
void add_range_tests(Registry& registry);
void add_sorting_tests(Registry& registry);
void add_reduce_tests(Registry& registry);
void add_softmax_tests(Registry& registry);
void add_stream_tests(Registry& registry);
void add_tensor_tests(Registry& registry);

}  // namespace compute::conformance
