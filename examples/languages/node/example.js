// SPDX-License-Identifier: Apache-2.0
const compute = require('./compute.node');

const print = (label, digits, tensor) => {
  const values = Array.from(compute.read(tensor), (value) => ' ' + value.toFixed(digits)); // waits and copies
  console.log(label + ':' + values.join(''));
};

const device = compute.open(); // COMPUTE_DEVICE, or the best device
console.log('device: ' + compute.name(device));
const a = compute.tensor(device, [2, 3], Float32Array.of(1, 2, 3, 4, 5, 6));
const b = compute.tensor(device, [3, 2], Float32Array.of(1, 2, 3, 4, 5, 6));
const product = compute.run('matmul', a, b);
const y = compute.run('tanh', compute.run('multiply', product, 0.01));
print('product', 0, product);
print('tanh', 4, y);
try {
  compute.run('matmul', a, a);
} catch (error) {
  console.log('error: ' + error.code + ': ' + error.message);
}
