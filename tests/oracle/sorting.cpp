// SPDX-License-Identifier: Apache-2.0
// References of cumulative ops, sorting, searching, sets, segments, indices of several axes, and sums of products.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "tracked.hpp"

namespace compute::oracle {

namespace {

Result like(Dtype dtype, Shape shape) {
  Result result;
  result.dtype = dtype;
  result.shape = std::move(shape);
  result.elements.resize(static_cast<size_t>(element_count(result.shape)));
  return result;
}

Result integers(Shape shape) { return like(dtype::INT64, std::move(shape)); }

Element whole(int64_t value) { return {Value::of(Integer{value})}; }

int64_t position_of(const Shape& shape, const Shape& index) {
  int64_t position = 0;
  for (size_t i = 0; i < shape.size(); ++i) position = position * shape[i] + index[i];
  return position;
}

std::string text_or(const Attributes& attributes, std::string_view name, const char* fallback) {
  const auto found = attributes.find(name);
  return found == attributes.end() ? fallback : found->second.text;
}

const Shape& list_of(const Attributes& attributes, std::string_view name) {
  return attributes.find(name)->second.integers;
}

bool is_nan(Dtype dtype, const Value& x) { return is_inexact(dtype) && (std::isnan(x.re) || std::isnan(x.im)); }

// NaN sorts after all numbers; complex numbers are ordered by real and then imaginary part.
bool less(Dtype dtype, const Value& x, const Value& y) {
  if (!is_inexact(dtype)) return x.integer < y.integer;
  if (is_nan(dtype, x) || is_nan(dtype, y)) return !is_nan(dtype, x) && is_nan(dtype, y);
  return x.re != y.re ? x.re < y.re : x.im < y.im;
}

bool equal(Dtype dtype, const Value& x, const Value& y) {
  return is_inexact(dtype) ? x.re == y.re && x.im == y.im : x.integer == y.integer;
}

// Calls `f` with the positions of the elements of each line along `axis`.
void for_each_line(const Shape& shape, size_t axis, const std::function<void(const std::vector<int64_t>&)>& f) {
  Shape others = shape;
  others[axis] = 1;
  for_each_index(others, [&](Shape index) {
    std::vector<int64_t> line;
    for (index[axis] = 0; index[axis] < shape[axis]; ++index[axis]) line.push_back(position_of(shape, index));
    f(line);
  });
}

// ---- Cumulative -----------------------------------------------------------------------------------------------------

enum class Kind { sum, prod, min, max };

// What is combined of values of `dtype`, with the sum of the moduli.
struct Running {
  Dtype dtype;
  Kind kind;
  Complex value = 0;
  Bits bits = 0;
  Integer integer = 0;
  Real moduli = 0;
  bool is_empty = true;

