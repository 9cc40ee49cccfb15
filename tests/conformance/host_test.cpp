// SPDX-License-Identifier: Apache-2.0
// Host tensors as operands: memory of the program, mirrors on the device, and what counts as a change.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <optional>

#include "registry.hpp"

namespace compute::conformance {

namespace {

using oracle::Inputs;

// Memory of the program, wrapped. The deleter may run after this is gone: it owns its own reference to the count.
struct Wrapped {
  using Count = std::shared_ptr<std::atomic<int>>;
  Operand operand;
  Count deleted = std::make_shared<std::atomic<int>>(0);

  Wrapped(const Array& array, int32_t promise) {
    operand.array = array;
    auto count = std::make_unique<Count>(deleted);
    const auto deleter = [](void*, void* user_data) {
      const std::unique_ptr<Count> owned(static_cast<Count*>(user_data));
      ++**owned;
    };
    check(compute_tensor_wrap_host(array.dtype(), array.rank(), array.shape().data(), array.strides().data(),
                                   const_cast<std::byte*>(array.data()), promise, deleter, count.get(),
                                   operand.tensor.out()));
    static_cast<void>(count.release());
  }
};

bool is_host(const Session& session) {
  Device cpu;
  check(compute_device_open("cpu", cpu.out()));
  return cpu.get() == session.device();
}

void judge_sum(const Session& session, const Operand& host, const Operand& on_device, const std::string& what) {
  const Operand operands[] = {host, on_device};
  session.expect("add", {}, operands, bound_of("add", dtype::FLOAT32), what);
}

// The same for a result on the host.
void expect_on_host(const Session& session, const std::string& op, const Operand* inputs, size_t count,
                    const Bound& bound, const Tensor& output) {
  const std::span<const Operand> operands(inputs, count);
  session.run(op, {}, operands, nullptr, output);
  const oracle::Verdict verdict = oracle::judge(session.download(output), reference(op, {}, operands), bound);
  EXPECT_TRUE(verdict.passed()) << op << ": " << verdict.message;
}

void wrapped_memory(const Session& session) {
  Inputs inputs(31);
  const Operand y = session.upload(inputs.uniform(dtype::FLOAT32, {40, 30}, -4, 4));
  for (int32_t promise : {COMPUTE_WRAP_IMMUTABLE, COMPUTE_WRAP_TRACKED, COMPUTE_WRAP_EXPOSED}) {
    const Array memory = inputs.uniform(dtype::FLOAT32, {40, 30}, -4, 4);
    std::shared_ptr<std::atomic<int>> deleted;
    {
      const Wrapped x(memory, promise);
      deleted = x.deleted;
      judge_sum(session, x.operand, y, "wrapped");
      const Operand turned = permuted(x.operand, {1, 0});
      judge_sum(session, turned, permuted(y, {1, 0}), "a view of wrapped memory");
      judge_sum(session, sliced(x.operand, {39, 1}, {40, 1}, {-1, 1}), y, "a slice of wrapped memory");
      EXPECT_EQ(*deleted, 0);
    }
    check(compute_device_synchronize(session.device()));
    check(compute_device_trim(session.device(), 0));
    EXPECT_EQ(*deleted, 1) << "the deleter runs once, when nothing uses the memory";
  }
}

// The outer wrap keeps the memory: the deleter of an inner wrap is called at once, the outer one's at the end.
void wraps_inside_wraps(const Session& session) {
  const Operand y = session.upload(Inputs(39).uniform(dtype::FLOAT32, {40, 30}, -4, 4));
  const Array memory = Inputs(38).uniform(dtype::FLOAT32, {40, 30}, -4, 4);
  std::shared_ptr<std::atomic<int>> outer_deleted;
  {
    std::optional<Wrapped> outer(std::in_place, memory, COMPUTE_WRAP_EXPOSED);
    outer_deleted = outer->deleted;
    const Wrapped inner(memory, COMPUTE_WRAP_EXPOSED);
    EXPECT_EQ(*inner.deleted, 1);
    outer.reset();
    EXPECT_EQ(*outer_deleted, 0) << "the inner tensor uses the memory";
    judge_sum(session, inner.operand, y, "memory inside wrapped memory");
  }
  check(compute_device_synchronize(session.device()));
  check(compute_device_trim(session.device(), 0));
  EXPECT_EQ(*outer_deleted, 1);
}

// Memory of the program begins at any address, and a tensor in it where its elements may lie.
void memory_at_any_address(const Session& session) {
  constexpr int64_t kBytes = 4096, kCount = 50, kBegin = 3;
  Inputs inputs(40);
  alignas(64) static std::byte memory[kBytes];
  Tensor all;
  const int64_t rest = kBytes - kBegin;
  check(compute_tensor_wrap_host(dtype::UINT8, 1, &rest, nullptr, memory + kBegin, COMPUTE_WRAP_TRACKED, nullptr,
                                 nullptr, all.out()));
  for (const Dtype dtype : tested_dtypes(session.level())) {
    if (oracle::is_bool(dtype) || !session.supports(dtype, COMPUTE_DTYPE_LEVEL_ARITHMETIC)) continue;
    const oracle::DtypeInfo& info = oracle::info(dtype);
    const auto size = static_cast<int64_t>(info.size_bytes);
    const int64_t alignment = oracle::is_complex(info.id) ? size / 2 : size;
    const Array values = inputs.operand("add", 0, 2, info.id, {kCount + 1});
    const auto placed = [&](int64_t offset) {
      check(compute_tensor_touch(all));
      std::memcpy(memory + offset, values.data(), static_cast<size_t>(values.size_bytes()));
      Operand x{values.copy(), {}};
      check(compute_tensor_wrap_host(info.id, 1, values.shape().data(), nullptr, memory + offset, COMPUTE_WRAP_TRACKED,
                                     nullptr, nullptr, x.tensor.out()));
      EXPECT_EQ(compute_tensor_shares_buffer(x.tensor, all), 1);
      return x;
    };
    const Operand y = session.upload(inputs.operand("add", 1, 2, info.id, {kCount}));
    const Bound bound = bound_of("add", info.id);
    const int64_t offset = 64 + alignment;
    const Operand x = placed(offset);
    const Operand tail = sliced(x, {1}, {kCount}, {1});
    const Operand both[] = {tail, y};
    session.expect("add", {}, both, bound, "read");
    // Results are written there.
    const Operand result = placed(2048 + alignment);
    expect_on_host(session, "add", both, 2, bound, sliced(result, {0}, {kCount}, {1}).tensor);
    expect_on_host(session, "copy", &y, 1, {Bound::EXACT, 0}, sliced(result, {1}, {kCount}, {1}).tensor);
    // The addresses of views count, not their offsets in the buffer.
    const int64_t in_buffer = offset + size - kBegin;
    Operand view{tail.array, {}};
    check(compute_tensor_view(x.tensor, info.id, 1, &kCount, nullptr, in_buffer, view.tensor.out()));
    session.expect("add", {}, std::vector<Operand>{view, y}, bound, "a view");
    if (size == 1) continue;
    Tensor none;
    const Error refused(
        compute_tensor_view(x.tensor, info.id, 1, &kCount, nullptr, in_buffer + kBegin - size, none.out()));
    EXPECT_EQ(refused.code(), COMPUTE_ERROR_INVALID_ARGUMENT) << info.name;
    EXPECT_TRUE(refused.mentions("not aligned to " + std::to_string(alignment) + " bytes")) << refused.message();
  }
}

// The program writes its memory: at any time where it is exposed, before a touch where it is tracked.
void changes_are_seen(const Session& session) {
  Inputs inputs(32);
  const Operand y = session.upload(inputs.uniform(dtype::FLOAT32, {500}, -4, 4));
  Array memory = inputs.uniform(dtype::FLOAT32, {500}, -4, 4);
  {
    const Wrapped x(memory, COMPUTE_WRAP_EXPOSED);
    for (int i = 0; i < 3; ++i) {
      memory.set(7 * i, Value::of(Real{100.0L + i}));
      judge_sum(session, {memory, x.operand.tensor}, y, "exposed memory");
    }
  }
  const Wrapped x(memory, COMPUTE_WRAP_TRACKED);
  for (int i = 0; i < 3; ++i) {
    memory.set(5 * i + 1, Value::of(Real{-100.0L - i}));
    check(compute_tensor_touch(x.operand.tensor));
    judge_sum(session, {memory, x.operand.tensor}, y, "tracked memory");
  }
}

// A host tensor that does not change is moved once; one that was written is moved again.
void mirrors(const Session& session) {
  if (is_host(session)) return;
  Inputs inputs(33);
  Device cpu;
  check(compute_device_open("cpu", cpu.out()));
  const Array values = inputs.uniform(dtype::FLOAT32, {1000}, -4, 4);
  Operand host{values.copy(), {}};
  check(compute_tensor_from_host(cpu, dtype::FLOAT32, 1, values.shape().data(), values.data(), host.tensor.out()));
  const Operand y = session.upload(inputs.uniform(dtype::FLOAT32, {1000}, -4, 4));
  judge_sum(session, host, y, "first use");
  const compute_device_statistics first = session.statistics();
  for (int i = 0; i < 10; ++i) judge_sum(session, host, y, "further use");
  const compute_device_statistics further = session.statistics();
  EXPECT_EQ(further.transfers_to_device, first.transfers_to_device) << "an unchanged host tensor moved again";
  EXPECT_GE(further.mirror_hits, first.mirror_hits + 10);
  EXPECT_GT(further.memory_mirrors, 0);

  const Array other = inputs.uniform(dtype::FLOAT32, {1000}, -4, 4);
  check(compute_tensor_write(host.tensor, other.data(), other.size_bytes()));
  host.array = other;
  judge_sum(session, host, y, "after a write");
  EXPECT_EQ(session.statistics().transfers_to_device, further.transfers_to_device + 1);

  // Parts of one buffer share its mirror.
  const Operand part = sliced(host, {999}, {500}, {-2});
  judge_sum(session, part, session.upload(inputs.uniform(dtype::FLOAT32, {500}, -4, 4)), "a part of it");
}

// An op that writes a host tensor on a device: reading it gets the device's result.
void results_on_host_tensors(const Session& session) {
  Inputs inputs(34);
  Device cpu;
  check(compute_device_open("cpu", cpu.out()));
  const Operand x = session.upload(inputs.uniform(dtype::FLOAT32, {64, 3}, -4, 4));
  const int64_t shape[] = {64, 3};
  Tensor result;
  check(compute_tensor_empty(cpu, dtype::FLOAT32, 2, shape, result.out()));
  expect_on_host(session, "exp", &x, 1, bound_of("exp", dtype::FLOAT32), result);
  EXPECT_EQ(compute_tensor_device(result), cpu.get()) << "a tensor stays where it was made";
}

// Tight loop y = m x + b over host tensors: each moves once.
void affine_loop(const Session& session) {
  if (is_host(session)) return;
  Device cpu;
  check(compute_device_open("cpu", cpu.out()));
  Inputs inputs(35);
  const Stream stream = session.stream();
  Operand host[3];
  for (Operand& x : host) {
    x.array = inputs.uniform(dtype::FLOAT32, {256}, -4, 4);
    check(compute_tensor_from_host(cpu, dtype::FLOAT32, 1, x.array.shape().data(), x.array.data(), x.tensor.out()));
  }
  const compute_device_statistics before = session.statistics();
  for (int i = 0; i < 100; ++i) {
    const Operand product{Array(dtype::FLOAT32, {256}), session.run("multiply", {}, std::span(host, 2), stream)};
    const Operand sum[] = {product, host[2]};
    session.run("add", {}, sum, stream);
  }
  check(compute_stream_synchronize(stream));
  EXPECT_EQ(session.statistics().transfers_to_device, before.transfers_to_device + 3);
}

}  // namespace

void add_host_tests(Registry& registry) {
  registry.add({"host", "wrapped_memory", wrapped_memory});
  registry.add({"host", "wraps_inside_wraps", wraps_inside_wraps});
  registry.add({"host", "memory_at_any_address", memory_at_any_address});
  registry.add({"host", "changes_are_seen", changes_are_seen});
  // On the host's own device there is nothing to mirror.
  Test test{"host", "mirrors", mirrors};
  test.runs_ops = false;
  registry.add(test);
  test.name = "affine_loop";
  test.body = affine_loop;
  registry.add(test);
  registry.add({"host", "results_on_host_tensors", results_on_host_tensors});
}

}  // namespace compute::conformance
