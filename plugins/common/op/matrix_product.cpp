// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/op/matrix_product.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace compute::common {
namespace {

// Strides along an axis of extent 1 say nothing.
std::optional<PlacedMatrix> place(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
  if ((row_stride == 1 || rows == 1) && (columns == 1 || column_stride >= rows)) {
    return PlacedMatrix{false, columns == 1 ? rows : column_stride};
  }
  if ((column_stride == 1 || columns == 1) && (rows == 1 || row_stride >= columns)) {
    return PlacedMatrix{true, rows == 1 ? columns : row_stride};
  }
  return std::nullopt;
}

void remove_loop(LoopNest& nest, int loop) {
  move_loop(nest, loop, 0);
  const auto drop_first = [&](auto& array) { std::copy(array.begin() + 1, array.end(), array.begin()); };
  drop_first(nest.extents);
  for (auto& strides : nest.strides) drop_first(strides);
  --nest.rank;
}

// Swaps the roles: the transpose of the result is the product of the transposes in reverse order.
void transpose(MatrixProduct& p) {
  std::swap(p.m, p.n);
  for (int i = 0; i < kOperands; ++i) std::swap(p.row[i], p.column[i]);
  std::swap(p.row[kA], p.row[kB]);
  std::swap(p.column[kA], p.column[kB]);
  std::swap(p.argument[kA], p.argument[kB]);
  std::swap(p.batch.strides[kA], p.batch.strides[kB]);
  std::swap(p.batch.offsets[kA], p.batch.offsets[kB]);
}

// A batch axis that continues the rows of a and c, with one b for all, makes the matrix longer instead.
void fold_batch(MatrixProduct& p) {
  for (int loop = p.batch.rank - 1; loop >= 0; --loop) {
    const auto stride = [&](int operand) {
      return p.batch.strides[static_cast<size_t>(operand)][static_cast<size_t>(loop)];
    };
    const int64_t extent = p.batch.extents[static_cast<size_t>(loop)];
    // Along an axis of extent 1 any stride will do; one that makes a row-major matrix of the batch is taken.
    const auto continues = [&](int other, int64_t* along, const int64_t* across, int64_t length, int lengthened,
                               int64_t wide) {
      if (stride(other) != 0) return false;
      const auto operands = {lengthened, int{kC}, p.has_addend ? int{kAddend} : int{kC}};
      if (length > 1) {
        return std::all_of(operands.begin(), operands.end(), [&](int i) { return stride(i) == length * along[i]; });
      }
      for (const int i : operands) {
        if (across[i] != 1 || stride(i) < (i == lengthened ? p.k : wide)) return false;
      }
      for (const int i : operands) along[i] = stride(i);
      return true;
    };
    if (continues(kB, p.row, p.column, p.m, kA, p.n)) {
      p.m *= extent;
    } else if (continues(kA, p.column, p.row, p.n, kB, p.m)) {
      p.n *= extent;
    } else {
      continue;
    }
    remove_loop(p.batch, loop);
  }
}

}  // namespace

std::optional<Refusal> refuse_epilogue(const Op& op) {
  if (op.expression_count() == 0) return std::nullopt;
  const compute_plugin_expression& expression = op.expression(0);
  const bool has_index = std::any_of(expression.nodes, expression.nodes + expression.node_count,
                                     [](const auto& node) { return node.kind == COMPUTE_PLUGIN_NODE_INDEX; });
  if (op.expression_count() == 1 && expression.input_count == 1 && expression.output_count == 1 && !has_index)
    return std::nullopt;
  return Refusal{COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, -1,
                 std::string(op.name()) + ": such expressions on the result are not supported", ""};
}

int64_t MatrixProduct::batches() const { return batch.points(); }

bool is_given(const Op& op, int32_t input) { return input < op.input_count() && op.input(input).rank >= 0; }

MatrixProduct read_product(const Op& op) {
  MatrixProduct p;
  const compute_plugin_tensor& c = op.output(0);
  const compute_plugin_tensor* tensors[kOperands] = {&op.input(0), &op.input(1), &c, nullptr};
  p.has_addend = is_given(op, 2) && op.integer("scaled", 0) == 1;  // else its factor is 0
  if (p.has_addend) tensors[kAddend] = &op.input(2);
  p.m = c.shape[c.rank - 2];
  p.n = c.shape[c.rank - 1];
  p.k = op.input(0).shape[op.input(0).rank - 1];
  std::array<const int64_t*, kOperands> strides{};
  for (int i = 0; i < kOperands; ++i) {
    const compute_plugin_tensor& tensor = tensors[i] != nullptr ? *tensors[i] : c;
    strides[static_cast<size_t>(i)] = tensor.strides;
    p.row[i] = tensor.strides[tensor.rank - 2];
    p.column[i] = tensor.strides[tensor.rank - 1];
  }
  p.batch = collapse({c.shape, static_cast<size_t>(c.rank - 2)}, strides, kC);
  return p;
}

int place_operands(MatrixProduct& p) {
  const auto lies_in_columns = [&] {
    const auto placed = place(p.m, p.n, p.row[kC], p.column[kC]);
    return placed && !placed->transposed;
  };
  fold_batch(p);
  if (!lies_in_columns()) {
    transpose(p);
    if (!lies_in_columns()) return kC;
  }
  const std::pair<int64_t, int64_t> extents[kOperands] = {{p.m, p.k}, {p.k, p.n}, {p.m, p.n}, {p.m, p.n}};
  for (int i = 0; i < kOperands; ++i) {
    if (i == kAddend && !p.has_addend) {
      p.placed[i] = p.placed[kC];
      continue;
    }
    const auto placed = place(extents[i].first, extents[i].second, p.row[i], p.column[i]);
    if (!placed || (i >= kC && placed->transposed)) return i;
    p.placed[i] = *placed;
  }
  // The longest axis with positive strides comes first.
  int best = -1;
  for (int loop = 0; loop < p.batch.rank; ++loop) {
    const auto at = static_cast<size_t>(loop);
    const bool forwards =
        std::all_of(p.batch.strides.begin(), p.batch.strides.end(), [&](const auto& s) { return s[at] >= 0; });
    if (forwards && p.batch.extents[at] <= INT32_MAX &&
        (best < 0 || p.batch.extents[at] > p.batch.extents[static_cast<size_t>(best)])) {
      best = loop;
    }
  }
  if (best > 0) move_loop(p.batch, best, 0);
  if (best < 0 && p.batch.rank > 0) {  // every axis runs backwards somewhere: each is walked by the host
    for (int i = p.batch.rank; i > 0; --i) {
      p.batch.extents[static_cast<size_t>(i)] = p.batch.extents[static_cast<size_t>(i - 1)];
      for (auto& s : p.batch.strides) s[static_cast<size_t>(i)] = s[static_cast<size_t>(i - 1)];
    }
    p.batch.extents[0] = 1;
    for (auto& s : p.batch.strides) s[0] = 0;
    ++p.batch.rank;
  }
  return -1;
}

}  // namespace compute::common
