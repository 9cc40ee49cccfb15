// SPDX-License-Identifier: Apache-2.0
// Counts transfers, in the statistics of devices and for the observers.
#pragma once

#include <cstdint>
#include <span>

#include "core/memory/pool.hpp"
#include "core/streams/submission.hpp"

struct compute_device;

namespace compute {

// A tensor as reports name it.
struct Subject {
  const char* label = "";
  int32_t dtype = 0;  // 0: nothing is known
  std::span<const int64_t> shape;
};

struct Transfer {
  compute_device* from = nullptr;  // NULL: the host
  compute_device* to = nullptr;
  int64_t size_bytes = 0;
  bool is_implicit = false;
  const char* cause = "";                 // the op or the function that wants it; immortal
  const Subject* subject = nullptr;       // NULL: the one in view
  const MemoryPool* host_pool = nullptr;  // without one: of the host memory
  Block host_block{};
};

// For what `submission`, which still exists, has queued.
void count_transfer(Submission& submission, const Transfer& transfer) noexcept;

// The tensor on whose behalf the calling thread looks after a buffer.
class SubjectInView {
 public:
  explicit SubjectInView(const Subject& subject) noexcept;
  SubjectInView(const SubjectInView&) = delete;
  SubjectInView& operator=(const SubjectInView&) = delete;
  ~SubjectInView();

 private:
  const Subject* const before_;
};

// How many transfers the calling thread has counted: more than before, where one was needed.
int64_t transfers_of_thread() noexcept;

}  // namespace compute
