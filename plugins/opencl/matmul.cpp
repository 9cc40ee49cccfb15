// SPDX-License-Identifier: Apache-2.0
#include "plugins/opencl/matmul.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

#include "plugins/common/driver/compiling.hpp"
#include "plugins/common/driver/own_stack.hpp"
#include "plugins/common/driver/program_store.hpp"
#include "plugins/common/op/core.hpp"
#include "plugins/common/op/matrix_product.hpp"
#include "plugins/common/source/generator.hpp"
#include "plugins/opencl/clblast.hpp"

namespace compute::opencl {
namespace {

using common::kA;
using common::kB;
using common::kC;
using common::MatrixProduct;
using common::Op;

constexpr int kMatrices = 3;
constexpr int64_t kMostCalls = 256;           // for one contraction with several batch axes
constexpr int64_t kFarthest = INT32_MAX / 2;  // elements: its kernels count in int

template <class Scalar>
struct Routines;
#define PRECISION(letter, scalar)                                                            \
  template <>                                                                                \
  struct Routines<scalar> {                                                                  \
    static constexpr auto kGemm = &ClblastApi::CLBlast##letter##gemmWithTempBuffer;          \
    static constexpr auto kBatched = &ClblastApi::CLBlast##letter##gemmStridedBatched;       \
    static constexpr auto kTemporarySize = &ClblastApi::CLBlast##letter##GemmTempBufferSize; \
    static constexpr const char* kName = #letter "gemm";                                     \
  };
PRECISION(H, uint16_t)
PRECISION(S, float)
PRECISION(D, double)
PRECISION(C, ComplexFloat)
PRECISION(Z, ComplexDouble)
#undef PRECISION

template <class Scalar>
Scalar number(float value) {
  if constexpr (std::is_same_v<Scalar, uint16_t>) {
    const auto half = static_cast<_Float16>(value);
    uint16_t bits;
    std::memcpy(&bits, &half, sizeof bits);
    return bits;
  } else if constexpr (std::is_floating_point_v<Scalar>) {
    return value;
  } else {
    return {{value, 0}};
  }
}

// A run's scalar; scalars of float16 products are float32.
template <class Scalar>
Scalar scalar_of(const compute_plugin_scalar& scalar) {
  if constexpr (std::is_same_v<Scalar, uint16_t>) {
    float value;
    std::memcpy(&value, scalar.bits, sizeof value);
    return number<Scalar>(value);
  } else {
    Scalar value;
    std::memcpy(&value, scalar.bits, sizeof value);
    return value;
  }
}

common::Error clblast_error(cl_int status, const char* what) {
  const bool is_memory = status == CL_MEM_OBJECT_ALLOCATION_FAILURE || status == CL_OUT_OF_RESOURCES;
  return common::Error(is_memory ? COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY : COMPUTE_ERROR_INTERNAL,
                       std::string("CLBlast failed while ") + what + ": " + status_text(status), -1, status);
}

cl_uint flag(const common::PlacedMatrix& matrix) {
  return matrix.transposed ? CLBlastTransposeYes : CLBlastTransposeNo;
}

// CLBlast's kernels for small products accept any offset and stride and need no memory, so they compute whole batches.
// Its kernels for larger products ignore offsets and strides of matrices that already have their layout, so each matrix
// of a batch is a separate call, with our workspace.
template <class Scalar>
class ClblastPlan final : public Plan {
 public:
  ClblastPlan(Device& device, const Op& op, MatrixProduct product)
      : product_(std::move(product)),
        is_scaled_(op.integer("scaled", 0) == 1),
        alignment_(device.info().base_alignment) {
    flags = COMPUTE_PLUGIN_PLAN_NOT_CAPTURABLE;
    for (int i = 0; i < kMatrices; ++i) tensor_[i] = i == kC ? op.input_count() : product_.argument[i];
    const MatrixProduct& p = product_;
    cl_command_queue queue = device.queue();
    const std::lock_guard lock(clblast_mutex());
    // With offsets, which force every copy that it may have to make.
    const cl_int status = (clblast()->*Routines<Scalar>::kTemporarySize)(
        CLBlastLayoutColMajor, flag(p.placed[kA]), flag(p.placed[kB]), static_cast<size_t>(p.m),
        static_cast<size_t>(p.n), static_cast<size_t>(p.k), 1, leading(kA), 1, leading(kB), 1, leading(kC), &queue,
        &temporary_bytes_);
    if (status != CL_SUCCESS) throw clblast_error(status, "querying the size of temporary memory");
    // A workspace begins at a multiple of less than a sub-buffer does.
    if (temporary_bytes_ > 0) workspace_bytes = static_cast<int64_t>(temporary_bytes_) + alignment_;
  }

