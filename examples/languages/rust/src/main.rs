// SPDX-License-Identifier: Apache-2.0
use compute::{matmul, tanh, Device, Tensor};

fn print(label: &str, digits: usize, tensor: &Tensor) -> compute::Result<()> {
    let values: Vec<f32> = tensor.to_vec()?; // waits and copies
    let values: String = values
        .iter()
        .map(|value| format!(" {value:.digits$}"))
        .collect();
    println!("{label}:{values}");
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::open()?; // COMPUTE_DEVICE, or the best device
    println!("device: {}", device.name());
    let a = device.tensor(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
    let b = device.tensor(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[3, 2])?;
    let product = matmul(&a, &b)?;
    print("product", 0, &product)?;
    print("tanh", 4, &tanh(&(product * 0.01))?)?;
    if let Err(error) = matmul(&a, &a) {
        println!("error: {}: {error}", error.code());
    }
    Ok(())
}
