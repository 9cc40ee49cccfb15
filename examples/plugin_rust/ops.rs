// SPDX-License-Identifier: Apache-2.0
//! Plans and the five required primitives. Each is a loop over an index space that visits one position at a time.
use crate::abi::{self, element, slice, Attribute, Expression, Fault, Op, Scalar, TensorInfo, Text};
use crate::intrinsics as intrinsic;
use crate::values::{call, combine, convert, Dtype, Value};

/// Why an op is not supported. Not an error: core passes the text on, or decomposes the op.
pub struct Refused {
    pub reason: i32,
    pub argument: i32,
    pub text: &'static str,
}

fn refuse<T>(reason: i32, argument: i32, text: &'static str) -> Result<T, Refused> {
    Err(Refused { reason, argument, text })
}

fn dtype(id: i32) -> Result<Dtype, Refused> {
    match Dtype::from_id(id) {
        Some(dtype) => Ok(dtype),
        None => refuse(abi::REFUSE_DTYPE, -1, "the device has bool, int32, int64, uint32 and float32"),
    }
}

struct Tensor {
    dtype: Dtype,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

impl Tensor {
    unsafe fn new(info: &TensorInfo) -> Result<Tensor, Refused> {
        if info.layout != 0 {
            return refuse(abi::REFUSE_LAYOUT, -1, "the layout is newer than the plugin");
        }
        let rank = info.rank as i64;
        let (shape, strides) = (slice(info.shape, rank).to_vec(), slice(info.strides, rank).to_vec());
        Ok(Tensor { dtype: dtype(info.dtype)?, shape, strides })
    }

    unsafe fn at(&self, base: *mut u8, index: &[i64]) -> *mut u8 {
        let elements: i64 = self.strides.iter().zip(index).map(|(stride, i)| stride * i).sum();
        base.offset(elements as isize * self.dtype.size_bytes() as isize)
    }
}

// ---- Expressions ----------------------------------------------------------------------------------------------------

enum Step {
    Input(usize),
    Scalar(usize, Dtype),
    Index(usize, Dtype),
    Constant(Value),
    Call { id: i32, from: Dtype, to: Dtype, operands: [usize; 3] },
}

/// An expression as a list of steps, one per node.
struct Program {
    steps: Vec<Step>,
    outputs: Vec<usize>,
    scalar_count: usize,
}

impl Program {
    unsafe fn new(expression: &Expression) -> Result<Program, Refused> {
        let nodes = slice(expression.nodes, expression.node_count as i64);
        let all_operands = slice(expression.operands, expression.operand_total);
        let mut steps = Vec::with_capacity(nodes.len());
        for node in nodes {
            let to = dtype(node.dtype)?;
            let value = node.value as usize;
            steps.push(match node.kind {
                abi::NODE_INPUT => Step::Input(value),
                abi::NODE_SCALAR => Step::Scalar(value, to),
                abi::NODE_INDEX => Step::Index(value, to),
                abi::NODE_CONSTANT => Step::Constant(to.load(node.bits.as_ptr())),
                abi::NODE_CALL => {
                    let first = node.first_operand as usize;
                    let mut operands = [0; 3];
                    for (i, operand) in
                        all_operands[first..].iter().take(node.operand_count.min(3) as usize).enumerate()
                    {
                        operands[i] = *operand as usize;
                    }
                    let from = dtype(nodes[operands[0]].dtype)?;
                    if call(node.value, from, to, [Value::Int(0); 3]).is_none() {
                        return refuse(abi::REFUSE_INTRINSIC, node.value, "the plugin does not have this intrinsic");
                    }
                    Step::Call { id: node.value, from, to, operands }
                }
                _ => return refuse(abi::REFUSE_NOT_IMPLEMENTED, -1, "a kind of node is newer than the plugin"),
            });
        }
        let outputs = slice(expression.outputs, expression.output_count as i64).iter().map(|i| *i as usize).collect();
        Ok(Program { steps, outputs, scalar_count: expression.scalar_count as usize })
    }

