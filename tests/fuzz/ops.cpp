// SPDX-License-Identifier: Apache-2.0
//
// Any call of an op, query, plan or expression through the client interface runs or is refused in words, whatever
// names, attributes, struct sizes, dtypes, shapes and strides it has; an output of a refused call stays NULL.
#include <cstdio>
#include <vector>

#include "tests/fuzz/bytes.hpp"

namespace {

const std::vector<const char*>& op_names() {
  static const std::vector<const char*> names = [] {
    int64_t count = 0;
    fuzz::require(compute_op_list(nullptr, 0, &count));
    std::vector<compute_op_info> infos(static_cast<size_t>(count));
    for (compute_op_info& info : infos) {
      info.struct_size = sizeof info;
      info.struct_type = COMPUTE_STRUCT_OP_INFO;
    }
    fuzz::require(compute_op_list(infos.data(), count, &count));
    std::vector<const char*> result;
    for (const compute_op_info& info : infos) result.push_back(info.name);
    return result;
  }();
  return names;
}

// Tensors that go with this object.
class Tensors {
 public:
  explicit Tensors(fuzz::Bytes& bytes) : bytes_(bytes) {}
  ~Tensors() {
    for (compute_tensor* tensor : all_) compute_tensor_release(tensor);
  }

  compute_tensor* make() {
    compute_tensor* tensor = made();
    for (int i = 0; i < 2 && tensor != nullptr && bytes_.one_in(3); ++i) {
      if (compute_tensor* seen = view(tensor)) tensor = seen;
    }
    return tensor;
  }
  compute_tensor* own(compute_tensor* tensor) {
    if (tensor != nullptr) all_.push_back(tensor);
    return tensor;
  }

 private:
  compute_dtype dtype() {
    return bytes_.one_in(32) ? static_cast<int8_t>(bytes_.byte()) : 1 + static_cast<int32_t>(bytes_.below(15));
  }

  compute_tensor* made() {
    compute_tensor* tensor = nullptr;
    if (bytes_.one_in(16)) return nullptr;
    if (bytes_.one_in(6)) {
      const int64_t value[2] = {bytes_.number(), 0};
      if (fuzz::failed(compute_tensor_scalar(dtype(), value, bytes_.below(3), &tensor)) && tensor != nullptr)
        std::abort();
      return own(tensor);
    }
    int64_t shape[40];
    for (int64_t& extent : shape) extent = 1;
    const int32_t rank =
        bytes_.one_in(32) ? static_cast<int8_t>(bytes_.byte()) % 40 : static_cast<int32_t>(bytes_.below(5));
    for (int32_t i = 0; i < rank && i < 6; ++i) shape[i] = bytes_.extent();
    compute_device* device = bytes_.one_in(4) ? fuzz::cpu_device() : fuzz::minimal_device();
    const int64_t zero[2] = {};
    const compute_dtype type = dtype();
    // Memory is small on the device and great on the host, where an extent must not make it all of the machine's.
    int64_t elements = 1;
    for (int32_t i = 0; i < rank; ++i) {
      if (shape[i] > 0 && __builtin_mul_overflow(elements, shape[i], &elements)) elements = INT64_MAX;
    }
    if (elements > 4096) device = fuzz::minimal_device();
    if (fuzz::failed(compute_tensor_full(device, type, rank, shape, zero, &tensor)) && tensor != nullptr) std::abort();
    return own(tensor);
  }

  compute_tensor* view(compute_tensor* tensor) {
    compute_tensor* result = nullptr;
    const int32_t rank =
        bytes_.one_in(16) ? static_cast<int8_t>(bytes_.byte()) % 34 : static_cast<int32_t>(bytes_.below(5));
    int64_t a[40] = {}, b[40] = {}, c[40] = {};
    int32_t axes[40] = {};
    for (int i = 0; i < 5; ++i) {
      a[i] = bytes_.extent();
      b[i] = bytes_.extent();
      c[i] = bytes_.step();
      axes[i] = static_cast<int32_t>(bytes_.below(6)) - 1;
    }
    // What repeats would make an op long.
    for (int64_t& extent : a) extent = extent > 8 && extent < INT64_MAX / 2 ? 8 : extent;
    compute_error* error = nullptr;
    switch (bytes_.below(7)) {
      case 0:
        error = compute_tensor_reshape(tensor, rank, a, &result);
        break;
      case 1:
        error = compute_tensor_permute(tensor, rank, bytes_.one_in(4) ? nullptr : axes, &result);
        break;
      case 2:
        error = compute_tensor_slice(tensor, rank, a, b, bytes_.one_in(4) ? nullptr : c, &result);
        break;
      case 3:
        error = compute_tensor_broadcast(tensor, rank, a, &result);
        break;
      case 4:
        error = compute_tensor_expand(tensor, axes[0], &result);
        break;
      case 5:
        error = compute_tensor_squeeze(tensor, axes[0], &result);
        break;
      default:
        error = compute_tensor_view(tensor, dtype(), rank, a, bytes_.one_in(4) ? nullptr : c,
                                    static_cast<int64_t>(bytes_.below(8)) * 8, &result);
        break;
    }
    if (fuzz::failed(error) && result != nullptr) std::abort();
    return own(result);
  }

