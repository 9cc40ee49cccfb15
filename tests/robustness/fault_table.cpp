// SPDX-License-Identifier: Apache-2.0
// Queued work fails, and every way to look at it is tried: all that depends on the failed work must report it, with the
// op's name, and nothing else may. A table of ways, devices and kinds of failure; each cell is run many times, with
// other timing each time.
//
//   fault_table [--device NAME]... [--way NAME] [--kind NAME] [--rounds N] [--between PLUGIN]
//
// With --between (minimal, cpu, opencl or cuda) the test plugin `between` wraps that plugin, and has the other kinds of
// failure, too: submissions that fail, streams that do, and a device that is lost. Without --device: cpu, minimal0 and
// opencl0:0, if they exist. COMPUTE_TEST_ROUNDS replaces --rounds.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include "robustness.hpp"
#include "tests/dlpack/dlpack.hpp"

namespace robustness {
namespace {

// How the op fails: by an index out of range, or as tests/plugins/between does it.
enum class Kind { kIndex = 0, kSubmit = 1, kLater = 2, kLost = 3 };

constexpr const char* name_of(Kind kind) {
  constexpr const char* kNames[] = {"index", "submit", "later", "lost"};
  return kNames[static_cast<int>(kind)];
}

// What those who depend on it get. A submission that fails leaves everything as it was.
constexpr compute_error_code code_of(Kind kind) {
  constexpr compute_error_code kCodes[] = {COMPUTE_ERROR_KERNEL_FAILED, COMPUTE_OK, COMPUTE_ERROR_STREAM_FAILED,
                                           COMPUTE_ERROR_CONTEXT_LOST};
  return kCodes[static_cast<int>(kind)];
}

// The kind by which `between` strikes the next submission; 0 lets it go.
std::atomic<int> armed{0};

constexpr float kBefore = 5;  // the value that the failed op should have overwritten

// ---- The world of one device ----------------------------------------------------------------------------------------

struct World {
  World(Device opened, int64_t extent) : device(std::move(opened)), count(static_cast<size_t>(extent)) {
    const bool is_cpu = std::strcmp(compute_device_name(device), "cpu") == 0;
    elsewhere = robustness::open(is_cpu ? "minimal0" : "cpu");
    for (size_t i = 0; i < count; ++i) {
      as_read.push_back(static_cast<float>(i % 251) + 0.25f);
      in_range.push_back(static_cast<int64_t>(i));
    }
    for (const float value : as_read) negated.push_back(-value);
    values = make_tensor(device, as_read);
    const Stream stream = make_stream(device);
    for (int i = 0; i < 4; ++i) chain.push_back(chained(stream, i, {}));
    DLManagedTensorVersioned* managed = nullptr;
    exports = robustness::code_of(compute_tensor_to_dlpack(values, 1, &managed)) == COMPUTE_OK;
    if (managed != nullptr) managed->deleter(managed);
  }

  Tensor make_indices(bool out_of_range) const {
    std::vector<int64_t> indices = in_range;
    if (out_of_range) indices.back() = static_cast<int64_t>(count);
    return make_tensor(device, indices);
  }

  // Rounding everywhere, so that a torn or lost step shows. Starts from `x`, or from the values.
  Tensor step(compute_stream* stream, int which, compute_tensor* x) const {
    Tensor y, z;
    const float factor = 1.1f + 0.1f * static_cast<float>(which);
    Tensor scalar;
    EXPECT_OK(compute_tensor_scalar(COMPUTE_DTYPE_FLOAT32, &factor, 0, scalar.out()));
    EXPECT_OK(run_op("multiply", stream, {x, scalar}, y.out()));
    EXPECT_OK(run_op("add", stream, {y, values}, z.out()));
    return z;
  }

  // The bits after two steps.
  std::vector<float> chained(compute_stream* stream, int which, Tensor first) const {
    if (first.get() == nullptr) first = step(stream, which, values);
    return read<float>(step(stream, which, first));
  }

  Device device;
  Device elsewhere;
  size_t count;
  std::vector<float> as_read, negated;
  std::vector<int64_t> in_range;
  Tensor values;
  std::vector<std::vector<float>> chain;  // the expected results of independent work
  bool exports = false;                   // whether the device hands memory out by DLPack
};

// ---- One run --------------------------------------------------------------------------------------------------------

struct Report {
  static Report of(const compute_error* error) {
    if (error == nullptr) return {};
    return {compute_error_get_code(error), compute_error_op(error), compute_error_device(error),
            compute_error_message(error)};
  }
  static Report take(compute_error* error) {
    const Error owner(error);
    return of(error);
  }

  compute_error_code code = COMPUTE_OK;
  std::string op, device, message;
};

// A failed op, and the problems found in how it is reported.
class Case {
 public:
  Case(const World& in_world, Kind kind, uint64_t seed)
      : world(in_world), kind_(kind), random_(seed), bad(make_stream(world.device)) {
    y = make_full(world.device, {static_cast<int64_t>(world.count)}, kBefore);
    // What is still to be written when a submission fails is not known to have values, and loses them.
    if (!fails_later()) succeeds(compute_tensor_synchronize(y), "tensor_synchronize of what is to be overwritten");
    for (int i = 0; i < 2; ++i) {
      beside_.push_back(make_stream(world.device));
      steps_.push_back(world.step(beside_.back(), i, world.values));
      spare_.push_back(make_stream(world.device));
    }
  }

