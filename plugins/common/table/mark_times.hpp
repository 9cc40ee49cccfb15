// SPDX-License-Identifier: Apache-2.0
// Finds marks by their numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

namespace compute::common {

/// The entry of mark `number` among entries in the order of their marks; the end if there is none. It is mostly the
/// first, because core asks in that order too.
template <class Entry>
auto find_mark(std::deque<Entry>& entries, uint64_t number) {
  if (!entries.empty() && entries.front().number == number) return entries.begin();
  const auto found = std::ranges::lower_bound(entries, number, {}, &Entry::number);
  return found != entries.end() && found->number == number ? found : entries.end();
}

}  // namespace compute::common
