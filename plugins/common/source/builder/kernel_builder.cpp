// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/source/builder/kernel_builder.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdlib>
#include <cstring>

#include <xxhash.h>

#include "plugins/common/source/builder/ptx_functions.hpp"
#include "plugins/common/source/expressions/prelude.hpp"

namespace compute::common {
namespace {

#include "plugins/common/source/builder/kernel.inc"

}  // namespace

// m = floor(2^32 (2^s - d) / d) + 1 with s = ceil(log2(d)).
int64_t divisor_word(int64_t divisor) {
  const auto d = static_cast<uint64_t>(divisor);
  const int shift = d == 1 ? 0 : std::bit_width(d - 1);
  const uint64_t multiplier = ((((uint64_t{1} << shift) - d) << 32) / d) + 1;
  return static_cast<int64_t>((static_cast<uint64_t>(shift) << 32) | (multiplier & 0xffffffff));
}

KernelBuilder::KernelBuilder(const Dialect& dialect, std::string_view what, bool with_text)
    : with_text_(with_text), functions_(dialect), name_(cat("compute_", what)), signature_(what) {
  signature_ += '\0';
}

int32_t KernelBuilder::pointer(Pointer::Kind kind, int32_t index, int64_t offset_bytes) {
  pointers_.push_back({kind, index});
  offsets_.push_back(offset_bytes);
  return static_cast<int32_t>(pointers_.size()) - 1;
}

int32_t KernelBuilder::word(int64_t value) {
  words_.push_back(value);
  return static_cast<int32_t>(words_.size()) - 1;
}

std::string KernelBuilder::scalar(int32_t scalar, compute_dtype dtype) {
  const auto place = static_cast<int32_t>(scalars_.size());
  scalars_.push_back({0, scalar});
  if (!with_text_) return "";
  return scalar_text(dtype, cat("COMPUTE_SCALAR(", 2 * place, ")"), cat("COMPUTE_SCALAR(", 2 * place + 1, ")"));
}

void KernelBuilder::declare(int32_t number, const char* storage, bool is_const) {
  if (!with_text_) return;
  const std::string type = cat("COMPUTE_GLOBAL ", is_const ? "const " : "", storage, "*");
  declarations_ += cat(type, " x", number, " = (", type, ")(p", number, " + a.w[", number, "]);\n");
}

void KernelBuilder::sign(int64_t value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  signature_.append(bytes, sizeof value);
}

void KernelBuilder::sign(const compute_plugin_expression& expression) {
  signature_.append(reinterpret_cast<const char*>(expression.digest), sizeof expression.digest);
}

Launch KernelBuilder::finish(int64_t groups) {
  // Groups of the next kernel take the first places that are free, which may be on few multiprocessors. So this does
  // not pay beside a kernel that has about one group for each.
  if (dialect().starts_kernels) starts_word_ = word(starts_next || 4 * groups <= dialect().compute_units);
  Launch launch;
  const auto scalar_words = static_cast<int32_t>(2 * scalars_.size());
  auto fixed = static_cast<int32_t>(pointers_.size());
  const auto bytes = [&](int32_t words) {
    return static_cast<int64_t>(words) * 8 + (static_cast<int64_t>(pointers_.size()) + 1) * 8;
  };
  const bool has_table = bytes(fixed + scalar_words + static_cast<int32_t>(words_.size())) > dialect().max_block_bytes;
  if (has_table) {
    pointers_.push_back({Pointer::kTable, 0});
    offsets_.push_back(0);
    ++fixed;
  }
  launch.name = name_;
  launch.groups = groups;
  launch.group_size = dialect().group_size;
  launch.local_bytes = local_bytes;
  launch.pointers = pointers_;
  launch.block = offsets_;
  launch.block.resize(static_cast<size_t>(fixed + scalar_words));
  launch.scalars = scalars_;
  for (size_t i = 0; i < scalars_.size(); ++i) launch.scalars[i].word = fixed + static_cast<int32_t>(2 * i);
  if (has_table) {
    launch.table = words_;
  } else {
    launch.block.insert(launch.block.end(), words_.begin(), words_.end());
  }
  sign(has_table);
  sign(is_wide);
  sign(static_cast<int64_t>(launch.block.size()));
  const XXH128_hash_t hash = XXH3_128bits(signature_.data(), signature_.size());
  launch.key = {hash.high64, hash.low64};
  return launch;
}

KernelSource KernelBuilder::source(const Launch& launch) const {
  const size_t fixed = launch.pointers.size(), first_word = fixed + 2 * launch.scalars.size();
  std::string parameters;
  for (size_t i = 0; i < fixed; ++i) parameters += cat("COMPUTE_GLOBAL u8* p", i, ", ");
  constexpr int32_t kRegisters = 65536;  // of a multiprocessor
  const int32_t most_registers = least_at_once > 0 ? kRegisters / (least_at_once * launch.group_size) : 0;
  return {launch.name,
          fill(kKernel, {{"prelude", portable_prelude(dialect())},
                         {"starts_kernels", dialect().starts_kernels},
                         {"starts", word_text(starts_word_)},
                         {"index_type", is_wide ? "i64" : "i32"},
                         {"block_words", launch.block.size()},
                         {"first_scalar", fixed},
                         {"has_table", !launch.table.empty()},
                         {"table", fixed - 1},
                         {"first_word", first_word},
                         {"functions", functions_.text()},
                         {"globals", globals},
                         {"group_size", launch.group_size},
                         {"at_once", least_at_once > 0 ? cat(", ", least_at_once) : ""},
                         {"has_most_registers", most_registers > 0},
                         {"name", launch.name},
                         {"parameters", parameters},
                         {"declarations", declarations_},
                         {"body", body}}),
          most_registers};
}

void Space::add_words(KernelBuilder& builder, int lanes) {
  const int rank = nest_.rank;
  for (int axis = 1; axis < rank; ++axis) {
    const int64_t extent = axis == rank - 1 ? divide_up(nest_.extents[axis], lanes) : nest_.extents[axis];
    divisor_words_.push_back(builder.word(extent));
    if (!builder.is_wide) divisor_words_.back() = builder.word(divisor_word(extent));
  }
  for (const auto& strides : nest_.strides) {
    auto& words = stride_words_.emplace_back();
    for (int axis = 0; axis < rank; ++axis)
      words.push_back(builder.word(axis == rank - 1 ? strides[axis] * lanes : strides[axis]));
  }
}

std::string Space::coordinates(const KernelBuilder& builder, std::string_view prefix, std::string_view linear) const {
  std::string out, rest(linear);
  for (int axis = nest_.rank - 1; axis > 0; --axis) {
    const int32_t word = divisor_words_[static_cast<size_t>(axis - 1)];
    // The extent's word comes before its divisor's.
    const std::string extent = KernelBuilder::index_word(builder.is_wide ? word : word - 1);
    const std::string quotient = cat(prefix, "q", axis);
    out += builder.is_wide
               ? cat("const ix ", quotient, " = ", rest, " / ", extent, ";\n")
               : cat("const ix ", quotient, " = compute_divide(", rest, ", ", KernelBuilder::word_text(word), ");\n");
    out += cat("const ix ", prefix, axis, " = ", rest, " - ", quotient, " * ", extent, ";\n");
    rest = quotient;
  }
  if (nest_.rank > 0) out += cat("const ix ", prefix, "0 = ", rest, ";\n");
  return out;
}

std::string Space::offset(int operand, std::string_view prefix) const {
  std::string text;
  for (int axis = 0; axis < nest_.rank; ++axis) {
    const int32_t word = stride_words_[static_cast<size_t>(operand)][static_cast<size_t>(axis)];
    text += cat(axis == 0 ? "" : " + ", prefix, axis, " * ", KernelBuilder::index_word(word));
  }
  return text.empty() ? "0" : "(" + text + ")";
}

LoopNest collapse_operands(std::span<const int64_t> shape, std::span<const std::vector<int64_t>> strides, int leader) {
  std::vector<const int64_t*> pointers;
  for (const auto& one : strides) pointers.push_back(one.data());
  return collapse(shape, pointers, leader);
}

std::vector<int64_t> index_strides(int32_t rank, int32_t axis) {
  std::vector<int64_t> strides(static_cast<size_t>(rank), 0);
  strides[static_cast<size_t>(axis)] = 1;
  return strides;
}

bool needs_wide(const LoopNest& nest, std::span<const int32_t> sizes, int64_t points,
                std::span<const int64_t> further) {
  constexpr int64_t kLimit = INT32_MAX - (1 << 20);  // what rounding up to groups may add
  if (points > kLimit) return true;
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t span = further.empty() ? 1 : 1 + further[i];
    for (int axis = 0; axis < nest.rank; ++axis) span += std::llabs(nest.strides[i][axis]) * (nest.extents[axis] - 1);
    if (span * sizes[i] > kLimit) return true;
  }
  return false;
}

