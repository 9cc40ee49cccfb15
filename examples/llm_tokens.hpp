// SPDX-License-Identifier: Apache-2.0
// Texts as the tokens of a model: byte-level BPE and SentencePiece. Words are split as the file says, with letters of
// other scripts as the C library classifies them.
#pragma once

#include <locale.h>
#include <wctype.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "llm_file.hpp"

namespace llm {

enum class Letter : uint8_t { letter, digit, space, other };

inline Letter letter_of(char32_t c) {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (c < 128) {
    if ((c | 32) >= 'a' && (c | 32) <= 'z') return Letter::letter;
    if (c >= '0' && c <= '9') return Letter::digit;
    return c == ' ' || (c >= 9 && c <= 13) || (c >= 28 && c <= 31) ? Letter::space : Letter::other;
  }
  static constexpr char32_t kSpaces[] = {0x85, 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000};
  if ((c >= 0x2000 && c <= 0x200a) || std::find(std::begin(kSpaces), std::end(kSpaces), c) != std::end(kSpaces))
    return Letter::space;
  // Where ten digits of other scripts begin.
  static constexpr char32_t kDigits[] = {0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6,  0xb66,  0xbe6,  0xc66,
                                         0xce6, 0xd66, 0xde6, 0xe50, 0xed0, 0xf20, 0x1040, 0x17e0, 0x1810, 0xff10};
  if (std::any_of(std::begin(kDigits), std::end(kDigits), [&](char32_t first) { return c - first < 10; }))
    return Letter::digit;
  const auto wide = static_cast<wint_t>(c);
  return (locale != nullptr ? iswalnum_l(wide, locale) : iswalnum(wide)) != 0 ? Letter::letter : Letter::other;
}

/// A text as characters, each with its class and its place among the bytes.
struct Characters {
  std::vector<char32_t> codes;
  std::vector<Letter> letters;
  std::vector<size_t> places;  // one more, of the end

  explicit Characters(std::string_view text) {
    for (size_t at = 0; at < text.size();) {
      const auto byte = static_cast<unsigned char>(text[at]);
      size_t count = byte < 0x80 ? 1 : byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
      count = std::min(count, text.size() - at);
      char32_t code = count == 1 ? byte : byte & (0xffu >> (count + 1));
      for (size_t i = 1; i < count; ++i) code = code << 6 | (static_cast<unsigned char>(text[at + i]) & 63u);
      codes.push_back(code);
      letters.push_back(letter_of(code));
      places.push_back(at);
      at += count;
    }
    places.push_back(text.size());
  }
};

/// Splits a text into words, by the rules of GPT-2 or, if there are most digits of a number, of later models.
class Words {
 public:
  Words(std::string_view text, int most_digits) : text_(text), all_(text), most_digits_(most_digits) {}

  std::vector<std::string> split() const {
    std::vector<std::string> words;
    for (size_t at = 0; at < size();) {
      const size_t end = most_digits_ == 0 ? end_of_word(at) : end_of_later_word(at);
      words.emplace_back(text_.substr(all_.places[at], all_.places[end] - all_.places[at]));
      at = end;
    }
    return words;
  }

 private:
  size_t size() const { return all_.codes.size(); }
  bool is(size_t at, Letter letter) const { return at < size() && all_.letters[at] == letter; }
  bool is_newline(size_t at) const { return at < size() && (all_.codes[at] == '\n' || all_.codes[at] == '\r'); }
  size_t end_of(size_t at, Letter letter, size_t most = std::numeric_limits<size_t>::max()) const {
    size_t end = at;
    while (end - at < most && is(end, letter)) ++end;
    return end;
  }

  // 's, 't, 're, 've, 'm, 'll and 'd
  size_t end_of_ending(size_t at, bool folds) const {
    if (all_.codes[at] != '\'') return at;
    for (const std::string_view ending : {"s", "t", "re", "ve", "m", "ll", "d"}) {
      bool fits = at + ending.size() < size();
      for (size_t i = 0; fits && i < ending.size(); ++i) {
        const char32_t c = all_.codes[at + 1 + i], plain = folds && c < 128 ? c | 32 : c;
        fits = plain == static_cast<char32_t>(ending[i]);
      }
      if (fits) return at + 1 + ending.size();
    }
    return at;
  }
  // All spaces at the end, else all but the last, which belongs to the next word.
  size_t end_of_spaces(size_t at) const {
    const size_t end = end_of(at, Letter::space);
    return end == size() || end - at == 1 ? end : end - 1;
  }

  size_t end_of_word(size_t at) const {
    if (const size_t end = end_of_ending(at, false); end > at) return end;
    const size_t begin = at + (all_.codes[at] == ' ' ? 1 : 0);
    for (const Letter letter : {Letter::letter, Letter::digit, Letter::other}) {
      if (const size_t end = end_of(begin, letter); end > begin) return end;
    }
    return end_of_spaces(at);
  }

