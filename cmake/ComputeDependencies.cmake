# SPDX-License-Identifier: Apache-2.0
# Libraries that the build needs. Plugins open vendor libraries at run time.

find_package(Threads REQUIRED)
find_package(Boost 1.74 REQUIRED) # Boost.DLL, headers alone
find_package(fmt REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)

# toml++ and xxHash are used as headers, so that libcompute depends on neither at run time.
find_path(COMPUTE_TOML_INCLUDE toml++/toml.h REQUIRED)
find_path(COMPUTE_XXHASH_INCLUDE xxhash.h REQUIRED)
mark_as_advanced(COMPUTE_TOML_INCLUDE COMPUTE_XXHASH_INCLUDE)

add_library(compute_toml INTERFACE)
target_include_directories(compute_toml SYSTEM INTERFACE "${COMPUTE_TOML_INCLUDE}")
target_compile_definitions(compute_toml INTERFACE TOML_HEADER_ONLY=1)

add_library(compute_xxhash INTERFACE)
target_include_directories(compute_xxhash SYSTEM INTERFACE "${COMPUTE_XXHASH_INCLUDE}")
target_compile_definitions(compute_xxhash INTERFACE XXH_INLINE_ALL)
if(COMPUTE_SANITIZE)
  target_compile_definitions(compute_xxhash INTERFACE XXH_NO_INLINE_HINTS=1) # GCC's -Og cannot inline everything that it marks as always inline
endif()

add_library(compute_boost_dll INTERFACE)
target_link_libraries(compute_boost_dll INTERFACE Boost::headers ${CMAKE_DL_LIBS})
target_compile_definitions(compute_boost_dll INTERFACE BOOST_DLL_USE_STD_FS)

if(COMPUTE_PLUGIN_CPU)
  find_package(TBB REQUIRED)
endif()
if(COMPUTE_TOOLS)
  find_package(CLI11 REQUIRED)
endif()
if(COMPUTE_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
elseif(COMPUTE_CTS)
  find_package(GTest QUIET)
  if(NOT GTest_FOUND)
    set(COMPUTE_CTS OFF)
    set(COMPUTE_WITHOUT_CTS "GoogleTest was not found")
  endif()
endif()
