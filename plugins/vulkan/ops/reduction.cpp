// SPDX-License-Identifier: Apache-2.0
// reduce and row. One work-item or one group combines the values of a point of the result; a reduction to few points is
// cut into parts, whose states the last group combines. The order depends on the shapes alone.
#include "reduction.hpp"

namespace vulkan {
namespace {

void split_axes(Reduction& r) {
  const std::vector<int64_t> axes = r.op.integers("axes");
  const Shape& shape = r.op.input(0).shape;
  const size_t operands = r.op.tensors().size();
  r.kept.strides.resize(operands);
  r.reduced.strides.resize(operands);
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const bool is_reduced = std::find(axes.begin(), axes.end(), static_cast<int64_t>(axis)) != axes.end();
    Space& space = is_reduced ? r.reduced : r.kept;
    const int at = static_cast<int>(space.shape.size());
    r.place.push_back(is_reduced ? -1 - at : at);
    space.shape.push_back(shape[axis]);
    for (size_t t = 0; t < operands; ++t) {
      const Tensor& tensor = r.op.tensors()[t];
      const bool walks = !is_reduced || tensor.shape[axis] == shape[axis];
      space.strides[t].push_back(walks ? tensor.strides[axis] : 0);
    }
  }
  r.kept = r.kept.collapsed(r.positions);
  r.reduced = r.reduced.collapsed(r.positions);
}

// How the work is laid out.
struct Layout {
  bool by_group = false;
  int local = 64;
  int64_t parts = 1;
  bool takes_runs = false;   // four neighbours at once, with loads of up to 16 bytes
  std::vector<bool> is_run;  // per operand; the others do not move along the last reduced axis
  int held = 0;              // elements, or runs, of a row that an item keeps in registers; 0: it reads them again
};

// Whether the last reduced axis can be walked in runs of four.
void choose_runs(const Reduction& r, Layout& layout) {
  if (!layout.by_group || r.reduced.shape.empty() || r.reduced.shape.back() % kRun != 0) return;
  const size_t last = r.reduced.shape.size() - 1;
  const size_t operands = r.input_count() + r.final_outputs();
  for (size_t t = 0; t < operands; ++t) {
    const Tensor& tensor = r.op.tensors()[t];
    const int64_t size = bytes_of(tensor.dtype), stride = r.reduced.strides[t][last];
    const bool is_run = stride == size;
    layout.is_run.push_back(is_run);
    if (!is_run && (stride != 0 || t >= r.input_count())) return;
    if (!is_run) continue;
    const int64_t alignment = std::min<int64_t>(kRun * size, 16);
    if (size > 8 || tensor.alignment < alignment) return;
    for (size_t axis = 0; axis < last; ++axis)
      if (r.reduced.strides[t][axis] % alignment != 0) return;
    for (const int64_t kept : r.kept.strides[t])
      if (kept % alignment != 0) return;
  }
  layout.takes_runs = true;
}

// Whether neighbours along the reduced axes are closer in memory than those along the kept ones.
bool reduces_along_memory(const Reduction& r) {
  if (r.kept.shape.empty()) return true;
  if (r.reduced.shape.empty()) return false;
  int64_t along_reduced = 0, along_kept = 0;
  for (size_t t = 0; t < r.input_count(); ++t) {
    const int64_t size = bytes_of(r.op.tensors()[t].dtype);
    along_reduced += std::abs(r.reduced.strides[t].back()) == size;
    along_kept += std::abs(r.kept.strides[t].back()) == size;
  }
  return along_reduced >= along_kept;
}

// Whether input t differs from row to row and within one. Others, as the weights of a norm, stay in caches.
bool is_worth_holding(const Reduction& r, const Layout& layout, size_t t) {
  const auto moves = [](const Shape& strides) {
    return std::any_of(strides.begin(), strides.end(), [](int64_t stride) { return stride != 0; });
  };
  return (r.kept.count() == 1 || moves(r.kept.strides[t])) &&
         (layout.takes_runs ? layout.is_run[t] : moves(r.reduced.strides[t]));
}

// An item keeps its part of a short row in registers.
void choose_held(const Device& device, const Reduction& r, Layout& layout) {
  const bool is_processor = device.physical.kind == COMPUTE_DEVICE_KIND_CPU;
  if (!layout.by_group || (r.final != nullptr && is_heavy(*r.final))) return;
  for (const Stage& stage : r.stages)
    if (is_heavy(*stage.before)) return;
  const int run = layout.takes_runs ? kRun : 1;
  const int64_t terms = r.reduced.count() / run;
  // The text is repeated for each, and compilers for processors take long.
  const int most = is_processor ? 1 : layout.takes_runs ? 4 : 8;
  int local = 64, held = 1;
  while (!is_processor && local < 256 && terms > local * most) local *= 2;
  while (held < most && terms > local * held) held *= 2;
  int64_t bytes = 0;
  for (size_t t = 0; t < r.input_count(); ++t)
    if (is_worth_holding(r, layout, t)) bytes += held * run * std::max<int64_t>(bytes_of(r.op.tensors()[t].dtype), 4);
  if (terms > local * held || bytes > 128) return;
  layout.local = local;
  layout.held = held;
}

Layout choose_layout(const Device& device, const Reduction& r) {
  const bool is_processor = device.physical.kind == COMPUTE_DEVICE_KIND_CPU;
  const int64_t points = r.kept.count(), terms = r.reduced.count();
  Layout layout;
  layout.local = plain_group_size(device);
  const bool along_memory = reduces_along_memory(r);
  layout.by_group = terms >= 64 && (along_memory || points < 65536);
  if (layout.by_group) layout.local = terms >= 1024 && !is_processor ? 256 : 64;
  constexpr int64_t kGroups = 1024;
  choose_runs(r, layout);
  if (r.is_row || points >= kGroups) choose_held(device, r, layout);
  if (r.is_row) return layout;
  if (layout.by_group && points < kGroups)
    layout.parts = std::clamp<int64_t>(terms / (layout.local * 16), 1, (kGroups + points - 1) / points);
  return layout;
}

class ReductionWriter {
 public:
  ReductionWriter(const Request& request, Reduction& r, const Layout& layout)
      : request_(request),
        r_(r),
        layout_(layout),
        k_(request.device, request.plan, request.query, r.is_row ? "row" : "reduce") {
    for (size_t t = 0; t < r.input_count(); ++t) is_held_.push_back(is_worth_holding(r, layout, t));
  }

