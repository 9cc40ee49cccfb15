// SPDX-License-Identifier: Apache-2.0
#include "core/expressions/dtype.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <list>
#include <vector>

#include "core/base/error.hpp"
#include "core/process/process_config.hpp"

namespace compute {

static_assert(std::endian::native == std::endian::little, "bit patterns are taken from memory as they are");

namespace {

constexpr auto kBool = DtypeCategory::kBool;
constexpr auto kSigned = DtypeCategory::kSigned;
constexpr auto kUnsigned = DtypeCategory::kUnsigned;
constexpr auto kFloat = DtypeCategory::kFloat;
constexpr auto kComplex = DtypeCategory::kComplex;
constexpr auto kFloat8 = DtypeCategory::kFloat8;
constexpr auto kVendor = DtypeCategory::kVendor;

consteval DtypeCategory category_of(std::string_view text) {
  if (text == "BOOL") return kBool;
  if (text == "SIGNED") return kSigned;
  if (text == "UNSIGNED") return kUnsigned;
  if (text == "FLOAT") return kFloat;
  if (text == "FLOAT8") return kFloat8;
  return kComplex;
}

enum : compute_dtype {
#define COMPUTE_DTYPE(id, name, NAME, size_bytes, category, computed_in, native_name, portable_name) kId_##name = id,
#define COMPUTE_STORED_DTYPE COMPUTE_DTYPE
#include <compute/dtypes.def>
#undef COMPUTE_DTYPE
};

constexpr std::array<DtypeInfo, kDtypeCount> make_table() {
  std::array<DtypeInfo, kDtypeCount> table{};
#define COMPUTE_DTYPE(id, name, NAME, size_bytes, category, computed_in, native_name, portable_name) \
  static_assert(id == COMPUTE_DTYPE_##NAME);                                                         \
  table[id] = {#name, size_bytes, category_of(#category), kId_##computed_in};
#define COMPUTE_STORED_DTYPE COMPUTE_DTYPE
#include <compute/dtypes.def>
#undef COMPUTE_DTYPE
  return table;
}

constexpr std::array<DtypeInfo, kDtypeCount> kTable = make_table();

// ---- Promotion ------------------------------------------------------------------------------------------------------

compute_dtype integer_of(bool is_signed, int32_t size_bytes) {
  for (compute_dtype dtype = 1; dtype < kDtypeCount; ++dtype) {
    if (kTable[dtype].category == (is_signed ? kSigned : kUnsigned) && kTable[dtype].size_bytes == size_bytes)
      return dtype;
  }
  return COMPUTE_DTYPE_NONE;
}

PromotionFault promotion_fault(size_t first, compute_dtype first_dtype, size_t second, compute_dtype second_dtype) {
  PromotionFault fault{static_cast<int32_t>(first), static_cast<int32_t>(second), first_dtype, 0, COMPUTE_DTYPE_NONE};
  if (is_float8(first_dtype) || is_float8(second_dtype)) {
    fault.cast = is_float8(first_dtype) ? fault.first : fault.second;
    fault.target = is_float8(first_dtype) ? second_dtype : first_dtype;
    if (is_float8(fault.target)) fault.target = COMPUTE_DTYPE_FLOAT32;
    return fault;
  }
  // The operand of the lesser kind is the one to cast; of uint64 and a signed integer, uint64.
  const int a = kind_of(first_dtype), b = kind_of(second_dtype);
  const bool cast_first = a != b ? a < b : !is_signed_integer(first_dtype);
  fault.cast = cast_first ? fault.first : fault.second;
  fault.target = a == b ? COMPUTE_DTYPE_INT64 : cast_first ? second_dtype : first_dtype;
  return fault;
}

// What a weak number makes of the strong dtype `strong`; NONE if its kind does not fit.
compute_dtype adapt(compute_dtype strong, compute_dtype weak, bool mixes) {
  if (dtype_info(strong).category == kVendor) return COMPUTE_DTYPE_NONE;
  const int have = kind_of(strong), need = kind_of(weak);
  if (!mixes && (have == 0) != (need == 0)) return COMPUTE_DTYPE_NONE;
  if (need <= have) return strong;
  if (have == 2) return complex_dtype(strong);
  if (!mixes) return COMPUTE_DTYPE_NONE;
  return need == 1 ? weak : need == 2 ? COMPUTE_DTYPE_FLOAT32 : COMPUTE_DTYPE_COMPLEX64;
}

// ---- Values ---------------------------------------------------------------------------------------------------------

// Rounds to nearest even into a format with `mantissa` stored bits and `exponent` bits, from float64's bits.
uint16_t narrow(double value, int mantissa, int exponent) {
  const auto bits = std::bit_cast<uint64_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 63 << 15);
  const int biased = static_cast<int>(bits >> 52 & 0x7ff);
  const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
  const auto infinity = static_cast<uint16_t>(((1 << exponent) - 1) << mantissa);
  if (biased == 0x7ff) {
    if (fraction == 0) return sign | infinity;
    const auto quiet = static_cast<uint16_t>(1 << (mantissa - 1));
    return static_cast<uint16_t>(sign | infinity | quiet | static_cast<uint16_t>(fraction >> (52 - mantissa)));
  }
  if (biased == 0) return sign;  // far below half the least subnormal of either format
  int shift = 52 - mantissa;
  int target = biased - 1023 + (1 << (exponent - 1)) - 1;
  if (target <= 0) {
    shift += 1 - target;
    if (shift > 60) return sign;
  }
  const bool subnormal = shift != 52 - mantissa;
  const uint64_t significand = fraction | uint64_t{1} << 52;
  uint64_t quotient = significand >> shift;
  const uint64_t rest = significand & ((uint64_t{1} << shift) - 1), half = uint64_t{1} << (shift - 1);
  if (rest > half || (rest == half && (quotient & 1))) ++quotient;
  // The implicit bit of a normal number, and a carry out of the rounding, add one to the exponent.
  const uint64_t result = (subnormal ? 0 : static_cast<uint64_t>(target - 1) << mantissa) + quotient;
  return static_cast<uint16_t>(sign | std::min<uint64_t>(result, infinity));
}

// Rounds to nearest even into a float8. `most` is the code of the greatest finite number; larger numbers get the code
// `over`.
uint8_t narrow8(double value, int mantissa, int exponent, uint16_t most, uint8_t over, uint8_t nan) {
  const auto sign = static_cast<uint8_t>(std::signbit(value) ? 0x80 : 0);
  if (std::isnan(value)) return sign | nan;
  const int least = 1 - ((1 << (exponent - 1)) - 1) - mantissa;  // 2^least is the least subnormal
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  if (std::isinf(value)) return sign | over;
  int power = 0;
  std::frexp(magnitude, &power);
  const int unit = std::max(power - 1 - mantissa, least);  // 2^unit is the distance of neighbours
  double count = std::ldexp(magnitude, -unit);
  const double whole = std::floor(count), rest = count - whole;
  count = whole + (rest > 0.5 || (rest == 0.5 && std::fmod(whole, 2) == 1) ? 1 : 0);
  const double code = static_cast<double>((unit - least) << mantissa) + count;
  return static_cast<uint8_t>(sign | (code > most ? over : static_cast<uint8_t>(code)));
}

float widen(uint16_t bits, int mantissa, int exponent) {
  const uint32_t sign = static_cast<uint32_t>(bits >> 15) << 31;
  const uint32_t biased = bits >> mantissa & ((1u << exponent) - 1);
  const uint32_t fraction = bits & ((1u << mantissa) - 1);
  if (biased == (1u << exponent) - 1) return std::bit_cast<float>(sign | 0x7f800000u | fraction << (23 - mantissa));
  const int bias = (1 << (exponent - 1)) - 1;
  const float magnitude = biased == 0 ? std::ldexp(static_cast<float>(fraction), 1 - bias - mantissa)
                                      : std::ldexp(static_cast<float>(fraction | 1u << mantissa),
                                                   static_cast<int>(biased) - bias - mantissa);
  return sign ? -magnitude : magnitude;
}

template <class T>
ScalarBits pack(T value) noexcept {
  ScalarBits bits{};
  std::memcpy(bits.bits, &value, sizeof value);
  return bits;
}

template <class T>
T unpack(const ScalarBits& bits, int offset = 0) noexcept {
  T value;
  std::memcpy(&value, bits.bits + offset, sizeof value);
  return value;
}

template <class T>
T saturate(double value) noexcept {
  if (std::isnan(value)) return 0;
  // The limits as doubles are powers of two or exact, so that values strictly between them convert without overflow.
  constexpr double kLow = static_cast<double>(std::numeric_limits<T>::min());
  const double high = std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (value <= kLow) return std::numeric_limits<T>::min();
  if (value >= high) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

// A magnitude of 64 bits as a double whose further rounding to fewer bits is right: the last bit says if anything was
// lost.
double round_to_odd(uint64_t magnitude) noexcept {
  if (magnitude < uint64_t{1} << 53) return static_cast<double>(magnitude);
  const uint64_t sticky = (magnitude & 0x7ff) != 0;
  return std::ldexp(static_cast<double>(magnitude >> 11 | sticky), 11);
}

ScalarBits from_integer(bool negative, uint64_t magnitude, compute_dtype to) noexcept {
  const uint64_t wrapped = negative ? ~magnitude + 1 : magnitude;
  const double odd = negative ? -round_to_odd(magnitude) : round_to_odd(magnitude);
  switch (to) {
    case COMPUTE_DTYPE_BOOL:
      return pack<uint8_t>(magnitude != 0);
    case COMPUTE_DTYPE_INT8:
    case COMPUTE_DTYPE_UINT8:
      return pack(static_cast<uint8_t>(wrapped));
    case COMPUTE_DTYPE_INT16:
    case COMPUTE_DTYPE_UINT16:
      return pack(static_cast<uint16_t>(wrapped));
    case COMPUTE_DTYPE_INT32:
    case COMPUTE_DTYPE_UINT32:
      return pack(static_cast<uint32_t>(wrapped));
    case COMPUTE_DTYPE_INT64:
    case COMPUTE_DTYPE_UINT64:
      return pack(wrapped);
    case COMPUTE_DTYPE_FLOAT16:
      return pack(double_to_half(odd));
    case COMPUTE_DTYPE_BFLOAT16:
      return pack(double_to_bfloat16(odd));
    case COMPUTE_DTYPE_FLOAT8_E4M3FN:
      return pack(double_to_e4m3fn(odd));
    case COMPUTE_DTYPE_FLOAT8_E5M2:
      return pack(double_to_e5m2(odd));
    case COMPUTE_DTYPE_FLOAT32:
    case COMPUTE_DTYPE_COMPLEX64:
      return pack(static_cast<float>(odd));
    case COMPUTE_DTYPE_FLOAT64:
    case COMPUTE_DTYPE_COMPLEX128:
      return pack(negative ? -static_cast<double>(magnitude) : static_cast<double>(magnitude));
    default:
      return {};
  }
}

}  // namespace

bool is_dtype(compute_dtype dtype) noexcept { return dtype_info(dtype).name != nullptr; }

constinit std::array<DtypeInfo, kDtypeLimit> dtype_table = [] {
  std::array<DtypeInfo, kDtypeLimit> table{};
  std::copy(kTable.begin(), kTable.end(), table.begin());
  return table;
}();

std::string dtype_name(compute_dtype dtype) {
  return is_dtype(dtype) ? dtype_info(dtype).name : "dtype " + std::to_string(dtype);
}

compute_dtype dtype_from_name(std::string_view name) noexcept {
  for (compute_dtype dtype = 1; dtype < kDtypeLimit; ++dtype) {
    if (is_dtype(dtype) && name == dtype_info(dtype).name) return dtype;
  }
  return COMPUTE_DTYPE_NONE;
}

compute_dtype add_vendor_dtype(std::string_view name, int32_t size_bits) {
  const auto refuse = [&](const std::string& why) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "dtype \"" + std::string(name) + "\": " + why);
  };
  if (size_bits < 8 || size_bits > 128 || !std::has_single_bit(static_cast<uint32_t>(size_bits)))
    refuse("its elements have " + std::to_string(size_bits) + " bits, not 8, 16, 32, 64 or 128");
  const int32_t size_bytes = size_bits / 8;
  if (const compute_dtype known = dtype_from_name(name); known != COMPUTE_DTYPE_NONE) {
    if (known < kFirstVendorDtype || dtype_info(known).size_bytes != size_bytes) refuse("the name is in use");
    return known;
  }
  const auto free = std::find_if(dtype_table.begin() + kFirstVendorDtype, dtype_table.end(),
                                 [](const DtypeInfo& entry) { return entry.name == nullptr; });
  if (free == dtype_table.end()) refuse("all numbers are taken");
  const auto dtype = static_cast<compute_dtype>(free - dtype_table.begin());
  static auto& names = *new std::list<std::string>;
  *free = {names.emplace_back(name).c_str(), size_bytes, kVendor, dtype};
  return dtype;
}

bool is_bool(compute_dtype dtype) noexcept { return dtype == COMPUTE_DTYPE_BOOL; }
bool is_integer(compute_dtype dtype) noexcept { return is_signed_integer(dtype) || is_unsigned_integer(dtype); }
bool is_signed_integer(compute_dtype dtype) noexcept { return dtype_info(dtype).category == kSigned; }
bool is_unsigned_integer(compute_dtype dtype) noexcept { return dtype_info(dtype).category == kUnsigned; }
bool is_float(compute_dtype dtype) noexcept { return dtype_info(dtype).category == kFloat; }
bool is_float8(compute_dtype dtype) noexcept { return dtype_info(dtype).category == kFloat8; }

int kind_of(compute_dtype dtype) noexcept {
  switch (dtype_info(dtype).category) {
    case kBool:
      return 0;
    case kSigned:
    case kUnsigned:
      return 1;
    case kFloat:
    case kFloat8:
      return 2;
    default:
      return 3;
  }
}

compute_dtype real_part_dtype(compute_dtype dtype) noexcept {
  if (dtype == COMPUTE_DTYPE_COMPLEX64) return COMPUTE_DTYPE_FLOAT32;
  if (dtype == COMPUTE_DTYPE_COMPLEX128) return COMPUTE_DTYPE_FLOAT64;
  return dtype;
}

compute_dtype complex_dtype(compute_dtype dtype) noexcept {
  if (dtype == COMPUTE_DTYPE_FLOAT64 || dtype == COMPUTE_DTYPE_COMPLEX128) return COMPUTE_DTYPE_COMPLEX128;
  return is_float(dtype) || is_complex(dtype) ? COMPUTE_DTYPE_COMPLEX64 : COMPUTE_DTYPE_NONE;
}

bool in_class(compute_dtype dtype, DtypeClass dtype_class) noexcept {
  switch (dtype_class) {
    case DtypeClass::kAny:
      return is_dtype(dtype);
    case DtypeClass::kBool:
      return is_bool(dtype);
    case DtypeClass::kInteger:
      return is_integer(dtype);
    case DtypeClass::kBits:
      return is_integer(dtype) || is_bool(dtype);
    case DtypeClass::kReal:
      return is_integer(dtype) || is_float(dtype);
    case DtypeClass::kFloat:
      return is_float(dtype);
    case DtypeClass::kComplex:
      return is_complex(dtype);
    case DtypeClass::kInexact:
      return is_float(dtype) || is_complex(dtype);
    case DtypeClass::kNumeric:
      return is_integer(dtype) || is_float(dtype) || is_complex(dtype);
  }
  return false;
}

const char* class_description(DtypeClass dtype_class) noexcept {
  switch (dtype_class) {
    case DtypeClass::kAny:
      return "any dtype";
    case DtypeClass::kBool:
      return "bool";
    case DtypeClass::kInteger:
      return "integer dtypes";
    case DtypeClass::kBits:
      return "integer dtypes and bool";
    case DtypeClass::kReal:
      return "integer and floating-point dtypes";
    case DtypeClass::kFloat:
      return "floating-point dtypes";
    case DtypeClass::kComplex:
      return "complex dtypes";
    case DtypeClass::kInexact:
      return "floating-point and complex dtypes";
    case DtypeClass::kNumeric:
      return "numeric dtypes";
  }
  return "";
}

compute_dtype class_cast_hint(compute_dtype dtype, DtypeClass dtype_class) noexcept {
  if (in_class(dtype, dtype_class)) return dtype;
  if (is_float8(dtype) && in_class(COMPUTE_DTYPE_FLOAT32, dtype_class)) return COMPUTE_DTYPE_FLOAT32;
  switch (dtype_class) {
    case DtypeClass::kBool:
      return COMPUTE_DTYPE_BOOL;
    case DtypeClass::kInteger:
    case DtypeClass::kReal:
    case DtypeClass::kNumeric:
      return is_bool(dtype) ? COMPUTE_DTYPE_UINT8 : COMPUTE_DTYPE_NONE;
    case DtypeClass::kFloat:
    case DtypeClass::kInexact:
      return is_complex(dtype) ? COMPUTE_DTYPE_NONE : COMPUTE_DTYPE_FLOAT32;
    case DtypeClass::kComplex:
      return dtype == COMPUTE_DTYPE_FLOAT64 ? COMPUTE_DTYPE_COMPLEX128 : COMPUTE_DTYPE_COMPLEX64;
    default:
      return COMPUTE_DTYPE_NONE;
  }
}

void set_float8_levels(std::vector<uint32_t>& levels) {
  const auto has = [&](compute_dtype dtype, uint32_t level) {
    const auto i = static_cast<size_t>(dtype);
    return i < levels.size() && (levels[i] & level) != 0;
  };
  const auto computes = [&](compute_dtype dtype) { return has(dtype, COMPUTE_DTYPE_LEVEL_ARITHMETIC); };
  uint32_t level = 0;
  if (has(COMPUTE_DTYPE_UINT8, COMPUTE_DTYPE_LEVEL_STORAGE)) level = COMPUTE_DTYPE_LEVEL_STORAGE;
  if (computes(COMPUTE_DTYPE_UINT8) && computes(COMPUTE_DTYPE_INT32) && computes(COMPUTE_DTYPE_FLOAT32)) {
    level |= COMPUTE_DTYPE_LEVEL_CONVERT;
    if (has(COMPUTE_DTYPE_FLOAT32, COMPUTE_DTYPE_LEVEL_MATMUL)) level |= COMPUTE_DTYPE_LEVEL_MATMUL;
  }
  if (level != 0) levels.resize(std::max<size_t>(levels.size(), kDtypeCount));
  for (size_t i = 0; i < levels.size(); ++i)
    if (is_float8(static_cast<compute_dtype>(i))) levels[i] = level;
}

bool kinds_mix() {
  static const bool mix = setting(SettingId::kPromotion).text != "strict";
  return mix;
}

bool are_of_one_kind(compute_dtype a, compute_dtype b) noexcept {
  return std::min(kind_of(a), 2) == std::min(kind_of(b), 2);
}

compute_dtype promote(compute_dtype a, compute_dtype b) noexcept {
  if (a == b) return a;
  const DtypeInfo &x = dtype_info(a), &y = dtype_info(b);
  if (x.name == nullptr || y.name == nullptr || !are_of_one_kind(a, b)) return COMPUTE_DTYPE_NONE;
  for (const DtypeInfo* info : {&x, &y})
    if (info->category == kVendor || info->category == kFloat8) return COMPUTE_DTYPE_NONE;
  if (is_integer(a)) {
    if (x.category == y.category) return x.size_bytes > y.size_bytes ? a : b;
    const int32_t signed_size = x.category == kSigned ? x.size_bytes : y.size_bytes;
    const int32_t unsigned_size = x.category == kSigned ? y.size_bytes : x.size_bytes;
    return integer_of(true, std::max(signed_size, unsigned_size * 2));
  }
  const bool wide = real_part_dtype(a) == COMPUTE_DTYPE_FLOAT64 || real_part_dtype(b) == COMPUTE_DTYPE_FLOAT64;
  if (is_complex(a) || is_complex(b)) return wide ? COMPUTE_DTYPE_COMPLEX128 : COMPUTE_DTYPE_COMPLEX64;
  return wide ? COMPUTE_DTYPE_FLOAT64 : COMPUTE_DTYPE_FLOAT32;
}

compute_dtype common_dtype(std::span<const PromotionOperand> operands, PromotionFault* fault, bool mixes) noexcept {
  size_t first = operands.size();
  compute_dtype result = COMPUTE_DTYPE_NONE;
  const auto refuse = [&](size_t second) {
    *fault = promotion_fault(first, result, second, operands[second].dtype);
    return COMPUTE_DTYPE_NONE;
  };
  int highest = 0;
  for (const PromotionOperand& x : operands) {
    if (!x.weak) highest = std::max(highest, std::min(kind_of(x.dtype), 2));
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].weak || (mixes && kind_of(operands[i].dtype) < highest)) continue;
    const compute_dtype both = first == operands.size() ? operands[i].dtype : promote(result, operands[i].dtype);
    if (both == COMPUTE_DTYPE_NONE) return refuse(i);
    first = std::min(first, i);
    result = both;
  }
  if (first < operands.size()) {
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!operands[i].weak) continue;
      const compute_dtype adapted = adapt(result, operands[i].dtype, mixes);
      if (adapted == COMPUTE_DTYPE_NONE) return refuse(i);
      result = adapted;
    }
    return result;
  }
  // Only numbers: the highest kind decides.
  first = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    const compute_dtype dtype = operands[i].dtype;
    const int have = kind_of(result), need = kind_of(dtype);
    if (!mixes && i > 0 && (have == 0) != (need == 0)) return refuse(i);
    if (i == 0 || (need > have && have <= 1)) {
      result = dtype;
    } else if (need >= 2 || need == have) {
      const compute_dtype both = promote(result, dtype);
      result = both != COMPUTE_DTYPE_NONE ? both : COMPUTE_DTYPE_INT64;
    }
  }
  return result;
}

