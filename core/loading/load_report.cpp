// SPDX-License-Identifier: Apache-2.0
#include "core/loading/load_report.hpp"

#include <algorithm>

#include "core/text/json_writer.hpp"
#include "core/text/printable.hpp"

namespace compute {
namespace {

using State = RequirementReport::State;

std::string joined(const std::vector<std::string>& texts) {
  std::string result;
  for (const std::string& text : texts) result += (result.empty() ? "" : ", ") + text;
  return result;
}

const char* state_name(State state) {
  switch (state) {
    case State::kFound:
      return "found";
    case State::kMissing:
      return "missing";
    case State::kUnusable:
      return "unusable";
    case State::kUnknown:
      break;
  }
  return "unknown";
}

bool is_lacking(const RequirementReport& requirement) {
  return requirement.state == State::kMissing || requirement.state == State::kUnusable;
}

std::string status_of(const PluginReport& plugin) {
  if (!plugin.rejected.empty()) return "rejected";
  if (!plugin.is_opened()) return "not opened";
  const size_t count = plugin.devices.size();
  return count == 0 ? "no devices" : std::to_string(count) + (count == 1 ? " device" : " devices");
}

class TextWriter {
 public:
  // A row of the report: a word in its own column, then text, whose further lines are indented like the first.
  void row(size_t indent, const std::string& given_word, const std::string& given_text) {
    const std::string word = printable(given_word, kLongestPath), text = printable_lines(given_text);
    constexpr size_t kColumn = 18;
    std::string head = std::string(indent, ' ') + word;
    head += std::string(head.size() < kColumn ? kColumn - head.size() : 1, ' ');
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      result_ += (begin == 0 ? head : std::string(kColumn, ' ')) + text.substr(begin, end - begin);
      while (!result_.empty() && result_.back() == ' ') result_.pop_back();
      result_ += '\n';
      begin = end + 1;
    }
  }

  void title(const char* text) { result_ += std::string(text) + "\n"; }

  std::string take() { return std::move(result_); }

 private:
  std::string result_;
};

void write_requirement(TextWriter& out, const RequirementReport& requirement) {
  switch (requirement.state) {
    case State::kFound:
      out.row(4, "found", requirement.name + ": " + requirement.found);
      return;
    case State::kUnknown:
      return;
    case State::kMissing:
    case State::kUnusable:
      break;
  }
  std::string text = requirement.name;
  if (!requirement.found.empty()) text += ": " + requirement.found;
  if (!requirement.error.empty()) text += ": " + requirement.error;
  out.row(4, state_name(requirement.state), text);
  if (!requirement.tried.empty()) out.row(4, "", "tried " + joined(requirement.tried));
  if (!requirement.effect.empty()) out.row(4, "", "without it: " + requirement.effect);
}

void write_plugin(TextWriter& out, const PluginReport& plugin) {
  const std::string name = plugin.version.empty() ? plugin.name : plugin.name + " " + plugin.version;
  out.row(2, name, status_of(plugin) + ": " + printable(plugin.path, kLongestPath));
  std::string maker;
  for (const std::string& part : {plugin.vendor, plugin.license, plugin.url})
    maker += (maker.empty() || part.empty() ? "" : ", ") + part;
  if (!maker.empty()) out.row(4, "by", maker);
  if (!plugin.manifest.empty()) out.row(4, "manifest", printable(plugin.manifest, kLongestPath));
  if (!plugin.rejected.empty()) out.row(4, "rejected", plugin.rejected);
  if (!plugin.note.empty()) out.row(4, "", plugin.note);
  for (const DeviceReport& device : plugin.devices) {
    out.row(4, device.name, device.description + (device.problem.empty() ? "" : "\nnot usable: " + device.problem));
  }
  for (const std::string& library : plugin.missing_libraries) out.row(4, "missing", library);
  for (const RequirementReport& requirement : plugin.requirements) write_requirement(out, requirement);
  for (const std::string& remedy : plugin.remedies()) out.row(4, "remedy", remedy);
}

void write_json(JsonWriter& out, const PluginReport& plugin) {
  out.begin_object();
  out.field("name", plugin.name).field("version", plugin.version).field("build_id", plugin.build_id);
  out.field("vendor", plugin.vendor).field("license", plugin.license).field("url", plugin.url);
  out.field("path", plugin.path).field("source", plugin.source).field("manifest", plugin.manifest);
  out.field("state", load_step_name(plugin.step));
  out.key("rejected").value_or_null(plugin.rejected).key("note").value_or_null(plugin.note);
  out.key("devices").begin_array();
  for (const DeviceReport& device : plugin.devices) {
    out.begin_object().field("name", device.name).field("description", device.description);
    out.key("problem").value_or_null(device.problem).end_object();
  }
  out.end_array().field("missing_libraries", plugin.missing_libraries).key("requirements").begin_array();
  for (const RequirementReport& requirement : plugin.requirements) {
    out.begin_object().field("name", requirement.name).field("state", state_name(requirement.state));
    out.field("required", requirement.required).field("tried", requirement.tried).field("found", requirement.found);
    out.field("error", requirement.error)
        .field("effect", requirement.effect)
        .field("remedy", requirement.remedy)
        .end_object();
  }
  out.end_array().field("remedies", plugin.remedies()).end_object();
}

}  // namespace

