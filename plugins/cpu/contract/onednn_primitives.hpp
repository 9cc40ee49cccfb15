// SPDX-License-Identifier: Apache-2.0
// oneDNN, which is opened at the first convolution that it may run, and stays open, because OpenMP's threads must not
// lose their code. The part of version 2's C interface that convolutions use is declared in this file; a unit test
// compares the declarations with the library's header, if it is installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "plugins/common/table/emit.hpp"
#include "plugins/cpu/threads/openmp.hpp"

namespace compute::cpu {

struct OnednnEngine;
struct OnednnStream;
struct OnednnMemory;
struct OnednnPrimitive;
struct OnednnDescription;
struct OnednnSettings;

constexpr int kOnednnAxes = 12;
using OnednnDims = int64_t[kOnednnAxes];

/// dnnl_memory_desc_t: dtype, extents and layout of a tensor.
struct OnednnLayout {
  alignas(8) unsigned char bytes[696];
};

/// dnnl_convolution_desc_t.
struct OnednnConvolutionProblem {
  alignas(8) unsigned char bytes[5976];
};

/// dnnl_exec_arg_t.
struct OnednnArgument {
  int role;
  OnednnMemory* memory;
};

namespace onednn_codes {

constexpr int kSuccess = 0;
constexpr int kCpu = 1;                 // dnnl_cpu
constexpr unsigned kInOrder = 1;        // dnnl_stream_default_flags
constexpr int kBfloat16 = 2;            // dnnl_bf16
constexpr int kFloat32 = 3;             // dnnl_f32
constexpr int kAnyLayout = 1;           // dnnl_format_tag_any
constexpr int kTraining = 64;           // dnnl_forward_training
constexpr int kDirect = 1;              // dnnl_convolution_direct
constexpr int kUserScratchpad = 1;      // dnnl_scratchpad_mode_user
constexpr int kImplementation = 8;      // dnnl_query_impl_info_str
constexpr int kSourceLayout = 129;      // dnnl_query_src_md; the following ones in order
constexpr int kSourceGradLayout = 130;  // dnnl_query_diff_src_md
constexpr int kWeightLayout = 131;
constexpr int kWeightGradLayout = 132;
constexpr int kResultLayout = 133;
constexpr int kResultGradLayout = 134;
constexpr int kScratchpadLayout = 136;
constexpr int kSource = 1;  // DNNL_ARG_SRC, also DNNL_ARG_FROM
constexpr int kResult = 17;
constexpr int kWeight = 33;
constexpr int kBias = 41;
constexpr int kScratchpad = 80;
constexpr int kSourceGrad = 129;
constexpr int kResultGrad = 145;
constexpr int kWeightGrad = 161;

}  // namespace onednn_codes

/// The functions, by the library's names, and one engine and stream for all threads.
struct OnednnPrimitives {
  int (*dnnl_engine_create)(OnednnEngine** engine, int kind, size_t index);
  int (*dnnl_stream_create)(OnednnStream** stream, OnednnEngine* engine, unsigned flags);
  int (*dnnl_memory_desc_init_by_strides)(OnednnLayout*, int rank, const int64_t* dims, int dtype,
                                          const int64_t* strides);
  int (*dnnl_memory_desc_init_by_tag)(OnednnLayout*, int rank, const int64_t* dims, int dtype, int tag);
  size_t (*dnnl_memory_desc_get_size)(const OnednnLayout*);
  int (*dnnl_memory_desc_equal)(const OnednnLayout*, const OnednnLayout*);
  int (*dnnl_dilated_convolution_forward_desc_init)(OnednnConvolutionProblem*, int direction, int algorithm,
                                                    const OnednnLayout* x, const OnednnLayout* weight,
                                                    const OnednnLayout* bias, const OnednnLayout* y,
                                                    const int64_t* strides, const int64_t* dilations,
                                                    const int64_t* pads_begin, const int64_t* pads_end);
  int (*dnnl_dilated_convolution_backward_data_desc_init)(OnednnConvolutionProblem*, int algorithm,
                                                          const OnednnLayout* dx, const OnednnLayout* weight,
                                                          const OnednnLayout* dy, const int64_t* strides,
                                                          const int64_t* dilations, const int64_t* pads_begin,
                                                          const int64_t* pads_end);
  int (*dnnl_dilated_convolution_backward_weights_desc_init)(OnednnConvolutionProblem*, int algorithm,
                                                             const OnednnLayout* x, const OnednnLayout* dweight,
                                                             const OnednnLayout* dbias, const OnednnLayout* dy,
                                                             const int64_t* strides, const int64_t* dilations,
                                                             const int64_t* pads_begin, const int64_t* pads_end);
  int (*dnnl_primitive_attr_create)(OnednnSettings**);
  int (*dnnl_primitive_attr_set_scratchpad_mode)(OnednnSettings*, int mode);
  int (*dnnl_primitive_attr_destroy)(OnednnSettings*);
  int (*dnnl_primitive_desc_create)(OnednnDescription**, const void* problem, const OnednnSettings*, OnednnEngine*,
                                    const OnednnDescription* forward);
  int (*dnnl_reorder_primitive_desc_create)(OnednnDescription**, const OnednnLayout* from, OnednnEngine* from_engine,
                                            const OnednnLayout* to, OnednnEngine* to_engine, const OnednnSettings*);
  int (*dnnl_primitive_desc_query)(const OnednnDescription*, int what, int index, void* out_answer);
  const OnednnLayout* (*dnnl_primitive_desc_query_md)(const OnednnDescription*, int what, int index);
  int (*dnnl_primitive_desc_destroy)(OnednnDescription*);
  int (*dnnl_primitive_create)(OnednnPrimitive**, const OnednnDescription*);
  int (*dnnl_primitive_execute)(const OnednnPrimitive*, OnednnStream*, int count, const OnednnArgument* arguments);
  int (*dnnl_primitive_destroy)(OnednnPrimitive*);
  int (*dnnl_memory_create)(OnednnMemory**, const OnednnLayout*, OnednnEngine*, void* address);
  int (*dnnl_memory_destroy)(OnednnMemory*);

  OnednnEngine* engine = nullptr;
  OnednnStream* stream = nullptr;
};

struct Onednn {
  OnednnPrimitives primitives;
  Openmp openmp;
};

/// The library, opened at the first call; NULL if no usable one exists. Throws OUT_OF_MEMORY if something has run out,
/// such as file descriptors; the next call tries again.
///
/// Threads: any thread.
const Onednn* onednn();

/// What the load report says. Loads nothing: before the first call of onednn() the library has not been searched yet.
common::Requirement report_onednn();

template <class T>
using OnednnHandle = std::unique_ptr<T, int (*)(T*)>;

/// A primitive, and the temporary memory that it needs.
struct OnednnStep {
  OnednnHandle<OnednnPrimitive> primitive{nullptr, nullptr};
  OnednnLayout scratch{};
  int64_t scratch_bytes = 0;

  explicit operator bool() const { return primitive != nullptr; }
};

}  // namespace compute::cpu
