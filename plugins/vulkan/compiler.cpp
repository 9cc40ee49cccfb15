// SPDX-License-Identifier: Apache-2.0
#include "compiler.hpp"

#include <glslang/Include/glslang_c_interface.h>
#include <glslang/Public/resource_limits_c.h>

#include <memory>

#include "core.hpp"

namespace vulkan {
namespace {

// Of SPIR-V.
enum Opcode : uint32_t {
  kOpExecutionMode = 16,
  kOpEntryPoint = 15,
  kOpCapability = 17,
  kOpTypeVoid = 19,
  kOpConstantFirst = 41,
  kOpDecorate = 71,
  kOpFNegate = 127,
  kOpFAdd = 129,
  kOpFSub = 131,
  kOpFMul = 133,
  kOpFDiv = 136,
  kOpFRem = 140,
  kOpFMod = 141,
  kOpVectorTimesScalar = 142,
  kOpDot = 148,
};
constexpr uint32_t kNoContraction = 42;
// Capabilities and execution modes of float controls, which belong to SPIR-V since 1.4.
constexpr uint32_t kDenormPreserve[] = {4464, 4459}, kSignedZeroInfNanPreserve[] = {4466, 4461},
                   kRoundingModeRte[] = {4467, 4462};
constexpr uint32_t kFloat64Capability = 10;

bool may_be_contracted(uint32_t opcode) {
  switch (opcode) {
    case kOpFNegate:
    case kOpFAdd:
    case kOpFSub:
    case kOpFMul:
    case kOpFDiv:
    case kOpFRem:
    case kOpFMod:
    case kOpVectorTimesScalar:
    case kOpDot:
      return true;
    default:
      return false;
  }
}

// Adds what GLSL cannot say of a whole shader: exact arithmetic, and the modes of floats.
std::vector<uint32_t> make_exact(const std::vector<uint32_t>& spirv, const Features& features) {
  constexpr size_t kHeader = 5;
  std::vector<uint32_t> out(spirv.begin(), spirv.begin() + kHeader), decorations;
  uint32_t entry = 0;
  bool has_float64 = false, has_modes = false, has_decorations = false;
  const auto each = [&](const auto& visit) {
    for (size_t i = kHeader; i < spirv.size();) {
      const uint32_t words = spirv[i] >> 16;
      if (words == 0 || i + words > spirv.size()) throw Failure(COMPUTE_ERROR_INTERNAL, "vulkan: damaged SPIR-V");
      visit(spirv[i] & 0xffff, i, words);
      i += words;
    }
  };
  each([&](uint32_t opcode, size_t at, uint32_t) {
    if (opcode == kOpCapability && spirv[at + 1] == kFloat64Capability) has_float64 = true;
    if (opcode == kOpEntryPoint) entry = spirv[at + 2];
    if (may_be_contracted(opcode)) {
      decorations.push_back((3u << 16) | kOpDecorate);
      decorations.push_back(spirv[at + 2]);
      decorations.push_back(kNoContraction);
    }
  });
  std::vector<uint32_t> capabilities, modes;
  const auto add_mode = [&](const bool(&has)[2], const uint32_t(&numbers)[2]) {
    bool any = false;
    for (int size = 0; size < (has_float64 ? 2 : 1); ++size) {
      if (!has[size]) continue;
      any = true;
      modes.insert(modes.end(), {(4u << 16) | kOpExecutionMode, entry, numbers[1], size == 0 ? 32u : 64u});
    }
    if (any) capabilities.insert(capabilities.end(), {(2u << 16) | kOpCapability, numbers[0]});
  };
  add_mode(features.keeps_subnormals, kDenormPreserve);
  add_mode(features.keeps_special_values, kSignedZeroInfNanPreserve);
  add_mode(features.rounds_to_even, kRoundingModeRte);
  out.insert(out.end(), capabilities.begin(), capabilities.end());
  each([&](uint32_t opcode, size_t at, uint32_t words) {
    if (!has_modes && opcode == kOpExecutionMode) {
      out.insert(out.end(), modes.begin(), modes.end());
      has_modes = true;
    }
    if (!has_decorations && (opcode == kOpDecorate || (opcode >= kOpTypeVoid && opcode < kOpConstantFirst))) {
      out.insert(out.end(), decorations.begin(), decorations.end());
      has_decorations = true;
    }
    out.insert(out.end(), spirv.begin() + static_cast<std::ptrdiff_t>(at),
               spirv.begin() + static_cast<std::ptrdiff_t>(at + words));
  });
  return out;
}

std::vector<uint32_t> compile(const std::string& source) {
  [[maybe_unused]] static const int initialized = glslang_initialize_process();
  glslang_input_t input = {};
  input.language = GLSLANG_SOURCE_GLSL;
  input.stage = GLSLANG_STAGE_COMPUTE;
  input.client = GLSLANG_CLIENT_VULKAN;
  input.client_version = GLSLANG_TARGET_VULKAN_1_2;
  input.target_language = GLSLANG_TARGET_SPV;
  input.target_language_version = GLSLANG_TARGET_SPV_1_5;
  input.code = source.c_str();
  input.default_version = 460;
  input.default_profile = GLSLANG_NO_PROFILE;
  input.messages = static_cast<glslang_messages_t>(GLSLANG_MSG_SPV_RULES_BIT | GLSLANG_MSG_VULKAN_RULES_BIT);
  input.resource = glslang_default_resource();
  const std::unique_ptr<glslang_shader_t, void (*)(glslang_shader_t*)> shader(glslang_shader_create(&input),
                                                                              glslang_shader_delete);
  if (shader == nullptr) throw std::bad_alloc();
  const auto fail = [&](const char* log) -> Failure {
    return Failure(COMPUTE_ERROR_COMPILE_FAILED, std::string("vulkan: GLSL does not compile\n") + log);
  };
  if (!glslang_shader_preprocess(shader.get(), &input) || !glslang_shader_parse(shader.get(), &input))
    throw fail(glslang_shader_get_info_log(shader.get()));
  const std::unique_ptr<glslang_program_t, void (*)(glslang_program_t*)> program(glslang_program_create(),
                                                                                 glslang_program_delete);
  glslang_program_add_shader(program.get(), shader.get());
  if (!glslang_program_link(program.get(), input.messages)) throw fail(glslang_program_get_info_log(program.get()));
  glslang_spv_options_t options = {};
  options.disable_optimizer = true;
  glslang_program_SPIRV_generate_with_options(program.get(), GLSLANG_STAGE_COMPUTE, &options);
  std::vector<uint32_t> spirv(glslang_program_SPIRV_get_size(program.get()));
  glslang_program_SPIRV_get(program.get(), spirv.data());
  return spirv;
}

}  // namespace

std::vector<uint32_t> compile_glsl(const std::string& source, const Features& features) {
  try {
    return make_exact(compile(source), features);
  } catch (const Failure& failure) {
    throw Failure(failure.code, std::string(failure.what()) + "\n" + source);
  }
}

std::vector<uint32_t> compile_user_glsl(const std::string& source) { return compile(source); }

}  // namespace vulkan
