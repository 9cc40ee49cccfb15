// SPDX-License-Identifier: Apache-2.0
#include "core/devices/selector.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <compute/compute.h>
#include "core/base/error.hpp"
#include "core/settings/setting.hpp"

namespace compute {
namespace {

const std::vector<std::string> kPlugins = {"acme", "cpu", "Cuda", "opencl"};
const std::vector<std::string> kGpus = {"cuda", "opencl"};

// An item in a form that shows everything that was read.
std::string spelled(const SelectorItem& item) {
  std::string text = (item.exclude ? "-" : "") + item.name;
  if (item.first_index) text += " first " + std::to_string(*item.first_index);
  if (item.second_index) text += " second " + std::to_string(*item.second_index);
  if (item.flat_index) text += " flat " + std::to_string(*item.flat_index);
  if (item.condition) {
    static const char* const kKeys[] = {"pci", "uuid", "name", "platform"};
    text += std::string(" ") + kKeys[static_cast<size_t>(item.condition->key)];
    text += (item.condition->part ? " has " : " is ") + item.condition->value;
  }
  if (const auto& memory = item.options.memory_limit) {
    text += " mem " + (memory->fraction > 0 ? std::to_string(memory->fraction) : std::to_string(memory->size_bytes));
  }
  if (item.options.hidden_dtypes != 0) text += " without " + std::to_string(item.options.hidden_dtypes);
  return text;
}

std::string spelled(const Selector& selector) {
  std::string text;
  for (const SelectorItem& item : selector.items) text += (text.empty() ? "" : " | ") + spelled(item);
  return text;
}

// Options that are settings of a plugin.
TEST(Selector, TakesDeviceSettings) {
  declare_setting({"COMPUTE_ACME_MODE", "acme.mode", SettingKind::kChoice, "fast", "fast exact", false, "how", true});
  declare_setting({"COMPUTE_ACME_RINGS_2", "acme.rings_2", SettingKind::kInteger, "", "1 9", false, "how many", true});
  declare_setting({"COMPUTE_ACME_QUIET", "acme.quiet", SettingKind::kFlag, "", "", false, "no device's", false});
  using Settings = std::vector<std::pair<std::string, std::string>>;
  const auto parsed = [](const char* text) { return parse_selector(text, "test", kPlugins); };
  const Selector both = parsed("cuda0,Acme1+Mode=EXACT+mem=4G+rings_2=3");
  EXPECT_EQ(both.items[0].options.settings, Settings());
  EXPECT_EQ(both.items[1].options.settings, (Settings{{"mode", "exact"}, {"rings_2", "3"}}));
  const auto fault = [&](const char* text) {
    try {
      parsed(text);
    } catch (const Error& error) {
      return error.message.substr(0, error.message.find('\n'));
    }
    return std::string("none");
  };
  EXPECT_EQ(fault("acme0+mode=exat"),
            R"(test "acme0+mode=exat", column 12: "mode": "exat" is not one of fast, exact; did you mean "exact"?)");
  EXPECT_EQ(
      fault("acme0+modes=fast"),
      R"(test "acme0+modes=fast", column 7: "modes" is not an option; did you mean "mode"? (known: mem, without, mode, rings_2))");
  EXPECT_EQ(fault("acme+rings_2=12"),
            R"(test "acme+rings_2=12", column 14: "rings_2": "12" is not a number from 1 to 9)");
  EXPECT_EQ(fault("acme+mode=fast+mode=fast"), R"(test "acme+mode=fast+mode=fast", column 16: "mode" is given twice)");
  EXPECT_EQ(fault("acme+quiet=1"),
            R"(test "acme+quiet=1", column 6: "quiet" is not an option (known: mem, without, mode, rings_2))");
  EXPECT_EQ(fault("cuda+mode=fast"),
            R"(test "cuda+mode=fast", column 6: "mode" is not an option (known: mem, without))");
  EXPECT_EQ(fault("auto+mode=fast"),
            R"(test "auto+mode=fast", column 6: "mode" is not an option (known: mem, without))");
}

TEST(Selector, AsksAPluginForItsSettings) {
  std::vector<std::string> asked;
  const AskPlugin ask = [&](std::string_view plugin) {
    asked.emplace_back(plugin);
    declare_setting({"COMPUTE_CUDA_PACE", "cuda.pace", SettingKind::kText, "", "", false, "how", true});
  };
  EXPECT_EQ(parse_selector("cuda0+mem=4G", "test", kPlugins, {}, ask).items.size(), 1U);
  EXPECT_TRUE(asked.empty());
  const Selector selector = parse_selector("cuda0+pace=slow and steady", "test", kPlugins, {}, ask);
  EXPECT_EQ(selector.items[0].options.settings[0].second, "slow and steady");
  EXPECT_EQ(asked, std::vector<std::string>{"cuda"});
  const std::vector<NamedSelector> named = parse_named_selectors("big=cuda0+pace=slow", "test", kPlugins, ask);
  EXPECT_EQ(named[0].selector.items[0].options.settings[0].first, "pace");
}

struct Good {
  const char* text;
  const char* meaning;
};

const Good kGood[] = {
    {"", ""},
    {"  \t ", ""},
    {"auto", "auto"},
    {"gpu", "gpu"},
    {"cpu", "cpu"},
    {"cuda", "cuda"},
    {"opencl", "opencl"},
    {"acme", "acme"},
    {"ACME3", "acme first 3"},
    {"CUDA0", "cuda first 0"},
    {"Auto,-OpenCL", "auto | -opencl"},
    {"cuda0", "cuda first 0"},
    {"cuda007", "cuda first 7"},
    {"cuda65535", "cuda first 65535"},
    {"cuda:3", "cuda flat 3"},
    {"opencl0", "opencl first 0"},
    {"opencl0:1", "opencl first 0 second 1"},
    {"opencl:12", "opencl flat 12"},
    {"cuda0,cpu", "cuda first 0 | cpu"},
    {" cuda0 ,\tcpu ", "cuda first 0 | cpu"},
    {"auto,-opencl", "auto | -opencl"},
    {"auto,!opencl", "auto | -opencl"},
    {"-cuda0,auto", "-cuda first 0 | auto"},
    {"gpu,-cuda", "gpu | -cuda"},
    {"auto,-opencl0:1", "auto | -opencl first 0 second 1"},
    {"auto,-opencl@name~pocl", "auto | -opencl name has pocl"},
    {"cuda1,auto,-opencl,-gpu", "cuda first 1 | auto | -opencl | -gpu"},
    {"cuda@pci=0000:65:00.0", "cuda pci is 0000:65:00.0"},
    {"cuda@PCI=00000000:65:00.0", "cuda pci is 0000:65:00.0"},
    {"cuda@pci=65:00.0", "cuda pci is 0000:65:00.0"},
    {"cuda@pci=0000:C1:1F", "cuda pci is 0000:c1:1f.0"},
    {"cuda@pci=12345:01:00.0", "cuda pci is 12345:01:00.0"},
    {"cuda@pci~65:00", "cuda pci has 65:00"},
    {"cuda@uuid=GPU-8c6e-11", "cuda uuid is GPU-8c6e-11"},
    {"opencl@name~radeon rx 6800", "opencl name has radeon rx 6800"},
    {"opencl@name~ Iris ,cpu", "opencl name has Iris | cpu"},
    {"opencl@name~größe", "opencl name has größe"},
    {"auto@name~h200", "auto name has h200"},
    {"gpu@name=NVIDIA H200+mem=50%", "gpu name is NVIDIA H200 mem 0.500000"},
    {"opencl1@name~arc", "opencl first 1 name has arc"},
    {"opencl@platform~pocl", "opencl platform has pocl"},
    {"auto,-opencl@Platform=Intel(R) OpenCL", "auto | -opencl platform is Intel(R) OpenCL"},
    {"cuda0+mem=4G", "cuda first 0 mem 4294967296"},
    {"cuda+mem=512M", "cuda mem 536870912"},
    {"cuda+MEM=30%", "cuda mem 0.300000"},
    {"cuda+mem=0.3", "cuda mem 0.300000"},
    {"cuda+mem=1.5g", "cuda mem 1610612736"},
    {"cuda+mem=65536", "cuda mem 65536"},
    {"cpu+without=float64", "cpu without 8192"},
    {"cuda+mem=65536+without=INT8/bool", "cuda mem 65536 without 6"},
    {"cuda0@uuid=GPU-1+mem=2T,cpu", "cuda first 0 uuid is GPU-1 mem 2199023255552 | cpu"},
};

TEST(Selector, IsRead) {
  for (const Good& good : kGood) {
    EXPECT_EQ(spelled(parse_selector(good.text, "COMPUTE_DEVICE", kPlugins)), good.meaning) << good.text;
  }
}

struct Bad {
  const char* text;
  int column;
  std::string what;
};

#define KNOWN " (known: acme, auto, cpu, cuda, gpu, opencl)"
const Bad kBad[] = {
    {"cdua0", 1, R"(unknown plugin "cdua"; did you mean "cuda"?)" KNOWN},
    {"cpu,cdua0", 5, R"(unknown plugin "cdua"; did you mean "cuda"?)" KNOWN},
    {"cuad", 1, R"(unknown plugin "cuad"; did you mean "cuda"?)" KNOWN},
    {"opncl", 1, R"(unknown plugin "opncl"; did you mean "opencl"?)" KNOWN},
    {"xyzzy", 1, R"(unknown plugin "xyzzy")" KNOWN},
    {"ACMEE0", 1, R"(unknown plugin "acmee"; did you mean "acme"?)" KNOWN},
    {"cuda0,", 7, "expected a device but found the end" KNOWN},
    {",cuda0", 1, R"(expected a device but found ",")" KNOWN},
    {"cuda0,,cpu", 7, R"(expected a device but found ",")" KNOWN},
    {"cuda 0", 6, R"(unexpected "0" after "cuda"; write the index directly after the name: cuda0, cuda0:1)"},
    {"cuda-0", 5, R"(unexpected "-" after "cuda"; write the index directly after the name: cuda0, cuda0:1)"},
    {"cuda.0", 5, R"(unexpected "." after "cuda"; write the index directly after the name: cuda0, cuda0:1)"},
    {"cuda#0", 5, R"(unexpected "#" after "cuda"; write the index directly after the name: cuda0, cuda0:1)"},
    {"cuda_0", 1, R"(unknown plugin "cuda_"; did you mean "cuda"?)" KNOWN},
    {"cuda0x", 6, R"(unexpected "x" after "cuda0")"},
    {"cuda0:", 7, "expected a device index but found the end"},
    {"cuda:", 6, "expected an index but found the end"},
    {"cuda:x", 6, R"(expected an index but found "x")"},
    {"opencl0:1:2", 10, R"(unexpected ":" after "opencl0:1")"},
    {"cuda:0:1", 7, R"(unexpected ":" after "cuda:0")"},
    {"cuda99999999999", 5, "an index is larger than 65535"},
    {"cuda70000", 5, "an index is larger than 65535"},
    {"opencl0:70000", 9, "a device index is larger than 65535"},
    {"auto0", 5, "auto takes no index; use the name of a plugin, such as acme0"},
    {"auto:1", 5, "auto takes no index; use the name of a plugin, such as acme0"},
    {"gpu1", 4, "gpu takes no index; use the name of a plugin, such as acme0"},
    {"gpu0:0", 4, "gpu takes no index; use the name of a plugin, such as acme0"},
    {"-opencl", 1, R"("-opencl" excludes nothing: the list has neither auto nor gpu; write auto,-opencl)"},
    {"!opencl,cuda0", 1, R"("!opencl" excludes nothing: the list has neither auto nor gpu; write auto,!opencl)"},
    {"auto,-auto", 7, "auto cannot be excluded"},
    {"auto,--opencl", 7, R"(expected a device but found "-")" KNOWN},
    {"auto,-", 7, "expected a device but found the end" KNOWN},
    {"auto,-opencl+mem=4G", 13, "an excluded device takes no options"},
    {"cuda@", 6, "expected a condition but found the end (known: pci, uuid, name, platform)"},
    {"cuda@pci", 9, R"(expected "=" or "~" after "pci" but found the end)"},
    {"cuda@pic=0000:65:00.0", 6, R"("pic" is not a condition; did you mean "pci"? (known: pci, uuid, name, platform))"},
    {"cuda@pci=", 10, "expected a value for pci but found the end"},
    {"cuda@pci=zz", 10, R"("zz" is not a PCI address; expected the form 0000:65:00.0)"},
    {"cuda@pci=0000:65:00.9", 10, R"("0000:65:00.9" is not a PCI address; expected the form 0000:65:00.0)"},
    {"cuda@pci=0000:65:40.0", 10, R"("0000:65:40.0" is not a PCI address; expected the form 0000:65:00.0)"},
    {"cuda@pci:0000", 9, R"(expected "=" or "~" after "pci" but found ":")"},
    {"cuda@uuid=GPU-1@name~x", 16,
     R"(unexpected "@" after "cuda@uuid=GPU-1"; a device takes at most one condition, before the options)"},
    {"cuda@name~", 11, "expected a value for name but found the end"},
    {"cuda@serial=4", 6, R"("serial" is not a condition (known: pci, uuid, name, platform))"},
    {"cuda@=x", 6, R"(expected a condition but found "=" (known: pci, uuid, name, platform))"},
    {"cuda+", 6, "expected an option but found the end (known: mem, without)"},
    {"cuda+mem", 9, R"(expected "=" after "mem" but found the end)"},
    {"cuda+mem=", 10, "expected a value for mem but found the end"},
    {"cuda+mem=0", 10, R"("mem" must be greater than 0)"},
    {"cuda+mem=4X", 10, R"("4X" is not a size; the units are K, M, G, T and %)"},
    {"cuda+mem=4Gi", 10, R"("4Gi" is not a size; the units are K, M, G, T and %)"},
    {"cuda+mem=four", 10, R"("four" is not a size; expected a value such as 4G, 512M or 30%)"},
    {"cuda+mem=-1", 10, R"("-1" is not a size; expected a value such as 4G, 512M or 30%)"},
    {"cuda+mem=1.5", 10, R"("1.5" is not a fraction in (0, 1]; a number of bytes must be whole)"},
    {"cuda+mem=0%", 10, R"("0%" is outside (0%, 100%])"},
    {"cuda+mem=101%", 10, R"("101%" is outside (0%, 100%])"},
    {"cuda+mem=99999999999999999999", 10, R"("99999999999999999999" is too large)"},
    {"cuda+mem=9999999999T", 10, R"("9999999999T" is too large)"},
    {"cpu+without=float65", 13, R"("float65" is not a dtype)"},
    {"cpu+without=float64/", 21, R"("" is not a dtype)"},
    {"cpu+without=int8+without=int8", 18, R"("without" is given twice)"},
    {"cuda+mme=4G", 6, R"("mme" is not an option; did you mean "mem"? (known: mem, without))"},
    {"cuda+memory=4G", 6, R"("memory" is not an option (known: mem, without))"},
    {"cuda+mem=4G+mem=4G", 13, R"("mem" is given twice)"},
    {"cuda+mem=4G@name~x", 12,
     R"(unexpected "@" after "cuda+mem=4G"; a device takes at most one condition, before the options)"},
    {"cuda0 cpu", 7, R"(unexpected "c" after "cuda0"; separate devices by commas)"},
    {"cuda0;cpu", 6, R"(unexpected ";" after "cuda0"; separate devices by commas)"},
    {"0", 1, R"(expected a device but found "0")" KNOWN},
    {":0", 1, R"(expected a device but found ":")" KNOWN},
    {"*", 1, R"(expected a device but found "*")" KNOWN},
    {"@pci=0000:65:00.0", 1, R"(expected a device but found "@")" KNOWN},
    {"+mem=4G", 1, R"(expected a device but found "+")" KNOWN},
    {"cuda0=4", 6, R"(unexpected "=" after "cuda0")"},
    {"größe0", 1, R"(unknown plugin "gr")" KNOWN},
    {"cuda@name~größe,opncl", 17, R"(unknown plugin "opncl"; did you mean "opencl"?)" KNOWN},
    {"cuda0\tx", 7, R"(unexpected "x" after "cuda0"; separate devices by commas)"},
    {"cuda!0", 5, R"(unexpected "!" after "cuda")"},
    {"cuda@name~a\tb", 12, "the value of name contains a control character"},
};
#undef KNOWN

TEST(Selector, IsRefusedWithACaretUnderTheFault) {
  for (const Bad& bad : kBad) {
    std::string shown = bad.text;
    std::replace(shown.begin(), shown.end(), '\t', ' ');
    std::string quoted = bad.text;
    for (size_t i = 0; (i = quoted.find('\t')) != std::string::npos;) quoted.replace(i, 1, "\\t");
    try {
      parse_selector(bad.text, "COMPUTE_DEVICE", kPlugins);
      ADD_FAILURE() << bad.text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code, COMPUTE_ERROR_INVALID_ARGUMENT);
      EXPECT_EQ(error.message, "COMPUTE_DEVICE \"" + quoted + "\", column " + std::to_string(bad.column) + ": " +
                                   bad.what + "\n  " + shown + "\n  " +
                                   std::string(static_cast<size_t>(bad.column - 1), ' ') + "^");
    }
  }
}

TEST(Selector, EscapesWhatCannotBeShown) {
  try {
    parse_selector("cpu,\x1b[31m\xff", "f", kGpus);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "f \"cpu,\\x1b[31m\xef\xbf\xbd\", column 5: expected a device but found \"\\x1b\" (known: auto, cpu, "
              "cuda, gpu, opencl)\n"
              "  cpu,\\x1b[31m\xef\xbf\xbd\n"
              "      ^");
  }
}

TEST(Selector, OfMoreThan4096BytesIsRefusedUnseen) {
  const std::string text(4097, 'a');
  try {
    parse_selector(text, "COMPUTE_DEVICE", {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "COMPUTE_DEVICE: the selector is 4097 bytes long; the limit is 4096");
  }
}

TEST(Selector, IsStrictIfItNamesOneDevice) {
  for (const char* text : {"cuda", "cuda0", "opencl@name~x", "gpu", "cpu"}) {
    EXPECT_TRUE(parse_selector(text, "t", kGpus).is_strict()) << text;
  }
  for (const char* text : {"", "auto", "auto,-cuda", "cuda,cpu", "cuda0,auto"}) {
    EXPECT_FALSE(parse_selector(text, "t", kGpus).is_strict()) << text;
  }
}

TEST(Selector, TellsWhichPluginsItCanChooseFrom) {
  const auto may = [](const char* text, const char* plugin) {
    return parse_selector(text, "t", kGpus).may_choose_from(plugin);
  };
  EXPECT_TRUE(may("", "cuda"));
  EXPECT_TRUE(may("auto", "cuda"));
  EXPECT_TRUE(may("gpu", "cuda"));
  EXPECT_TRUE(may("cuda3", "cuda"));
  EXPECT_FALSE(may("cpu", "cuda"));
  EXPECT_FALSE(may("auto,-cuda", "cuda"));
  EXPECT_TRUE(may("auto,-cuda", "opencl"));
  EXPECT_TRUE(may("auto,-cuda0", "cuda"));
  EXPECT_TRUE(may("auto,-cuda@name~x", "cuda"));
  EXPECT_TRUE(may("cuda0,auto,-cuda", "cuda"));
  EXPECT_FALSE(may("cpu,opencl", "cuda"));
}

TEST(NamedSelectors, AreReadInOrder) {
  const std::vector<NamedSelector> named =
      parse_named_selectors(" a = cuda0+mem=4G ;big_1=opencl@name=RX 1,cpu;;", "COMPUTE_DEVICES", kGpus);
  ASSERT_EQ(named.size(), 2U);
  EXPECT_EQ(named[0].name, "a");
  EXPECT_EQ(spelled(named[0].selector), "cuda first 0 mem 4294967296");
  EXPECT_EQ(named[1].name, "big_1");
  EXPECT_EQ(spelled(named[1].selector), "opencl name is RX 1 | cpu");
  EXPECT_EQ(named[1].selector.text.substr(named[1].selector.items[1].offset), "cpu");
  EXPECT_TRUE(parse_named_selectors(" ", "COMPUTE_DEVICES", kGpus).empty());
}

TEST(NamedSelectors, StandForTheirDevicesWhereverASelectorIs) {
  const std::vector<NamedSelector> named = parse_named_selectors(
      "all=big,host; big=cuda0+mem=4G,big_1;big_1=opencl@name~RX;host=cpu", "COMPUTE_DEVICES", kGpus);
  ASSERT_EQ(named.size(), 4U);
  EXPECT_EQ(spelled(named[0].selector), "cuda first 0 mem 4294967296 | opencl name has RX | cpu");
  const auto read = [&](std::string_view text) { return parse_selector(text, "COMPUTE_DEVICE", kGpus, named); };
  EXPECT_EQ(spelled(read("big_1")), "opencl name has RX");
  EXPECT_TRUE(read(" big_1 ").is_strict());
  EXPECT_FALSE(read("big").is_strict());
  EXPECT_EQ(read("cuda,big_1").items[1].alias, "big_1");
  EXPECT_EQ(read("cuda,big_1").items[1].offset, 5U);
  EXPECT_EQ(read("cuda,big_1").items[0].alias, "");
  EXPECT_EQ(spelled(read("cuda1, host")), "cuda first 1 | cpu");
  EXPECT_EQ(spelled(read("auto,-big")), "auto | -cuda first 0 | -opencl name has RX");
  EXPECT_TRUE(read("big_1").may_choose_from("opencl"));
  EXPECT_FALSE(read("big_1").may_choose_from("cuda"));
  EXPECT_THROW(read("big_2"), Error);
}

TEST(NamedSelectors, StandForNoMoreThanAListHolds) {
  const auto fault = [](const std::string& names, const std::string& list) -> std::string {
    try {
      parse_selector(list, "COMPUTE_DEVICE", kGpus, parse_named_selectors(names, "COMPUTE_DEVICES", kGpus));
    } catch (const Error& error) {
      const std::string message = error.what();
      return message.substr(0, message.find('\n')).substr(message.find(", column") + 2);
    }
    return "";
  };
  // each level names the next `times` times
  const auto nested = [](int levels, int times) {
    std::string text;
    for (int i = 0; i < levels; ++i) {
      const auto name = [](int level) {
        return "x" + std::string(1, static_cast<char>('a' + level / 26)) + static_cast<char>('a' + level % 26);
      };
      text += name(i) + "=";
      for (int k = 0; k < times; ++k) text += (k == 0 ? "" : ",") + (i + 1 < levels ? name(i + 1) : "cpu");
      text += ";";
    }
    return text;
  };
  const auto cpus = [](int count) {
    std::string text = "cpu";
    for (int i = 1; i < count; ++i) text += ",cpu";
    return text;
  };
  EXPECT_EQ(fault(nested(16, 1), "xaa"), "");
  EXPECT_EQ(fault(nested(17, 1), "xaa"), "column 125: names are nested more than 16 levels deep");
  EXPECT_EQ(fault(nested(300, 1), "xaa"), "column 125: names are nested more than 16 levels deep");
  EXPECT_EQ(fault(nested(6, 2), "xaa,xaa,xaa,xaa"), "");  // 4 · 64
  EXPECT_EQ(fault(nested(6, 2), "xaa,xaa,xaa,xaa, cpu"), "column 18: more than 256 devices after names are expanded");
  EXPECT_NE(fault(nested(16, 2), "xaa").find("more than 256 devices"), std::string::npos);
  EXPECT_EQ(fault("", cpus(256)), "");
  EXPECT_EQ(fault("", cpus(257)), "column 1025: more than 256 devices after names are expanded");
}

TEST(NamedSelectors, AreRefusedWithTheColumnInTheWholeText) {
  const Bad bad[] = {
      {"a", 2, R"(expected "=" after "a" but found the end)"},
      {"=cuda0", 1, R"(expected a name, as in a=cpu, but found "=")"},
      {"a=", 3, R"(expected a device after "=")"},
      {"a=;b=cpu", 3, R"(expected a device after "=")"},
      {"a=cuda0;a=cpu", 9, R"("a" is defined twice)"},
      {"a=cuda0;b", 10, R"(expected "=" after "b" but found the end)"},
      {"a b=cpu", 3, R"(expected "=" after "a" but found "b")"},
      {"a=cuda0;b=opencl0:x", 19, R"(expected a device index but found "x")"},
      {"a=cuda0;b=cpu,cdua", 15,
       R"(unknown plugin "cdua"; did you mean "cuda"? (known: a, auto, b, cpu, cuda, gpu, opencl))"},
      {"cuda1=cuda0", 1, R"("cuda1" is a name of devices; choose another name)"},
      {"Auto=cuda0", 1, R"("Auto" is a name of devices; choose another name)"},
      {"a=a", 3, R"("a" is defined in terms of itself)"},
      {"a=b;b=cpu,c;c=auto,-a", 21, R"("a" is defined in terms of itself)"},
      {"a=cuda0;b=a+mem=1G", 12, R"("a" is a name for "cuda0"; put conditions and options into its definition)"},
      {"a=cuda0;b=a@name~x", 12, R"("a" is a name for "cuda0"; put conditions and options into its definition)"},
      {"a=auto;b=auto,-a", 15, R"("a" is a name for "auto", which cannot be excluded)"},
      {"a=cuda0;b=cpu,-a", 15, R"("-a" excludes nothing: the list has neither auto nor gpu; write auto,-a)"},
  };
  for (const Bad& row : bad) {
    try {
      parse_named_selectors(row.text, "COMPUTE_DEVICES", kGpus);
      ADD_FAILURE() << row.text;
    } catch (const Error& error) {
      const std::string first_line = std::string(error.what()).substr(0, std::string_view(error.what()).find('\n'));
      EXPECT_EQ(first_line, std::string("COMPUTE_DEVICES \"") + row.text + "\", column " + std::to_string(row.column) +
                                ": " + row.what);
    }
  }
}

TEST(ByteAmount, OfAPercentageIsAPartOfTheTotal) {
  std::string reason;
  EXPECT_EQ(parse_byte_amount("30%", &reason)->of(1000), 300);
  EXPECT_EQ(parse_byte_amount("0.3", &reason)->of(1000), 300);
  EXPECT_EQ(parse_byte_amount("1.0", &reason)->of(1000), 1000);
  EXPECT_EQ(parse_byte_amount("1", &reason)->of(1000), 1);
  for (const char* text : {"0.0", "1.5", "2."}) EXPECT_FALSE(parse_byte_amount(text, &reason)) << text;
  EXPECT_EQ(parse_byte_amount("100%", &reason)->of(int64_t{1} << 40), int64_t{1} << 40);
  EXPECT_EQ(parse_byte_amount("4K", &reason)->of(1000), 4096);
  EXPECT_EQ(parse_byte_amount("0", &reason)->of(1000), 0);
}

TEST(ByteAmount, KeepsWholeNumbersExact) {
  std::string reason;
  EXPECT_EQ(parse_byte_amount("9223372036854775807", &reason)->size_bytes, INT64_MAX);
  EXPECT_EQ(parse_byte_amount("9007199254740993", &reason)->size_bytes, 9007199254740993);
  EXPECT_FALSE(parse_byte_amount("9223372036854775808", &reason));
  EXPECT_FALSE(parse_byte_amount("nan", &reason));
  EXPECT_FALSE(parse_byte_amount("1e3", &reason));
  EXPECT_FALSE(parse_byte_amount("", &reason));
}

}  // namespace
}  // namespace compute
