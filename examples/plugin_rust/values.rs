// SPDX-License-Identifier: Apache-2.0
//! Values and intrinsics, as compute/intrinsics.def defines them.
use crate::abi;
use crate::intrinsics::*;
use std::f64::consts::PI;

#[derive(Clone, Copy, PartialEq)]
pub enum Dtype {
    Bool,
    Int32,
    Int64,
    Uint32,
    Float32,
}

/// A value between two nodes. A bool is the integer 0 or 1. A float32 is a double that float32 can represent: sums,
/// products, quotients and roots that are rounded to double and then to float32 are rounded correctly.
#[derive(Clone, Copy)]
pub enum Value {
    Int(i64),
    Float(f64),
}
use Value::{Float, Int};

impl Value {
    pub fn int(self) -> i64 {
        match self {
            Int(x) => x,
            Float(x) => x as i64,
        }
    }
    fn float(self) -> f64 {
        match self {
            Int(x) => x as f64,
            Float(x) => x,
        }
    }
}

impl Dtype {
    pub fn from_id(id: i32) -> Option<Dtype> {
        match id {
            abi::DTYPE_BOOL => Some(Dtype::Bool),
            abi::DTYPE_INT32 => Some(Dtype::Int32),
            abi::DTYPE_INT64 => Some(Dtype::Int64),
            abi::DTYPE_UINT32 => Some(Dtype::Uint32),
            abi::DTYPE_FLOAT32 => Some(Dtype::Float32),
            _ => None,
        }
    }

    pub fn size_bytes(self) -> usize {
        match self {
            Dtype::Bool => 1,
            Dtype::Int64 => 8,
            _ => 4,
        }
    }

    /// Wraps an integer, and rounds a double.
    pub fn fit(self, value: Value) -> Value {
        match (self, value) {
            (Dtype::Bool, Int(x)) => Int(x & 1),
            (Dtype::Int32, Int(x)) => Int(x as i32 as i64),
            (Dtype::Uint32, Int(x)) => Int(x as u32 as i64),
            (Dtype::Float32, Float(x)) => Float(x as f32 as f64),
            _ => value,
        }
    }

    pub unsafe fn load(self, address: *const u8) -> Value {
        match self {
            Dtype::Bool => Int((*address != 0) as i64),
            Dtype::Int32 => Int(address.cast::<i32>().read_unaligned() as i64),
            Dtype::Int64 => Int(address.cast::<i64>().read_unaligned()),
            Dtype::Uint32 => Int(address.cast::<u32>().read_unaligned() as i64),
            Dtype::Float32 => Float(address.cast::<f32>().read_unaligned() as f64),
        }
    }

    pub unsafe fn store(self, address: *mut u8, value: Value) {
        match self {
            Dtype::Bool => *address = value.int() as u8,
            Dtype::Int32 => address.cast::<i32>().write_unaligned(value.int() as i32),
            Dtype::Int64 => address.cast::<i64>().write_unaligned(value.int()),
            Dtype::Uint32 => address.cast::<u32>().write_unaligned(value.int() as u32),
            Dtype::Float32 => address.cast::<f32>().write_unaligned(value.float() as f32),
        }
    }
}

pub fn convert(value: Value, to: Dtype) -> Value {
    match (value, to) {
        (Int(x), Dtype::Bool) => Int((x != 0) as i64),
        (Float(x), Dtype::Bool) => Int((x != 0.0) as i64),
        (Int(x), Dtype::Float32) => Float(x as f32 as f64),
        (Float(x), Dtype::Int32) => Int(x as i32 as i64), // truncates and saturates; NaN gives 0
        (Float(x), Dtype::Int64) => Int(x as i64),
        (Float(x), Dtype::Uint32) => Int(x as u32 as i64),
        _ => to.fit(value),
    }
}

fn bitcast(value: Value, to: Dtype) -> Value {
    match (value, to) {
        (Float(_), Dtype::Float32) => value,
        (Float(x), _) => to.fit(Int((x as f32).to_bits() as i64)),
        (Int(x), Dtype::Float32) => Float(f32::from_bits(x as u32) as f64),
        _ => to.fit(value),
    }
}