const char* promotion_remedy(compute_dtype a, compute_dtype b) noexcept {
  return are_of_one_kind(a, b) ? "" : kMixedRemedy;
}

compute_dtype result_type(std::string_view op, std::span<const PromotionOperand> operands) {
  PromotionFault fault;
  const compute_dtype result = common_dtype(operands, &fault, kinds_mix());
  if (result != COMPUTE_DTYPE_NONE) return result;
  const PromotionOperand& second = operands[static_cast<size_t>(fault.second)];
  const std::string_view name = operands[static_cast<size_t>(fault.cast)].name;
  // A number adapts to float32, which every device has.
  const bool narrows = second.weak && fault.target == COMPUTE_DTYPE_FLOAT64;
  throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, std::string(op) + ": " + dtype_name(fault.first_dtype) + " and " +
                                                  (second.weak ? "the number " : "") + dtype_name(second.dtype) +
                                                  " have no common dtype; cast one of them (cast(" +
                                                  std::string(name.empty() ? "x" : name) + ", " +
                                                  dtype_name(narrows ? COMPUTE_DTYPE_FLOAT32 : fault.target) + "))" +
                                                  promotion_remedy(fault.first_dtype, second.dtype))
      .with_argument(second.argument);
}

compute_dtype dtype_in_class(compute_dtype dtype, DtypeClass wanted, bool mixes) noexcept {
  const bool is_inexact = wanted == DtypeClass::kFloat || wanted == DtypeClass::kInexact;
  return mixes && is_inexact && kind_of(dtype) < 2 ? compute_dtype{COMPUTE_DTYPE_FLOAT32} : dtype;
}

