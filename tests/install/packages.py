#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs the Debian packages that tools/package made into an empty root, and uses them there.

    packages.py FOLDER WORK

Each package is installed, removed and replaced by dpkg with a database of its own, so nothing of the system changes.
Needs dpkg, a C++ compiler and CMake; lintian judges the packages if it is installed.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

PROGRAM = """
import os, sys
import compute as cp
x = cp.ones(1000)
sys.stdout.write("ready\\n"); sys.stdout.flush()
turns = 0
while turns == 0 or not os.path.exists(sys.argv[1]):
    assert float(cp.sum(x * 2)) == 2000
    turns += 1
assert float(cp.sum(cp.exp(x * 0))) == 1000  # an op that was not used before
print(turns)
"""

CLIENT = """
#include <compute/compute.h>
#include <stdio.h>
int main(void) {
  const int64_t shape[1] = {3};
  const float two = 2;
  float values[3] = {0};
  compute_device* opened = NULL;
  if (compute_device_open("cpu", &opened) != NULL) return 1;
  compute_tensor* tensor = NULL;
  if (compute_tensor_full(opened, COMPUTE_DTYPE_FLOAT32, 1, shape, &two, &tensor) != NULL) return 2;
  if (compute_tensor_read(tensor, values, sizeof values) != NULL) return 3;
  printf("%g %g %g\\n", values[0], values[1], values[2]);
  compute_tensor_release(tensor);
  compute_device_release(opened);
  return 0;
}
"""


class Root:
    """An empty system, with a database of packages."""

    def __init__(self, folder):
        self.folder = folder
        self.database = folder / "var/lib/dpkg"
        for name in ("info", "updates", "triggers"):
            (self.database / name).mkdir(parents=True)
        for name in ("status", "available"):
            (self.database / name).touch()
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("COMPUTE_")}
        home = folder / "home"
        home.mkdir()
        libraries = folder / "usr/lib" / output("dpkg-architecture", "-qDEB_HOST_MULTIARCH").strip()
        self.environment.update(HOME=str(home), XDG_CONFIG_HOME=str(home), XDG_CACHE_HOME=str(home),
                                LD_LIBRARY_PATH=str(libraries), COMPUTE_LOG="error",
                                PYTHONPATH=str(folder / "usr/lib/python3/dist-packages"))

    def dpkg(self, *arguments):
        # Packages of Debian are not installed in the root; the system's are used.
        return output("dpkg", "--root", self.folder, "--force-depends", "--force-not-root", "--force-bad-path",
                      "--force-script-chrootless",
                      "--log=/dev/null", *arguments)

    def run(self, program, *arguments, check=True):
        return output(self.folder / program, *arguments, check=check, env=self.environment)


def output(*command, check=True, **more):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, **more)
    if check and result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout + ("" if check else result.stderr)


