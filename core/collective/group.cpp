// SPDX-License-Identifier: Apache-2.0
#include "core/collective/group.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include "core/lifetime/life.hpp"
#include "core/memory/buffer.hpp"
#include "core/memory/pool.hpp"
#include "core/process/in_use.hpp"
#include "core/process/log.hpp"
#include "core/process/process_config.hpp"
#include "core/process/service.hpp"
#include "core/process/thread.hpp"
#include "core/runner/planned_call.hpp"
#include "core/runner/recording.hpp"
#include "core/runner/run_op.hpp"
#include "core/streams/submission.hpp"

namespace compute {
namespace {

// How often the group's thread looks at work that the vendor's library has queued, and at the other ranks.
constexpr auto kLookEvery = std::chrono::milliseconds(100);
constexpr int32_t kNoValues = -1;  // a fault of core's own, whose error says why
constexpr int64_t kWaitForAbort = int64_t{2'000'000'000};

// What the ranks tell each other first.
struct Hello {
  char plugin[64];
  int32_t has_library;
  int32_t compares;
};

// The id of the vendor's library, from rank 0. As plugin.h says, it has at most 8192 bytes.
struct LibraryId {
  std::span<const uint8_t> id() const { return std::span(bytes).first(static_cast<size_t>(size)); }

  int32_t is_made;
  int32_t reserved;
  int64_t size;
  std::array<uint8_t, 8192> bytes;
};

// What all ranks of a call must agree on.
struct CallRecord {
  uint64_t number;
  int64_t count;
  int32_t kind, dtype, reduction, root;

  std::string text() const {
    constexpr const char* kNames[] = {"barrier",   "all_reduce", "reduce_scatter", "all_gather",
                                      "broadcast", "all_to_all", "send",           "recv"};
    const bool is_known = kind >= 0 && static_cast<size_t>(kind) < std::size(kNames);  // it may come from another rank
    std::string text = fmt::format("call {}, {}", number, is_known ? kNames[kind] : "an unknown call");
    if (dtype != COMPUTE_DTYPE_NONE) text += fmt::format(" of {} elements of {}", count, dtype_name(dtype));
    if (reduction != 0) text += fmt::format(", reduction {}", reduction);
    if (kind == COMPUTE_PLUGIN_COLLECTIVE_BROADCAST) text += fmt::format(", root {}", root);
    return text;
  }
};

compute_plugin_collective request_of(const Collective& call) {
  compute_plugin_collective request{};
  request.struct_size = sizeof request;
  request.struct_type = COMPUTE_PLUGIN_STRUCT_COLLECTIVE;
  request.kind = call.kind;
  request.dtype = stored_as(call.dtype);
  request.reduction = call.reduction;
  request.peer = call.peer;
  request.count = call.count;
  if (call.src != nullptr) request.src = operand_at(*call.src->buffer, call.src->offset_bytes);
  if (call.dst != nullptr) request.dst = operand_at(*call.dst->buffer, call.dst->offset_bytes);
  return request;
}

// The buffers of a call.
struct CallUses {
  explicit CallUses(const Collective& call) {
    const auto is_whole = [](const Tensor& tensor) {
      return tensor.offset_bytes == 0 && tensor.size_bytes() == tensor.buffer->size_bytes;
    };
    if (call.src != nullptr) uses[count++] = {call.src->buffer, false, false};
    if (call.dst != nullptr) uses[count++] = {call.dst->buffer, true, is_whole(*call.dst)};
    bytes = (call.src != nullptr ? call.src : call.dst)->size_bytes();
  }
  std::span<Use> span() { return {uses.data(), count}; }

  std::array<Use, 2> uses;
  size_t count = 0;
  int64_t bytes;
};

// Throws the failure because of which the inputs of a submission that has not run yet have no values.
void require_inputs(Timeline& timeline, uint64_t number) {
  if (!any_failure()) return;
  if (const Failure* failure = timeline.poison(number)) throw_failure(*failure);
}

TensorReference reference_to(Tensor* tensor) {
  if (tensor != nullptr) tensor->retain();
  return TensorReference(tensor);
}

// Every group of the process.
struct Groups {
  std::mutex mutex;
  std::vector<std::weak_ptr<Group>> all;
};

Groups& groups() {
  static auto* const immortal = new Groups;
  return *immortal;
}

}  // namespace

// The transport is the caller's during the object's life.
class Group::Turn {
 public:
  explicit Turn(Group& group) : group_(group) {
    std::unique_lock guard(group.mutex_);
    group.require_alive();
    const uint64_t own = group.next_turn_++;
    group.changed_.wait(guard, [&] { return group.turn_ == own; });
  }
  Turn(Group& group, uint64_t own) : group_(group) {
    std::unique_lock guard(group.mutex_);
    group.changed_.wait(guard, [&] { return group.turn_ == own; });
  }
  ~Turn() {
    const std::lock_guard guard(group_.mutex_);
    ++group_.turn_;
    group_.changed_.notify_all();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Group& group_;
};

// Runs a call. Its failure, of any kind, ends the group.
template <class F>
void Group::or_fail(const char* name, uint64_t number, F&& f) {
  try {
    f();
  } catch (const Error& error) {
    throw failed(name, number, error);
  } catch (...) {
    throw failed(name, number, Error::adopt(current_exception_to_error()));
  }
}

// ---- Making ---------------------------------------------------------------------------------------------------------

Group::Group(Device& device, std::unique_ptr<Transport> transport, const GroupOptions& options)
    : device_(device), transport_(std::move(transport)), process_(getpid()) {
  const int64_t seconds = setting(SettingId::kCollectiveTimeout).integer.value_or(0);
  if (seconds > 0) timeout_ns_ = seconds * 1'000'000'000;
  if (options.timeout_ns > 0) timeout_ns_ = options.timeout_ns;
  compares_ = setting(SettingId::kCollectiveCheck).flag;
  transport_->set_timeout(timeout_ns_);
}

std::shared_ptr<Group> Group::make(Device& device, std::unique_ptr<Transport> transport, const GroupOptions& options) {
  device.require_usable();
  std::shared_ptr<Group> group(new Group(device, std::move(transport), options));
  group->shares_device_ = options.shares_device;
  group->description_ = group->transport_->description();
  if (group->size() > 1) group->or_fail("group_create", 0, [&] { group->agree_on_library(); });
  if (!device.is_host) group->copies_ = &acquire_timeline(device, 0, 0);
  const std::lock_guard guard(groups().mutex);
  std::erase_if(groups().all, [](const std::weak_ptr<Group>& one) { return one.expired(); });
  groups().all.push_back(group);
  return group;
}

// The ranks use the vendor's library if all of them can.
void Group::agree_on_library() {
  Hello own{};
  const std::string plugin = device_.plugin != nullptr ? device_.table.place().plugin : "";
  plugin.copy(own.plugin, sizeof own.plugin - 1);
  own.has_library = device_.collectives ? 1 : 0;
  own.compares = compares_ ? 1 : 0;
  bool has_library = true;
  for (const Hello& other : transport_->all_gather_value(own)) {
    compares_ = compares_ || other.compares != 0;
    has_library =
        has_library && other.has_library != 0 && std::strncmp(other.plugin, own.plugin, sizeof own.plugin) == 0;
  }
  if (!has_library) return;
  std::string reason;
  const int32_t joined = join_library(reason) ? 1 : 0;
  const std::vector<int32_t> others = transport_->all_gather_value(joined);
  if (std::find(others.begin(), others.end(), 0) == others.end()) {
    description_ = device_.collectives.describe(library_group_) + ", " + description_;
    const std::lock_guard guard(mutex_);
    start_serving();
    return;
  }
  if (library_group_ != 0) {
    device_.collectives.abort(library_group_);
    device_.collectives.leave(std::exchange(library_group_, 0));
  }
  if (!reason.empty()) {
    log(COMPUTE_LOG_WARNING, "select", fmt::format("collectives of {} go through the host: {}", device_.name, reason));
  }
}

bool Group::join_library(std::string& reason) {
  auto id = std::make_unique<LibraryId>();
  const auto succeeds = [&](compute_error* error) {
    if (error == nullptr) return true;
    reason = error->message;
    compute_error_free(error);
    return false;
  };
  if (rank() == 0) id->is_made = succeeds(device_.collectives.make_id(id->bytes, &id->size)) ? 1 : 0;
  *id = transport_->broadcast_value(*id, 0);
  if (id->is_made == 0) return false;
  if (id->size < 0 || id->size > static_cast<int64_t>(id->bytes.size()))
    throw Error(COMPUTE_ERROR_PEER_FAILED, fmt::format("rank 0 sent an id of {} bytes", id->size));
  const bool has_joined = succeeds(device_.collectives.join(id->id(), size(), rank(), timeout_ns_, &library_group_));
  prepare_for_the_end();  // again: exit() now tells the plugin before the library that it may have loaded
  return has_joined;
}

std::shared_ptr<Group> Group::split(int32_t color, int32_t key) {
  const uint64_t number = begin_call();
  std::unique_ptr<Transport> part;
  {
    const Turn turn(*this);
    transport_->require_split();
    or_fail("group_split", number, [&] { part = transport_->split(color, key); });
  }
  const int64_t limit = timeout_ns_ == COMPUTE_TIMEOUT_NONE ? 0 : timeout_ns_;
  return make(device_, std::move(part), {.timeout_ns = limit, .shares_device = shares_device_});
}

// ---- Calls ----------------------------------------------------------------------------------------------------------

void Group::require_alive() {
  if (process_ != getpid())
    throw Error(COMPUTE_ERROR_FORKED, "the group belongs to the parent process; create another one");
  if (failure_) throw *failure_;
}

uint64_t Group::begin_call() {
  const std::lock_guard guard(mutex_);
  require_alive();
  return ++calls_;
}

void Group::run(const Collective& call, bool deterministic, Timeline& timeline) {
  const uint64_t number = begin_call();
  if (compares_ && (call.count == 0 || library_group_ != 0)) {
    or_fail(call.name, number, [&] {
      const Turn turn(*this);
      compare(call, number);
    });
  }
  if (call.count == 0) return;
  for (Tensor* const tensor : {call.src, call.dst}) {
    if (tensor != nullptr) bring_home(*tensor->buffer);
  }
  if (is_for_library(call, deterministic)) return run_by_library(call, number, timeline);
  if (HostWait::is_possible(timeline)) return queue(call, number, timeline);
  run_now(call, number, timeline);
}

// The ranks compare what they call, and each finds the difference. Sends and receipts count on their two ranks alone,
// so the numbers of the calls may differ.
void Group::compare(const Collective& call, uint64_t number) {
  const bool is_send = call.kind == COMPUTE_PLUGIN_COLLECTIVE_SEND;
  const bool is_pair = is_send || call.kind == COMPUTE_PLUGIN_COLLECTIVE_RECV;
  const int32_t root = call.kind == COMPUTE_PLUGIN_COLLECTIVE_BROADCAST ? call.peer : 0;
  const CallRecord own{number, call.count, call.kind, call.dtype, call.reduction, root};
  const auto require_same = [&](int32_t other_rank, const CallRecord& other) {
    if (other.count == own.count && other.dtype == own.dtype && other.reduction == own.reduction &&
        other.root == own.root && (is_pair || other.kind == own.kind))
      return;
    throw Error(COMPUTE_ERROR_PEER_FAILED,
                fmt::format("rank {} made {}, but rank {} made {}", rank(), own.text(), other_rank, other.text()));
  };
  if (is_send) return transport_->send_value(own, call.peer);
  if (is_pair) return require_same(call.peer, transport_->recv_value<CallRecord>(call.peer));
  const std::vector<CallRecord> all = transport_->all_gather_value(own);
  for (int32_t other = 0; other < size(); ++other) require_same(other, all[static_cast<size_t>(other)]);
}

// Called in turn.
void Group::perform(const Collective& call, uint64_t number) {
  {
    const std::lock_guard guard(mutex_);
    require_alive();
  }
  if (compares_ && library_group_ == 0) compare(call, number);
  bool keeps_tensors = false;
  try {
    exchange(call, *transport_, copies_, &keeps_tensors);
  } catch (...) {
    if (keeps_tensors) {
      for (Tensor* const tensor : {call.src, call.dst})
        keep_forever(std::make_shared<TensorReference>(reference_to(tensor)));
    }
    throw;
  }
}

void Group::run_now(const Collective& call, uint64_t number, Timeline& timeline) {
  const Turn turn(*this);
  CallUses uses(call);
  or_fail(call.name, number, [&] {
    Submission submission(timeline, uses.span(), call.name, timeline.immediate ? 1 : 2, uses.bytes);
    try {
      if (!timeline.immediate) {
        timeline.mark_at_locked(submission.first_number());
        timeline.wait_locked(submission.first_number());
      }
      require_inputs(timeline, submission.number());
      perform(call, number);
      submission.check(nullptr);
    } catch (const Error& error) {
      submission.spoil(error);
      throw;
    }
  });
}

void Group::queue(const Collective& call, uint64_t number, Timeline& timeline) {
  auto job = std::make_shared<Job>();
  job->call = call;
  job->src = reference_to(call.src);
  job->dst = reference_to(call.dst);
  job->number = number;
  CallUses uses(call);
  {
    const std::lock_guard guard(mutex_);
    require_alive();
    start_serving();
    jobs_.push_back(job);
    job->turn = next_turn_++;
  }
  const auto is_ready = [&](Timeline* used, HostWait wait) {
    const std::lock_guard guard(mutex_);
    job->timeline = used;
    job->wait = std::move(wait);
    job->is_ready = true;
    changed_.notify_all();
  };
  try {
    or_fail(call.name, number, [&] {
      Submission submission(timeline, uses.span(), call.name, 2, uses.bytes);
      job->before = submission.first_number();
      job->own = submission.number();
      timeline.expect_fault_locked(job->own, {call.name, nullptr, &job->fault, &job->error}, job);
      timeline.mark_at_locked(job->before);
      HostWait wait(timeline);
      submission.check(nullptr);  // queued
      is_ready(&timeline, std::move(wait));
    });
  } catch (...) {
    is_ready(nullptr, {});  // the group's thread drops it
    throw;
  }
}

void Group::run_job(Job& job) noexcept {
  try {
    or_fail(job.call.name, job.number, [&] {
      // The stream's own work may take any time, unless the group ends meanwhile.
      while (!job.timeline->wait_for_mark(job.before, 50'000'000)) {
        const std::lock_guard guard(mutex_);
        require_alive();
      }
      require_inputs(*job.timeline, job.own);
      perform(job.call, job.number);
    });
  } catch (const Error& error) {
    job.fault.code = kNoValues;
    try {
      job.error = std::make_unique<Error>(error);
    } catch (const std::bad_alloc&) {
      // The fault says that there are no values.
    }
  }
  job.wait.signal();
}

void Group::start_serving() {
  if (is_serving_) return;
  start_thread([this] { serve(); });  // the destructor waits for it
  is_serving_ = true;
}

// The last reference to a tensor may go with a job. If the release of its memory queues work, it takes the lock of a
// stream, which another thread may hold while it waits for the next job of this one.
void Group::release(std::shared_ptr<Job> job) noexcept {
  const auto queues_work = [](const TensorReference& tensor) {
    return tensor != nullptr && (debugs_memory() || tensor->buffer->promise != 0);
  };
  if (!queues_work(job->src) && !queues_work(job->dst)) return;
  try {
    run_in_background([released = std::move(job)] {});
  } catch (...) {
    // Without a background thread it is released here.
  }
}

void Group::serve() noexcept {
  std::unique_lock guard(mutex_);
  for (;;) {
    const auto is_ready = [&] { return jobs_.empty() ? is_ending_ : jobs_.front()->is_ready; };
    if (library_group_ != 0) {
      if (!changed_.wait_for(guard, kLookEvery, is_ready)) {
        guard.unlock();
        watch_library();
        guard.lock();
        continue;
      }
    } else {
      changed_.wait(guard, is_ready);
    }
    if (jobs_.empty()) {  // the group ends, after what the library still does
      if (watched_.empty() || failure_ || is_shut_down()) break;
      guard.unlock();
      watch_library();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      guard.lock();
      continue;
    }
    std::shared_ptr<Job> job = jobs_.front();
    jobs_.pop_front();
    guard.unlock();
    {
      const Turn turn(*this, job->turn);
      if (job->timeline != nullptr) run_job(*job);
    }
    release(std::move(job));
    guard.lock();
  }
  is_serving_ = false;
  changed_.notify_all();
}

void Group::barrier() {
  const uint64_t number = begin_call();
  const Turn turn(*this);
  or_fail("barrier", number, [&] {
    Collective call;
    call.name = "barrier";
    if (compares_) compare(call, number);
    static_cast<void>(transport_->all_gather_value(uint8_t{1}));
  });
}

// ---- The vendor's library -------------------------------------------------------------------------------------------

bool Group::is_for_library(const Collective& call, bool deterministic) const {
  return library_group_ != 0 && !deterministic && device_.collectives.supports(library_group_, request_of(call));
}

void Group::run_by_library(const Collective& call, uint64_t number, Timeline& timeline) {
  CallUses uses(call);
  or_fail(call.name, number, [&] {
    Submission submission(timeline, uses.span(), call.name, 1, uses.bytes);
    submission.check(submit_to_library(call, number, timeline, submission.number()));
  });
}

// (L of `timeline`) Returns the library's error.
compute_error* Group::submit_to_library(const Collective& call, uint64_t number, Timeline& timeline,
                                        uint64_t submission) {
  {
    // Before the call, because the library may wait in it for another rank that has left.
    const std::lock_guard guard(mutex_);
    require_alive();
    const Watched entry{&timeline, submission, number, call.name, deadline_after(timeout_ns_)};
    const auto known = std::find_if(watched_.begin(), watched_.end(),
                                    [&](const Watched& watched) { return watched.timeline == &timeline; });
    if (known == watched_.end()) {
      watched_.push_back(entry);
    } else if (known->timeline->has_ended(known->own)) {
      *known = entry;
    } else {
      known->own = entry.own;  // the limit of the oldest call holds
    }
  }
  compute_error* const error = device_.collectives.run(library_group_, timeline.plugin_stream, request_of(call));
  if (error == nullptr) return nullptr;
  const std::lock_guard guard(mutex_);
  if (!failure_) return error;
  compute_error_free(error);
  throw *failure_;  // it has ended the library's call, and says why
}

// A call in a graph. Each run of the graph is a call of its own, with the next number.
class Group::Recorded : public RecordedWork {
 public:
  Recorded(compute_group& handle, const Collective& call)
      : handle_(&handle),
        group_(handle.group.get()),
        call_(call),
        src_(reference_to(call.src)),
        dst_(reference_to(call.dst)) {
    handle.retain();
  }

