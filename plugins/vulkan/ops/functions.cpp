// SPDX-License-Identifier: Apache-2.0
// Words in the texts of functions.inc and complex_functions.inc:
//   $T  the type of the class; $R the real type of a complex class; $V the type of pairs of $T
//   $S  signed integers of the size of $T or $R; $L the suffix of its literals
// and the words of CONSTANT and SERIES. Hexadecimal floats become decimal, since GLSL has none.
#include "functions.hpp"

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <vector>

#include "../core.hpp"

namespace vulkan {
namespace {

struct Text {
  std::string_view classes, text;
};
struct Word {
  std::string float32, float64;
};
struct Library {
  std::vector<Text> texts;
  std::map<std::string, std::vector<size_t>, std::less<>> definitions;  // by name: positions in `texts`
  std::map<std::string, Word, std::less<>> words;
};

// Horner's rule, each step one fma.
std::string polynomial(const std::string& variable, std::string_view list) {
  std::vector<std::string> terms;
  std::istringstream in{std::string(list.substr(1, list.size() - 2))};
  for (std::string term; std::getline(in, term, ',');) {
    const size_t first = term.find_first_not_of(" \n"), last = term.find_last_not_of(" \n");
    terms.push_back(term.substr(first, last - first + 1));
  }
  std::string text = terms.back();
  for (size_t i = terms.size() - 1; i-- > 0;) text = "fma(" + text + "," + variable + "," + terms[i] + ")";
  return text;
}

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Calls `visit` with the names q_… that are followed by an opening bracket, without the prefix, and their positions.
template <class F>
void each_call(std::string_view text, F&& visit) {
  for (size_t at = text.find("q_"); at != std::string_view::npos; at = text.find("q_", at + 1)) {
    if (at > 0 && is_name(text[at - 1])) continue;
    size_t end = at;
    while (end < text.size() && is_name(text[end])) ++end;
    if (end < text.size() && (text[end] == '(' || text[end] == '[')) visit(text.substr(at + 2, end - at - 2), at);
  }
}

// Whether the call at `at` is the head of a definition: a type before it, at the beginning of a line.
bool is_definition(std::string_view text, size_t at) {
  const size_t line = text.rfind('\n', at) + 1;
  const std::string_view before = text.substr(line, at - line);
  if (before.empty() || before.front() == ' ' || before.back() != ' ') return false;
  return before.find('(') == std::string_view::npos && before.find('=') == std::string_view::npos;
}

const Library& library() {
  static const Library& all = *[] {
    auto* made = new Library();
#define FUNCTION(classes, text) made->texts.push_back({classes, text});
#define CONSTANT(word, float32, float64) made->words[word] = {float32, float64};
#define SERIES(word, variable, float32, float64) \
  made->words[#word] = {polynomial(#variable, #float32), polynomial(#variable, #float64)};
#include "complex_functions.inc"
#include "functions.inc"
#undef FUNCTION
#undef CONSTANT
#undef SERIES
    for (size_t i = 0; i < made->texts.size(); ++i) {
      const std::string_view text = made->texts[i].text;
      each_call(text, [&](std::string_view name, size_t at) {
        if (is_definition(text, at)) made->definitions[std::string(name)].push_back(i);
      });
    }
    return made;
  }();
  return all;
}

// Literals of C++ as GLSL: hexadecimal floats in decimal, and float64 with its suffix.
std::string literals(const std::string& text, bool wide) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const bool starts = std::isdigit(static_cast<unsigned char>(text[i])) != 0 && (i == 0 || !is_name(text[i - 1]));
    if (!starts) {
      out += text[i++];
      continue;
    }
    size_t end = i;
    while (end < text.size() && (is_name(text[end]) || text[end] == '.' ||
                                 ((text[end] == '-' || text[end] == '+') &&
                                  (text[end - 1] == 'p' || (text[end - 1] == 'e' && text[i + 1] != 'x')))))
      ++end;
    std::string word = text.substr(i, end - i);
    const bool is_hex = word.size() > 1 && word[1] == 'x';
    const bool is_float = is_hex ? word.find('p') != std::string::npos
                                 : word.find('.') != std::string::npos || word.find('e') != std::string::npos;
    if (is_float) {
      bool is_wide = wide;
      if (word.ends_with("lf"))
        word.resize(word.size() - 2), is_wide = true;
      else if (word.back() == 'f')
        word.pop_back(), is_wide = false;
      char buffer[40];
      snprintf(buffer, sizeof buffer, is_wide ? "%.17g" : "%.9g", std::strtod(word.c_str(), nullptr));
      word = buffer;
      if (word.find_first_of(".e") == std::string::npos) word += ".0";
      if (is_wide) word += "lf";
    }
    out += word;
    i = end;
  }
  return out;
}

std::string expand(std::string_view text, char cls) {
  const Library& all = library();
  const bool wide = cls == 'd' || cls == 'z';
  const auto word_of = [&](std::string_view word) -> std::string {
    if (word == "T") {
      switch (cls) {
        case 'i':
          return "int";
        case 'u':
          return "uint";
        case 'l':
          return "int64_t";
        case 'm':
          return "uint64_t";
        case 'f':
          return "float";
        case 'd':
          return "double";
        case 'c':
          return "vec2";
        default:
          return "dvec2";
      }
    }
    if (word == "R") return wide ? "double" : "float";
    if (word == "V") return wide ? "dvec2" : "vec2";
    if (word == "S") return wide ? "int64_t" : "int";
    const auto found = all.words.find(word);
    if (found == all.words.end())
      throw Failure(COMPUTE_ERROR_INTERNAL, "vulkan: unknown word $" + std::string(word) + " in a function");
    return wide ? found->second.float64 : found->second.float32;
  };
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (text[i] != '$') {
      out += text[i++];
      continue;
    }
    size_t end = i + 1;
    while (end < text.size() && is_name(text[end])) ++end;
    const std::string_view word = text.substr(i + 1, end - i - 1);
    if (word == "L")
      out += wide ? "lf" : "f";
    else
      out += word_of(word);
    i = end;
  }
  return literals(out, wide);
}

