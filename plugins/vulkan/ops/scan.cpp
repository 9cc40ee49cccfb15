// SPDX-License-Identifier: Apache-2.0
// scan: a group walks a line in tiles, and carries the combination of all earlier tiles. Few long lines are cut into
// chunks: the first launch combines each chunk, the second scans every chunk from what stands before it. Where lines
// run across memory, or are short, an item walks a line or a chunk of it, and neighbours take neighbouring lines.
#include "accumulator.hpp"
#include "ops.hpp"

namespace vulkan {
namespace {

constexpr int kMostItems = 256;
constexpr int kLoadsAtOnce = 4;  // loads of an item that combines a chunk

struct Scan {
  std::string kind;
  int32_t from, to, accumulator;
  bool exclusive, reverse;
  int64_t length;
  Space lines;  // input, output
  Shape along;  // their strides along the axis
  int items = kMostItems, per_item = 2 * kRun;
  int64_t chunks = 1, chunk_length = 0;
  bool by_items = false;        // an item per line
  bool takes_runs = false;      // an item's elements are aligned runs of memory
  std::vector<int64_t> totals;  // of chunks: an offset in the workspace per part of a state
};

std::string text_of(int number) { return std::to_string(number); }

// A kernel with a group per chunk, or an item.
class Launcher {
 public:
  Launcher(const Request& request, const Scan& s, std::string_view name)
      : s_(s), k_(request.device, request.plan, request.query, name), state_(k_.source, s.kind, s.accumulator) {
    k_.sign(s.kind);
    k_.sign(s.from);
    k_.sign(s.to);
    k_.sign(s.accumulator);
    k_.sign(s.exclusive ? "exclusive" : "inclusive");
    k_.sign(s.reverse ? "reverse" : "forward");
    k_.sign(s.chunks > 1 ? "chunks" : "lines");
    k_.sign(s.takes_runs ? "runs" : "elements");
    k_.sign(s.by_items ? "items" : "groups");
    k_.sign(s.per_item);
    k_.use_group_size(s.items);
    x_ = k_.tensor(0), y_ = k_.tensor(1), length_ = k_.word(s.length), chunks_ = k_.word(s.chunks);
    chunk_length_ = k_.word(s.chunk_length), all_ = k_.word(s.lines.count() * s.chunks);
    x_step_ = k_.word(s.along[0]), y_step_ = k_.word(s.along[1]);
    for (const int64_t offset : s.totals) totals_.push_back(k_.workspace(offset));
    axes_ = k_.axes(s.lines);
    I_ = axes_.index_type();
  }

  void write_totals() {
    if (s_.by_items) {
      walk(true);
      return;
    }
    finish([&] {
      begin();
      k_.out += state_.declare("q") + "\n";
      const std::string run = s_.takes_runs ? text_of(kRun) : "1", at_once = text_of(kLoadsAtOnce);
      const std::string step = text_of(s_.items * (s_.takes_runs ? kRun : 1));
      // Behind the end the last elements are loaded again, and not used.
      k_.out += "for(int64_t t=first+int64_t(lid*" + run + "u);t<end;t+=" + step + "l*" + at_once + "l){\n";
      const std::string each = "[[unroll]] for(int u=0;u<" + at_once + ";++u){int64_t j=t+int64_t(u)*" + step + "l;";
      if (s_.takes_runs) {
        k_.out += "uint w[" + at_once + "][" + text_of(words_of_run(s_.from)) + "];" + each + "j=min(j,end-" + run +
                  "l);" + load_run(s_.from, "w[u]", place(x_, "o0", "j", x_step_)) + "}\n" + each +
                  "if(j<end){[[unroll]] for(int e=0;e<4;++e){" + add("q", from_run(s_.from, "w[u]", "e")) + "}}}\n";
      } else {
        k_.out += type_of(s_.from) + " w[" + at_once + "];" + each +
                  "j=min(j,end-1l);w[u]=" + load(s_.from, place(x_, "o0", position("j"), x_step_)) + ";}\n" + each +
                  "if(j<end){" + add("q", "w[u]") + "}}\n";
      }
      k_.out += "}\n";
      k_.combine_group(state_, "q", "h");
      k_.out += "if(lid==0u){";
      for (size_t i = 0; i < state_.parts(); ++i)
        k_.out += store(state_.part_dtype(i), total_place(i, "g"), "q" + std::to_string(i));
      k_.out += "}\nbarrier();\n";
    });
  }

