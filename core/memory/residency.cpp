// SPDX-License-Identifier: Apache-2.0
#include "core/memory/residency.hpp"

#include <fmt/format.h>

#include <csignal>
#include <mutex>
#include <set>
#include <string>

#include "core/observation/place.hpp"
#include "core/observation/placement.hpp"
#include "core/process/log.hpp"
#include "core/process/process_config.hpp"
#include "core/text/printable.hpp"

namespace compute {
namespace {

enum class Policy { kStrict, kError, kWarn, kAllow, kBreak };

Policy policy_named(const std::string& text, Policy unset) {
  if (text == "strict") return Policy::kStrict;
  if (text == "error") return Policy::kError;
  if (text == "warn") return Policy::kWarn;
  if (text == "allow") return Policy::kAllow;
  if (text == "break") return Policy::kBreak;
  return unset;
}

// Says a thing once per text: a warning in a loop is as good as none.
void warn_once(const char* category, const std::string& text) {
  static std::mutex mutex;
  static auto* const said = new std::set<std::string>;
  {
    std::lock_guard guard(mutex);
    if (said->size() > 1000 || !said->insert(text).second) return;
  }
  log(COMPUTE_LOG_WARNING, category, text);
}

// What applies to copies of a tensor for which the program has set `own`.
struct Transfers {
  Policy policy;
  const char* origin;

  explicit Transfers(int32_t own) : origin("compute_tensor_set_transfers") {
    if (own == COMPUTE_TRANSFERS_ALLOW) {
      policy = Policy::kAllow;
    } else if (own == COMPUTE_TRANSFERS_WARN) {
      policy = Policy::kWarn;
    } else if (own == COMPUTE_TRANSFERS_ERROR) {
      policy = Policy::kError;
    } else {
      policy = policy_named(setting(SettingId::kTransfers).text, Policy::kAllow);
      origin = "COMPUTE_TRANSFERS=error";
    }
  }
};

void apply(const Transfers& transfers, const Device& device, const std::string& text) {
  switch (transfers.policy) {
    case Policy::kStrict:
    case Policy::kError:
      throw Error(COMPUTE_ERROR_UNSUPPORTED, fmt::format("{} ({})", text, transfers.origin)).on_device(device.name);
    case Policy::kBreak:
      log(COMPUTE_LOG_WARNING, "copy", text);
      std::raise(SIGTRAP);
      return;
    case Policy::kWarn: {
      const std::string place = printable(place_text(current_place()));
      warn_once("copy", place.empty() ? text : text + ", from " + place);
      return;
    }
    case Policy::kAllow:
      return;
  }
}

}  // namespace

void check_implicit_transfer(Device& device, const char* op, int64_t size_bytes, bool keeps, int32_t own) {
  const Transfers transfers(own);
  if (transfers.policy == Policy::kAllow && keeps) return;
  apply(
      transfers, device,
      fmt::format("{}: {} bytes of a host tensor are copied to {}{}", op, size_bytes, device.name,
                  keeps ? "; create the tensor there to avoid this"
                        : " at every call, because the program may write its memory; use a copy (in Python asarray(x, "
                          "copy=True)), wrap it as immutable or tracked, or unmap it"));
}

void check_implicit_return(Device& device, const char* op, int64_t size_bytes, int32_t own) {
  const Transfers transfers(own);
  if (transfers.policy == Policy::kAllow) return;
  apply(transfers, device,
        fmt::format("{}: {} bytes for a host tensor are copied back from {}; create the output there to avoid this", op,
                    size_bytes, device.name));
}

void check_implicit_move(Device& device, const char* op, int64_t size_bytes, int32_t own) {
  if (own == COMPUTE_TRANSFERS_DEFAULT) return;  // COMPUTE_FALLBACK has decided
  apply(Transfers(own), device,
        fmt::format("{}: {} bytes are copied from {}, because the op runs on cpu", op, size_bytes, device.name));
}

namespace {

Policy fallback_policy(const Device& device) {
  return policy_named(setting(SettingId::kFallback).text, device.strict ? Policy::kError : Policy::kWarn);
}

}  // namespace

bool allows_fallback(const Device& device, bool runs_on_host) {
  const Policy policy = fallback_policy(device);
  return policy != Policy::kStrict && (policy != Policy::kError || runs_on_host);
}

void note_run_on_host(Device& device, const char* op) {
  if (fallback_policy(device) == Policy::kStrict) {
    throw Error(COMPUTE_ERROR_UNSUPPORTED,
                fmt::format("{} on {}: the plugin runs it on the host (COMPUTE_FALLBACK=strict)", op, device.name))
        .on_device(device.name);
  }
  device.counters.ops_fallback.fetch_add(1, std::memory_order_relaxed);
  note_fallback(device, op, "the plugin runs it on the host");
}

bool may_fall_back(Device& device, const char* op, bool runs_on_host, const std::string& reason) {
  if (!allows_fallback(device, runs_on_host)) return false;
  const Policy policy = fallback_policy(device);
  const std::string text = fmt::format("{} runs on cpu: {}", op, reason);
  if (policy != Policy::kAllow && policy != Policy::kError) warn_once("place", text);
  if (policy == Policy::kBreak) std::raise(SIGTRAP);
  device.counters.ops_fallback.fetch_add(1, std::memory_order_relaxed);
  note_fallback(device, op, reason);
  return true;
}

}  // namespace compute
