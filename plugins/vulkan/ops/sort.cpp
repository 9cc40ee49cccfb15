// SPDX-License-Identifier: Apache-2.0
// sort: keys whose order as unsigned integers is the order of the values; blocks sorted in shared memory, then merged.
#include "sorting.hpp"

namespace vulkan {

namespace {
constexpr int kBlock = 512;  // keys that a group sorts
int64_t aligned(int64_t bytes) { return (bytes + 255) & ~int64_t{255}; }
}  // namespace

SortBuffers::SortBuffers(Plan& plan, int64_t line_count, int64_t line_length, int64_t bytes)
    : lines(line_count), length(line_length), key_bytes(bytes) {
  const int64_t n = lines * length;
  keys = aligned(plan.workspace_bytes);
  order = keys + aligned(n * key_bytes);
  other_keys = order + aligned(n * 4);
  other_order = other_keys + aligned(n * key_bytes);
  plan.workspace_bytes = other_order + aligned(n * 4);
}

void sort_keys(const Request& request, SortBuffers& b) {
  const std::string K = b.key_bytes == 4 ? "uint" : "uint64_t", B = b.key_bytes == 4 ? "B32" : "B64";
  const std::string size = std::to_string(b.key_bytes) + "l";
  const std::string most = b.key_bytes == 4 ? "0xffffffffu" : "0xfffffffffffffffful";
  const auto key_at = [&](KernelBuilder& k, int slot, const std::string& i) {
    return B + "(" + k.address(slot, "int64_t(" + i + ")*" + size) + ").v";
  };
  const auto order_at = [&](KernelBuilder& k, int slot, const std::string& i) {
    return "B32(" + k.address(slot, "int64_t(" + i + ")*4l") + ").v";
  };
  if (b.length < 2) return;
  {
    // A bitonic network over (key, position in the block), which is stable because positions differ.
    KernelBuilder k(request.device, request.plan, request.query, "sort blocks");
    k.sign(b.key_bytes);
    k.use_group_size(kBlock / 2);
    const int keys = k.workspace(b.keys), order = k.workspace(b.order), length = k.word(b.length);
    const int64_t blocks = (b.length + kBlock - 1) / kBlock, all = blocks * b.lines;
    const int blocks_slot = k.word(blocks), all_slot = k.word(all);
    k.finish(std::min<int64_t>(all, 16384), [&] {
      const std::string block = std::to_string(kBlock) + "u", half = std::to_string(kBlock / 2) + "u";
      k.out += "shared " + K + " sk[" + std::to_string(kBlock) + "];shared uint so[" + std::to_string(kBlock) +
               "];\nshared uint sp[" + std::to_string(kBlock) +
               "];\nvoid main(){uint t=gl_LocalInvocationID.x,m=" + k.number(length, "uint") +
               ";\nfor(uint g=gl_WorkGroupID.x;g<" + k.number(all_slot, "uint") +
               ";g+=gl_NumWorkGroups.x){\nuint line=g/" + k.number(blocks_slot, "uint") + ",first=(g-line*" +
               k.number(blocks_slot, "uint") + ")*" + block + ",count=min(" + block +
               ",m-first),base=line*m+first;\nfor(uint j=t;j<" + block + ";j+=" + half +
               "){bool in_line=j<count;sk[j]=in_line?" + key_at(k, keys, "base+min(j,count-1u)") + ":" + most +
               ";so[j]=in_line?" + order_at(k, order, "base+min(j,count-1u)") + ":0u;sp[j]=j;}\nbarrier();\n" +
               "for(uint span=2u;span<=" + block + ";span<<=1)for(uint d=span>>1;d>0u;d>>=1){\n" +
               "uint j=2u*t-(t&(d-1u)),l=j+d;bool up=(j&span)==0u;" + K +
               " a=sk[j],c=sk[l];uint pa=sp[j],pc=sp[l];\nbool "
               "swap=(a>c||(a==c&&pa>pc))==up;\nif(swap){sk[j]=c;sk[l]=a;sp[j]=pc;sp[l]=pa;"
               "uint oa=so[j];so[j]=so[l];so[l]=oa;}\nbarrier();}\nfor(uint j=t;j<count;j+=" +
               half + "){" + key_at(k, keys, "base+j") + "=sk[j];" + order_at(k, order, "base+j") +
               "=so[j];}\nbarrier();}}\n";
    });
  }
  // Merges four runs: each key's place is its own position plus its ranks in the other three. Runs behind the line are
  // empty.
  for (int64_t run = kBlock; run < b.length; run *= 4) {
    KernelBuilder k(request.device, request.plan, request.query, "sort merge");
    k.sign(b.key_bytes);
    const int keys = k.workspace(b.keys), order = k.workspace(b.order), to_keys = k.workspace(b.other_keys);
    const int to_order = k.workspace(b.other_order), length = k.word(b.length), run_slot = k.word(run);
    const int count = k.word(b.lines * b.length);
    k.finish_loop(b.lines * b.length, [&] {
      k.begin_loop(count, "uint");
      k.out += "uint m=" + k.number(length, "uint") + ",run=" + k.number(run_slot, "uint") +
               ",line=i/m,j=i-line*m,base=line*m,mine=j/run,set=mine&~3u;\nuint low[3],end[3],rank=0u;" + K +
               " key=" + key_at(k, keys, "i") +
               ";\n[[unroll]] for(uint w=0u;w<3u;++w){uint other=set+w+(set+w>=mine?1u:0u);low[w]=min(other*run,m);"
               "end[w]=min(low[w]+run,m);rank-=low[w];}\nbool more=true;for(int r=0;r<32&&more;++r){more=false;\n"
               "[[unroll]] for(uint w=0u;w<3u;++w)if(low[w]<end[w]){uint mid=low[w]+(end[w]-low[w])/2u;" +
               K + " c=" + key_at(k, keys, "base+mid") +
               ";if(c<key||(c==key&&set+w<mine))low[w]=mid+1u;else end[w]=mid;more=true;}}\n" +
               "uint to=base+set*run+(j-mine*run)+(rank+low[0]+low[1]+low[2]);\n" + key_at(k, to_keys, "to") + "=key;" +
               order_at(k, to_order, "to") + "=" + order_at(k, order, "i") + ";\n";
      k.end_loop();
    });
    std::swap(b.keys, b.other_keys);
    std::swap(b.order, b.other_order);
  }
}

namespace {

// The key of a value: NaN last in both directions, -0 and +0 equal.
std::string key_of(KernelBuilder& k, int32_t dtype, bool descending, const std::string& x) {
  const char c = class_of(dtype);
  const bool wide = bits_of(dtype) == 64;
  if (c == 'h') return key_of(k, COMPUTE_DTYPE_FLOAT32, descending, k.source.convert(dtype, COMPUTE_DTYPE_FLOAT32, x));
  const std::string U = wide ? "uint64_t" : "uint", top = wide ? "0x8000000000000000ul" : "0x80000000u";
  std::string key;
  if (c == 'b' || c == 'u' || c == 'm') {
    key = U + "(" + x + ")";
  } else if (c == 'i' || c == 'l') {
    key = "(" + U + "(" + x + ")^" + top + ")";
  } else {
    k.source.use("isnan", c);
    k.out += type_of(dtype) + " v=" + x + ";" + U + " bits=!" + k.source.use("nonzero", c) + "(v)?" + U +
             "(0):" + bits_from(dtype, "v") + ";\nbits=(bits&" + top + ")!=" + U + "(0)?~bits:bits|" + top + ";\n";
    return std::string("(q_isnan(v)?~") + U + "(0):" + (descending ? "~" : "") + "bits)";
  }
  return descending ? "~" + key : key;
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
  const int64_t count = lines.count() * length;
  if (count >= (int64_t{1} << 31))
    throw Refused{COMPUTE_PLUGIN_REFUSE_SHAPE, 0, "sorts of 2^31 elements or more are not supported"};
  SortBuffers buffers(request.plan, lines.count(), length, bits_of(dtype) == 64 ? 8 : 4);
  {
    KernelBuilder k(request.device, request.plan, request.query, descending ? "sort keys down" : "sort keys");
    k.sign(dtype);
    const int x = k.tensor(0), keys = k.workspace(buffers.keys), order = k.workspace(buffers.order);
    const int count_slot = k.word(count), length_slot = k.word(length), step = k.word(along[0]);
    const Axes axes = k.axes(lines);
    k.finish_loop(count, [&] {
      k.begin_loop(count_slot, "uint");
      k.out += "uint m=" + k.number(length_slot, "uint") + ",line=i/m,j=i-line*m;\n";
      k.locate(axes, "o", axes.index_type() + "(line)", false);
      k.out += type_of(dtype) + " x=" + load(dtype, k.address(x, "int64_t(o0)+int64_t(j)*" + k.at(step))) + ";\n";
      const std::string key = key_of(k, dtype, descending, "x");
      k.out += (buffers.key_bytes == 8 ? "B64(" : "B32(") +
               k.address(keys, "int64_t(i)*" + std::to_string(buffers.key_bytes) + "l") + ").v=" + key + ";\nB32(" +
               k.address(order, "int64_t(i)*4l") + ").v=j;\n";
      k.end_loop();
    });
  }
  sort_keys(request, buffers);
  KernelBuilder k(request.device, request.plan, request.query, "sort results " + outputs);
  k.sign(dtype);
  const int x = k.tensor(0), y = k.tensor(1), z = has_values && has_indices ? k.tensor(2) : y;
  const int order = k.workspace(buffers.order), count_slot = k.word(count), length_slot = k.word(length);
  const int x_step = k.word(along[0]), y_step = k.word(along[1]), z_step = k.word(along.back());
  const Axes axes = k.axes(lines);
  k.finish_loop(count, [&] {
    k.begin_loop(count_slot, "uint");
    k.out += "uint m=" + k.number(length_slot, "uint") + ",line=i/m,j=i-line*m,from=B32(" +
             k.address(order, "int64_t(i)*4l") + ").v;\n";
    k.locate(axes, "o", axes.index_type() + "(line)", false);
    if (has_values) {
      k.out += store(dtype, k.address(y, "int64_t(o1)+int64_t(j)*" + k.at(y_step)),
                     load(dtype, k.address(x, "int64_t(o0)+int64_t(from)*" + k.at(x_step)))) +
               "\n";
    }
    if (has_indices) {
      const std::string operand = "o" + std::to_string(lines.strides.size() - 1);
      k.out += store(COMPUTE_DTYPE_INT64, k.address(z, "int64_t(" + operand + ")+int64_t(j)*" + k.at(z_step)),
                     "int64_t(from)") +
               "\n";
    }
    k.end_loop();
  });
}

}  // namespace vulkan
