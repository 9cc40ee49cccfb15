// SPDX-License-Identifier: Apache-2.0
// Convolutions of float32 through oneDNN. Its kernels are fast in layouts of blocks of channels alone, so a task brings
// a few images into that layout, convolves them and brings the result back, all of it in the cache. A task is one
// thread's: oneDNN starts none of its own. How images are divided does not change a sum of the first two primitives;
// that of the weights' gradient is divided the same way for any number of threads.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include "plugins/cpu/contract/gemm_engines.hpp"
#include "plugins/cpu/contract/onednn_primitives.hpp"
#include "plugins/cpu/contract/window_part.hpp"
#include "plugins/cpu/host.hpp"

namespace compute::cpu {
namespace {

constexpr int64_t kBlock = 16;                    // channels of a block
constexpr int64_t kLeastWork = int64_t{1} << 18;  // multiplications
constexpr int64_t kImageBytes = 768 << 10;        // of the images of a task
constexpr int64_t kGradBytes = 1 << 20;           // of the weights, whose gradients are added up
constexpr int64_t kChunks = 16;                   // of images, whose gradients are added up in order
constexpr int64_t kTasksPerThread = 2;
constexpr int64_t kAlignment = 64;
constexpr int kRoles = 4;  // of tensors of a primitive: two inputs, a result, and a bias

int64_t round_up(int64_t x, int64_t unit) { return (x + unit - 1) / unit * unit; }

/// Extents and strides of a tensor, or of the part of it that one task sees.
struct Tensor {
  int rank = 0;
  OnednnDims shape{}, strides{};

  static Tensor of(const compute_plugin_tensor& tensor) {
    Tensor result;
    result.rank = tensor.rank;
    std::copy_n(tensor.shape, tensor.rank, result.shape);
    std::copy_n(tensor.strides, tensor.rank, result.strides);
    return result;
  }
  int64_t elements() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= shape[i];
    return n;
  }
};

/// A convolution as both its tensors and its attributes describe it.
struct Problem {
  Tensor x, weight, y;
  int64_t groups = 1, bias_stride = 0;
  bool has_bias = false;
  OnednnDims strides{}, dilations{}, begin{}, end{};  // a dilation of 0 leaves nothing out

  explicit Problem(const Op& op) {
    const bool is_grad_input = op.name() == "convolution_grad_input",
               is_grad_weight = op.name() == "convolution_grad_weight";
    x = Tensor::of(is_grad_input ? op.output(0) : is_grad_weight ? op.input(1) : op.input(0));
    weight = Tensor::of(is_grad_weight ? op.output(0) : op.input(1));
    y = Tensor::of(is_grad_input || is_grad_weight ? op.input(0) : op.output(0));
    groups = op.integer("groups", 1);
    if (const int32_t bias = common::window_operands(op).bias; bias >= 0) {
      has_bias = true;
      bias_stride = op.input(bias).strides[0];
    }
    for (int i = 0; i < x.rank - 2; ++i) {
      const auto at = static_cast<size_t>(i);
      strides[i] = op.integers("strides")[at];
      dilations[i] = op.integers("dilations")[at] - 1;
      begin[i] = op.integers("pads_begin")[at];
      const int64_t reach = (weight.shape[2 + i] - 1) * (dilations[i] + 1) + 1;
      end[i] = (y.shape[2 + i] - 1) * strides[i] + reach - x.shape[2 + i] - begin[i];
    }
  }

  int64_t work() const { return y.elements() * (weight.elements() / std::max<int64_t>(weight.shape[0], 1)); }
  bool is_empty() const { return x.elements() == 0 || weight.elements() == 0 || y.elements() == 0; }
  bool has_steps() const {
    return std::any_of(strides, strides + x.rank - 2, [](int64_t stride) { return stride != 1; });
  }
  bool is_pointwise() const {
    return std::all_of(weight.shape + 2, weight.shape + weight.rank, [](int64_t extent) { return extent == 1; });
  }
};

enum class Kind : uint8_t { kForward, kGradInput, kGradWeight };

/// A tensor of the primitive: how the caller has it, how the primitive has it, and the way between the two.
struct Operand {
  OnednnLayout plain{}, blocked{};
  OnednnStep reorder;         // none: the primitive takes it as the caller has it
  int64_t blocked_bytes = 0;  // where there is a reorder
  int64_t scratch_at = 0;
};

class OnednnPart final : public WindowPart {
 public:
  OnednnPart(const OnednnPrimitives& library, const Openmp& openmp, const Problem& problem, Kind kind, int32_t threads)
      : l_(library), openmp_(openmp), p_(problem), kind_(kind) {
    const OneOpenmpThread one(openmp_);  // what a primitive is made for
    divide(threads);
    usable_ = make() && lay_out();
  }

