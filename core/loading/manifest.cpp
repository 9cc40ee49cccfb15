// SPDX-License-Identifier: Apache-2.0
#include "core/loading/manifest.hpp"

#include <compute/compute.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "core/base/error.hpp"
#include "core/loading/declared_setting.hpp"
#include "core/process/log.hpp"
#include "core/text/ascii.hpp"
#include "core/text/printable.hpp"
#include "core/trusted_files/trusted_files.hpp"

namespace compute {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxFileBytes = 1 << 20;
constexpr int kMaxDepth = 16;  // for skipped keys; known keys need 3
constexpr size_t kMaxTextBytes = 4096;
constexpr size_t kMaxEntries = 256;  // of a list

[[noreturn]] void reject(const std::filesystem::path& file, const std::string& why) {
  throw Error(COMPUTE_ERROR_PLUGIN_REJECTED, printable(file.string(), kLongestPath) + ": " + why);
}

// Reads the members of one JSON object; `where` is its path in messages: "", "requires[0].".
class Members {
 public:
  Members(const Json& object, const std::filesystem::path& file, std::string where)
      : object_(object), file_(file), where_(std::move(where)) {}

  std::string text(const char* key) const {
    const Json* value = find(key);
    return value == nullptr ? std::string() : checked_text(*value, key);
  }

  std::string required_text(const char* key) const {
    const std::string value = text(key);
    if (value.empty()) fail(key, "is missing");
    return value;
  }

  std::vector<std::string> texts(const char* key) const {
    std::vector<std::string> result;
    for (const Json& value : list(key)) result.push_back(checked_text(value, key));
    return result;
  }

  template <typename Integer>
  std::optional<Integer> integer(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    return checked_integer<Integer>(*value, key);
  }

  bool flag(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return false;
    if (!value->is_boolean()) fail(key, "must be true or false");
    return value->get<bool>();
  }

  std::vector<int64_t> integers(const char* key) const {
    std::vector<int64_t> result;
    for (const Json& value : list(key)) result.push_back(checked_integer<int64_t>(value, key));
    return result;
  }

  // An empty list where the key is absent.
  std::span<const Json> list(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return {};
    if (!value->is_array()) fail(key, "must be a list");
    const auto& items = value->get_ref<const Json::array_t&>();
    if (items.size() > kMaxEntries) fail(key, "has more than " + std::to_string(kMaxEntries) + " entries");
    return items;
  }

  const Json* object(const char* key) const {
    const Json* value = find(key);
    if (value != nullptr && !value->is_object()) fail(key, "must be an object");
    return value;
  }

  [[noreturn]] void fail(const char* key, const std::string& why) const {
    reject(file_, "\"" + where_ + key + "\" " + why);
  }

 private:
  const Json* find(const char* key) const {
    const auto found = object_.find(key);
    return found != object_.end() ? &*found : nullptr;
  }

  template <typename Integer>
  Integer checked_integer(const Json& value, const char* key) const {
    // compared by kind: a number beyond int64 reads as unsigned
    const bool fits =
        value.is_number_unsigned()
            ? value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<Integer>::max())
            : value.is_number_integer() && value.get<int64_t>() >= int64_t{std::numeric_limits<Integer>::min()};
    if (!fits) {
      fail(key, "must be a whole number from " + std::to_string(std::numeric_limits<Integer>::min()) + " to " +
                    std::to_string(std::numeric_limits<Integer>::max()));
    }
    return value.get<Integer>();
  }

  std::string checked_text(const Json& value, const char* key) const {
    if (!value.is_string()) fail(key, "must be a string");
    const auto& text = value.get_ref<const std::string&>();
    if (std::any_of(text.begin(), text.end(), is_control)) fail(key, "contains a control character");
    if (text.size() > kMaxTextBytes) fail(key, "is longer than " + std::to_string(kMaxTextBytes) + " bytes");
    return text;
  }