  void write_scan() {
    if (s_.by_items) {
      walk(false);
      return;
    }
    finish([&] {
      const std::string each = "[[unroll]] for(int e=0;e<" + text_of(s_.per_item) + ";++e){int64_t j=j0+int64_t(e);";
      begin();
      k_.out += state_.declare("c") + "\n";
      if (s_.chunks > 1) {
        k_.out += "for(uint p=lid;p<chunk;p+=" + text_of(s_.items) + "u){" + state_.merge("c", totals("p")) + "}\n";
        k_.combine_group(state_, "c", "h");
      }
      k_.out += "uint turn=" + text_of(s_.items) + "u;\n";
      k_.out += "for(int64_t tile=first;tile<end;tile+=" + text_of(s_.items * s_.per_item) + "l){\n";
      k_.out += type_of(s_.accumulator) + " v[" + text_of(s_.per_item) + "];int64_t j0=tile+int64_t(lid*" +
                text_of(s_.per_item) + "u);\n" + state_.declare("q") + state_.declare("b") + "\n";
      std::string value = load(s_.from, place(x_, "o0", position("j"), x_step_));
      if (s_.takes_runs) {
        k_.out += runs("w", s_.from);
        for (int r = 0; r < s_.per_item / kRun; ++r)
          k_.out += if_run(r) + load_run(s_.from, "w[" + text_of(r) + "]", run_place(x_, "o0", r, x_step_)) + "}\n";
        value = from_run(s_.from, "w[e>>2]", "(e&3)");
      }
      k_.out += each + "v[e]=" + identity_text(s_.kind, s_.accumulator) +
                ";if(j<end){v[e]=" + k_.source.convert(s_.from, s_.accumulator, value) + ";" + state_.add("q", "v[e]") +
                "}}\n";
      k_.scan_group(state_, "q", "b", "c", "h");
      if (s_.takes_runs) k_.out += runs("z", s_.to);
      const std::string result = k_.source.convert(s_.accumulator, s_.to, state_.result("b"));
      const std::string add_one = state_.add("b", "v[e]");
      k_.out += each;
      if (!s_.exclusive) k_.out += add_one;
      if (s_.takes_runs)
        k_.out += to_run(s_.to, "z[e>>2]", "(e&3)", result);
      else
        k_.out += "if(j<end){" + store(s_.to, place(y_, "o1", position("j"), y_step_), result) + "}";
      if (s_.exclusive) k_.out += add_one;
      k_.out += "}\n";
      for (int r = 0; s_.takes_runs && r < s_.per_item / kRun; ++r)
        k_.out += if_run(r) + store_run(s_.to, "z[" + text_of(r) + "]", run_place(y_, "o1", r, y_step_)) + "}\n";
      k_.out += "}\nbarrier();\n";
    });
  }