  int64_t calls() const {
    const bool in_batches = temporary_bytes_ == 0 && product_.batch.rank > 0;
    return product_.batches() / (in_batches ? product_.batch.extents[0] : 1);
  }
  bool needs_workspace() const { return temporary_bytes_ > 0; }

  void run(const compute_plugin_run& run, Stream& stream) const override {
    if (has_run_.load(std::memory_order_acquire)) return run_now(stream, run);
    // The driver may compile for these sizes, on its own threads.
    common::with_enough_stack([&] {
      const common::Compiling compiling;
      run_now(stream, run);
      static_cast<void>(api().clFinish(stream.queue()));  // waits report the error
    });
    has_run_.store(true, std::memory_order_release);
  }

 private:
  void run_now(Stream& stream, const compute_plugin_run& run) const {
    cl_command_queue queue = stream.queue();
    const MatrixProduct& p = product_;
    std::vector<Memory> views;  // commands retain the objects that they use
    cl_mem memory[kMatrices];
    int64_t base[kMatrices];
    for (int i = 0; i < kMatrices; ++i) {
      const compute_plugin_operand& operand = run.tensors[tensor_[i]];
      int64_t offset_bytes = operand.offset_bytes;
      memory[i] = memory_of(operand.buffer);
      if (offset_bytes / size() > kFarthest) {
        const int64_t begin = offset_bytes / alignment_ * alignment_;
        memory[i] = view(views, memory[i], begin, buffer_of(operand.buffer)->size_bytes - begin);
        offset_bytes -= begin;
      }
      base[i] = offset_bytes / size() + p.batch.offsets[static_cast<size_t>(i)];
    }
    cl_mem temporary = nullptr;
    if (needs_workspace()) {
      const int64_t begin = (run.workspace.offset_bytes + alignment_ - 1) / alignment_ * alignment_;
      temporary = memory_of(run.workspace.buffer);
      if (begin > 0) temporary = view(views, temporary, begin, static_cast<int64_t>(temporary_bytes_));
    }
    const Scalar alpha = is_scaled_ ? scalar_of<Scalar>(run.scalars[0]) : number<Scalar>(1), beta = number<Scalar>(0);
    const auto m = static_cast<size_t>(p.m), n = static_cast<size_t>(p.n), k = static_cast<size_t>(p.k);
    const bool in_batches = !needs_workspace() && p.batch.rank > 0;
    const int first = in_batches ? 1 : 0;
    std::array<int64_t, common::kMaxRank> index{};
    std::unique_lock lock(clblast_mutex());
    for (int64_t calls_made = 0;; ++calls_made) {
      size_t at[kMatrices];
      for (int i = 0; i < kMatrices; ++i) {
        int64_t elements = base[i];
        for (int loop = first; loop < p.batch.rank; ++loop)
          elements += index[static_cast<size_t>(loop)] * stride(i, loop);
        at[i] = static_cast<size_t>(elements);
      }
      cl_int status = CL_SUCCESS;
      if (in_batches) {
        const auto step = [&](int i) { return static_cast<size_t>(stride(i, 0)); };
        status = (clblast()->*Routines<Scalar>::kBatched)(
            CLBlastLayoutColMajor, flag(p.placed[kA]), flag(p.placed[kB]), m, n, k, alpha, memory[kA], at[kA],
            leading(kA), step(kA), memory[kB], at[kB], leading(kB), step(kB), beta, memory[kC], at[kC], leading(kC),
            step(kC), static_cast<size_t>(p.batch.extents[0]), &queue, nullptr);
      } else {
        status = (clblast()->*Routines<Scalar>::kGemm)(CLBlastLayoutColMajor, flag(p.placed[kA]), flag(p.placed[kB]), m,
                                                       n, k, alpha, memory[kA], at[kA], leading(kA), memory[kB], at[kB],
                                                       leading(kB), beta, memory[kC], at[kC], leading(kC), &queue,
                                                       nullptr, temporary);
      }
      if (status != CL_SUCCESS) {
        lock.unlock();
        // A call with a workspace is one of several kernels.
        const common::Error error = clblast_error(status, "multiplying");
        throw calls_made > 0 || needs_workspace() ? stream.break_off(error) : error;
      }
      int loop = p.batch.rank - 1;
      while (loop >= first && ++index[static_cast<size_t>(loop)] == p.batch.extents[static_cast<size_t>(loop)]) {
        index[static_cast<size_t>(loop--)] = 0;
      }
      if (loop < first) return;
    }
  }

