// SPDX-License-Identifier: Apache-2.0
//
// arrays.hpp: views of tensors and indexing by tensors, with the names of the array API standard. Include compute.hpp.
#ifndef COMPUTE_ARRAYS_HPP_
#define COMPUTE_ARRAYS_HPP_

#include <algorithm>
#include <numeric>

#include "compute/ops.hpp"

namespace compute {

namespace detail {

[[nodiscard]] inline size_t place_of_axis(const char* function, Integer axis, size_t rank) {
  const int64_t n = static_cast<int64_t>(rank), at = axis.value() < 0 ? axis.value() + n : axis.value();
  if (at < 0 || at >= n)
    throw_invalid(std::string(function) + ": axis " + std::to_string(axis.value()) + " of a tensor of rank " +
                  std::to_string(n));
  return static_cast<size_t>(at);
}

}  // namespace detail

/// The shape to which shapes broadcast.
[[nodiscard]] inline Shape broadcast_shapes(List<Shape> shapes) {
  Shape result;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Shape& shape = shapes.data()[i];
    if (shape.size() > result.size()) result.insert(result.begin(), shape.size() - result.size(), 1);
    for (size_t k = 1; k <= shape.size(); ++k) {
      int64_t& extent = result[result.size() - k];
      const int64_t other = shape[shape.size() - k];
      if (extent != 1 && other != 1 && extent != other) detail::throw_invalid("broadcast_shapes: the extents differ");
      if (extent == 1) extent = other;
    }
  }
  return result;
}

/// Views of the tensors in their common shape.
[[nodiscard]] inline std::vector<Tensor> broadcast_arrays(List<Tensor> tensors) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < tensors.size(); ++i)
    shapes.emplace_back(tensors.data()[i].shape().begin(), tensors.data()[i].shape().end());
  const Shape common = broadcast_shapes(shapes);
  std::vector<Tensor> views;
  for (size_t i = 0; i < tensors.size(); ++i) views.push_back(tensors.data()[i].broadcast_to(common));
  return views;
}

enum class Indexing { xy, ij };

/// The coordinates of a grid as views of vectors; with `xy` the first two axes are those of the second and the first
/// vector.
[[nodiscard]] inline std::vector<Tensor> meshgrid(List<Tensor> vectors, Indexing indexing = Indexing::xy) {
  std::vector<size_t> axes(vectors.size());
  std::iota(axes.begin(), axes.end(), size_t{0});
  if (indexing == Indexing::xy && axes.size() > 1) std::swap(axes[0], axes[1]);
  Shape shape(vectors.size());
  for (size_t i = 0; i < vectors.size(); ++i) {
    if (vectors.data()[i].rank() != 1) detail::throw_invalid("meshgrid: expected vectors");
    shape[axes[i]] = vectors.data()[i].extent(0);
  }
  std::vector<Tensor> grids;
  for (size_t i = 0; i < vectors.size(); ++i) {
    Shape own(vectors.size(), 1);
    own[axes[i]] = shape[axes[i]];
    Shape strides(vectors.size(), 0);
    strides[axes[i]] = vectors.data()[i].strides()[0];
    const Tensor& x = vectors.data()[i];
    grids.push_back(x.view(x.dtype(), own, strides, x.offset_bytes()).broadcast_to(shape));
  }
  return grids;
}

/// A view with axis `from` at place `to`; the other axes keep their order.
[[nodiscard]] inline Tensor moveaxis(const Tensor& x, Integer from, Integer to) {
  const auto rank = static_cast<size_t>(x.rank());
  const size_t source = detail::place_of_axis("moveaxis", from, rank),
               place = detail::place_of_axis("moveaxis", to, rank);
  std::vector<int32_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(source));
  axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(place), static_cast<int32_t>(source));
  return x.permute(axes);
}

/// A view with the last two axes exchanged.
[[nodiscard]] inline Tensor matrix_transpose(const Tensor& x) { return moveaxis(x, -1, -2); }