    /// Computes all nodes at one position.
    fn evaluate(&self, input: impl Fn(usize) -> Value, scalars: &[Scalar], index: &[i64], values: &mut Vec<Value>) {
        values.clear();
        for step in &self.steps {
            let value = match step {
                Step::Input(i) => input(*i),
                Step::Scalar(i, dtype) => unsafe { dtype.load(scalars[*i].bits.as_ptr()) },
                Step::Index(axis, dtype) => dtype.fit(Value::Int(index[*axis])),
                Step::Constant(value) => *value,
                Step::Call { id, from, to, operands } => {
                    let [x, y, z] = operands.map(|i| values.get(i).copied().unwrap_or(Value::Int(0)));
                    call(*id, *from, *to, [x, y, z]).unwrap_or(Value::Int(0)) // Program::new has checked it
                }
            };
            values.push(value);
        }
    }
}

// ---- Plans ----------------------------------------------------------------------------------------------------------

enum Primitive {
    Map,
    Copy,
    Reduce { axes: Vec<usize>, kind: i32, accumulator: Dtype },
    Gather { axis: usize },
    Scatter { axis: usize, reduction: Option<i32> }, // None: set
}

pub struct Plan {
    primitive: Primitive,
    input_count: usize,
    tensors: Vec<Tensor>, // inputs, then outputs
    programs: Vec<Program>,
}

/// Reads the attributes of an op, and refuses those that the plugin does not know.
unsafe fn attributes(op: &Op, known: &[&str]) -> Result<Vec<&'static Attribute>, Refused> {
    let mut found = vec![None; known.len()];
    for i in 0..op.attribute_count as usize {
        let attribute: &'static Attribute = element(op.attributes, i);
        match known.iter().position(|name| name.as_bytes() == attribute.name.get()) {
            Some(at) => found[at] = Some(attribute),
            None => return refuse(abi::REFUSE_ATTRIBUTE, -1, "the plugin does not know an attribute"),
        }
    }
    match found.into_iter().collect() {
        Some(attributes) => Ok(attributes),
        None => refuse(abi::REFUSE_ATTRIBUTE, -1, "an attribute is missing"),
    }
}

unsafe fn integers(attribute: &Attribute) -> &[i64] {
    slice(attribute.values.cast::<i64>(), attribute.count)
}

/// The intrinsic that combines two values.
unsafe fn combination(attribute: &Attribute) -> Result<Option<i32>, Refused> {
    Ok(match (*attribute.values.cast::<Text>()).get() {
        b"set" => None,
        b"sum" | b"add" => Some(intrinsic::ADD),
        b"prod" | b"mul" => Some(intrinsic::MUL),
        b"min" => Some(intrinsic::MIN),
        b"max" => Some(intrinsic::MAX),
        b"all" => Some(intrinsic::BIT_AND),
        b"any" => Some(intrinsic::BIT_OR),
        _ => return refuse(abi::REFUSE_ATTRIBUTE, -1, "the plugin does not know how to combine the values"),
    })
}

impl Primitive {
    unsafe fn new(op: &Op) -> Result<(Primitive, i32), Refused> {
        let name = if op.version == 1 { op.name.get() } else { b"" };
        Ok(match name {
            b"map" => {
                attributes(op, &[])?;
                (Primitive::Map, 1)
            }
            b"copy" => {
                attributes(op, &[])?;
                (Primitive::Copy, 0)
            }
            b"reduce" => {
                let found = attributes(op, &["axes", "kind", "accumulator"])?;
                let axes = integers(found[0]).iter().map(|axis| *axis as usize).collect();
                let Some(kind) = combination(found[1])? else {
                    return refuse(abi::REFUSE_ATTRIBUTE, -1, "a reduction has no kind `set`");
                };
                let accumulator = dtype(*found[2].values.cast::<i32>())?;
                (Primitive::Reduce { axes, kind, accumulator }, 2)
            }
            b"gather" => (Primitive::Gather { axis: integers(attributes(op, &["axis"])?[0])[0] as usize }, 0),
            b"scatter" => {
                let found = attributes(op, &["axis", "reduction"])?;
                let (axis, reduction) = (integers(found[0])[0] as usize, combination(found[1])?);
                (Primitive::Scatter { axis, reduction }, 0)
            }
            _ => return refuse(abi::REFUSE_NOT_IMPLEMENTED, -1, "the plugin has only the required primitives"),
        })
    }
}

