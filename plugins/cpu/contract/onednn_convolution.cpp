// SPDX-License-Identifier: Apache-2.0
// Convolutions of float32 and of halves through oneDNN's kernels of float32. These are fast only in layouts with blocks
// of channels, so a task converts a few images, or a band of rows of one, to that layout, convolves them and converts
// the result back, all in the cache. A task runs on one thread, and oneDNN starts no threads. The division of images
// does not affect the sums of the first two primitives; the sum for the gradient of the weights is divided the same way
// for any number of threads.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/cpu/base/host.hpp"
#include "plugins/cpu/contract/onednn_primitives.hpp"
#include "plugins/cpu/contract/window_part.hpp"
#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/kernels/copy_kernel.hpp"
#include "plugins/cpu/kernels/gemm_kernel.hpp"

namespace compute::cpu {
namespace {

constexpr int64_t kBlock = 16;                    // channels of a block
constexpr int64_t kLeastFew = 3, kMostFew = 10;   // input channels of images for which blocks need not be full,
constexpr int64_t kResultsOfFew = 6;              // with so many channels of the result
constexpr int64_t kLeastWork = int64_t{1} << 18;  // multiplications
constexpr int64_t kImageBytes = 768 << 10;        // of the images of a task
constexpr int64_t kGradBytes = 1 << 20;           // of the weights, whose gradients are added up
constexpr int64_t kChunks = 16;                   // of images, whose gradients are added up in order
constexpr int64_t kHaloRatio = 2;                 // of the rows of a band to those that its neighbours bring in again
constexpr int64_t kLeastRows = 2;                 // of a band
constexpr double kTaskTime = 3000;                // rough times of a thread, in nanoseconds
constexpr double kMultiplications = 60;           // in a nanosecond
constexpr double kElements = 2;                   // that are brought into another layout in a nanosecond
constexpr double kNarrow = 8;                     // channels: for as few a convolution takes twice as long
constexpr int64_t kAlignment = 64;
constexpr int kRoles = 4;  // of tensors of a primitive: two inputs, a result, and a bias

int64_t ceiling(int64_t x, int64_t unit) { return (x + unit - 1) / unit; }
int64_t round_up(int64_t x, int64_t unit) { return ceiling(x, unit) * unit; }

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
  void drop(int axis) {
    std::copy(shape + axis + 1, shape + rank, shape + axis);
    std::copy(strides + axis + 1, strides + rank, strides + axis);
    --rank;
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
    // Kernels of the library go along the last axis, so axes without extent are left out.
    int i = 0;
    for (size_t at = 0; i < x.rank - 2; ++at) {
      if (x.rank > 3 && x.shape[2 + i] == 1 && weight.shape[2 + i] == 1 && y.shape[2 + i] == 1) {
        for (Tensor* const tensor : {&x, &weight, &y}) tensor->drop(2 + i);
        continue;
      }
      strides[i] = op.integers("strides")[at];
      dilations[i] = op.integers("dilations")[at] - 1;
      begin[i] = op.integers("pads_begin")[at];
      const int64_t reach = (weight.shape[2 + i] - 1) * (dilations[i] + 1) + 1;
      end[i] = (y.shape[2 + i] - 1) * strides[i] + reach - x.shape[2 + i] - begin[i];
      ++i;
    }
  }

  int64_t work() const { return y.elements() * (weight.elements() / std::max<int64_t>(weight.shape[0], 1)); }
  bool is_empty() const { return x.elements() == 0 || weight.elements() == 0 || y.elements() == 0; }
  bool is_pointwise() const {
    return std::all_of(weight.shape + 2, weight.shape + weight.rank, [](int64_t extent) { return extent == 1; });
  }
};

enum class Kind : uint8_t { kForward, kGradInput, kGradWeight };

/// A range of an axis of x or y.
struct Rows {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const Rows&) const = default;
};

/// Rows of x and of y that belong together: the rows of one are convolved to the rows of the other.
struct Band {
  Rows x, y;
  int64_t begin = 0, end = 0;  // rows of padding

  /// Whether a primitive that was made for `other` does this too.
  bool is_like(const Band& other) const {
    return x.size() == other.x.size() && y.size() == other.y.size() && begin == other.begin && end == other.end;
  }
};

/// The padding of all axes, for a band of the first.
struct Padding {
  OnednnDims begin{}, end{};

  Padding(const Problem& problem, const Band& band) {
    std::copy_n(problem.begin, problem.x.rank - 2, begin);
    std::copy_n(problem.end, problem.x.rank - 2, end);
    begin[0] = band.begin;
    end[0] = band.end;
  }
};

/// A tensor of the primitive: how the caller has it, how the primitive has it, and the way between the two. Halves are
/// converted to rows of float32 without gaps, which are `plain`.
struct Operand {
  Tensor given;
  int64_t plain_bytes = 0;
  OnednnLayout plain{}, blocked{};
  OnednnStep reorder;             // none: the primitive takes it as the caller has it, or as `plain`
  bool is_channels_last = false;  // halves whose positions are adjacent, of which `plain` has the channels adjacent
  int64_t blocked_bytes = 0;      // if it is not as the caller has it
};

