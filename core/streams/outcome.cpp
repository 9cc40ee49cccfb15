// SPDX-License-Identifier: Apache-2.0
// How submissions ended: what the plugins report, and which results have no values. See docs/decisions/0008-faults.md.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <new>
#include <set>

#include "core/base/scope.hpp"
#include "core/devices/device.hpp"
#include "core/observation/observed.hpp"
#include "core/observation/work.hpp"
#include "core/process/process_config.hpp"
#include "core/streams/timeline.hpp"

namespace compute {

std::atomic<int64_t> reasons_to_look{0};

namespace {

using Clock = std::chrono::steady_clock;

std::unique_ptr<Failure> make_failure(const Timeline& timeline, Failure::Kind kind, uint64_t last_good, uint64_t seen,
                                      compute_error* error) {
  auto failure = std::make_unique<Failure>();
  failure->timeline = &timeline;
  failure->kind = kind;
  failure->last_good = last_good;
  failure->seen = std::max(seen, last_good + 1);
  failure->error.reset(error);
  return failure;
}

// What is left of a limit that began at `start`.
int64_t rest_of(int64_t timeout_ns, Clock::time_point start) noexcept {
  if (timeout_ns == COMPUTE_TIMEOUT_NONE || timeout_ns == 0) return timeout_ns;
  const auto passed = std::chrono::nanoseconds(Clock::now() - start).count();
  return std::max<int64_t>(0, timeout_ns - passed);
}

// The error for callers: which work failed, as the failed stream describes it.
Error words_of(const Failure& failure) {
  const Timeline& timeline = *failure.timeline;
  const std::string& device = timeline.device.name;
  Error error = Error::adopt(copy_error(failure.error.get()));
  if (error.device.empty()) error.device = device;
  if (failure.kind != Failure::Kind::kStream) return error;
  const uint64_t first = failure.last_good + 1;
  if (error.op.empty() && first == failure.seen) error.op = timeline.name_of(first);
  const std::string where = first == failure.seen
                                ? timeline.name_of(first)
                                : fmt::format("one of {} submissions, {} to {}", failure.seen - failure.last_good,
                                              timeline.name_of(first), timeline.name_of(failure.seen));
  if (error.code == COMPUTE_ERROR_KERNEL_FAILED) {
    // A fault record's message begins with the op; a plugin's own message names none.
    error.message = fmt::format("{}: {}", where, error.message);
  } else {
    error.message = fmt::format("a stream of {} failed in {}: {}", device, where, error.message);
  }
  constexpr compute_error_code kKept[] = {COMPUTE_ERROR_KERNEL_FAILED, COMPUTE_ERROR_CONTEXT_LOST,
                                          COMPUTE_ERROR_DEVICE_LOST,   COMPUTE_ERROR_RESTART_REQUIRED,
                                          COMPUTE_ERROR_CANCELLED,     COMPUTE_ERROR_PEER_FAILED,
                                          COMPUTE_ERROR_NUMERICAL};
  if (std::ranges::find(kKept, error.code) == std::end(kKept)) error.code = COMPUTE_ERROR_STREAM_FAILED;
  return error;
}

}  // namespace

// ---- What may be worthless ------------------------------------------------------------------------------------------

void Timeline::reserve_sources_locked(size_t count) {
  std::lock_guard guard(outcome_lock_);
  if (sources_.capacity() - sources_.size() < count) sources_.reserve(2 * (sources_.size() + count));
}

void Timeline::depend_locked(const Source& source) noexcept {
  std::lock_guard guard(outcome_lock_);
  sources_.push_back(source);
  note_unsettled_locked();
}

// With the outcome lock held.
void Timeline::note_unsettled_locked() noexcept {
  has_unsettled_.store(!sources_.empty() || !faults_.empty(), std::memory_order_release);
}

void Timeline::forget_sources() noexcept {
  std::lock_guard guard(outcome_lock_);
  sources_.clear();
  note_unsettled_locked();
}

bool Timeline::is_unsettled(uint64_t number) const noexcept {
  if (!has_unsettled()) return false;
  std::lock_guard guard(outcome_lock_);
  const auto source = std::lower_bound(sources_.begin(), sources_.end(), number,
                                       [](const Source& a, uint64_t wanted) { return a.own < wanted; });
  if (source != sources_.end() && source->own == number) return true;
  const auto fault = std::lower_bound(faults_.begin(), faults_.end(), number,
                                      [](const PendingFault& a, uint64_t wanted) { return a.number < wanted; });
  return fault != faults_.end() && fault->number == number;
}

void Timeline::expect_fault_locked(uint64_t number, ExpectedFault expected, std::shared_ptr<const void> records) {
  PendingFault pending{number,         expected.op,        std::move(expected.indices),
                       expected.fault, std::move(records), expected.words};
  pending.scope = shared_scope();
  std::lock_guard guard(outcome_lock_);
  faults_.push_back(std::move(pending));
  note_unsettled_locked();
}

namespace {

// "indices[1, 2]", the element of the operand at a position of the index space.
std::string element_text(const IndexPlace& place, int64_t position) {
  std::vector<int64_t> at(place.space.size());
  for (size_t i = at.size(); i-- > 0; position /= place.space[i]) at[i] = position % place.space[i];
  std::string text;
  for (size_t i = 0; i < place.shape.size(); ++i) {
    const bool is_row = !place.extents.empty() && i + 1 == place.shape.size();
    const int64_t index = place.shape[i] == 1 ? 0 : at[static_cast<size_t>(place.first) + i];
    text += (i == 0 ? "" : ", ") + (is_row ? std::string(":") : std::to_string(index));
  }
  return "indices[" + text + "]";
}

// "index 7 is out of range for axis 0 of extent 5, at indices[1, 2]"
std::string index_fault_text(const IndexPlace& place, const compute_plugin_fault& fault) {
  std::string text =
      place.extents.empty()
          ? fmt::format("index {}{} is out of range for axis {} of extent {}", fault.value,
                        fault.value == INT64_MAX ? " or greater" : "", place.axis, fault.limit)  // of uint64
          : "an index is out of range for axes of extents " + fmt::format("[{}]", fmt::join(place.extents, ","));
  if (fault.position >= 0 && !place.shape.empty()) text += ", at " + element_text(place, fault.position);
  return text;
}

}  // namespace

namespace {

// What a fault in the numbers of a matrix says; NULL for other codes.
const char* numerical_fault_text(int32_t code) {
  switch (code) {
    case COMPUTE_PLUGIN_FAULT_SINGULAR:
      return "is singular";
    case COMPUTE_PLUGIN_FAULT_NOT_POSITIVE_DEFINITE:
      return "is not positive definite";
    case COMPUTE_PLUGIN_FAULT_NOT_CONVERGED:
      return "has no result: the iteration did not converge";
    default:
      return nullptr;
  }
}

// "cholesky: matrix 3 of the batch is not positive definite, at pivot 5"
Error numerical_error(const char* op, const char* text, const compute_plugin_fault& fault) {
  std::string message = std::string(op) + ": ";
  message += fault.position >= 0 ? fmt::format("matrix {} of the batch {}", fault.position, text)
                                 : fmt::format("a matrix {}", text);
  if (fault.value >= 0) message += fmt::format(", at pivot {}", fault.value);
  return {COMPUTE_ERROR_NUMERICAL, std::move(message)};
}

}  // namespace

Error fault_error(const char* op, const IndexPlace* indices, const compute_plugin_fault& fault,
                  const compute_device& device) {
  const auto whole = [&](Error error) {
    error.op = op;
    error.argument = fault.argument;
    error.device = device.name;
    return error;
  };
  if (const char* text = numerical_fault_text(fault.code)) return whole(numerical_error(op, text, fault));
  if (fault.code != COMPUTE_PLUGIN_FAULT_INDEX) {
    return whole(
        {COMPUTE_ERROR_KERNEL_FAILED,
         fmt::format("{}: a kernel detected fault {} (value {}, at position {}), which this library does not know", op,
                     fault.code, fault.value, fault.position)});
  }
  std::string message = std::string(op) + ": ";
  if (indices != nullptr) {
    message += index_fault_text(*indices, fault);
  } else {
    message += fmt::format("index {} is out of range for an extent of {}", fault.value, fault.limit);
    if (fault.position >= 0) message += fmt::format(", at position {}", fault.position);
  }
  Error error = whole({COMPUTE_ERROR_KERNEL_FAILED, std::move(message)});
  if (indices != nullptr) error.argument = indices->argument;
  return error;
}

// ---- What has failed ------------------------------------------------------------------------------------------------

void Timeline::fail(uint64_t last_good, uint64_t seen, compute_error* error, bool ended) noexcept {
  std::unique_ptr<compute_error, decltype(&compute_error_free)> owned(error, compute_error_free);
  const Failure* first = this->failure();
  if (first == nullptr) {
    try {
      auto failure = make_failure(*this, Failure::Kind::kStream, std::max(last_good, reached()), seen, owned.get());
      static_cast<void>(owned.release());
      reasons_to_look.fetch_add(1, std::memory_order_seq_cst);
      if (failure_.compare_exchange_strong(first, failure.get(), std::memory_order_acq_rel)) first = failure.release();
    } catch (const std::bad_alloc&) {
      return;  // the plugin says it again when it is asked next
    }
  }
  if (ended) note_end(*first);
}

void Timeline::note_end(const Failure& failure) noexcept {
  std::lock_guard guard(outcome_lock_);
  if (failure.ended.exchange(true, std::memory_order_acq_rel)) return;
  std::erase_if(sources_, [&](const Source& source) { return source.own > failure.last_good; });
  std::erase_if(faults_, [&](const PendingFault& pending) { return pending.number > failure.last_good; });
  note_unsettled_locked();
}

// With the outcome lock held. The first entry that is not below `number`.
std::vector<Timeline::Spoilt>::iterator Timeline::spoilt_from(uint64_t number) noexcept {
  return std::lower_bound(spoilt_.begin(), spoilt_.end(), number,
                          [](const Spoilt& a, uint64_t wanted) { return a.number < wanted; });
}

// With the outcome lock held. False if the number has an entry, which is kept.
bool Timeline::insert_spoilt(const Spoilt& entry) {
  const auto at = spoilt_from(entry.number);
  if (at != spoilt_.end() && at->number == entry.number) return false;
  spoilt_.insert(at, entry);
  told_below_ = std::min(told_below_, entry.number);
  device_told_below_ = std::min(device_told_below_, entry.number);
  return true;
}

void Timeline::spoil_by(uint64_t number, const Failure* failure) {
  std::lock_guard guard(outcome_lock_);
  // A failure of this stream has a separate entry, or its caller knows it.
  insert_spoilt({number, failure, failure->timeline == this});
}

void Timeline::spoil(uint64_t number, const Error& error) noexcept {
  try {
    auto failure = make_failure(*this, Failure::Kind::kOwnWords, number - 1, number, make_error(error));
    reasons_to_look.fetch_add(1, std::memory_order_seq_cst);
    spoil_by(number, failure.get());
    static_cast<void>(failure.release());
  } catch (const std::bad_alloc&) {
    // The caller has the error all the same.
  }
}

void Timeline::note_unfilled(uint64_t number) {
  {
    std::lock_guard guard(outcome_lock_);
    if (!unfilled_) {
      unfilled_ =
          make_failure(*this, Failure::Kind::kOwnWords, number - 1, number,
                       make_error(Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                                        "the tensor holds no values: the graph in which it was recorded has not run")));
    }
  }
  spoil_by(number, unfilled_.get());
  reasons_to_look.fetch_add(1, std::memory_order_seq_cst);
}

