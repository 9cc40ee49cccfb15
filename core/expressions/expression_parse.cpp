// SPDX-License-Identifier: Apache-2.0
// The parser of expressions: precedence climbing over a grammar that docs/expressions.md describes.
#include <algorithm>
#include <charconv>
#include <limits>

#include "core/base/error.hpp"
#include "core/expressions/expression.hpp"
#include "core/expressions/expression_template.hpp"
#include "core/text/ascii.hpp"
#include "core/text/nearest_name.hpp"
#include "core/text/printable.hpp"

namespace compute {

namespace {

constexpr bool is_name_start(char c) { return is_letter(c) || c == '_'; }
constexpr bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }

bool is_name(std::string_view text) {
  return !text.empty() && is_name_start(text[0]) && std::all_of(text.begin(), text.end(), is_name_part);
}

struct Operator {
  std::string_view text;
  int precedence;
  int32_t intrinsic;
};

// Longer spellings come before their prefixes. `**` binds tighter than a sign and is read with the operand that it
// follows.
constexpr int kComparison = 1;
constexpr Operator kOperators[] = {
    {"==", kComparison, COMPUTE_PLUGIN_INTRINSIC_EQ}, {"!=", kComparison, COMPUTE_PLUGIN_INTRINSIC_NE},
    {"<<", 5, COMPUTE_PLUGIN_INTRINSIC_SHL},          {">>", 5, COMPUTE_PLUGIN_INTRINSIC_SHR},
    {"<=", kComparison, COMPUTE_PLUGIN_INTRINSIC_LE}, {">=", kComparison, COMPUTE_PLUGIN_INTRINSIC_GE},
    {"<", kComparison, COMPUTE_PLUGIN_INTRINSIC_LT},  {">", kComparison, COMPUTE_PLUGIN_INTRINSIC_GT},
    {"|", 2, COMPUTE_PLUGIN_INTRINSIC_BIT_OR},        {"^", 3, COMPUTE_PLUGIN_INTRINSIC_BIT_XOR},
    {"&", 4, COMPUTE_PLUGIN_INTRINSIC_BIT_AND},       {"+", 6, COMPUTE_PLUGIN_INTRINSIC_ADD},
    {"-", 6, COMPUTE_PLUGIN_INTRINSIC_SUB},           {"//", 7, COMPUTE_PLUGIN_INTRINSIC_FLOOR_DIV},
    {"*", 7, COMPUTE_PLUGIN_INTRINSIC_MUL},           {"/", 7, COMPUTE_PLUGIN_INTRINSIC_DIV},
    {"%", 7, COMPUTE_PLUGIN_INTRINSIC_MOD},
};

class Parser {
 public:
  explicit Parser(ExpressionTemplateData& data) : data_(data), text_(data.text) {}

  void run() {
    do {
      if (definition()) continue;
      if (data_.outputs.size() == kMaxExpressionOutputs) {
        fault(position_, "more than " + std::to_string(kMaxExpressionOutputs) + " outputs");
      }
      data_.outputs.push_back(binary(kComparison));
    } while (accept(";"));
    if (position_ < size()) fault(position_, "unexpected '" + character() + "'");
    if (data_.outputs.empty()) fault(position_, "there is no output");
  }

 private:
  [[noreturn]] void fault(int32_t position, const std::string& what) const {
    throw_expression_fault("expression", text_, position, what);
  }

  int32_t size() const { return static_cast<int32_t>(text_.size()); }
  size_t at() const { return static_cast<size_t>(position_); }

  // The character at the position, with all of its bytes.
  std::string character() const { return printable(first_character(text_.substr(at()))); }

  void skip_blanks() {
    while (position_ < size() && std::string_view(" \t\r\n").find(text_[at()]) != std::string_view::npos) ++position_;
  }

  bool accept(std::string_view token) {
    skip_blanks();
    if (text_.substr(at(), token.size()) != token) return false;
    position_ += static_cast<int32_t>(token.size());
    return true;
  }

  void expect(std::string_view token, std::string_view after) {
    if (accept(token)) return;
    fault(position_, "expected '" + std::string(token) + "' after " + std::string(after));
  }

  // The parenthesis that closes `opened`, which is at `begin`.
  void expect_closing(const std::string& opened, int32_t begin) {
    if (accept(")")) return;
    const size_t column = column_of(text_, static_cast<size_t>(begin));
    fault(position_, "expected ')' to close '" + opened + "' at column " + std::to_string(column));
  }

