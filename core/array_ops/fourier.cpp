// SPDX-License-Identifier: Apache-2.0
// fft, rfft and irfft. Plugins are asked for the whole transform, then for parts of it. If they refuse, maps over views
// compute it: passes of 2, 3, 4, 5, 7 and 8 (Stockham), or for lengths with other prime factors a convolution with a
// chirp (Bluestein).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>

#include "core/base/error.hpp"
#include "core/ops/rules.hpp"
#include "core/ops/steps.hpp"

namespace compute {

namespace {

// In the order in which they are given: rfft and irfft treat the last one differently.
std::vector<int32_t> read_axes(const OpCall& call) {
  const int32_t index = attribute_index(call, "axes"), rank = call.inputs[0].rank;
  std::vector<int32_t> axes;
  if (call.attributes.has(index)) {
    for (const int64_t axis : call.attributes.int64_list(index)) {
      const int32_t place = normalize_axis(call.schema.name, axis, rank, "axes");
      if (std::ranges::find(axes, place) != axes.end())
        refuse_attribute(call, "axes", "axis " + std::to_string(place) + " is given twice");
      axes.push_back(place);
    }
  } else {
    for (int32_t i = 0; i < rank; ++i) axes.push_back(i);
  }
  if (axes.empty()) refuse(call, "there are no axes to transform", 0);
  return axes;
}

// By which a transform of `count` elements multiplies its sums.
double scale_of(std::string_view norm, bool is_inverse, double count) {
  if (norm == "ortho") return 1 / std::sqrt(count);
  return (norm == "forward") != is_inverse ? 1 / count : 1;
}

std::string_view read_norm(const OpCall& call) {
  const std::string_view norm = call.attributes.string(attribute_index(call, "norm"));
  if (norm != "backward" && norm != "ortho" && norm != "forward")
    refuse_attribute(call, "norm", "norm is \"" + std::string(norm) + "\"; expected backward, ortho or forward");
  return norm;
}

// Refuses float16 and bfloat16, which have no complex dtype, and dtypes outside of `wanted`.
void require_inexact(const OpCall& call, DtypeClass wanted) {
  const compute_dtype dtype = call.inputs[0].dtype;
  require_class(call, 0, wanted);
  if (dtype == COMPUTE_DTYPE_FLOAT16 || dtype == COMPUTE_DTYPE_BFLOAT16)
    refuse(call, "x is " + dtype_name(dtype) + ", which has no complex dtype; cast it (cast(x, float32))", 0);
}

std::vector<int64_t> shape_of(const OpCall& call, const std::vector<int32_t>& axes) {
  const std::span<const int64_t> extents = call.inputs[0].extents();
  for (const int32_t axis : axes) {
    if (extents[static_cast<size_t>(axis)] == 0)
      refuse(call, "x has shape " + shape_text(extents) + "; the transform of zero elements is undefined", 0);
  }
  return {extents.begin(), extents.end()};
}

std::vector<OutputDesc> infer_fft(const OpCall& call) {
  require_inexact(call, DtypeClass::kInexact);
  flag_attribute(call, "inverse");
  read_norm(call);
  return {{complex_dtype(call.inputs[0].dtype), shape_of(call, read_axes(call))}};
}

std::vector<OutputDesc> infer_rfft(const OpCall& call) {
  require_inexact(call, DtypeClass::kFloat);
  read_norm(call);
  const std::vector<int32_t> axes = read_axes(call);
  std::vector<int64_t> shape = shape_of(call, axes);
  int64_t& extent = shape[static_cast<size_t>(axes.back())];
  extent = extent / 2 + 1;
  return {{complex_dtype(call.inputs[0].dtype), std::move(shape)}};
}

std::vector<OutputDesc> infer_irfft(const OpCall& call) {
  require_class(call, 0, DtypeClass::kComplex);
  read_norm(call);
  const std::vector<int32_t> axes = read_axes(call);
  std::vector<int64_t> shape = shape_of(call, axes);
  int64_t& extent = shape[static_cast<size_t>(axes.back())];
  const int64_t given = extent;
  const int32_t index = attribute_index(call, "size");
  extent = call.attributes.has(index) ? extent_attribute(call, "size") : 2 * (given - 1);
  if (extent < 1 || extent / 2 + 1 != given) {
    refuse_attribute(call, "size",
                     "size is " + std::to_string(extent) + ", of which a transform has " +
                         std::to_string(extent / 2 + 1) + " elements; x has " + std::to_string(given));
  }
  return {{real_part_dtype(call.inputs[0].dtype), std::move(shape)}};
}

// ---- Transforms that plugins may have -------------------------------------------------------------------------------

StepAttribute integer_attribute(const char* name, int64_t value) {
  StepAttribute attribute;
  attribute.name = name;
  attribute.integers = {value};
  return attribute;
}

struct PluginTransform {
  Steps& steps;
  std::string_view norm;
  bool is_inverse = false;

