// SPDX-License-Identifier: Apache-2.0
#include "core/devices/selector.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <system_error>
#include <tuple>
#include <utility>

#include <compute/compute.h>
#include "core/base/error.hpp"
#include "core/expressions/dtype.hpp"
#include "core/loading/pci_address.hpp"
#include "core/settings/setting.hpp"
#include "core/text/ascii.hpp"
#include "core/text/nearest_name.hpp"
#include "core/text/printable.hpp"

namespace compute {
namespace {

constexpr size_t kMaxTextBytes = 4096;  // longer texts are refused, and would not fit in a message
constexpr int32_t kMaxIndex = 65535;
constexpr size_t kMaxItems = 256;  // of one text, after expanding names, whose number can double with each level
constexpr int kMaxDepth = 16;      // of names defined by names

bool is_name_letter(char c) { return is_letter(c) || c == '_'; }
bool is_alias_letter(char c) { return is_name_letter(c) || is_digit(c); }
bool is_space(char c) { return c == ' ' || c == '\t'; }

std::string joined(std::span<const std::string> names) {
  std::string result;
  for (const std::string& name : names) {
    if (!result.empty()) result += ", ";
    result += name;
  }
  return result;
}

// Parses [offset_, end_) of text_; every fault names a byte of text_.
class Parser {
 public:
  Parser(std::string_view text, std::string_view origin, std::span<const std::string> known_plugins,
         std::span<const NamedSelector> aliases, const AskPlugin& ask)
      : text_(text), origin_(origin), ask_(ask), end_(text.size()), known_{"auto", "gpu", "cpu"} {
    for (const std::string& name : known_plugins) known_.push_back(to_lower(name));
    for (const NamedSelector& one : aliases) aliases_.push_back({one.name, 0, 0, State::kDone, one.selector});
    std::sort(known_.begin(), known_.end());
    known_.erase(std::unique(known_.begin(), known_.end()), known_.end());
  }

  Selector selector(size_t begin, size_t end) {
    offset_ = begin;
    end_ = end;
    Selector result{std::string(text_.substr(begin, end - begin)), std::string(origin_), {}};
    if (trimmed(result.text).empty()) return result;
    for (bool more = true; more;) {
      const size_t first = result.items.size();
      const size_t item_offset = offset_;
      if (!take_alias(result.items)) {
        count(item_offset, 1);
        result.items.push_back(item());
      }
      for (size_t i = first; i < result.items.size(); ++i) result.items[i].offset -= begin;
      more = !at_end();
      if (more) ++offset_;  // the comma: an item stops nowhere else
    }
    const auto is_pool = [](const SelectorItem& x) { return !x.exclude && (x.is_auto() || x.is_gpu()); };
    if (std::none_of(result.items.begin(), result.items.end(), is_pool)) {
      for (const SelectorItem& x : result.items) {
        if (x.exclude)
          fail(begin + x.offset,
               in_quotes(x.text) + " excludes nothing: the list has neither auto nor gpu; write auto," + x.text);
      }
    }
    return result;
  }

  std::vector<NamedSelector> named_selectors() {
    for (size_t begin = 0; begin < text_.size();) {
      const size_t end = std::min(text_.find(';', begin), text_.size());
      if (!trimmed(text_.substr(begin, end - begin)).empty()) take_definition(begin, end);
      begin = end + 1;
    }
    for (Alias& alias : aliases_) resolve(alias, alias.begin);
    std::vector<NamedSelector> result;
    for (Alias& alias : aliases_) result.push_back({std::move(alias.name), std::move(alias.selector)});
    return result;
  }

 private:
  enum class State { kUnread, kReading, kDone };

  struct Alias {
    std::string name;
    size_t begin, end;  // of its definition in text_; unused once it is done
    State state;
    Selector selector;
  };

  [[noreturn]] void fail(size_t offset, const std::string& what) const {
    throw_selector_fault(text_, origin_, offset, what);
  }

  bool at_end() const { return offset_ >= end_; }
  char peek() const { return at_end() ? '\0' : text_[offset_]; }

  void skip_spaces() {
    while (!at_end() && is_space(peek())) ++offset_;
  }

  template <typename Predicate>
  std::string_view take_while(Predicate holds) {
    const size_t begin = offset_;
    while (!at_end() && holds(text_[offset_])) ++offset_;
    return text_.substr(begin, offset_ - begin);
  }

  // The character at `offset` for a message, or the end.
  std::string at(size_t offset) const {
    if (offset >= end_) return "the end";
    return in_quotes(first_character(text_.substr(offset)));
  }

