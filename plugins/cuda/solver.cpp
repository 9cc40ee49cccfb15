// SPDX-License-Identifier: Apache-2.0
// cuSOLVER computes column-major copies of matrices, one after the other or, of eigenvalues and of small singular value
// decompositions, together. Kernels of this file make the copies and store the results. They also treat matrices as the
// other devices do: one with an infinity or NaN is replaced by the unit matrix, and its results are NaN; one without a
// result is reported.
#include "plugins/cuda/solver.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "plugins/common/driver/compiling.hpp"
#include "plugins/common/op/layout.hpp"
#include "plugins/cuda/dialect/dialect.hpp"
#include "plugins/cuda/graph.hpp"

namespace compute::cuda {
namespace {

using common::Op;
using common::Refusal;

// Of matrices that cuSOLVER computes one after the other; the host computes batches of smaller ones in less time.
constexpr int64_t kLeastRows = 128;
constexpr int64_t kLeastSvdRows = 256;          // of singular value decompositions, also of a single matrix
constexpr int64_t kJacobiRows = 32;             // up to which cuSOLVER has Jacobi's method for batches
constexpr int64_t kJacobiBatch = 64;            // from which this is faster than the host for singular values
constexpr int kBatchAxes = 4;                   // that kernels have loops for
constexpr int64_t kAlignment = 256;             // of arrays in the workspace
constexpr int64_t kMostElements = 900'000'000;  // of a matrix; cuSOLVER counts them in int
constexpr unsigned kGroup = 256;
constexpr int64_t kTile = 32;  // TILE of the kernels

// The kernels, for elements S of tensors that are computed as T, of which R is the real type. All parameters have 64
// bits.
constexpr const char* kSource = R"(
typedef long long i64;
#if __CUDA_ARCH__ >= 900
#define START() asm volatile("griddepcontrol.wait;" ::: "memory")
#else
#define START()
#endif
#if COMPLEX
__device__ bool finite(T x) { return isfinite(x.x) && isfinite(x.y); }
__device__ T number(R x) { T y; y.x = x; y.y = 0; return y; }
__device__ T conjugate(T x) { x.y = -x.y; return x; }
__device__ T computed(S x) { T y; y.x = x.x; y.y = x.y; return y; }
__device__ S stored(T x) { S y; y.x = x.x; y.y = x.y; return y; }
#else
__device__ bool finite(T x) { return isfinite(x); }
__device__ T number(R x) { return x; }
__device__ T conjugate(T x) { return x; }
__device__ T computed(S x) { return x; }
__device__ S stored(T x) { return x; }
#endif
#define EACH(i, total) \
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < total; i += (i64)gridDim.x * blockDim.x)
__device__ i64 place(i64 b, i64 e1, i64 e2, i64 e3, i64 s0, i64 s1, i64 s2, i64 s3) {
  i64 at = b % e3 * s3;
  b /= e3;
  at += b % e2 * s2;
  b /= e2;
  at += b % e1 * s1;
  return at + b / e1 * s0;
}

// Elements of a tile, neighbours of which are in threads side by side.
#define TILE 32
#define EACH_OF_TILE(x, y) for (int x = threadIdx.x % TILE, y = threadIdx.x / TILE; y < TILE; y += blockDim.x / TILE)

// Copies elements (i, j) of each matrix to column-major memory, those of a triangle alone if mode is 1 (lower) or 2.
extern "C" __global__ void compute_solver_load(const S* src, T* dst, int* flags, i64 tiles, i64 rows, i64 columns,
    i64 e1, i64 e2, i64 e3, i64 s0, i64 s1, i64 s2, i64 s3, i64 rs, i64 cs, i64 mode, i64 conj) {
  __shared__ T tile[TILE][TILE + 1];
  START();
  i64 down = (rows + TILE - 1) / TILE, along = (columns + TILE - 1) / TILE;
  for (i64 t = blockIdx.x; t < tiles; t += gridDim.x) {
    i64 b = t / (down * along), rest = t % (down * along), i0 = rest % down * TILE, j0 = rest / down * TILE;
    const S* matrix = src + place(b, e1, e2, e3, s0, s1, s2, s3);
    EACH_OF_TILE(x, y) {
      int row = cs == 1 ? y : x, column = cs == 1 ? x : y;
      i64 i = i0 + row, j = j0 + column;
      if (i >= rows || j >= columns) continue;
      T value = number(0);
      if (mode == 0 || (mode == 1 ? i >= j : i <= j)) value = computed(matrix[i * rs + j * cs]);
      if (!finite(value) && flags != 0) flags[b] = 1;
      tile[column][row] = conj ? conjugate(value) : value;
    }
    __syncthreads();
    EACH_OF_TILE(x, y) {
      i64 i = i0 + x, j = j0 + y;
      if (i < rows && j < columns) dst[(b * columns + j) * rows + i] = tile[y][x];
    }
    __syncthreads();
  }
}

// The unit matrix in place of those with a flag, or without flags in all.
extern "C" __global__ void compute_solver_unit(T* dst, const int* flags, i64 total, i64 rows, i64 columns) {
  START();
  EACH(at, total) {
    i64 b = at / (rows * columns), rest = at % (rows * columns);
    if (flags == 0 || flags[b] != 0) dst[at] = number(rest / rows == rest % rows ? 1 : 0);
  }
}

// Stores column-major results with `ld` rows and `size` elements, those of a triangle alone as above and 0 elsewhere.
// NaN if the matrix has a flag or no result.
extern "C" __global__ void compute_solver_store(const T* src, S* dst, const int* flags, const int* info, i64 tiles,
    i64 rows, i64 columns, i64 ld, i64 size, i64 e1, i64 e2, i64 e3, i64 s0, i64 s1, i64 s2, i64 s3, i64 rs, i64 cs,
    i64 mode, i64 conj) {
  __shared__ T tile[TILE][TILE + 1];
  START();
  i64 down = (rows + TILE - 1) / TILE, along = (columns + TILE - 1) / TILE;
  for (i64 t = blockIdx.x; t < tiles; t += gridDim.x) {
    i64 b = t / (down * along), rest = t % (down * along), i0 = rest % down * TILE, j0 = rest / down * TILE;
    int failed = flags[b] != 0 || (info != 0 && info[b] != 0);
    EACH_OF_TILE(x, y) {
      i64 i = i0 + x, j = j0 + y;
      if (i >= rows || j >= columns) continue;
      T value = src[b * size + j * ld + i];
      if (conj) value = conjugate(value);
      if (mode != 0 && (mode == 1 ? i < j : i > j)) value = number(0);
      if (failed) value = number((R)__int_as_float(0x7fffffff));
      tile[y][x] = value;
    }
    __syncthreads();
    S* matrix = dst + place(b, e1, e2, e3, s0, s1, s2, s3);
    EACH_OF_TILE(x, y) {
      int row = cs == 1 ? y : x, column = cs == 1 ? x : y;
      i64 i = i0 + row, j = j0 + column;
      if (i < rows && j < columns) matrix[i * rs + j * cs] = stored(tile[column][row]);
    }
    __syncthreads();
  }
}

// Pivots from 1 as pivots from 0; of a matrix with a flag, no exchanges.
extern "C" __global__ void compute_solver_pivots(const i64* src, i64* dst, const int* flags, i64 total, i64 rows,
    i64 e1, i64 e2, i64 e3, i64 s0, i64 s1, i64 s2, i64 s3, i64 rs) {
  START();
  EACH(at, total) {
    i64 b = at / rows, i = at % rows;
    dst[place(b, e1, e2, e3, s0, s1, s2, s3) + i * rs] = flags[b] != 0 ? i : src[at] - 1;
  }
}

// Reports the first matrix without a result that a thread finds.
extern "C" __global__ void compute_solver_report(const int* flags, const int* info, int* fault, i64 count, i64 code) {
  START();
  EACH(b, count) {
    if (info[b] == 0 || flags[b] != 0) continue;
    if (atomicCAS_system((unsigned*)fault + 8, 0u, 1u) != 0u) return;
    ((volatile int*)fault)[1] = 0;
    ((volatile i64*)fault)[1] = -1;
    ((volatile i64*)fault)[2] = 0;
    ((volatile i64*)fault)[3] = b;
    __threadfence_system();
    *(volatile int*)fault = (int)code;
  }
}
)";

