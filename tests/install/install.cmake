# SPDX-License-Identifier: Apache-2.0
# Builds and runs a C11 and a C++20 program against the installed tree TREE, once by find_package and once by pkg-config.

function(run what)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "OUTPUT" "COMMAND")
  execute_process(COMMAND ${arg_COMMAND} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${what}: ${result}\n${output}\n${errors}")
  endif()
  message(STATUS "${what}: passed")
  if(arg_OUTPUT)
    string(STRIP "${output}" output)
    set(${arg_OUTPUT} "${output}" PARENT_SCOPE)
  endif()
endfunction()

# An empty home folder, so that the user's settings and plugins have no effect.
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}/home")
foreach(name HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_CACHE_HOME)
  set(ENV{${name}} "${WORK}/home")
endforeach()
foreach(name COMPUTE_DEVICE COMPUTE_PLUGIN_PATH COMPUTE_PLUGIN_FILES COMPUTE_CONFIG LD_LIBRARY_PATH DESTDIR)
  unset(ENV{${name}})
endforeach()

set(prefix "${TREE}")

foreach(language c cpp)
  run("${language}: find_package, configure"
      COMMAND ${CMAKE_COMMAND} -S "${HERE}/consumer_${language}" -B "${WORK}/${language}" -G Ninja
              "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_C_COMPILER=${CC}" "-DCMAKE_CXX_COMPILER=${CXX}")
  run("${language}: find_package, build" COMMAND ${CMAKE_COMMAND} --build "${WORK}/${language}")
  run("${language}: find_package, run" COMMAND "${WORK}/${language}/consumer")
endforeach()

find_program(PKG_CONFIG pkg-config)
if(PKG_CONFIG)
  set(ENV{PKG_CONFIG_PATH} "${prefix}/${LIBDIR}/pkgconfig")
  run("pkg-config --modversion" COMMAND ${PKG_CONFIG} --modversion compute OUTPUT version)
  if(NOT version STREQUAL VERSION)
    message(FATAL_ERROR "pkg-config says ${version}, the headers ${VERSION}")
  endif()
  run("pkg-config --variable=plugindir" COMMAND ${PKG_CONFIG} --variable=plugindir compute OUTPUT plugin_dir)
  cmake_path(NORMAL_PATH plugin_dir)
  if(NOT plugin_dir STREQUAL "${prefix}/${LIBDIR}/compute/plugins")
    message(FATAL_ERROR "pkg-config says that plugins are in ${plugin_dir}")
  endif()
  run("pkg-config --cflags --libs" COMMAND ${PKG_CONFIG} --cflags --libs compute OUTPUT flags)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  set(ENV{LD_LIBRARY_PATH} "${prefix}/${LIBDIR}")
  run("c: pkg-config, build" COMMAND ${CC} -std=c11 -pedantic -Wall -Wextra -Werror "${HERE}/consumer_c/main.c" ${flags} -lm -o
                                     "${WORK}/by_pkg_config_c")
  run("c: pkg-config, run" COMMAND "${WORK}/by_pkg_config_c")
  run("cpp: pkg-config, build" COMMAND ${CXX} -std=c++20 -pedantic -Wall -Wextra -Werror "${HERE}/consumer_cpp/main.cpp" ${flags} -o
                                       "${WORK}/by_pkg_config_cpp")
  run("cpp: pkg-config, run" COMMAND "${WORK}/by_pkg_config_cpp")
  unset(ENV{LD_LIBRARY_PATH})
else()
  message(FATAL_ERROR "pkg-config is not installed")
endif()

# Installed programs run from the moved tree.
run("compute version" COMMAND "${prefix}/${BINDIR}/compute" version OUTPUT version)
if(NOT version MATCHES "${VERSION}")
  message(FATAL_ERROR "compute version says: ${version}")
endif()
run("compute which cpu" COMMAND "${prefix}/${BINDIR}/compute" which cpu)
run("exp_loop" COMMAND ${CMAKE_COMMAND} -E env COMPUTE_DEVICE=cpu "${prefix}/${BINDIR}/exp_loop" --iterations 2 OUTPUT output)
if(NOT output MATCHES "Used the cpu")
  message(FATAL_ERROR "exp_loop says: ${output}")
