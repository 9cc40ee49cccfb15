// SPDX-License-Identifier: Apache-2.0
// lstm and gru. The products of the inputs of all times are one product of matrices. Then, for each time, a task
// multiplies some rows of states by the recurrent weights of a few units, and computes the gates of these units while
// the sums are in the cache. The weights are packed for that once a run; layers of few rows use them where they are.
#include "plugins/cpu/contract/recurrent.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <type_traits>
#include <vector>

#include "plugins/common/op/matrix_product.hpp"
#include "plugins/cpu/contract/matmul.hpp"
#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/kernels/copy_kernel.hpp"
#include "plugins/cpu/kernels/gemm_kernel.hpp"
#include "plugins/cpu/kernels/recurrent_kernel.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {
namespace {

using common::is_given;

// Rows of states, of all times together, that are worth packing the weights.
constexpr int64_t kPackedRows = 8;
// Rows of states in a task, multiples of what the kernels take. Weights that no cache holds are read once for as many.
constexpr int64_t kTaskRows = 24, kMostTaskRows = 72;
constexpr int64_t kGrainProducts = int64_t{3} << 15;
constexpr int64_t kSerialProducts = int64_t{1} << 18;  // fewer are not worth waking a thread
constexpr int64_t kGateProducts = 64;                  // what the gates of a unit take, as rows of weights
constexpr int64_t kVectorBytes = 64;                   // at most
constexpr int32_t kTensors = 13;

int64_t ceiling(int64_t x, int64_t unit) { return (x + unit - 1) / unit; }

// A tensor with up to four axes, the last of which has `step` between its elements.
struct Tensor {
  int32_t index = -1;
  bool is_half = false;
  int64_t strides[3] = {};
  int64_t step = 1;

  bool is_given() const { return index >= 0; }
  int64_t at(int64_t i, int64_t j = 0, int64_t k = 0) const { return i * strides[0] + j * strides[1] + k * strides[2]; }
};

int64_t length_at(const char* lengths, compute_dtype dtype, int64_t at) {
  const auto read = [&](auto zero) {
    return static_cast<int64_t>(reinterpret_cast<const decltype(zero)*>(lengths)[at]);
  };
  switch (dtype) {
    case COMPUTE_DTYPE_INT8:
      return read(int8_t{});
    case COMPUTE_DTYPE_INT16:
      return read(int16_t{});
    case COMPUTE_DTYPE_INT32:
      return read(int32_t{});
    case COMPUTE_DTYPE_UINT8:
      return read(uint8_t{});
    case COMPUTE_DTYPE_UINT16:
      return read(uint16_t{});
    case COMPUTE_DTYPE_UINT32:
      return read(uint32_t{});
    case COMPUTE_DTYPE_UINT64:
      return read(uint64_t{});
    default:
      return read(int64_t{});
  }
}

// T is the type that is computed in: float for float16 and bfloat16.
template <class T>
class RecurrentPlan final : public Plan {
 public:
  explicit RecurrentPlan(const Op& op)
      : is_lstm_(op.name() == "lstm"),
        is_linear_(!is_lstm_ && op.integer("linear_before_reset", 0) != 0),
        is_reverse_(op.text("direction") == "reverse"),
        gates_(is_lstm_ ? 4 : 3),
        time_(op.input(0).shape[0]),
        batch_(op.input(0).shape[1]),
        features_(op.input(0).shape[2]),
        directions_(op.input(2).shape[0]),
        hidden_(op.input(2).shape[2]),
        rows_(gates_ * hidden_),
        inputs_(op.input_count()),
        half_(op.input(0).dtype == COMPUTE_DTYPE_FLOAT16 ? isa().gemm->float16 : isa().gemm->bfloat16),
        gate_kernels_(gate_kernels()),
        product_kernel_(product_kernel()) {
    const int32_t lengths = is_lstm_ ? 8 : 6;
    for (int32_t i = 0; i < op.tensor_count(); ++i) tensors_[static_cast<size_t>(i)] = tensor_of(op, i);
    if (is_given(op, lengths)) {
      lengths_ = tensors_[static_cast<size_t>(lengths)];
      lengths_dtype_ = op.input(lengths).dtype;
    }
    y_ = tensor_of(op, inputs_);
    if (is_lstm_) cells_ = tensor_of(op, inputs_ + 3);
    units_ = product_kernel_.units;
    panels_ = ceiling(hidden_, units_);
    is_packed_ = time_ * batch_ >= kPackedRows;
    task_rows_ = directions_ * panels_ < 2 * thread_count() ? kTaskRows : kMostTaskRows;
    const int64_t states = directions_ * batch_ * hidden_;
    if (time_ > 0) plan_products();
    for (int i = 0; i < 2; ++i) h_at_[i] = add(states);
    if (is_lstm_) c_at_ = add(states);
    if (!is_lstm_ && !is_linear_) {
      z_at_ = add(states);
      kept_at_ = add(states);
    }
  }

