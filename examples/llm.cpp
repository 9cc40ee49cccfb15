// SPDX-License-Identifier: Apache-2.0
// Continues a text with a language model of the Llama family: Llama, SmolLM2, TinyLlama, Qwen2. The twin of
// python/llm.py: the same file and text give the same tokens.
//
//   llm --model=FILE --text=TEXT [--compute-device=DEVICE] [--tokens=200] [--chat=0] [--dtype=float32] [--eager=0]
//       [--temperature=0] [--top-k=40] [--top-p=0.95] [--seed=1] [--numbers=0]
//
// FILE is a GGUF file with weights of float32, float16, bfloat16, Q8_0, Q4_0, Q4_1, Q4_K or Q6_K, which stay quantised.
// --chat=1 takes the text as a user's message; --numbers=1 prints the prompt's and the answer's tokens as numbers.
// With a temperature of 0 the likeliest token is taken. Speeds go to the standard error.
#include <algorithm>
#include <cmath>
#include <optional>

#include "llm_file.hpp"
#include "llm_tokens.hpp"
#include "program.hpp"

using compute::Device;
using compute::DType;
using compute::Tensor;
using llm::cat, llm::FileTensor, llm::Gguf, llm::ModelError, llm::Packed;

namespace {

constexpr int64_t kBlock = 256;  // places by which the cache grows, and most tokens of a prompt at a time

// ---- Weights --------------------------------------------------------------------------------------------------------

// Numbers of a file as a tensor of `dtype`.
Tensor numbers(const FileTensor& tensor, DType dtype, const Device& device) {
  if (!llm::is_plain(tensor.kind)) throw ModelError(cat("tensor ", tensor.name, " is quantised; only matrices may be"));
  int64_t count = 1;
  for (const int64_t extent : tensor.shape) count *= extent;
  const auto bytes = static_cast<size_t>(count) * (tensor.kind == 0 ? 4 : 2);
  Tensor x;
  if (tensor.kind == 0) {
    std::vector<float> values(static_cast<size_t>(count));
    std::memcpy(values.data(), tensor.bytes.data(), bytes);
    x = device.from_host(values, tensor.shape);
  } else {
    std::vector<uint16_t> values(static_cast<size_t>(count));
    std::memcpy(values.data(), tensor.bytes.data(), bytes);
    x = device.from_host(values)
            .view(tensor.kind == 1 ? compute::float16 : compute::bfloat16, {count}, {1}, 0)
            .reshape(tensor.shape);
  }
  return x.dtype() == dtype ? x : compute::cast(x, dtype);
}

/// Weights [n, k] of one tensor, or of several one below the other, quantised or not.
class Matrix {
 public:
  Matrix() = default;
  Matrix(const std::vector<const FileTensor*>& tensors, DType dtype, const Device& device) : dtype_(dtype) {
    columns_ = tensors[0]->shape.back();
    std::vector<Packed> packed;
    for (const FileTensor* tensor : tensors) {
      if (tensor->shape.size() != 2 || tensor->shape[1] != columns_)
        throw ModelError(cat("tensor ", tensor->name, " is not [n, ", columns_, "]"));
      rows_ += tensor->shape[0];
      if (llm::is_plain(tensor->kind)) {
        add(packed, device);
        const Tensor x = numbers(*tensor, dtype, device);
        const bool joins = !parts_.empty() && parts_.back().bits == 0;
        if (joins) parts_.back().weight = compute::concat({parts_.back().weight, x}, 0);
        if (!joins) parts_.push_back({x, {}, {}, 0, 0});
        continue;
      }
      Packed one = llm::pack(*tensor);
      if (!packed.empty() && !packed[0].has_form_of(one)) add(packed, device);
      packed.empty() ? packed.push_back(std::move(one)) : packed[0].append(one);
    }
    add(packed, device);
  }
  [[nodiscard]] int64_t rows() const { return rows_; }

