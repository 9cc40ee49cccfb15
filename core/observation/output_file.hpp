// SPDX-License-Identifier: Apache-2.0
// The files that observations write.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/trusted_files/trusted_files.hpp"

namespace compute {

// Writes through a buffer. The first error is kept for close(), so that the observed work does not fail.
class OutputFile {
 public:
  // `what` begins messages: "the trace". Throws IO if the file cannot be opened, also, without blocking,
  // for a FIFO without a reader.
  OutputFile(const char* what, std::string path, size_t buffer_bytes);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void put(std::string_view text);
  // "the trace /dev/full was not written completely: No space left on device"; empty if all was written.
  std::string close() noexcept;
  // Closes the file as it is: in the child of a fork.
  void drop() noexcept { file_.reset(); }

 private:
  void flush() noexcept;

  const char* const what_;
  const std::string path_;
  const size_t buffer_bytes_;
  files::Descriptor file_;
  int fault_ = 0;  // an errno
  std::string buffer_;
};

}  // namespace compute
