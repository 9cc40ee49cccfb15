// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/matmul.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>
#include <utility>

#include "plugins/common/driver/compiling.hpp"
#include "plugins/common/op/matrix_product.hpp"
#include "plugins/common/source/generator.hpp"
#include "plugins/common/source/products/ops.hpp"
#include "plugins/cuda/graph.hpp"

namespace compute::cuda {
namespace {

using common::kA;
using common::kAddend;
using common::kB;
using common::kC;
using common::kOperands;
using common::MatrixProduct;
using common::Op;
using common::Refusal;

constexpr size_t kMaxWorkspaceBytes = size_t{32} << 20;
constexpr int64_t kMostCalls = 256;                  // of cuBLASLt for one contraction with several batch axes
constexpr double kPackingPaysFrom = 64.0 * 64 * 64;  // products of a contraction
constexpr double kMapPaysFrom = 128.0 * 128 * 128;   // the same, for a separate map after the product
constexpr int64_t kLeastTerms = 128;                 // of a product in parts; with fewer, cuBLASLt is faster
constexpr int64_t kLeastSide = 64;                   // its rows and columns
constexpr double kCopiesPayFrom = 3e9;               // products in parts of operands without vectors
constexpr int32_t kBiasInput = 3;
constexpr int32_t kBiasAlignment = 16;

struct Types {
  int32_t data;  // of a and b
  int32_t compute;
  int32_t scale;
};

std::optional<Types> types_of(const Op& op) {
  const int32_t float32 = op.fast_math()     ? CUBLAS_COMPUTE_32F_FAST_16BF
                          : op.allows_tf32() ? CUBLAS_COMPUTE_32F_FAST_TF32
                                             : CUBLAS_COMPUTE_32F;
  switch (op.input(0).dtype) {
    case COMPUTE_DTYPE_FLOAT16:
      return Types{CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F};
    case COMPUTE_DTYPE_BFLOAT16:
      return Types{CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F};
    case COMPUTE_DTYPE_FLOAT32:
      return Types{CUDA_R_32F, float32, CUDA_R_32F};
    case COMPUTE_DTYPE_FLOAT64:
      return Types{CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F};
    case COMPUTE_DTYPE_COMPLEX64:
      return Types{CUDA_C_32F, float32, CUDA_C_32F};
    case COMPUTE_DTYPE_COMPLEX128:
      return Types{CUDA_C_64F, CUBLAS_COMPUTE_64F, CUDA_C_64F};
    default:
      return std::nullopt;
  }
}

template <auto Destroy, class T>
class Owned {
 public:
  Owned() = default;
  ~Owned() {
    if (value != nullptr) (cublas_lt()->api.*Destroy)(value);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  T value = nullptr;
};

Error failure(cublasStatus status, const char* what) {
  return Error(status == CUBLAS_STATUS_ALLOC_FAILED ? COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY : COMPUTE_ERROR_INTERNAL,
               std::string("cuBLASLt failed while ") + what + ": " + cublas_lt()->api.get_status_string(status), -1,
               status);
}

void require(cublasStatus status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) throw failure(status, what);
}

// Whether cuBLASLt can add the bias as the op does: in the computation's dtype, before the result is rounded, with one
// value per row of c. Generated kernels and maps compute activations, because they keep the ops' bounds and relu's
// NaN.
bool takes_bias(const Op& op, const MatrixProduct& placed) {
  const compute_dtype dtype = op.output(0).dtype;
  const bool has_dtype =
      dtype == COMPUTE_DTYPE_FLOAT32 || dtype == COMPUTE_DTYPE_FLOAT16 || dtype == COMPUTE_DTYPE_BFLOAT16;
  if (!has_dtype || op.expression_count() != 0 || placed.argument[kA] != 1 || placed.placed[kC].transposed)
    return false;
  const compute_plugin_tensor& bias = op.input(kBiasInput);
  if (bias.alignment < kBiasAlignment) return false;
  const int32_t last = bias.rank - 1;
  for (int32_t axis = 0; axis <= last; ++axis) {
    if (bias.shape[axis] != 1 && bias.strides[axis] != (axis == last ? 1 : 0)) return false;
  }
  return true;
}

class MatmulPlan final : public Plan {
 public:
  MatmulPlan(const BlasHandle& handle, const Op& op, const MatrixProduct& problem, const Types& types);