  Tensor operator()(const Tensor& x, const compute::Stream& stream) const {
    std::vector<Tensor> found;
    for (const Part& part : parts_) {
      found.push_back(part.bits == 0 ? compute::affine(x, part.weight, {}, 1, "none", stream)
                                     : compute::quantized_matmul(x, part.weight, part.scales, part.offsets, part.bits,
                                                                 part.group, stream));
    }
    return found.size() == 1 ? found[0] : compute::concat(found, -1, stream);
  }
  /// Rows as numbers.
  [[nodiscard]] Tensor taken(const Tensor& indices, const compute::Stream& stream) const {
    const Part& part = parts_.at(0);
    const Tensor weight = compute::take(part.weight, indices, 0, stream);
    if (part.bits == 0) return weight;
    const Tensor scales = compute::take(part.scales, indices, 0, stream);
    const Tensor offsets = part.offsets.defined() ? compute::take(part.offsets, indices, 0, stream) : Tensor();
    return compute::dequantize(weight, scales, offsets, part.bits, part.group, 0, dtype_, stream);
  }

 private:
  struct Part {
    Tensor weight, scales, offsets;
    int64_t bits, group;  // bits 0: numbers
  };

  // Rows of values.
  template <class T>
  Tensor uploaded(const std::vector<T>& values, const Device& device) const {
    const auto size = static_cast<int64_t>(values.size());
    const int64_t width = size * columns_ / packed_numbers_, shape[] = {size / width, width}, strides[] = {width, 1};
    const Tensor x = device.from_host(values, shape);
    return std::is_same_v<T, uint16_t> ? x.view(compute::float16, shape, strides, 0) : x;
  }
  void add(std::vector<Packed>& packed, const Device& device) {
    if (packed.empty()) return;
    const Packed& one = packed[0];
    packed_numbers_ = static_cast<int64_t>(one.codes.size()) * 8 / one.bits;
    Part part{uploaded(one.codes, device), {}, {}, one.bits, one.group};
    part.scales = one.has_halves ? uploaded(one.half_scales, device) : uploaded(one.scales, device);
    if (one.has_offsets)
      part.offsets = one.has_halves ? uploaded(one.half_offsets, device) : uploaded(one.offsets, device);
    parts_.push_back(std::move(part));
    packed.clear();
  }

  DType dtype_ = compute::float32;
  int64_t rows_ = 0, columns_ = 0, packed_numbers_ = 1;
  std::vector<Part> parts_;
};

// ---- The network ----------------------------------------------------------------------------------------------------

/// The network with its cache of keys and values, which holds the tokens that it has read.
class Model {
 public:
  Model(const Gguf& file, DType dtype, const Device& device) : device_(device), stream_(device), dtype_(dtype) {
    const std::string family = file.word("general.architecture");
    if (family != "llama" && family != "qwen2")
      throw ModelError(cat("the architecture is '", family, "'; llama and qwen2 are read"));
    if (file.has_tensor("rope_freqs.weight") || file.word(family + ".rope.scaling.type", "none") != "none")
      throw ModelError("scaled rotary embeddings are not read");
    heads_ = file.integer(family + ".attention.head_count");
    shared_ = file.integer(family + ".attention.head_count_kv", heads_);
    const int64_t width = file.integer(family + ".embedding_length");
    if (heads_ < 1 || shared_ < 1 || heads_ % shared_ != 0)
      throw ModelError("the numbers of heads do not fit together");
    features_ = file.integer(family + ".attention.key_length", width / heads_);
    context_ = file.integer(family + ".context_length");
    epsilon_ = file.number(family + ".attention.layer_norm_rms_epsilon");
    base_ = file.number(family + ".rope.freq_base", 10000);
    interleaved_ = family == "llama";
    const auto matrix = [&](const std::vector<std::string>& names) {
      std::vector<const FileTensor*> tensors;
      for (const std::string& name : names) tensors.push_back(&file.tensor(name + ".weight"));
      return Matrix(tensors, dtype, device);
    };
    const auto vector = [&](const std::string& name) { return numbers(file.tensor(name), dtype, device); };
    embedding_ = matrix({"token_embd"});
    head_ = file.has_tensor("output.weight") ? matrix({"output"}) : embedding_;
    norm_ = vector("output_norm.weight");
    for (int64_t i = 0; i < file.integer(family + ".block_count"); ++i) {
      const std::string name = cat("blk.", i, ".");
      Layer layer{vector(name + "attn_norm.weight"),
                  vector(name + "ffn_norm.weight"),
                  {},
                  matrix({name + "attn_q", name + "attn_k", name + "attn_v"}),
                  matrix({name + "attn_output"}),
                  matrix({name + "ffn_gate", name + "ffn_up"}),
                  matrix({name + "ffn_down"}),
                  {},
                  {}};
      if (file.has_tensor(name + "attn_q.bias"))
        layer.bias = compute::concat(
            {vector(name + "attn_q.bias"), vector(name + "attn_k.bias"), vector(name + "attn_v.bias")}, 0);
      if (layer.qkv.rows() != (heads_ + 2 * shared_) * features_)
        throw ModelError(
            cat(name, "attn_q, k and v have ", layer.qkv.rows(), " rows, which are not those of the heads"));
      layers_.push_back(std::move(layer));
    }
  }
  [[nodiscard]] int64_t size() const { return size_; }
  [[nodiscard]] int64_t context() const { return context_; }

