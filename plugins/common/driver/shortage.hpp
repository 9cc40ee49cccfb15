// SPDX-License-Identifier: Apache-2.0
// Temporary shortages while a library is opened.
#pragma once

#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>

#include "plugins/common/op/core.hpp"

namespace compute::common {

/// Throws OUT_OF_MEMORY if dlopen's message reports a shortage, such as of descriptors. The library may exist, so
/// nothing is concluded and the next call tries again.
inline void throw_if_short(std::string_view message) {
  for (const int error : {EMFILE, ENFILE, ENOMEM, EAGAIN}) {
    if (message.find(std::generic_category().message(error)) != std::string_view::npos) {
      throw Error(COMPUTE_ERROR_OUT_OF_MEMORY, std::string(message));
    }
  }
}

}  // namespace compute::common