  // False if cuBLASLt knows no algorithm.
  bool find_algorithm(const Op& op, const Types& types);

  void run(const compute_plugin_run& run, Stream& stream) const override;
  void add_to(GraphBuilder& graph, const compute_plugin_run& run, const int32_t* slots) const override;

 private:
  int64_t alignment(const Op& op, int operand) const;

  const BlasHandle& handle_;
  const MatrixProduct problem_;
  const bool is_widened_;  // c is float32, and a and b are halves
  const int64_t element_bytes_[kOperands];
  const bool is_scaled_, has_bias_;
  const int32_t tensor_count_, scalar_count_;
  int32_t tensor_[kOperands];  // of the run
  void set_bias(uint64_t address) const;
  cublasStatus multiply(const compute_plugin_run& run, const void* alpha, const void* beta,
                        const uint64_t (&at)[kOperands], void* workspace, Stream& stream) const;

  Owned<&CublasLtApi::matmul_desc_destroy, cublasLtMatmulDesc> description_;
  mutable std::mutex mutex_;  // guards the address of the bias in the description
  Owned<&CublasLtApi::matrix_layout_destroy, cublasLtMatrixLayout> layouts_[kOperands];
  cublasLtMatmulAlgo algorithm_{};
  compute_plugin_scalar one_{};
};

MatmulPlan::MatmulPlan(const BlasHandle& handle, const Op& op, const MatrixProduct& problem, const Types& types)
    : handle_(handle),
      problem_(problem),
      is_widened_(op.input(0).dtype != op.output(0).dtype),
      element_bytes_{common::dtype_size(op.input(0).dtype), common::dtype_size(op.input(1).dtype),
                     common::dtype_size(op.output(0).dtype), common::dtype_size(op.output(0).dtype)},
      is_scaled_(op.integer("scaled", 0) == 1),
      has_bias_(common::is_given(op, kBiasInput)),
      tensor_count_(op.tensor_count()),
      scalar_count_(op.scalar_count()) {
  const CublasLtApi& api = cublas_lt()->api;
  for (int i = 0; i < kOperands; ++i) tensor_[i] = problem_.argument[i];
  tensor_[kC] = op.input_count();
  if (!problem_.has_addend) tensor_[kAddend] = tensor_[kC];
  if (types.scale == CUDA_R_64F || types.scale == CUDA_C_64F) {
    const double one = 1;
    std::memcpy(one_.bits, &one, sizeof one);
  } else {
    const float one = 1;
    std::memcpy(one_.bits, &one, sizeof one);
  }
  require(api.matmul_desc_create(&description_.value, types.compute, types.scale), "describing a product");
  for (const auto& [operand, attribute] :
       {std::pair{kA, CUBLASLT_MATMUL_DESC_TRANSA}, {kB, CUBLASLT_MATMUL_DESC_TRANSB}}) {
    const int32_t operation = problem_.placed[operand].transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    require(api.matmul_desc_set_attribute(description_.value, attribute, &operation, sizeof operation),
            "describing a product");
  }
  if (has_bias_) {
    const int32_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    require(
        api.matmul_desc_set_attribute(description_.value, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue),
        "describing a product");
    set_bias(kBiasAlignment);  // without an address cuBLASLt finds no algorithm
  }
  const std::pair<int64_t, int64_t> extents[kOperands] = {
      {problem_.m, problem_.k}, {problem_.k, problem_.n}, {problem_.m, problem_.n}, {problem_.m, problem_.n}};
  for (int i = 0; i < kOperands; ++i) {
    auto [rows, columns] = extents[i];
    if (problem_.placed[i].transposed) std::swap(rows, columns);
    const int32_t data = is_widened_ && i >= kC ? CUDA_R_32F : types.data;
    require(api.matrix_layout_create(&layouts_[i].value, data, static_cast<uint64_t>(rows),
                                     static_cast<uint64_t>(columns), problem_.placed[i].leading),
            "describing a matrix");
    if (problem_.batch.rank == 0) continue;
    const auto count = static_cast<int32_t>(problem_.batch.extents[0]);
    const int64_t stride = problem_.batch.strides[static_cast<size_t>(i)][0];
    require(
        api.matrix_layout_set_attribute(layouts_[i].value, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
        "describing a batch");
    require(api.matrix_layout_set_attribute(layouts_[i].value, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                            sizeof stride),
            "describing a batch");
  }
}

void MatmulPlan::set_bias(uint64_t address) const {
  require(cublas_lt()->api.matmul_desc_set_attribute(description_.value, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &address,
                                                     sizeof address),
          "describing a bias");
}

// A power of two that divides the address of the operand in every call.
int64_t MatmulPlan::alignment(const Op& op, int operand) const {
  uint64_t bits = static_cast<uint64_t>(op.tensor(tensor_[operand]).alignment);
  const auto at = static_cast<size_t>(operand);
  bits |= static_cast<uint64_t>(problem_.batch.offsets[at] * element_bytes_[operand]);
  for (int loop = 0; loop < problem_.batch.rank; ++loop) {
    bits |= static_cast<uint64_t>(problem_.batch.strides[at][static_cast<size_t>(loop)] * element_bytes_[operand]);
  }
  return bits == 0 ? 64 : int64_t{1} << std::countr_zero(bits);
}

bool MatmulPlan::find_algorithm(const Op& op, const Types& types) {
  const CublasLtApi& api = cublas_lt()->api;
  Owned<&CublasLtApi::matmul_preference_destroy, cublasLtMatmulPreference> preference;
  require(api.matmul_preference_create(&preference.value), "stating preferences");
  const auto prefer = [&](int32_t attribute, auto value) {
    require(api.matmul_preference_set_attribute(preference.value, attribute, &value, sizeof value),
            "stating preferences");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kMaxWorkspaceBytes});
  for (const auto& [operand, attribute] : {std::pair{kA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES},
                                           {kB, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES},
                                           {kAddend, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES},
                                           {kC, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}}) {
    prefer(attribute, static_cast<uint32_t>(alignment(op, operand)));
  }
  // Halves round once: partial sums are added in float32.
  if (types.data == CUDA_R_16F || types.data == CUDA_R_16BF) {
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  }
  std::array<cublasLtMatmulHeuristicResult, 4> results{};
  int found = 0;
  const cublasStatus status = api.matmul_algo_get_heuristic(
      handle_.get(), description_.value, layouts_[kA].value, layouts_[kB].value, layouts_[kAddend].value,
      layouts_[kC].value, preference.value, static_cast<int>(results.size()), results.data(), &found);
  if (status != CUBLAS_STATUS_SUCCESS) return false;
  for (int i = 0; i < found; ++i) {
    const cublasLtMatmulHeuristicResult& result = results[static_cast<size_t>(i)];
    if (result.state != CUBLAS_STATUS_SUCCESS || result.workspaceSize > kMaxWorkspaceBytes) continue;
    algorithm_ = result.algo;
    workspace_bytes = static_cast<int64_t>(result.workspaceSize);
    return true;
  }
  return false;
}

cublasStatus MatmulPlan::multiply(const compute_plugin_run& run, const void* alpha, const void* beta,
                                  const uint64_t (&at)[kOperands], void* workspace, Stream& stream) const {
  const auto pointer = [](uint64_t address) { return reinterpret_cast<void*>(static_cast<uintptr_t>(address)); };
  std::unique_lock<std::mutex> lock(mutex_, std::defer_lock);
  if (has_bias_) {
    const compute_plugin_operand& bias = run.tensors[kBiasInput];
    lock.lock();
    set_bias(bias.buffer + static_cast<uint64_t>(bias.offset_bytes));
  }
  return cublas_lt()->api.matmul(handle_.get(), description_.value, alpha, pointer(at[kA]), layouts_[kA].value,
                                 pointer(at[kB]), layouts_[kB].value, beta, pointer(at[kAddend]),
                                 layouts_[kAddend].value, pointer(at[kC]), layouts_[kC].value, &algorithm_, workspace,
                                 static_cast<size_t>(workspace_bytes), stream.handle());
}

void MatmulPlan::run(const compute_plugin_run& run, Stream& stream) const {
  static constexpr compute_plugin_scalar kZero{};
  // cuBLASLt reads complex numbers by aligned accesses; a run's scalars have no alignment.
  alignas(16) uint8_t factors[2][16];
  std::memcpy(factors[0], is_scaled_ ? run.scalars[0].bits : one_.bits, sizeof factors[0]);
  std::memcpy(factors[1], problem_.has_addend ? run.scalars[1].bits : kZero.bits, sizeof factors[1]);
  uint64_t base[kOperands];
  for (int i = 0; i < kOperands; ++i) {
    const compute_plugin_operand& operand = run.tensors[tensor_[i]];
    base[i] =
        operand.buffer + static_cast<uint64_t>(operand.offset_bytes +
                                               problem_.batch.offsets[static_cast<size_t>(i)] * element_bytes_[i]);
  }
  const uint64_t given = run.workspace.buffer + static_cast<uint64_t>(run.workspace.offset_bytes);
  void* const workspace = workspace_bytes > 0 ? reinterpret_cast<void*>(static_cast<uintptr_t>(given)) : nullptr;
  std::array<int64_t, common::kMaxRank> index{};
  for (bool is_first = true;; is_first = false) {
    uint64_t at[kOperands];
    for (int i = 0; i < kOperands; ++i) {
      int64_t elements = 0;
      for (int loop = 1; loop < problem_.batch.rank; ++loop) {
        elements += index[static_cast<size_t>(loop)] *
                    problem_.batch.strides[static_cast<size_t>(i)][static_cast<size_t>(loop)];
      }
      at[i] = base[i] + static_cast<uint64_t>(elements * element_bytes_[i]);
    }
    stream.note_launch("cublasLtMatmul");
    const cublasStatus status = multiply(run, factors[0], factors[1], at, workspace, stream);
    if (status != CUBLAS_STATUS_SUCCESS) [[unlikely]] {
      const Error error = failure(status, "multiplying");
      throw is_first ? error : stream.break_off(error);
    }
    int loop = problem_.batch.rank - 1;
    while (loop >= 1 && ++index[static_cast<size_t>(loop)] == problem_.batch.extents[static_cast<size_t>(loop)]) {
      index[static_cast<size_t>(loop--)] = 0;
    }
    if (loop < 1) return;
  }
}

void MatmulPlan::add_to(GraphBuilder& graph, const compute_plugin_run& run, const int32_t* slots) const {
  graph.capture(*this, run, tensor_count_, scalar_count_, slots);
}

// One line, once, for those who wonder where the speed is.
void report_missing_library() {
  static std::atomic<bool> told{false};
  if (told.exchange(true)) return;
  const LibraryReport report = cublas_lt_report();
  common::log(COMPUTE_LOG_WARNING, "load",
              "matrix products on cuda use a generated kernel, because cuBLASLt was not found: tried " +
                  tried_in_short(report) + "; " + report.remedy);
}

// Whether vectors of 16 bytes of a float32 operand can be copied.
bool has_vectors(const Op& op, const MatrixProduct& problem, int operand) {
  constexpr int64_t kBytes = 16, kElements = kBytes / int64_t{sizeof(float)};
  return op.input(problem.argument[operand]).alignment % kBytes == 0 &&
         std::max(std::abs(problem.row[operand]), std::abs(problem.column[operand])) % kElements == 0;
}

// Products of float32 that fill tiles of matrix units.
bool is_faster_in_parts(const Device& device, const Op& op, const MatrixProduct& problem) {
  if (!device.dialect().has_tile_units || op.allows_tf32()) return false;
  if (op.input(0).dtype != COMPUTE_DTYPE_FLOAT32 || std::min(problem.m, problem.n) < kLeastSide ||
      problem.k < kLeastTerms)
    return false;
  const double products =
      static_cast<double>(problem.m) * static_cast<double>(problem.n) * static_cast<double>(problem.k);
  if (problem.batches() == 1 && products < kCopiesPayFrom && !has_vectors(op, problem, kA) &&
      !has_vectors(op, problem, kB))
    return false;
  // Those of places of 64 bits have none.
  return common::plan_launches(op, device.dialect()).launches.front().local_bytes > 0;
}

}  // namespace

BlasHandle::BlasHandle() {
  const common::Compiling compiling;
  require(cublas_lt()->api.create(&handle_), "opening a device");
}

BlasHandle::~BlasHandle() { cublas_lt()->api.destroy(handle_); }

MatmulVerdict judge_matmul(Device& device, const Op& op) {
  MatmulVerdict verdict;
  const compute_dtype dtype = op.input(0).dtype, result = op.output(0).dtype;
  if (!types_of(op)) {
    verdict.reason = std::string("cuBLASLt does not support ") + common::dtype_name(dtype);
    return verdict;
  }
  const bool is_half = dtype == COMPUTE_DTYPE_FLOAT16 || dtype == COMPUTE_DTYPE_BFLOAT16;
  const bool is_widened = is_half && result == COMPUTE_DTYPE_FLOAT32 && op.input_count() == 2;
  for (int32_t i = 0; i < op.input_count(); ++i) {
    if (i >= 2 && !common::is_given(op, i)) continue;
    if (op.input(i).rank >= 2 && op.input(i).dtype == dtype && (result == dtype || is_widened)) continue;
    verdict.reason = "the operands differ in dtype, or have fewer than two axes";
    return verdict;
  }
  MatrixProduct problem = common::read_product(op);
  if (is_faster_in_parts(device, op, problem)) {
    verdict.reason = "a generated kernel is faster, which uses the device's TF32 units";
    return verdict;
  }
  if (common::has_few_lines(op, device.dialect())) {
    verdict.reason = "a generated kernel is faster for a few rows or columns along the depth";
    return verdict;
  }
  if (cublas_lt() == nullptr) {
    report_missing_library();
    verdict.reason = "cuBLASLt was not found: tried " + tried_in_short(cublas_lt_report());
    return verdict;
  }
  if (device.blas() == nullptr) {
    verdict.reason = "cuBLASLt does not support the device";
    return verdict;
  }
  const double products = static_cast<double>(problem.m) * static_cast<double>(problem.n) *
                          static_cast<double>(problem.k) * static_cast<double>(problem.batches());
  const bool has_bias = common::is_given(op, kBiasInput);
  const bool is_bare = op.expression_count() == 0 && !has_bias;
  const int misplaced = common::place_operands(problem);
  // Batches that are one product with many rows are no longer batches here.
  const bool is_one = problem.batches() == 1;
  const int64_t widest = std::max(is_one ? std::min(problem.m, problem.n) : std::max(problem.m, problem.n), problem.k);
  if (widest <= (is_half && !is_one ? 16 : 8) && common::is_of_small_matrices(op, device.dialect())) {
    verdict.reason = "a generated kernel is faster for many small matrices";
    return verdict;
  }
  // A generated kernel does it all in one launch; where cuBLASLt is faster without the epilogue, core adds a map.
  if (!is_bare && products < kMapPaysFrom) {
    verdict.reason = "a generated kernel is faster for a small product with an epilogue";
    return verdict;
  }
  if (op.expression_count() != 0 || (has_bias && misplaced < 0 && !takes_bias(op, problem))) {
    verdict.reason = op.expression_count() != 0 ? "cuBLASLt does not apply the activation as the op does"
                                                : "cuBLASLt does not add such a bias";
    verdict.refusal = Refusal{COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, -1, "contraction: " + verdict.reason, ""};
    return verdict;
  }
  if (misplaced >= 0) {
    verdict.reason = "an operand's strides cannot be expressed as a leading dimension";
    const int32_t argument = problem.argument[misplaced];
    if (argument >= 0 && products >= kPackingPaysFrom) {
      verdict.refusal = Refusal{COMPUTE_PLUGIN_REFUSE_LAYOUT, argument, "contraction: " + verdict.reason, ""};
    }
    return verdict;
  }
  const int64_t calls = problem.batch.rank > 0 ? problem.batches() / problem.batch.extents[0] : 1;
  if (calls > kMostCalls) {
    verdict.reason = "the batch axes would require " + std::to_string(calls) + " calls";
    return verdict;
  }
  verdict.is_taken = true;
  return verdict;
}

std::unique_ptr<Plan> prepare_matmul(Device& device, const Op& op) {
  MatrixProduct problem = common::read_product(op);
  common::place_operands(problem);
  const Types types = *types_of(op);
  auto plan = std::make_unique<MatmulPlan>(*device.blas(), op, problem, types);
  return plan->find_algorithm(op, types) ? std::move(plan) : nullptr;
}

}  // namespace compute::cuda
