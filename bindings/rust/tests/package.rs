// SPDX-License-Identifier: Apache-2.0
use compute::*;
use std::sync::Mutex;

// The statistics are those of the process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn with_cpu(test: impl FnOnce(&Device)) {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let device = Device::select("cpu").unwrap();
    let before = device.statistics().unwrap();
    test(&device);
    let after = device.statistics().unwrap();
    assert_eq!(
        (after.memory_used, after.blocks_live),
        (before.memory_used, before.blocks_live),
        "memory is not released"
    );
}

#[test]
fn values() {
    with_cpu(|device| {
        assert_eq!(device.name(), "cpu");
        let x = device.tensor(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap();
        assert_eq!((x.shape(), x.dtype()), ([2, 3].as_slice(), Some(DType::Float32)));
        assert_eq!(format!("{x:?}"), "Tensor(float32 [2, 3] on cpu)");
        let y = 2.0 * &x + 1 - &x / &x;
        assert_eq!(y.to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
        assert_eq!((-&x).to_vec::<f32>().unwrap()[5], -6.0);
        let rows = sum(&x, SumOptions { axes: Some(&[-1]), keepdims: true, ..Default::default() }).unwrap();
        assert_eq!((rows.shape(), rows.to_vec::<f32>().unwrap()), ([2, 1].as_slice(), vec![6.0, 15.0]));
        let total = sum(&x, Default::default()).unwrap();
        assert_eq!((total.shape(), total.to_vec::<f32>().unwrap()), ([].as_slice(), vec![21.0]));
        let same = x.clone();
        same.write(&[0.0f32; 6]).unwrap();
        assert_eq!(x.to_vec::<f32>().unwrap(), [0.0; 6]);
    });
}

#[test]
fn attributes() {
    with_cpu(|device| {
        let x = arange(device, 6, DType::Float32, ArangeOptions { start: 1.into(), step: 0.5.into() }).unwrap();
        assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, 1.5, 2.0, 2.5, 3.0, 3.5]);
        let (values, indices) = top_k(&x, 2, TopKOptions { largest: false, ..Default::default() }).unwrap();
        assert_eq!((values.to_vec().unwrap(), indices.to_vec().unwrap()), (vec![1.0f32, 1.5], vec![0i64, 1]));
        let joined = concat(&[&x, &x], Default::default()).unwrap();
        assert_eq!(joined.shape(), [12]);
        let table = x.reshape(&[2, -1]).unwrap();
        let transposed = einsum(&[&table], "ij->ji").unwrap();
        assert_eq!(transposed.to_vec::<f32>().unwrap(), table.permute(&[1, 0]).unwrap().to_vec::<f32>().unwrap());
        let whole = cast(&x, DType::Int32).unwrap();
        assert_eq!(whole.to_vec::<i32>().unwrap(), [1, 1, 2, 2, 3, 3]);
        let identity = eye(device, 2, 3, DType::Float64, Default::default()).unwrap();
        assert_eq!(identity.to_vec::<f64>().unwrap(), [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
        let scale = device.tensor(&[2.0f32; 6], &[6]).unwrap();
        let (y, _mean, _rstd) = layer_norm(&x, Some(&scale), None, Default::default()).unwrap();
        assert!(y.to_vec::<f32>().unwrap().iter().sum::<f32>().abs() < 1e-5);
    });
}

#[test]
fn errors() {
    with_cpu(|device| {
        let x = device.tensor(&[1.0f32, 2.0], &[2]).unwrap();
        let y = device.tensor(&[1.0f32, 2.0, 3.0], &[3]).unwrap();
        let error: Box<dyn std::error::Error> = add(&x, &y).unwrap_err().into();
        assert_eq!(error.to_string(), "add: shapes [2] and [3] do not broadcast");
        let error = error.downcast::<Error>().unwrap();
        assert_eq!((error.code(), error.op()), (ErrorCode::InvalidArgument, "add"));
        assert_eq!(error.code().to_string(), "INVALID_ARGUMENT");
        assert_eq!(Device::select("cpu7").err().unwrap().code(), ErrorCode::NotFound);
        let error = x.to_vec::<f64>().unwrap_err();
        assert_eq!(error.to_string(), "to_vec: the tensor is float32, not float64; cast it first");
        assert_eq!(device.tensor(&[1.0f32], &[2]).unwrap_err().code(), ErrorCode::InvalidArgument);
        // An op that fails releases the result that it would have written.
        assert_eq!(
            arange(device, -1, DType::Float32, Default::default()).unwrap_err().code(),
            ErrorCode::InvalidArgument
        );
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| &x + &y)).unwrap_err();
        assert_eq!(panic.downcast_ref::<String>().unwrap(), "add: shapes [2] and [3] do not broadcast");
    });
}

#[test]
fn names_are_those_of_the_library() {
    assert_eq!(format!("{} {}", DType::Bool, DType::UInt64), "bool uint64");
    assert_eq!(format!("{} {}", DType::BFloat16, DType::Complex128), "bfloat16 complex128");
    assert_eq!(format!("{} {}", ErrorCode::DeviceMismatch, ErrorCode::Internal), "DEVICE_MISMATCH INTERNAL");
}

#[test]
fn threads_share_a_tensor() {
    with_cpu(|device| {
        let x = device.tensor(&[1.0f32; 100], &[100]).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert_eq!(exp(&(&x - &x)).unwrap().to_vec::<f32>().unwrap(), [1.0; 100]));
            }
        });
    });
}

#[test]
fn another_device_gives_the_same() {
    with_cpu(|cpu| {
        let names = Device::list().unwrap();
        assert_eq!(names[0], "cpu");
        let Some(other) = names[1..].iter().find_map(|name| Device::select(name).ok()) else {
            return;
        };
        let x = cpu.tensor(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2]).unwrap();
        let moved = x.to_device(&other).unwrap();
        assert_eq!(moved.device().name(), other.name());
        let product = matmul(&moved, &moved).unwrap();
        assert_eq!(product.to_vec::<f32>().unwrap(), matmul(&x, &x).unwrap().to_vec::<f32>().unwrap());
    });
}
