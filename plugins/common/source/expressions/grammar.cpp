// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/source/expressions/grammar.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <vector>

#include "plugins/common/source/expressions/types.hpp"

namespace compute::common {
namespace {

struct Token {
  std::string space;  // before it
  std::string text;
};

constexpr std::array<std::string_view, 13> kTypes = {"bool", "i8",  "i16", "i32", "i64", "u8",  "u16",
                                                     "u32",  "u64", "f32", "f64", "c64", "c128"};

bool is_type(std::string_view text) { return std::find(kTypes.begin(), kTypes.end(), text) != kTypes.end(); }
bool is_inexact_type(std::string_view text) {
  return text == "f32" || text == "f64" || text == "c64" || text == "c128";
}
// Whose variables are wider than their values in languages that have no small integers.
bool is_small_type(std::string_view text) { return text == "i8" || text == "i16" || text == "u8" || text == "u16"; }

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name(const std::string& text) { return is_word(text[0]) && !is_digit(text[0]); }

size_t end_of_number(std::string_view text) {
  const bool is_hex = text.starts_with("0x");
  size_t at = 0;
  while (at < text.size()) {
    const char c = text[at];
    const char before = at > 0 ? text[at - 1] : ' ';
    const bool is_exponent = (c == '+' || c == '-') && (before == 'p' || (!is_hex && before == 'e'));
    if (!is_word(c) && c != '.' && !is_exponent) break;
    ++at;
  }
  return at;
}

std::vector<Token> tokens_of(std::string_view text) {
  static constexpr std::string_view kPairs[] = {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "->",
                                                "+=", "-=", "*=", "/=", "|=", "&=", "^=", "++", "--"};
  std::vector<Token> tokens;
  std::string space;
  bool begins_line = true;
  while (!text.empty()) {
    if (text[0] == ' ' || text[0] == '\n') {
      begins_line = begins_line || text[0] == '\n';
      space += text[0];
      text.remove_prefix(1);
      continue;
    }
    size_t size = 1;
    if (text[0] == '#' && begins_line) {  // a directive stays as it is
      size = std::min(text.find('\n'), text.size());
    } else if (text.starts_with("//")) {
      size = std::min(text.find('\n'), text.size());
    } else if (is_digit(text[0]) || (text[0] == '.' && text.size() > 1 && is_digit(text[1]))) {
      size = end_of_number(text);
    } else if (is_word(text[0])) {
      size = static_cast<size_t>(std::find_if_not(text.begin(), text.end(), is_word) - text.begin());
    } else if (std::find(std::begin(kPairs), std::end(kPairs), text.substr(0, 2)) != std::end(kPairs)) {
      size = 2;
    }
    tokens.push_back({std::move(space), std::string(text.substr(0, size))});
    space.clear();
    begins_line = false;
    text.remove_prefix(size);
  }
  tokens.push_back({std::move(space), ""});  // the end
  return tokens;
}

class Rewriting {
 public:
  Rewriting(const Dialect& dialect, std::string_view text) : dialect_(dialect), tokens_(tokens_of(text)) {}

  std::string run() {
    if (!dialect_.has_pointers) pass_by_reference();
    for (Token& token : tokens_) token.text = literal(token.text);
    wide_literals();
    test_for_nan();
    std::string out;
    emit(0, tokens_.size(), out);
    return out;
  }

 private:
  const std::string& text(size_t i) const {
    static const std::string& none = *new std::string();
    return i < tokens_.size() ? tokens_[i].text : none;
  }

  void erase(size_t i) { tokens_.erase(tokens_.begin() + static_cast<std::ptrdiff_t>(i)); }

  // "f32* x" becomes "inout f32 x", until the function's end; *x, x-> and &y become x, x. and y.
  void pass_by_reference() {
    std::set<std::string> pointers;
    int depth = 0;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (text(i) == "{") ++depth;
      if (text(i) == "}" && --depth == 0) pointers.clear();
      if (depth == 0 && is_type(text(i)) && text(i + 1) == "*" && !text(i + 2).empty() && is_name(text(i + 2))) {
        pointers.insert(text(i + 2));
        tokens_[i].text = "inout " + text(i);
        erase(i + 1);
      } else if (depth > 0 && text(i) == "*" && pointers.count(text(i + 1)) != 0 && !ends_operand(i)) {
        tokens_[i + 1].space = tokens_[i].space;
        erase(i);
      } else if (text(i) == "->") {
        tokens_[i].text = ".";
      } else if (text(i) == "&" && i > 0 && (text(i - 1) == "(" || text(i - 1) == ",")) {
        tokens_[i + 1].space = tokens_[i].space;
        erase(i);
      }
    }
  }

  // Whether an operator at `i` has an operand on its left.
  bool ends_operand(size_t i) const {
    if (i == 0) return false;
    const std::string& before = text(i - 1);
    return before == ")" || before == "]" || (is_word(before[0]) && before != "return" && before != "else");
  }

  // Floating-point literals.
  std::string literal(const std::string& token) const {
    if (token.empty() || (!is_digit(token[0]) && (token[0] != '.' || token.size() == 1))) return token;
    const bool is_hex = token.starts_with("0x"), has_power = is_hex && token.find('p') != std::string::npos;
    const bool is_float =
        is_hex ? has_power : token.find('.') != std::string::npos || token.find('e') != std::string::npos;
    if (!is_float) return token;
    const bool is_single = token.ends_with('f');
    std::string digits = is_single ? token.substr(0, token.size() - 1) : token;
    if (token.ends_with("lf") || token.ends_with("LF")) return token;
    if (is_hex && !dialect_.has_hex_floats) {
      char buffer[40];
      std::snprintf(buffer, sizeof buffer, "%.*e", is_single ? 8 : 16, std::strtod(digits.c_str(), nullptr));
      digits = buffer;
    }
    return digits + (is_single ? "f" : std::string(dialect_.f64_suffix));
  }