class FunctionWriter {
 public:
  explicit FunctionWriter(bool has_float64) : has_float64_(has_float64) {}
  std::string text;

  void add(std::string_view name, char cls) {
    const Library& all = library();
    const auto found = all.definitions.find(name);
    if (found == all.definitions.end()) return;
    const char real = cls == 'c' ? 'f' : cls == 'z' ? 'd' : cls;
    const char pair = cls == 'f' ? 'c' : cls == 'd' ? 'z' : cls;
    for (const size_t index : found->second) {
      for (const char candidate : {cls, real, pair, '-'}) {
        if (all.texts[index].classes.find(candidate) == std::string_view::npos) continue;
        add_text(index, candidate);
        break;
      }
    }
    // What float64 and integers of 64 bits serve in other classes.
    if (cls == 'f' || cls == 'd' || cls == 'l' || cls == 'i')
      for (const size_t index : found->second)
        if (all.texts[index].classes == "m") add_text(index, 'm');
  }

 private:
  void add_text(size_t index, char cls) {
    if (!has_float64_ && (cls == 'd' || cls == 'z')) return;
    if (!done_.insert({index, cls}).second) return;
    const std::string_view body = library().texts[index].text;
    each_call(body, [&](std::string_view name, size_t) { add(name, cls); });
    text += expand(body, cls);
  }

  bool has_float64_;
  std::set<std::pair<size_t, char>> done_;
};

}  // namespace

std::string function_id(std::string_view name, char cls) { return std::string(name) + "/" + cls; }

std::string function_texts(const std::set<std::string>& ids, bool has_float64) {
  FunctionWriter writer(has_float64);
  for (const std::string& id : ids) writer.add(std::string_view(id).substr(0, id.size() - 2), id.back());
  return writer.text;
}

}  // namespace vulkan
