// SPDX-License-Identifier: Apache-2.0
// A libcudnn.so.9 for the fake driver's memory: it runs the graphs that the plugin describes, operation by operation,
// so that tests can check by results how the plugin passes strides, pads, groups and masks. It proposes two engines:
// the first has a property that the plugin must not accept, and fails.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "plugins/cuda/cudnn_api.hpp"

using namespace compute::cuda;

namespace {

constexpr cudnnStatus kFails = 1;
constexpr int32_t kWinograd = 5;  // CUDNN_NUMERICAL_NOTE_WINOGRAD

struct Descriptor {
  int32_t type = 0;
  std::map<int32_t, std::vector<char>> attributes;
  int64_t engine = 0;  // of a configuration and of objects made from it
  const Descriptor* graph = nullptr;

  template <class T>
  std::vector<T> list(int32_t attribute) const {
    const auto found = attributes.find(attribute);
    if (found == attributes.end()) return {};
    std::vector<T> values(found->second.size() / sizeof(T));
    std::memcpy(values.data(), found->second.data(), values.size() * sizeof(T));
    return values;
  }
  template <class T>
  T one(int32_t attribute) const {
    return list<T>(attribute).at(0);
  }
  const Descriptor& at(int32_t attribute) const { return *one<Descriptor*>(attribute); }
  bool has(int32_t attribute) const { return attributes.count(attribute) != 0; }
};

// Descriptors are copied where they are used: the plugin may destroy its own.
struct Copies {
  std::vector<std::unique_ptr<Descriptor>> all;
};
Copies& copies() {
  static auto* const immortal = new Copies;
  return *immortal;
}
Descriptor* copy_of(const Descriptor& descriptor) {
  copies().all.push_back(std::make_unique<Descriptor>(descriptor));
  return copies().all.back().get();
}

Descriptor& get(cudnnBackendDescriptor descriptor) { return *static_cast<Descriptor*>(descriptor); }

size_t size_of(int32_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
      return 1;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return 4;
  }
}

// ---- Values ---------------------------------------------------------------------------------------------------------

