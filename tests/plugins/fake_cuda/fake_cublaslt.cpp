// SPDX-License-Identifier: Apache-2.0
// A libcublasLt.so.13 for the fake driver's memory: float32 and float64 products by three loops, so that tests can
// check by results how the plugin passes strides, transpositions and batches. A handle works only in the context in
// which it was made.
#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <initializer_list>

#include "plugins/cuda/cublaslt_api.hpp"

using namespace compute::cuda;

namespace {

struct Layout : cublasLtMatrixLayoutOpaque {
  int32_t type = 0;
  int32_t batches = 1;
  int64_t rows = 0, columns = 0, leading = 0, batch_stride = 0;
};

struct Description : cublasLtMatmulDescOpaque {
  int32_t operation[2] = {CUBLAS_OP_N, CUBLAS_OP_N};
  int32_t epilogue = 1;  // none
  uint64_t bias = 0;
};

Layout& get(cublasLtMatrixLayout layout) { return *static_cast<Layout*>(layout); }
Description& get(cublasLtMatmulDesc description) { return *static_cast<Description*>(description); }

// The layouts that cuBLASLt documents: columns that do not overlap, one batch count.
bool is_legal(const Description& d, const Layout& a, const Layout& b, const Layout& c, const Layout& out) {
  for (const Layout* layout : {&a, &b, &c, &out}) {
    if (layout->rows < 1 || layout->columns < 1 || layout->leading < layout->rows || layout->batches != out.batches)
      return false;
  }
  const auto rows = [](const Layout& l, int32_t operation) { return operation == CUBLAS_OP_N ? l.rows : l.columns; };
  const auto columns = [](const Layout& l, int32_t operation) { return operation == CUBLAS_OP_N ? l.columns : l.rows; };
  return rows(a, d.operation[0]) == out.rows && columns(b, d.operation[1]) == out.columns &&
         columns(a, d.operation[0]) == rows(b, d.operation[1]) && c.rows == out.rows && c.columns == out.columns;
}

template <class T>
void multiply(const Description& d, T alpha, const T* a, const Layout& la, const T* b, const Layout& lb, T beta,
              const T* c, const Layout& lc, T* out, const Layout& lout) {
  const int64_t terms = d.operation[0] == CUBLAS_OP_N ? la.columns : la.rows;
  for (int32_t batch = 0; batch < lout.batches; ++batch) {
    for (int64_t j = 0; j < lout.columns; ++j) {
      for (int64_t i = 0; i < lout.rows; ++i) {
        T sum = 0;
        for (int64_t k = 0; k < terms; ++k) {
          const int64_t at_a = d.operation[0] == CUBLAS_OP_N ? i + k * la.leading : k + i * la.leading;
          const int64_t at_b = d.operation[1] == CUBLAS_OP_N ? k + j * lb.leading : j + k * lb.leading;
          sum += a[batch * la.batch_stride + at_a] * b[batch * lb.batch_stride + at_b];
        }
        T result = alpha * sum;
        if (beta != 0) result += beta * c[batch * lc.batch_stride + i + j * lc.leading];
        if (d.epilogue == CUBLASLT_EPILOGUE_BIAS) result += reinterpret_cast<const T*>(d.bias)[i];
        out[batch * lout.batch_stride + i + j * lout.leading] = result;
      }
    }
  }
}

std::atomic<int64_t> calls{0}, handles{0};
std::atomic<int32_t> compute_type{0};  // of the newest description

// The context that is current in the driver that the plugin has opened.
CUcontext current_context() {
  using GetCurrent = CUresult (*)(CUcontext*);
  static const auto get = [] {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return driver != nullptr ? reinterpret_cast<GetCurrent>(dlsym(driver, "cuCtxGetCurrent")) : nullptr;
  }();
  CUcontext context = nullptr;
  return get != nullptr && get(&context) == CUDA_SUCCESS ? context : nullptr;
}

}  // namespace

namespace compute::cuda {
struct cublasLtContext {
  CUcontext context;
};
}  // namespace compute::cuda

#define FAKE(result) extern "C" __attribute__((visibility("default"))) result

FAKE(int64_t) fake_cublaslt_calls() { return calls; }
FAKE(int32_t) fake_cublaslt_compute_type() { return compute_type; }
FAKE(int64_t) fake_cublaslt_handles() { return handles; }