  void run(const compute_plugin_run& given) const override {
    Run run{{}, address(given.workspace), nullptr};
    for (int32_t i = 0; i < tensor_count; ++i) run.data[i] = address(given.tensors[i]);
    T* const h = part(run, h_at_[0]);
    load_states(run, 5, h);
    T* const c = is_lstm_ ? part(run, c_at_) : nullptr;
    if (is_lstm_) load_states(run, 6, c);
    if (time_ > 0 && directions_ * batch_ * hidden_ > 0) {
      prepare_parameters(run);
      multiply_inputs(run);
      is_packed_ ? run_packed(run) : run_in_place(run);
    }
    store_states(run, inputs_ + 1, part(run, h_at_[time_ & 1]));
    if (is_lstm_) store_states(run, inputs_ + 2, c);
  }

 private:
  struct Run {
    char* data[kTensors];
    char* workspace;
    const T* recurrent;  // the weights in place
  };
  // Rows [row, row + rows) of states of a direction, and units [unit, unit + units).
  struct Block {
    int64_t direction, row, rows, unit, units;
  };

  static const RecurrentGates<T>& gate_kernels() {
    if constexpr (std::is_same_v<T, float>)
      return isa().recurrent_gates->float32;
    else
      return isa().recurrent_gates->float64;
  }
  static const RecurrentProduct<T>& product_kernel() {
    if constexpr (std::is_same_v<T, float>)
      return isa().recurrent_products->float32;
    else
      return isa().recurrent_products->float64;
  }

  static Tensor tensor_of(const Op& op, int32_t index) {
    const compute_plugin_tensor& from = op.tensor(index);
    Tensor result;
    if (from.rank < 0) return result;
    result.index = index;
    result.is_half = from.dtype == COMPUTE_DTYPE_FLOAT16 || from.dtype == COMPUTE_DTYPE_BFLOAT16;
    std::copy_n(from.strides, from.rank - 1, result.strides);
    result.step = from.shape[from.rank - 1] > 1 ? from.strides[from.rank - 1] : 1;
    return result;
  }
  const Tensor& tensor(int32_t index) const { return tensors_[static_cast<size_t>(index)]; }
  // Absent inputs at the end need not be among the op's.
  const Tensor* input(int32_t index) const {
    return index < inputs_ && tensor(index).is_given() ? &tensor(index) : nullptr;
  }

  static int64_t room(int64_t elements) { return ceiling(elements * static_cast<int64_t>(sizeof(T)), 64) * 64; }
  int64_t add(int64_t elements) { return add_bytes(room(elements)); }
  int64_t add_bytes(int64_t bytes) {
    const int64_t at = workspace_bytes;
    workspace_bytes += ceiling(bytes, 64) * 64;
    return at;
  }
  T* part(const Run& run, int64_t at) const { return reinterpret_cast<T*>(run.workspace + at); }

  // ---- Products of matrices -----------------------------------------------------------------------------------------

  static MatmulPlan plan_of(const MatmulProblem& problem) {
    MatmulOptions options;
    int64_t work = problem.m * problem.n * problem.k;
    for (int32_t i = 0; i < problem.batch_rank; ++i) work *= problem.batch_shape[i];
    options.threads = work < kSerialProducts ? 1 : thread_count();
    options.isa = isa().set;
    return MatmulPlan(problem, options);
  }

  // How a matrix of T is read: in place, or widened, contiguous.
  MatmulView view(const Tensor& from, const int64_t* widened, int64_t columns) const {
    if (from.is_half) return {widened, columns, 1};
    return {from.strides, from.strides[1], from.step};
  }

