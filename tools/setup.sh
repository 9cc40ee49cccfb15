# SPDX-License-Identifier: Apache-2.0
# What tools/run and tools/test share: the packages that they need, and installing them. Sourced, not run.

# To build and to run: what core and the CPU plugin are made with, and the matrix libraries that the plugin opens at run time.
packages_to_run=(
  ccache
  libboost-dev
  libclblast1
  libcli11-dev
  libdnnl-dev
  libfmt-dev
  libopenblas0-openmp
  libspdlog-dev
  libtbb-dev
  libtomlplusplus-dev
  libxxhash-dev
  ninja-build
  nlohmann-json3-dev
  ocl-icd-libopencl1
  pkg-config
  pocl-opencl-icd
)

# A compiler and a CMake that are there are used as they are.
command -v "${CXX:-c++}" >/dev/null || packages_to_run+=(g++)
command -v cmake >/dev/null || packages_to_run+=(cmake)

# Further ones that only tests need.
packages_to_test=(
  abigail-tools
  libbenchmark-dev
  libclblast-dev
  libgtest-dev
  libopenblas0-serial
  oclgrind
  opencl-headers
  python3-numpy
  valgrind
)

say() { printf '\n== %s\n' "$*"; }

# Installs those of the named packages that are missing, in one line, or says what to install and fails.
install_packages() {
  local allowed=$1 missing=() package
  shift
  if ! command -v apt-get >/dev/null; then
    echo "This is no Debian or Ubuntu; the build needs what these packages hold: $*"
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
    echo "Missing packages, and --no-install forbids to install them. This would: ${install[*]}" >&2
    return 1
  fi
  if ((EUID != 0)) && ! command -v sudo >/dev/null; then
    echo "Missing packages, and there is no sudo here. As root: ${install[*]:1}" >&2
    return 1
  fi
  # A machine whose package lists are empty or stale knows nothing that it could install.
  apt-cache show "${missing[@]}" >/dev/null 2>&1 || "${root[@]}" apt-get update
  echo "${install[*]}"
  "${install[@]}"
}