float half_value(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                        : std::ldexp(1024.0f + static_cast<float>(fraction), exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// Of numbers that a half holds exactly, or nearly.
uint16_t half_bits(float value) {
  if (value == 0) return 0;
  int exponent = 0;
  const float fraction = std::frexp(std::fabs(value), &exponent);                                         // in [0.5, 1)
  const auto rounded = static_cast<int>(std::nearbyint(exponent < -13 ? std::ldexp(std::fabs(value), 24)  // subnormal
                                                                      : fraction * 2048));
  const int bits = exponent < -13 ? rounded : ((exponent + 14) << 10) + rounded - 1024;
  return static_cast<uint16_t>(bits | (value < 0 ? 0x8000 : 0));
}

struct View {
  std::vector<int64_t> extents, strides;
  int32_t type = 0;
  char* data = nullptr;

  double load(int64_t place) const {
    if (type == CUDNN_DATA_HALF) {
      uint16_t bits;
      std::memcpy(&bits, data + 2 * place, 2);
      return static_cast<double>(half_value(bits));
    }
    float value;
    std::memcpy(&value, data + 4 * place, 4);
    return static_cast<double>(value);
  }
  void store(int64_t place, double value) const {
    if (type == CUDNN_DATA_HALF) {
      const uint16_t bits = half_bits(static_cast<float>(value));
      std::memcpy(data + 2 * place, &bits, 2);
    } else {
      const auto rounded = static_cast<float>(value);
      std::memcpy(data + 4 * place, &rounded, 4);
    }
  }
  // The element at an index; extents of 1 broadcast.
  int64_t place(const std::vector<int64_t>& index) const {
    int64_t at = 0;
    for (size_t i = 0; i < extents.size(); ++i) at += (extents[i] == 1 ? 0 : index[i]) * strides[i];
    return at;
  }
};

void for_each(const std::vector<int64_t>& extents, const std::function<void(const std::vector<int64_t>&)>& body) {
  std::vector<int64_t> index(extents.size(), 0);
  while (true) {
    body(index);
    size_t axis = extents.size();
    while (axis > 0 && ++index[axis - 1] == extents[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

// A run: where the tensors are, by their ids, and the memory of the virtual ones.
class Run {
 public:
  explicit Run(const Descriptor& pack) {
    const auto ids = pack.list<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    const auto pointers = pack.list<char*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    for (size_t i = 0; i < ids.size(); ++i) pointers_[ids[i]] = pointers[i];
  }

  View view(const Descriptor& tensor) {
    View view{tensor.list<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS), tensor.list<int64_t>(CUDNN_ATTR_TENSOR_STRIDES),
              tensor.one<int32_t>(CUDNN_ATTR_TENSOR_DATA_TYPE), nullptr};
    const auto id = tensor.one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
    if (const auto alias = aliases_.find(id); alias != aliases_.end()) {
      view.type = alias->second.type;
      view.data = alias->second.data;
    } else if (tensor.has(CUDNN_ATTR_TENSOR_IS_VIRTUAL)) {
      view.type = CUDNN_DATA_FLOAT;
      int64_t count = 1;
      for (const int64_t extent : view.extents) count *= extent;
      std::vector<char>& memory = virtual_[id];
      memory.resize(static_cast<size_t>(count) * sizeof(float));
      view.data = memory.data();
    } else {
      view.data = pointers_.at(id);
    }
    return view;
  }
  // Lets `y` read the memory of `x`.
  void alias(const Descriptor& x, const Descriptor& y) {
    aliases_[y.one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID)] = view(x);
  }

 private:
  std::map<int64_t, View> aliases_;
  std::map<int64_t, char*> pointers_;
  std::map<int64_t, std::vector<char>> virtual_;
};

// ---- Operations -----------------------------------------------------------------------------------------------------

// Adds one product of a convolution after the other, each to the tensor that is computed.
void convolve(const Descriptor& window, const View& x, const View& w, const View& y, const View& out) {
  const auto strides = window.list<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  const auto dilations = window.list<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  const auto begin = window.list<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  const int64_t groups = x.extents[1] / w.extents[1], c_out = w.extents[0] / groups;
  for_each(out.extents, [&](const std::vector<int64_t>& index) { out.store(out.place(index), 0); });
  for_each(y.extents, [&](const std::vector<int64_t>& at_y) {
    std::vector<int64_t> taps(w.extents.begin() + 1, w.extents.end());
    for_each(taps, [&](const std::vector<int64_t>& tap) {
      std::vector<int64_t> at_x = {at_y[0], at_y[1] / c_out * w.extents[1] + tap[0]}, at_w = {at_y[1], tap[0]};
      for (size_t i = 1; i < tap.size(); ++i) {
        at_x.push_back(at_y[1 + i] * strides[i - 1] + tap[i] * dilations[i - 1] - begin[i - 1]);
        at_w.push_back(tap[i]);
        if (at_x.back() < 0 || at_x.back() >= x.extents[1 + i]) return;
      }
      const bool is_x = out.data == x.data, is_w = out.data == w.data;
      const int64_t place = out.place(is_x ? at_x : is_w ? at_w : at_y);
      const double a = is_x ? y.load(y.place(at_y)) : x.load(x.place(at_x));
      const double b = is_w ? y.load(y.place(at_y)) : w.load(w.place(at_w));
      out.store(place, out.load(place) + a * b);
    });
  });
}

void multiply(const View& a, const View& b, const View& c) {
  for_each(c.extents, [&](const std::vector<int64_t>& index) {
    double sum = 0;
    for (int64_t k = 0; k < a.extents[3]; ++k) {
      const auto head = [&](const View& of) { return index[1] * of.extents[1] / c.extents[1]; };
      sum += a.load(a.place({index[0], head(a), index[2], k})) * b.load(b.place({index[0], head(b), k, index[3]}));
    }
    c.store(c.place(index), sum);
  });
}

double combine(int32_t mode, double x, double b, double t) {
  switch (mode) {
    case CUDNN_POINTWISE_ADD:
      return x + b;
    case CUDNN_POINTWISE_MUL:
      return x * b;
    case CUDNN_POINTWISE_DIV:
      return x / b;
    case CUDNN_POINTWISE_SUB:
      return x - b;
    case CUDNN_POINTWISE_EXP:
      return std::exp(x);
    case CUDNN_POINTWISE_LOG:
      return std::log(x);
    case CUDNN_POINTWISE_IDENTITY:
      return x;
    case CUDNN_POINTWISE_CMP_GE:
      return x >= b ? 1 : 0;
    case CUDNN_POINTWISE_BINARY_SELECT:
      return t != 0 ? x : b;
    default:
      return std::nan("");
  }
}

void compute_pointwise(const Descriptor& operation, Run& run) {
  const Descriptor& description = operation.at(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  const auto mode = description.one<int32_t>(CUDNN_ATTR_POINTWISE_MODE);
  const View x = run.view(operation.at(CUDNN_ATTR_OPERATION_POINTWISE_XDESC));
  const View y = run.view(operation.at(CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
  const auto optional = [&](int32_t attribute) {
    return operation.has(attribute) ? run.view(operation.at(attribute)) : x;
  };
  const View b = optional(CUDNN_ATTR_OPERATION_POINTWISE_BDESC), t = optional(CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
  for_each(y.extents, [&](const std::vector<int64_t>& index) {
    if (mode == CUDNN_POINTWISE_GEN_INDEX) {
      const auto axis = static_cast<size_t>(description.one<int64_t>(CUDNN_ATTR_POINTWISE_AXIS));
      return y.store(y.place(index), static_cast<double>(index[axis]));
    }
    y.store(y.place(index), combine(mode, x.load(x.place(index)), b.load(b.place(index)), t.load(t.place(index))));
  });
}

void reduce(const Descriptor& operation, Run& run) {
  const auto kind = operation.at(CUDNN_ATTR_OPERATION_REDUCTION_DESC).one<int32_t>(CUDNN_ATTR_REDUCTION_OPERATOR);
  const View x = run.view(operation.at(CUDNN_ATTR_OPERATION_REDUCTION_XDESC));
  const View y = run.view(operation.at(CUDNN_ATTR_OPERATION_REDUCTION_YDESC));
  for_each(y.extents, [&](std::vector<int64_t> index) {
    double result = kind == CUDNN_REDUCE_TENSOR_MAX ? -INFINITY : 0;
    const int64_t place = y.place(index);
    for (index[3] = 0; index[3] < x.extents[3]; ++index[3]) {
      const double each = x.load(x.place(index));
      result = kind == CUDNN_REDUCE_TENSOR_MAX ? std::max(result, each) : result + each;
    }
    y.store(place, result);
  });
}

void run_operation(const Descriptor& operation, Run& run) {
  const auto window = [&](int32_t desc, int32_t x, int32_t w, int32_t y, int32_t out) {
    convolve(operation.at(desc), run.view(operation.at(x)), run.view(operation.at(w)), run.view(operation.at(y)),
             run.view(operation.at(out)));
  };
  switch (operation.type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return window(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return window(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return window(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
      return multiply(run.view(operation.at(CUDNN_ATTR_OPERATION_MATMUL_ADESC)),
                      run.view(operation.at(CUDNN_ATTR_OPERATION_MATMUL_BDESC)),
                      run.view(operation.at(CUDNN_ATTR_OPERATION_MATMUL_CDESC)));
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      return reduce(operation, run);
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      return run.alias(operation.at(CUDNN_ATTR_OPERATION_RESHAPE_XDESC),
                       operation.at(CUDNN_ATTR_OPERATION_RESHAPE_YDESC));
    default:
      return compute_pointwise(operation, run);
  }
}

int64_t runs = 0, plans_destroyed = 0, without_context = 0;

bool has_context() {
  using GetCurrent = CUresult (*)(CUcontext*);
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  const auto get = driver != nullptr ? reinterpret_cast<GetCurrent>(dlsym(driver, "cuCtxGetCurrent")) : nullptr;
  CUcontext context = nullptr;
  return get != nullptr && get(&context) == CUDA_SUCCESS && context != nullptr;
}

}  // namespace

#define FAKE(result) extern "C" __attribute__((visibility("default"))) result

FAKE(int64_t) fake_cudnn_runs() { return runs; }
FAKE(int64_t) fake_cudnn_plans_destroyed() { return plans_destroyed; }
// Those that were destroyed while no context was current.
FAKE(int64_t) fake_cudnn_plans_destroyed_without_context() { return without_context; }

FAKE(size_t) cudnnGetVersion() { return 91900; }
FAKE(const char*) cudnnGetErrorString(cudnnStatus) { return "a fake status"; }
FAKE(cudnnStatus) cudnnCreate(cudnnHandle* handle) {
  static int object;
  *handle = reinterpret_cast<cudnnHandle>(&object);
  return CUDNN_STATUS_SUCCESS;
}
FAKE(cudnnStatus) cudnnDestroy(cudnnHandle) { return CUDNN_STATUS_SUCCESS; }
FAKE(cudnnStatus) cudnnSetStream(cudnnHandle, CUstream) { return CUDNN_STATUS_SUCCESS; }
FAKE(cudnnStatus) cudnnBackendCreateDescriptor(int32_t type, cudnnBackendDescriptor* descriptor) {
  auto* made = new Descriptor;
  made->type = type;
  *descriptor = made;
  return CUDNN_STATUS_SUCCESS;
}
FAKE(cudnnStatus) cudnnBackendDestroyDescriptor(cudnnBackendDescriptor descriptor) {
  if (get(descriptor).type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    ++plans_destroyed;
    if (!has_context()) ++without_context;
  }
  delete &get(descriptor);
  return CUDNN_STATUS_SUCCESS;
}
FAKE(cudnnStatus) cudnnBackendFinalize(cudnnBackendDescriptor) { return CUDNN_STATUS_SUCCESS; }
FAKE(cudnnStatus)
cudnnBackendSetAttribute(cudnnBackendDescriptor descriptor, int32_t attribute, int32_t type, int64_t count,
                         const void* values) {
  std::vector<char> bytes(static_cast<size_t>(count) * size_of(type));
  std::memcpy(bytes.data(), values, bytes.size());
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    for (int64_t i = 0; i < count; ++i) {
      Descriptor* each = nullptr;
      std::memcpy(&each, bytes.data() + 8 * i, 8);
      each = copy_of(*each);
      std::memcpy(bytes.data() + 8 * i, &each, 8);
    }
  }
  get(descriptor).attributes[attribute] = std::move(bytes);
  return CUDNN_STATUS_SUCCESS;
}
FAKE(cudnnStatus)
cudnnBackendGetAttribute(cudnnBackendDescriptor const descriptor, int32_t attribute, int32_t, int64_t, int64_t* count,
                         void* values) {
  const Descriptor& from = get(descriptor);
  *count = 0;
  if (attribute == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
    for (; *count < 2; ++*count) {
      Descriptor& configuration = get(static_cast<cudnnBackendDescriptor*>(values)[*count]);
      configuration.engine = *count;
      configuration.graph = &from.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    }
  } else if (attribute == CUDNN_ATTR_ENGINECFG_ENGINE) {
    get(*static_cast<cudnnBackendDescriptor*>(values)).engine = from.engine;
    *count = 1;
  } else if (attribute == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE && from.engine == 0) {
    std::memcpy(values, &kWinograd, sizeof kWinograd);
    *count = 1;
  } else if (attribute == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
    const int64_t bytes = 256;
    std::memcpy(values, &bytes, sizeof bytes);
    *count = 1;
  }
  return CUDNN_STATUS_SUCCESS;
}
FAKE(cudnnStatus) cudnnBackendExecute(cudnnHandle, cudnnBackendDescriptor plan, cudnnBackendDescriptor pack) {
  if (get(plan).at(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).engine != 1) return kFails;
  if (get(pack).one<char*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE) == nullptr) return kFails;
  ++runs;
  const Descriptor& graph = *get(plan).at(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).graph;
  Run run(get(pack));
  for (const Descriptor* operation : graph.list<Descriptor*>(CUDNN_ATTR_OPERATIONGRAPH_OPS))
    run_operation(*operation, run);
  return CUDNN_STATUS_SUCCESS;
}