void Timeline::restore(uint64_t number) noexcept {
  std::lock_guard guard(outcome_lock_);
  const auto at = spoilt_from(number);
  if (at == spoilt_.end() || at->number != number) return;
  spoilt_.erase(at);
  reasons_to_look.fetch_sub(1, std::memory_order_relaxed);
}

void Timeline::require_healthy() const {
  if (const Failure* failure = this->failure()) throw_failure(*failure);
}

// Chains of reads can reach one number in many ways: each number is visited once.
const Failure* Timeline::poison(uint64_t number) {
  std::set<std::pair<Timeline*, uint64_t>> seen;
  std::vector<std::pair<Timeline*, uint64_t>> open{{this, number}};
  while (!open.empty()) {
    const auto [timeline, at] = open.back();
    open.pop_back();
    const Failure* failure = timeline->failure();
    if (failure != nullptr && at > failure->last_good) return failure;
    std::lock_guard guard(timeline->outcome_lock_);
    const auto spoilt = timeline->spoilt_from(at);
    if (spoilt != timeline->spoilt_.end() && spoilt->number == at) return spoilt->failure;
    auto source = std::lower_bound(timeline->sources_.begin(), timeline->sources_.end(), at,
                                   [](const Source& a, uint64_t wanted) { return a.own < wanted; });
    if (source == timeline->sources_.end() || source->own != at) continue;
    if (!seen.emplace(timeline, at).second) continue;
    for (; source != timeline->sources_.end() && source->own == at; ++source)
      open.emplace_back(source->other, source->number);
  }
  return nullptr;
}

