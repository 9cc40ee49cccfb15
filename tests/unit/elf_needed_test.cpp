// SPDX-License-Identifier: Apache-2.0
#include "core/loading/elf_needed.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "tests/unit/elf_image.hpp"

namespace compute {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

TEST(ElfImage, IsReadFromItsDynamicSection) {
  const ElfImage image = read_elf(bytes(elf_image(
      {.needed = {"libb.so.1", "liba.so"}, .soname = "libx.so.2", .rpath = "/r:$ORIGIN/..", .runpath = "/u::/v"})));
  EXPECT_EQ(image.problem, "");
  EXPECT_EQ(image.needed, (Names{"libb.so.1", "liba.so"}));
  EXPECT_EQ(image.soname, "libx.so.2");
  EXPECT_EQ(image.rpath, (Names{"/r", "$ORIGIN/.."}));
  EXPECT_EQ(image.runpath, (Names{"/u", "/v"}));
}

TEST(ElfImage, OfAnotherMachineOrSortIsNamed) {
  const std::string this_name = kThisMachine == EM_X86_64 ? "x86-64" : "aarch64";
  const std::string other_name = kThisMachine == EM_X86_64 ? "aarch64" : "x86-64";
  const std::vector<std::pair<ElfContents, std::string>> rows = {
      {{.machine = kOtherMachine}, "built for " + other_name + ", not " + this_name},
      {{.machine = EM_386, .file_class = ELFCLASS32}, "built for i386, not " + this_name},
      {{.machine = 9999}, "built for machine 9999, not " + this_name},
      {{.file_class = ELFCLASS32}, "built for 32-bit programs"},
      {{.type = ET_EXEC}, "a program, not a library"},
      {{.type = ET_REL}, "an object file, not a library"},
      {{.type = ET_CORE}, "a core dump, not a library"},
      {{.type = 77}, "an ELF file of unknown type"},
  };
  for (const auto& [contents, problem] : rows) EXPECT_EQ(read_elf(bytes(elf_image(contents))).problem, problem);
}

TEST(ElfImage, OfAnAlienFileIsNamed) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"", "an empty file"},
      {"MZ\x90", "a Windows library, not an ELF file"},
      {"!<arch>\nx", "a static library, not a shared one"},
      {"\xCF\xFA\xED\xFE\x07", "a macOS library, not an ELF file"},
      {"/* GNU ld script */ INPUT(libfoo.so.1)\n", "a linker script (text), not a library"},
      {"GROUP ( /lib/libm.so.6 )\n", "a linker script (text), not a library"},
      {"version https://example\nsize 12\n", "a text file, not a library"},
      {"\x01\x02\x03", "not an ELF file"},
      {"\x7f"
       "ELF",
       "truncated: 4 bytes"},
  };
  for (const auto& [content, problem] : rows) EXPECT_EQ(read_elf(bytes(content)).problem, problem);
}

TEST(ElfImage, ThatIsCutShortAnywhereHasAProblem) {
  const std::string whole = elf_image({.needed = {"liba.so", "libb.so"}, .soname = "libx.so", .runpath = "/r"});
  for (size_t size = 0; size < whole.size(); ++size) {
    // a copy of the exact size, so that a sanitizer sees each byte too many
    const std::vector<char> cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    const ElfImage image = read_elf(std::as_bytes(std::span(cut)));
    EXPECT_NE(image.problem, "") << size << " of " << whole.size();
  }
}

TEST(ElfImage, WithNumbersOutOfRangeHasAProblem) {
  const std::string whole = elf_image({.needed = {"liba.so"}});
  const auto with = [&](size_t offset, uint64_t value) {
    std::string changed = whole;
    std::memcpy(changed.data() + offset, &value, sizeof(value));
    return read_elf(bytes(changed)).problem;
  };
  constexpr size_t kLoad = sizeof(ElfW(Ehdr)), kDynamic = kLoad + sizeof(ElfW(Phdr));
  for (const uint64_t value : {UINT64_MAX, UINT64_MAX - 7, uint64_t{1} << 63, uint64_t{1} << 20}) {
    EXPECT_NE(with(offsetof(ElfW(Ehdr), e_phoff), value), "") << value;
    EXPECT_NE(with(kLoad + offsetof(ElfW(Phdr), p_offset), value), "") << value;
    EXPECT_NE(with(kLoad + offsetof(ElfW(Phdr), p_vaddr), value), "") << value;
    EXPECT_NE(with(kDynamic + offsetof(ElfW(Phdr), p_offset), value), "") << value;
    EXPECT_NE(with(kDynamic + sizeof(ElfW(Phdr)) + offsetof(ElfW(Dyn), d_un), value), "") << value;  // DT_NEEDED
  }
}