  fuzz::Bytes& bytes_;
  std::vector<compute_tensor*> all_;
};

// Attributes in an array of any struct size, over memory that is as large as they say.
class AttributeList {
 public:
  explicit AttributeList(fuzz::Bytes& bytes) : memory_(4 * kLargest) {
    constexpr const char* kNames[] = {"axis",          "axes", "keepdims", "dtype", "correction", "reduction",
                                      "deterministic", "size", "start",    "stop",  "step",       "shape",
                                      "value",         "rows", "columns",  "k",     "endpoint"};
    constexpr uint32_t kSizes[] = {sizeof(compute_attribute),
                                   sizeof(compute_attribute),
                                   sizeof(compute_attribute),
                                   sizeof(compute_attribute) + 8,
                                   sizeof(compute_attribute) - 8,
                                   0,
                                   8,
                                   kLargest};
    count_ = bytes.below(4);
    size_ = kSizes[bytes.below(std::size(kSizes))];
    names_.resize(4);
    for (uint32_t i = 0; i < count_; ++i) {
      compute_attribute a{};
      a.struct_size = i > 0 && bytes.one_in(16) ? sizeof a : size_;  // mixed sizes are refused
      a.struct_type = bytes.one_in(32) ? bytes.byte() : static_cast<uint32_t>(COMPUTE_STRUCT_ATTRIBUTE);
      names_[i] = bytes.one_in(16) ? bytes.text(9) : kNames[bytes.below(std::size(kNames))];
      a.name = names_[i].data();
      a.name_size = bytes.one_in(32) ? -1 : static_cast<int64_t>(names_[i].size());
      a.kind = bytes.one_in(16) ? static_cast<int8_t>(bytes.byte()) : 1 + static_cast<int32_t>(bytes.below(5));
      a.count = bytes.one_in(16) ? -1 : bytes.below(5);
      fill(a, bytes, i);
      std::memcpy(memory_.data() + i * size_, &a, std::min<size_t>(sizeof a, kLargest));
    }
  }

  const compute_attribute* data() const { return reinterpret_cast<const compute_attribute*>(memory_.data()); }
  int64_t count() const { return count_; }

 private:
  static constexpr uint32_t kLargest = 512;

  void fill(compute_attribute& a, fuzz::Bytes& bytes, uint32_t i) {
    strings_[i][0] = strings_[i][1] = {"add", 3};
    for (int64_t& value : integers_[i]) value = bytes.extent();
    for (double& value : reals_[i]) value = static_cast<double>(bytes.extent()) / 4;
    for (compute_dtype& value : dtypes_[i]) value = static_cast<compute_dtype>(bytes.below(17));
    switch (a.kind) {
      case COMPUTE_KIND_FLOAT64:
      case COMPUTE_KIND_COMPLEX128:
        a.values = reals_[i];
        break;
      case COMPUTE_KIND_STRING:
        a.values = strings_[i];
        if (a.count > 2) a.count = 2;
        break;
      case COMPUTE_KIND_DTYPE:
        a.values = dtypes_[i];
        break;
      default:
        a.values = integers_[i];
        break;
    }
    if (bytes.one_in(32)) a.values = nullptr;
  }

