// SPDX-License-Identifier: Apache-2.0
// Native handles, and memory and semaphores that others import. The device itself is the other side.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "registry.hpp"

namespace compute::conformance {

namespace {

using oracle::Inputs;
using Semaphore = Handle<compute_semaphore, compute_semaphore_retain, compute_semaphore_release>;

constexpr uint32_t kVendorKind = 0x40000000;  // of no vendor

// ---- Native handles -------------------------------------------------------------------------------------------------

// Room for every kind, behind which nothing is written.
struct Native {
  alignas(8) std::array<uint8_t, 512> bytes{};

  explicit Native(uint32_t size) {
    bytes.fill(0xEE);
    const compute_struct_header header{size, 0, nullptr};
    std::memcpy(bytes.data(), &header, sizeof header);
  }
  compute_struct_header header() const {
    compute_struct_header header;
    std::memcpy(&header, bytes.data(), sizeof header);
    return header;
  }
  bool is_zero() const {
    for (size_t i = sizeof(compute_struct_header); i < header().struct_size; ++i) {
      if (bytes[i] != 0) return false;
    }
    return true;
  }
  bool is_untouched_behind() const {
    for (size_t i = header().struct_size; i < bytes.size(); ++i) {
      if (bytes[i] != 0xEE) return false;
    }
    return true;
  }
};

void expect_kind(const std::function<compute_error*(uint32_t kind, void* out_handle)>& ask, uint32_t kind,
                 const std::string& what) {
  for (const uint32_t size : {16u, 24u, 40u, 48u, 256u}) {
    Native native(size);
    const Error error(ask(kind, native.bytes.data()));
    EXPECT_EQ(native.header().struct_size, size) << what;
    EXPECT_EQ(native.header().struct_type, kind) << what;
    EXPECT_TRUE(native.is_untouched_behind()) << what << " of kind " << kind << ": a struct of " << size << " bytes";
    if (!error) continue;
    EXPECT_EQ(error.code(), COMPUTE_ERROR_UNSUPPORTED) << error.message();
    EXPECT_TRUE(native.is_zero()) << what << " of kind " << kind;
  }
}

void native_handles(const Session& session) {
  const Operand x = session.upload(Inputs(3).uniform(dtype::FLOAT32, {4, 5}, -3, 3));
  const Operand part = sliced(x, {1, 2}, {3, 3}, {1, 1});
  const Stream stream = session.stream();
  for (uint32_t kind = COMPUTE_NATIVE_DLPACK - 1; kind <= COMPUTE_NATIVE_VULKAN + 1; ++kind) {
    expect_kind([&](uint32_t k, void* out) { return compute_device_native_handle(session.device(), k, out); }, kind,
                "the device");
    expect_kind([&](uint32_t k, void* out) { return compute_stream_native_handle(stream, k, out); }, kind, "a stream");
    expect_kind([&](uint32_t k, void* out) { return compute_tensor_native_handle(part.tensor, k, out); }, kind,
                "a tensor");
  }
  Native unknown(64);
  const Error error(compute_tensor_native_handle(x.tensor, kVendorKind, unknown.bytes.data()));
  EXPECT_EQ(error.code(), COMPUTE_ERROR_UNSUPPORTED) << error.message();

  // The elements are where the handle says, if the host can address them.
  compute_native_host host = {sizeof host, 0, nullptr, nullptr};
  if (Error(compute_tensor_native_handle(part.tensor, COMPUTE_NATIVE_HOST, &host))) return;
  check(compute_tensor_synchronize(part.tensor));
  float value = 0;
  std::memcpy(&value, host.address, sizeof value);
  EXPECT_EQ(static_cast<Real>(value), part.array.at(0).re);
}

// ---- External objects -----------------------------------------------------------------------------------------------

const char* const kNoKind = "the device shares no memory of a known kind";

struct Shared {
  compute_external external = {sizeof external, 0, nullptr, 0, 0, nullptr, nullptr, 0, 0, 0, {}};
  Tensor tensor;
  ~Shared() {
    if (external.kind > COMPUTE_EXTERNAL_HOST_POINTER) close(external.descriptor);
  }
  // For one import, which takes the descriptor over.
  compute_external copy() const {
    compute_external one = external;
    if (one.kind > COMPUTE_EXTERNAL_HOST_POINTER) one.descriptor = dup(one.descriptor);
    return one;
  }
};

// Calls `test` with float32 memory of each kind that the device shares.
template <class F>
void with_each_kind(const Session& session, const std::vector<int64_t>& shape, F&& test) {
  int kinds = 0;
  for (uint32_t kind = COMPUTE_EXTERNAL_HOST_POINTER; kind <= COMPUTE_EXTERNAL_DMA_BUF; ++kind) {
    Shared shared;
    const Error error(compute_tensor_empty_external(session.device(), kind, COMPUTE_DTYPE_FLOAT32,
                                                    static_cast<int32_t>(shape.size()), shape.data(), &shared.external,
                                                    shared.tensor.out()));
    if (error.code() == COMPUTE_ERROR_UNSUPPORTED) {
      EXPECT_EQ(shared.tensor.get(), nullptr);
      EXPECT_EQ(shared.external.kind, 0u);
      continue;
    }
    EXPECT_FALSE(error) << error.message();
    if (error) continue;
    EXPECT_EQ(shared.external.kind, kind);
    EXPECT_EQ(shared.external.struct_type, COMPUTE_STRUCT_EXTERNAL);
    ++kinds;
    test(shared);
  }
  if (kinds == 0) throw Lacking(kNoKind);
}

Operand import(const Session& session, const Shared& shared, const Array& array, int64_t offset_bytes) {
  const compute_external one = shared.copy();
  Operand made{array, {}};
  check(compute_tensor_from_external(session.device(), &one, COMPUTE_DTYPE_FLOAT32,
                                     static_cast<int32_t>(array.shape().size()), array.shape().data(), nullptr,
                                     offset_bytes, made.tensor.out()));
  return made;
}

void external_memory(const Session& session) {
  with_each_kind(session, {6, 50}, [&](Shared& shared) {
    const Operand x = session.upload(Inputs(5).uniform(dtype::FLOAT32, {6, 50}, -3, 3));
    EXPECT_GE(shared.external.size_bytes, 6 * 50 * 4);
    session.run("negative", {}, std::span(&x, 1), nullptr, shared.tensor);
    check(compute_tensor_synchronize(shared.tensor));
    // The last four rows.
    const Array rows = sliced(x, {2, 0}, {4, 50}, {1, 1}).array;
    Array negative(dtype::FLOAT32, {4, 50});
    for (int64_t i = 0; i < negative.size(); ++i) negative.set(i, Value::of(-rows.at(i).re));
    const Operand part = import(session, shared, negative, 2 * 50 * 4);
    session.expect("negative", {}, std::span(&part, 1), bound_of("negative", dtype::FLOAT32), "imported memory");
    // A write here is seen there.
    const std::vector<float> sevens(200, 7);
    check(compute_tensor_write(part.tensor, sevens.data(), 800));
    check(compute_tensor_synchronize(part.tensor));
    const Array all = session.download(shared.tensor);
    EXPECT_EQ(all.at(99).re, -x.array.at(99).re);
    EXPECT_EQ(all.at(100).re, 7);
    EXPECT_EQ(all.at(299).re, 7);
    if (shared.external.kind == COMPUTE_EXTERNAL_HOST_POINTER) return;  // which the first tensor owns
    *shared.tensor.out() = nullptr;
    EXPECT_EQ(session.download(part.tensor).at(199).re, 7) << "an import keeps the memory";
  });
}

void refused_externals(const Session& session) {
  session.upload(Array(dtype::FLOAT32, {4}));  // refused by devices without the dtype of this test
  compute_external none = {sizeof none, 0, nullptr, 9, 9, &none, &none, 9, 9, 9, {9}};
  const int64_t shape[] = {4};
  Tensor made;
  const Error unknown(
      compute_tensor_empty_external(session.device(), kVendorKind, COMPUTE_DTYPE_FLOAT32, 1, shape, &none, made.out()));
  EXPECT_EQ(unknown.code(), COMPUTE_ERROR_UNSUPPORTED) << unknown.message();
  EXPECT_EQ(none.kind, 0u);
  EXPECT_EQ(none.address, nullptr);
  EXPECT_EQ(none.descriptor, -1);
  none.kind = kVendorKind;
  none.size_bytes = 16;
  const auto import_at = [&](const compute_external& one, int64_t offset_bytes) {
    return Error(compute_tensor_from_external(session.device(), &one, COMPUTE_DTYPE_FLOAT32, 1, shape, nullptr,
                                              offset_bytes, made.out()));
  };
  EXPECT_EQ(import_at(none, 0).code(), COMPUTE_ERROR_UNSUPPORTED);
  EXPECT_EQ(import_at(none, 4).code(), COMPUTE_ERROR_OUT_OF_RANGE);
  EXPECT_EQ(import_at(none, -4).code(), COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(import_at(none, 2).code(), COMPUTE_ERROR_INVALID_ARGUMENT);
  none.offset_bytes = 4;
  EXPECT_EQ(import_at(none, 0).code(), COMPUTE_ERROR_OUT_OF_RANGE) << "12 of the 16 bytes are left";
  none.offset_bytes = -4;
  EXPECT_EQ(import_at(none, 0).code(), COMPUTE_ERROR_OUT_OF_RANGE);
  with_each_kind(session, {4}, [&](const Shared& shared) {
    EXPECT_EQ(import_at(shared.external, shared.external.size_bytes - 12).code(), COMPUTE_ERROR_OUT_OF_RANGE);
    if (shared.external.kind != COMPUTE_EXTERNAL_OPAQUE_FD) return;
    compute_external other = shared.external;
    other.device_uuid[0] ^= 1;
    EXPECT_EQ(import_at(other, 0).code(), COMPUTE_ERROR_UNSUPPORTED) << "memory of another device";
  });
}

void semaphores(const Session& session) {
  Shared shared;  // its external object is a semaphore
  Semaphore made, imported;
  const Error error(
      compute_semaphore_create(session.device(), COMPUTE_EXTERNAL_OPAQUE_FD, &shared.external, made.out()));
  if (error.code() == COMPUTE_ERROR_UNSUPPORTED) throw Lacking(error.message());
  ASSERT_FALSE(error) << error.message();
  const compute_external one = shared.copy();
  check(compute_semaphore_from_external(session.device(), &one, imported.out()));

  // The reader waits before the writer has begun.
  Shared memory;
  const int64_t shape[] = {5000};
  check(compute_tensor_empty_external(session.device(), COMPUTE_EXTERNAL_OPAQUE_FD, COMPUTE_DTYPE_FLOAT32, 1, shape,
                                      &memory.external, memory.tensor.out()));
  const Operand seen = import(session, memory, Array(dtype::FLOAT32, {5000}), 0);
  const Operand ones = session.upload(Inputs(7).uniform(dtype::FLOAT32, {5000}, 1, 2));
  // Before anything waits: a device may refuse the ops, and a wait that nobody ends would outlast the test.
  const auto result_of = [&](const char* op) {
    const Operand result{Array(dtype::FLOAT32, {5000}), session.run(op, {}, std::span(&ones, 1))};
    return session.download(result.tensor);
  };
  const Array expected_of[] = {result_of("exp"), result_of("negative")};
  check(compute_device_synchronize(session.device()));
  const Stream writer = session.stream(), reader = session.stream();
  for (uint64_t round = 1; round <= 3; ++round) {
    check(compute_semaphore_wait(imported, reader, 2 * round - 1));
    int32_t has_ended = 1;
    check(compute_stream_wait_for(reader, 1'000'000, &has_ended));
    EXPECT_EQ(has_ended, 0) << "a wait that nobody has ended is not the stream's work, in round " << round;
    const Operand result{Array(dtype::FLOAT32, {5000}), session.run("negative", {}, std::span(&seen, 1), reader)};
    check(compute_semaphore_signal(imported, reader, 2 * round));
    session.run(round % 2 == 0 ? "exp" : "negative", {}, std::span(&ones, 1), writer, memory.tensor);
    check(compute_semaphore_signal(made, writer, 2 * round - 1));
    check(compute_semaphore_wait(made, writer, 2 * round));
    const Array found = session.download(result.tensor);
    const Array& expected = expected_of[round % 2];
    int64_t wrong = 0;
    for (int64_t i = 0; i < found.size(); ++i) wrong += found.at(i).re != -expected.at(i).re;
    EXPECT_EQ(wrong, 0) << "elements that were read too early, in round " << round;
  }
  check(compute_stream_synchronize(writer));
}

}  // namespace

void add_interop_tests(Registry& registry) {
  registry.add({.group = "interop", .name = "native_handles", .body = native_handles, .runs_ops = false});
  registry.add({.group = "interop", .name = "external_memory", .body = external_memory, .dtypes = {dtype::FLOAT32}});
  registry.add({.group = "interop",
                .name = "refused_externals",
                .body = refused_externals,
                .dtypes = {dtype::FLOAT32},
                .runs_ops = false});
  registry.add({.group = "interop", .name = "semaphores", .body = semaphores, .dtypes = {dtype::FLOAT32}});
}

}  // namespace compute::conformance
