// SPDX-License-Identifier: Apache-2.0
#include "core/text/json_writer.hpp"

#include "core/text/printable.hpp"

namespace compute {

JsonWriter& JsonWriter::key(std::string_view name) {
  put(json_string(name));
  text_ += layout_ == JsonLayout::kOneLine ? ":" : ": ";
  is_after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) { return put(json_string(text)); }

JsonWriter& JsonWriter::value(const std::vector<std::string>& texts) {
  begin_array();
  for (const std::string& text : texts) value(text);
  return end_array();
}

JsonWriter& JsonWriter::begin(char bracket) {
  put({&bracket, 1});
  ++depth_;
  is_first_ = true;
  return *this;
}

JsonWriter& JsonWriter::end(char bracket) {
  --depth_;
  if (!is_first_) next_line();
  text_ += bracket;
  is_first_ = false;
  return *this;
}

JsonWriter& JsonWriter::put(std::string_view token) {
  if (!is_after_key_ && depth_ > 0) {
    if (!is_first_) text_ += ',';
    next_line();
  }
  is_after_key_ = is_first_ = false;
  text_ += token;
  return *this;
}

void JsonWriter::next_line() {
  if (layout_ == JsonLayout::kOneLine) return;
  text_ += '\n';
  text_.append(static_cast<size_t>(2 * depth_), ' ');
}

}  // namespace compute
