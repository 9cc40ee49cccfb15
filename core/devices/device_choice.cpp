// SPDX-License-Identifier: Apache-2.0
#include "core/devices/device_choice.hpp"

#include <algorithm>
#include <tuple>

#include <compute/compute.h>
#include "core/loading/pci_address.hpp"
#include "core/text/ascii.hpp"
#include "core/text/printable.hpp"

namespace compute {
namespace {

constexpr size_t kMaxNamesShown = 8;

bool is_gpu(const DeviceRecord& device) {
  return device.kind == COMPUTE_DEVICE_KIND_DISCRETE_GPU || device.kind == COMPUTE_DEVICE_KIND_INTEGRATED_GPU;
}

// Kinds from the future are accelerators of some sort.
int kind_rank(const DeviceRecord& device) {
  switch (device.kind) {
    case COMPUTE_DEVICE_KIND_DISCRETE_GPU:
      return 0;
    case COMPUTE_DEVICE_KIND_INTEGRATED_GPU:
      return 1;
    case COMPUTE_DEVICE_KIND_CPU:
      return 3;
    default:
      return 2;
  }
}

const char* kind_name(const DeviceRecord& device) {
  static constexpr const char* kNames[] = {"a discrete GPU", "an integrated GPU", "an accelerator", "a CPU"};
  return kNames[kind_rank(device)];
}

// `auto` always ends in cpu: another plugin's view of the processor never precedes it, whatever its priority.
bool ranks_before(const DeviceRecord& x, const DeviceRecord& y) {
  const auto key = [](const DeviceRecord& d) {
    return std::make_tuple(!d.runs_ops, kind_rank(d), is_foreign_cpu(d), -static_cast<int64_t>(d.priority),
                           -static_cast<int64_t>(d.score), std::string_view(d.plugin), d.flat_index);
  };
  return key(x) < key(y);
}

bool meets(const DeviceCondition& condition, const DeviceRecord& device) {
  std::string property;
  switch (condition.key) {
    case DeviceKey::kPci:
      property = canonical_pci_address(device.pci).value_or(device.pci);
      break;
    case DeviceKey::kUuid:
      property = device.uuid;
      break;
    case DeviceKey::kName:
      property = device.description;
      break;
    case DeviceKey::kPlatform:
      property = device.platform;
      break;
  }
  property = to_lower(property);
  const std::string wanted = to_lower(condition.value);
  if (condition.part) return property.find(wanted) != std::string::npos;
  // A platform has several names, one a line.
  return condition.key == DeviceKey::kPlatform
             ? ("\n" + property + "\n").find("\n" + wanted + "\n") != std::string::npos
             : property == wanted;
}

bool has_index(const SelectorItem& item, const DeviceRecord& device) {
  if (item.flat_index) return device.flat_index == *item.flat_index;
  if (!item.first_index) return true;
  if (device.platform_index < 0) return !item.second_index && device.device_index == *item.first_index;
  return device.platform_index == *item.first_index &&
         (!item.second_index || device.device_index == *item.second_index);
}

bool has_name(const SelectorItem& item, const DeviceRecord& device) {
  return item.is_auto() || (item.is_gpu() ? is_gpu(device) : device.plugin == item.name);
}

bool matches(const SelectorItem& item, const DeviceRecord& device) {
  return has_name(item, device) && has_index(item, device) && (!item.condition || meets(*item.condition, device));
}

std::string condition_text(const DeviceCondition& condition) {
  static constexpr const char* kNames[] = {"PCI address", "UUID", "name", "platform"};
  return std::string(condition.part ? "a " : "the ") + kNames[static_cast<size_t>(condition.key)] +
         (condition.part ? " with " : " ") + in_quotes(condition.value);
}

class Chooser {
 public:
  Chooser(const Selector& selector, std::span<const DeviceRecord> devices, std::span<const PluginProblem> problems)
      : selector_(selector), devices_(devices), problems_(problems) {}

  DeviceChoice choose() {
    std::vector<SelectorItem> automatic(1);
    automatic[0].text = automatic[0].name = "auto";
    const std::vector<SelectorItem>& items = selector_.is_unset() ? automatic : selector_.items;
    for (const SelectorItem& item : items) {
      if (item.exclude) exclusions_.push_back(&item);
    }
    for (size_t i = 0; i < items.size() && !choice_.device; ++i) {
      if (!items[i].exclude) try_item(items[i], i);
    }
    explain_others(choice_.item ? &items[*choice_.item] : nullptr);
    if (choice_.device) warn(items[*choice_.item]);
    return std::move(choice_);
  }

