// SPDX-License-Identifier: Apache-2.0
// What devices and ops say about themselves.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "registry.hpp"
#include "tests/oracle/elementwise.hpp"

namespace compute::conformance {

namespace {

template <typename T>
T blank(uint32_t struct_type) {
  T info{};
  info.struct_size = sizeof info;
  info.struct_type = struct_type;
  return info;
}

void list(const Session& session) {
  int64_t count = 0;
  check(compute_device_list(nullptr, 0, &count));
  ASSERT_GE(count, 1);
  std::vector<compute_device_info> infos(static_cast<size_t>(count) + 2,
                                         blank<compute_device_info>(COMPUTE_STRUCT_DEVICE_INFO));
  int64_t again = 0;
  check(compute_device_list(infos.data(), count + 2, &again));
  EXPECT_EQ(again, count);
  EXPECT_STREQ(infos[0].name, "cpu") << "cpu comes first";
  const auto end = infos.begin() + count;
  const auto own =
      std::find_if(infos.begin(), end, [&](const compute_device_info& info) { return session.name() == info.name; });
  ASSERT_NE(own, end) << session.name() << " is not in the list of devices";
  EXPECT_EQ(own->plugin, session.plugin());
  EXPECT_STRNE(own->description, "");
  EXPECT_TRUE(own->kind >= COMPUTE_DEVICE_KIND_CPU && own->kind <= COMPUTE_DEVICE_KIND_ACCELERATOR) << own->kind;
  EXPECT_NE(own->libraries, nullptr);
  EXPECT_EQ(own->dtypes[0], 0) << "no dtype has the number 0";
  EXPECT_LE(own->dtype_count, 18) << "dtypes of this project";
  for (const oracle::DtypeInfo& info : oracle::kDtypes) {
    const uint32_t bits = info.id < own->dtype_count ? own->dtypes[info.id] : 0;
    if (bits & (COMPUTE_DTYPE_LEVEL_CONVERT | COMPUTE_DTYPE_LEVEL_ARITHMETIC)) {
      EXPECT_TRUE(bits & COMPUTE_DTYPE_LEVEL_STORAGE) << info.name;
    }
  }

  // An older program's smaller structs are filled as far as they go.
  struct Old {
    uint32_t struct_size;
    uint32_t struct_type;
    const void* next;
    const char* name;
  };
  std::vector<Old> old(static_cast<size_t>(count), Old{sizeof(Old), COMPUTE_STRUCT_DEVICE_INFO, nullptr, nullptr});
  check(compute_device_list(reinterpret_cast<compute_device_info*>(old.data()), count, &again));
  for (int64_t i = 0; i < count; ++i)
    EXPECT_STREQ(old[static_cast<size_t>(i)].name, infos[static_cast<size_t>(i)].name);
  // And a newer program's larger ones, whose tail is not touched or zero.
  struct New {
    compute_device_info info;
    uint64_t tail;
  } larger{blank<compute_device_info>(COMPUTE_STRUCT_DEVICE_INFO), 0};
  larger.info.struct_size = sizeof larger;
  check(compute_device_list(&larger.info, 1, &again));
  EXPECT_STREQ(larger.info.name, "cpu");
  EXPECT_EQ(larger.tail, 0u);
}

void open(const Session& session) {
  Device again;
  check(compute_device_open(session.name().c_str(), again.out()));
  EXPECT_EQ(again.get(), session.device()) << "the same device twice is the same handle";
  EXPECT_EQ(compute_device_name(again), session.name());
  compute_device_info info = blank<compute_device_info>(COMPUTE_STRUCT_DEVICE_INFO);
  check(compute_device_get_info(again, &info));
  EXPECT_EQ(info.name, session.name());
  int32_t health = -1;
  check(compute_device_health(again, &health));
  EXPECT_EQ(health, COMPUTE_HEALTH_GOOD);
  check(compute_device_synchronize(again));
  compute_text* answer = nullptr;
  check(compute_device_which(session.name().c_str(), COMPUTE_FORMAT_TEXT, &answer));
  EXPECT_NE(std::strstr(compute_text_data(answer), session.name().c_str()), nullptr) << compute_text_data(answer);
  compute_text_free(answer);
}

void attributes(const Session& session) {
  int64_t count = 0;
  check(compute_device_attributes(session.name().c_str(), nullptr, 0, &count));
  std::vector<compute_device_attribute> list(static_cast<size_t>(count),
                                             blank<compute_device_attribute>(COMPUTE_STRUCT_DEVICE_ATTRIBUTE));
  check(compute_device_attributes(session.name().c_str(), list.data(), count, &count));
  for (const compute_device_attribute& attribute : list) {
    EXPECT_STRNE(attribute.name, "");
    EXPECT_NE(attribute.value, nullptr);
  }
}

void load_report(const Session& session) {
  for (int32_t format : {COMPUTE_FORMAT_TEXT, COMPUTE_FORMAT_JSON}) {
    compute_text* report = nullptr;
    check(compute_load_report(format, &report));
    EXPECT_NE(std::strstr(compute_text_data(report), session.plugin().c_str()), nullptr) << compute_text_data(report);
    EXPECT_EQ(static_cast<int64_t>(std::strlen(compute_text_data(report))), compute_text_size(report));
    compute_text_free(report);
  }
}

void statistics(const Session& session) {
  const compute_device_statistics before = session.statistics();
  {
    const Operand x = session.upload(Array(dtype::FLOAT32, {1 << 16}));
    const compute_device_statistics with = session.statistics();
    EXPECT_GE(with.memory_used, before.memory_used + (1 << 18));
    EXPECT_GE(with.memory_peak, with.memory_used);
    EXPECT_GE(with.memory_reserved, with.memory_used);
    EXPECT_GT(with.blocks_live, before.blocks_live);
    EXPECT_GT(with.allocations, before.allocations);
    session.run("exp", {}, std::span(&x, 1));
    check(compute_device_synchronize(session.device()));
    EXPECT_GT(session.statistics().ops_run, before.ops_run);
    EXPECT_EQ(session.statistics().ops_fallback, before.ops_fallback);
  }
  check(compute_device_trim(session.device(), 0));
  const compute_device_statistics after = session.statistics();
  EXPECT_EQ(after.memory_used, before.memory_used);
  EXPECT_EQ(after.blocks_live, before.blocks_live);
}

// An op without an oracle, or with an unknown bound, fails here, and the failure names it.
void every_op_has_an_oracle(const Session&) {
  const std::vector<OpRow> rows = op_rows();
  EXPECT_GE(rows.size(), 90u);
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end(), [](const OpRow& a, const OpRow& b) { return a.name < b.name; }))
      << "ops come in the order of names";
  for (const OpRow& row : rows) {
    if (row.elementwise) {
      EXPECT_NE(oracle::find_elementwise(row.name), nullptr) << row.name << " has no oracle";
    } else {
      EXPECT_NE(oracle::find_reference(row.name), nullptr) << row.name << " has no oracle";
    }
    EXPECT_NO_THROW(Bound::parse(row.bound)) << row.name << ": " << row.bound;
    const compute_op* op = nullptr;
    check(compute_op_find(row.name.c_str(), 0, &op));
    compute_op_info info = blank<compute_op_info>(COMPUTE_STRUCT_OP_INFO);
    check(compute_op_get_info(op, &info));
    EXPECT_EQ(info.name, row.name);
    EXPECT_GE(info.version, 1);
    EXPECT_STRNE(info.summary, "");
    const compute_op* same = nullptr;
    check(compute_op_find(row.name.c_str(), info.version, &same));
    EXPECT_EQ(same, op);
  }
}