  Step& operator()(const char* name, const StepOperand& src, const StepOperand& dst,
                   std::span<const int32_t> axes) const {
    StepAttribute along = integer_attribute("axes", 0);
    along.integers.assign(axes.begin(), axes.end());
    std::vector<StepAttribute> attributes = {std::move(along)};
    if (is_inverse && std::string_view(name) == "fft") attributes.push_back(integer_attribute("inverse", 1));
    if (std::string_view(name) == "irfft")
      attributes.push_back(integer_attribute("size", dst.shape[static_cast<size_t>(axes.back())]));
    if (norm != "backward") {
      StepAttribute& attribute = attributes.emplace_back();
      attribute.name = "norm";
      attribute.kind = COMPUTE_KIND_STRING;
      attribute.texts = {std::string(norm)};
    }
    Step& step = steps.add(name, {src}, dst);
    step.attributes = std::move(attributes);
    return step;
  }
};

// ---- Butterflies as text --------------------------------------------------------------------------------------------

struct Parts {
  std::string re, im;
};

std::string number(double x) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", x);
  return text;
}

// Statements of an expression. g is the sign of the exponent.
class Butterfly {
 public:
  std::string let(const std::string& value) {
    const std::string name = "t" + std::to_string(count_++);
    text_ += name + " = " + value + "; ";
    return name;
  }
  Parts let(const std::string& re, const std::string& im) { return {let(re), let(im)}; }
  Parts add(const Parts& a, const Parts& b) { return let(a.re + " + " + b.re, a.im + " + " + b.im); }
  Parts sub(const Parts& a, const Parts& b) { return let(a.re + " - " + b.re, a.im + " - " + b.im); }
  // a times g i.
  Parts turned(const Parts& a) { return let("-(g * " + a.im + ")", "g * " + a.re); }
  Parts times(const Parts& a, const std::string& real) { return let(a.re + " * " + real, a.im + " * " + real); }
  Parts times(const Parts& a, const Parts& b) {
    return let(a.re + " * " + b.re + " - " + a.im + " * " + b.im, a.re + " * " + b.im + " + " + a.im + " * " + b.re);
  }

  std::vector<Parts> of(const std::vector<Parts>& x) {
    const size_t r = x.size();
    if (r == 2) return {add(x[0], x[1]), sub(x[0], x[1])};
    if (r % 2 != 0) return odd(x);
    // Of the elements at even and at odd places.
    std::vector<Parts> even, odd, low, high;
    for (size_t i = 0; i < r; i += 2) {
      even.push_back(x[i]);
      odd.push_back(x[i + 1]);
    }
    even = of(even);
    odd = of(odd);
    for (size_t i = 0; i < r / 2; ++i) {
      Parts other = odd[i];
      if (4 * i == r) other = turned(other);
      // By the roots (1 + gi) / sqrt(2) and (-1 + gi) / sqrt(2).
      if (8 * i == r) other = times(add(other, turned(other)), kRoot);
      if (8 * i == 3 * r) other = times(sub(turned(other), other), kRoot);
      low.push_back(add(even[i], other));
      high.push_back(sub(even[i], other));
    }
    low.insert(low.end(), high.begin(), high.end());
    return low;
  }

  const std::string& text() const { return text_; }

 private:
  static constexpr const char* kRoot = "0.70710678118654752";

