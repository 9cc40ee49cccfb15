// SPDX-License-Identifier: Apache-2.0
// User kernels in the portable dialect, launched directly and as registered ops.
#include <gtest/gtest.h>

#include <stdlib.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "registry.hpp"

namespace compute::conformance {

namespace {

using oracle::Inputs;
using Kernel = Handle<compute_kernel, compute_kernel_retain, compute_kernel_release>;

// Throws Lacking where the device compiles no portable kernels, as the cpu does without a compiler.
Kernel compile(const Session& session, const char* source, const char* name, const std::string& options = "") {
  Kernel kernel;
  compute_kernel_options given{};
  given.struct_size = sizeof given;
  given.struct_type = COMPUTE_STRUCT_KERNEL_OPTIONS;
  given.compiler_options = options.c_str();
  given.compiler_options_size = -1;
  const Error error(compute_kernel_compile(session.device(), "portable", source, -1, name, &given, kernel.out()));
  if (error.code() == COMPUTE_ERROR_UNSUPPORTED) throw Lacking(error.message());
  EXPECT_FALSE(error) << error.message();
  if (error) throw Stop();
  return kernel;
}

// The arguments of a launch.
class Arguments {
 public:
  Arguments& tensor(compute_tensor* tensor, int32_t access) {
    compute_kernel_argument& argument = add(COMPUTE_ARGUMENT_TENSOR);
    argument.access = access;
    argument.tensor = tensor;
    return *this;
  }
  Arguments& reads(compute_tensor* x) { return tensor(x, COMPUTE_ACCESS_READ); }
  Arguments& writes(compute_tensor* x) { return tensor(x, COMPUTE_ACCESS_WRITE); }
  template <class T>
  Arguments& value(const T& value) {
    compute_kernel_argument& argument = add(COMPUTE_ARGUMENT_VALUE);
    argument.value = &value;
    argument.value_size = sizeof value;
    return *this;
  }
  compute_error* launch(compute_kernel* kernel, std::initializer_list<int64_t> groups,
                        std::initializer_list<int64_t> size, compute_stream* stream = nullptr) const {
    compute_launch shape = {sizeof shape, COMPUTE_STRUCT_LAUNCH, nullptr, {1, 1, 1}, {1, 1, 1}, 0};
    std::copy(groups.begin(), groups.end(), shape.groups);
    std::copy(size.begin(), size.end(), shape.group_size);
    return compute_kernel_launch(kernel, stream, &shape, list_.data(), static_cast<int64_t>(list_.size()));
  }

