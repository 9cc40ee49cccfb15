// SPDX-License-Identifier: Apache-2.0
// COMPUTE_TRACE_OPS: a line for each op and transfer, in the order in which their times become known.
#pragma once

#include <cstdio>
#include <string>

#include "core/observation/work.hpp"

namespace compute {

class OpList {
 public:
  // "-" is stderr. Throws if the file cannot be written.
  explicit OpList(const std::string& path);
  OpList(const OpList&) = delete;
  OpList& operator=(const OpList&) = delete;

  void add(const Work& work);

 private:
  std::FILE* file_;
};

}  // namespace compute
