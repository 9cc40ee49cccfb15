// SPDX-License-Identifier: Apache-2.0
#include "stream.hpp"

#include <compute_kit/polling.hpp>

#include <algorithm>
#include <cstring>
#include <string>

#include "device.hpp"

namespace vulkan {
namespace {

// Commands that are submitted together at most, and at most as many work-groups.
constexpr int kMostRecorded = 32;
constexpr uint64_t kHeavy = 65536;
// Work-groups that take longer than a submission: they are submitted while the device has less than two submissions
// to do, so that it works while the host records.
constexpr uint64_t kWorthwhile = 256;
constexpr uint64_t kAhead = 2;

constexpr int64_t kChunkBytes = 256 << 10;

constexpr size_t kMostAccesses = 64;  // of commands that may run at once

}  // namespace

Stream::Stream(Device& d) : device(d) {
  VkSemaphoreTypeCreateInfo type = {};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  info.pNext = &type;
  check(vkCreateSemaphore(device.handle, &info, nullptr, &semaphore_), "vkCreateSemaphore");
  VkCommandPoolCreateInfo pool_info = {};
  pool_info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool_info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool_info.queueFamilyIndex = device.physical.queue_family;
  const VkResult result = vkCreateCommandPool(device.handle, &pool_info, nullptr, &pool_);
  if (result != VK_SUCCESS) vkDestroySemaphore(device.handle, semaphore_, nullptr);
  check(result, "vkCreateCommandPool");
  const uint32_t index = device.next_queue++ % device.physical.queue_count;
  queue_ = device.queues[index];
  queue_mutex_ = &device.queue_mutexes[index];
}

// The device is idle.
Stream::~Stream() {
  for (const VkQueryPool pool : query_pools_) vkDestroyQueryPool(device.handle, pool, nullptr);
  vkDestroyCommandPool(device.handle, pool_, nullptr);
  vkDestroySemaphore(device.handle, semaphore_, nullptr);
}

uint64_t Stream::counter() const {
  uint64_t value = 0;
  check(vkGetSemaphoreCounterValue(device.handle, semaphore_, &value), "vkGetSemaphoreCounterValue");
  return value;
}

VkCommandBuffer Stream::record() {
  if (open_ != VK_NULL_HANDLE) return open_;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  collect();
  if (!used_.empty() && used_.front().second <= counter()) {
    commands = used_.front().first;  // vkBeginCommandBuffer resets it
    used_.pop_front();
  } else {
    VkCommandBufferAllocateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    info.commandPool = pool_;
    info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    info.commandBufferCount = 1;
    check(vkAllocateCommandBuffers(device.handle, &info, &commands), "vkAllocateCommandBuffers");
  }
  VkCommandBufferBeginInfo begin = {};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  check(vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
  open_ = commands;
  recorded_ = 0;
  weight_ = 0;
  return open_;
}

bool Stream::may_overlap(const std::vector<Access>& accesses) const {
  if (!knows_running_ || running_.size() + accesses.size() > kMostAccesses) return false;
  for (const Access& next : accesses)
    for (const Access& running : running_)
      if ((next.writes || running.writes) && next.begin < running.end && running.begin < next.end) return false;
  return true;
}

// Orders the next command behind all earlier ones. Between launches it names their stage alone, which costs least. A
// barrier takes a GPU about 2 us, in which it is idle.
void Stream::order(Command next, const std::vector<Access>* accesses) {
  const bool are_launches = previous_ == next && next == Command::kLaunch;
  const bool overlaps = are_launches && accesses != nullptr && may_overlap(*accesses);
  if (!overlaps) running_.clear();
  knows_running_ = accesses != nullptr;
  if (knows_running_) running_.insert(running_.end(), accesses->begin(), accesses->end());
  const bool is_needed = previous_ != Command::kNone && !overlaps;
  previous_ = next;
  if (!is_needed) return;
  VkMemoryBarrier memory = {};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  memory.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
  memory.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
  VkPipelineStageFlags stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
  if (!are_launches) {
    memory.srcAccessMask |= VK_ACCESS_TRANSFER_WRITE_BIT;
    memory.dstAccessMask |= VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    stages |= VK_PIPELINE_STAGE_TRANSFER_BIT;
  }
  vkCmdPipelineBarrier(open_, stages, stages, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

// Small commands wait for company: a mark that somebody asks for submits them at the latest.
void Stream::count(uint64_t weight) {
  ++recorded_;
  weight_ += weight;
  if (recorded_ >= kMostRecorded || weight_ >= kHeavy) flush();
}

void Stream::offer() {
  if (open_ != VK_NULL_HANDLE && weight_ >= kWorthwhile && has_room()) flush();
}

bool Stream::has_room() {
  if (last_ - ended_ >= kAhead) ended_ = counter();
  return last_ - ended_ < kAhead;
}

void Stream::dispatch(VkPipeline pipeline, VkPipelineLayout layout, const void* push, uint32_t push_bytes,
                      const uint32_t* groups, uint64_t weight, const std::vector<Access>* accesses) {
  const VkCommandBuffer commands = record();
  order(Command::kLaunch, accesses);
  vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
  if (push_bytes > 0) vkCmdPushConstants(commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, push_bytes, push);
  vkCmdDispatch(commands, groups[0], groups[1], groups[2]);
  count(uint64_t{groups[0]} * groups[1] * groups[2] * weight);
}

void Stream::copy(const Buffer& src, int64_t src_offset, const Buffer& dst, int64_t dst_offset, int64_t bytes) {
  const VkBufferCopy region = {static_cast<VkDeviceSize>(src_offset), static_cast<VkDeviceSize>(dst_offset),
                               static_cast<VkDeviceSize>(bytes)};
  const VkCommandBuffer commands = record();
  order(Command::kTransfer);
  vkCmdCopyBuffer(commands, src.buffer, dst.buffer, 1, &region);
  count(static_cast<uint64_t>(bytes) >> 12);
  offer();
}

void Stream::fill_words(const Buffer& dst, int64_t offset, int64_t bytes, uint32_t word) {
  const VkCommandBuffer commands = record();
  order(Command::kTransfer);
  vkCmdFillBuffer(commands, dst.buffer, static_cast<VkDeviceSize>(offset), static_cast<VkDeviceSize>(bytes), word);
  count(static_cast<uint64_t>(bytes) >> 12);
  offer();
}

uint64_t Stream::flush() {
  if (open_ == VK_NULL_HANDLE && waits_.empty()) return last_;
  const VkCommandBuffer commands = record();
  // Results become visible to the host, and to work that waits for the value.
  VkMemoryBarrier memory = {};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  memory.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  memory.dstAccessMask = VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT;
  vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
                       VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &memory, 0, nullptr, 0, nullptr);
  open_ = VK_NULL_HANDLE;
  VkResult result = vkEndCommandBuffer(commands);
  // The barrier before each command also orders the submissions of a queue.
  std::vector<VkSemaphore> semaphores;
  std::vector<uint64_t> values;
  for (const Wait& wait : waits_) semaphores.push_back(wait.semaphore), values.push_back(wait.value);
  const std::vector<VkPipelineStageFlags> stages(waits_.size(), VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
  const uint64_t value = last_ + 1;
  VkTimelineSemaphoreSubmitInfo timeline = {};
  timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  timeline.waitSemaphoreValueCount = static_cast<uint32_t>(values.size());
  timeline.pWaitSemaphoreValues = values.data();
  timeline.signalSemaphoreValueCount = 1;
  timeline.pSignalSemaphoreValues = &value;
  VkSubmitInfo submit = {};
  submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  submit.pNext = &timeline;
  submit.waitSemaphoreCount = static_cast<uint32_t>(semaphores.size());
  submit.pWaitSemaphores = semaphores.data();
  submit.pWaitDstStageMask = stages.data();
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &commands;
  submit.signalSemaphoreCount = 1;
  submit.pSignalSemaphores = &semaphore_;
  if (result == VK_SUCCESS) {
    const std::lock_guard lock(*queue_mutex_);
    result = vkQueueSubmit(queue_, 1, &submit, VK_NULL_HANDLE);
  }
  waits_.clear();
  if (result != VK_SUCCESS) {  // commands that were accepted are lost, so the stream is
    try {
      check(result, "vkQueueSubmit");
    } catch (const Failure& failure) {
      fail(failure);
    }
    return last_;
  }
  last_ = value;
  used_.emplace_back(commands, value);
  for (Chunk& chunk : chunks_)
    if (chunk.value == 0) chunk.value = value;
  if (!chunks_.empty()) chunks_.back().value = value;
  for (auto& [buffer, until] : staged_)
    if (until == 0) until = value;
  return last_;
}

// Frees staging memory whose work has ended.
void Stream::collect() {
  if (staged_.empty()) return;
  const uint64_t now = counter();
  while (!staged_.empty() && staged_.front().second != 0 && staged_.front().second <= now) {
    device.free(staged_.front().first);
    staged_.pop_front();
  }
}

std::pair<uint64_t, std::byte*> Stream::arguments(int64_t bytes) {
  bytes = (bytes + 63) & ~int64_t{63};
  if (chunks_.empty() || chunks_.back().used + bytes > chunks_.back().buffer->size) {
    flush();  // then every chunk has a value, unless it was never used
    if (chunks_.size() > 1 && chunks_.front().value <= counter() && bytes <= chunks_.front().buffer->size) {
      Chunk chunk = chunks_.front();
      chunks_.pop_front();
      chunk.used = 0;
      chunks_.push_back(chunk);
    } else {
      chunks_.push_back({device.allocate_arguments(std::max(bytes, kChunkBytes)), 0, 0});
    }
  }
  Chunk& chunk = chunks_.back();
  const int64_t at = chunk.used;
  chunk.used += bytes;
  return {chunk.buffer->address + static_cast<uint64_t>(at), chunk.buffer->host + at};
}

Buffer& Stream::staging(int64_t bytes, int32_t heap) {
  collect();
  Buffer* buffer = device.allocate_in_heap(heap, bytes);
  staged_.emplace_back(buffer, 0);
  return *buffer;
}

uint64_t Stream::own_fault() {
  if (own_fault_ == nullptr) {
    own_fault_ = device.allocate_in_heap(1, sizeof(compute_plugin_fault));
    std::memset(own_fault_->host, 0, sizeof(compute_plugin_fault));
  }
  uses_own_fault_ = true;
  return own_fault_->address;
}

uint64_t Stream::counters() {
  if (counters_ == nullptr) {
    constexpr int64_t kBytes = kMostCounters * static_cast<int64_t>(sizeof(uint32_t));
    counters_ = device.allocate_in_heap(0, kBytes);
    fill_words(*counters_, 0, kBytes, 0);
  }
  return counters_->address;
}

void Stream::read_own_fault() {
  if (failure_ || !uses_own_fault_) return;
  compute_plugin_fault record;
  std::memcpy(&record, own_fault_->host, sizeof record);
  if (record.code == COMPUTE_PLUGIN_FAULT_NONE) return;
  failure_.emplace(COMPUTE_ERROR_KERNEL_FAILED, "index " + std::to_string(record.value) +
                                                    " is outside of an axis of extent " + std::to_string(record.limit));
}

void Stream::fail(const Failure& failure) {
  if (failure.code == COMPUTE_ERROR_CONTEXT_LOST) device.is_lost = true;
  if (!failure_) failure_ = failure;
}

// ---- Marks ----------------------------------------------------------------------------------------------------------

Stream::Query Stream::take_query() {
  constexpr uint32_t kQueries = 64;
  if (free_queries_.empty()) {
    VkQueryPoolCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
    info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    info.queryCount = kQueries;
    VkQueryPool pool = VK_NULL_HANDLE;
    check(vkCreateQueryPool(device.handle, &info, nullptr, &pool), "vkCreateQueryPool");
    query_pools_.push_back(pool);
    for (uint32_t i = 0; i < kQueries; ++i) free_queries_.push_back({pool, i});
  }
  const Query query = free_queries_.back();
  free_queries_.pop_back();
  vkResetQueryPool(device.handle, query.pool, query.index, 1);
  return query;
}

void Stream::mark(uint64_t number, bool timed) {
  if (timed) {
    const Query query = take_query();
    vkCmdWriteTimestamp(record(), VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, query.pool, query.index);
    times_[number] = query;
  }
  marks_.push_back({number, open_ != VK_NULL_HANDLE || !waits_.empty() ? last_ + 1 : last_});
}

uint64_t Stream::value_of(uint64_t number) {
  for (const Mark& mark : marks_) {
    if (mark.number < number) continue;
    if (mark.value > last_) flush();
    return std::min(mark.value, last_);
  }
  return 0;
}

void Stream::wait_for(Stream& other, uint64_t number) {
  uint64_t value = 0;
  {
    const std::lock_guard lock(other.mutex);
    value = other.value_of(number);
  }
  if (value == 0) return;
  const std::lock_guard lock(mutex);
  if (failed()) return;
  flush();
  waits_.push_back({other.semaphore_, value});
}

uint64_t Stream::progress() {
  uint64_t now = 0;
  try {
    now = counter();
  } catch (const Failure& failure) {
    fail(failure);
  }
  if (!marks_.empty() && marks_.front().value > last_) flush();
  read_own_fault();
  // Once the stream has failed, it is not known which of the later numbers are good.
  while (!failed() && !marks_.empty() && marks_.front().value <= now) {
    reached_ = std::max(reached_, marks_.front().number);
    marks_.pop_front();
  }
  if (failed() && (now >= last_ || device.is_lost)) throw *failure_;
  return reached_;
}

// NVIDIA's driver wakes a thread some 100 us after the value was reached, so waits of up to 10 ms ask for it.
bool Stream::wait_until(uint64_t value, int64_t timeout_ns) const {
  if (value == 0) return true;
  if (device.physical.kind != COMPUTE_DEVICE_KIND_CPU) {
    const int64_t asking_ns = std::min<int64_t>(timeout_ns, 10'000'000);
    compute::common::Polling polling;
    compute::common::Pauses pauses(polling, device.spin_ns, asking_ns);
    do {
      if (counter() >= value) return true;
    } while (pauses.next());
    if (timeout_ns != INT64_MAX) timeout_ns -= asking_ns;
  }
  VkSemaphoreWaitInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  info.semaphoreCount = 1;
  info.pSemaphores = &semaphore_;
  info.pValues = &value;
  const VkResult result = vkWaitSemaphores(device.handle, &info, static_cast<uint64_t>(timeout_ns));
  if (result == VK_TIMEOUT) return false;
  check(result, "vkWaitSemaphores");
  return true;
}

std::optional<int64_t> Stream::take_time(uint64_t number, bool wanted, std::unique_lock<std::mutex>& lock) {
  const auto found = times_.find(number);
  if (found == times_.end()) throw Failure(COMPUTE_ERROR_INVALID_ARGUMENT, "vulkan: the mark was not timed");
  const Query query = found->second;
  times_.erase(found);
  if (!wanted) return std::nullopt;  // it may not have run yet, so the query is not used again
  // The number has been reached. Without the lock: llvmpipe waits for the whole device here.
  lock.unlock();
  uint64_t ticks = 0;
  const VkResult result = vkGetQueryPoolResults(device.handle, query.pool, query.index, 1, sizeof ticks, &ticks,
                                                sizeof ticks, VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
  lock.lock();
  check(result, "vkGetQueryPoolResults");
  free_queries_.push_back(query);
  return static_cast<int64_t>(ticks);
}

bool Stream::is_idle() const { return open_ == VK_NULL_HANDLE && waits_.empty() && counter() >= last_; }

void Stream::begin_again() {
  is_retired = false;
  marks_.clear();
  times_.clear();
  reached_ = 0;
}

}  // namespace vulkan