// ---- What the plugin says -------------------------------------------------------------------------------------------

// Reads the records of reached submissions. They are complete because this stream's own plugin stream reported them:
// that another stream, which waited for this one, has come further says nothing about them.
void Timeline::check_faults(uint64_t reached) {
  if (!has_unsettled()) return;
  std::vector<PendingFault> finished;  // destroyed without the lock
  std::lock_guard guard(outcome_lock_);
  const auto end = std::find_if(faults_.begin(), faults_.end(),
                                [&](const PendingFault& pending) { return pending.number > reached; });
  if (end == faults_.begin()) return;
  std::vector<std::unique_ptr<Failure>> found;
  for (auto pending = faults_.begin(); pending != end; ++pending) {
    const bool has_own = pending->fault->code != COMPUTE_PLUGIN_FAULT_NONE;
    if (!has_own && !pending->shares_fault) continue;
    const compute_plugin_fault fault = has_own ? *pending->fault : pending->shared;
    Error error = pending->words != nullptr && *pending->words != nullptr
                      ? **pending->words
                      : fault_error(pending->op, pending->indices.get(), fault, device);
    if (pending->scope != nullptr) error.message += "\nscope: " + *pending->scope;
    auto failure = make_failure(*this, Failure::Kind::kFault, pending->number - 1, pending->number, make_error(error));
    found.push_back(std::move(failure));
    // Runs of one graph share their records: which of those that are queued wrote this one is unknown.
    for (auto later = pending + 1; has_own && later != faults_.end(); ++later) {
      if (later->fault != pending->fault) continue;
      later->shares_fault = true;
      later->shared = fault;
    }
  }
  finished.reserve(static_cast<size_t>(end - faults_.begin()));
  if (spoilt_.capacity() - spoilt_.size() < found.size()) spoilt_.reserve(2 * (spoilt_.size() + found.size()));
  // Nothing fails from here on.
  for (std::unique_ptr<Failure>& failure : found) {
    if (!insert_spoilt({failure->seen, failure.get(), false})) continue;
    static_cast<void>(failure.release());
    reasons_to_look.fetch_add(1, std::memory_order_seq_cst);
  }
  for (auto pending = faults_.begin(); pending != end; ++pending) {
    *pending->fault = {};
    finished.push_back(std::move(*pending));
  }
  faults_.erase(faults_.begin(), end);
  note_unsettled_locked();
}