  Running(Dtype dtype, Kind kind) : dtype(dtype), kind(kind) {
    if (kind == Kind::prod) value = 1, bits = 1;
    if (kind == Kind::min) value = HUGE_VALL, integer = integer_of(true);
    if (kind == Kind::max) value = -HUGE_VALL, integer = integer_of(false);
  }
  Integer integer_of(bool greatest) const {
    if (is_inexact(dtype)) return 0;
    return greatest ? integer_max(dtype) : integer_min(dtype);
  }
  void add(const Value& term) {
    const Complex number = term.complex();
    moduli += std::abs(number);
    switch (kind) {
      case Kind::sum:
        value += number;
        bits += static_cast<Bits>(term.integer);
        break;
      case Kind::prod:
        value = Complex(value) * number;
        bits *= static_cast<Bits>(term.integer);
        break;
      default: {
        const bool is_less = kind == Kind::min;
        if (is_nan(dtype, term) ||
            (!std::isnan(value.real()) && (is_less ? number.real() < value.real() : number.real() > value.real())))
          value = number;
        if (is_less ? term.integer < integer : term.integer > integer) integer = term.integer;
      }
    }
    is_empty = false;
  }
  Element element() const {
    Element e;
    const bool adds = kind == Kind::sum || kind == Kind::prod;
    if (!is_inexact(dtype)) {
      e.value = Value::of(adds ? wrap(dtype, bits) : integer);
      return e;
    }
    e.value = is_complex(dtype) ? Value::of(value) : Value::of(value.real());
    if (adds) e.scale = kind == Kind::prod ? std::abs(value) : moduli;
    e.open = kSigns;
    return e;
  }
};

Result cumulative(const Array& x, const Attributes& attributes, Kind kind) {
  const size_t axis = axis_of(attributes, "axis", -1, x.shape().size());
  const bool initial = integer_or(attributes, "include_initial", 0) != 0;
  const bool exclusive = integer_or(attributes, "exclusive", 0) != 0,
             reverse = integer_or(attributes, "reverse", 0) != 0;
  Dtype dtype = x.dtype();
  if ((kind == Kind::sum || kind == Kind::prod) && is_integer(dtype))
    dtype = category(dtype) == Category::SIGNED ? Dtype{dtype::INT64} : Dtype{dtype::UINT64};
  dtype = static_cast<Dtype>(integer_or(attributes, "dtype", dtype));
  Shape shape = x.shape();
  shape[axis] += initial ? 1 : 0;
  Result result = like(dtype, shape);
  result.accumulator = computed_in(dtype);
  result.terms = shape[axis];
  result.roundings = is_complex(dtype) && kind == Kind::prod ? 4 : 1;
  Shape others = shape;
  others[axis] = 1;
  for_each_index(others, [&](const Shape& first) {
    Running running(dtype, kind);
    const auto put = [&](int64_t at) {
      Shape to = first;
      to[axis] = reverse ? shape[axis] - 1 - at : at;
      result.elements[static_cast<size_t>(position_of(shape, to))] = running.element();
    };
    int64_t at = 0;
    if (initial) put(at++);
    for (int64_t j = 0; j < x.shape()[axis]; ++j) {
      Shape from = first;
      from[axis] = reverse ? x.shape()[axis] - 1 - j : j;
      if (exclusive) put(at++);
      running.add(convert(x.dtype(), dtype, x.at(position_of(x.shape(), from))));
      if (!exclusive) put(at++);
    }
  });
  return result;
}

// ---- Sorting --------------------------------------------------------------------------------------------------------

// The positions along a line in sorted order.
std::vector<int64_t> sorted_line(const Array& x, const std::vector<int64_t>& line, bool descending) {
  std::vector<int64_t> order(line.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
    const Value a = x.at(line[static_cast<size_t>(i)]), b = x.at(line[static_cast<size_t>(j)]);
    if (!descending || is_nan(x.dtype(), a) || is_nan(x.dtype(), b)) return less(x.dtype(), a, b);
    return less(x.dtype(), b, a);
  });
  return order;
}

// The first `count` of each line along `axis`: values, then indices.
Result ordered(const Array& x, size_t axis, bool descending, int64_t count) {
  Shape shape = x.shape();
  shape[axis] = count;
  Result values = like(x.dtype(), shape), indices = integers(shape);
  Shape others = shape;
  others[axis] = 1;
  std::vector<Shape> firsts;
  for_each_index(others, [&](const Shape& index) { firsts.push_back(index); });
  size_t number = 0;
  for_each_line(x.shape(), axis, [&](const std::vector<int64_t>& line) {
    const std::vector<int64_t> order = sorted_line(x, line, descending);
    Shape to = firsts.empty() ? Shape{} : firsts[number++];
    for (int64_t i = 0; i < count; ++i) {
      to[axis] = i;
      const auto place = static_cast<size_t>(position_of(shape, to));
      const int64_t from = order[static_cast<size_t>(i)];
      values.elements[place] = {x.at(line[static_cast<size_t>(from)])};
      indices.elements[place] = whole(from);
    }
  });
  values.more.push_back(indices);
  return values;
}

Dtype promoted(Dtype a, Dtype b) { return a == b ? a : Dtype{dtype::FLOAT64}; }  // tests use equal ones

// ---- Sums of products -----------------------------------------------------------------------------------------------

// Labels of each operand and of the output, where an ellipsis' axes are '0' (the last one), '1' and so on.
struct Equation {
  std::vector<std::string> inputs;
  std::string output;
};

Result sum_of_products(std::span<const Array> inputs, const Equation& equation, bool conjugates_first) {
  std::map<char, int64_t> extents;
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (size_t axis = 0; axis < equation.inputs[i].size(); ++axis) {
      int64_t& extent = extents.emplace(equation.inputs[i][axis], 1).first->second;
      extent = extent == 1 ? inputs[i].shape()[axis] : extent;
    }
  }
  std::string order = equation.output;
  Shape shape, space;
  for (const char label : order) shape.push_back(extents[label]);
  for (const auto& [label, extent] : extents) {
    if (order.find(label) == std::string::npos) order += label;
  }
  for (const char label : order) space.push_back(extents[label]);
  const Dtype dtype = inputs[0].dtype();
  Result result = like(dtype, shape);
  result.accumulator = computed_in(dtype);
  result.terms = 1;
  for (size_t i = shape.size(); i < space.size(); ++i) result.terms *= space[i];
  result.roundings = static_cast<Real>(inputs.size()) * (is_complex(dtype) ? 4 : 1);
  std::vector<Complex> sums(result.elements.size());
  std::vector<Bits> bits(result.elements.size());
  std::vector<Real> moduli(result.elements.size());
  for_each_index(space, [&](const Shape& point) {
    Complex term = 1;
    Bits product = 1;
    for (size_t i = 0; i < inputs.size(); ++i) {
      Shape at;
      for (size_t axis = 0; axis < equation.inputs[i].size(); ++axis)
        at.push_back(inputs[i].shape()[axis] == 1 ? 0 : point[order.find(equation.inputs[i][axis])]);
      const Value value = inputs[i].at(position_of(inputs[i].shape(), at));
      term *= conjugates_first && i == 0 ? std::conj(value.complex()) : value.complex();
      product *= static_cast<Bits>(value.integer);
    }
    const auto place = static_cast<size_t>(
        position_of(shape, Shape(point.begin(), point.begin() + static_cast<std::ptrdiff_t>(shape.size()))));
    sums[place] += term;
    bits[place] += product;
    moduli[place] += std::abs(term);
  });
  for (size_t i = 0; i < result.elements.size(); ++i) {
    Element& e = result.elements[i];
    e.value = is_complex(dtype)   ? Value::of(sums[i])
              : is_inexact(dtype) ? Value::of(sums[i].real())
                                  : Value::of(wrap(dtype, bits[i]));
    e.scale = moduli[i];
    e.open = kSigns;
  }
  return result;
}