bool scalars_equal(const ScalarBits& a, const ScalarBits& b) noexcept {
  return std::memcmp(a.bits, b.bits, sizeof a.bits) == 0;
}

ScalarBits scalar_from_memory(compute_dtype dtype, const void* value) noexcept {
  ScalarBits bits{};
  std::memcpy(bits.bits, value, static_cast<size_t>(dtype_size(dtype)));
  if (is_bool(dtype)) bits.bits[0] = bits.bits[0] != 0;
  return bits;
}

ScalarBits convert_scalar(const ScalarBits& bits, compute_dtype from, compute_dtype to) noexcept {
  if (from == to) return bits;
  switch (from) {
    case COMPUTE_DTYPE_BOOL:
      return scalar_from_uint64(unpack<uint8_t>(bits) != 0, to);
    case COMPUTE_DTYPE_INT8:
      return scalar_from_int64(unpack<int8_t>(bits), to);
    case COMPUTE_DTYPE_INT16:
      return scalar_from_int64(unpack<int16_t>(bits), to);
    case COMPUTE_DTYPE_INT32:
      return scalar_from_int64(unpack<int32_t>(bits), to);
    case COMPUTE_DTYPE_INT64:
      return scalar_from_int64(unpack<int64_t>(bits), to);
    case COMPUTE_DTYPE_UINT8:
      return scalar_from_uint64(unpack<uint8_t>(bits), to);
    case COMPUTE_DTYPE_UINT16:
      return scalar_from_uint64(unpack<uint16_t>(bits), to);
    case COMPUTE_DTYPE_UINT32:
      return scalar_from_uint64(unpack<uint32_t>(bits), to);
    case COMPUTE_DTYPE_UINT64:
      return scalar_from_uint64(unpack<uint64_t>(bits), to);
    case COMPUTE_DTYPE_FLOAT16:
      return scalar_from_double(half_to_float(unpack<uint16_t>(bits)), to);
    case COMPUTE_DTYPE_BFLOAT16:
      return scalar_from_double(bfloat16_to_float(unpack<uint16_t>(bits)), to);
    case COMPUTE_DTYPE_FLOAT8_E4M3FN:
      return scalar_from_double(e4m3fn_to_float(unpack<uint8_t>(bits)), to);
    case COMPUTE_DTYPE_FLOAT8_E5M2:
      return scalar_from_double(e5m2_to_float(unpack<uint8_t>(bits)), to);
    case COMPUTE_DTYPE_FLOAT32:
      return scalar_from_double(unpack<float>(bits), to);
    case COMPUTE_DTYPE_FLOAT64:
      return scalar_from_double(unpack<double>(bits), to);
    case COMPUTE_DTYPE_COMPLEX64:
      return scalar_from_complex(unpack<float>(bits), unpack<float>(bits, 4), to);
    case COMPUTE_DTYPE_COMPLEX128:
      return scalar_from_complex(unpack<double>(bits), unpack<double>(bits, 8), to);
    default:
      return {};
  }
}