  bool is_usable() const { return usable_; }

  int64_t packing_tasks() const override { return kind_ != Kind::kGradWeight && factor_.reorder ? parts_ : 0; }
  int64_t tasks() const override { return (kind_ == Kind::kGradWeight ? chunks_ : units_) * parts_; }
  int64_t joining_tasks() const override { return chunks_ > 1 ? p_.weight.shape[0] : 0; }

  // The weights of one part of the channels.
  void pack(const WindowMemory& memory, int64_t part) const override {
    const OneOpenmpThread one(openmp_);
    const float* const weight = static_cast<const float*>(memory.a) + part * weight_step_;
    convert(memory, factor_, weight, memory.shared + part * factor_.blocked_bytes);
  }

  void run(const WindowMemory& memory, int64_t task) const override {
    const OneOpenmpThread one(openmp_);
    if (kind_ == Kind::kGradWeight) return add_up(memory, task);
    const int64_t part = task % parts_, image = task / parts_ * images_;
    const float* const from = static_cast<const float*>(memory.b) + image * source_step_ + part * source_part_;
    float* const to = static_cast<float*>(memory.c) + image * result_step_ + part * result_part_;
    const void* const weight =
        factor_.reorder ? memory.shared + part * factor_.blocked_bytes
                        : reinterpret_cast<const char*>(static_cast<const float*>(memory.a) + part * weight_step_);
    const void* const bias =
        p_.has_bias ? static_cast<const float*>(memory.bias) + part * (p_.y.shape[1] / parts_) : nullptr;
    const void* const source = blocked(memory, source_, from);
    char* const sums = result_.reorder ? memory.scratch + result_.scratch_at : reinterpret_cast<char*>(to);
    perform(memory, source, weight, bias, sums);
    if (result_.reorder) convert_back(memory, result_, sums, to);
  }

  // One row of the weights' gradient, from those of all chunks.
  void join(const WindowMemory& memory, int64_t row) const override {
    const int64_t n = p_.weight.elements() / p_.weight.shape[0], all = p_.weight.elements();
    float* const sums = reinterpret_cast<float*>(memory.shared) + row * n;
    float* const to = static_cast<float*>(memory.c) + row * p_.weight.strides[0];
    for (int64_t chunk = 1; chunk + 1 < chunks_; ++chunk) {
      for (int64_t i = 0; i < n; ++i) sums[i] += sums[chunk * all + i];
    }
    const float* const last = sums + (chunks_ - 1) * all;
    for (int64_t i = 0; i < n; ++i) to[i] = sums[i] + last[i];
  }

 private:
  // ---- preparing

  void divide(int32_t threads) {
    const int64_t count = p_.x.shape[0];
    const int64_t bytes = (p_.x.elements() + p_.y.elements()) / count * static_cast<int64_t>(sizeof(float));
    const int64_t wanted = threads > 1 ? kTasksPerThread * threads : 1;
    const bool is_grad_weight = kind_ == Kind::kGradWeight;
    images_ = std::clamp<int64_t>(kImageBytes / bytes, 1, count);
    while (images_ > 1 && (count % images_ != 0 || (!is_grad_weight && count / images_ < wanted))) --images_;
    units_ = count / images_;
    if (is_grad_weight) chunks_ = std::min(units_, kChunks);
    // Each part brings the source into its layout again; large weights come into theirs by parts.
    const bool is_heavy = p_.weight.elements() * static_cast<int64_t>(sizeof(float)) > kGradBytes;
    const int64_t worth = threads == 1 ? 1 : is_heavy ? wanted : threads, before = is_grad_weight ? chunks_ : units_;
    const int64_t channels = p_.groups > 1 ? p_.groups : kind_ == Kind::kGradInput ? p_.x.shape[1] : p_.y.shape[1];
    while (before * parts_ < worth && channels % (2 * parts_ * kBlock) == 0) parts_ *= 2;
  }