 private:
  void try_item(const SelectorItem& item, size_t number) {
    check_levels(item);
    const std::vector<size_t> found = candidates(item);
    const auto usable = std::find_if(found.begin(), found.end(), [&](size_t i) { return devices_[i].usable; });
    if (usable == found.end()) {
      choice_.failures.push_back({printable(item.text), found.empty() ? why_none(item) : problems_of(found)});
      return;
    }
    choice_.device = *usable;
    choice_.item = number;
  }

  // `cuda0:1` asks for a platform's device of a plugin that has no platforms: no other machine would make it right.
  void check_levels(const SelectorItem& item) const {
    if (!item.second_index) return;
    const auto is_its = [&](const DeviceRecord& device) { return device.plugin == item.name; };
    const auto has_platform = [&](const DeviceRecord& device) { return is_its(device) && device.platform_index >= 0; };
    if (std::none_of(devices_.begin(), devices_.end(), is_its)) return;
    if (std::any_of(devices_.begin(), devices_.end(), has_platform)) return;
    const size_t colon = item.alias.empty() ? item.text.find(':') : 0;
    throw_selector_fault(selector_.text, selector_.origin, item.offset + colon,
                         item.name + " has no platforms; write " + item.name + std::to_string(*item.first_index));
  }

  const SelectorItem* exclusion_of(const DeviceRecord& device) const {
    for (const SelectorItem* item : exclusions_) {
      if (matches(*item, device)) return item;
    }
    return nullptr;
  }

  // The exclusion that keeps all devices of `plugin` out, and so keeps it from being opened.
  const SelectorItem* exclusion_of_plugin(std::string_view plugin) const {
    for (const SelectorItem* item : exclusions_) {
      if (item->name == plugin && !item->first_index && !item->flat_index && !item->condition) return item;
    }
    return nullptr;
  }

  // The devices that `item` takes, best first.
  std::vector<size_t> candidates(const SelectorItem& item) const {
    const bool pooled = item.is_auto() || item.is_gpu();
    std::vector<size_t> result;
    for (size_t i = 0; i < devices_.size(); ++i) {
      if (matches(item, devices_[i]) && !(pooled && exclusion_of(devices_[i]))) result.push_back(i);
    }
    std::sort(result.begin(), result.end(), [&](size_t x, size_t y) {
      return pooled ? ranks_before(devices_[x], devices_[y]) : devices_[x].flat_index < devices_[y].flat_index;
    });
    return result;
  }

  std::string names_of(std::span<const size_t> indices) const {
    std::string result;
    for (size_t i = 0; i < std::min(indices.size(), kMaxNamesShown); ++i) {
      result += (i == 0 ? "" : ", ") + devices_[indices[i]].name;
    }
    if (indices.size() > kMaxNamesShown) result += " and " + std::to_string(indices.size() - kMaxNamesShown) + " more";
    return result;
  }

  std::string problem_of(const DeviceRecord& device) const {
    return device.problem.empty() ? "not usable" : device.problem;
  }

  std::string problems_of(std::span<const size_t> indices) const {
    std::string result;
    for (size_t i : indices) {
      if (!result.empty()) result += "; ";
      result += devices_[i].name + " cannot be used: " + problem_of(devices_[i]);
    }
    return result;
  }

  std::string why_none(const SelectorItem& item) const {
    if (item.is_auto() || item.is_gpu()) {
      std::vector<size_t> named;
      for (size_t i = 0; i < devices_.size(); ++i) {
        if (has_name(item, devices_[i])) named.push_back(i);
      }
      const std::string what = item.is_gpu() ? "GPU" : "device";
      if (named.empty()) return "no " + what + " was found" + plugin_problems();
      if (!item.condition) return "every " + what + " is excluded (" + names_of(named) + ")";
      return "no " + what + (exclusions_.empty() ? "" : " that is not excluded") + " has " +
             condition_text(*item.condition) + " (found: " + names_of(named) + ")";
    }
    SelectorItem without = item;
    without.condition.reset();
    const std::vector<size_t> indexed = candidates(without);
    if (!indexed.empty()) {
      return (indexed.size() == 1 ? names_of(indexed) + " does not have " : "none of " + names_of(indexed) + " has ") +
             condition_text(*item.condition);
    }
    without.first_index.reset();
    without.second_index.reset();
    without.flat_index.reset();
    const std::vector<size_t> named = candidates(without);
    if (named.empty()) return item.name + " has no device" + problem_of_plugin(item.name);
    std::string what = " has no device ";
    int32_t number = item.flat_index.value_or(item.first_index.value_or(0));
    if (item.first_index && devices_[named.front()].platform_index >= 0) {
      const auto on_platform = [&](size_t i) { return devices_[i].platform_index == *item.first_index; };
      if (std::any_of(named.begin(), named.end(), on_platform)) {
        return item.name + " has no device " + std::to_string(*item.second_index) + " on platform " +
               std::to_string(*item.first_index) + " (available: " + names_of(named) + ")";
      }
      what = " has no platform ";
    }
    return item.name + what + std::to_string(number) + " (available: " + names_of(named) + ")";
  }

