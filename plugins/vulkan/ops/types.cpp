// SPDX-License-Identifier: Apache-2.0
#include "types.hpp"

#include <compute/plugin.h>

#include "../core.hpp"

namespace vulkan {

char class_of(int32_t dtype) { return " biiiluuumhhfdcz"[dtype]; }

int bits_of(int32_t dtype) {
  static constexpr int kBits[] = {0, 8, 8, 16, 32, 64, 8, 16, 32, 64, 16, 16, 32, 64, 64, 128};
  return kBits[dtype];
}

bool needs_float64(int32_t dtype) { return dtype == COMPUTE_DTYPE_FLOAT64 || dtype == COMPUTE_DTYPE_COMPLEX128; }

std::string type_of(int32_t dtype) {
  switch (class_of(dtype)) {
    case 'b':
      return "bool";
    case 'i':
      return "int";
    case 'u':
    case 'h':
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

std::string wrapped(int32_t dtype, const std::string& value) {
  const int bits = bits_of(dtype);
  if (class_of(dtype) == 'i' && bits < 32) return "bitfieldExtract(int(" + value + "),0," + std::to_string(bits) + ")";
  if (class_of(dtype) == 'u' && bits < 32) return "((" + value + ")&" + (bits == 8 ? "255u" : "65535u") + ")";
  return "(" + value + ")";
}

std::string bits_from(int32_t dtype, const std::string& value) {
  switch (class_of(dtype)) {
    case 'b':
      return "uint(" + value + ")";
    case 'i':
      if (bits_of(dtype) == 32) return "uint(" + value + ")";
      return "(uint(" + value + ")&" + (bits_of(dtype) == 8 ? "255u" : "65535u") + ")";
    case 'u':
    case 'h':
    case 'm':
      return "(" + value + ")";
    case 'l':
      return "uint64_t(" + value + ")";
    case 'f':
      return "floatBitsToUint(" + value + ")";
    case 'd':
      return "packUint2x32(unpackDouble2x32(" + value + "))";
    case 'c':
      return "packUint2x32(floatBitsToUint(" + value + "))";
  }
  throw Failure(COMPUTE_ERROR_INTERNAL, "vulkan: bits of complex128");
}

std::string value_from(int32_t dtype, const std::string& bits) {
  switch (class_of(dtype)) {
    case 'b':
      return "((" + bits + ")!=0u)";
    case 'i':
      return wrapped(dtype, "int(" + bits + ")");
    case 'u':
      return wrapped(dtype, bits);
    case 'h':
      return "((" + bits + ")&65535u)";
    case 'm':
      return "(" + bits + ")";
    case 'l':
      return "int64_t(" + bits + ")";
    case 'f':
      return "uintBitsToFloat(" + bits + ")";
    case 'd':
      return "packDouble2x32(unpackUint2x32(" + bits + "))";
    case 'c':
      return "uintBitsToFloat(unpackUint2x32(" + bits + "))";
  }
  throw Failure(COMPUTE_ERROR_INTERNAL, "vulkan: bits of complex128");
}

std::string load(int32_t dtype, const std::string& a, char block) {
  const std::string b(1, block);
  switch (bits_of(dtype)) {
    case 8:
      return value_from(dtype, "uint(" + b + "8(" + a + ").v)");
    case 16:
      return value_from(dtype, "uint(" + b + "16(" + a + ").v)");
    case 32:
      return value_from(dtype, b + "32(" + a + ").v");
    case 64:
      // Complex numbers are aligned to their parts.
      if (class_of(dtype) == 'c')
        return "uintBitsToFloat(uvec2(" + b + "32(" + a + ").v," + b + "32((" + a + ")+4ul).v))";
      return value_from(dtype, b + "64(" + a + ").v");
    default:
      break;
  }
  const auto part = [&](const char* offset) {
    return "packDouble2x32(unpackUint2x32(" + b + "64((" + a + ")" + offset + ").v))";
  };
  return "dvec2(" + part("") + "," + part("+8ul") + ")";
}

std::string store(int32_t dtype, const std::string& a, const std::string& value, char block) {
  const std::string b(1, block);
  switch (bits_of(dtype)) {
    case 8:
      return b + "8(" + a + ").v=uint8_t(" + bits_from(dtype, value) + ");";
    case 16:
      return b + "16(" + a + ").v=uint16_t(" + bits_from(dtype, value) + ");";
    case 32:
      return b + "32(" + a + ").v=" + bits_from(dtype, value) + ";";
    case 64:
      if (class_of(dtype) == 'c')
        return "{uvec2 q=floatBitsToUint(" + value + ");" + b + "32(" + a + ").v=q.x;" + b + "32((" + a +
               ")+4ul).v=q.y;}";
      return b + "64(" + a + ").v=" + bits_from(dtype, value) + ";";
    default:
      break;
  }
  return "{dvec2 q=" + value + ";" + b + "64(" + a + ").v=packUint2x32(unpackDouble2x32(q.x));" + b + "64((" + a +
         ")+8ul).v=packUint2x32(unpackDouble2x32(q.y));}";
}

int words_of_run(int32_t dtype) { return bits_of(dtype) / 8; }

std::string load_run(int32_t dtype, const std::string& w, const std::string& a) {
  switch (bits_of(dtype)) {
    case 8:
      return w + "[0]=B32(" + a + ").v;";
    case 16:
      return "{uvec2 q=W2(" + a + ").v;" + w + "[0]=q.x;" + w + "[1]=q.y;}";
    default:
      break;
  }
  std::string text = "{";
  for (int i = 0; i < bits_of(dtype) / 32; ++i) {
    const std::string q = "q" + std::to_string(i);
    text += "uvec4 " + q + "=W4((" + a + ")+" + std::to_string(16 * i) + "ul).v;";
    for (int k = 0; k < 4; ++k) text += w + "[" + std::to_string(4 * i + k) + "]=" + q + "[" + std::to_string(k) + "];";
  }
  return text + "}";
}

std::string store_run(int32_t dtype, const std::string& w, const std::string& a) {
  switch (bits_of(dtype)) {
    case 8:
      return "B32(" + a + ").v=" + w + "[0];";
    case 16:
      return "W2(" + a + ").v=uvec2(" + w + "[0]," + w + "[1]);";
    default:
      break;
  }
  std::string text;
  for (int i = 0; i < bits_of(dtype) / 32; ++i) {
    text += "W4((" + a + ")+" + std::to_string(16 * i) + "ul).v=uvec4(";
    for (int k = 0; k < 4; ++k) text += (k > 0 ? "," : "") + w + "[" + std::to_string(4 * i + k) + "]";
    text += ");";
  }
  return text;
}

std::string from_run(int32_t dtype, const std::string& w, const std::string& k) {
  switch (bits_of(dtype)) {
    case 8:
      return value_from(dtype, "bitfieldExtract(" + w + "[0],8*" + k + ",8)");
    case 16:
      return value_from(dtype, "bitfieldExtract(" + w + "[" + k + ">>1],16*(" + k + "&1),16)");
    case 32:
      return value_from(dtype, w + "[" + k + "]");
    default:
      return value_from(dtype, "packUint2x32(uvec2(" + w + "[2*" + k + "]," + w + "[2*" + k + "+1]))");
  }
}

std::string to_run(int32_t dtype, const std::string& w, const std::string& k, const std::string& value) {
  const std::string bits = bits_from(dtype, value);
  switch (bits_of(dtype)) {
    case 8:
      return w + "[0]=bitfieldInsert(" + w + "[0]," + bits + ",8*" + k + ",8);";
    case 16:
      return w + "[" + k + ">>1]=bitfieldInsert(" + w + "[" + k + ">>1]," + bits + ",16*(" + k + "&1),16);";
    case 32:
      return w + "[" + k + "]=" + bits + ";";
    default:
      return "{uvec2 q=unpackUint2x32(" + bits + ");" + w + "[2*" + k + "]=q.x;" + w + "[2*" + k + "+1]=q.y;}";
  }
}

}  // namespace vulkan
