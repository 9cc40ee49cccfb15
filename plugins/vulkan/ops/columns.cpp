// SPDX-License-Identifier: Apache-2.0
// Reductions whose kept axis is contiguous. A group is a table of items: neighbours across take neighbouring columns,
// four each where loads of 16 bytes allow it, and items below each other take turns with the rows. Then the states of
// a column are combined, by halves. A few columns are cut into parts of rows, whose states the last group combines.
#include "reduction.hpp"

namespace vulkan {
namespace {

constexpr int kItems = 256;

struct Columns {
  int lanes = 1;                  // neighbouring columns of an item
  std::vector<bool> is_constant;  // inputs that are equal for these
  int width = 32;                 // items across
  int at_once = 1;                // rows that an item loads before it uses them
  int64_t units = 0, blocks = 0;  // columns / lanes, and those / width
  int64_t parts = 1, per_part = 0;
  int height() const { return kItems / width; }
};

// Whether an item can take four columns at once.
void choose_lanes(const Device& device, const Reduction& r, Columns& c) {
  const size_t last = r.kept.shape.size() - 1, moved = r.input_count() + r.final_outputs();
  if (r.kept.shape[last] % kRun != 0) return;
  int64_t bytes = 0;
  for (const Stage& stage : r.stages) {
    bytes += kItems * kRun * 4 * bytes_of(stage.accumulator);  // at most, of the states
    if (is_heavy(*stage.before)) return;
  }
  if (bytes > device.physical.features.shared_bytes || (r.final != nullptr && is_heavy(*r.final))) return;
  for (size_t t = 0; t < moved; ++t) {
    const Tensor& tensor = r.op.tensors()[t];
    const int64_t size = bytes_of(tensor.dtype), stride = r.kept.strides[t][last];
    if (t < r.input_count()) c.is_constant.push_back(stride == 0);
    if (stride == 0 && t < r.input_count()) continue;
    const int64_t alignment = std::min<int64_t>(kRun * size, 16);
    if (stride != size || size > 8 || tensor.alignment < alignment) return;
    for (size_t axis = 0; axis < last; ++axis)
      if (r.kept.strides[t][axis] % alignment != 0) return;
    for (const int64_t reduced : r.reduced.strides[t])
      if (reduced % alignment != 0) return;
  }
  c.lanes = kRun;
}

Columns choose(const Device& device, const Reduction& r) {
  Columns c;
  choose_lanes(device, r, c);
  const bool is_processor = device.physical.kind == COMPUTE_DEVICE_KIND_CPU;
  const bool are_many = r.input_count() > 2, are_few = r.input_count() == 1 && bytes_of(r.op.tensors()[0].dtype) <= 4;
  c.at_once = are_many ? 1 : are_few && !r.is_row && !is_processor ? 8 : 4;  // they fit in registers
  // Columns that are cut into parts are combined by few groups, and fewest where the groups are narrow.
  if (!r.is_row && c.lanes > 1) c.width = 8;
  const int64_t points = r.kept.count(), terms = r.reduced.count(), wanted = r.is_row ? 1024 : 512;
  c.units = points / c.lanes;
  const int64_t neighbours = r.kept.shape.back() / c.lanes;
  while (c.width > 8 && c.width / 2 >= neighbours) c.width /= 2;
  // A row has one group per column, so narrow groups make more of them. Eight items read 32 bytes at least.
  while (r.is_row && c.width > 8 && c.units / c.width < wanted / 2) c.width /= 2;
  // Many columns, or few rows, need no help by items below each other.
  while (c.width < kItems && (c.units / c.width > 4 * wanted || terms < 4 * c.height())) c.width *= 2;
  c.blocks = (c.units + c.width - 1) / c.width;
  if (!r.is_row && c.blocks < wanted)
    c.parts = std::max<int64_t>(
        1, std::min((wanted + c.blocks - 1) / c.blocks, terms / (c.height() * std::max(8, 2 * c.at_once))));
  c.per_part = (terms + c.parts - 1) / c.parts;
  c.parts = (terms + c.per_part - 1) / c.per_part;
  return c;
}

class ColumnsWriter {
 public:
  ColumnsWriter(const Request& request, const Reduction& r, const Columns& c)
      : r_(r), c_(c), k_(request.device, request.plan, request.query, r.is_row ? "row columns" : "reduce columns") {
    sign_reduction(k_, r);
    k_.use_group_size(kItems);
    k_.sign(c.lanes);
    for (const bool is_constant : c.is_constant) k_.sign(is_constant ? "c" : "v");
    k_.sign(c.width);
    k_.sign(c.at_once);
    if (r.positions)
      for (const int at : r.place) k_.sign(at);
    for (size_t t = 0; t < r.op.tensors().size(); ++t) slots_.push_back(k_.tensor(static_cast<int32_t>(t)));
    scalars_ = k_.scalars(0, r.op.scalar_count());
    units_ = k_.word(c.units), blocks_ = k_.word(c.blocks), all_ = k_.word(c.blocks * c.parts);
    terms_ = k_.word(r.reduced.count());
    if (c.parts > 1) {
      k_.sign("parts");
      parts_ = k_.word(c.parts), per_part_ = k_.word(c.per_part);
      points_ = k_.word(r.kept.count());
      states_.allocate(k_, request.plan, Accumulator(k_.source, r.stages[0].kind, r.stages[0].accumulator),
                       r.kept.count() * c.parts);
    }
    is_long_ = c.per_part / (c.height() * c.at_once) > 60000;
    k_.sign(is_long_ ? "long" : "short");
    Space kept = r.kept;
    for (size_t t = r.input_count() + r.final_outputs(); t < r.op.tensors().size(); ++t)
      steps_.push_back(k_.word(kept.strides[t].back()));
    kept.shape.back() /= c.lanes;
    for (Shape& strides : kept.strides) strides.back() *= c.lanes;
    kept_ = k_.axes(kept);
    reduced_ = k_.axes(r.reduced);
    k_.finish(std::min<int64_t>(c.blocks * c.parts, 32768), [&] { write(); });
  }

