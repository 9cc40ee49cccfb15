// SPDX-License-Identifier: Apache-2.0
#include "accumulator.hpp"

#include "types.hpp"

namespace vulkan {

std::string identity_text(std::string_view kind, int32_t dtype) {
  const char c = class_of(dtype);
  const int bits = bits_of(dtype);
  if (kind == "all") return "true";
  if (kind == "any") return "false";
  if (kind == "sum") {  // a sum of values that are all -0 is -0
    if (c == 'f') return "uintBitsToFloat(0x80000000u)";
    if (c == 'd') return "packDouble2x32(uvec2(0u,0x80000000u))";
    return type_of(dtype) + "(0)";
  }
  if (kind == "prod") return is_complex(c) ? type_of(dtype) + "(1,0)" : type_of(dtype) + "(1)";
  const bool is_min = kind == "min";
  switch (c) {
    case 'f':
      return is_min ? "uintBitsToFloat(0x7f800000u)" : "uintBitsToFloat(0xff800000u)";
    case 'd':
      return is_min ? "packDouble2x32(uvec2(0u,0x7ff00000u))" : "packDouble2x32(uvec2(0u,0xfff00000u))";
    case 'i': {
      const std::string most = std::to_string((int64_t{1} << (bits - 1)) - 1);
      return is_min ? most : "(-" + most + "-1)";
    }
    case 'u':
      return is_min ? std::to_string((uint64_t{1} << bits) - 1) + "u" : "0u";
    case 'l':
      return is_min ? "0x7fffffffffffffffl" : "int64_t(0x8000000000000000ul)";
    case 'm':
      return is_min ? "0xfffffffffffffffful" : "0ul";
    default:
      return is_min ? "true" : "false";
  }
}

Accumulator::Accumulator(Source& source, std::string_view kind, int32_t dtype, bool compensates)
    : source_(source),
      kind_(kind),
      dtype_(dtype),
      is_compensated_(compensates && kind == "sum" && !is_integer(class_of(dtype)) && class_of(dtype) != 'b'),
      is_complex_(vulkan::is_complex(class_of(dtype))) {
  if (!is_compensated_) {
    types_ = {type_of(dtype)};
    dtypes_ = {dtype};
    identities_ = {identity_text(kind, dtype)};
    return;
  }
  const bool wide = needs_float64(dtype);
  const int32_t real = wide ? COMPUTE_DTYPE_FLOAT64 : COMPUTE_DTYPE_FLOAT32;
  types_.assign(is_complex_ ? 4 : 2, type_of(real));
  dtypes_.assign(types_.size(), real);
  for (size_t i = 0; i < types_.size(); i += 2) {
    identities_.push_back(identity_text("sum", real));
    identities_.push_back(type_of(real) + "(0)");
  }
  source_.use("add", wide ? 'd' : 'f');
}

std::vector<std::string> Accumulator::names(const std::string& name) const {
  std::vector<std::string> all;
  for (size_t i = 0; i < parts(); ++i) all.push_back(name + std::to_string(i));
  return all;
}

std::string Accumulator::declare(const std::string& name) const {
  std::string text;
  for (size_t i = 0; i < parts(); ++i) text += types_[i] + " " + name + std::to_string(i) + "=" + identities_[i] + ";";
  return text;
}

std::string Accumulator::add(const std::string& name, const std::string& value) const {
  if (!is_compensated_) return merge(name, {value});
  if (!is_complex_) return "q_add(" + name + "0," + name + "1," + value + ");";
  return "q_add(" + name + "0," + name + "1,(" + value + ").x);q_add(" + name + "2," + name + "3,(" + value + ").y);";
}

std::string Accumulator::merge(const std::string& name, const std::vector<std::string>& other) const {
  std::string text;
  if (!is_compensated_) {
    const std::string first = name + "0";
    return first + "=" + combined(first, other[0]) + ";";
  }
  for (size_t i = 0; i < parts(); i += 2) {
    const std::string s = name + std::to_string(i), c = name + std::to_string(i + 1);
    text += "q_add(" + s + "," + c + "," + other[i] + ");" + c + "+=" + other[i + 1] + ";";
  }
  return text;
}

std::string Accumulator::combined(const std::string& a, const std::string& b) const {
  if (kind_ == "prod" && is_complex_) return source_.use("cproduct", class_of(dtype_)) + "(" + a + "," + b + ")";
  return source_.combine(kind_, dtype_, a, b);
}

std::string Accumulator::combine_array(const std::string& v, int length) const {
  const auto at = [&](int i) { return v + "[" + std::to_string(i) + "]"; };
  std::string text;
  for (int half = length / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) text += at(i) + "=" + combined(at(i), at(i + half)) + ";";
  return text + "\n";
}

std::string Accumulator::assign(const std::string& name, const std::vector<std::string>& other) const {
  std::string text;
  for (size_t i = 0; i < parts(); ++i) text += name + std::to_string(i) + "=" + other[i] + ";";
  return text;
}

std::string Accumulator::result(const std::string& name) const {
  if (!is_compensated_) return name + "0";
  if (!is_complex_) return "q_total(" + name + "0," + name + "1)";
  return type_of(dtype_) + "(q_total(" + name + "0," + name + "1),q_total(" + name + "2," + name + "3))";
}

}  // namespace vulkan
