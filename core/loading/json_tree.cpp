// SPDX-License-Identifier: Apache-2.0
#include "core/loading/json_tree.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace compute {
namespace {

using Json = nlohmann::json;

// Takes the parser's events; false ends it.
class Builder {
 public:
  Builder(JsonTree& root, size_t most_depth, JsonFault& fault) : root_(root), most_depth_(most_depth), fault_(fault) {}

  bool null() { return add() != nullptr; }
  bool number_float(double, const std::string&) { return add() != nullptr; }
  bool binary(Json::binary_t&) { return add() != nullptr; }

  bool boolean(bool value) {
    JsonTree* const place = add();
    if (place == nullptr) return false;
    place->kind = value ? JsonTree::Kind::kTrue : JsonTree::Kind::kFalse;
    return true;
  }

  bool number_integer(int64_t value) {
    JsonTree* const place = add();
    if (place == nullptr) return false;
    place->kind = JsonTree::Kind::kInteger;
    place->integer = value;
    return true;
  }

  bool number_unsigned(uint64_t value) {
    JsonTree* const place = add();
    if (place == nullptr) return false;
    place->kind = JsonTree::Kind::kUnsigned;
    place->whole = value;
    return true;
  }

  bool string(std::string& value) {
    JsonTree* const place = add();
    if (place == nullptr) return false;
    place->kind = JsonTree::Kind::kText;
    place->text = std::move(value);
    return true;
  }

  bool start_object(size_t) { return open(JsonTree::Kind::kObject); }
  bool start_array(size_t) { return open(JsonTree::Kind::kList); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    open_.back()->keys.push_back(std::move(name));
    return true;
  }

  bool parse_error(size_t byte, const std::string&, const nlohmann::detail::exception& error) {
    constexpr int kNumberOutOfRange = 406;
    fault_ = {error.id == kNumberOutOfRange ? JsonFault::Kind::kNumber : JsonFault::Kind::kForm, byte};
    return false;
  }

 private:
  // The place of the next value; what is open holds it last, so that it stays where it is until it is complete.
  JsonTree* add() {
    if (open_.size() > most_depth_) {
      fault_.kind = JsonFault::Kind::kDepth;
      return nullptr;
    }
    return open_.empty() ? &root_ : &open_.back()->items.emplace_back();
  }

  bool open(JsonTree::Kind kind) {
    JsonTree* const place = add();
    if (place == nullptr) return false;
    place->kind = kind;
    open_.push_back(place);
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  JsonTree& root_;
  const size_t most_depth_;
  JsonFault& fault_;
  std::vector<JsonTree*> open_;
};

}  // namespace

const JsonTree* JsonTree::find(std::string_view key) const {
  const auto found = std::find(keys.rbegin(), keys.rend(), key);
  return found == keys.rend() ? nullptr : &items[static_cast<size_t>(keys.rend() - found) - 1];
}

JsonTree parse_json(std::string_view text, size_t most_depth, JsonFault* out_fault) {
  JsonTree tree;
  *out_fault = {};
  Builder builder(tree, most_depth, *out_fault);
  Json::sax_parse(text, &builder);
  return tree;
}

}  // namespace compute
