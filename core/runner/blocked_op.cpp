// SPDX-License-Identifier: Apache-2.0
#include "core/runner/blocked_op.hpp"

#include <compute/ops.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/sized.hpp"
#include "core/expressions/dtype.hpp"
#include "core/memory/tensor.hpp"

namespace compute {
namespace {

constexpr int64_t kLeastRows = 512;  // of matrices that are taken apart
constexpr int64_t kBlock = 128;      // columns of a block

using Ref = TensorReference;
using Shape = std::vector<int64_t>;

template <class Options>
Options options_of() {
  Options options{};
  options.struct_size = sizeof options;
  options.struct_type = COMPUTE_STRUCT_OP_OPTIONS;
  return options;
}

// Calls a function of the C interface whose last argument is the result.
template <class F>
Ref made(F&& call) {
  compute_tensor* result = nullptr;
  throw_if(call(&result));
  return Ref(result);
}

Shape shape_of(const Tensor& x) { return {x.shape_span().begin(), x.shape_span().end()}; }
int64_t rows_of(const Tensor& x) { return x.shape()[x.rank - 2]; }
int64_t columns_of(const Tensor& x) { return x.shape()[x.rank - 1]; }

// ---- Views ----------------------------------------------------------------------------------------------------------

// Rows [r0, r1) and columns [c0, c1) of each matrix.
Ref part(const Tensor& x, int64_t r0, int64_t r1, int64_t c0, int64_t c1) {
  Shape shape = shape_of(x);
  const auto rank = static_cast<size_t>(x.rank);
  shape[rank - 2] = r1 - r0;
  shape[rank - 1] = c1 - c0;
  const int64_t offset = r0 * x.strides()[rank - 2] + c0 * x.strides()[rank - 1];
  return Ref(make_view(x, x.dtype, shape, x.strides_span(), x.offset_bytes + offset * dtype_size(x.dtype)));
}

Ref transposed(const Tensor& x) {
  Shape shape = shape_of(x), strides(x.strides_span().begin(), x.strides_span().end());
  std::swap(shape[shape.size() - 2], shape[shape.size() - 1]);
  std::swap(strides[shape.size() - 2], strides[shape.size() - 1]);
  return Ref(make_view(x, x.dtype, shape, strides, x.offset_bytes));
}

Ref diagonal(const Tensor& x) {
  Shape shape = shape_of(x), strides(x.strides_span().begin(), x.strides_span().end());
  const size_t rank = shape.size();
  strides[rank - 2] += strides[rank - 1];
  shape.pop_back();
  strides.pop_back();
  return Ref(make_view(x, x.dtype, shape, strides, x.offset_bytes));
}

// ---- Steps ----------------------------------------------------------------------------------------------------------

// What one call computes with, on its stream.
class Blocks {
 public:
  explicit Blocks(compute_stream* stream) : stream_(stream) {}

  Ref conjugate(const Ref& x) const {
    return made([&](compute_tensor** out) { return compute_conj(stream_, x.get(), out); });
  }
  Ref adjoint(Tensor& x) const {
    Ref result = transposed(x);
    return is_complex(x.dtype) ? conjugate(result) : std::move(result);
  }
  void copy(Tensor& from, Tensor& to) const { throw_if(compute_copy_into(stream_, &from, nullptr, &to)); }
  Ref copied(Tensor& x) const {
    return made([&](compute_tensor** out) { return compute_copy(stream_, &x, nullptr, out); });
  }

  // c -= a b
  void subtract_product(Tensor& c, Tensor& a, Tensor& b) const {
    if (is_complex(c.dtype)) {
      const Ref product = made([&](compute_tensor** out) { return compute_matmul(stream_, &a, &b, nullptr, out); });
      throw_if(compute_subtract_into(stream_, &c, product.get(), &c));
      return;
    }
    auto options = options_of<compute_gemm_options>();
    options.alpha.kind = options.beta.kind = COMPUTE_KIND_FLOAT64;
    options.alpha.real = -1;
    options.beta.real = 1;
    throw_if(compute_gemm_into(stream_, &c, &a, &b, nullptr, &options, &c));
  }