  /// Reads tokens behind those in the cache; returns the logits behind the last one.
  Tensor read(const std::vector<int32_t>& tokens) {
    const auto count = static_cast<int64_t>(tokens.size());
    if (size_ + count > context_)
      throw ModelError(cat(size_ + count, " tokens do not fit in the context of ", context_));
    Tensor logits;
    following_.reset();
    for (int64_t at = 0; at < count; at += kBlock) {
      const int64_t length = std::min(kBlock, count - at), end = size_ + length;
      const Tensor part = device_.from_host(
          std::span<const int32_t>(tokens).subspan(static_cast<size_t>(at), static_cast<size_t>(length)), {length});
      grow(end);
      logits = network(part, compute::arange(stream_, length, compute::int32, size_), true, end, {});
      size_ = end;
    }
    return logits;
  }
  /// The same for one token, in a recorded graph.
  Tensor step(int32_t token, bool is_eager) {
    if (is_eager) return read({token});
    if (size_ + 1 > context_) throw ModelError(cat(size_ + 1, " tokens do not fit in the context of ", context_));
    grow(size_ + 1);
    if (!graph_) record();
    if (following_ != token) token_.write(std::vector<int32_t>{token});
    if (!following_) place_.write(std::vector<int32_t>{static_cast<int32_t>(size_)});
    graph_->run(stream_);
    ++size_;
    following_ = -1;
    return logits_;
  }
  /// The token of the greatest logit; the graph has found it already.
  int32_t likeliest(const Tensor& logits) {
    if (!graph_ || logits.get() != logits_.get())
      return static_cast<int32_t>(compute::argmax(logits, compute::none, false, stream_).item<int64_t>());
    following_ = token_.item<int32_t>();
    return *following_;
  }

 private:
  struct Layer {
    Tensor norm, norm2, bias;
    Matrix qkv, out, up, down;
    Tensor keys, values;  // [room, heads, features]
  };

  // Makes room for so many tokens, in whole blocks.
  void grow(int64_t wanted) {
    if (wanted <= room_) return;
    room_ = (wanted + kBlock - 1) / kBlock * kBlock;
    graph_.reset();
    following_.reset();
    for (Layer& layer : layers_) {
      for (Tensor* cache : {&layer.keys, &layer.values}) {
        const Tensor before = *cache;
        *cache = device_.zeros(dtype_, {room_, shared_, features_});
        if (size_ > 0) cache->slice(0, 0, size_).assign(before.slice(0, 0, size_), stream_);
      }
    }
  }