/// A primitive and its arguments; bands of equal shape share one.
struct Convolution {
  Band band;
  OnednnStep main;
  Operand source, factor, result;  // x, weight and y, or dy, weight and dx, or x, dy and dweight

  int64_t temporary_bytes() const {
    return std::max(
        {main.scratch_bytes, source.reorder.scratch_bytes, factor.reorder.scratch_bytes, result.reorder.scratch_bytes});
  }
};

/// A band, and which convolution is for it.
struct BandPlace {
  Band band;
  size_t convolution = 0;
};

class OnednnPart final : public WindowPart {
 public:
  OnednnPart(const Onednn& library, const Problem& problem, Kind kind, compute_dtype dtype, const GemmKernel* tiles,
             int32_t threads)
      : l_(library.primitives),
        openmp_(library.openmp),
        p_(problem),
        kind_(kind),
        bytes_(common::dtype_size(dtype)),
        tiles_(tiles) {
    if (dtype == COMPUTE_DTYPE_FLOAT16) halves_ = &isa().gemm->float16;
    if (dtype == COMPUTE_DTYPE_BFLOAT16) halves_ = &isa().gemm->bfloat16;
    const OneOpenmpThread one(openmp_);  // primitives are made for one thread
    divide(threads, most_bands());
    usable_ = make();
    if (!usable_ && bands_.size() > 1) {  // the library has no such kernel for some band
      divide(threads, 1);
      usable_ = make();
    }
    if (usable_) lay_out();
  }

  bool is_usable() const { return usable_; }

  int64_t packing_tasks() const override {
    if (tiles_ != nullptr) return parts_ + source().shape[0];
    return kind_ != Kind::kGradWeight && weight().blocked_bytes > 0 ? parts_ : 0;
  }
  int64_t tasks() const override { return (kind_ == Kind::kGradWeight ? chunks_ : steps()) * parts_; }
  int64_t joining_tasks() const override { return chunks_ > 1 ? p_.weight.shape[0] : 0; }

  // The weights of one part of the channels.
  void pack(const WindowMemory& memory, int64_t part) const override {
    if (tiles_ != nullptr && part >= parts_) return find_least(memory, part - parts_);
    if (tiles_ != nullptr) {
      each_line(weight_part_, [&](int64_t offset, int64_t n, int64_t stride) {
        find_least(at(memory.a, part * weight_step_ + offset), stride, n, memory.leasts[0]);
      });
    }
    const OneOpenmpThread one(openmp_);
    char* const to = memory.shared + part * weight().blocked_bytes;
    const void* const from =
        widened(weight(), at(memory.a, part * weight_step_), weight().reorder ? memory.scratch + source_plain_at_ : to);
    if (weight().reorder) convert(memory, weight(), from, to);
  }

  void run(const WindowMemory& memory, int64_t task) const override {
    const OneOpenmpThread one(openmp_);
    if (kind_ == Kind::kGradWeight) return add_up(memory, task);
    const int64_t part = task % parts_, step = task / parts_;
    const Convolution& c = convolution_of(step);
    const void* const from = at(memory.b, place_of(step, source()) + part * source_part_);
    char* const to = at(memory.c, place_of(step, result()) + part * result_part_);
    const void* const factor =
        weight().blocked_bytes > 0 ? memory.shared + part * weight().blocked_bytes : at(memory.a, part * weight_step_);
    const int64_t channels = result().shape[1] / parts_;
    const void* bias = p_.has_bias ? at(memory.bias, part * channels) : nullptr;
    if (p_.has_bias && halves_ != nullptr) {
      float* const values = reinterpret_cast<float*>(memory.scratch + bias_at_);
      halves_->widen(static_cast<const uint16_t*>(bias), 1, values, channels);
      bias = values;
    }
    const void* const source = blocked(memory, c.source, from, source_at_);
    char* const plain = halves_ != nullptr ? memory.scratch + result_plain_at_ : to;
    char* const sums = c.result.reorder ? memory.scratch + result_at_ : plain;
    perform(memory, c, source, factor, takes_bias() ? bias : nullptr, sums);
    if (c.result.reorder) convert_back(memory, c.result, sums, plain);
    if (c.result.is_channels_last) {
      narrow_channels_last(c.result.given, plain, memory.scratch + result_at_, to);
    } else if (halves_ != nullptr) {
      narrow(c.result.given, plain, to);
    }
    if (p_.has_bias && !takes_bias()) add_bias(static_cast<const float*>(bias), c.band, reinterpret_cast<float*>(to));
  }

  // Sums one row of the weights' gradient over all chunks.
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

