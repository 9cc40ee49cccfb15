// SPDX-License-Identifier: Apache-2.0
// In place of libFuzzer, where the compiler has none: mutates the files of the folders that are named, without looking
// at what they reach. Takes -max_total_time=SECONDS and -seed=N as libFuzzer does, and writes an input that ends the
// process to crash-input.
#include <fcntl.h>
#include <unistd.h>
#include <csignal>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

std::string input;

void keep_input(int signal) {
  const int file = open("crash-input", O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file >= 0) static_cast<void>(!write(file, input.data(), input.size()));
  std::signal(signal, SIG_DFL);
  raise(signal);
}

std::string mutated(const std::vector<std::string>& seeds, std::mt19937_64& random) {
  const auto below = [&](size_t limit) { return std::uniform_int_distribution<size_t>(0, limit - 1)(random); };
  std::string text = seeds[below(seeds.size())];
  for (size_t i = 1 + below(8); i > 0; --i) {
    const size_t at = text.empty() ? 0 : below(text.size());
    switch (below(6)) {
      case 0:
        text.insert(at, 1, static_cast<char>(below(256)));
        break;
      case 1:
        text.erase(at, 1 + below(8));
        break;
      case 2:
        text.resize(at);
        break;
      case 3:
        if (!text.empty()) text[at] = static_cast<char>(below(256));
        break;
      case 4: {
        const std::string& other = seeds[below(seeds.size())];
        text.insert(at, other.substr(below(other.size() + 1)));
        break;
      }
      default:
        for (size_t n = below(64); n > 0; --n) text += static_cast<char>(below(256));
        break;
    }
  }
  return text.substr(0, 4096);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> seeds = {""};
  int64_t seconds = 60, runs = 0;
  uint64_t seed = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("-max_total_time=")) seconds = std::atoll(argv[i] + 16);
    if (argument.starts_with("-seed=")) seed = std::strtoull(argv[i] + 6, nullptr, 10);
    if (argument.starts_with("-")) continue;
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream file(entry.path(), std::ios::binary);
      seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, keep_input);
  std::mt19937_64 random(seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  for (const std::string& text : seeds) {
    input = text;
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  }
  for (; std::chrono::steady_clock::now() < end; ++runs) {
    input = mutated(seeds, random);
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  }
  std::fprintf(stderr, "Done %lld runs in %lld second(s)\n", static_cast<long long>(runs),
               static_cast<long long>(seconds));
  return 0;
}
