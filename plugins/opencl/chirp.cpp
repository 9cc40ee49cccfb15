// SPDX-License-Identifier: Apache-2.0
#include "plugins/opencl/chirp.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <iterator>
#include <numbers>
#include <string>

namespace compute::opencl {
namespace {

constexpr int kMostLoops = 8;

// The argument of the kernel.
struct Places {
  int64_t count, length, first;
  int64_t offset[2], step[2];
  struct {
    int64_t extent, stride[2];
  } loops[kMostLoops];  // innermost first
};

// The kernel, with one item for each element. It reads arguments outside of branches and at fixed places: rusticl
// cannot read others.
std::string source_of(const ChirpProblem& problem) {
  std::string text = problem.is_double ? "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#define NUMBER double2\n"
                                       : "#define NUMBER float2\n";
  text += R"(
typedef struct {
  long count, length, first;
  long offset[2], step[2];
  struct { long extent, stride[2]; } loops[)" +
          std::to_string(kMostLoops) + R"(];
} Places;

__kernel void multiply_rows(__global const NUMBER* x, __global const NUMBER* chirp, __global NUMBER* y,
                            const Places p) {
  const uint i = (uint)get_global_id(0), count = (uint)p.count, row = i / (uint)p.length, k = i - row * (uint)p.length;
  long src = p.offset[0] + k * p.step[0], dst = p.offset[1] + k * p.step[1];
  uint rest = (uint)p.first + row, index;
)";
  for (int loop = 0; loop < problem.places.rank; ++loop) {
    const std::string it = "p.loops[" + std::to_string(loop) + "]";
    if (loop + 1 < problem.places.rank) {
      text += "  index = rest % (uint)" + it + ".extent;\n  rest /= (uint)" + it + ".extent;\n";
    } else {
      text += "  index = rest;\n";
    }
    text += "  src += index * " + it + ".stride[0];\n  dst += index * " + it + ".stride[1];\n";
  }
  return text + R"(  if (i >= count) return;
  const NUMBER a = x[src], b = chirp[k];
  y[dst] = (NUMBER)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
)";
}

// The length of a convolution that holds 2 length - 1 elements: with small factors, and a multiple of 64 if it is long.
int64_t length_of_convolution(int64_t length) {
  const int64_t step = length > 64 ? 64 : 1;
  int64_t longer = (2 * length - 1 + step - 1) / step * step;
  while (!has_small_factors(longer)) longer += step;
  return longer;
}

// exp(2 pi i e / n) for a position e in [0, n). The angle is reduced to an eighth of a turn in integers.
std::complex<double> root_of(int64_t e, int64_t n) {
  const int64_t quarter = (8 * e + n) / (2 * n);
  const double angle = static_cast<double>(4 * e - quarter * n) * (std::numbers::pi / 2 / static_cast<double>(n));
  const double c = std::cos(angle), s = std::sin(angle);
  const std::complex<double> turned[] = {{c, s}, {-s, c}, {-c, -s}, {s, -c}};
  return turned[quarter % 4];
}

std::complex<double> chirp_at(const ChirpProblem& problem, int64_t j) {
  const std::complex<double> root = root_of(j * j % (2 * problem.length), 2 * problem.length);
  return {root.real(), problem.sign * root.imag()};
}

template <class Real>
void store(const std::complex<double>& value, int64_t place, std::vector<char>& elements) {
  const Real parts[] = {static_cast<Real>(value.real()), static_cast<Real>(value.imag())};
  std::memcpy(&elements[static_cast<size_t>(place) * sizeof parts], parts, sizeof parts);
}

void store(const ChirpProblem& problem, const std::complex<double>& value, int64_t place, std::vector<char>& elements) {
  problem.is_double ? store<double>(value, place, elements) : store<float>(value, place, elements);
}

}  // namespace

bool has_small_factors(int64_t length) {
  for (const int64_t prime : {2, 3, 5, 7}) {
    while (length % prime == 0) length /= prime;
  }
  return length == 1;
}

std::optional<ChirpProblem> describe_chirp(const common::Op& op) {
  const compute_plugin_tensor &src = op.input(0), &dst = op.output(0);
  const std::span<const int64_t> given = op.integers("axes");
  std::optional<int32_t> axis;
  std::vector<int64_t> shape, strides[2];
  for (int32_t i = 0; i < src.rank; ++i) {
    if (src.shape[i] > 1 && std::find(given.begin(), given.end(), i) != given.end()) {
      if (axis) return std::nullopt;
      axis = i;
      continue;
    }
    shape.push_back(src.shape[i]);
    strides[0].push_back(src.strides[i]);
    strides[1].push_back(dst.strides[i]);
  }
  if (!axis || has_small_factors(src.shape[*axis])) return std::nullopt;
  ChirpProblem problem{};
  problem.length = src.shape[*axis];
  problem.longer = length_of_convolution(problem.length);
  const int64_t* const pointers[] = {strides[0].data(), strides[1].data()};
  problem.places = common::collapse(shape, pointers, 1);
  if (problem.places.rank > kMostLoops) return std::nullopt;
  problem.rows = problem.places.points();
  if (problem.rows > INT32_MAX) return std::nullopt;  // the kernel counts in 32 bits
  problem.step[0] = src.strides[*axis];
  problem.step[1] = dst.strides[*axis];
  const bool is_inverse = op.integer("inverse", 0) != 0;
  const std::string_view norm = op.text("norm");
  const auto count = static_cast<double>(problem.length);
  problem.sign = is_inverse ? 1 : -1;
  problem.scale = norm == "ortho" ? 1 / std::sqrt(count) : (norm == "forward") != is_inverse ? 1 / count : 1;
  problem.is_double = src.dtype == COMPUTE_DTYPE_COMPLEX128;
  return problem;
}