// Asks the streams that numbers up to `reached` read from how those ended, since only they know. Returns up to which
// number that is known.
uint64_t Timeline::settle_sources(uint64_t reached, int64_t timeout_ns) {
  struct Asked {
    Timeline* timeline;
    uint64_t mark;
    uint64_t done;
  };
  const auto start = Clock::now();
  std::vector<Asked> asked;
  std::vector<std::pair<Timeline*, uint64_t>> open{{this, reached}};
  while (!open.empty()) {
    const auto [timeline, number] = open.back();
    open.pop_back();
    std::lock_guard guard(timeline->outcome_lock_);
    for (const Source& source : timeline->sources_) {
      if (source.own > number) break;
      if (source.other == timeline || source.other == this || source.other->has_ended(source.number)) continue;
      const uint64_t mark = std::max(source.mark, source.number);
      auto known =
          std::find_if(asked.begin(), asked.end(), [&](const Asked& one) { return one.timeline == source.other; });
      if (known == asked.end()) {
        asked.push_back({source.other, mark, 0});
      } else if (known->mark < mark) {
        known->mark = mark;
      } else {
        continue;
      }
      open.emplace_back(source.other, mark);
    }
  }
  bool all_known = true;
  for (Asked& one : asked) {
    Timeline& other = *one.timeline;
    const StreamInUse stream(other, one.mark);
    if (stream.handle() == 0) {
      one.done = other.reached();
      continue;  // it has ended
    }
    compute_error* error = timeout_ns == 0
                               ? other.ask_plugin(stream.handle(), &one.done)
                               : other.sync_plugin(stream.handle(), one.mark, rest_of(timeout_ns, start), &one.done);
    if (error != nullptr) {
      other.device.note_error(error->code);
      other.fail(one.done, other.submitted(), error, true);
    }
    other.check_faults(one.done);
    all_known = all_known && (one.done >= one.mark || other.has_ended(one.mark));
  }
  if (all_known) {
    for (const Asked& one : asked) one.timeline->publish(std::min(one.done, one.mark));
    return reached;
  }
  std::lock_guard guard(outcome_lock_);
  for (const Source& source : sources_) {
    if (source.own > reached) break;
    if (source.other != this && !source.other->has_ended(source.number)) return source.own - 1;
  }
  return reached;
}