 private:
  using Text = std::string;
  static Text text_of(int64_t n) { return std::to_string(n); }
  static Text state_name(size_t stage, int lane) { return "q" + std::to_string(stage) + "_" + text_of(lane) + "_"; }
  static Text result_name(size_t stage, int lane) { return "result" + std::to_string(stage) + "_" + text_of(lane); }

  Source::Leaves leaves(int32_t first_scalar, int lane) {
    Source::Leaves made;
    made.input = [this, lane](int32_t i, int32_t dtype) -> Text {
      const auto t = static_cast<size_t>(i);
      if (t >= r_.input_count()) return result_name(t - r_.input_count(), lane);
      const Text words = "w" + std::to_string(t) + "[u]";
      return c_.lanes > 1 && !c_.is_constant[t] ? from_run(dtype, words, text_of(lane)) : words;
    };
    made.scalar = [this, first_scalar](int32_t i, int32_t dtype) {
      return k_.scalar(scalars_, first_scalar + i, dtype);
    };
    made.index = [this, lane](int32_t axis) -> Text {
      const int at = r_.place[static_cast<size_t>(axis)];
      if (at < 0) return "rx" + text_of(-1 - at);
      const Text x = "kx" + text_of(at);
      return c_.lanes > 1 && at == kept_.rank - 1 ? "(4*" + x + "+" + text_of(lane) + "u)" : x;
    };
    return made;
  }

  Text row_place(size_t t) const {
    const Text n = std::to_string(t);
    return k_.address(slots_[t], "int64_t(k" + n + ")+int64_t(r" + n + ")");
  }

