// SPDX-License-Identifier: Apache-2.0
// map and copy: one expression at every point. Where the innermost axis is contiguous, a work-item takes four points
// with loads of up to 16 bytes.
#include "ops.hpp"

namespace vulkan {
namespace {

// How the operands of a loop lie along its innermost axis: in runs of four, or as single elements.
struct Runs {
  bool taken = false;
  bool has_tail = false;     // the number of points is not a multiple of four
  std::vector<bool> is_run;  // per operand; the others do not move along the axis
};

Runs find_runs(const Space& space, const std::vector<Tensor>& tensors, bool heavy) {
  Runs runs;
  if (heavy || space.shape.empty() || space.count() < kRun) return runs;
  const size_t last = space.shape.size() - 1;
  runs.has_tail = space.shape[last] % kRun != 0;
  if (runs.has_tail && last > 0) return runs;
  for (size_t t = 0; t < tensors.size(); ++t) {
    const int64_t size = bytes_of(tensors[t].dtype), stride = space.strides[t][last];
    const bool is_run = stride == size;
    runs.is_run.push_back(is_run);
    if (!is_run && stride != 0) return runs;
    if (!is_run) continue;
    if (size > 8 || (is_complex(class_of(tensors[t].dtype)) && tensors[t].alignment < 16)) return runs;
    const int64_t alignment = std::min<int64_t>(kRun * size, 16);
    if (tensors[t].alignment < alignment) return runs;
    for (size_t axis = 0; axis < last; ++axis)
      if (space.strides[t][axis] % alignment != 0) return runs;
  }
  runs.taken = true;
  return runs;
}

// Builds a kernel that computes every output from the inputs at the same point. `body` gets the names of the values of
// the inputs and of the positions along the axes, and returns the names of the outputs.
void elementwise(const Request& request, KernelBuilder& k, const Space& given, bool positions, bool heavy,
                 int32_t output_first, const std::function<std::vector<std::string>(const Source::Leaves&)>& body,
                 int scalar_slot) {
  const std::vector<Tensor>& tensors = request.op.tensors();
  Space space = given.collapsed(positions);
  const Runs runs = find_runs(space, tensors, heavy);
  const int64_t points = space.count();
  std::vector<int> slots;
  for (size_t t = 0; t < tensors.size(); ++t) {
    slots.push_back(k.tensor(static_cast<int32_t>(t)));
    k.sign(tensors[t].dtype);
  }
  if (runs.taken) {
    const size_t last = space.shape.size() - 1;
    space.shape[last] = (space.shape[last] + kRun - 1) / kRun;
    for (size_t t = 0; t < tensors.size(); ++t) space.strides[t][last] *= kRun;
    k.sign(runs.has_tail ? "tail" : "runs");
    for (const bool is_run : runs.is_run) k.sign(is_run ? "r" : "e");
  }
  const int count = k.word(space.count()), total = k.word(points);
  const Axes axes = k.axes(space);
  const std::string I = axes.index_type();
  const auto offset = [](size_t t) { return "o" + std::to_string(t); };
  k.finish_loop(space.count(), [&] {
    k.begin_loop(count, I);
    k.locate(axes, "o", "i", positions);
    Source::Leaves leaves;
    leaves.scalar = [&](int32_t i, int32_t dtype) { return k.scalar(scalar_slot, i, dtype); };
    if (!runs.taken) {
      leaves.input = [&](int32_t i, int32_t dtype) {
        return load(dtype, k.address(slots[static_cast<size_t>(i)], offset(static_cast<size_t>(i))));
      };
      leaves.index = [&](int32_t axis) { return "ox" + std::to_string(axis); };
      const auto names = body(leaves);
      for (size_t i = 0; i < names.size(); ++i) {
        const size_t t = static_cast<size_t>(output_first) + i;
        k.out += store(tensors[t].dtype, k.address(slots[t], offset(t)), names[i]) + "\n";
      }
      k.end_loop();
      return;
    }
    const auto words = [](size_t t) { return "w" + std::to_string(t); };
    const auto place = [&](size_t t, const std::string& index) {
      return k.address(slots[t], offset(t) + "+" + axes.offset_type() + "(" + index + ")*" +
                                     std::to_string(bytes_of(tensors[t].dtype)));
    };
    if (runs.has_tail) k.out += "int m=int(min(" + I + "(4)," + k.number(total, I) + "-4*i));\n";
    const auto whole_or_part = [&](const std::string& whole, const std::string& part) {
      k.out += runs.has_tail ? "if(m==4){" + whole + "}else{for(int k=0;k<m;++k){" + part + "}}\n" : whole + "\n";
    };
    const auto outputs = static_cast<size_t>(output_first);
    for (size_t t = 0; t < tensors.size(); ++t) {
      const int32_t dtype = tensors[t].dtype;
      if (!runs.is_run[t] && t < outputs) {
        k.out += type_of(dtype) + " e" + std::to_string(t) + "=" + load(dtype, k.address(slots[t], offset(t))) + ";\n";
        continue;
      }
      k.out += "uint " + words(t) + "[" + std::to_string(words_of_run(dtype)) + "];";
      if (runs.has_tail || t >= outputs)
        for (int w = 0; w < words_of_run(dtype); ++w) k.out += words(t) + "[" + std::to_string(w) + "]=0u;";
      k.out += "\n";
      if (t < outputs) {
        whole_or_part(load_run(dtype, words(t), k.address(slots[t], offset(t))),
                      to_run(dtype, words(t), "k", load(dtype, place(t, "k"))));
      }
    }
    k.out += "[[unroll]] for(int k=0;k<4;++k){\n";
    leaves.input = [&](int32_t i, int32_t dtype) {
      const auto t = static_cast<size_t>(i);
      return runs.is_run[t] ? from_run(dtype, words(t), "k") : "e" + std::to_string(i);
    };
    const int last = axes.rank - 1;
    leaves.index = [&, last](int32_t axis) {
      const std::string x = "ox" + std::to_string(axis);
      return axis == last ? "(4*" + x + "+" + I + "(k))" : x;
    };
    const auto names = body(leaves);
    for (size_t i = 0; i < names.size(); ++i)
      k.out += to_run(tensors[outputs + i].dtype, words(outputs + i), "k", names[i]) + "\n";
    k.out += "}\n";
    for (size_t t = outputs; t < tensors.size(); ++t) {
      const int32_t dtype = tensors[t].dtype;
      whole_or_part(store_run(dtype, words(t), k.address(slots[t], offset(t))),
                    store(dtype, place(t, "k"), from_run(dtype, words(t), "k")));
    }
    k.end_loop();
  });
}

// Whether lines of both sides can be walked in runs: the input's along `across`, the output's along the last axis.
bool has_runs(const Op& op, const Space& space, size_t across) {
  const size_t last = space.shape.size() - 1;
  if (space.shape[across] % kRun != 0 || space.shape[last] % kRun != 0) return false;
  for (size_t t = 0; t < 2; ++t) {
    const Tensor& tensor = op.tensors()[t];
    const int64_t size = bytes_of(tensor.dtype), alignment = std::min<int64_t>(kRun * size, 16);
    const size_t along = t == 0 ? across : last;
    if (size > 8 || tensor.alignment < alignment || space.strides[t][along] != size) return false;
    for (size_t axis = 0; axis < space.shape.size(); ++axis)
      if (axis != along && space.strides[t][axis] % alignment != 0) return false;
  }
  return true;
}

// A copy whose operands are contiguous along different axes goes through tiles in shared memory, so that both sides
// move whole lines. The input is contiguous along `across`, the output along the last axis.
void copy_by_tiles(const Request& request, const Space& space, size_t across) {
  constexpr int kItems = 256;
  const int32_t from = request.op.input(0).dtype, to = request.op.output(0).dtype;
  const size_t last = space.shape.size() - 1;
  const int64_t value_bytes = std::max<int64_t>(bytes_of(from), 4);
  const bool runs = has_runs(request.op, space, across);
  const bool is_large = runs && value_bytes <= 4 &&
                        64 * 65 * value_bytes <= request.device.physical.features.shared_bytes &&
                        space.shape[across] > 32 && space.shape[last] > 32;
  const int side = is_large ? 64 : 32, run = runs ? kRun : 1;
  Space others;
  others.strides.resize(2);
  for (size_t axis = 0; axis < last; ++axis) {
    if (axis == across) continue;
    others.shape.push_back(space.shape[axis]);
    for (size_t t = 0; t < 2; ++t) others.strides[t].push_back(space.strides[t][axis]);
  }
  KernelBuilder k(request.device, request.plan, request.query, "copy by tiles");
  k.sign(from);
  k.sign(to);
  k.sign(side);
  k.sign(run);
  k.use_group_size(kItems);
  const int x = k.tensor(0), y = k.tensor(1);
  const int64_t down_tiles = (space.shape[across] + side - 1) / side,
                tiles_across = (space.shape[last] + side - 1) / side;
  const int rows = k.word(space.shape[across]), columns = k.word(space.shape[last]), width = k.word(tiles_across);
  const int tiles = k.word(down_tiles * tiles_across), all = k.word(down_tiles * tiles_across * others.count());
  const int x_row = k.word(space.strides[0][across]), x_column = k.word(space.strides[0][last]);
  const int y_row = k.word(space.strides[1][across]), y_column = k.word(space.strides[1][last]);
  const Axes axes = k.axes(others);
  const int64_t groups = down_tiles * tiles_across * others.count();
  k.finish(std::min<int64_t>(groups, 32768), [&] {
    const auto text = [](int number) { return std::to_string(number); };
    const std::string I = "uint64_t", edge = text(side) + "u", pitch = text(side + 1) + "u";
    const int per_line = side / run;
    const std::string step = text(kItems / per_line) + "u", turns = text(side * per_line / kItems);
    const auto place = [&](int tensor, const char* offset, int row, int column, const std::string& r,
                           const std::string& c) {
      return k.address(tensor, std::string("int64_t(") + offset + ")+int64_t(" + r + ")*" + k.at(row) + "+int64_t(" +
                                   c + ")*" + k.at(column));
    };
    k.out += "shared " + type_of(from) + " tile[" + text(side * (side + 1)) +
             "];\nvoid main(){\nuint lid=gl_LocalInvocationID.x,tx=lid%" + text(per_line) + "u*" + text(run) +
             "u,ty=lid/" + text(per_line) + "u,rows=" + k.number(rows, "uint") +
             ",columns=" + k.number(columns, "uint") + ";\nfor(uint64_t g=uint64_t(gl_WorkGroupID.x);g<" +
             k.number(all, I) + ";g+=uint64_t(gl_NumWorkGroups.x)){\nuint64_t b=g/" + k.number(tiles, I) +
             ";uint t=uint(g-b*" + k.number(tiles, I) + "),r0=t/" + k.number(width, "uint") + "*" + edge + ",c0=t%" +
             k.number(width, "uint") + "*" + edge + ";\n";
    k.locate(axes, "o", axes.index_type() + "(b)", false);
    const std::string each = "[[unroll]] for(uint u=0u;u<" + turns + "u;++u){uint j=ty+u*" + step + ";if(";
    const std::string source = place(x, "o0", x_row, x_column, "r0+tx", "c0+j");
    const std::string target = place(y, "o1", y_row, y_column, "r0+j", "c0+tx");
    if (!runs) {
      k.out += each + "r0+tx<rows&&c0+j<columns)tile[j*" + pitch + "+tx]=" + load(from, source) + ";}\nbarrier();\n" +
               each + "r0+j<rows&&c0+tx<columns){" +
               store(to, target, k.source.convert(from, to, "tile[tx*" + pitch + "+j]")) + "}}\nbarrier();\n}}\n";
      return;
    }
    // All loads, then the tile.
    const auto words = [&](int32_t dtype) { return text(words_of_run(dtype)); };
    k.out += "uint w[" + turns + "][" + words(from) + "];\n" + each + "r0+tx<rows&&c0+j<columns)" + "{" +
             load_run(from, "w[u]", source) + "}}\n" + each +
             "r0+tx<rows&&c0+j<columns){[[unroll]] for(int k=0;k<4;++k)tile[j*" + pitch +
             "+tx+uint(k)]=" + from_run(from, "w[u]", "k") + ";}}\nbarrier();\n" + each +
             "r0+j<rows&&c0+tx<columns){uint z[" + words(to) + "];[[unroll]] for(int k=0;k<" + words(to) +
             ";++k)z[k]=0u;\n[[unroll]] for(int k=0;k<4;++k){" + type_of(from) + " v=tile[(tx+uint(k))*" + pitch +
             "+j];" + to_run(to, "z", "k", k.source.convert(from, to, "v")) + "}" + store_run(to, "z", target) +
             "}}\nbarrier();\n}}\n";
  });
}

// The axis along which the input is contiguous, if the copy is worth tiles; else the last one.
size_t axis_across(const Op& op, const Space& space) {
  const size_t last = space.shape.size() - 1;
  const int64_t in = bytes_of(op.input(0).dtype), out = bytes_of(op.output(0).dtype);
  if (space.shape[last] < 16 || space.strides[1][last] != out || space.strides[0][last] == in || in > 8) return last;
  for (size_t axis = 0; axis < last; ++axis)
    if (space.strides[0][axis] == in && space.shape[axis] >= 16) return axis;
  return last;
}

Space space_of(const Op& op, const Shape& shape) {
  Space space;
  space.shape = shape;
  for (const Tensor& tensor : op.tensors()) space.strides.push_back(tensor.strides);
  return space;
}

}  // namespace

void map(const Request& request) {
  const Op& op = request.op;
  const compute_plugin_expression& expression = op.expression(0);
  KernelBuilder k(request.device, request.plan, request.query, "map");
  k.sign(std::string_view(reinterpret_cast<const char*>(expression.digest), sizeof expression.digest));
  const int scalars = k.scalars(0, op.scalar_count());
  elementwise(
      request, k, space_of(op, op.output(0).shape), uses_index(expression), is_heavy(expression), op.input_count(),
      [&](const Source::Leaves& leaves) { return k.source.emit(k.out, expression, "v", leaves); }, scalars);
}

void copy(const Request& request) {
  const Op& op = request.op;
  const int32_t from = op.input(0).dtype, to = op.output(0).dtype;
  const Space space = space_of(op, op.output(0).shape).collapsed(false);
  if (!space.shape.empty()) {
    const size_t across = axis_across(op, space);
    if (across + 1 < space.shape.size()) {
      copy_by_tiles(request, space, across);
      return;
    }
  }
  KernelBuilder k(request.device, request.plan, request.query, "copy");
  elementwise(
      request, k, space_of(op, op.output(0).shape), false, false, 1,
      [&](const Source::Leaves& leaves) {
        k.out += type_of(from) + " x=" + leaves.input(0, from) + ";\n" + type_of(to) +
                 " y=" + k.source.convert(from, to, "x") + ";\n";
        return std::vector<std::string>{"y"};
      },
      0);
}

}  // namespace vulkan
