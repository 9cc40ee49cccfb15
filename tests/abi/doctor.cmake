# SPDX-License-Identifier: Apache-2.0
# compute doctor finds each fault that it knows. The faults of plugins and of the configuration are in commands.cmake.
set(ENV{COMPUTE_DEVICE} cpu)
set(ENV{COMPUTE_CONFIG} /dev/null)
set(ENV{COMPUTE_CACHE_DIR} "${WORK}/cache")
set(ENV{COMPUTE_LOG} off)
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}" "${WORK}/none")
set(ENV{OCL_ICD_VENDORS} "${WORK}/none") # drivers would fill the cache

# expect("arguments" expression…): doctor finds no fault of the chosen device, and its output matches each expression.
function(expect arguments)
  separate_arguments(list UNIX_COMMAND "${arguments}")
  execute_process(COMMAND ${AS} "${PROGRAM}" doctor ${list} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT result EQUAL 0)
    message(SEND_ERROR "compute doctor ${arguments} ends with ${result}:\n${output}${errors}")
  endif()
  foreach(expression IN LISTS ARGN)
    if(NOT output MATCHES "${expression}")
      message(SEND_ERROR "compute doctor ${arguments} does not print ${expression}:\n${output}${errors}")
    endif()
  endforeach()
endfunction()

# ---- A system with GPUs -----------------------------------------------------------------------------------------------

# gpu(address vendor device class driver)
set(root "${WORK}/system")
function(gpu address vendor device class driver)
  set(folder "${root}/sys/bus/pci/devices/${address}")
  file(MAKE_DIRECTORY "${folder}" "${root}/sys/bus/pci/drivers/${driver}")
  file(WRITE "${folder}/vendor" "0x${vendor}\n")
  file(WRITE "${folder}/device" "0x${device}\n")
  file(WRITE "${folder}/class" "0x${class}\n")
  if(driver)
    file(CREATE_LINK "../../drivers/${driver}" "${folder}/driver" SYMBOLIC)
  endif()
endfunction()
gpu(0000:01:00.0 10de 2335 030200 nouveau)
gpu(0000:02:00.0 10de 2335 030200 nvidia)
gpu(0000:03:00.0 1002 740f 038000 amdgpu)
gpu(0000:04:00.0 8086 56c0 030000 "")
gpu(0000:05:00.0 10de 2335 030200 vfio-pci)
gpu(0000:06:00.0 1a03 2000 030000 ast)
gpu(0000:07:00.0 8086 1563 020000 ixgbe) # not a GPU
file(WRITE "${root}/sys/module/nvidia/version" "535.104.05\n")
file(MAKE_DIRECTORY "${root}/sys/module/amdgpu")
expect("--system-root ${root}"
       "\n  module +nvidia 535.104.05\n  module +amdgpu\n"
       "\n  PCI +0000:01:00.0 10de:2335, kernel driver: nouveau; no plugin uses it\n"
       "\n  PCI +0000:04:00.0 8086:56c0, kernel driver: none; no plugin uses it\n"
       "\nWarnings\n"
       "\n  no plugin uses the GPU 0000:01:00.0 .10de:2335.: install nvidia-driver"
       "\n  no plugin uses the GPU 0000:02:00.0 .10de:2335.: install libcuda1"
       "\n  no plugin uses the GPU 0000:03:00.0 .1002:740f.: install mesa-opencl-icd"
       "\n  no plugin uses the GPU 0000:04:00.0 .8086:56c0.: install intel-opencl-icd"
       "\n  no plugin uses the GPU 0000:05:00.0 .10de:2335.: it is reserved for virtual machines"
       "\n  no plugin uses the GPU 0000:06:00.0 .1a03:2000.: if it supports compute, "
       "\nNo faults\n")
expect("--system-root ${root} --json" "\"ids\": \"1002:740f\"" "\"nvidia 535.104.05\"" "\"warnings\": .\n +\"no plugin uses the GPU")

