// SPDX-License-Identifier: Apache-2.0
//
// The entry points of tests/fuzz on 20,000 mutated inputs each, the same in every run. A fuzzer finds more; this keeps
// them honest between its runs, and under the sanitizers.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/elf_image.hpp"

#define LLVMFuzzerTestOneInput fuzz_selector
#include "tests/fuzz/selector.cpp"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_manifest
#include "tests/fuzz/manifest.cpp"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_elf
#include "tests/fuzz/elf.cpp"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_expression
#include "tests/fuzz/expression.cpp"
#undef LLVMFuzzerTestOneInput

namespace compute {
namespace {

constexpr int kInputs = 20000;
constexpr uint32_t kSeed = 20240817;

class Mutator {
 public:
  explicit Mutator(std::vector<std::string> seeds) : seeds_(std::move(seeds)) {}

  std::string next() {
    std::string text = seeds_[below(seeds_.size())];
    for (size_t i = 1 + below(4); i > 0; --i) mutate(text);
    return text;
  }

 private:
  size_t below(size_t limit) { return std::uniform_int_distribution<size_t>(0, limit - 1)(random_); }

  void mutate(std::string& text) {
    const size_t at = text.empty() ? 0 : below(text.size());
    switch (below(7)) {
      case 0:
        text.insert(at, 1, static_cast<char>(below(256)));
        break;
      case 1:
        text.insert(at, 1, ",:@=~+-!; 09aG%\"{}[]\n"[below(21)]);
        break;
      case 2:
        text.erase(at, 1 + below(8));
        break;
      case 3:
        text.resize(at);
        break;
      case 4:
        if (!text.empty()) text[at] = static_cast<char>(static_cast<unsigned char>(text[at]) ^ (1U << below(8)));
        break;
      case 5: {
        const std::string other = seeds_[below(seeds_.size())];
        text.insert(at, other.substr(below(other.size() + 1)));
        break;
      }
      default:  // a number at its edge, wherever it lands
        for (size_t i = at; i < std::min(text.size(), at + 8); ++i) text[i] = below(2) == 0 ? '\xFF' : '\0';
        break;
    }
  }

  std::mt19937 random_{kSeed};
  std::vector<std::string> seeds_;
};

template <typename Entry>
void run(Entry entry, std::vector<std::string> seeds) {
  Mutator mutator(std::move(seeds));
  for (int i = 0; i < kInputs; ++i) {
    const std::string text = mutator.next();
    const std::vector<uint8_t> exact(text.begin(), text.end());  // so that a sanitizer sees each byte too many
    ASSERT_EQ(entry(exact.data(), exact.size()), 0);
  }
}

TEST(Fuzz, Selector) {
  run(fuzz_selector, {"cuda0", "opencl0:1,cpu", "auto,-opencl", "cuda@pci=0000:65:00.0+mem=4G", "opencl@name~radeon rx",
                      "a=cuda0;b=opencl:3", "gpu,!acme", "größe@uuid=GPU-1+mem=30%", ""});
}

TEST(Fuzz, Manifest) {
  run(fuzz_manifest,
      {R"({"name": "acme", "library": "a.so", "interface": {"min": 1, "max": 2}, "priority": -3})",
       R"({"name": "a", "library": "/x.so", "devices": ["cpu"], "requires": [{"name": "r", "files": ["l.so"]}]})",
       R"({"name": "b", "library": "b.so", "url": "\u00e4\ud83d\ude00", "x": [[[{"y": null}]], 1e5, true]})"});
}

TEST(Fuzz, Elf) {
  run(fuzz_elf, {elf_image({.needed = {"libc.so.6", "liba.so"}, .soname = "libx.so", .runpath = "$ORIGIN"}),
                 elf_image({.needed = {"libm.so.6"}, .rpath = "/a:/b", .base = 0}),
                 std::string("glibc-ld.so.cache1.1\x01\0\0\0\x12\0\0\0", 28) + std::string(20, '\0') +
                     std::string("\x03\x03\0\0\x48\0\0\0\x52\0\0\0", 12) + std::string(12, '\0') +
                     std::string("libc.so.6\0/lib/libc.so.6\0", 25),
                 "INPUT(libc.so.6)", "!<arch>\n"});
}

TEST(Fuzz, Expression) {
  run(fuzz_expression,
      {"tanh(a * b + 1)", "where(a < 0, 0, a); -a ** 2 // b % 3", "convert(a, float16) + index(3) * s",
       "(a & b) | ~(a ^ 0xff) << 2 >> 1", "complex(a, 1.5e3) * .5; real(b)", "max(a, nan) == inf; true",
       "nextafter(a, -s)", "bitcast(a, int32) != 18446744073709551615", "1 / (1 + exp(-a))"});
}

}  // namespace
}  // namespace compute