  int32_t add(TemplateNode node, int32_t begin) {
    if (data_.nodes.size() == kMaxExpressionNodes) {
      fault(begin, "more than " + std::to_string(kMaxExpressionNodes) + " operations");
    }
    node.begin = begin;
    node.end = position_;
    data_.nodes.push_back(node);
    return static_cast<int32_t>(data_.nodes.size()) - 1;
  }

  int32_t begin_of(int32_t node) const { return data_.nodes[static_cast<size_t>(node)].begin; }

  int32_t call(int32_t intrinsic, std::initializer_list<int32_t> operands, int32_t begin) {
    TemplateNode node{TemplateKind::kCall};
    node.value = intrinsic;
    for (const int32_t operand : operands) node.operands[node.operand_count++] = operand;
    return add(node, begin);
  }

  // "h = x * y": a name for a value, in later statements.
  bool definition() {
    skip_blanks();
    const int32_t begin = position_;
    if (position_ == size() || !is_name_start(text_[at()])) return false;
    const std::string name(identifier());
    skip_blanks();
    if (text_.substr(at(), 1) != "=" || text_.substr(at(), 2) == "==") {
      position_ = begin;
      return false;
    }
    ++position_;
    const bool is_taken = std::ranges::find(data_.leaf_names, name) != data_.leaf_names.end() ||
                          std::ranges::find(locals_, name, &Local::name) != locals_.end();
    if (is_taken) fault(begin, in_quotes(name) + " has a value already");
    // Functions that are newer than 1.0 leave their names free: "(" tells them apart.
    const IntrinsicInfo* function = find_intrinsic(name);
    if (name == "true" || name == "false" || name == "inf" || name == "nan" || name == "index" ||
        (function != nullptr && !function->composed))
      fault(begin, in_quotes(name) + " is not a free name");
    const int32_t node = binary(kComparison);
    locals_.push_back({name, node});
    return true;
  }

  // A literal is copied, because a preceding sign changes it.
  int32_t local(int32_t node, int32_t begin) {
    const TemplateKind kind = data_.nodes[static_cast<size_t>(node)].kind;
    if (kind != TemplateKind::kInteger && kind != TemplateKind::kReal) return node;
    return add(TemplateNode(data_.nodes[static_cast<size_t>(node)]), begin);
  }

  // Counts nesting, in unary(), which every way down passes: the parser's recursion is the only one over an
  // expression's depth.
  struct Deeper {
    explicit Deeper(Parser& parser) : parser(parser) {
      if (++parser.depth_ > kMaxExpressionDepth) {
        parser.fault(parser.position_, "nested more than " + std::to_string(kMaxExpressionDepth) + " levels deep");
      }
    }
    ~Deeper() { --parser.depth_; }
    Parser& parser;
  };

  const Operator* next_operator() {
    skip_blanks();
    for (const Operator& op : kOperators) {
      if (text_.substr(at(), op.text.size()) == op.text && text_.substr(at(), 2) != "**") return &op;
    }
    return nullptr;
  }

  int32_t binary(int least_precedence) {
    int32_t left = unary();
    bool compared = false;
    while (const Operator* op = next_operator()) {
      if (op->precedence < least_precedence) break;
      if (op->precedence == kComparison) {
        if (compared)
          fault(position_, "comparisons cannot be chained; put each in parentheses and combine them with &");
        compared = true;
      }
      position_ += static_cast<int32_t>(op->text.size());
      const int32_t right = binary(op->precedence + 1);
      left = call(op->intrinsic, {left, right}, begin_of(left));
    }
    return left;
  }

  int32_t unary() {
    const Deeper deeper(*this);
    skip_blanks();
    const int32_t begin = position_;
    if (accept("~")) return call(COMPUTE_PLUGIN_INTRINSIC_BIT_NOT, {unary()}, begin);
    if (!accept("-")) return power();
    const int32_t operand = unary();
    TemplateNode& node = data_.nodes[static_cast<size_t>(operand)];
    // A sign makes a literal of a literal, so that -128 is an int8.
    if (node.kind == TemplateKind::kInteger || node.kind == TemplateKind::kReal) {
      node.negative = !node.negative;
      node.real = -node.real;
      node.real32 = -node.real32;
      node.begin = begin;
      return operand;
    }
    return call(COMPUTE_PLUGIN_INTRINSIC_NEG, {operand}, begin);
  }