  const Device& device() const { return world.device; }
  bool fails_later() const { return kind_ != Kind::kSubmit; }
  bool fails_in_the_kernel() const { return kind_ == Kind::kIndex; }
  bool loses_the_device() const { return kind_ == Kind::kLost; }
  size_t count() const { return world.count; }
  int64_t size_bytes() const { return static_cast<int64_t>(count() * sizeof(float)); }
  const std::string& wrong() const { return wrong_; }

  // Work on the stream before what fails: of another length each time.
  void work_ahead() {
    for (uint64_t i = random_() % 4; i > 0; --i) {
      ahead_.emplace_back();
      succeeds(run_op("negative", bad, {world.values}, ahead_.back().out()), "op ahead");
    }
  }

  // Queues the op that fails, with `y` for its output. Now and then it has failed before anybody looks.
  void fault() {
    work_ahead();
    const Tensor indices = world.make_indices(fails_in_the_kernel());
    compute_tensor* output = y;
    strikes([&] { return run_op("take", bad, {world.values, indices}, &output); }, "take");
  }

  // The call that queues what fails.
  template <class F>
  void strikes(const F& call, const char* what) {
    armed = static_cast<int>(kind_);
    is_struck_ = true;
    const Report report = Report::take(call());
    // A graph may be several submissions; the second one then finds a lost device.
    if (report.code != (fails_later() ? COMPUTE_OK : COMPUTE_ERROR_INTERNAL) && !is_excused(report))
      complain(what, report);
    if (armed.exchange(0) != 0 && !fails_in_the_kernel()) complain("nothing was struck", report);
    if (const uint64_t which = random_() % 4; which > 1)
      std::this_thread::sleep_for(std::chrono::microseconds(which == 2 ? 30 : 500));
  }

  // A stream that nothing was queued on. A device that may be lost makes no more of them.
  Stream another_stream() {
    if (!loses_the_device()) return make_stream(device());
    Stream stream = std::move(spare_.back());
    spare_.pop_back();
    return stream;
  }

  // Gives `y` values.
  void heal() { succeeds(compute_tensor_write(y, world.as_read.data(), size_bytes()), "write of what failed"); }

  // The call reports the failure.
  void fails(const Report& report, const char* what) {
    // Of a stream that fails later it is known in which submissions: the message names the first and the last. A graph
    // is one.
    const bool names_it =
        report.op == "take" || (!fails_in_the_kernel() &&
                                (report.op == "graph" || report.message.find(" submissions, ") != std::string::npos));
    is_named_ = is_named_ || names_it;
    if (loses_the_device() && report.code == COMPUTE_ERROR_CONTEXT_LOST) return;
    const bool is_told = names_it && report.device == compute_device_name(device());
    if (report.code == code_of(kind_) && (is_told || !fails_later())) return;
    complain(what, report);
  }
  void fails(compute_error* error, const char* what) { fails(Report::take(error), what); }
  // The same for work that failed with it, by another op.
  void is_lost(compute_error* error, const char* what) {
    const Report report = Report::take(error);
    if (report.code != code_of(kind_)) complain(what, report);
  }
  // What needs a device that is lost may say so from the moment on when it is.
  bool is_excused(const Report& report) const {
    return loses_the_device() && is_struck_ && report.code == COMPUTE_ERROR_CONTEXT_LOST;
  }
  void succeeds(compute_error* error, const char* what) {
    if (error == nullptr) return;
    const Report report = Report::take(error);
    if (!is_excused(report)) complain(what, report);
  }
  // Whether the call queued its work. If not, it has reported the failure.
  bool queues(compute_error* error, const char* what) {
    if (error == nullptr) return true;
    fails(error, what);
    return false;
  }
  void holds(compute_tensor* tensor, const std::vector<float>& expected, const char* what) {
    if (tensor == nullptr && loses_the_device() && is_struck_) return;  // nor was it made
    std::vector<float> values(expected.size());
    const Report report = Report::take(compute_tensor_read(tensor, values.data(), size_bytes()));
    if (report.code != COMPUTE_OK) {
      if (!is_excused(report)) complain(what, report);
    } else if (std::memcmp(values.data(), expected.data(), values.size() * sizeof(float)) != 0) {
      wrong_ += std::string("  ") + what + ": other values\n";
    }
  }
  // Asks until it has ended.
  template <class F>
  compute_error* ends(const F& ask) {
    for (int32_t has_ended = 0;;) {
      if (compute_error* error = ask(&has_ended)) return error;
      if (has_ended != 0) return nullptr;
      std::this_thread::yield();
    }
  }

  // What holds after every way to look: the failure stays where it was, and nowhere else.
  void finish() {
    std::vector<float> values(count());
    if (bad.get() != nullptr) finish_stream();
    for (const Tensor& tensor : ahead_) {
      if (fails_in_the_kernel() || !fails_later()) holds(tensor, world.negated, "op ahead of what failed");
    }
    for (int i = 0; i < 2; ++i) {
      const Tensor end = world.step(beside_[static_cast<size_t>(i)], i, steps_[static_cast<size_t>(i)]);
      holds(end, world.chain[static_cast<size_t>(i)], "work beside");
      succeeds(compute_stream_synchronize(beside_[static_cast<size_t>(i)]), "synchronize of work beside");
    }
    holds(world.values, world.as_read, "what the failed op read");
    const Stream fresh = make_stream(device());
    Tensor z;
    succeeds(run_op("negative", fresh, {world.values}, z.out()), "op on a new stream");
    holds(z, world.negated, "op on a new stream");
    succeeds(compute_stream_synchronize(fresh), "synchronize of a new stream");
    holds(make_tensor(device(), world.as_read), world.as_read, "from_host");
    if (y.get() != nullptr) {
      fails(compute_tensor_read(y, values.data(), size_bytes()), "read afterwards");
      heal();
      holds(y, world.as_read, "what failed, overwritten");
    }
    int32_t health = -1;
    succeeds(compute_device_health(device(), &health), "health");
    if (health != COMPUTE_HEALTH_GOOD) wrong_ += "  health is " + std::to_string(health) + "\n";
    succeeds(compute_device_synchronize(device()), "device_synchronize when the failure is known");
  }