  // What a task sees of the tensors, in both layouts, and the primitive.
  bool make() {
    Tensor x = p_.x, weight = p_.weight, y = p_.y;
    x.shape[0] = y.shape[0] = images_;
    if (p_.groups > 1) {
      weight_step_ = weight.strides[0] * (weight.shape[0] / parts_);
      x.shape[1] /= parts_;
      y.shape[1] /= parts_;
      weight = grouped(weight);
    } else if (kind_ == Kind::kGradInput) {
      x.shape[1] /= parts_;
      weight.shape[1] /= parts_;
      weight_step_ = weight.strides[1] * weight.shape[1];
    } else {
      y.shape[1] /= parts_;
      weight.shape[0] /= parts_;
      weight_step_ = weight.strides[0] * weight.shape[0];
    }
    const bool is_backward = kind_ == Kind::kGradInput;
    const Tensor &in = is_backward ? y : x, &out = is_backward ? x : y;
    source_step_ = in.strides[0];
    result_step_ = out.strides[0];
    source_part_ = p_.groups > 1 ? in.strides[1] * in.shape[1] : 0;
    result_part_ = out.strides[1] * out.shape[1];
    OnednnLayout any_x, any_weight, any_y, bias{};
    const int64_t bias_stride = 1;
    if (!any(x, any_x) || !any(weight, any_weight) || !any(y, any_y)) return false;
    if (l_.dnnl_memory_desc_init_by_strides(&bias, 1, &y.shape[1], onednn_codes::kFloat32, &bias_stride) !=
        onednn_codes::kSuccess)
      return false;
    bias_ = bias;
    OnednnHandle<OnednnSettings> settings(nullptr, l_.dnnl_primitive_attr_destroy);
    OnednnSettings* made = nullptr;
    if (l_.dnnl_primitive_attr_create(&made) != onednn_codes::kSuccess) return false;
    settings.reset(made);
    if (l_.dnnl_primitive_attr_set_scratchpad_mode(made, onednn_codes::kUserScratchpad) != onednn_codes::kSuccess)
      return false;
    const OnednnHandle<OnednnDescription> forward = describe_forward(made, any_x, any_weight, any_y, bias);
    if (!forward) return false;
    OnednnHandle<OnednnDescription> gradient(nullptr, l_.dnnl_primitive_desc_destroy);
    if (kind_ != Kind::kForward) gradient = describe_gradient(made, any_x, any_weight, any_y, forward.get());
    const OnednnDescription* const description = kind_ == Kind::kForward ? forward.get() : gradient.get();
    // Others than the generated kernels are slower than this plugin's own.
    const char* name = nullptr;
    if (description == nullptr ||
        l_.dnnl_primitive_desc_query(description, onednn_codes::kImplementation, 0, &name) != onednn_codes::kSuccess ||
        (!std::string_view(name).starts_with("jit") && !std::string_view(name).starts_with("brg"))) {
      return false;
    }
    const auto layout = [&](int what) { return l_.dnnl_primitive_desc_query_md(description, what, 0); };
    if (!make_step(description, main_)) return false;
    switch (kind_) {
      case Kind::kForward:
        return make_operand(made, x, layout(onednn_codes::kSourceLayout), false, source_) &&
               make_operand(made, weight, layout(onednn_codes::kWeightLayout), false, factor_) &&
               make_operand(made, y, layout(onednn_codes::kResultLayout), true, result_);
      case Kind::kGradInput:
        return make_operand(made, y, layout(onednn_codes::kResultGradLayout), false, source_) &&
               make_operand(made, weight, layout(onednn_codes::kWeightLayout), false, factor_) &&
               make_operand(made, x, layout(onednn_codes::kSourceGradLayout), true, result_);
      case Kind::kGradWeight:
        // In chunks, the gradient leaves its layout of blocks for rows without gaps.
        if (chunks_ > 1) pack_rows(weight);
        return make_operand(made, x, layout(onednn_codes::kSourceLayout), false, source_) &&
               make_operand(made, y, layout(onednn_codes::kResultGradLayout), false, factor_) &&
               make_operand(made, weight, layout(onednn_codes::kWeightGradLayout), true, result_);
    }
    return false;
  }

  // Groups are an axis of their own in weights.
  Tensor grouped(const Tensor& weight) const {
    Tensor result = weight;
    result.rank = weight.rank + 1;
    std::copy_backward(weight.shape, weight.shape + weight.rank, result.shape + result.rank);
    std::copy_backward(weight.strides, weight.strides + weight.rank, result.strides + result.rank);
    result.shape[0] = p_.groups / parts_;
    result.shape[1] = weight.shape[0] / p_.groups;
    result.strides[0] = weight.strides[0] * result.shape[1];
    return result;
  }