  int32_t power() {
    const int32_t base = primary();
    if (!accept("**")) return base;
    const int32_t exponent = unary();
    return call(COMPUTE_PLUGIN_INTRINSIC_POW, {base, exponent}, begin_of(base));
  }

  int32_t primary() {
    skip_blanks();
    if (position_ == size()) fault(position_, "an operand is missing");
    const char c = text_[at()];
    if (is_digit(c) || c == '.') return number();
    if (is_name_start(c)) return name();
    if (accept("(")) {
      const int32_t begin = position_ - 1;
      const int32_t node = binary(kComparison);
      expect_closing("(", begin);
      data_.nodes[static_cast<size_t>(node)].begin = begin;
      data_.nodes[static_cast<size_t>(node)].end = position_;
      return node;
    }
    fault(position_, "expected an operand, not '" + character() + "'");
  }

  int32_t number() {
    const int32_t begin = position_;
    const char* first = text_.data() + begin;
    const char* last = text_.data() + size();
    TemplateNode node{TemplateKind::kInteger};
    const bool hexadecimal = text_.substr(at(), 2) == "0x";
    std::from_chars_result result{};
    if (hexadecimal) {
      result = std::from_chars(first + 2, last, node.magnitude, 16);
    } else {
      // Text that is not entirely an integer is a real number.
      result = std::from_chars(first, last, node.magnitude);
      const bool real = result.ptr != last && (*result.ptr == '.' || *result.ptr == 'e' || *result.ptr == 'E');
      if (real || result.ec == std::errc::invalid_argument) {
        node.kind = TemplateKind::kReal;
        result = std::from_chars(first, last, node.real);
        if (std::from_chars(first, last, node.real32).ec != std::errc()) node.real32 = static_cast<float>(node.real);
      }
    }
    if (result.ec == std::errc::result_out_of_range) fault(begin, "number out of range");
    if (result.ec != std::errc() || (result.ptr != last && (is_name_part(*result.ptr) || *result.ptr == '.'))) {
      fault(begin, "malformed number");
    }
    position_ = static_cast<int32_t>(result.ptr - text_.data());
    return add(node, begin);
  }

  std::string_view identifier() {
    const size_t begin = at();
    while (position_ < size() && is_name_part(text_[at()])) ++position_;
    return text_.substr(begin, at() - begin);
  }

  int32_t name() {
    const int32_t begin = position_;
    const std::string_view word = identifier();
    if (accept("(")) return function(word, begin);
    for (size_t i = 0; i < data_.leaf_names.size(); ++i) {
      if (word == data_.leaf_names[i]) {
        TemplateNode node{TemplateKind::kLeaf};
        node.value = static_cast<int32_t>(i);
        return add(node, begin);
      }
    }
    if (const auto found = std::ranges::find(locals_, word, &Local::name); found != locals_.end())
      return local(found->node, begin);
    if (word == "true" || word == "false") {
      TemplateNode node{TemplateKind::kBool};
      node.value = word == "true";
      return add(node, begin);
    }
    if (word == "inf" || word == "nan") {
      TemplateNode node{TemplateKind::kReal};
      node.real = word == "inf" ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
      node.real32 = static_cast<float>(node.real);
      return add(node, begin);
    }
    if (find_intrinsic(word) != nullptr) fault(position_, "expected '(' after " + std::string(word));
    std::vector<std::string> known = data_.leaf_names;
    for (const Local& local : locals_) known.push_back(local.name);
    fault(begin, "unknown name " + in_quotes(word) + did_you_mean(word, known));
  }

  int32_t function(std::string_view word, int32_t begin) {
    if (word == "index") return index(begin);
    const IntrinsicInfo* info = find_intrinsic(word);
    if (info == nullptr) {
      std::vector<std::string> known{"index"};
      for (const IntrinsicInfo& x : intrinsics()) known.emplace_back(x.name);
      fault(begin, "unknown function " + in_quotes(word) + did_you_mean(word, known));
    }
    TemplateNode node{TemplateKind::kCall};
    node.value = info->id;
    while (true) {
      node.operands[node.operand_count++] = binary(kComparison);
      if (node.operand_count == info->arity) break;
      if (!accept(",")) wrong_arity(*info, begin, node.operand_count);
    }
    if (info->result == IntrinsicResult::kNode) {
      expect(",", "the operand");
      node.target = dtype();
    }
    if (accept(",")) wrong_arity(*info, begin, info->arity + 1);
    expect_closing(std::string(word) + "(", begin);
    return add(node, begin);
  }

