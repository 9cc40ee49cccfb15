// SPDX-License-Identifier: Apache-2.0
// Ownership, memory on the host, streams, and what is thrown.
#include <atomic>
#include <chrono>
#include <cstdlib>

#include "../dlpack/dlpack.hpp"
#include "cxx.hpp"

namespace cxx {
namespace {

using Floats = std::vector<float>;
using namespace std::chrono_literals;

class Handles : public OnDevice {};

TEST_P(Handles, AreSharedMovedAndEmpty) {
  Tensor x = iota({3});
  const Tensor same = x;
  EXPECT_EQ(same.get(), x.get());
  const Tensor moved = std::move(x);
  EXPECT_EQ(moved.get(), same.get());
  EXPECT_FALSE(x.defined());  // NOLINT: a moved-from handle holds none
  EXPECT_EQ(x.rank(), 0);
  EXPECT_EQ(x.size(), 0);
  EXPECT_TRUE(x.shape().empty());
  EXPECT_EQ(x.dtype(), DType());
  EXPECT_FALSE(x.device().defined());
  EXPECT_FALSE(x.shares_buffer(same));
  for (const Thrown& thrown :
       {thrown_by([&] { return exp(x); }), thrown_by([&] { return x + same; }), thrown_by([&] { return x[0]; }),
        thrown_by([&] { return x += 1; }), thrown_by([&] { return x.item<float>(); }),
        thrown_by([&] { return x.to_vector<float>(); }), thrown_by([&] { return x.map<float>(); }),
        thrown_by([&] { return x.fill(1), 0; }), thrown_by([&] { return same.assign(x), 0; }), thrown_by([&] {
          return concat({same, x});
        }),
        thrown_by([&] { return x.to_dlpack(); })}) {
    EXPECT_EQ(thrown.code, COMPUTE_ERROR_INVALID_ARGUMENT) << thrown.message;
  }
  x = same;
  EXPECT_EQ(x.to_vector<float>(), (Floats{0, 1, 2}));
  Tensor& itself = x;
  x = itself;
  EXPECT_EQ(x.size(), 3);
  compute_tensor* const raw = x.detach();
  EXPECT_FALSE(x.defined());
  x = Tensor(raw);
  const Stream none_yet;
  EXPECT_FALSE(none_yet.defined());
  EXPECT_EQ(thrown_by([&] { return none_yet.synchronize(), 0; }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(thrown_by([] { return Device().empty(float32, {1}); }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(thrown_by([] { return Graph().run(), 0; }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(Device().name(), "");
}

TEST_P(Handles, ErrorsCarryWhatIsKnown) {
  try {
    static_cast<void>(add(iota({2, 3}), iota({4, 3})));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), COMPUTE_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(error.code_name(), "INVALID_ARGUMENT");
    EXPECT_EQ(error.op(), "add");
    EXPECT_EQ(error.view().message(), error.what());
    EXPECT_FALSE(error.cause());
    EXPECT_EQ(error.cause().code(), COMPUTE_OK);
    const Error copy = error;  // shares the object
    EXPECT_EQ(copy.view().get(), error.view().get());
    EXPECT_EQ(copy.native_code(), error.native_code());
  }
  const Error made(COMPUTE_ERROR_OUT_OF_RANGE, "far");
  EXPECT_STREQ(made.what(), "far");
  EXPECT_EQ(made.op(), "");
  EXPECT_EQ(made.argument(), -1);
  EXPECT_EQ(made.device(), "");
  EXPECT_EQ(thrown_by([&] { return iota({2}).to_vector<double>(); }).message, "the tensor holds float32, not float64");
  EXPECT_EQ(thrown_by([&] { return iota({2}).item<float>(); }).message, "item: the tensor has 2 elements");
  EXPECT_EQ(iota({2, 3}).item<float>({1, 2}), 5);
  EXPECT_EQ(thrown_by([&] { return iota({2}).item<float>({2}); }).code, COMPUTE_ERROR_OUT_OF_RANGE);
  EXPECT_EQ(thrown_by([&] { return iota({2}).item<double>({0}); }).message, "the tensor holds float32, not float64");
  EXPECT_EQ(thrown_by([&] { return device_.from_host({1.0f, 2.0f}, {3}); }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(thrown_by([] { return Device::open("nothing like it"); }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  Scope scope("training", "train.cpp", 12);
  EXPECT_NE(thrown_by([&] { return iota({2}).reshape({3}); }).message.find("scope: training (train.cpp:12)"),
            std::string::npos);
  const Scope here("inner");
  EXPECT_NE(thrown_by([&] { return iota({2}).reshape({3}); }).message.find("handles_test.cpp:"), std::string::npos);
}

TEST_P(Handles, MappedMemoryIsTheTensors) {
  const Tensor x = iota({2, 3}), column = x(slice(), slice(1, 2));
  {
    Mapped<float> mapped = column.map<float>();
    EXPECT_EQ(mapped.shape()[0], 2);
    EXPECT_EQ(mapped(1, 0), 4);
    mapped(1, 0) = 40;
    Mapped<float> moved = std::move(mapped);
    EXPECT_EQ(mapped.data(), nullptr);  // NOLINT: a moved-from object maps nothing
    moved(0, 0) = 10;
    moved.unmap();
    EXPECT_EQ(moved.data(), nullptr);
    EXPECT_EQ(thrown_by([&] { return moved.unmap(), 0; }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  }
  EXPECT_EQ(x.to_vector<float>(), (Floats{0, 10, 2, 3, 40, 5}));
  {
    const auto values = x.map<const float>();
    EXPECT_EQ(to_vector(values.values()), x.to_vector<float>());
    EXPECT_TRUE(values.is_row_major());
  }
  {
    const auto turned = x.transpose().map<const float>();
    EXPECT_EQ(turned(2, 1), 5);
    EXPECT_EQ(turned.is_row_major(), turned.is_copy());
    if (!turned.is_copy()) {
      EXPECT_EQ(thrown_by([&] { return turned.values(); }).code, COMPUTE_ERROR_UNSUPPORTED);
    }
  }
  x.map<float>(Access::write)(0, 0) = 1;  // the mapping ends with the statement
  EXPECT_EQ(thrown_by([&] { return x.map<double>(); }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(thrown_by([&] { return x.map<const float>(Access::write); }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(device_.empty(float32, {0}).map<float>().values().size(), 0u);
}

TEST(HostMemory, IsWrappedAndGivenBack) {
  std::array<float, 6> values{0, 1, 2, 3, 4, 5};
  int deleted = 0;
  {
    const Tensor x = Tensor::wrap_host(values.data(), {3, 2}, Wrap::tracked, [&](float* data) {
      deleted += data == values.data() ? 1 : 100;
      throw std::runtime_error("dropped");
    });
    x(slice(), 1) = -1;
    EXPECT_EQ(values[3], -1);
    values[0] = 7;
    x.touch();
    EXPECT_EQ((x + 0).to_vector<float>()[0], 7);
    EXPECT_EQ(deleted, 0);
  }
  EXPECT_EQ(deleted, 1);
  const Tensor turned = Tensor::wrap_host(values.data(), {2, 3}, Wrap::exposed, List<int64_t>{1, 2});
  EXPECT_EQ(turned.to_vector<float>(), (Floats{7, 2, 4, -1, -1, -1}));
  const Tensor owned = Tensor::wrap_host(Floats{1, 2, 3}, {3});
  EXPECT_EQ(sum(owned).item<float>(), 6);
  EXPECT_EQ(thrown_by([&] { return owned.fill(1), 0; }).code, COMPUTE_ERROR_INVALID_ARGUMENT) << "immutable";
  const float constant = 1;
  EXPECT_EQ(thrown_by([&] { return Tensor::wrap_host(&constant, {1}, Wrap::exposed); }).code,
            COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(Tensor::wrap_host(&constant, {}, Wrap::immutable).item<float>(), 1);
  const auto refused =
      thrown_by([&] { return Tensor::wrap_host(values.data(), {-1}, Wrap::tracked, [&](float*) { deleted = 1000; }); });
  EXPECT_EQ(refused.code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(deleted, 1) << "the deleter of a refused call is not called";
  EXPECT_EQ(thrown_by([] { return Tensor::wrap_host(Floats{1, 2}, {3}); }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
}

TEST(HostMemory, GoesToDlpackAndBack) {
  const Tensor x = Device::open("cpu").from_host({1.0f, 2.0f, 3.0f});
  auto exported = x.to_dlpack();
  EXPECT_EQ(exported->dl_tensor.shape[0], 3);
  const Tensor y = Tensor::from_dlpack(std::move(exported));
  EXPECT_EQ(exported, nullptr);
  x[1] = 20;
  EXPECT_EQ(y.to_vector<float>(), (Floats{1, 20, 3}));
  std::unique_ptr<DLManagedTensorVersioned, DlpackDeleter> kept = x.to_dlpack();
  kept->version.major = 99;
  EXPECT_NE(thrown_by([&] { return Tensor::from_dlpack(std::move(kept)); }).code, COMPUTE_OK);
  EXPECT_NE(kept, nullptr) << "the caller's, after an error";
}

TEST(HostMemory, GoesThroughDlpackOfOldAndIsLookedAt) {
  const Tensor x = Device::open("cpu").from_host({1.0f, 2.0f, 3.0f});
  auto exported = x.to_dlpack_unversioned();
  EXPECT_EQ(static_cast<float*>(exported->dl_tensor.data)[2], 3);
  const Tensor y = Tensor::from_dlpack(std::move(exported));
  EXPECT_EQ(exported, nullptr);
  EXPECT_TRUE(y.shares_buffer(x));
  const DLTensor view = x[slice(1, 3)].to_dltensor<DLTensor>();
  static_cast<float*>(view.data)[0] = 20;
  EXPECT_EQ(y.to_vector<float>(), (Floats{1, 20, 3}));
  const Tensor constant = Tensor::wrap_host(Floats{1, 2}, {2});
  EXPECT_EQ(thrown_by([&] { return constant.to_dlpack_unversioned(); }).code, COMPUTE_ERROR_UNSUPPORTED);
  EXPECT_EQ(thrown_by([&] { return Tensor(1.0f).to_dltensor<DLTensor>(); }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
}

// What is written through a borrowed view reaches devices that hold copies.
TEST(HostMemory, IsLookedAtBesideItsMirrors) {
  const Tensor x = Device::open("cpu").from_host({1.0f, 2.0f}),
               there = Device::open("minimal0").from_host({0.0f, 0.0f});
  EXPECT_EQ((x + there).to_vector<float>(), (Floats{1, 2}));
  static_cast<float*>(x.to_dltensor<DLTensor>().data)[1] = 7;
  EXPECT_EQ((x + there).to_vector<float>(), (Floats{1, 7}));
}

TEST(HostMemory, IsAllocatedThroughTheExchangeApi) {
  DLPackExchangeAPI table{};
  fill_dlpack_exchange(table);
  int64_t shape[] = {2, 3};
  DLTensor prototype{};
  prototype.device = {1, 0};
  prototype.ndim = 2;
  prototype.dtype = {2, 32, 1};
  prototype.shape = shape;
  DLManagedTensorVersioned* managed = nullptr;
  const auto fail = [](void*, const char* kind, const char* message) { ADD_FAILURE() << kind << message; };
  ASSERT_EQ(table.managed_tensor_allocator(&prototype, &managed, nullptr, fail), 0);
  const Tensor made = Tensor::from_dlpack(managed);
  EXPECT_EQ(shape_of(made), (Shape{2, 3}));
  void* stream = &prototype;
  EXPECT_EQ(table.current_work_stream(1, 0, &stream), 0);
  EXPECT_EQ(stream, nullptr);
}

TEST(HostMemory, ComesFromAnAllocatorOfTheProgram) {
  struct Counted final : Allocator {
    void* allocate(int64_t size_bytes, int64_t alignment) override {
      if (size_bytes > 1'000'000) throw std::bad_alloc();
      ++live;
      return std::aligned_alloc(static_cast<size_t>(alignment), static_cast<size_t>(size_bytes));
    }
    void release(void* address, int64_t) override {
      --live;
      std::free(address);
    }
    std::atomic<int> live{0};
  } counted;
  const Device cpu = Device::open("cpu");
  cpu.set_allocator(counted);
  {
    const Tensor x = cpu.from_host({1.0f, 2.0f});
    EXPECT_EQ(counted.live, 1);
    EXPECT_EQ(thrown_by([&] { return cpu.empty(float32, {1'000'000}); }).code, COMPUTE_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(thrown_by([&] { return cpu.reset_allocator(), 0; }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  }
  EXPECT_EQ(counted.live, 0);
  cpu.set_allocator(counted, true);
  static_cast<void>(cpu.empty(float32, {10}));
  EXPECT_GT(counted.live, 0);
  cpu.reset_allocator();
  EXPECT_EQ(counted.live, 0);
}

TEST_P(Handles, TensorsSayWhatTheyAre) {
  const Tensor x = iota({2, 3, 4}).permute({2, 0, 1});
  EXPECT_EQ(shape_of(x), (Shape{4, 2, 3}));
  EXPECT_EQ(to_vector(x.strides()), (Shape{1, 12, 4}));
  EXPECT_EQ(x.extent(-1), 3);
  EXPECT_EQ(thrown_by([&] { return x.extent(3); }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(x.size(), 24);
  EXPECT_EQ(x.size_bytes(), 96);
  EXPECT_EQ(x[1].offset_bytes() - x.offset_bytes(), 4);
  x.set_label("weights");
  EXPECT_EQ(x.label(), "weights");
  const Tensor bits = x.view(int32, {2, 2}, {1, 2}, 0);
  EXPECT_EQ(bits.to_vector<int32_t>()[3], 0x40400000);  // 3.0f
  EXPECT_EQ(thrown_by([&] { return x.view(int32, {2}, {}, 0); }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(x.expand_dims(0).squeeze(0).rank(), 3);
  EXPECT_EQ(x.slice(-1, 1, none).extent(2), 2);
  EXPECT_EQ(thrown_by([&] { return x.reshape({24}); }).code, COMPUTE_ERROR_UNSUPPORTED);
  EXPECT_EQ(copy(x).reshape({-1}).extent(0), 24);
  EXPECT_EQ(thrown_by([&] { return x.permute({}); }).code, COMPUTE_ERROR_INVALID_ARGUMENT) << "not all axes reversed";
  EXPECT_EQ(device_.full({}, 1.0f).permute({}).rank(), 0);
  const std::array<std::byte, 4> halves{std::byte{0}, std::byte{0x3c}, std::byte{0}, std::byte{0xc0}};
  EXPECT_EQ(cast(device_.from_host(float16, halves, {2}), float32).to_vector<float>(), (Floats{1, -2}));
  const bool flags[] = {true, false};
  EXPECT_EQ(device_.from_host(std::span<const bool>(flags), {2}).to_vector<uint8_t>(), (std::vector<uint8_t>{1, 0}));
  // Every byte but 0 is true.
  const Tensor truths =
      device_.from_host(std::span<const uint8_t>(std::vector<uint8_t>{0, 2, 255, 1}), {4}).view(bool_, {4}, {1}, 0);
  EXPECT_EQ(truths.to_vector<uint8_t>(), (std::vector<uint8_t>{0, 1, 1, 1}));
  EXPECT_EQ(static_cast<int>(truths.item<bool>({1})), 1);
  EXPECT_EQ(device_.zeros(complex64, {1}).item<std::complex<float>>(), std::complex<float>());
  EXPECT_EQ(x.to(Device::open("cpu")).device().name(), "cpu");
}

TEST_P(Handles, StreamsTakeChrono) {
  const Stream a(device_), b(device_, {.priority = 1});
  EXPECT_EQ(a.device().name(), GetParam());
  const Tensor x = device_.empty(float32, {1000});
  const Floats in(1000, 2.0f);
  Floats out(1000, 0.0f);
  x.write_async(std::span(in), a);
  const Event event = a.record();
  b.wait(event);
  const Tensor y = multiply(x, 3, b);
  y.read_async(std::span(out), b);
  EXPECT_TRUE(b.wait_for(60s));
  EXPECT_TRUE(b.wait_until(std::chrono::steady_clock::now() + 60s));
  EXPECT_TRUE(a.wait_for(0.5s));
  EXPECT_TRUE(a.wait_for(std::chrono::hours::max()));
  event.synchronize();
  EXPECT_TRUE(event.finished());
  EXPECT_TRUE(b.finished());
  EXPECT_EQ(out, Floats(1000, 6.0f));
  const Event start(a, {.timed = true}), end(a, {.timed = true});
  EXPECT_GE(end.elapsed_since(start).count(), 0);
  EXPECT_EQ(end.elapsed_since(start), -start.elapsed_since(end));
  EXPECT_EQ(thrown_by([&] { return event.elapsed_since(start); }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  x.write(std::vector<float>(1000, 1.0f));
  EXPECT_EQ(sum(x).item<float>(), 1000);
  std::vector<double> wrong(1000);
  EXPECT_EQ(thrown_by([&] { return x.read(std::span(wrong)), 0; }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  device_.synchronize();
}

TEST_P(Handles, NotificationsAreCalledOnceAndContained) {
  const Stream stream(device_);
  std::atomic<int> calls{0};
  auto counted = std::make_unique<int>(5);  // a callable that can only be moved
  stream.notify([&](ErrorView error) {
    calls += error ? 100 : 1;
    throw std::runtime_error("dropped");
  });
  stream.notify([&, kept = std::move(counted)](const ErrorView&) {
    calls += *kept;
    calls.notify_all();
  });
  for (int seen = calls; seen < 6; seen = calls) calls.wait(seen);
  EXPECT_EQ(calls, 6);
  EXPECT_EQ(thrown_by([&] { return Stream().notify([&](ErrorView) { calls = 1000; }), 0; }).code,
            COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(calls, 6);
}

TEST(Time, RoundsUpAndSaturates) {
  EXPECT_EQ(detail::timeout_ns(2ms), 2000000);
  EXPECT_EQ(detail::timeout_ns(std::chrono::duration<double, std::nano>(0.25)), 1);
  EXPECT_EQ(detail::timeout_ns(std::chrono::nanoseconds::max()), COMPUTE_TIMEOUT_NONE);
  EXPECT_EQ(detail::timeout_ns(std::chrono::hours::max()), COMPUTE_TIMEOUT_NONE);
  EXPECT_EQ(detail::timeout_ns(-1ns), -1);
  const std::chrono::duration<double> not_a_number(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(thrown_by([&] { return detail::timeout_ns(not_a_number); }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
}

TEST_P(Handles, DevicesSayWhatTheyAre) {
  const DeviceInfo info = device_.info();
  EXPECT_EQ(info.name, GetParam());
  EXPECT_TRUE(info.supports(float32, DTypeSupport::arithmetic));
  EXPECT_FALSE(info.supports(DType(), DTypeSupport::storage));
  EXPECT_FALSE(info.supports(DType(compute_dtype{-1}), DTypeSupport::storage));
  EXPECT_EQ(info.unusable, "");
  const auto all = Device::list();
  EXPECT_EQ(all.at(0).name, "cpu");
  EXPECT_EQ(std::ranges::count(all, info.name, &DeviceInfo::name), 1);
  EXPECT_EQ(device_.attributes().size(), Device::attributes_of(GetParam()).size());
  EXPECT_NE(Device::which(GetParam()).find(GetParam()), std::string::npos);
  EXPECT_EQ(device_.health(), Health::good);
  EXPECT_EQ(device_.get(), Device::open(GetParam()).get()) << "the same device is the same handle";
  const int64_t before = device_.statistics().memory_used;
  const Tensor x = device_.empty(float32, {1 << 20});
  EXPECT_GE(device_.statistics().memory_used, before + (4 << 20));
  const DeviceTelemetry telemetry = device_.telemetry();
  EXPECT_EQ(telemetry.power_milliwatts, -1);
  EXPECT_EQ(telemetry.memory_process_bytes >= 0, info.name != "cpu");
  device_.trim();
  EXPECT_TRUE(Stream::default_of(device_).finished());
  EXPECT_EQ(thrown_by([&] { return device_.native<compute_native_cuda>().context; }).code, COMPUTE_ERROR_UNSUPPORTED);
  EXPECT_EQ(thrown_by([&] { return x.native<compute_native_cuda>().address; }).code, COMPUTE_ERROR_UNSUPPORTED);
  EXPECT_EQ(thrown_by([&] { return Stream(device_).native<compute_native_cuda>().stream; }).code,
            COMPUTE_ERROR_UNSUPPORTED);
}

TEST_P(Handles, MemoryAndSemaphoresAreShared) {
  const bool is_cpu = std::string_view(GetParam()) == "cpu";
  const uint32_t kind = is_cpu ? COMPUTE_EXTERNAL_HOST_POINTER : COMPUTE_EXTERNAL_OPAQUE_FD;
  const auto [x, external] = device_.empty_external(kind, float32, {4});
  if (is_cpu) {
    EXPECT_EQ(x.native<compute_native_host>().address, external.address);
  }
  const Tensor y = device_.from_external(external, float32, {2}, 8);
  x.fill(3);
  x.synchronize();
  EXPECT_EQ((y + 1).to_vector<float>(), (std::vector<float>{4, 4}));
  auto semaphore_external = sized<compute_external>();
  const auto make = [&] { return Semaphore(device_, kind, &semaphore_external); };
  if (is_cpu) {
    EXPECT_EQ(thrown_by(make).code, COMPUTE_ERROR_UNSUPPORTED);
    return;
  }
  const Semaphore semaphore = make(), imported(device_, semaphore_external);
  const Stream writer(device_), reader(device_);
  imported.wait(reader, 5);
  const Tensor sum = add(y, y, reader);
  EXPECT_FALSE(reader.finished());
  semaphore.signal(writer, 5);
  EXPECT_EQ(sum.to_vector<float>(), (std::vector<float>{6, 6}));
}

COMPUTE_ON_DEVICES(Handles);

TEST(Process, SettingsLogAndReports) {
  EXPECT_EQ(version().minor, COMPUTE_VERSION_MINOR);
  config_set("COMPUTE_SPIN_US", "7");
  EXPECT_EQ(config_get("COMPUTE_SPIN_US").value, "7");
  EXPECT_NE(config_get("COMPUTE_SPIN_US").origin, "");
  const auto all = config_list();
  const auto spin = std::ranges::find(all, "COMPUTE_SPIN_US", &Setting::name);
  ASSERT_NE(spin, all.end());
  EXPECT_EQ(spin->value, "7");
  config_unset("COMPUTE_SPIN_US");
  EXPECT_NE(config_get("COMPUTE_SPIN_US").value, "7");
  EXPECT_EQ(thrown_by([] { return config_get("COMPUTE_SPIN"); }).code, COMPUTE_ERROR_NOT_FOUND);
  std::string program = "program", flag = "--compute-spin-us=9", rest = "rest";
  char* argv[] = {program.data(), flag.data(), rest.data(), nullptr};
  int argc = 3;
  config_arguments(argc, argv);
  EXPECT_EQ(argc, 2);
  EXPECT_STREQ(argv[1], "rest");
  EXPECT_EQ(config_get("COMPUTE_SPIN_US").value, "9");

  std::string lines;
  {
    config_set("COMPUTE_LOG", "info");
    const LogSink sink([&](LogLevel level, std::string_view category, std::string_view text) {
      lines += std::to_string(static_cast<int>(level)) + " " + std::string(category) + ": " + std::string(text) + "\n";
      throw std::runtime_error("dropped");
    });
    static_cast<void>(Device::open("minimal1"));
  }
  EXPECT_NE(lines.find("3 select: using minimal1"), std::string::npos) << lines;
  EXPECT_NE(load_report().find("minimal"), std::string::npos);
  EXPECT_EQ(load_report(Format::json)[0], '{');
  static_cast<void>(exp(Device::open("cpu").zeros(float32, {2})));
  EXPECT_NE(placement_report().find("exp"), std::string::npos);
}

TEST(ProcessDeathTest, ShutdownRefusesLaterCalls) {
  EXPECT_EXIT(
      {
        const Tensor x = Device::open("cpu").zeros(float32, {2});
        const bool drained = shutdown(10s);
        const Thrown refused = thrown_by([&] { return x + 1; });
        // What is released after the end is not freed, which a leak checker would report at exit.
        std::_Exit(drained && refused.code == COMPUTE_ERROR_SHUT_DOWN ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace cxx