  const Json& object_;
  const std::filesystem::path& file_;
  std::string where_;
};

Json read_json(std::string_view text, const std::filesystem::path& file) {
  const auto limit_depth = [&](int depth, Json::parse_event_t, const Json&) {
    if (depth > kMaxDepth) reject(file, "nested more than " + std::to_string(kMaxDepth) + " levels deep");
    return true;
  };
  try {
    Json json = Json::parse(text, limit_depth);
    if (!json.is_object()) reject(file, "not a JSON object");
    return json;
  } catch (const Json::parse_error& error) {
    const size_t byte = std::min(error.byte, text.size());
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(byte), '\n');
    reject(file, "line " + std::to_string(line) + ": not well-formed JSON");
  } catch (const Json::out_of_range&) {
    reject(file, "a number is out of range");
  }
}

int32_t device_kind(const std::string& name) {
  static constexpr std::pair<const char*, int32_t> kKinds[] = {
      {"cpu", COMPUTE_DEVICE_KIND_CPU},
      {"discrete_gpu", COMPUTE_DEVICE_KIND_DISCRETE_GPU},
      {"integrated_gpu", COMPUTE_DEVICE_KIND_INTEGRATED_GPU},
      {"accelerator", COMPUTE_DEVICE_KIND_ACCELERATOR},
  };
  for (const auto& [known, kind] : kKinds) {
    if (name == known) return kind;
  }
  return COMPUTE_DEVICE_KIND_ACCELERATOR;  // a kind of a newer library
}

ManifestDrivers drivers_of(const Json& object, const std::filesystem::path& file) {
  const Members members(object, file, "drivers.");
  ManifestDrivers drivers;
  drivers.libraries = members.texts("libraries");
  drivers.modules = members.texts("modules");
  drivers.variables = members.texts("variables");
  for (const std::string& module : drivers.modules) {
    if (module.empty() || module.find('/') != std::string::npos || module.starts_with("."))
      members.fail("modules", "contains " + in_quotes(module) + ", which is not the name of a module");
  }
  for (const Json& entry : members.list("lists")) {
    const std::string where = "drivers.lists[" + std::to_string(drivers.lists.size()) + "]";
    if (!entry.is_object()) reject(file, "\"" + where + "\" must be an object");
    const Members list(entry, file, where + ".");
    drivers.lists.push_back({list.required_text("folder"), list.text("variable")});
    if (!drivers.lists.back().folder.starts_with("/")) list.fail("folder", "must be absolute");
  }
  return drivers;
}

SettingKind setting_kind(const std::string& setting, const std::string& name) {
  static constexpr std::pair<const char*, SettingKind> kKinds[] = {
      {"text", SettingKind::kText},   {"flag", SettingKind::kFlag},     {"integer", SettingKind::kInteger},
      {"bytes", SettingKind::kBytes}, {"choice", SettingKind::kChoice}, {"words", SettingKind::kWords},
      {"path", SettingKind::kPath},   {"paths", SettingKind::kPaths},
  };
  for (const auto& [known, kind] : kKinds) {
    if (name == known) return kind;
  }
  log(COMPUTE_LOG_INFO, "load",
      "the setting " + setting + " has the unknown kind " + in_quotes(name) + " and is taken for text");
  return SettingKind::kText;
}

// `plugin` is the name of the one that declares it.
DeclaredSetting setting_of(const Members& members, const std::string& plugin) {
  DeclaredSetting setting;
  setting.environment = members.required_text("name");
  setting.kind = setting_kind(setting.environment, members.required_text("kind"));
  setting.default_text = members.text("default");
  setting.summary = members.required_text("help");
  setting.of_device = members.flag("device");
  const std::vector<std::string> choices = members.texts("choices");
  if (setting.kind == SettingKind::kInteger) {
    const std::vector<int64_t> range = members.integers("range");
    if (range.size() != 2 || range[0] > range[1]) members.fail("range", "must be two numbers, minimum and maximum");
    setting.values = std::to_string(range[0]) + " " + std::to_string(range[1]);
  }
  if (const auto fault = complete_setting(setting, plugin, choices)) members.fail(fault->part, fault->why);
  return setting;
}

}  // namespace