std::vector<int64_t> strides_of(const compute_plugin_tensor& tensor) {
  return {tensor.strides, tensor.strides + tensor.rank};
}

std::optional<int64_t> row_major_step(const compute_plugin_tensor& tensor) {
  return row_major_step(shape_of(tensor), strides_of(tensor));
}

VectorText vector_type(KernelBuilder& builder, const char* storage, int32_t size, int lanes) {
  const int32_t bytes = vector_alignment(size, lanes);
  VectorText vector;
  vector.word = bytes == 1 ? "u8" : bytes == 2 ? "u16" : bytes == 4 ? "u32" : bytes == 8 ? "compute_w8" : "compute_w16";
  vector.words = size * lanes / bytes;
  vector.type = cat("vector_", storage, "_", lanes);
  const std::string definition = fill(
      kVectorType,
      {{"word", vector.word}, {"words", vector.words}, {"storage", storage}, {"lanes", lanes}, {"type", vector.type}});
  if (builder.globals.find(definition) == std::string::npos) builder.globals += definition;
  return vector;
}

void define_lane_exchange(KernelBuilder& builder, std::string_view type) {
  for (const std::string& text : {std::string(kWarpFunctions), fill(kLaneExchange, {{"type", type}})}) {
    if (builder.globals.find(text) == std::string::npos) builder.globals += text;
  }
}

}  // namespace compute::common