  mutable std::atomic<bool> has_run_{false};
  static constexpr int64_t size() { return sizeof(Scalar); }
  size_t leading(int i) const { return static_cast<size_t>(product_.placed[i].leading); }
  int64_t stride(int i, int loop) const {
    return product_.batch.strides[static_cast<size_t>(i)][static_cast<size_t>(loop)];
  }

  static cl_mem view(std::vector<Memory>& views, cl_mem memory, int64_t begin, int64_t size_bytes) {
    const size_t region[2] = {static_cast<size_t>(begin), static_cast<size_t>(size_bytes)};
    cl_int status = CL_SUCCESS;
    views.emplace_back(
        api().clCreateSubBuffer(memory, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, region, &status));
    check(status, "clCreateSubBuffer");
    return views.back().get();
  }

  const MatrixProduct product_;
  const bool is_scaled_;
  const int64_t alignment_;
  int32_t tensor_[kMatrices];
  size_t temporary_bytes_ = 0;
};

// Compiles the kernels of a precision's routines in advance; otherwise their first calls would. The status is kept per
// device.
template <class Scalar>
cl_int warm_up(Device& device, bool batched, int64_t* out_compiled) {
  const std::lock_guard lock(clblast_mutex());
  std::optional<cl_int>& known =
      device.clblast_status[std::string(Routines<Scalar>::kName) + (batched ? " batched" : "")];
  if (known) return *known;
  const auto start = std::chrono::steady_clock::now();
  cl_command_queue queue = device.queue();
  const Memory memory = device.make_memory(256);
  const auto one = number<Scalar>(1), zero = number<Scalar>(0);
  const uint64_t pattern = 0;
  check(api().clEnqueueFillBuffer(queue, memory.get(), &pattern, sizeof pattern, 0, 256, 0, nullptr, nullptr),
        "clEnqueueFillBuffer");
  const cl_mem m = memory.get();
  common::with_enough_stack([&] {
    const common::Compiling compiling;
    if (batched) {
      known = (clblast()->*Routines<Scalar>::kBatched)(CLBlastLayoutColMajor, CLBlastTransposeNo, CLBlastTransposeNo, 1,
                                                       1, 1, one, m, 0, 1, 1, m, 2, 1, 1, zero, m, 4, 1, 1, 1, &queue,
                                                       nullptr);
    } else {
      known = (clblast()->*Routines<Scalar>::kGemm)(CLBlastLayoutColMajor, CLBlastTransposeNo, CLBlastTransposeNo, 1, 1,
                                                    1, one, m, 0, 1, m, 2, 1, zero, m, 4, 1, &queue, nullptr, nullptr);
    }
    check(api().clFinish(queue), "clFinish");
  });
  ++*out_compiled;
  const auto taken = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
  common::log(COMPUTE_LOG_DEBUG, "compile",
              std::string("CLBlast's ") + Routines<Scalar>::kName + (batched ? " in batches" : "") + " on " +
                  device.info().name + ": " +
                  (*known == CL_SUCCESS ? std::to_string(taken.count()) + " ms" : status_text(*known)));
  return *known;
}

template <class Scalar>
std::unique_ptr<Plan> make_plan(Device& device, const Op& op, const MatrixProduct& product) {
  int64_t compiled = 0;
  if (warm_up<Scalar>(device, false, &compiled) != CL_SUCCESS) return nullptr;
  auto plan = std::make_unique<ClblastPlan<Scalar>>(device, op, product);
  if (plan->calls() > kMostCalls && !plan->needs_workspace()) return nullptr;
  if (product.batch.rank > 0 && !plan->needs_workspace() && warm_up<Scalar>(device, true, &compiled) != CL_SUCCESS)
    return nullptr;
  plan->kernels_compiled = compiled;
  return plan;
}

enum class Choice : uint8_t { kAuto, kClblast, kGenerated };

Choice choice() {
  const std::optional<std::string> text = common::setting("COMPUTE_OPENCL_MATMUL");
  if (text == "clblast") return Choice::kClblast;
  return text == "generated" ? Choice::kGenerated : Choice::kAuto;
}

// Whether every place in the matrices can be said in CLBlast's terms.
bool can_be_said(const Op& op, const MatrixProduct& p) {
  if (std::min({p.m, p.n, p.k, p.batches()}) < 1 || std::max({p.m, p.n, p.k}) > kFarthest) return false;
  const std::pair<int64_t, int64_t> extents[kMatrices] = {{p.m, p.k}, {p.k, p.n}, {p.m, p.n}};
  for (int i = 0; i < kMatrices; ++i) {
    const compute_plugin_tensor& tensor = i == kC ? op.output(0) : op.input(p.argument[i]);
    if (tensor.alignment < common::dtype_size(tensor.dtype)) return false;
    const auto [rows, columns] = extents[i];
    int64_t reach = p.placed[i].leading * (p.placed[i].transposed ? rows : columns);
    for (int loop = 0; loop < p.batch.rank; ++loop) {
      reach += std::llabs(p.batch.strides[static_cast<size_t>(i)][static_cast<size_t>(loop)]) *
               (p.batch.extents[static_cast<size_t>(loop)] - 1);
    }
    if (reach > kFarthest) return false;
  }
  return true;
}

bool has_one_dtype(const Op& op) {
  const compute_dtype dtype = op.output(0).dtype;
  for (int32_t i = 0; i < 2; ++i) {
    if (op.input(i).dtype != dtype || op.input(i).rank < 2) return false;
  }
  const compute_dtype scalar = dtype == COMPUTE_DTYPE_FLOAT16 ? COMPUTE_DTYPE_FLOAT32 : dtype;
  return op.integer("scaled", 0) != 1 || op.scalar_dtype(0) == scalar;
}

// One line, once, for those who wonder where the speed is.
void report_missing_library() {
  static std::atomic<bool> told{false};
  if (told.exchange(true)) return;
  const LibraryReport report = clblast_report();
  std::string tried = report.tried;
  std::replace(tried.begin(), tried.end(), '\n', ' ');
  common::log(COMPUTE_LOG_WARNING, "load",
              "matrix products on opencl use a generated kernel, because CLBlast was not found: tried " + tried + " (" +
                  report.error + "); install CLBlast (Debian: libclblast1)");
}

std::unique_ptr<Plan> make_plan(Device& device, const Op& op, const MatrixProduct& product) {
  switch (op.output(0).dtype) {
    case COMPUTE_DTYPE_FLOAT16:
      return make_plan<uint16_t>(device, op, product);
    case COMPUTE_DTYPE_FLOAT32:
      return make_plan<float>(device, op, product);
    case COMPUTE_DTYPE_FLOAT64:
      return make_plan<double>(device, op, product);
    case COMPUTE_DTYPE_COMPLEX64:
      return make_plan<ComplexFloat>(device, op, product);
    default:
      return make_plan<ComplexDouble>(device, op, product);
  }
}

// ---- Trials ---------------------------------------------------------------------------------------------------------

// CLBlast's kernels for large products are the ones that are tuned per device. It has none for vectors and for products
// with a short side, and those for small ones are simple.
constexpr int64_t kLeastSide = 512;
constexpr double kWinningShare = 0.9;  // of the generated kernel's time: for less it is not worth a library

bool is_large(const MatrixProduct& product) { return std::min({product.m, product.n, product.k}) >= kLeastSide; }

// A product of two square matrices, of the dtype and the mathematics of another op.
class TrialOp {
 public:
  explicit TrialOp(const Op& like) : description_(like.description()) {
    std::fill_n(tensors_, kMatrices, like.output(0));
    for (compute_plugin_tensor& tensor : tensors_) {
      tensor.rank = 2;
      tensor.shape = kShape;
      tensor.strides = kStrides;
      tensor.alignment = 64;
    }
    description_.input_count = 2;
    description_.output_count = 1;
    description_.tensors = tensors_;
    description_.attribute_count = description_.expression_count = description_.scalar_count = 0;
  }
  TrialOp(const TrialOp&) = delete;
  TrialOp& operator=(const TrialOp&) = delete;

