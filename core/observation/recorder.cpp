// SPDX-License-Identifier: Apache-2.0
#include "core/observation/recorder.hpp"

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <mutex>
#include <new>

#include "core/base/error.hpp"
#include "core/base/lock.hpp"
#include "core/devices/device.hpp"
#include "core/observation/live_tensors.hpp"
#include "core/observation/observed.hpp"
#include "core/observation/op_list.hpp"
#include "core/observation/output_file.hpp"
#include "core/observation/placement.hpp"
#include "core/observation/profile.hpp"
#include "core/observation/ranges.hpp"
#include "core/observation/trace.hpp"
#include "core/observation/work.hpp"
#include "core/process/log.hpp"
#include "core/process/process_config.hpp"

namespace compute {
namespace {

// Never destroyed. The lock is held for look-ups and for writing to a file's buffer.
struct Recorder {
  Lock lock;
  Work* first = nullptr;  // not recorded yet, in the order of their begins
  Work* last = nullptr;
  Work* spare = nullptr;  // memory of earlier work, a list by `after`
  std::unique_ptr<Profile> profile;
  int64_t profile_end = 0;  // of a profile that was stopped; 0 while it runs
  std::unique_ptr<Trace> trace;
  std::unique_ptr<OpList> list;
  std::string profile_target;  // of the setting: a file, or 1
};

Recorder& recorder() {
  static auto* const immortal = new Recorder;
  return *immortal;
}

int32_t thread_id() noexcept {
  [[gnu::tls_model("initial-exec")]] static constinit thread_local int32_t id = 0;
  if (id == 0) id = static_cast<int32_t>(gettid());
  return id;
}

// Locked. No work that will be recorded began before this.
int64_t horizon_of(const Recorder& all, int64_t now) noexcept { return all.first != nullptr ? all.first->begun : now; }

void link(Recorder& all, Work& work) noexcept {
  work.before = all.last;
  (all.last != nullptr ? all.last->after : all.first) = &work;
  all.last = &work;
}

void unlink(Recorder& all, Work& work) noexcept {
  (work.before != nullptr ? work.before->after : all.first) = work.after;
  (work.after != nullptr ? work.after->before : all.last) = work.before;
}

bool profiles(const Recorder& all) noexcept { return all.profile != nullptr && all.profile_end == 0; }

// Locked.
Work* take_spare(Recorder& all) {
  Work* const work = all.spare;
  if (work == nullptr) return new Work;
  all.spare = work->after;
  work->after = nullptr;
  return work;
}

// Locked. It is not in the list any more.
void end_work(Recorder& all, Work* work) noexcept {
  std::destroy_at(work);
  new (work) Work;
  work->after = all.spare;
  all.spare = work;
}

}  // namespace

Work* begin_work(const char* name, const Device& device, uint32_t stream) {
  Recorder& all = recorder();
  const std::lock_guard guard(all.lock);
  Work* const work = take_spare(all);
  work->name = name;
  work->device = &device;
  work->stream = stream;
  work->thread = thread_id();
  work->begun = work->on_host.begin = host_now();
  link(all, *work);
  return work;
}

void abandon_work(Work* work) noexcept {
  if (work == nullptr) return;
  Recorder& all = recorder();
  const std::lock_guard guard(all.lock);
  unlink(all, *work);
  end_work(all, work);
}

void record_work(Work* work) noexcept {
  Recorder& all = recorder();
  const std::lock_guard guard(all.lock);
  unlink(all, *work);
  try {
    if (profiles(all)) {
      all.profile->add(*work);
      if (all.profile->is_due()) all.profile->settle(horizon_of(all, host_now()));
    }
    if (all.trace != nullptr) all.trace->add(*work);
    if (all.list != nullptr) all.list->add(*work);
  } catch (...) {
    // Without memory it is missing.
  }
  end_work(all, work);
}

WatchedWait::WatchedWait(const Device* device, uint32_t stream, bool is_timed) noexcept : work_(nullptr) {
  if (device == nullptr) return;
  if (observes(kNamesRanges)) range_.open("wait");
  try {
    work_ = begin_work("wait", *device, stream);
    work_->is_timed = is_timed;
  } catch (...) {
    // Without memory it is missing.
  }
}

WatchedWait::~WatchedWait() {
  if (work_ == nullptr) return;
  work_->on_host.end = host_now();
  Recorder& all = recorder();
  const std::lock_guard guard(all.lock);
  unlink(all, *work_);
  try {
    if (profiles(all) && !work_->is_timed) all.profile->add_wait(work_->on_host);
    if (all.trace != nullptr) all.trace->add_wait(*work_);
  } catch (...) {
    // As above.
  }
  end_work(all, work_);
}

void record_preparation(std::string_view name, const Device& device, int64_t begin) noexcept {
  const TimeSpan span{begin, host_now()};
  Recorder& all = recorder();
  const std::lock_guard guard(all.lock);
  try {
    if (profiles(all)) all.profile->add_preparation(device.name, span);
    if (all.trace != nullptr) all.trace->add_preparation(name, device, thread_id(), span);
  } catch (...) {
    // As above.
  }
}

void record_memory(std::string_view device, int64_t used, int64_t change) noexcept {
  const int64_t now = host_now();
  Recorder& all = recorder();
  const std::lock_guard guard(all.lock);
  try {
    if (all.trace != nullptr) all.trace->add_memory(device, used, change, now);
  } catch (...) {
    // As above.
  }
}

// ---- Starting and ending --------------------------------------------------------------------------------------------

void start_profile() {
  Recorder& all = recorder();
  auto profile = std::make_unique<Profile>(host_now());
  {
    const std::lock_guard guard(all.lock);
    profile.swap(all.profile);
    all.profile_end = 0;
  }
  begin_observing(kProfiles);
}

void stop_profile() noexcept {
  Recorder& all = recorder();
  stop_observing(kProfiles);
  const std::lock_guard guard(all.lock);
  if (profiles(all)) all.profile_end = host_now();
}

std::string profile_report(int32_t format) {
  Recorder& all = recorder();
  const std::lock_guard guard(all.lock);
  if (all.profile == nullptr) {
    throw Error(COMPUTE_ERROR_NOT_FOUND,
                "compute_profile_report: there is no profile; call compute_profile_start or set COMPUTE_PROFILE=1");
  }
  const int64_t end = all.profile_end != 0 ? all.profile_end : host_now();
  return format == COMPUTE_FORMAT_JSON ? all.profile->json(end) : all.profile->text(end);
}

void start_trace(const std::string& path) {
  static_cast<void>(stop_trace());
  Recorder& all = recorder();
  auto trace = std::make_unique<Trace>(path, host_now());
  {
    const std::lock_guard guard(all.lock);
    trace.swap(all.trace);
  }
  begin_observing(kTraces);
}

bool stop_trace() {
  Recorder& all = recorder();
  stop_observing(kTraces);
  std::unique_ptr<Trace> trace;
  {
    const std::lock_guard guard(all.lock);
    trace.swap(all.trace);
  }
  if (trace == nullptr) return false;
  if (const std::string fault = trace->close(); !fault.empty()) throw Error(COMPUTE_ERROR_IO, fault);
  return true;
}

namespace {

bool is_json(const std::string& path) { return path.size() > 5 && path.ends_with(".json"); }

// At process exit only the log can receive errors.
template <class Write>
void try_at_end(Write write) noexcept {
  try {
    write();
  } catch (const Error& error) {
    log(COMPUTE_LOG_ERROR, "error", error.message);
  } catch (...) {
    // Out of memory: skip it.
  }
}

void require_written(const std::string& fault) {
  if (!fault.empty()) throw Error(COMPUTE_ERROR_IO, fault);
}

void write_profile(const std::string& target) {
  const std::string text = profile_report(is_json(target) ? COMPUTE_FORMAT_JSON : COMPUTE_FORMAT_TEXT);
  if (target == "1") {
    std::fputs(text.c_str(), stderr);
    return;
  }
  OutputFile file("the profile", target, text.size() + 1);
  file.put(text);
  require_written(file.close());
}

void end_op_list() {
  Recorder& all = recorder();
  stop_observing(kListsOps);
  const std::lock_guard guard(all.lock);
  const std::unique_ptr<OpList> list = std::move(all.list);
  if (list != nullptr) require_written(list->close());
}

}  // namespace

void begin_configured_observations() {
  static std::once_flag once;
  std::call_once(once, [] {
    Recorder& all = recorder();
    const std::string profile = setting(SettingId::kProfile).text;
    if (!profile.empty() && profile != "0") {
      all.profile_target = profile;
      start_profile();
    }
    const std::string trace = setting(SettingId::kTrace).text;
    if (!trace.empty()) start_trace(trace);
    const std::string list = setting(SettingId::kTraceOps).text;
    if (!list.empty()) {
      all.list = std::make_unique<OpList>(list);
      begin_observing(kListsOps);
    }
    if (setting(SettingId::kPlacement).flag) begin_observing(kPlaces);
    if (setting(SettingId::kLeaks).flag) begin_observing(kTracksLeaks);
    if (find_profiler()) begin_observing(kNamesRanges);
  });
}

void report_at_end(std::string (*placement)(int32_t format), std::vector<CachedMemory> (*memory)()) noexcept {
  static std::atomic<bool> done{false};
  if (done.exchange(true)) return;
  try_at_end([] {
    const std::string target = recorder().profile_target;
    if (!target.empty()) write_profile(target);
  });
  try_at_end([] { static_cast<void>(stop_trace()); });
  try_at_end(end_op_list);
  try_at_end([&] {
    if (observes(kPlaces)) std::fputs(("compute: placement\n" + placement(COMPUTE_FORMAT_TEXT)).c_str(), stderr);
  });
  try_at_end([&] {
    if (observes(kTracksLeaks)) std::fputs(leaks_at_end(memory()).c_str(), stderr);
  });
}

void forget_observations() noexcept {
  observations.store(0);
  Recorder& all = recorder();
  all.first = all.last = all.spare = nullptr;
  all.profile_target.clear();
  if (all.trace != nullptr) all.trace->drop();
  all.trace.release();
  all.list.release();
}

}  // namespace compute