ScalarBits scalar_from_int64(int64_t value, compute_dtype to) noexcept {
  const auto bits = static_cast<uint64_t>(value);
  return from_integer(value < 0, value < 0 ? ~bits + 1 : bits, to);
}

ScalarBits scalar_from_uint64(uint64_t value, compute_dtype to) noexcept { return from_integer(false, value, to); }

ScalarBits scalar_from_double(double value, compute_dtype to) noexcept {
  switch (to) {
    case COMPUTE_DTYPE_BOOL:
      return pack<uint8_t>(value != 0);
    case COMPUTE_DTYPE_INT8:
      return pack(saturate<int8_t>(value));
    case COMPUTE_DTYPE_INT16:
      return pack(saturate<int16_t>(value));
    case COMPUTE_DTYPE_INT32:
      return pack(saturate<int32_t>(value));
    case COMPUTE_DTYPE_INT64:
      return pack(saturate<int64_t>(value));
    case COMPUTE_DTYPE_UINT8:
      return pack(saturate<uint8_t>(value));
    case COMPUTE_DTYPE_UINT16:
      return pack(saturate<uint16_t>(value));
    case COMPUTE_DTYPE_UINT32:
      return pack(saturate<uint32_t>(value));
    case COMPUTE_DTYPE_UINT64:
      return pack(saturate<uint64_t>(value));
    default:
      return scalar_from_complex(value, 0, to);
  }
}

