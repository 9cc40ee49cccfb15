// SPDX-License-Identifier: Apache-2.0
// Attributes of ops, as tests write them.
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <compute/compute.h>

namespace compute {

// compute_attribute structs and their data, which copies share.
class TestAttributes {
 public:
  TestAttributes& int64(const char* name, int64_t value) { return ints(name, {value}); }
  TestAttributes& ints(const char* name, std::vector<int64_t> values) {
    const auto kept = keep(std::move(values));
    return add(name, COMPUTE_KIND_INT64, static_cast<int64_t>(kept->size()), kept->data());
  }
  TestAttributes& float64(const char* name, double value) { return float64s(name, {value}); }
  TestAttributes& float64s(const char* name, std::vector<double> values) {
    const auto kept = keep(std::move(values));
    return add(name, COMPUTE_KIND_FLOAT64, static_cast<int64_t>(kept->size()), kept->data());
  }
  TestAttributes& complex128(const char* name, double real, double imaginary) {
    return add(name, COMPUTE_KIND_COMPLEX128, 1, keep(std::array{real, imaginary})->data());
  }
  TestAttributes& string(const char* name, std::string value) { return strings(name, {std::move(value)}); }
  TestAttributes& strings(const char* name, const std::vector<std::string>& values) {
    std::vector<compute_string> list;
    for (const std::string& value : values) {
      const auto text = keep(std::string(value));
      list.push_back({text->data(), static_cast<int64_t>(text->size())});
    }
    const auto kept = keep(std::move(list));
    return add(name, COMPUTE_KIND_STRING, static_cast<int64_t>(kept->size()), kept->data());
  }
  TestAttributes& dtype(const char* name, compute_dtype value) {
    return add(name, COMPUTE_KIND_DTYPE, 1, keep(std::move(value)).get());
  }
  TestAttributes& handle(const char* name, uint64_t value) {
    return add(name, COMPUTE_KIND_HANDLE, 1, keep(std::move(value)).get());
  }
  TestAttributes& add(const char* name, int32_t kind, int64_t count, const void* values) {
    compute_attribute attribute{};
    attribute.struct_size = sizeof attribute;
    attribute.struct_type = COMPUTE_STRUCT_ATTRIBUTE;
    attribute.name = name;
    attribute.name_size = static_cast<int64_t>(std::strlen(name));
    attribute.kind = kind;
    attribute.count = count;
    attribute.values = values;
    list_.push_back(attribute);
    return *this;
  }
  std::vector<compute_attribute>& list() { return list_; }
  const std::vector<compute_attribute>& list() const { return list_; }

 private:
  template <class T>
  std::shared_ptr<T> keep(T&& value) {
    auto kept = std::make_shared<T>(std::move(value));
    kept_.push_back(kept);
    return kept;
  }

  std::vector<compute_attribute> list_;
  std::vector<std::shared_ptr<void>> kept_;
};

}  // namespace compute
