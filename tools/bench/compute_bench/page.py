# SPDX-License-Identifier: Apache-2.0
"""Results as one page for a browser, which loads nothing."""
import html
import math

STYLE = """
body { font: 14px/1.5 system-ui, sans-serif; color: #1c2430; background: #fff; max-width: 1100px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 22px; } h2 { font-size: 17px; margin-top: 2em; }
table { border-collapse: collapse; width: 100%; } th { text-align: right; font-weight: 600; } th:first-child, td:first-child { text-align: left; }
td, th { padding: 2px 8px; border-bottom: 1px solid #e3e7ee; text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
td.note { text-align: left; color: #a03030; white-space: normal; } .slow { background: #fbe3e0; } .fast { background: #e2f3e6; }
svg text { font: 12px system-ui, sans-serif; fill: #414b5a; } .grid { stroke: #e3e7ee; } .limit { stroke: #1c2430; stroke-width: 1.5; fill: none; }
figure { margin: 1em 0; } figcaption { color: #667; }
"""
COLOURS = ["#2f6fd0", "#d0642f", "#2f9d60", "#8a4fc0", "#b03060", "#606a78"]
WIDTH, HEIGHT, LEFT, BOTTOM = 1000, 420, 70, 40


class Chart:
    """Two logarithmic axes."""

    def __init__(self, xs, ys, x_title, y_title):
        self.parts = []
        self.x = (math.floor(math.log10(min(xs))), math.ceil(math.log10(max(xs))))
        self.y = (math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys))))
        for low, (axis, horizontal) in ((0, (self.x, True)), (1, (self.y, False))):
            for power in range(axis[0], axis[1] + 1):
                at = self.at(10**power, 10**self.y[0]) if horizontal else self.at(10**self.x[0], 10**power)
                label = f"1e{power}" if abs(power) > 3 else f"{10**power:g}"
                if horizontal:
                    self.parts.append(f'<line class="grid" x1="{at[0]}" x2="{at[0]}" y1="10" y2="{HEIGHT - BOTTOM}"/>'
                                      f'<text x="{at[0]}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{label}</text>')
                else:
                    self.parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - 30}" y1="{at[1]}" y2="{at[1]}"/>'
                                      f'<text x="{LEFT - 6}" y="{at[1] + 4}" text-anchor="end">{label}</text>')
        self.parts.append(f'<text x="{(WIDTH + LEFT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{x_title}</text>'
                          f'<text transform="translate(14 {HEIGHT / 2}) rotate(-90)" text-anchor="middle">{y_title}</text>')

    def at(self, x, y):
        across = (math.log10(x) - self.x[0]) / max(self.x[1] - self.x[0], 1)
        up = (math.log10(y) - self.y[0]) / max(self.y[1] - self.y[0], 1)
        return (round(LEFT + across * (WIDTH - 30 - LEFT), 1), round(HEIGHT - BOTTOM - up * (HEIGHT - BOTTOM - 10), 1))

    def line(self, points, colour=None, title=""):
        path = " ".join(f"{x},{y}" for x, y in (self.at(*point) for point in points))
        style = f'style="fill:none;stroke:{colour};stroke-width:2"' if colour else 'class="limit"'
        self.parts.append(f'<polyline points="{path}" {style}><title>{html.escape(title)}</title></polyline>')

    def dot(self, x, y, colour, title):
        x, y = self.at(x, y)
        self.parts.append(f'<circle cx="{x}" cy="{y}" r="4" fill="{colour}" fill-opacity="0.75"><title>{html.escape(title)}</title></circle>')

    def text(self):
        return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{"".join(self.parts)}</svg>'


def legend(names):
    return " ".join(f'<span style="color:{COLOURS[i % len(COLOURS)]}">&#9679; {html.escape(name)}</span>' for i, name in enumerate(names))


def label_of(run):
    return f"{run['threads']} threads" if run["threads"] else "the device"


def is_limited_by_arithmetic(row, limits):
    """Whether the multiplications and additions of a row take longer than its bytes, on a device with these limits."""
    ridge = limits["multiply_add"] / limits["copy"] if limits.get("copy") and limits.get("multiply_add") else 10
    return row["flops"] > ridge * row["bytes"]


def rate_of(row, seconds, limits):
    """(1e9 per second, unit), of what limits the row."""
    if is_limited_by_arithmetic(row, limits):
        return row["flops"] / seconds / 1e9, "GFLOP/s"
    return row["bytes"] / seconds / 1e9, "GB/s"


def against_limit(part, by_arithmetic):
    if part <= 1:
        return f"{part:.0%} of the limit"
    return f"{part:.1f} times " + ("the rate of multiply and add: matrix units compute it" if by_arithmetic
                                   else "the rate of a copy in memory: the operands are in a cache")


