// SPDX-License-Identifier: Apache-2.0
// Compares the OpenCL plugin's declarations with the vendor's headers: equal values, and functions with parameters of
// the same kind.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#if __has_include(<clblast_c.h>)
#include <clblast_c.h>
#define HAS_CLBLAST 1
#endif

#include <gtest/gtest.h>

#include <tuple>
#include <type_traits>

namespace headers {
// The headers' constants are macros; the plugin's have the same names.
enum : int64_t {
#define CONSTANT(name, value) k_##name = static_cast<int64_t>(name),
#include "plugins/opencl/constants.inc"
#undef CONSTANT
};
}  // namespace headers

#define CONSTANT(name, value)                                                                                   \
  static_assert(                                                                                                \
      headers::k_##name == (value) || static_cast<uint32_t>(headers::k_##name) == static_cast<uint32_t>(value), \
      #name);
#include "plugins/opencl/constants.inc"
#undef CONSTANT

namespace own {
using cl_int = int32_t;
using cl_uint = uint32_t;
using cl_bitfield = uint64_t;
using cl_platform_id = struct PlatformObject*;
using cl_device_id = struct DeviceObject*;
using cl_context = struct ContextObject*;
using cl_command_queue = struct QueueObject*;
using cl_mem = struct MemoryObject*;
using cl_program = struct ProgramObject*;
using cl_kernel = struct KernelObject*;
using cl_event = struct EventObject*;
using cl_context_callback = void (*)(const char*, const void*, size_t, void*);
using cl_program_callback = void (*)(cl_program, void*);
using cl_event_callback = void (*)(cl_event, cl_int, void*);
#define FUNCTION(name, result, parameters) using name = result parameters;
#include "plugins/opencl/functions.inc"
struct ComplexFloat {
  alignas(8) float parts[2];
};
struct ComplexDouble {
  alignas(16) double parts[2];
};
#include "plugins/opencl/clblast.inc"
#undef FUNCTION
}  // namespace own

namespace {

// Parameters agree if both are pointers, or values of one size and alignment, both with a sign or without.
template <class A, class B>
constexpr bool same_kind() {
  if constexpr (std::is_pointer_v<A> || std::is_pointer_v<B>) {
    return std::is_pointer_v<A> && std::is_pointer_v<B>;
  } else {
    return sizeof(A) == sizeof(B) && alignof(A) == alignof(B) && std::is_signed_v<A> == std::is_signed_v<B> &&
           std::is_floating_point_v<A> == std::is_floating_point_v<B>;
  }
}

template <class A, class B>
struct Same : std::false_type {};
template <class R, class... As, class S, class... Bs>
struct Same<R(As...), S(Bs...)> {
  static constexpr bool all() {
    if constexpr (sizeof...(As) != sizeof...(Bs)) {
      return false;
    } else {
      return (std::is_void_v<R> || same_kind<std::conditional_t<std::is_void_v<R>, int, R>,
                                             std::conditional_t<std::is_void_v<S>, int, S>>()) &&
             (same_kind<As, Bs>() && ...);
    }
  }
  static constexpr bool value = all();
};

template <class A, class B>
struct SameParameters : std::false_type {};
template <class R, class... As, class S, class... Bs>
struct SameParameters<R(As...), S(Bs...)> : Same<void(As...), void(Bs...)> {
  static_assert(sizeof(R) == sizeof(S));
};

TEST(OpenclDeclarations, FunctionsHaveTheHeadersParameters) {
#define FUNCTION(name, result, parameters) \
  EXPECT_TRUE((Same<own::name, std::remove_pointer_t<decltype(&::name)>>::value)) << #name;
#include "plugins/opencl/functions.inc"
#undef FUNCTION
}

#ifdef HAS_CLBLAST
#define CONSTANT(name, value) static_assert(static_cast<int64_t>(::name) == (value), #name);
#include "plugins/opencl/clblast.inc"
#undef CONSTANT

// A status is an enumeration there.
TEST(OpenclDeclarations, ClblastsFunctionsHaveTheHeadersParameters) {
#define FUNCTION(name, result, parameters) \
  EXPECT_TRUE((SameParameters<own::name, std::remove_pointer_t<decltype(&::name)>>::value)) << #name;
#include "plugins/opencl/clblast.inc"
#undef FUNCTION
}
#endif

}  // namespace
