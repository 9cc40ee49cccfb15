// SPDX-License-Identifier: Apache-2.0
// Compares the CPU plugin's declarations of oneDNN 2 with its header: functions, constants and structs, at compile
// time.
#include "plugins/cpu/contract/onednn_primitives.hpp"

// oneDNN's header comes last, so that ours is seen to need nothing of it.
#include <gtest/gtest.h>
#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_version.h>

#include <cstddef>
#include <type_traits>

#if DNNL_VERSION_MAJOR == 2

namespace compute::cpu {
namespace {

// Two types that are passed alike: pointers, and integers and enumerations of one size.
template <class A, class B>
constexpr bool passed_alike() {
  if constexpr (std::is_pointer_v<A> || std::is_pointer_v<B>) {
    return std::is_pointer_v<A> && std::is_pointer_v<B>;
  } else {
    return (std::is_integral_v<A> || std::is_enum_v<A>)&&(std::is_integral_v<B> || std::is_enum_v<B>)&&sizeof(A) ==
           sizeof(B);
  }
}

template <class Ours, class Theirs>
struct SameCall : std::false_type {};
template <class R1, class... A1, class R2, class... A2>
struct SameCall<R1 (*)(A1...), R2 (*)(A2...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(A1) == sizeof...(A2)) {
      return passed_alike<R1, R2>() && (passed_alike<A1, A2>() && ...);
    } else {
      return false;
    }
  }();
};

#define SAME_CALL(name) static_assert(SameCall<decltype(OnednnPrimitives::name), decltype(&::name)>::value, #name)
SAME_CALL(dnnl_engine_create);
SAME_CALL(dnnl_stream_create);
SAME_CALL(dnnl_memory_desc_init_by_strides);
SAME_CALL(dnnl_memory_desc_init_by_tag);
SAME_CALL(dnnl_memory_desc_get_size);
SAME_CALL(dnnl_memory_desc_equal);
SAME_CALL(dnnl_dilated_convolution_forward_desc_init);
SAME_CALL(dnnl_dilated_convolution_backward_data_desc_init);
SAME_CALL(dnnl_dilated_convolution_backward_weights_desc_init);
SAME_CALL(dnnl_primitive_attr_create);
SAME_CALL(dnnl_primitive_attr_set_scratchpad_mode);
SAME_CALL(dnnl_primitive_attr_destroy);
SAME_CALL(dnnl_primitive_desc_create);
SAME_CALL(dnnl_reorder_primitive_desc_create);
SAME_CALL(dnnl_primitive_desc_query);
SAME_CALL(dnnl_primitive_desc_query_md);
SAME_CALL(dnnl_primitive_desc_destroy);
SAME_CALL(dnnl_primitive_create);
SAME_CALL(dnnl_primitive_execute);
SAME_CALL(dnnl_primitive_destroy);
SAME_CALL(dnnl_memory_create);
SAME_CALL(dnnl_memory_destroy);
#undef SAME_CALL

static_assert(sizeof(OnednnLayout) == sizeof(dnnl_memory_desc_t));
static_assert(alignof(OnednnLayout) == alignof(dnnl_memory_desc_t));
static_assert(sizeof(OnednnConvolutionProblem) == sizeof(dnnl_convolution_desc_t));
static_assert(alignof(OnednnConvolutionProblem) == alignof(dnnl_convolution_desc_t));
static_assert(sizeof(OnednnArgument) == sizeof(dnnl_exec_arg_t));
static_assert(offsetof(OnednnArgument, memory) == offsetof(dnnl_exec_arg_t, memory));
static_assert(sizeof(OnednnDims) == sizeof(dnnl_dims_t));

static_assert(onednn_codes::kSuccess == static_cast<int>(dnnl_success));
static_assert(onednn_codes::kCpu == static_cast<int>(dnnl_cpu));
static_assert(onednn_codes::kInOrder == static_cast<unsigned>(dnnl_stream_default_flags));
static_assert(onednn_codes::kBfloat16 == static_cast<int>(dnnl_bf16));
static_assert(onednn_codes::kFloat32 == static_cast<int>(dnnl_f32));
static_assert(onednn_codes::kAnyLayout == static_cast<int>(dnnl_format_tag_any));
static_assert(onednn_codes::kTraining == static_cast<int>(dnnl_forward_training));
static_assert(onednn_codes::kDirect == static_cast<int>(dnnl_convolution_direct));
static_assert(onednn_codes::kUserScratchpad == static_cast<int>(dnnl_scratchpad_mode_user));
static_assert(onednn_codes::kImplementation == static_cast<int>(dnnl_query_impl_info_str));
static_assert(onednn_codes::kSourceLayout == static_cast<int>(dnnl_query_src_md));
static_assert(onednn_codes::kSourceGradLayout == static_cast<int>(dnnl_query_diff_src_md));
static_assert(onednn_codes::kWeightLayout == static_cast<int>(dnnl_query_weights_md));
static_assert(onednn_codes::kWeightGradLayout == static_cast<int>(dnnl_query_diff_weights_md));
static_assert(onednn_codes::kResultLayout == static_cast<int>(dnnl_query_dst_md));
static_assert(onednn_codes::kResultGradLayout == static_cast<int>(dnnl_query_diff_dst_md));
static_assert(onednn_codes::kScratchpadLayout == static_cast<int>(dnnl_query_scratchpad_md));
static_assert(onednn_codes::kSource == DNNL_ARG_SRC && onednn_codes::kSource == DNNL_ARG_FROM);
static_assert(onednn_codes::kResult == DNNL_ARG_DST && onednn_codes::kResult == DNNL_ARG_TO);
static_assert(onednn_codes::kWeight == DNNL_ARG_WEIGHTS);
static_assert(onednn_codes::kBias == DNNL_ARG_BIAS);
static_assert(onednn_codes::kScratchpad == DNNL_ARG_SCRATCHPAD);
static_assert(onednn_codes::kSourceGrad == DNNL_ARG_DIFF_SRC);
static_assert(onednn_codes::kResultGrad == DNNL_ARG_DIFF_DST);
static_assert(onednn_codes::kWeightGrad == DNNL_ARG_DIFF_WEIGHTS);

TEST(OnednnDeclarations, AgreeWithTheHeader) {
  SUCCEED() << "compared at compile time with version " << DNNL_VERSION_MAJOR << "." << DNNL_VERSION_MINOR;
}

}  // namespace
}  // namespace compute::cpu

#else

TEST(OnednnDeclarations, AgreeWithTheHeader) {
  GTEST_SKIP() << "the header is of version " << DNNL_VERSION_MAJOR << ", of which no primitives are used";
}

#endif