  // `name=selector`; resolve() reads the selector, because it may use names defined after it.
  void take_definition(size_t begin, size_t end) {
    offset_ = begin;
    end_ = end;
    skip_spaces();
    const size_t name_offset = offset_;
    const std::string name(take_while(is_alias_letter));
    if (name.empty()) fail(offset_, "expected a name, as in a=cpu, but found " + at(offset_));
    skip_spaces();
    if (peek() != '=') fail(offset_, "expected \"=\" after " + in_quotes(name) + " but found " + at(offset_));
    if (find_alias(name) != nullptr) fail(name_offset, in_quotes(name) + " is defined twice");
    const std::string letters = to_lower(name.substr(0, name.find_last_not_of("0123456789") + 1));
    if (std::find(known_.begin(), known_.end(), letters) != known_.end()) {
      fail(name_offset, in_quotes(name) + " is a name of devices; choose another name");
    }
    aliases_.push_back({name, offset_ + 1, end, State::kUnread, {}});
  }

  Alias* find_alias(std::string_view name) {
    const auto found =
        std::find_if(aliases_.begin(), aliases_.end(), [&](const Alias& alias) { return alias.name == name; });
    return found == aliases_.end() ? nullptr : &*found;
  }

  void resolve(Alias& alias, size_t named_at) {
    if (alias.state == State::kDone) return;
    if (depth_ == kMaxDepth) fail(named_at, "names are nested more than " + std::to_string(kMaxDepth) + " levels deep");
    ++depth_;
    alias.state = State::kReading;
    const auto outer = std::make_pair(offset_, end_);
    alias.selector = selector(alias.begin, alias.end);
    if (alias.selector.is_unset()) fail(alias.begin, "expected a device after \"=\"");
    std::tie(offset_, end_) = outer;
    alias.state = State::kDone;
    --depth_;
  }

  void count(size_t offset, size_t more) {
    count_ += more;
    if (count_ <= kMaxItems) return;
    while (offset < end_ && is_space(text_[offset])) ++offset;
    fail(offset, "more than " + std::to_string(kMaxItems) + " devices after names are expanded");
  }

  // Expands an item that is an alias. False, without consuming it, if it is not an alias.
  bool take_alias(std::vector<SelectorItem>& items) {
    const size_t begin = offset_;
    skip_spaces();
    const size_t start = offset_;
    const bool exclude = peek() == '-' || peek() == '!';
    if (exclude) ++offset_;
    const size_t name_offset = offset_;
    Alias* const alias = find_alias(take_while(is_alias_letter));
    if (alias == nullptr) {
      offset_ = begin;
      return false;
    }
    const size_t name_end = offset_;
    if (alias->state == State::kReading) fail(name_offset, in_quotes(alias->name) + " is defined in terms of itself");
    skip_spaces();
    if (!at_end() && peek() != ',') {
      fail(offset_, in_quotes(alias->name) + " is a name for " + in_quotes(trimmed_text_of(*alias)) +
                        "; put conditions and options into its definition");
    }
    resolve(*alias, name_offset);
    count(start, alias->selector.items.size());
    for (SelectorItem item : alias->selector.items) {
      if (exclude && (item.exclude || item.is_auto())) {
        fail(start, in_quotes(alias->name) + " is a name for " + in_quotes(trimmed_text_of(*alias)) +
                        ", which cannot be excluded");
      }
      if (exclude) {
        item.exclude = true;
        item.options = {};
        item.text = std::string(text_.substr(start, name_end - start));
      }
      item.alias = alias->name;
      item.offset = start;
      items.push_back(std::move(item));
    }
    return true;
  }

  std::string_view trimmed_text_of(const Alias& alias) const {
    const std::string_view read = alias.selector.text;
    return trimmed(read.empty() ? text_.substr(alias.begin, alias.end - alias.begin) : read);
  }

  SelectorItem item() {
    SelectorItem result;
    skip_spaces();
    const size_t begin = offset_;
    result.offset = begin;
    if (peek() == '-' || peek() == '!') {
      result.exclude = true;
      ++offset_;
    }
    take_name(result);
    take_index(result);
    if (peek() == '@') take_condition(result);
    while (peek() == '+') {
      if (result.exclude) fail(offset_, "an excluded device takes no options");
      take_option(result);
    }
    result.text = std::string(trimmed(text_.substr(begin, offset_ - begin)));
    const size_t end = offset_;
    skip_spaces();
    if (!at_end() && peek() != ',') {
      std::string what = "unexpected " + at(offset_) + " after " + in_quotes(result.text);
      if (peek() == '@') {
        what += "; a device takes at most one condition, before the options";
      } else if (peek() == ';' || peek() == '|' || peek() == '/' || (offset_ > end && is_letter(peek()))) {
        what += "; separate devices by commas";
      } else if (peek() == '.' || peek() == '-' || peek() == '#' || (offset_ > end && is_digit(peek()))) {
        what +=
            "; write the index directly after the name: " + example(result.name) + ", " + example(result.name) + ":1";
      }
      fail(offset_, what);
    }
    return result;
  }