class Dependencies : public testing::Test {
 protected:
  Dependencies() {
    std::string pattern = (fs::temp_directory_path() / "compute-elf-XXXXXX").string();
    root_ = fs::canonical(mkdtemp(pattern.data()));
    search_.cache = root_ / "no-cache";
  }
  ~Dependencies() override { fs::remove_all(root_); }

  std::string write(const std::string& name, const ElfContents& contents) {
    return write_text(name, elf_image(contents));
  }
  std::string write_text(const std::string& name, const std::string& content) {
    const fs::path path = root_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
    return path.string();
  }
  std::string at(const std::string& name) const { return (root_ / name).string(); }

  fs::path root_;
  ElfSearch search_;
};

TEST_F(Dependencies, AllThatAreMissingAreReportedAtOnce) {
  const std::string plugin =
      write("p/plugin.so", {.needed = {"libgone.so.1", "libhere.so", "libgone.so.2"}, .runpath = "$ORIGIN/lib"});
  write("p/lib/libhere.so", {.needed = {"libdeep.so.3", "libgone.so.1"}});
  search_.standard_folders = {at("std")};
  const ElfDependencies result = find_dependencies(plugin, search_);
  EXPECT_EQ(result.problem, "");
  EXPECT_EQ(result.found, Names{at("p/lib/libhere.so")});
  ASSERT_EQ(result.missing.size(), 3U);
  EXPECT_EQ(result.missing[0].name, "libgone.so.1");
  EXPECT_EQ(result.missing[0].needed_by, plugin);
  EXPECT_EQ(result.missing[0].tried, (Names{at("p/lib/libgone.so.1"), at("no-cache"), at("std/libgone.so.1")}));
  EXPECT_EQ(result.missing[1].name, "libgone.so.2");
  EXPECT_EQ(result.missing[2].name, "libdeep.so.3");
  EXPECT_EQ(result.missing[2].needed_by, at("p/lib/libhere.so"));
  EXPECT_EQ(result.missing[2].tried, (Names{at("no-cache"), at("std/libdeep.so.3")}));  // RUNPATH is not inherited
}

TEST_F(Dependencies, RpathIsInheritedAndRunpathReplacesIt) {
  write("r/liba.so", {.needed = {"libb.so"}});
  write("r/libb.so", {});
  EXPECT_TRUE(
      find_dependencies(write("x.so", {.needed = {"liba.so"}, .rpath = "${ORIGIN}/r"}), search_).missing.empty());
  const ElfDependencies runpath =
      find_dependencies(write("y.so", {.needed = {"liba.so"}, .rpath = at("r"), .runpath = "/nowhere"}), search_);
  ASSERT_EQ(runpath.missing.size(), 1U);
  EXPECT_EQ(runpath.missing[0].name, "liba.so");
}

TEST_F(Dependencies, TheOrderIsRpathThenLibraryPathThenRunpathThenStandard) {
  for (const char* folder : {"rpath", "path", "runpath", "std"}) write(std::string(folder) + "/liba.so", {});
  search_.library_path = {at("path")};
  search_.standard_folders = {at("std")};
  const auto found = [&](const ElfContents& contents) {
    return find_dependencies(write("x.so", contents), search_).found;
  };
  EXPECT_EQ(found({.needed = {"liba.so"}, .rpath = at("rpath")}), Names{at("rpath/liba.so")});
  EXPECT_EQ(found({.needed = {"liba.so"}, .runpath = at("runpath")}), Names{at("path/liba.so")});
  search_.library_path.clear();
  EXPECT_EQ(found({.needed = {"liba.so"}, .runpath = at("runpath")}), Names{at("runpath/liba.so")});
  EXPECT_EQ(found({.needed = {"liba.so"}}), Names{at("std/liba.so")});
}

TEST_F(Dependencies, AFileThatDoesNotServeIsPassedOverAndToldOf) {
  write("path/liba.so", {.machine = kOtherMachine});
  write_text("path/libb.so", "INPUT(libc.so)");
  write("std/liba.so", {});
  search_.library_path = {at("path")};
  search_.standard_folders = {at("std")};
  const ElfDependencies result = find_dependencies(write("x.so", {.needed = {"liba.so", "libb.so"}}), search_);
  EXPECT_EQ(result.found, Names{at("std/liba.so")});
  ASSERT_EQ(result.missing.size(), 1U);
  EXPECT_EQ(result.missing[0].unfit, Names{at("path/libb.so") + ": a linker script (text), not a library"});
}

