// SPDX-License-Identifier: Apache-2.0
// Learns the sentiment of movie reviews: an embedding, dropout, a convolution over words, the greatest value of each
// feature, and two dense layers.
//
//   imdb_cnn --data=reviews.tsv[.gz] [--compute-device=DEVICE] [--epochs=2] [--train=4000] [--batch=32] [--rate=0.001]
//            [--words=5000] [--length=400] [--steps=0] [--seed=1] [--graph=0] [--losses=0]
//
// Each line of the file is 0 or 1, a tab, and the text. The first `train` reviews are for training, the others for
// testing. The vocabulary comes from the training reviews only. --steps ends an epoch early, --graph=1 records the step
// once and replays it. --losses=N prints the first N losses.
#include <algorithm>
#include <numeric>
#include <random>
#include <unordered_map>

#include "data.hpp"
#include "program.hpp"
#include "replay.hpp"
#include "tape.hpp"

using compute::Device;
using compute::Tensor;

namespace {

struct Review {
  float label;
  std::vector<std::string> words;
};

std::vector<Review> read_reviews(const std::string& path) {
  const std::string text = data::read_file(path);
  std::vector<Review> reviews;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (end - at < 2 || (text[at] != '0' && text[at] != '1') || text[at + 1] != '\t') {
      throw std::runtime_error(path + ", line " + std::to_string(reviews.size() + 1) +
                               ": expected 0 or 1, a tab and a text");
    }
    Review review{text[at] == '1' ? 1.0f : 0.0f, {}};
    std::string word;
    for (size_t i = at + 2; i <= end && i <= text.size(); ++i) {
      const char c = i < end ? text[i] : ' ';
      const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      if ((lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9') || lower == '\'') {
        word += lower;
      } else if (!word.empty()) {
        review.words.push_back(std::move(word));
        word.clear();
      }
    }
    reviews.push_back(std::move(review));
    at = end + 1;
  }
  if (reviews.empty()) throw std::runtime_error(path + " holds no reviews");
  return reviews;
}

// The most frequent words of the first `count` reviews get 2, 3, ...; 0 pads and 1 stands for any other word.
std::unordered_map<std::string, int32_t> vocabulary(const std::vector<Review>& reviews, size_t count, size_t words) {
  std::unordered_map<std::string, int64_t> seen;
  for (size_t i = 0; i < count; ++i)
    for (const std::string& word : reviews[i].words) ++seen[word];
  std::vector<std::pair<int64_t, std::string>> order;
  for (const auto& [word, times] : seen) order.emplace_back(-times, word);
  std::sort(order.begin(), order.end());
  std::unordered_map<std::string, int32_t> numbers;
  for (size_t i = 0; i < order.size() && i + 2 < words; ++i) numbers[order[i].second] = static_cast<int32_t>(i + 2);
  return numbers;
}

struct Dataset {
  Tensor words, labels;  // [n, length] int32, [n, 1] float32
  int64_t count;
};

// The last `length` words of each review, with zeros in front of short ones.
Dataset encode(const Device& device, const std::vector<Review>& reviews, size_t first, size_t last,
               const std::unordered_map<std::string, int32_t>& numbers, size_t length) {
  std::vector<int32_t> words((last - first) * length);
  std::vector<float> labels;
  for (size_t i = first; i < last; ++i) {
    const std::vector<std::string>& text = reviews[i].words;
    const size_t count = std::min(text.size(), length);
    for (size_t k = 0; k < count; ++k) {
      const auto found = numbers.find(text[text.size() - count + k]);
      words[(i - first) * length + length - count + k] = found == numbers.end() ? 1 : found->second;
    }
    labels.push_back(reviews[i].label);
  }
  const auto n = static_cast<int64_t>(last - first);
  return {device.from_host(words, {n, static_cast<int64_t>(length)}), device.from_host(labels, {n, 1}), n};
}

struct Network {
  int64_t seed;
  tape::Value table, wc, bc, w1, b1, w2, b2;

  Network(const Device& device, int64_t words, int64_t given_seed) : seed(given_seed) {
    auto uniform = [&, next = int64_t{0}](std::vector<int64_t> shape, double limit) mutable {
      return tape::parameter(
          compute::random_uniform(device, shape, compute::float32, -limit, limit, 10 * seed + next++));
    };
    const auto zeros = [&](int64_t n) { return tape::parameter(device.zeros(compute::float32, {n})); };
    table = uniform({words, 50}, 0.05);
    wc = uniform({250, 50, 3}, std::sqrt(6.0 / (150 + 750)));
    w1 = uniform({250, 250}, std::sqrt(6.0 / 500));
    w2 = uniform({250, 1}, std::sqrt(6.0 / 251));
    bc = zeros(250);
    b1 = zeros(250);
    b2 = zeros(1);
  }
  std::vector<tape::Value> parameters() const { return {table, wc, bc, w1, b1, w2, b2}; }