  Op op() const { return Op(&description_); }
  int64_t matrix_bytes() const { return kSide * kSide * common::dtype_size(tensors_[0].dtype); }

 private:
  static constexpr int64_t kSide = 1024, kShape[] = {kSide, kSide}, kStrides[] = {kSide, 1};

  compute_plugin_op description_;
  compute_plugin_tensor tensors_[kMatrices];
};

// Seconds that each of the plans takes, the least of a few times in turn. The matrices are zero.
std::array<double, 2> time_plans(Device& device, const TrialOp& trial, const std::array<const Plan*, 2>& plans) {
  constexpr int kTimes = 3;
  std::array<Buffer, kMatrices> buffers;
  std::array<compute_plugin_operand, kMatrices> operands{};
  cl_command_queue queue = device.queue();
  for (size_t i = 0; i < kMatrices; ++i) {
    buffers[i] = {device.make_memory(trial.matrix_bytes()), trial.matrix_bytes()};
    operands[i].buffer = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(&buffers[i]));
    const uint64_t zero = 0;
    check(api().clEnqueueFillBuffer(queue, buffers[i].memory.get(), &zero, sizeof zero, 0,
                                    static_cast<size_t>(trial.matrix_bytes()), 0, nullptr, nullptr),
          "clEnqueueFillBuffer");
  }
  Buffer workspace;
  workspace.size_bytes = std::max(plans[0]->workspace_bytes, plans[1]->workspace_bytes);
  if (workspace.size_bytes > 0) workspace.memory = device.make_memory(workspace.size_bytes);
  check(api().clFinish(queue), "clFinish");
  compute_plugin_run run{};
  run.struct_size = sizeof run;
  run.struct_type = COMPUTE_PLUGIN_STRUCT_RUN;
  run.tensors = operands.data();
  run.tensor_count = kMatrices;
  run.workspace.buffer = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(&workspace));
  run.workspace_bytes = workspace.size_bytes;
  Stream stream(&device);
  const Stream::Submitting submitting(stream);
  std::array<double, 2> least{};
  for (int turn = 0; turn <= kTimes; ++turn) {  // the first may compile
    for (size_t i = 0; i < plans.size(); ++i) {
      const auto start = std::chrono::steady_clock::now();
      plans[i]->run(run, stream);
      check(api().clFinish(stream.queue()), "clFinish");
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      if (turn == 1 || (turn > 1 && taken.count() < least[i])) least[i] = taken.count();
    }
  }
  return least;
}

