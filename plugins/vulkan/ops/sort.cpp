// SPDX-License-Identifier: Apache-2.0
// sort, and the sorting of lines. A short line is sorted by one group, by a bitonic network: in registers where
// subgroups exchange them, else in shared memory. Longer ones are sorted by digits of 8 bits, from the last on: tiles
// count their digits, the counts become the places where digits begin, and each tile, sorted by the digit, moves its
// elements there. See N. Satish, M. Harris and M. Garland, "Designing efficient sorting algorithms for manycore GPUs"
// (2009).
#include <algorithm>
#include <bit>
#include <compute_kit/template.hpp>
#include <string>
#include <vector>

#include "accumulator.hpp"
#include "sorting.hpp"

namespace vulkan {

namespace {

#include "sort.inc"

using compute::common::fill;
using compute::common::Value;

constexpr int kGroup = 256;
constexpr int64_t kMostGroups = 32768;

int64_t divide_up(int64_t x, int64_t y) { return (x + y - 1) / y; }
std::string number(int64_t n) { return std::to_string(n); }
std::string unsigned_number(int64_t n) { return std::to_string(n) + "u"; }

class Sorter {
 public:
  Sorter(const Request& request, const Sorting& sorting)
      : request_(request),
        s_(sorting),
        features_(request.device.physical.features),
        K_(is_wide() ? "uint64_t" : "uint") {}

