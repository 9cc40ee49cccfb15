// SPDX-License-Identifier: Apache-2.0
#include "core/loading/load_report.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace compute {
namespace {

LoadReport example() {
  LoadReport report;
  PluginReport cpu;
  cpu.name = "cpu";
  cpu.version = "0.1.0";
  cpu.path = "/lib/compute/plugins/compute_plugin_cpu.so";
  cpu.source = "beside libcompute";
  cpu.step = LoadStep::kOpened;
  cpu.devices = {{"cpu", "AMD EPYC 9575F", ""}};
  cpu.requirements = {{"oneDNN",
                       RequirementReport::State::kFound,
                       false,
                       {"libdnnl.so.3", "libdnnl.so.2"},
                       "/lib/libdnnl.so.2, 2.6.3",
                       "",
                       "matrix products are slower",
                       "install libdnnl2"},
                      {"OpenBLAS", RequirementReport::State::kUnknown, false, {}, "", "", "", "install libopenblas0"}};
  PluginReport cuda;
  cuda.name = "cuda";
  cuda.version = "0.1.0";
  cuda.path = "/lib/compute/plugins/compute_plugin_cuda.so";
  cuda.step = LoadStep::kOpened;
  cuda.requirements = {{"NVIDIA driver",
                        RequirementReport::State::kMissing,
                        true,
                        {"libcuda.so.1"},
                        "",
                        "libcuda.so.1: cannot open shared object file",
                        "no CUDA devices",
                        "install the NVIDIA driver"}};
  PluginReport acme;
  acme.name = "acme";
  acme.path = "/opt/acme/acme.so";
  acme.manifest = "/etc/compute/plugins.d/acme.json";
  acme.step = LoadStep::kManifest;
  acme.rejected = "2 libraries are missing";
  acme.missing_libraries = {"libacmert.so.2", "libfoo.so"};
  PluginReport opencl;
  opencl.name = "opencl";
  opencl.path = "/lib/compute/plugins/compute_plugin_opencl.so";
  opencl.step = LoadStep::kInterface;
  opencl.note = "COMPUTE_DEVICE does not ask for it";
  PluginReport two;
  two.name = "two";
  two.path = "/two.so";
  two.step = LoadStep::kOpened;
  two.devices = {{"two0", "Two", ""}, {"two1", "Two", "the board is off"}};
  report.plugins = {cpu, cuda, acme, opencl, two};
  report.refused = {{"plugins", "from COMPUTE_PLUGIN_PATH: not an absolute path"}};
  report.searched = {{"/lib/compute/plugins", "beside libcompute", true}, {"/home/u/p", "the user's folder", false}};
  report.notes = {"COMPUTE_CONFIG is ignored: the process is privileged"};
  return report;
}

TEST(LoadReport, PrintsAsText) {
  EXPECT_EQ(example().to_text(), R"(Plugins
  cpu 0.1.0       1 device: /lib/compute/plugins/compute_plugin_cpu.so
    cpu           AMD EPYC 9575F
    found         oneDNN: /lib/libdnnl.so.2, 2.6.3
  cuda 0.1.0      no devices: /lib/compute/plugins/compute_plugin_cuda.so
    missing       NVIDIA driver: libcuda.so.1: cannot open shared object file
                  tried libcuda.so.1
                  without it: no CUDA devices
    remedy        install the NVIDIA driver
  acme            rejected: /opt/acme/acme.so
    manifest      /etc/compute/plugins.d/acme.json
    rejected      2 libraries are missing
    missing       libacmert.so.2
    missing       libfoo.so
    remedy        install libacmert.so.2, libfoo.so, or add the directory to LD_LIBRARY_PATH
  opencl          not opened: /lib/compute/plugins/compute_plugin_opencl.so
                  COMPUTE_DEVICE does not ask for it
  two             2 devices: /two.so
    two0          Two
    two1          Two
                  not usable: the board is off
Ignored
  plugins         from COMPUTE_PLUGIN_PATH: not an absolute path
Searched
                  /lib/compute/plugins (beside libcompute)
  not found       /home/u/p (the user's folder)
Note              COMPUTE_CONFIG is ignored: the process is privileged
)");
  EXPECT_EQ(LoadReport().to_text(), "Plugins\n  none found\n");
}

TEST(LoadReport, PrintsAsJsonOfTheStatedSchema) {
  const nlohmann::json json = nlohmann::json::parse(example().to_json());
  ASSERT_EQ(json["plugins"].size(), 5U);
  const nlohmann::json& cuda = json["plugins"][1];
  EXPECT_EQ(cuda["name"], "cuda");
  EXPECT_EQ(cuda["state"], "opened");
  EXPECT_TRUE(cuda["rejected"].is_null());
  EXPECT_EQ(cuda["requirements"][0]["state"], "missing");
  EXPECT_EQ(cuda["requirements"][0]["required"], true);
  EXPECT_EQ(cuda["requirements"][0]["tried"][0], "libcuda.so.1");
  EXPECT_EQ(cuda["remedies"][0], "install the NVIDIA driver");
  const nlohmann::json& acme = json["plugins"][2];
  EXPECT_EQ(acme["state"], "manifest");
  EXPECT_EQ(acme["rejected"], "2 libraries are missing");
  EXPECT_EQ(acme["missing_libraries"][1], "libfoo.so");
  EXPECT_EQ(json["plugins"][3]["note"], "COMPUTE_DEVICE does not ask for it");
  EXPECT_TRUE(json["plugins"][4]["devices"][0]["problem"].is_null());
  EXPECT_EQ(json["plugins"][4]["devices"][1]["problem"], "the board is off");
  EXPECT_EQ(json["refused"][0]["entry"], "plugins");
  EXPECT_EQ(json["searched"][1]["exists"], false);
  EXPECT_EQ(json["notes"].size(), 1U);
}

TEST(LoadReport, OfNamesThatAreNotUtf8IsStillJson) {
  LoadReport report;
  report.notes = {"/tmp/\xFF.so"};
  EXPECT_TRUE(nlohmann::json::accept(report.to_json()));
}

TEST(PluginReport, SaysInOneLineWhyThereIsNoDevice) {
  const LoadReport report = example();
  EXPECT_EQ(report.plugins[0].problem(), "");
  EXPECT_EQ(report.plugins[1].problem(),
            "NVIDIA driver: libcuda.so.1: cannot open shared object file; run compute doctor for details");
  EXPECT_EQ(report.plugins[2].problem(), "2 libraries are missing");
  EXPECT_EQ(report.plugins[3].problem(), "COMPUTE_DEVICE does not ask for it");
  PluginReport none;
  none.step = LoadStep::kOpened;
  EXPECT_EQ(none.problem(), "it found no devices");
}

}  // namespace
}  // namespace compute
