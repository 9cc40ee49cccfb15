// SPDX-License-Identifier: Apache-2.0
// The page of `compute view`, around its events.
#pragma once

inline constexpr const char* kPageBegin = R"page(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>compute trace</title>
<style>
body { font: 13px/1.4 system-ui, sans-serif; margin: 16px; color: #1c1f24; background: #fff; }
h1 { font-size: 16px; } h2 { font-size: 14px; margin: 20px 0 6px; }
canvas { width: 100%; border: 1px solid #d5d9e0; display: block; }
table { border-collapse: collapse; } td, th { padding: 2px 12px 2px 0; text-align: left; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
tr:nth-child(even) td { background: #f5f6f8; }
#tip { position: fixed; display: none; background: #1c1f24; color: #fff; padding: 4px 8px; border-radius: 3px;
       white-space: pre; pointer-events: none; max-width: 60em; }
</style></head><body>
<h1>compute trace</h1><p id="sums"></p>
<h2>Timeline</h2><p>Scroll to zoom, drag to move, double-click for all.</p><canvas id="time"></canvas>
<h2>Memory</h2><canvas id="memory"></canvas>
<h2>Ops and transfers</h2><table id="rows"></table><div id="tip"></div>
<script>const events = )page";

inline constexpr const char* kPageEnd = R"page(;
const colors = {op: "#3b7dd8", graph: "#7a5bd0", kernel: "#0f9d8f", transfer: "#e0822c", wait: "#c3c8d0",
                submit: "#8fb8ea", prepare: "#d24b6a", other: "#9aa3ad"};
const spans = events.filter(e => e.ph === "X"), counters = events.filter(e => e.ph === "C");
const processes = {}, threads = {};
for (const e of events.filter(e => e.ph === "M")) {
  if (e.name === "process_name") processes[e.pid] = e.args.name; else threads[e.pid + "/" + e.tid] = e.args.name;
}
const tracks = [...new Set(spans.map(e => e.pid + "/" + e.tid))];
tracks.sort((a, b) => a.localeCompare(b, "en", {numeric: true}));
const time = us => us < 1e3 ? us.toFixed(2) + " us" : us < 1e6 ? (us / 1e3).toFixed(2) + " ms"
  : (us / 1e6).toFixed(3) + " s";
const size = b => b < 1e3 ? b + " B" : b < 1e6 ? (b / 1e3).toFixed(1) + " kB" : b < 1e9 ? (b / 1e6).toFixed(1) + " MB"
  : (b / 1e9).toFixed(2) + " GB";
const all = [...spans, ...counters];
let first = Infinity, last = -Infinity;
for (const e of all) { first = Math.min(first, e.ts); last = Math.max(last, e.ts + (e.dur || 0)); }
if (!all.length) { first = 0; last = 1; }
last = Math.max(last, first + 1e-3);
let from = first, to = last;
const label = 150, row = 22, canvas = document.getElementById("time"), memory = document.getElementById("memory");

function prepare(c, height) {
  const scale = window.devicePixelRatio || 1, width = c.clientWidth;
  c.style.height = height + "px"; c.width = width * scale; c.height = height * scale;
  const g = c.getContext("2d"); g.scale(scale, scale); g.font = "11px system-ui, sans-serif"; g.textBaseline = "middle";
  return [g, width];
}
const x = (t, width) => label + (t - from) / (to - from) * (width - label);

function drawTime() {
  const [g, width] = prepare(canvas, Math.max(1, tracks.length) * row + 18);
  tracks.forEach((track, i) => {
    const [pid] = track.split("/");
    g.fillStyle = i % 2 ? "#f5f6f8" : "#fff"; g.fillRect(0, i * row, width, row);
    g.fillStyle = "#1c1f24";
    g.fillText((processes[pid] || pid) + " " + (threads[track] || ""), 4, i * row + row / 2, label - 8);
  });
  g.save(); g.beginPath(); g.rect(label, 0, width - label, tracks.length * row); g.clip();
  for (const e of spans) {
    const i = tracks.indexOf(e.pid + "/" + e.tid), a = x(e.ts, width), b = x(e.ts + e.dur, width);
    if (b < label || a > width) continue;
    g.fillStyle = colors[e.cat] || colors.other; g.fillRect(a, i * row + 2, Math.max(b - a, 1), row - 4);
    if (b - a <= 40) continue;
    g.fillStyle = e.cat === "wait" ? "#1c1f24" : "#fff";
    g.fillText(e.name, Math.max(a, label) + 3, i * row + row / 2, b - a - 6);
  }
  g.restore(); g.fillStyle = "#5b6470";
  for (let i = 0; i <= 4; ++i) {
    const t = from + (to - from) * i / 4; g.textAlign = i === 4 ? "right" : "left";
    g.fillText(time(t - first), x(t, width), tracks.length * row + 9);
  }
  g.textAlign = "left";
}

function drawMemory() {
  const names = [...new Set(counters.map(e => e.name))];
  const [g, width] = prepare(memory, Math.max(1, names.length) * 60);
  names.forEach((name, i) => {
    const own = counters.filter(e => e.name === name), most = Math.max(1, ...own.map(e => e.args.used));
    const bottom = i * 60 + 58;
    g.fillStyle = "#1c1f24"; g.fillText(name, 4, i * 60 + 22, label - 8);
    g.fillText("at most " + size(most), 4, i * 60 + 38, label - 8);
    g.save(); g.beginPath(); g.rect(label, i * 60, width - label, 60); g.clip();
    g.fillStyle = "#a9c7ee"; let used = 0, at = label;
    for (const e of own) {
      const next = x(e.ts, width), h = used / most * 52;
      g.fillRect(at, bottom - h, next - at, h); at = next; used = e.args.used;
    }
    g.fillRect(at, bottom - used / most * 52, width - at, used / most * 52); g.restore();
  });
}

function cell(line, text, isNumber) {
  const c = line.insertCell(); c.textContent = text; if (isNumber) c.className = "n";
}
function fillTable() {
  const rows = new Map();
  for (const e of spans) {
    if (e.cat === "submit" || e.cat === "wait") continue;
    const where = e.cat === "transfer" ? e.args.from + "\u2192" + e.args.to : processes[e.pid];
    const name = e.cat === "transfer" ? e.args.tensor : e.name, key = [e.cat, name, where].join("|");
    const r = rows.get(key) || {cat: e.cat, name, where, count: 0, total: 0, bytes: 0};
    ++r.count; r.total += e.dur; r.bytes += e.args.bytes || 0; rows.set(key, r);
  }
  const table = document.getElementById("rows"), head = table.insertRow();
  for (const [text, n] of [["kind"], ["name"], ["where"], ["count", 1], ["total", 1], ["mean", 1], ["bytes", 1]]) {
    const c = document.createElement("th"); c.textContent = text; if (n) c.className = "n"; head.append(c);
  }
  for (const r of [...rows.values()].sort((a, b) => b.total - a.total).slice(0, 200)) {
    const line = table.insertRow();
    cell(line, r.cat); cell(line, r.name); cell(line, r.where); cell(line, r.count, true);
    cell(line, time(r.total), true); cell(line, time(r.total / r.count), true);
    cell(line, r.bytes ? size(r.bytes) : "", true);
  }
  document.getElementById("sums").textContent = spans.length + " events over " + time(last - first);
}

function draw() { drawTime(); drawMemory(); }
const timeAt = px => from + (px - label) / (canvas.clientWidth - label) * (to - from);
canvas.addEventListener("wheel", e => {
  e.preventDefault(); const t = timeAt(e.offsetX), f = Math.exp(e.deltaY * 2e-3);
  from = Math.max(first, t - (t - from) * f); to = Math.min(last, t + (to - t) * f); draw();
}, {passive: false});
let held = null;
canvas.addEventListener("mousedown", e => { held = {px: e.offsetX, from, to}; });
addEventListener("mouseup", () => { held = null; });
canvas.addEventListener("dblclick", () => { from = first; to = last; draw(); });
canvas.addEventListener("mousemove", e => {
  const tip = document.getElementById("tip");
  if (held) {
    const by = (held.px - e.offsetX) / (canvas.clientWidth - label) * (held.to - held.from);
    const shift = Math.min(Math.max(by, first - held.from), last - held.to);
    from = held.from + shift; to = held.to + shift; draw();
  }
  const track = tracks[Math.floor(e.offsetY / row)], t = timeAt(e.offsetX), slack = (to - from) / canvas.clientWidth;
  const hits = spans.filter(s => s.pid + "/" + s.tid === track && t >= s.ts - slack && t <= s.ts + s.dur + slack);
  const hit = hits.sort((a, b) => a.dur - b.dur)[0];
  tip.style.display = hit ? "block" : "none"; if (!hit) return;
  const facts = Object.entries(hit.args).map(([k, v]) => k + ": " + v);
  tip.textContent = [hit.name + "  " + time(hit.dur), ...facts].join("\n");
  tip.style.left = Math.min(e.clientX + 12, innerWidth - 320) + "px"; tip.style.top = e.clientY + 12 + "px";
});
addEventListener("resize", draw); fillTable(); draw();
</script></body></html>
)page";