  void sort() {
    const auto size = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(s_.length, 2))));
    if (can_exchange()) {
      // Compilers for processors take long for many items.
      int64_t items = std::min<int64_t>(size, is_processor() ? 4 : is_wide() ? 8 : 16);
      while (items > 1 && kGroup * items * (s_.key_bytes + 5) > features_.shared_bytes) items /= 2;
      if (size <= items * kGroup) {
        sort_in_registers(items, size / items);
        return;
      }
    }
    if (size <= 2048 && size * (s_.key_bytes + 4) <= features_.shared_bytes)
      sort_in_shared_memory(size);
    else
      sort_by_digits();
  }

 private:
  bool is_wide() const { return s_.key_bytes == 8; }
  bool is_processor() const { return request_.device.physical.kind == COMPUTE_DEVICE_KIND_CPU; }
  // Whether items exchange registers; and whether there are few enough subgroups for each to count digits.
  bool can_exchange() const { return features_.shuffle && kGroup % features_.subgroup_size == 0; }
  bool can_vote() const { return can_exchange() && features_.ballot && features_.subgroup_size >= 16; }

  KernelBuilder begin(std::string_view name) const {
    KernelBuilder k(request_.device, request_.plan, request_.query, name);
    k.use_group_size(kGroup);
    k.sign(s_.key_bytes);
    return k;
  }
  static std::string text_of(KernelBuilder& k, const std::function<void(KernelBuilder&)>& write) {
    std::string before;
    std::swap(before, k.out);
    write(k);
    std::swap(before, k.out);
    return before;
  }
  std::string key_at(int slot, const std::string& i) const {
    return (is_wide() ? "B64(" : "B32(") + KernelBuilder::address(slot, "int64_t(" + i + ")*" + number(s_.key_bytes)) +
           ").v";
  }
  static std::string word_at(int slot, const std::string& i) {
    return "B32(" + KernelBuilder::address(slot, "int64_t(" + i + ")*4l") + ").v";
  }

  void sort_in_shared_memory(int64_t line_size) const {
    const int64_t size = std::max<int64_t>(line_size, 2 * kGroup), lines_of_group = size / line_size;
    KernelBuilder k = begin("sort lines");
    k.sign(line_size);
    s_.add_arguments(k);
    const int lines = k.word(s_.lines), terms = k.word(s_.length);
    k.finish(groups(divide_up(s_.lines, lines_of_group)), [&] {
      k.out += fill(kSortLines, {{"K", K_},
                                 {"size", unsigned_number(size)},
                                 {"line_size", unsigned_number(line_size)},
                                 {"lines_of_group", unsigned_number(lines_of_group)},
                                 {"lines", KernelBuilder::number(lines, "uint")},
                                 {"terms", KernelBuilder::number(terms, "uint")},
                                 {"locate", text_of(k, s_.locate)},
                                 {"load", text_of(k, s_.load)},
                                 {"network", network(K_, line_size, size, true)},
                                 {"value_type", s_.value_type},
                                 {"fetch", text_of(k, s_.fetch)},
                                 {"store", text_of(k, s_.store)}});
    });
  }

  static std::string network(const std::string& type, int64_t line_size, int64_t size, bool has_places) {
    return fill(kNetwork, {{"K", type},
                           {"line_size", unsigned_number(line_size)},
                           {"half", unsigned_number(size / 2)},
                           {"has_places", has_places}});
  }

  void sort_in_registers(int64_t items, int64_t threads) const {
    KernelBuilder k = begin("sort in registers");
    k.sign(items);
    k.sign(threads);
    s_.add_arguments(k);
    const int lines = k.word(s_.length > 0 ? s_.lines : 0), terms = k.word(s_.length);
    const int64_t lines_of_group = kGroup / threads;
    k.use_shuffles();
    k.finish(groups(divide_up(s_.lines, lines_of_group)), [&] {
      std::string sort_items;
      for (int64_t part = 2; part <= items; part *= 2) {
        for (int64_t i = 0; i < items; ++i) sort_items += pair(i, i ^ (part - 1));
        sort_items += merge(items, part / 4);
      }
      k.out += fill(kSortInRegisters, {{"K", K_},
                                       {"is_wide", is_wide()},
                                       {"has_exchange", threads > features_.subgroup_size},
                                       {"size", number(kGroup * items)},
                                       {"items", number(items)},
                                       {"threads", unsigned_number(threads)},
                                       {"subgroup", unsigned_number(features_.subgroup_size)},
                                       {"lines_of_group", unsigned_number(lines_of_group)},
                                       {"lines", KernelBuilder::number(lines, "uint")},
                                       {"terms", KernelBuilder::number(terms, "uint")},
                                       {"locate", text_of(k, s_.locate)},
                                       {"load", text_of(k, s_.load)},
                                       {"sort_items", sort_items},
                                       {"merge_items", merge(items, items / 2)},
                                       {"value_type", s_.value_type},
                                       {"fetch", text_of(k, s_.fetch)},
                                       {"store", text_of(k, s_.store)}});
    });
  }

  // Exchanges of the network within an item.
  static std::string pair(int64_t low, int64_t high) {
    if (high <= low) return "";
    const auto at = [](int64_t i) { return "k[" + number(i) + "],p[" + number(i) + "]"; };
    return "q_pair(" + at(low) + "," + at(high) + ");\n";
  }
  static std::string merge(int64_t items, int64_t greatest) {
    std::string text;
    for (int64_t d = greatest; d > 0; d /= 2)
      for (int64_t i = 0; i < items; ++i) text += pair(i, i ^ d);
    return text;
  }

  // ---- Long lines ----

  void sort_by_digits() {
    choose_tile();
    Plan& plan = request_.plan;
    const int64_t n = s_.lines * s_.length;
    // Two arrays of keys and positions, between which the elements go.
    for (int i = 0; i < std::min(s_.digits - 1, 2); ++i)
      keys_[i] = plan.reserve(n * s_.key_bytes), order_[i] = plan.reserve(n * 4);
    counts_ = plan.reserve(s_.lines * 256 * tiles_ * 4);
    totals_ = plan.reserve(s_.lines * 256 * s_.digits * 4);
    {
      KernelBuilder k(request_.device, request_.plan, request_.query, "sort begin");
      const int64_t count = s_.lines * 256 * s_.digits;
      const int totals = k.workspace(totals_), count_slot = k.word(count);
      k.finish_loop(count, [&] {
        k.begin_loop(count_slot, "uint");
        k.out += word_at(totals, "i") + "=0u;\n";
        k.end_loop();
      });
    }
    for (int digit = 0; digit < s_.digits; ++digit) {
      count(digit);
      find_starts(digit);
      move(digit);
    }
  }

  void choose_tile() {
    if (can_vote()) {
      const int64_t fixed = kGroup / features_.subgroup_size * 1024 + 4096,
                    most = std::min<int64_t>(features_.shared_bytes, 48 << 10);
      for (items_ = 16; items_ > 4 && items_ * kGroup * (s_.key_bytes + 4) + fixed > most;) items_ -= 4;
    }
    tile_ = items_ * kGroup;
    tiles_ = divide_up(s_.length, tile_);
  }

  int64_t groups(int64_t wanted) const { return std::clamp<int64_t>(wanted, 1, kMostGroups); }

  // What the kernels of tiles have in common. The first digit's keys are those of the op.
  struct TileKernel {
    KernelBuilder k;
    int terms, tiles, groups, counts, totals, keys = 0, order = 0;
  };
  TileKernel begin_tiles(std::string_view name, int digit) const {
    TileKernel t{begin(name), 0, 0, 0, 0, 0};
    t.k.sign(s_.first_bit + 8 * digit);
    t.k.sign(digit == 0 ? "first" : digit + 1 == s_.digits ? "last" : "between");
    t.k.sign(s_.digits);
    s_.add_arguments(t.k);
    t.terms = t.k.word(s_.length), t.tiles = t.k.word(tiles_), t.groups = t.k.word(s_.lines * tiles_);
    t.counts = t.k.workspace(counts_), t.totals = t.k.workspace(totals_ + digit * s_.lines * 1024);
    if (digit > 0) t.keys = t.k.workspace(keys_[(digit + 1) % 2]), t.order = t.k.workspace(order_[(digit + 1) % 2]);
    return t;
  }
  std::vector<Value> values_of(TileKernel& t, int digit) const {
    const std::string begin_tile = fill(kTile, {{"tiles", KernelBuilder::number(t.tiles, "uint")},
                                                {"terms", KernelBuilder::number(t.terms, "uint")},
                                                {"groups", KernelBuilder::number(t.groups, "uint")},
                                                {"tile", unsigned_number(tile_)},
                                                {"locate", text_of(t.k, s_.locate)}});
    return {
        {"begin_tile", begin_tile}, {"K", K_}, {"shift", number(s_.first_bit + 8 * digit)}, {"load", load(t, digit)}};
  }
  std::string load(TileKernel& t, int digit) const {
    return digit == 0 ? text_of(t.k, s_.load) : "key=" + key_at(t.keys, "line*terms+j") + ";";
  }

  void count(int digit) const {
    TileKernel t = begin_tiles("sort count", digit);
    t.k.sign(items_);
    t.k.finish(groups(s_.lines * tiles_), [&] {
      std::vector<Value> values = values_of(t, digit);
      values.emplace_back("items", items_);
      values.emplace_back("tile_place", word_at(t.counts, "(line*256u+lid)*tiles+tile"));
      values.emplace_back("total_place", word_at(t.totals, "line*256u+lid"));
      t.k.out += fill(kCount, values);
    });
  }

  void find_starts(int digit) const {
    // Enough digits for a group's items, and more of them if there are many groups.
    int64_t digits = 1;
    while (digits < 256 && (digits * tiles_ < kGroup || s_.lines * 256 / digits > 4096)) digits *= 2;
    KernelBuilder k = begin("sort starts");
    k.sign(digits);
    const int64_t all = s_.lines * 256 / digits;
    const int tiles = k.word(tiles_), all_slot = k.word(all), counts = k.workspace(counts_);
    const int totals = k.workspace(totals_ + digit * s_.lines * 1024);
    k.finish(groups(all), [&] {
      const Accumulator sum(k.source, "sum", COMPUTE_DTYPE_UINT32);
      k.declare_shared(sum, "h", 2);
      k.out += fill(kStarts, {{"tiles", KernelBuilder::number(tiles, "uint")},
                              {"groups", KernelBuilder::number(all_slot, "uint")},
                              {"digits", unsigned_number(digits)},
                              {"declare", sum.declare("q") + sum.declare("b") + sum.declare("c")},
                              {"total_place", word_at(totals, "first-digit+lid")},
                              {"combine", text_of(k, [&](KernelBuilder&) { k.combine_group(sum, "c", "h"); })},
                              {"count_place", word_at(counts, "first*tiles+e")},
                              {"scan", text_of(k, [&](KernelBuilder&) { k.scan_group(sum, "q", "b", "c", "h"); })}});
    });
  }

  void move(int digit) const {
    TileKernel t = begin_tiles("sort move", digit);
    KernelBuilder& k = t.k;
    k.sign(items_);
    const bool is_last = digit + 1 == s_.digits;
    const int to_keys = is_last ? 0 : k.workspace(keys_[digit % 2]),
              to_order = is_last ? 0 : k.workspace(order_[digit % 2]);
    if (can_vote()) k.use_votes();
    k.finish(groups(s_.lines * tiles_), [&] {
      std::vector<Value> values = values_of(t, digit);
      values.emplace_back("tile", tile_);
      values.emplace_back("from", digit == 0 ? "j" : word_at(t.order, "line*terms+j"));
      values.emplace_back(
          "move", is_last ? text_of(k, s_.store)
                          : key_at(to_keys, "line*terms+j") + "=key;" + word_at(to_order, "line*terms+j") + "=from;");
      values.emplace_back("is_last", is_last);
      values.emplace_back("value_type", s_.value_type);
      values.emplace_back("fetch", text_of(k, s_.fetch));
      if (!can_vote()) {
        values.emplace_back("network", network("uint", tile_, tile_, false));
        values.emplace_back("tile_place_of_digit", word_at(t.counts, "(line*256u+digit)*tiles+tile"));
        k.out += fill(kMove, values);
        return;
      }
      const Accumulator sum(k.source, "sum", COMPUTE_DTYPE_UINT32);
      k.declare_shared(sum, "h", 2);
      const bool is_narrow = features_.subgroup_size <= 32;
      values.emplace_back("items", items_);
      values.emplace_back("subgroup", unsigned_number(features_.subgroup_size));
      values.emplace_back("subgroups", unsigned_number(kGroup / features_.subgroup_size));
      values.emplace_back("tile_place", word_at(t.counts, "(line*256u+lid)*tiles+tile"));
      values.emplace_back("peers_type", is_narrow ? "uint" : "uvec4");
      values.emplace_back("votes", is_narrow ? "subgroupBallot(is_set).x" : "subgroupBallot(is_set)");
      values.emplace_back(
          "earlier", is_narrow ? "uint(bitCount(peers&((1u<<lane)-1u)))" : "subgroupBallotExclusiveBitCount(peers)");
      values.emplace_back("all", is_narrow ? "uint(bitCount(peers))" : "subgroupBallotBitCount(peers)");
      values.emplace_back("declare", sum.declare("q") + sum.declare("b") + sum.declare("c"));
      values.emplace_back("scan", text_of(k, [&](KernelBuilder&) { k.scan_group(sum, "q", "b", "c", "h"); }));
      k.out += fill(kMoveBySubgroups, values);
    });
  }

  const Request& request_;
  const Sorting& s_;
  const Features& features_;
  const std::string K_;
  int64_t items_ = 4, tile_ = 0, tiles_ = 0;
  int64_t keys_[2] = {}, order_[2] = {}, counts_ = 0, totals_ = 0;
};

}  // namespace