  // b = a^-1 b, for triangular matrices of a block.
  void solve_triangle(Tensor& a, Tensor& b, bool upper, bool unit) const {
    auto options = options_of<compute_triangular_solve_options>();
    options.upper = upper;
    options.unit_diagonal = unit;
    const Ref x = made([&](compute_tensor** out) { return compute_triangular_solve(stream_, &a, &b, &options, out); });
    copy(*x, b);
  }

  // The same by blocks, for any number of rows.
  void substitute(Tensor& a, Tensor& b, bool upper, bool unit) const {
    const int64_t n = rows_of(a), columns = columns_of(b);
    for (int64_t done = 0; done < n; done += kBlock) {
      const int64_t size = std::min(kBlock, n - done);
      const int64_t first = upper ? n - done - size : done, last = first + size;
      const Ref x = part(b, first, last, 0, columns);
      solve_triangle(*part(a, first, last, first, last), *x, upper, unit);
      const int64_t begin = upper ? 0 : last, end = upper ? first : n;
      if (begin < end) subtract_product(*part(b, begin, end, 0, columns), *part(a, begin, end, first, last), *x);
    }
  }

  // The lower factor of Hermitian matrices, of which the lower triangle is read. Column by column of blocks.
  Ref cholesky(Tensor& x) const {
    Ref l = made([&](compute_tensor** out) { return compute_tril(stream_, &x, nullptr, out); });
    const int64_t n = rows_of(x);
    for (int64_t first = 0; first < n; first += kBlock) {
      const int64_t last = std::min(first + kBlock, n);
      if (first > 0) {
        const Ref rows = part(*l, first, last, 0, first);
        subtract_product(*part(*l, first, n, first, last), *part(*l, first, n, 0, first), *adjoint(*rows));
      }
      const Ref block = part(*l, first, last, first, last);
      const Ref factor =
          made([&](compute_tensor** out) { return compute_cholesky(stream_, block.get(), nullptr, out); });
      copy(*factor, *block);
      if (last == n) break;
      // y with y factor^H = below, by its adjoint.
      const Ref below = part(*l, last, n, first, last), solution = copied(*adjoint(*below));
      solve_triangle(*factor, *solution, false, false);
      copy(*adjoint(*solution), *below);
    }
    return l;
  }

  // ---- Exchanged rows ----

  // Where each row of [batch, n] comes from, after exchanges of row first + i with row pivots[i].
  static std::vector<int64_t> rows_after(const std::vector<int64_t>& pivots, int64_t batch, int64_t n) {
    const auto count = static_cast<int64_t>(pivots.size()) / std::max<int64_t>(batch, 1);
    std::vector<int64_t> rows(static_cast<size_t>(batch * n));
    for (int64_t i = 0; i < batch; ++i) {
      const auto own = rows.begin() + i * n;
      std::iota(own, own + n, 0);
      for (int64_t k = 0; k < count; ++k) std::swap(own[k], own[pivots[static_cast<size_t>(i * count + k)]]);
    }
    return rows;
  }

  static std::vector<int64_t> read(Tensor& integers) {
    std::vector<int64_t> values(static_cast<size_t>(integers.element_count));
    if (!values.empty()) throw_if(compute_tensor_read(&integers, values.data(), integers.size_bytes()));
    return values;
  }

  // Positions [batch..., n, 1] on the device of `like`.
  static Ref positions(const Tensor& like, Shape shape, const std::vector<int64_t>& rows) {
    shape.push_back(1);
    return made([&](compute_tensor** out) {
      return compute_tensor_from_host(&like.buffer->device, COMPUTE_DTYPE_INT64, static_cast<int32_t>(shape.size()),
                                      shape.data(), rows.data(), out);
    });
  }

  Ref with_rows(Tensor& x, const Ref& rows) const {
    auto options = options_of<compute_take_along_axis_options>();
    const int64_t axis = -2;
    options.axis = &axis;
    return made([&](compute_tensor** out) { return compute_take_along_axis(stream_, &x, rows.get(), &options, out); });
  }

