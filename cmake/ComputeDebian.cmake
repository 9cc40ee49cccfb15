# SPDX-License-Identifier: Apache-2.0
# Debian packages, one for each component, and a relocatable archive of all: see tools/package.
get_target_property(soversion compute SOVERSION)

set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_NAME compute)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "") # each package has its own
set(CPACK_PACKAGE_CONTACT "the compute authors <maintainers@compute.example>")
set(CPACK_PACKAGE_FILE_NAME "compute-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_ARCHIVE_COMPONENT_INSTALL OFF)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}/lib")
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PRE_BUILD_SCRIPTS "${CMAKE_CURRENT_LIST_DIR}/ComputeDebianFiles.cmake")

set(CPACK_COMPONENTS_ALL)
# compute_debian_package(COMPONENT NAME section "summary" "description" [FIELD value]...)
macro(compute_debian_package component name section summary description)
  string(TOUPPER ${component} upper)
  string(REPLACE ". " ".\n" text "${description}") # a line for each sentence
  list(APPEND CPACK_COMPONENTS_ALL ${component})
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${text}")
  set(fields ${ARGN})
  while(fields)
    list(POP_FRONT fields field value)
    set(CPACK_DEBIAN_${upper}_PACKAGE_${field} "${value}")
  endwhile()
endmacro()

set(same "(= ${PROJECT_VERSION})")
set(library libcompute${soversion})
# A plugin works with each library that has its interface.
set(interface compute-plugin-interface-${COMPUTE_PLUGIN_INTERFACE})
set(what "compute runs array operations on CPUs, CUDA devices and OpenCL devices.")

compute_debian_package(
  runtime ${library} libs "compute backend with plugin devices - shared library"
  "${what} This package has the library that programs link. It needs a plugin for each kind of device."
  PROVIDES ${interface} RECOMMENDS compute-plugin-cpu SUGGESTS "compute-plugin-cuda, compute-plugin-opencl, compute-tools")
compute_debian_package(
  development libcompute-dev libdevel "compute backend with plugin devices - development files"
  "${what} This package has the headers for C and C++, documents and examples. CMake, pkg-config and other languages find the library with it."
  DEPENDS "${library} ${same}" SUGGESTS libcompute-plugin-dev)
compute_debian_package(
  plugin_development libcompute-plugin-dev libdevel "compute backend with plugin devices - kit for plugins"
  "${what} This package has what plugins of vendors are made with. It contains static libraries, a template for a project, and examples."
  DEPENDS "libcompute-dev ${same}" RECOMMENDS compute-tools)
compute_debian_package(
  tools compute-tools utils "compute backend with plugin devices - command line tools"
  "${what} This package has compute, which lists and checks devices. compute-cts tests whether a device conforms. compute-bench measures devices."
  DEPENDS "${library} ${same}, python3" RECOMMENDS python3-numpy)
compute_debian_package(
  plugin_cpu compute-plugin-cpu libs "compute backend with plugin devices - processors"
  "${what} This plugin is for processors with any number of threads."
  DEPENDS ${interface} RECOMMENDS "libopenblas0-openmp, libdnnl2")
compute_debian_package(
  plugin_cuda compute-plugin-cuda libs "compute backend with plugin devices - CUDA"
  "${what} This plugin is for NVIDIA GPUs. It opens the driver and the CUDA toolkit's libraries at run time. They are not in Debian main."
  DEPENDS ${interface} SUGGESTS "libcuda1, libnvrtc11.2, libcublaslt11")
compute_debian_package(
  plugin_opencl compute-plugin-opencl libs "compute backend with plugin devices - OpenCL"
  "${what} This plugin is for devices with an OpenCL driver."
  DEPENDS "${interface}, ocl-icd-libopencl1 | libopencl1" RECOMMENDS "libclblast1" SUGGESTS "opencl-icd")
if(COMPUTE_PYTHON_INSTALL_DIR)
  compute_debian_package(
    python python3-compute python "compute backend with plugin devices - Python package"
    "${what} This package has arrays at the Python array API standard."
    DEPENDS "${library} ${same}, python3 (>= 3.11)" RECOMMENDS python3-numpy)
endif()
if(NOT COMPUTE_PLUGIN_CPU)
  list(REMOVE_ITEM CPACK_COMPONENTS_ALL plugin_cpu)
endif()
if(NOT COMPUTE_PLUGIN_CUDA)
  list(REMOVE_ITEM CPACK_COMPONENTS_ALL plugin_cuda)
endif()
if(NOT COMPUTE_PLUGIN_OPENCL)
  list(REMOVE_ITEM CPACK_COMPONENTS_ALL plugin_opencl)
endif()
# The dynamic linker's cache is updated by a trigger.
file(WRITE "${PROJECT_BINARY_DIR}/package/triggers" "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA "${PROJECT_BINARY_DIR}/package/triggers")
include(CPack)
