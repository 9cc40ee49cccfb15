// SPDX-License-Identifier: Apache-2.0
// Exchange by DLPack 1.x.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "registry.hpp"
#include "tests/dlpack/dlpack.hpp"

namespace compute::conformance {

namespace {

using oracle::Inputs;

constexpr int32_t kDlCpu = 1;
constexpr uint64_t kReadOnly = 1;

DLDataType dl_dtype(Dtype dtype) {
  const auto bits = static_cast<uint8_t>(oracle::info(dtype).size_bytes * 8);
  switch (oracle::category(dtype)) {
    case oracle::Category::BOOL:
      return {6, 8, 1};
    case oracle::Category::SIGNED:
      return {0, bits, 1};
    case oracle::Category::UNSIGNED:
      return {1, bits, 1};
    case oracle::Category::FLOAT:
      return {static_cast<uint8_t>(dtype == dtype::BFLOAT16 ? 4 : 2), bits, 1};
    case oracle::Category::COMPLEX:
      return {5, bits, 1};
  }
  return {};
}

void to_dlpack(const Session& session) {
  Inputs inputs(81);
  for (const oracle::DtypeInfo& info : oracle::kDtypes) {
    if (!session.supports(info.id, COMPUTE_DTYPE_LEVEL_STORAGE)) continue;
    const Operand x = session.upload(inputs.operand("copy", 0, 1, info.id, {6, 4}));
    const Operand view = sliced(permuted(x, {1, 0}), {3, 1}, {4, 2}, {-1, 2});
    DLManagedTensorVersioned* managed = nullptr;
    const Error error(compute_tensor_to_dlpack(view.tensor, -1, &managed));
    // Only what exports its memory has it: the host, and plugins with compute.ext.native.v1.
    if (error.code() == COMPUTE_ERROR_UNSUPPORTED) throw Lacking(error.message());
    ASSERT_FALSE(error) << error.message();
    ASSERT_NE(managed, nullptr);
    EXPECT_EQ(managed->version.major, 1u);
    const DLTensor& t = managed->dl_tensor;
    const DLDataType expected = dl_dtype(info.id);
    EXPECT_EQ(t.dtype.code, expected.code) << info.name;
    EXPECT_EQ(t.dtype.bits, expected.bits) << info.name;
    EXPECT_EQ(t.dtype.lanes, 1);
    ASSERT_EQ(t.ndim, 2);
    EXPECT_EQ(Shape(t.shape, t.shape + 2), view.array.shape());
    EXPECT_EQ(Shape(t.strides, t.strides + 2), (Shape{-1, 8}));
    if (t.device.device_type == kDlCpu) {
      const char* data = static_cast<const char*>(t.data) + t.byte_offset;
      for (int64_t i = 0; i < 4; ++i) {
        for (int64_t j = 0; j < 2; ++j) {
          const auto bytes = static_cast<size_t>(info.size_bytes);
          const char* element = data + (i * t.strides[0] + j * t.strides[1]) * info.size_bytes;
          EXPECT_EQ(std::string(element, bytes),
                    std::string(reinterpret_cast<const char*>(view.array.element(i * 2 + j)), bytes));
        }
      }
    }
    // And back: another tensor over the same memory.
    Tensor back;
    check(compute_tensor_from_dlpack(managed, back.out()));
    const oracle::Result same = oracle::reference_copy(std::span(&view.array, 1), {});
    const oracle::Verdict verdict = oracle::judge(session.download(back), same, {Bound::EXACT, 0});
    EXPECT_TRUE(verdict.passed()) << info.name << ": " << verdict.message;
  }
}

void to_dlpack_unversioned(const Session& session) {
  Inputs inputs(84);
  const Operand x = session.upload(inputs.uniform(dtype::FLOAT32, {6, 4}, -3, 3));
  const Operand view = sliced(permuted(x, {1, 0}), {3, 1}, {4, 2}, {-1, 2});
  DLManagedTensor* managed = nullptr;
  const Error error(compute_tensor_to_dlpack_unversioned(view.tensor, -1, &managed));
  if (error.code() == COMPUTE_ERROR_UNSUPPORTED) throw Lacking(error.message());
  ASSERT_FALSE(error) << error.message();
  EXPECT_EQ(managed->dl_tensor.ndim, 2);
  EXPECT_EQ(Shape(managed->dl_tensor.strides, managed->dl_tensor.strides + 2), (Shape{-1, 8}));
  Tensor back;
  check(compute_tensor_from_dlpack_unversioned(managed, back.out()));
  EXPECT_EQ(compute_tensor_shares_buffer(back, view.tensor), 1);
  const oracle::Result same = oracle::reference_copy(std::span(&view.array, 1), {});
  EXPECT_TRUE(oracle::judge(session.download(back), same, {Bound::EXACT, 0}).passed());
}

// The memory comes back as if from another library: the device imports it by its DLPack description.
void take_as_foreign(const Session& session, const Operand& x, const Operand& part) {
  DLManagedTensor* ours = nullptr;
  const Error error(compute_tensor_to_dlpack_unversioned(part.tensor, 1, &ours));
  if (error.code() == COMPUTE_ERROR_UNSUPPORTED) throw Lacking(error.message());
  ASSERT_FALSE(error) << error.message();
  static std::atomic<int> deleted;
  deleted = 0;
  DLManagedTensorVersioned theirs{};
  theirs.version = {1, 0};
  theirs.deleter = [](DLManagedTensorVersioned*) { ++deleted; };
  theirs.dl_tensor = ours->dl_tensor;
  {
    Operand imported{part.array, {}};
    const Error refused(compute_tensor_from_dlpack(&theirs, imported.tensor.out()));
    if (refused) ours->deleter(ours);
    if (refused.code() == COMPUTE_ERROR_UNSUPPORTED) throw Lacking(refused.message());
    ASSERT_FALSE(refused) << refused.message();
    EXPECT_EQ(compute_tensor_shares_buffer(imported.tensor, x.tensor), 0);
    EXPECT_EQ(compute_tensor_device(imported.tensor), compute_tensor_device(x.tensor));
    const Operand both[] = {imported, part};
    session.expect("add", {}, both, bound_of("add", dtype::FLOAT32), "imported");
    EXPECT_EQ(deleted, 0);
  }
  check(compute_device_synchronize(session.device()));
  check(compute_device_trim(session.device(), 0));
  EXPECT_EQ(deleted, 1) << "the deleter runs once";
  ours->deleter(ours);
}

void foreign_memory(const Session& session) {
  Inputs inputs(85);
  const Operand x = session.upload(inputs.uniform(dtype::FLOAT32, {6, 4}, -3, 3));
  take_as_foreign(session, x, sliced(x, {1, 3}, {3, 4}, {2, -1}));
  // Long rows, which kernels read in vectors where they are aligned.
  const Operand row = session.upload(inputs.uniform(dtype::FLOAT32, {1000}, -3, 3));
  for (const int64_t first : {0, 1, 2, 4}) take_as_foreign(session, row, sliced(row, {first}, {900}, {1}));
}

// A borrowed view has the same fields as an export, and needs no deleter.
void dltensor(const Session& session) {
  Inputs inputs(86);
  const Operand x = session.upload(inputs.uniform(dtype::FLOAT32, {6, 4}, -3, 3));
  const Operand view = sliced(permuted(x, {1, 0}), {3, 1}, {4, 2}, {-1, 2});
  DLTensor borrowed;
  const Error error(compute_tensor_to_dltensor(view.tensor, &borrowed));
  if (error.code() == COMPUTE_ERROR_UNSUPPORTED) throw Lacking(error.message());
  ASSERT_FALSE(error) << error.message();
  EXPECT_EQ(borrowed.shape, compute_tensor_shape(view.tensor));
  EXPECT_EQ(borrowed.strides, compute_tensor_strides(view.tensor));
  DLManagedTensorVersioned* managed = nullptr;
  check(compute_tensor_to_dlpack(view.tensor, 1, &managed));
  EXPECT_EQ(borrowed.data, managed->dl_tensor.data);
  EXPECT_EQ(borrowed.byte_offset, managed->dl_tensor.byte_offset);
  EXPECT_EQ(borrowed.device.device_type, managed->dl_tensor.device.device_type);
  EXPECT_EQ(borrowed.device.device_id, managed->dl_tensor.device.device_id);
  EXPECT_EQ(borrowed.ndim, 2);
  EXPECT_EQ(borrowed.dtype.bits, 32);
  managed->deleter(managed);
}

// The two functions of the C exchange API.
void exchange(const Session& session) {
  const Operand x = session.upload(Inputs(87).uniform(dtype::FLOAT32, {3}, -3, 3));
  DLTensor prototype;
  const Error error(compute_tensor_to_dltensor(x.tensor, &prototype));
  if (error.code() == COMPUTE_ERROR_UNSUPPORTED) throw Lacking(error.message());
  ASSERT_FALSE(error) << error.message();
  prototype.data = nullptr;
  prototype.strides = nullptr;
  std::string told;
  const auto tell = [](void* context, const char* kind, const char* message) {
    *static_cast<std::string*>(context) += std::string(kind) + ": " + message;
  };
  DLManagedTensorVersioned* managed = nullptr;
  ASSERT_EQ(compute_dlpack_allocate(&prototype, &managed, &told, tell), 0) << told;
  ASSERT_NE(managed, nullptr);
  EXPECT_EQ(managed->dl_tensor.shape[0], 3);
  EXPECT_EQ(managed->dl_tensor.device.device_type, prototype.device.device_type);
  EXPECT_NE(managed->dl_tensor.data, nullptr);
  Tensor made;
  check(compute_tensor_from_dlpack(managed, made.out()));
  EXPECT_EQ(compute_tensor_device(made), compute_tensor_device(x.tensor));
  const float values[] = {1, 2, 3};
  check(compute_tensor_write(made, values, sizeof values));
  EXPECT_EQ(told, "");
  void* stream = &told;
  const int32_t result =
      compute_dlpack_current_work_stream(prototype.device.device_type, prototype.device.device_id, &stream);
  compute_stream* own = nullptr;
  compute_native_dlpack named = {sizeof named, 0, nullptr, 0, 0, 0, 0, 0};
  check(compute_device_default_stream(session.device(), &own));
  if (prototype.device.device_type == kDlCpu) {
    EXPECT_EQ(result, 0) << "work is complete when a call returns";
  } else {
    EXPECT_EQ(result, Error(compute_stream_native_handle(own, COMPUTE_NATIVE_DLPACK, &named)) ? -1 : 0);
  }
  EXPECT_EQ(reinterpret_cast<uint64_t>(stream), named.stream);
  compute_stream_release(own);
  prototype.dtype.lanes = 4;
  EXPECT_EQ(compute_dlpack_allocate(&prototype, &managed, &told, tell), -1);
  EXPECT_EQ(managed, nullptr);
  EXPECT_EQ(told.substr(0, 48), "BufferError: compute_dlpack_allocate: prototype.") << told;
  prototype.dtype.lanes = 1;
  prototype.ndim = -1;
  told.clear();
  EXPECT_EQ(compute_dlpack_allocate(&prototype, &managed, &told, tell), -1);
  EXPECT_EQ(told.substr(0, 11), "ValueError:") << told;
  stream = &told;
  EXPECT_EQ(compute_dlpack_current_work_stream(99, 0, &stream), -1);
  EXPECT_EQ(stream, nullptr);
}

// Memory of another library. What was imported is held until its deleter has run, which may be after the test has
// ended.
struct Producer {
  DLManagedTensorVersioned managed{};
  Array memory;
  Shape shape, strides;
  std::atomic<int> deleted{0};
  std::shared_ptr<Producer> held;