  // Logits [n, 1]. `offset` chooses the random bits of dropout; without it nothing is dropped.
  tape::Value operator()(const Tensor& words, const Counter* offset = nullptr) const {
    const int64_t n = words.extent(0), length = words.extent(1);
    const auto dropped = [&](const tape::Value& x, int64_t layer) {
      return offset == nullptr ? x : dropout(x, 0.2, 100 * seed + layer, offset->as("offset"));
    };
    const tape::Value x = permute(dropped(embedding(table, words), 0), {0, 2, 1});  // [n, 50, length]
    const tape::Value features = relu(convolution(x, wc, bc));                      // [n, 250, length - 2]
    const tape::Value h = reshape(max_pool(features, {length - 2}), {n, 250});
    return linear(relu(dropped(linear(h, w1, b1), 1)), w2, b2);
  }
};

// How many of the logits have the sign that the labels ask for, on the device.
Tensor count_right(const Tensor& logits, const Tensor& labels) {
  static const compute::Expression is_right("where(x > 0, y, 1 - y)", {"x", "y"});
  return compute::sum(compute::map(is_right, {logits, labels}, {}, tape::stream), compute::all_axes, false,
                      compute::none, tape::stream);
}

struct Quality {
  double loss, accuracy;
};

// Without dropout.
Quality test_network(const Network& network, const Dataset& set) {
  double loss = 0, right = 0;
  for (int64_t i = 0; i < set.count; i += 250) {
    const auto part = compute::slice(i, std::min(i + 250, set.count));
    const tape::Value logits = network(set.words[part]);
    const Tensor labels = set.labels[part];
    loss += static_cast<double>(tape::binary_cross_entropy(logits, labels).tensor().item<float>()) *
            static_cast<double>(labels.size());
    right += static_cast<double>(count_right(logits.tensor(), labels).item<float>());
  }
  return {loss / static_cast<double>(set.count), right / static_cast<double>(set.count)};
}

int run(int argc, char** argv) {
  const program::Options options(argc, argv,
                                 {{"data", ""},
                                  {"epochs", "2"},
                                  {"train", "4000"},
                                  {"batch", "32"},
                                  {"rate", "0.001"},
                                  {"words", "5000"},
                                  {"length", "400"},
                                  {"steps", "0"},
                                  {"seed", "1"},
                                  {"graph", "0"},
                                  {"losses", "0"}});
  const Device device = Device::open();
  std::vector<Review> reviews = read_reviews(options.text("data"));
  const auto learnt = std::min(static_cast<size_t>(options.integer("train", 1)), reviews.size());
  const auto numbers = vocabulary(reviews, learnt, static_cast<size_t>(options.integer("words", 2)));
  const auto length = static_cast<size_t>(options.integer("length", 3));
  const Dataset train = encode(device, reviews, 0, learnt, numbers, length),
                test = encode(device, reviews, learnt, reviews.size(), numbers, length);
  const Network network(device, options.integer("words"), options.integer("seed"));
  int64_t count = 0;
  for (const tape::Value& each : network.parameters()) count += each.tensor().size();
  std::printf("%lld reviews to learn and %lld to test on %s, %lld parameters, rate %g\n",
              static_cast<long long>(train.count), static_cast<long long>(test.count), device.name().c_str(),
              static_cast<long long>(count), options.real("rate"));
  tape::Adam adam(network.parameters());
  std::mt19937_64 random(static_cast<uint64_t>(options.integer("seed")));
  std::vector<int32_t> order(learnt);
  std::iota(order.begin(), order.end(), 0);
  const int64_t batch = options.integer("batch", 1);
  int64_t steps = (train.count + batch - 1) / batch, step = 0;
  if (options.integer("steps") > 0) steps = std::min(steps, options.integer("steps"));
  Replay replay(device, options.integer("graph") != 0);
  const Counter count_of_steps = replay.counter(), offset = replay.counter();
  const Tensor indices = device.empty(compute::int32, {batch});
  tape::Value loss;
  Tensor right;
  const auto learn = [&](const Tensor& chosen) {
    const tape::Value logits = network(compute::take(train.words, chosen, 0, tape::stream), &offset);
    const Tensor labels = compute::take(train.labels, chosen, 0, tape::stream);
    right = count_right(logits.tensor(), labels);
    loss = tape::binary_cross_entropy(logits, labels);
    tape::backward(loss);
    adam.step(options.real("rate"), count_of_steps.as("step"));
  };
  if (options.integer("graph") != 0 && train.count % batch != 0)
    throw std::runtime_error("--graph=1 needs reviews that are a multiple of the batch");
  for (int64_t epoch = 1; epoch <= options.integer("epochs"); ++epoch) {
    const double start = program::seconds();
    for (size_t k = order.size(); k > 1; --k) std::swap(order[k - 1], order[random() % k]);
    Tensor total = device.zeros(compute::float32, {}), all_right = device.zeros(compute::float32, {});
    int64_t seen = 0;
    program::Progress progress("epoch " + std::to_string(epoch), steps);
    for (int64_t i = 0; i < steps; ++i) {
      const auto first = order.begin() + i * batch, last = order.begin() + std::min((i + 1) * batch, train.count);
      const Tensor chosen = indices[compute::slice(0, last - first)];
      chosen.write(std::vector<int32_t>(first, last));
      replay.set(offset, step * 10000000);
      replay.set(count_of_steps, ++step);
      replay.run([&] { learn(chosen); });
      total += loss.tensor();
      all_right += right;
      seen += last - first;
      if (step <= options.integer("losses"))
        std::printf("loss %lld: %.7g\n", static_cast<long long>(step),
                    static_cast<double>(loss.tensor().item<float>()));
      progress.show(i + 1);
    }
    const double loss = static_cast<double>(total.item<float>()) / static_cast<double>(steps),
                 learnt = static_cast<double>(all_right.item<float>()) / static_cast<double>(seen),
                 seconds = program::seconds() - start;
    std::printf("epoch %lld: loss %.4f, accuracy %.4f, ", static_cast<long long>(epoch), loss, learnt);
    if (test.count > 0) {
      const Quality tested = test_network(network, test);
      std::printf("test loss %.4f, test accuracy %.4f, ", tested.loss, tested.accuracy);
    }
    std::printf("%.2f s\n", seconds);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return program::guarded([&] { return run(argc, argv); });
}
