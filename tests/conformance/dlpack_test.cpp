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
    if (!session.supports(info.id, COMPUTE_DTYPE_STORAGE)) continue;
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
  } kTests[] = {{"to_dlpack", to_dlpack, false}, {"from_dlpack", from_dlpack, true}, {"refusals", refusals, false}};
  for (const auto& entry : kTests) {
    Test test{"dlpack", entry.name, entry.body};
    test.runs_ops = entry.runs_ops;
    registry.add(std::move(test));
  }
}

}  // namespace compute::conformance