  std::vector<Parts> odd(const std::vector<Parts>& x) {
    const size_t r = x.size(), half = r / 2;
    std::vector<Parts> y(r), sums, differences;
    y[0] = x[0];
    for (size_t k = 1; k <= half; ++k) {
      sums.push_back(add(x[k], x[r - k]));
      differences.push_back(sub(x[k], x[r - k]));
      y[0] = add(y[0], sums.back());
    }
    for (size_t j = 1; j <= half; ++j) {
      Parts cosines = x[0], sines;
      for (size_t k = 1; k <= half; ++k) {
        const double angle = 2 * std::numbers::pi * static_cast<double>(j * k % r) / static_cast<double>(r);
        cosines = add(cosines, times(sums[k - 1], number(std::cos(angle))));
        const Parts term = times(differences[k - 1], number(std::sin(angle)));
        sines = k == 1 ? term : add(sines, term);
      }
      sines = turned(sines);
      y[j] = add(cosines, sines);
      y[r - j] = sub(cosines, sines);
    }
    return y;
  }

  std::string text_;
  int count_ = 0;
};

// exp(g 2 pi i e / n) for a position e in [0, n). The angle is reduced to an eighth of a turn in integers. w is the
// quarter of a turn over n.
std::string root_text(const std::string& e, compute_dtype real) {
  return "e = " + e + "; q = (8 * e + n) // (2 * n); r = convert(4 * e - q * n, " + dtype_name(real) +
         ") * w; c = cos(r); s = sin(r); o = (q % 2) == 1; a = where(o, s, c); b = where(o, c, s); "
         "root = complex(where((q == 1) | (q == 2), -a, a), g * where((q == 2) | (q == 3), -b, b)); ";
}

// A number of a run's own.
ScalarTerm real_term(std::string_view name, double value, compute_dtype real) {
  const StepScalar source{ScalarSource::kValue, 0, real, scalar_from_double(value, real)};
  return ScalarTerm{source, {real, false, true}}.named(name);
}

std::string scaled(const std::string& x) { return "complex(real(" + x + ") * f, imag(" + x + ") * f)"; }

void scale(Steps& steps, const StepOperand& y, double factor) {
  steps.map({is_complex(y.dtype) ? scaled("x") : "x * f", {real_term("f", factor, real_part_dtype(y.dtype))}}, {y}, y);
}

// ---- Transforms in maps ---------------------------------------------------------------------------------------------

constexpr int64_t kLargestRadix = 8;

// The radices of the passes, or none for a length with another prime factor.
std::vector<int64_t> radices_of(int64_t length) {
  std::vector<int64_t> radices;
  for (const int64_t radix : {8, 4, 2, 3, 5, 7}) {
    for (; length % radix == 0; length /= radix) radices.push_back(radix);
  }
  if (length > 1) radices.clear();
  return radices;
}

// The length of a convolution that holds 2 length - 1 elements: with small factors, and a multiple of 64 if it is long.
int64_t length_of_convolution(int64_t length) {
  const int64_t step = length > 64 ? 64 : 1;
  int64_t longer = (2 * length - 1 + step - 1) / step * step;
  while (radices_of(longer).empty()) longer += step;
  return longer;
}

// Which transforms of complex numbers along an axis are left to plugins.
enum class ByPlugin { kNone, kSmallFactors, kAll };

class Transform {
 public:
  Transform(Steps& steps, compute_dtype complex, ByPlugin by_plugin)
      : steps_(steps), complex_(complex), real_(real_part_dtype(complex)), by_plugin_(by_plugin) {}

