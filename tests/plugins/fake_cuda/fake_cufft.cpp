// SPDX-License-Identifier: Apache-2.0
// A libcufft.so.12 for the fake driver's memory: the sums themselves, so that tests can check by results how the plugin
// passes axes, strides and batches. As cuFFT may, it overwrites its input, and uses all imaginary parts, where the
// result is real. A plan works only in the context in which it was made, and needs its work area.
#include <dlfcn.h>

#include <atomic>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <numbers>
#include <vector>

#include "plugins/cuda/cublaslt_api.hpp"
#include "plugins/cuda/cufft_api.hpp"

using namespace compute::cuda;

namespace {

constexpr size_t kWorkBytes = 64;
constexpr long long kRefused = 9973;  // a length of which there is no plan

struct Side {
  std::vector<long long> embed;
  long long stride = 0, distance = 0;
  int32_t type = 0;

  bool is_complex() const { return type == CUDA_C_32F || type == CUDA_C_64F; }
  long long place(long long batch, const std::vector<long long>& index) const {
    long long at = index[0];
    for (size_t i = 1; i < index.size(); ++i) at = at * embed[i] + index[i];
    return batch * distance + at * stride;
  }
};

struct Plan {
  CUcontext context = nullptr;
  std::vector<long long> n;
  Side src, dst;
  long long batch = 1;
  bool allocates = true;
  void* area = nullptr;
};

std::mutex mutex;
std::map<int, Plan> plans;
int next_plan = 1;
std::atomic<int64_t> calls{0};

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

template <class T>
std::complex<double> get(const Side& side, const void* data, long long at) {
  const auto* const p = static_cast<const T*>(data);
  return side.is_complex() ? std::complex<double>(p[2 * at], p[2 * at + 1]) : std::complex<double>(p[at]);
}

template <class T>
void put(const Side& side, void* data, long long at, std::complex<double> value) {
  auto* const p = static_cast<T*>(data);
  if (side.is_complex()) {
    p[2 * at] = static_cast<T>(value.real());
    p[2 * at + 1] = static_cast<T>(value.imag());
  } else {
    p[at] = static_cast<T>(value.real());
  }
}

bool advance(std::vector<long long>& index, const std::vector<long long>& extents) {
  for (size_t i = index.size(); i-- > 0;) {
    if (++index[i] < extents[i]) return true;
    index[i] = 0;
  }
  return false;
}

template <class T>
void transform(const Plan& plan, void* src, void* dst, int direction) {
  const std::vector<long long>& n = plan.n;
  const long long half = n.back() / 2 + 1;
  const bool is_back = !plan.dst.is_complex();
  std::vector<long long> stored = n;
  if (plan.src.is_complex() != plan.dst.is_complex()) stored.back() = half;
  for (long long batch = 0; batch < plan.batch; ++batch) {
    std::map<std::vector<long long>, std::complex<double>> x;
    std::vector<long long> index(n.size(), 0);
    do {
      std::vector<long long> from = index;
      const bool is_other = is_back && index.back() >= half;
      if (is_other) {
        for (size_t i = 0; i < n.size(); ++i) from[i] = (n[i] - index[i]) % n[i];
      }
      const std::complex<double> value = get<T>(plan.src, src, plan.src.place(batch, from));
      x[index] = is_other ? std::conj(value) : value;
    } while (advance(index, n));
    std::vector<long long> k(n.size(), 0);
    do {
      std::complex<double> sum = 0;
      for (const auto& [j, value] : x) {
        double turns = 0;
        for (size_t i = 0; i < n.size(); ++i)
          turns += static_cast<double>(j[i] * k[i] % n[i]) / static_cast<double>(n[i]);
        sum += value * std::polar(1.0, (is_back ? 1 : direction) * 2 * std::numbers::pi * turns);
      }
      // What a spectrum that is not Hermitian gives depends on the algorithm.
      if (is_back && std::abs(sum.imag()) > 1e-4 * (1 + std::abs(sum))) sum = std::numeric_limits<double>::quiet_NaN();
      put<T>(plan.dst, dst, plan.dst.place(batch, k), sum);
    } while (advance(k, is_back ? n : stored));
    if (!is_back) continue;
    std::vector<long long> at(n.size(), 0);
    do put<T>(plan.src, src, plan.src.place(batch, at), {-1, -1});
    while (advance(at, stored));
  }
}

Plan* find(int handle) {
  const auto found = plans.find(handle);
  return found == plans.end() || found->second.context != current_context() ? nullptr : &found->second;
}

}  // namespace

#define FAKE(result) extern "C" __attribute__((visibility("default"))) result

FAKE(int64_t) fake_cufft_calls() { return calls; }

FAKE(cufftStatus) cufftGetVersion(int* version) {
  *version = 12000;
  return CUFFT_SUCCESS;
}
FAKE(cufftStatus) cufftCreate(cufftHandle* handle) {
  const std::lock_guard lock(mutex);
  *handle = next_plan++;
  plans[*handle].context = current_context();
  return CUFFT_SUCCESS;
}
FAKE(cufftStatus) cufftDestroy(cufftHandle handle) {
  const std::lock_guard lock(mutex);
  if (find(handle) == nullptr) return CUFFT_INTERNAL_ERROR;
  plans.erase(handle);
  return CUFFT_SUCCESS;
}
FAKE(cufftStatus) cufftSetAutoAllocation(cufftHandle handle, int allocates) {
  const std::lock_guard lock(mutex);
  find(handle)->allocates = allocates != 0;
  return CUFFT_SUCCESS;
}
FAKE(cufftStatus) cufftSetWorkArea(cufftHandle handle, void* area) {
  const std::lock_guard lock(mutex);
  find(handle)->area = area;
  return CUFFT_SUCCESS;
}
FAKE(cufftStatus) cufftSetStream(cufftHandle, CUstream) { return CUFFT_SUCCESS; }
FAKE(cufftStatus)
cufftXtMakePlanMany(cufftHandle handle, int rank, long long* n, long long* src_embed, long long src_stride,
                    long long src_distance, int32_t src_type, long long* dst_embed, long long dst_stride,
                    long long dst_distance, int32_t dst_type, long long batch, size_t* work_bytes, int32_t) {
  const std::lock_guard lock(mutex);
  Plan* const plan = find(handle);
  if (plan == nullptr || rank < 1 || rank > 3 || batch < 1 || src_stride < 1 || dst_stride < 1 || src_distance < 1 ||
      dst_distance < 1)
    return CUFFT_INTERNAL_ERROR;
  plan->n.assign(n, n + rank);
  if (plan->n.back() == kRefused) return CUFFT_INVALID_SIZE;
  plan->src = {{src_embed, src_embed + rank}, src_stride, src_distance, src_type};
  plan->dst = {{dst_embed, dst_embed + rank}, dst_stride, dst_distance, dst_type};
  plan->batch = batch;
  *work_bytes = kWorkBytes;
  return CUFFT_SUCCESS;
}
FAKE(cufftStatus) cufftXtExec(cufftHandle handle, void* src, void* dst, int direction) {
  const std::lock_guard lock(mutex);
  const Plan* const plan = find(handle);
  if (plan == nullptr || plan->allocates || plan->area == nullptr) return CUFFT_INTERNAL_ERROR;
  ++calls;
  std::memset(plan->area, 0xff, kWorkBytes);
  const bool is_double = plan->src.type == CUDA_C_64F || plan->src.type == CUDA_R_64F;
  is_double ? transform<double>(*plan, src, dst, direction) : transform<float>(*plan, src, dst, direction);
  return CUFFT_SUCCESS;
}