const char* load_step_name(LoadStep step) {
  switch (step) {
    case LoadStep::kFound:
      return "found";
    case LoadStep::kManifest:
      return "manifest";
    case LoadStep::kDependencies:
      return "dependencies";
    case LoadStep::kQuery:
      return "query";
    case LoadStep::kInterface:
      return "interface";
    case LoadStep::kOpened:
      return "opened";
  }
  return "unknown";
}

std::string PluginReport::problem() const {
  if (!rejected.empty()) return rejected;
  if (!is_opened()) return note;
  if (!devices.empty()) return "";
  for (const RequirementReport& requirement : requirements) {
    if (!requirement.required || !is_lacking(requirement)) continue;
    std::string text = requirement.error.empty() ? requirement.name + " is " + state_name(requirement.state)
                                                 : requirement.name + ": " + requirement.error;
    if (!requirement.tried.empty()) text += "; run compute doctor for details";
    return text;
  }
  return "it found no devices";
}

std::vector<std::string> PluginReport::remedies() const {
  std::vector<std::string> result;
  const auto add = [&](const std::string& text) {
    if (!text.empty() && std::find(result.begin(), result.end(), text) == result.end()) result.push_back(text);
  };
  if (!missing_libraries.empty()) {
    add("install " + joined(missing_libraries) + ", or add the directory to LD_LIBRARY_PATH");
  }
  for (const RequirementReport& requirement : requirements) {
    if (is_lacking(requirement)) add(requirement.remedy);
  }
  return result;
}

std::string LoadReport::to_text() const {
  TextWriter out;
  out.title("Plugins");
  if (plugins.empty()) out.row(2, "none found", "");
  for (const PluginReport& plugin : plugins) write_plugin(out, plugin);
  if (!refused.empty()) out.title("Ignored");
  for (const RefusedEntry& entry : refused) out.row(2, entry.entry, entry.reason);
  if (!searched.empty()) out.title("Searched");
  for (const SearchedPlace& place : searched) {
    out.row(2, place.exists ? "" : "not found", printable(place.place, kLongestPath) + " (" + place.source + ")");
  }
  for (const std::string& note : notes) out.row(0, "Note", note);
  return out.take();
}

std::string LoadReport::to_json() const {
  JsonWriter out;
  out.begin_object().key("plugins").begin_array();
  for (const PluginReport& plugin : plugins) write_json(out, plugin);
  out.end_array().key("refused").begin_array();
  for (const RefusedEntry& entry : refused)
    out.begin_object().field("entry", entry.entry).field("reason", entry.reason).end_object();
  out.end_array().key("searched").begin_array();
  for (const SearchedPlace& place : searched) {
    out.begin_object()
        .field("place", place.place)
        .field("source", place.source)
        .field("exists", place.exists)
        .end_object();
  }
  out.end_array().field("notes", notes).end_object();
  return out.take() + "\n";
}

}  // namespace compute