  // The logits behind the last token. `places` are those of the tokens, consecutive ones from size_ on if `is_range`;
  // `seen` of the cache are read.
  Tensor network(const Tensor& tokens, const Tensor& places, bool is_range, int64_t seen, const Tensor& mask) {
    using compute::slice;
    const int64_t count = tokens.size();
    const auto in_front = [](const Tensor& x) { return x.permute({1, 0, 2}); };
    const auto put = [&](const Tensor& cache, const Tensor& x) {
      if (is_range) return cache.slice(0, size_, size_ + count).assign(x, stream_);
      compute::assign(cache, places, x, stream_);
    };
    Tensor x = embedding_.taken(tokens, stream_);
    for (const Layer& layer : layers_) {
      Tensor qkv = layer.qkv(compute::rms_norm(x, layer.norm, -1, epsilon_, stream_).y, stream_);
      if (layer.bias.defined()) qkv = compute::add(qkv, layer.bias, stream_);
      qkv = qkv.reshape({count, heads_ + 2 * shared_, features_});
      const Tensor turned = compute::rotary_embedding(in_front(qkv(slice(), slice(0, heads_ + shared_))), places, base_,
                                                      interleaved_, false, stream_);
      put(layer.keys, in_front(turned[slice(heads_, compute::none)]));
      put(layer.values, qkv(slice(), slice(heads_ + shared_, compute::none)));
      // Heads that share keys are queries of one head if there is one token, so that keys are read once.
      Tensor q = turned[slice(0, heads_)];
      if (count == 1) q = q.reshape({shared_, heads_ / shared_, features_});
      const auto cached = [&](const Tensor& cache) { return in_front(cache.slice(0, 0, seen)).expand_dims(0); };
      Tensor y =
          compute::attention(q.expand_dims(0), cached(layer.keys), cached(layer.values), mask, count > 1, 0, stream_)
              .y[0];
      if (count > 1) y = compute::copy(in_front(y), stream_);
      x = compute::add(x, layer.out(y.reshape({count, -1}), stream_), stream_);
      const Tensor h = layer.up(compute::rms_norm(x, layer.norm2, -1, epsilon_, stream_).y, stream_);
      const int64_t half = h.extent(1) / 2;
      const Tensor gated =
          swiglu_.run({h(slice(), slice(0, half)), h(slice(), slice(half, compute::none))}, {}, stream_)[0];
      x = compute::add(x, layer.down(gated, stream_), stream_);
    }
    return head_(compute::rms_norm(x[slice(-1, compute::none)], norm_, -1, epsilon_, stream_).y, stream_);
  }

  // Records the network for one token, which is the likeliest one behind it at the end.
  void record() {
    token_ = device_.zeros(compute::int32, {1});
    place_ = device_.zeros(compute::int32, {1});
    const Tensor slots = compute::arange(stream_, room_, compute::int32);
    graph_ = compute::Graph::record(stream_, [&] {
      logits_ = network(token_, place_, false, room_, compute::less_equal(slots, place_, stream_));
      token_.assign(compute::cast(compute::argmax(logits_, 1, false, stream_), compute::int32, stream_), stream_);
      compute::add_into(place_, Tensor(1), place_, stream_);
    });
  }

  Device device_;
  compute::Stream stream_;
  DType dtype_;
  int64_t heads_ = 0, shared_ = 0, features_ = 0, context_ = 0;
  double epsilon_ = 0, base_ = 0;
  bool interleaved_ = false;
  Matrix embedding_, head_;
  Tensor norm_;
  std::vector<Layer> layers_;
  compute::Expression swiglu_{"g / (1 + exp(-g)) * u", {"g", "u"}};
  int64_t size_ = 0, room_ = 0;
  std::optional<compute::Graph> graph_;
  Tensor token_, place_, logits_;
  std::optional<int32_t> following_;  // the token that the graph will read; none: not even its place
};

/// Draws tokens by their logits: the same ones for the same seed.
class Sampler {
 public:
  explicit Sampler(const program::Options& options)
      : temperature_(options.real("temperature")),
        top_p_(options.real("top-p")),
        top_k_(options.integer("top-k")),
        seed_(options.integer("seed")) {}
  [[nodiscard]] bool is_greedy() const { return temperature_ == 0; }