Equation equation_of(std::span<const Array> inputs, std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  Equation equation;
  const size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow) + ",";
  size_t widest = 0;
  const auto expanded = [](std::string part, size_t wide) {
    std::string digits;
    for (size_t i = wide; i-- > 0;) digits += static_cast<char>('0' + i);
    const size_t at = part.find("...");
    return at == std::string::npos ? part : part.replace(at, 3, digits);
  };
  for (const Array& x : inputs) {
    const std::string part = left.substr(0, left.find(','));
    left.erase(0, part.size() + 1);
    const bool has_ellipsis = part.find("...") != std::string::npos;
    const size_t wide = has_ellipsis ? x.shape().size() - (part.size() - 3) : 0;
    widest = std::max(widest, wide);
    equation.inputs.push_back(expanded(part, wide));
  }
  if (arrow != std::string::npos) {
    equation.output = expanded(text.substr(arrow + 2), widest);
    return equation;
  }
  std::map<char, int> counts;
  for (const std::string& labels : equation.inputs) {
    for (const char label : labels) ++counts[label];
  }
  equation.output = expanded("...", widest);
  for (const auto& [label, count] : counts) {
    if (count == 1 && label > '9') equation.output += label;
  }
  return equation;
}

// ---- Indices --------------------------------------------------------------------------------------------------------

