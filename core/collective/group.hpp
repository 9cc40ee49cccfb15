// SPDX-License-Identifier: Apache-2.0
// Groups of ranks: the order of their calls, what runs them, and how they end.
#pragma once

#include <compute/compute.h>
#include <compute/plugin.h>
#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/collective/exchange.hpp"
#include "core/collective/transport.hpp"
#include "core/devices/device.hpp"
#include "core/memory/tensor.hpp"
#include "core/process/handle.hpp"
#include "core/streams/host_wait.hpp"
#include "core/streams/timeline.hpp"

namespace compute {

struct GroupOptions {
  int64_t timeout_ns = 0;      // 0: as the setting says
  bool shares_device = false;  // another rank of this process is on the device, so a call would wait behind its calls
};

// One rank's side of a group. Calls take turns: a turn is taken when the call is made, so that the transport sees the
// calls in the order of the program. A call runs on its caller's thread if its stream cannot wait for the host, else on
// the group's own thread, while the stream waits.
class Group {
 public:
  // All ranks of the transport call it, and it waits for them.
  static std::shared_ptr<Group> make(Device& device, std::unique_ptr<Transport> transport, const GroupOptions& options);
  // Waits for the calls that are queued.
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  Device& device() const noexcept { return device_; }
  int32_t rank() const noexcept { return transport_->rank(); }
  int32_t size() const noexcept { return transport_->size(); }
  bool shares_device() const noexcept { return shares_device_; }
  const std::string& description() const noexcept { return description_; }

  // `call` was checked. A `deterministic` call is not made by the vendor's library.
  void run(const Collective& call, bool deterministic, Timeline& timeline);
  // Adds a checked call to the recording of a stream, which retains `handle`, this group's. UNSUPPORTED if the vendor's
  // library does not make the call. With `makes_dst`, call.dst was made for it.
  void record(compute_group& handle, const Collective& call, bool deterministic, bool makes_dst, Timeline& timeline);
  void barrier();
  std::shared_ptr<Group> split(int32_t color, int32_t key);
  void abort() noexcept;

 private:
  // A call that runs on the group's thread.
  struct Job {
    Collective call;
    TensorReference src, dst;  // what `call` names, retained
    uint64_t number = 0;       // of the call, from 1
    uint64_t turn = 0;
    Timeline* timeline = nullptr;
    uint64_t before = 0, own = 0;  // submissions: what the call comes after, and the call
    HostWait wait;                 // of the stream
    bool is_ready = false;         // it can run; or be dropped, if it has no timeline
    compute_plugin_fault fault{};  // set if the results have no values
    std::unique_ptr<Error> error;  // then
  };
  // The newest call of the vendor's library on a stream.
  struct Watched {
    Timeline* timeline;
    uint64_t own;
    uint64_t number;
    const char* name;
    Deadline end;
  };
  class Turn;
  class Recorded;
  friend void wait_for_groups(int64_t timeout_ns) noexcept;

  Group(Device& device, std::unique_ptr<Transport> transport, const GroupOptions& options);
  void agree_on_library();
  bool join_library(std::string& reason);

  template <class F>
  void or_fail(const char* name, uint64_t number, F&& f);
  uint64_t begin_call();
  void require_alive();  // (mutex_)
  void compare(const Collective& call, uint64_t number);
  void perform(const Collective& call, uint64_t number);
  void run_now(const Collective& call, uint64_t number, Timeline& timeline);
  void queue(const Collective& call, uint64_t number, Timeline& timeline);
  void run_job(Job& job) noexcept;
  bool is_for_library(const Collective& call, bool deterministic) const;
  void run_by_library(const Collective& call, uint64_t number, Timeline& timeline);
  compute_error* submit_to_library(const Collective& call, uint64_t number, Timeline& timeline, uint64_t submission);
  static void release(std::shared_ptr<Job> job) noexcept;
  void serve() noexcept;
  void start_serving();  // (mutex_)
  void watch_library() noexcept;
  [[nodiscard]] Error failed(const char* name, uint64_t number, const Error& error) noexcept;
  void fail_library(const Error& error) noexcept;

  Device& device_;
  std::unique_ptr<Transport> transport_;  // until the rank leaves
  const pid_t process_;
  int64_t timeout_ns_ = COMPUTE_TIMEOUT_NONE;
  bool compares_ = false;
  bool shares_device_ = false;
  std::string description_;
  uint64_t library_group_ = 0;  // of the vendor's library; 0: core exchanges the data
  Timeline* copies_ = nullptr;  // for copies between the device and the host; NULL if the host can address the memory

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> jobs_;
  std::vector<Watched> watched_;
  uint64_t calls_ = 0;
  uint64_t next_turn_ = 0, turn_ = 0;
  bool is_serving_ = false, is_ending_ = false;
  std::unique_ptr<const Error> failure_;
};

// Waits until no group has a call in progress, for at most `timeout_ns`.
void wait_for_groups(int64_t timeout_ns) noexcept;

}  // namespace compute

struct compute_group : compute::Handle<compute::HandleKind::kGroup> {
  explicit compute_group(std::shared_ptr<compute::Group> group) : group(std::move(group)) {}
  const std::shared_ptr<compute::Group> group;
};