/// The result of an intrinsic; None if the plugin does not know it. `from` is the dtype of operand 0.
pub fn call(intrinsic: i32, from: Dtype, to: Dtype, operands: [Value; 3]) -> Option<Value> {
    let [x, y, z] = operands;
    match intrinsic {
        CONVERT => Some(convert(x, to)),
        BITCAST => Some(bitcast(x, to)),
        WHERE => Some(if x.int() != 0 { y } else { z }),
        _ => Some(to.fit(combine(intrinsic, from, x, y)?)),
    }
}

/// The same for intrinsics with one dtype, before the result is wrapped or rounded.
pub fn combine(intrinsic: i32, dtype: Dtype, x: Value, y: Value) -> Option<Value> {
    match dtype {
        Dtype::Float32 => real(intrinsic, x.float(), y.float()),
        Dtype::Int32 | Dtype::Uint32 => integer(intrinsic, 32, x.int(), y.int()),
        _ => integer(intrinsic, 64, x.int(), y.int()),
    }
}

// ---- Integers and bool ----------------------------------------------------------------------------------------------

fn floor_div(x: i64, y: i64) -> i64 {
    match y {
        0 => 0,
        -1 => x.wrapping_neg(),
        _ => x / y - (x % y != 0 && (x < 0) != (y < 0)) as i64,
    }
}

fn power(x: i64, y: i64) -> i64 {
    if y < 0 {
        return if x == 1 || (x == -1 && y % 2 == 0) {
            1
        } else if x == -1 {
            -1
        } else {
            0
        };
    }
    let (mut result, mut factor, mut exponent) = (1i64, x, y);
    while exponent != 0 {
        if exponent & 1 != 0 {
            result = result.wrapping_mul(factor);
        }
        factor = factor.wrapping_mul(factor);
        exponent >>= 1;
    }
    result
}

fn integer(intrinsic: i32, width: i64, x: i64, y: i64) -> Option<Value> {
    let in_width = (0..width).contains(&y);
    Some(Int(match intrinsic {
        ADD => x.wrapping_add(y),
        SUB => x.wrapping_sub(y),
        MUL => x.wrapping_mul(y),
        FLOOR_DIV => floor_div(x, y),
        MOD if y == 0 => 0,
        MOD => x.wrapping_sub(floor_div(x, y).wrapping_mul(y)),
        NEG => x.wrapping_neg(),
        ABS => x.wrapping_abs(),
        SIGN => x.signum(),
        MIN => x.min(y),
        MAX => x.max(y),
        POW => power(x, y),
        EQ => (x == y) as i64,
        NE => (x != y) as i64,
        LT => (x < y) as i64,
        LE => (x <= y) as i64,
        GT => (x > y) as i64,
        GE => (x >= y) as i64,
        BIT_AND => x & y,
        BIT_OR => x | y,
        BIT_XOR => x ^ y,
        BIT_NOT => !x,
        SHL if in_width => x << y,
        SHL => 0,
        SHR if in_width => x >> y,
        SHR => -((x < 0) as i64),
        MUL_HIGH => ((x as i128 * y as i128) >> width) as i64,
        FLOOR | CEIL | TRUNC | ROUND | CONJ => x,
        ISNAN | ISINF => 0,
        ISFINITE => 1,
        _ => return None,
    }))
}

// ---- Real numbers ---------------------------------------------------------------------------------------------------

// The C library has what Rust's lacks.
extern "C" {
    fn erf(x: f64) -> f64;
    fn erfc(x: f64) -> f64;
    fn lgamma(x: f64) -> f64;
    fn nextafterf(x: f32, y: f32) -> f32;
}

fn modulo(x: f64, y: f64) -> f64 {
    let rest = x % y;
    if rest == 0.0 {
        return 0f64.copysign(y);
    }
    if (rest < 0.0) != (y < 0.0) {
        rest + y
    } else {
        rest
    }
}

fn floor_quotient(x: f64, y: f64) -> f64 {
    if y == 0.0 || x.is_infinite() || y.is_infinite() {
        return x / y;
    }
    let rest = x % y;
    let mut quotient = (x - rest) / y; // nearly an integer
    if rest != 0.0 && (rest < 0.0) != (y < 0.0) {
        quotient -= 1.0;
    }
    if quotient == 0.0 {
        0f64.copysign(x / y)
    } else {
        quotient.round_ties_even()
    }
}