endif()
run("perceptron" COMMAND ${CMAKE_COMMAND} -E env COMPUTE_DEVICE=cpu "${prefix}/${BINDIR}/perceptron")
run("compute-cts" COMMAND "${prefix}/${BINDIR}/compute-cts" --help)
run("compute-cts, its lists" COMMAND "${prefix}/${BINDIR}/compute-cts" --device cpu --level smoke --jobs 2 OUTPUT output)
if(NOT output MATCHES " passed, 0 failed, ")
  message(FATAL_ERROR "compute-cts says: ${output}")
endif()

# ---- Every documented file ----
set(doc "${prefix}/${DOCDIR}")
foreach(
  file
  ${BINDIR}/compute
  ${BINDIR}/compute-bench
  ${BINDIR}/compute-cts
  ${DOCDIR}/CHANGELOG.md
  ${DOCDIR}/LICENSE
  ${DOCDIR}/README.md
  ${DOCDIR}/docs/building.md
  ${DOCDIR}/docs/devices/cuda.md
  ${DOCDIR}/docs/devices/opencl.md
  ${DOCDIR}/docs/writing-a-plugin.md
  ${LIBDIR}/compute/compute-bench-start
  ${LIBDIR}/compute/compute-probe
  share/compute/conformance/cpu.txt
  share/compute/conformance/cuda.txt
  share/compute/conformance/opencl.txt
  share/man/man1/compute.1
  share/bash-completion/completions/compute
  share/compute/bench/compute_bench/network_rows.py
  share/compute/bench/compute_bench/peers/torch.py
  share/compute/bench/compute_bench/programs/networks.py
  share/compute/bench/compute_bench/rows.py
  share/compute/LICENSE
  share/compute/bindings/fortran/ops.f90
  share/compute/bindings/go/ops.go
  share/compute/bindings/rust/src/ops.rs
  share/compute/examples/exp_loop.c
  share/compute/examples/perceptron.cpp
  share/compute/examples/plugin/CMakeLists.txt
  share/compute/examples/plugin/minimal.map
  share/compute/examples/plugin/plugin.cpp
  share/compute/examples/plugin_rust/lib.rs)
  if(NOT EXISTS "${prefix}/${file}")
    message(SEND_ERROR "${file} is not installed")
  endif()
endforeach()

# The notice of a library that the plugin contains.
set(plugin "${prefix}/${LIBDIR}/compute/plugins/compute_plugin_opencl.so")
if(EXISTS "${plugin}")
  file(STRINGS "${plugin}" found REGEX "VkFFT" LIMIT_COUNT 1)
  if(found AND NOT EXISTS "${doc}/licenses/VkFFT.txt")
    message(SEND_ERROR "licenses/VkFFT.txt is not installed")
  endif()
endif()

# Documents that headers name.
file(GLOB headers "${prefix}/include/compute/*")
foreach(header IN LISTS headers)
  file(READ "${header}" text)
  string(REGEX MATCHALL "docs/[A-Za-z0-9_/-]+[.]md" named "${text}")
  foreach(path IN LISTS named)
    if(NOT EXISTS "${doc}/${path}")
      message(SEND_ERROR "${header} names ${path}, which is not installed")
    endif()
  endforeach()
endforeach()
# The manifest on the page about plugins.
file(READ "${doc}/docs/writing-a-plugin.md" page)
string(REGEX MATCHALL "\n{\"name\": \"acme\".*\"license\": \"MIT\"}" manifest "${page}")
string(JSON library ERROR_VARIABLE problem GET "${manifest}" library)
if(problem)
  message(SEND_ERROR "the page's manifest: ${problem}")
endif()

# ---- The release preset ---- It has no tests except the conformance program, if GoogleTest is
# found.
function(configure_release build)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -S "${SOURCE}" -B "${WORK}/${build}" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCOMPUTE_TESTS=OFF
            "-DCMAKE_C_COMPILER=${CC}" "-DCMAKE_CXX_COMPILER=${CXX}" ${ARGN}
    OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(SEND_ERROR "release, configure: ${output}")
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} --build "${WORK}/${build}" --target help OUTPUT_VARIABLE targets)
  set(output "${output}" PARENT_SCOPE)
  set(targets "${targets}" PARENT_SCOPE)
endfunction()
configure_release(release)
if(NOT targets MATCHES "compute-cts:")
  message(SEND_ERROR "the release has no compute-cts: ${output}")
endif()
configure_release(release_without -DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON)
if(targets MATCHES "compute-cts:" OR NOT output MATCHES "without    compute-cts .GoogleTest was not found")
  message(SEND_ERROR "without GoogleTest: ${output}")
endif()