 private:
  compute_kernel_argument& add(int32_t kind) {
    compute_kernel_argument& argument = list_.emplace_back();
    argument.struct_size = sizeof argument;
    argument.struct_type = COMPUTE_STRUCT_KERNEL_ARGUMENT;
    argument.kind = kind;
    return argument;
  }
  std::vector<compute_kernel_argument> list_;
};

Real number(const Array& array, int64_t i) {
  const Value value = array.at(i);
  return oracle::is_inexact(array.dtype()) ? value.re : static_cast<Real>(value.integer);
}

void expect_equal(const Session& session, compute_tensor* actual, const Array& expected, const std::string& what) {
  const Array array = session.download(actual);
  ASSERT_EQ(array.size(), expected.size()) << what;
  for (int64_t i = 0; i < array.size(); ++i) {
    ASSERT_EQ(number(array, i), number(expected, i)) << what << ", element " << i;
  }
}

// Views of every layout: arbitrary offsets, negative steps, repeats.
void strides(const Session& session) {
  const struct {
    Dtype dtype;
    const char* type;
  } kTypes[] = {{dtype::FLOAT32, "f32"}, {dtype::UINT8, "u8"}, {dtype::INT16, "i16"}, {dtype::INT64, "i64"}};
  Inputs inputs(71);
  for (const auto& [dtype, type] : kTypes) {
    const std::string t = type;
    const std::string source = "COMPUTE_KERNEL spread(COMPUTE_GLOBAL const " + t + "* x, COMPUTE_GLOBAL " + t +
                               "* y, const i64 rows, const i64 columns,\n  const i64 step, const i64 across) {\n"
                               "  const i64 i = COMPUTE_GLOBAL_ID(0);\n"
                               "  if (i < rows * columns) y[i] = x[i / columns * step + i % columns * across];\n}\n";
    const Kernel kernel = compile(session, source.c_str(), "spread");
    const Shape shape = {7, 13};
    for (const Layout layout : kEveryLayout) {
      const Operand x = session.upload(inputs.uniform(dtype, shape, 0, 100), layout);
      const Tensor y = session.empty(dtype, shape);
      const int64_t* steps = compute_tensor_strides(x.tensor);
      check(
          Arguments().reads(x.tensor).writes(y).value(shape[0]).value(shape[1]).value(steps[0]).value(steps[1]).launch(
              kernel, {3}, {32}));
      expect_equal(session, y, x.array, t + " " + name(layout));
      // And the other way round.
      const Operand from = session.upload(x.array);
      const Tensor whole = session.empty(dtype, {shape[1] + 3, shape[0]});
      const int64_t starts[] = {3, 0}, counts[] = {shape[1], shape[0]}, by[] = {1, 1};
      Tensor part;
      check(compute_tensor_slice(whole, 2, starts, counts, by, part.out()));
      check(Arguments()
                .reads(from.tensor)
                .writes(part)
                .value(shape[0])
                .value(shape[1])
                .value(shape[1])
                .value(int64_t{1})
                .launch(kernel, {91}, {1}));
      const Array written = session.download(part);
      for (int64_t i = 0; i < written.size(); ++i) ASSERT_EQ(number(written, i), number(x.array, i)) << t << " part";
    }
  }
}

void work_items(const Session& session) {
  const Kernel kernel =
      compile(session,
              "COMPUTE_KERNEL mark(COMPUTE_GLOBAL i32* y) {\n"
              "  const i64 x = COMPUTE_GLOBAL_ID(0), j = COMPUTE_GLOBAL_ID(1), k = COMPUTE_GLOBAL_ID(2);\n"
              "  const i64 nx = COMPUTE_GROUP_COUNT(0) * COMPUTE_GROUP_SIZE(0);\n"
              "  const i64 nj = COMPUTE_GROUP_COUNT(1) * COMPUTE_GROUP_SIZE(1);\n"
              "  y[(k * nj + j) * nx + x] = (i32)(x + 100 * j + 10000 * k) + 1000000 * COMPUTE_LOCAL_ID(0);\n"
              "}\n",
              "mark");
  const Shape shape = {3 * 2, 2 * 5, 4 * 3};
  const Tensor y = session.empty(dtype::INT32, shape);
  check(Arguments().writes(y).launch(kernel, {4, 2, 3}, {3, 5, 2}));
  const Array actual = session.download(y);
  for (int64_t i = 0; i < actual.size(); ++i) {
    const int64_t x = i % 12, j = i / 12 % 10, k = i / 120;
    ASSERT_EQ(number(actual, i), x + 100 * j + 10000 * k + 1000000 * (x % 3)) << i;
  }
}

constexpr int64_t kGroupSize = 32;  // every device's limit is at least that

// Local memory that a group shares, and barriers in a loop.
void barriers(const Session& session) {
  const Kernel kernel =
      compile(session,
              "COMPUTE_KERNEL sum(COMPUTE_GLOBAL const i32* x, COMPUTE_GLOBAL i32* y, COMPUTE_GLOBAL i32* z) {\n"
              "  COMPUTE_LOCAL i32 part[32];\n"
              "  const i32 own = COMPUTE_LOCAL_ID(0);\n"
              "  part[own] = x[COMPUTE_GLOBAL_ID(0)];\n"
              "  COMPUTE_BARRIER();\n"
              "  z[COMPUTE_GLOBAL_ID(0)] = part[31 - own];\n"
              "  for (i32 width = 16; width > 0; width /= 2) {\n"
              "    COMPUTE_BARRIER();\n"
              "    if (own < width) part[own] += part[own + width];\n"
              "  }\n"
              "  COMPUTE_BARRIER();\n"
              "  if (own == 0) y[COMPUTE_GROUP_ID(0)] = part[0];\n"
              "}\n",
              "sum");
  constexpr int64_t kGroups = 50;
  Inputs inputs(72);
  const Operand x = session.upload(inputs.uniform(dtype::INT32, {kGroups * kGroupSize}, -1000, 1000));
  const Tensor y = session.empty(dtype::INT32, {kGroups}), z = session.empty(dtype::INT32, {kGroups * kGroupSize});
  const Stream stream = session.stream();
  check(Arguments().reads(x.tensor).writes(y).writes(z).launch(kernel, {kGroups}, {kGroupSize}, stream));
  const Array sums = session.download(y), turned = session.download(z);
  for (int64_t group = 0; group < kGroups; ++group) {
    Real sum = 0;
    for (int64_t i = 0; i < kGroupSize; ++i) {
      sum += number(x.array, group * kGroupSize + i);
      ASSERT_EQ(number(turned, group * kGroupSize + i), number(x.array, group * kGroupSize + kGroupSize - 1 - i));
    }
    ASSERT_EQ(number(sums, group), sum) << group;
  }
}

void atomics_and_conversions(const Session& session) {
  const Kernel kernel =
      compile(session,
              "COMPUTE_FUNCTION f32 half_of(f32 x) { return 0.5f * x; }\n"
              "COMPUTE_CONSTANT i32 kWeight[2] = {1, 3};\n"
              "COMPUTE_KERNEL count(COMPUTE_GLOBAL i32* bins, COMPUTE_GLOBAL u16* halves, const i64 n) {\n"
              "  const i64 i = COMPUTE_GLOBAL_ID(0);\n"
              "  if (i >= n) return;\n"
              "  COMPUTE_ATOMIC_ADD_I32(bins + i % 7, kWeight[i % 2]);\n"
              "  COMPUTE_ATOMIC_MAX_I32(bins + 7, (i32)i);\n"
              "  halves[i] = f32_to_f16(half_of(2 * f16_to_f32((u16)i)));\n"
              "}\n",
              "count");
  constexpr int64_t kCount = 0x7c01;  // up to infinity
  const Operand bins = session.upload(Array(dtype::INT32, {8}));
  const Tensor halves = session.empty(dtype::UINT16, {kCount});
  check(Arguments()
            .tensor(bins.tensor, COMPUTE_ACCESS_READ | COMPUTE_ACCESS_WRITE)
            .writes(halves)
            .value(kCount)
            .launch(kernel, {(kCount + kGroupSize - 1) / kGroupSize}, {kGroupSize}));
  int64_t expected[8] = {};
  for (int64_t i = 0; i < kCount; ++i) expected[i % 7] += i % 2 != 0 ? 3 : 1;
  expected[7] = kCount - 1;
  const Array counted = session.download(bins.tensor), bits = session.download(halves);
  for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(number(counted, i), expected[i]) << i;
  if (session.flushes_subnormals()) return;
  for (int64_t i = 0; i < kCount; ++i) ASSERT_EQ(number(bits, i), i);
}

// A folder with the file `words.h`, which goes at the end.
class Headers {
 public:
  Headers() {
    if (mkdtemp(folder_.data()) == nullptr) throw Lacking("a folder in /tmp");
  }
  Headers(const Headers&) = delete;
  Headers& operator=(const Headers&) = delete;
  ~Headers() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  void write(const std::string& text) const { std::ofstream(folder_ + "/words.h") << text; }
  std::string option() const { return "-I" + folder_; }