  // A device of `plugin`, or of any that may have several.
  std::string example(std::string_view plugin) const {
    for (const std::string& name : known_) {
      if (name == "auto" || name == "gpu" || name == "cpu") continue;
      if (plugin.empty() || plugin == name || plugin == "auto" || plugin == "gpu" || plugin == "cpu") return name + "0";
    }
    return "cpu0";
  }

  // What an item may begin with.
  std::vector<std::string> known_names() const {
    std::vector<std::string> names = known_;
    for (const Alias& alias : aliases_) names.push_back(alias.name);
    std::sort(names.begin(), names.end());
    return names;
  }

  void take_name(SelectorItem& result) {
    const size_t begin = offset_;
    result.name = to_lower(take_while(is_name_letter));
    if (result.name.empty()) {
      fail(begin, "expected a device but found " + at(begin) + " (known: " + joined(known_names()) + ")");
    }
    if (std::find(known_.begin(), known_.end(), result.name) == known_.end()) {
      const std::vector<std::string> known = known_names();
      fail(begin, "unknown plugin " + in_quotes(result.name) + did_you_mean(result.name, known) +
                      " (known: " + joined(known) + ")");
    }
    if (result.exclude && result.is_auto()) fail(begin, "auto cannot be excluded");
  }

  int32_t number(const char* of_what) {
    const size_t begin = offset_;
    const std::string_view digits = take_while(is_digit);
    if (digits.empty()) fail(begin, std::string("expected ") + of_what + " but found " + at(begin));
    int32_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || value > kMaxIndex) {
      fail(begin, std::string(of_what) + " is larger than " + std::to_string(kMaxIndex));
    }
    return value;
  }

  void take_index(SelectorItem& result) {
    const size_t begin = offset_;
    if (is_digit(peek())) {
      result.first_index = number("an index");
      if (peek() == ':') {
        ++offset_;
        result.second_index = number("a device index");
      }
    } else if (peek() == ':') {
      ++offset_;
      result.flat_index = number("an index");
    }
    if (offset_ != begin && (result.is_auto() || result.is_gpu())) {
      fail(begin, result.name + " takes no index; use the name of a plugin, such as " + example(""));
    }
  }

  // A value runs to the next option, item or the end; it may hold spaces, as names of devices do.
  std::string_view value(const std::string& of_what) {
    const size_t begin = offset_;
    const std::string_view text = trimmed(take_while([](char c) { return c != ',' && c != '+' && c != '@'; }));
    if (text.empty()) fail(begin, "expected a value for " + of_what + " but found " + at(offset_));
    const auto control = std::find_if(text.begin(), text.end(), is_control);
    if (control != text.end()) {
      fail(static_cast<size_t>(&*control - text_.data()), "the value of " + of_what + " contains a control character");
    }
    return text;
  }

  std::string key(const std::string& kind, std::span<const std::string> known) {
    const size_t begin = ++offset_;  // past the sign
    const std::string result = to_lower(take_while(is_alias_letter));
    if (std::find(known.begin(), known.end(), result) != known.end()) return result;
    if (result.empty()) {
      fail(begin, "expected " + kind + " but found " + at(begin) + " (known: " + joined(known) + ")");
    }
    fail(begin,
         in_quotes(result) + " is not " + kind + did_you_mean(result, known) + " (known: " + joined(known) + ")");
  }

  void take_condition(SelectorItem& result) {
    const std::array<std::string, 4> kKeys = {"pci", "uuid", "name", "platform"};  // in the order of DeviceKey
    const std::string name = key("a condition", kKeys);
    DeviceCondition condition;
    condition.key = static_cast<DeviceKey>(std::find(kKeys.begin(), kKeys.end(), name) - kKeys.begin());
    if (peek() != '=' && peek() != '~') {
      fail(offset_, "expected \"=\" or \"~\" after " + in_quotes(name) + " but found " + at(offset_));
    }
    condition.part = peek() == '~';
    const size_t begin = ++offset_;
    condition.value = std::string(value(name));
    if (condition.key == DeviceKey::kPci && !condition.part) {
      const std::optional<std::string> address = canonical_pci_address(condition.value);
      if (!address) fail(begin, in_quotes(condition.value) + " is not a PCI address; expected the form 0000:65:00.0");
      condition.value = *address;
    }
    result.condition = condition;
  }