  void write() {
    sign_reduction(k_, r_);
    k_.sign(layout_.by_group ? "group" : "item");
    if (r_.positions)
      for (const int at : r_.place) k_.sign(at);
    k_.use_group_size(layout_.local);
    k_.sign(layout_.held);
    if (layout_.takes_runs) {
      for (const bool is_run : layout_.is_run) k_.sign(is_run ? "r" : "e");
      r_.reduced.shape.back() /= kRun;
      for (Shape& strides : r_.reduced.strides) strides.back() *= kRun;
    }
    for (size_t t = 0; t < r_.op.tensors().size(); ++t) slots_.push_back(k_.tensor(static_cast<int32_t>(t)));
    scalars_ = k_.scalars(0, r_.op.scalar_count());
    const int64_t points = r_.kept.count(), terms = r_.reduced.count();
    const int64_t parts = layout_.parts = std::min(layout_.parts, std::max<int64_t>(terms, 1));
    const int64_t per_part = (terms + parts - 1) / parts;
    points_slot_ = k_.word(points * parts);
    terms_slot_ = k_.word(terms);
    if (parts > 1) {
      k_.sign("parts");
      parts_slot_ = k_.word(parts);
      per_part_slot_ = k_.word(per_part);
      part_states_.allocate(k_, request_.plan, Accumulator(k_.source, r_.stages[0].kind, r_.stages[0].accumulator),
                            points * parts);
    }
    const int64_t rounds = per_part / (layout_.by_group ? layout_.local : 1);
    if (rounds > 60000) {
      long_ = true;
      k_.sign("long");
    }
    kept_ = k_.axes(r_.kept);
    reduced_ = k_.axes(r_.reduced);
    const auto text = [&] { write_text(); };
    if (layout_.by_group)
      k_.finish(std::min<int64_t>(points * parts, 32768), text);
    else
      k_.finish_loop(points * parts, text);
  }