void sort_lines(const Request& request, const Sorting& sorting) { Sorter(request, sorting).sort(); }

namespace {

// The key of a value: NaN last in both directions, -0 and +0 equal.
std::string key_of(KernelBuilder& k, int32_t dtype, bool descending, const std::string& x) {
  const char c = class_of(dtype);
  const int bits = bits_of(dtype);
  if (c == 'h') return key_of(k, COMPUTE_DTYPE_FLOAT32, descending, k.source.convert(dtype, COMPUTE_DTYPE_FLOAT32, x));
  const std::string U = bits == 64 ? "uint64_t" : "uint", top = bits == 64 ? "0x8000000000000000ul" : "0x80000000u";
  std::string key;
  if (c == 'b' || c == 'u' || c == 'm') {
    key = U + "(" + x + ")";
  } else if (c == 'i' || c == 'l') {
    key = bits < 32 ? "uint(" + x + "+" + number(1 << (bits - 1)) + ")" : "(" + U + "(" + x + ")^" + top + ")";
  } else {
    k.source.use("isnan", c);
    k.out += type_of(dtype) + " v=" + x + ";" + U + " bits=!" + k.source.use("nonzero", c) + "(v)?" + U +
             "(0):" + bits_from(dtype, "v") + ";\nbits=(bits&" + top + ")!=" + U + "(0)?~bits:bits|" + top + ";\n";
    return std::string("(q_isnan(v)?~") + U + "(0):" + (descending ? "~" : "") + "bits)";
  }
  if (!descending) return key;
  return bits < 32 ? "(" + number((1 << bits) - 1) + "u-" + key + ")" : "~" + key;
}

}  // namespace