  // A fault in data is reported at most once, and the stream continues. A failed stream reports it each time.
  void finish_stream() {
    const Report report = Report::take(compute_stream_synchronize(bad));
    if (!fails_in_the_kernel()) return fails(report, "synchronize afterwards");
    if (report.code != COMPUTE_OK) fails(report, "synchronize afterwards");
    succeeds(compute_stream_synchronize(bad), "second synchronize afterwards");
    Tensor z;
    succeeds(run_op("negative", bad, {world.values}, z.out()), "op on the stream afterwards");
    holds(z, world.negated, "op on the stream afterwards");
    succeeds(compute_stream_synchronize(bad), "synchronize after another op");
  }

  // Everything on the device says that it is lost, whatever it has to do with the failed work; the other device goes
  // on.
  void finish_lost(bool must_be_named) {
    std::vector<float> values(count());
    const int64_t shape[] = {static_cast<int64_t>(count())};
    if (bad.get() != nullptr) fails(compute_stream_synchronize(bad), "synchronize afterwards");
    if (!is_named_ && must_be_named) wrong_ += "  nobody was told which op it was\n";
    for (const Tensor& tensor : ahead_) holds(tensor, world.negated, "op ahead of what failed");
    for (size_t i = 0; i < 2; ++i) {
      Tensor z;
      succeeds(run_op("negative", beside_[i], {steps_[i]}, z.out()), "work beside");
      succeeds(compute_stream_synchronize(beside_[i]), "synchronize of work beside");
    }
    if (y.get() != nullptr) is_lost(compute_tensor_read(y, values.data(), size_bytes()), "read afterwards");
    holds(world.values, world.as_read, "what the failed op read");  // the host's memory stays
    Tensor z;
    Stream fresh;
    is_lost(compute_stream_create(device(), nullptr, fresh.out()), "stream_create");
    is_lost(run_op("negative", nullptr, {world.values}, z.out()), "op on the default stream");
    is_lost(compute_tensor_from_host(device(), COMPUTE_DTYPE_FLOAT32, 1, shape, world.as_read.data(), z.out()),
            "from_host");
    is_lost(compute_device_synchronize(device()), "device_synchronize");
    int32_t health = -1;
    succeeds(compute_device_health(device(), &health), "health");
    if (health != COMPUTE_HEALTH_CONTEXT_LOST) wrong_ += "  health is " + std::to_string(health) + "\n";
    z = make_tensor(world.elsewhere, world.as_read);
    Tensor there;
    if (compute_error* error = run_op("negative", nullptr, {z}, there.out()))
      complain("op on the other device", Report::take(error));
    if (there.get() == nullptr || read<float>(there) != world.negated) wrong_ += "  the other device: other values\n";
  }

 private:
  void complain(const char* what, const Report& report) {
    wrong_ += std::string("  ") + what + ": " + compute_error_code_name(report.code) + ", op \"" + report.op + "\", " +
              report.message + "\n";
  }

 public:
  const World& world;

 private:
  Kind kind_;
  std::mt19937_64 random_;
  std::vector<Stream> beside_, spare_;
  bool is_struck_ = false;
  bool is_named_ = false;  // a report named the op that failed
  std::vector<Tensor> steps_, ahead_;
  std::string wrong_;