  bool is_grad_input() const { return kind_ == Kind::kGradInput; }
  bool is_grad_weight() const { return kind_ == Kind::kGradWeight; }
  bool takes_bias() const { return p_.has_bias && !is_grad_input(); }  // the primitive
  int64_t steps() const { return units_ * static_cast<int64_t>(bands_.size()); }

  // How many rows of x the kernel meets at a time.
  int64_t reach() const { return (p_.weight.shape[2] - 1) * (p_.dilations[0] + 1) + 1; }
  const Tensor& result() const { return is_grad_input() ? p_.x : p_.y; }

  Band band_of(Rows rows) const {
    const int64_t height = p_.x.shape[2], step = p_.strides[0], kernel = reach();
    Band band;
    if (is_grad_input()) {
      const int64_t first = rows.begin + p_.begin[0] - (kernel - 1), last = rows.end + p_.begin[0];
      band.x = rows;
      band.y = {ceiling(std::max<int64_t>(first, 0), step), std::min(ceiling(last, step), p_.y.shape[2])};
      band.begin = rows.begin + p_.begin[0] - band.y.begin * step;
      band.end = (band.y.size() - 1) * step + kernel - band.x.size() - band.begin;
    } else {
      const int64_t first = rows.begin * step - p_.begin[0], last = (rows.end - 1) * step + kernel - p_.begin[0];
      band.y = rows;
      band.x = {std::max<int64_t>(first, 0), std::min(last, height)};
      band.begin = std::max<int64_t>(-first, 0);
      band.end = std::max<int64_t>(last - height, 0);
    }
    return band;
  }

  // All bands of x are alike if they begin at multiples of the stride.
  int64_t rows_unit() const { return is_grad_input() ? p_.strides[0] : 1; }

  // Bands of equal numbers of rows of the result, or of y, except for the last.
  void cut(int64_t bands) {
    const int64_t rows = result().shape[2], each = round_up(ceiling(rows, bands), rows_unit());
    bands_.clear();
    for (int64_t row = 0; row < rows; row += each) bands_.push_back({band_of({row, std::min(row + each, rows)}), 0});
  }

  int64_t most_bands() const {
    const int64_t step = p_.strides[0];
    const int64_t least = std::max<int64_t>(kHaloRatio * (reach() - step) / step, kLeastRows) * rows_unit();
    return std::max<int64_t>(result().shape[2] / least, 1);
  }

  void divide(int32_t threads, int64_t most_bands) {
    const int64_t count = p_.x.shape[0];
    const int64_t bytes = (p_.x.elements() + p_.y.elements()) / count * static_cast<int64_t>(sizeof(float));
    images_ = std::clamp<int64_t>(kImageBytes / bytes, 1, count);
    while (count % images_ != 0) --images_;
    int64_t bands = 1;
    if (!is_grad_weight() && threads > 1) {
      bands = find_tasks(threads, most_bands);
    } else if (is_grad_weight()) {
      chunks_ = std::min(count / images_, kChunks);
      find_parts(threads);
    }
    units_ = count / images_;
    cut(bands);
  }

  bool can_halve() const {
    const int64_t channels = p_.groups > 1 ? p_.groups : is_grad_input() ? p_.x.shape[1] : p_.y.shape[1];
    return channels % (2 * parts_ * kBlock) == 0;
  }

  // The time of a division by rough rates and Graham's bound: a thread that is late, since another shares its core or
  // the system disturbs it, delays the end by no more than one task.
  static double time_of(int64_t tasks, double task_time, int32_t threads) {
    return static_cast<double>(tasks + threads - 1) / threads * task_time;
  }

  // The parts of each chunk of a gradient of the weights that take the least time.
  void find_parts(int32_t threads) {
    const auto chunks = static_cast<double>(chunks_);
    double best = 0;
    int64_t best_parts = 1;
    for (parts_ = 1;; parts_ *= 2) {
      const auto parts = static_cast<double>(parts_);
      const double x = static_cast<double>(p_.x.elements()) / (p_.groups > 1 ? parts : 1),
                   y = static_cast<double>(p_.y.elements()) / parts;
      const double task =
          kTaskTime + (static_cast<double>(p_.work()) / parts / kMultiplications + (x + y) / kElements) / chunks;
      const double time = time_of(chunks_ * parts_, task, threads);
      if (best == 0 || time < best) {
        best = time;
        best_parts = parts_;
      }
      if (!can_halve()) break;
    }
    parts_ = best_parts;
  }

  // The division among threads that takes the least time.
  int64_t find_tasks(int32_t threads, int64_t most_bands) {
    const int64_t count = p_.x.shape[0], rows = result().shape[2], most_images = images_;
    double best = 0;
    int64_t bands = 1, best_images = images_, best_parts = 1;
    const auto consider = [&](int64_t b) {
      const int64_t tasks = count / images_ * parts_ * ceiling(rows, round_up(ceiling(rows, b), rows_unit()));
      const double time = time_of(tasks, task_time(b), threads);
      if (best == 0 || time < best) {
        best = time;
        best_images = images_;
        best_parts = parts_;
        bands = b;
      }
    };
    for (parts_ = 1;; parts_ *= 2) {
      for (images_ = most_images; images_ > 1; --images_) {
        if (count % images_ == 0) consider(1);
      }
      for (int64_t b = 1; b <= most_bands; ++b) consider(b);
      if (!can_halve()) break;
    }
    images_ = best_images;
    parts_ = best_parts;
    return bands;
  }