  static void pack_rows(Tensor& tensor) {
    int64_t stride = 1;
    for (int i = tensor.rank; i-- > 0;) {
      tensor.strides[i] = stride;
      stride *= tensor.shape[i];
    }
  }

  bool any(const Tensor& tensor, OnednnLayout& layout) const {
    return l_.dnnl_memory_desc_init_by_tag(&layout, tensor.rank, tensor.shape, onednn_codes::kFloat32,
                                           onednn_codes::kAnyLayout) == onednn_codes::kSuccess;
  }

  OnednnHandle<OnednnDescription> describe(const OnednnConvolutionProblem& problem, const OnednnSettings* settings,
                                           const OnednnDescription* forward) const {
    OnednnDescription* made = nullptr;
    if (l_.dnnl_primitive_desc_create(&made, &problem, settings, l_.engine, forward) != onednn_codes::kSuccess)
      made = nullptr;
    return {made, l_.dnnl_primitive_desc_destroy};
  }

  OnednnHandle<OnednnDescription> describe_forward(const OnednnSettings* settings, const OnednnLayout& x,
                                                   const OnednnLayout& weight, const OnednnLayout& y,
                                                   const OnednnLayout& bias) const {
    OnednnConvolutionProblem problem{};
    if (l_.dnnl_dilated_convolution_forward_desc_init(&problem, onednn_codes::kTraining, onednn_codes::kDirect, &x,
                                                      &weight, p_.has_bias ? &bias : nullptr, &y, p_.strides,
                                                      p_.dilations, p_.begin, p_.end) != onednn_codes::kSuccess) {
      return {nullptr, l_.dnnl_primitive_desc_destroy};
    }
    return describe(problem, settings, nullptr);
  }

  OnednnHandle<OnednnDescription> describe_gradient(const OnednnSettings* settings, const OnednnLayout& x,
                                                    const OnednnLayout& weight, const OnednnLayout& y,
                                                    const OnednnDescription* forward) const {
    OnednnConvolutionProblem problem{};
    const int status =
        kind_ == Kind::kGradInput
            ? l_.dnnl_dilated_convolution_backward_data_desc_init(&problem, onednn_codes::kDirect, &x, &weight, &y,
                                                                  p_.strides, p_.dilations, p_.begin, p_.end)
            : l_.dnnl_dilated_convolution_backward_weights_desc_init(&problem, onednn_codes::kDirect, &x, &weight,
                                                                     nullptr, &y, p_.strides, p_.dilations, p_.begin,
                                                                     p_.end);
    if (status != onednn_codes::kSuccess) return {nullptr, l_.dnnl_primitive_desc_destroy};
    return describe(problem, settings, forward);
  }

  bool make_step(const OnednnDescription* description, OnednnStep& step) const {
    OnednnPrimitive* made = nullptr;
    if (l_.dnnl_primitive_create(&made, description) != onednn_codes::kSuccess) return false;
    step.primitive = {made, l_.dnnl_primitive_destroy};
    step.scratch = *l_.dnnl_primitive_desc_query_md(description, onednn_codes::kScratchpadLayout, 0);
    step.scratch_bytes = static_cast<int64_t>(l_.dnnl_memory_desc_get_size(&step.scratch));
    return true;
  }

  bool make_operand(const OnednnSettings* settings, const Tensor& tensor, const OnednnLayout* wanted, bool is_result,
                    Operand& operand) const {
    operand.blocked = *wanted;
    if (l_.dnnl_memory_desc_init_by_strides(&operand.plain, tensor.rank, tensor.shape, onednn_codes::kFloat32,
                                            tensor.strides) != onednn_codes::kSuccess) {
      return false;
    }
    const bool adds_up = is_result && kind_ == Kind::kGradWeight && units_ > 1;
    if (!adds_up && l_.dnnl_memory_desc_equal(&operand.plain, wanted) != 0) return true;
    operand.blocked_bytes = round_up(static_cast<int64_t>(l_.dnnl_memory_desc_get_size(wanted)), kAlignment);
    const OnednnLayout* const from = is_result ? wanted : &operand.plain;
    const OnednnLayout* const to = is_result ? &operand.plain : wanted;
    OnednnDescription* made = nullptr;
    if (l_.dnnl_reorder_primitive_desc_create(&made, from, l_.engine, to, l_.engine, settings) !=
        onednn_codes::kSuccess)
      return false;
    const OnednnHandle<OnednnDescription> description(made, l_.dnnl_primitive_desc_destroy);
    return make_step(made, operand.reorder);
  }