 private:
  Source::Leaves leaves(int32_t first_scalar, bool in_loop) {
    Source::Leaves made;
    made.input = [this, in_loop](int32_t i, int32_t dtype) -> std::string {
      const auto t = static_cast<size_t>(i);
      if (t >= r_.input_count()) return "result" + std::to_string(t - r_.input_count());
      if (in_loop && layout_.held > 0 && is_held_[t])
        return layout_.takes_runs ? from_run(dtype, held_name(t), "k") : held_name(t);
      if (in_loop && layout_.takes_runs)
        return layout_.is_run[t] ? from_run(dtype, "w" + std::to_string(t), "k") : "e" + std::to_string(t);
      return load(dtype, place(t, in_loop));
    };
    made.scalar = [this, first_scalar](int32_t i, int32_t dtype) {
      return k_.scalar(scalars_, first_scalar + i, dtype);
    };
    made.index = [this](int32_t axis) {
      const int at = r_.place[static_cast<size_t>(axis)];
      const std::string x = at < 0 ? "rx" + std::to_string(-1 - at) : "kx" + std::to_string(at);
      const bool is_walked = layout_.takes_runs && at < 0 && -1 - at == reduced_.rank - 1;
      return is_walked ? "(4*" + x + "+" + reduced_.index_type() + "(k))" : x;
    };
    return made;
  }

  std::string place(size_t t, bool in_loop) const {
    const std::string n = std::to_string(t);
    return k_.address(slots_[t], "int64_t(k" + n + ")" + (in_loop ? "+int64_t(r" + n + ")" : ""));
  }

  static std::string held_name(size_t t) { return "x" + std::to_string(t) + "[u]"; }
  std::string held_place() const { return layout_.takes_runs ? "4*u+k" : "u"; }
  std::string kept_value(size_t s) const { return "y" + std::to_string(s) + "[" + held_place() + "]"; }

  // Values of earlier stages that `e` computes again.
  void reuse(const compute_plugin_expression& e, size_t stages, Source::Leaves& leaves) {
    if (layout_.held == 0) return;
    std::vector<std::pair<int32_t, size_t>> found;
    for (size_t s = 0; s < stages; ++s)
      if (const int32_t node = find_same(*r_.stages[s].before, e); node >= 0) found.emplace_back(node, s);
    leaves.known = [this, found](int32_t node) {
      for (const auto& [known, s] : found)
        if (known == node) return kept_value(s);
      return std::string();
    };
  }

  bool is_used_again(size_t s) const {
    for (size_t later = s + 1; later < r_.stages.size(); ++later)
      if (find_same(*r_.stages[s].before, *r_.stages[later].before) >= 0) return true;
    return r_.final != nullptr && find_same(*r_.stages[s].before, *r_.final) >= 0;
  }

  // Behind the end the last elements are loaded again, and not used.
  void hold_row() {
    const std::string R = reduced_.index_type(), count = std::to_string(layout_.held);
    for (size_t t = 0; t < r_.input_count(); ++t) {
      const int32_t dtype = r_.op.tensors()[t].dtype;
      const std::string x = "x" + std::to_string(t);
      if (!is_held_[t]) continue;
      k_.out += layout_.takes_runs ? "uint " + x + "[" + count + "][" + std::to_string(words_of_run(dtype)) + "];"
                                   : type_of(dtype) + " " + x + "[" + count + "];";
    }
    for (size_t s = 0; s < r_.stages.size(); ++s) {
      const compute_plugin_expression& e = *r_.stages[s].before;
      if (is_used_again(s))
        k_.out += type_of(e.nodes[e.outputs[0]].dtype) + " y" + std::to_string(s) + "[" +
                  std::to_string(layout_.held * (layout_.takes_runs ? kRun : 1)) + "];";
    }
    k_.out += "\n[[unroll]] for(int u=0;u<" + count + ";++u){" + R + " r=min(" + R + "(lid)+" + R + "(u*" +
              std::to_string(layout_.local) + "),terms-1);\n";
    k_.locate(reduced_, "r", "r", false);
    for (size_t t = 0; t < r_.input_count(); ++t) {
      const int32_t dtype = r_.op.tensors()[t].dtype;
      if (!is_held_[t]) continue;
      k_.out += layout_.takes_runs ? load_run(dtype, held_name(t), place(t, true))
                                   : held_name(t) + "=" + load(dtype, place(t, true)) + ";";
    }
    k_.out += "}\n";
  }

