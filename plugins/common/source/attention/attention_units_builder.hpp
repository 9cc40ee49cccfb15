// SPDX-License-Identifier: Apache-2.0
// Shared by the wgmma kernels of attention: operands, the words of the block, and the positions of a group.
//
// A group has kUnitRows rows, queries or keys, in two halves of 64. It iterates over the others, the columns, in tiles.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plugins/common/source/attention/attention_tiles.hpp"
#include "plugins/common/source/builder/kernel_builder.hpp"

namespace compute::common {

inline constexpr int64_t kUnitRows = 128, kUnitGroup = 256;  // of a group
inline constexpr int64_t kMostUnitFeatures = 128;
inline constexpr int64_t kMostUnitLocalBytes = 227 << 10;

class AttentionUnitsBuilder {
 public:
  /// Adds the kernel. The words of the block come first, then the text.
  void build(BuiltKernels& built);

 protected:
  using Part = AttentionPart;

  /// The inputs of attention_grad, then results, and what is in the workspace.
  enum Operand { kDy, kQ, kK, kV, kY, kL, kFirst, kSecond, kDelta, kOperands };

  /// The kernel has this name, with an ending by its part.
  AttentionUnitsBuilder(const Op& op, const Dialect& dialect, Part part, std::string_view name, const char* storage,
                        bool with_text);
  ~AttentionUnitsBuilder() = default;

  virtual int64_t tile() const = 0;  // columns of it
  virtual void prepare() = 0;        // signs, further operands, and bytes of local memory
  virtual void add_text() = 0;       // globals and the body

  bool is_of_keys() const { return part_ == Part::kKeys; }
  const char* row_extent() const { return is_of_keys() ? "m" : "n"; }
  const char* column_extent() const { return is_of_keys() ? "n" : "m"; }

  int32_t add_workspace(const char* storage, int64_t offset, bool is_const);

  // ---- text

  void set(std::string_view name, std::string value) { values_.emplace_back(name, std::move(value)); }
  void set(std::string_view name, int64_t value) { set(name, cat(value)); }
  std::string filled(std::string_view text, const std::vector<Value>& own = {}) const;

  /// The element at `row` and `feature`, or of statistics, which have no features.
  std::string element(Operand operand, std::string_view row, std::string_view feature = {}) const;
  /// Declares the places of a group and of an item, see attention_units_builder.cpp.
  std::string place_text() const;
  /// Gives templates the condition under which a tile `$has_edge`, and the statements that `$hide` scores or weights
  /// where `is_hidden` holds of `row` and `column`. Where columns are keys it is done already.
  void set_mask(std::string_view has_edge, std::string_view is_hidden);
  /// The same statements for another target.
  std::string mask_text(const char* target, const char* value) const;
  /// Declares where the columns of tile `number` of a gradient begin.
  std::string tile_place_text(std::string_view number) const;

  const Op& op_;
  const Part part_;
  KernelBuilder builder_;
  const compute_plugin_tensor &q_, &k_;
  const int64_t features_;

 private:
  int64_t heads() const { return is_of_keys() ? k_.shape[1] : q_.shape[1]; }
  int64_t tiles() const;
  void add_operand(Operand operand, int32_t index, const char* storage);
  void add_operands(const char* storage);
  void word(std::string_view name, int64_t value);
  void add_words();

  int32_t numbers_[kOperands] = {-1, -1, -1, -1, -1, -1, -1, -1, -1};
  int64_t strides_[kOperands][3] = {};
  int32_t words_[kOperands][3] = {};
  std::string_view is_hidden_;
  std::vector<std::pair<std::string_view, std::string>> values_;  // of the templates
};

}  // namespace compute::common
