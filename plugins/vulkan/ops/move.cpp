// SPDX-License-Identifier: Apache-2.0
// gather and scatter.
#include <algorithm>
#include <bit>

#include "ops.hpp"
#include "sorting.hpp"

namespace vulkan {
namespace {

// Declares k, the index `value`, and begins a block for those within [0, extent). Others are reported.
void begin_checked(KernelBuilder& k, int32_t dtype, const std::string& value, int extent, int fault, int argument,
                   const std::string& position) {
  k.source.use("fault", '-');
  const std::string T = type_of(dtype);
  // llvmpipe (Mesa 22.3) compares a widened int32 with 0 wrongly, so the sign is that of the narrow one.
  k.out += T + " index=" + value + ";int64_t k=int64_t(index),e=" + k.at(extent) + ";\n" +
           "if(k<-e||k>=e){q_fault(uint64_t(" + k.at(fault) + ")," + std::to_string(argument) + ",k,e,int64_t(" +
           position + "));}else{\nif(index<" + T + "(0))k+=e;\n";
}

// What an item of gather moves: one element, four with an index each, or four neighbours with one index.
enum class Gathered { kOne, kFour, kRun };

Gathered choose_gathered(const Op& op, const Space& space, int64_t step) {
  if (space.shape.empty() || space.shape.back() % kRun != 0) return Gathered::kOne;
  const size_t last = space.shape.size() - 1;
  // Whether runs of the operand are aligned.
  const auto is_run = [&](size_t t) {
    const Tensor& tensor = op.tensors()[t];
    const int64_t size = bytes_of(tensor.dtype), alignment = std::min<int64_t>(kRun * size, 16);
    if (space.strides[t][last] != size || size > 8 || tensor.alignment < alignment) return false;
    for (size_t axis = 0; axis < last; ++axis)
      if (space.strides[t][axis] % alignment != 0) return false;
    return t > 0 || step % alignment == 0;
  };
  if (!is_run(2)) return Gathered::kOne;
  if (space.strides[0][last] == 0 && is_run(1)) return Gathered::kFour;
  return space.strides[1][last] == 0 && is_run(0) ? Gathered::kRun : Gathered::kOne;
}

}  // namespace

void gather(const Request& request) {
  const Op& op = request.op;
  const auto axis = static_cast<size_t>(op.integer("axis", 0));
  const int32_t dtype = op.input(0).dtype, index_dtype = op.input(1).dtype;
  Space space;
  space.shape = op.output(0).shape;
  for (const Tensor& tensor : op.tensors()) space.strides.push_back(tensor.strides);
  const int64_t step = space.strides[0][axis];
  space.strides[0][axis] = 0;
  space = space.collapsed(false);
  const Gathered gathered = choose_gathered(op, space, step);
  if (gathered != Gathered::kOne) {
    space.shape.back() /= kRun;
    for (Shape& strides : space.strides) strides.back() *= kRun;
  }
  KernelBuilder k(request.device, request.plan, request.query, "gather");
  k.sign(dtype);
  k.sign(index_dtype);
  k.sign(gathered == Gathered::kOne ? "one" : gathered == Gathered::kFour ? "four" : "run");
  const int x = k.tensor(0), indices = k.tensor(1), y = k.tensor(2);
  const int count = k.word(space.count()), step_slot = k.word(step), extent = k.word(op.input(0).shape[axis]);
  const int fault = k.fault();
  const Axes axes = k.axes(space);
  k.finish_loop(space.count(), [&] {
    const std::string I = axes.index_type(), words = std::to_string(words_of_run(dtype));
    const std::string from = k.address(x, "int64_t(o0)+k*" + k.at(step_slot)), to = k.address(y, "o2");
    const std::string one_index = load(index_dtype, k.address(indices, "o1"));
    k.begin_loop(count, I);
    k.locate(axes, "o", "i", false);
    switch (gathered) {
      case Gathered::kOne:
        begin_checked(k, index_dtype, one_index, extent, fault, 1, "i");
        k.out += store(dtype, to, load(dtype, from)) + "}\n";
        break;
      case Gathered::kFour:
        k.out += "uint c[" + std::to_string(words_of_run(index_dtype)) + "],w[" + words + "];" +
                 load_run(index_dtype, "c", k.address(indices, "o1")) + "for(int n=0;n<" + words +
                 ";++n)w[n]=0u;\n[[unroll]] for(int p=0;p<4;++p){";
        begin_checked(k, index_dtype, from_run(index_dtype, "c", "p"), extent, fault, 1, I + "(4)*i+" + I + "(p)");
        k.out += to_run(dtype, "w", "p", load(dtype, from)) + "}}\n" + store_run(dtype, "w", to) + "\n";
        break;
      case Gathered::kRun:
        begin_checked(k, index_dtype, one_index, extent, fault, 1, I + "(4)*i");
        k.out += "uint w[" + words + "];" + load_run(dtype, "w", from) + store_run(dtype, "w", to) + "}\n";
        break;
    }
    k.end_loop();
  });
}

namespace {

// y op= x at `address`, by an operation that no other work-item can interrupt.
void combine_atomically(KernelBuilder& k, const std::string& reduction, int32_t dtype, const std::string& address) {
  const int bits = bits_of(dtype);
  const bool is_half = class_of(dtype) == 'h';
  const int32_t wide = is_half ? COMPUTE_DTYPE_FLOAT32 : dtype;
  const auto combined = [&](const std::string& old_bits) {
    const std::string y = k.source.convert(dtype, wide, value_from(dtype, old_bits));
    return bits_from(dtype, k.source.convert(wide, dtype, k.source.combine(reduction, wide, "(" + y + ")", "x")));
  };
  if (bits == 32 && is_integer(class_of(dtype)) && reduction == "add") {
    k.out += "atomicAdd(B32(" + address + ").v,uint(x));\n";
    return;
  }
  // Rounds are limited, because some drivers end loops after 65535 of them; other work-items make progress meanwhile.
  if (bits == 32) {
    k.out += "{uint64_t p=" + address +
             ";uint old=B32(p).v;bool done=false;for(int t=0;t<32768&&!done;++t)for(int s=0;s<32768;++s){uint next=" +
             combined("old") +
             ";if(next==old){done=true;break;}uint "
             "seen=atomicCompSwap(B32(p).v,old,next);if(seen==old){done=true;break;}old=seen;}}\n";
  } else if (bits == 64) {
    k.out += "{uint64_t p=" + address +
             ";uint64_t old=B64(p).v;bool done=false;for(int t=0;t<32768&&!done;++t)for(int s=0;s<32768;++s){uint64_t "
             "next=" +
             combined("old") +
             ";if(next==old){done=true;break;}uint64_t "
             "seen=atomicCompSwap(B64(p).v,old,next);if(seen==old){done=true;break;}old=seen;}}\n";
  } else {  // within the word of 32 bits around the element
    const std::string width = std::to_string(bits);
    k.out += "{uint64_t p=" + address +
             ";uint64_t word=p&~3ul;int from=int(p&3ul)*8;uint old=B32(word).v;bool done=false;for(int "
             "t=0;t<32768&&!done;++t)for(int s=0;s<32768;++s){"
             "uint part=bitfieldExtract(old,from," +
             width + ");uint next=bitfieldInsert(old," + combined("part") + ",from," + width +
             ");if(next==old){done=true;break;}uint "
             "seen=atomicCompSwap(B32(word).v,old,next);if(seen==old){done=true;break;}old=seen;}}\n";
  }
}

struct Scatter {
  size_t axis;
  std::string reduction;
  int32_t dtype, index_dtype;
  Space space;  // of updates: indices, updates, output (without the axis), row-major position
};

bool can_combine_atomically(const Device& device, const Scatter& s) {
  if (s.reduction == "set") return true;
  const int bits = bits_of(s.dtype);
  if (is_complex(class_of(s.dtype))) return false;
  return bits <= 32 || (bits == 64 && device.physical.features.int64_atomics);
}

// Every update by itself, in any order.
void scatter_unordered(const Request& request, const Scatter& s) {
  const Op& op = request.op;
  Space space = s.space;
  const int64_t step = space.strides[2][s.axis];
  space.strides[2][s.axis] = 0;
  space = space.collapsed(false);
  KernelBuilder k(request.device, request.plan, request.query, "scatter " + s.reduction);
  k.sign(s.dtype);
  k.sign(s.index_dtype);
  const int indices = k.tensor(0), x = k.tensor(1), y = k.tensor(2);
  const int count = k.word(space.count()), step_slot = k.word(step), extent = k.word(op.output(0).shape[s.axis]);
  const int fault = k.fault();
  const Axes axes = k.axes(space);
  k.finish_loop(space.count(), [&] {
    k.begin_loop(count, axes.index_type());
    k.locate(axes, "o", "i", false);
    begin_checked(k, s.index_dtype, load(s.index_dtype, k.address(indices, "o0")), extent, fault, 0, "o3");
    const std::string address = k.address(y, "int64_t(o2)+k*" + k.at(step_slot));
    if (s.reduction == "set") {
      k.out += store(s.dtype, address, load(s.dtype, k.address(x, "o1"))) + "\n";
    } else {
      const int32_t wide = class_of(s.dtype) == 'h' ? COMPUTE_DTYPE_FLOAT32 : s.dtype;
      k.out += type_of(wide) + " x=" + k.source.convert(s.dtype, wide, load(s.dtype, k.address(x, "o1"))) + ";\n";
      combine_atomically(k, s.reduction, s.dtype, address);
    }
    k.out += "}\n";
    k.end_loop();
  });
}

// In order: the updates of each line along the axis are sorted by their targets, stably, and one work-item combines
// those of one target. Indices out of range are reported and sorted to the end.
void scatter_ordered(const Request& request, const Scatter& s) {
  const Op& op = request.op;
  const int64_t length = s.space.shape[s.axis], extent = op.output(0).shape[s.axis];
  Space lines = s.space;
  Shape along;
  for (Shape& strides : lines.strides) {
    along.push_back(strides[s.axis]);
    strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(s.axis));
  }
  lines.shape.erase(lines.shape.begin() + static_cast<std::ptrdiff_t>(s.axis));
  lines = lines.collapsed(false);
  const int64_t line_count = lines.count();
  const int64_t count = line_count * length;
  const int64_t keys_at = request.plan.reserve(count * 4), sorted_at = request.plan.reserve(count * 4),
                order_at = request.plan.reserve(count * 4);
  {
    KernelBuilder k(request.device, request.plan, request.query, "scatter keys");
    k.sign(s.index_dtype);
    const int indices = k.tensor(0), keys = k.workspace(keys_at);
    const int count_slot = k.word(count), length_slot = k.word(length), extent_slot = k.word(extent);
    const int step = k.word(along[0]), position_step = k.word(along[3]), fault = k.fault();
    const Axes axes = k.axes(lines);
    k.finish_loop(count, [&] {
      k.begin_loop(count_slot, "uint");
      k.out += "uint m=" + k.number(length_slot, "uint") + ",line=i/m,j=i-line*m;\n";
      k.locate(axes, "o", axes.index_type() + "(line)", false);
      k.out += "B32(" + k.address(keys, "int64_t(i)*4l") + ").v=0xffffffffu;\n";
      begin_checked(k, s.index_dtype, load(s.index_dtype, k.address(indices, "int64_t(o0)+int64_t(j)*" + k.at(step))),
                    extent_slot, fault, 0, "int64_t(o3)+int64_t(j)*" + k.at(position_step));
      k.out += "B32(" + k.address(keys, "int64_t(i)*4l") + ").v=uint(k);}\n";
      k.end_loop();
    });
  }
  // The digits tell the targets from each other, and from the key of indices out of range, which are all ones.
  Sorting sorting;
  sorting.lines = line_count;
  sorting.length = length;
  sorting.key_bytes = 4;
  sorting.first_bit = 0;
  sorting.digits = std::max((static_cast<int>(std::bit_width(static_cast<uint64_t>(extent))) + 7) / 8, 1);
  int from = 0, to_keys = 0, to_order = 0, terms = 0;
  const auto word_at = [](int slot, const std::string& i) {
    return "B32(" + KernelBuilder::address(slot, "int64_t(" + i + ")*4l") + ").v";
  };
  sorting.add_arguments = [&](KernelBuilder& k) {
    k.sign("scatter");
    from = k.workspace(keys_at), to_keys = k.workspace(sorted_at), to_order = k.workspace(order_at),
    terms = k.word(length);
  };
  sorting.locate = [&](KernelBuilder& k) { k.out += "uint line_begin=line*" + k.number(terms, "uint") + ";\n"; };
  sorting.load = [&](KernelBuilder& k) { k.out += "key=" + word_at(from, "line_begin+j") + ";\n"; };
  sorting.value_type = "uint";
  sorting.fetch = [&](KernelBuilder& k) { k.out += "value=" + word_at(from, "line_begin+from") + ";\n"; };
  sorting.store = [&](KernelBuilder& k) {
    k.out += word_at(to_keys, "line_begin+j") + "=value;" + word_at(to_order, "line_begin+j") + "=from;\n";
  };
  sort_lines(request, sorting);
  KernelBuilder k(request.device, request.plan, request.query, "scatter sorted " + s.reduction);
  k.sign(s.dtype);
  const int x = k.tensor(1), y = k.tensor(2), keys = k.workspace(sorted_at), order = k.workspace(order_at);
  const int count_slot = k.word(count), length_slot = k.word(length);
  const int x_step = k.word(along[1]), y_step = k.word(along[2]);
  const Axes axes = k.axes(lines);
  k.finish_loop(count, [&] {
    const int32_t wide = class_of(s.dtype) == 'h' ? COMPUTE_DTYPE_FLOAT32 : s.dtype;
    const auto update = [&](const std::string& at) {
      return k.source.convert(
          s.dtype, wide,
          load(s.dtype, k.address(x, "int64_t(o1)+int64_t(B32(" + k.address(order, "int64_t(" + at + ")*4l") + ").v)*" +
                                         k.at(x_step))));
    };
    const auto key = [&](const std::string& at) { return "B32(" + k.address(keys, "int64_t(" + at + ")*4l") + ").v"; };
    k.begin_loop(count_slot, "uint");
    k.out += "uint m=" + k.number(length_slot, "uint") + ",line=i/m,j=i-line*m,key=" + key("i") +
             ";\nif(key==0xffffffffu||(j>0u&&" + key("i-1u") + "==key))continue;\n";
    k.locate(axes, "o", axes.index_type() + "(line)", false);
    k.out += "uint last=(line+1u)*m;uint64_t p=" + k.address(y, "int64_t(o2)+int64_t(key)*" + k.at(y_step)) + ";\n";
    const std::string T = type_of(wide);
    if (s.reduction == "set") {
      // The last of the target: by halves, since the keys are sorted.
      k.out += "uint low=i,high=last;for(int r=0;r<32&&high-low>1u;++r){uint mid=low+(high-low)/2u;if(" + key("mid") +
               "==key)low=mid;else high=mid;}\n" + T + " v=" + update("low") + ";\n";
    } else {
      k.out += T + " v=" + k.source.convert(s.dtype, wide, load(s.dtype, "p")) + ";\nuint b=i;bool more=true;" +
               "for(int r=0;r<65000&&more;++r)for(int q=0;q<65000;++q){if(b>=last||" + key("b") +
               "!=key){more=false;break;}" + T + " x=" + update("b") +
               ";v=" + k.source.combine(s.reduction, wide, "v", "x") + ";++b;}\n";
    }
    k.out += store(s.dtype, "p", k.source.convert(wide, s.dtype, "v")) + "\n";
    k.end_loop();
  });
}

}  // namespace

void scatter(const Request& request) {
  const Op& op = request.op;
  Scatter s;
  s.axis = static_cast<size_t>(op.integer("axis", 0));
  s.reduction = op.string("reduction");
  s.dtype = op.input(1).dtype;
  s.index_dtype = op.input(0).dtype;
  s.space.shape = op.input(1).shape;
  for (const Tensor& tensor : op.tensors()) s.space.strides.push_back(tensor.strides);
  Shape positions(s.space.shape.size());
  int64_t step = 1;
  for (size_t axis = positions.size(); axis-- > 0;) positions[axis] = step, step *= s.space.shape[axis];
  s.space.strides.push_back(positions);
  const bool in_order = op.has_flag(COMPUTE_PLUGIN_OP_DETERMINISTIC) || !can_combine_atomically(request.device, s);
  if (!in_order) {
    scatter_unordered(request, s);
    return;
  }
  if (s.space.count() >= (int64_t{1} << 31) || op.output(0).shape[s.axis] >= (int64_t{1} << 31)) {
    throw Refused{COMPUTE_PLUGIN_REFUSE_SHAPE, 1, "deterministic scatters of 2^31 elements or more are not supported"};
  }
  scatter_ordered(request, s);
}

}  // namespace vulkan
