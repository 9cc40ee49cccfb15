// SPDX-License-Identifier: Apache-2.0
#include "registry.hpp"

#include <algorithm>

namespace compute::conformance {

void Registry::add(Test test) {
  static const std::vector<OpRow> rows = op_rows();
  // An older library does not have the newer ops.
  const bool is_known = test.op.empty() || std::ranges::find(rows, test.op, &OpRow::name) != rows.end();
  if (test.level <= level_ && is_known) tests_.push_back(std::move(test));
}

std::vector<OpRow> op_rows() {
  int64_t count = 0;
  check(compute_op_list(nullptr, 0, &count));
  compute_op_info blank{};
  blank.struct_size = sizeof blank;
  blank.struct_type = COMPUTE_STRUCT_OP_INFO;
  std::vector<compute_op_info> infos(static_cast<size_t>(count), blank);
  check(compute_op_list(infos.data(), count, &count));
  std::vector<OpRow> rows;
  for (const compute_op_info& info : infos) {
    const std::string name = info.name;
    // Ops of users and vendors have a dot and no oracle here.
    if (name.find('.') != std::string::npos) continue;
    rows.push_back({name, info.dtypes, info.bound, info.expression[0] != '\0'});
  }
  return rows;
}

bool in_class(Dtype dtype, const std::string& dtype_class) {
  const bool b = oracle::is_bool(dtype), i = oracle::is_integer(dtype), f = oracle::is_float(dtype),
             c = oracle::is_complex(dtype);
  if (dtype_class == "ANY") return true;
  if (dtype_class == "BOOL") return b;
  if (dtype_class == "INTEGER") return i;
  if (dtype_class == "BITS") return b || i;
  if (dtype_class == "REAL") return i || f;
  if (dtype_class == "FLOAT") return f;
  if (dtype_class == "COMPLEX") return c;
  if (dtype_class == "INEXACT") return f || c;
  if (dtype_class == "NUMERIC") return i || f || c;
  return false;
}

Bound bound_of(const OpRow& row, Dtype dtype) {
  Bound bound = Bound::parse(row.bound);
  if (bound.kind == Bound::ULP && oracle::is_complex(dtype)) bound.ulp = std::max<Real>(bound.ulp, 8);
  return bound;
}

Bound bound_of(const std::string& op, Dtype dtype) {
  static const std::vector<OpRow> rows = op_rows();
  for (const OpRow& row : rows) {
    if (row.name == op) return bound_of(row, dtype);
  }
  throw UnexpectedError("unknown op " + op);
}

std::vector<Dtype> tested_dtypes(Level level) {
  if (level == Level::QUICK) return {dtype::BOOL, dtype::INT32, dtype::FLOAT32, dtype::COMPLEX64};
  std::vector<Dtype> all;
  for (const oracle::DtypeInfo& info : oracle::kDtypes) all.push_back(info.id);
  return all;
}

}  // namespace compute::conformance
