// SPDX-License-Identifier: Apache-2.0
#include "core/loading/pci_address.hpp"

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <system_error>

#include "core/trusted_files/trusted_files.hpp"

namespace compute {

std::optional<std::string> canonical_pci_address(std::string_view text) {
  // [domain:]bus:device[.function], hexadecimal
  std::array<uint32_t, 3> part{};
  size_t parts = 0;
  uint32_t function = 0;
  const char* begin = text.data();
  const char* const end = text.data() + text.size();
  const auto hex = [&](uint32_t& out, ptrdiff_t max_digits) {
    const auto [next, error] = std::from_chars(begin, end, out, 16);
    const bool good = error == std::errc() && next - begin <= max_digits;
    begin = next;
    return good;
  };
  for (;;) {
    if (parts == part.size() || !hex(part[parts++], 8)) return std::nullopt;
    if (begin == end || *begin != ':') break;
    ++begin;
  }
  if (begin != end && (*begin++ != '.' || !hex(function, 1))) return std::nullopt;
  if (begin != end || parts < 2) return std::nullopt;
  const uint32_t domain = parts == 3 ? part[0] : 0;
  const uint32_t bus = part[parts - 2], device = part[parts - 1];
  if (bus > 0xFF || device > 0x1F || function > 7) return std::nullopt;
  std::array<char, 24> result{};
  std::snprintf(result.data(), result.size(), "%04x:%02x:%02x.%x", domain, bus, device, function);
  return std::string(result.data());
}

PciIds read_pci_ids(std::string_view address, const std::filesystem::path& folder) {
  if (canonical_pci_address(address) != address) return {};  // it names a file
  const auto read = [&](const char* name) {
    const std::string text = files::File(folder / address / name).read(64).value_or("");
    uint32_t value = 0;
    if (!text.starts_with("0x")) return value;  // "0x10de"
    const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), value, 16);
    return error == std::errc() ? value : 0;
  };
  return {read("vendor"), read("device")};
}

}  // namespace compute
