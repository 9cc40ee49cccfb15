// SPDX-License-Identifier: Apache-2.0
#include "core/observation/trace.hpp"

#include <fmt/format.h>

#include "core/devices/device.hpp"
#include "core/expressions/dtype.hpp"
#include "core/text/printable.hpp"

namespace compute {
namespace {

constexpr int64_t kHostProcess = 1;

// Microseconds, with nanoseconds as decimals.
std::string micros(int64_t ns) {
  const char* const sign = ns < 0 ? "-" : "";
  const int64_t size = ns < 0 ? -ns : ns;
  return fmt::format("{}{}.{:03}", sign, size / 1000, size % 1000);
}

std::string op_arguments(const OpWork& op) {
  return fmt::format(R"("ops":{},"dtype":"{}","shape":"[{}]","bytes":{},"flops":{})", op.ops,
                     op.dtype != 0 ? dtype_name(op.dtype) : "", fmt::join(op.shape, ","), op.bytes, op.flops);
}

std::string transfer_arguments(const TransferWork& transfer) {
  const auto name = [](const Device* device) { return device != nullptr ? device->name : std::string("host"); };
  return fmt::format(R"("tensor":{},"bytes":{},"from":{},"to":{},"op":{},"implicit":{},"place":{})",
                     json_string(transfer.tensor), transfer.size_bytes, json_string(name(transfer.from)),
                     json_string(name(transfer.to)), json_string(transfer.cause), transfer.is_implicit,
                     json_string(place_text(transfer.place)));
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

void Trace::put(const Event& event) {
  put_line(fmt::format(R"({{"name":{},"cat":"{}","ph":"X","ts":{},"dur":{},"pid":{},"tid":{},"args":{{{}}}}})",
                       json_string(event.name), event.category, micros(event.span.begin - begin_),
                       micros(event.span.length()), event.process, event.thread, event.arguments));
}

void Trace::put_name(int64_t process, int64_t thread, const char* what, std::string_view name) {
  put_line(fmt::format(R"({{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{"name":{}}}}})", what, process, thread,
                       json_string(name)));
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
  std::string arguments;
  std::string_view category = "other";
  if (work.op) {
    arguments = op_arguments(*work.op);
    category = work.op->category;
  } else if (work.transfer) {
    arguments = transfer_arguments(*work.transfer);
    category = "transfer";
  }
  name_track(kHostProcess, work.thread);
  if (!work.is_timed) {
    put({work.name, category, kHostProcess, work.thread, work.on_host, arguments});
    return;
  }
  put({work.name, "submit", kHostProcess, work.thread, work.on_host, ""});
  const int64_t process = process_of(*work.device);
  name_track(process, work.stream);
  put({work.name, category, process, work.stream, work.on_device, arguments});
}

void Trace::add_wait(const Work& wait) {
  name_track(kHostProcess, wait.thread);
  put({"wait", "wait", kHostProcess, wait.thread, wait.on_host,
       fmt::format(R"("device":{},"stream":{})", json_string(wait.device->name), wait.stream)});
}

void Trace::add_preparation(std::string_view name, const Device& device, int32_t thread, TimeSpan span) {
  name_track(kHostProcess, thread);
  put({name, "prepare", kHostProcess, thread, span, fmt::format(R"("device":{})", json_string(device.name))});
}

void Trace::add_memory(std::string_view device, int64_t used, int64_t change, int64_t now) {
  put_line(fmt::format(R"({{"name":{},"cat":"{}","ph":"C","ts":{},"pid":{},"args":{{"used":{}}}}})",
                       json_string(fmt::format("memory of {}", device)), change > 0 ? "allocate" : "free",
                       micros(now - begin_), kHostProcess, used));
}

}  // namespace compute