ScalarBits scalar_from_complex(double real, double imaginary, compute_dtype to) noexcept {
  switch (to) {
    case COMPUTE_DTYPE_BOOL:
      return pack<uint8_t>(real != 0 || imaginary != 0);
    case COMPUTE_DTYPE_FLOAT16:
      return pack(double_to_half(real));
    case COMPUTE_DTYPE_BFLOAT16:
      return pack(double_to_bfloat16(real));
    case COMPUTE_DTYPE_FLOAT8_E4M3FN:
      return pack(double_to_e4m3fn(real));
    case COMPUTE_DTYPE_FLOAT8_E5M2:
      return pack(double_to_e5m2(real));
    case COMPUTE_DTYPE_FLOAT32:
      return pack(static_cast<float>(real));
    case COMPUTE_DTYPE_FLOAT64:
      return pack(real);
    case COMPUTE_DTYPE_COMPLEX64:
      return pack(std::array<float, 2>{static_cast<float>(real), static_cast<float>(imaginary)});
    case COMPUTE_DTYPE_COMPLEX128:
      return pack(std::array<double, 2>{real, imaginary});
    default:
      return scalar_from_double(real, to);
  }
}

std::string scalar_text(const ScalarBits& bits, compute_dtype dtype) {
  char text[64];
  const auto put = [&](auto value) { return std::string(text, std::to_chars(text, text + sizeof text, value).ptr); };
  if (is_bool(dtype)) return bits.bits[0] ? "true" : "false";
  if (is_unsigned_integer(dtype)) return put(unpack<uint64_t>(convert_scalar(bits, dtype, COMPUTE_DTYPE_UINT64)));
  if (is_integer(dtype)) return put(unpack<int64_t>(convert_scalar(bits, dtype, COMPUTE_DTYPE_INT64)));
  const bool wide = real_part_dtype(dtype) == COMPUTE_DTYPE_FLOAT64;
  const ScalarBits parts = convert_scalar(bits, dtype, wide ? COMPUTE_DTYPE_COMPLEX128 : COMPUTE_DTYPE_COMPLEX64);
  std::string result = wide ? put(unpack<double>(parts)) : put(unpack<float>(parts));
  if (!is_complex(dtype)) return result;
  const std::string imaginary = wide ? put(unpack<double>(parts, 8)) : put(unpack<float>(parts, 4));
  return result + (imaginary[0] == '-' ? "" : "+") + imaginary + "i";
}

