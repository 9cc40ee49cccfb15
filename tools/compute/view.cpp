// SPDX-License-Identifier: Apache-2.0
// compute view: renders a trace as one self-contained HTML page.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

#include "commands.hpp"
#include "view_page.hpp"

namespace {

using nlohmann::json;

std::string contents_of(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + " cannot be read");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// A trace of a process that ended early lacks the end of its list.
json events_of(const std::string& path) {
  std::string text = contents_of(path);
  json events = json::parse(text, nullptr, false);
  if (events.is_discarded()) {
    text.resize(text.find_last_of('}') == std::string::npos ? 0 : text.find_last_of('}') + 1);
    events = json::parse(text + "]", nullptr, false);
  }
  if (events.is_object()) events = events.value("traceEvents", json());
  if (!events.is_array()) throw std::runtime_error(path + " is not a trace");
  return events;
}

// Inside <script> no text may end the element.
std::string for_script(const json& events) {
  std::string text = events.dump(-1, ' ', true, json::error_handler_t::replace);
  for (size_t at = 0; (at = text.find('<', at)) != std::string::npos; at += 6) text.replace(at, 1, "\\u003c");
  return text;
}

}  // namespace

int write_view(const std::string& trace, const std::string& page) {
  std::string target = page;
  if (target.empty()) target = trace.ends_with(".json") ? trace.substr(0, trace.size() - 5) + ".html" : trace + ".html";
  const std::string events = for_script(events_of(trace));  // before a page that is there is replaced
  std::ofstream file(target);
  file << kPageBegin << events << kPageEnd;
  file.close();
  if (!file) throw std::runtime_error(target + " cannot be written");
  fmt::print("{}\n", target);
  return 0;
}
