// SPDX-License-Identifier: Apache-2.0
// Text from the program, files or plugins in the form in which messages, log lines and reports show it: UTF-8, without
// anything that moves a terminal's cursor.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace compute {

constexpr size_t kLongestEcho = 200;   // characters of a name or a value
constexpr size_t kLongestPath = 1024;  // of a file's name, which is useful only as a whole

// `text` on one line: control characters and characters that reorder a line are escaped as in C (\n, \x1b, \u202e); a
// byte that is not UTF-8 becomes U+FFFD. A text with more than `longest` characters is cut to that length, followed by
// an ellipsis and the original length.
std::string printable(std::string_view text, size_t longest = kLongestEcho);

// The same in quotes. (Called quoted, it would be std::quoted for a std::string.)
std::string in_quotes(std::string_view text);

// A whole message, which may have several lines: as printable, without a limit; newlines and tabs are kept.
std::string printable_lines(std::string text);

bool is_utf8(std::string_view text);

// The complete first character of `text`; empty at the end. For invalid text, the byte and what looks like its
// continuation.
std::string_view first_character(std::string_view text);

// "\n " and the line of `text` that contains the byte `offset`, "\n " and a caret under that byte. Of a long line only
// the surroundings are shown.
std::string with_caret(std::string_view text, size_t offset);

// The characters of that line before the byte, plus 1.
size_t column_of(std::string_view text, size_t offset);

// The text as a string of JSON, in quotes and made UTF-8.
std::string json_string(std::string_view text);

}  // namespace compute
