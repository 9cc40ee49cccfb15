// SPDX-License-Identifier: Apache-2.0
// Which device was asked for: the one parser of the text in COMPUTE_DEVICE, --compute-device and compute_device_open.
// What is then chosen is device_choice.hpp's.
//
//   list    := item {"," item}                     tried left to right; spaces around items do not matter
//   item    := ["-" | "!"] (alias | name [index] ["@" key ("=" | "~") value] {"+" option "=" value})
//   alias   := a name of COMPUTE_DEVICES           stands for its selector
//   name    := letters and "_"                     a plugin, or `auto`, or `gpu`; case does not matter
//   index   := digits [":" digits] | ":" digits    `cuda0`; `opencl0:1` platform 0, device 1; `opencl:3` flat index
//   key     := pci | uuid | name | platform        "=" is equality, "~" is a part of it
//   option  := mem | name of a device setting      `+mem=4G`, `+mem=30%`; `acme0+mode=fast` for COMPUTE_ACME_MODE
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

#include "core/base/byte_amount.hpp"

namespace compute {

enum class DeviceKey { kPci, kUuid, kName, kPlatform };

struct DeviceCondition {
  DeviceKey key = DeviceKey::kName;
  bool part = false;  // "~": the value occurs somewhere in the property
  std::string value;  // a whole PCI address is in its usual form
};

// What one device is opened with.
struct DeviceOptions {
  std::optional<ByteAmount> memory_limit;
  std::vector<std::pair<std::string, std::string>> settings;  // device settings by name, checked
};

struct SelectorItem {
  std::string text;   // as written, for messages
  size_t offset = 0;  // where it stands in the selector's text
  std::string alias;  // the name of COMPUTE_DEVICES that stands there in its place; empty: none
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

  // True iff the text was empty: nobody asked for anything, which is not the same as `auto`.
  bool is_unset() const { return items.empty(); }

  // True iff one device is named, so that nothing else will do.
  bool is_strict() const { return items.size() == 1 && !items.front().is_auto(); }

  // False iff no device of `plugin` can be chosen, so that its driver need not be touched.
  bool may_choose_from(std::string_view plugin) const;
};

// A name of COMPUTE_DEVICES and what it stands for.
struct NamedSelector {
  std::string name;
  Selector selector;
};

// Has a plugin declare its settings, where it has not yet.
using AskPlugin = std::function<void(std::string_view plugin)>;

// Parses a selector. `known_plugins` are the names of the plugins that were found, those that failed to load included;
// `auto`, `gpu` and `cpu` are always known. Items that name one of `aliases` are replaced by its items. `ask` is called
// for an option that no declared setting has; empty: nobody is asked.
//
// Throws INVALID_ARGUMENT for a malformed text or an unknown name. The message's first line is complete in itself; the
// text and a caret under the fault follow on lines of their own:
//
//   COMPUTE_DEVICE "cpu,cdua0", column 5: no plugin is called "cdua"; did you mean "cuda"? (known: auto, cpu, …)
//     cpu,cdua0
//         ^
Selector parse_selector(std::string_view text, std::string_view origin, std::span<const std::string> known_plugins,
                        std::span<const NamedSelector> aliases = {}, const AskPlugin& ask = {});

// Parses COMPUTE_DEVICES: `a=cuda0;b=a,opencl0:0`. Names are letters, digits and `_`, do not read like a device
// (`cuda0`), and may stand in each other's selectors in any order. Errors as in parse_selector; a name that stands for
// itself, by whatever way, is one.
std::vector<NamedSelector> parse_named_selectors(std::string_view text, std::string_view origin,
                                                 std::span<const std::string> known_plugins, const AskPlugin& ask = {});

// Throws INVALID_ARGUMENT in the form above: a fault at byte `offset` of `text`, `what` saying which.
[[noreturn]] void throw_selector_fault(std::string_view text, std::string_view origin, size_t offset,
                                       const std::string& what);

}  // namespace compute