# A device node without access.
find_program(setpriv setpriv)
execute_process(COMMAND id -u OUTPUT_VARIABLE user OUTPUT_STRIP_TRAILING_WHITESPACE)
file(MAKE_DIRECTORY "${WORK}/nodes/dev/dri" "${WORK}/free")
execute_process(COMMAND mknod -m 600 "${WORK}/nodes/dev/dri/renderD128" c 1 3 RESULT_VARIABLE fault OUTPUT_QUIET ERROR_QUIET)
if(setpriv AND user EQUAL 0 AND fault EQUAL 0)
  set(AS "${setpriv}" --reuid=65534 --regid=65534 --clear-groups --)
  execute_process(COMMAND ${AS} "${PROGRAM}" --version RESULT_VARIABLE fault OUTPUT_QUIET ERROR_QUIET)
  if(fault EQUAL 0)
    set(ENV{COMPUTE_CACHE_DIR} "${WORK}/free/none")
    expect("--system-root ${WORK}/nodes" "\n  no access to ${WORK}/nodes/dev/dri/renderD128: Permission denied; join the group")
    set(ENV{COMPUTE_CACHE_DIR} "${WORK}/cache")
  endif()
  unset(AS)
endif()

# ---- Variables, the cache, libraries -----------------------------------------------------------------------------------

set(ENV{COMPUTE_DEVISE} cpu)
expect("" "\nNote +environment variable \"COMPUTE_DEVISE\" is not a setting; did you mean COMPUTE_DEVICE.\n")
unset(ENV{COMPUTE_DEVISE})

# A damaged entry, and one that has not been used for a long time.
file(MAKE_DIRECTORY "${WORK}/cache")
file(CHMOD "${WORK}/cache" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
string(REPEAT 0 32 name)
file(WRITE "${WORK}/cache/${name}.blob" "not a blob")
expect("" "\n  kernel cache +${WORK}/cache: 1 programs, " "\n  the kernel cache is stale: 1 programs are damaged or of another version, 0 ")
execute_process(COMMAND "${PROGRAM}" cache clear OUTPUT_QUIET)
expect("--system-root ${WORK}/nodes" "\n  kernel cache +${WORK}/cache: [0-9]+ programs, [0-9.]+ MB\n(Warnings\n  no access [^\n]+\n)?No faults\n")
file(CHMOD "${WORK}/cache" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE WORLD_READ WORLD_WRITE WORLD_EXECUTE)
expect("" "\n  compiled kernels are not cached: ${WORK}/cache: ")
file(WRITE "${WORK}/file" "")
set(ENV{COMPUTE_CACHE_DIR} "${WORK}/file") # not a folder
expect("" "\n  compiled kernels are not cached: ${WORK}/file cannot be written: Not a directory; set COMPUTE_CACHE_DIR to a folder of your own\n")
set(ENV{COMPUTE_CACHE_DIR} "${WORK}/cache")

# Libraries that cannot be opened, under every name that is tried.
foreach(name libdnnl.so.2 libclblast.so.1 libclblast.so)
  file(WRITE "${WORK}/libraries/${name}" "")
endforeach()
set(ENV{LD_LIBRARY_PATH} "${WORK}/libraries")
expect("" "\n    missing +oneDNN: ${WORK}/libraries/libdnnl.so" "\n    remedy +install version 2 of oneDNN"
       "\n    (found|missing) +OpenBLAS: ")
expect("--env" "\nVariables\nPATH +/" "\nLD_LIBRARY_PATH +${WORK}/libraries\n" "\n  C[+][+] compiler +/[^\n ]+: [^\n]*[0-9]+[.][0-9]")
unset(ENV{LD_LIBRARY_PATH})

# A loader without a platform, and a platform without devices.
if(OPENCL)
  expect("" "\n    missing +OpenCL driver: no platform has a device\n" "\n    remedy +install an OpenCL driver, e.g. pocl-opencl-icd\n")
  if(EMPTY_ICD)
    file(WRITE "${WORK}/empty/empty.icd" "${EMPTY_ICD}\n")
    set(ENV{OCL_ICD_VENDORS} "${WORK}/empty")
    expect("" "\n    missing +OpenCL driver: no platform has a device: A platform without devices\n")
  endif()
endif()