  void plan_products() {
    if (tensor(0).is_half) {
      x_at_ = add(time_ * batch_ * features_);
      weight_at_ = add(directions_ * rows_ * features_);
      if (!is_packed_) recurrent_at_ = add(directions_ * rows_ * hidden_);
    }
    const int64_t shape[] = {directions_, time_};
    const int64_t x_time[] = {batch_ * features_}, weight_direction[] = {rows_ * features_};
    const MatmulView x = view(tensor(0), x_time, features_), weight = view(tensor(1), weight_direction, features_);
    const int64_t x_strides[] = {0, x.batch_strides[0]}, weight_strides[] = {weight.batch_strides[0], 0};
    const int64_t sum_strides[] = {rows_, batch_ * directions_ * rows_};
    MatmulProblem problem{};
    problem.dtype = kDtype;
    problem.m = batch_;
    problem.n = rows_;
    problem.k = features_;
    problem.batch_rank = 2;
    problem.batch_shape = shape;
    problem.a = {x_strides, x.row_stride, x.column_stride};
    problem.b = {weight_strides, weight.column_stride, weight.row_stride};
    problem.c = {sum_strides, directions_ * rows_, 1};
    products_.push_back(plan_of(problem));
    sums_at_ = add(time_ * batch_ * directions_ * rows_);
    bias_at_ = add(directions_ * rows_);
    candidate_bias_at_ = add(directions_ * hidden_);
    peepholes_at_ = add(directions_ * 3 * hidden_);
    if (is_packed_) {
      panels_at_ = add(directions_ * panels_ * units_ * gates_ * hidden_);
    } else {
      of_state_at_ = add(directions_ * batch_ * rows_);
      plan_recurrent(0, is_lstm_ || is_linear_ ? gates_ : 2);
      if (!is_lstm_ && !is_linear_) plan_recurrent(2, 1);
    }
    int64_t bytes = 0;
    for (const MatmulPlan& product : products_) bytes = std::max(bytes, product.workspace_bytes());
    products_at_ = add_bytes(bytes);
  }

  // The products of states with the weights of `count` gates from `gate` on.
  void plan_recurrent(int64_t gate, int64_t count) {
    const int64_t direction[] = {rows_ * hidden_};
    const MatmulView weight = view(tensor(2), direction, hidden_);
    const int64_t state_strides[] = {batch_ * hidden_}, sum_strides[] = {batch_ * rows_};
    MatmulProblem problem{};
    problem.dtype = kDtype;
    problem.m = batch_;
    problem.n = count * hidden_;
    problem.k = hidden_;
    problem.batch_rank = 1;
    problem.batch_shape = &directions_;
    problem.a = {state_strides, hidden_, 1};
    problem.b = {weight.batch_strides, weight.column_stride, weight.row_stride};
    problem.c = {sum_strides, rows_, 1};
    first_row_[products_.size()] = gate * hidden_ * weight.row_stride;
    products_.push_back(plan_of(problem));
  }

  void multiply(const Run& run, size_t product, const T* a, const T* b, T* c) const {
    MatmulRun matmul{};
    matmul.a = a;
    matmul.b = b + first_row_[product];
    matmul.c = c;
    matmul.workspace = run.workspace + products_at_;
    matmul.parallel_for = &parallel_tasks;
    matmul.cancel = cancel_request;
    products_[product].run(matmul);
  }

  // ---- Before the steps ---------------------------------------------------------------------------------------------

  void load_row(const Run& run, const Tensor& from, int64_t at, T* dst, int64_t n) const {
    if constexpr (std::is_same_v<T, float>) {
      if (from.is_half)
        return half_.widen(reinterpret_cast<const uint16_t*>(run.data[from.index]) + at, from.step, dst, n);
    }
    const T* const src = reinterpret_cast<const T*>(run.data[from.index]) + at;
    if (from.step == 1) {
      std::copy_n(src, n, dst);
    } else {
      for (int64_t i = 0; i < n; ++i) dst[i] = src[i * from.step];
    }
  }
  void store_row(const Run& run, const Tensor& to, int64_t at, const T* src, int64_t n) const {
    if constexpr (std::is_same_v<T, float>) {
      if (to.is_half) return half_.narrow(src, reinterpret_cast<uint16_t*>(run.data[to.index]) + at, to.step, n);
    }
    T* const dst = reinterpret_cast<T*>(run.data[to.index]) + at;
    if (to.step == 1) {
      std::copy_n(src, n, dst);
    } else {
      for (int64_t i = 0; i < n; ++i) dst[i * to.step] = src[i];
    }
  }