def expect(condition, what):
    if not condition:
        sys.exit(f"failed: {what}")
    print(f"passed: {what.splitlines()[0]}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    options = parser.parse_args()
    work = options.work.resolve()
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    packages = {}
    for file in sorted(options.folder.resolve().glob("*.deb")):
        packages[output("dpkg-deb", "--field", file, "Package").strip()] = file
    library, = (name for name in packages if name.startswith("libcompute") and name[len("libcompute"):].isdigit())
    expected = {library, "libcompute-dev", "libcompute-plugin-dev", "compute-tools", "compute-plugin-cpu",
                "compute-plugin-cuda", "compute-plugin-opencl", "compute-plugin-vulkan", "python3-compute"}
    expect(set(packages) == expected, f"the packages are {', '.join(sorted(packages))}")

    provided = output("dpkg-deb", "--field", packages[library], "Provides").strip()
    for name in packages:
        depends = output("dpkg-deb", "--field", packages[name], "Depends")
        wanted = provided if name.startswith("compute-plugin-") else library if name != library else "libc6"
        if name == "libcompute-plugin-dev":
            wanted = "libcompute-dev"
        expect(wanted in depends, f"{name} depends on {wanted}\n{depends}")

    root = Root(work / "root")
    root.dpkg("--install", packages[library], packages["compute-tools"])
    missing = root.run("usr/bin/compute", "info", "cpu", check=False)
    expect("cpu plugin is not installed" in missing, f"without plugins, compute says what is missing\n{missing}")
    root.dpkg("--install", *(packages[name] for name in packages if name.startswith("compute-plugin-")))
    expect("cpu" in root.run("usr/bin/compute", "devices"), "compute devices lists cpu")
    expect("Result = PASS" in root.run("usr/bin/compute", "info", "cpu"), "compute info cpu computes")
    root.dpkg("--install", *packages.values())
    for page in ("compute.1.gz", "compute-cts.1.gz", "compute-bench.1.gz"):
        expect((root.folder / "usr/share/man/man1" / page).exists(), f"{page} is installed")
    searched = [path for path in (root.folder / "usr").rglob("*") if path.is_file() and not path.is_symlink()
                and path.read_bytes()[:4] == b"\x7fELF" and "RUNPATH" in output("readelf", "--dynamic", path)]
    expect(not searched, f"no program has a search path of its own {searched}")

    program = work / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    replaced = work / "replaced"
    with subprocess.Popen([sys.executable, "-P", program, replaced], stdout=subprocess.PIPE, text=True,
                          env=dict(root.environment, COMPUTE_DEVICE="cpu")) as running:
        first = running.stdout.readline()
        try:
            root.dpkg("--install", *packages.values())
        finally:
            replaced.touch()
        last = running.stdout.read()
    expect(first == "ready\n" and running.returncode == 0 and int(last) > 0,
           f"a program goes on while all packages are replaced\n{first}{last}")

    (work / "client").mkdir()
    (work / "client/main.c").write_text(CLIENT, encoding="utf-8")
    (work / "client/CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(client C)\nfind_package(Compute REQUIRED)\n"
        "add_executable(client main.c)\ntarget_link_libraries(client Compute::compute)\n", encoding="utf-8")
    prefix = f"-DCMAKE_PREFIX_PATH={root.folder / 'usr'}"
    output("cmake", "-S", work / "client", "-B", work / "client/build", prefix)
    output("cmake", "--build", work / "client/build")
    expect(output(work / "client/build/client", env=root.environment) == "2 2 2\n", "a client in C, made with libcompute-dev")

    root.run("usr/bin/compute-new-plugin", "vega", work / "vega")
    output("cmake", "-S", work / "vega", "-B", work / "vega/build", prefix)
    output("cmake", "--build", work / "vega/build")
    output("cpack", "-B", work, cwd=work / "vega/build")
    vega, = work.glob("compute-plugin-vega_*.deb")
    expect(provided in output("dpkg-deb", "--field", vega, "Depends"), f"a vendor's package depends on {provided}")
    root.dpkg("--install", vega)
    root.run("usr/bin/compute-cts", "--device", "vega0", "--level", "smoke")
    expect(True, "a vendor's plugin, made with libcompute-plugin-dev and installed as a package, passes the smoke level")
    root.dpkg("--remove", "compute-plugin-vega")

    root.dpkg("--remove", "libcompute-plugin-dev")
    shutil.rmtree(work / "client/build")
    output("cmake", "-S", work / "client", "-B", work / "client/build", prefix)
    expect(True, "libcompute-dev works without libcompute-plugin-dev")
    root.dpkg("--remove", "compute-plugin-cpu")
    left = root.run("usr/bin/compute", "info", "cpu", check=False)
    expect("cpu plugin is not installed" in left, f"without its package, cpu is gone, and the message says why\n{left}")
    root.dpkg("--install", packages["compute-plugin-cpu"])
    expect("Result = PASS" in root.run("usr/bin/compute", "info", "cpu"), "with it, cpu is there again")
    root.dpkg("--purge", *(name for name in packages if name != "libcompute-plugin-dev"), "libcompute-plugin-dev")
    rest = [path for path in (root.folder / "usr").rglob("*compute*")]
    expect(not rest, f"nothing is left after all are removed {rest}")

    if shutil.which("lintian"):
        found = output("lintian", "--allow-root", "--tag-display-limit", "0", *packages.values(), check=False)
        errors = [line for line in found.splitlines() if line.startswith("E:")]
        expect(not errors, "lintian finds no errors\n" + "\n".join(errors))


if __name__ == "__main__":
    main()