// Numbers up to `reached` have ended, and it is known how those did that they read from.
void Timeline::publish(uint64_t reached) {
  if (has_unsettled()) {
    std::vector<Source> ready;
    {
      std::lock_guard guard(outcome_lock_);
      for (const Source& source : sources_) {
        if (source.own > reached) break;
        ready.push_back(source);
      }
    }
    if (any_failure()) {
      for (const Source& source : ready) {
        if (const Failure* failure = source.other->poison(source.number)) spoil_by(source.own, failure);
      }
    }
    std::lock_guard guard(outcome_lock_);
    std::erase_if(sources_, [&](const Source& source) { return source.own <= reached; });
    note_unsettled_locked();
  }
  reach(reached);
}

void Timeline::take_plugin_answer(compute_error* error, uint64_t reached, int64_t timeout_ns) noexcept {
  if (error != nullptr) {
    device.note_error(error->code);
    fail(reached, submitted(), error, true);
  }
  if (!has_unsettled()) {
    reach(reached);
    return;
  }
  try {
    check_faults(reached);
    publish(settle_sources(reached, timeout_ns));
  } catch (const std::bad_alloc&) {
    // Nothing counts as reached until it is known how it ended.
  }
}

compute_error* Timeline::sync_plugin(uint64_t stream, uint64_t number, int64_t timeout_ns,
                                     uint64_t* out_reached) noexcept {
  const WatchedWait watched(observes(kWatchesWork) ? &device : nullptr, id, device.table.has_times());
  const auto last_mark = [this] { return last_mark_.load(std::memory_order_acquire); };
  return device.table.stream_sync(stream, number, timeout_ns, last_mark, out_reached);
}

compute_error* Timeline::ask_plugin(uint64_t stream, uint64_t* out_reached) noexcept {
  const auto last_mark = [this] { return last_mark_.load(std::memory_order_acquire); };
  return device.table.stream_reached(stream, last_mark, out_reached);
}

int64_t hang_limit_ns() noexcept {
  static const int64_t limit = [] {
    const int64_t seconds = setting(SettingId::kHangSeconds).integer.value_or(0);
    return seconds > 0 ? seconds * 1'000'000'000 : COMPUTE_TIMEOUT_NONE;
  }();
  return limit;
}