  std::vector<std::byte> memory_;
  std::vector<std::string> names_;
  int64_t integers_[4][8];
  double reals_[4][16];
  compute_dtype dtypes_[4][8];
  compute_string strings_[4][2];
  uint32_t count_ = 0;
  uint32_t size_ = 0;
};

void look_at(compute_tensor* tensor) {
  int64_t size = compute_dtype_size(compute_tensor_dtype(tensor));
  for (int32_t i = 0; i < compute_tensor_rank(tensor); ++i) size *= compute_tensor_shape(tensor)[i];
  if (size < 0 || size > (1 << 20)) return;
  std::vector<std::byte> values(static_cast<size_t>(size) + 1);
  static_cast<void>(fuzz::failed(compute_tensor_read(tensor, values.data(), size)));
}

void run(const compute_op* op, const AttributeList& attributes, compute_tensor* const* inputs, int64_t count,
         Tensors& tensors, fuzz::Bytes& bytes) {
  compute_tensor* given = bytes.one_in(3) ? tensors.make() : nullptr;
  compute_tensor* outputs[2] = {given, nullptr};
  const int64_t output_count = bytes.one_in(16) ? static_cast<int64_t>(bytes.below(4)) - 1 : 1;
  if (output_count > 2) return;
  const bool refused = fuzz::failed(
      compute_op_run(op, nullptr, attributes.data(), attributes.count(), inputs, count, outputs, output_count));
  if (refused && (outputs[0] != given || outputs[1] != nullptr)) std::abort();
  if (given == nullptr) tensors.own(outputs[0]);
  tensors.own(outputs[1]);
  if (!refused && outputs[0] != nullptr) look_at(outputs[0]);
}

void query(const compute_op* op, const AttributeList& attributes, compute_tensor* const* inputs, int64_t count,
           fuzz::Bytes& bytes) {
  compute_tensor_spec specs[4] = {};
  for (int64_t i = 0; i < count; ++i) {
    compute_tensor_spec& spec = specs[i];
    spec.struct_size = sizeof spec;
    spec.struct_type = COMPUTE_STRUCT_TENSOR_SPEC;
    spec.flags = bytes.one_in(8) ? bytes.byte() : 0;
    if (inputs[i] == nullptr) continue;
    spec.dtype = compute_tensor_dtype(inputs[i]);
    spec.rank = compute_tensor_rank(inputs[i]);
    spec.shape = compute_tensor_shape(inputs[i]);
  }
  // The first input also describes an output, of any strides.
  compute_tensor_spec output = specs[0];
  output.struct_size = sizeof output;
  int64_t strides[COMPUTE_MAX_RANK];
  for (int64_t& stride : strides) stride = bytes.one_in(2) ? bytes.byte() : -1;
  if (bytes.one_in(2)) output.strides = strides;
  compute_support support = {};
  support.struct_size = sizeof support;
  if (fuzz::failed(compute_op_query(fuzz::minimal_device(), op, attributes.data(), attributes.count(), specs, count,
                                    &output, bytes.below(3), &support)) != (support.text == nullptr)) {
    std::abort();
  }
  compute_text_free(support.text);
}

void map(compute_tensor* const* inputs, int64_t count, Tensors& tensors, fuzz::Bytes& bytes) {
  constexpr const char* kTexts[] = {"a + b", "where(a < b, a, b); a", "index(0) + a", "sqrt(abs(a)) * s",
                                    "s",     "-a; b; a == b"};
  const char* names[] = {"a", "b"};
  const char* scalars[] = {"s"};
  compute_expression* expression = nullptr;
  fuzz::require(compute_expression_parse(kTexts[bytes.below(std::size(kTexts))], names, 2, scalars, 1, &expression));
  compute_number scalar{};
  scalar.kind = static_cast<int32_t>(bytes.below(8));
  scalar.integer = 3;
  scalar.real = 0.5;
  scalar.tensor = tensors.make();
  compute_tensor* outputs[3] = {};
  const auto output_count = static_cast<int64_t>(bytes.below(4));
  static_cast<void>(
      fuzz::failed(compute_map(nullptr, expression, inputs, count, &scalar, bytes.below(2), outputs, output_count)));
  for (compute_tensor* output : outputs) tensors.own(output);
  compute_expression_release(expression);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static_cast<void>(fuzz::cpu_device());
  fuzz::Bytes bytes(data, size);
  for (int call = 0; call < 4 && !bytes.empty(); ++call) {
    Tensors tensors(bytes);
    const compute_op* op = nullptr;
    const std::string name =
        bytes.one_in(32) ? bytes.text(12) : op_names()[bytes.below(static_cast<uint32_t>(op_names().size()))];
    if (fuzz::failed(compute_op_find(name.c_str(), bytes.one_in(32) ? bytes.byte() : 0, &op)) != (op == nullptr))
      std::abort();
    compute_tensor* inputs[4] = {};
    const auto count = static_cast<int64_t>(bytes.below(5));
    for (int64_t i = 0; i < count; ++i) inputs[i] = tensors.make();
    const AttributeList attributes(bytes);
    run(op, attributes, inputs, count, tensors, bytes);
    if (bytes.one_in(3)) query(op, attributes, inputs, count, bytes);
    if (bytes.one_in(4)) map(inputs, count, tensors, bytes);
    if (bytes.one_in(4)) {
      compute_tensor* none[1] = {};
      compute_plan* plan = nullptr;
      if (fuzz::failed(compute_plan_create(fuzz::minimal_device(), op, attributes.data(), attributes.count(), inputs,
                                           count, none, 1, &plan)) != (plan == nullptr)) {
        std::abort();
      }
      compute_plan_release(plan);
    }
  }
  return 0;
}
