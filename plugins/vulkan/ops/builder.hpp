// SPDX-License-Identifier: Apache-2.0
// What every kernel is built from: a checked view of the op, arguments, loops over index spaces.
#pragma once

#include <compute/plugin.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "../core.hpp"
#include "../device.hpp"
#include "../plan.hpp"
#include "source.hpp"
#include "types.hpp"

namespace vulkan {

class Accumulator;

using Shape = std::vector<int64_t>;

int64_t product(const Shape& shape);

struct Tensor {
  int32_t dtype = 0;
  int32_t alignment = 1;
  bool is_absent = false;
  Shape shape, strides;  // strides in bytes
};

// The op that core asks for.
class Op {
 public:
  explicit Op(const compute_plugin_op& op);

  const compute_plugin_op& description() const { return op_; }
  std::string_view name() const { return view(op_.name); }
  int32_t version() const { return op_.version; }
  bool has_flag(uint32_t flag) const { return (op_.flags & flag) != 0; }
  int32_t input_count() const { return op_.input_count; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const Tensor& input(int32_t i) const { return tensors_[static_cast<size_t>(i)]; }
  const Tensor& output(int32_t i) const { return tensors_[static_cast<size_t>(op_.input_count + i)]; }
  int32_t expression_count() const { return op_.expression_count; }
  const compute_plugin_expression& expression(int32_t i) const { return *op_.expressions[i]; }
  int32_t scalar_count() const { return op_.scalar_count; }
  int32_t scalar_dtype(int32_t i) const { return op_.scalar_dtypes[i]; }

  std::vector<int64_t> integers(std::string_view name) const;
  std::vector<int32_t> dtypes(std::string_view name) const;
  std::vector<std::string> strings(std::string_view name) const;
  int64_t integer(std::string_view name, int64_t otherwise) const;
  std::string string(std::string_view name) const;

 private:
  const compute_attribute* find(std::string_view name) const;

  const compute_plugin_op& op_;
  std::vector<Tensor> tensors_;
};

// An index space, and the strides in bytes of several operands in it.
struct Space {
  Shape shape;
  std::vector<Shape> strides;
  int64_t count() const { return product(shape); }
  // Joins axes that every operand walks as one, and drops those of extent 1. With `keep` all axes stay.
  Space collapsed(bool keep) const;
};

// Variables that a kernel declares for a position in a space: offsets in bytes, and positions along the axes.
struct Axes {
  int rank = 0, shape_slot = 0, stride_slot = 0;
  std::vector<bool> is_zero;  // operands that do not move
  bool wide_index = false, wide_offset = false;
  std::string index_type() const { return wide_index ? "uint64_t" : "uint"; }
  std::string offset_type() const { return wide_offset ? "int64_t" : "int"; }
};

// One launch. The constructor's caller first adds arguments and signs what the text depends on, then calls finish().
class KernelBuilder {
 public:
  KernelBuilder(Device& device, Plan& plan, bool query, std::string_view name);

  Device& device;
  Source source;
  std::string out;  // the text of the kernel

  void sign(std::string_view text) {
    key_ += text;
    key_ += '/';
  }
  void sign(int64_t number) { sign(std::to_string(number)); }

  int word(int64_t value);
  int tensor(int32_t position);   // its address
  int workspace(int64_t offset);  // its address
  int scalars(int32_t first, int32_t count);
  int fault();
  int counters();  // the address of Stream::kMostCounters numbers
  Axes axes(const Space& space);

  static std::string at(int slot) { return "a.v[" + std::to_string(slot) + "]"; }
  static std::string number(int slot, const std::string& type) { return type + "(" + at(slot) + ")"; }
  // The address `offset` bytes after the one in `slot`; an offset is signed.
  static std::string address(int slot, const std::string& offset) {
    return "uint64_t(" + at(slot) + "+int64_t(" + offset + "))";
  }
  static std::string scalar(int slot, int32_t index, int32_t dtype);
  // Declares <prefix><operand> for every operand, and with `positions` <prefix>x<axis>.
  void locate(const Axes& axes, const std::string& prefix, const std::string& index, bool positions);

  int local_size() const { return local_; }
  // A loop over n positions, in `i`. Begins the function main.
  void begin_loop(int count_slot, const std::string& index_type);
  void end_loop() { out += "}\n}\n"; }

  // Adds the launch to the plan. `text` is called if the kernel is not known.
  void finish(int64_t groups_x, const std::function<void()>& text, int64_t groups_y = 1, int64_t groups_z = 1);
  void finish_loop(int64_t count, const std::function<void()>& text);
  void use_group_size(int local) { local_ = local; }
  // Operations of subgroups: Features::shuffle, and with votes also ballot.
  void use_shuffles() { shuffles_ = true; }
  void use_votes() { shuffles_ = votes_ = true; }
  void use_weight(int64_t of_group) { launch_.weight = static_cast<uint64_t>(std::max<int64_t>(of_group, 1)); }
  // Combines the values of an accumulator's state <q>0, <q>1, … over a group, and leaves the result in all items. The
  // group has shared arrays <h>0, <h>1, …, which declare_shared() declares.
  void declare_shared(const Accumulator& state, const std::string& h, int times = 1);
  void combine_group(const Accumulator& state, const std::string& q, const std::string& h);
  // Scans the states <q> of a group: <b> becomes what stands before the item, from <c> on, and <c> what stands behind
  // the group. The shared arrays are declared twice as long; `turn` is the half in use, and changes.
  void scan_group(const Accumulator& state, const std::string& q, const std::string& b, const std::string& c,
                  const std::string& h);

 private:
  std::string complete_text() const;
  bool can_shuffle(const Accumulator& state) const;

  Plan& plan_;
  bool query_;
  std::string key_;
  int local_;
  bool shuffles_ = false, votes_ = false;
  Launch launch_;
};

// Work-items of a group for kernels without shared memory.
int plain_group_size(const Device& device);

// Refuses dtypes that the device lacks, also in expressions.
void require_dtypes(const Device& device, const compute_plugin_op& op);

}  // namespace vulkan