/// A view with the elements along the axes in reverse; all axes without a list.
[[nodiscard]] inline Tensor flip(const Tensor& x, List<int64_t> axes = {}) {
  std::vector<int64_t> list(axes.data(), axes.data() + axes.size());
  if (list.empty()) {
    list.resize(static_cast<size_t>(x.rank()));
    std::iota(list.begin(), list.end(), int64_t{0});
  }
  Tensor view = x;
  for (const int64_t axis : list) view = view.slice(axis, none, none, -1);
  return view;
}

/// Views of the parts along an axis, which they lack.
[[nodiscard]] inline std::vector<Tensor> unstack(const Tensor& x, Integer axis = 0) {
  const Tensor first = moveaxis(x, axis, 0);
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < first.extent(0); ++i) parts.push_back(first[i]);
  return parts;
}

namespace detail {

[[nodiscard]] inline Tensor select_positions(const Tensor& x, List<Tensor> indices, const Stream& stream) {
  return gather_nd(x, stack(broadcast_arrays(indices), -1, stream), stream);
}

inline void assign_positions(const Tensor& x, List<Tensor> indices, const Tensor& value, const Stream& stream) {
  const Tensor places = stack(broadcast_arrays(indices), -1, stream);
  Shape shape(places.shape().begin(), places.shape().end() - 1);
  shape.insert(shape.end(), x.shape().begin() + static_cast<std::ptrdiff_t>(indices.size()), x.shape().end());
  scatter_nd_into(x, places, value.broadcast_to(shape), x, "set", false, stream);
}

}  // namespace detail

/// x[mask]: the elements, or the parts along the last axes, where `mask` is true, in row-major order. `mask` is bool
/// and has the first extents of x. A tensor of integers holds positions along the first axis instead.
///
/// Blocks: until the number of true elements is known, which is the first extent of the result.
[[nodiscard]] inline Tensor select(const Tensor& x, const Tensor& mask, const Stream& stream = {}) {
  if (mask.dtype() != bool_) return detail::select_positions(x, std::span<const Tensor>(&mask, 1), stream);
  const auto covered = static_cast<size_t>(mask.rank());
  if (covered > x.shape().size() || !std::equal(mask.shape().begin(), mask.shape().end(), x.shape().begin()))
    detail::throw_invalid("select: the mask does not have the first extents of x");
  Shape shape(x.shape().begin() + static_cast<std::ptrdiff_t>(covered), x.shape().end());
  shape.insert(shape.begin(), mask.size());
  const NonzeroResult found = nonzero(copy(mask, stream).reshape({-1}), stream);
  if (stream.get() != nullptr) stream.synchronize();
  const auto count = found.count.item<int64_t>();
  return take(copy(x, stream).reshape(shape), found.indices[0].slice(0, 0, count), 0, stream);
}

/// x[mask] = value: writes `value`, which broadcasts to x, where `mask` is true. `mask` is bool and has the first
/// extents of x. A tensor of integers holds positions along the first axis instead.
inline void assign(const Tensor& x, const Tensor& mask, const Tensor& value, const Stream& stream = {}) {
  if (mask.dtype() != bool_) return detail::assign_positions(x, std::span<const Tensor>(&mask, 1), value, stream);
  Tensor wide = mask;
  while (wide.rank() < x.rank()) wide = wide.expand_dims(-1);
  where_into(wide, value, x, x, stream);
}

/// x[indices]: parts of x at integer positions along the first axes. Tensors of indices broadcast; negative ones count
/// from the end.
[[nodiscard]] inline Tensor select(const Tensor& x, List<Tensor> indices, const Stream& stream = {}) {
  return detail::select_positions(x, indices, stream);
}

/// x[indices] = value. Where positions repeat, one of the values stays.
inline void assign(const Tensor& x, List<Tensor> indices, const Tensor& value, const Stream& stream = {}) {
  detail::assign_positions(x, indices, value, stream);
}

}  // namespace compute

#endif  // COMPUTE_ARRAYS_HPP_
