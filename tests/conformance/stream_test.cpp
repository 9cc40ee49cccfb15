// SPDX-License-Identifier: Apache-2.0
// Streams, events and plans: order without events, order by events alone, and what waits report.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <random>
#include <stop_token>
#include <string>
#include <thread>

#include "registry.hpp"

namespace compute::conformance {

namespace {

using oracle::Inputs;

Array filled(Dtype dtype, const Shape& shape, Real value) {
  Array x(dtype, shape);
  for (int64_t i = 0; i < x.size(); ++i) x.set(i, Value::of(value));
  return x;
}

void expect_all(const Session& session, compute_tensor* tensor, Real value, const std::string& what) {
  const Array x = session.download(tensor);
  for (int64_t i = 0; i < x.size(); ++i) {
    if (x.at(i).re == value) continue;
    ADD_FAILURE() << what << ": element " << i << " is " << static_cast<double>(x.at(i).re) << ", not "
                  << static_cast<double>(value);
    return;
  }
}

// x = x + y in place on a stream.
void accumulate(const Session& session, const Operand& x, const Operand& y, compute_stream* stream) {
  const Operand operands[] = {x, y};
  session.run("add", {}, operands, stream, x.tensor);
}

// Many ops in place over several streams: the hazards alone put them in order.
void hazards(const Session& session) {
  const Stream streams[] = {session.stream(), session.stream(), session.stream()};
  const Operand x = session.upload(filled(dtype::FLOAT32, {20000}, 0)),
                one = session.upload(filled(dtype::FLOAT32, {20000}, 1));
  Operand y = session.upload(filled(dtype::FLOAT32, {20000}, 0));
  for (int i = 0; i < 60; ++i) {
    accumulate(session, x, one, streams[i % 3]);
    // Reads of x on another stream come between its writes.
    if (i % 10 == 9) y.tensor = session.run("add", {}, std::vector<Operand>{x, one}, streams[(i + 1) % 3], y.tensor);
  }
  expect_all(session, x.tensor, 60, "sixty additions");
  expect_all(session, y.tensor, 61, "read between them");
}

// Views of one buffer conflict only where they overlap; order holds in any case.
void hazards_of_views(const Session& session) {
  const Stream a = session.stream(), b = session.stream();
  const Operand x = session.upload(filled(dtype::FLOAT32, {2, 5000}, 0)),
                one = session.upload(filled(dtype::FLOAT32, {1, 5000}, 1));
  const Operand rows[] = {sliced(x, {0, 0}, {1, 5000}, {1, 1}), sliced(x, {1, 4999}, {1, 5000}, {1, -1})};
  for (int i = 0; i < 20; ++i) {
    accumulate(session, rows[0], one, a);
    accumulate(session, rows[1], one, b);
  }
  const Operand whole{filled(dtype::FLOAT32, {2, 5000}, 20), x.tensor};
  session.expect("negative", {}, std::span(&whole, 1), bound_of("negative", dtype::FLOAT32), "both rows", a);
}

// One stream: each op reads rows that ops shortly before it wrote, and writes rows that they read.
void dependent_rows(const Session& session) {
  constexpr int64_t kRows = 16, kWidth = 50000;
  const Stream stream = session.stream();
  const Operand x = session.upload(filled(dtype::FLOAT32, {kRows, kWidth}, 0)),
                one = session.upload(filled(dtype::FLOAT32, {1, kWidth}, 1));
  int64_t expected[kRows] = {};
  std::minstd_rand random;
  for (int i = 0; i < 300; ++i) {
    const int64_t height = 1 + random() % 2, from = random() % (kRows - 1), to = random() % (kRows - 1);
    if (std::abs(from - to) < height) continue;
    const auto rows = [&](int64_t first) { return sliced(x, {first, 0}, {height, kWidth}, {1, 1}); };
    const Operand operands[] = {rows(from), one};
    session.run("add", {}, operands, stream, rows(to).tensor);
    for (int64_t row = 0; row < height; ++row) expected[to + row] = expected[from + row] + 1;
  }
  for (int64_t row = 0; row < kRows; ++row)
    expect_all(session, sliced(x, {row, 0}, {1, kWidth}, {1, 1}).tensor, static_cast<Real>(expected[row]),
               "row " + std::to_string(row));
}

void events(const Session& session) {
  const Stream a = session.stream(), b = session.stream();
  const Operand x = session.upload(filled(dtype::FLOAT32, {30000}, 0)),
                one = session.upload(filled(dtype::FLOAT32, {30000}, 1));
  for (int i = 0; i < 20; ++i) accumulate(session, x, one, a);
  Event event;
  check(compute_event_record(a, nullptr, event.out()));
  check(compute_event_wait(event, b));
  accumulate(session, x, one, b);
  check(compute_event_synchronize(event));
  int32_t finished = 0;
  check(compute_event_query(event, &finished));
  EXPECT_EQ(finished, 1);
  check(compute_stream_synchronize(b));
  check(compute_stream_query(b, &finished));
  EXPECT_EQ(finished, 1);
  expect_all(session, x.tensor, 21, "ordered by an event");
  // An event of an idle stream has been reached.
  Event idle;
  check(compute_event_record(session.stream(), nullptr, idle.out()));
  check(compute_event_query(idle, &finished));
  EXPECT_EQ(finished, 1);
}

// Streams without tracking are ordered by the program's events.
void untracked(const Session& session) {
  compute_stream_options options{};
  options.struct_size = sizeof options;
  options.struct_type = COMPUTE_STRUCT_STREAM_OPTIONS;
  options.flags = COMPUTE_STREAM_UNTRACKED;
  Stream a, b;
  check(compute_stream_create(session.device(), &options, a.out()));
  check(compute_stream_create(session.device(), &options, b.out()));
  const Operand x = session.upload(filled(dtype::FLOAT32, {10000}, 0)),
                one = session.upload(filled(dtype::FLOAT32, {10000}, 1));
  check(compute_device_synchronize(session.device()));  // the uploads were queued elsewhere
  for (int i = 0; i < 10; ++i) {
    accumulate(session, x, one, i % 2 ? b : a);
    Event event;
    check(compute_event_record(i % 2 ? b : a, nullptr, event.out()));
    check(compute_event_wait(event, i % 2 ? a : b));
  }
  check(compute_stream_synchronize(a));
  check(compute_stream_synchronize(b));
  expect_all(session, x.tensor, 10, "ordered by events alone");
}

// A report reads times from another thread while ops are queued.
void reports_while_queued(const Session& session) {
  const Stream streams[] = {session.stream(), session.stream()};
  const Operand x = session.upload(filled(dtype::FLOAT32, {20000}, 0)),
                one = session.upload(filled(dtype::FLOAT32, {20000}, 1));
  std::string fault;
  check(compute_profile_start());
  {
    const std::jthread reader([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        compute_text* report = nullptr;
        const Error error(compute_profile_report(COMPUTE_FORMAT_TEXT, &report));
        if (error && fault.empty()) fault = error.message();
        compute_text_free(report);
      }
    });
    for (int i = 0; i < 300; ++i) accumulate(session, x, one, streams[i % 2]);
    expect_all(session, x.tensor, 300, "while reports are made");
  }
  check(compute_profile_stop());
  EXPECT_EQ(fault, "");
}

void waits(const Session& session) {
  const Stream stream = session.stream();
  EXPECT_EQ(compute_stream_device(stream), session.device());
  int32_t reached = -1;
  check(compute_stream_wait_for(stream, 0, &reached));
  EXPECT_EQ(reached, 1) << "nothing was queued";
  const Operand x = session.upload(filled(dtype::FLOAT32, {1000}, 1));
  for (int i = 0; i < 50; ++i) session.run("exp", {}, std::span(&x, 1), stream);
  // A short limit may or may not suffice: neither is an error.
  check(compute_stream_wait_for(stream, 1, &reached));
  EXPECT_TRUE(reached == 0 || reached == 1);
  check(compute_stream_wait_for(stream, COMPUTE_TIMEOUT_NONE, &reached));
  EXPECT_EQ(reached, 1);
  check(compute_device_synchronize(session.device()));
}

struct Notified {
  std::atomic<int> count{0};
  std::atomic<bool> failed{false};
};

void notify(const Session& session) {
  const Stream stream = session.stream();
  const Operand x = session.upload(filled(dtype::FLOAT32, {1000}, 1));
  Notified notified;
  const compute_stream_callback callback = [](const compute_error* error, void* user_data) {
    auto* n = static_cast<Notified*>(user_data);
    if (error) n->failed = true;
    ++n->count;
  };
  for (int i = 0; i < 5; ++i) {
    session.run("exp", {}, std::span(&x, 1), stream);
    check(compute_stream_notify(stream, callback, &notified));
  }
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (notified.count < 5 && std::chrono::steady_clock::now() < limit)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_EQ(notified.count, 5) << "callbacks of finished work did not come within 2 min";
  EXPECT_FALSE(notified.failed);
}

// Work completes although its stream and tensors are released immediately.
void early_release(const Session& session) {
  const Operand x = session.upload(filled(dtype::FLOAT32, {50000}, 0)),
                one = session.upload(filled(dtype::FLOAT32, {50000}, 1));
  {
    const Stream stream = session.stream();
    for (int i = 0; i < 30; ++i) {
      const Operand sum{Array(dtype::FLOAT32, {50000}), session.run("add", {}, std::vector<Operand>{one, one}, stream)};
      accumulate(session, x, sum, stream);
    }
  }
  expect_all(session, x.tensor, 60, "after the release of the stream");
}

void many_submissions(const Session& session) {
  const Stream stream = session.stream();
  const Operand x = session.upload(filled(dtype::FLOAT32, {4}, 0)),
                one = session.upload(filled(dtype::FLOAT32, {4}, 1));
  for (int i = 0; i < 10000; ++i) accumulate(session, x, one, stream);
  expect_all(session, x.tensor, 10000, "ten thousand submissions");
}

// Threads of a program, each on its default stream and on a shared one.
void threads(const Session& session) {
  session.need(dtype::FLOAT32, COMPUTE_DTYPE_LEVEL_ARITHMETIC);
  const Stream shared = session.stream();
  const Operand total = session.upload(filled(dtype::FLOAT32, {777}, 0)),
                one = session.upload(filled(dtype::FLOAT32, {777}, 1));
  std::atomic<int> wrong{0};
  std::vector<std::thread> workers;
  std::mutex in_order;
  for (int t = 0; t < 4; ++t) {
    workers.emplace_back([&, t] {
      try {
        const Operand own = session.upload(filled(dtype::FLOAT32, {777}, t));
        for (int i = 0; i < 50; ++i) {
          accumulate(session, own, one, nullptr);
          accumulate(session, total, one, shared);
        }
        const Array read = session.download(own.tensor);
        for (int64_t i = 0; i < read.size(); ++i) wrong += read.at(i).re != t + 50;
      } catch (const std::exception&) {
        ++wrong;
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(wrong, 0);
  expect_all(session, total.tensor, 200, "four threads on one stream");
}

void plans(const Session& session) {
  Inputs inputs(41);
  const Stream stream = session.stream();
  const auto make = [&] { return session.upload(inputs.uniform(dtype::FLOAT32, {12, 9}, -3, 3)); };
  const compute_op* add = nullptr;
  check(compute_op_find("add", 0, &add));
  const Operand x[] = {make(), make()};
  compute_tensor* operands[] = {x[0].tensor, x[1].tensor};
  compute_tensor* none[] = {nullptr};
  Plan plan;
  check(compute_plan_create(session.device(), add, nullptr, 0, operands, 2, none, 1, plan.out()));
  for (int i = 0; i < 3; ++i) {
    const Operand y[] = {make(), make()};
    compute_tensor* given[] = {y[0].tensor, y[1].tensor};
    compute_tensor* output[] = {nullptr};
    check(compute_plan_run(plan, stream, nullptr, 0, given, 2, output, 1));
    Tensor result;
    *result.out() = output[0];
    session.judge(result, reference("add", {}, y), bound_of("add", dtype::FLOAT32), "plan");
  }
  // Other layouts, shapes and dtypes are other plans.
  const Operand turned = permuted(session.upload(inputs.uniform(dtype::FLOAT32, {9, 12}, -3, 3)), {1, 0});
  const Operand shorter = session.upload(inputs.uniform(dtype::FLOAT32, {12, 8}, -3, 3)),
                other = session.upload(inputs.uniform(dtype::INT32, {12, 9}, -3, 3));
  for (const Operand& y : {turned, shorter, other}) {
    compute_tensor* given[] = {y.tensor, y.tensor};
    compute_tensor* output[] = {nullptr};
    const Error error(compute_plan_run(plan, stream, nullptr, 0, given, 2, output, 1));
    EXPECT_EQ(error.code(), COMPUTE_ERROR_INVALID_ARGUMENT) << error.message();
    EXPECT_EQ(output[0], nullptr);
  }
}

}  // namespace

void add_stream_tests(Registry& registry) {
  registry.add({"stream", "hazards", hazards});
  registry.add({"stream", "hazards_of_views", hazards_of_views});
  registry.add({"stream", "dependent_rows", dependent_rows});
  registry.add({"stream", "events", events});
  registry.add({"stream", "untracked", untracked});
  registry.add({"stream", "reports_while_queued", reports_while_queued});
  registry.add({"stream", "waits", waits});
  registry.add({"stream", "notify", notify});
  registry.add({"stream", "early_release", early_release});
  registry.add({"stream", "many_submissions", many_submissions, Level::FULL});
  registry.add({"stream", "threads", threads});
  registry.add({"stream", "plans", plans});
}

}  // namespace compute::conformance
