// SPDX-License-Identifier: Apache-2.0
// Trains a small GPT on the characters of a text and writes more of it: embeddings of characters and positions,
// blocks of causal attention and dense layers behind layer norms, AdamW.
//
//   transformer --data=FILE [--compute-device=DEVICE] [--steps=1000] [--batch=16] [--context=256] [--layers=6]
//               [--heads=6] [--width=384] [--rate=0.0003] [--seed=1] [--generate=200] [--top=10] [--graph=0]
//               [--losses=0] [--characters=0]
//
// Nine tenths of the text are learnt; the rest gives the held-out loss. --graph=1 records the step once and replays it.
// --characters=N reads only the first N.
#include <algorithm>
#include <map>
#include <random>

#include "data.hpp"
#include "program.hpp"
#include "replay.hpp"
#include "tape.hpp"

using compute::Device;
using compute::Tensor;

namespace {

struct Sizes {
  int64_t characters, context, layers, heads, width;
};

struct Block {
  tape::Value scale1, bias1, w_qkv, b_qkv, w_out, b_out, scale2, bias2, w_up, b_up, w_down, b_down;
};

class Transformer {
 public:
  Transformer(const Device& device, const Sizes& sizes, int64_t seed) : sizes_(sizes) {
    int64_t next = 1000 * seed;
    const auto normal = [&](std::vector<int64_t> shape, double deviation) {
      return keep(compute::random_normal(device, shape, compute::float32, 0, deviation, next++));
    };
    const auto full = [&](int64_t n, float value) { return keep(device.full({n}, value)); };
    const int64_t c = sizes.width;
    const double small = 0.02 / std::sqrt(2.0 * static_cast<double>(sizes.layers));
    characters_ = normal({sizes.characters, c}, 0.02);
    positions_ = normal({sizes.context, c}, 0.02);
    places_ = compute::arange(device, sizes.context, compute::int32);
    for (int64_t i = 0; i < sizes.layers; ++i) {
      Block b;
      b.scale1 = full(c, 1), b.bias1 = full(c, 0);
      b.w_qkv = normal({c, 3 * c}, 0.02), b.b_qkv = full(3 * c, 0);
      b.w_out = normal({c, c}, small), b.b_out = full(c, 0);
      b.scale2 = full(c, 1), b.bias2 = full(c, 0);
      b.w_up = normal({c, 4 * c}, 0.02), b.b_up = full(4 * c, 0);
      b.w_down = normal({4 * c, c}, small), b.b_down = full(c, 0);
      blocks_.push_back(b);
    }
    scale_ = full(c, 1), bias_ = full(c, 0);
    head_ = normal({c, sizes.characters}, 0.02), head_bias_ = full(sizes.characters, 0);
  }
  const std::vector<tape::Value>& parameters() const { return parameters_; }

  // Logits [b * n, characters] for characters [b, n].
  tape::Value operator()(const Tensor& text) const {
    const int64_t rows = text.size(), n = text.extent(1);
    tape::Value x = embedding(characters_, text) + embedding(positions_, places_[compute::slice(0, n)]);
    for (const Block& block : blocks_) {
      const tape::Value a = layer_norm(x, block.scale1, block.bias1);
      const tape::Value heads = tape::self_attention(linear(a, block.w_qkv, block.b_qkv), sizes_.heads, true);
      x = x + linear(heads, block.w_out, block.b_out);
      const tape::Value h = layer_norm(x, block.scale2, block.bias2);
      x = x + linear(gelu(linear(h, block.w_up, block.b_up)), block.w_down, block.b_down);
    }
    return linear(reshape(layer_norm(x, scale_, bias_), {rows, sizes_.width}), head_, head_bias_);
  }

 private:
  tape::Value keep(Tensor tensor) {
    parameters_.push_back(tape::parameter(std::move(tensor)));
    return parameters_.back();
  }

  Sizes sizes_;
  std::vector<tape::Value> parameters_;
  tape::Value characters_, positions_, scale_, bias_, head_, head_bias_;
  Tensor places_;  // 0, 1, ...
  std::vector<Block> blocks_;
};

// `count` windows of the text and what follows each of their characters.
struct Batch {
  Tensor text, next;  // [b, n], [b * n] int32
};

Batch sample(const Device& device, const std::vector<int32_t>& text, size_t first, size_t last, int64_t count,
             int64_t context, std::mt19937_64& random) {
  std::vector<int32_t> x, y;
  for (int64_t i = 0; i < count; ++i) {
    const size_t start = first + random() % (last - first - static_cast<size_t>(context));
    x.insert(x.end(), text.begin() + static_cast<std::ptrdiff_t>(start),
             text.begin() + static_cast<std::ptrdiff_t>(start) + context);
    y.insert(y.end(), text.begin() + static_cast<std::ptrdiff_t>(start) + 1,
             text.begin() + static_cast<std::ptrdiff_t>(start) + context + 1);
  }
  return {device.from_host(x, {count, context}), device.from_host(y)};
}

// Draws one of the `top` likeliest characters at the last position.
int32_t draw(const Tensor& logits, int64_t top, int64_t seed, int64_t step) {
  std::vector<float> values = logits.to_vector<float>();
  std::vector<int32_t> order(values.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return values[static_cast<size_t>(a)] > values[static_cast<size_t>(b)];
  });
  order.resize(std::min(order.size(), static_cast<size_t>(top)));
  double total = 0;
  for (const int32_t i : order)
    total += std::exp(static_cast<double>(values[static_cast<size_t>(i)] - values[static_cast<size_t>(order[0])]));
  const Tensor u = compute::random_uniform(Device::open("cpu"), {1}, compute::float32, 0, 1, seed, step);
  double left = static_cast<double>(u(0).item<float>()) * total;
  for (const int32_t i : order) {
    left -= std::exp(static_cast<double>(values[static_cast<size_t>(i)] - values[static_cast<size_t>(order[0])]));
    if (left < 0) return i;
  }
  return order.back();
}