  // `sign` is the sign of the exponent: -1 forward. src and dst do not share memory.
  void operator()(const StepOperand& src, const StepOperand& dst, int32_t axis, double sign, double scale) {
    const StepOperand from = with_last(src, axis), to = with_last(dst, axis);
    const int64_t length = to.shape.back();
    if (length == 1) return steps_.map({scaled("x"), {real_term("f", scale)}}, {from}, to);
    const std::vector<int64_t> radices = radices_of(length);
    if (!radices.empty() || by_plugin_ == ByPlugin::kAll) return passes(from, to, radices, sign, scale);
    // Bluestein: jk = (j^2 + k^2 - (j - k)^2) / 2 makes it a convolution of x times a chirp with the conjugate chirp.
    const int64_t longer = length_of_convolution(length);
    std::vector<int64_t> shape = to.shape;
    const auto last = static_cast<int32_t>(shape.size()) - 1;
    const std::span<const int64_t> outer = std::span(shape).first(shape.size() - 1);
    const int64_t rows = element_count(outer);
    shape.back() = longer;
    // The rows of x, and the filter that the convolution takes, which are transformed at once.
    const StepOperand all = steps_.temporary(complex_, {{rows + 1, longer}});
    const StepOperand spectra = steps_.temporary(complex_, all.shape);
    const StepOperand padded = split_axis(narrowed(all, 0, 0, rows), 0, outer),
                      filter = without_axis(narrowed(all, 0, rows, 1), 0);
    const StepOperand chirp = narrowed(filter, 0, 0, length);  // conjugate
    std::vector<ScalarTerm> terms = root_terms(2 * length, -sign);
    terms.push_back(extent_term(length).named("m"));
    terms.push_back(extent_term(longer).named("l"));
    steps_.map({"d = min(index(0), l - index(0)); " + root_text("d * d % n", real_) + "where(d < m, root, 0)", terms},
               {}, filter);
    steps_.map({"x * conj(y)"}, {from, chirp}, narrowed(padded, last, 0, length));
    steps_.fill(narrowed(padded, last, length, longer - length), scalar_from_double(0, complex_));
    const std::vector<int64_t> radices_of_longer = radices_of(longer);
    passes(all, spectra, radices_of_longer, -1, 1);
    const StepOperand product = steps_.temporary(complex_, shape), convolved = steps_.temporary(complex_, shape);
    steps_.map({"x * y"},
               {split_axis(narrowed(spectra, 0, 0, rows), 0, outer), without_axis(narrowed(spectra, 0, rows, 1), 0)},
               product);
    passes(product, convolved, radices_of_longer, 1, 1 / static_cast<double>(longer));
    steps_.map({"p = x * conj(y); " + scaled("p"), {real_term("f", scale)}},
               {narrowed(convolved, last, 0, length), chirp}, to);
  }

 private:
  static StepOperand with_last(const StepOperand& operand, int32_t axis) {
    std::vector<int32_t> order;
    for (int32_t i = 0; i < static_cast<int32_t>(operand.shape.size()); ++i) {
      if (i != axis) order.push_back(i);
    }
    order.push_back(axis);
    return permuted(operand, order);
  }

  ScalarTerm real_term(std::string_view name, double value) const { return compute::real_term(name, value, real_); }

  std::vector<ScalarTerm> root_terms(int64_t n, double sign) const {
    return {extent_term(n).named("n"), real_term("w", std::numbers::pi / 2 / static_cast<double>(n)),
            real_term("g", sign)};
  }

  // Stockham's passes, decimating in frequency: with `done` the product of the radices before, a pass of radix r takes
  // element (k, p, q) of [r, m, done] to (p, j, q) of [m, r, done], times root^(p j).
  void passes(const StepOperand& src, const StepOperand& dst, const std::vector<int64_t>& radices, double sign,
              double scale) {
    const int64_t length = dst.shape.back();
    if (by_plugin_ != ByPlugin::kNone) {
      const auto axis = static_cast<int32_t>(dst.shape.size()) - 1;
      const bool is_inverse = sign > 0, divides = is_inverse && scale == 1 / static_cast<double>(length);
      const PluginTransform plugin{steps_, is_inverse && !divides ? "forward" : "backward", is_inverse};
      plugin("fft", src, dst, {&axis, 1});
      if (scale != 1 && !divides) compute::scale(steps_, dst, scale);
      return;
    }
    StepOperand roots;
    if (radices.size() > 1) {
      roots = steps_.temporary(complex_, {{length}});
      steps_.map({root_text("index(0)", real_) + "root", root_terms(length, sign)}, {}, roots);
    }
    const auto last = static_cast<int32_t>(dst.shape.size()) - 1;
    StepOperand from = src;
    int64_t done = 1, rest = length;
    for (size_t i = 0; i < radices.size(); ++i) {
      const int64_t r = radices[i], m = rest / r;
      const bool is_last = i + 1 == radices.size();
      const StepOperand to = is_last ? dst : steps_.temporary(complex_, dst.shape);
      const StepOperand taken = split_axis(from, last, {{r, m, done}}), given = split_axis(to, last, {{m, r, done}});
      std::vector<StepOperand> inputs, outputs;
      for (int64_t k = 0; k < r; ++k) {
        inputs.push_back(without_axis(narrowed(taken, last, k, 1), last));
        outputs.push_back(without_axis(narrowed(given, last + 1, k, 1), last + 1));
      }
      for (int64_t j = 1; j < r && !is_last; ++j) {
        StepOperand root = roots;
        root.shape = {m, 1};
        root.strides = {j * (length / rest), 0};
        inputs.push_back(std::move(root));
      }
      steps_.map(pass_text(r, is_last, sign, scale), std::move(inputs), std::move(outputs));
      from = to;
      done *= r;
      rest = m;
    }
  }