 public:
  Stream bad;  // the stream whose work fails
  Tensor y;    // the output of the failed work
};

// ---- Ways to look ---------------------------------------------------------------------------------------------------

void tensor_read(Case& c) {
  std::vector<float> values(c.count());
  c.fails(compute_tensor_read(c.y, values.data(), c.size_bytes()), "read");
  if (!c.fails_later()) c.holds(c.y, std::vector<float>(c.count(), kBefore), "what was not overwritten");
}

// The copying stream is not the one that failed: it reports the failure once and continues.
void tensor_read_async(Case& c) {
  std::vector<float> values(c.count());
  const Stream other = c.another_stream();
  if (!c.queues(compute_tensor_read_async(c.y, values.data(), c.size_bytes(), other), "read_async")) return;
  c.fails(compute_stream_synchronize(other), "synchronize of the copying stream");
  c.succeeds(compute_stream_synchronize(other), "second synchronize of the copying stream");
}

void tensor_read_async_same_stream(Case& c) {
  std::vector<float> values(c.count());
  if (!c.queues(compute_tensor_read_async(c.y, values.data(), c.size_bytes(), c.bad), "read_async")) return;
  c.fails(compute_stream_synchronize(c.bad), "synchronize");
}

void tensor_map(Case& c) {
  void* data = nullptr;
  int32_t is_copy = 0;
  c.fails(compute_tensor_map(c.y, COMPUTE_ACCESS_READ, &data, &is_copy), "map");
  if (data != nullptr) c.succeeds(compute_tensor_unmap(c.y, data), "unmap");
}

void tensor_synchronize(Case& c) { c.fails(compute_tensor_synchronize(c.y), "tensor_synchronize"); }

void tensor_view(Case& c) {
  const int64_t stop = 5;
  Tensor view;
  c.succeeds(compute_tensor_slice(c.y, 1, nullptr, &stop, nullptr, view.out()), "slice");
  float values[5];
  c.fails(compute_tensor_read(view, values, sizeof values), "read of a view");
}

void tensor_read_element(Case& c) {
  const int64_t index = 3;
  float value = 0;
  c.fails(compute_tensor_read_element(c.y, 1, &index, &value, sizeof value), "read_element");
}

void stream_synchronize(Case& c) { c.fails(compute_stream_synchronize(c.bad), "synchronize"); }

void stream_wait_for(Case& c) {
  c.fails(c.ends([&](int32_t* reached) { return compute_stream_wait_for(c.bad, 100'000, reached); }), "wait_for");
}

void stream_query(Case& c) {
  c.fails(c.ends([&](int32_t* finished) { return compute_stream_query(c.bad, finished); }), "query");
}

void stream_notify(Case& c) {
  struct Notice {
    std::atomic<bool> has_come{false};
    Report report;
  };
  Notice notice;
  const auto callback = [](const compute_error* error, void* user_data) {
    auto& notice = *static_cast<Notice*>(user_data);
    notice.report = Report::of(error);
    notice.has_come = true;
  };
  if (!c.queues(compute_stream_notify(c.bad, callback, &notice), "notify")) return;
  while (!notice.has_come) std::this_thread::sleep_for(std::chrono::microseconds(20));
  c.fails(notice.report, "notification");
}

void device_synchronize(Case& c) {
  c.fails(compute_device_synchronize(c.device()), "device_synchronize");
  c.succeeds(compute_device_synchronize(c.device()), "second device_synchronize");
}

void event_synchronize(Case& c) {
  Event event;
  if (!c.queues(compute_event_record(c.bad, nullptr, event.out()), "event_record")) return;
  c.fails(compute_event_synchronize(event), "event_synchronize");
}

void event_query(Case& c) {
  Event event;
  if (!c.queues(compute_event_record(c.bad, nullptr, event.out()), "event_record")) return;
  c.fails(c.ends([&](int32_t* finished) { return compute_event_query(event, finished); }), "event_query");
}

// Work after the failed work is unaffected if values are tracked.
void event_wait(Case& c) {
  const Stream other = c.another_stream();
  Event event;
  Tensor z;
  if (!c.queues(compute_event_record(c.bad, nullptr, event.out()), "event_record")) return;
  if (!c.queues(compute_event_wait(event, other), "event_wait")) return;
  c.succeeds(run_op("negative", other, {c.world.values}, z.out()), "op behind the event");
  c.holds(z, c.world.negated, "op behind the event");
  c.succeeds(compute_stream_synchronize(other), "synchronize of the waiting stream");
}

// Nor where the program orders the work itself.
void event_wait_untracked(Case& c) {
  compute_stream_options options = {};
  options.struct_size = sizeof options;
  options.struct_type = COMPUTE_STRUCT_STREAM_OPTIONS;
  options.flags = COMPUTE_STREAM_UNTRACKED;
  Stream other;
  c.succeeds(compute_stream_create(c.device(), &options, other.out()), "stream_create");
  if (other.get() == nullptr) return;
  Event event;
  Tensor z, apart;
  std::vector<float> values(c.count());
  if (!c.queues(compute_event_record(c.bad, nullptr, event.out()), "event_record")) return;
  if (!c.queues(compute_event_wait(event, other), "event_wait")) return;
  c.succeeds(run_op("negative", other, {c.world.values}, apart.out()), "op behind the event");
  if (c.queues(run_op("negative", other, {c.y}, z.out()), "op on what failed")) {
    c.fails(compute_tensor_read(z, values.data(), c.size_bytes()), "read of what depends on it");
    c.fails(compute_stream_synchronize(other), "synchronize of the waiting stream");
    c.succeeds(compute_stream_synchronize(other), "second synchronize of the waiting stream");
  }
  c.holds(apart, c.world.negated, "op behind the event");
}

// Events order more than two streams.
void event_wait_untracked_twice(Case& c) {
  compute_stream_options options = {};
  options.struct_size = sizeof options;
  options.struct_type = COMPUTE_STRUCT_STREAM_OPTIONS;
  options.flags = COMPUTE_STREAM_UNTRACKED;
  Stream other, third;
  c.succeeds(compute_stream_create(c.device(), &options, other.out()), "stream_create");
  c.succeeds(compute_stream_create(c.device(), &options, third.out()), "stream_create");
  if (other.get() == nullptr || third.get() == nullptr) return;
  Event first, second;
  Tensor z;
  std::vector<float> values(c.count());
  if (!c.queues(compute_event_record(c.bad, nullptr, first.out()), "event_record")) return;
  if (!c.queues(compute_event_wait(first, other), "event_wait")) return;
  c.succeeds(compute_event_record(other, nullptr, second.out()), "event_record on the second stream");
  c.succeeds(compute_event_wait(second, third), "event_wait on the third stream");
  if (!c.queues(run_op("negative", third, {c.y}, z.out()), "op on what failed")) return;
  c.fails(compute_tensor_read(z, values.data(), c.size_bytes()), "read of what depends on it");
}

// A dependant on another stream, and one of that.
void next_op(Case& c) {
  const Stream other = c.another_stream(), third = c.another_stream();
  Tensor z, w;
  std::vector<float> values(c.count());
  if (!c.queues(run_op("negative", other, {c.y}, z.out()), "op on what failed")) {
    c.succeeds(compute_stream_synchronize(other), "synchronize of a stream with nothing queued");
    return;
  }
  if (c.queues(run_op("negative", third, {z}, w.out()), "op on what depends on it")) {
    c.fails(compute_tensor_read(w, values.data(), c.size_bytes()), "read of what depends on that");
    c.fails(compute_stream_synchronize(third), "synchronize of the third stream");
    c.succeeds(compute_stream_synchronize(third), "second synchronize of the third stream");
  }
  c.fails(compute_tensor_read(z, values.data(), c.size_bytes()), "read of what depends on it");
  c.fails(compute_stream_synchronize(other), "synchronize of the other stream");
  c.succeeds(compute_stream_synchronize(other), "second synchronize of the other stream");
  c.succeeds(run_op("negative", other, {c.world.values}, z.out()), "the other stream goes on");
  c.holds(z, c.world.negated, "the other stream goes on");
}

// What was queued behind a checked fault has values where it does not depend on it; behind a stream that failed nothing
// has.
void next_op_same_stream(Case& c) {
  Tensor z, apart;
  std::vector<float> values(c.count());
  const bool is_queued = c.queues(run_op("negative", c.bad, {c.world.values}, apart.out()), "op beside what failed");
  if (c.queues(run_op("negative", c.bad, {c.y}, z.out()), "op on what failed")) {
    c.fails(compute_tensor_read(z, values.data(), c.size_bytes()), "read of what depends on it");
  }
  if (is_queued && (c.fails_in_the_kernel() || !c.fails_later()))
    c.holds(apart, c.world.negated, "op beside what failed");
  if (is_queued && c.fails_later() && !c.fails_in_the_kernel())
    c.is_lost(compute_tensor_synchronize(apart), "op behind what failed");
}

void next_op_default_stream(Case& c) {
  Tensor z;
  std::vector<float> values(c.count());
  if (!c.queues(run_op("negative", nullptr, {c.y}, z.out()), "op on what failed")) return;
  c.fails(compute_tensor_read(z, values.data(), c.size_bytes()), "read of what depends on it");
}

void to_device(Case& c) {
  Tensor z;
  std::vector<float> values(c.count());
  if (!c.queues(compute_tensor_to_device(c.y, c.world.elsewhere, z.out()), "to_device")) return;
  c.fails(compute_tensor_read(z, values.data(), c.size_bytes()), "read on the other device");
}

void dlpack_export(Case& c) {
  DLManagedTensorVersioned* managed = nullptr;
  c.fails(compute_tensor_to_dlpack(c.y, 1, &managed), "to_dlpack");
  if (managed != nullptr) managed->deleter(managed);
}

void graph_input(Case& c) {
  const Stream recording = make_stream(c.device()), other = c.another_stream();
  Tensor z;
  Graph graph;
  std::vector<float> values(c.count());
  c.succeeds(compute_graph_begin(recording, nullptr), "graph_begin");
  c.succeeds(run_op("negative", recording, {c.y}, z.out()), "op in the graph");
  c.succeeds(compute_graph_end(recording, graph.out()), "graph_end");
  c.succeeds(compute_graph_run(graph, recording), "first run");
  c.succeeds(compute_stream_synchronize(recording), "first run");
  c.fault();
  const bool is_queued = c.queues(compute_graph_run(graph, other), "graph_run on what failed");
  if (is_queued) c.fails(compute_tensor_read(z, values.data(), c.size_bytes()), "read of the graph's output");
  c.heal();
  c.y.reset();
  if (c.loses_the_device()) return;
  const Stream fresh = c.another_stream();
  c.succeeds(compute_graph_run(graph, fresh), "run on a new stream");
  c.holds(z, c.world.negated, "the graph's output afterwards");
}

void graph_inside(Case& c) {
  const Stream recording = make_stream(c.device());
  Tensor indices = c.world.make_indices(c.fails_in_the_kernel()), picked, z;
  Graph graph;
  std::vector<float> values(c.count());
  c.succeeds(compute_graph_begin(recording, nullptr), "graph_begin");
  c.succeeds(run_op("take", recording, {c.world.values, indices}, picked.out()), "take in the graph");
  c.succeeds(run_op("negative", recording, {picked}, z.out()), "op in the graph");
  c.succeeds(compute_graph_end(recording, graph.out()), "graph_end");
  c.work_ahead();
  c.strikes([&] { return compute_graph_run(graph, c.bad); }, "graph_run");
  if (!c.fails_later()) c.succeeds(compute_graph_run(graph, c.bad), "graph_run again");
  c.fails(compute_tensor_read(z, values.data(), c.size_bytes()), "read of the graph's output");
  c.fails(compute_tensor_read(picked, values.data(), c.size_bytes()), "read of the op's output");
  c.fails(compute_stream_synchronize(c.bad), "synchronize");
  c.succeeds(compute_tensor_write(indices, c.world.in_range.data(), static_cast<int64_t>(c.count() * sizeof(int64_t))),
             "write");
  const Stream fresh = c.another_stream();
  c.succeeds(compute_graph_run(graph, fresh), "run on a new stream");
  c.holds(z, c.world.negated, "the graph's output afterwards");
  c.y.reset();
}

void released(Case& c) {
  c.y.reset();
  c.bad.reset();
  c.fails(compute_device_synchronize(c.device()), "device_synchronize after the release");
  c.succeeds(compute_device_synchronize(c.device()), "second device_synchronize");
}

void released_stream(Case& c) {
  c.bad.reset();
  tensor_read(c);
}

void released_tensor(Case& c) {
  c.y.reset();
  stream_synchronize(c);
}

// Overwriting all of it gives it values, by whatever comes first to it.
void overwritten_by_op(Case& c) {
  const Stream other = c.another_stream();
  compute_tensor* y = c.y;
  c.succeeds(run_op("negative", other, {c.world.values}, &y), "op that overwrites");
  c.holds(c.y, c.world.negated, "what was overwritten");
  c.succeeds(compute_stream_synchronize(other), "synchronize of the overwriting stream");
  c.y.reset();
  c.fails(compute_stream_synchronize(c.bad), "synchronize");
}

void overwritten_by_write(Case& c) {
  c.heal();
  c.y.reset();
  c.fails(compute_stream_synchronize(c.bad), "synchronize");
}

void overwritten_in_part(Case& c) {
  const int64_t stop = 5;
  const float part[5] = {};
  Tensor view;
  c.succeeds(compute_tensor_slice(c.y, 1, nullptr, &stop, nullptr, view.out()), "slice");
  if (!c.queues(compute_tensor_write(view, part, sizeof part), "write of a part")) return;
  if (c.fails_later()) tensor_read(c);
}

// What failed work only read is as it was.
void its_input(Case& c) {
  c.holds(c.world.values, c.world.as_read, "what the failed op read");
  c.fails(compute_tensor_synchronize(c.y), "tensor_synchronize");
}

struct Way {
  const char* name;
  void (*look)(Case&);
  bool queues_the_fault = false;
  // Queries the stream itself, which knows what it lost with its device. Calls that a lost device refuses report only
  // that.
  bool asks_the_stream = false;
};

constexpr Way kWays[] = {
    {"read", tensor_read},
    {"read_async", tensor_read_async},
    {"read_async_same_stream", tensor_read_async_same_stream},
    {"map", tensor_map},
    {"tensor_synchronize", tensor_synchronize, false, true},
    {"view", tensor_view},
    {"read_element", tensor_read_element},
    {"stream_synchronize", stream_synchronize, false, true},
    {"wait_for", stream_wait_for, false, true},
    {"query", stream_query, false, true},
    {"notify", stream_notify, false, true},
    {"device_synchronize", device_synchronize},
    {"event_synchronize", event_synchronize, false, true},
    {"event_query", event_query, false, true},
    {"event_wait", event_wait},
    {"event_wait_untracked", event_wait_untracked},
    {"event_wait_untracked_twice", event_wait_untracked_twice},
    {"next_op", next_op},
    {"next_op_same_stream", next_op_same_stream},
    {"next_op_default_stream", next_op_default_stream},
    {"to_device", to_device},
    {"dlpack", dlpack_export},
    {"graph_input", graph_input, true},
    {"graph_inside", graph_inside, true},
    {"released", released},
    {"released_stream", released_stream},
    {"released_tensor", released_tensor, false, true},
    {"overwritten_by_op", overwritten_by_op},
    {"overwritten_by_write", overwritten_by_write},
    {"overwritten_in_part", overwritten_in_part},
    {"its_input", its_input, false, true},
};

// ---- Who sees a fault in data ---------------------------------------------------------------------------------------

// What produces results without values: an op or a graph with an index out of range, on a created stream or on NULL.
struct Origin {
  const char* name;
  bool is_graph;
  bool is_default;
};
constexpr Origin kOrigins[] = {
    {"op", false, false}, {"op on NULL", false, true}, {"graph", true, false}, {"graph on NULL", true, true}};

// Uses `x` on `stream`, and reads what comes of it.
using Look = compute_error* (*)(const World& world, compute_stream* stream, compute_tensor* x,
                                std::vector<float>* out_values);

compute_error* read_into(compute_tensor* tensor, std::vector<float>* out_values) {
  return compute_tensor_read(tensor, out_values->data(), static_cast<int64_t>(out_values->size() * sizeof(float)));
}

compute_error* look_by_read(const World&, compute_stream*, compute_tensor* x, std::vector<float>* out_values) {
  return read_into(x, out_values);
}

compute_error* look_by_map(const World&, compute_stream*, compute_tensor* x, std::vector<float>* out_values) {
  void* data = nullptr;
  int32_t is_copy = 0;
  if (compute_error* error = compute_tensor_map(x, COMPUTE_ACCESS_READ, &data, &is_copy)) return error;
  std::memcpy(out_values->data(), data, out_values->size() * sizeof(float));
  return compute_tensor_unmap(x, data);
}

compute_error* look_by_synchronize(const World&, compute_stream*, compute_tensor* x, std::vector<float>* out_values) {
  if (compute_error* error = compute_tensor_synchronize(x)) return error;
  return read_into(x, out_values);
}

compute_error* look_by_op(const World&, compute_stream* stream, compute_tensor* x, std::vector<float>* out_values) {
  Tensor z, w;
  if (compute_error* error = run_op("negative", stream, {x}, z.out())) return error;
  if (compute_error* error = run_op("negative", stream, {z}, w.out())) return error;
  return read_into(w, out_values);
}

compute_error* look_by_graph(const World& world, compute_stream* stream, compute_tensor* x,
                             std::vector<float>* out_values) {
  const Stream recording = make_stream(world.device);
  Graph graph;
  Tensor z, w;
  if (compute_error* error = compute_graph_begin(recording, nullptr)) return error;
  if (compute_error* error = run_op("negative", recording, {x}, z.out())) return error;
  if (compute_error* error = run_op("negative", recording, {z}, w.out())) return error;
  if (compute_error* error = compute_graph_end(recording, graph.out())) return error;
  if (compute_error* error = compute_graph_run(graph, stream)) return error;
  return read_into(w, out_values);
}

compute_error* look_by_partial_write(const World& world, compute_stream*, compute_tensor* x,
                                     std::vector<float>* out_values) {
  const int64_t stop = 5;
  Tensor view;
  if (compute_error* error = compute_tensor_slice(x, 1, nullptr, &stop, nullptr, view.out())) return error;
  if (compute_error* error = compute_tensor_write(view, world.as_read.data(), stop * 4)) return error;
  return read_into(x, out_values);
}

compute_error* look_by_move(const World& world, compute_stream*, compute_tensor* x, std::vector<float>* out_values) {
  Tensor there;
  if (compute_error* error = compute_tensor_to_device(x, world.elsewhere, there.out())) return error;
  return read_into(there, out_values);
}

compute_error* look_by_overwriting(const World& world, compute_stream*, compute_tensor* x,
                                   std::vector<float>* out_values) {
  if (compute_error* error =
          compute_tensor_write(x, world.as_read.data(), static_cast<int64_t>(world.count * sizeof(float))))
    return error;
  return read_into(x, out_values);
}

compute_error* look_by_from_host(const World& world, compute_stream*, compute_tensor*, std::vector<float>* out_values) {
  const auto count = static_cast<int64_t>(world.count);
  Tensor z;
  if (compute_error* error =
          compute_tensor_from_host(world.device, COMPUTE_DTYPE_FLOAT32, 1, &count, world.as_read.data(), z.out()))
    return error;
  return read_into(z, out_values);
}

constexpr struct {
  const char* name;
  Look look;
  bool needs_values;  // of `x`
} kLooks[] = {{"read", look_by_read, true},
              {"map", look_by_map, true},
              {"synchronize", look_by_synchronize, true},
              {"op", look_by_op, true},
              {"graph", look_by_graph, true},
              {"partial write", look_by_partial_write, true},
              {"move", look_by_move, true},
              {"overwriting", look_by_overwriting, false},
              {"from_host", look_by_from_host, false}};

// One fault, which `thread` sees or does not see on `which` stream by each look. Returns how many were wrong.
int64_t see_fault(const World& world, const Origin& origin, bool on_another_thread, const char* which,
                  bool is_dependent) {
  int64_t wrong = 0;
  for (const auto& look : kLooks) {
    const Stream created = make_stream(world.device), other = make_stream(world.device);
    compute_stream* const stream = origin.is_default ? nullptr : created.get();
    const std::string place = which;
    compute_stream* const looks_on = place == "its stream" ? stream : place == "NULL" ? nullptr : other.get();
    const Tensor indices = world.make_indices(true), apart = make_tensor(world.device, world.as_read);
    Tensor y = make_full(world.device, {static_cast<int64_t>(world.count)}, kBefore);
    Graph graph;
    Report raised;  // by an immediate stream, directly
    if (origin.is_graph) {
      const Stream recording = make_stream(world.device);
      EXPECT_OK(compute_graph_begin(recording, nullptr));
      EXPECT_OK(run_op("take", recording, {world.values, indices}, y.out()));
      EXPECT_OK(compute_graph_end(recording, graph.out()));
      raised = Report::take(compute_graph_run(graph, stream));
    } else {
      compute_tensor* output = y;
      raised = Report::take(run_op("take", stream, {world.values, indices}, &output));
    }
    std::vector<float> values(world.count);
    Report seen;
    const auto use = [&] {
      seen = Report::take(look.look(world, looks_on, is_dependent ? y.get() : apart.get(), &values));
    };
    if (on_another_thread) {
      std::thread(use).join();
    } else {
      use();
    }
    const bool must_fail = is_dependent && look.needs_values;
    bool is_right = must_fail ? seen.code == COMPUTE_ERROR_KERNEL_FAILED && seen.op == "take"
                              : seen.code == COMPUTE_OK && values == world.as_read;
    is_right = is_right && (raised.code == COMPUTE_OK || raised.code == COMPUTE_ERROR_KERNEL_FAILED);
    // The stream continues.
    Tensor z;
    const Report next = Report::take(run_op("negative", stream, {world.values}, z.out()));
    is_right = is_right && next.code == COMPUTE_OK && read<float>(z) == world.negated;
    if (is_right) continue;
    ++wrong;
    std::printf("  %s of %s result, %s thread, %s: %s, raised %s, next %s\n", look.name,
                is_dependent ? "the" : "another", on_another_thread ? "another" : "the same", which,
                seen.code == COMPUTE_OK ? "succeeded" : seen.message.c_str(), compute_error_code_name(raised.code),
                next.message.c_str());
  }
  return wrong;
}

int64_t see_faults(const World& world) {
  int64_t total = 0;
  for (const Origin& origin : kOrigins) {
    int64_t wrong = 0, runs = 0;
    for (const bool on_another_thread : {false, true}) {
      for (const char* which : {"its stream", "another stream", "NULL"}) {
        for (const bool is_dependent : {true, false}) {
          wrong += see_fault(world, origin, on_another_thread, which, is_dependent);
          runs += static_cast<int64_t>(std::size(kLooks));
        }
      }
    }
    static_cast<void>(Report::take(compute_device_synchronize(world.device)));  // takes unreported failures
    std::printf("%-10s who sees: %-13s index    %6lld runs %6lld wrong\n", compute_device_name(world.device),
                origin.name, static_cast<long long>(runs), static_cast<long long>(wrong));
    total += wrong;
  }
  return total;
}

// ---- The table ------------------------------------------------------------------------------------------------------

struct Options {
  std::vector<std::string> devices;
  std::string way;
  std::string between;
  std::string kind;
  int rounds = kSanitizer ? 3 : 6;
};

// Prints the first failures, and counts all.
int64_t run_cell(const World& world, const Way& way, Kind kind, int first_round, int rounds) {
  int64_t wrong = 0;
  for (int round = first_round; round < first_round + rounds; ++round) {
    Case run(world, kind, static_cast<uint64_t>(round));
    if (!way.queues_the_fault) run.fault();
    way.look(run);
    run.finish();
    if (run.wrong().empty()) continue;
    if (++wrong <= 2) std::printf("round %d:\n%s", round, run.wrong().c_str());
  }
  return wrong;
}

// A device is lost for good, and `cpu` cannot be opened again: so there each run is a separate process; otherwise a few
// runs share one.
int64_t run_lost_cell(const std::string& name, const Way& way, int rounds) {
  const int in_one_process = name == "cpu" ? 1 : 50;
  int64_t wrong = 0;
  for (int first = 0; first < rounds; first += in_one_process) {
    const Outcome outcome = run_in_child([&] {
      for (int round = first; round < std::min(rounds, first + in_one_process); ++round) {
        Device device;
        ASSERT_OK(compute_device_open(name.c_str(), device.out()));
        const World world(std::move(device), round % 2 == 0 ? 257 : 5000);
        if (way.look == dlpack_export && !world.exports) break;
        Case run(world, Kind::kLost, static_cast<uint64_t>(round));
        if (!way.queues_the_fault) run.fault();
        way.look(run);
        run.finish_lost(way.asks_the_stream);
        if (!run.wrong().empty()) ADD_FAILURE() << "round " << round << ":\n" << run.wrong();
      }
      int32_t drained = -1;
      EXPECT_OK(compute_shutdown(COMPUTE_TIMEOUT_NONE, &drained));
      EXPECT_EQ(drained, 1);
    });
    if (outcome.exited(0)) continue;
    if (wrong == 0) std::printf("status %d\n%s", outcome.status, outcome.output.c_str());
    ++wrong;
  }
  return wrong;
}

// Prints how many processes saw something wrong. Nothing else may have used the library before.
int64_t run_lost(const std::string& name, const Options& options) {
  int64_t total = 0;
  for (const Way& way : kWays) {
    if (!options.way.empty() && options.way != way.name) continue;
    std::printf("%-10s %-24s %-8s ", name.c_str(), way.name, name_of(Kind::kLost));
    std::fflush(stdout);
    const int64_t wrong = run_lost_cell(name, way, options.rounds);
    std::printf("%6d runs %6lld wrong\n", options.rounds, static_cast<long long>(wrong));
    total += wrong;
  }
  return total;
}

// Returns how many runs were wrong. Extents: one is done immediately, one takes a while.
int64_t run_device(Device device, const Options& options) {
  const std::string name = compute_device_name(device);
  compute_device_retain(device);
  const World small(Device(device.get()), 257), large(std::move(device), 5000);
  std::vector<Kind> kinds = {Kind::kIndex};
  if (!options.between.empty()) kinds = {Kind::kIndex, Kind::kSubmit, Kind::kLater};
  int64_t total = options.way.empty() && options.kind.empty() ? see_faults(small) + see_faults(large) : 0;
  for (const Kind kind : kinds) {
    if (!options.kind.empty() && options.kind != name_of(kind)) continue;
    for (const Way& way : kWays) {
      if (!options.way.empty() && options.way != way.name) continue;
      std::printf("%-10s %-24s %-8s ", name.c_str(), way.name, name_of(kind));
      if (way.look == dlpack_export && !small.exports) {
        std::printf("does not export memory\n");
        continue;
      }
      const int half = options.rounds / 2;
      const int64_t wrong = run_cell(small, way, kind, 0, options.rounds - half) +
                            run_cell(large, way, kind, options.rounds - half, half);
      std::printf("%6d runs %6lld wrong\n", options.rounds, static_cast<long long>(wrong));
      std::fflush(stdout);
      total += wrong;
    }
  }
  return total;
}

bool parse(int argc, char** argv, Options* options) {
  if (const char* rounds = std::getenv("COMPUTE_TEST_ROUNDS")) options->rounds = std::atoi(rounds);
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view flag = argv[i];
    if (flag == "--device") options->devices.emplace_back(argv[i + 1]);
    if (flag == "--way") options->way = argv[i + 1];
    if (flag == "--rounds") options->rounds = std::atoi(argv[i + 1]);
    if (flag == "--between") options->between = argv[i + 1];
    if (flag == "--kind") options->kind = argv[i + 1];
    if (flag != "--device" && flag != "--way" && flag != "--rounds" && flag != "--between" && flag != "--kind")
      return false;
  }
  return argc % 2 == 1 && options->rounds > 0;
}

int run(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, &options)) {
    std::fprintf(stderr,
                 "usage: fault_table [--device NAME]... [--way NAME] [--kind NAME] [--rounds N] [--between PLUGIN]\n");
    return 2;
  }
  use_plugins({"minimal"});
  if (!options.between.empty()) put_between(options.between, &armed);
  const bool are_chosen = !options.devices.empty();
  if (!are_chosen) options.devices = {"cpu", "minimal0", "opencl0:0"};
  int64_t wrong = 0;
  for (const std::string& name : options.devices) {
    const bool is_behind = !options.between.empty() && name.starts_with(options.between);
    if (is_behind && (options.kind.empty() || options.kind == name_of(Kind::kLost))) wrong += run_lost(name, options);
  }
  for (const std::string& name : options.devices) {
    Device device;
    const Report report = Report::take(compute_device_open(name.c_str(), device.out()));
    if (report.code != COMPUTE_OK) {
      std::printf("%s: left out: %s\n", name.c_str(), report.message.c_str());
      wrong += are_chosen || name != "opencl0:0";
      continue;
    }
    wrong += run_device(std::move(device), options);
  }
  std::printf("%lld wrong\n", static_cast<long long>(wrong));
  return wrong == 0 && !testing::Test::HasFailure() ? 0 : 1;
}

}  // namespace
}  // namespace robustness

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return robustness::run(argc, argv);
}
