// SPDX-License-Identifier: Apache-2.0
// scan: a group walks a line in tiles, and carries the combination of all earlier tiles. Few long lines are cut into
// chunks: the first launch combines each chunk, the second scans every chunk from what stands before it.
#include "accumulator.hpp"
#include "ops.hpp"

namespace vulkan {
namespace {

constexpr int kItems = 256;
constexpr int kPerItem = 4;
constexpr int kTile = kItems * kPerItem;

struct Scan {
  std::string kind;
  int32_t from, to, accumulator;
  bool exclusive, reverse;
  int64_t length;
  Space lines;  // input, output
  Shape along;  // their strides along the axis
  int64_t chunks = 1, chunk_length = 0;
  bool takes_runs = false;      // an item's elements are one aligned run of memory
  std::vector<int64_t> totals;  // of chunks: an offset in the workspace per part of a state
};

std::string text_of(int number) { return std::to_string(number); }

// Either launch. The first one (`only_totals`) writes the state of every chunk.
void add_launch(const Request& request, const Scan& s, bool only_totals) {
  KernelBuilder k(request.device, request.plan, request.query, only_totals ? "scan totals" : "scan");
  k.sign(s.kind);
  k.sign(s.from);
  k.sign(s.to);
  k.sign(s.accumulator);
  k.sign(s.exclusive ? "exclusive" : "inclusive");
  k.sign(s.reverse ? "reverse" : "forward");
  k.sign(s.chunks > 1 ? "chunks" : "lines");
  k.sign(s.takes_runs ? "runs" : "elements");
  k.use_group_size(kItems);
  const Accumulator state(k.source, s.kind, s.accumulator);
  const int x = k.tensor(0), y = k.tensor(1), length = k.word(s.length), chunks = k.word(s.chunks);
  const int chunk_length = k.word(s.chunk_length), all = k.word(s.lines.count() * s.chunks);
  const int x_step = k.word(s.along[0]), y_step = k.word(s.along[1]);
  std::vector<int> totals;
  for (const int64_t offset : s.totals) totals.push_back(k.workspace(offset));
  const Axes axes = k.axes(s.lines);
  const auto total_place = [&](size_t part, const std::string& index) {
    return k.address(totals[part], "int64_t(" + index + ")*" + std::to_string(bytes_of(state.part_dtype(part))) + "l");
  };
  const int64_t groups = std::min<int64_t>(s.lines.count() * s.chunks, 16384);
  k.finish(groups, [&] {
    const std::string n = text_of(kItems), I = axes.index_type();
    const auto shared = [](size_t part) { return "h" + std::to_string(part); };
    for (size_t i = 0; i < state.parts(); ++i) k.out += "shared " + state.type(i) + " " + shared(i) + "[" + n + "];\n";
    k.out += "void main(){\nuint lid=gl_LocalInvocationID.x;\nfor(" + I + " g=" + I + "(gl_WorkGroupID.x);g<" +
             k.number(all, I) + ";g+=" + I + "(gl_NumWorkGroups.x)){\n" + I + " line=g/" + k.number(chunks, I) +
             ";uint chunk=uint(g-line*" + k.number(chunks, I) + ");\n";
    k.locate(axes, "o", "line", false);
    k.out += "int64_t m=" + k.at(length) + ",first=int64_t(chunk)*" + k.at(chunk_length) + ",end=min(m,first+" +
             k.at(chunk_length) + ");\n" + state.declare("c") + "\n";
    if (!only_totals && s.chunks > 1) {
      // What stands before the chunk, in the order of the chunks.
      k.out += "for(uint p=0u;p<chunk;++p){" + state.merge("c", [&] {
        std::vector<std::string> parts;
        for (size_t i = 0; i < state.parts(); ++i)
          parts.push_back(load(state.part_dtype(i), total_place(i, "(int64_t(line)*" + k.at(chunks) + "+int64_t(p))")));
        return parts;
      }()) + "}\n";
    }
    k.out += "for(int64_t tile=first;tile<end;tile+=" + text_of(kTile) + "l){\n";
    const std::string position = s.reverse ? "(m-1l-j)" : "j";
    const std::string identity = identity_text(s.kind, s.accumulator);
    const std::string each = "[[unroll]] for(int e=0;e<" + text_of(kPerItem) + ";++e){";
    k.out += type_of(s.accumulator) + " v[" + text_of(kPerItem) + "];int64_t j0=tile+int64_t(lid*" + text_of(kPerItem) +
             "u);\n" + state.declare("q") + "\n";
    if (s.takes_runs) {
      k.out += "uint w[" + text_of(words_of_run(s.from)) + "];if(j0<end){" +
               load_run(s.from, "w", k.address(x, "int64_t(o0)+j0*" + k.at(x_step))) + "}\n" + each +
               "v[e]=" + identity +
               ";if(j0<end)v[e]=" + k.source.convert(s.from, s.accumulator, from_run(s.from, "w", "e")) + ";" +
               state.add("q", "v[e]") + "}\n";
    } else {
      k.out += each + "int64_t j=j0+int64_t(e);v[e]=" + identity + ";if(j<end)v[e]=" +
               k.source.convert(s.from, s.accumulator,
                                load(s.from, k.address(x, "int64_t(o0)+" + position + "*" + k.at(x_step)))) +
               ";" + state.add("q", "v[e]") + "}\n";
    }
    // An inclusive scan of the items' states (Hillis and Steele).
    std::vector<std::string> left, mine;
    for (size_t i = 0; i < state.parts(); ++i) {
      left.push_back("l" + std::to_string(i));
      mine.push_back("q" + std::to_string(i));
      k.out += shared(i) + "[lid]=" + mine[i] + ";";
    }
    k.out += "barrier();\nfor(uint d=1u;d<" + n + "u;d<<=1){";
    for (size_t i = 0; i < state.parts(); ++i)
      k.out += state.type(i) + " " + left[i] + "=" + shared(i) + "[lid>=d?lid-d:lid];";
    k.out += "barrier();if(lid>=d){";
    // The left operand comes first.
    for (size_t i = 0; i < state.parts(); ++i) k.out += state.type(i) + " r" + std::to_string(i) + "=" + mine[i] + ";";
    std::vector<std::string> right;
    for (size_t i = 0; i < state.parts(); ++i) right.push_back("r" + std::to_string(i));
    k.out += state.assign("q", left) + state.merge("q", right);
    for (size_t i = 0; i < state.parts(); ++i) k.out += shared(i) + "[lid]=" + mine[i] + ";";
    k.out += "}barrier();}\n";
    if (!only_totals) {
      // What stands before the item: the carry and the state of the item to the left.
      k.out += state.declare("b") + state.assign("b", state.names("c")) + "if(lid>0u){";
      std::vector<std::string> before;
      for (size_t i = 0; i < state.parts(); ++i) before.push_back(shared(i) + "[lid-1u]");
      const std::string result = k.source.convert(s.accumulator, s.to, state.result("b"));
      k.out += state.merge("b", before) + "}\n";
      if (s.takes_runs) {
        k.out += "uint z[" + text_of(words_of_run(s.to)) + "];";
        for (int i = 0; i < words_of_run(s.to); ++i) k.out += "z[" + text_of(i) + "]=0u;";
      }
      k.out += "\n" + each + "int64_t j=j0+int64_t(e);";
      if (!s.exclusive) k.out += state.add("b", "v[e]");
      if (s.takes_runs)
        k.out += to_run(s.to, "z", "e", result);
      else
        k.out += "if(j<end){" + store(s.to, k.address(y, "int64_t(o1)+" + position + "*" + k.at(y_step)), result) + "}";
      if (s.exclusive) k.out += state.add("b", "v[e]");
      k.out += "}\n";
      if (s.takes_runs)
        k.out += "if(j0<end){" + store_run(s.to, "z", k.address(y, "int64_t(o1)+j0*" + k.at(y_step))) + "}\n";
    }
    std::vector<std::string> last;
    for (size_t i = 0; i < state.parts(); ++i) last.push_back(shared(i) + "[" + text_of(kItems - 1) + "]");
    k.out += state.merge("c", last) + "\nbarrier();\n}\n";
    if (only_totals) {
      k.out += "if(lid==0u){";
      for (size_t i = 0; i < state.parts(); ++i)
        k.out += store(state.part_dtype(i), total_place(i, "g"), "c" + std::to_string(i));
      k.out += "}\n";
    }
    k.end_loop();
  });
}

}  // namespace

void scan(const Request& request) {
  const Op& op = request.op;
  const auto axis = static_cast<size_t>(op.integer("axis", 0));
  Scan s;
  s.kind = op.string("kind");
  s.from = op.input(0).dtype;
  s.to = op.output(0).dtype;
  s.accumulator = op.dtypes("accumulator")[0];
  s.exclusive = op.integer("exclusive", 0) != 0;
  s.reverse = op.integer("reverse", 0) != 0;
  s.length = op.input(0).shape[axis];
  if (is_complex(class_of(s.accumulator)) && !is_complex(class_of(s.to)))
    throw Refused{COMPUTE_PLUGIN_REFUSE_DTYPE, -1, "complex numbers do not convert to real ones"};
  s.lines.shape = op.input(0).shape;
  s.lines.shape.erase(s.lines.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  for (const Tensor& tensor : op.tensors()) {
    Shape strides = tensor.strides;
    s.along.push_back(strides[axis]);
    strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(axis));
    s.lines.strides.push_back(strides);
  }
  s.lines = s.lines.collapsed(false);
  const int64_t lines = s.lines.count();
  // Loops of some drivers end after 65535 rounds.
  if (s.length > int64_t{kTile} * 60000) throw Refused{COMPUTE_PLUGIN_REFUSE_SHAPE, 0, "the axis is too long"};
  constexpr int64_t kEnough = 256;
  if (lines < kEnough) s.chunks = std::max<int64_t>(1, std::min(kEnough / lines, s.length / (4 * kTile)));
  s.chunk_length = (s.length + s.chunks - 1) / s.chunks;
  s.chunk_length = (s.chunk_length + kRun - 1) / kRun * kRun;
  s.takes_runs = !s.reverse && s.length % kRun == 0;
  for (size_t t = 0; t < 2; ++t) {
    const Tensor& tensor = op.tensors()[t];
    const int64_t bytes = bytes_of(tensor.dtype), alignment = std::min<int64_t>(kRun * bytes, 16);
    s.takes_runs &= bytes <= 8 && s.along[t] == bytes && tensor.alignment >= alignment;
    for (const int64_t stride : s.lines.strides[t]) s.takes_runs &= stride % alignment == 0;
  }
  if (s.chunks > 1) {
    Source source(request.device.physical.features);
    const Accumulator state(source, s.kind, s.accumulator);
    for (size_t i = 0; i < state.parts(); ++i) {
      request.plan.workspace_bytes = (request.plan.workspace_bytes + 255) & ~int64_t{255};
      s.totals.push_back(request.plan.workspace_bytes);
      request.plan.workspace_bytes += lines * s.chunks * bytes_of(state.part_dtype(i));
    }
    add_launch(request, s, true);
  }
  add_launch(request, s, false);
}

}  // namespace vulkan
