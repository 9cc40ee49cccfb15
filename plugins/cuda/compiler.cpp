// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/compiler.hpp"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "plugins/common/driver/compiling.hpp"
#include "plugins/common/driver/program_store.hpp"
#include "plugins/common/op/core.hpp"
#include "plugins/cuda/libraries.hpp"

namespace compute::cuda {
namespace {

using common::Error;

class NvrtcProgram {
 public:
  NvrtcProgram(const Nvrtc& nvrtc, const std::string& text) : nvrtc_(nvrtc) {
    require(nvrtc_.api.create_program(&program_, text.c_str(), "kernel.cu", 0, nullptr, nullptr),
            "creating the program");
  }
  ~NvrtcProgram() { nvrtc_.api.destroy_program(&program_); }
  NvrtcProgram(const NvrtcProgram&) = delete;
  NvrtcProgram& operator=(const NvrtcProgram&) = delete;

  void require(nvrtcResult result, const char* what) const {
    if (result == NVRTC_SUCCESS) return;
    throw Error(result == NVRTC_ERROR_OUT_OF_MEMORY ? COMPUTE_ERROR_OUT_OF_MEMORY : COMPUTE_ERROR_COMPILE_FAILED,
                std::string("NVRTC failed while ") + what + ": " + nvrtc_.api.get_error_string(result), -1, result);
  }

  nvrtcResult compile(const std::vector<std::string>& options) {
    std::vector<const char*> pointers;
    for (const std::string& option : options) pointers.push_back(option.c_str());
    return nvrtc_.api.compile_program(program_, static_cast<int>(pointers.size()), pointers.data());
  }

  template <class GetSize, class Get>
  std::string output(GetSize get_size, Get get, const char* what) const {
    size_t size = 0;
    require(get_size(program_, &size), what);
    std::string text(size, '\0');
    if (size > 0) require(get(program_, text.data()), what);
    return text;
  }

  nvrtcProgram get() const { return program_; }