// The non-elementwise ops are tested by hand-written cases: a new one needs a file here too.
void every_op_is_tested(const Session&) {
  Registry registry(Level::FULL);
  add_elementwise_tests(registry);
  add_reduce_tests(registry);
  add_convolution_tests(registry);
  add_network_tests(registry);
  add_random_tests(registry);
  add_sorting_tests(registry);
  add_softmax_tests(registry);
  add_linalg_tests(registry);
  add_matmul_tests(registry);
  add_quantized_tests(registry);
  add_movement_tests(registry);
  add_fourier_tests(registry);
  add_creation_tests(registry);
  for (const OpRow& row : op_rows()) {
    EXPECT_TRUE(std::any_of(registry.tests().begin(), registry.tests().end(),
                            [&](const Test& test) { return test.op == row.name && test.group != "refusal"; }))
        << "no test runs " << row.name;
  }
}

// The answer of a query is how a run ends.
void query_agrees_with_run(const Session& session) {
  for (const OpRow& row : op_rows()) {
    const oracle::Elementwise* op = oracle::find_elementwise(row.name);
    if (!row.elementwise || !op) continue;
    // One of each kind; quick keeps to kernels that other tests need as well.
    for (Dtype dtype :
         session.level() == Level::FULL ? tested_dtypes(Level::QUICK) : std::vector<Dtype>{dtype::FLOAT32}) {
      if (!takes(*op, dtype) || !session.supports(dtype, COMPUTE_DTYPE_LEVEL_STORAGE)) continue;
      const compute_op* handle = nullptr;
      check(compute_op_find(row.name.c_str(), 0, &handle));
      const int64_t shape[] = {4};
      std::vector<compute_tensor_spec> specs;
      std::vector<Operand> operands;
      for (int i = 0; i < op->arity; ++i) {
        compute_tensor_spec spec = blank<compute_tensor_spec>(COMPUTE_STRUCT_TENSOR_SPEC);
        spec.dtype = op->output == oracle::Elementwise::SECOND && i == 0 ? Dtype{dtype::BOOL} : dtype;
        spec.rank = 1;
        spec.shape = shape;
        specs.push_back(spec);
        operands.push_back(session.upload(Array(spec.dtype, {4})));
      }
      auto answer = blank<compute_support>(0);
      check(compute_op_query(session.device(), handle, nullptr, 0, specs.data(), op->arity, nullptr, 0, &answer));
      const int32_t support = answer.support;
      const std::string why = compute_text_data(answer.text);
      compute_text_free(answer.text);
      EXPECT_EQ(answer.struct_type, uint32_t{COMPUTE_STRUCT_SUPPORT});
      EXPECT_GE(answer.workspace_bytes, -1);  // -1: known when it is prepared
      EXPECT_TRUE(support != COMPUTE_SUPPORT_NONE || answer.reason != COMPUTE_REASON_NONE) << row.name << ": " << why;
      EXPECT_GE(answer.argument, -1);
      EXPECT_LE(answer.argument, op->arity);
      EXPECT_EQ(support == COMPUTE_SUPPORT_NONE || support == COMPUTE_SUPPORT_HOST, !why.empty())
          << row.name << ": " << why;
      Tensor result;
      const Error error = session.try_run(row.name, {}, operands, nullptr, result);
      if (support == COMPUTE_SUPPORT_NONE) {
        EXPECT_EQ(error.code(), COMPUTE_ERROR_UNSUPPORTED) << row.name << " " << oracle::info(dtype).name;
        EXPECT_TRUE(error.mentions(session.name()) && error.mentions(row.name)) << error.message();
      } else {
        EXPECT_FALSE(error) << row.name << " " << oracle::info(dtype).name << ": " << error.message();
      }
    }
  }
}

void add(Registry& registry, const char* name, void (*body)(const Session&), bool runs_ops = false) {
  Test test{"device", name, body};
  test.runs_ops = runs_ops;
  registry.add(std::move(test));
}

}  // namespace

void add_device_tests(Registry& registry) {
  add(registry, "list", list);
  add(registry, "open", open);
  add(registry, "attributes", attributes);
  add(registry, "load_report", load_report);
  add(registry, "statistics", statistics, true);
  add(registry, "query_agrees_with_run", query_agrees_with_run, true);
  Test oracle_test{"oracle", "every_op_has_an_oracle", every_op_has_an_oracle, Level::SMOKE};
  oracle_test.runs_ops = false;
  registry.add(oracle_test);
  oracle_test.name = "every_op_is_tested";
  oracle_test.body = every_op_is_tested;
  registry.add(oracle_test);
}

}  // namespace compute::conformance
