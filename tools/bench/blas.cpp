// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/blas.hpp"

#include <dlfcn.h>

#include <initializer_list>

namespace compute::bench {
namespace {

template <class Function>
Function find(std::initializer_list<const char*> libraries, const char* name) {
  for (const char* library : libraries) {
    if (void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL)) return reinterpret_cast<Function>(dlsym(handle, name));
  }
  return nullptr;
}

template <class Function>
Function find_openblas(const char* name) {
#if defined(__x86_64__)
  constexpr const char* kOpenmp = "/usr/lib/x86_64-linux-gnu/openblas-openmp/libopenblas.so.0";
#else
  constexpr const char* kOpenmp = "/usr/lib/aarch64-linux-gnu/openblas-openmp/libopenblas.so.0";
#endif
  return find<Function>({kOpenmp, "/usr/lib64/libopenblaso.so.0"}, name);
}

constexpr int kRowMajor = 101, kNoTranspose = 111;

using DnnlSgemm = int (*)(char, char, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*, int64_t,
                          float, float*, int64_t);
using CblasSgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*,
                            int);
using CblasDgemm = void (*)(int, int, int, int, int, int, double, const double*, int, const double*, int, double,
                            double*, int);

DnnlSgemm dnnl_sgemm = nullptr;
CblasSgemm cblas_sgemm = nullptr;
CblasDgemm cblas_dgemm = nullptr;

template <class Call, class T>
void call_cblas(Call call, int64_t m, int64_t n, int64_t k, const T* a, const T* b, T* c) {
  const int lda = static_cast<int>(k), ldb = static_cast<int>(n);
  call(kRowMajor, kNoTranspose, kNoTranspose, static_cast<int>(m), ldb, lda, 1, a, lda, b, ldb, 0, c, ldb);
}

}  // namespace

Sgemm onednn_sgemm() {
  dnnl_sgemm = find<DnnlSgemm>({"libdnnl.so.3", "libdnnl.so.2"}, "dnnl_sgemm");
  if (dnnl_sgemm == nullptr) return nullptr;
  return [](int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* c) {
    dnnl_sgemm('N', 'N', m, n, k, 1, a, k, b, n, 0, c, n);
  };
}

Sgemm openblas_sgemm() {
  cblas_sgemm = find_openblas<CblasSgemm>("cblas_sgemm");
  if (cblas_sgemm == nullptr) return nullptr;
  return [](int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* c) {
    call_cblas(cblas_sgemm, m, n, k, a, b, c);
  };
}

Dgemm openblas_dgemm() {
  cblas_dgemm = find_openblas<CblasDgemm>("cblas_dgemm");
  if (cblas_dgemm == nullptr) return nullptr;
  return [](int64_t m, int64_t n, int64_t k, const double* a, const double* b, double* c) {
    call_cblas(cblas_dgemm, m, n, k, a, b, c);
  };
}

}  // namespace compute::bench
