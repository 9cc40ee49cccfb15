// SPDX-License-Identifier: Apache-2.0
#include "core/memory/transfer_count.hpp"

#include <fmt/format.h>

#include "core/devices/device.hpp"
#include "core/expressions/dtype.hpp"
#include "core/observation/work.hpp"

namespace compute {
namespace {

[[gnu::tls_model("initial-exec")]] constinit thread_local const Subject* in_view = nullptr;
[[gnu::tls_model("initial-exec")]] constinit thread_local int64_t transfers = 0;

// "m", "float32 [64,64]"
std::string name_of(const Transfer& transfer) {
  const Subject* const subject = transfer.subject != nullptr ? transfer.subject : in_view;
  if (subject != nullptr && *subject->label != '\0') return subject->label;
  if (subject != nullptr) return fmt::format("{} [{}]", dtype_name(subject->dtype), fmt::join(subject->shape, ","));
  if (transfer.host_pool != nullptr && transfer.host_block) return transfer.host_pool->description(transfer.host_block);
  return fmt::format("{} bytes", transfer.size_bytes);
}

}  // namespace

void count_transfer(Submission& submission, const Transfer& transfer) noexcept {
  ++transfers;
  if (transfer.from != nullptr)
    transfer.from->counters.count_transfer(false, transfer.size_bytes, transfer.is_implicit);
  if (transfer.to != nullptr) transfer.to->counters.count_transfer(true, transfer.size_bytes, transfer.is_implicit);
  Work* const work = submission.observed();
  if (work == nullptr) return;
  try {
    work->transfer.emplace(TransferWork{transfer.from, transfer.to, transfer.size_bytes, transfer.is_implicit,
                                        name_of(transfer), transfer.cause, current_place()});
  } catch (...) {
    // Without memory it is work like other work.
  }
}

SubjectInView::SubjectInView(const Subject& subject) noexcept : before_(in_view) { in_view = &subject; }
SubjectInView::~SubjectInView() { in_view = before_; }

int64_t transfers_of_thread() noexcept { return transfers; }

}  // namespace compute