 private:
  // Either launch of items: the one that writes totals, or the scan.
  void walk(bool only_totals) {
    k_.finish_loop(s_.lines.count() * s_.chunks, [&] {
      const std::string at_once = text_of(kLoadsAtOnce), count = k_.number(chunks_, I_);
      k_.begin_loop(all_, I_);
      k_.out += I_ + " lines=n/" + count + ",chunk=i/lines,line=i-chunk*lines;\n";
      k_.locate(axes_, "o", "line", false);
      bounds();
      k_.out += state_.declare("q") + "\n";
      if (!only_totals && s_.chunks > 1) {
        k_.out += "for(uint p=0u;p<uint(chunk);++p){" + state_.merge("q", totals("p")) + "}\n";
      }
      // Behind the end the last element is loaded again, and not used.
      const std::string each = "[[unroll]] for(int u=0;u<" + at_once + ";++u){int64_t j=t+int64_t(u);";
      k_.out += "for(int64_t t=first;t<end;t+=" + at_once + "l){" + type_of(s_.from) + " w[" + at_once + "];\n" + each +
                "j=min(j,end-1l);w[u]=" + load(s_.from, place(x_, "o0", position("j"), x_step_)) + ";}\n" + each +
                "if(j<end){";
      const std::string added = add("q", "w[u]");
      if (!only_totals && s_.exclusive) k_.out += put("q");
      k_.out += added;
      if (!only_totals && !s_.exclusive) k_.out += put("q");
      k_.out += "}}}\n";
      if (only_totals) {
        for (size_t i = 0; i < state_.parts(); ++i)
          k_.out += store(state_.part_dtype(i), total_place(i, "int64_t(line)*" + k_.at(chunks_) + "+int64_t(chunk)"),
                          "q" + std::to_string(i));
      }
      k_.end_loop();
    });
  }

  std::vector<std::string> totals(const std::string& chunk) {
    std::vector<std::string> parts;
    for (size_t i = 0; i < state_.parts(); ++i)
      parts.push_back(
          load(state_.part_dtype(i), total_place(i, "(int64_t(line)*" + k_.at(chunks_) + "+int64_t(" + chunk + "))")));
    return parts;
  }

  std::string put(const std::string& state) {
    return store(s_.to, place(y_, "o1", position("j"), y_step_),
                 k_.source.convert(s_.accumulator, s_.to, state_.result(state)));
  }

  void bounds() {
    k_.out += "int64_t m=" + k_.at(length_) + ",first=int64_t(chunk)*" + k_.at(chunk_length_) + ",end=min(m,first+" +
              k_.at(chunk_length_) + ");\n";
  }

  template <class F>
  void finish(F&& text) {
    k_.finish(std::min<int64_t>(s_.lines.count() * s_.chunks, 16384), [&] {
      text();
      k_.end_loop();
    });
  }

  void begin() {
    k_.declare_shared(state_, "h", 2);
    k_.out += "void main(){\nuint lid=gl_LocalInvocationID.x;\nfor(" + I_ + " g=" + I_ + "(gl_WorkGroupID.x);g<" +
              k_.number(all_, I_) + ";g+=" + I_ + "(gl_NumWorkGroups.x)){\n" + I_ + " line=g/" +
              k_.number(chunks_, I_) + ";uint chunk=uint(g-line*" + k_.number(chunks_, I_) + ");\n";
    k_.locate(axes_, "o", "line", false);
    bounds();
  }

  std::string position(const std::string& j) const { return s_.reverse ? "(m-1l-" + j + ")" : j; }
  std::string place(int tensor, const char* offset, const std::string& j, int step) const {
    return k_.address(tensor, "int64_t(" + std::string(offset) + ")+" + j + "*" + k_.at(step));
  }
  std::string run_place(int tensor, const char* offset, int run, int step) const {
    return place(tensor, offset, "(j0+" + text_of(run * kRun) + "l)", step);
  }
  static std::string if_run(int run) { return "if(j0+" + text_of(run * kRun) + "l<end){"; }
  // Zeros, because the elements of a run are put in one by one.
  std::string runs(const std::string& name, int32_t dtype) const {
    const std::string words = text_of(words_of_run(dtype)), count = text_of(s_.per_item / kRun);
    return "uint " + name + "[" + count + "][" + words + "];[[unroll]] for(int r=0;r<" + count +
           ";++r)[[unroll]] for(int i=0;i<" + words + ";++i)" + name + "[r][i]=0u;\n";
  }
  std::string add(const std::string& state, const std::string& value) {
    return state_.add(state, k_.source.convert(s_.from, s_.accumulator, value));
  }
  std::string total_place(size_t part, const std::string& index) const {
    return k_.address(totals_[part],
                      "int64_t(" + index + ")*" + std::to_string(bytes_of(state_.part_dtype(part))) + "l");
  }