 private:
  std::string folder_ = "/tmp/compute-headers-XXXXXX";
};

// The same text with a changed include file.
void changed_headers(const Session& session) {
  const Headers headers;
  const Tensor y = session.empty(dtype::INT32, {1});
  for (const int value : {1, 2, 3}) {
    headers.write("#define VALUE " + std::to_string(value) + "\n");
    const Kernel kernel = compile(session,
                                  "#include \"words.h\"\n"
                                  "COMPUTE_KERNEL get(COMPUTE_GLOBAL i32* y) { y[0] = VALUE; }\n",
                                  "get", headers.option());
    check(Arguments().writes(y).launch(kernel, {1}, {1}));
    ASSERT_EQ(number(session.download(y), 0), value);
  }
}

// Barriers behind macros, one defined in a header.
void barriers_by_macros(const Session& session) {
  const Headers headers;
  headers.write("#define MEET_IN(x) COMPUTE_##x()\n#define MEET MEET_IN(BARRIER)\n");
  const Tensor y = session.empty(dtype::INT32, {kGroupSize});
  for (const char* meet : {"#include \"words.h\"\n", "#define MEET COMPUTE_BARRIER()\n"}) {
    const std::string source = meet + std::string(
                                          "COMPUTE_KERNEL turn(COMPUTE_GLOBAL i32* y) {\n"
                                          "  COMPUTE_LOCAL i32 part[32];\n"
                                          "  const i32 own = COMPUTE_LOCAL_ID(0);\n"
                                          "  part[own] = own;\n"
                                          "  MEET;\n"
                                          "  y[own] = part[31 - own];\n"
                                          "}\n");
    const Kernel kernel = compile(session, source.c_str(), "turn", headers.option());
    check(Arguments().writes(y).launch(kernel, {1}, {kGroupSize}));
    const Array turned = session.download(y);
    for (int64_t i = 0; i < kGroupSize; ++i) ASSERT_EQ(number(turned, i), 31 - i) << meet << i;
  }
}

// Macros of the program do not meet names in what surrounds its source.
void macros(const Session& session) {
  const char* source =
      "#define A 1\n#define F 2\n#define I 3\n#define count 4\n#define all 5\n#define out 6\n"
      "COMPUTE_KERNEL sum(COMPUTE_GLOBAL T* y) { y[COMPUTE_GLOBAL_ID(0)] = A + F + I + count + all + out + N; }\n";
  const Kernel kernel = compile(session, source, "sum", "-DN=100 -DT=i32");
  const Tensor y = session.empty(dtype::INT32, {32});
  check(Arguments().writes(y).launch(kernel, {1}, {32}));
  const Array sums = session.download(y);
  for (int64_t i = 0; i < 32; ++i) ASSERT_EQ(number(sums, i), 121) << i;
}

void compiler_messages(const Session& session) {
  compile(session, "COMPUTE_KERNEL good(COMPUTE_GLOBAL f32* y) { y[0] = 1; }", "good");
  compute_kernel* kernel = nullptr;
  const Error error(compute_kernel_compile(session.device(), "portable",
                                           "COMPUTE_KERNEL bad(COMPUTE_GLOBAL f32* y) {\n  y[0] = undeclared_thing;\n}",
                                           -1, "bad", nullptr, &kernel));
  EXPECT_EQ(error.code(), COMPUTE_ERROR_COMPILE_FAILED);
  EXPECT_TRUE(error.mentions("undeclared_thing")) << error.message();
  EXPECT_EQ(kernel, nullptr);
}

// ---- Registered ops -------------------------------------------------------------------------------------------------

compute_op_kernel kernel_row(const char* language, const char* source, const char* name, const char* items,
                             const char* values) {
  const auto size = [](const char* text) { return static_cast<int64_t>(std::strlen(text)); };
  compute_op_kernel row{};
  row.struct_size = sizeof row;
  row.struct_type = COMPUTE_STRUCT_OP_KERNEL;
  row.language = language, row.language_size = size(language);
  row.source = source, row.source_size = size(source);
  row.name = name, row.name_size = size(name);
  row.items = items, row.items_size = size(items);
  if (values[0] != '\0') row.values = values, row.values_size = size(values);
  row.group_size[0] = 32;
  return row;
}

// One op for all devices of the process.
void register_once(const char* name, const char* inputs, const char* outputs, const char* attributes,
                   const char* shapes, const char* dtypes, const std::vector<compute_op_kernel>& kernels) {
  const compute_op* op = nullptr;
  if (!Error(compute_op_find(name, 1, &op))) return;
  const auto size = [](const char* text) { return static_cast<int64_t>(std::strlen(text)); };
  compute_op_registration given{};
  given.struct_size = sizeof given;
  given.struct_type = COMPUTE_STRUCT_OP_REGISTRATION;
  given.name = name, given.name_size = size(name);
  given.inputs = inputs, given.inputs_size = size(inputs);
  given.outputs = outputs, given.outputs_size = size(outputs);
  if (attributes[0] != '\0') given.attributes = attributes, given.attributes_size = size(attributes);
  given.shapes = shapes, given.shapes_size = size(shapes);
  given.result_dtypes = dtypes, given.result_dtypes_size = size(dtypes);
  given.version = 1;
  given.kernels = kernels.data();
  given.kernel_count = static_cast<int64_t>(kernels.size());
  check(compute_op_register(&given, &op));
}

// Sums of pairs along the last axis, times a scale: another shape than the input's, any strides by copies, any dtype
// by the type's name, an attribute of each run.
void registered_op(const Session& session) {
  const char* source =
      "COMPUTE_KERNEL pair_sums(COMPUTE_GLOBAL const x_type* x, COMPUTE_GLOBAL y_type* y, const i64 n, const i64 "
      "columns,\n"
      "                         const f32 scale) {\n"
      "  const i64 i = COMPUTE_GLOBAL_ID(0), pairs = (columns + 1) / 2, r = i / pairs, c = i % pairs * 2;\n"
      "  if (i >= n) return;\n"
      "  y[i] = x[r * columns + c];\n"
      "  if (c + 1 < columns) y[i] += x[r * columns + c + 1];\n"
      "  y[i] = (y_type)(y[i] * scale);\n"
      "}\n";
  register_once("test.pair_sums", "x", "y", "scale: float64 = 1!", "[x.shape[0], ceil_div(x.shape[1], 2)]", "x",
                {kernel_row("no-such-language", "none", "none", "1", ""),
                 kernel_row("portable", source, "pair_sums", "y.size", "y.size, x.shape[-1], float32(scale)")});
  compile(session, "COMPUTE_KERNEL good(COMPUTE_GLOBAL f32* y) { y[0] = 1; }", "good");
  Inputs inputs(73);
  const Stream stream = session.stream();
  for (const Dtype dtype : {dtype::FLOAT32, dtype::INT32}) {
    for (const Layout layout : kEveryLayout) {
      if (dtype == dtype::INT32 && layout != Layout::CONTIGUOUS && session.level() != Level::FULL) continue;
      const Shape shape = {5, 9};
      const Operand x = session.upload(inputs.uniform(dtype, shape, -100, 100), layout);
      Attributes scaled;
      scaled["scale"] = std::complex<double>(2);
      const Operand operands[] = {x};
      const Tensor y = session.run("test.pair_sums", scaled, operands, stream);
      const Array actual = session.download(y);
      ASSERT_EQ(actual.shape(), (Shape{5, 5})) << name(layout);
      for (int64_t i = 0; i < 25; ++i) {
        const int64_t r = i / 5, c = i % 5 * 2;
        const float a = static_cast<float>(number(x.array, r * 9 + c)),
                    b = c + 1 < 9 ? static_cast<float>(number(x.array, r * 9 + c + 1)) : 0;
        ASSERT_EQ(number(actual, i), (a + b) * 2) << name(layout) << " " << i;
      }
    }
  }
}

// A kernel that reads strides itself gets the tensors as they are.
void registered_op_of_strides(const Session& session) {
  compile(session, "COMPUTE_KERNEL good(COMPUTE_GLOBAL f32* y) { y[0] = 1; }", "good");
  const char* source =
      "COMPUTE_KERNEL next(COMPUTE_GLOBAL const x_type* x, COMPUTE_GLOBAL y_type* y, const i64 rows, const i64 "
      "columns,\n"
      "                    const i64 x0, const i64 x1, const i64 y0, const i64 y1) {\n"
      "  const i64 c = COMPUTE_GLOBAL_ID(0), r = COMPUTE_GLOBAL_ID(1);\n"
      "  if (r < rows && c < columns) y[r * y0 + c * y1] = x[r * x0 + c * x1] + 1;\n"
      "}\n";
  compute_op_kernel row = kernel_row("portable", source, "next", "x.shape[1], x.shape[0]",
                                     "x.shape[0], x.shape[1], x.strides[0], x.strides[1], y.strides[0], y.strides[1]");
  row.group_size[0] = 8, row.group_size[1] = 4;
  row.flags = COMPUTE_OP_KERNEL_STRIDED;
  register_once("test.next", "x", "y", "", "x", "x", {row});
  Inputs inputs(75);
  const Stream stream = session.stream();
  for (const Layout layout : kEveryLayout) {
    const Operand x = session.upload(inputs.uniform(dtype::INT32, {7, 19}, -100, 100), layout);
    const Operand operands[] = {x};
    const Array actual = session.download(session.run("test.next", {}, operands, stream));
    for (int64_t i = 0; i < 7 * 19; ++i) ASSERT_EQ(number(actual, i), number(x.array, i) + 1) << name(layout);
  }
}

// Complex elements at odd multiples of half their size: ops copy them, launches refuse them where they would fault.
void complex_at_halves(const Session& session) {
  const char* source =
      "COMPUTE_KERNEL conjugates(COMPUTE_GLOBAL const c64* x, COMPUTE_GLOBAL c64* y, const i64 n, const i64 step) {\n"
      "  const i64 i = COMPUTE_GLOBAL_ID(0);\n"
      "  if (i < n) y[i] = COMPUTE_C64(x[i * step].x, -x[i * step].y);\n"
      "}\n";
  const Kernel kernel = compile(session, source, "conjugates");
  compute_op_kernel row = kernel_row("portable", source, "conjugates", "y.size", "y.size, x.strides[0]");
  register_once("test.conjugates", "x", "y", "", "x", "x", {row});
  row.flags = COMPUTE_OP_KERNEL_STRIDED;
  register_once("test.strided_conjugates", "x", "y", "", "x", "x", {row});
  Inputs inputs(76);
  const int64_t count = 60;
  const auto base = [&] { return session.upload(inputs.uniform(dtype::COMPLEX64, {2 * count + 1}, -2, 2)); };
  const Operand whole = halfway(base(), {2 * count}), x = sliced(whole, {0}, {count}, {1}),
                stepped = sliced(whole, {0}, {count}, {2}), y = halfway(base(), {count});
  const auto judge = [&](const Operand& given, compute_tensor* result, const char* what) {
    const Array actual = session.download(result);
    for (int64_t i = 0; i < count; ++i) {
      ASSERT_EQ(actual.at(i).re, given.array.at(i).re) << what << " " << i;
      ASSERT_EQ(actual.at(i).im, -given.array.at(i).im) << what << " " << i;
    }
  };
  for (const char* op : {"test.conjugates", "test.strided_conjugates"}) {
    judge(x, session.run(op, {}, std::span(&x, 1)), "read");
    judge(x, session.run(op, {}, std::span(&x, 1), nullptr, y.tensor), "written");
  }
  judge(stepped, session.run("test.conjugates", {}, std::span(&stepped, 1)), "every second element");
  // The kernel gets the strides, so the elements are not copied.
  Tensor result;
  if (const Error error = session.try_run("test.strided_conjugates", {}, std::span(&stepped, 1), nullptr, result)) {
    EXPECT_EQ(error.code(), COMPUTE_ERROR_UNSUPPORTED) << error.message();
    EXPECT_TRUE(error.mentions("not aligned to 8 bytes")) << error.message();
  } else {
    judge(stepped, result, "every second element, by strides");
  }
  const Tensor made = session.empty(dtype::COMPLEX64, {count});
  if (const Error error{
          Arguments().reads(x.tensor).writes(made).value(count).value(int64_t{1}).launch(kernel, {2}, {32})}) {
    EXPECT_EQ(error.code(), COMPUTE_ERROR_UNSUPPORTED) << error.message();
    EXPECT_TRUE(error.mentions("argument 0: elements of complex64 are not aligned to 8 bytes")) << error.message();
  } else {
    judge(x, made, "a launch");
  }
}

// A kernel op inside a graph, replayed.
void registered_op_in_a_graph(const Session& session) {
  registered_op(session);
  Inputs inputs(74);
  const Operand x = session.upload(inputs.uniform(dtype::FLOAT32, {4, 8}, 0, 1));
  const Tensor y = session.empty(dtype::FLOAT32, {4, 4}), z = session.empty(dtype::FLOAT32, {4, 4});
  const Stream stream = session.stream();
  check(compute_graph_begin(stream, nullptr));
  const Operand operands[] = {x};
  session.run("test.pair_sums", {}, operands, stream, y);
  const Operand again[] = {{Array(dtype::FLOAT32, {4, 4}), y}};
  session.run("negative", {}, again, stream, z);
  Graph graph;
  check(compute_graph_end(stream, graph.out()));
  for (int round = 0; round < 3; ++round) {
    check(compute_graph_run(graph, stream));
    const Array actual = session.download(z);
    for (int64_t i = 0; i < 16; ++i) {
      const float sum = static_cast<float>(number(x.array, 2 * i)) + static_cast<float>(number(x.array, 2 * i + 1));
      ASSERT_EQ(number(actual, i), -sum);
    }
  }
}

}  // namespace

void add_kernel_tests(Registry& registry) {
  const struct {
    const char* name;
    void (*body)(const Session&);
    bool runs_ops;
  } kTests[] = {
      {"strides", strides, false},
      {"work_items", work_items, false},
      {"barriers", barriers, false},
      {"atomics_and_conversions", atomics_and_conversions, false},
      {"changed_headers", changed_headers, false},
      {"barriers_by_macros", barriers_by_macros, false},
      {"macros", macros, false},
      {"compiler_messages", compiler_messages, false},
      {"registered_op", registered_op, true},
      {"registered_op_of_strides", registered_op_of_strides, true},
      {"complex_at_halves", complex_at_halves, true},
      {"registered_op_in_a_graph", registered_op_in_a_graph, true},
  };
  for (const auto& entry : kTests) {
    Test test{"kernel", entry.name, entry.body};
    test.runs_ops = entry.runs_ops;
    registry.add(std::move(test));
  }
}

}  // namespace compute::conformance