  // Loads what `used` says of the inputs at the position of the loop, and runs `body` for each of the four points.
  void each_point(const compute_plugin_expression& used, const std::function<void()>& body) {
    if (!layout_.takes_runs) {
      body();
      return;
    }
    std::vector<bool> is_used(r_.input_count());
    for (int32_t i = 0; i < used.node_count; ++i) {
      const auto input = static_cast<size_t>(used.nodes[i].value);
      if (used.nodes[i].kind == COMPUTE_PLUGIN_NODE_INPUT && input < is_used.size()) is_used[input] = true;
    }
    for (size_t t = 0; t < is_used.size(); ++t) {
      if (!is_used[t]) continue;
      const int32_t dtype = r_.op.tensors()[t].dtype;
      const std::string n = std::to_string(t);
      if (layout_.held > 0 && is_held_[t]) continue;
      if (layout_.is_run[t])
        k_.out += "uint w" + n + "[" + std::to_string(words_of_run(dtype)) + "];" +
                  load_run(dtype, "w" + n, place(t, true)) + "\n";
      else
        k_.out += type_of(dtype) + " e" + n + "=" + load(dtype, place(t, true)) + ";\n";
    }
    k_.out += "[[unroll]] for(int k=0;k<4;++k){\n";
    body();
    k_.out += "}\n";
  }

  // A loop over the reduced axes, from `first` to `end`; by a group, its items take turns.
  void loop(const std::string& first, const std::string& end, const std::function<void()>& body) {
    const std::string I = reduced_.index_type();
    const std::string step = layout_.by_group ? std::to_string(layout_.local) + "u" : "1u";
    const std::string start = first + (layout_.by_group ? "+" + I + "(lid)" : "");
    if (layout_.held > 0) {  // without a condition, so that the elements' computations overlap
      k_.out += "[[unroll]] for(int u=0;u<" + std::to_string(layout_.held) + ";++u){" + I + " r=" + start + "+" + I +
                "(u*" + std::to_string(layout_.local) + ");bool is_inside=r<" + end + ";r=min(r," + end + "-1);\n";
    } else if (long_) {  // some drivers end loops after 65535 rounds
      k_.out += "for(" + I + " c=" + start + ";c<" + end + ";c+=" + I + "(" + step + ")*" + I + "(32768u))for(" + I +
                " r=c;r<min(" + end + ",c+" + I + "(" + step + ")*" + I + "(32768u));r+=" + I + "(" + step + ")){\n";
    } else if (layout_.by_group) {
      k_.out += "for(" + I + " r=" + start + ";r<" + end + ";r+=" + I + "(" + step + ")){\n";
    } else {  // four loads at once
      k_.out += "for(" + I + " s=" + start + ";s<" + end + ";s+=" + I + "(4))[[unroll]] for(int u=0;u<4;++u){" + I +
                " r=s+" + I + "(u);if(r<" + end + "){\n";
    }
    k_.locate(reduced_, "r", "r", r_.positions);
    body();
    k_.out += layout_.by_group || long_ ? "}\n" : "}}\n";
  }

  void write_text() {
    const std::string I = kept_.index_type(), R = reduced_.index_type();
    std::vector<Accumulator> states;
    for (const Stage& stage : r_.stages)
      states.emplace_back(k_.source, stage.kind, stage.accumulator, layout_.held == 0);
    if (layout_.by_group) {
      for (size_t s = 0; s < states.size(); ++s) k_.declare_shared(states[s], "h" + std::to_string(s) + "_");
      if (layout_.parts > 1) PartStates::declare_shared(k_);
    }
    if (layout_.by_group) {
      k_.out += "void main(){\nuint lid=gl_LocalInvocationID.x;" + I + " n=" + k_.number(points_slot_, I) + ";\nfor(" +
                I + " i=" + I + "(gl_WorkGroupID.x);i<n;i+=" + I + "(gl_NumWorkGroups.x)){\n";
    } else {
      k_.begin_loop(points_slot_, I);
    }
    const bool has_parts = layout_.parts > 1;
    k_.out += R + " terms=" + k_.number(terms_slot_, R) + ",first=" + R + "(0);\n";
    if (has_parts) {
      k_.out += I + " points=n/" + k_.number(parts_slot_, I) + ",part=i/points,point=i-part*points;\nfirst=" + R +
                "(part)*" + k_.number(per_part_slot_, R) + ";terms=min(terms,first+" + k_.number(per_part_slot_, R) +
                ");\n";
    }
    k_.locate(kept_, "k", has_parts ? "point" : "i", r_.positions);
    if (layout_.held > 0) hold_row();
    for (size_t s = 0; s < states.size(); ++s) write_stage(s, states[s]);
    if (!has_parts) write_results();
    if (layout_.by_group) k_.out += "barrier();\n";
    k_.end_loop();
  }