  struct Factors {
    Ref lu, pivots;
  };

  // A panel of columns at a time. What is right of it is updated at once; rows are exchanged on both sides.
  Factors lu(Tensor& x) const {
    const int64_t m = rows_of(x), n = columns_of(x), k = std::min(m, n);
    Factors result{copied(x), {}};
    Shape batch = shape_of(x);
    batch.resize(batch.size() - 2);
    const int64_t matrices = std::accumulate(batch.begin(), batch.end(), int64_t{1}, std::multiplies<>());
    std::vector<int64_t> all(static_cast<size_t>(matrices * k));
    Tensor& w = *result.lu;
    for (int64_t first = 0; first < k; first += kBlock) {
      const int64_t last = std::min(first + kBlock, k);
      const Ref panel = part(w, first, m, first, last);
      compute_tensor *factors = nullptr, *pivots = nullptr;
      throw_if(compute_lu(stream_, panel.get(), nullptr, &factors, &pivots));
      const Ref owned_factors(factors), owned_pivots(pivots);
      copy(*factors, *panel);
      const std::vector<int64_t> exchanged = read(*pivots);
      for (int64_t i = 0; i < matrices; ++i) {
        for (int64_t j = 0; j < last - first; ++j) {
          all[static_cast<size_t>(i * k + first + j)] = first + exchanged[static_cast<size_t>(i * (last - first) + j)];
        }
      }
      Shape shape = batch;
      shape.push_back(m - first);
      const Ref rows = positions(w, shape, rows_after(exchanged, matrices, m - first));
      for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, first}, {last, n}}) {
        if (begin == end) continue;
        const Ref beside = part(w, first, m, begin, end);
        copy(*with_rows(*beside, rows), *beside);
      }
      if (last == n) continue;
      const Ref right = part(w, first, last, last, n);
      solve_triangle(*part(w, first, last, first, last), *right, false, true);
      if (last < m) subtract_product(*part(w, last, m, last, n), *part(w, last, m, first, last), *right);
    }
    batch.push_back(k);
    result.pivots = made([&](compute_tensor** out) {
      return compute_tensor_from_host(&w.buffer->device, COMPUTE_DTYPE_INT64, static_cast<int32_t>(batch.size()),
                                      batch.data(), all.data(), out);
    });
    return result;
  }

  // a^-1 b for matrices b, into a new tensor.
  Ref solve(const char* op, Tensor& a, Tensor& b) const {
    compute_tensor *factors = nullptr, *exchanges = nullptr;
    throw_if(compute_lu(stream_, &a, nullptr, &factors, &exchanges));
    const Ref lu(factors), pivots(exchanges), on_diagonal = diagonal(*lu);
    const int64_t n = rows_of(a), matrices = pivots->element_count / n;
    auto options = options_of<compute_count_nonzero_options>();
    options.axes_mask = uint64_t{1} << (on_diagonal->rank - 1);
    const Ref counts =
        made([&](compute_tensor** out) { return compute_count_nonzero(stream_, on_diagonal.get(), &options, out); });
    const std::vector<int64_t> numbers = read(*counts);
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (numbers[i] == n) continue;
      Error error(COMPUTE_ERROR_NUMERICAL, fmt::format("{}: matrix {} of the batch is singular", op, i));
      error.argument = 0;
      throw error;
    }
    Shape shape = shape_of(*pivots);
    Ref x = with_rows(b, positions(*lu, shape, rows_after(read(*pivots), matrices, n)));
    substitute(*lu, *x, false, true);
    substitute(*lu, *x, true, false);
    return x;
  }

  Ref unit_like(const Tensor& x) const {
    Device& device = x.buffer->device;
    const Ref one = made(
        [&](compute_tensor** out) { return compute_tensor_empty(&device, x.dtype, 2, x.shape() + x.rank - 2, out); });
    throw_if(compute_eye_into(stream_, rows_of(x), rows_of(x), x.dtype, nullptr, one.get()));
    return made([&](compute_tensor** out) { return compute_tensor_broadcast(one.get(), x.rank, x.shape(), out); });
  }

 private:
  compute_stream* const stream_;
};

