// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/contract/onednn_primitives.hpp"

#include <dlfcn.h>

namespace compute::cpu {

std::optional<OnednnPrimitives> find_onednn_primitives(void* library) {
  OnednnPrimitives p{};
  bool all = true;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    all = all && function != nullptr;
  };
#define COMPUTE_FIND(name) find(p.name, #name)
  COMPUTE_FIND(dnnl_engine_create);
  COMPUTE_FIND(dnnl_stream_create);
  COMPUTE_FIND(dnnl_memory_desc_init_by_strides);
  COMPUTE_FIND(dnnl_memory_desc_init_by_tag);
  COMPUTE_FIND(dnnl_memory_desc_get_size);
  COMPUTE_FIND(dnnl_memory_desc_equal);
  COMPUTE_FIND(dnnl_dilated_convolution_forward_desc_init);
  COMPUTE_FIND(dnnl_dilated_convolution_backward_data_desc_init);
  COMPUTE_FIND(dnnl_dilated_convolution_backward_weights_desc_init);
  COMPUTE_FIND(dnnl_primitive_attr_create);
  COMPUTE_FIND(dnnl_primitive_attr_set_scratchpad_mode);
  COMPUTE_FIND(dnnl_primitive_attr_destroy);
  COMPUTE_FIND(dnnl_primitive_desc_create);
  COMPUTE_FIND(dnnl_reorder_primitive_desc_create);
  COMPUTE_FIND(dnnl_primitive_desc_query);
  COMPUTE_FIND(dnnl_primitive_desc_query_md);
  COMPUTE_FIND(dnnl_primitive_desc_destroy);
  COMPUTE_FIND(dnnl_primitive_create);
  COMPUTE_FIND(dnnl_primitive_execute);
  COMPUTE_FIND(dnnl_primitive_destroy);
  COMPUTE_FIND(dnnl_memory_create);
  COMPUTE_FIND(dnnl_memory_destroy);
#undef COMPUTE_FIND
  if (!all || p.dnnl_engine_create(&p.engine, onednn_codes::kCpu, 0) != onednn_codes::kSuccess ||
      p.dnnl_stream_create(&p.stream, p.engine, onednn_codes::kInOrder) != onednn_codes::kSuccess) {
    return std::nullopt;
  }
  return p;
}

}  // namespace compute::cpu
