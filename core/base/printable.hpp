// SPDX-License-Identifier: Apache-2.0
// Text of the program's, of files or of plugins as it may stand in messages, log lines and reports: UTF-8, and nothing
// in it that moves a terminal's cursor.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace compute {

constexpr size_t kLongestEcho = 200;   // characters of a name or a value
constexpr size_t kLongestPath = 1024;  // of a file's name, which is of use as a whole alone

// `text` on one line: control characters and what reorders a line are escaped as in C (\n, \x1b, \u202e), a byte that
// is no UTF-8 is U+FFFD. Of more characters than `longest` that many are left, an ellipsis and the length.
std::string printable(std::string_view text, size_t longest = kLongestEcho);

// The same in quotes. (Called quoted, it would be std::quoted for a std::string.)
std::string in_quotes(std::string_view text);

// A whole message, which may have several lines: as printable, without a limit; new lines and tabs stay.
std::string printable_lines(std::string text);

// The character that `text` begins with, whole; empty at the end. Of broken text the byte and what looks like its
// continuation.
std::string_view first_character(std::string_view text);

// "\n  " and the line of `text` that holds the byte `offset`, "\n  " and a caret under that byte; of a long line what
//      surrounds it.
std::string with_caret(std::string_view text, size_t offset);

// The characters of that line before the byte, plus 1.
size_t column_of(std::string_view text, size_t offset);

// The text as a string of JSON, in quotes and made UTF-8.
std::string json_string(std::string_view text);

}  // namespace compute