  void write_stage(size_t s, const Accumulator& state) {
    const Stage& stage = r_.stages[s];
    const std::string number = std::to_string(s), q = "q" + number + "_", h = "h" + number + "_";
    k_.out += state.declare(q) + "\n";
    // Values in registers, and the four of a run, are added as a tree.
    const bool holds = layout_.held > 0, adds_runs = !holds && layout_.takes_runs && state.is_compensated();
    const int values = (holds ? layout_.held : 1) * (layout_.takes_runs ? kRun : 1);
    const std::string v = "v" + number + "_", count = std::to_string(values);
    const std::string declared = type_of(stage.accumulator) + " " + v + "[" + count + "];";
    if (holds) k_.out += declared + "\n";
    loop("first", "terms", [&] {
      if (adds_runs) k_.out += declared;
      each_point(*stage.before, [&] {
        Source::Leaves from = leaves(stage.before_scalars, true);
        reuse(*stage.before, s, from);
        const auto names = k_.source.emit(k_.out, *stage.before, "b" + number + "_", from);
        if (holds && is_used_again(s)) k_.out += kept_value(s) + "=" + names[0] + ";";
        if (holds)
          k_.out += v + "[" + held_place() + "]=is_inside?" + names[0] + ":" +
                    identity_text(stage.kind, stage.accumulator) + ";\n";
        else if (adds_runs)
          k_.out += v + "[k]=" + names[0] + ";\n";
        else
          k_.out += state.add(q, names[0]) + "\n";
      });
      if (adds_runs) k_.out += state.combine_array(v, kRun) + state.add(q, v + "[0]") + "\n";
    });
    if (holds) k_.out += state.combine_array(v, values) + q + "0=" + v + "[0];\n";
    if (layout_.by_group) k_.combine_group(state, q, h);
    if (layout_.parts > 1) combine_parts(state, q, h);
    write_after(s, state);
    if (layout_.parts > 1) k_.out += "}\n";
  }

  // Leaves the state of the whole point in <q>, in a block that the last group executes.
  void combine_parts(const Accumulator& state, const std::string& q, const std::string& h) {
    const std::string parts = k_.number(parts_slot_, "uint");
    const auto index = [&](const std::string& part, size_t) {
      return "int64_t(point)*" + k_.at(parts_slot_) + "+int64_t(" + part + ")";
    };
    k_.out += "if(lid==0u){";
    part_states_.store_states(k_, state, {q}, index);
    k_.out += "}\n";
    part_states_.begin_last(k_, "point", parts, state, {q}, index, "lid", layout_.local);
    k_.combine_group(state, q, h);
  }

  // Evaluates `after`: declares result<s>, or of reduce stores the outputs.
  void write_after(size_t s, const Accumulator& state) {
    const Stage& stage = r_.stages[s];
    const std::string number = std::to_string(s);
    k_.out += type_of(stage.accumulator) + " total" + number + "=" + state.result("q" + number + "_") + ";\n";
    Source::Leaves from = leaves(stage.after_scalars, false);
    from.input = [number](int32_t i, int32_t) { return i == 0 ? "total" + number : "result" + std::to_string(i - 1); };
    const auto names = k_.source.emit(k_.out, *stage.after, "a" + number + "_", from);
    if (r_.is_row) {
      const int32_t dtype = stage.after->nodes[stage.after->outputs[0]].dtype;
      k_.out += type_of(dtype) + " result" + number + "=" + names[0] + ";\n";
      return;
    }
    if (layout_.by_group) k_.out += "if(lid==0u){";
    for (size_t i = 0; i < names.size(); ++i) {
      const size_t t = r_.input_count() + i;
      k_.out += store(r_.op.tensors()[t].dtype, k_.address(slots_[t], "k" + std::to_string(t)), names[i]) + "\n";
    }
    if (layout_.by_group) k_.out += "}\n";
  }

