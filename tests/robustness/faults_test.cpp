// SPDX-License-Identifier: Apache-2.0
// Devices that fail while they work: the error comes with code, device and text, sticks where it must and nowhere else,
// and what heals is healed.
#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include "robustness.hpp"
#include "tests/gate/gate.hpp"

namespace robustness {
namespace {

constexpr compute_error_code kInvalid = COMPUTE_ERROR_INVALID_ARGUMENT;

struct Faulty {
  Faulty() {
    use_plugins({"faulty", "minimal"});
    device = open("faulty0");
  }
  Device device;
};

// The device computes right results.
void expect_works(compute_device* device) {
  set_faults("");
  const Stream stream = make_stream(device);
  const Tensor x = make_tensor<float>(device, {1, 2, 3});
  Tensor y;
  EXPECT_OK(run_op("square", stream, {x}, y.out()));
  EXPECT_EQ(read<float>(y), (std::vector<float>{1, 4, 9}));
}

int32_t health_of(compute_device* device) {
  int32_t health = -1;
  EXPECT_OK(compute_device_health(device, &health));
  return health;
}

// ---- Slots that fail ------------------------------------------------------------------------------------------------

// One rule, and the call that meets it. Both an error and an exception must come out as an error, and must not stick.
struct SlotFault {
  friend void PrintTo(const SlotFault& fault, std::ostream* out) { *out << fault.slot; }