  void take_option(SelectorItem& result) {
    const std::array<std::string, 2> kOptions = {"mem", "without"};
    const size_t key_offset = offset_ + 1;
    const std::vector<const Setting*> settings = settings_for(result.name, key_offset);
    std::vector<std::string> known(kOptions.begin(), kOptions.end());
    for (const Setting* setting : settings) known.emplace_back(option_name(*setting));
    const std::string name = key("an option", known);
    if (peek() != '=') fail(offset_, "expected \"=\" after " + in_quotes(name) + " but found " + at(offset_));
    const size_t begin = ++offset_;
    const std::string_view text = value(name);
    const auto is_it = [&](const auto& given) { return given.first == name; };
    const auto& given = result.options.settings;
    if ((name == "mem" && result.options.memory_limit) || (name == "without" && result.options.hidden_dtypes != 0) ||
        std::any_of(given.begin(), given.end(), is_it))
      fail(key_offset, in_quotes(name) + " is given twice");
    if (name == "without") {
      result.options.hidden_dtypes = dtypes(text, begin);
      return;
    }
    if (name == "mem") {
      std::string reason;
      result.options.memory_limit = parse_byte_amount(text, &reason);
      if (!result.options.memory_limit) fail(begin, reason);
      if (*result.options.memory_limit == ByteAmount{}) fail(begin, "\"mem\" must be greater than 0");
      return;
    }
    const auto setting =
        std::find_if(settings.begin(), settings.end(), [&](const Setting* one) { return option_name(*one) == name; });
    try {
      const SettingValue value = parse_setting(**setting, Origin::kApi, in_quotes(name), text);
      result.options.settings.emplace_back(name, value.text);
    } catch (const Error& error) {
      if (error.code != COMPUTE_ERROR_INVALID_ARGUMENT) throw;
      fail(begin, error.message);
    }
  }

  // "float64/bfloat16" as bits.
  uint32_t dtypes(std::string_view text, size_t begin) {
    uint32_t bits = 0;
    for (size_t at = 0; at <= text.size();) {
      const size_t end = std::min(text.find('/', at), text.size());
      const std::string name = to_lower(text.substr(at, end - at));
      const compute_dtype dtype = dtype_from_name(name);
      if (dtype == COMPUTE_DTYPE_NONE) fail(begin + at, in_quotes(name) + " is not a dtype");
      bits |= uint32_t{1} << dtype;
      at = end + 1;
    }
    return bits;
  }

  // The device settings of `plugin`. Loads them if the name at `offset` is unknown.
  std::vector<const Setting*> settings_for(const std::string& plugin, size_t offset) const {
    size_t end = offset;
    while (end < end_ && is_alias_letter(text_[end])) ++end;
    const std::string name = to_lower(text_.substr(offset, end - offset));
    std::vector<const Setting*> settings = device_settings_of(plugin);
    const auto is_it = [&](const Setting* setting) { return option_name(*setting) == name; };
    if (!ask_ || name == "mem" || name == "without" || std::any_of(settings.begin(), settings.end(), is_it))
      return settings;
    ask_(plugin);
    return device_settings_of(plugin);
  }

  std::string_view text_;
  std::string_view origin_;
  const AskPlugin& ask_;
  size_t offset_ = 0;
  size_t end_;
  std::vector<std::string> known_;
  std::vector<Alias> aliases_;
  size_t count_ = 0;  // items so far
  int depth_ = 0;     // of the name that is being read
};

void check_size(std::string_view text, std::string_view origin) {
  if (text.size() <= kMaxTextBytes) return;
  throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, std::string(origin) + ": the selector is " + std::to_string(text.size()) +
                                                  " bytes long; the limit is " + std::to_string(kMaxTextBytes));
}

}  // namespace

bool Selector::may_choose_from(std::string_view plugin) const {
  bool pooled = is_unset(), excluded = false;
  for (const SelectorItem& item : items) {
    const bool whole = !item.first_index && !item.flat_index && !item.condition;
    if (item.exclude) {
      excluded = excluded || (whole && item.name == plugin);
    } else if (item.name == plugin) {
      return true;
    } else {
      pooled = pooled || item.is_auto() || item.is_gpu();
    }
  }
  return pooled && !excluded;
}

Selector parse_selector(std::string_view text, std::string_view origin, std::span<const std::string> known_plugins,
                        std::span<const NamedSelector> aliases, const AskPlugin& ask) {
  check_size(text, origin);
  return Parser(text, origin, known_plugins, aliases, ask).selector(0, text.size());
}

std::vector<NamedSelector> parse_named_selectors(std::string_view text, std::string_view origin,
                                                 std::span<const std::string> known_plugins, const AskPlugin& ask) {
  check_size(text, origin);
  return Parser(text, origin, known_plugins, {}, ask).named_selectors();
}

void throw_selector_fault(std::string_view text, std::string_view origin, size_t offset, const std::string& what) {
  throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, std::string(origin) + " " + in_quotes(text) + ", column " +
                                                  std::to_string(column_of(text, offset)) + ": " + what +
                                                  with_caret(text, offset));
}

}  // namespace compute