// For each index of the last axis of `indices` the first of the elements of x that it names, and how many there are.
std::vector<int64_t> named_places(const Array& x, const Array& indices, int64_t& out_count) {
  const auto k = static_cast<size_t>(indices.shape().back());
  out_count = 1;
  for (size_t i = k; i < x.shape().size(); ++i) out_count *= x.shape()[i];
  std::vector<int64_t> places;
  for (int64_t i = 0; i < indices.size(); i += static_cast<int64_t>(k)) {
    int64_t place = 0;
    for (size_t j = 0; j < k; ++j) {
      auto index = static_cast<int64_t>(indices.at(i + static_cast<int64_t>(j)).integer);
      if (index < 0) index += x.shape()[j];
      place = place * x.shape()[j] + index;
    }
    places.push_back(place * out_count);
  }
  return places;
}

// For each element of the result of gather_at, whose shape is out_shape, the element of x.
std::vector<int64_t> places_at(const Array& x, std::span<const Array> indices, const Attributes& attributes,
                               Shape& out_shape) {
  int64_t axis = integer_or(attributes, "axis", 0);
  if (axis < 0) axis += x.rank();
  Shape common;
  for (const Array& one : indices) common = broadcast(common, one.shape());
  std::vector<Array> each;
  for (const Array& one : indices) each.push_back(one.broadcast_to(common));
  out_shape.assign(x.shape().begin(), x.shape().begin() + axis);
  out_shape.insert(out_shape.end(), common.begin(), common.end());
  out_shape.insert(out_shape.end(), x.shape().begin() + axis + static_cast<int64_t>(each.size()), x.shape().end());
  std::vector<int64_t> places;
  for_each_index(out_shape, [&](const Shape& at) {
    const auto middle = at.begin() + axis, end = middle + static_cast<int64_t>(common.size());
    const int64_t place = position_of(common, Shape(middle, end));
    Shape from(at.begin(), middle);
    for (const Array& one : each) {
      const auto index = static_cast<int64_t>(one.at(place).integer);
      from.push_back(index < 0 ? index + x.shape()[from.size()] : index);
    }
    from.insert(from.end(), end, at.end());
    places.push_back(position_of(x.shape(), from));
  });
  return places;
}

// x with each of the updates at its place.
Result written(const Array& x, const Array& updates, const std::vector<int64_t>& places, const Attributes& attributes) {
  const std::string reduction = text_or(attributes, "reduction", "set");
  std::vector<std::vector<Value>> added(static_cast<size_t>(x.size()));
  for (int64_t i = 0; i < updates.size(); ++i)
    added[static_cast<size_t>(places[static_cast<size_t>(i)])].push_back(updates.at(i));
  Result result = like(x.dtype(), x.shape());
  result.accumulator = computed_in(x.dtype());
  result.roundings = is_complex(x.dtype()) && reduction == "mul" ? 4 : 1;
  result.terms = updates.size() + 1;
  for (int64_t i = 0; i < x.size(); ++i) {
    Element& e = result.elements[static_cast<size_t>(i)];
    const std::vector<Value>& values = added[static_cast<size_t>(i)];
    if (reduction == "set" || values.empty()) {
      e = {values.empty() ? x.at(i) : values.back()};
      continue;
    }
    Running running(x.dtype(), reduction == "add"   ? Kind::sum
                               : reduction == "mul" ? Kind::prod
                               : reduction == "min" ? Kind::min
                                                    : Kind::max);
    running.add(x.at(i));
    for (const Value& value : values) running.add(value);
    e = running.element();
  }
  return result;
}

}  // namespace

Result reference_cumulative_max(std::span<const Array> inputs, const Attributes& attributes) {
  return cumulative(inputs[0], attributes, Kind::max);
}
Result reference_cumulative_min(std::span<const Array> inputs, const Attributes& attributes) {
  return cumulative(inputs[0], attributes, Kind::min);
}
Result reference_cumulative_prod(std::span<const Array> inputs, const Attributes& attributes) {
  return cumulative(inputs[0], attributes, Kind::prod);
}
Result reference_cumulative_sum(std::span<const Array> inputs, const Attributes& attributes) {
  return cumulative(inputs[0], attributes, Kind::sum);
}