  const Scan& s_;
  KernelBuilder k_;
  const Accumulator state_;
  int x_ = 0, y_ = 0, length_ = 0, chunks_ = 0, chunk_length_ = 0, all_ = 0, x_step_ = 0, y_step_ = 0;
  std::vector<int> totals_;
  Axes axes_;
  std::string I_;
};

// How many items take a line, or a chunk of one.
void divide_line(const Device& device, Scan& s) {
  const bool is_processor = device.physical.kind == COMPUTE_DEVICE_KIND_CPU;
  if (s.length <= 1024) s.items = s.length <= 512 ? 64 : 128;
  if (s.length <= 256) s.per_item = kRun;
  const int64_t lines = std::max<int64_t>(1, s.lines.count());
  const bool is_across = !s.lines.shape.empty() && std::abs(s.lines.strides[0].back()) < std::abs(s.along[0]);
  s.by_items = s.length <= 32 || (is_across && lines >= 32);
  if (s.by_items) {
    const int64_t wanted = is_processor ? 64 : 1 << 17;
    s.items = plain_group_size(device);
    // A round of a loop takes four elements, and a loop has less than 65536.
    const int64_t least = std::max<int64_t>(1, (s.length + 199999) / 200000);
    s.chunks =
        std::clamp<int64_t>(wanted / lines, least, std::max<int64_t>(least, std::min<int64_t>(64, s.length / 64)));
    s.chunk_length = std::max<int64_t>(1, (s.length + s.chunks - 1) / s.chunks);
    s.chunks = (s.length + s.chunk_length - 1) / s.chunk_length;
    return;
  }
  const int64_t tile = int64_t{s.items} * s.per_item, enough = is_processor ? 256 : 2048;
  if (lines < 256) s.chunks = std::max<int64_t>(1, std::min(enough / lines, s.length / tile));
  s.chunk_length = std::max<int64_t>(1, ((s.length + s.chunks - 1) / s.chunks + tile - 1) / tile) * tile;
  s.chunks = std::max<int64_t>(1, (s.length + s.chunk_length - 1) / s.chunk_length);
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
  divide_line(request.device, s);
  // Loops of some drivers end after 65535 rounds.
  if (s.chunk_length > 60000 * (s.by_items ? kLoadsAtOnce : int64_t{s.items} * s.per_item))
    throw Refused{COMPUTE_PLUGIN_REFUSE_SHAPE, 0, "the axis is too long"};
  s.takes_runs = !s.by_items && !s.reverse && s.length % kRun == 0;
  for (size_t t = 0; t < 2; ++t) {
    const Tensor& tensor = op.tensors()[t];
    const int64_t bytes = bytes_of(tensor.dtype), alignment = std::min<int64_t>(kRun * bytes, 16);
    s.takes_runs &= bytes <= 8 && s.along[t] == bytes && tensor.alignment >= alignment;
    for (const int64_t stride : s.lines.strides[t]) s.takes_runs &= stride % alignment == 0;
  }
  if (s.chunks > 1) {
    Source source(request.device.physical.features);
    const Accumulator state(source, s.kind, s.accumulator);
    for (size_t i = 0; i < state.parts(); ++i)
      s.totals.push_back(request.plan.reserve(s.lines.count() * s.chunks * bytes_of(state.part_dtype(i))));
    Launcher(request, s, "scan totals").write_totals();
  }
  Launcher(request, s, "scan").write_scan();
}

}  // namespace vulkan