 private:
  const Nvrtc& nvrtc_;
  nvrtcProgram program_ = nullptr;
};

// A cache entry has the lowered name and the parameters' kinds before the code.
std::string packed(const Program& program) {
  std::string parameters = program.parameters ? "" : "unknown";
  for (const KernelParameter& parameter : program.parameters.value_or(std::vector<KernelParameter>{}))
    parameters += parameter.kind + std::to_string(parameter.bytes) + ' ';
  return program.entry + '\n' + parameters + '\n' + program.code;
}

bool unpack(const std::string& text, Program& program) {
  const size_t first = text.find('\n');
  const size_t second = first == std::string::npos ? first : text.find('\n', first + 1);
  if (second == std::string::npos) return false;
  program.entry = text.substr(0, first);
  const std::string list = text.substr(first + 1, second - first - 1);
  if (list != "unknown") {
    std::istringstream parameters(list);
    program.parameters.emplace();
    for (KernelParameter parameter; parameters >> parameter.kind >> parameter.bytes;)
      program.parameters->push_back(parameter);
  }
  program.code = text.substr(second + 1);
  return true;
}

}  // namespace

std::optional<std::vector<KernelParameter>> parameters_of(std::string_view ptx, std::string_view name) {
  // .visible .entry NAME(
  //   .param .u64 .ptr .align 1 NAME_param_0,
  //   .param .f32 NAME_param_1,
  //   .param .align 16 .b8 NAME_param_2[16]
  // )
  const std::string head = ".entry " + std::string(name) + "(";
  const size_t at = ptx.find(head);
  if (at == std::string_view::npos) return std::nullopt;
  if (ptx.substr(at + head.size(), 1) == ")") return std::vector<KernelParameter>{};
  const size_t end = ptx.find("\n)", at + head.size());
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view list = ptx.substr(at + head.size(), end - at - head.size());
  std::vector<KernelParameter> parameters;
  for (size_t next = list.find(".param "); next != std::string_view::npos;) {
    const size_t following = list.find(".param ", next + 1);
    const std::string_view one = list.substr(next, following == std::string_view::npos ? following : following - next);
    next = following;
    // The type is the last word that begins with a dot and ends in its width in bits.
    int32_t bytes = 0;
    for (const auto& [type, size] : {std::pair{".b8 ", 1},
                                     {".u8 ", 1},
                                     {".s8 ", 1},
                                     {".b16 ", 2},
                                     {".u16 ", 2},
                                     {".s16 ", 2},
                                     {".f16 ", 2},
                                     {".b32 ", 4},
                                     {".u32 ", 4},
                                     {".s32 ", 4},
                                     {".f32 ", 4},
                                     {".b64 ", 8},
                                     {".u64 ", 8},
                                     {".s64 ", 8},
                                     {".f64 ", 8}}) {
      if (one.find(type) != std::string_view::npos) bytes = size;
    }
    if (const size_t bracket = one.find('['); bracket != std::string_view::npos)
      bytes *= std::atoi(one.data() + bracket + 1);
    KernelParameter parameter{bytes, '?'};
    const bool may_be_pointer =
        one.find(".u64 ") != std::string_view::npos || one.find(".b64 ") != std::string_view::npos;
    // What has a pointer's width may be either: an address may be passed as a number.
    if (one.find(".ptr") != std::string_view::npos) parameter.kind = 'p';
    if (!may_be_pointer) parameter.kind = 'v';
    parameters.push_back(parameter);
  }
  return parameters;
}

int target_architecture(int compute_capability) {
  const Nvrtc* nvrtc = cuda::nvrtc();
  if (nvrtc == nullptr) {
    const LibraryReport report = nvrtc_report();
    throw Error(COMPUTE_ERROR_UNSUPPORTED,
                "NVRTC was not found: tried " + tried_in_short(report) + " (" + report.error + "); " + report.remedy);
  }
  const auto& architectures = nvrtc->architectures;
  const auto above = std::upper_bound(architectures.begin(), architectures.end(), compute_capability);
  if (above == architectures.begin()) {
    const std::string range = std::to_string(architectures.front()) + " to " + std::to_string(architectures.back());
    throw Error(COMPUTE_ERROR_UNSUPPORTED,
                "NVRTC " + std::to_string(nvrtc->major) + "." + std::to_string(nvrtc->minor) +
                    " generates code for compute capabilities " + range + ", but the device has " +
                    std::to_string(compute_capability) + "; install an older libnvrtc");
  }
  return above[-1];
}

Program compile(std::string_view text, std::string_view expression, int compute_capability,
                const std::vector<std::string>& given) {
  const int architecture = target_architecture(compute_capability);
  const bool to_cubin = architecture == compute_capability;
  const Nvrtc* nvrtc = cuda::nvrtc();
  std::vector<std::string> options = given;
  options.push_back((to_cubin ? "--gpu-architecture=sm_" : "--gpu-architecture=compute_") +
                    std::to_string(architecture) + (to_cubin && has_tile_units(architecture, nvrtc->major) ? "a" : ""));
  options.emplace_back("--std=c++17");
  options.emplace_back("--device-as-default-execution-space");
  options.emplace_back("--diag-suppress=177");  // functions of the prelude that a kernel does not call

  std::string joined(expression);
  for (const std::string& option : options) joined += ' ' + option;
  const std::string compiler = "nvrtc " + std::to_string(nvrtc->major) + "." + std::to_string(nvrtc->minor);
  const common::ProgramKey key = {"cuda", text, options[given.size()], compiler, joined};
  const bool is_cached = !common::may_include(key);
  Program program;
  if (const auto found = is_cached ? common::load_program(key) : std::nullopt; found && unpack(*found, program))
    return program;

  const common::Compiling compiling;
  NvrtcProgram compilation(*nvrtc, std::string(text));
  const std::string name(expression);
  compilation.require(nvrtc->api.add_name_expression(compilation.get(), name.c_str()), "naming the kernel");
  const nvrtcResult result = compilation.compile(options);
  if (result != NVRTC_SUCCESS) {
    std::string log =
        compilation.output(nvrtc->api.get_program_log_size, nvrtc->api.get_program_log, "reading the log");
    while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
    throw Error(COMPUTE_ERROR_COMPILE_FAILED,
                "kernel " + name + ": " + nvrtc->api.get_error_string(result) + "\n" + log, -1, result);
  }
  const char* lowered = nullptr;
  compilation.require(nvrtc->api.get_lowered_name(compilation.get(), name.c_str(), &lowered), "finding the kernel");
  program.entry = lowered;
  const std::string ptx = compilation.output(nvrtc->api.get_ptx_size, nvrtc->api.get_ptx, "reading the PTX");
  program.parameters = parameters_of(ptx, program.entry);
  program.code =
      to_cubin ? compilation.output(nvrtc->api.get_cubin_size, nvrtc->api.get_cubin, "reading the code") : ptx;
  program.was_compiled = true;
  if (is_cached) common::store_program(key, packed(program));
  return program;
}

}  // namespace compute::cuda