  void write_results() {
    if (!r_.is_row) return;
    if (!r_.stored.empty()) {
      if (layout_.by_group) k_.out += "if(lid==0u){";
      for (size_t i = 0; i < r_.stored.size(); ++i) {
        const size_t t = r_.input_count() + r_.final_outputs() + i;
        const Stage& stage = r_.stages[static_cast<size_t>(r_.stored[i])];
        const int32_t from = stage.after->nodes[stage.after->outputs[0]].dtype, to = r_.op.tensors()[t].dtype;
        k_.out += store(to, k_.address(slots_[t], "k" + std::to_string(t)),
                        k_.source.convert(from, to, "result" + std::to_string(r_.stored[i]))) +
                  "\n";
      }
      if (layout_.by_group) k_.out += "}\n";
    }
    if (r_.final == nullptr) return;
    const auto inside = [&](const std::string& text) {
      return layout_.held > 0 ? "if(is_inside){" + text + "}" : text;
    };
    loop("first", "terms", [&] {
      const auto words = [&](size_t i) { return "w" + std::to_string(r_.input_count() + i); };
      const auto dtype_of = [&](size_t i) { return r_.op.tensors()[r_.input_count() + i].dtype; };
      for (size_t i = 0; layout_.takes_runs && i < r_.final_outputs(); ++i) {
        const int count = words_of_run(dtype_of(i));
        k_.out += "uint " + words(i) + "[" + std::to_string(count) + "];";
        for (int w = 0; w < count; ++w) k_.out += words(i) + "[" + std::to_string(w) + "]=0u;";
      }
      each_point(*r_.final, [&] {
        Source::Leaves from = leaves(r_.final_scalars, true);
        reuse(*r_.final, r_.stages.size(), from);
        const auto names = k_.source.emit(k_.out, *r_.final, "f", from);
        for (size_t i = 0; i < names.size(); ++i) {
          k_.out += layout_.takes_runs ? to_run(dtype_of(i), words(i), "k", names[i])
                                       : inside(store(dtype_of(i), place(r_.input_count() + i, true), names[i]));
          k_.out += "\n";
        }
      });
      for (size_t i = 0; layout_.takes_runs && i < r_.final_outputs(); ++i)
        k_.out += inside(store_run(dtype_of(i), words(i), place(r_.input_count() + i, true))) + "\n";
    });
  }

  const Request& request_;
  Reduction& r_;
  Layout layout_;
  KernelBuilder k_;
  std::vector<int> slots_;
  std::vector<bool> is_held_;  // inputs in registers
  PartStates part_states_;
  int scalars_ = 0, points_slot_ = 0, terms_slot_ = 0, parts_slot_ = 0, per_part_slot_ = 0;
  bool long_ = false;
  Axes kept_, reduced_;
};

void check_states(const Device& device, const Reduction& r, const Layout& layout) {
  if (!layout.by_group) return;
  int64_t bytes = 0;
  for (const Stage& stage : r.stages) bytes += 4 * bytes_of(stage.accumulator);
  if (bytes * layout.local > device.physical.features.shared_bytes)
    throw Refused{COMPUTE_PLUGIN_REFUSE_SHAPE, -1, "the device has too little shared memory"};
}

}  // namespace

void sign_reduction(KernelBuilder& k, const Reduction& r) {
  const auto sign = [&](const compute_plugin_expression& e) {
    k.sign(std::string_view(reinterpret_cast<const char*>(e.digest), sizeof e.digest));
  };
  for (const Tensor& tensor : r.op.tensors()) k.sign(tensor.dtype);
  for (const Stage& stage : r.stages) {
    sign(*stage.before);
    sign(*stage.after);
    k.sign(stage.kind);
    k.sign(stage.accumulator);
  }
  if (r.final != nullptr) sign(*r.final);
  for (const int64_t stage : r.stored) k.sign(stage);
}

void PartStates::allocate(KernelBuilder& k, Plan& plan, const Accumulator& state, int64_t count) {
  for (size_t i = 0; i < state.parts(); ++i)
    slots_.push_back(k.workspace(plan.reserve(count * bytes_of(state.part_dtype(i)))));
  counters_ = k.counters();
}

void PartStates::declare_shared(KernelBuilder& k) { k.out += "shared bool is_last;\n"; }

std::string PartStates::place(const Accumulator& state, size_t part, const std::string& index) const {
  return KernelBuilder::address(slots_[part],
                                "int64_t(" + index + ")*" + std::to_string(bytes_of(state.part_dtype(part))) + "l");
}

