// SPDX-License-Identifier: Apache-2.0
// Writes JSON. Unlike a tree of values, whose destructor allocates, it can run out of memory anywhere without
// terminating the process.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace compute {

enum class JsonLayout : uint8_t { kIndented, kOneLine };

// Indented by two blanks per level, or one line without blanks. Texts are converted to UTF-8.
class JsonWriter {
 public:
  explicit JsonWriter(JsonLayout layout = JsonLayout::kIndented) : layout_(layout) {}

  JsonWriter& begin_object() { return begin('{'); }
  JsonWriter& end_object() { return end('}'); }
  JsonWriter& begin_array() { return begin('['); }
  JsonWriter& end_array() { return end(']'); }

  // The key of the next value, in an object.
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(std::same_as<bool> auto truth) { return put(truth ? "true" : "false"); }
  JsonWriter& value(int64_t number) { return put(std::to_string(number)); }
  JsonWriter& value(const std::vector<std::string>& texts);
  // A number, as it stands.
  JsonWriter& number(std::string_view digits) { return put(digits); }
  // null for an empty text.
  JsonWriter& value_or_null(std::string_view text) { return text.empty() ? put("null") : value(text); }

  template <class T>
  JsonWriter& field(std::string_view name, const T& of) {
    return key(name).value(of);
  }

  // The text; all objects and lists are closed.
  std::string take() { return std::move(text_); }

 private:
  JsonWriter& begin(char bracket);
  JsonWriter& end(char bracket);
  JsonWriter& put(std::string_view token);
  void next_line();

  const JsonLayout layout_;
  std::string text_;
  int depth_ = 0;
  bool is_first_ = true;  // in the innermost open object or list
  bool is_after_key_ = false;
};

}  // namespace compute
