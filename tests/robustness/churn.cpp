// SPDX-License-Identifier: Apache-2.0
// Several threads make, use and release streams and graphs on one device, together with faults in data and slow work.
// Each result is compared bit by bit. Results computed from a fault must report it, and no others may.
//
//   churn [--device NAME] [--seconds N] [--threads N] [--seed N]
//
// Without --device: cpu. Prints how many rounds of each kind were run and what was wrong.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include "robustness.hpp"

namespace robustness {
namespace {

constexpr size_t kCount = 4000;
constexpr size_t kPicked = 300;

struct Options {
  std::string device = "cpu";
  int seconds = 10;
  int threads = 6;
  unsigned seed = 1;
};

// Tensors that all threads read and none writes.
struct World {
  explicit World(const std::string& name) : device(open(name.c_str())) {
    for (size_t i = 0; i < kCount; ++i) values.push_back(static_cast<float>(i) + 0.25f);
    shared = make_tensor(device, values);
    const int64_t side = name.starts_with("minimal") ? 64 : 384;
    std::vector<float> elements;
    for (int64_t i = 0; i < side * side; ++i) elements.push_back(static_cast<float>(i * 37 % 101) / 64.0f);
    matrix = make_tensor(device, elements, {side, side});
    Tensor y;
    EXPECT_OK(run_op("matmul", nullptr, {matrix, matrix}, y.out()));
    product = read<float>(y);
  }

  Device device;
  std::vector<float> values;
  Tensor shared;
  Tensor matrix;
  std::vector<float> product;  // of the matrix with itself
};

std::atomic<int64_t> wrong{0};

// One thread, with its own tensor.
class Worker {
 public:
  Worker(const World& world, unsigned seed)
      : world_(world),
        random_(seed),
        own_(make_tensor(world.device, world.values)),
        lasting_(make_stream(world.device)) {
    indices_.resize(kPicked);
    choose(false);
    graph_indices_ = make_tensor(world.device, indices_);
    graph_ = record({own_, graph_indices_}, &graph_result_);
  }

  void run_until(std::chrono::steady_clock::time_point end) {
    constexpr std::array<void (Worker::*)(), 8> kRounds = {&Worker::op,         &Worker::chain,    &Worker::new_graph,
                                                           &Worker::own_graph,  &Worker::take,     &Worker::slow,
                                                           &Worker::in_a_queue, &Worker::untouched};
    // Each kind once, however long that takes.
    for (size_t count = 0; (count < kRounds.size() || std::chrono::steady_clock::now() < end) && wrong < 20; ++count) {
      const size_t which = count < kRounds.size() ? count : pick(kRounds.size());
      round_ = kNames[which];
      (this->*kRounds[which])();
      ++rounds[which];
    }
  }

  static constexpr std::array<const char*, 8> kNames = {"op",   "chain", "new graph",  "own graph",
                                                        "take", "slow",  "in a queue", "untouched"};
  std::array<int64_t, kNames.size()> rounds = {};
  int64_t faults = 0;

 private:
  size_t pick(size_t count) { return static_cast<size_t>(random_() % count); }
  bool coin() { return pick(2) == 0; }

  void complain(const std::string& what) {
    if (++wrong <= 20) std::printf("%s: %s\n", round_, what.c_str());
  }
  bool succeeds(compute_error* error, const char* what) {
    if (error == nullptr) return true;
    const Error owner(error);
    complain(std::string(what) + ": " + compute_error_code_name(compute_error_get_code(error)) + ", " +
             compute_error_message(error));
    return false;
  }
  void fails(compute_error* error, const char* what) {
    const Error owner(error);
    if (error == nullptr) return complain(std::string(what) + ": the fault is lost");
    if (compute_error_get_code(error) != COMPUTE_ERROR_KERNEL_FAILED ||
        std::strcmp(compute_error_op(error), "take") != 0)
      complain(std::string(what) + ": " + compute_error_message(error));
  }
  void holds(compute_tensor* tensor, const std::vector<float>& expected, const char* what) {
    std::vector<float> values(expected.size());
    const auto size_bytes = static_cast<int64_t>(values.size() * sizeof(float));
    if (!succeeds(compute_tensor_read(tensor, values.data(), size_bytes), what)) return;
    if (std::memcmp(values.data(), expected.data(), static_cast<size_t>(size_bytes)) != 0)
      complain(std::string(what) + ": other values");
  }

  std::vector<float> negated() const {
    std::vector<float> values;
    for (const float value : world_.values) values.push_back(-value);
    return values;
  }
  std::vector<float> picked(float sign) const {
    std::vector<float> values;
    for (const int64_t index : indices_) values.push_back(sign * world_.values[static_cast<size_t>(index)]);
    return values;
  }
  void choose(bool out_of_range) {
    for (int64_t& index : indices_) index = static_cast<int64_t>(pick(kCount));
    if (out_of_range) indices_[pick(kPicked)] = coin() ? static_cast<int64_t>(kCount + pick(100)) : -1'000'000;
  }