  int32_t operator()(const Tensor& logits) {
    const int64_t count = logits.extent(1), most = top_k_ > 0 ? std::min(top_k_, count) : count;
    const compute::TopKResult top = compute::top_k(compute::cast(logits[0], compute::float32), most);
    const std::vector<float> values = top.values.to_vector<float>();
    const std::vector<int64_t> tokens = compute::cast(top.indices, compute::int64).to_vector<int64_t>();
    std::vector<double> weights;
    double sum = 0;
    for (const float value : values) {
      weights.push_back(std::exp((static_cast<double>(value) - static_cast<double>(values[0])) / temperature_));
      sum += weights.back();
    }
    size_t kept = 0;
    double total = 0;
    while (kept < weights.size() && total < top_p_ * sum) total += weights[kept++];
    const Tensor drawn = compute::random_uniform(cpu_, {}, compute::float32, 0, 1, seed_, offset_);
    offset_ += 9;  // as far as the Python package's generator goes for a number
    double at = static_cast<double>(drawn.item<float>()) * total;
    for (size_t i = 0; i < kept; ++i) {
      at -= weights[i];
      if (at < 0) return static_cast<int32_t>(tokens[i]);
    }
    return static_cast<int32_t>(tokens[kept > 0 ? kept - 1 : 0]);
  }

 private:
  Device cpu_ = Device::open("cpu");
  double temperature_, top_p_;
  int64_t top_k_, seed_, offset_ = 0;
};

// What `read` returns; its errors name the file.
template <class F>
auto in_file(const std::string& path, const F& read) {
  try {
    return read();
  } catch (const ModelError& error) {
    throw ModelError(cat(path, ": ", error.what()));
  }
}

int run(int argc, char** argv) {
  const program::Options options(argc, argv,
                                 {{"model", ""},
                                  {"text", ""},
                                  {"tokens", "200"},
                                  {"chat", "0"},
                                  {"dtype", "float32"},
                                  {"eager", "0"},
                                  {"temperature", "0"},
                                  {"top-k", "40"},
                                  {"top-p", "0.95"},
                                  {"seed", "1"},
                                  {"numbers", "0"}});
  const std::map<std::string, DType> dtypes = {
      {"float32", compute::float32}, {"bfloat16", compute::bfloat16}, {"float16", compute::float16}};
  const auto dtype = dtypes.find(options.text("dtype"));
  if (dtype == dtypes.end()) throw std::invalid_argument("--dtype is float32, bfloat16 or float16");
  const bool shows_numbers = options.integer("numbers") != 0, is_eager = options.integer("eager") != 0;
  const int64_t most = options.integer("tokens");
  const double begin = program::seconds();
  const Device device = Device::open();
  const auto file = in_file(options.text("model"), [&] { return std::make_unique<Gguf>(options.text("model")); });
  Model model = in_file(options.text("model"), [&] { return Model(*file, dtype->second, device); });
  const llm::Tokenizer tokenizer = in_file(options.text("model"), [&] { return llm::Tokenizer(*file); });
  Sampler sampler(options);
  const std::string& text = options.text("text");
  const std::vector<int32_t> prompt = tokenizer.encode(options.integer("chat") != 0 ? tokenizer.chat(text) : text);
  if (prompt.empty()) throw ModelError("the text has no tokens");
  const auto show = [&](int32_t token) {
    std::cout << (shows_numbers ? cat(token, " ") : tokenizer.decode(token)) << std::flush;
  };
  if (shows_numbers) {
    for (const int32_t token : prompt) show(token);
    std::cout << "| ";
  }
  const double loaded = program::seconds();
  double first = loaded;
  int64_t count = 0;
  Tensor logits;
  if (most > 0) logits = model.read(prompt);
  while (count < most) {
    const int32_t token = sampler.is_greedy() ? model.likeliest(logits) : sampler(logits);
    if (count++ == 0) first = program::seconds();
    show(token);
    if (tokenizer.is_end(token) || model.size() == model.context() || count == most) break;
    logits = model.step(token, is_eager);
  }
  const double end = program::seconds();
  std::cout << std::endl;
  std::fprintf(stderr, "%s: loaded in %.1f s, %zu tokens of the prompt at %.1f/s", device.name().c_str(),
               loaded - begin, prompt.size(), static_cast<double>(prompt.size()) / (first - loaded));
  if (count > 1)
    std::fprintf(stderr, ", %lld of the answer at %.1f/s", static_cast<long long>(count),
                 static_cast<double>(count - 1) / (end - first));
  std::fprintf(stderr, "\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return program::guarded([&] { return run(argc, argv); });
}
