// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/table/entry.hpp"

#include <elf.h>
#include <link.h>

#include <cstring>

namespace compute::common {
namespace {

constexpr size_t kNoteAlignment = 4;

size_t aligned(size_t size) { return (size + kNoteAlignment - 1) / kNoteAlignment * kNoteAlignment; }

// The id in one segment of notes, as hexadecimal digits; empty if there is none.
std::string build_id_in(const char* at, size_t size) {
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, at, sizeof note);
    const size_t name = sizeof note, id = name + aligned(note.n_namesz), end = id + aligned(note.n_descsz);
    if (end > size) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(at + name, "GNU", 4) == 0) {
      static constexpr char kDigits[] = "0123456789abcdef";
      std::string text;
      for (size_t i = 0; i < note.n_descsz; ++i) {
        const auto byte = static_cast<unsigned char>(at[id + i]);
        text += kDigits[byte >> 4];
        text += kDigits[byte & 15];
      }
      return text;
    }
    at += end;
    size -= end;
  }
  return {};
}

int visit(dl_phdr_info* object, size_t, void* out) {
  const auto own = reinterpret_cast<ElfW(Addr)>(&visit);
  bool is_own = false;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    const ElfW(Addr) begin = object->dlpi_addr + segment.p_vaddr;
    is_own = is_own || (segment.p_type == PT_LOAD && own >= begin && own < begin + segment.p_memsz);
  }
  if (!is_own) return 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    std::string id = build_id_in(reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr), segment.p_memsz);
    if (!id.empty()) *static_cast<std::string*>(out) = std::move(id);
  }
  return 1;
}

}  // namespace

std::string own_build_id() {
  std::string id;
  dl_iterate_phdr(visit, &id);
  return id;
}

compute_plugin_manifest make_manifest(std::string_view name, std::string_view version) {
#if defined(__SANITIZE_ADDRESS__)
  constexpr std::string_view kSanitizer = "address";
#elif defined(__SANITIZE_THREAD__)
  constexpr std::string_view kSanitizer = "thread";
#else
  constexpr std::string_view kSanitizer = "";
#endif
  static const std::string& build_id = *new std::string(own_build_id());
  compute_plugin_manifest m{};
  m.struct_size = sizeof m;
  m.struct_type = COMPUTE_PLUGIN_STRUCT_MANIFEST;
  m.interface_min = COMPUTE_PLUGIN_INTERFACE;
  m.interface_max = COMPUTE_PLUGIN_INTERFACE;
  m.draft = COMPUTE_PLUGIN_DRAFT;
  m.name = borrow(name);
  m.version = borrow(version);
  m.vendor = borrow("the compute authors");
  m.license = borrow("Apache-2.0");
  m.url = borrow("");
  m.build_id = borrow(build_id);
  m.sanitizer = borrow(kSanitizer);
  return m;
}

}  // namespace compute::common