  size_t end_of_later_word(size_t at) const {
    if (const size_t end = end_of_ending(at, true); end > at) return end;
    const Letter letter = all_.letters[at];
    const bool leads = (letter == Letter::space && !is_newline(at)) || letter == Letter::other;
    const size_t begin = at + (leads ? 1 : 0);
    if (const size_t end = end_of(begin, Letter::letter); end > begin) return end;
    if (letter == Letter::digit) return end_of(at, Letter::digit, static_cast<size_t>(most_digits_));
    const size_t sign = at + (all_.codes[at] == ' ' ? 1 : 0);
    if (size_t end = end_of(sign, Letter::other); end > sign) {
      while (is_newline(end)) ++end;
      return end;
    }
    for (size_t end = end_of(at, Letter::space); end > at; --end)
      if (is_newline(end - 1)) return end;
    return end_of_spaces(at);
  }

  std::string_view text_;
  Characters all_;
  int most_digits_;
};

inline std::string utf8(unsigned code) {
  if (code < 128) return {static_cast<char>(code)};
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 63))};
}

/// Texts as tokens: byte-level BPE, if there is a way to split words, or SentencePiece's by scores.
class Tokenizer {
 public:
  explicit Tokenizer(const Gguf& file) {
    const auto name = [](const char* end) { return cat("tokenizer.ggml.", end); };
    const std::string model = file.word(name("model"));
    if (model != "gpt2" && model != "llama")
      throw ModelError(cat("the tokenizer is '", model, "'; gpt2 and llama are read"));
    is_bytes_ = model == "gpt2";
    texts_ = file.fact(name("tokens")).texts;
    for (size_t i = 0; i < texts_.size(); ++i) vocabulary_[texts_[i]] = static_cast<int32_t>(i);
    if (file.has(name("token_type"))) {
      const std::vector<double>& kinds = file.fact(name("token_type")).numbers;
      for (size_t i = 0; i < std::min(kinds.size(), texts_.size()); ++i)
        if (kinds[i] == 3 || kinds[i] == 4) special_.insert(static_cast<int32_t>(i));
    }
    if (is_bytes_) {
      const std::vector<std::string>& merges = file.fact(name("merges")).texts;
      for (size_t i = 0; i < merges.size(); ++i) merges_.emplace(merges[i], static_cast<double>(i));
      split_ = file.word(name("pre"), "gpt-2");
      if (split_ != "gpt-2" && split_ != "smollm" && split_ != "qwen2" && split_ != "llama-bpe")
        throw ModelError(cat("words are split in the way '", split_, "'; known are gpt-2, smollm, qwen2, llama-bpe"));
    } else {
      scores_ = file.fact(name("scores")).numbers;
      if (scores_.size() != texts_.size()) throw ModelError("tokens and scores differ in number");
      has_prefix_ = file.number(name("add_space_prefix"), 1) != 0;
    }
    if (file.has(name("bos_token_id")) && file.number(name("add_bos_token"), is_bytes_ ? 0 : 1) != 0)
      start_ = static_cast<int32_t>(file.integer(name("bos_token_id")));
    end_ = static_cast<int32_t>(file.integer(name("eos_token_id"), -1));
    for (unsigned b = 0, next = 256; b < 256; ++b) {
      const bool is_shown = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
      letters_[b] = utf8(is_shown ? b : next++);
      bytes_[letters_[b]] = static_cast<char>(b);
    }
  }
  [[nodiscard]] bool is_end(int32_t token) const { return token == end_; }

  [[nodiscard]] std::vector<int32_t> encode(const std::string& text) const {
    std::vector<int32_t> tokens;
    if (start_) tokens.push_back(*start_);
    size_t begin = 0;
    for (size_t at = 0; at < text.size();) {
      // The longest special token that stands here.
      int32_t found = -1;
      for (const int32_t token : special_) {
        const std::string& name = texts_[static_cast<size_t>(token)];
        const bool is_longer = found < 0 || name.size() > texts_[static_cast<size_t>(found)].size();
        if (!name.empty() && is_longer && text.compare(at, name.size(), name) == 0) found = token;
      }
      if (found < 0) {
        ++at;
        continue;
      }
      add_plain(text.substr(begin, at - begin), tokens);
      tokens.push_back(found);
      begin = at += texts_[static_cast<size_t>(found)].size();
    }
    add_plain(text.substr(begin), tokens);
    return tokens;
  }
  /// The bytes of a token.
  [[nodiscard]] std::string decode(int32_t token) const {
    if (token < 0 || static_cast<size_t>(token) >= texts_.size()) return "";
    const std::string& text = texts_[static_cast<size_t>(token)];
    if (special_.count(token) != 0) return is_end(token) ? "" : text;
    std::string out;
    if (!is_bytes_ && text.size() == 6 && text.rfind("<0x", 0) == 0)
      return {static_cast<char>(std::stoi(text.substr(3, 2), nullptr, 16))};
    const Characters all(text);
    for (size_t i = 0; i < all.codes.size(); ++i) {
      const std::string letter = text.substr(all.places[i], all.places[i + 1] - all.places[i]);
      const auto byte = bytes_.find(letter);
      out += is_bytes_ && byte != bytes_.end() ? std::string{byte->second} : letter == kSpace ? " " : letter;
    }
    return out;
  }
  /// The text as a user's message that is to be answered.
  [[nodiscard]] std::string chat(const std::string& text) const {
    if (vocabulary_.count("<|im_start|>") != 0)
      return cat("<|im_start|>user\n", text, "<|im_end|>\n<|im_start|>assistant\n");
    return cat("<|user|>\n", text, "</s>\n<|assistant|>\n");
  }

