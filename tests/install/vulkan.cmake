# SPDX-License-Identifier: Apache-2.0
# Builds plugins/vulkan against the installed tree TREE, and runs the conformance program on Mesa's processor driver.
find_program(glslang glslangValidator)
file(GLOB driver /usr/share/vulkan/icd.d/lvp_icd*.json)
file(GLOB optimizer /usr/lib/libSPIRV-Tools-opt.a /usr/lib/*/libSPIRV-Tools-opt.a)
if(NOT driver OR NOT glslang OR NOT optimizer OR NOT EXISTS /usr/include/vulkan/vulkan.h)
  message(STATUS "skipped: mesa-vulkan-drivers, libvulkan-dev, glslang-dev, glslang-tools and spirv-tools are needed")
  return()
endif()

file(MAKE_DIRECTORY "${WORK}/home")
foreach(name HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_CACHE_HOME)
  set(ENV{${name}} "${WORK}/home")
endforeach()
foreach(name COMPUTE_DEVICE COMPUTE_PLUGIN_PATH COMPUTE_PLUGIN_FILES COMPUTE_CONFIG LD_LIBRARY_PATH DESTDIR)
  unset(ENV{${name}})
endforeach()
set(ENV{VK_DRIVER_FILES} "${driver}")
set(ENV{VK_ICD_FILENAMES} "${driver}")
set(ENV{COMPUTE_CACHE_DIR} "${WORK}/kernels")
if(LEVEL STREQUAL "quick")
  set(ENV{GALLIVM_PERF} nopt) # the driver compiles twice as fast if it does not optimise, and most kernels run once
  set(optimization -DCMAKE_CXX_FLAGS_RELEASE=-O0) # the plugin compiles in a third of the time; the driver's compiler takes most of the rest
else()
  set(optimization -UCMAKE_CXX_FLAGS_RELEASE)
endif()

function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${what}: ${result}\n${output}")
  endif()
  string(REGEX MATCH "[^\n]*passed[^\n]*\n?$" summary "${output}")
  message(STATUS "${what}: ${summary}")
endfunction()

run("configure" ${CMAKE_COMMAND} -S "${SOURCE}/plugins/vulkan" -B "${WORK}/build" -G Ninja "-DCMAKE_PREFIX_PATH=${TREE}"
    "-DCMAKE_CXX_COMPILER=${CXX}" "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}" -DCMAKE_BUILD_TYPE=Release ${optimization} -DCMAKE_UNITY_BUILD=ON
    -DCOMPUTE_VULKAN_TESTS=ON)
run("build" ${CMAKE_COMMAND} --build "${WORK}/build" --parallel 2)
run("level ${LEVEL}" "${TREE}/${BINDIR}/compute-cts" --plugin "${WORK}/build/compute_plugin_vulkan.so" --device vulkan0
    --known "${SOURCE}/plugins/vulkan/known.txt" --level ${LEVEL} --jobs 2)

# Kernels of programs. The test prints its shader, which the compiler's own program makes SPIR-V of.
set(ENV{COMPUTE_PLUGIN_PATH} "${WORK}/build")
execute_process(COMMAND "${WORK}/build/vulkan_kernels" OUTPUT_FILE "${WORK}/kernel.comp" COMMAND_ERROR_IS_FATAL ANY)
run("glslangValidator" "${glslang}" -V --target-env vulkan1.2 -o "${WORK}/kernel.spv" "${WORK}/kernel.comp")
run("kernels" "${WORK}/build/vulkan_kernels" "${WORK}/kernel.spv")
