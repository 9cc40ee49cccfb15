// SPDX-License-Identifier: Apache-2.0
// Fourier transforms of any length as convolutions with a chirp (Bluestein): since jk = (j^2 + k^2 - (k - j)^2) / 2,
// the transform of x is w times the convolution of w x with the conjugate of w, where w[j] = exp(-+ pi i j^2 / n). The
// convolution has a length with small factors.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "plugins/common/op/layout.hpp"
#include "plugins/common/op/op.hpp"
#include "plugins/opencl/device.hpp"

namespace compute::opencl {

// Whether no prime factor is above 7.
bool has_small_factors(int64_t length);

// A transform along one axis.
struct ChirpProblem {
  int64_t length, longer;  // of the transform and of the convolution
  int64_t rows;
  common::LoopNest places;  // of the rows; operands: src, dst
  int64_t step[2];          // between the elements of a row; as all strides, in elements
  double sign, scale;
  bool is_double;

  int64_t element_bytes() const { return is_double ? 16 : 8; }
};

// Nothing for lengths with small factors, for transforms along several axes, or if the rows are too many, or need too
// many loops.
std::optional<ChirpProblem> describe_chirp(const common::Op& op);

// Elements of the transform's dtype.
struct ChirpTables {
  std::vector<char> chirp;   // w[0], …, w[n - 1]
  std::vector<char> filter;  // of the convolution, times `scale`, once for each of `copies` rows
};

ChirpTables chirp_tables(const ChirpProblem& problem, int64_t copies);

// The kernel that multiplies rows by the chirp. Any number of threads may run it at once.
class ChirpKernel {
 public:
  ChirpKernel(const Device& device, const ChirpProblem& problem, int64_t* out_compiled);

  // Rows [first, first + count) of src to adjacent rows of `longer` elements, of which `length` are written.
  void pack(cl_command_queue queue, const compute_plugin_operand& src, cl_mem chirp,
            const compute_plugin_operand& packed, int64_t first, int64_t count) const;
  // The same rows back, to dst.
  void unpack(cl_command_queue queue, const compute_plugin_operand& packed, cl_mem chirp,
              const compute_plugin_operand& dst, int64_t first, int64_t count) const;

 private:
  void enqueue(cl_command_queue queue, const compute_plugin_operand* operands, cl_mem chirp, int packed, int64_t first,
               int64_t count) const;

  const ChirpProblem problem_;
  size_t group_size_;
  std::shared_ptr<CompiledKernel> kernel_;
};

}  // namespace compute::opencl
