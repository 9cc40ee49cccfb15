// SPDX-License-Identifier: Apache-2.0
// What the ops on matrices share: batches of matrices [..., m, n], and steps over them.
#pragma once

#include <initializer_list>
#include <vector>

#include "core/ops/rules.hpp"
#include "core/ops/steps.hpp"

namespace compute {

// The last two axes, and those before.
struct Matrices {
  std::vector<int64_t> batch;
  int64_t rows = 0, columns = 0;

  int64_t least() const { return std::min(rows, columns); }
  bool is_empty() const { return rows == 0 || columns == 0; }
  // [batch..., more...]
  std::vector<int64_t> with(std::initializer_list<int64_t> more) const;
};

// Of input `index`; refuses a rank below 2.
Matrices matrices_of(const OpCall& call, int32_t index);
Matrices square_matrices_of(const OpCall& call, int32_t index);

// The matrices a of `solve` and its like, and the right sides b: vectors if b has rank 1, else matrices. `batch` is
// their common one.
struct System {
  Matrices a;
  std::vector<int64_t> batch;
  int64_t count = 1;  // of columns of b
  bool is_vector = false;

  std::vector<int64_t> with(std::initializer_list<int64_t> more) const;
  // The shape of the solution, whose rows are the columns of a.
  std::vector<int64_t> solution() const { return is_vector ? with({a.columns}) : with({a.columns, count}); }
};

System system_of(const OpCall& call);

int32_t rank_of(const StepOperand& operand);
StepOperand transposed(const StepOperand& matrices);
// Conjugated too; through memory if the elements are complex.
StepOperand adjoint(Steps& steps, const StepOperand& matrices);
// [..., k] of [..., m, n].
StepOperand diagonal_of(const StepOperand& matrices);

// A step of the primitive `name`, in the dtype that is computed with (float32 for the half types). The results are
// rounded to the dtypes of the outputs.
void decompose(Steps& steps, const char* name, const std::vector<StepOperand>& inputs,
               const std::vector<StepOperand>& outputs, std::initializer_list<std::pair<const char*, bool>> flags = {});
// c = a b, of one dtype. As a reduction, the product is a step that every plugin takes.
void multiply(Steps& steps, const StepOperand& a, const StepOperand& b, const StepOperand& c,
              bool is_reduction = false);
// The unit matrix in each batch.
void fill_unit(Steps& steps, const StepOperand& matrices);
// The same number in all elements.
void fill_number(Steps& steps, const StepOperand& operand, const char* number);

// What the singular values of matrices have to exceed, relative to the greatest: the input `rtol` [batch...] as
// `dtype`, or max(m, n) times the epsilon of the dtype of x. Of the shape [batch..., 1].
StepOperand tolerance(Steps& steps, const OpCall& call, int32_t index, const Matrices& x, compute_dtype dtype);
// Refuses an input `rtol` that does not broadcast to the batch.
void check_tolerance(const OpCall& call, int32_t index, const Matrices& x);

}  // namespace compute
