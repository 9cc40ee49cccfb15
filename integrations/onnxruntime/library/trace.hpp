// SPDX-License-Identifier: Apache-2.0
// Running the nodes of a graph once, for given shapes, and keeping the calls of the library that this made.
#pragma once

#include <compute/compute.hpp>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "node.hpp"

namespace onnxruntime_compute {

struct Chain;

/// An attribute of an op of the library.
struct Attribute {
  Attribute(std::string name, int64_t value) : name(std::move(name)), value(value) {}
  Attribute(std::string name, double value) : name(std::move(name)), value(value) {}
  Attribute(std::string name, std::vector<int64_t> value) : name(std::move(name)), value(std::move(value)) {}
  Attribute(std::string name, std::vector<double> value) : name(std::move(name)), value(std::move(value)) {}
  Attribute(std::string name, std::string value) : name(std::move(name)), value(std::move(value)) {}
  Attribute(std::string name, DType value) : name(std::move(name)), value(value.id()) {}

  std::string name;
  std::variant<int64_t, double, std::vector<int64_t>, std::vector<double>, std::string, compute_dtype> value;
};

/// A value of a graph while it is traced: a constant, a tensor on the device, or an elementwise expression that did not
/// run yet.
struct Value {
  DType dtype;  // none: left out
  Shape shape;
  Tensor tensor;     // on the device, of a constant possibly on the host alone; undefined while it is pending
  Tensor host;       // of a constant, if it is there
  int storage = -1;  // which memory of the tape; -1: a constant, or pending
  int id = 0;        // its name in expressions
  std::shared_ptr<Chain> chain;  // while it is pending

  [[nodiscard]] bool is_present() const { return dtype != DType(); }
  [[nodiscard]] bool is_constant() const { return storage < 0 && chain == nullptr; }
  [[nodiscard]] int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  [[nodiscard]] int64_t size() const {
    int64_t size = 1;
    for (const int64_t extent : shape) size *= extent;
    return size;
  }
};

/// Statements of an expression language, `t<id> = …`, over operands `v<id>`.
struct Chain {
  std::vector<std::pair<int, std::string>> statements;  // id, text
  std::vector<Value> operands;
};

/// Memory of a tape: made by a step, or an input's. `output` is the output of the graph that lives there, or -1.
struct Storage {
  int64_t size_bytes = 0;
  int64_t element_size = 1;
  int64_t base_offset = 0;  // of the traced tensor in its buffer
  int input = -1;
  int output = -1;
  int first_step = -1;
  int last_step = -1;
};

/// A layout over memory of a tape.
struct Layout {
  int storage = -1;
  int64_t offset_bytes = 0;
  DType dtype;
  Shape shape;
  Shape strides;
  auto key() const { return std::make_tuple(storage, offset_bytes, dtype.id(), shape, strides); }
};

/// An operand of a step: a layout, a constant, or nothing.
struct OperandPlace {
  enum Kind : int32_t { kNone, kLayout, kConstant };
  Kind kind = kNone;
  int index = 0;
};

struct Step {
  compute::Plan plan;              // or
  compute::Expression expression;  // an elementwise one
  std::vector<OperandPlace> inputs;
  std::vector<OperandPlace> outputs;
  std::string op;    // its name; "": elementwise
  std::string node;  // type and name of the node that it was traced for
};

/// What an output of the graph is.
struct TapeOutput {
  DType dtype;
  Shape shape;
  Tensor constant;  // undefined: the storage with its number is it
};

/// The calls of one trace, in order.
struct Tape {
  std::vector<Step> steps;
  std::vector<Storage> storages;
  std::vector<Layout> layouts;
  std::vector<Tensor> constants;
  std::vector<TapeOutput> outputs;
  bool is_complete = true;  // false: a result depended on values, so the calls cannot be repeated
};

class Tracer {
 public:
  explicit Tracer(const compute::Device& device);

  // -- Values

  Value input(int index, const Tensor& tensor);
  static Value constant(const Tensor& host, const Tensor& on_device = {});
  static Value integers(const std::vector<int64_t>& values);  // of rank 1
  static Value number(double value, DType dtype);             // of rank 0

  /// The value with its tensor computed.
  Value settle(const Value& value);
  /// The elements of a constant as integers.
  std::vector<int64_t> to_integers(const Value& value);
  /// The only element of a constant.
  double to_real(const Value& value);
  Tensor to_host(const Value& value);
  Tensor on_device(const Value& value);

  // -- Calls

  /// An elementwise expression over $0, $1, …, whose result has `dtype`. It may run later, as part of another one.
  Value map(const std::string& text, const std::vector<Value>& operands, DType dtype);
  Value op(const char* name, const std::vector<Value>& inputs, const std::vector<Attribute>& attributes = {});
  std::vector<Value> ops(const char* name, size_t output_count, const std::vector<Value>& inputs,
                         const std::vector<Attribute>& attributes = {});
  Value cast(const Value& value, DType dtype);
  Value fill(double value, DType dtype, const Shape& shape);

  // -- Views. What cannot be viewed is copied.

  Value reshape(const Value& value, const Shape& shape);
  Value permute(const Value& value, const std::vector<int32_t>& axes);
  Value slice(const Value& value, const std::vector<int64_t>& starts, const std::vector<int64_t>& stops,
              const std::vector<int64_t>& steps);
  Value slice_axis(const Value& value, int64_t axis, int64_t start, int64_t stop, int64_t step = 1);
  Value broadcast_to(const Value& value, const Shape& shape);
  /// The same bits as another dtype of the same size.
  Value reinterpret(const Value& value, DType dtype);

  /// What follows is traced for this node.
  void enter(const std::string& node) { node_ = node; }

  /// The result of the trace depends on values that it read: the tape serves this run alone.
  void read_values() { tape_.is_complete = false; }

  /// Ends the trace. The tensors of the outputs are for this run.
  Tape finish(const std::vector<Value>& outputs, std::vector<Tensor>* tensors);

 private:
  Value made(const Tensor& tensor, int step);
  Value view(const Value& value, const Tensor& tensor);
  OperandPlace place(const Value& value);
  Value run_chain(const Value& value);

  compute::Device device_;
  bool on_host_;
  int next_id_ = 1;
  std::string node_;
  Tape tape_;
  std::map<decltype(Layout().key()), int> layout_numbers_;
};

/// The shape that shapes broadcast to. Throws if they do not.
Shape broadcast_shape(const std::vector<Shape>& shapes);

}  // namespace onnxruntime_compute