enum class Form { kNone, kCholesky, kInverse, kLu, kSolve, kTriangularSolve };

Form form_of(const OpSchema& op) {
  if (op.version != 1) return Form::kNone;
  const std::string_view name = op.name;
  return name == "cholesky"           ? Form::kCholesky
         : name == "inv"              ? Form::kInverse
         : name == "lu"               ? Form::kLu
         : name == "solve"            ? Form::kSolve
         : name == "triangular_solve" ? Form::kTriangularSolve
                                      : Form::kNone;
}

bool is_computed(compute_dtype dtype) {
  return dtype == COMPUTE_DTYPE_FLOAT32 || dtype == COMPUTE_DTYPE_FLOAT64 || is_complex(dtype);
}

// Whether right sides have the batch of the matrices, or are one vector for one matrix.
bool fits(const Tensor& a, const Tensor& b) {
  if (b.buffer == nullptr || b.dtype != a.dtype || b.element_count == 0) return false;
  if (b.rank == 1) return a.rank == 2 && b.shape()[0] == rows_of(a);
  return a.rank == b.rank && std::equal(a.shape(), a.shape() + a.rank - 1, b.shape());
}

// The result, where the program wants it.
void deliver(const Blocks& blocks, Ref result, compute_tensor*& out) {
  if (out != nullptr) return blocks.copy(*result, *out);
  if (!result->is_row_major) result = blocks.copied(*result);
  out = result.release();
}

}  // namespace

bool has_blocks(const OpSchema* op, std::span<Tensor* const> inputs) noexcept {
  if (op == nullptr || !op->runs_on_host()) return false;
  const Form form = form_of(*op);
  if (form == Form::kNone || inputs.empty() || inputs[0] == nullptr) return false;
  const Tensor& a = *inputs[0];
  if (a.buffer == nullptr || !is_computed(a.dtype) || a.rank < 2 || a.element_count == 0) return false;
  if (std::min(rows_of(a), columns_of(a)) < kLeastRows) return false;
  if (form != Form::kLu && rows_of(a) != columns_of(a)) return false;
  const bool has_right_sides = form == Form::kSolve || form == Form::kTriangularSolve;
  return !has_right_sides || (inputs.size() == 2 && inputs[1] != nullptr && fits(a, *inputs[1]));
}

void run_in_blocks(const OpSchema& op, const Attributes& attributes, compute_stream* stream,
                   std::span<Tensor* const> inputs, std::span<compute_tensor*> outputs) {
  const Blocks blocks(stream);
  Tensor& a = *inputs[0];
  const auto flag = [&](int32_t index) { return attributes.int64(index) != 0; };
  const Form form = form_of(op);
  if (form == Form::kCholesky) {
    if (!flag(0)) return deliver(blocks, blocks.cholesky(a), outputs[0]);
    const Ref l = blocks.cholesky(*blocks.adjoint(a));
    return deliver(blocks, blocks.adjoint(*l), outputs[0]);
  }
  if (form == Form::kLu) {
    Blocks::Factors factors = blocks.lu(a);
    deliver(blocks, std::move(factors.lu), outputs[0]);
    return deliver(blocks, std::move(factors.pivots), outputs[1]);
  }
  if (form == Form::kInverse)
    return deliver(blocks, blocks.solve(op.name.c_str(), a, *blocks.unit_like(a)), outputs[0]);
  Ref column;
  Tensor* b = inputs[1];
  if (b->rank == 1) {
    column = made([&](compute_tensor** out) { return compute_tensor_expand(inputs[1], 1, out); });
    b = column.get();
  }
  Ref x;
  if (form == Form::kSolve) {
    x = blocks.solve(op.name.c_str(), a, *b);
  } else {
    x = blocks.copied(*b);
    blocks.substitute(a, *x, flag(0), flag(1));
  }
  if (column) x = made([&](compute_tensor** out) { return compute_tensor_squeeze(x.get(), 1, out); });
  deliver(blocks, std::move(x), outputs[0]);
}

}  // namespace compute