void PartStates::store_states(KernelBuilder& k, const Accumulator& state, const std::vector<std::string>& names,
                              const Index& index) const {
  for (size_t column = 0; column < names.size(); ++column)
    for (size_t i = 0; i < state.parts(); ++i)
      k.out +=
          store(state.part_dtype(i), place(state, i, index("part", column)), names[column] + std::to_string(i), 'C');
}

void PartStates::begin_last(KernelBuilder& k, const std::string& counter, const std::string& parts,
                            const Accumulator& state, const std::vector<std::string>& names, const Index& index,
                            const std::string& first, int step) const {
  const std::string number = "C32(" + KernelBuilder::address(counters_, counter + "*4") + ").v";
  k.out += "memoryBarrierBuffer();barrier();\nif(gl_LocalInvocationID.x==0u){is_last=atomicAdd(" + number +
           ",1u)+1u==" + parts + ";if(is_last)" + number +
           "=0u;}\nmemoryBarrierShared();barrier();\nif(is_last){memoryBarrierBuffer();\n";
  // Four loads at once; behind the end the last part is loaded again, and not used.
  std::string loads, merges;
  for (size_t column = 0; column < names.size(); ++column) {
    k.out += state.declare(names[column]);
    std::vector<std::string> theirs;
    for (size_t i = 0; i < state.parts(); ++i) {
      const std::string array = "their" + std::to_string(i) + "_" + std::to_string(column);
      k.out += state.type(i) + " " + array + "[4];";
      theirs.push_back(array + "[u]");
      loads += theirs[i] + "=" + load(state.part_dtype(i), place(state, i, index("p", column)), 'C') + ";";
    }
    merges += state.merge(names[column], theirs);
  }
  const std::string distance = std::to_string(step) + "u";
  k.out += "\nfor(uint b=" + first + ";b<" + parts + ";b+=4u*" + distance +
           "){[[unroll]] for(uint u=0u;u<4u;++u){uint p=min(b+u*" + distance + "," + parts + "-1u);" + loads +
           "}\n[[unroll]] for(uint u=0u;u<4u;++u)if(b+u*" + distance + "<" + parts + "){" + merges + "}}\n";
}

void reduce(const Request& request) {
  const Op& op = request.op;
  Reduction r{op};
  Stage stage;
  stage.before = &op.expression(0);
  stage.after = &op.expression(1);
  stage.kind = op.string("kind");
  stage.accumulator = op.dtypes("accumulator")[0];
  stage.before_scalars = 0;
  stage.after_scalars = stage.before->scalar_count;
  r.stages.push_back(stage);
  r.positions = uses_index(*stage.before);
  split_axes(r);
  if (!reduces_along_memory(r) && reduce_by_columns(request, r)) return;
  ReductionWriter(request, r, choose_layout(request.device, r)).write();
}

void row(const Request& request) {
  const Op& op = request.op;
  Reduction r{op};
  r.is_row = true;
  const auto kinds = op.strings("kinds");
  const auto accumulators = op.dtypes("accumulators");
  int32_t scalars = 0;
  for (size_t s = 0; s < kinds.size(); ++s) {
    Stage stage;
    stage.before = &op.expression(static_cast<int32_t>(2 * s));
    stage.after = &op.expression(static_cast<int32_t>(2 * s + 1));
    stage.kind = kinds[s];
    stage.accumulator = accumulators[s];
    stage.before_scalars = scalars;
    scalars += stage.before->scalar_count;
    stage.after_scalars = scalars;
    scalars += stage.after->scalar_count;
    r.positions |= uses_index(*stage.before);
    r.stages.push_back(stage);
  }
  if (op.expression_count() % 2 != 0) {
    r.final = &op.expression(op.expression_count() - 1);
    r.final_scalars = scalars;
    r.positions |= uses_index(*r.final);
  }
  r.stored = op.integers("stored");
  split_axes(r);
  if (r.kept.count() < 64 && r.reduced.count() > 65536)
    throw Refused{COMPUTE_PLUGIN_REFUSE_SHAPE, -1, "a few long rows are faster as reductions"};
  if (!reduces_along_memory(r) && reduce_by_columns(request, r)) return;
  const Layout layout = choose_layout(request.device, r);
  check_states(request.device, r, layout);
  ReductionWriter(request, r, layout).write();
}

}  // namespace vulkan
