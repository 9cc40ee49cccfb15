// SPDX-License-Identifier: Apache-2.0
// Selectors: the only parser of the text in COMPUTE_DEVICE, --compute-device and compute_device_open. device_choice.hpp
// then chooses the device.
//
//   list    := item {"," item}                     tried left to right; spaces around items do not matter
//   item    := ["-" | "!"] (alias | name [index] ["@" key ("=" | "~") value] {"+" option "=" value})
//   alias   := a name of COMPUTE_DEVICES           stands for its selector
//   name    := letters and "_"                     a plugin, or `auto`, or `gpu`; case does not matter
//   index   := digits [":" digits] | ":" digits    `cuda0`; `opencl0:1` platform 0, device 1; `opencl:3` flat index
//   key     := pci | uuid | name | platform        "=" is equality, "~" is a part of it
//   option  := mem | without | name of a device setting
//              `+mem=4G`, `+mem=30%`; `+without=float64/bfloat16` hides dtypes; `acme0+mode=fast` for COMPUTE_ACME_MODE
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text/byte_amount.hpp"

namespace compute {

enum class DeviceKey { kPci, kUuid, kName, kPlatform };

struct DeviceCondition {
  DeviceKey key = DeviceKey::kName;
  bool part = false;  // "~": the value occurs somewhere in the property
  std::string value;  // a whole PCI address is in its usual form
};

// The options with which a device is opened.
struct DeviceOptions {
  std::optional<ByteAmount> memory_limit;
  uint32_t hidden_dtypes = 0;  // bit i: dtype i is treated as if the device did not support it
  std::vector<std::pair<std::string, std::string>> settings;  // device settings by name, checked
};

struct SelectorItem {
  std::string text;   // as written, for messages
  size_t offset = 0;  // its position in the selector's text
  std::string alias;  // the name of COMPUTE_DEVICES that the item was expanded from; empty: none
  bool exclude = false;
  std::string name;                     // lower case
  std::optional<int32_t> first_index;   // `cuda0`: the device; `opencl0`: the platform
  std::optional<int32_t> second_index;  // `opencl0:1`: the device of the platform
  std::optional<int32_t> flat_index;    // `opencl:3`
  std::optional<DeviceCondition> condition;
  DeviceOptions options;

  bool is_auto() const { return name == "auto"; }
  bool is_gpu() const { return name == "gpu"; }
};

struct Selector {
  std::string text;
  std::string origin;  // who asked, as the user knows it: `COMPUTE_DEVICE`
  std::vector<SelectorItem> items;

  // True iff the text was empty: no device was requested. This differs from `auto`.
  bool is_unset() const { return items.empty(); }

  // True iff one device is named, so that no other device is used instead.
  bool is_strict() const { return items.size() == 1 && !items.front().is_auto(); }

  // False iff no device of `plugin` can be chosen, so that its driver need not be opened.
  bool may_choose_from(std::string_view plugin) const;
};

// A name of COMPUTE_DEVICES and its selector.
struct NamedSelector {
  std::string name;
  Selector selector;
};

// Makes a plugin declare its settings, if it has not done so yet.
using AskPlugin = std::function<void(std::string_view plugin)>;

// Parses a selector. `known_plugins` are the names of the plugins that were found, including those that failed to load;
// `auto`, `gpu` and `cpu` are always known. Items that name one of `aliases` are replaced by its items. `ask` is called
// for an option that is not a declared setting; empty: no plugin is asked.
//
// Throws INVALID_ARGUMENT for a malformed text or an unknown name. The first line of the message is complete in itself;
// the text and a caret below the fault follow on separate lines:
//
//   COMPUTE_DEVICE "cpu,cdua0", column 5: no plugin is called "cdua"; did you mean "cuda"? (known: auto, cpu, …)
//     cpu,cdua0
//         ^
Selector parse_selector(std::string_view text, std::string_view origin, std::span<const std::string> known_plugins,
                        std::span<const NamedSelector> aliases = {}, const AskPlugin& ask = {});

// Parses COMPUTE_DEVICES: `a=cuda0;b=a,opencl0:0`. Names consist of letters, digits and `_`, do not look like a device
// (`cuda0`), and may be used in each other's selectors in any order. Errors as in parse_selector; a name that refers to
// itself, directly or not, is an error too.
std::vector<NamedSelector> parse_named_selectors(std::string_view text, std::string_view origin,
                                                 std::span<const std::string> known_plugins, const AskPlugin& ask = {});

// Throws INVALID_ARGUMENT in the form above, for a fault at byte `offset` of `text` that `what` describes.
[[noreturn]] void throw_selector_fault(std::string_view text, std::string_view origin, size_t offset,
                                       const std::string& what);

}  // namespace compute
