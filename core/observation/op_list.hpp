// SPDX-License-Identifier: Apache-2.0
// COMPUTE_TRACE_OPS: a line for each op and transfer, in the order in which their times become known.
#pragma once

#include <optional>
#include <string>

#include "core/observation/output_file.hpp"
#include "core/observation/work.hpp"

namespace compute {

class OpList {
 public:
  // "-" is stderr. Throws if the file cannot be written.
  explicit OpList(const std::string& path);

  void add(const Work& work);
  // Empty, or why the file was not written completely.
  std::string close() noexcept { return file_ ? file_->close() : ""; }

 private:
  std::optional<OutputFile> file_;  // empty: stderr
};

}  // namespace compute
