// SPDX-License-Identifier: Apache-2.0
//
// Every fuzzer on its corpus, and on mutations of it that are the same in every run. A fuzzer finds more; this keeps
// them honest between its runs, and under the sanitizers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

using Entry = int(const uint8_t*, size_t);
extern "C" Entry fuzz_config, fuzz_dlpack, fuzz_expression, fuzz_manifest, fuzz_ops, fuzz_program, fuzz_selector;

namespace {

struct Fuzzer {
  const char* name;
  Entry* entry;
  int mutations;  // inputs in addition to the corpus
};

void PrintTo(const Fuzzer& fuzzer, std::ostream* out) { *out << fuzzer.name; }

constexpr Fuzzer kFuzzers[] = {
    {"config", fuzz_config, 2000},     {"dlpack", fuzz_dlpack, 0}, {"expression", fuzz_expression, 2000},
    {"manifest", fuzz_manifest, 2000}, {"ops", fuzz_ops, 0},       {"program", fuzz_program, 0},
    {"selector", fuzz_selector, 2000}};

std::vector<std::string> corpus_of(const char* name) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(FUZZ_CORPUS) / name))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> inputs;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

class Mutator {
 public:
  explicit Mutator(const std::vector<std::string>& seeds) : seeds_(seeds) {}

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
        const std::string& other = seeds_[below(seeds_.size())];
        text.insert(at, other.substr(below(other.size() + 1)));
        break;
      }
      default:  // a number at its edge, wherever it lands
        for (size_t i = at; i < std::min(text.size(), at + 8); ++i) text[i] = below(2) == 0 ? '\xFF' : '\0';
        break;
    }
  }

  std::mt19937 random_{20240817};
  const std::vector<std::string>& seeds_;
};

class Fuzz : public testing::TestWithParam<Fuzzer> {};

TEST_P(Fuzz, TakesItsCorpusAndMutationsOfIt) {
  const std::vector<std::string> corpus = corpus_of(GetParam().name);
  ASSERT_FALSE(corpus.empty());
  const auto run = [](const std::string& text) {
    const std::vector<uint8_t> exact(text.begin(), text.end());  // so that a sanitizer sees each byte too many
    ASSERT_EQ(GetParam().entry(exact.data(), exact.size()), 0);
  };
  for (const std::string& text : corpus) run(text);
  Mutator mutator(corpus);
  for (int i = 0; i < GetParam().mutations; ++i) run(mutator.next());
}

INSTANTIATE_TEST_SUITE_P(Fuzzers, Fuzz, testing::ValuesIn(kFuzzers), [](const auto& info) { return info.param.name; });

}  // namespace
