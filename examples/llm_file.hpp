// SPDX-License-Identifier: Apache-2.0
// Models in GGUF files, by memory map, with their quantised weights in the layout of the op quantized_matmul.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

namespace llm {

/// What is wrong with a model's file.
struct ModelError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class... Parts>
std::string cat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

// ---- Files ----------------------------------------------------------------------------------------------------------

/// A file in memory, as long as this object.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat facts = {};
    if (file < 0 || fstat(file, &facts) != 0) {
      const std::error_code reason(errno, std::generic_category());
      if (file >= 0) close(file);
      throw ModelError(reason.message());
    }
    size_ = static_cast<size_t>(facts.st_size);
    void* const data = size_ > 0 ? mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0) : nullptr;
    close(file);
    if (data == MAP_FAILED) throw ModelError("it cannot be mapped into memory");
    data_ = static_cast<const uint8_t*>(data);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (data_ != nullptr) munmap(const_cast<uint8_t*>(data_), size_);
  }
  [[nodiscard]] std::span<const uint8_t> bytes() const { return {data_, size_}; }

 private:
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

/// A fact of a file: numbers or texts, of which a list has several.
struct Fact {
  std::vector<double> numbers;
  std::vector<std::string> texts;
};

/// A tensor of a file. Rows have k numbers.
struct FileTensor {
  std::string name;
  uint32_t kind = 0;
  std::vector<int64_t> shape;
  std::span<const uint8_t> bytes;
};

struct BlockForm {
  int64_t numbers, size_bytes;
};
// Of a quantised type; plain types are blocks of one number.
inline std::optional<BlockForm> form_of(uint32_t kind) {
  switch (kind) {
    case 0:
      return BlockForm{1, 4};
    case 1:
    case 30:
      return BlockForm{1, 2};
    case 2:
      return BlockForm{32, 18};
    case 3:
      return BlockForm{32, 20};
    case 8:
      return BlockForm{32, 34};
    case 12:
      return BlockForm{256, 144};
    case 14:
      return BlockForm{256, 210};
    default:
      return std::nullopt;
  }
}
inline bool is_plain(uint32_t kind) { return form_of(kind)->numbers == 1; }