ChirpTables chirp_tables(const ChirpProblem& problem, int64_t copies) {
  const auto bytes = static_cast<size_t>(problem.element_bytes());
  const size_t row_bytes = static_cast<size_t>(problem.longer) * bytes;
  ChirpTables tables;
  tables.chirp.resize(static_cast<size_t>(problem.length) * bytes);
  tables.filter.resize(static_cast<size_t>(copies) * row_bytes);
  for (int64_t j = 0; j < problem.length; ++j) {
    const std::complex<double> w = chirp_at(problem, j), value = problem.scale * std::conj(w);
    store(problem, w, j, tables.chirp);
    store(problem, value, j, tables.filter);
    if (j > 0) store(problem, value, problem.longer - j, tables.filter);
  }
  for (size_t copy = 1; copy < static_cast<size_t>(copies); ++copy)
    std::memcpy(&tables.filter[copy * row_bytes], tables.filter.data(), row_bytes);
  return tables;
}

ChirpKernel::ChirpKernel(const Device& device, const ChirpProblem& problem, int64_t* out_compiled)
    : problem_(problem), group_size_(static_cast<size_t>(device.dialect().group_size)) {
  bool was_compiled = false;
  kernel_ = device.compile(source_of(problem), "multiply_rows", "", &was_compiled);
  *out_compiled += was_compiled ? 1 : 0;
}

void ChirpKernel::pack(cl_command_queue queue, const compute_plugin_operand& src, cl_mem chirp,
                       const compute_plugin_operand& packed, int64_t first, int64_t count) const {
  const compute_plugin_operand operands[] = {src, packed};
  enqueue(queue, operands, chirp, 1, first, count);
}

void ChirpKernel::unpack(cl_command_queue queue, const compute_plugin_operand& packed, cl_mem chirp,
                         const compute_plugin_operand& dst, int64_t first, int64_t count) const {
  const compute_plugin_operand operands[] = {packed, dst};
  enqueue(queue, operands, chirp, 0, first, count);
}

void ChirpKernel::enqueue(cl_command_queue queue, const compute_plugin_operand* operands, cl_mem chirp, int packed,
                          int64_t first, int64_t count) const {
  const common::LoopNest& nest = problem_.places;
  Places places{};
  places.count = count * problem_.length;
  places.length = problem_.length;
  places.first = first;
  for (int i = 0; i < 2; ++i) {
    const bool is_packed = i == packed;
    const auto tensor = static_cast<size_t>(1 - packed);  // the other operand's place in the loops
    places.offset[i] = operands[i].offset_bytes / problem_.element_bytes() +
                       (is_packed ? -first * problem_.longer : nest.offsets[tensor]);
    places.step[i] = is_packed ? 1 : problem_.step[tensor];
    int64_t inner = problem_.longer;
    for (int loop = 0; loop < nest.rank; ++loop) {
      const auto at = static_cast<size_t>(nest.rank - 1 - loop);
      places.loops[loop].extent = nest.extents[at];
      places.loops[loop].stride[i] = is_packed ? inner : nest.strides[tensor][at];
      inner *= nest.extents[at];
    }
  }
  const cl_mem src = memory_of(operands[0].buffer), dst = memory_of(operands[1].buffer);
  const size_t global_size = (static_cast<size_t>(places.count) + group_size_ - 1) / group_size_ * group_size_;
  const std::lock_guard lock(kernel_->mutex);
  const cl_kernel kernel = kernel_->kernel.get();
  check(api().clSetKernelArg(kernel, 0, sizeof src, &src), "clSetKernelArg");
  check(api().clSetKernelArg(kernel, 1, sizeof chirp, &chirp), "clSetKernelArg");
  check(api().clSetKernelArg(kernel, 2, sizeof dst, &dst), "clSetKernelArg");
  check(api().clSetKernelArg(kernel, 3, sizeof places, &places), "clSetKernelArg");
  check(kernel_->enqueue(queue, 1, &global_size, &group_size_), "clEnqueueNDRangeKernel");
}

}  // namespace compute::opencl