Result reference_sort(std::span<const Array> inputs, const Attributes& attributes) {
  const Array& x = inputs[0];
  const size_t axis = axis_of(attributes, "axis", -1, x.shape().size());
  Result result = ordered(x, axis, integer_or(attributes, "descending", 0) != 0, x.shape()[axis]);
  result.more.clear();
  return result;
}

Result reference_argsort(std::span<const Array> inputs, const Attributes& attributes) {
  const Array& x = inputs[0];
  const size_t axis = axis_of(attributes, "axis", -1, x.shape().size());
  return ordered(x, axis, integer_or(attributes, "descending", 0) != 0, x.shape()[axis]).more[0];
}

Result reference_top_k(std::span<const Array> inputs, const Attributes& attributes) {
  const Array& x = inputs[0];
  return ordered(x, axis_of(attributes, "axis", -1, x.shape().size()), integer_or(attributes, "largest", 1) != 0,
                 integer_or(attributes, "k", 0));
}

Result reference_searchsorted(std::span<const Array> inputs, const Attributes& attributes) {
  const Array &sorted = inputs[0], &values = inputs[1];
  const bool is_right = text_or(attributes, "side", "left") == "right",
             has_sorter = inputs.size() > 2 && inputs[2].size() > 0;
  const Dtype dtype = promoted(sorted.dtype(), values.dtype());
  Result result = integers(values.shape());
  for (int64_t i = 0; i < values.size(); ++i) {
    int64_t position = 0;
    for (int64_t j = 0; j < sorted.size(); ++j) {
      const Value found = sorted.at(has_sorter ? static_cast<int64_t>(inputs[2].at(j).integer) : j);
      position += is_right ? !less(dtype, values.at(i), found) : less(dtype, found, values.at(i));
    }
    result.elements[static_cast<size_t>(i)] = whole(position);
  }
  return result;
}

Result reference_isin(std::span<const Array> inputs, const Attributes& attributes) {
  const Array &x = inputs[0], &values = inputs[1];
  Result result = like(dtype::BOOL, x.shape());
  for (int64_t i = 0; i < x.size(); ++i) {
    bool found = false;
    for (int64_t j = 0; j < values.size(); ++j) found = found || equal(x.dtype(), x.at(i), values.at(j));
    result.elements[static_cast<size_t>(i)] = {Value::of(found != (integer_or(attributes, "invert", 0) != 0))};
  }
  return result;
}

Result reference_nonzero(std::span<const Array> inputs, const Attributes&) {
  const Array& x = inputs[0];
  Result indices = integers({x.rank(), x.size()}), count = integers({});
  int64_t found = 0, position = 0;
  for_each_index(x.shape(), [&](const Shape& index) {
    const Value value = x.at(position++);
    if (equal(x.dtype(), value, Value{})) return;
    for (size_t axis = 0; axis < index.size(); ++axis)
      indices.elements[axis * static_cast<size_t>(x.size()) + static_cast<size_t>(found)] = whole(index[axis]);
    ++found;
  });
  count.elements[0] = whole(found);
  indices.more.push_back(count);
  return indices;
}

Result reference_unique(std::span<const Array> inputs, const Attributes&) {
  const Array& x = inputs[0];
  const Shape all = {x.size()};
  Result values = like(x.dtype(), all), first = integers(all), inverse = integers(x.shape()), counts = integers(all),
         count = integers({});
  std::vector<int64_t> order(static_cast<size_t>(x.size()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return less(x.dtype(), x.at(i), x.at(j)); });
  int64_t found = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || !equal(x.dtype(), x.at(order[i - 1]), x.at(order[i]))) {
      values.elements[static_cast<size_t>(found)] = {x.at(order[i])};
      first.elements[static_cast<size_t>(found++)] = whole(order[i]);
    }
    const auto rank = static_cast<size_t>(found - 1);
    inverse.elements[static_cast<size_t>(order[i])] = whole(found - 1);
    counts.elements[rank].value.integer += 1;
  }
  count.elements[0] = whole(found);
  values.more = {first, inverse, counts, count};
  return values;
}