/// The facts and the tensors of a GGUF file.
class Gguf {
 public:
  explicit Gguf(const std::string& path) : file_(path) {
    const std::span<const uint8_t> all = file_.bytes();
    if (all.size() < 4 || std::memcmp(all.data(), "GGUF", 4) != 0)
      throw ModelError("it does not begin with GGUF; give a GGUF file");
    at_ = 4;
    const auto version = read<uint32_t>();
    if (version != 2 && version != 3)
      throw ModelError(cat("version ", version, " of GGUF is unknown; 2 and 3 are read"));
    const auto tensors = read<uint64_t>(), facts = read<uint64_t>();
    for (uint64_t i = 0; i < facts; ++i) {
      const std::string name = text();
      const auto kind = read<uint32_t>();
      facts_[name] = value(kind);
    }
    std::vector<std::pair<FileTensor, uint64_t>> infos;
    for (uint64_t i = 0; i < tensors; ++i) {
      FileTensor tensor;
      tensor.name = text();
      const auto rank = read<uint32_t>();
      if (rank > 8) broken();
      for (uint32_t axis = 0; axis < rank; ++axis)
        tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(read<uint64_t>()));
      tensor.kind = read<uint32_t>();
      const auto offset = read<uint64_t>();
      infos.emplace_back(std::move(tensor), offset);
    }
    const auto align = static_cast<uint64_t>(number("general.alignment", 32));
    if (align == 0) throw ModelError("general.alignment is 0");
    const uint64_t start = (at_ + align - 1) / align * align;
    for (auto& [tensor, offset] : infos) add(std::move(tensor), start, offset);
  }

  [[nodiscard]] bool has(const std::string& name) const { return facts_.count(name) != 0; }
  [[nodiscard]] const Fact& fact(const std::string& name) const {
    const auto found = facts_.find(name);
    if (found == facts_.end()) throw ModelError(cat("the file does not state ", name));
    return found->second;
  }
  [[nodiscard]] double number(const std::string& name, std::optional<double> other = std::nullopt) const {
    if (other && !has(name)) return *other;
    const Fact& found = fact(name);
    if (found.numbers.size() != 1) throw ModelError(cat(name, " is not a number"));
    return found.numbers[0];
  }
  [[nodiscard]] int64_t integer(const std::string& name, std::optional<int64_t> other = std::nullopt) const {
    return static_cast<int64_t>(number(name, other ? std::optional<double>(*other) : std::nullopt));
  }
  [[nodiscard]] std::string word(const std::string& name, const std::optional<std::string>& other = {}) const {
    if (other && !has(name)) return *other;
    const Fact& found = fact(name);
    if (found.texts.size() != 1) throw ModelError(cat(name, " is not a text"));
    return found.texts[0];
  }
  [[nodiscard]] bool has_tensor(const std::string& name) const { return tensors_.count(name) != 0; }
  [[nodiscard]] const FileTensor& tensor(const std::string& name) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) throw ModelError(cat("the file lacks the tensor ", name));
    return found->second;
  }

 private:
  [[noreturn]] void broken() const { throw ModelError(cat("the header is broken near byte ", at_)); }

  const uint8_t* take(uint64_t size_bytes) {
    const std::span<const uint8_t> all = file_.bytes();
    if (size_bytes > all.size() - at_) broken();
    const uint8_t* const data = all.data() + at_;
    at_ += size_bytes;
    return data;
  }
  template <class T>
  T read() {
    T result;
    std::memcpy(&result, take(sizeof result), sizeof result);
    return result;
  }
  std::string text() {
    const auto size = read<uint64_t>();
    return {reinterpret_cast<const char*>(take(size)), size};
  }
  double plain(uint32_t kind) {
    switch (kind) {
      case 0:
      case 7:
        return read<uint8_t>();
      case 1:
        return read<int8_t>();
      case 2:
        return read<uint16_t>();
      case 3:
        return read<int16_t>();
      case 4:
        return read<uint32_t>();
      case 5:
        return read<int32_t>();
      case 6:
        return static_cast<double>(read<float>());
      case 10:
        return static_cast<double>(read<uint64_t>());
      case 11:
        return static_cast<double>(read<int64_t>());
      case 12:
        return read<double>();
      default:
        throw ModelError(cat("a fact is of type ", kind, ", which GGUF does not have"));
    }
  }
  Fact value(uint32_t kind, int depth = 0) {
    Fact fact;
    if (kind == 8) {
      fact.texts.push_back(text());
    } else if (kind == 9) {
      if (depth > 4) broken();
      kind = read<uint32_t>();
      for (auto left = read<uint64_t>(); left > 0; --left) {
        const Fact one = value(kind, depth + 1);
        fact.texts.insert(fact.texts.end(), one.texts.begin(), one.texts.end());
        fact.numbers.insert(fact.numbers.end(), one.numbers.begin(), one.numbers.end());
      }
    } else {
      fact.numbers.push_back(plain(kind));
    }
    return fact;
  }
  void add(FileTensor tensor, uint64_t start, uint64_t offset) {
    const std::optional<BlockForm> form = form_of(tensor.kind);
    if (!form)
      throw ModelError(cat("tensor ", tensor.name, " is of type ", tensor.kind, ", which this program does not read"));
    if (tensor.shape.empty() || tensor.shape.back() % form->numbers != 0)
      throw ModelError(cat("tensor ", tensor.name, " is not in blocks of ", form->numbers));
    const std::span<const uint8_t> all = file_.bytes();
    uint64_t count = 1, size = 0;
    bool fits = true;
    for (const int64_t extent : tensor.shape)
      fits = fits && extent >= 0 && !__builtin_mul_overflow(count, static_cast<uint64_t>(extent), &count);
    fits = fits && !__builtin_mul_overflow(count / static_cast<uint64_t>(form->numbers),
                                           static_cast<uint64_t>(form->size_bytes), &size);
    if (!fits || start > all.size() || offset > all.size() - start || size > all.size() - start - offset)
      throw ModelError(cat("the file ends within the tensor ", tensor.name));
    tensor.bytes = all.subspan(start + offset, size);
    tensors_[tensor.name] = tensor;
  }

  MappedFile file_;
  uint64_t at_ = 0;
  std::map<std::string, Fact> facts_;
  std::map<std::string, FileTensor> tensors_;
};

// ---- Weights --------------------------------------------------------------------------------------------------------

inline float half_at(const uint8_t* bytes) {
  uint16_t bits;
  std::memcpy(&bits, bytes, sizeof bits);
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float sign = (bits >> 15) != 0 ? -1.0f : 1.0f;
  if (exponent == 31) return fraction != 0 ? std::numeric_limits<float>::quiet_NaN() : sign * HUGE_VALF;
  return sign * (exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                               : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25));
}