  void prepare() override {
    number_ = group_->begin_call();
    if (!group_->compares_) return;
    group_->or_fail(call_.name, number_, [&] {
      const Turn turn(*group_);
      group_->compare(call_, number_);
    });
  }
  compute_error* submit(Timeline& timeline, uint64_t number) noexcept override {
    try {
      return group_->submit_to_library(call_, number_, timeline, number);
    } catch (...) {
      return current_exception_to_error();
    }
  }
  Error cancel(const Error& error) noexcept override { return group_->failed(call_.name, number_, error); }

 private:
  struct Release {
    void operator()(compute_group* handle) const { release_handle(handle); }
  };
  const std::unique_ptr<compute_group, Release> handle_;
  Group* const group_;
  const Collective call_;
  const TensorReference src_, dst_;
  uint64_t number_ = 0;  // of the run that is being submitted
};

void Group::record(compute_group& handle, const Collective& call, bool deterministic, bool makes_dst,
                   Timeline& timeline) {
  {
    const std::lock_guard guard(mutex_);
    require_alive();
  }
  if (call.count == 0) return;
  if (!is_for_library(call, deterministic)) {
    throw Error(COMPUTE_ERROR_UNSUPPORTED,
                fmt::format("{}: a graph can contain it only if the vendor's library makes it, but this call goes "
                            "through the host ({})",
                            call.name, description_));
  }
  for (Tensor* const tensor : {call.src, call.dst}) {
    if (tensor != nullptr) bring_home(*tensor->buffer);
  }
  CallUses uses(call);
  auto work = std::make_unique<Recorded>(handle, call);
  const std::lock_guard guard(timeline.lock);
  Recording* const recording = timeline.recording.load(std::memory_order_relaxed);
  if (recording == nullptr) throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "the recording of the stream has ended");
  recording->other_work.push_back({recording->runs.size(), std::move(work)});
  for (const Use& use : uses.span()) recording->use(static_cast<Buffer&>(*use.hazards), use.write, use.covers);
  if (makes_dst) recording->note_unfilled(timeline, *call.dst->buffer);
}

// On the group's thread: ends calls that the library or another rank has given up, and those that take too long.
void Group::watch_library() noexcept {
  const InUse in_use;
  if (is_shut_down()) return;
  std::vector<Watched> watched;
  {
    const std::lock_guard guard(mutex_);
    std::erase_if(watched_, [](const Watched& entry) { return entry.timeline->has_ended(entry.own); });
    if (failure_ || watched_.empty()) return;
    watched = watched_;
  }
  const Watched* const oldest = &watched.front();
  try {
    for (const Watched& entry : watched) entry.timeline->poll();
    throw_if(device_.collectives.failure(library_group_));
    if (std::unique_lock guard(mutex_); turn_ == next_turn_) {
      const uint64_t own = next_turn_++;
      guard.unlock();
      const Turn turn(*this, own);
      transport_->look_at_peers();
    }
    for (const Watched& entry : watched) {
      if (entry.timeline->has_ended(entry.own) || !is_past(entry.end)) continue;
      throw Error(COMPUTE_ERROR_PEER_FAILED, fmt::format("no answer of the other ranks within {} s "
                                                         "(COMPUTE_COLLECTIVE_TIMEOUT)",
                                                         static_cast<double>(timeout_ns_) / 1e9));
    }
  } catch (const Error& error) {
    static_cast<void>(failed(oldest->name, oldest->number, error));
  } catch (...) {
    // Memory ran out; the next look follows.
  }
}

// Streams with calls that have not ended fail: their results have no values.
void Group::fail_library(const Error& error) noexcept {
  std::vector<Watched> watched;
  {
    const std::lock_guard guard(mutex_);
    watched.swap(watched_);
  }
  std::erase_if(watched, [](const Watched& entry) { return entry.timeline->has_ended(entry.own); });
  // Before the library gives up, because the streams go on then.
  for (const Watched& entry : watched)
    entry.timeline->fail(entry.timeline->reached(), entry.own, make_error(error), false);
  device_.collectives.abort(library_group_);
  for (const Watched& entry : watched) {
    try {
      const bool has_ended = entry.timeline->wait_for_end(entry.timeline->submitted(), kWaitForAbort);
      if (has_ended) entry.timeline->fail(entry.own - 1, entry.own, make_error(error), true);
    } catch (...) {
      // The stream failed by itself.
    }
  }
}

// ---- The end --------------------------------------------------------------------------------------------------------

// The error of the call that failed. The first failure ends the group, here and on the other ranks.
Error Group::failed(const char* name, uint64_t number, const Error& error) noexcept {
  try {
    Error told = error;
    told.message = number == 0 ? fmt::format("{} on rank {} of {}: {}", name, rank(), size(), error.message)
                               : fmt::format("{}: call {} of the group failed on rank {} of {}: {}", name, number,
                                             rank(), size(), error.message);
    told.with_op(name);
    auto failure = std::make_unique<Error>(told);
    failure->code = COMPUTE_ERROR_PEER_FAILED;
    {
      const std::lock_guard guard(mutex_);
      if (failure_ != nullptr) return error;
      failure_ = std::move(failure);
      changed_.notify_all();
    }
    // First, so that what the other ranks do then completes no call here.
    if (library_group_ != 0) fail_library(*failure_);
    transport_->stop();
    transport_->abort(told.message);
    return told;
  } catch (const std::bad_alloc&) {
    transport_->stop();
    transport_->abort("out of memory");
    return error;
  }
}

void Group::abort() noexcept {
  uint64_t number = 0;
  {
    const std::lock_guard guard(mutex_);
    number = calls_;
  }
  static_cast<void>(failed("abort", number, Error(COMPUTE_ERROR_PEER_FAILED, "the program aborted the group")));
}

Group::~Group() {
  if (process_ != getpid()) return;  // the thread is the parent's
  {
    std::unique_lock guard(mutex_);
    is_ending_ = true;
    changed_.notify_all();
    changed_.wait(guard, [&] { return !is_serving_; });
  }
  const InUse in_use;
  if (is_shut_down()) return;
  transport_.reset();  // before the library, which waits for other ranks that have not left yet
  if (library_group_ != 0) device_.collectives.leave(library_group_);
  if (copies_ != nullptr) copies_->retire();
}

void wait_for_groups(int64_t timeout_ns) noexcept {
  const Deadline deadline = deadline_after(timeout_ns);
  std::vector<std::weak_ptr<Group>> all;
  {
    const std::lock_guard guard(groups().mutex);
    all.swap(groups().all);  // the process ends
  }
  for (const std::weak_ptr<Group>& one : all) {
    const std::shared_ptr<Group> group = one.lock();
    if (group == nullptr) continue;
    std::unique_lock guard(group->mutex_);
    group->changed_.wait_until(guard, deadline, [&] { return group->turn_ == group->next_turn_; });
  }
}

}  // namespace compute
