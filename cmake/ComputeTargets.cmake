# SPDX-License-Identifier: Apache-2.0
# Settings common to all targets. Nothing here is global: a target opts in by compute_target().

# The build tree has the shape of an installed one: libcompute in lib, plugins in lib/compute/plugins, programs in bin.
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(COMPUTE_CCACHE ccache)
mark_as_advanced(COMPUTE_CCACHE)
if(COMPUTE_CCACHE)
  foreach(language C CXX)
    if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
      # With these, ccache also caches objects compiled with a precompiled header.
      set(CMAKE_${language}_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros "${COMPUTE_CCACHE}")
    endif()
  endforeach()
endif()

add_library(compute_build_settings INTERFACE)
target_compile_features(compute_build_settings INTERFACE cxx_std_20 c_std_11)
target_compile_options(
  compute_build_settings
  INTERFACE -Wall -Wextra $<$<BOOL:${COMPUTE_WERROR}>:-Werror>)
# GCC 12 falsely warns about overlapping copies in std::string (GCC bug 105651), and with -O3 about impossible sizes of them.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12 AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(
    compute_build_settings
    INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>
              "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-Wno-stringop-overflow;-Wno-array-bounds>")
endif()
if(COMPUTE_SANITIZE STREQUAL "address")
  set(sanitize -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(COMPUTE_SANITIZE STREQUAL "thread")
  set(sanitize -fsanitize=thread -fno-omit-frame-pointer)
elseif(COMPUTE_SANITIZE)
  message(FATAL_ERROR "COMPUTE_SANITIZE is '${COMPUTE_SANITIZE}'; it must be address, thread or empty")
endif()
# A target with the property COMPUTE_CHECKS_OTHERS links the sanitizer, but its own code is not instrumented.
target_compile_options(compute_build_settings INTERFACE "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:COMPUTE_CHECKS_OTHERS>>>:${sanitize}>")
target_link_options(compute_build_settings INTERFACE ${sanitize})
# GCC defines a macro for each sanitizer, which the code tests (for example to stop reusing released objects). Clang does not define them.
if(COMPUTE_SANITIZE AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  string(TOUPPER "__SANITIZE_${COMPUTE_SANITIZE}__=1" sanitize_macro)
  target_compile_definitions(compute_build_settings INTERFACE ${sanitize_macro})
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(compute_build_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
endif()

# An installed program finds libcompute relative to itself, so the tree can be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY "${CMAKE_INSTALL_FULL_BINDIR}" OUTPUT_VARIABLE COMPUTE_BIN_TO_LIB)

# Standards without extensions, hidden visibility, warnings and the sanitizer.
function(compute_target target)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/${COMPUTE_BIN_TO_LIB}")
  endif()
  set_target_properties(
    ${target}
    PROPERTIES C_STANDARD 11
               C_EXTENSIONS OFF
               CXX_STANDARD 20
               CXX_EXTENSIONS OFF
               C_VISIBILITY_PRESET hidden
               CXX_VISIBILITY_PRESET hidden
               VISIBILITY_INLINES_HIDDEN ON
               POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:compute_build_settings>)
  if(COMPUTE_OWN_CODE_ALONE)
    set_target_properties(${target} PROPERTIES COMPUTE_CHECKS_OTHERS ON)
    target_compile_definitions(${target} PRIVATE __SANITIZE_ADDRESS__=1)
  endif()
endfunction()

# For a folder of tests: compiles the tests' own code without the address sanitizer, which would double its compile time. The code under test, the
# memory that tests allocate and the library functions that they call are still checked, and the sanitizer's macro stays defined. The thread sanitizer
# must see all code.
macro(compute_leave_own_code_alone)
  if(COMPUTE_SANITIZE STREQUAL "address")
    set(COMPUTE_OWN_CODE_ALONE ON)
  endif()
endmacro()

# Code that is not instrumented for the address sanitizer, such as the tests' own, is taken from a build without it, COMPUTE_TEST_OBJECTS, which
# compiles what is missing or older. Call this after all properties of `target` are set. EXCEPT: sources that differ with the sanitizer
# or name files of their build tree.
function(compute_share_objects target)
  get_target_property(alone ${target} COMPUTE_CHECKS_OTHERS)
  if(NOT alone OR NOT COMPUTE_TEST_OBJECTS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "EXCEPT")
  get_target_property(sources ${target} SOURCES)
  list(REMOVE_ITEM sources ${arg_EXCEPT})
  get_target_property(is_unity ${target} UNITY_BUILD)
  set(objects)
  set(joined 0)
  foreach(source IN LISTS sources)
    get_source_file_property(is_apart ${source} SKIP_UNITY_BUILD_INCLUSION)
    if(NOT is_unity OR is_apart)
      list(APPEND objects ${source})
    else()
      math(EXPR batch "${joined} / ${CMAKE_UNITY_BUILD_BATCH_SIZE}")
      list(APPEND objects Unity/unity_${batch}_cxx.cxx)
      math(EXPR joined "${joined} + 1")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES objects)
  file(RELATIVE_PATH folder "${PROJECT_BINARY_DIR}" "${CMAKE_CURRENT_BINARY_DIR}")
  list(TRANSFORM objects PREPEND "${folder}/CMakeFiles/${target}.dir/")
  list(TRANSFORM objects APPEND .o)
  set_property(GLOBAL APPEND PROPERTY COMPUTE_SHARED_OBJECTS ${objects})
  list(TRANSFORM objects PREPEND "${COMPUTE_TEST_OBJECTS}/")
  set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  set_target_properties(${target} PROPERTIES SOURCES "${arg_EXCEPT};${objects}" UNITY_BUILD OFF LINKER_LANGUAGE CXX)
  if(NOT arg_EXCEPT)
    set_target_properties(${target} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
  endif()
  add_dependencies(${target} shared_objects)
endfunction()

# Presets that build everything at once set CMAKE_UNITY_BUILD, which compiles a target's sources a few at a time, because most of the time goes into
# shared headers and templates. The preset `dev` compiles each file alone, so that a missing include is an error. The files of a batch share unnamed
# namespaces: rename what clashes, or set SKIP_UNITY_BUILD_INCLUSION on the file.
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)

# Lets `target` include "<room>/file.hpp" for the named rooms only: the source root is not on any include path, so includes of other rooms do not
# resolve.
function(compute_uses_rooms target)
  foreach(room IN LISTS ARGN)
    string(REPLACE "/" "_" view "${room}")
    set(view "${PROJECT_BINARY_DIR}/rooms/${view}")
    cmake_path(GET room PARENT_PATH parent)
    file(MAKE_DIRECTORY "${view}/${parent}")
    file(CREATE_LINK "${PROJECT_SOURCE_DIR}/${room}" "${view}/${room}" SYMBOLIC)
    target_include_directories(${target} PRIVATE "${view}")
  endforeach()
endfunction()

# A shared object without undefined symbols that exports only the symbols in `map`.
function(compute_seal target map)
  # Threads, exit handlers and fork handlers outlive a dlclose by the program.
  target_link_options(${target} PRIVATE "-Wl,--version-script=${map}" -Wl,--build-id=sha1 -Wl,-z,nodelete)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${map}")
  # clang leaves the sanitizer's symbols to the program.
  if(NOT (COMPUTE_SANITIZE AND CMAKE_CXX_COMPILER_ID MATCHES "Clang"))
    target_link_options(${target} PRIVATE -Wl,-z,defs)
  endif()
endfunction()

# A device plugin: target and file are both called `target`. Give it sources afterwards with target_sources().
function(compute_add_plugin target)
  add_library(${target} MODULE)
  compute_target(${target})
  set_target_properties(
    ${target} PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/compute/plugins")
  target_link_libraries(${target} PRIVATE Compute::headers)
  compute_seal(${target} "${PROJECT_SOURCE_DIR}/plugins/plugin.map")
endfunction()

# Makes and installs a manual page of what `program...` prints for --help. Targets among them are built first.
function(compute_help_page name summary)
  set(page "${CMAKE_CURRENT_BINARY_DIR}/${name}.1")
  set(program)
  foreach(word IN LISTS ARGN)
    if(TARGET ${word})
      list(APPEND program "$<TARGET_FILE:${word}>")
    else()
      list(APPEND program "${word}")
    endif()
  endforeach()
  add_custom_command(
    OUTPUT "${page}"
    COMMAND "${CMAKE_COMMAND}" -D NAME=${name} -D "SUMMARY=${summary}" -D "PAGE=${page}" -P "${PROJECT_SOURCE_DIR}/cmake/ComputeHelpPage.cmake" -- ${program}
    DEPENDS ${ARGN}
    VERBATIM)
  add_custom_target(${name}_page ALL DEPENDS "${page}")
  install(FILES "${page}" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT tools)
endfunction()
