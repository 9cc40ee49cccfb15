// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/stream.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <system_error>

#include "plugins/common/driver/signals_blocked.hpp"
#include "plugins/common/table/mark_times.hpp"
#include "plugins/cpu/base/host.hpp"
#include "plugins/cpu/move/copy.hpp"
#include "plugins/cpu/threads/spin.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {
namespace {

using Clock = std::chrono::steady_clock;

enum class CommandKind : int32_t { kRun, kCopy, kFill, kMark, kWait, kHostWait };

}  // namespace

// Owned by the queued command and by core, until each has finished with it.
struct HostWait {
  Stream* stream;  // retained
  std::atomic<bool> is_over{false};
  std::atomic<int32_t> owners{2};

  void release() {
    if (owners.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    stream->release();
    delete this;
  }
};

struct Stream::Command {
  CommandKind kind;
  union {
    struct {
      const Plan* plan;
      compute_plugin_operand workspace, fault;
      // Behind the command: the tensors, then the scalars.
    } run;
    CopyWork copy;
    FillWork fill;
    struct {
      uint64_t number;
      bool timed;
    } mark;
    struct {
      Stream* other;
      uint64_t number;
    } wait;
    HostWait* host_wait;
  };
};

Stream* Stream::make_immediate(Device* device) { return new Stream(device, true, 0); }

Stream* Stream::make_queued(Device* device, int64_t spin_ns) {
  Stream* stream = new Stream(device, false, spin_ns);
  try {
    const common::SignalsBlocked blocked;
    stream->worker_ = std::thread([stream] { stream->work(); });
  } catch (const std::system_error& error) {
    stream->release();
    throw Error(COMPUTE_ERROR_OUT_OF_MEMORY, std::string("cannot create a thread for the stream: ") + error.what());
  }
  return stream;
}

Stream::Stream(Device* device, bool is_immediate, int64_t spin_ns)
    : device_(device), is_immediate_(is_immediate), spin_ns_(spin_ns) {}

Stream::~Stream() = default;

void Stream::release() {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

// ---- Submitting -----------------------------------------------------------------------------------------------------

void Stream::throw_if_failed() const {
  if (!failed_.load(std::memory_order_acquire)) return;
  std::lock_guard lock(mutex_);
  throw Error(error_code_, error_message_);
}

template <class F>
void Stream::submit(int64_t size_bytes, const F& fill_in) {
  throw_if_failed();
  fill_in(*new (queue_.reserve(size_bytes)) Command);
  queue_.push();
  if (worker_sleeps_.load(std::memory_order_seq_cst)) {
    std::lock_guard lock(mutex_);
    work_ready_.notify_one();
  }
}

// On an immediate stream. A request to cancel concerns the call that is running.
template <class F>
void Stream::run_now(const F& f) {
  cancel_.store(false, std::memory_order_relaxed);
  const Cancellable cancellable(cancel_);
  f();
  throw_if(&cancel_);
}

void Stream::run(const Plan& plan, const compute_plugin_run& run) {
  if (is_immediate_) return run_now([&] { plan.run(run); });
  const size_t tensor_bytes = static_cast<size_t>(plan.tensor_count) * sizeof *run.tensors;
  const size_t scalar_bytes = static_cast<size_t>(plan.scalar_count) * sizeof *run.scalars;
  submit(static_cast<int64_t>(sizeof(Command) + tensor_bytes + scalar_bytes), [&](Command& command) {
    plan.retain();
    command.kind = CommandKind::kRun;
    command.run = {&plan, run.workspace, run.fault};
    char* behind = reinterpret_cast<char*>(&command + 1);
    if (tensor_bytes != 0) std::memcpy(behind, run.tensors, tensor_bytes);
    if (scalar_bytes != 0) std::memcpy(behind + tensor_bytes, run.scalars, scalar_bytes);
  });
}

void Stream::copy(const CopyWork& work) {
  if (is_immediate_) return run_now([&] { copy_bytes(work.dst, work.src, work.size_bytes); });
  submit(sizeof(Command), [&](Command& command) {
    command.kind = CommandKind::kCopy;
    command.copy = work;
  });
}

void Stream::fill(const FillWork& work) {
  if (is_immediate_) return run_now([&] { fill_bytes(work.dst, work.size_bytes, work.pattern, work.pattern_size); });
  submit(sizeof(Command), [&](Command& command) {
    command.kind = CommandKind::kFill;
    command.fill = work;
  });
}

void Stream::mark(uint64_t number, bool timed) {
  if (timed) {  // the worker needs no memory then
    std::lock_guard lock(mutex_);
    times_.push_back({number, 0});
  }
  if (is_immediate_) return publish(number, timed);
  submit(sizeof(Command), [&](Command& command) {
    command.kind = CommandKind::kMark;
    command.mark = {number, timed};
  });
}

bool Stream::take_time(uint64_t number, int64_t* out_ns) {
  std::lock_guard lock(mutex_);
  const auto found = common::find_mark(times_, number);
  if (found == times_.end()) return false;
  if (out_ns != nullptr) *out_ns = found->ns;
  times_.erase(found);
  return true;
}

void Stream::wait(Stream* other, uint64_t number) {
  if (other->is_settled(number)) return;
  if (is_immediate_) {
    other->wait_until_settled(number, INT64_MAX);
    return;
  }
  submit(sizeof(Command), [&](Command& command) {
    other->retain();
    command.kind = CommandKind::kWait;
    command.wait = {other, number};
  });
}

HostWait* Stream::wait_for_host() {
  auto* const wait = new HostWait{this};
  try {
    submit(sizeof(Command), [&](Command& command) {
      command.kind = CommandKind::kHostWait;
      command.host_wait = wait;
    });
  } catch (...) {
    delete wait;
    throw;
  }
  retain();
  return wait;
}

void Stream::end_host_wait(HostWait* wait) {
  {
    std::lock_guard lock(wait->stream->mutex_);
    wait->is_over.store(true, std::memory_order_relaxed);
    wait->stream->work_ready_.notify_one();
  }
  wait->release();
}

void Stream::cancel() {
  cancel_.store(true, std::memory_order_seq_cst);
  if (is_immediate_) return;
  std::lock_guard lock(mutex_);
  work_ready_.notify_one();
}

void Stream::finish() {
  if (is_immediate_ || !worker_.joinable()) {
    finished_.store(true, std::memory_order_release);
    return;
  }
  std::lock_guard lock(mutex_);
  finishing_.store(true, std::memory_order_seq_cst);
  work_ready_.notify_one();
}

void Stream::join() {
  if (worker_.joinable()) worker_.join();
}

void Stream::forked() {
  if (is_immediate_) return;
  // Locks may be held and sleepers counted by threads that do not exist here.
  new (&mutex_) std::mutex;
  new (&work_ready_) std::condition_variable;
  new (&progress_) std::condition_variable;
  new (&worker_) std::thread;
  waiters_.store(0, std::memory_order_relaxed);
  worker_sleeps_.store(false, std::memory_order_relaxed);
  fail(COMPUTE_ERROR_FORKED, "the stream was created before fork(); create a new one in the child");
  finished_.store(true, std::memory_order_release);
}

// ---- Working --------------------------------------------------------------------------------------------------------

void Stream::work() {
  const auto has_news = [this] {
    return !queue_.is_empty() || finishing_.load(std::memory_order_seq_cst) || is_newly_cancelled();
  };
  for (;;) {
    if (!spin(spin_ns_, has_news)) {
      std::unique_lock lock(mutex_);
      worker_sleeps_.store(true, std::memory_order_seq_cst);
      work_ready_.wait(lock, has_news);
      worker_sleeps_.store(false, std::memory_order_relaxed);
    }
    stop_if_ending();
    fail_if_cancelled();
    const auto* command = static_cast<const Command*>(queue_.front());
    if (command == nullptr) {
      // Nothing was submitted after `finishing_`, so an empty queue stays empty.
      if (finishing_.load(std::memory_order_seq_cst) && queue_.is_empty()) break;
      continue;
    }
    if (command->kind == CommandKind::kWait) {
      command->wait.other->wait_until_settled(command->wait.number, INT64_MAX);
      command->wait.other->release();
    } else if (command->kind == CommandKind::kHostWait) {
      await(command->host_wait);
    } else if (!failed_.load(std::memory_order_relaxed)) {
      execute(*command);
    }
    if (command->kind == CommandKind::kRun) command->run.plan->release();
    queue_.pop();
  }
  finished_.store(true, std::memory_order_release);
}

bool Stream::is_newly_cancelled() const {
  return cancel_.load(std::memory_order_seq_cst) && !failed_.load(std::memory_order_relaxed);
}

void Stream::fail_if_cancelled() {
  if (is_newly_cancelled()) fail(COMPUTE_ERROR_CANCELLED, "the work was cancelled");
}

void Stream::await(HostWait* wait) {
  if (!failed_.load(std::memory_order_relaxed)) {
    std::unique_lock lock(mutex_);
    work_ready_.wait(lock, [&] { return wait->is_over.load(std::memory_order_relaxed) || is_newly_cancelled(); });
  }
  wait->release();
}

void Stream::execute(const Command& command) {
  try {
    const Cancellable cancellable(cancel_);
    switch (command.kind) {
      case CommandKind::kRun: {
        const Plan& plan = *command.run.plan;
        const auto* tensors = reinterpret_cast<const compute_plugin_operand*>(&command + 1);
        compute_plugin_run run{};
        run.struct_size = sizeof run;
        run.struct_type = COMPUTE_PLUGIN_STRUCT_RUN;
        run.tensors = tensors;
        run.scalars = reinterpret_cast<const compute_plugin_scalar*>(tensors + plan.tensor_count);
        run.workspace = command.run.workspace;
        run.fault = command.run.fault;
        plan.run(run);
        break;
      }
      case CommandKind::kCopy:
        copy_bytes(command.copy.dst, command.copy.src, command.copy.size_bytes);
        break;
      case CommandKind::kFill:
        fill_bytes(command.fill.dst, command.fill.size_bytes, command.fill.pattern, command.fill.pattern_size);
        break;
      case CommandKind::kMark:
        publish(command.mark.number, command.mark.timed);
        break;
      case CommandKind::kWait:
      case CommandKind::kHostWait:
        break;
    }
  } catch (const Error& error) {
    fail(error.code, error.message);
  } catch (const std::bad_alloc&) {
    fail(COMPUTE_ERROR_OUT_OF_MEMORY, "the cpu plugin is out of memory");
  } catch (const std::exception& error) {
    fail(COMPUTE_ERROR_INTERNAL, error.what());
  } catch (...) {
    fail(COMPUTE_ERROR_INTERNAL, "an exception of unknown type in the cpu plugin");
  }
}

void Stream::publish(uint64_t number, bool timed) {
  if (timed) {
    const int64_t now = now_ns();
    std::lock_guard lock(mutex_);
    const auto found = common::find_mark(times_, number);
    if (found != times_.end()) found->ns = now;
  }
  reached_.store(number, std::memory_order_seq_cst);
  wake_waiters();
}

void Stream::fail(compute_error_code code, std::string_view message) noexcept {
  {
    std::lock_guard lock(mutex_);
    error_code_ = code;
    try {
      error_message_ = message;
    } catch (...) {
      // The code alone has to do.
    }
  }
  failed_.store(true, std::memory_order_seq_cst);
  wake_waiters();
}

// ---- Waiting --------------------------------------------------------------------------------------------------------

void Stream::wake_waiters() {
  if (waiters_.load(std::memory_order_seq_cst) == 0) return;
  std::lock_guard lock(mutex_);
  progress_.notify_all();
}

bool Stream::is_settled(uint64_t number) const {
  return reached_.load(std::memory_order_seq_cst) >= number || failed_.load(std::memory_order_seq_cst);
}

bool Stream::wait_until_settled(uint64_t number, int64_t timeout_ns) {
  const auto settled = [this, number] { return is_settled(number); };
  const auto start = Clock::now();
  if (spin(std::min(spin_ns_, timeout_ns), settled)) return true;
  if (timeout_ns <= spin_ns_) return false;
  waiters_.fetch_add(1, std::memory_order_seq_cst);
  bool done = true;
  {
    std::unique_lock lock(mutex_);
    // Further than a century counts as never.
    if (timeout_ns > int64_t{3'000'000'000} * 1'000'000'000) {
      progress_.wait(lock, settled);
    } else {
      done = progress_.wait_until(lock, start + std::chrono::nanoseconds(timeout_ns), settled);
    }
  }
  waiters_.fetch_sub(1, std::memory_order_relaxed);
  return done;
}

uint64_t Stream::reached(compute_error** out_error) const {
  *out_error = nullptr;
  if (failed_.load(std::memory_order_acquire)) {
    std::lock_guard lock(mutex_);
    *out_error = make_error(error_code_, error_message_);
  }
  return reached_.load(std::memory_order_acquire);
}

uint64_t Stream::sync(uint64_t number, int64_t timeout_ns, compute_error** out_error) {
  wait_until_settled(number, timeout_ns);
  return reached(out_error);
}

}  // namespace compute::cpu