  [[noreturn]] void wrong_arity(const IntrinsicInfo& info, int32_t begin, int32_t given) const {
    const bool typed = info.result == IntrinsicResult::kNode;
    const std::string takes =
        typed ? "one operand and a dtype" : std::to_string(info.arity) + (info.arity == 1 ? " argument" : " arguments");
    fault(begin, std::string(info.name) + " takes " + takes +
                     (given > info.arity ? ", but more were given" : ", not " + std::to_string(given)));
  }

  compute_dtype dtype() {
    skip_blanks();
    const int32_t begin = position_;
    const std::string_view word = identifier();
    const compute_dtype dtype = dtype_from_name(word);
    if (dtype != COMPUTE_DTYPE_NONE) return dtype;
    std::vector<std::string> known;
    for (compute_dtype d = 1; d < kDtypeCount; ++d) known.push_back(dtype_name(d));
    fault(begin, word.empty() ? "expected a dtype" : "unknown dtype " + in_quotes(word) + did_you_mean(word, known));
  }

  int32_t index(int32_t begin) {
    skip_blanks();
    const int32_t at_axis = position_;
    int32_t axis = -1;
    const char* first = text_.data() + position_;
    const auto result = std::from_chars(first, text_.data() + size(), axis);
    if (result.ec != std::errc() || axis < 0 || axis >= COMPUTE_MAX_RANK) {
      fault(at_axis, "index takes an axis from 0 to " + std::to_string(COMPUTE_MAX_RANK - 1));
    }
    position_ += static_cast<int32_t>(result.ptr - first);
    expect_closing("index(", begin);
    data_.max_index_axis = std::max(data_.max_index_axis, axis);
    TemplateNode node{TemplateKind::kIndex};
    node.value = axis;
    return add(node, begin);
  }

  struct Local {
    std::string name;
    int32_t node;
  };

  ExpressionTemplateData& data_;
  const std::string_view text_;
  std::vector<Local> locals_;
  int32_t position_ = 0;
  int32_t depth_ = 0;
};

}  // namespace

void throw_expression_fault(std::string_view op, std::string_view text, int32_t position, const std::string& what) {
  const auto at = static_cast<size_t>(position);
  throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
              std::string(op) + ", column " + std::to_string(column_of(text, at)) + ": " + what + with_caret(text, at));
}

ExpressionTemplate parse(std::string_view text, std::span<const std::string_view> input_names,
                         std::span<const std::string_view> scalar_names) {
  if (static_cast<int64_t>(text.size()) > kMaxExpressionText) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "expression: the text is " + std::to_string(text.size()) +
                                                    " bytes long; the limit is " + std::to_string(kMaxExpressionText));
  }
  auto data = std::make_shared<ExpressionTemplateData>();
  data->text = text;
  data->input_count = static_cast<int32_t>(input_names.size());
  data->scalar_count = static_cast<int32_t>(scalar_names.size());
  for (const auto& names : {input_names, scalar_names}) {
    for (const std::string_view name : names) {
      const auto& known = data->leaf_names;
      const char* fault = !is_name(name)                                               ? "is not a valid name"
                          : name == "true" || name == "false"                          ? "is a literal, not a name"
                          : std::find(known.begin(), known.end(), name) != known.end() ? "is given twice"
                                                                                       : nullptr;
      if (fault != nullptr) {
        throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "expression: " + in_quotes(name) + " " + fault);
      }
      data->leaf_names.emplace_back(name);
    }
  }
  Parser(*data).run();
  return ExpressionTemplate(std::move(data));
}

const std::string& ExpressionTemplate::text() const noexcept { return data_->text; }
int32_t ExpressionTemplate::input_count() const noexcept { return data_->input_count; }
int32_t ExpressionTemplate::scalar_count() const noexcept { return data_->scalar_count; }
int32_t ExpressionTemplate::output_count() const noexcept { return static_cast<int32_t>(data_->outputs.size()); }
int32_t ExpressionTemplate::max_index_axis() const noexcept { return data_->max_index_axis; }

}  // namespace compute