Result reference_segment_reduce(std::span<const Array> inputs, const Attributes& attributes) {
  const Array &x = inputs[0], &offsets = inputs[1];
  const std::string kind = text_or(attributes, "kind", "sum");
  Shape shape = x.shape();
  shape[0] = offsets.size() - 1;
  Result result = like(x.dtype(), shape);
  result.accumulator = computed_in(x.dtype());
  result.terms = x.shape()[0];
  result.roundings = is_complex(x.dtype()) && kind == "prod" ? 4 : 1;
  for_each_index(shape, [&](const Shape& to) {
    Running running(x.dtype(), kind == "sum"    ? Kind::sum
                               : kind == "prod" ? Kind::prod
                               : kind == "min"  ? Kind::min
                                                : Kind::max);
    Shape from = to;
    for (from[0] = static_cast<int64_t>(offsets.at(to[0]).integer); from[0] < offsets.at(to[0] + 1).integer; ++from[0])
      running.add(x.at(position_of(x.shape(), from)));
    result.elements[static_cast<size_t>(position_of(shape, to))] = running.element();
  });
  return result;
}

namespace {

// The edges of even bins, as linspace gives them.
std::vector<Real> bin_edges(Dtype dtype, double low, double high, int64_t bins) {
  std::vector<Real> edges;
  for (int64_t k = 0; k <= bins; ++k) {
    const auto i = static_cast<double>(k), n = static_cast<double>(bins);
    const double edge = k == 0 ? low : k == bins ? high : (low * (n - i) + high * i) / n;
    edges.push_back(round_to(format(is_float(dtype) ? dtype : Dtype{dtype::FLOAT32}), edge));
  }
  return edges;
}

}  // namespace

Result reference_histogram(std::span<const Array> inputs, const Attributes& attributes) {
  const Array& x = inputs[0];
  const int64_t bins = integer_or(attributes, "bins", 1);
  const double low = number_or(attributes, "minimum", 0).real(), high = number_or(attributes, "maximum", 1).real();
  const std::vector<Real> edges = bin_edges(x.dtype(), low, high, bins);
  Result result = integers({bins});
  for (int64_t i = 0; i < x.size(); ++i) {
    const Value value = x.at(i);
    const Real number = is_inexact(x.dtype()) ? value.re : static_cast<Real>(value.integer);
    if (!(number >= edges.front() && number <= edges.back())) continue;
    const auto bin = std::upper_bound(edges.begin(), edges.end(), number) - edges.begin() - 1;
    result.elements[static_cast<size_t>(std::min<int64_t>(bin, bins - 1))].value.integer += 1;
  }
  return result;
}

Result reference_count_nonzero(std::span<const Array> inputs, const Attributes& attributes) {
  const Array& x = inputs[0];
  Shape axes(x.shape().size());
  std::iota(axes.begin(), axes.end(), 0);
  if (const auto found = attributes.find("axes"); found != attributes.end()) axes = found->second.integers;
  Shape kept = x.shape(), shape;
  for (int64_t& axis : axes) axis += axis < 0 ? x.rank() : 0;
  for (const int64_t axis : axes) kept[static_cast<size_t>(axis)] = 1;
  for (size_t i = 0; i < kept.size(); ++i) {
    const bool is_reduced = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    if (!is_reduced || integer_or(attributes, "keepdims", 0) != 0) shape.push_back(kept[i]);
  }
  Result result = integers(shape);
  int64_t position = 0;
  for_each_index(x.shape(), [&](Shape index) {
    for (const int64_t axis : axes) index[static_cast<size_t>(axis)] = 0;
    const Value value = x.at(position++);
    if (!equal(x.dtype(), value, Value{}))
      result.elements[static_cast<size_t>(position_of(kept, index))].value.integer += 1;
  });
  return result;
}