void sort(const Request& request) {
  const Op& op = request.op;
  const auto axis = static_cast<size_t>(op.integer("axis", 0));
  const bool descending = op.integer("descending", 0) != 0;
  const std::string outputs = op.string("outputs");
  const bool has_values = outputs != "indices", has_indices = outputs != "values";
  const int32_t dtype = op.input(0).dtype;
  if (is_complex(class_of(dtype))) throw Refused{COMPUTE_PLUGIN_REFUSE_DTYPE, 0, "complex numbers have no order"};
  const int64_t length = op.input(0).shape[axis];
  Space lines;
  lines.shape = op.input(0).shape;
  for (const Tensor& tensor : op.tensors()) lines.strides.push_back(tensor.strides);
  Shape along;
  for (Shape& strides : lines.strides) {
    along.push_back(strides[axis]);
    strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(axis));
  }
  lines.shape.erase(lines.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  lines = lines.collapsed(false);
  if (lines.count() * length >= (int64_t{1} << 31))
    throw Refused{COMPUTE_PLUGIN_REFUSE_SHAPE, 0, "sorts of 2^31 elements or more are not supported"};
  int x = 0, y = 0, z = 0, x_step = 0, y_step = 0, z_step = 0;
  Axes axes;
  Sorting s;
  s.lines = lines.count();
  s.length = length;
  s.key_bytes = bits_of(dtype) == 64 ? 8 : 4;
  // Keys of float16 and bfloat16 are those of float32, whose last bits are equal.
  s.first_bit = dtype == COMPUTE_DTYPE_BFLOAT16 ? 16 : dtype == COMPUTE_DTYPE_FLOAT16 ? 8 : 0;
  s.digits = class_of(dtype) == 'h' ? (32 - s.first_bit) / 8 : bits_of(dtype) / 8;
  s.add_arguments = [&](KernelBuilder& k) {
    k.sign(descending ? "down" : "up");
    k.sign(outputs);
    k.sign(dtype);
    x = k.tensor(0), y = k.tensor(1), z = has_values && has_indices ? k.tensor(2) : y;
    x_step = k.word(along[0]), y_step = k.word(along[1]), z_step = k.word(along.back());
    axes = k.axes(lines);
  };
  s.locate = [&](KernelBuilder& k) { k.locate(axes, "o", axes.index_type() + "(line)", false); };
  s.load = [&](KernelBuilder& k) {
    const std::string at = k.address(x, "int64_t(o0)+int64_t(j)*" + k.at(x_step));
    const std::string key = key_of(k, dtype, descending, load(dtype, at));
    k.out += "key=" + key + ";\n";
  };
  s.value_type = has_values ? type_of(dtype) : "uint";
  s.fetch = [&](KernelBuilder& k) {
    const std::string at = k.address(x, "int64_t(o0)+int64_t(from)*" + k.at(x_step));
    k.out += "value=" + (has_values ? load(dtype, at) : "0u") + ";\n";
  };
  s.store = [&](KernelBuilder& k) {
    if (has_values) k.out += store(dtype, k.address(y, "int64_t(o1)+int64_t(j)*" + k.at(y_step)), "value") + "\n";
    const std::string operand = "o" + number(std::ssize(lines.strides) - 1);
    if (has_indices)
      k.out += store(COMPUTE_DTYPE_INT64, k.address(z, "int64_t(" + operand + ")+int64_t(j)*" + k.at(z_step)),
                     "int64_t(from)") +
               "\n";
  };
  sort_lines(request, s);
}

}  // namespace vulkan