  // The last pass has no roots and scales.
  StepExpression pass_text(int64_t radix, bool is_last, double sign, double scale) const {
    static constexpr std::string_view kNames[] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"};
    static constexpr std::string_view kRoots[] = {"", "w1", "w2", "w3", "w4", "w5", "w6", "w7"};
    static_assert(std::size(kNames) == kLargestRadix && std::size(kRoots) == kLargestRadix);
    StepExpression pass;
    Butterfly lines;
    std::vector<Parts> x;
    const auto parts = [&](std::string_view name) {
      return lines.let("real(" + std::string(name) + ")", "imag(" + std::string(name) + ")");
    };
    for (int64_t k = 0; k < radix; ++k) {
      pass.inputs.push_back(kNames[k]);
      x.push_back(parts(kNames[k]));
    }
    std::vector<Parts> y = lines.of(x);
    std::string results;
    for (int64_t j = 0; j < radix; ++j) {
      Parts& each = y[static_cast<size_t>(j)];
      if (is_last) each = lines.times(each, "f");
      if (!is_last && j > 0) {
        pass.inputs.push_back(kRoots[j]);
        each = lines.times(each, parts(kRoots[j]));
      }
      results += (j > 0 ? "; complex(" : "complex(") + each.re + ", " + each.im + ")";
    }
    pass.text = lines.text() + results;
    if (radix > 2) pass.scalars.push_back(real_term("g", sign));
    if (is_last) pass.scalars.push_back(real_term("f", scale));
    return pass;
  }

  Steps& steps_;
  compute_dtype complex_, real_;
  ByPlugin by_plugin_;
};

// Elements first, first - 1, … along `axis`.
StepOperand reversed(StepOperand operand, int32_t axis, int64_t first, int64_t count) {
  operand = narrowed(std::move(operand), axis, first, count);
  operand.strides[static_cast<size_t>(axis)] *= -1;
  return operand;
}

// Calls along(src, dst, axis) for each axis, from src to dst, through temporaries of the shape of dst.
template <class Along>
void each_axis(Steps& steps, std::span<const int32_t> axes, StepOperand src, const StepOperand& dst,
               const Along& along) {
  for (size_t i = axes.size(); i-- > 0;) {
    const StepOperand to = i == 0 ? dst : steps.temporary(dst.dtype, dst.shape);
    along(src, to, axes[i]);
    src = to;
  }
}

// The ways to lower a transform, as plugins are asked for them.
enum class Form {
  kWhole,         // the op itself; fft of complex numbers
  kUnscaled,      // the op without a factor, which vendors' libraries do not have, and a map
  kAxes,          // axis by axis
  kAxesUnscaled,  // axis by axis without factors, and a map
  kComplex,       // maps, and fft along an axis
  kMixed,         // maps, and fft along an axis for lengths that have passes
  kMaps
};

ByPlugin by_plugin(Form form) {
  return form == Form::kComplex ? ByPlugin::kAll : form == Form::kMixed ? ByPlugin::kSmallFactors : ByPlugin::kNone;
}

std::vector<Form> forms_of(bool has_factor, bool has_axes) {
  std::vector<Form> forms = {Form::kWhole};
  if (has_factor) forms.push_back(Form::kUnscaled);
  if (has_axes) forms.push_back(Form::kAxes);
  if (has_axes && has_factor) forms.push_back(Form::kAxesUnscaled);
  forms.push_back(Form::kComplex);
  forms.push_back(Form::kMixed);
  forms.push_back(Form::kMaps);
  return forms;
}

// What the three ops have in common.
struct Lowered {
  Lowered(const OpCall& call, const LoweringTarget& target, bool inverse)
      : steps(call, target),
        x(steps.input(0)),
        y(steps.output()),
        axes(read_axes(call)),
        norm(read_norm(call)),
        is_inverse(inverse) {
    const StepOperand& whole = call.schema.name == "rfft" ? x : y;
    for (const int32_t axis : axes) count *= static_cast<double>(whole.shape[static_cast<size_t>(axis)]);
    factor = scale_of(norm, is_inverse, count);
  }