enum KernelId { kLoad, kUnit, kStore, kPivots, kReport, kKernels };
constexpr const char* kKernelNames[kKernels] = {"compute_solver_load", "compute_solver_unit", "compute_solver_store",
                                                "compute_solver_pivots", "compute_solver_report"};

struct Type {
  int32_t data, real;  // of cuSOLVER
  int64_t size, real_size;
  const char* options;  // the definitions for the kernels
  uint64_t id;
};

#define COMPUTE_SOLVER_TYPES(S, T, R, is_complex) \
  "#define S " #S "\n#define T " #T "\n#define R " #R "\n#define COMPLEX " #is_complex "\n"

const Type& type_of(compute_dtype dtype) {
  static constexpr Type kTypes[] = {
      {CUDA_R_32F, CUDA_R_32F, 4, 4, COMPUTE_SOLVER_TYPES(float, float, float, 0), 0},
      {CUDA_R_64F, CUDA_R_64F, 8, 8, COMPUTE_SOLVER_TYPES(double, double, double, 0), 1},
      {CUDA_C_32F, CUDA_R_32F, 8, 4, COMPUTE_SOLVER_TYPES(float2, float2, float, 1), 2},
      {CUDA_C_64F, CUDA_R_64F, 16, 8, COMPUTE_SOLVER_TYPES(double2, double2, double, 1), 3}};
  return kTypes[dtype == COMPUTE_DTYPE_FLOAT32     ? 0
                : dtype == COMPUTE_DTYPE_FLOAT64   ? 1
                : dtype == COMPUTE_DTYPE_COMPLEX64 ? 2
                                                   : 3];
}

// Tensors in single precision that are computed in double precision.
const Type& wide_type_of(compute_dtype dtype) {
  static constexpr Type kTypes[] = {
      {CUDA_R_64F, CUDA_R_64F, 8, 8, COMPUTE_SOLVER_TYPES(float, double, double, 0), 4},
      {CUDA_C_64F, CUDA_R_64F, 16, 8, COMPUTE_SOLVER_TYPES(float2, double2, double, 1), 5}};
  return kTypes[dtype == COMPUTE_DTYPE_FLOAT32 ? 0 : 1];
}

compute_dtype real_of(compute_dtype dtype) {
  return dtype == COMPUTE_DTYPE_COMPLEX64    ? COMPUTE_DTYPE_FLOAT32
         : dtype == COMPUTE_DTYPE_COMPLEX128 ? COMPUTE_DTYPE_FLOAT64
                                             : dtype;
}

Error failure(cusolverStatus status, const char* what) {
  return Error(status == CUSOLVER_STATUS_ALLOC_FAILED ? COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY : COMPUTE_ERROR_INTERNAL,
               std::string("cuSOLVER failed while ") + what + ": status " + std::to_string(status), -1, status);
}

void require(cusolverStatus status, const char* what) {
  if (status != CUSOLVER_STATUS_SUCCESS) throw failure(status, what);
}

// ---- Operands -------------------------------------------------------------------------------------------------------

// How kernels find the matrices of an operand; strides in elements.
struct Place {
  std::array<int64_t, kBatchAxes> strides{};
  int64_t offset = 0, rows = 1, columns = 1, row_stride = 0, column_stride = 0;
};

struct Batch {
  std::array<int64_t, kBatchAxes> extents{1, 1, 1, 1};
  int64_t count = 1;
  std::vector<Place> places;  // by tensor
};

// How many of an operand's last axes belong to one matrix.
int32_t matrix_axes(const Op& op, int32_t tensor) {
  const int32_t output = tensor - op.input_count();
  if (output < 0) return 2;
  const std::string_view name = op.name();
  if (name == "eigh") return output == 0 ? 1 : 2;
  if (name == "svd") return op.output_count() == 1 || output == 1 ? 1 : 2;
  if (name == "lu") return output == 1 ? 1 : 2;
  return 2;
}

