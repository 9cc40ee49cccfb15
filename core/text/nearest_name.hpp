// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace compute {

// The name in `known` that was probably meant by `text`, or an empty string if none is similar.
//
// The distance is the number of letters to insert, delete, replace or swap, ignoring case. It is at most a third of the
// letters of `text`, or one letter for short texts. Among equally similar names the first wins.
std::string nearest_name(std::string_view text, std::span<const std::string> known);

// The same with at most `most` letters of difference, whatever the length of `text`.
std::string nearest_name(std::string_view text, std::span<const std::string> known, size_t most);

// `; did you mean "cuda"?`, or an empty string if no name is similar: the end of a message.
std::string did_you_mean(std::string_view text, std::span<const std::string> known);

}  // namespace compute
