# SPDX-License-Identifier: Apache-2.0
"""Results as text."""
import statistics


def rate_of(row, seconds, limits):
    """(1e9 per second, unit), of what limits the row on a device with these limits."""
    ridge = limits["multiply_add"] / limits["copy"] if limits.get("copy") and limits.get("multiply_add") else 10
    if row["flops"] > ridge * row["bytes"]:
        return row["flops"] / seconds / 1e9, "GFLOP/s"
    return row["bytes"] / seconds / 1e9, "GB/s"


def show_device(run):
    limits = run["limits"]
    if limits:
        print(f"  {run['threads'] or 'all'} threads: copy {limits['copy'] / 1e9:.1f} GB/s, read {limits['read'] / 1e9:.1f} GB/s, "
              f"multiply and add {limits['multiply_add'] / 1e9:.0f} GFLOP/s"
              + (f", matrix units of float16 {limits['matrix_units'] / 1e12:.0f} TFLOP/s" if "matrix_units" in limits else ""))
    for name, cost in run["observation"].get("profile", {}).items():
        print(f"  a profile of {name}: {cost['more'] * 1e6:+.2f} us an op ({cost['more'] / cost['seconds']:+.1%})")
    clocks = run["observation"].get("clocks")
    if clocks:
        print(f"  a trace of {clocks['works']} works: each begins at least {clocks['least before'] * 1e6:.1f} us after its submission does "
              f"and ends at least {clocks['least after'] * 1e6:.1f} us before the wait for it (medians "
              f"{clocks['median before'] * 1e6:.1f} and {clocks['median after'] * 1e6:.1f})")


def show(results):
    runs = results["runs"]
    compared = {who for run in runs for row in run["rows"] for who in row["times"]}
    peers = [name for name in runs[0]["peers"] if name in compared]
    print(f"{results['device']}: {results['description']}; "
          + (", ".join(f"{n} {v}".strip() for n, v in runs[0]["peers"].items()) or "no peers"))
    for name, reason in runs[0]["missing"].items():
        print(f"  without {name}: {reason}")
    for run in runs:
        show_device(run)
    for name, seconds in results["first"].items():
        print(f"  {name}: {seconds * 1e3:.2f} ms")
    if not runs[0]["rows"]:
        return
    columns = {name: max(9, len(name) + 1) for name in peers}
    width = 27 + sum(columns.values())
    names = max(33, *(len(row["row"]) for row in runs[0]["rows"])) + 1
    print(f"{'threads':<{names}}" + "".join(f"{run['threads'] or 'all':>10}{'':>{width - 10}}" for run in runs))
    print(f"{'':<{names}}" + "".join(f"{'us':>10}{'rate':>9}{'':8}" + "".join(f"{p:>{columns[p]}}" for p in peers) for _ in runs))
    for row in runs[0]["rows"]:
        cells, notes = "", []
        for run in runs:
            at = next((other for other in run["rows"] if other["row"] == row["row"]), {"times": {}, "note": "missing"})
            ours = at["times"].get("ours")
            seconds = ours["seconds"] if ours else 0
            rate, unit = rate_of(at, seconds, run["limits"]) if ours else (0, "")
            figures = f"{seconds * 1e6:10.{1 if seconds > 1e-5 else 3}f}" if ours else f"{'-':>10}"
            cells += figures + (f"{rate:9.1f} {unit:<7}" if rate else f"{'-':>9}{'':8}")
            for peer in peers:
                time = at["times"].get(peer)
                cells += f"{time['seconds'] / seconds:{columns[peer]}.2f}" if time and ours else f"{'-':>{columns[peer]}}"
            # What is no library: memcpy, the peak.
            notes += [f"{who} {time['seconds'] / seconds:.2f}" for who, time in at["times"].items() if who not in runs[0]["peers"] and who != "ours"]
            notes += [at["note"]] if at["note"] else []
        print(f"{row['row']:<{names}}{cells}  {'; '.join(dict.fromkeys(notes))}".rstrip())


def show_means(results):
    """Prints the geometric mean of the ratios to each peer, and the rows that are slower than there."""
    for run in results["runs"]:
        for peer in run["peers"]:
            ratios = {row["row"]: row["times"][peer]["seconds"] / row["times"]["ours"]["seconds"]
                      for row in run["rows"] if peer in row["times"] and "ours" in row["times"]}
            if not ratios:
                continue
            print(f"{peer}, {run['threads'] or 'all'} threads: geometric mean {statistics.geometric_mean(ratios.values()):.2f} of {len(ratios)} rows")
            for name, low, high in (("below 0.9", 0, 0.9), ("from 0.9 to 1", 0.9, 1)):
                found = [f"{row} {ratio:.3f}" for row, ratio in sorted(ratios.items(), key=lambda one: one[1]) if low <= ratio < high]
                print(f"  {name}: {', '.join(found) or 'none'}")


def compare(old, new, tolerance):
    """Prints the rows that changed by more than the tolerance and the spread of both; returns whether one became slower."""
    before = {(run["threads"], row["row"]): row["times"]["ours"] for run in old["runs"] for row in run["rows"] if "ours" in row["times"]}
    slower = 0
    for run in new["runs"]:
        for row in run["rows"]:
            then, now = before.get((run["threads"], row["row"])), row["times"].get("ours")
            if then is None or now is None:
                continue
            ratio = now["seconds"] / then["seconds"]
            limit = 1 + tolerance + max(then["spread"], now["spread"])
            if ratio > limit or ratio < 1 / limit:
                print(f"{row['row']:<34}{run['threads'] or 'all':>6} threads: {then['seconds'] * 1e6:10.1f} us, now "
                      f"{now['seconds'] * 1e6:10.1f} us, {ratio:.2f} times as long")
                slower += ratio > limit
    print(f"{slower} rows are slower than in the earlier run")
    return slower