  void load_states(const Run& run, int32_t index, T* states) const {
    const Tensor* const from = input(index);
    if (from == nullptr) std::fill_n(states, directions_ * batch_ * hidden_, T{0});
    for (int64_t d = 0; from != nullptr && d < directions_; ++d) {
      for (int64_t b = 0; b < batch_; ++b)
        load_row(run, *from, from->at(d, b), states + (d * batch_ + b) * hidden_, hidden_);
    }
  }
  void store_states(const Run& run, int32_t index, const T* states) const {
    const Tensor& to = tensor(index);
    for (int64_t d = 0; d < directions_; ++d) {
      for (int64_t b = 0; b < batch_; ++b)
        store_row(run, to, to.at(d, b), states + (d * batch_ + b) * hidden_, hidden_);
    }
  }

  // The sum of the biases, but of the candidate of a gru with linear_before_reset; the peepholes.
  void prepare_parameters(const Run& run) const {
    const Tensor *const bias = input(3), *const recurrent = input(4), *const peepholes = is_lstm_ ? input(7) : nullptr;
    for (int64_t d = 0; d < directions_; ++d) {
      T* const sum = part(run, bias_at_) + d * rows_;
      T* const room = part(run, sums_at_);  // which has as many rows at least, and is not used yet
      if (bias != nullptr) load_row(run, *bias, bias->at(d), sum, rows_);
      if (bias == nullptr && recurrent != nullptr) std::fill_n(sum, rows_, T{0});
      if (recurrent != nullptr) {
        load_row(run, *recurrent, recurrent->at(d), room, rows_);
        const int64_t added = is_linear_ ? 2 * hidden_ : rows_;
        for (int64_t i = 0; i < added; ++i) sum[i] += room[i];
        if (is_linear_) std::copy_n(room + added, hidden_, part(run, candidate_bias_at_) + d * hidden_);
      }
      if (peepholes != nullptr)
        load_row(run, *peepholes, peepholes->at(d), part(run, peepholes_at_) + d * 3 * hidden_, 3 * hidden_);
    }
  }

