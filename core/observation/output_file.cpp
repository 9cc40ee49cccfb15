// SPDX-License-Identifier: Apache-2.0
#include "core/observation/output_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/error.hpp"
#include "core/text/printable.hpp"

namespace compute {

OutputFile::OutputFile(const char* what, std::string path, size_t buffer_bytes)
    : what_(what), path_(std::move(path)), buffer_bytes_(buffer_bytes), file_(files::open_for_output(path_)) {
  if (file_) return;
  const char* const reason = errno == ENXIO ? "it is a FIFO without a reader" : std::strerror(errno);
  throw Error(COMPUTE_ERROR_IO,
              fmt::format("{} {} cannot be written: {}", what_, printable(path_, kLongestPath), reason));
}

void OutputFile::put(std::string_view text) {
  buffer_ += text;
  if (buffer_.size() >= buffer_bytes_) flush();
}

void OutputFile::flush() noexcept {
  if (fault_ == 0 && !files::write_all(file_.get(), buffer_)) fault_ = errno;
  buffer_.clear();
}

std::string OutputFile::close() noexcept {
  flush();
  if (::close(file_.release()) != 0 && fault_ == 0) fault_ = errno;
  if (fault_ == 0) return "";
  try {
    return fmt::format("{} {} was not written completely: {}", what_, printable(path_, kLongestPath),
                       std::strerror(fault_));
  } catch (...) {
    return "";
  }
}

}  // namespace compute