  // Rows of an item: loads what `used` says, then runs `body` for each row u of those that were loaded at once, between
  // the texts `before` and `behind`.
  void each_row(const compute_plugin_expression& used, const std::function<void()>& body, const Text& before = "",
                const Text& behind = "") {
    std::vector<bool> is_used(r_.input_count());
    for (int32_t i = 0; i < used.node_count; ++i) {
      const auto input = static_cast<size_t>(used.nodes[i].value);
      if (used.nodes[i].kind == COMPUTE_PLUGIN_NODE_INPUT && input < is_used.size()) is_used[input] = true;
    }
    const Text R = reduced_.index_type(), h = text_of(c_.height()), count = text_of(c_.at_once);
    const Text step = R + "(" + text_of(c_.height() * c_.at_once) + ")", first = "first+" + R + "(ty)";
    if (is_long_) {  // some drivers end loops after 65535 rounds
      k_.out += "for(" + R + " b=" + first + ";b<terms;b+=" + step + "*" + R + "(32768))for(" + R +
                " s=b;s<min(terms,b+" + step + "*" + R + "(32768));s+=" + step + "){\n";
    } else {
      k_.out += "for(" + R + " s=" + first + ";s<terms;s+=" + step + "){\n";
    }
    for (size_t t = 0; t < is_used.size(); ++t) {
      if (!is_used[t]) continue;
      const int32_t dtype = r_.op.tensors()[t].dtype;
      const bool is_run = c_.lanes > 1 && !c_.is_constant[t];
      k_.out += (is_run ? "uint" : type_of(dtype)) + " w" + std::to_string(t) + "[" + count + "]" +
                (is_run ? "[" + text_of(words_of_run(dtype)) + "]" : "") + ";";
    }
    // Behind the end the last row is loaded again, and not used.
    k_.out += "\n[[unroll]] for(int u=0;u<" + count + ";++u){" + R + " r=min(s+" + R + "(u*" + h + "),terms-1);\n";
    k_.locate(reduced_, "r", "r", false);
    for (size_t t = 0; t < is_used.size(); ++t) {
      if (!is_used[t]) continue;
      const int32_t dtype = r_.op.tensors()[t].dtype;
      const Text name = "w" + std::to_string(t) + "[u]";
      k_.out += c_.lanes > 1 && !c_.is_constant[t] ? load_run(dtype, name, row_place(t))
                                                   : name + "=" + load(dtype, row_place(t)) + ";";
    }
    k_.out += "}\n" + before + "[[unroll]] for(int u=0;u<" + count + ";++u){" + R + " r=s+" + R + "(u*" + h +
              ");if(r<terms){\n";
    if (r_.positions || &used == r_.final) k_.locate(reduced_, "r", "r", r_.positions);
    body();
    k_.out += "}}\n" + behind + "}\n";
  }

  void write() {
    const Text I = kept_.index_type(), R = reduced_.index_type(), w = text_of(c_.width) + "u";
    for (size_t s = 0; s < r_.stages.size(); ++s)
      if (c_.height() > 1) k_.declare_shared(state(s), shared_name(s), c_.lanes);
    if (c_.parts > 1) PartStates::declare_shared(k_);
    k_.out += "void main(){\nuint lid=gl_LocalInvocationID.x,tx=lid%" + w + ",ty=lid/" + w + ";\nfor(" + I + " g=" + I +
              "(gl_WorkGroupID.x);g<" + k_.number(all_, I) + ";g+=" + I + "(gl_NumWorkGroups.x)){\n" + I + " part=g/" +
              k_.number(blocks_, I) + ",unit=(g-part*" + k_.number(blocks_, I) + ")*" + I + "(" + w + ")+" + I +
              "(tx);bool inside=unit<" + k_.number(units_, I) + ";unit=min(unit," + k_.number(units_, I) + "-1);\n" +
              R + " terms=" + k_.number(terms_, R) + ",first=" + R + "(0);\n";
    if (c_.parts > 1)
      k_.out += "first=" + R + "(part)*" + k_.number(per_part_, R) + ";terms=min(terms,first+" +
                k_.number(per_part_, R) + ");\n";
    k_.locate(kept_, "k", "unit", r_.positions);
    for (size_t s = 0; s < r_.stages.size(); ++s) write_stage(s);
    if (r_.final != nullptr) write_final();
    if (c_.height() > 1 || c_.parts > 1) k_.out += "barrier();\n";
    k_.end_loop();
  }

  Accumulator state(size_t s) { return Accumulator(k_.source, r_.stages[s].kind, r_.stages[s].accumulator); }
  static Text shared_name(size_t s) { return "h" + std::to_string(s) + "_"; }