def roofline(run):
    limits = run["limits"]
    dots = [(row["flops"] / row["bytes"], row["flops"] / row["times"]["ours"]["seconds"] / 1e9, row)
            for row in run["rows"] if row["flops"] and row["bytes"] and "ours" in row["times"]]
    if not dots or not limits.get("copy") or not limits.get("multiply_add"):
        return ""
    band, peak = limits["copy"] / 1e9, limits["multiply_add"] / 1e9
    low, high = min(d[0] for d in dots) / 2, max(max(d[0] for d in dots) * 2, 4 * peak / band)
    chart = Chart([low, high], [min(min(d[1] for d in dots), low * band), max(peak, max(d[1] for d in dots)) * 1.5],
                  "operations per byte", "GFLOP/s")
    chart.line([(low, low * band), (peak / band, peak), (high, peak)], title=f"copy {band:.0f} GB/s, multiply and add {peak:.0f} GFLOP/s")
    sections = sorted({row["section"] for *_, row in dots})
    for x, y, row in dots:
        part = y / min(peak, x * band)
        limit = against_limit(part, is_limited_by_arithmetic(row, limits))
        chart.dot(x, y, COLOURS[sections.index(row["section"])], f"{row['row']}: {y:.1f} GFLOP/s, {limit}")
    return (f"<figure>{chart.text()}<figcaption>{label_of(run)}: copy {band:.1f} GB/s, read {limits.get('read', 0) / 1e9:.1f} GB/s, "
            f"multiply and add {peak:.0f} GFLOP/s. {legend(sections)}</figcaption></figure>")


def sweeps(runs):
    text = ""
    for name in dict.fromkeys(row["sweep"] for run in runs for row in run["rows"] if row["sweep"]):
        lines = {}
        for run in runs:
            for row in run["rows"]:
                if row["sweep"] != name:
                    continue
                for who, time in row["times"].items():
                    rate = (row["flops"] if name == "matmul" else row["bytes"]) / time["seconds"] / 1e9
                    lines.setdefault(f"{who}, {label_of(run)}", []).append((int(row["row"].split()[-1]), rate))
        points = [point for line in lines.values() for point in line]
        if len({x for x, _ in points}) < 2:
            continue
        chart = Chart([x for x, _ in points], [y for _, y in points], "elements" if name != "matmul" else "rows and columns",
                      "GB/s" if name != "matmul" else "GFLOP/s")
        for i, (who, line) in enumerate(lines.items()):
            chart.line(sorted(line), COLOURS[i % len(COLOURS)], who)
            for x, y in line:
                chart.dot(x, y, COLOURS[i % len(COLOURS)], f"{who}: {y:.1f} at {x}")
        text += f"<figure>{chart.text()}<figcaption>{html.escape(name)}: {legend(lines)}</figcaption></figure>"
    return text


def table(run):
    peers = list(run["peers"])
    head = "".join(f"<th>{cell}</th>" for cell in ["row", "us", "spread", "GB/s", "GFLOP/s"] + [f"{p} / ours" for p in peers] + [""])
    body = ""
    for row in run["rows"]:
        ours = row["times"].get("ours")
        cells = [html.escape(row["row"])]
        if ours:
            seconds = ours["seconds"]
            cells += [f"{seconds * 1e6:.1f}", f"{ours['spread']:.0%}", f"{row['bytes'] / seconds / 1e9:.1f}",
                      f"{row['flops'] / seconds / 1e9:.1f}" if row["flops"] else ""]
        else:
            cells += [""] * 4
        line = "".join(f"<td>{cell}</td>" for cell in cells)
        for peer in peers:
            time = row["times"].get(peer)
            ratio = time["seconds"] / ours["seconds"] if time and ours else None
            kind = "" if ratio is None else ' class="slow"' if ratio < 0.95 else ' class="fast"' if ratio > 1.05 else ""
            line += f"<td{kind}>{'' if ratio is None else f'{ratio:.2f}'}</td>"
        body += f"<tr>{line}<td class=\"note\">{html.escape(row['note'])}</td></tr>\n"
    return f"<h2>Rows, {label_of(run)}</h2>\n<table><tr>{head}</tr>\n{body}</table>"


def page(results):
    runs = results["runs"]
    peers = ", ".join(f"{name} {version}".strip() for name, version in runs[0]["peers"].items()) or "no peers"
    firsts = "".join(f"<tr><td>{html.escape(name)}</td><td>{seconds * 1e3:.2f} ms</td></tr>" for name, seconds in results["first"].items())
    return (f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>compute-bench: {html.escape(results["device"])}</title>'
            f"<style>{STYLE}</style></head><body>\n<h1>{html.escape(results['device'])}: {html.escape(results['description'])}</h1>\n"
            f"<p>{html.escape(results['date'])}; {html.escape(peers)}. A ratio above 1 means that this library is faster. Times are medians of "
            f"interleaved rounds; the spread is from the least to the greatest.</p>\n<h2>Limits of the device</h2>\n"
            f"{''.join(roofline(run) for run in runs)}\n<h2>By size</h2>\n{sweeps(runs)}\n<h2>First calls</h2>\n<table>{firsts}</table>\n"
            f"{''.join(table(run) for run in runs)}\n</body></html>\n")