  // COMPUTE_U64(0x1) and COMPUTE_I64(0x1)
  void wide_literals() {
    if (dialect_.u64_suffix.empty()) return;
    for (size_t i = 0; i + 3 < tokens_.size(); ++i) {
      const bool is_unsigned = text(i) == "COMPUTE_U64";
      if ((!is_unsigned && text(i) != "COMPUTE_I64") || text(i + 1) != "(" || text(i + 3) != ")") continue;
      const std::string number = text(i + 2) + std::string(dialect_.u64_suffix);
      tokens_[i].text = is_unsigned ? number : "i64(" + number + ")";
      for (int k = 0; k < 3; ++k) erase(i + 1);
    }
  }

  // x != x, which a compiler that expects no NaN takes for false.
  void test_for_nan() {
    if (dialect_.precise.empty()) return;
    for (size_t i = 1; i + 1 < tokens_.size(); ++i) {
      if (text(i) != "!=" || text(i - 1) != text(i + 1) || !is_name(text(i - 1))) continue;
      const std::string& after = text(i + 2);
      if ((i > 1 && text(i - 2) == ".") || after == "." || after == "(" || after == "[") continue;
      tokens_[i - 1].text = "compute_is_nan(" + text(i - 1) + ")";
      erase(i);
      erase(i);
    }
  }

  bool is_cast(size_t i) const { return text(i) == "(" && is_type(text(i + 1)) && text(i + 2) == ")"; }

  void copy(size_t i, std::string& out) const { out += tokens_[i].space + tokens_[i].text; }

  // The index behind the parenthesis that closes the one at `i`.
  size_t behind(size_t i) const {
    int depth = 0;
    for (; i < tokens_.size(); ++i) {
      depth += text(i) == "(" || text(i) == "[";
      depth -= text(i) == ")" || text(i) == "]";
      if (depth == 0) return i + 1;
    }
    return i;
  }

  // A unary expression; returns the index behind it.
  size_t emit_unary(size_t i, std::string& out) {
    if (is_cast(i)) {
      out += tokens_[i].space;
      out += is_small_type(text(i + 1)) ? "to_" + text(i + 1) : text(i + 1);
      out += '(';
      i = emit_unary(i + 3, out);
      out += ')';
      return i;
    }
    if (text(i) == "-" || text(i) == "+" || text(i) == "!" || text(i) == "~") {
      copy(i, out);
      return emit_unary(i + 1, out);
    }
    const auto group = [&] {
      const size_t end = behind(i);
      copy(i, out);
      emit(i + 1, end, out);
      i = end;
    };
    if (text(i) == "(") {
      group();
    } else {
      copy(i++, out);
    }
    for (;;) {
      if (text(i) == "(" || text(i) == "[") {
        group();
      } else if (text(i) == ".") {
        copy(i, out);
        copy(i + 1, out);
        i += 2;
      } else {
        return i;
      }
    }
  }

  void emit(size_t from, size_t end, std::string& out) {
    for (size_t i = from; i < end;) {
      if (!dialect_.has_prefix_casts && is_cast(i)) {
        i = emit_unary(i, out);
        continue;
      }
      if (!dialect_.precise.empty()) {
        if (is_inexact_type(text(i)) && is_word((text(i + 1) + " ")[0]) && text(i + 2) == "(") result_ = text(i);
        if (is_type(text(i)) && !is_inexact_type(text(i)) && is_word((text(i + 1) + " ")[0]) && text(i + 2) == "(")
          result_.clear();
        if (declares(i)) {
          out += tokens_[i].space + std::string(dialect_.precise) + " " + text(i);
          ++i;
          continue;
        }
        if (text(i) == "return" && !result_.empty() && text(i + 1) != ";") {
          size_t last = i;
          while (text(last) != ";") ++last;
          out += tokens_[i].space + "{ " + std::string(dialect_.precise) + " " + result_ + " compute_result =";
          emit(i + 1, last, out);
          out += "; return compute_result; }";
          i = last + 1;
          continue;
        }
      }
      copy(i++, out);
    }
  }

  // Whether token `i` is the type of a variable that is declared.
  bool declares(size_t i) const {
    if (!is_inexact_type(text(i)) || text(i + 1).empty() || !is_name(text(i + 1))) return false;
    if (text(i + 2) != "=" && text(i + 2) != ";" && text(i + 2) != ",") return false;
    if (i == 0) return true;
    const std::string& before = text(i - 1);
    return before == "{" || before == "}" || before == ";" || before == "const";
  }

  const Dialect& dialect_;
  std::vector<Token> tokens_;
  std::string result_;  // the inexact type that the function at hand returns
};

}  // namespace

bool has_grammar_of_c(const Dialect& dialect) {
  return dialect.has_pointers && dialect.has_prefix_casts && dialect.has_hex_floats && dialect.precise.empty() &&
         dialect.u64_suffix.empty() && dialect.f64_suffix.empty();
}

std::string in_grammar_of(const Dialect& dialect, std::string_view text) {
  return has_grammar_of_c(dialect) ? std::string(text) : Rewriting(dialect, text).run();
}

}  // namespace compute::common
