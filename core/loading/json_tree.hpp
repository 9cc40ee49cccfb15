// SPDX-License-Identifier: Apache-2.0
// A JSON document as a tree. The tree of the JSON library allocates in its destructor, and so terminates the process if
// memory has run out; this one does not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace compute {

struct JsonTree {
  enum class Kind {
    kOther,
    kFalse,
    kTrue,
    kInteger,
    kUnsigned,
    kText,
    kList,
    kObject
  };  // kOther: null, and numbers with a fraction

  Kind kind = Kind::kOther;
  int64_t integer = 0;            // kInteger: below 0
  uint64_t whole = 0;             // kUnsigned: 0 or above
  std::string text;               // kText
  std::vector<JsonTree> items;    // kList, and the values of kObject
  std::vector<std::string> keys;  // kObject

  bool is(Kind wanted) const { return kind == wanted; }
  // The member of an object with this key; the last one if there are several, NULL if there is none.
  const JsonTree* find(std::string_view key) const;
};

struct JsonFault {
  enum class Kind { kNone, kForm, kNumber, kDepth };
  Kind kind = Kind::kNone;
  size_t byte = 0;  // kForm: its position
};

// More than `most_depth` nested lists and objects are a fault.
JsonTree parse_json(std::string_view text, size_t most_depth, JsonFault* out_fault);

}  // namespace compute