// Whether CLBlast wins for large products of the dtype of `like`. It is tried once: the cache on disk keeps the result
// for the device, its driver, the library and the text of the generated kernel.
bool wins_trial(Device& device, const Op& like) {
  const compute_dtype dtype = like.output(0).dtype;
  const std::lock_guard lock(device.trials_mutex);
  const auto [known, is_new] = device.clblast_wins.try_emplace({dtype, like.fast_math()}, false);
  if (!is_new) return known->second;
  const std::string what = std::string("products of ") + common::dtype_name(dtype) + " on " + device.info().name;
  try {
    const TrialOp trial(like);
    const Op op = trial.op();
    const common::LaunchPlan plan = common::plan_launches(op, device.dialect());
    const std::string text = common::kernel_source(op, device.dialect(), plan.launches[0]).text;
    const std::string model = device.info().model(), driver = device.info().driver();
    const std::string what_is_kept = "trial\n" + clblast_report().found;
    const common::ProgramKey key{"opencl", text, model, driver, what_is_kept};
    if (const std::optional<std::string> kept = common::load_program(key)) return known->second = *kept == "CLBlast";
    MatrixProduct product = common::read_product(op);
    common::place_operands(product);
    const std::unique_ptr<Plan> library_plan = make_plan(device, op, product);
    std::string line = "CLBlast does not compile";
    if (library_plan != nullptr) {
      const std::unique_ptr<Plan> generated_plan = prepare_generated(device, op);
      const auto [by_kernel, by_library] = time_plans(device, trial, {generated_plan.get(), library_plan.get()});
      known->second = by_library <= kWinningShare * by_kernel;
      char times[96];
      std::snprintf(times, sizeof times, "%.0f us by the generated kernel, %.0f us by CLBlast", by_kernel * 1e6,
                    by_library * 1e6);
      line = times;
    }
    common::store_program(key, known->second ? "CLBlast" : "generated");
    common::log(
        COMPUTE_LOG_INFO, "compile",
        "tried large " + what + ": " + line + "; " + (known->second ? "CLBlast" : "the generated kernel") + " is used");
  } catch (const common::Error& error) {  // out of memory, for example
    common::log(COMPUTE_LOG_DEBUG, "compile", "CLBlast was not tried for " + what + ": " + error.message);
  }
  return known->second;
}

}  // namespace