  const char* slot;
  compute_error* (*call)(compute_device* device, compute_tensor* x);
};

compute_error* allocate(compute_device* device, compute_tensor*) {
  const int64_t shape[] = {1 << 20};
  Tensor tensor;
  return compute_tensor_empty(device, COMPUTE_DTYPE_FLOAT32, 1, shape, tensor.out());
}
compute_error* create_stream(compute_device* device, compute_tensor*) {
  Stream stream;
  return compute_stream_create(device, nullptr, stream.out());
}
compute_error* square(compute_device*, compute_tensor* x) {
  Tensor y;
  return run_op("square", nullptr, {x}, y.out());
}
// The caller frees out_answer->text.
compute_error* query_square(compute_device* device, compute_support* out_answer) {
  const compute_op* op = nullptr;
  EXPECT_OK(compute_op_find("square", 0, &op));
  const int64_t shape[] = {5};
  const compute_tensor_spec spec = {
      sizeof spec, COMPUTE_STRUCT_TENSOR_SPEC, nullptr, COMPUTE_DTYPE_FLOAT32, 1, shape, nullptr, 0, 0};
  *out_answer = {};
  out_answer->struct_size = sizeof *out_answer;
  return compute_op_query(device, op, nullptr, 0, &spec, 1, nullptr, 0, out_answer);
}
compute_error* query_square(compute_device* device, int32_t* out_support = nullptr) {
  compute_support answer;
  compute_error* error = query_square(device, &answer);
  compute_text_free(answer.text);
  if (out_support != nullptr) *out_support = answer.support;
  return error;
}
compute_error* ask(compute_device* device, compute_tensor*) { return query_square(device); }
compute_error* fill(compute_device* device, compute_tensor*) {
  const int64_t shape[] = {4};
  const float value = 1;
  Tensor tensor;
  return compute_tensor_full(device, COMPUTE_DTYPE_FLOAT32, 1, shape, &value, tensor.out());
}
compute_error* write(compute_device*, compute_tensor* x) {
  const float values[3] = {1, 2, 3};
  return compute_tensor_write(x, values, sizeof values);
}
compute_error* read_back(compute_device*, compute_tensor* x) {
  float values[3];
  return compute_tensor_read(x, values, sizeof values);
}

class FailingSlots : public testing::TestWithParam<SlotFault> {};

TEST_P(FailingSlots, GiveAnErrorThatDoesNotStick) {
  for (const std::string fault : {"error:INTERNAL", "throw"}) {
    const Outcome outcome = run_in_child([&] {
      const Faulty faulty;
      const Tensor x = make_tensor<float>(faulty.device, {1, 2, 3});
      set_faults(std::string(GetParam().slot) + "@1=" + fault);
      compute_error* error = GetParam().call(faulty.device, x);
      const std::string expected = fault == "throw" ? "throws in " : " fails as asked";
      const compute_error_code code = fault == "throw" ? COMPUTE_ERROR_PLUGIN_REJECTED : COMPUTE_ERROR_INTERNAL;
      EXPECT_TRUE(fails_with(error, code, {GetParam().slot, expected}));
      expect_works(faulty.device);
      EXPECT_EQ(health_of(faulty.device), COMPUTE_HEALTH_GOOD);
    });
    EXPECT_TRUE(outcome.exited(0)) << fault << "\n" << outcome.output;
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, FailingSlots,
                         testing::Values(SlotFault{"memory_allocate", allocate},
                                         SlotFault{"stream_create", create_stream}, SlotFault{"op_query", ask},
                                         SlotFault{"op_prepare", square}, SlotFault{"plan_run", square},
                                         SlotFault{"fill", fill}, SlotFault{"copy_from_host", write},
                                         SlotFault{"copy_to_host", read_back}),
                         [](const auto& info) { return std::string(info.param.slot); });

ISOLATED_TEST(Faults, AnErrorHasDeviceNativeCodeAndText) {
  const Faulty faulty;
  const Tensor x = make_full(faulty.device, {3}, 1.0f);
  set_faults("op_prepare=error:COMPILE_FAILED");
  Tensor y;
  const Error error(run_op("square", nullptr, {x}, y.out()));
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(compute_error_get_code(error.get()), COMPUTE_ERROR_COMPILE_FAILED);
  EXPECT_EQ(compute_error_native_code(error.get()), 4711);
  EXPECT_STREQ(compute_error_device(error.get()), "faulty0");
  EXPECT_STREQ(compute_error_op(error.get()), "square");
  EXPECT_EQ(y.get(), nullptr);
}

ISOLATED_TEST(Faults, CodesThatDoNotExistAreErrorsToo) {
  const Faulty faulty;
  const Tensor x = make_full(faulty.device, {3}, 1.0f);
  for (const char* code : {"0", "-1", "12345"}) {
    set_faults(std::string("plan_run@1=error:") + code);
    Tensor y;
    const compute_error_code actual = code_of(run_op("square", nullptr, {x}, y.out()));
    EXPECT_GT(actual, COMPUTE_OK);
    EXPECT_LE(actual, COMPUTE_ERROR_INTERNAL);
  }
}

// A submission that is refused whole leaves its output as it was, also where it is not known yet how that came about.
ISOLATED_TEST(Faults, ARefusedSubmissionLeavesWhatItsOutputIsToHold) {
  const Faulty faulty;
  const Stream one = make_stream(faulty.device), other = make_stream(faulty.device);
  const Tensor x = make_tensor<float>(faulty.device, {1, 2, 3}), z = make_tensor<float>(faulty.device, {7, 7, 7});
  Tensor y;
  ASSERT_OK(run_op("square", one, {x}, y.out()));
  const compute_op* op = nullptr;
  ASSERT_OK(compute_op_find("negative", 0, &op));
  compute_tensor *input = z, *output = y;
  for (const char* fault : {"error:INTERNAL", "throw"}) {
    set_faults(std::string("plan_run@1=") + fault);
    const Error error(compute_op_run(op, other, nullptr, 0, &input, 1, &output, 1));
    EXPECT_NE(error, nullptr);
  }
  set_faults("");
  EXPECT_EQ(read<float>(y), (std::vector<float>{1, 4, 9}));
  EXPECT_OK(compute_op_run(op, other, nullptr, 0, &input, 1, &output, 1));
  EXPECT_EQ(read<float>(y), std::vector<float>(3, -7.0f));
}

// ---- Memory ---------------------------------------------------------------------------------------------------------

ISOLATED_TEST(Faults, OutOfMemoryIsSurvived) {
  const Faulty faulty;
  const Tensor kept = make_full(faulty.device, {1000}, 3.0f);
  // Once: core releases its cache and tries again.
  set_faults("memory_allocate@1=error:OUT_OF_DEVICE_MEMORY");
  EXPECT_OK(allocate(faulty.device, nullptr));
  set_faults("memory_allocate=error:OUT_OF_DEVICE_MEMORY");
  const int64_t shape[] = {8 << 20};
  Tensor tensor;
  EXPECT_FAILS(compute_tensor_empty(faulty.device, COMPUTE_DTYPE_FLOAT32, 1, shape, tensor.out()),
               COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY, "faulty0", std::to_string(8 << 20 << 2));
  EXPECT_EQ(health_of(faulty.device), COMPUTE_HEALTH_GOOD);
  EXPECT_EQ(read<float>(kept)[999], 3);
  expect_works(faulty.device);
}

// Every allocation of a small program fails in turn.
ISOLATED_TEST(Faults, TheNthAllocationFails) {
  const Faulty faulty;
  int failures = 0;
  for (int n = 1; n < 50; ++n) {
    EXPECT_OK(compute_device_trim(faulty.device, 0));
    set_faults("memory_allocate@" + std::to_string(n) + "+=error:OUT_OF_DEVICE_MEMORY");
    const int64_t shape[] = {300, 1000};
    const float value = 2;
    Tensor x, y, z;
    compute_error* error = compute_tensor_full(faulty.device, COMPUTE_DTYPE_FLOAT32, 2, shape, &value, x.out());
    if (error == nullptr) error = run_op("exp", nullptr, {x}, y.out());
    if (error == nullptr) error = run_op("var", nullptr, {y}, z.out());
    if (error == nullptr) break;
    ++failures;
    EXPECT_FAILS(error, COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY, "faulty0");
  }
  EXPECT_GT(failures, 0);
  EXPECT_LT(failures, 49);
  expect_works(faulty.device);
}

// ---- Refusals -------------------------------------------------------------------------------------------------------

class Refusals : public testing::TestWithParam<int32_t> {};

TEST_P(Refusals, BecomeTheErrorOrTheAnswer) {
  const Outcome outcome = run_in_child([] {
    const Faulty faulty;
    const Tensor x = make_full(faulty.device, {3}, 1.0f);
    const std::string reason = std::to_string(GetParam());
    set_faults("op_query=refuse:" + reason + ";op_prepare=refuse:" + reason);
    Tensor y;
    EXPECT_FAILS(run_op("square", nullptr, {x}, y.out()), COMPUTE_ERROR_UNSUPPORTED, "square", "faulty0",
                 "faulty refuses as asked", "ask another device");
    // The plugin refuses operand 0 of its step. With REFUSE_INTRINSIC that is the id of an intrinsic.
    const int32_t argument = GetParam() != COMPUTE_REASON_INTRINSIC ? 0 : -1;
    compute_support answer;
    const auto expect_answer = [&](int32_t support) {
      EXPECT_OK(query_square(faulty.device, &answer));
      EXPECT_EQ(answer.support, support);
      EXPECT_EQ(answer.reason, GetParam() != 0 ? GetParam() : COMPUTE_REASON_NOT_IMPLEMENTED);
      EXPECT_EQ(answer.argument, argument);
      EXPECT_NE(take_text(answer.text).find("faulty refuses as asked"), std::string::npos);
    };
    expect_answer(COMPUTE_SUPPORT_NONE);
#if defined(COMPUTE_HAS_CPU_PLUGIN)
    ASSERT_OK(compute_config_set("COMPUTE_FALLBACK", "allow"));
    expect_answer(COMPUTE_SUPPORT_HOST);
    EXPECT_OK(run_op("square", nullptr, {x}, y.out()));
    ASSERT_OK(compute_config_set("COMPUTE_FALLBACK", nullptr));
#endif
    expect_works(faulty.device);
  });
  EXPECT_TRUE(outcome.exited(0)) << outcome.output;
}

#if defined(COMPUTE_HAS_CPU_PLUGIN)
// What happens if the device refuses an op, and the log's message.
struct Fallback {
  const char* setting;
  bool runs;
  int warnings;  // of two calls
};

class Fallbacks : public testing::TestWithParam<Fallback> {};

TEST_P(Fallbacks, AreWhatTheSettingSays) {
  const Outcome outcome = run_in_child([] {
    static int warnings = 0, traps = 0;
    signal(SIGTRAP, [](int) { ++traps; });
    const Faulty faulty;
    const std::string setting = GetParam().setting;
    ASSERT_OK(compute_config_set("COMPUTE_FALLBACK", setting.substr(setting.find('=') + 1).c_str()));
    ASSERT_OK(compute_log_set_callback(
        [](compute_borrowed_log_record record, void*) {
          warnings += std::string(record->category) == "place" &&
                      std::string(record->text).find("square runs on cpu") != std::string::npos;
        },
        nullptr));
    const Tensor x = make_full(faulty.device, {3}, 3.0f);
    set_faults("op_query=refuse:1;op_prepare=refuse:1");
    for (int call = 0; call < 2; ++call) {
      Tensor y;
      if (GetParam().runs) {
        EXPECT_OK(run_op("square", nullptr, {x}, y.out()));
        EXPECT_EQ(read<float>(y), std::vector<float>(3, 9.0f));
      } else {
        EXPECT_FAILS(run_op("square", nullptr, {x}, y.out()), COMPUTE_ERROR_UNSUPPORTED, "faulty refuses as asked");
      }
    }
    EXPECT_EQ(warnings, GetParam().warnings);
    EXPECT_EQ(traps, setting.ends_with("=break") ? 2 : 0);
  });
  EXPECT_TRUE(outcome.exited(0)) << outcome.output;
}

INSTANTIATE_TEST_SUITE_P(Faults, Fallbacks,
                         testing::Values(Fallback{"COMPUTE_FALLBACK=strict", false, 0},
                                         Fallback{"COMPUTE_FALLBACK=error", false, 0},
                                         Fallback{"COMPUTE_FALLBACK=warn", true, 1},
                                         Fallback{"COMPUTE_FALLBACK=allow", true, 0},
                                         Fallback{"COMPUTE_FALLBACK=break", true, 1}),
                         [](const auto& row) { return std::string(row.param.setting).substr(17); });
#endif

#if defined(COMPUTE_HAS_CPU_PLUGIN)
// Moving operands to the host must not need an op on the device: `copy` packs operands that are not row-major.
ISOLATED_TEST(Faults, AFallbackNeedsNoOpOfTheDevice) {
  const Faulty faulty;
  ASSERT_OK(compute_config_set("COMPUTE_FALLBACK", "allow"));
  const Tensor x = make_tensor<float>(faulty.device, {1, 2, 3, 4});
  const Tensor wide = make_full(faulty.device, {8}, 5.0f);
  const int64_t step = 2, reversed = -1;
  Tensor apart, backwards;
  ASSERT_OK(compute_tensor_slice(wide, 1, nullptr, nullptr, &step, apart.out()));
  ASSERT_OK(compute_tensor_slice(x, 1, nullptr, nullptr, &reversed, backwards.out()));
  set_faults("op_query=refuse:1;op_prepare=refuse:1");
  Tensor y = make_full(faulty.device, {4}, 7.0f);
  compute_tensor* output = y;
  EXPECT_OK(run_op("square", nullptr, {x}, &output));
  EXPECT_EQ(read<float>(y), (std::vector<float>{1, 4, 9, 16}));
  EXPECT_OK(run_op("copy", nullptr, {x}, &output));
  EXPECT_EQ(read<float>(y), (std::vector<float>{1, 2, 3, 4}));
  output = apart;
  EXPECT_FAILS(run_op("square", nullptr, {x}, &output), COMPUTE_ERROR_UNSUPPORTED, "faulty refuses as asked");
  output = y;
  EXPECT_FAILS(run_op("square", nullptr, {backwards}, &output), COMPUTE_ERROR_UNSUPPORTED, "faulty refuses as asked");
  set_faults("");
  EXPECT_EQ(read<float>(y), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(read<float>(wide), std::vector<float>(8, 5.0f));
}
#endif

// Every reason of plugin.h, and numbers that are none.
INSTANTIATE_TEST_SUITE_P(Faults, Refusals,
                         testing::Values(COMPUTE_REASON_NOT_IMPLEMENTED, COMPUTE_REASON_DTYPE, COMPUTE_REASON_LAYOUT,
                                         COMPUTE_REASON_RANK, COMPUTE_REASON_SHAPE, COMPUTE_REASON_ATTRIBUTE,
                                         COMPUTE_REASON_LIBRARY_MISSING, COMPUTE_REASON_INTRINSIC, 9, 0, -1, 1000));

// A run is not preceded by a query: what op_query answers has no part in it.
ISOLATED_TEST(Faults, ARunAsksNothingBeforehand) {
  const Faulty faulty;
  const Tensor x = make_full(faulty.device, {3}, 2.0f);
  set_faults("op_query=error:INTERNAL");
  Tensor y;
  EXPECT_OK(run_op("square", nullptr, {x}, y.out()));
  EXPECT_EQ(read<float>(y), std::vector<float>(3, 4.0f));
}

// The steps before one that is refused are prepared; they are released, and the next way to run the op is taken.
ISOLATED_TEST(Faults, ARefusedStepReleasesThoseBeforeIt) {
  const Faulty faulty;
  const Tensor x = make_tensor<float>(faulty.device, {1, 2, 6});
  for (const char* nth : {"@1", "@2", "@3"}) {
    EXPECT_OK(compute_device_trim(faulty.device, 0));
    set_faults(std::string("op_prepare") + nth + "=refuse:1");
    Tensor y;
    if (compute_error* error = run_op("var", nullptr, {x}, y.out())) {
      EXPECT_FAILS(error, COMPUTE_ERROR_UNSUPPORTED, "var", "faulty refuses as asked");
    } else {
      EXPECT_NEAR(read<float>(y)[0], 14.0f / 3, 1e-5f);
    }
  }
  expect_works(faulty.device);
}

ISOLATED_TEST(Faults, APreparedLieIsFound) {
  const Faulty faulty;
  const Tensor x = make_full(faulty.device, {7}, 1.0f);
  Tensor y;
  for (const char* plan : {"plan=zero", "plan=workspace:-1", "plan=flags:65536", "plan=next", "op_prepare=lie",
                           "op_prepare=silent", "op_prepare=refuse_twice:1", "op_prepare=contradict:1"}) {
    set_faults(plan);
    EXPECT_FAILS(run_op("square", nullptr, {x}, y.out()), COMPUTE_ERROR_PLUGIN_REJECTED, "faulty0");
  }
  set_faults("op_prepare=refuse_next:1");
  EXPECT_FAILS(run_op("square", nullptr, {x}, y.out()), COMPUTE_ERROR_PLUGIN_REJECTED, "faulty0",
               "must not be ignored");
  for (const char* answer :
       {"op_query=refuse_next:1", "op_query=answer_next", "op_query=answer_flags:65536", "op_query=refuse_twice:1"}) {
    set_faults(answer);
    EXPECT_FAILS(query_square(faulty.device), COMPUTE_ERROR_PLUGIN_REJECTED, "faulty0", "op_query");
  }
  set_faults("op_query=silent");
  int32_t support = -1;
  EXPECT_OK(query_square(faulty.device, &support));
  EXPECT_EQ(support, COMPUTE_SUPPORT_NONE);
  set_faults("plan=workspace:4611686018427387904");
  EXPECT_FAILS(run_op("square", nullptr, {x}, y.out()), COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY);
  expect_works(faulty.device);
}

// ---- Streams that fail ----------------------------------------------------------------------------------------------

ISOLATED_TEST(Faults, AFailedStreamStaysFailedAndANewOneHeals) {
  const Faulty faulty;
  const Stream stream = make_stream(faulty.device);
  const Tensor x = make_full(faulty.device, {3}, 1.0f);
  Tensor y;
  EXPECT_OK(run_op("square", stream, {x}, y.out()));
  EXPECT_OK(compute_device_synchronize(faulty.device));
  EXPECT_OK(run_op("square", stream, {x}, y.out()));
  set_faults("stream_sync=error:STREAM_FAILED;stream_reached=error:STREAM_FAILED");
  EXPECT_FAILS(compute_stream_synchronize(stream), COMPUTE_ERROR_STREAM_FAILED, "stream_");
  set_faults("");
  EXPECT_FAILS(compute_stream_synchronize(stream), COMPUTE_ERROR_STREAM_FAILED);
  int32_t finished = -1;
  EXPECT_FAILS(compute_stream_query(stream, &finished), COMPUTE_ERROR_STREAM_FAILED);
  EXPECT_NE(code_of(run_op("square", stream, {x}, y.out())), COMPUTE_OK);
  EXPECT_EQ(health_of(faulty.device), COMPUTE_HEALTH_GOOD);
  expect_works(faulty.device);
}

ISOLATED_TEST(Faults, SpoiltTensorsAreKnownAndAnOverwriteHealsThem) {
  const Faulty faulty;
  const Stream bad = make_stream(faulty.device), good = make_stream(faulty.device);
  const Tensor x = make_full(faulty.device, {3}, 2.0f);
  EXPECT_OK(compute_device_synchronize(faulty.device));
  Tensor y, z;
  EXPECT_OK(run_op("square", bad, {x}, y.out()));
  set_faults("stream_sync@1=error:STREAM_FAILED;stream_reached@1=error:STREAM_FAILED");
  EXPECT_FAILS(compute_stream_synchronize(bad), COMPUTE_ERROR_STREAM_FAILED);
  set_faults("");
  float values[3];
  EXPECT_FAILS(compute_tensor_read(y, values, sizeof values), COMPUTE_ERROR_STREAM_FAILED, "square");
  EXPECT_EQ(code_of(run_op("exp", good, {y}, z.out())), COMPUTE_ERROR_STREAM_FAILED);  // or poisoned when it is read
  EXPECT_EQ(read<float>(x), std::vector<float>(3, 2.0f));
  const float fresh[] = {7, 8, 9};
  EXPECT_OK(compute_tensor_write(y, fresh, sizeof fresh));
  EXPECT_EQ(read<float>(y), (std::vector<float>{7, 8, 9}));
}

ISOLATED_TEST(Faults, NotificationsSayWhy) {
  const Faulty faulty;
  const Stream stream = make_stream(faulty.device);
  const Tensor x = make_full(faulty.device, {3}, 1.0f);
  Tensor y;
  static std::atomic<int> good = 0, bad = 0;
  const auto callback = [](const compute_error* error, void*) { ++(error == nullptr ? good : bad); };
  auto wait_for = [](const std::atomic<int>& count) {
    for (int i = 0; i < 12000 && count == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return count.load();
  };
  EXPECT_OK(run_op("square", stream, {x}, y.out()));
  EXPECT_OK(compute_stream_notify(stream, callback, nullptr));
  EXPECT_EQ(wait_for(good), 1);
  set_faults("stream_sync=error:STREAM_FAILED;stream_reached=error:STREAM_FAILED");
  EXPECT_OK(run_op("square", stream, {x}, y.out()));
  EXPECT_OK(compute_stream_notify(stream, callback, nullptr));
  EXPECT_EQ(wait_for(bad), 1);
  EXPECT_FAILS(compute_stream_notify(stream, nullptr, nullptr), kInvalid, "callback");
}

ISOLATED_TEST(Faults, AHangEndsWithTheTimeLimit) {
  const Faulty faulty;
  const Stream stream = make_stream(faulty.device);
  const Tensor x = make_full(faulty.device, {2000}, 1.0f);
  Tensor y;
  compute::Gate gate;
  gate.hold(stream, faulty.device);
  ASSERT_OK(run_op("square", stream, {x}, y.out()));
  int32_t reached = -1, finished = -1;
  EXPECT_OK(compute_stream_wait_for(stream, 20'000'000, &reached));
  EXPECT_OK(compute_stream_query(stream, &finished));
  EXPECT_EQ(reached, 0);
  EXPECT_EQ(finished, 0);
  gate.open();
  EXPECT_OK(compute_stream_wait_for(stream, COMPUTE_TIMEOUT_NONE, &reached));
  EXPECT_EQ(reached, 1);
}

// ---- Severities -----------------------------------------------------------------------------------------------------

struct Severity {
  friend void PrintTo(const Severity& severity, std::ostream* out) { *out << severity.code; }

  const char* code;
  compute_error_code error;
  int32_t health;
};

class Severities : public testing::TestWithParam<Severity> {};

TEST_P(Severities, ConcernThisDeviceAlone) {
  const Outcome outcome = run_in_child([] {
    const Faulty faulty;
    const Device other = open("minimal0"), second = open("faulty1");
    const Tensor x = make_full(faulty.device, {3}, 1.0f), host = make_full(open("cpu"), {3}, 5.0f);
    set_faults(std::string("plan_run@1=error:") + GetParam().code);
    Tensor y;
    const Error error(run_op("square", nullptr, {x}, y.out()));
    ASSERT_NE(error, nullptr);
    EXPECT_EQ(compute_error_get_code(error.get()), GetParam().error);
    EXPECT_STREQ(compute_error_device(error.get()), "faulty0");
    EXPECT_EQ(health_of(faulty.device), GetParam().health);
    set_faults("");
    EXPECT_FAILS(run_op("square", nullptr, {x}, y.out()), GetParam().error, "faulty0");  // it says so from now on
    Stream stream;
    EXPECT_FAILS(compute_stream_create(faulty.device, nullptr, stream.out()), GetParam().error, "faulty0");
    EXPECT_EQ(read<float>(host), std::vector<float>(3, 5.0f));
    EXPECT_EQ(health_of(other), COMPUTE_HEALTH_GOOD);
    expect_works(other);
    Device again;
    if (GetParam().error == COMPUTE_ERROR_CONTEXT_LOST) {
      EXPECT_OK(compute_device_open("faulty0", again.out()));
      EXPECT_NE(again.get(), faulty.device.get());
      expect_works(again);
      EXPECT_EQ(open("faulty0").get(), again.get());
      Tensor z;
      const Tensor host_x = make_full(open("cpu"), {3}, 2.0f);
      EXPECT_OK(run_op("square", make_stream(again), {host_x}, z.out()));
      EXPECT_EQ(read<float>(z), std::vector<float>(3, 4.0f));
    } else {
      EXPECT_FAILS(compute_device_open("faulty0", again.out()), GetParam().error, "faulty0");
    }
    EXPECT_FAILS(run_op("square", nullptr, {x}, y.out()), GetParam().error, "faulty0");  // the old handle still does
    EXPECT_EQ(health_of(faulty.device), GetParam().health);
  });
  EXPECT_TRUE(outcome.exited(0)) << outcome.output;
}

INSTANTIATE_TEST_SUITE_P(
    Faults, Severities,
    testing::Values(Severity{"CONTEXT_LOST", COMPUTE_ERROR_CONTEXT_LOST, COMPUTE_HEALTH_CONTEXT_LOST},
                    Severity{"DEVICE_LOST", COMPUTE_ERROR_DEVICE_LOST, COMPUTE_HEALTH_DEVICE_LOST},
                    Severity{"RESTART_REQUIRED", COMPUTE_ERROR_RESTART_REQUIRED, COMPUTE_HEALTH_RESTART_REQUIRED}),
    [](const auto& info) { return std::string(info.param.code); });

// ---- Graphs ---------------------------------------------------------------------------------------------------------

ISOLATED_TEST(Faults, AnErrorInTheMiddleOfAGraph) {
  const Faulty faulty;
  const Stream stream = make_stream(faulty.device);
  const Tensor x = make_full(faulty.device, {3}, 2.0f);
  Tensor a, b, c;
  Graph graph;
  ASSERT_OK(compute_graph_begin(stream, nullptr));
  EXPECT_OK(run_op("square", stream, {x}, a.out()));
  EXPECT_OK(run_op("negative", stream, {a}, b.out()));
  EXPECT_OK(run_op("square", stream, {b}, c.out()));
  ASSERT_OK(compute_graph_end(stream, graph.out()));
  EXPECT_OK(compute_graph_run(graph, stream));
  EXPECT_EQ(read<float>(c), std::vector<float>(3, 16.0f));

  set_faults("plan_run@2=error:INTERNAL");
  EXPECT_FAILS(compute_graph_run(graph, stream), COMPUTE_ERROR_INTERNAL, "plan_run fails as asked");
  set_faults("");
  const Stream fresh = make_stream(faulty.device);
  EXPECT_OK(compute_graph_run(graph, fresh));
  EXPECT_OK(compute_stream_synchronize(fresh));
  EXPECT_EQ(read<float>(c), std::vector<float>(3, 16.0f));
}

ISOLATED_TEST(Faults, AnErrorWhileRecordingLeavesNoGraph) {
  const Faulty faulty;
  const Stream stream = make_stream(faulty.device);
  const Tensor x = make_full(faulty.device, {3}, 2.0f);
  Tensor a;
  Graph graph;
  ASSERT_OK(compute_graph_begin(stream, nullptr));
  set_faults("op_prepare=error:COMPILE_FAILED");
  EXPECT_FAILS(run_op("square", stream, {x}, a.out()), COMPUTE_ERROR_COMPILE_FAILED);
  set_faults("");
  EXPECT_FAILS(compute_graph_end(stream, graph.out()), COMPUTE_ERROR_COMPILE_FAILED);
  EXPECT_EQ(graph.get(), nullptr);
  EXPECT_OK(run_op("square", stream, {x}, a.out()));  // the stream records no longer
  EXPECT_EQ(read<float>(a), std::vector<float>(3, 4.0f));
}

ISOLATED_TEST(Faults, PlansThatCannotBeCapturedSaySo) {
  const Faulty faulty;
  const Stream stream = make_stream(faulty.device);
  const Tensor x = make_full(faulty.device, {3}, 2.0f);
  Tensor a;
  Graph graph;
  set_faults("plan=not_capturable");
  ASSERT_OK(compute_graph_begin(stream, nullptr));
  EXPECT_FAILS(run_op("square", stream, {x}, a.out()), COMPUTE_ERROR_UNSUPPORTED, "square");
  EXPECT_FAILS(compute_graph_end(stream, graph.out()), COMPUTE_ERROR_UNSUPPORTED);
}

// ---- What is recycled -----------------------------------------------------------------------------------------------

class Recycled : public testing::TestWithParam<const char*> {};

// An untracked stream waits for work that fails, and goes without having done anything. The next stream may be made of
// its record.
TEST_P(Recycled, AStreamInheritsNothing) {
  const Outcome outcome = run_in_child([] {
    use_plugins({"minimal"});
    const Device device = open(GetParam());
    const Stream stream = make_stream(device);
    const Tensor x = make_full(device, {1 << 16}, 1.0f);
    const Tensor beyond = make_tensor<int64_t>(device, {0, 1, 1 << 20});
    {
      compute_stream_options options = {};
      options.struct_size = sizeof options;
      options.flags = COMPUTE_STREAM_UNTRACKED;
      Stream untracked;
      ASSERT_OK(compute_stream_create(device, &options, untracked.out()));
      for (int i = 0; i < 5; ++i) {
        Tensor y;
        ASSERT_OK(run_op("erf", stream, {x}, y.out()));
      }
      Tensor taken;
      ASSERT_OK(compute_take(stream, x, beyond, nullptr, taken.out()));
      Event event;
      ASSERT_OK(compute_event_record(stream, nullptr, event.out()));
      ASSERT_OK(compute_event_wait(event, untracked));
    }
    for (int i = 0; i < 3; ++i) {
      const Stream other = make_stream(device);
      const Tensor a = make_tensor<float>(device, {1, 2, 3});
      Tensor b;
      EXPECT_OK(run_op("square", other, {a}, b.out()));
      EXPECT_OK(compute_stream_synchronize(other));
      EXPECT_EQ(read<float>(b), (std::vector<float>{1, 4, 9}));
    }
    EXPECT_FAILS(compute_stream_synchronize(stream), COMPUTE_ERROR_KERNEL_FAILED, "take");
  });
  EXPECT_TRUE(outcome.exited(0)) << outcome.output;
}

INSTANTIATE_TEST_SUITE_P(Faults, Recycled, testing::ValuesIn(devices_with_ops()),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace robustness
