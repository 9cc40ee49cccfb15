// SPDX-License-Identifier: Apache-2.0
#include "core/loading/plugin_core.hpp"

#include <compute/compute.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "core/base/copy_sized.hpp"
#include "core/base/error.hpp"
#include "core/base/sized.hpp"
#include "core/process/log.hpp"
#include "core/process/process_config.hpp"
#include "core/trusted_files/blob_store.hpp"

namespace compute {
namespace {

constexpr int64_t kMaxTextBytes = 1 << 20;  // a compiler's log is long; a text of more has a wrong size

// Within the limit, whatever a plugin passes: for functions that must not fail.
std::string_view clipped(compute_string text) noexcept {
  if (text.data == nullptr || text.size <= 0) return {};
  return {text.data, static_cast<size_t>(std::min(text.size, kMaxTextBytes))};
}

compute_error* core_error_new(const compute_plugin_error_info* given) {
  const uint32_t size = given != nullptr ? given->struct_size : 0;
  const bool is_complete = size >= COMPUTE_PLUGIN_ERROR_INFO_SIZE_1;
  const auto info = is_complete ? copy_sized(given, size) : compute_plugin_error_info{};
  compute_error* made = guard([&] {
    const bool has_code = info.code > COMPUTE_OK && info.code <= COMPUTE_ERROR_IO;
    if (given != nullptr && !is_complete) {
      reject_plugin_struct("an error of the plugin", fmt::format("has struct_size {}; expected at least {}", size,
                                                                 COMPUTE_PLUGIN_ERROR_INFO_SIZE_1));
    }
    std::string message(clipped(info.message));
    if (message.empty()) message = "the plugin gave no reason";
    try {
      require_understood(info, "an error of the plugin");
    } catch (Error& refused) {
      refused.message += ": " + message;
      throw;
    }
    Error error(has_code ? info.code : COMPUTE_ERROR_INTERNAL, std::move(message));
    error.argument = given != nullptr ? info.argument : -1;
    error.native_code = info.native_code;
    throw error;
  });
  compute_error* const cause = take_given_error(info.cause) ? info.cause : nullptr;
  if (made->static_object) {
    compute_error_free(cause);
  } else {
    made->cause = cause;
    note_given_error(made);
  }
  return made;
}

void core_error_free(compute_error* error) {
  if (take_given_error(error)) compute_error_free(error);
}

compute_error_code core_error_code(const compute_error* error) { return compute_error_get_code(error); }

void core_log(int32_t level, const char* category, int64_t category_size, const char* text, int64_t text_size) {
  std::array<char, 32> name{};
  const std::string_view known = clipped({category, category_size});
  known.copy(name.data(), name.size() - 1);
  log(std::clamp<int32_t>(level, COMPUTE_LOG_ERROR, COMPUTE_LOG_TRACE), known.empty() ? "error" : name.data(),
      clipped({text, text_size}));
}

int64_t core_setting(const char* name, int64_t name_size, char* buffer, int64_t capacity) {
  int64_t size = -1;
  compute_error* error = guard([&] {
    const std::string wanted(clipped({name, name_size}));
    std::string value;
    const auto is_wanted = [&](const Setting& row) { return row.environment == wanted; };
    const auto rows = all_settings();
    if (const auto row = std::find_if(rows.begin(), rows.end(), is_wanted); row != rows.end()) {
      value = setting(row->id).text;
    } else if (!process_is_privileged()) {  // for all that core knows it names a file
      const char* text = std::getenv(wanted.c_str());
      value = text != nullptr ? text : "";
    }
    if (value.empty()) return;
    size = static_cast<int64_t>(value.size());
    if (buffer != nullptr && capacity > 0) std::memcpy(buffer, value.data(), std::min(value.size(), size_t(capacity)));
  });
  compute_error_free(error);
  return size;
}

// Its place and limit are those that the settings give at the first use. Without a place in a privileged process.
files::BlobStore& blobs() {
  static files::BlobStore& store = *[] {
    constexpr int64_t kDefaultLimitBytes = int64_t{1} << 30;
    const bool privileged = process_is_privileged();
    files::Trust trust = files::Trust::of_process(privileged);
    trust.everybody = setting(SettingId::kTrustAll).flag;
    const std::optional<ByteAmount> amount = setting(SettingId::kCacheLimit).bytes;
    const int64_t limit = amount ? amount->size_bytes : kDefaultLimitBytes;
    auto place = limit > 0 && !privileged ? files::cache_folder(setting(SettingId::kCacheDir).text) : std::nullopt;
    return new files::BlobStore(std::move(place), limit, std::move(trust), [](const std::string& reason) {
      log(COMPUTE_LOG_WARNING, "compile", "compiled kernels are not cached: " + reason);
    });
  }();
  return store;
}

std::string_view bytes_of(const void* data, int64_t size) noexcept {
  return data != nullptr && size > 0 ? std::string_view(static_cast<const char*>(data), static_cast<size_t>(size))
                                     : std::string_view();
}

int32_t core_blob_load(const void* key, int64_t key_size, compute_plugin_take_blob take, void* context) {
  std::optional<std::string> blob;
  compute_error_free(guard([&] { blob = blobs().load(bytes_of(key, key_size)); }));
  if (!blob || take == nullptr) return 0;
  take(context, blob->data(), static_cast<int64_t>(blob->size()));
  return 1;
}

void core_blob_store(const void* key, int64_t key_size, const void* data, int64_t size_bytes) {
  compute_error_free(guard([&] { blobs().store(bytes_of(key, key_size), bytes_of(data, size_bytes)); }));
}

}  // namespace

const compute_plugin_core& plugin_core() noexcept {
  static const compute_plugin_core table = {
      sizeof(compute_plugin_core),
      COMPUTE_PLUGIN_INTERFACE,
      uint32_t{COMPUTE_VERSION_MAJOR} << 16 | uint32_t{COMPUTE_VERSION_MINOR} << 8 | uint32_t{COMPUTE_VERSION_PATCH},
      core_error_new,
      core_error_free,
      core_error_code,
      core_log,
      core_setting,
      core_blob_load,
      core_blob_store,
  };
  return table;
}

std::string plugin_text(compute_string text, std::string_view what) {
  if (text.size < 0 || text.size > kMaxTextBytes || (text.data == nullptr && text.size > 0)) {
    throw Error(COMPUTE_ERROR_PLUGIN_REJECTED, std::string(what) + " is not a valid string: its size is " +
                                                   std::to_string(text.size) +
                                                   (text.data == nullptr ? " and its data is NULL" : ""));
  }
  return text.size == 0 ? std::string() : std::string(text.data, static_cast<size_t>(text.size));
}

}  // namespace compute