// Nothing if the batch has more loops than the kernels. The order of the matrices stays.
std::optional<Batch> describe(const Op& op) {
  Batch batch;
  const compute_plugin_tensor& first = op.input(0);
  const int32_t rank = first.rank - 2;
  std::vector<int64_t> axes;  // those of more than one matrix
  for (int32_t i = 0; i < rank; ++i) {
    if (first.shape[i] != 1) axes.push_back(i);
    batch.count *= first.shape[i];
  }
  if (axes.size() > kBatchAxes) return std::nullopt;
  const size_t skipped = kBatchAxes - axes.size();
  for (size_t i = 0; i < axes.size(); ++i) batch.extents[skipped + i] = first.shape[axes[i]];
  for (int32_t t = 0; t < op.tensor_count(); ++t) {
    const compute_plugin_tensor& tensor = op.tensor(t);
    const int32_t own = matrix_axes(op, t), at = tensor.rank - own;
    Place place;
    for (size_t i = 0; i < axes.size(); ++i) place.strides[skipped + i] = tensor.strides[axes[i]];
    place.rows = tensor.shape[at];
    place.row_stride = tensor.strides[at];
    if (own == 2) {
      place.columns = tensor.shape[at + 1];
      place.column_stride = tensor.strides[at + 1];
    }
    batch.places.push_back(place);
  }
  return batch;
}

