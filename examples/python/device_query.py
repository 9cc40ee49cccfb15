#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the devices, what they support, and which one is used by default."""
import compute as cp

KINDS = {1: "CPU", 2: "discrete GPU", 3: "integrated GPU", 4: "accelerator"}

for info in cp.device_list():
    print(f"{info['name']}: {info['description']} ({KINDS.get(info['kind'], 'device')}, plugin {info['plugin']})")
    if info["unusable"]:
        print("  cannot be used:", info["unusable"])
        continue
    if info["memory_bytes"] > 0:
        print(f"  memory:    {info['memory_bytes'] / 2 ** 30:.1f} GiB")
    print("  dtypes:   ", ", ".join(name for name, levels in info["dtypes"].items() if levels & 4))
    for line in info["libraries"].splitlines():
        print("  library:  ", line)
print(cp.which())