float half_to_float(uint16_t bits) noexcept { return widen(bits, 10, 5); }
uint16_t float_to_half(float value) noexcept { return narrow(value, 10, 5); }
uint16_t double_to_half(double value) noexcept { return narrow(value, 10, 5); }
float bfloat16_to_float(uint16_t bits) noexcept { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
uint16_t float_to_bfloat16(float value) noexcept { return narrow(value, 7, 8); }
uint16_t double_to_bfloat16(double value) noexcept { return narrow(value, 7, 8); }
float e4m3fn_to_float(uint8_t bits) noexcept {
  if ((bits & 0x7f) == 0x7f) return std::copysign(std::numeric_limits<float>::quiet_NaN(), bits & 0x80 ? -1.0f : 1.0f);
  // As float16, whose bias is greater by 8.
  return std::ldexp(half_to_float(static_cast<uint16_t>((bits & 0x80) << 8 | (bits & 0x7f) << 7)), 8);
}
float e5m2_to_float(uint8_t bits) noexcept {
  // The upper byte of a float16; all NaN become the same.
  const bool is_nan = (bits & 0x7f) > 0x7c;
  return half_to_float(static_cast<uint16_t>(is_nan ? (bits & 0x80) << 8 | 0x7e00 : bits << 8));
}
uint8_t double_to_e4m3fn(double value) noexcept { return narrow8(value, 3, 4, 0x7e, 0x7f, 0x7f); }
uint8_t double_to_e5m2(double value) noexcept { return narrow8(value, 2, 5, 0x7b, 0x7c, 0x7e); }

}  // namespace compute