  Producer(const Array& array, uint64_t flags) : memory(array), shape(array.shape()), strides(array.strides()) {
    managed.version = {1, 0};
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensorVersioned* self) {
      auto* producer = static_cast<Producer*>(self->manager_ctx);
      const std::shared_ptr<Producer> last = std::move(producer->held);
      ++producer->deleted;
    };
    managed.flags = flags;
    managed.dl_tensor = {
        memory.data(), {kDlCpu, 0}, memory.rank(), dl_dtype(memory.dtype()), shape.data(), strides.data(), 0};
  }
};

// Host memory of another library, as an operand on the device.
void from_dlpack(const Session& session) {
  Inputs inputs(82);
  for (uint64_t flags : {uint64_t{0}, kReadOnly}) {
    const auto producer = std::make_shared<Producer>(inputs.uniform(dtype::FLOAT32, {12, 5}, -3, 3), flags);
    {
      Operand x{producer->memory, {}};
      check(compute_tensor_from_dlpack(&producer->managed, x.tensor.out()));
      producer->held = producer;
      const Operand y = session.upload(inputs.uniform(dtype::FLOAT32, {12, 5}, -3, 3));
      const Operand both[] = {x, y};
      session.expect("add", {}, both, bound_of("add", dtype::FLOAT32), "imported");
      EXPECT_EQ(producer->deleted, 0);
    }
    check(compute_device_synchronize(session.device()));
    check(compute_device_trim(session.device(), 0));
    EXPECT_EQ(producer->deleted, 1) << "the deleter runs once";
  }
}

// On an error the producer keeps its tensor.
void refusals(const Session&) {
  Inputs inputs(83);
  const auto refused = [&](const char* what, void (*spoil)(DLManagedTensorVersioned&)) {
    Producer producer(inputs.uniform(dtype::FLOAT32, {3}, -3, 3), 0);
    spoil(producer.managed);
    Tensor x;
    const Error error(compute_tensor_from_dlpack(&producer.managed, x.out()));
    EXPECT_TRUE(error) << what;
    EXPECT_EQ(x.get(), nullptr) << what;
    EXPECT_EQ(producer.deleted, 0) << what;
  };
  refused("another major version", [](DLManagedTensorVersioned& m) { m.version.major = 2; });
  refused("vectors as elements", [](DLManagedTensorVersioned& m) { m.dl_tensor.dtype.lanes = 4; });
  refused("an unknown dtype", [](DLManagedTensorVersioned& m) { m.dl_tensor.dtype = {2, 24, 1}; });
  refused("a negative extent", [](DLManagedTensorVersioned& m) { m.dl_tensor.shape[0] = -1; });
  refused("a negative rank", [](DLManagedTensorVersioned& m) { m.dl_tensor.ndim = -1; });
  refused("an unknown device", [](DLManagedTensorVersioned& m) { m.dl_tensor.device.device_type = 99; });
}

}  // namespace

void add_dlpack_tests(Registry& registry) {
  const struct {
    const char* name;
    void (*body)(const Session&);
    bool runs_ops;
  } kTests[] = {{"to_dlpack", to_dlpack, false},
                {"to_dlpack_unversioned", to_dlpack_unversioned, false},
                {"foreign_memory", foreign_memory, true},
                {"dltensor", dltensor, false},
                {"exchange", exchange, false},
                {"from_dlpack", from_dlpack, true},
                {"refusals", refusals, false}};
  for (const auto& entry : kTests) {
    Test test{"dlpack", entry.name, entry.body};
    test.runs_ops = entry.runs_ops;
    registry.add(std::move(test));
  }
}

}  // namespace compute::conformance