bool may_take_clblast(const DeviceInfo& device) {
  const Choice chosen = choice();
  // It works through local memory, which is like any other on a processor, and is compiled for seconds.
  return chosen == Choice::kClblast ||
         (chosen == Choice::kAuto && !device.dialect.is_host && !device.avoids(Fault::kClblast));
}

std::string matmul_engine(const DeviceInfo& device) {
  const bool is_asked_for = choice() == Choice::kClblast;
  if (may_take_clblast(device)) {
    if (clblast() == nullptr) return "generated: CLBlast is not installed";
    return is_asked_for ? "CLBlast" : "generated; large ones by CLBlast if it wins a trial on the device";
  }
  const KnownFault* known = device.known(Fault::kClblast);
  return std::string("generated: ") + (choice() == Choice::kGenerated ? "selected by COMPUTE_OPENCL_MATMUL"
                                       : known != nullptr             ? known->reason
                                                                      : "the device is a processor");
}

std::unique_ptr<Plan> prepare_matmul(Device& device, const Op& op) {
  if (!may_take_clblast(device.info())) return nullptr;
  // CLBlast adds into its result; our addend may be another tensor.
  if (!has_one_dtype(op) || op.expression_count() != 0 || common::is_given(op, 3)) return nullptr;
  MatrixProduct product = common::read_product(op);
  if (product.has_addend || common::place_operands(product) >= 0 || !can_be_said(op, product)) return nullptr;
  const compute_dtype dtype = op.output(0).dtype;
  // It adds up halves in halves, which only fast mathematics allows.
  const bool is_taken = dtype == COMPUTE_DTYPE_FLOAT32 || dtype == COMPUTE_DTYPE_FLOAT64 || common::is_complex(dtype) ||
                        (dtype == COMPUTE_DTYPE_FLOAT16 && op.fast_math());
  if (!is_taken) return nullptr;
  const bool is_asked_for = choice() == Choice::kClblast;
  // Without a cache, trials may end differently in each process, and the bits of results with them.
  if (!is_asked_for && (!is_large(product) || op.deterministic())) return nullptr;
  if (clblast() == nullptr) {
    if (is_asked_for) report_missing_library();
    return nullptr;
  }
  return is_asked_for || wins_trial(device, op) ? make_plan(device, op, product) : nullptr;
}

}  // namespace compute::opencl