  void multiply_inputs(Run& run) const {
    const T* x = reinterpret_cast<const T*>(run.data[0]);
    const T* weight = reinterpret_cast<const T*>(run.data[1]);
    run.recurrent = reinterpret_cast<const T*>(run.data[2]);
    if (tensor(0).is_half) {
      x = part(run, x_at_);
      widen(run, tensor(0), time_, batch_, features_, part(run, x_at_));
      weight = part(run, weight_at_);
      widen(run, tensor(1), directions_, rows_, features_, part(run, weight_at_));
      if (!is_packed_) {
        run.recurrent = part(run, recurrent_at_);
        widen(run, tensor(2), directions_, rows_, hidden_, part(run, recurrent_at_));
      }
    }
    multiply(run, 0, x, weight, part(run, sums_at_));
  }
  void widen(const Run& run, const Tensor& from, int64_t first, int64_t second, int64_t n, T* to) const {
    parallel_for(first * second, Grain::of(std::max<int64_t>(n, 1), kGrainProducts), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) load_row(run, from, from.at(i / second, i % second), to + i * n, n);
    });
  }

  // ---- Weights in panels --------------------------------------------------------------------------------------------

  // With a second product for the candidate of a gru, the panels of its gate follow those of the others.
  int64_t joined_gates() const { return is_lstm_ || is_linear_ ? gates_ : 2; }
  T* panel(const Run& run, int64_t direction, int64_t panel, bool is_second) const {
    const int64_t joined = is_second ? gates_ - joined_gates() : joined_gates();
    T* const of_direction = part(run, panels_at_) + direction * panels_ * units_ * gates_ * hidden_ +
                            (is_second ? panels_ * units_ * joined_gates() * hidden_ : 0);
    return of_direction + panel * units_ * joined * hidden_;
  }

  void pack(const Run& run) const {
    parallel_for(directions_ * panels_, Grain::of(std::max<int64_t>(units_ * rows_, 1), kGrainProducts),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) pack_panel(run, i / panels_, i % panels_);
                 });
  }
  void pack_panel(const Run& run, int64_t direction, int64_t index) const {
    constexpr int kSize = sizeof(T) == 4 ? 2 : 3;
    constexpr int64_t kDepth = 64;  // columns that are widened at a time
    const Tensor& weight = tensor(2);
    const int64_t unit = index * units_, units = std::min<int64_t>(units_, hidden_ - unit);
    const int64_t joined = joined_gates();
    for (int64_t gate = 0; gate < gates_; ++gate) {
      const bool is_second = gate >= joined;
      const int64_t step = (is_second ? gates_ - joined : joined) * units_;
      T* const to = panel(run, direction, index, is_second) + (is_second ? gate - joined : gate) * units_;
      for (int64_t k = 0; units < units_ && k < hidden_; ++k)
        std::fill(to + k * step + units, to + k * step + units_, T{0});
      const int64_t at = weight.at(direction, gate * hidden_ + unit);
      if (!weight.is_half && weight.step == 1) {
        isa().copy->transpose[kSize](reinterpret_cast<const T*>(run.data[2]) + at, weight.strides[1] * kBytes, to,
                                     step * kBytes, units, hidden_);
        continue;
      }
      alignas(64) T rows[kVectorBytes / sizeof(T) * kDepth];
      for (int64_t k = 0; k < hidden_; k += kDepth) {
        const int64_t depth = std::min(kDepth, hidden_ - k);
        for (int64_t i = 0; i < units; ++i)
          load_row(run, weight, at + i * weight.strides[1] + k * weight.step, rows + i * kDepth, depth);
        isa().copy->transpose[kSize](rows, kDepth * kBytes, to + k * step, step * kBytes, units, depth);
      }
    }
  }

  // ---- Steps --------------------------------------------------------------------------------------------------------

  int64_t time_of(int64_t direction, int64_t step) const {
    return is_reverse_ || direction == 1 ? time_ - 1 - step : step;
  }

  // One direction after the other, whose weights stay in the cache; or each on its own thread, where that keeps as many
  // busy as the parts of a step would.
  void run_packed(const Run& run) const {
    pack(run);
    const std::atomic<bool>* const cancel = cancel_request;  // of this thread
    const auto run_direction = [&](int64_t direction) {
      for (int64_t step = 0; step < time_; ++step) {
        throw_if(cancel);
        run_step(run, direction, step);
      }
    };
    const Grain grain = grain_of(gates_);
    if (directions_ == 1 || (thread_count() > directions_ && blocks() * grain.weight > 2 * grain.units)) {
      for (int64_t direction = 0; direction < directions_; ++direction) run_direction(direction);
      return;
    }
    parallel_for(directions_, Grain::of(time_ * blocks() * work_of(gates_), kGrainProducts),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t direction = begin; direction < end; ++direction) run_direction(direction);
                 });
  }

  // Of a step of a direction.
  int64_t row_chunks() const { return ceiling(batch_, task_rows_); }
  int64_t blocks() const { return panels_ * row_chunks(); }
  int64_t work_of(int64_t gates) const {
    return std::min(batch_, task_rows_) * units_ * gates * (hidden_ + kGateProducts);
  }
  Grain grain_of(int64_t gates) const { return Grain::of(work_of(gates), kGrainProducts); }

  void run_step(const Run& run, int64_t direction, int64_t step) const {
    const auto each = [&](int64_t gates, const auto& f) {
      const int64_t chunks = row_chunks();
      parallel_for(blocks(), grain_of(gates), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t unit = i / chunks * units_, row = i % chunks * task_rows_;
          f(Block{direction, row, std::min(task_rows_, batch_ - row), unit, std::min<int64_t>(units_, hidden_ - unit)});
        }
      });
    };
    const int64_t joined = joined_gates();
    const auto multiplied = [&](const Block& block, const T* states, int64_t gates, bool is_second, T* sums) {
      product_kernel_.run[gates](panel(run, direction, block.unit / units_, is_second),
                                 states + (direction * batch_ + block.row) * hidden_, hidden_, block.rows, hidden_,
                                 sums);
      RecurrentRows<T> rows = rows_of(run, step, block);
      rows.h = sums;
      rows.h_row = gates * units_;
      rows.h_gate = units_;
      return rows;
    };
    const T* const h = part(run, h_at_[step & 1]);
    each(joined, [&](const Block& block) {
      alignas(kVectorBytes) T sums[kMostTaskRows * kMostRecurrentGates * kVectorBytes / sizeof(T)];
      const RecurrentRows<T> rows = multiplied(block, h, joined, false, sums);
      if (joined == gates_) return finish(run, step, block, rows);
      gate_kernels_.gru_first(rows);
    });
    if (joined == gates_) return;
    each(1, [&](const Block& block) {
      alignas(kVectorBytes) T sums[kMostTaskRows * kVectorBytes / sizeof(T)];
      finish(run, step, block, candidate(multiplied(block, part(run, kept_at_), 1, true, sums)));
    });
  }

  void run_in_place(const Run& run) const {
    for (int64_t step = 0; step < time_; ++step) {
      throw_if(cancel_request);
      run_step_in_place(run, step);
    }
  }
  void run_step_in_place(const Run& run, int64_t step) const {
    T* const of_state = part(run, of_state_at_);
    const auto each = [&](const auto& f) {
      parallel_for(directions_ * batch_, Grain::of(rows_ * kGateProducts, kGrainProducts),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       const Block block{i / batch_, i % batch_, 1, 0, hidden_};
                       RecurrentRows<T> rows = rows_of(run, step, block);
                       rows.h = of_state + i * rows_;
                       rows.h_row = rows_;
                       rows.h_gate = hidden_;
                       f(block, rows);
                     }
                   });
    };
    multiply(run, 1, part(run, h_at_[step & 1]), run.recurrent, of_state);
    if (joined_gates() == gates_)
      return each([&](const Block& block, const RecurrentRows<T>& rows) { finish(run, step, block, rows); });
    each([&](const Block&, const RecurrentRows<T>& rows) { gate_kernels_.gru_first(rows); });
    multiply(run, 2, part(run, kept_at_), run.recurrent, of_state);
    each([&](const Block& block, const RecurrentRows<T>& rows) { finish(run, step, block, candidate(rows)); });
  }

  RecurrentRows<T> rows_of(const Run& run, int64_t step, const Block& block) const {
    const int64_t d = block.direction, t = time_of(d, step);
    const int64_t state = (d * batch_ + block.row) * hidden_ + block.unit;
    const bool has_bias = input(3) != nullptr || input(4) != nullptr;
    RecurrentRows<T> rows{};
    rows.rows = block.rows;
    rows.units = block.units;
    rows.x = part(run, sums_at_) + ((t * batch_ + block.row) * directions_ + d) * rows_ + block.unit;
    rows.x_row = directions_ * rows_;
    rows.x_gate = hidden_;
    if (has_bias) rows.bias = part(run, bias_at_) + d * rows_ + block.unit;
    if (is_linear_ && input(4) != nullptr)
      rows.recurrent_bias = part(run, candidate_bias_at_) + d * hidden_ + block.unit;
    if (is_lstm_ && input(7) != nullptr) rows.peepholes = part(run, peepholes_at_) + d * 3 * hidden_ + block.unit;
    rows.parameter_gate = hidden_;
    rows.state_row = hidden_;
    rows.now = part(run, h_at_[step & 1]) + state;
    rows.next = part(run, h_at_[(step + 1) & 1]) + state;
    if (is_lstm_) rows.c = part(run, c_at_) + state;
    if (!is_lstm_ && !is_linear_) {
      rows.z = part(run, z_at_) + state;
      rows.kept = part(run, kept_at_) + state;
    }
    if (!y_.is_half && y_.step == 1) {
      rows.y = reinterpret_cast<T*>(run.data[y_.index]) + y_.at(t, d, block.row) + block.unit;
      rows.y_row = y_.strides[2];
    }
    if (is_lstm_ && cells_.step == 1) {
      rows.cells = reinterpret_cast<T*>(run.data[cells_.index]) + cells_.at(t, d, block.row) + block.unit;
      rows.cells_row = cells_.strides[2];
    }
    return rows;
  }
  // For the second product of a gru, of the last gate alone.
  RecurrentRows<T> candidate(RecurrentRows<T> rows) const {
    rows.x += 2 * hidden_;
    if (rows.bias != nullptr) rows.bias += 2 * hidden_;
    return rows;
  }

  // The last gates, and the results.
  void finish(const Run& run, int64_t step, const Block& block, const RecurrentRows<T>& rows) const {
    const auto compute = is_lstm_ ? gate_kernels_.lstm : is_linear_ ? gate_kernels_.gru_linear : gate_kernels_.gru_last;
    const int64_t t = time_of(block.direction, step);
    if (!lengths_.is_given()) {
      compute(rows);
      store_apart(run, t, block, rows, 0, block.rows);
      return;
    }
    for (int64_t row = 0; row < block.rows;) {
      const bool is_seen = sees(run, block.row + row, t);
      int64_t end = row + 1;
      while (end < block.rows && sees(run, block.row + end, t) == is_seen) ++end;
      RecurrentRows<T> some = rows;
      some.rows = end - row;
      some.x += row * rows.x_row;
      some.h += row * rows.h_row;
      for (T** const states : {&some.next, &some.c, &some.z, &some.kept})
        if (*states != nullptr) *states += row * rows.state_row;
      some.now += row * rows.state_row;
      if (some.y != nullptr) some.y += row * rows.y_row;
      if (some.cells != nullptr) some.cells += row * rows.cells_row;
      is_seen ? compute(some) : keep(some);
      store_apart(run, t, block, some, row, is_seen ? some.rows : -some.rows);
      row = end;
    }
  }
  bool sees(const Run& run, int64_t row, int64_t t) const {
    return t < length_at(run.data[lengths_.index], lengths_dtype_, row * lengths_.step);
  }
  // Of sequences that have ended.
  static void keep(const RecurrentRows<T>& rows) {
    for (int64_t row = 0; row < rows.rows; ++row) {
      std::copy_n(rows.now + row * rows.state_row, rows.units, rows.next + row * rows.state_row);
      if (rows.y != nullptr) std::fill_n(rows.y + row * rows.y_row, rows.units, T{0});
      if (rows.cells != nullptr)
        std::copy_n(rows.c + row * rows.state_row, rows.units, rows.cells + row * rows.cells_row);
    }
  }
  // Results that the kernels do not write, of rows from block.row + `row` on; with `count` below 0, ended ones.
  void store_apart(const Run& run, int64_t t, const Block& block, const RecurrentRows<T>& rows, int64_t row,
                   int64_t count) const {
    static constexpr T kZeros[256] = {};
    const int64_t d = block.direction;
    for (int64_t i = 0; i < std::abs(count); ++i) {
      const int64_t b = block.row + row + i, at = block.unit * y_.step + y_.at(t, d, b);
      if (rows.y == nullptr && count > 0) store_row(run, y_, at, rows.next + i * rows.state_row, rows.units);
      for (int64_t j = 0; rows.y == nullptr && count < 0 && j < rows.units; j += 256)
        store_row(run, y_, at + j * y_.step, kZeros, std::min<int64_t>(256, rows.units - j));
      if (is_lstm_ && rows.cells == nullptr)
        store_row(run, cells_, cells_.at(t, d, b) + block.unit * cells_.step, rows.c + i * rows.state_row, rows.units);
    }
  }

  static constexpr compute_dtype kDtype = std::is_same_v<T, float> ? COMPUTE_DTYPE_FLOAT32 : COMPUTE_DTYPE_FLOAT64;
  static constexpr int64_t kBytes = sizeof(T);

  const bool is_lstm_, is_linear_, is_reverse_;
  const int64_t gates_, time_, batch_, features_, directions_, hidden_;
  const int64_t rows_;  // of the weights of a direction
  const int32_t inputs_;
  const HalfRows half_;
  const RecurrentGates<T>& gate_kernels_;
  const RecurrentProduct<T>& product_kernel_;
  std::array<Tensor, kTensors> tensors_;
  Tensor lengths_, y_, cells_;
  compute_dtype lengths_dtype_ = COMPUTE_DTYPE_NONE;
  std::vector<MatmulPlan> products_;  // of inputs; of states, where the weights are read in place
  int64_t first_row_[3] = {};         // where the weights of these begin
  bool is_packed_;
  int64_t units_, panels_, task_rows_ = 0;
  int64_t x_at_ = 0, weight_at_ = 0, recurrent_at_ = 0, sums_at_ = 0, bias_at_ = 0, candidate_bias_at_ = 0,
          peepholes_at_ = 0, panels_at_ = 0, of_state_at_ = 0, products_at_ = 0, h_at_[2] = {}, c_at_ = 0, z_at_ = 0,
          kept_at_ = 0;
};

}  // namespace

std::optional<Refusal> refuse_recurrent(const Op&) { return std::nullopt; }

std::unique_ptr<Plan> prepare_recurrent(const Op& op) {
  if (op.input(0).dtype == COMPUTE_DTYPE_FLOAT64) return std::make_unique<RecurrentPlan<double>>(op);
  return std::make_unique<RecurrentPlan<float>>(op);
}

}  // namespace compute::cpu
