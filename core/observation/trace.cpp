// SPDX-License-Identifier: Apache-2.0
#include "core/observation/trace.hpp"

#include <fmt/format.h>

#include "core/devices/device.hpp"
#include "core/expressions/dtype.hpp"
#include "core/text/json_writer.hpp"

namespace compute {
namespace {

constexpr int64_t kHostProcess = 1;

// Microseconds, with nanoseconds as decimals.
std::string micros(int64_t ns) {
  const char* const sign = ns < 0 ? "-" : "";
  const int64_t size = ns < 0 ? -ns : ns;
  return fmt::format("{}{}.{:03}", sign, size / 1000, size % 1000);
}

void put_arguments(JsonWriter& out, const OpWork& op) {
  out.field("ops", op.ops).field("dtype", op.dtype != 0 ? dtype_name(op.dtype) : "");
  out.field("shape", fmt::format("[{}]", fmt::join(op.shape, ","))).field("bytes", op.bytes).field("flops", op.flops);
}

void put_arguments(JsonWriter& out, const TransferWork& transfer) {
  const auto name = [](const Device* device) { return device != nullptr ? device->name : std::string("host"); };
  out.field("tensor", transfer.tensor).field("bytes", transfer.size_bytes).field("from", name(transfer.from));
  out.field("to", name(transfer.to)).field("op", transfer.cause).field("implicit", transfer.is_implicit);
  out.field("place", place_text(transfer.place));
}

}  // namespace

Trace::Trace(const std::string& path, int64_t begin) : begin_(begin), file_("the trace", path, size_t{1} << 20) {
  file_.put("[\n");
  put_name(kHostProcess, 0, "process_name", "host");
}

std::string Trace::close() {
  file_.put("\n]\n");
  return file_.close();
}

void Trace::put_line(const std::string& line) {
  if (!is_first_) file_.put(",\n");
  is_first_ = false;
  file_.put(line);
}

template <class F>
void Trace::put(const Event& event, F&& arguments) {
  JsonWriter out(JsonLayout::kOneLine);
  out.begin_object().field("name", event.name).field("cat", event.category).field("ph", "X");
  out.key("ts").number(micros(event.span.begin - begin_)).key("dur").number(micros(event.span.length()));
  out.field("pid", event.process).field("tid", event.thread).key("args").begin_object();
  arguments(out);
  put_line(out.end_object().end_object().take());
}

void Trace::put_name(int64_t process, int64_t thread, const char* what, std::string_view name) {
  JsonWriter out(JsonLayout::kOneLine);
  out.begin_object().field("name", what).field("ph", "M").field("pid", process).field("tid", thread);
  put_line(out.key("args").begin_object().field("name", name).end_object().end_object().take());
}

int64_t Trace::process_of(const Device& device) {
  const auto found = processes_.find(device.name);
  if (found != processes_.end()) return found->second;
  const int64_t process = kHostProcess + 1 + static_cast<int64_t>(processes_.size());
  processes_.emplace(device.name, process);
  put_name(process, 0, "process_name", device.name);
  return process;
}

void Trace::name_track(int64_t process, int64_t thread) {
  if (!named_.emplace(process, thread).second) return;
  put_name(process, thread, "thread_name", fmt::format("{} {}", process == kHostProcess ? "thread" : "stream", thread));
}

void Trace::add(const Work& work) {
  if (work.begun < begin_) return;  // begun before this trace
  const std::string_view category = work.op ? work.op->category : work.transfer ? "transfer" : "other";
  const auto arguments = [&](JsonWriter& out) {
    if (work.op) {
      put_arguments(out, *work.op);
    } else if (work.transfer) {
      put_arguments(out, *work.transfer);
    }
  };
  name_track(kHostProcess, work.thread);
  if (!work.is_timed) {
    put({work.name, category, kHostProcess, work.thread, work.on_host}, arguments);
    return;
  }
  put({work.name, "submit", kHostProcess, work.thread, work.on_host}, [](JsonWriter&) {});
  const int64_t process = process_of(*work.device);
  name_track(process, work.stream);
  put({work.name, category, process, work.stream, work.on_device}, arguments);
}

void Trace::add_wait(const Work& wait) {
  name_track(kHostProcess, wait.thread);
  put({"wait", "wait", kHostProcess, wait.thread, wait.on_host},
      [&](JsonWriter& out) { out.field("device", wait.device->name).field("stream", wait.stream); });
}

void Trace::add_preparation(std::string_view name, const Device& device, int32_t thread, TimeSpan span) {
  name_track(kHostProcess, thread);
  put({name, "prepare", kHostProcess, thread, span}, [&](JsonWriter& out) { out.field("device", device.name); });
}

void Trace::add_memory(std::string_view device, int64_t used, int64_t change, int64_t now) {
  JsonWriter out(JsonLayout::kOneLine);
  out.begin_object().field("name", fmt::format("memory of {}", device));
  out.field("cat", change > 0 ? "allocate" : "free").field("ph", "C").key("ts").number(micros(now - begin_));
  out.field("pid", kHostProcess).key("args").begin_object().field("used", used);
  put_line(out.end_object().end_object().take());
}

}  // namespace compute