FAKE(size_t) cublasLtGetVersion() { return 130000; }
FAKE(const char*) cublasLtGetStatusString(cublasStatus) { return "a fake status"; }
FAKE(cublasStatus) cublasLtCreate(cublasLtHandle* handle) {
  CUcontext const context = current_context();
  if (context == nullptr) return CUBLAS_STATUS_NOT_SUPPORTED;
  *handle = new cublasLtContext{context};
  ++handles;
  return CUBLAS_STATUS_SUCCESS;
}
FAKE(cublasStatus) cublasLtDestroy(cublasLtHandle handle) {
  if (current_context() != handle->context) return CUBLAS_STATUS_INVALID_VALUE;
  delete handle;
  --handles;
  return CUBLAS_STATUS_SUCCESS;
}
FAKE(cublasStatus)
cublasLtMatrixLayoutCreate(cublasLtMatrixLayout* layout, int32_t type, uint64_t rows, uint64_t columns,
                           int64_t leading) {
  auto* made = new Layout{};
  made->type = type;
  made->rows = static_cast<int64_t>(rows);
  made->columns = static_cast<int64_t>(columns);
  made->leading = leading;
  *layout = made;
  return CUBLAS_STATUS_SUCCESS;
}
FAKE(cublasStatus) cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout layout) {
  delete &get(layout);
  return CUBLAS_STATUS_SUCCESS;
}
FAKE(cublasStatus)
cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout layout, int32_t attribute, const void* value, size_t size) {
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && size == 4) std::memcpy(&get(layout).batches, value, size);
  if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && size == 8)
    std::memcpy(&get(layout).batch_stride, value, size);
  return CUBLAS_STATUS_SUCCESS;
}
FAKE(cublasStatus) cublasLtMatmulDescCreate(cublasLtMatmulDesc* description, int32_t compute, int32_t) {
  compute_type = compute;
  *description = new Description{};
  return CUBLAS_STATUS_SUCCESS;
}
FAKE(cublasStatus) cublasLtMatmulDescDestroy(cublasLtMatmulDesc description) {
  delete &get(description);
  return CUBLAS_STATUS_SUCCESS;
}
FAKE(cublasStatus)
cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc description, int32_t attribute, const void* value, size_t size) {
  Description& d = get(description);
  if (attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER && size == 8) {
    std::memcpy(&d.bias, value, size);
  } else if (size == 4) {
    int32_t& to = attribute == CUBLASLT_MATMUL_DESC_EPILOGUE ? d.epilogue
                  : attribute == CUBLASLT_MATMUL_DESC_TRANSA ? d.operation[0]
                                                             : d.operation[1];
    std::memcpy(&to, value, size);
  } else {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}
FAKE(cublasStatus) cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference* preference) {
  *preference = new cublasLtMatmulPreferenceOpaque{};
  return CUBLAS_STATUS_SUCCESS;
}
FAKE(cublasStatus) cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
FAKE(cublasStatus) cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference, int32_t, const void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
FAKE(cublasStatus)
cublasLtMatmulAlgoGetHeuristic(cublasLtHandle handle, cublasLtMatmulDesc description, cublasLtMatrixLayout a,
                               cublasLtMatrixLayout b, cublasLtMatrixLayout c, cublasLtMatrixLayout d,
                               cublasLtMatmulPreference, int, cublasLtMatmulHeuristicResult* results, int* found) {
  *found = 0;
  if (current_context() != handle->context) return CUBLAS_STATUS_INVALID_VALUE;
  if (!is_legal(get(description), get(a), get(b), get(c), get(d))) return CUBLAS_STATUS_INVALID_VALUE;
  if (get(description).epilogue == CUBLASLT_EPILOGUE_BIAS && get(description).bias == 0)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  results[0] = {};
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}
FAKE(cublasStatus)
cublasLtMatmul(cublasLtHandle handle, cublasLtMatmulDesc description, const void* alpha, const void* a,
               cublasLtMatrixLayout la, const void* b, cublasLtMatrixLayout lb, const void* beta, const void* c,
               cublasLtMatrixLayout lc, void* d, cublasLtMatrixLayout ld, const cublasLtMatmulAlgo*, void*, size_t,
               CUstream) {
  ++calls;
  if (current_context() != handle->context) return CUBLAS_STATUS_INVALID_VALUE;
  const Description& how = get(description);
  if (reinterpret_cast<uintptr_t>(alpha) % 16 != 0 || reinterpret_cast<uintptr_t>(beta) % 16 != 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  const auto run = [&](auto one) {
    using T = decltype(one);
    T alpha_value, beta_value;
    std::memcpy(&alpha_value, alpha, sizeof alpha_value);
    std::memcpy(&beta_value, beta, sizeof beta_value);
    multiply(how, alpha_value, static_cast<const T*>(a), get(la), static_cast<const T*>(b), get(lb), beta_value,
             static_cast<const T*>(c), get(lc), static_cast<T*>(d), get(ld));
  };
  if (get(ld).type == CUDA_R_32F) {
    run(1.0f);
  } else if (get(ld).type == CUDA_R_64F) {
    run(1.0);
  } else {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  return CUBLAS_STATUS_SUCCESS;
}
