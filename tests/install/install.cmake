# SPDX-License-Identifier: Apache-2.0
# Installs into a temporary directory, moves it, and builds and runs a C11 and a C++20 program against it, once by find_package
# and once by pkg-config.

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

# A fresh, empty home: neither settings nor plugins of the user who runs the tests take part.
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}/home")
foreach(name HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_CACHE_HOME)
  set(ENV{${name}} "${WORK}/home")
endforeach()
foreach(name COMPUTE_DEVICE COMPUTE_PLUGIN_PATH COMPUTE_PLUGIN_FILES COMPUTE_CONFIG LD_LIBRARY_PATH DESTDIR)
  unset(ENV{${name}})
endforeach()

run("install" COMMAND ${CMAKE_COMMAND} --install "${BUILD}" --prefix "${WORK}/first")
file(RENAME "${WORK}/first" "${WORK}/prefix")
set(prefix "${WORK}/prefix")

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

# What is installed beside the library runs where it now lies.
run("compute version" COMMAND "${prefix}/${BINDIR}/compute" version OUTPUT version)
if(NOT version MATCHES "${VERSION}")
  message(FATAL_ERROR "compute version says: ${version}")
endif()
run("compute which cpu" COMMAND "${prefix}/${BINDIR}/compute" which cpu)
run("exp_loop" COMMAND ${CMAKE_COMMAND} -E env COMPUTE_DEVICE=cpu "${prefix}/${BINDIR}/exp_loop" --iterations 2 OUTPUT output)
if(NOT output MATCHES "Used the cpu")
  message(FATAL_ERROR "exp_loop says: ${output}")
endif()
run("compute-cts" COMMAND "${prefix}/${BINDIR}/compute-cts" --help)