  bool lay_out() {
    const auto add = [this](int64_t size) {
      const int64_t at = scratch_bytes_;
      scratch_bytes_ += round_up(size, kAlignment);
      return at;
    };
    const bool is_grad_weight = kind_ == Kind::kGradWeight;
    source_.scratch_at = add(source_.blocked_bytes);
    if (is_grad_weight) factor_.scratch_at = add(factor_.blocked_bytes);
    result_.scratch_at = add(result_.blocked_bytes);
    if (is_grad_weight && units_ > chunks_) more_at_ = add(result_.blocked_bytes);
    temporary_at_ = add(std::max({main_.scratch_bytes, source_.reorder.scratch_bytes, factor_.reorder.scratch_bytes,
                                  result_.reorder.scratch_bytes}));
    if (!is_grad_weight) {
      shared_bytes_ = parts_ * factor_.blocked_bytes;
    } else if (chunks_ > 1) {
      shared_bytes_ = round_up(chunks_ * p_.weight.elements() * static_cast<int64_t>(sizeof(float)), kAlignment);
    }
    return true;
  }

  // ---- running

  /// The memory objects of one call.
  class Arguments {
   public:
    explicit Arguments(const OnednnPrimitives& library) : l_(library) {}
    Arguments(const Arguments&) = delete;
    Arguments& operator=(const Arguments&) = delete;
    ~Arguments() {
      for (int i = 0; i < count_; ++i) l_.dnnl_memory_destroy(all_[i].memory);
    }
    void add(int role, const OnednnLayout& layout, const void* at) {
      OnednnMemory* memory = nullptr;
      if (!ok_ || l_.dnnl_memory_create(&memory, &layout, l_.engine, const_cast<void*>(at)) != onednn_codes::kSuccess) {
        ok_ = false;
        return;
      }
      all_[count_++] = {role, memory};
    }
    bool execute(const OnednnStep& step) const {
      return ok_ &&
             l_.dnnl_primitive_execute(step.primitive.get(), l_.stream, count_, all_.data()) == onednn_codes::kSuccess;
    }

   private:
    const OnednnPrimitives& l_;
    std::array<OnednnArgument, kRoles + 1> all_{};
    int count_ = 0;
    bool ok_ = true;
  };

  void execute(const WindowMemory& memory, const OnednnStep& step, Arguments& arguments) const {
    if (step.scratch_bytes > 0) arguments.add(onednn_codes::kScratchpad, step.scratch, memory.scratch + temporary_at_);
    if (!arguments.execute(step)) memory.failed->store(true, std::memory_order_relaxed);
  }

  void reorder(const WindowMemory& memory, const OnednnStep& step, const OnednnLayout& from_layout, const void* from,
               const OnednnLayout& to_layout, void* to) const {
    Arguments arguments(l_);
    arguments.add(onednn_codes::kSource, from_layout, from);
    arguments.add(onednn_codes::kResult, to_layout, to);
    execute(memory, step, arguments);
  }

  void convert(const WindowMemory& memory, const Operand& operand, const void* from, void* to) const {
    reorder(memory, operand.reorder, operand.plain, from, operand.blocked, to);
  }
  void convert_back(const WindowMemory& memory, const Operand& operand, const void* from, void* to) const {
    reorder(memory, operand.reorder, operand.blocked, from, operand.plain, to);
  }

  const void* blocked(const WindowMemory& memory, const Operand& operand, const void* from) const {
    if (!operand.reorder) return from;
    char* const to = memory.scratch + operand.scratch_at;
    convert(memory, operand, from, to);
    return to;
  }

  // `source` and `factor` are x and weight, or dy and weight, or x and dy.
  void perform(const WindowMemory& memory, const void* source, const void* factor, const void* bias,
               void* result) const {
    const bool is_forward = kind_ == Kind::kForward, is_grad_weight = kind_ == Kind::kGradWeight;
    Arguments arguments(l_);
    arguments.add(kind_ == Kind::kGradInput ? onednn_codes::kResultGrad : onednn_codes::kSource, source_.blocked,
                  source);
    arguments.add(is_grad_weight ? onednn_codes::kResultGrad : onednn_codes::kWeight, factor_.blocked, factor);
    arguments.add(is_forward       ? onednn_codes::kResult
                  : is_grad_weight ? onednn_codes::kWeightGrad
                                   : onednn_codes::kSourceGrad,
                  result_.blocked, result);
    if (bias != nullptr) arguments.add(onednn_codes::kBias, bias_, bias);
    execute(memory, main_, arguments);
  }