int run(int argc, char** argv) {
  const program::Options options(argc, argv,
                                 {{"data", ""},
                                  {"steps", "1000"},
                                  {"batch", "16"},
                                  {"context", "256"},
                                  {"layers", "6"},
                                  {"heads", "6"},
                                  {"width", "384"},
                                  {"rate", "0.0003"},
                                  {"seed", "1"},
                                  {"generate", "200"},
                                  {"top", "10"},
                                  {"graph", "0"},
                                  {"losses", "0"},
                                  {"characters", "0"}});
  const Device device = Device::open();
  std::string raw = data::read_file(options.text("data"));
  if (options.integer("characters") > 0)
    raw.resize(std::min(raw.size(), static_cast<size_t>(options.integer("characters"))));
  std::map<char, int32_t> numbers;
  for (const char c : raw) numbers.emplace(c, 0);
  std::string characters;
  for (auto& [c, number] : numbers) {
    number = static_cast<int32_t>(characters.size());
    characters += c;
  }
  std::vector<int32_t> text;
  for (const char c : raw) text.push_back(numbers[c]);
  const Sizes sizes{static_cast<int64_t>(characters.size()), options.integer("context", 1),
                    options.integer("layers", 1), options.integer("heads", 1), options.integer("width", 1)};
  if (sizes.width % sizes.heads != 0) throw std::invalid_argument("--width is no multiple of --heads");
  const int64_t seed = options.integer("seed"), steps = options.integer("steps"), batch = options.integer("batch", 1);
  const size_t learnt = text.size() / 10 * 9, window = static_cast<size_t>(sizes.context) + 1;
  if (std::min(learnt, text.size() - learnt) < window) {
    throw std::runtime_error(options.text("data") + " is too short: a tenth of its " + std::to_string(text.size()) +
                             " characters must hold a window of " + std::to_string(window) +
                             "; give a longer text or a smaller --context");
  }
  const Transformer network(device, sizes, seed);
  int64_t count = 0;
  for (const tape::Value& each : network.parameters()) count += each.tensor().size();
  std::printf("%zu characters, %zu different, on %s, %lld parameters\n", text.size(), characters.size(),
              device.name().c_str(), static_cast<long long>(count));
  tape::Adam adam(network.parameters(), 0.01);
  std::mt19937_64 random(static_cast<uint64_t>(seed));
  const auto loss_of = [&](const Batch& b) { return tape::cross_entropy(network(b.text), b.next); };
  Replay replay(device, options.integer("graph") != 0);
  const Counter count_of_steps = replay.counter();
  const Batch learning{device.empty(compute::int32, {batch, sizes.context}),
                       device.empty(compute::int32, {batch * sizes.context})};
  tape::Value loss;
  const auto learn = [&] {
    loss = loss_of(learning);
    tape::backward(loss);
    adam.step(options.real("rate"), count_of_steps.as("step"));
  };
  const double start = program::seconds();
  {
    program::Progress progress("training", steps);
    for (int64_t step = 1; step <= steps; ++step) {
      const Batch drawn = sample(device, text, 0, learnt, batch, sizes.context, random);
      compute::copy_into(drawn.text, learning.text, tape::stream);
      compute::copy_into(drawn.next, learning.next, tape::stream);
      replay.set(count_of_steps, step);
      replay.run(learn);
      if (step <= options.integer("losses"))
        std::printf("loss %lld: %.7g\n", static_cast<long long>(step),
                    static_cast<double>(loss.tensor().item<float>()));
      progress.show(step);
    }
  }
  device.synchronize();
  const double seconds = program::seconds() - start;
  double held_out = 0;
  std::mt19937_64 other(7);
  for (int i = 0; i < 8; ++i)
    held_out +=
        static_cast<double>(
            loss_of(sample(device, text, learnt, text.size(), batch, sizes.context, other)).tensor().item<float>()) /
        8;
  std::printf("%lld steps in %.2f s, held-out loss %.4f\n", static_cast<long long>(steps), seconds, held_out);
  std::vector<int32_t> written{text[0]};
  for (int64_t i = 0; i < options.integer("generate"); ++i) {
    const size_t from =
        written.size() > static_cast<size_t>(sizes.context) ? written.size() - static_cast<size_t>(sizes.context) : 0;
    const std::vector<int32_t> window(written.begin() + static_cast<std::ptrdiff_t>(from), written.end());
    const auto n = static_cast<int64_t>(window.size());
    const Tensor logits = network(device.from_host(window, {1, n})).tensor();
    written.push_back(draw(logits[n - 1], options.integer("top", 1), seed, i));
  }
  for (const int32_t c : written) std::putchar(characters[static_cast<size_t>(c)]);
  std::putchar('\n');
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return program::guarded([&] { return run(argc, argv); });
}