/// Packed numbers with scales and perhaps offsets, as the op quantize makes them: in memory of the host.
struct Packed {
  int64_t bits = 4, group = 32;
  bool has_offsets = false, has_halves = true;  // else scales are float32
  std::vector<uint8_t> codes;
  std::vector<uint16_t> half_scales, half_offsets;
  std::vector<float> scales, offsets;

  [[nodiscard]] bool has_form_of(const Packed& other) const {
    return std::tie(bits, group, has_offsets, has_halves) ==
           std::tie(other.bits, other.group, other.has_offsets, other.has_halves);
  }
  void append(const Packed& other) {
    codes.insert(codes.end(), other.codes.begin(), other.codes.end());
    half_scales.insert(half_scales.end(), other.half_scales.begin(), other.half_scales.end());
    half_offsets.insert(half_offsets.end(), other.half_offsets.begin(), other.half_offsets.end());
    scales.insert(scales.end(), other.scales.begin(), other.scales.end());
    offsets.insert(offsets.end(), other.offsets.begin(), other.offsets.end());
  }
};

inline void add_half(std::vector<uint16_t>& to, const uint8_t* bytes) {
  uint16_t bits;
  std::memcpy(&bits, bytes, sizeof bits);
  to.push_back(bits);
}

// Eight groups of 32 with scales and minima of 6 bits; a byte has numbers of two groups.
inline void add_q4_k(const uint8_t* raw, Packed& to) {
  const float scale = half_at(raw), minimum = half_at(raw + 2);
  const uint8_t *a = raw + 4, *b = raw + 8, *c = raw + 12, *codes = raw + 16;
  for (int g = 0; g < 8; ++g) {
    const int i = g % 4;
    const int own = g < 4 ? a[i] & 63 : (c[i] & 15) | (a[i] >> 6 << 4);
    const int least = g < 4 ? b[i] & 63 : c[i] >> 4 | (b[i] >> 6 << 4);
    to.scales.push_back(scale * static_cast<float>(own));
    to.offsets.push_back(-(minimum * static_cast<float>(least)));
    const auto code = [&](int e) { return codes[g / 2 * 32 + e] >> (g % 2 * 4) & 15; };
    for (int j = 0; j < 16; ++j) to.codes.push_back(static_cast<uint8_t>(code(j) | code(j + 16) << 4));
  }
}

// Sixteen groups of 16, of numbers from -32 to 31 whose low four and high two bits are apart.
inline void add_q6_k(const uint8_t* raw, Packed& to) {
  const float scale = half_at(raw + 208);
  for (int i = 0; i < 256; ++i) {
    const int part = i / 128, quarter = i % 128 / 32, at = i % 32;
    const int low = raw[part * 64 + quarter % 2 * 32 + at] >> (quarter > 1 ? 4 : 0) & 15;
    const int high = raw[128 + part * 32 + at] >> (2 * quarter) & 3;
    to.codes.push_back(static_cast<uint8_t>(low | high << 4));
  }
  for (int g = 0; g < 16; ++g) {
    to.scales.push_back(scale * static_cast<float>(static_cast<int8_t>(raw[192 + g])));
    to.offsets.push_back(to.scales.back() * -32.0f);
  }
}

inline Packed pack(const FileTensor& tensor) {
  Packed to;
  const bool is_k = tensor.kind == 12 || tensor.kind == 14;
  to.bits = tensor.kind == 8 || tensor.kind == 14 ? 8 : 4;
  to.group = tensor.kind == 14 ? 16 : 32;
  to.has_halves = !is_k;
  to.has_offsets = is_k || tensor.kind == 3;
  const BlockForm form = *form_of(tensor.kind);
  to.codes.reserve(tensor.bytes.size());
  for (size_t at = 0; at < tensor.bytes.size(); at += static_cast<size_t>(form.size_bytes)) {
    const uint8_t* const raw = tensor.bytes.data() + at;
    if (tensor.kind == 12) add_q4_k(raw, to);
    if (tensor.kind == 14) add_q6_k(raw, to);
    if (is_k) continue;
    add_half(to.half_scales, raw);
    if (to.has_offsets) add_half(to.half_offsets, raw + 2);
    const uint8_t flip = tensor.kind == 8 ? 128 : 0;  // the sign bit
    for (const uint8_t* code = raw + (to.has_offsets ? 4 : 2); code < raw + form.size_bytes; ++code)
      to.codes.push_back(*code ^ flip);
  }
  return to;
}

}  // namespace llm