impl Plan {
    pub unsafe fn new(op: &Op) -> Result<Plan, Refused> {
        let (primitive, expression_count) = Primitive::new(op)?;
        if op.expression_count != expression_count {
            return refuse(abi::REFUSE_NOT_IMPLEMENTED, -1, "the plugin has no epilogues");
        }
        let count = op.input_count + op.output_count;
        let known = match primitive {
            Primitive::Copy => 2,
            Primitive::Gather { .. } | Primitive::Scatter { .. } => 3,
            _ => count,
        };
        if count > known {
            return refuse(abi::REFUSE_NOT_IMPLEMENTED, -1, "a tensor is newer than the plugin");
        }
        let mut tensors = Vec::new();
        for i in 0..count as usize {
            tensors.push(Tensor::new(element(op.tensors, i))?);
        }
        let expressions = slice(op.expressions, op.expression_count as i64);
        let programs = expressions.iter().map(|e| Program::new(&**e)).collect::<Result<Vec<_>, _>>()?;
        Ok(Plan { primitive, input_count: op.input_count as usize, tensors, programs })
    }

    pub fn reports_faults(&self) -> bool {
        matches!(self.primitive, Primitive::Gather { .. } | Primitive::Scatter { .. })
    }

    /// Runs the plan on the calling thread. `bases` holds the addresses of element 0 of the tensors.
    pub unsafe fn run(&self, bases: &[*mut u8], scalars: &[Scalar]) -> Option<Fault> {
        let run = Running { plan: self, bases, scalars };
        match &self.primitive {
            Primitive::Map => run.map(),
            Primitive::Copy => run.copy(),
            Primitive::Reduce { axes, kind, accumulator } => run.reduce(axes, *kind, *accumulator),
            Primitive::Gather { axis } => return run.gather(*axis),
            Primitive::Scatter { axis, reduction } => return run.scatter(*axis, *reduction),
        }
        None
    }
}

// ---- Runs -----------------------------------------------------------------------------------------------------------

/// Moves to the next position along `axes` in row-major order; false after the last one, which leads back to the first.
fn step(index: &mut [i64], shape: &[i64], axes: &[usize]) -> bool {
    for axis in axes.iter().rev() {
        index[*axis] += 1;
        if index[*axis] < shape[*axis] {
            return true;
        }
        index[*axis] = 0;
    }
    false
}

struct Running<'a> {
    plan: &'a Plan,
    bases: &'a [*mut u8],
    scalars: &'a [Scalar],
}

