// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/source/expressions/template.hpp"

#include <algorithm>
#include <set>

#include "plugins/common/op/core.hpp"

namespace compute::common {
namespace {

[[noreturn]] void fail(std::string_view what, std::string_view where) {
  throw Error(COMPUTE_ERROR_INTERNAL, cat("kernel template: ", what, " ", where));
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Takes the name from the front of `text`, which begins after its '$'.
std::string_view take_name(std::string_view& text) {
  const bool has_braces = text.starts_with('{');
  text.remove_prefix(has_braces);
  const auto end = static_cast<size_t>(std::find_if_not(text.begin(), text.end(), is_name_character) - text.begin());
  const std::string_view name = text.substr(0, end);
  text.remove_prefix(end);
  if (name.empty() || (has_braces && !text.starts_with('}'))) fail("no name after '$' before", text.substr(0, 40));
  text.remove_prefix(has_braces);
  return name;
}

// Takes a line and its end from the front of `text`.
std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
  text.remove_prefix(line.size());
  return line;
}

// The names that the template has, those in lines that are left out too.
std::set<std::string_view> names_of(std::string_view text) {
  std::set<std::string_view> names;
  for (size_t at = text.find('$'); at != std::string_view::npos; at = text.find('$')) {
    text.remove_prefix(at + 1);
    if (text.starts_with("//")) {
      take_line(text);
      continue;
    }
    if (text.starts_with("if ")) text.remove_prefix(3);
    names.insert(take_name(text));
  }
  return names;
}

// A template on its way to its text.
class Filling {
 public:
  explicit Filling(const FindValue& find) : find_(find) {}

  std::string run(std::string_view text) {
    text.remove_prefix(text.starts_with('\n'));
    while (!text.empty()) take(take_line(text));
    if (!conditions_.empty()) fail("no $end after", "$if");
    return std::move(out_);
  }

 private:
  std::string_view value(std::string_view name) const {
    const std::optional<std::string_view> value = find_(name);
    if (!value) fail("no value for", name);
    return *value;
  }

  bool is_left_out() const { return std::find(conditions_.begin(), conditions_.end(), false) != conditions_.end(); }

  void take(std::string_view line) {
    const size_t indent = std::min(line.find_first_not_of(' '), line.size());
    const std::string_view words = line.substr(indent, line.size() - indent - line.ends_with('\n'));
    if (words.starts_with("$//")) return;
    if (take_condition(words) || is_left_out()) return;
    if (words.starts_with('$')) {
      std::string_view rest = words.substr(1);
      const std::string_view name = take_name(rest);
      if (rest.empty()) return put_lines(line.substr(0, indent), value(name));
    }
    put(line);
  }

  // $if, $else and $end.
  bool take_condition(std::string_view words) {
    if (words.starts_with("$if ")) {
      // In lines that are left out, the name may have no value.
      conditions_.push_back(!is_left_out() && !value(words.substr(4)).empty());
      return true;
    }
    if (words != "$else" && words != "$end") return false;
    if (conditions_.empty()) fail("no $if before", words);
    if (words == "$end") {
      conditions_.pop_back();
    } else {
      conditions_.back() = !conditions_.back();
    }
    return true;
  }

  void put_lines(std::string_view indent, std::string_view lines) {
    while (!lines.empty()) {
      const std::string_view line = take_line(lines);
      if (line[0] != '#' && line[0] != '\n') out_ += indent;
      out_ += line;
      if (!line.ends_with('\n')) out_ += '\n';
    }
  }

  void put(std::string_view line) {
    for (size_t at = line.find('$'); at != std::string_view::npos; at = line.find('$')) {
      out_ += line.substr(0, at);
      line.remove_prefix(at + 1);
      out_ += value(take_name(line));
    }
    out_ += line;
  }

  const FindValue& find_;
  std::vector<bool> conditions_;  // of the $if that are open
  std::string out_;
};

}  // namespace

std::string fill(std::string_view text, const FindValue& find) { return Filling(find).run(text); }

std::string fill(std::string_view text, const std::vector<Value>& values) {
  std::set<std::string_view> names = names_of(text);
  for (const Value& value : values) {
    if (names.erase(value.name) == 0) fail("missing or given twice:", value.name);
  }
  return fill(text, [&](std::string_view name) -> std::optional<std::string_view> {
    const auto found = std::find_if(values.begin(), values.end(), [&](const Value& one) { return one.name == name; });
    return found == values.end() ? std::nullopt : std::optional<std::string_view>(found->text);
  });
}

}  // namespace compute::common