  int32_t last() const { return axes.back(); }
  std::span<const int32_t> others() const { return {axes.data(), axes.size() - 1}; }
  PluginTransform plugin(bool is_scaled) {
    return {steps, is_scaled ? norm : is_inverse ? "forward" : "backward", is_inverse};
  }
  double factor_along(const StepOperand& whole, int32_t axis) const {
    return scale_of(norm, is_inverse, static_cast<double>(whole.shape[static_cast<size_t>(axis)]));
  }
  double sign() const { return is_inverse ? 1 : -1; }

  Steps steps;
  StepOperand x, y;
  std::vector<int32_t> axes;
  std::string_view norm;
  bool is_inverse;
  double count = 1, factor = 1;
};

std::optional<Lowering> lower_fft(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  Lowered t(call, target, flag_attribute(call, "inverse"));
  std::vector<Form> forms = forms_of(t.factor != 1, t.axes.size() > 1);
  std::erase(forms, Form::kComplex);  // kWhole or kAxes
  if (static_cast<size_t>(alternative) >= forms.size()) return std::nullopt;
  const Form form = forms[static_cast<size_t>(alternative)];
  const StepOperand x = t.steps.as_dtype(t.x, t.y.dtype);
  const bool is_scaled = form == Form::kWhole || form == Form::kAxes;
  const PluginTransform plugin = t.plugin(is_scaled);
  switch (form) {
    case Form::kWhole:
    case Form::kUnscaled:
      plugin("fft", x, t.y, t.axes);
      break;
    case Form::kAxes:
    case Form::kAxesUnscaled:
      each_axis(t.steps, t.axes, x, t.y, [&](const StepOperand& src, const StepOperand& dst, int32_t axis) {
        plugin("fft", src, dst, {&axis, 1});
      });
      break;
    case Form::kComplex:
    case Form::kMixed:
    case Form::kMaps:
      Transform transform(t.steps, t.y.dtype, by_plugin(form));
      each_axis(t.steps, t.axes, x, t.y, [&](const StepOperand& src, const StepOperand& dst, int32_t axis) {
        transform(src, dst, axis, t.sign(), t.factor_along(dst, axis));
      });
      return t.steps.take();
  }
  if (!is_scaled && t.factor != 1) scale(t.steps, t.y, t.factor);
  return t.steps.take();
}

std::optional<Lowering> lower_rfft(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  Lowered t(call, target, false);
  const std::vector<Form> forms = forms_of(t.factor != 1, t.axes.size() > 1);
  if (static_cast<size_t>(alternative) >= forms.size()) return std::nullopt;
  const Form form = forms[static_cast<size_t>(alternative)];
  const PluginTransform plugin = t.plugin(form == Form::kWhole || form == Form::kAxes);
  if (form == Form::kWhole || form == Form::kUnscaled) {
    plugin("rfft", t.x, t.y, t.axes);
    if (form == Form::kUnscaled) scale(t.steps, t.y, t.factor);
    return t.steps.take();
  }
  const int32_t last = t.last();
  const StepOperand half = t.others().empty() ? t.y : t.steps.temporary(t.y.dtype, t.y.shape);
  if (form == Form::kComplex || form == Form::kMixed || form == Form::kMaps) {
    Transform transform(t.steps, t.y.dtype, by_plugin(form));
    const StepOperand whole = t.steps.temporary(t.y.dtype, t.x.shape);
    transform(t.steps.as_dtype(t.x, t.y.dtype), whole, last, -1, t.factor_along(t.x, last));
    t.steps.copy(narrowed(whole, last, 0, half.shape[static_cast<size_t>(last)]), half);
    each_axis(t.steps, t.others(), half, t.y, [&](const StepOperand& src, const StepOperand& dst, int32_t axis) {
      transform(src, dst, axis, -1, t.factor_along(dst, axis));
    });
    return t.steps.take();
  }
  plugin("rfft", t.x, half, {&last, 1});
  each_axis(t.steps, t.others(), half, t.y, [&](const StepOperand& src, const StepOperand& dst, int32_t axis) {
    plugin("fft", src, dst, {&axis, 1});
  });
  if (form == Form::kAxesUnscaled) scale(t.steps, t.y, t.factor);
  return t.steps.take();
}

// The spectrum of n real numbers: element n - k is the conjugate of element k, and elements 0 and n / 2 are real.
void expand_half(Steps& steps, const StepOperand& half, const StepOperand& whole, int32_t axis) {
  const int64_t n = whole.shape[static_cast<size_t>(axis)], pairs = (n - 1) / 2;
  const auto take_real = [&](int64_t i) {
    steps.map({"complex(real(x), 0)"}, {narrowed(half, axis, i, 1)}, narrowed(whole, axis, i, 1));
  };
  take_real(0);
  if (n % 2 == 0) take_real(n / 2);
  if (pairs == 0) return;
  steps.map({"x; conj(x)"}, {narrowed(half, axis, 1, pairs)},
            {narrowed(whole, axis, 1, pairs), reversed(whole, axis, n - 1, pairs)});
}

std::optional<Lowering> lower_irfft(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  Lowered t(call, target, true);
  std::vector<Form> forms = forms_of(true, t.axes.size() > 1);
  std::erase(forms, Form::kAxesUnscaled);
  if (static_cast<size_t>(alternative) >= forms.size()) return std::nullopt;
  const Form form = forms[static_cast<size_t>(alternative)];
  const PluginTransform plugin = t.plugin(form == Form::kWhole || form == Form::kAxes);
  if (form == Form::kWhole) {
    plugin("irfft", t.x, t.y, t.axes);
    return t.steps.take();
  }
  const int32_t last = t.last();
  const int64_t n = t.y.shape[static_cast<size_t>(last)];
  if (form == Form::kUnscaled) {
    // A copy that the plugin may use up, without the parts that it need not ignore.
    const StepOperand own = t.steps.temporary(t.x.dtype, t.x.shape);
    const std::string place = "index(" + std::to_string(last) + ")";
    const StepExpression cleared{"where((" + place + " == 0) | (2 * " + place + " == n), complex(real(x), 0), x)",
                                 {extent_term(n).named("n")}};
    if (t.others().empty()) {
      t.steps.map(cleared, {t.x}, own);
    } else {
      plugin("fft", t.x, own, t.others());
      t.steps.map(cleared, {own}, own);
    }
    plugin("irfft", own, t.y, {&last, 1}).attributes.push_back(integer_attribute("overwrites", 1));
    if (t.factor != 1) scale(t.steps, t.y, t.factor);
    return t.steps.take();
  }
  const StepOperand half = t.others().empty() ? t.x : t.steps.temporary(t.x.dtype, t.x.shape);
  if (form == Form::kAxes) {
    each_axis(t.steps, t.others(), t.x, half, [&](const StepOperand& src, const StepOperand& dst, int32_t axis) {
      plugin("fft", src, dst, {&axis, 1});
    });
    plugin("irfft", half, t.y, {&last, 1});
    return t.steps.take();
  }
  Transform transform(t.steps, t.x.dtype, by_plugin(form));
  each_axis(t.steps, t.others(), t.x, half, [&](const StepOperand& src, const StepOperand& dst, int32_t axis) {
    transform(src, dst, axis, 1, t.factor_along(dst, axis));
  });
  const StepOperand whole = t.steps.temporary(t.x.dtype, t.y.shape), result = t.steps.temporary(t.x.dtype, t.y.shape);
  expand_half(t.steps, half, whole, last);
  transform(whole, result, last, 1, t.factor_along(t.y, last));
  t.steps.map({"real(x)"}, {result}, t.y);
  return t.steps.take();
}

}  // namespace

const OpRules fft_1_rules{infer_fft, lower_fft};
const OpRules irfft_1_rules{infer_irfft, lower_irfft};
const OpRules rfft_1_rules{infer_rfft, lower_rfft};

}  // namespace compute