TEST_F(Dependencies, CyclesLinksAndLoadedLibrariesAreSeenOnce) {
  write("std/liba.so.1", {.needed = {"libb.so"}, .soname = "liba.so.1"});
  write("std/libb.so", {.needed = {"liba.so.1", "liba.so", "x.so", "libloaded.so"}});
  fs::create_symlink("liba.so.1", root_ / "std/liba.so");
  search_.standard_folders = {at("std")};
  search_.loaded = {"libloaded.so"};
  const ElfDependencies result = find_dependencies(write("x.so", {.needed = {"liba.so.1"}}), search_);
  EXPECT_TRUE(result.missing.empty());
  EXPECT_EQ(result.found, (Names{at("std/liba.so.1"), at("std/libb.so")}));
}

TEST_F(Dependencies, OfANameWithASlashIsThatFile) {
  write("sub/liba.so", {});
  const ElfDependencies result =
      find_dependencies(write("x.so", {.needed = {"$ORIGIN/sub/liba.so", at("none.so")}}), search_);
  EXPECT_EQ(result.found, Names{at("sub/liba.so")});
  ASSERT_EQ(result.missing.size(), 1U);
  EXPECT_EQ(result.missing[0].tried, Names{at("none.so")});
}

TEST_F(Dependencies, OfAFileThatIsNoLibraryAreItsProblem) {
  EXPECT_EQ(find_dependencies(at("none.so"), search_).problem, "No such file or directory");
  EXPECT_EQ(find_dependencies(root_, search_).problem, "it is a directory, not a file");
  EXPECT_EQ(find_dependencies("/dev/null", search_).problem, "it is a device, not a regular file");
  EXPECT_EQ(find_dependencies(write_text("x.so", "text"), search_).problem, "a text file, not a library");
  fs::create_symlink(at("loop"), root_ / "loop");
  EXPECT_NE(find_dependencies(at("loop"), search_).problem, "");
}

// This program itself runs, so all that it needs is there.
TEST(ElfOfThisProcess, NeedsNothingThatIsMissing) {
  ElfSearch search = ElfSearch::of_process();
  const Names loaded = search.loaded;
  search.loaded.clear();
  const ElfDependencies result = find_dependencies("/proc/self/exe", search);
  ASSERT_EQ(result.problem, "");
  for (const MissingLibrary& library : result.missing) ADD_FAILURE() << library.name << " of " << library.needed_by;
  EXPECT_FALSE(result.found.empty());
  for (const std::string& file : result.found) {
    const std::string name = fs::path(file).filename().string();
    EXPECT_NE(std::find(loaded.begin(), loaded.end(), name), loaded.end()) << file;
  }
}

std::string cache_image(const std::vector<std::pair<std::string, std::string>>& libraries) {
  std::string header("glibc-ld.so.cache1.1");
  const auto count = static_cast<uint32_t>(libraries.size());
  header.append(reinterpret_cast<const char*>(&count), 4);
  header.resize(48);
  std::string entries, strings;
  const size_t strings_at = 48 + 24 * libraries.size();
  for (const auto& [name, path] : libraries) {
    const uint32_t fields[6] = {0x303,
                                static_cast<uint32_t>(strings_at + strings.size()),
                                static_cast<uint32_t>(strings_at + strings.size() + name.size() + 1),
                                0,
                                0,
                                0};
    entries.append(reinterpret_cast<const char*>(fields), sizeof(fields));
    strings += name + '\0' + path + '\0';
  }
  return header + entries + strings;
}

TEST(LibraryCache, HoldsThePathsOfAName) {
  const std::string cache = cache_image({{"liba.so", "/new/liba.so"}, {"liba.so.1", "/x"}, {"liba.so", "/liba.so"}});
  EXPECT_EQ(find_in_cache(bytes(cache), "liba.so"), (Names{"/new/liba.so", "/liba.so"}));
  EXPECT_EQ(find_in_cache(bytes("ld.so-1.7.0 old part  " + cache), "liba.so.1"), Names{"/x"});
  EXPECT_TRUE(find_in_cache(bytes(cache), "liba").empty());
  for (size_t size = 0; size < cache.size(); ++size) {
    const std::vector<char> cut(cache.begin(), cache.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_LE(find_in_cache(std::as_bytes(std::span(cut)), "liba.so").size(), 2U);
  }
}

}  // namespace
}  // namespace compute