  std::string problem_of_plugin(std::string_view plugin) const {
    for (const PluginProblem& problem : problems_) {
      if (problem.plugin == plugin) return ": " + problem.problem;
    }
    return ": the plugin is not installed (the package compute-plugin-" + std::string(plugin) + ")";
  }

  std::string plugin_problems() const {
    std::string result;
    for (const PluginProblem& problem : problems_) {
      result += (result.empty() ? ": " : "; ") + problem.plugin + ": " + problem.problem;
    }
    return result;
  }

  std::string why_after(const DeviceRecord& device, const DeviceRecord& chosen) const {
    if (is_same_card(device, chosen)) return "same card as " + chosen.name + ", which ranks higher";
    if (!device.runs_ops && kind_rank(device) <= kind_rank(chosen))
      return "runs no ops: its plugin is not installed or was rejected";
    if (kind_rank(device) != kind_rank(chosen)) {
      return std::string(kind_name(device)) + " ranks below " + kind_name(chosen);
    }
    if (is_foreign_cpu(device) != is_foreign_cpu(chosen)) return "same processor as cpu";
    if (device.priority != chosen.priority) {
      return "plugin priority " + std::to_string(device.priority) + "; " + chosen.name + " has " +
             std::to_string(chosen.priority);
    }
    if (device.score != chosen.score) {
      return "score " + std::to_string(device.score) + "; " + chosen.name + " has " + std::to_string(chosen.score);
    }
    return "ranks below " + chosen.name;
  }

  void explain_others(const SelectorItem* chosen_by) {
    for (size_t i = 0; i < devices_.size(); ++i) {
      const DeviceRecord& device = devices_[i];
      if (choice_.device == i) continue;
      std::string reason = "not requested";
      const SelectorItem* exclusion = exclusion_of(device);
      if (!device.usable) {
        reason = problem_of(device);
      } else if (chosen_by != nullptr && matches(*chosen_by, device)) {
        const bool pooled = chosen_by->is_auto() || chosen_by->is_gpu();
        reason = pooled && exclusion != nullptr ? "excluded by " + printable(exclusion->text)
                 : pooled                       ? why_after(device, devices_[*choice_.device])
                                                : "comes after " + devices_[*choice_.device].name;
      }
      choice_.others.push_back({device.name, reason});
    }
    for (const PluginProblem& problem : problems_) {
      const SelectorItem* exclusion = exclusion_of_plugin(problem.plugin);
      choice_.others.push_back(
          {problem.plugin, exclusion != nullptr ? "excluded by " + printable(exclusion->text) : problem.problem});
    }
  }

  void warn(const SelectorItem& chosen_by) {
    std::string lost;
    const auto add = [&](const std::string& text) { lost += (lost.empty() ? "" : "; ") + text; };
    for (const Refusal& failure : choice_.failures) {
      const bool names_itself = failure.reason.starts_with(failure.name);
      add(names_itself ? failure.reason : failure.name + ": " + failure.reason);
    }
    for (size_t i : candidates(chosen_by)) {
      if (i == *choice_.device) break;
      const std::string text = devices_[i].name + " cannot be used: " + problem_of(devices_[i]);
      if (lost.find(text) == std::string::npos) add(text);
    }
    if (!lost.empty()) choice_.warning = lost + "; using " + devices_[*choice_.device].name + " instead";
  }

  const Selector& selector_;
  std::span<const DeviceRecord> devices_;
  std::span<const PluginProblem> problems_;
  std::vector<const SelectorItem*> exclusions_;
  DeviceChoice choice_;
};

}  // namespace

DeviceChoice choose_device(const Selector& selector, std::span<const DeviceRecord> devices,
                           std::span<const PluginProblem> problems) {
  return Chooser(selector, devices, problems).choose();
}

std::string failure_message(const Selector& selector, const DeviceChoice& choice) {
  std::string result = selector.is_unset() ? "auto" : selector.origin + " " + in_quotes(selector.text);
  for (size_t i = 0; i < choice.failures.size(); ++i) {
    const Refusal& failure = choice.failures[i];
    result += i == 0 ? ": " : "; ";
    if (choice.failures.size() > 1 && !failure.reason.starts_with(failure.name)) result += failure.name + ": ";
    result += failure.reason;
  }
  return result;
}

std::string selection_message(const DeviceRecord& device, std::string_view origin) {
  std::string result = "using " + device.name;
  if (!device.description.empty()) result += ": " + device.description;
  if (!device.pci.empty()) result += " (" + device.pci + ")";
  return result + ", chosen by " + std::string(origin);
}

}  // namespace compute