  // A graph of take and negative, recorded on a stream that is then released.
  Graph record(std::initializer_list<compute_tensor*> inputs, Tensor* out_result) {
    const Stream recording = make_stream(world_.device);
    Graph graph;
    Tensor taken;
    succeeds(compute_graph_begin(recording, nullptr), "graph_begin");
    succeeds(run_op("take", recording, inputs, taken.out()), "take in the graph");
    succeeds(run_op("negative", recording, {taken}, out_result->out()), "negative in the graph");
    succeeds(compute_graph_end(recording, graph.out()), "graph_end");
    return graph;
  }

  // Looks at what has no values.
  void expect_fault(compute_tensor* y, compute_stream* stream) {
    ++faults;
    std::vector<float> values(kPicked);
    const auto size_bytes = static_cast<int64_t>(kPicked * sizeof(float));
    Tensor z;
    switch (pick(4)) {
      case 0:
        fails(compute_tensor_read(y, values.data(), size_bytes), "read");
        break;
      case 1:
        fails(compute_tensor_synchronize(y), "tensor_synchronize");
        break;
      case 2: {
        void* data = nullptr;
        int32_t is_copy = 0;
        fails(compute_tensor_map(y, COMPUTE_ACCESS_READ, &data, &is_copy), "map");
        if (data != nullptr) succeeds(compute_tensor_unmap(y, data), "unmap");
        break;
      }
      case 3:
        if (compute_error* error = run_op("negative", stream, {y}, z.out())) {
          fails(error, "op on what failed");
        } else {
          fails(compute_tensor_read(z, values.data(), size_bytes), "read of what depends on it");
        }
        break;
    }
    if (coin()) {
      values.assign(kPicked, 3.0f);
      succeeds(compute_tensor_write(y, values.data(), size_bytes), "write of what failed");
      holds(y, values, "what failed, overwritten");
    }
  }

  // ---- Rounds -------------------------------------------------------------------------------------------------------

  void op() {
    Stream stream = make_stream(world_.device);
    Tensor y;
    if (!succeeds(run_op("negative", stream, {own_}, y.out()), "op")) return;
    if (coin()) succeeds(compute_stream_synchronize(stream), "stream_synchronize");
    if (coin()) stream.reset();
    holds(y, negated(), "op");
  }

  // A chain across streams, some of which are released before their work is done.
  void chain() {
    Tensor x;
    Event event;
    if (!succeeds(run_op("negative", nullptr, {world_.shared}, x.out()), "op on NULL")) return;
    for (size_t i = pick(6) * 2; i > 0; --i) {
      const Stream stream = make_stream(world_.device);
      if (event.get() != nullptr) succeeds(compute_event_wait(event, stream), "event_wait");
      Tensor y;
      if (!succeeds(run_op("negative", stream, {x}, y.out()), "op in the chain")) return;
      if (coin()) succeeds(compute_event_record(stream, nullptr, event.out()), "event_record");
      x = std::move(y);
    }
    holds(x, negated(), "end of the chain");
  }

  void new_graph() {
    choose(false);
    const Tensor indices = make_tensor(world_.device, indices_);
    Tensor y;
    Graph graph = record({world_.shared, indices}, &y);
    for (size_t i = 1 + pick(3); i > 0; --i) {
      const Stream stream = make_stream(world_.device);
      succeeds(compute_graph_run(graph, stream), "graph_run");
      if (coin()) holds(y, picked(-1), "graph");
    }
    if (coin()) graph.reset();
    holds(y, picked(-1), "graph at the end");
  }

  // Runs on a new stream each time, with indices that may be out of range.
  void own_graph() {
    for (size_t i = 1 + pick(3); i > 0; --i) {
      const bool is_bad = pick(3) == 0;
      choose(is_bad);
      if (!succeeds(
              compute_tensor_write(graph_indices_, indices_.data(), static_cast<int64_t>(kPicked * sizeof(int64_t))),
              "write of indices"))
        return;
      const Stream stream = make_stream(world_.device);
      compute_stream* const queue = pick(4) == 0 ? nullptr : stream.get();
      if (compute_error* error = compute_graph_run(graph_, queue)) {
        is_bad ? fails(error, "graph_run") : static_cast<void>(succeeds(error, "graph_run"));
      }
      if (is_bad) {
        expect_fault(graph_result_, stream);
      } else {
        holds(graph_result_, picked(-1), "own graph");
      }
    }
  }