// Arrays in the workspace, one behind the other.
class Room {
 public:
  int64_t take(int64_t bytes) {
    const int64_t at = bytes_;
    bytes_ += (std::max<int64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
    return at;
  }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

// ---- The plan -------------------------------------------------------------------------------------------------------

// Any pointer, for functions whose parameters are pointers to elements.
struct Untyped {
  void* pointer;
  template <class T>
  operator T*() const {
    return static_cast<T*>(pointer);
  }
};

enum class Kind { kCholesky, kEigh, kInverse, kLu, kQr, kSolve, kSvd };

std::optional<Kind> kind_of(std::string_view name) {
  static constexpr std::pair<std::string_view, Kind> kNames[] = {{"cholesky", Kind::kCholesky},
                                                                 {"eigh", Kind::kEigh},
                                                                 {"inv", Kind::kInverse},
                                                                 {"lu", Kind::kLu},
                                                                 {"qr", Kind::kQr},
                                                                 {"solve", Kind::kSolve},
                                                                 {"svd", Kind::kSvd}};
  for (const auto& [known, kind] : kNames) {
    if (name == known) return kind;
  }
  return std::nullopt;
}

class SolverPlan final : public Plan {
 public:
  SolverPlan(Device& device, const Op& op, Batch batch);

  void run(const compute_plugin_run& run, Stream& stream) const override;
  // Not asked for: the plan is not capturable.
  void add_to(GraphBuilder&, const compute_plugin_run&, const int32_t*) const override {
    throw Error(COMPUTE_ERROR_UNSUPPORTED, "graphs cannot contain calls of cuSOLVER");
  }

 private:
  // A run in progress.
  struct Run {
    const compute_plugin_run& run;
    Stream& stream;
    uint64_t workspace;

    uint64_t at(int64_t offset) const { return workspace + static_cast<uint64_t>(offset); }
    void* pointer(int64_t offset) const { return reinterpret_cast<void*>(at(offset)); }
  };

  uint64_t tensor(const Run& r, int32_t index) const {
    const compute_plugin_operand& operand = r.run.tensors[index];
    return operand.buffer + static_cast<uint64_t>(operand.offset_bytes);
  }
  const Kernel& kernel(Device& device, KernelId id, const Type& type);
  void start(const Run& r, const Kernel& kernel, int64_t total, const std::vector<uint64_t>& words) const;
  void load(const Run& r, int32_t tensor, int64_t to, bool has_flags, int64_t mode, bool is_adjoint) const;
  void store(const Run& r, int64_t from, int64_t leading, int64_t size, int32_t tensor, int64_t mode, bool is_adjoint,
             bool is_real, bool has_info) const;
  template <class F>
  auto with_jacobi(const F& call) const;
  void plan_eigh(Room& room);
  void plan_svd(Room& room);
  void compute(const Run& r, int64_t matrix) const;
  void compute_together(const Run& r) const;
  bool have_results(const Run& r) const;
  bool compute_polar(const Run& r) const;
  void append_batch(std::vector<uint64_t>& words, const Place& place) const;

  SolverHandle& handle_;
  const Kind kind_;
  const bool is_double_;  // of svd: in double precision, also of single precision
  const Type type_;
  const Batch batch_;
  const int32_t inputs_, outputs_;
  bool upper_ = false;
  bool is_wide_ = false;   // of svd: the adjoint is decomposed
  int64_t m_ = 1, n_ = 1;  // of the matrices that cuSOLVER gets
  int64_t count_ = 0;      // of right sides
  int64_t q_columns_ = 0;  // of qr
  int64_t u_columns_ = 0;  // of svd: of u as cuSOLVER stores it
  bool is_full_ = false;   // of svd: square factors
  bool is_jacobi_ = false, is_together_ = false;
  int jacobi_size_ = 0;  // elements
  int64_t a_ = 0, flags_ = 0, info_ = 0, b_ = 0, tau_ = 0, values_ = 0, vt_ = 0, pivots_ = 0, device_work_ = 0;
  size_t device_bytes_ = 0, host_bytes_ = 0;
  int orgqr_size_ = 0;
  const Kernel* kernels_[kKernels] = {};
  const Kernel* real_store_ = nullptr;
};

int64_t least(const Place& place) { return std::min(place.rows, place.columns); }

// Whether singular values in single precision are found in double precision. The polar decomposition perturbs a matrix
// of which the smallest singular value is about as large as the rounding of the largest one; with 1024 columns and more
// of random numbers that is so in single precision, and the next best method takes three times as long.
bool takes_double(const Device& device, const Op& op, const Batch& batch) {
  const compute_dtype dtype = op.input(0).dtype;
  const Place& matrix = batch.places[0];
  return op.name() == "svd" && (dtype == COMPUTE_DTYPE_FLOAT32 || dtype == COMPUTE_DTYPE_COMPLEX64) &&
         std::max(matrix.rows, matrix.columns) > kJacobiRows && device.info().has_fast_doubles;
}

int64_t tiles(int64_t rows, int64_t columns) { return (rows + kTile - 1) / kTile * ((columns + kTile - 1) / kTile); }

SolverPlan::SolverPlan(Device& device, const Op& op, Batch batch)
    : handle_(*device.solver()),
      kind_(*kind_of(op.name())),
      is_double_(takes_double(device, op, batch)),
      type_(is_double_ ? wide_type_of(op.input(0).dtype) : type_of(op.input(0).dtype)),
      batch_(std::move(batch)),
      inputs_(op.input_count()),
      outputs_(op.output_count()),
      upper_(op.integer("upper", 0) != 0),
      m_(batch_.places[0].rows),
      n_(batch_.places[0].columns) {
  const compute_dtype dtype = op.input(0).dtype;
  for (int id = 0; id < kKernels; ++id) kernels_[id] = &kernel(device, static_cast<KernelId>(id), type_);
  real_store_ = &kernel(device, kStore, is_double_ ? wide_type_of(real_of(dtype)) : type_of(real_of(dtype)));
  is_wide_ = kind_ == Kind::kSvd && m_ < n_;
  if (is_wide_) std::swap(m_, n_);
  const int64_t all = batch_.count, k = std::min(m_, n_);
  Room room;
  q_columns_ = kind_ == Kind::kQr ? batch_.places[1].columns : 0;
  a_ = room.take(all * m_ * std::max(n_, q_columns_) * type_.size);
  flags_ = room.take(all * 4);
  info_ = room.take(all * 4);
  const CusolverApi& api = cusolver()->api;
  const std::lock_guard lock(handle_.mutex());
  const cusolverDnHandle handle = handle_.get();
  const cusolverDnParams params = handle_.params();
  switch (kind_) {
    case Kind::kCholesky:
      require(api.potrf_buffer_size(handle, params, upper_ ? kFillUpper : kFillLower, n_, type_.data, nullptr, n_,
                                    type_.data, &device_bytes_, &host_bytes_),
              "asking for the size of a workspace");
      break;
    case Kind::kInverse:
    case Kind::kLu:
    case Kind::kSolve:
      count_ = kind_ == Kind::kInverse ? n_ : kind_ == Kind::kSolve ? batch_.places[1].columns : 0;
      b_ = room.take(all * n_ * count_ * type_.size);
      pivots_ = room.take(all * k * 8);
      require(api.getrf_buffer_size(handle, params, m_, n_, type_.data, nullptr, m_, type_.data, &device_bytes_,
                                    &host_bytes_),
              "asking for the size of a workspace");
      break;
    case Kind::kQr: {
      tau_ = room.take(all * k * type_.size);
      require(api.geqrf_buffer_size(handle, params, m_, n_, type_.data, nullptr, m_, type_.data, nullptr, type_.data,
                                    &device_bytes_, &host_bytes_),
              "asking for the size of a workspace");
      const int m = static_cast<int>(m_), columns = static_cast<int>(q_columns_), reflections = static_cast<int>(k);
      const auto ask = [&](auto function) {
        require(function(handle, m, columns, reflections, nullptr, m, nullptr, &orgqr_size_),
                "asking for the size of a workspace");
      };
      if (type_.data == CUDA_R_32F) ask(api.sorgqr_buffer_size);
      if (type_.data == CUDA_R_64F) ask(api.dorgqr_buffer_size);
      if (type_.data == CUDA_C_32F) ask(api.cungqr_buffer_size);
      if (type_.data == CUDA_C_64F) ask(api.zungqr_buffer_size);
      device_bytes_ = std::max(device_bytes_, static_cast<size_t>(orgqr_size_) * static_cast<size_t>(type_.size));
      break;
    }
    case Kind::kEigh:
      plan_eigh(room);
      break;
    case Kind::kSvd:
      plan_svd(room);
      break;
  }
  device_bytes_ = std::max(device_bytes_, static_cast<size_t>(jacobi_size_) * static_cast<size_t>(type_.size));
  device_work_ = room.take(static_cast<int64_t>(device_bytes_));
  workspace_bytes = room.bytes();
  reports_faults = true;
  flags = COMPUTE_PLUGIN_PLAN_NOT_CAPTURABLE;
}

// Calls `call` with the functions for the type: the size of the workspace for eigenvalues, eigenvalues, and the same of
// singular values.
template <class F>
auto SolverPlan::with_jacobi(const F& call) const {
  const CusolverApi& api = cusolver()->api;
  switch (type_.data) {
    case CUDA_R_32F:
      return call(api.s_eigh_buffer_size, api.s_eigh, api.s_svd_buffer_size, api.s_svd);
    case CUDA_R_64F:
      return call(api.d_eigh_buffer_size, api.d_eigh, api.d_svd_buffer_size, api.d_svd);
    case CUDA_C_32F:
      return call(api.c_eigh_buffer_size, api.c_eigh, api.c_svd_buffer_size, api.c_svd);
    default:
      return call(api.z_eigh_buffer_size, api.z_eigh, api.z_svd_buffer_size, api.z_svd);
  }
}

void SolverPlan::plan_eigh(Room& room) {
  const CusolverApi& api = cusolver()->api;
  const cusolverDnHandle handle = handle_.get();
  const int32_t mode = outputs_ == 2 ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR,
                triangle = upper_ ? kFillUpper : kFillLower;
  values_ = room.take(batch_.count * n_ * type_.real_size);
  is_jacobi_ = n_ <= kJacobiRows;
  is_together_ =
      !is_jacobi_ && batch_.count > 1 && api.syev_batched != nullptr && type_.data != CUDA_C_32F;  // see refuse_solver
  require(api.syevd_buffer_size(handle, handle_.params(), mode, triangle, n_, type_.data, nullptr, n_, type_.real,
                                nullptr, type_.data, &device_bytes_, &host_bytes_),
          "asking for the size of a workspace");
  if (is_jacobi_) {
    const int n = static_cast<int>(n_), count = static_cast<int>(batch_.count);
    require(with_jacobi([&](auto ask, auto, auto, auto) {
              return ask(handle, mode, triangle, n, nullptr, n, nullptr, &jacobi_size_, handle_.jacobi(), count);
            }),
            "asking for the size of a workspace");
  }
  if (!is_together_) return;
  size_t device_bytes = 0, host_bytes = 0;
  require(api.syev_batched_buffer_size(handle, handle_.params(), mode, triangle, n_, type_.data, nullptr, n_,
                                       type_.real, nullptr, type_.data, &device_bytes, &host_bytes, batch_.count),
          "asking for the size of a workspace");
  device_bytes_ = std::max(device_bytes_, device_bytes);
  host_bytes_ = std::max(host_bytes_, host_bytes);
}

void SolverPlan::plan_svd(Room& room) {
  const CusolverApi& api = cusolver()->api;
  const cusolverDnHandle handle = handle_.get();
  const int64_t all = batch_.count, k = std::min(m_, n_);
  const bool has_vectors = outputs_ == 3;
  const int32_t mode = has_vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
  is_full_ = has_vectors && (batch_.places[1].columns > k || batch_.places[3].rows > k);
  is_jacobi_ = m_ <= kJacobiRows;
  u_columns_ = is_full_ || is_jacobi_ ? m_ : k;
  values_ = room.take(all * k * type_.real_size);
  b_ = room.take(has_vectors ? all * m_ * u_columns_ * type_.size : 0);
  vt_ = room.take(has_vectors ? all * n_ * n_ * type_.size : 0);
  const signed char job = has_vectors ? (is_full_ ? 'A' : 'S') : 'N';
  require(
      api.gesvd_buffer_size(handle, handle_.params(), job, job, m_, n_, type_.data, nullptr, m_, type_.real, nullptr,
                            type_.data, nullptr, m_, type_.data, nullptr, n_, type_.data, &device_bytes_, &host_bytes_),
      "asking for the size of a workspace");
  if (is_jacobi_) {
    const int m = static_cast<int>(m_), n = static_cast<int>(n_), count = static_cast<int>(all);
    require(with_jacobi([&](auto, auto, auto ask, auto) {
              return ask(handle, mode, m, n, nullptr, m, nullptr, nullptr, m, nullptr, n, &jacobi_size_,
                         handle_.jacobi_svd(), count);
            }),
            "asking for the size of a workspace");
    return;
  }
  size_t device_bytes = 0, host_bytes = 0;
  require(api.gesvdp_buffer_size(handle, handle_.params(), mode, is_full_ ? 0 : 1, m_, n_, type_.data, nullptr, m_,
                                 type_.real, nullptr, type_.data, nullptr, m_, type_.data, nullptr, n_, type_.data,
                                 &device_bytes, &host_bytes),
          "asking for the size of a workspace");
  device_bytes_ = std::max(device_bytes_, device_bytes);
  host_bytes_ = std::max(host_bytes_, host_bytes);
}

const Kernel& SolverPlan::kernel(Device& device, KernelId id, const Type& type) {
  const common::KernelKey key = {0x636f6d707574655f,
                                 0x736f6c7665720000 + type.id * kKernels + static_cast<uint64_t>(id)};
  return device.kernels().get(
      key, compile_options(),
      [&] {
        return common::KernelSource{kKernelNames[id], std::string(type.options) + kSource};
      },
      &kernels_compiled);
}

void SolverPlan::start(const Run& r, const Kernel& kernel, int64_t total, const std::vector<uint64_t>& words) const {
  const int64_t groups = std::clamp<int64_t>((total + kGroup - 1) / kGroup, 1, 65'535);
  r.stream.note_launch(kernel.name.c_str());
  const CUresult result =
      launch(kernel, {static_cast<unsigned>(groups), kGroup, 0}, {words.data(), words.size()}, r.stream.handle());
  if (result != CUDA_SUCCESS) throw r.stream.break_off(r.stream.failure(result, "launching a kernel"));
}

void SolverPlan::append_batch(std::vector<uint64_t>& words, const Place& place) const {
  for (size_t i = 1; i < kBatchAxes; ++i) words.push_back(static_cast<uint64_t>(batch_.extents[i]));
  for (const int64_t stride : place.strides) words.push_back(static_cast<uint64_t>(stride));
}

void SolverPlan::load(const Run& r, int32_t tensor, int64_t to, bool has_flags, int64_t mode, bool is_adjoint) const {
  const Place& place = batch_.places[static_cast<size_t>(tensor)];
  const int64_t rows = is_adjoint ? place.columns : place.rows, columns = is_adjoint ? place.rows : place.columns;
  const int64_t total = batch_.count * rows * columns, all_tiles = batch_.count * tiles(rows, columns);
  std::vector<uint64_t> words = {this->tensor(r, tensor),      r.at(to),
                                 has_flags ? r.at(flags_) : 0, static_cast<uint64_t>(all_tiles),
                                 static_cast<uint64_t>(rows),  static_cast<uint64_t>(columns)};
  append_batch(words, place);
  words.push_back(static_cast<uint64_t>(is_adjoint ? place.column_stride : place.row_stride));
  words.push_back(static_cast<uint64_t>(is_adjoint ? place.row_stride : place.column_stride));
  words.push_back(static_cast<uint64_t>(mode));
  words.push_back(is_adjoint ? 1 : 0);
  start(r, *kernels_[kLoad], all_tiles * kGroup, words);
  if (!has_flags) return;
  start(r, *kernels_[kUnit], total,
        {r.at(to), r.at(flags_), static_cast<uint64_t>(total), static_cast<uint64_t>(rows),
         static_cast<uint64_t>(columns)});
}

// The columns of an adjoint are rows of the result.
void SolverPlan::store(const Run& r, int64_t from, int64_t leading, int64_t size, int32_t tensor, int64_t mode,
                       bool is_adjoint, bool is_real, bool has_info) const {
  const Place& place = batch_.places[static_cast<size_t>(tensor)];
  const int64_t rows = is_adjoint ? place.columns : place.rows, columns = is_adjoint ? place.rows : place.columns;
  const int64_t all_tiles = batch_.count * tiles(rows, columns);
  std::vector<uint64_t> words = {r.at(from), this->tensor(r, tensor), r.at(flags_), has_info ? r.at(info_) : 0};
  for (const int64_t number : {all_tiles, rows, columns, leading, size}) words.push_back(static_cast<uint64_t>(number));
  append_batch(words, place);
  words.push_back(static_cast<uint64_t>(is_adjoint ? place.column_stride : place.row_stride));
  words.push_back(static_cast<uint64_t>(is_adjoint ? place.row_stride : place.column_stride));
  words.push_back(static_cast<uint64_t>(mode));
  words.push_back(is_adjoint ? 1 : 0);
  start(r, is_real ? *real_store_ : *kernels_[kStore], all_tiles * kGroup, words);
}

// One matrix, after its copy.
void SolverPlan::compute(const Run& r, int64_t matrix) const {
  const CusolverApi& api = cusolver()->api;
  const cusolverDnHandle handle = handle_.get();
  const cusolverDnParams params = handle_.params();
  const int64_t k = std::min(m_, n_);
  std::vector<char> host(host_bytes_);
  void* const a = r.pointer(a_ + matrix * m_ * (kind_ == Kind::kQr ? std::max(n_, q_columns_) : n_) * type_.size);
  void* const work = r.pointer(device_work_);
  auto* const info = static_cast<int*>(r.pointer(info_ + matrix * 4));
  switch (kind_) {
    case Kind::kCholesky:
      require(api.potrf(handle, params, upper_ ? kFillUpper : kFillLower, n_, type_.data, a, n_, type_.data, work,
                        device_bytes_, host.data(), host_bytes_, info),
              "factoring a matrix");
      break;
    case Kind::kInverse:
    case Kind::kLu:
    case Kind::kSolve: {
      auto* const pivots = static_cast<int64_t*>(r.pointer(pivots_ + matrix * k * 8));
      require(api.getrf(handle, params, m_, n_, type_.data, a, m_, pivots, type_.data, work, device_bytes_, host.data(),
                        host_bytes_, info),
              "factoring a matrix");
      if (count_ == 0) break;
      // This call has its own answer, which says nothing of the matrix.
      auto* const ignored = static_cast<int*>(r.pointer(device_work_));
      require(api.getrs(handle, params, CUBLAS_OP_N, n_, count_, type_.data, a, n_, pivots, type_.data,
                        r.pointer(b_ + matrix * n_ * count_ * type_.size), n_, ignored),
              "solving a system");
      break;
    }
    case Kind::kQr: {
      void* const tau = r.pointer(tau_ + matrix * k * type_.size);
      require(api.geqrf(handle, params, m_, n_, type_.data, a, m_, type_.data, tau, type_.data, work, device_bytes_,
                        host.data(), host_bytes_, info),
              "factoring a matrix");
      break;
    }
    case Kind::kEigh:
      require(api.syevd(handle, params, outputs_ == 2 ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR,
                        upper_ ? kFillUpper : kFillLower, n_, type_.data, a, n_, type_.real,
                        r.pointer(values_ + matrix * n_ * type_.real_size), type_.data, work, device_bytes_,
                        host.data(), host_bytes_, info),
              "finding eigenvalues");
      break;
    case Kind::kSvd: {
      const bool has_vectors = outputs_ == 3;
      const signed char job = has_vectors ? (is_full_ ? 'A' : 'S') : 'N';
      require(api.gesvd(handle, params, job, job, m_, n_, type_.data, a, m_, type_.real,
                        r.pointer(values_ + matrix * k * type_.real_size), type_.data,
                        has_vectors ? r.pointer(b_ + matrix * m_ * u_columns_ * type_.size) : nullptr, m_, type_.data,
                        has_vectors ? r.pointer(vt_ + matrix * n_ * n_ * type_.size) : nullptr, n_, type_.data, work,
                        device_bytes_, host.data(), host_bytes_, info),
              "finding singular values");
      break;
    }
  }
  // Work on the host's memory may go on after the call.
  if (host_bytes_ > 0) check(cu.stream_synchronize(r.stream.handle()), "waiting for cuSOLVER");
}

// All matrices, after their copies.
void SolverPlan::compute_together(const Run& r) const {
  const cusolverDnHandle handle = handle_.get();
  const int32_t mode = outputs_ > 1 ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR,
                triangle = upper_ ? kFillUpper : kFillLower;
  auto* const info = static_cast<int*>(r.pointer(info_));
  if (is_together_) {
    std::vector<char> host(host_bytes_);
    require(cusolver()->api.syev_batched(handle, handle_.params(), mode, triangle, n_, type_.data, r.pointer(a_), n_,
                                         type_.real, r.pointer(values_), type_.data, r.pointer(device_work_),
                                         device_bytes_, host.data(), host_bytes_, info, batch_.count),
            "finding eigenvalues");
    if (host_bytes_ > 0) check(cu.stream_synchronize(r.stream.handle()), "waiting for cuSOLVER");
    return;
  }
  const Untyped a{r.pointer(a_)}, values{r.pointer(values_)}, work{r.pointer(device_work_)};
  const int m = static_cast<int>(m_), n = static_cast<int>(n_), count = static_cast<int>(batch_.count);
  if (kind_ == Kind::kEigh) {
    require(with_jacobi([&](auto, auto eigh, auto, auto) {
              return eigh(handle, mode, triangle, n, a, n, values, work, jacobi_size_, info, handle_.jacobi(), count);
            }),
            "finding eigenvalues");
    return;
  }
  // Without vectors their pointers are not used.
  const Untyped u{r.pointer(b_)}, v{r.pointer(vt_)};
  require(with_jacobi([&](auto, auto, auto, auto svd) {
            return svd(handle, mode, m, n, a, m, values, u, m, v, n, work, jacobi_size_, info, handle_.jacobi_svd(),
                       count);
          }),
          "finding singular values");
}

// Whether cuSOLVER found a result for each matrix. Jacobi's method sometimes fails for matrices that other methods
// decompose.
bool SolverPlan::have_results(const Run& r) const {
  std::vector<int> info(static_cast<size_t>(batch_.count));
  check(cu.memcpy_dtoh_async(info.data(), r.at(info_), info.size() * sizeof(int), r.stream.handle()), "reading memory");
  check(cu.stream_synchronize(r.stream.handle()), "waiting for cuSOLVER");
  return std::all_of(info.begin(), info.end(), [](int number) { return number == 0; });
}

// Singular values by polar decompositions, which is the fastest method, but perturbs matrices that are nearly singular.
// Returns whether it perturbed none, or by less than the rounding of the results.
bool SolverPlan::compute_polar(const Run& r) const {
  const bool has_vectors = outputs_ == 3;
  const int64_t k = std::min(m_, n_);
  std::vector<char> host(host_bytes_);
  std::vector<double> perturbations(static_cast<size_t>(batch_.count));
  for (int64_t i = 0; i < batch_.count; ++i) {
    require(cusolver()->api.gesvdp(handle_.get(), handle_.params(),
                                   has_vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR,
                                   is_full_ ? 0 : 1, m_, n_, type_.data, r.pointer(a_ + i * m_ * n_ * type_.size), m_,
                                   type_.real, r.pointer(values_ + i * k * type_.real_size), type_.data,
                                   r.pointer(b_ + i * m_ * u_columns_ * type_.size), m_, type_.data,
                                   r.pointer(vt_ + i * n_ * n_ * type_.size), n_, type_.data, r.pointer(device_work_),
                                   device_bytes_, host.data(), host_bytes_, static_cast<int*>(r.pointer(info_ + i * 4)),
                                   &perturbations[static_cast<size_t>(i)]),
            "finding singular values");
  }
  check(cu.stream_synchronize(r.stream.handle()), "waiting for cuSOLVER");
  for (int64_t i = 0; i < batch_.count; ++i) {
    const double size = perturbations[static_cast<size_t>(i)];
    if (size == 0) continue;
    if (!is_double_) return false;
    double greatest = 0;
    check(cu.memcpy_dtoh_async(&greatest, r.at(values_ + i * k * type_.real_size), sizeof greatest, r.stream.handle()),
          "reading memory");
    check(cu.stream_synchronize(r.stream.handle()), "waiting for a copy");
    if (!(size <= greatest * std::numeric_limits<float>::epsilon() / 4)) return false;
  }
  return true;
}

void SolverPlan::run(const compute_plugin_run& given, Stream& stream) const {
  const Run r{given, stream, given.workspace.buffer + static_cast<uint64_t>(given.workspace.offset_bytes)};
  const int64_t k = std::min(m_, n_), all = batch_.count;
  const int32_t first = inputs_;  // output
  const auto clear = [&](int64_t at) {
    check(cu.memset_d32_async(r.at(at), 0, static_cast<size_t>(all), stream.handle()), "clearing memory");
  };
  clear(flags_);
  clear(info_);
  const bool reads_triangle = kind_ == Kind::kCholesky || kind_ == Kind::kEigh;
  load(r, 0, a_, true, reads_triangle ? (upper_ ? 2 : 1) : 0, is_wide_);
  if (kind_ == Kind::kSolve) load(r, 1, b_, false, 0, false);
  if (kind_ == Kind::kInverse) {
    const int64_t total = all * n_ * n_;
    start(r, *kernels_[kUnit], total,
          {r.at(b_), 0, static_cast<uint64_t>(total), static_cast<uint64_t>(n_), static_cast<uint64_t>(n_)});
  }
  bool has_adjoint = false;  // of svd: cuSOLVER stored the adjoint of v
  const std::lock_guard lock(handle_.mutex());
  try {
    require(cusolver()->api.set_stream(handle_.get(), stream.handle()), "choosing a stream");
    // The fastest method, and if it has failed for one of the matrices, a method that takes all.
    bool is_done = false;
    const bool is_one_by_one = !is_jacobi_ && !is_together_ && kind_ != Kind::kSvd;
    if (is_jacobi_ || is_together_) {
      compute_together(r);
      is_done = have_results(r);
    } else if (kind_ == Kind::kSvd) {
      is_done = compute_polar(r);
    }
    has_adjoint = !is_done;
    if (!is_done) {
      if (!is_one_by_one) {
        clear(info_);
        load(r, 0, a_, true, reads_triangle ? (upper_ ? 2 : 1) : 0, is_wide_);
      }
      for (int64_t i = 0; i < all; ++i) compute(r, i);
    }
    if (kind_ == Kind::kQr) {
      // r is stored before q takes its place.
      store(r, a_, m_, m_ * std::max(n_, q_columns_), first + 1, 2, false, false, false);
      const CusolverApi& api = cusolver()->api;
      const int m = static_cast<int>(m_), columns = static_cast<int>(q_columns_), reflections = static_cast<int>(k);
      for (int64_t i = 0; i < all; ++i) {
        void* const a = r.pointer(a_ + i * m_ * std::max(n_, q_columns_) * type_.size);
        const void* const tau = r.pointer(tau_ + i * k * type_.size);
        void* const work = r.pointer(device_work_);
        auto* const info = static_cast<int*>(r.pointer(info_ + i * 4));
        const cusolverDnHandle handle = handle_.get();
        cusolverStatus status = CUSOLVER_STATUS_SUCCESS;
        if (type_.data == CUDA_R_32F) {
          status = api.sorgqr(handle, m, columns, reflections, static_cast<float*>(a), m,
                              static_cast<const float*>(tau), static_cast<float*>(work), orgqr_size_, info);
        } else if (type_.data == CUDA_R_64F) {
          status = api.dorgqr(handle, m, columns, reflections, static_cast<double*>(a), m,
                              static_cast<const double*>(tau), static_cast<double*>(work), orgqr_size_, info);
        } else if (type_.data == CUDA_C_32F) {
          status = api.cungqr(handle, m, columns, reflections, a, m, tau, work, orgqr_size_, info);
        } else {
          status = api.zungqr(handle, m, columns, reflections, a, m, tau, work, orgqr_size_, info);
        }
        require(status, "making an orthogonal factor");
      }
    }
  } catch (const Error& error) {
    throw stream.break_off(error);
  }
  int64_t code = COMPUTE_PLUGIN_FAULT_NONE;
  switch (kind_) {
    case Kind::kCholesky:
      code = COMPUTE_PLUGIN_FAULT_NOT_POSITIVE_DEFINITE;
      store(r, a_, n_, n_ * n_, first, upper_ ? 2 : 1, false, false, true);
      break;
    case Kind::kInverse:
    case Kind::kSolve:
      code = COMPUTE_PLUGIN_FAULT_SINGULAR;
      store(r, b_, n_, n_ * count_, first, 0, false, false, true);
      break;
    case Kind::kLu: {
      store(r, a_, m_, m_ * n_, first, 0, false, false, false);
      const Place& place = batch_.places[static_cast<size_t>(first + 1)];
      std::vector<uint64_t> words = {r.at(pivots_), tensor(r, first + 1), r.at(flags_), static_cast<uint64_t>(all * k),
                                     static_cast<uint64_t>(k)};
      append_batch(words, place);
      words.push_back(static_cast<uint64_t>(place.row_stride));
      start(r, *kernels_[kPivots], all * k, words);
      break;
    }
    case Kind::kQr:
      store(r, a_, m_, m_ * std::max(n_, q_columns_), first, 0, false, false, false);
      break;
    case Kind::kEigh:
      code = COMPUTE_PLUGIN_FAULT_NOT_CONVERGED;
      store(r, values_, n_, n_, first, 0, false, true, true);
      if (outputs_ == 2) store(r, a_, n_, n_ * n_, first + 1, 0, false, false, true);
      break;
    case Kind::kSvd: {
      code = COMPUTE_PLUGIN_FAULT_NOT_CONVERGED;
      store(r, values_, k, k, outputs_ == 1 ? first : first + 1, 0, false, true, true);
      if (outputs_ == 1) break;
      // Of the adjoint, the factors change their places.
      store(r, b_, m_, m_ * u_columns_, is_wide_ ? first + 2 : first, 0, is_wide_, false, true);
      store(r, vt_, n_, n_ * n_, is_wide_ ? first : first + 2, 0, has_adjoint == is_wide_, false, true);
      break;
    }
  }
  if (code == COMPUTE_PLUGIN_FAULT_NONE) return;
  const uint64_t fault = given.fault.buffer != 0 ? given.fault.buffer + static_cast<uint64_t>(given.fault.offset_bytes)
                                                 : reinterpret_cast<uintptr_t>(stream.memory().fault_record);
  start(r, *kernels_[kReport], all,
        {r.at(flags_), r.at(info_), fault, static_cast<uint64_t>(all), static_cast<uint64_t>(code)});
}

}  // namespace

SolverHandle::SolverHandle() {
  const common::Compiling compiling;
  const CusolverApi& api = cusolver()->api;
  cusolverStatus status = api.create(&handle_);
  if (status == CUSOLVER_STATUS_SUCCESS) status = api.create_params(&params_);
  if (status == CUSOLVER_STATUS_SUCCESS) status = api.create_jacobi(&jacobi_);
  if (status == CUSOLVER_STATUS_SUCCESS) status = api.create_jacobi_svd(&jacobi_svd_);
  if (status == CUSOLVER_STATUS_SUCCESS) return;
  destroy();
  throw failure(status, "opening a device");
}

void SolverHandle::destroy() {
  const CusolverApi& api = cusolver()->api;
  if (jacobi_svd_ != nullptr) api.destroy_jacobi_svd(jacobi_svd_);
  if (jacobi_ != nullptr) api.destroy_jacobi(jacobi_);
  if (params_ != nullptr) api.destroy_params(params_);
  if (handle_ != nullptr) api.destroy(handle_);
}

bool is_solver_op(const Op& op) {
  return kind_of(op.name()) || op.name() == "eig" || op.name() == "expm" || op.name() == "triangular_solve";
}

std::optional<Refusal> refuse_solver(Device& device, const Op& op) {
  const auto refused = [&](const std::string& why) {
    return Refusal{COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, -1, std::string(op.name()) + ": " + why, ""};
  };
  const std::optional<Kind> kind = kind_of(op.name());
  if (!kind) return refused("cuSOLVER has no such function");
  const compute_dtype dtype = op.input(0).dtype;
  if (dtype != COMPUTE_DTYPE_FLOAT32 && dtype != COMPUTE_DTYPE_FLOAT64 && !common::is_complex(dtype))
    return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, 0,
                   std::string(op.name()) + ": cuSOLVER has no " + common::dtype_name(dtype), ""};
  if (std::optional<Refusal> refusal = common::refuse_unaligned(op)) return refusal;
  const std::optional<Batch> batch = describe(op);
  if (!batch) return Refusal{COMPUTE_PLUGIN_REFUSE_RANK, 0, std::string(op.name()) + ": more than 4 batch axes", ""};
  for (const Place& place : batch->places) {
    if (place.rows > kMostElements || place.columns > kMostElements || place.rows * place.columns > kMostElements)
      return refused("a matrix has more than 900,000,000 elements");
  }
  const Place& first = batch->places[0];
  if (least(first) == 0) return refused("empty matrices");
  const bool is_jacobi = std::max(first.rows, first.columns) <= kJacobiRows && batch->count >= kJacobiBatch;
  if (*kind == Kind::kSvd && !is_jacobi && least(first) < kLeastSvdRows)
    return refused("the host is faster for matrices of less than 256 rows or columns");
  // The methods for batches fail compute-cts in complex64: for some matrices they do not converge (cuSOLVER 12.0).
  if (*kind == Kind::kEigh && dtype == COMPUTE_DTYPE_COMPLEX64 && least(first) < kLeastRows)
    return refused("cuSOLVER does not converge for some matrices of less than 128 rows");
  if (*kind != Kind::kSvd && *kind != Kind::kEigh && batch->count > 1 && least(first) < kLeastRows)
    return refused("the host is faster for batches of matrices of less than 128 rows or columns");
  if (batch->count > INT32_MAX) return refused("more than 2147483647 matrices");
  if (*kind == Kind::kQr && batch->places[1].columns > batch->places[0].columns && batch->count > 1)
    return refused("complete factors of a batch");
  if (nvrtc() == nullptr) return refused("NVRTC was not found");
  if (cusolver() == nullptr) {
    const LibraryReport report = cusolver_report();
    return Refusal{COMPUTE_PLUGIN_REFUSE_LIBRARY_MISSING, -1,
                   std::string(op.name()) + ": cuSOLVER was not found: tried " + tried_in_short(report), report.remedy};
  }
  if (device.solver() == nullptr) return refused("cuSOLVER does not support the device");
  return std::nullopt;
}

std::unique_ptr<Plan> prepare_solver(Device& device, const Op& op) {
  return std::make_unique<SolverPlan>(device, op, *describe(op));
}

}  // namespace compute::cuda
