// SPDX-License-Identifier: Apache-2.0
//
// Builds the bytes of small ELF libraries for tests, without a linker.
#ifndef COMPUTE_TESTS_UNIT_ELF_IMAGE_HPP_
#define COMPUTE_TESTS_UNIT_ELF_IMAGE_HPP_

#include <elf.h>
#include <link.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace compute {

#if defined(__x86_64__)
constexpr uint16_t kThisMachine = EM_X86_64;
constexpr uint16_t kOtherMachine = EM_AARCH64;
#else
constexpr uint16_t kThisMachine = EM_AARCH64;
constexpr uint16_t kOtherMachine = EM_X86_64;
#endif

struct ElfContents {
  std::vector<std::string> needed = {};
  std::string soname = {};
  std::string rpath = {};
  std::string runpath = {};
  uint16_t machine = kThisMachine;
  uint16_t type = ET_DYN;
  unsigned char file_class = ELFCLASS64;
  unsigned char data = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  // Addresses are offsets plus this, so that a reader that mixes them up fails.
  uint64_t base = 0x10000;
};

inline std::string elf_image(const ElfContents& contents) {
  std::string strings(1, '\0');
  const auto place = [&](const std::string& text) {
    const uint64_t at = strings.size();
    strings += text;
    strings += '\0';
    return at;
  };
  std::vector<ElfW(Dyn)> dynamic;
  const auto add = [&](int64_t tag, uint64_t value) {
    ElfW(Dyn) entry{};
    entry.d_tag = tag;
    entry.d_un.d_val = value;
    dynamic.push_back(entry);
  };
  for (const std::string& name : contents.needed) add(DT_NEEDED, place(name));
  if (!contents.soname.empty()) add(DT_SONAME, place(contents.soname));
  if (!contents.rpath.empty()) add(DT_RPATH, place(contents.rpath));
  if (!contents.runpath.empty()) add(DT_RUNPATH, place(contents.runpath));
  const uint64_t dynamic_offset = sizeof(ElfW(Ehdr)) + 2 * sizeof(ElfW(Phdr));
  const uint64_t strings_offset = dynamic_offset + (dynamic.size() + 3) * sizeof(ElfW(Dyn));
  add(DT_STRTAB, contents.base + strings_offset);
  add(DT_STRSZ, strings.size());
  add(DT_NULL, 0);

  ElfW(Ehdr) header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = contents.file_class;
  header.e_ident[EI_DATA] = contents.data;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = contents.type;
  header.e_machine = contents.machine;
  header.e_version = EV_CURRENT;
  header.e_phoff = sizeof(header);
  header.e_ehsize = sizeof(header);
  header.e_phentsize = sizeof(ElfW(Phdr));
  header.e_phnum = 2;
  ElfW(Phdr) load{};
  load.p_type = PT_LOAD;
  load.p_vaddr = contents.base;
  load.p_filesz = load.p_memsz = strings_offset + strings.size();
  ElfW(Phdr) table{};
  table.p_type = PT_DYNAMIC;
  table.p_offset = dynamic_offset;
  table.p_vaddr = contents.base + dynamic_offset;
  table.p_filesz = table.p_memsz = dynamic.size() * sizeof(ElfW(Dyn));

  std::string image;
  const auto append = [&](const void* bytes, size_t size) { image.append(static_cast<const char*>(bytes), size); };
  append(&header, sizeof(header));
  append(&load, sizeof(load));
  append(&table, sizeof(table));
  append(dynamic.data(), dynamic.size() * sizeof(ElfW(Dyn)));
  return image + strings;
}

}  // namespace compute

#endif  // COMPUTE_TESTS_UNIT_ELF_IMAGE_HPP_