impl Running<'_> {
    unsafe fn load(&self, i: usize, index: &[i64]) -> Value {
        let tensor = &self.plan.tensors[i];
        tensor.dtype.load(tensor.at(self.bases[i], index))
    }

    unsafe fn store(&self, i: usize, index: &[i64], value: Value) {
        let tensor = &self.plan.tensors[i];
        tensor.dtype.store(tensor.at(self.bases[i], index), value)
    }

    unsafe fn store_outputs(&self, program: &Program, index: &[i64], values: &[Value]) {
        for (i, node) in program.outputs.iter().enumerate() {
            self.store(self.plan.input_count + i, index, values[*node]);
        }
    }

    fn axes(&self, i: usize) -> Vec<usize> {
        (0..self.plan.tensors[i].shape.len()).collect()
    }

    unsafe fn map(&self) {
        let (program, output) = (&self.plan.programs[0], self.plan.input_count);
        let (shape, axes) = (&self.plan.tensors[output].shape, self.axes(output));
        let (mut index, mut values) = (vec![0; axes.len()], Vec::new());
        loop {
            program.evaluate(|i| self.load(i, &index), self.scalars, &index, &mut values);
            self.store_outputs(program, &index, &values);
            if !step(&mut index, shape, &axes) {
                return;
            }
        }
    }

    unsafe fn copy(&self) {
        let (axes, output) = (self.axes(1), &self.plan.tensors[1]);
        let mut index = vec![0; axes.len()];
        loop {
            self.store(1, &index, convert(self.load(0, &index), output.dtype));
            if !step(&mut index, &output.shape, &axes) {
                return;
            }
        }
    }

    /// Adds float32 in double, in which the error does not depend on the order.
    unsafe fn reduce(&self, axes: &[usize], kind: i32, accumulator: Dtype) {
        let [before, after] = &self.plan.programs[..] else { return };
        let shape = &self.plan.tensors[0].shape;
        let kept: Vec<usize> = self.axes(0).into_iter().filter(|axis| !axes.contains(axis)).collect();
        let (mut index, mut values) = (vec![0; shape.len()], Vec::new());
        loop {
            let mut combined = None;
            loop {
                before.evaluate(|i| self.load(i, &index), self.scalars, &index, &mut values);
                let value = values[before.outputs[0]];
                combined = match combined {
                    None => Some(value),
                    Some(earlier) => combine(kind, accumulator, earlier, value),
                };
                if !step(&mut index, shape, axes) {
                    break;
                }
            }
            let result = accumulator.fit(combined.unwrap_or(Value::Int(0)));
            after.evaluate(|_| result, &self.scalars[before.scalar_count..], &index, &mut values);
            self.store_outputs(after, &index, &values);
            if !step(&mut index, shape, &kept) {
                return;
            }
        }
    }

    /// The position that the index at `at` names in tensor `indexed`; a fault if it is outside.
    unsafe fn follow(&self, indices: usize, indexed: usize, axis: usize, at: &[i64]) -> Result<Vec<i64>, Fault> {
        let (value, limit) = (self.load(indices, at).int(), self.plan.tensors[indexed].shape[axis]);
        if value < -limit || value >= limit {
            let shape = &self.plan.tensors[indices].shape;
            let position = shape.iter().zip(at).fold(0, |before, (extent, i)| before * extent + i);
            return Err(Fault {
                code: abi::FAULT_INDEX,
                argument: indices as i32,
                value,
                limit,
                position,
                reserved: [0; 4],
            });
        }
        let mut found = at.to_vec();
        found[axis] = if value < 0 { value + limit } else { value };
        Ok(found)
    }

    unsafe fn gather(&self, axis: usize) -> Option<Fault> {
        let (shape, axes) = (&self.plan.tensors[2].shape, self.axes(2));
        let (mut index, mut fault) = (vec![0; axes.len()], None);
        loop {
            match self.follow(1, 0, axis, &index) {
                Ok(source) => self.store(2, &index, self.load(0, &source)),
                Err(found) => fault = fault.or(Some(found)),
            }
            if !step(&mut index, shape, &axes) {
                return fault;
            }
        }
    }

    /// In row-major order, which the flag DETERMINISTIC asks for.
    unsafe fn scatter(&self, axis: usize, reduction: Option<i32>) -> Option<Fault> {
        let (shape, axes, dtype) = (&self.plan.tensors[1].shape, self.axes(1), self.plan.tensors[2].dtype);
        let (mut index, mut fault) = (vec![0; axes.len()], None);
        loop {
            match self.follow(0, 2, axis, &index) {
                Ok(target) => {
                    let update = self.load(1, &index);
                    let combined = reduction.and_then(|kind| combine(kind, dtype, self.load(2, &target), update));
                    self.store(2, &target, dtype.fit(combined.unwrap_or(update)));
                }
                Err(found) => fault = fault.or(Some(found)),
            }
            if !step(&mut index, shape, &axes) {
                return fault;
            }
        }
    }
}
