// SPDX-License-Identifier: Apache-2.0
// contraction and convolution: products of matrices in tiles. A group holds a tile of either operand in shared memory,
// and each of its items a block of the result in registers.
#include <compute_kit/windows.hpp>

#include "ops.hpp"

namespace vulkan {
namespace {

// A tile of the result, the depth that is loaded at once, and the block of a work-item. Teams of items share the depth,
// and add their blocks at the end.
struct Tile {
  int rows, columns, depth, item_rows, item_columns, teams = 1;
  int team_items() const { return rows / item_rows * (columns / item_columns); }
  int items() const { return team_items() * teams; }
};
constexpr Tile kLarge = {128, 128, 16, 8, 8}, kWide = {64, 128, 16, 8, 8}, kMiddle = {64, 64, 16, 4, 4},
               kSmall = {32, 32, 16, 2, 2}, kDeep = {32, 32, 64, 4, 4, 4};

// Bytes of a value in shared memory and registers.
int64_t held_bytes(int32_t dtype) { return bytes_of(dtype) < 4 ? 4 : bytes_of(dtype); }

bool fits(const Device& device, const Tile& tile, int32_t dtype) {
  const int64_t table = 2 * tile.depth * 16;
  const int64_t shared = static_cast<int64_t>(tile.depth) * (tile.rows + tile.columns + 8) * held_bytes(dtype) + table;
  return shared <= device.physical.features.shared_bytes &&
         tile.items() <= static_cast<int>(device.physical.features.group_size);
}

int64_t tiles_of(const Tile& tile, int64_t rows, int64_t columns) {
  return (rows + tile.rows - 1) / tile.rows * ((columns + tile.columns - 1) / tile.columns);
}

// The largest tile that leaves no unit of the device without work, as far as that is known.
Tile choose_tile(const Device& device, int64_t rows, int64_t columns, int64_t depth, int64_t batch, int32_t dtype) {
  constexpr int64_t kEnough = 128;
  // Of narrow results a tile of any kind has few items that load the wide operand, unless they share the depth.
  const bool is_narrow = std::min(rows, columns) <= kDeep.rows;
  if (class_of(dtype) == 'f' && depth >= 2 * kDeep.depth &&
      (is_narrow || tiles_of(kMiddle, rows, columns) * batch < kEnough) && fits(device, kDeep, dtype))
    return kDeep;
  if (device.physical.kind == COMPUTE_DEVICE_KIND_CPU)
    return fits(device, kMiddle, dtype) && rows > 32 && columns > 32 ? kMiddle : kSmall;
  for (const Tile& tile : {kLarge, kWide, kMiddle}) {
    const int64_t tiles = tiles_of(tile, rows, columns) * batch;
    const bool wasteful = rows * 2 <= tile.rows || columns * 2 <= tile.columns;
    if (tiles >= kEnough && !wasteful && held_bytes(dtype) <= 8 && (tile.item_rows <= 4 || held_bytes(dtype) == 4) &&
        fits(device, tile, dtype))
      return tile;
  }
  return fits(device, kMiddle, dtype) && rows > 32 && columns > 32 && held_bytes(dtype) <= 8 ? kMiddle : kSmall;
}

// How many groups of a copy take as long as one group of this product.
int64_t weight_of(const Tile& tile, int64_t depth) { return int64_t{tile.rows} * tile.columns * depth >> 19; }

// The dtype in which products are added.
int32_t accumulator_of(int32_t dtype) { return class_of(dtype) == 'h' ? COMPUTE_DTYPE_FLOAT32 : dtype; }

std::string multiply_add(Source& source, int32_t dtype, const std::string& a, const std::string& b,
                         const std::string& c) {
  const char cls = class_of(dtype);
  if (is_real(cls)) return c + "=fma(" + a + "," + b + "," + c + ");";
  if (cls == 'c' || cls == 'z') {
    return c + ".x=fma(" + a + ".x," + b + ".x,fma(-" + a + ".y," + b + ".y," + c + ".x));" + c + ".y=fma(" + a +
           ".x," + b + ".y,fma(" + a + ".y," + b + ".x," + c + ".y));";
  }
  return c + "=" + source.combine("sum", dtype, c, "(" + source.combine("prod", dtype, a, b) + ")") + ";";
}

// How a tile of an operand reaches shared memory. `load` returns the value at (row, depth) or (depth, column) in terms
// of the variables r and d, which are within the operand.
struct TileLoader {
  bool depth_is_contiguous;  // neighbouring items take neighbours along the depth
  int vector;                // 4: aligned runs of four elements of 4 bytes, else 1
  std::function<std::string(const std::string& r, const std::string& d)> value;    // text of one element
  std::function<std::string(const std::string& r, const std::string& d)> address;  // of the run, for vector 4
  // Declarations before the loop. Without depth_is_contiguous all loads of an item are of one row or column, which is
  // `line` there.
  std::function<std::string(const std::string& line)> prepare = {};
  // Without depth_is_contiguous: an ivec4 that `value` finds as table[at] instead of computing it from d.
  std::function<std::string(const std::string& d)> table = {};
};

struct Product {
  Tile tile;
  int32_t dtype, accumulator;
  int rows_slot, columns_slot, depth_slot;
  TileLoader a, b;
  // Text that stores the value `v` at row r and column c.
  std::function<std::string(const std::string& r, const std::string& c, const std::string& v)> store;
  std::string begin;  // declarations for the batch in gl_WorkGroupID.z
  // Shared memory holds vec4.
  bool has_vectors = false;
};

std::string number(int x) { return std::to_string(x); }

bool has_vectors(const Product& p) { return class_of(p.accumulator) == 'f' && p.tile.item_rows >= 4; }

// How many elements, or runs of four, of a tile of `extent` rows or columns an item loads.
int loads_of(const Product& p, const TileLoader& loader, int extent) {
  return extent * p.tile.depth / loader.vector / p.tile.items();
}

// The place of load number `i` of an item in its tile: declares r and d. Of a deep tile the parts of teams come one by
// one, so that few neighbours take the same row or column: their stores would wait for each other.
std::string place_of_load(const Product& p, const TileLoader& loader, int extent, int i) {
  const int run = loader.vector, part = p.tile.depth / p.tile.teams;
  const int across = (loader.depth_is_contiguous ? part : extent) / run;
  const std::string q = "uint q=lid+" + number(i * p.tile.items()) + "u,";
  const std::string along = "(q%" + number(across) + "u)*" + number(run) + "u", other = "q/" + number(across) + "u";
  if (!loader.depth_is_contiguous) return q + "d=" + other + ",r=" + along + ";";
  if (p.tile.teams == 1) return q + "r=" + other + ",d=" + along + ";";
  return q + "r=" + other + "%" + number(extent) + "u,d=" + along + "+q/" + number(across * extent) + "u*" +
         number(part) + "u;";
}

// Loads a tile into registers: `name`, of which every item has its part. Elements beyond the operand are 0.
void write_fetch(KernelBuilder& k, const Product& p, const TileLoader& loader, const std::string& name, int extent,
                 const std::string& first, const std::string& limit, const std::string& depth_first) {
  const std::string T = type_of(p.accumulator);
  for (int i = 0; i < loads_of(p, loader, extent); ++i) {
    const std::string held = name + number(i);
    k.out += "{" + place_of_load(p, loader, extent, i) + "uint rr=" + first + "+r,dd=" + depth_first + "+d;";
    if (loader.vector == 4) {
      k.out +=
          held + "=uvec4(0u);if(rr<" + limit + "&&dd<depth)" + held + "=W4(" + loader.address("rr", "dd") + ").v;}\n";
    } else {
      k.out += T + " x=" + T + "(0);if(rr<" + limit + "&&dd<depth){" + loader.value("rr", "dd") + "}" + held + "=x;}\n";
    }
  }
}

// Copies these registers into shared memory: element (r, d) is number r of row d. Rows have four more elements, so that
// neighbours along the depth lie in different banks.
void write_put(KernelBuilder& k, const Product& p, const TileLoader& loader, const std::string& name,
               const std::string& shared, int extent) {
  const std::string step = number(extent + 4) + "u";
  const auto target = [&](const std::string& at) {
    return p.has_vectors ? shared + "[(" + at + ")>>2][(" + at + ")&3u]" : shared + "[" + at + "]";
  };
  for (int i = 0; i < loads_of(p, loader, extent); ++i) {
    const std::string held = name + number(i);
    k.out += "{" + place_of_load(p, loader, extent, i);
    if (loader.vector == 1) {
      k.out += target("d*" + step + "+r") + "=" + held + ";";
    } else if (loader.depth_is_contiguous) {
      for (int e = 0; e < 4; ++e)
        k.out += target("(d+" + number(e) + "u)*" + step + "+r") + "=uintBitsToFloat(" + held + "[" + number(e) + "]);";
    } else {
      k.out += shared + "[(d*" + step + "+r)>>2]=uintBitsToFloat(" + held + ");";
    }
    k.out += "}\n";
  }
}

void write_product(KernelBuilder& k, const Product& p) {
  const Tile& t = p.tile;
  const std::string T = type_of(p.accumulator);
  const int a_step = t.rows + 4, b_step = t.columns + 4, across = t.columns / t.item_columns,
            down = t.rows / t.item_rows;
  if (p.has_vectors)
    k.out += "shared vec4 sa[" + number(t.depth * a_step / 4) + "],sb[" + number(t.depth * b_step / 4) + "];\n";
  else
    k.out += "shared " + T + " sa[" + number(t.depth * a_step) + "],sb[" + number(t.depth * b_step) + "];\n";
  if (p.b.table) k.out += "shared ivec4 table[" + number(2 * t.depth) + "];\n";
  k.out += "void main(){\nuint lid=gl_LocalInvocationID.x,rows=" + k.number(p.rows_slot, "uint") +
           ",columns=" + k.number(p.columns_slot, "uint") + ",depth=" + k.number(p.depth_slot, "uint") + ";\n";
  k.out += "uint tiles_across=(columns+" + number(t.columns - 1) + "u)/" + number(t.columns) + "u;\n";
  // Neighbouring groups share a band of rows of either operand, which caches then hold.
  k.out += "uint tiles_down=(rows+" + number(t.rows - 1) + "u)/" + number(t.rows) +
           "u,band=8u*tiles_across,id=gl_WorkGroupID.x,group_row=id/"
           "band*8u,height=min(8u,tiles_down-group_row),within=id%band;\n" +
           "uint r0=(group_row+within%height)*" + number(t.rows) + "u,c0=within/height*" + number(t.columns) + "u;\n" +
           "uint team=lid/" + number(t.team_items()) + "u,item=lid%" + number(t.team_items()) + "u,tr=item/" +
           number(across) + "u,tc=item%" + number(across) + "u;\n" + p.begin;
  // Every register has a name of its own: some drivers leave arrays in memory, and take long to compile loops that are
  // unrolled.
  const auto sum = [](int i, int j) { return "c" + number(i) + "_" + number(j); };
  for (int i = 0; i < t.item_rows; ++i)
    for (int j = 0; j < t.item_columns; ++j) k.out += T + " " + sum(i, j) + "=" + T + "(0);";
  k.out += "\n";
  const auto declare = [&](const TileLoader& loader, const std::string& name, int extent) {
    for (int i = 0; i < loads_of(p, loader, extent); ++i)
      k.out += (loader.vector == 4 ? "uvec4 " : T + " ") + name + number(i) + ";";
  };
  if (p.b.prepare) k.out += p.b.prepare("(c0+lid%" + number(t.columns) + "u)") + "\n";
  declare(p.a, "fa", t.rows);
  declare(p.b, "fb", t.columns);
  const auto fill_table = [&](const std::string& part, const std::string& depth_first) {
    if (!p.b.table) return;
    const std::string count = number(t.depth) + "u";
    k.out += "if(lid<" + count + "){uint dd=" + depth_first + "+lid;" + p.b.table("dd") + "table[" + part + "*" +
             count + "+lid]=entry;}\n";
  };
  if (p.b.table) k.out += "uint turn=0u;\n";
  fill_table("0u", "0u");
  if (p.b.table) k.out += "barrier();\n";
  // The next tile is on its way while this one is multiplied.
  write_fetch(k, p, p.a, "fa", t.rows, "r0", "rows", "0u");
  write_fetch(k, p, p.b, "fb", t.columns, "c0", "columns", "0u");
  fill_table("1u", number(t.depth) + "u");
  if (p.b.table) k.out += "turn=1u;\n";
  const std::string far = number(t.depth * 32768) + "u";  // some drivers end loops after 65535 rounds
  k.out += "for(uint d1=0u;d1<depth;d1+=" + far + ")for(uint d0=d1;d0<min(depth,d1+" + far +
           ");d0+=" + number(t.depth) + "u){\n";
  write_put(k, p, p.a, "fa", "sa", t.rows);
  write_put(k, p, p.b, "fb", "sb", t.columns);
  k.out += "barrier();\nif(d0+" + number(t.depth) + "u<depth){\n";
  write_fetch(k, p, p.a, "fa", t.rows, "r0", "rows", "d0+" + number(t.depth) + "u");
  write_fetch(k, p, p.b, "fb", t.columns, "c0", "columns", "d0+" + number(t.depth) + "u");
  k.out += "}\n[[unroll]] for(int u=0;u<" + number(t.depth / t.teams) + ";++u){int d=u" +
           (t.teams > 1 ? "+int(team)*" + number(t.depth / t.teams) : "") + ";\n";
  // Blocks of four lie apart, so that neighbouring items read neighbouring words.
  const auto place = [](const std::string& item, int count, int length, int i) {
    const int part = std::min(length, 4);
    return number(i / part * part * count + i % part) + "+int(" + item + ")*" + number(part);
  };
  const auto row_of = [&](int i) { return place("tr", down, t.item_rows, i); };
  const auto column_of = [&](int j) { return place("tc", across, t.item_columns, j); };
  const auto factor = [&](const std::string& name, int i) {
    return p.has_vectors ? name + number(i / 4) + "." + "xyzw"[i % 4] : name + number(i);
  };
  const auto read = [&](const std::string& to, const std::string& from, int length, int step, const std::string& item,
                        int items) {
    for (int i = 0; i < length / (p.has_vectors ? 4 : 1); ++i)
      k.out += (p.has_vectors ? "vec4 " : T + " ") + to + number(i) + "=" + from + "[d*" +
               (p.has_vectors ? number(step / 4) + "+" + number(i * items) + "+int(" + item + ")"
                              : number(step) + "+" + place(item, items, length, i)) +
               "];";
    k.out += "\n";
  };
  read("x", "sa", t.item_rows, a_step, "tr", down);
  read("y", "sb", t.item_columns, b_step, "tc", across);
  for (int i = 0; i < t.item_rows; ++i) {
    for (int j = 0; j < t.item_columns; ++j)
      k.out += multiply_add(k.source, p.accumulator, factor("x", i), factor("y", j), sum(i, j));
    k.out += "\n";
  }
  k.out += "}\n";
  // The entries of the tile that is being multiplied are read no more.
  fill_table("(1u-turn)", "d0+" + number(2 * t.depth) + "u");
  k.out += std::string(p.b.table ? "turn=1u-turn;" : "") + "barrier();\n}\n";
  // By halves: the blocks of the upper teams pass through the memory of the tiles.
  for (int half = t.teams / 2; half > 0; half /= 2) {
    const std::string n = number(half);
    std::string put, take;
    for (int i = 0; i < t.item_rows; ++i) {
      const std::string block = "sa[(int(team%" + n + "u)*" + number(t.item_rows) + "+" + number(i) + ")*" +
                                number(t.team_items()) + "+int(item)]";
      put += block + "=vec4(" + sum(i, 0) + "," + sum(i, 1) + "," + sum(i, 2) + "," + sum(i, 3) + ");";
      for (int j = 0; j < 4; ++j) take += sum(i, j) + "+=" + block + "[" + number(j) + "];";
    }
    k.out += "if(team/" + n + "u==1u){" + put + "}\nbarrier();if(team<" + n + "u){" + take + "}\nbarrier();\n";
  }
  if (t.teams > 1) k.out += "if(team==0u){\n";
  for (int i = 0; i < t.item_rows; ++i) {
    k.out += "{uint r=r0+uint(" + row_of(i) + ");if(r<rows){\n";
    for (int j = 0; j < t.item_columns; ++j)
      k.out += "{uint c=c0+uint(" + column_of(j) + ");if(c<columns){" + T + " v=" + sum(i, j) + ";" +
               p.store("r", "c", "v") + "}}\n";
    k.out += "}}\n";
  }
  k.out += t.teams > 1 ? "}}\n" : "}\n";
}

constexpr int64_t kMostExtent = int64_t{1} << 30;

}  // namespace

void contraction(const Request& request) {
  const Op& op = request.op;
  const Tensor &a = op.input(0), &b = op.input(1), &y = op.output(0);
  const size_t rank = y.shape.size();
  const int64_t rows = y.shape[rank - 2], columns = y.shape[rank - 1], depth = a.shape[rank - 1];
  const bool has_added = op.input_count() > 2 && !op.input(2).is_absent,
             has_bias = op.input_count() > 3 && !op.input(3).is_absent;
  const bool is_scaled = op.integer("scaled", 0) != 0;
  const int32_t dtype = a.dtype, accumulator = accumulator_of(dtype);
  if (class_of(dtype) == 'b') throw Refused{COMPUTE_PLUGIN_REFUSE_DTYPE, 0, "products of bool are not supported"};
  if (b.dtype != dtype) throw Refused{COMPUTE_PLUGIN_REFUSE_DTYPE, 1, "operands of different dtypes are not supported"};
  if (rows > kMostExtent || columns > kMostExtent || depth > kMostExtent)
    throw Refused{COMPUTE_PLUGIN_REFUSE_SHAPE, -1, "extents above 2^30 are not supported"};
  // Vectors: a reduction reads their memory once, and has more parallel parts.
  if (std::min(rows, columns) == 1 && op.expression_count() == 0 && !has_added && !has_bias && !is_scaled)
    throw Refused{COMPUTE_PLUGIN_REFUSE_SHAPE, -1, "products with a vector are faster as reductions"};

  Space batch;
  batch.shape.assign(y.shape.begin(), y.shape.end() - 2);
  for (const Tensor& tensor : op.tensors()) {
    Shape strides = tensor.strides;
    if (!tensor.is_absent)
      strides.resize(rank - 2);
    else
      strides.assign(rank - 2, 0);
    batch.strides.push_back(strides);
  }
  batch = batch.collapsed(false);
  const int64_t batches = batch.count();
  if (batches > request.device.physical.features.group_count)
    throw Refused{COMPUTE_PLUGIN_REFUSE_SHAPE, -1, "more matrices than groups"};

  Product p;
  p.dtype = dtype;
  p.accumulator = accumulator;
  p.tile = choose_tile(request.device, rows, columns, depth, batches, accumulator);
  p.has_vectors = has_vectors(p);
  KernelBuilder k(request.device, request.plan, request.query, "contraction");
  k.use_group_size(p.tile.items());
  k.sign(p.tile.rows);
  k.sign(p.tile.columns);
  k.sign(p.tile.depth);
  std::vector<int> slots;
  for (size_t t = 0; t < op.tensors().size(); ++t) {
    const Tensor& tensor = op.tensors()[t];
    k.sign(tensor.is_absent ? 0 : tensor.dtype);
    slots.push_back(tensor.is_absent ? -1 : k.tensor(static_cast<int32_t>(t)));
  }
  k.sign(is_scaled ? "scaled" : "plain");
  if (op.expression_count() > 0) k.sign(std::string_view(reinterpret_cast<const char*>(op.expression(0).digest), 16));
  const int scalars = k.scalars(0, op.scalar_count());
  p.rows_slot = k.word(rows);
  p.columns_slot = k.word(columns);
  p.depth_slot = k.word(depth);
  k.use_weight(weight_of(p.tile, depth));
  // Strides of rows and columns of every tensor.
  std::vector<int> row_steps, column_steps;
  for (const Tensor& tensor : op.tensors()) {
    row_steps.push_back(tensor.is_absent ? -1 : k.word(tensor.strides[rank - 2]));
    column_steps.push_back(tensor.is_absent ? -1 : k.word(tensor.strides[rank - 1]));
  }
  const Axes axes = k.axes(batch);
  const int64_t size = bytes_of(dtype);
  const auto vector_of = [&](const Tensor& tensor, size_t t, size_t run, size_t other, int64_t extent) {
    if (p.tile.items() * 4 > p.tile.rows * p.tile.depth || class_of(dtype) != 'f' || tensor.alignment < 16 ||
        extent % 4 != 0)
      return 1;
    if (tensor.strides[run] != size || tensor.strides[other] % 16 != 0) return 1;
    for (const int64_t stride : batch.strides[t])
      if (stride % 16 != 0) return 1;
    return 4;
  };
  const auto loader = [&](const Tensor& tensor, size_t t, size_t depth_axis, size_t line_axis, int64_t line_extent) {
    TileLoader made;
    made.depth_is_contiguous = std::abs(tensor.strides[depth_axis]) <= std::abs(tensor.strides[line_axis]);
    made.vector = made.depth_is_contiguous ? vector_of(tensor, t, depth_axis, line_axis, depth)
                                           : vector_of(tensor, t, line_axis, depth_axis, line_extent);
    const int depth_step = depth_axis == rank - 1 ? column_steps[t] : row_steps[t];
    const int line_step = line_axis == rank - 1 ? column_steps[t] : row_steps[t];
    made.address = [&k, &slots, t, depth_step, line_step](const std::string& r, const std::string& d) {
      return k.address(slots[t], "int64_t(o" + std::to_string(t) + ")+int64_t(" + r + ")*" + k.at(line_step) +
                                     "+int64_t(" + d + ")*" + k.at(depth_step));
    };
    made.value = [&k, dtype, accumulator, address = made.address](const std::string& r, const std::string& d) {
      return "x=" + k.source.convert(dtype, accumulator, load(dtype, address(r, d))) + ";";
    };
    k.sign(made.depth_is_contiguous ? "depth" : "lines");
    k.sign(made.vector);
    return made;
  };
  p.a = loader(a, 0, rank - 1, rank - 2, rows);
  p.b = loader(b, 1, rank - 2, rank - 1, columns);
  const size_t out = op.tensors().size() - 1;
  const auto place = [&](size_t t) {
    return k.address(slots[t], "int64_t(o" + std::to_string(t) + ")+int64_t(r)*" + k.at(row_steps[t]) + "+int64_t(c)*" +
                                   k.at(column_steps[t]));
  };
  const int64_t tiles = tiles_of(p.tile, rows, columns);
  if (tiles > request.device.physical.features.group_count)
    throw Refused{COMPUTE_PLUGIN_REFUSE_SHAPE, -1, "the product is too large"};
  const auto text = [&] {
    p.store = [&](const std::string&, const std::string&, const std::string&) {
      std::string made;
      Source& s = k.source;
      const auto sum = [&](const std::string& x, const std::string& z) { return s.combine("sum", accumulator, x, z); };
      const auto prod = [&](const std::string& x, const std::string& z) {
        return s.combine("prod", accumulator, x, z);
      };
      if (is_scaled) made += "v=" + prod("(" + k.scalar(scalars, 0, accumulator) + ")", "v") + ";";
      if (has_added && is_scaled) {
        const std::string T = type_of(accumulator);
        made += T + " beta=" + k.scalar(scalars, 1, accumulator) + ";if(beta!=" + T + "(0)){" + T +
                " added=" + s.convert(op.input(2).dtype, accumulator, load(op.input(2).dtype, place(2))) +
                ";v=" + sum("v", "(" + prod("beta", "added") + ")") + ";}";
      }
      if (has_bias)
        made += "{" + type_of(accumulator) +
                " added=" + s.convert(op.input(3).dtype, accumulator, load(op.input(3).dtype, place(3))) +
                ";v=" + sum("v", "added") + ";}";
      if (op.expression_count() > 0) {
        Source::Leaves leaves;
        leaves.input = [](int32_t, int32_t) { return std::string("v"); };
        leaves.scalar = [&](int32_t i, int32_t t) { return k.scalar(scalars, (is_scaled ? 2 : 0) + i, t); };
        leaves.index = [](int32_t) -> std::string {
          throw Refused{COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, -1, "epilogues of positions are not supported"};
        };
        const auto names = s.emit(made, op.expression(0), "e", leaves);
        return made + store(y.dtype, place(out), names[0]);
      }
      return made + store(y.dtype, place(out), s.convert(accumulator, y.dtype, "v"));
    };
    std::string begin;
    std::swap(begin, k.out);
    k.locate(axes, "o", axes.index_type() + "(gl_WorkGroupID.z)", false);
    p.begin = k.out;
    k.out = begin;
    write_product(k, p);
  };
  k.finish(tiles, text, 1, batches);
}

void convolution(const Request& request) {
  const Op& op = request.op;
  const compute::common::Op windows(&op.description());
  constexpr int64_t kMostProducts = 16;
  if (std::optional<compute::common::Refusal> refusal = refuse_windows(windows, kMostProducts))
    throw Refused{refusal->reason, refusal->argument, refusal->text, refusal->hint};
  const compute::common::WindowOperands operands = window_operands(windows);
  const std::vector<compute::common::WindowProduct> products = read_windows(windows);
  const int32_t dtype = op.output(0).dtype, accumulator = accumulator_of(dtype);
  for (const compute::common::WindowProduct& w : products) {
    const int64_t rows = w.rows, columns = w.columns(), depth = w.depth_points();
    if (rows > kMostExtent || columns > kMostExtent || depth > kMostExtent ||
        w.groups > request.device.physical.features.group_count)
      throw Refused{COMPUTE_PLUGIN_REFUSE_SHAPE, -1, "the convolution is too large"};
    Product p;
    p.dtype = dtype;
    p.accumulator = accumulator;
    p.tile = choose_tile(request.device, rows, columns, depth, w.groups, accumulator);
    p.has_vectors = has_vectors(p);
    KernelBuilder k(request.device, request.plan, request.query, "convolution");
    k.use_group_size(p.tile.items());
    k.sign(p.tile.rows);
    k.sign(p.tile.columns);
    k.sign(p.tile.depth);
    k.sign(dtype);
    const int a = k.tensor(operands.a), b = k.tensor(operands.b), c = k.tensor(operands.c);
    const int bias = operands.bias >= 0 ? k.tensor(operands.bias) : -1;
    k.sign(bias >= 0 ? "bias" : "plain");
    p.rows_slot = k.word(rows);
    p.columns_slot = k.word(columns);
    p.depth_slot = k.word(depth);
    k.use_weight(weight_of(p.tile, depth));
    const int a_group = k.word(w.a_group), a_row = k.word(w.a_row), a_offset = k.word(w.a_offset);
    const int b_group = k.word(w.b_group), b_depth = k.word(w.b_depth), b_column = k.word(w.b_column);
    const int c_group = k.word(w.c_group), c_row = k.word(w.c_row), c_offset = k.word(w.c_offset);
    const int bias_group = k.word(w.bias_group), bias_row = k.word(w.bias_row);
    const auto list = [&](const auto& values) {
      int first = -1;
      for (const int64_t value : values) {
        const int slot = k.word(value);
        if (first < 0) first = slot;
      }
      return first;
    };
    const int depth_extents = list(w.depth), column_extents = list(w.column), a_depth = list(w.a_depth),
              c_column = list(w.c_column);
    const int extent = list(w.extent), stride = list(w.stride), start = list(w.start), depth_step = list(w.depth_step),
              column_step = list(w.column_step);
    const std::string size = std::to_string(bytes_of(dtype)) + "l";
    const bool depth_first = w.depth[3] > 1 && w.column[3] == 1;
    k.sign(depth_first ? "depth" : "lines");
    // Declares the four positions of an index in a space.
    const auto positions = [&](const std::string& name, const std::string& index, int extents) {
      std::string text = "uint " + name + "q=" + index + ";";
      for (int axis = 3; axis > 0; --axis) {
        const std::string e = k.number(extents + axis, "uint"), n = name + std::to_string(axis);
        text += "uint " + n + "=" + name + "q%" + e + ";" + name + "q/=" + e + ";";
      }
      return text + "uint " + name + "0=" + name + "q;";
    };
    p.a.depth_is_contiguous = true;
    p.a.vector = p.b.vector = 1;
    // Weights whose depth is one run of memory need no positions.
    bool a_is_flat = true;
    int64_t expected = 1;
    for (size_t axis = 4; axis-- > 0;) {
      a_is_flat = a_is_flat && (w.depth[axis] == 1 || w.a_depth[axis] == expected);
      expected *= w.depth[axis];
    }
    k.sign(a_is_flat ? "flat" : "strided");
    p.a.value = [&](const std::string& r, const std::string& d) {
      std::string text = (a_is_flat ? "" : positions("u", d, depth_extents)) + "int64_t at=" + k.at(a_offset) +
                         "+int64_t(gl_WorkGroupID.z)*" + k.at(a_group) + "+int64_t(" + r + ")*" + k.at(a_row);
      if (a_is_flat) text += "+int64_t(" + d + ")";
      for (int axis = 0; axis < 4 && !a_is_flat; ++axis)
        text += "+int64_t(u" + std::to_string(axis) + ")*" + k.at(a_depth + axis);
      return text + ";x=" + k.source.convert(dtype, accumulator, load(dtype, k.address(a, "at*" + size))) + ";";
    };
    // Positions of the windows fit in 32 bits, and where the tensor is small the offsets do.
    int64_t span =
        w.groups * std::abs(w.b_group) + w.depth[0] * std::abs(w.b_depth) + w.column[0] * std::abs(w.b_column);
    for (size_t axis = 0; axis < 3; ++axis) span += w.extent[axis] * std::abs(w.stride[axis]);
    const std::string O = span < (int64_t{1} << 31) ? "int" : "int64_t";
    k.sign(O);
    p.b.depth_is_contiguous = depth_first;
    const auto prepare = [&](const std::string& r) {
      std::string text = positions("w", r, column_extents) + O + " wb=" + O + "(gl_WorkGroupID.z)*" +
                         k.number(b_group, O) + "+" + O + "(w0)*" + k.number(b_column, O) + ";";
      for (int axis = 0; axis < 3; ++axis) {
        const std::string n = std::to_string(axis + 1);
        text += "int s" + n + "=" + k.number(start + axis, "int") + "+int(w" + n + ")*" +
                k.number(column_step + axis, "int") + ";";
      }
      return text;
    };
    if (!depth_first) p.b.prepare = prepare;
    // The positions in a window do not depend on the column, so a group computes them once.
    const bool has_table = !depth_first && O == "int";
    if (has_table) {
      p.b.prepare = [&, prepare](const std::string& r) {
        std::string text = prepare(r);
        for (int axis = 0; axis < 3; ++axis)
          text += "wb+=s" + std::to_string(axis + 1) + "*" + k.number(stride + axis, O) + ";";
        return text;
      };
      p.b.table = [&](const std::string& d) {
        std::string text =
            positions("u", d, depth_extents) + "ivec4 entry=ivec4(int(u0)*" + k.number(b_depth, O) + ",0,0,0);";
        for (int axis = 0; axis < 3; ++axis) {
          const std::string n = std::to_string(axis + 1);
          text += "entry[" + n + "]=int(u" + n + ")*" + k.number(depth_step + axis, "int") + ";entry.x+=entry[" + n +
                  "]*" + k.number(stride + axis, O) + ";";
        }
        return text;
      };
    }
    p.b.value = [&](const std::string& r, const std::string& d) {
      if (has_table) {
        std::string text = "ivec4 at=table[turn*" + number(p.tile.depth) + "u+d];if(";
        for (int axis = 0; axis < 3; ++axis) {
          const std::string n = std::to_string(axis + 1);
          text += (axis > 0 ? "&&uint(s" : "uint(s") + n + "+at[" + n + "])<" + k.number(extent + axis, "uint");
        }
        const std::string place = k.address(b, "int64_t(wb+at.x)*" + size);
        return text + ")x=" + k.source.convert(dtype, accumulator, load(dtype, place)) + ";";
      }
      std::string text = positions("u", d, depth_extents) + (depth_first ? prepare(r) : "") + O + " at=wb+" + O +
                         "(u0)*" + k.number(b_depth, O) + ";bool inside=true;";
      for (int axis = 0; axis < 3; ++axis) {
        const std::string n = std::to_string(axis + 1);
        text += "{int s=s" + n + "+int(u" + n + ")*" + k.number(depth_step + axis, "int") + ";inside=inside&&uint(s)<" +
                k.number(extent + axis, "uint") + ";at+=" + O + "(s)*" + k.number(stride + axis, O) + ";}";
      }
      return text +
             "if(inside)x=" + k.source.convert(dtype, accumulator, load(dtype, k.address(b, "int64_t(at)*" + size))) +
             ";";
    };
    const int64_t tiles = tiles_of(p.tile, rows, columns);
    if (tiles > request.device.physical.features.group_count)
      throw Refused{COMPUTE_PLUGIN_REFUSE_SHAPE, -1, "the convolution is too large"};
    k.finish(
        tiles,
        [&] {
          p.store = [&](const std::string& r, const std::string& col, const std::string& v) {
            std::string text = "{" + positions("w", col, column_extents) + "int64_t at=" + k.at(c_offset) +
                               "+int64_t(gl_WorkGroupID.z)*" + k.at(c_group) + "+int64_t(" + r + ")*" + k.at(c_row);
            for (int axis = 0; axis < 4; ++axis)
              text += "+int64_t(w" + std::to_string(axis) + ")*" + k.at(c_column + axis);
            text += ";";
            if (bias >= 0) {
              text += "{" + type_of(accumulator) + " added=" +
                      k.source.convert(
                          dtype, accumulator,
                          load(dtype, k.address(bias, "(int64_t(gl_WorkGroupID.z)*" + k.at(bias_group) + "+int64_t(" +
                                                          r + ")*" + k.at(bias_row) + ")*" + size))) +
                      ";" + v + "=" + k.source.combine("sum", accumulator, v, "added") + ";}";
            }
            return text + store(dtype, k.address(c, "at*" + size), k.source.convert(accumulator, dtype, v)) + "}";
          };
          write_product(k, p);
        },
        1, w.groups);
  }
}

}  // namespace vulkan