/// By Halley's method.
fn erfinv(x: f64) -> f64 {
    let a = x.abs();
    if a == 0.0 || a == 1.0 {
        return if a == 0.0 { x } else { x * f64::INFINITY };
    }
    if !(a < 1.0) {
        return f64::NAN;
    }
    let mut y = if a < 0.5 { a } else { (-(1.0 - a).ln()).sqrt() };
    for _ in 0..40 {
        let miss = unsafe {
            if a < 0.5 {
                erf(y) - a
            } else {
                (1.0 - a) - erfc(y)
            }
        };
        let newton = miss * (y * y).exp() * PI.sqrt() / 2.0;
        y -= newton / (1.0 + y * newton);
    }
    y.copysign(x)
}

/// By reflection, recurrence and the asymptotic series.
fn digamma(mut x: f64) -> f64 {
    if x == 0.0 {
        return -f64::INFINITY.copysign(x);
    }
    if x < 0.5 {
        let part = x - x.round_ties_even();
        return if part == 0.0 || x.is_infinite() { f64::NAN } else { digamma(1.0 - x) - PI / (PI * part).tan() };
    }
    let mut sum = 0.0;
    while x < 12.0 {
        sum -= 1.0 / x;
        x += 1.0;
    }
    let i = 1.0 / (x * x);
    let series = i * (1.0 / 12.0 - i * (1.0 / 120.0 - i * (1.0 / 252.0 - i * (1.0 / 240.0 - i / 132.0))));
    sum + x.ln() - 0.5 / x - series
}

fn real(intrinsic: i32, x: f64, y: f64) -> Option<Value> {
    let either_nan = x.is_nan() || y.is_nan();
    Some(Float(match intrinsic {
        ADD => x + y,
        SUB => x - y,
        MUL => x * y,
        DIV => x / y,
        FLOOR_DIV => floor_quotient(x, y),
        MOD => modulo(x, y),
        NEG => -x,
        ABS => x.abs(),
        SIGN => {
            if x == 0.0 {
                0.0
            } else if x.is_nan() {
                x
            } else {
                x.signum()
            }
        }
        MIN | MAX if either_nan => f64::NAN,
        MIN => {
            if y < x {
                y
            } else {
                x
            }
        }
        MAX => {
            if y > x {
                y
            } else {
                x
            }
        }
        POW => x.powf(y),
        FLOOR => x.floor(),
        CEIL => x.ceil(),
        TRUNC => x.trunc(),
        ROUND => x.round_ties_even(),
        SQRT => x.sqrt(),
        RSQRT => 1.0 / x.sqrt(),
        CBRT => x.cbrt(),
        EXP => x.exp(),
        EXP2 => x.exp2(),
        EXPM1 => x.exp_m1(),
        LOG => x.ln(),
        LOG1P => x.ln_1p(),
        LOG2 => x.log2(),
        LOG10 => x.log10(),
        SIN => x.sin(),
        COS => x.cos(),
        TAN => x.tan(),
        ASIN => x.asin(),
        ACOS => x.acos(),
        ATAN => x.atan(),
        ATAN2 => x.atan2(y),
        SINH => x.sinh(),
        COSH => x.cosh(),
        TANH => x.tanh(),
        ASINH => x.asinh(),
        ACOSH => x.acosh(),
        ATANH => x.atanh(),
        HYPOT => x.hypot(y),
        COPYSIGN => x.copysign(y),
        NEXTAFTER => unsafe { nextafterf(x as f32, y as f32) as f64 },
        ERF => unsafe { erf(x) },
        ERFC => unsafe { erfc(x) },
        CONJ => x,
        ERFINV => erfinv(x),
        DIGAMMA => digamma(x),
        LGAMMA => unsafe { lgamma(x) },
        _ => return predicate(intrinsic, x, y).map(|holds| Int(holds as i64)),
    }))
}

fn predicate(intrinsic: i32, x: f64, y: f64) -> Option<bool> {
    Some(match intrinsic {
        EQ => x == y,
        NE => x != y,
        LT => x < y,
        LE => x <= y,
        GT => x > y,
        GE => x >= y,
        SIGNBIT => x.is_sign_negative(),
        ISNAN => x.is_nan(),
        ISINF => x.is_infinite(),
        ISFINITE => x.is_finite(),
        _ => return None, // logaddexp too: core puts its definition in its place
    })
}
