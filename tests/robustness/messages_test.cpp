// SPDX-License-Identifier: Apache-2.0
// How messages quote the caller's texts: as UTF-8 on one line, limited in length, with the caller's
// names.
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <vector>

#include "robustness.hpp"
#include "tests/dlpack/dlpack.hpp"

namespace robustness {
namespace {

constexpr compute_error_code kInvalid = COMPUTE_ERROR_INVALID_ARGUMENT;

// Whether `text` is UTF-8 without control characters other than new lines.
bool is_clean(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto byte = [&](size_t k) { return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0u; };
    const unsigned first = byte(0);
    const size_t size = first < 0x80                    ? 1
                        : first >= 0xC2 && first < 0xE0 ? 2
                        : first >= 0xE0 && first < 0xF0 ? 3
                        : first >= 0xF0 && first < 0xF5 ? 4
                                                        : 0;
    if (size == 0 || (size == 1 && (first == 0x7F || (first < 0x20 && first != '\n')))) return false;
    for (size_t k = 1; k < size; ++k) {
      if ((byte(k) & 0xC0) != 0x80) return false;
    }
    const bool is_overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
    const bool is_surrogate = first == 0xED && byte(1) > 0x9F;
    const bool is_control = first == 0xC2 && byte(1) < 0xA0;
    if (is_overlong || is_surrogate || is_control || (first == 0xF4 && byte(1) > 0x8F)) return false;
    i += size;
  }
  return true;
}

std::vector<std::string> hostile_texts() {
  std::vector<std::string> texts = {"\xff\xfe",
                                    "a\xc3",
                                    "\xc0\xaf",
                                    "\xed\xa0\x80",
                                    "x\xf4\x90\x80\x80",
                                    "two\nlines",
                                    "\x1b[31mred\a\b",
                                    "a\rb\tc\x7f",
                                    "\xc2\x9b"
                                    "31m",
                                    "\xe2\x80\xae"
                                    "turned",
                                    "gr\xc3\xb6\xc3\x9f"
                                    "e\xff"};
  texts.push_back(std::string(100000, 'x'));
  std::string wide;
  for (int i = 0; i < 30000; ++i) wide += "\xe2\x82\xac";
  texts.push_back(wide + "\x80");
  return texts;
}

// The call must fail, with a message whose first line says little more than the shortened text.
void expect_clean(compute_error* error, const char* what, const std::string& text) {
  const Error owner(error);
  const std::string shown = text.substr(0, 12);
  ASSERT_NE(error, nullptr) << what << " took " << testing::PrintToString(shown);
  const std::string message = compute_error_message(error);
  EXPECT_TRUE(is_clean(message)) << what << ": " << testing::PrintToString(message.substr(0, 400));
  EXPECT_TRUE(is_clean(compute_error_op(error))) << what;
  EXPECT_LT(message.find('\n') == std::string::npos ? message.size() : message.find('\n'), 2500u) << what;
  EXPECT_LT(message.size(), 20000u) << what;
}

ISOLATED_TEST(Messages, ShowHostileTextsAsCleanLines) {
  use_plugins({"minimal"});
  const Device device = open("minimal0");
  const Tensor x = make_full(device, {4}, 1.0f);
  for (const std::string& text : hostile_texts()) {
    const char* given = text.c_str();
    Device other;
    int64_t count = 0;
    expect_clean(compute_device_open(given, other.out()), "compute_device_open", text);
    expect_clean(compute_device_open(("cpu@name~" + text).c_str(), other.out()), "a name", text);
    expect_clean(compute_device_open(("cpu+" + text).c_str(), other.out()), "an option", text);
    expect_clean(compute_device_open(("cpu+mem=" + text).c_str(), other.out()), "a size", text);
    expect_clean(compute_device_attributes(given, nullptr, 0, &count), "compute_device_attributes", text);
    const compute_op* op = nullptr;
    expect_clean(compute_op_find(given, 0, &op), "compute_op_find", text);
    const int64_t value = 1;
    Tensor y;
    expect_clean(run_op("sum", nullptr, {x}, y.out(), {int_attribute(given, &value, 1)}), "an attribute's name", text);
    expect_clean(compute_config_set(given, "1"), "compute_config_set", text);
    expect_clean(compute_config_set("COMPUTE_FALLBACK", given), "a choice", text);
    expect_clean(compute_config_set("COMPUTE_SPIN_US", given), "a number", text);
    expect_clean(compute_config_set("COMPUTE_MEMORY_LIMIT", given), "a size", text);
    std::string flag = "--compute-" + text;
    char program[] = "program";
    char* arguments[] = {program, flag.data(), nullptr};
    int32_t argument_count = 2;
    expect_clean(compute_config_arguments(&argument_count, arguments), "compute_config_arguments", text);
    Expression expression;
    expect_clean(compute_expression_parse(("a + " + text).c_str(), nullptr, 0, nullptr, 0, expression.out()),
                 "an expression", text);
    expect_clean(compute_expression_parse((text + "(1)").c_str(), nullptr, 0, nullptr, 0, expression.out()),
                 "a function", text);
    const std::string broken_name = "1" + text;
    const char* names[] = {broken_name.c_str()};
    expect_clean(compute_expression_parse("1", names, 1, nullptr, 0, expression.out()), "an operand's name", text);
    compute_kernel* kernel = nullptr;
    expect_clean(compute_kernel_compile(device, given, "", -1, given, nullptr, &kernel), "compute_kernel_compile",
                 text);
    compute_attribute reduction = int_attribute("reduction", nullptr, 1);
    const compute_string string = {given, static_cast<int64_t>(text.size())};
    reduction.kind = COMPUTE_KIND_STRING;
    reduction.values = &string;
    const Tensor indices = make_full(device, {4}, int64_t{0});
    expect_clean(run_op("scatter", nullptr, {x, indices, x}, y.out(), {reduction}), "an attribute's value", text);
  }
}

ISOLATED_TEST(Messages, EscapeReplaceAndShorten) {
  const compute_op* op = nullptr;
  const auto find = [&](const std::string& name) { return message_of(compute_op_find(name.c_str(), 0, &op)); };
  EXPECT_EQ(find("a\nb\t\x1b[0m\x7f"), "unknown op \"a\\nb\\t\\x1b[0m\\x7f\"");
  EXPECT_EQ(find("\xe2\x80\xae!!!!!!\xc2\x85"), "unknown op \"\\u202e!!!!!!\\u0085\"");
  EXPECT_EQ(find("gr\xc3\xb6\xc3\x9f"
                 "e_\xff\xc3"),
            "unknown op \"gr\xc3\xb6\xc3\x9f"
            "e_\xef\xbf\xbd\xef\xbf\xbd\"");
  EXPECT_EQ(find(std::string(200, '!')), "unknown op \"" + std::string(200, '!') + "\"");
  EXPECT_EQ(find(std::string(201, '!')), "unknown op \"" + std::string(200, '!') + "\xe2\x80\xa6 (201 bytes)\"");
  std::string euros, shown;
  for (int i = 0; i < 500; ++i) euros += "\xe2\x82\xac";
  shown = euros.substr(0, 600);
  EXPECT_EQ(find(euros), "unknown op \"" + shown + "\xe2\x80\xa6 (1500 bytes)\"");
}

// The caret's column in characters, of the line above it.
void expect_caret_under(const std::string& message, const std::string& line, size_t column) {
  const size_t begin = message.find("\n  " + line + "\n");
  ASSERT_NE(begin, std::string::npos) << message;
  const size_t caret = message.find('\n', begin + 1) + 1;
  EXPECT_EQ(message.substr(caret, message.find('\n', caret) - caret), std::string(2 + column, ' ') + "^") << message;
}

ISOLATED_TEST(Messages, PutTheCaretUnderWhatIsShown) {
  Device device;
  Expression expression;
  const auto open_message = [&](const std::string& text) {
    return message_of(compute_device_open(text.c_str(), device.out()));
  };
  const auto parse_message = [&](const std::string& text) {
    return message_of(compute_expression_parse(text.c_str(), nullptr, 0, nullptr, 0, expression.out()));
  };
  expect_caret_under(open_message("cpu,\x1b[31m\xff"), "cpu,\\x1b[31m\xef\xbf\xbd", 4);
  expect_caret_under(open_message("cpu@name~gr\xc3\xb6\xc3\x9f"
                                  "e,cdua0"),
                     "cpu@name~gr\xc3\xb6\xc3\x9f"
                     "e,cdua0",
                     15);
  expect_caret_under(open_message("cpu@name~\xff\xff,cdua0"), "cpu@name~\xef\xbf\xbd\xef\xbf\xbd,cdua0", 12);
  expect_caret_under(parse_message("1 + \xc3\xb6"), "1 + \xc3\xb6", 4);
  expect_caret_under(parse_message("1 +\t\x01"), "1 + \\x01", 4);
  expect_caret_under(parse_message("1 +\n\xff"), "\xef\xbf\xbd", 0);
  // Of a long line what surrounds the fault: sixty characters before it.
  std::string longer = "cpu";
  while (longer.size() < 1000) longer += ",cpu";
  expect_caret_under(open_message(longer + ",cdua"),
                     "\xe2\x80\xa6" + (longer + ",").substr(longer.size() + 1 - 60) + "cdua", 61);
}

ISOLATED_TEST(Messages, OfTheEnvironmentAreClean) {
  static std::string lines;
  ASSERT_OK(compute_log_set_callback(
      [](compute_borrowed_log_record record, void*) { lines += std::string(record->text) + "\n"; }, nullptr));
  setenv("COMPUTE_PLUGIN_PATH", "/no/such\xff\x1b/folder\nat all:\xc3", 1);
  setenv("COMPUTE_DEVICE", "cpu\xff", 1);
  Device device;
  const std::string message = message_of(compute_device_open(nullptr, device.out()));
  EXPECT_TRUE(is_clean(message)) << message;
  EXPECT_NE(message.find("COMPUTE_"), std::string::npos) << message;
  setenv("COMPUTE_PLUGIN_PATH", ("/no/such\xff" + std::string(3000, 'x')).c_str(), 1);
  unsetenv("COMPUTE_DEVICE");
  compute_text* report = nullptr;
  ASSERT_OK(compute_load_report(COMPUTE_FORMAT_TEXT, &report));
  EXPECT_TRUE(is_clean(take_text(report)));
  EXPECT_TRUE(is_clean(lines)) << lines;
}

ISOLATED_TEST(Messages, OfFoldersAndFilesAreClean) {
  setenv("COMPUTE_PLUGIN_PATH", ("/no/such\xff" + std::string(3000, 'x')).c_str(), 1);
  Device device;
  const std::string message = message_of(compute_device_open("cuda7", device.out()));
  EXPECT_TRUE(is_clean(message)) << message;
  EXPECT_NE(message.find("/no/such\xef\xbf\xbdxxx"), std::string::npos) << message;
  EXPECT_NE(message.find("\xe2\x80\xa6 (3009 bytes)"), std::string::npos) << message;
  compute_text* report = nullptr;
  ASSERT_OK(compute_load_report(COMPUTE_FORMAT_TEXT, &report));
  EXPECT_TRUE(is_clean(take_text(report)));
}

ISOLATED_TEST(Messages, OfAConfigurationFileAreClean) {
  setenv("COMPUTE_CONFIG", "/no/such\xff.toml", 1);
  Device device;
  const std::string message = message_of(compute_device_open(nullptr, device.out()));
  EXPECT_NE(message.find("cannot read /no/such\xef\xbf\xbd.toml"), std::string::npos) << message;
}

ISOLATED_TEST(Messages, OfWhatAConfigurationFileHoldsAreClean) {
  const std::string file = testing::TempDir() + "settings_" + std::to_string(getpid()) + "\xff.toml";
  std::ofstream(file) << "\"two\\nlines\\u001b\" = 1\n";
  setenv("COMPUTE_CONFIG", file.c_str(), 1);
  Device device;
  const std::string message = message_of(compute_device_open(nullptr, device.out()));
  std::remove(file.c_str());
  EXPECT_NE(message.find("\xef\xbf\xbd.toml:1: unknown setting \"two\\nlines\\x1b\""), std::string::npos) << message;
}

// ---- The caller's own names -----------------------------------------------------------------------------------------

ISOLATED_TEST(Messages, OfDlpackNameWhatTheCallerGave) {
  alignas(64) static float values[8] = {};
  static int64_t shape[] = {4}, strides[] = {int64_t{1} << 62};
  DLManagedTensorVersioned good = {};
  good.version = {1, 0};
  good.dl_tensor.data = values;
  good.dl_tensor.device = {1, 0};
  good.dl_tensor.ndim = 1;
  good.dl_tensor.dtype = {2, 32, 1};
  good.dl_tensor.shape = shape;
  const auto refused = [&](compute_error_code code, std::string_view part, void (*spoil)(DLManagedTensorVersioned&)) {
    DLManagedTensorVersioned managed = good;
    spoil(managed);
    Tensor tensor;
    compute_error* error = compute_tensor_from_dlpack(&managed, tensor.out());
    ASSERT_NE(error, nullptr) << part;
    EXPECT_EQ(std::string_view(compute_error_message(error)).substr(0, 27), "compute_tensor_from_dlpack:")
        << compute_error_message(error);
    EXPECT_EQ(std::string_view(compute_error_message(error)).find("wrap_host"), std::string_view::npos);
    EXPECT_TRUE(fails_with(error, code, {part}));
  };
  refused(kInvalid, "managed->dl_tensor.data is NULL", [](auto& m) { m.dl_tensor.data = nullptr; });
  refused(kInvalid, "managed->dl_tensor.data is NULL", [](auto& m) {
    m.dl_tensor.data = nullptr;
    m.dl_tensor.byte_offset = 64;
  });
  refused(kInvalid, "managed->dl_tensor.shape is NULL", [](auto& m) { m.dl_tensor.shape = nullptr; });
  refused(kInvalid, "managed->dl_tensor: rank -1", [](auto& m) { m.dl_tensor.ndim = -1; });
  refused(kInvalid, "managed->dl_tensor: data is not aligned to 4 bytes", [](auto& m) { m.dl_tensor.byte_offset = 2; });
  refused(COMPUTE_ERROR_OUT_OF_RANGE, "managed->dl_tensor: stride", [](auto& m) { m.dl_tensor.strides = strides; });
  refused(COMPUTE_ERROR_UNSUPPORTED, "managed->version is 2.0", [](auto& m) { m.version.major = 2; });
  refused(COMPUTE_ERROR_UNSUPPORTED, "managed->dl_tensor.dtype", [](auto& m) { m.dl_tensor.dtype.lanes = 4; });
  refused(COMPUTE_ERROR_UNSUPPORTED, "managed->dl_tensor.device", [](auto& m) { m.dl_tensor.device.device_type = 99; });
  Tensor part;
  const int64_t two[] = {2};
  ASSERT_OK(compute_tensor_wrap_host(COMPUTE_DTYPE_FLOAT32, 1, two, nullptr, values + 1, COMPUTE_WRAP_EXPOSED, nullptr,
                                     nullptr, part.out()));
  refused(COMPUTE_ERROR_UNSUPPORTED, "partly overlaps a wrapped range", [](auto&) {});
  Tensor tensor;
  const int64_t negative[] = {-4};
  EXPECT_FAILS(compute_tensor_from_host(open("cpu"), COMPUTE_DTYPE_FLOAT32, 1, negative, values, tensor.out()),
               kInvalid, "compute_tensor_from_host: shape[0] is -4");
  EXPECT_FAILS(compute_tensor_from_host(open("cpu"), COMPUTE_DTYPE_FLOAT32, 1, shape, nullptr, tensor.out()), kInvalid,
               "compute_tensor_from_host: data is NULL");
}

// Each of DLPack's two structs, handed over as the other one.
ISOLATED_TEST(Messages, OfDlpackTellTheStructsApart) {
  alignas(64) static float values[8] = {};
  static int64_t shape[] = {4};
  DLManagedTensor old = {};
  old.dl_tensor.data = values;
  old.dl_tensor.device = {1, 0};
  old.dl_tensor.ndim = 1;
  old.dl_tensor.dtype = {2, 32, 1};
  old.dl_tensor.shape = shape;
  union {
    DLManagedTensor old;
    DLManagedTensorVersioned versioned;
  } both = {};
  both.old = old;
  Tensor tensor;
  EXPECT_FAILS(compute_tensor_from_dlpack(&both.versioned, tensor.out()), kInvalid,
               "this looks like an unversioned DLManagedTensor; pass it to compute_tensor_from_dlpack_unversioned");
  both.versioned = {};
  both.versioned.version = {1, 1};
  both.versioned.manager_ctx = &both;
  both.versioned.deleter = [](DLManagedTensorVersioned*) {};
  both.versioned.dl_tensor = old.dl_tensor;
  EXPECT_FAILS(compute_tensor_from_dlpack_unversioned(&both.old, tensor.out()), kInvalid,
               "this looks like a DLManagedTensorVersioned of version 1.1; pass it to compute_tensor_from_dlpack");
  EXPECT_OK(compute_tensor_from_dlpack_unversioned(&old, tensor.out()));
  old.dl_tensor.ndim = -1;
  EXPECT_FAILS(compute_tensor_from_dlpack_unversioned(&old, tensor.out()), kInvalid,
               "compute_tensor_from_dlpack_unversioned: managed->dl_tensor: rank -1");
  const Tensor x = make_tensor<float>(open("cpu"), {1, 2}, {2});
  EXPECT_FAILS(compute_tensor_to_dltensor(x, nullptr), kInvalid, "out_dltensor is NULL");
  Tensor scalar;
  const float one = 1;
  ASSERT_OK(compute_tensor_scalar(COMPUTE_DTYPE_FLOAT32, &one, 0, scalar.out()));
  DLTensor view;
  std::memset(&view, 0x5A, sizeof view);
  EXPECT_FAILS(compute_tensor_to_dltensor(scalar, &view), kInvalid, "a scalar has no memory");
  EXPECT_EQ(view.data, nullptr) << "written on error too";
  EXPECT_EQ(view.ndim, 0);
}

ISOLATED_TEST(Messages, OfLaunchesNameTheParameterAndItsSize) {
  if (kSanitizer) GTEST_SKIP() << "an OpenCL driver is not made for sanitizers";
  Device device;
  if (code_of(compute_device_open("opencl", device.out())) != COMPUTE_OK) GTEST_SKIP() << "there is no OpenCL device";
  const Tensor x = make_full(device, {4}, 1.0f);
  struct Pair {
    int32_t a;
    char b;
  };
  const char* const text =
      "typedef struct { int a; char b; } pair;\n"
      "kernel void f(global float* x, const long n, float a, local int* l, pair p, float3 v) {\n"
      "  if ((long)get_global_id(0) < n) x[get_global_id(0)] = a + p.a + v.z;\n"
      "}";
  const char* const portable =
      "COMPUTE_KERNEL f(COMPUTE_GLOBAL f32* x, const i64 n) { if (COMPUTE_GLOBAL_ID(0) < n) x[COMPUTE_GLOBAL_ID(0)] = "
      "7; }";
  compute_launch launch = {};
  launch.struct_size = sizeof launch;
  launch.groups[0] = launch.groups[1] = launch.groups[2] = launch.group_size[1] = launch.group_size[2] = 1;
  launch.group_size[0] = 4;
  alignas(16) static const char bytes[64] = {};
  const auto argument = [](int32_t kind, compute_tensor* tensor, const void* value, int64_t size) {
    return compute_kernel_argument{sizeof(compute_kernel_argument),
                                   0,
                                   nullptr,
                                   kind,
                                   COMPUTE_ACCESS_READ | COMPUTE_ACCESS_WRITE,
                                   tensor,
                                   value,
                                   size};
  };
  const auto value = [&](int64_t size) { return argument(COMPUTE_ARGUMENT_VALUE, nullptr, bytes, size); };
  const auto tensor = argument(COMPUTE_ARGUMENT_TENSOR, x, nullptr, 0);
  const auto local = argument(COMPUTE_ARGUMENT_LOCAL_MEMORY, nullptr, nullptr, 64);
  compute_kernel* kernel = nullptr;
  ASSERT_OK(compute_kernel_compile(device, "opencl-c", text, -1, "f", nullptr, &kernel));
  const auto run = [&](std::vector<compute_kernel_argument> arguments) {
    return compute_kernel_launch(kernel, nullptr, &launch, arguments.data(), static_cast<int64_t>(arguments.size()));
  };
  const auto p = value(sizeof(Pair)), v = value(16);
  for (const int64_t size : {1, 4, 7, 12, 16, 64}) {
    EXPECT_FAILS(run({tensor, value(size), value(4), local, p, v}), kInvalid, "kernel f: argument 1 (long n)",
                 "has " + std::to_string(size) + " bytes; the kernel takes 8");
  }
  EXPECT_FAILS(run({tensor, value(8), value(8), local, p, v}), kInvalid,
               "argument 2 (float a) has 8 bytes; the kernel takes 4");
  EXPECT_FAILS(run({tensor, value(8), value(4), local, value(4), v}), kInvalid,
               "argument 4 (pair p) has 4 bytes; the kernel takes 8");
  EXPECT_FAILS(run({tensor, value(8), value(4), local, p, value(12)}), kInvalid,
               "argument 5 (float3 v) has 12 bytes; the kernel takes 16");
  EXPECT_FAILS(run({tensor, tensor, value(4), local, p, v}), kInvalid, "argument 1 (long n) is a tensor",
               "a value of 8 bytes");
  EXPECT_FAILS(run({value(8), value(8), value(4), local, p, v}), kInvalid, "argument 0 (float* x) is a value",
               "a tensor");
  EXPECT_FAILS(run({tensor, value(8), value(4), tensor, p, v}), kInvalid, "argument 3 (int* l) is a tensor",
               "local memory");
  EXPECT_FAILS(run({local, value(8), value(4), local, p, v}), kInvalid, "argument 0 (float* x) is local memory",
               "a tensor");
  EXPECT_FAILS(run({tensor, value(8), value(4), local, p}), kInvalid, "expected 6 arguments", "got 5");
  EXPECT_EQ(read<float>(x), std::vector<float>(4, 1.0f));
  const int64_t n = 4;
  EXPECT_OK(run({tensor, argument(COMPUTE_ARGUMENT_VALUE, nullptr, &n, sizeof n), value(4), local, p, v}));
  EXPECT_EQ(read<float>(x), std::vector<float>(4, 0.0f));
  compute_kernel_release(kernel);
  ASSERT_OK(compute_kernel_compile(device, "portable", portable, -1, "f", nullptr, &kernel));
  EXPECT_FAILS(run({tensor, value(4)}), kInvalid, "argument 1 (i64 n) has 4 bytes; the kernel takes 8");
  EXPECT_OK(run({tensor, argument(COMPUTE_ARGUMENT_VALUE, nullptr, &n, sizeof n)}));
  EXPECT_EQ(read<float>(x), std::vector<float>(4, 7.0f));
  compute_kernel_release(kernel);
  // Shortened also where the plugin quotes them.
  const std::string name(5000, 'f');
  const std::string message =
      message_of(compute_kernel_compile(device, "opencl-c", "kernel void f() {}", -1, name.c_str(), nullptr, &kernel));
  EXPECT_LT(message.size(), 1000u) << message;
  const std::string language = message_of(compute_kernel_compile(device, name.c_str(), "", -1, "f", nullptr, &kernel));
  EXPECT_LT(language.size(), 1000u) << language;
}

}  // namespace
}  // namespace robustness