  // Of a task, in nanoseconds.
  double task_time(int64_t bands) const {
    const Tensor &from = is_grad_input() ? p_.y : p_.x, &to = result();
    const auto images = static_cast<double>(images_), count = static_cast<double>(p_.x.shape[0]);
    const auto parts = static_cast<double>(parts_), rows = static_cast<double>(ceiling(to.shape[2], bands));
    const double share = rows / static_cast<double>(to.shape[2]) * images / count / parts;
    const double halo = bands == 1 ? 0
                                   : static_cast<double>(reach() - 1) / static_cast<double>(rows_unit()) /
                                         static_cast<double>(from.shape[2]);
    const double source =
        (rows / static_cast<double>(to.shape[2]) + halo) * images / count / (p_.groups > 1 ? parts : 1);
    const double narrow = p_.groups > 1 ? 0 : kNarrow * parts / static_cast<double>(to.shape[1]);
    return kTaskTime + static_cast<double>(p_.work()) * share * (1 + narrow) / kMultiplications +
           (static_cast<double>(from.elements()) * source + static_cast<double>(to.elements()) * share +
            static_cast<double>(p_.weight.elements()) / parts) /
               kElements;
  }

  // What a task sees of the tensors, in both layouts, and the primitives.
  bool make() {
    convolutions_.clear();
    const bool has_groups = p_.groups > 1;
    weight_part_ = p_.weight;
    if (has_groups) {
      weight_step_ = p_.weight.strides[0] * (p_.weight.shape[0] / parts_);
      weight_part_ = grouped(p_.weight);
    } else {
      const int axis = is_grad_input() ? 1 : 0;
      weight_part_.shape[axis] /= parts_;
      weight_step_ = weight_part_.strides[axis] * weight_part_.shape[axis];
    }
    // In chunks, the gradient leaves its layout of blocks for rows without gaps.
    if (chunks_ > 1) pack_rows(weight_part_);
    source_part_ = has_groups ? source().strides[1] * (source().shape[1] / parts_) : 0;
    result_part_ = result().strides[1] * (result().shape[1] / parts_);
    OnednnHandle<OnednnSettings> settings(nullptr, l_.dnnl_primitive_attr_destroy);
    OnednnSettings* made = nullptr;
    if (l_.dnnl_primitive_attr_create(&made) != onednn_codes::kSuccess) return false;
    settings.reset(made);
    if (l_.dnnl_primitive_attr_set_scratchpad_mode(made, onednn_codes::kUserScratchpad) != onednn_codes::kSuccess)
      return false;
    for (BandPlace& place : bands_) {
      const auto like = std::find_if(convolutions_.begin(), convolutions_.end(),
                                     [&](const Convolution& other) { return place.band.is_like(other.band); });
      place.convolution = static_cast<size_t>(like - convolutions_.begin());
      if (like == convolutions_.end()) {
        convolutions_.emplace_back();
        convolutions_.back().band = place.band;
        if (place.band.x.size() <= 0 || place.band.y.size() <= 0 || !make(made, convolutions_.back())) return false;
      }
    }
    return true;
  }

