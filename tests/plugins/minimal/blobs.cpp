// SPDX-License-Identifier: Apache-2.0
// What core promises about its store of blobs. A plugin that compiles kernels keeps them there.
#include <optional>
#include <string>

#include "minimal.hpp"

namespace minimal {
namespace {

std::optional<std::string> load(const std::string& key) {
  struct Taken {
    int times = 0;
    std::string bytes;
  } taken;
  const auto take = [](void* context, const void* data, int64_t size_bytes) {
    auto& self = *static_cast<Taken*>(context);
    ++self.times;
    self.bytes.assign(static_cast<const char*>(data), static_cast<size_t>(size_bytes));
  };
  const int32_t found = core->blob_load(key.data(), std::ssize(key), take, &taken);
  if (found != taken.times) {
    throw Failure(COMPUTE_ERROR_INTERNAL, "minimal: blob_load returned " + std::to_string(found) + " after " +
                                              std::to_string(taken.times) + " calls of `take`");
  }
  if (found == 0) return std::nullopt;
  return taken.bytes;
}

void store(const std::string& key, const std::string& blob) {
  core->blob_store(key.data(), std::ssize(key), blob.data(), std::ssize(blob));
}

void expect(const std::string& key, const std::optional<std::string>& blob, const char* what) {
  const std::optional<std::string> found = load(key);
  if (found == blob) return;
  throw Failure(COMPUTE_ERROR_INTERNAL, std::string("minimal: the store of blobs: ") + what + ": " +
                                            (found ? std::to_string(found->size()) + " bytes" : "no blob"));
}

// Any bytes, also NUL.
std::string bytes(size_t count, unsigned factor) {
  std::string made(count, '\0');
  for (size_t i = 0; i < count; ++i) made[i] = static_cast<char>(i * factor >> 3);
  return made;
}

}  // namespace

void try_blobs(std::string_view how) {
  const std::string key = "minimal" + bytes(300, 7), longer = key + "x", absent = "minimal: absent";
  const std::string large = bytes(3'000'000, 11), small = bytes(17, 5);
  expect(absent, std::nullopt, "a blob that nobody stored");
  if (how == "load") {
    expect(key, small, "a blob of an earlier process");
    expect(longer, large, "a large blob of an earlier process");
    return;
  }
  store(key, large);
  if (how == "none") return expect(key, std::nullopt, "a blob that cannot be stored");
  expect(key, large, "a blob");
  expect(longer, std::nullopt, "a key that goes on");
  store(longer, large);
  store(key, small);
  expect(key, small, "a blob that was replaced");
  expect(longer, large, "the blob of another key");
}

}  // namespace minimal