 private:
  static constexpr const char* kSpace = "\u2581";

  void add_plain(const std::string& text, std::vector<int32_t>& tokens) const {
    if (text.empty()) return;
    if (!is_bytes_) {
      std::string word;
      for (const char c : (has_prefix_ ? " " : "") + text) word += c == ' ' ? kSpace : std::string{c};
      return add_word(word, tokens);
    }
    const auto add = [&](std::string_view part) {
      const int most_digits = split_ == "qwen2" ? 1 : split_ == "llama-bpe" ? 3 : 0;
      for (const std::string& word : Words(part, most_digits).split()) {
        std::string letters;
        for (const char c : word) letters += letters_[static_cast<unsigned char>(c)];
        add_word(letters, tokens);
      }
    };
    if (split_ != "smollm") return add(text);
    // Each digit by itself, before words are split.
    const Characters all(text);
    size_t begin = 0;
    for (size_t i = 0; i < all.codes.size(); ++i) {
      if (all.letters[i] != Letter::digit) continue;
      add(std::string_view(text).substr(begin, all.places[i] - begin));
      begin = all.places[i + 1];
      add(std::string_view(text).substr(all.places[i], begin - all.places[i]));
    }
    add(std::string_view(text).substr(begin));
  }

  [[nodiscard]] std::optional<double> rank(const std::string& left, const std::string& right) const {
    if (is_bytes_) {
      const auto found = merges_.find(cat(left, " ", right));
      return found == merges_.end() ? std::nullopt : std::optional<double>(found->second);
    }
    const auto found = vocabulary_.find(left + right);
    return found == vocabulary_.end() ? std::nullopt
                                      : std::optional<double>(-scores_[static_cast<size_t>(found->second)]);
  }

  // Neighbours are joined, those of the least rank first, until no two have one.
  void add_word(const std::string& word, std::vector<int32_t>& tokens) const {
    struct Piece {
      std::string text;
      size_t before, after;
    };
    const Characters all(word);
    const size_t count = all.codes.size(), none = std::numeric_limits<size_t>::max();
    std::vector<Piece> pieces;
    for (size_t i = 0; i < count; ++i)
      pieces.push_back({word.substr(all.places[i], all.places[i + 1] - all.places[i]), i - 1, i + 1});
    using Offer = std::tuple<double, size_t, std::string, std::string>;
    std::priority_queue<Offer, std::vector<Offer>, std::greater<>> offers;
    const auto offer = [&](size_t i) {
      if (i == none || pieces[i].after >= count) return;
      const std::string &left = pieces[i].text, &right = pieces[pieces[i].after].text;
      if (const std::optional<double> found = rank(left, right)) offers.emplace(*found, i, left, right);
    };
    for (size_t i = 0; i < count; ++i) offer(i);
    while (!offers.empty()) {
      const auto [found, i, left, right] = offers.top();
      offers.pop();
      const size_t j = pieces[i].after;
      if (pieces[i].text != left || j >= count || pieces[j].text != right) continue;  // one was joined meanwhile
      pieces[i].text = left + right;
      pieces[i].after = pieces[j].after;
      pieces[j].text.clear();
      if (pieces[j].after < count) pieces[pieces[j].after].before = i;
      offer(pieces[i].before);
      offer(i);
    }
    for (const Piece& piece : pieces)
      if (!piece.text.empty()) add_piece(piece.text, tokens);
  }

  void add_piece(const std::string& piece, std::vector<int32_t>& tokens) const {
    if (const auto found = vocabulary_.find(piece); found != vocabulary_.end()) return tokens.push_back(found->second);
    for (const char c : piece) {
      char name[8];
      std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(static_cast<unsigned char>(c)));
      if (const auto found = vocabulary_.find(name); found != vocabulary_.end()) tokens.push_back(found->second);
    }
  }

  bool is_bytes_ = false, has_prefix_ = false;
  std::vector<std::string> texts_;
  std::unordered_map<std::string, int32_t> vocabulary_;
  std::set<int32_t> special_;
  std::unordered_map<std::string, double> merges_;
  std::vector<double> scores_;
  std::string split_;
  std::optional<int32_t> start_;
  int32_t end_ = -1;
  std::string letters_[256];
  std::unordered_map<std::string, char> bytes_;
};

}  // namespace llm