  void take() {
    const bool is_bad = coin();
    choose(is_bad);
    const Tensor indices = make_tensor(world_.device, indices_);
    const Stream stream = make_stream(world_.device);
    compute_stream* const queues[] = {stream, lasting_, nullptr};
    compute_stream* const queue = queues[pick(3)];
    Tensor y = make_full(world_.device, {static_cast<int64_t>(kPicked)}, 0.0f), z;
    compute_tensor* output = y;
    if (compute_error* error = run_op("take", queue, {own_, indices}, &output)) {
      is_bad ? fails(error, "take") : static_cast<void>(succeeds(error, "take"));
    }
    if (!succeeds(run_op("negative", queue, {own_}, z.out()), "op behind take")) return;
    if (is_bad) {
      expect_fault(y, queue);
    } else {
      holds(y, picked(1), "take");
    }
    holds(z, negated(), "op behind take");
  }

  // Left running; the result before it is looked at.
  void slow() {
    const Stream stream = make_stream(world_.device);
    Tensor y;
    if (!succeeds(run_op("matmul", stream, {world_.matrix, world_.matrix}, y.out()), "matmul")) return;
    if (product_.get() != nullptr) holds(product_, world_.product, "matmul");
    product_ = std::move(y);
  }

  // Several faults and good work in one queue, looked at afterwards.
  void in_a_queue() {
    struct Step {
      bool is_bad;
      std::vector<float> expected;
      Tensor y;
    };
    std::vector<Step> steps;
    for (size_t i = 2 + pick(4); i > 0; --i) {
      Step& step = steps.emplace_back();
      step.is_bad = pick(3) == 0;
      choose(step.is_bad);
      if (!step.is_bad) step.expected = picked(1);
      const Tensor indices = make_tensor(world_.device, indices_);
      succeeds(run_op("take", lasting_, {world_.shared, indices}, step.y.out()), "take in the queue");
    }
    for (const Step& step : steps) {
      if (step.is_bad) {
        expect_fault(step.y, lasting_);
      } else {
        holds(step.y, step.expected, "take in the queue");
      }
    }
  }

  void untouched() {
    holds(own_, world_.values, "own tensor");
    holds(world_.shared, world_.values, "shared tensor");
    holds(make_tensor(world_.device, world_.values), world_.values, "from_host");
  }

  const World& world_;
  std::mt19937_64 random_;
  const char* round_ = "";
  Tensor own_;
  Stream lasting_;
  std::vector<int64_t> indices_;
  Tensor graph_indices_, graph_result_;
  Graph graph_;
  Tensor product_;
};

bool parse(int argc, char** argv, Options* options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view flag = argv[i];
    if (flag == "--device") {
      options->device = argv[i + 1];
    } else if (flag == "--seconds") {
      options->seconds = std::atoi(argv[i + 1]);
    } else if (flag == "--threads") {
      options->threads = std::atoi(argv[i + 1]);
    } else if (flag == "--seed") {
      options->seed = static_cast<unsigned>(std::atoi(argv[i + 1]));
    } else {
      return false;
    }
  }
  return argc % 2 == 1 && options->seconds > 0 && options->threads > 0;
}

int run(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, &options)) {
    std::fprintf(stderr, "usage: churn [--device NAME] [--seconds N] [--threads N] [--seed N]\n");
    return 2;
  }
  use_plugins({"minimal"});
  std::array<int64_t, Worker::kNames.size()> rounds = {};
  int64_t faults = 0;
  int32_t health = -1;
  {
    const World world(options.device);
    if (world.device.get() == nullptr) return 1;
    std::vector<std::unique_ptr<Worker>> workers;
    for (int i = 0; i < options.threads; ++i)
      workers.push_back(std::make_unique<Worker>(world, options.seed * 1000 + static_cast<unsigned>(i)));
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(options.seconds);
    std::vector<std::thread> threads;
    for (const auto& worker : workers) threads.emplace_back([&worker, end] { worker->run_until(end); });
    for (std::thread& thread : threads) thread.join();
    for (const auto& worker : workers) {
      for (size_t i = 0; i < rounds.size(); ++i) rounds[i] += worker->rounds[i];
      faults += worker->faults;
    }
    EXPECT_OK(compute_device_health(world.device, &health));
  }
  std::printf("%s, %d threads, seed %u:", options.device.c_str(), options.threads, options.seed);
  for (size_t i = 0; i < rounds.size(); ++i)
    std::printf(" %s %lld,", Worker::kNames[i], static_cast<long long>(rounds[i]));
  std::printf(" faults %lld, wrong %lld\n", static_cast<long long>(faults), static_cast<long long>(wrong.load()));
  const bool ran_all = std::all_of(rounds.begin(), rounds.end(), [](int64_t count) { return count > 0; });
  return ran_all && wrong == 0 && health == COMPUTE_HEALTH_GOOD && !testing::Test::HasFailure() ? 0 : 1;
}

}  // namespace
}  // namespace robustness

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return robustness::run(argc, argv);
}