Result reference_diff(std::span<const Array> inputs, const Attributes& attributes) {
  Array x = inputs[0].copy();
  const size_t axis = axis_of(attributes, "axis", -1, x.shape().size());
  for (int64_t i = 0; i < integer_or(attributes, "n", 1); ++i) {
    Shape shape = x.shape();
    shape[axis] = std::max<int64_t>(shape[axis] - 1, 0);
    Array next(x.dtype(), shape);
    int64_t position = 0;
    for_each_index(shape, [&](Shape index) {
      const Value a = x.at(position_of(x.shape(), index));
      ++index[axis];
      const Value b = x.at(position_of(x.shape(), index));
      next.set(position++,
               is_complex(x.dtype()) ? Value::of(b.complex() - a.complex())
               : is_inexact(x.dtype())
                   ? Value::of(b.re - a.re)
                   : Value::of(wrap(x.dtype(), static_cast<Bits>(b.integer) - static_cast<Bits>(a.integer))));
    });
    x = next;
  }
  Result result = like(x.dtype(), x.shape());
  for (int64_t i = 0; i < x.size(); ++i) result.elements[static_cast<size_t>(i)] = {x.at(i), kSigns};
  return result;
}

Result reference_gather_at(std::span<const Array> inputs, const Attributes& attributes) {
  const Array& x = inputs[0];
  Shape shape;
  const std::vector<int64_t> places = places_at(x, inputs.subspan(1), attributes, shape);
  Result result = like(x.dtype(), shape);
  for (size_t i = 0; i < places.size(); ++i) result.elements[i] = {x.at(places[i])};
  return result;
}

Result reference_scatter_at(std::span<const Array> inputs, const Attributes& attributes) {
  Shape shape;
  return written(inputs[0], inputs[1], places_at(inputs[0], inputs.subspan(2), attributes, shape), attributes);
}

Result reference_gather_nd(std::span<const Array> inputs, const Attributes&) {
  const Array &x = inputs[0], &indices = inputs[1];
  int64_t count = 0;
  const std::vector<int64_t> places = named_places(x, indices, count);
  Shape shape(indices.shape().begin(), indices.shape().end() - 1);
  shape.insert(shape.end(), x.shape().begin() + indices.shape().back(), x.shape().end());
  Result result = like(x.dtype(), shape);
  for (size_t i = 0; i < result.elements.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    result.elements[i] = {x.at(places[static_cast<size_t>(at / count)] + at % count)};
  }
  return result;
}

Result reference_scatter_nd(std::span<const Array> inputs, const Attributes& attributes) {
  int64_t count = 0;
  std::vector<int64_t> places;
  for (const int64_t first : named_places(inputs[0], inputs[1], count))
    for (int64_t i = 0; i < count; ++i) places.push_back(first + i);
  return written(inputs[0], inputs[2], places, attributes);
}

Result reference_einsum(std::span<const Array> inputs, const Attributes& attributes) {
  return sum_of_products(inputs, equation_of(inputs, text_or(attributes, "equation", "")), false);
}

Result reference_tensordot(std::span<const Array> inputs, const Attributes& attributes) {
  const Shape a = list_of(attributes, "axes_a"), b = list_of(attributes, "axes_b");
  Equation equation;
  char next = 'a';
  for (const Array& x : inputs) equation.inputs.emplace_back(x.shape().size(), ' ');
  for (size_t i = 0; i < a.size(); ++i) {
    const auto at = [&](size_t input, int64_t axis) {
      return static_cast<size_t>(axis < 0 ? axis + inputs[input].rank() : axis);
    };
    equation.inputs[0][at(0, a[i])] = equation.inputs[1][at(1, b[i])] = next++;
  }
  for (std::string& labels : equation.inputs) {
    for (char& label : labels) {
      if (label == ' ') equation.output += label = next++;
    }
  }
  return sum_of_products(inputs, equation, false);
}

Result reference_vecdot(std::span<const Array> inputs, const Attributes& attributes) {
  Equation equation;
  size_t widest = 0;
  for (const Array& x : inputs) {
    const size_t axis = axis_of(attributes, "axis", -1, x.shape().size());
    std::string labels;
    for (size_t i = x.shape().size() - 1; i-- > 0;) labels += static_cast<char>('0' + i);
    labels.insert(axis, 1, 'v');
    widest = std::max(widest, x.shape().size() - 1);
    equation.inputs.push_back(labels);
  }
  for (size_t i = widest; i-- > 0;) equation.output += static_cast<char>('0' + i);
  return sum_of_products(inputs, equation, true);
}

}  // namespace compute::oracle