// The stream makes no progress. Its work may touch memory yet, so none of it counts as ended.
void Timeline::give_up() noexcept {
  hung_.store(true, std::memory_order_release);
  try {
    fail(reached(), submitted(),
         make_error(Error(COMPUTE_ERROR_STREAM_FAILED,
                          fmt::format("no progress in {} s (COMPUTE_HANG_SECONDS)", hang_limit_ns() / 1'000'000'000))),
         false);
  } catch (const std::bad_alloc&) {
    // The next wait gives up again.
  }
}

// A wait without a time limit ends when the stream makes no progress within COMPUTE_HANG_SECONDS.
void Timeline::sync_with_plugin(uint64_t stream, uint64_t mark, int64_t timeout_ns) noexcept {
  const int64_t limit = hang_limit_ns();
  if (timeout_ns != COMPUTE_TIMEOUT_NONE || limit == COMPUTE_TIMEOUT_NONE) return sync_once(stream, mark, timeout_ns);
  if (is_hung(mark)) return sync_once(stream, mark, 0);
  for (uint64_t before = 0; !has_ended(mark);) {
    before = reached();
    sync_once(stream, mark, limit);
    if (!has_ended(mark) && reached() == before) return give_up();
  }
}

void Timeline::sync_once(uint64_t stream, uint64_t mark, int64_t timeout_ns) noexcept {
  const auto start = Clock::now();
  uint64_t done = 0;
  compute_error* error = sync_plugin(stream, mark, timeout_ns, &done);
  take_plugin_answer(error, done, rest_of(timeout_ns, start));
}

void Timeline::ask() noexcept {
  const StreamInUse stream(*this);
  if (stream.handle() == 0) return;
  uint64_t done = 0;
  compute_error* error = ask_plugin(stream.handle(), &done);
  take_plugin_answer(error, done, 0);
}

// ---- What callers are told ------------------------------------------------------------------------------------------

bool Timeline::wait(uint64_t number, int64_t timeout_ns) {
  if (!wait_for_end(number, timeout_ns) && !any_failure()) return false;
  if (any_failure()) {
    if (const Failure* failure = poison(number)) throw_failure(*failure);
  }
  return has_ended(number);
}

void Timeline::wait_for_own(uint64_t number) {
  try {
    wait(number, COMPUTE_TIMEOUT_NONE);
  } catch (...) {
    std::lock_guard guard(outcome_lock_);
    const auto entry = spoilt_from(number);
    if (entry != spoilt_.end() && entry->number == number) entry->told = true;
    throw;
  }
}

bool Timeline::wait_for_all(uint64_t number, int64_t timeout_ns) {
  const bool ended = wait_for_end(number, timeout_ns);
  report(number);
  return ended;
}

void Timeline::report(uint64_t number) {
  if (!any_failure()) return;
  const Failure* found = nullptr;
  {
    std::lock_guard guard(outcome_lock_);
    if (number + 1 >= first_) found = failure();
    for (auto entry = spoilt_from(told_below_); entry != spoilt_.end() && entry->number <= number; ++entry) {
      if (entry->told) continue;
      if (found == nullptr) found = entry->failure;
      entry->told = true;
    }
    told_below_ = std::max(told_below_, number + 1);
  }
  if (found != nullptr) throw_failure(*found);
}

const Failure* Timeline::untold() noexcept {
  if (!any_failure()) return nullptr;
  const auto is_told = [](const Failure& failure) { return failure.told.load(std::memory_order_acquire); };
  const Failure* failure = this->failure();
  if (failure != nullptr) return is_told(*failure) ? nullptr : failure;
  std::lock_guard guard(outcome_lock_);
  const Failure* found = nullptr;
  for (auto entry = spoilt_from(device_told_below_); entry != spoilt_.end(); ++entry) {
    if (found == nullptr && !entry->told && !is_told(*entry->failure)) found = entry->failure;
    device_told_below_ = entry->number + 1;
  }
  return found;
}

void throw_failure(const Failure& failure) {
  failure.told.store(true, std::memory_order_release);
  throw words_of(failure);
}

}  // namespace compute