  bool make(const OnednnSettings* settings, Convolution& c) {
    Tensor x = p_.x, y = p_.y;
    x.shape[0] = y.shape[0] = images_;
    x.shape[2] = c.band.x.size();
    y.shape[2] = c.band.y.size();
    if (p_.groups > 1 || is_grad_input()) x.shape[1] /= parts_;
    if (p_.groups > 1 || !is_grad_input()) y.shape[1] /= parts_;
    OnednnLayout any_x, any_weight, any_y;
    const int64_t bias_stride = 1;
    if (!any(x, is_grad_input() ? onednn_codes::kFloat32 : factor_type(), any_x) ||
        !any(weight_part_, factor_type(), any_weight) ||
        !any(y, is_grad_input() ? factor_type() : onednn_codes::kFloat32, any_y))
      return false;
    // All primitives have weights in the layout of the first one.
    if (&c != &convolutions_.front()) any_weight = weight().blocked;
    if (l_.dnnl_memory_desc_init_by_strides(&bias_, 1, &y.shape[1], onednn_codes::kFloat32, &bias_stride) !=
        onednn_codes::kSuccess)
      return false;
    const OnednnHandle<OnednnDescription> forward = describe_forward(settings, c.band, any_x, any_weight, any_y);
    if (!forward) return false;
    OnednnHandle<OnednnDescription> gradient(nullptr, l_.dnnl_primitive_desc_destroy);
    if (kind_ != Kind::kForward)
      gradient = describe_gradient(settings, c.band, any_x, any_weight, any_y, forward.get());
    const OnednnDescription* const description = kind_ == Kind::kForward ? forward.get() : gradient.get();
    // Only oneDNN's generated kernels are faster than this plugin's own. For bfloat16, only those for AMX are faster
    // than the float32 kernels.
    const char* name = nullptr;
    if (description == nullptr ||
        l_.dnnl_primitive_desc_query(description, onednn_codes::kImplementation, 0, &name) != onednn_codes::kSuccess ||
        (!std::string_view(name).starts_with("jit") && !std::string_view(name).starts_with("brg")) ||
        (tiles_ != nullptr && std::string_view(name).find("amx") == std::string_view::npos)) {
      return false;
    }
    const auto layout = [&](int what) { return l_.dnnl_primitive_desc_query_md(description, what, 0); };
    if (!make_step(description, c.main)) return false;
    switch (kind_) {
      case Kind::kForward:
        return make_operand(settings, x, layout(onednn_codes::kSourceLayout), false, c.source) &&
               make_operand(settings, weight_part_, layout(onednn_codes::kWeightLayout), false, c.factor) &&
               make_operand(settings, y, layout(onednn_codes::kResultLayout), true, c.result);
      case Kind::kGradInput:
        return make_operand(settings, y, layout(onednn_codes::kResultGradLayout), false, c.source) &&
               make_operand(settings, weight_part_, layout(onednn_codes::kWeightLayout), false, c.factor) &&
               make_operand(settings, x, layout(onednn_codes::kSourceGradLayout), true, c.result);
      case Kind::kGradWeight:
        return make_operand(settings, x, layout(onednn_codes::kSourceLayout), false, c.source) &&
               make_operand(settings, y, layout(onednn_codes::kResultGradLayout), false, c.factor) &&
               make_operand(settings, weight_part_, layout(onednn_codes::kWeightGradLayout), true, c.result);
    }
    return false;
  }

  // Weights have a separate axis for groups.
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

  // What the primitives multiply.
  int factor_type() const { return tiles_ != nullptr ? onednn_codes::kBfloat16 : onednn_codes::kFloat32; }

  bool any(const Tensor& tensor, int type, OnednnLayout& layout) const {
    return l_.dnnl_memory_desc_init_by_tag(&layout, tensor.rank, tensor.shape, type, onednn_codes::kAnyLayout) ==
           onednn_codes::kSuccess;
  }

  OnednnHandle<OnednnDescription> describe(const OnednnConvolutionProblem& problem, const OnednnSettings* settings,
                                           const OnednnDescription* forward) const {
    OnednnDescription* made = nullptr;
    if (l_.dnnl_primitive_desc_create(&made, &problem, settings, l_.engine, forward) != onednn_codes::kSuccess)
      made = nullptr;
    return {made, l_.dnnl_primitive_desc_destroy};
  }

  OnednnHandle<OnednnDescription> describe_forward(const OnednnSettings* settings, const Band& band,
                                                   const OnednnLayout& x, const OnednnLayout& weight,
                                                   const OnednnLayout& y) const {
    const Padding padding(p_, band);
    OnednnConvolutionProblem problem{};
    if (l_.dnnl_dilated_convolution_forward_desc_init(
            &problem, onednn_codes::kTraining, onednn_codes::kDirect, &x, &weight, takes_bias() ? &bias_ : nullptr, &y,
            p_.strides, p_.dilations, padding.begin, padding.end) != onednn_codes::kSuccess) {
      return {nullptr, l_.dnnl_primitive_desc_destroy};
    }
    return describe(problem, settings, nullptr);
  }