  void write_stage(size_t s) {
    const Stage& stage = r_.stages[s];
    const Accumulator state = this->state(s);
    for (int lane = 0; lane < c_.lanes; ++lane) k_.out += state.declare(state_name(s, lane)) + "\n";
    // The rows that an item loads at once are added as a tree.
    const bool adds_trees = state.is_compensated() && c_.at_once > 1;
    const auto tree = [&](int lane) { return "v" + std::to_string(s) + "_" + text_of(lane); };
    Text declared, added;
    for (int lane = 0; lane < c_.lanes && adds_trees; ++lane) {
      const Text T = type_of(stage.accumulator);
      declared += T + " " + tree(lane) + "[" + text_of(c_.at_once) + "];[[unroll]] for(int u=0;u<" +
                  text_of(c_.at_once) + ";++u)" + tree(lane) + "[u]=" + identity_text(stage.kind, stage.accumulator) +
                  ";\n";
      added += state.combine_array(tree(lane), c_.at_once) + state.add(state_name(s, lane), tree(lane) + "[0]") + "\n";
    }
    const auto add_row = [&] {
      for (int lane = 0; lane < c_.lanes; ++lane) {
        const Text prefix = "b" + std::to_string(s) + "_" + text_of(lane) + "_";
        const auto names = k_.source.emit(k_.out, *stage.before, prefix, leaves(stage.before_scalars, lane));
        k_.out += (adds_trees ? tree(lane) + "[u]=" + names[0] + ";" : state.add(state_name(s, lane), names[0])) + "\n";
      }
    };
    each_row(*stage.before, add_row, declared, added);
    if (c_.height() > 1) combine(s, state);
    if (c_.parts > 1) combine_parts(s, state);
    for (int lane = 0; lane < c_.lanes; ++lane) write_after(s, lane, state);
    if (c_.parts > 1) k_.out += "}\n";
  }

  // Leaves the states of whole columns, in a block that the last group executes.
  void combine_parts(size_t s, const Accumulator& state) {
    std::vector<Text> names;
    for (int lane = 0; lane < c_.lanes; ++lane) names.push_back(state_name(s, lane));
    const auto index = [&](const Text& part, size_t lane) {
      return "int64_t(" + part + ")*" + k_.at(points_) + "+int64_t(unit)*" + text_of(c_.lanes) + "l+" +
             text_of(static_cast<int64_t>(lane)) + "l";
    };
    k_.out += "if(ty==0u&&inside){";
    states_.store_states(k_, state, names, index);
    k_.out += "}\n";
    const Text block = "(g%" + k_.number(blocks_, kept_.index_type()) + ")";
    states_.begin_last(k_, block, k_.number(parts_, "uint"), state, names, index, "ty", c_.height());
    if (c_.height() > 1) combine(s, state);
  }

  // By halves, all columns at once. Every item of a column gets the result.
  void combine(size_t s, const Accumulator& state) {
    const Text h = shared_name(s);
    const auto place = [&](size_t part, int lane, const Text& item) {
      return h + std::to_string(part) + "[" + text_of(lane * kItems) + "u+" + item + "]";
    };
    Text keep, merge, take;
    for (int lane = 0; lane < c_.lanes; ++lane) {
      std::vector<Text> theirs, first;
      for (size_t i = 0; i < state.parts(); ++i) {
        keep += place(i, lane, "lid") + "=" + state_name(s, lane) + std::to_string(i) + ";";
        theirs.push_back(place(i, lane, "lid+d*" + text_of(c_.width) + "u"));
        first.push_back(place(i, lane, "tx"));
      }
      merge += state.merge(state_name(s, lane), theirs);
      take += state.assign(state_name(s, lane), first);
    }
    k_.out += keep + "barrier();\nfor(uint d=" + text_of(c_.height() / 2) + "u;d>0u;d>>=1){if(ty<d){" + merge + keep +
              "}barrier();}\n" + take + "\n";
  }