std::string why_no_plugin_name(std::string_view name) {
  const auto is_name_letter = [](char c) { return is_letter(c) || c == '_'; };
  if (name.empty()) return "is empty";
  if (!std::all_of(name.begin(), name.end(), is_name_letter)) return "must consist of letters and \"_\"";
  const std::string lower = to_lower(name);
  if (lower == "auto" || lower == "gpu") return "is reserved in selectors";
  return "";
}

bool is_plugin_name(std::string_view name) { return why_no_plugin_name(name).empty(); }

Manifest parse_manifest(std::string_view text, const std::filesystem::path& file) {
  const Json json = read_json(text, file);
  const Members members(json, file, "");
  Manifest manifest;
  manifest.file = file;
  manifest.name = members.required_text("name");
  if (!is_plugin_name(manifest.name))
    members.fail("name", "must consist of letters and \"_\", and must not be auto or gpu");
  manifest.name = to_lower(manifest.name);
  manifest.library = (file.parent_path() / members.required_text("library")).lexically_normal();
  if (const Json* range = members.object("interface")) {
    const Members ends(*range, file, "interface.");
    manifest.interface_min = ends.integer<uint32_t>("min").value_or(1);
    manifest.interface_max = ends.integer<uint32_t>("max").value_or(manifest.interface_min);
    if (manifest.interface_min == 0 || manifest.interface_max < manifest.interface_min) {
      members.fail("interface", "is not a valid range of versions");
    }
  }
  for (const std::string& kind : members.texts("devices")) manifest.device_kinds.push_back(device_kind(kind));
  manifest.priority = members.integer<int32_t>("priority");
  manifest.arch = members.text("arch");
  for (const Json& entry : members.list("requires")) {
    const std::string where = "requires[" + std::to_string(manifest.requirements.size()) + "]";
    if (!entry.is_object()) reject(file, "\"" + where + "\" must be an object");
    const Members requirement(entry, file, where + ".");
    manifest.requirements.push_back({requirement.required_text("name"), requirement.texts("files"),
                                     requirement.text("min_version"), requirement.text("remedy")});
  }
  if (const Json* drivers = members.object("drivers")) manifest.drivers = drivers_of(*drivers, file);
  for (const Json& entry : members.list("settings")) {
    const std::string where = "settings[" + std::to_string(manifest.settings.size()) + "]";
    if (!entry.is_object()) reject(file, "\"" + where + "\" must be an object");
    manifest.settings.push_back(setting_of(Members(entry, file, where + "."), manifest.name));
  }
  manifest.version = members.text("version");
  manifest.vendor = members.text("vendor");
  manifest.license = members.text("license");
  manifest.url = members.text("url");
  return manifest;
}

Manifest read_manifest(const std::filesystem::path& path) {
  files::Trust trust;
  trust.everybody = true;
  return *read_manifest(path, trust, nullptr);
}

std::optional<Manifest> read_manifest(const std::filesystem::path& path, const files::Trust& trust,
                                      std::string* out_distrust) {
  files::File file(path);
  if (const std::string reason = file ? trust.why_not(file, path) : trust.why_not(path); !reason.empty()) {
    *out_distrust = reason;
    return std::nullopt;
  }
  const std::optional<std::string> text = file.read(kMaxFileBytes);
  if (!text) {
    const compute_error_code code = file.is_short() ? COMPUTE_ERROR_OUT_OF_MEMORY : COMPUTE_ERROR_PLUGIN_REJECTED;
    throw Error(code, printable(path.string(), kLongestPath) + ": cannot be read: " + file.problem());
  }
  return parse_manifest(*text, path);
}

}  // namespace compute