  OnednnHandle<OnednnDescription> describe_gradient(const OnednnSettings* settings, const Band& band,
                                                    const OnednnLayout& x, const OnednnLayout& weight,
                                                    const OnednnLayout& y, const OnednnDescription* forward) const {
    const Padding padding(p_, band);
    OnednnConvolutionProblem problem{};
    const int status =
        is_grad_input()
            ? l_.dnnl_dilated_convolution_backward_data_desc_init(&problem, onednn_codes::kDirect, &x, &weight, &y,
                                                                  p_.strides, p_.dilations, padding.begin, padding.end)
            : l_.dnnl_dilated_convolution_backward_weights_desc_init(&problem, onednn_codes::kDirect, &x, &weight,
                                                                     nullptr, &y, p_.strides, p_.dilations,
                                                                     padding.begin, padding.end);
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

  // True iff the positions of a tensor are adjacent, and a layout has the channels adjacent.
  bool is_channels_last(const Tensor& tensor, const OnednnLayout& layout) const {
    Tensor last = tensor;
    int64_t positions = 1;
    for (int axis = tensor.rank; axis-- > 2; positions *= tensor.shape[axis]) {
      if (tensor.shape[axis] != 1 && tensor.strides[axis] != positions) return false;
      last.strides[axis] = positions * tensor.shape[1];
    }
    last.strides[0] = positions * tensor.shape[1];
    last.strides[1] = 1;
    OnednnLayout described;
    return l_.dnnl_memory_desc_init_by_strides(&described, last.rank, last.shape, onednn_codes::kFloat32,
                                               last.strides) == onednn_codes::kSuccess &&
           l_.dnnl_memory_desc_equal(&described, &layout) != 0;
  }

  bool make_operand(const OnednnSettings* settings, const Tensor& tensor, const OnednnLayout* wanted, bool is_result,
                    Operand& operand) const {
    operand.blocked = *wanted;
    operand.given = tensor;
    Tensor plain = tensor;
    if (is_result && halves_ != nullptr) operand.is_channels_last = is_channels_last(tensor, *wanted);
    const bool takes_halves = tiles_ != nullptr && !is_result;
    if (halves_ != nullptr && !takes_halves) {
      pack_rows(plain);
      operand.plain_bytes = operand.blocked_bytes =
          round_up(tensor.elements() * static_cast<int64_t>(sizeof(float)), kAlignment);
    }
    if (l_.dnnl_memory_desc_init_by_strides(&operand.plain, tensor.rank, tensor.shape,
                                            takes_halves ? onednn_codes::kBfloat16 : onednn_codes::kFloat32,
                                            plain.strides) != onednn_codes::kSuccess) {
      return false;
    }
    if (operand.is_channels_last) return true;
    const bool adds_up = is_result && is_grad_weight() && steps() > 1;
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

  void lay_out() {
    const auto add = [this](auto size) {
      int64_t most = 0;
      for (const Convolution& c : convolutions_) most = std::max<int64_t>(most, size(c));
      const int64_t at = scratch_bytes_;
      scratch_bytes_ += round_up(most, kAlignment);
      return at;
    };
    source_at_ = add([](const Convolution& c) { return c.source.blocked_bytes; });
    source_plain_at_ = add([](const Convolution& c) { return std::max(c.source.plain_bytes, c.factor.plain_bytes); });
    result_plain_at_ = add([](const Convolution& c) { return c.result.plain_bytes; });
    if (halves_ != nullptr && p_.has_bias)
      bias_at_ = add([this](const Convolution&) { return result().shape[1] * static_cast<int64_t>(sizeof(float)); });
    if (is_grad_weight()) factor_at_ = add([](const Convolution& c) { return c.factor.blocked_bytes; });
    result_at_ = add([](const Convolution& c) { return c.result.blocked_bytes; });
    if (is_grad_weight() && steps() > chunks_)
      more_at_ = add([](const Convolution& c) { return c.result.blocked_bytes; });
    temporary_at_ = add([](const Convolution& c) { return c.temporary_bytes(); });
    if (!is_grad_weight()) {
      shared_bytes_ = parts_ * weight().blocked_bytes;
    } else if (chunks_ > 1) {
      shared_bytes_ = round_up(chunks_ * p_.weight.elements() * static_cast<int64_t>(sizeof(float)), kAlignment);
    }
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

  const void* blocked(const WindowMemory& memory, const Operand& operand, const void* from, int64_t scratch_at) const {
    from = widened(operand, from, memory.scratch + source_plain_at_);
    if (!operand.reorder) return from;
    char* const to = memory.scratch + scratch_at;
    convert(memory, operand, from, to);
    return to;
  }

  // Elements of the dtype.
  char* at(void* p, int64_t elements) const { return static_cast<char*>(p) + elements * bytes_; }
  const char* at(const void* p, int64_t elements) const { return static_cast<const char*>(p) + elements * bytes_; }

  // f(offset, n, stride) for lines of a tensor in order.
  template <class F>
  static void each_line(const Tensor& tensor, const F& f) {
    int outer = tensor.rank - 1;
    int64_t n = tensor.shape[outer], stride = n == 1 ? 1 : tensor.strides[outer];
    for (; outer > 0 && (n == 1 || tensor.shape[outer - 1] == 1 || tensor.strides[outer - 1] == n * stride); --outer) {
      if (n == 1) stride = tensor.strides[outer - 1];
      n *= tensor.shape[outer - 1];
    }
    const int64_t lines = tensor.elements() / std::max<int64_t>(n, 1);
    for (int64_t line = 0; line < lines; ++line) {
      int64_t rest = line, offset = 0;
      for (int axis = outer; axis-- > 0;) {
        offset += rest % tensor.shape[axis] * tensor.strides[axis];
        rest /= tensor.shape[axis];
      }
      f(offset, n, stride);
    }
  }

  // Halves as float32, in `room`; what is float32 already stays where it is.
  const void* widened(const Operand& operand, const void* from, void* room) const {
    if (operand.plain_bytes == 0) return from;
    float* to = static_cast<float*>(room);
    each_line(operand.given, [&](int64_t offset, int64_t n, int64_t stride) {
      halves_->widen(static_cast<const uint16_t*>(from) + offset, stride, to, n);
      to += n;
    });
    return room;
  }
  void narrow_channels_last(const Tensor& tensor, const void* from, char* room, char* to) const {
    const int64_t channels = tensor.shape[1], n = tensor.elements() / tensor.shape[0];
    for (int64_t image = 0; image < tensor.shape[0]; ++image) {
      halves_->narrow(static_cast<const float*>(from) + image * n, reinterpret_cast<uint16_t*>(room), 1, n);
      isa().copy->transpose[1](room, channels * bytes_, at(to, image * tensor.strides[0]), tensor.strides[1] * bytes_,
                               n / channels, channels);
    }
  }

  // Lowers `least` to the least magnitude of an image or a line.
  void find_least(const WindowMemory& memory, int64_t image) const {
    Tensor one = source();
    one.shape[0] = 1;
    const char* const from = at(memory.b, image * one.strides[0]);
    each_line(one, [&](int64_t offset, int64_t n, int64_t stride) {
      find_least(at(static_cast<const void*>(from), offset), stride, n, memory.leasts[1]);
    });
  }
  void find_least(const void* line, int64_t stride, int64_t n, std::atomic<uint16_t>& least) const {
    uint16_t before = least.load(std::memory_order_relaxed);
    const uint16_t found = tiles_->least(static_cast<const uint16_t*>(line), stride, n, before);
    while (found < before && !least.compare_exchange_weak(before, found, std::memory_order_relaxed)) {
    }
  }
  void narrow(const Tensor& tensor, const void* from, void* to) const {
    const float* results = static_cast<const float*>(from);
    each_line(tensor, [&](int64_t offset, int64_t n, int64_t stride) {
      halves_->narrow(results, static_cast<uint16_t*>(to) + offset, stride, n);
      results += n;
    });
  }

  // `source` and `factor` are x and weight, or dy and weight, or x and dy.
  void perform(const WindowMemory& memory, const Convolution& c, const void* source, const void* factor,
               const void* bias, void* result) const {
    Arguments arguments(l_);
    arguments.add(is_grad_input() ? onednn_codes::kResultGrad : onednn_codes::kSource, c.source.blocked, source);
    arguments.add(is_grad_weight() ? onednn_codes::kResultGrad : onednn_codes::kWeight, c.factor.blocked, factor);
    arguments.add(is_grad_weight()  ? onednn_codes::kWeightGrad
                  : is_grad_input() ? onednn_codes::kSourceGrad
                                    : onednn_codes::kResult,
                  c.result.blocked, result);
    if (bias != nullptr) arguments.add(onednn_codes::kBias, bias_, bias);
    execute(memory, c.main, arguments);
  }

  // Adds the values of its channels to a part of x whose first element is at `to`.
  void add_bias(const float* bias, const Band& band, float* to) const {
    const int last = p_.x.rank - 1;
    const int64_t columns = last == 2 ? band.x.size() : p_.x.shape[last], stride = p_.x.strides[last];
    int64_t rows = last == 2 ? 1 : band.x.size();
    for (int axis = 3; axis < last; ++axis) rows *= p_.x.shape[axis];
    for (int64_t image = 0; image < images_; ++image) {
      for (int64_t channel = 0; channel < p_.x.shape[1] / parts_; ++channel) {
        for (int64_t row = 0; row < rows; ++row) {
          float* at = to + image * p_.x.strides[0] + channel * p_.x.strides[1];
          int64_t rest = row;
          for (int axis = last - 1; axis > 2; --axis) {
            at += rest % p_.x.shape[axis] * p_.x.strides[axis];
            rest /= p_.x.shape[axis];
          }
          if (last > 2) at += rest * p_.x.strides[2];
          if (stride == 1) {
            for (int64_t i = 0; i < columns; ++i) at[i] += bias[channel];
          } else {
            for (int64_t i = 0; i < columns; ++i) at[i * stride] += bias[channel];
          }
        }
      }
    }
  }

  // A step is a band of a unit of images.
  const BandPlace& band(int64_t step) const { return bands_[static_cast<size_t>(step) % bands_.size()]; }
  const Convolution& convolution_of(int64_t step) const { return convolutions_[band(step).convolution]; }
  // Where the first element of a step is in x or y.
  int64_t place_of(int64_t step, const Tensor& tensor) const {
    const Band& rows = band(step).band;
    return step / static_cast<int64_t>(bands_.size()) * images_ * tensor.strides[0] +
           (&tensor == &p_.x ? rows.x : rows.y).begin * tensor.strides[2];
  }

  // The gradient of a part of the weights from a chunk of the images.
  void add_up(const WindowMemory& memory, int64_t task) const {
    const int64_t part = task % parts_, chunk = task / parts_;
    const int64_t first = chunk * steps() / chunks_, last = (chunk + 1) * steps() / chunks_;
    const int64_t elements = p_.weight.elements();
    float* const to = chunks_ > 1
                          ? reinterpret_cast<float*>(memory.shared) + chunk * elements + part * (elements / parts_)
                          : static_cast<float*>(memory.c) + part * weight_step_;
    const float* const x_part = static_cast<const float*>(memory.b) + part * source_part_;
    const float* const dy_part = static_cast<const float*>(memory.a) + part * result_part_;
    const bool converts = static_cast<bool>(weight().reorder);
    char* const sums = converts ? memory.scratch + result_at_ : reinterpret_cast<char*>(to);
    for (int64_t step = first; step < last; ++step) {
      const Convolution& c = convolution_of(step);
      const void* const x = blocked(memory, c.source, x_part + place_of(step, p_.x), source_at_);
      const void* const dy = blocked(memory, c.factor, dy_part + place_of(step, p_.y), factor_at_);
      char* const result = step == first ? sums : memory.scratch + more_at_;
      perform(memory, c, x, dy, nullptr, result);
      if (step == first) continue;
      float* const total = reinterpret_cast<float*>(sums);
      const float* const more = reinterpret_cast<const float*>(result);
      const int64_t n = weight().blocked_bytes / static_cast<int64_t>(sizeof(float));
      for (int64_t i = 0; i < n; ++i) total[i] += more[i];
    }
    if (converts) convert_back(memory, weight(), sums, to);
  }

  const Tensor& source() const { return is_grad_input() ? p_.y : p_.x; }
  const Operand& weight() const {
    return is_grad_weight() ? convolutions_.front().result : convolutions_.front().factor;
  }

  const OnednnPrimitives& l_;
  const Openmp& openmp_;
  const Problem p_;
  const Kind kind_;
  const int64_t bytes_;               // of an element
  const GemmKernel* const tiles_;     // if AMX multiplies bfloat16, else NULL
  const HalfRows* halves_ = nullptr;  // conversions of a half type
  bool usable_ = false;
  int64_t images_ = 1, units_ = 1;  // of a unit; units
  std::vector<BandPlace> bands_;    // of a unit, with several images one
  int64_t parts_ = 1;               // of the result's channels, or of the groups
  int64_t chunks_ = 1;              // of steps, each with its own gradient of the weights
  Tensor weight_part_;
  int64_t weight_step_ = 0, source_part_ = 0, result_part_ = 0;
  OnednnLayout bias_{};
  std::vector<Convolution> convolutions_;
  int64_t source_at_ = 0, factor_at_ = 0, result_at_ = 0, more_at_ = 0, temporary_at_ = 0;
  int64_t source_plain_at_ = 0, result_plain_at_ = 0, bias_at_ = 0;
};

bool is_worthwhile(const Problem& p, Kind kind, compute_dtype dtype, bool by_tiles) {
  if (p.is_empty() || p.work() < kLeastWork) return false;
  // Their gradients would have to be added up, or a bias added, in float32.
  if (dtype != COMPUTE_DTYPE_FLOAT32 && (kind == Kind::kGradWeight || (kind == Kind::kGradInput && p.has_bias)))
    return false;
  if (p.has_bias && p.bias_stride != 1) return false;
  // A product of matrices as they are. The library adds up in an order that depends on the rows of a band.
  if (p.is_pointwise() && !by_tiles) return false;
  if (by_tiles && p.groups == 1) return true;  // zeros cost little
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
  // Blocks are padded with zeros. oneDNN has special kernels for few input channels.
  const bool is_first = in <= 4 && kind != Kind::kGradInput;
  const int64_t filled = (is_first ? in : round_up(in, kBlock)) * round_up(out, kBlock);
  // Of images with few channels, copying windows takes longer than the products, and longer than work on zeros.
  if (kind == Kind::kForward && p.x.rank == 4 && in >= kLeastFew && in <= kMostFew && out >= kResultsOfFew) return true;
  // Without it, windows are copied: with three axes that takes so long that half of the work may go to zeros.
  return p.x.rank > 4 ? 2 * in * out >= filled : 5 * in * out >= 4 * filled;
}

}  // namespace

std::unique_ptr<WindowPart> make_onednn_part(const Op& op, int32_t threads, const GemmKernel* tiles) {
  const compute_dtype dtype = op.output(0).dtype;
  if (dtype != COMPUTE_DTYPE_FLOAT32 && dtype != COMPUTE_DTYPE_FLOAT16 && dtype != COMPUTE_DTYPE_BFLOAT16)
    return nullptr;
  const Problem problem(op);
  const Kind kind = op.name() == "convolution"              ? Kind::kForward
                    : op.name() == "convolution_grad_input" ? Kind::kGradInput
                                                            : Kind::kGradWeight;
  if (!is_worthwhile(problem, kind, dtype, tiles != nullptr)) return nullptr;
  const Onednn* const library = onednn();
  if (library == nullptr) return nullptr;
  auto part = std::make_unique<OnednnPart>(*library, problem, kind, dtype, tiles, threads);
  if (!part->is_usable()) return nullptr;
  return part;
}

}  // namespace compute::cpu