  // The gradient of a part of the weights from a chunk of the images.
  void add_up(const WindowMemory& memory, int64_t task) const {
    const int64_t part = task % parts_, chunk = task / parts_;
    const int64_t first = chunk * units_ / chunks_, last = (chunk + 1) * units_ / chunks_;
    const int64_t elements = p_.weight.elements();
    float* const to = chunks_ > 1
                          ? reinterpret_cast<float*>(memory.shared) + chunk * elements + part * (elements / parts_)
                          : static_cast<float*>(memory.c) + part * weight_step_;
    const float* const x_part = static_cast<const float*>(memory.b) + part * source_part_;
    const float* const dy_part = static_cast<const float*>(memory.a) + part * result_part_;
    char* const sums = result_.reorder ? memory.scratch + result_.scratch_at : reinterpret_cast<char*>(to);
    for (int64_t unit = first; unit < last; ++unit) {
      const int64_t image = unit * images_;
      const void* const x = blocked(memory, source_, x_part + image * p_.x.strides[0]);
      const void* const dy = blocked(memory, factor_, dy_part + image * p_.y.strides[0]);
      char* const result = unit == first ? sums : memory.scratch + more_at_;
      perform(memory, x, dy, nullptr, result);
      if (unit == first) continue;
      float* const total = reinterpret_cast<float*>(sums);
      const float* const more = reinterpret_cast<const float*>(result);
      const int64_t n = result_.blocked_bytes / static_cast<int64_t>(sizeof(float));
      for (int64_t i = 0; i < n; ++i) total[i] += more[i];
    }
    if (result_.reorder) convert_back(memory, result_, sums, to);
  }

  const OnednnPrimitives& l_;
  const Openmp& openmp_;
  const Problem p_;
  const Kind kind_;
  bool usable_ = false;
  int64_t images_ = 1, units_ = 1;  // of a unit; units
  int64_t parts_ = 1;               // of the result's channels, or of the groups
  int64_t chunks_ = 1;              // of units, of which each has a gradient of the weights
  int64_t weight_step_ = 0, source_step_ = 0, source_part_ = 0, result_step_ = 0, result_part_ = 0;
  OnednnLayout bias_{};
  OnednnStep main_;
  Operand source_, factor_, result_;
  int64_t more_at_ = 0, temporary_at_ = 0;
};

bool is_worthwhile(const Problem& p, Kind kind) {
  if (p.is_empty() || p.work() < kLeastWork) return false;
  if (p.has_bias && (kind != Kind::kForward || p.bias_stride != 1)) return false;
  if (kind == Kind::kGradInput && p.has_steps()) return false;
  if (p.is_pointwise()) return false;  // a product of matrices as they are
  if (kind == Kind::kGradWeight) {
    // Its rows are written in one piece.
    int64_t stride = 1;
    for (int i = p.weight.rank; i-- > 1; stride *= p.weight.shape[i]) {
      if (p.weight.shape[i] != 1 && p.weight.strides[i] != stride) return false;
    }
    if (p.weight.elements() * static_cast<int64_t>(sizeof(float)) > kGradBytes) return false;
  }
  const int64_t in = p.x.shape[1], out = p.y.shape[1];
  if (p.groups > 1) return p.groups == in && p.groups == out && p.groups % kBlock == 0;
  // Blocks are filled up with zeros. Few channels of the input have kernels of their own.
  const bool is_first = in <= 4 && kind != Kind::kGradInput;
  const int64_t filled = (is_first ? in : round_up(in, kBlock)) * round_up(out, kBlock);
  return 5 * in * out >= 4 * filled;
}

}  // namespace

std::unique_ptr<WindowPart> make_onednn_part(const Op& op, int32_t threads) {
  if (op.output(0).dtype != COMPUTE_DTYPE_FLOAT32) return nullptr;
  const std::string engine = setting("COMPUTE_CPU_MATMUL").value_or("auto");
  if (engine != "auto" && engine != "onednn") return nullptr;
  const Problem problem(op);
  const Kind kind = op.name() == "convolution"              ? Kind::kForward
                    : op.name() == "convolution_grad_input" ? Kind::kGradInput
                                                            : Kind::kGradWeight;
  if (!is_worthwhile(problem, kind)) return nullptr;
  const Onednn* const library = onednn();
  if (library == nullptr || !library->primitives) return nullptr;
  auto part = std::make_unique<OnednnPart>(*library->primitives, library->openmp, problem, kind, threads);
  if (!part->is_usable()) return nullptr;
  return part;
}

}  // namespace compute::cpu
