// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/op/core.hpp"

#include <sys/auxv.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>

namespace compute::common {
namespace {

compute_plugin_core table{};
std::atomic<const compute_plugin_core*> owner{nullptr};  // of the table that was copied

compute_error* make_error_by(const compute_plugin_core& core, compute_error_code code, std::string_view message,
                             int32_t argument, int64_t native_code) noexcept {
  compute_plugin_error_info info{};
  info.struct_size = sizeof info;
  info.struct_type = COMPUTE_PLUGIN_STRUCT_ERROR_INFO;
  info.code = code;
  info.argument = argument;
  info.native_code = native_code;
  info.message = borrow(message);
  return core.error_new(&info);
}

}  // namespace

void set_core(const compute_plugin_core* given) {
  table = {};
  std::memcpy(&table, given, static_cast<size_t>(std::min<int64_t>(given->table_size, sizeof table)));
  owner = given;
}

void release_core() { owner = nullptr; }

compute_error* refuse_second_core(const compute_plugin_core* given, std::string_view plugin) {
  const compute_plugin_core* const first = owner;
  if (first == nullptr || first == given) return nullptr;
  const std::string message = "another copy of the library in this process uses the " + std::string(plugin) + " plugin";
  return make_error_by(*given, COMPUTE_ERROR_UNSUPPORTED, message, -1, 0);
}

const compute_plugin_core& core() { return table; }

compute_error* make_error(compute_error_code code, std::string_view message, int32_t argument,
                          int64_t native_code) noexcept {
  return make_error_by(table, code, message, argument, native_code);
}

compute_error* current_exception_to_error() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return make_error(error.code, error.message, error.argument, error.native_code);
  } catch (const std::bad_alloc&) {
    return make_error(COMPUTE_ERROR_OUT_OF_MEMORY, "out of host memory");
  } catch (const std::exception& error) {
    return make_error(COMPUTE_ERROR_INTERNAL, error.what());
  } catch (...) {
    return make_error(COMPUTE_ERROR_INTERNAL, "an exception of unknown type");
  }
}

std::optional<std::string> setting(std::string_view name) {
  if (table.setting == nullptr) return std::nullopt;
  std::string value(256, '\0');
  int64_t size =
      table.setting(name.data(), static_cast<int64_t>(name.size()), value.data(), static_cast<int64_t>(value.size()));
  if (size > static_cast<int64_t>(value.size())) {
    value.resize(static_cast<size_t>(size));
    size = std::min(size, table.setting(name.data(), static_cast<int64_t>(name.size()), value.data(),
                                        static_cast<int64_t>(value.size())));
  }
  if (size < 0) return std::nullopt;
  value.resize(static_cast<size_t>(size));
  return value;
}

std::optional<int64_t> integer_setting(std::string_view name, int64_t least, int64_t greatest) {
  const std::optional<std::string> text = setting(name);
  if (!text || text->empty()) return std::nullopt;
  int64_t value = 0;
  const char* end = text->data() + text->size();
  const auto parsed = std::from_chars(text->data(), end, value);
  if (parsed.ec == std::errc() && parsed.ptr == end && value >= least && value <= greatest) return value;
  log(COMPUTE_LOG_WARNING, "load",
      std::string(name) + "=" + *text + " is not a number from " + std::to_string(least) + " to " +
          std::to_string(greatest) + " and is ignored");
  return std::nullopt;
}

std::string reason_against_libraries() {
  if (getauxval(AT_SECURE) == 0 || setting("COMPUTE_TRUST_ALL") == "1") return "";
  return "not opened: the process is privileged, and the library takes file names from the environment";
}

void log(int32_t level, const char* category, std::string_view text) noexcept {
  if (table.log != nullptr)
    table.log(level, category, static_cast<int64_t>(std::strlen(category)), text.data(),
              static_cast<int64_t>(text.size()));
}

}  // namespace compute::common