  // Evaluates `after`: declares the result of a stage of a row, or stores the outputs of a reduce.
  void write_after(size_t s, int lane, const Accumulator& state) {
    const Stage& stage = r_.stages[s];
    const Text total = "total" + std::to_string(s) + "_" + text_of(lane);
    k_.out += type_of(stage.accumulator) + " " + total + "=" + state.result(state_name(s, lane)) + ";\n";
    Source::Leaves from = leaves(stage.after_scalars, lane);
    from.input = [total, lane](int32_t i, int32_t) {
      return i == 0 ? total : result_name(static_cast<size_t>(i - 1), lane);
    };
    const Text prefix = "a" + std::to_string(s) + "_" + text_of(lane) + "_";
    const auto names = k_.source.emit(k_.out, *stage.after, prefix, from);
    const int32_t dtype = stage.after->nodes[stage.after->outputs[0]].dtype;
    if (r_.is_row) k_.out += type_of(dtype) + " " + result_name(s, lane) + "=" + names[0] + ";\n";
    k_.out += "if(ty==0u&&inside){";
    for (size_t i = 0; i < steps_.size(); ++i) {
      const size_t t = r_.input_count() + r_.final_outputs() + i;
      if (r_.is_row && static_cast<size_t>(r_.stored[i]) != s) continue;
      const Text value = r_.is_row ? k_.source.convert(dtype, r_.op.tensors()[t].dtype, names[0]) : names[i];
      k_.out +=
          store(r_.op.tensors()[t].dtype,
                k_.address(slots_[t], "int64_t(k" + std::to_string(t) + ")+" + text_of(lane) + "l*" + k_.at(steps_[i])),
                value);
    }
    k_.out += "}\n";
  }

  void write_final() {
    const auto dtype_of = [&](size_t i) { return r_.op.tensors()[r_.input_count() + i].dtype; };
    const auto words = [](size_t i) { return "z" + std::to_string(i); };
    k_.out += "if(inside)";
    each_row(*r_.final, [&] {
      for (size_t i = 0; c_.lanes > 1 && i < r_.final_outputs(); ++i) {
        const int count = words_of_run(dtype_of(i));
        k_.out += "uint " + words(i) + "[" + text_of(count) + "];";
        for (int w = 0; w < count; ++w) k_.out += words(i) + "[" + text_of(w) + "]=0u;";
      }
      for (int lane = 0; lane < c_.lanes; ++lane) {
        const auto names = k_.source.emit(k_.out, *r_.final, "f" + text_of(lane) + "_", leaves(r_.final_scalars, lane));
        for (size_t i = 0; i < names.size(); ++i)
          k_.out += c_.lanes > 1 ? to_run(dtype_of(i), words(i), text_of(lane), names[i])
                                 : store(dtype_of(i), row_place(r_.input_count() + i), names[i]);
      }
      for (size_t i = 0; c_.lanes > 1 && i < r_.final_outputs(); ++i)
        k_.out += store_run(dtype_of(i), words(i), row_place(r_.input_count() + i));
      k_.out += "\n";
    });
  }

  const Reduction& r_;
  const Columns& c_;
  KernelBuilder k_;
  std::vector<int> slots_, steps_;  // steps of outputs that are stored once per column
  PartStates states_;
  int scalars_ = 0, units_ = 0, blocks_ = 0, all_ = 0, terms_ = 0, parts_ = 0, per_part_ = 0, points_ = 0;
  bool is_long_ = false;
  Axes kept_, reduced_;
};

}  // namespace

bool reduce_by_columns(const Request& request, const Reduction& r) {
  constexpr int64_t kFew = 8;  // neighbours, or rows
  if (request.device.physical.features.group_size < kItems) return false;
  if (r.kept.shape.empty() || r.kept.shape.back() < kFew || r.reduced.count() < kFew) return false;
  const Columns columns = choose(request.device, r);
  if (r.is_row && columns.blocks < 128 && r.reduced.count() / columns.height() > 256)
    throw Refused{COMPUTE_PLUGIN_REFUSE_SHAPE, -1, "a few long rows are faster as reductions"};
  int64_t bytes = 0;
  for (const Stage& stage : r.stages) bytes += 4 * bytes_of(stage.accumulator) * kItems * columns.lanes;
  if (columns.height() > 1 && bytes > request.device.physical.features.shared_bytes) return false;
  ColumnsWriter(request, r, columns);
  return true;
}

}  // namespace vulkan
