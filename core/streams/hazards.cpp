// SPDX-License-Identifier: Apache-2.0
#include "core/streams/hazards.hpp"

#include "core/streams/timeline.hpp"

namespace compute {

void Hazards::record_other_read(Timeline& timeline, uint64_t number) {
  // The two change places, so that a stream that reads again and again stays on the short path.
  for (Access& read : more_reads) {
    if (read.timeline == &timeline) {
      read = last_read;
      last_read = {&timeline, number};
      return;
    }
  }
  std::erase_if(more_reads, [](const Access& read) { return read.timeline->has_ended(read.number); });
  more_reads.push_back(last_read);
  last_read = {&timeline, number};
}

void Hazards::record_untracked_write(Timeline& timeline, uint64_t number) {
  const auto ended = [&](const Access& access) {
    return access.timeline == nullptr || access.timeline == &timeline || access.timeline->has_ended(access.number);
  };
  std::erase_if(more_reads, ended);
  const bool keeps_write = !ended(last_write), keeps_read = !ended(last_read);
  if (keeps_write || keeps_read) more_reads.reserve(more_reads.size() + 2);
  if (keeps_write) more_reads.push_back(last_write);
  if (keeps_read) more_reads.push_back(last_read);
  last_read = {};
  last_write = {&timeline, number};
  if (is_versioned) version.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace compute
