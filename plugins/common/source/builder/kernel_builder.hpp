// SPDX-License-Identifier: Apache-2.0
// The common parts of generated kernels: parameters, the block of arguments, loops over an index space, and vectors of
// elements.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plugins/common/op/layout.hpp"
#include "plugins/common/source/builder/launch.hpp"
#include "plugins/common/source/expressions/expression.hpp"
#include "plugins/common/source/expressions/functions.hpp"
#include "plugins/common/source/expressions/template.hpp"
#include "plugins/common/source/expressions/types.hpp"

namespace compute::common {

/// A kernel and its launch under construction. The order of the calls determines the words of the block, so the same
/// calls with and without text describe the same kernel.
class KernelBuilder {
 public:
  /// `what` is op and version; it begins the signature and the entry point's name.
  KernelBuilder(const Dialect& dialect, std::string_view what, bool with_text);

  const Dialect& dialect() const { return functions_.dialect(); }
  bool with_text() const { return with_text_; }
  Functions& functions() { return functions_; }

  /// A parameter with the name "p" and the returned number.
  int32_t pointer(Pointer::Kind kind, int32_t index, int64_t offset_bytes);
  /// An argument; index_word(number) is the text that reads it as the kernel's index type.
  int32_t word(int64_t value);
  /// A run-time scalar of `dtype`; returns the text of its value.
  std::string scalar(int32_t scalar, compute_dtype dtype);

  static std::string word_text(int32_t number) { return cat("COMPUTE_WORD(", number, ")"); }
  static std::string index_word(int32_t number) { return cat("((ix)COMPUTE_WORD(", number, "))"); }
  /// Declares the typed pointer for parameter `number`, with the name "x" and the number.
  void declare(int32_t number, const char* storage, bool is_const);

  /// Adds to the signature everything that the text depends on except its words.
  void sign(int64_t value);
  void sign(const compute_plugin_expression& expression);

  std::string body;          // statements of the kernel, after the declarations of pointers
  std::string globals;       // definitions before it
  bool is_wide = false;      // 64-bit indices; set before the first use of an index
  int64_t local_bytes = 0;   // of Launch
  bool starts_next = false;  // lets the next kernel's groups start while this one runs; small kernels always do
  int least_at_once = 0;     // groups for which a multiprocessor must have registers; 0: any number

  /// The finished launch.
  Launch finish(int64_t groups);
  /// The complete text, after finish().
  KernelSource source(const Launch& launch) const;

 private:
  bool with_text_;
  Functions functions_;
  std::string name_;
  std::string signature_;
  std::string declarations_;
  std::vector<Pointer> pointers_;
  std::vector<int64_t> offsets_;
  std::vector<ScalarSlot> scalars_;
  std::vector<int64_t> words_;
  int32_t starts_word_ = 0;
};

/// A kernel of an op, with its text if it was requested.
struct BuiltKernel {
  Launch launch;
  KernelSource source;
};
/// The kernels of an op, in the order of their launches.
struct BuiltKernels {
  std::vector<BuiltKernel> kernels;
  int64_t workspace_bytes = 0;
  bool reports_faults = false;

  void add(KernelBuilder& builder, int64_t groups) {
    BuiltKernel kernel{builder.finish(groups), {}};
    if (builder.with_text()) kernel.source = builder.source(kernel.launch);
    kernels.push_back(std::move(kernel));
  }
};

/// The second argument of compute_divide, which divides by `divisor`, at least 1.
int64_t divisor_word(int64_t divisor);

/// A loop nest in a kernel: a linear index is divided into coordinates.
class Space {
 public:
  explicit Space(LoopNest nest) : nest_(std::move(nest)) {}

  const LoopNest& nest() const { return nest_; }
  int rank() const { return nest_.rank; }
  int64_t points() const { return nest_.points(); }
  int64_t inner_extent() const { return nest_.rank == 0 ? 1 : nest_.extents[nest_.rank - 1]; }
  int64_t inner_stride(int operand) const { return nest_.rank == 0 ? 0 : nest_.strides[operand][nest_.rank - 1]; }

  /// Adds the words. Coordinates count vectors of `lanes` elements along the innermost loop.
  void add_words(KernelBuilder& builder, int lanes);
  /// Declares prefix0, prefix1, … from the text of a linear index of vectors.
  std::string coordinates(const KernelBuilder& builder, std::string_view prefix, std::string_view linear) const;
  /// The element offset of an operand at the coordinates.
  std::string offset(int operand, std::string_view prefix) const;

 private:
  LoopNest nest_;
  std::vector<int32_t> divisor_words_;              // per loop except the outermost
  std::vector<std::vector<int32_t>> stride_words_;  // per operand, per loop
};

/// collapse() for an op's tensors and further operands that are given as strides.
LoopNest collapse_operands(std::span<const int64_t> shape, std::span<const std::vector<int64_t>> strides, int leader);

/// The strides that give the position along `axis` as an offset.
std::vector<int64_t> index_strides(int32_t rank, int32_t axis);

/// Whether offsets and positions need 64 bits, for `points` and operands with elements of `sizes` bytes. A kernel adds
/// up to `further[i]` elements to the offsets of operand i in the nest, or nothing if `further` is empty.
bool needs_wide(const LoopNest& nest, std::span<const int32_t> sizes, int64_t points,
                std::span<const int64_t> further = {});

std::vector<int64_t> strides_of(const compute_plugin_tensor& tensor);
inline std::span<const int64_t> shape_of(const compute_plugin_tensor& tensor) {
  return {tensor.shape, static_cast<size_t>(tensor.rank)};
}
/// The step from each element to the next in row-major order, if it is the same everywhere.
std::optional<int64_t> row_major_step(const compute_plugin_tensor& tensor);

/// The type of a vector load of `lanes` elements, declared in the builder's globals, and its words.
struct VectorText {
  std::string type;
  std::string word;
  int words = 1;
};
VectorText vector_type(KernelBuilder& builder, const char* storage, int32_t size, int lanes);

/// Work items of a warp, which exchange registers on devices with `has_warps`.
constexpr int32_t kWarp = 32;

/// Defines compute_from_lane(x, lane): the x of another item of the warp, a value of `type`. All items of the warp call
/// it. kWarpFunctions are defined, too.
void define_lane_exchange(KernelBuilder& builder, std::string_view type);

/// Whether `lanes` elements of `size` bytes can be accessed at once, in words of up to 16 bytes, at every multiple of
/// their total size.
inline int32_t vector_alignment(int32_t size, int lanes) { return std::min(16, size * lanes); }

inline int64_t divide_up(int64_t x, int64_t y) { return (x + y - 1) / y; }

}  // namespace compute::common
