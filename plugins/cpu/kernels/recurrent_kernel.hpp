// SPDX-License-Identifier: Apache-2.0
// Steps of recurrent layers: products with states, and gates. Two tables of functions per instruction set. Included by
// code of every instruction set, so it contains no functions and nothing of the standard library.
#pragma once

#include <stdint.h>

namespace compute::cpu {

constexpr int kMostRecurrentGates = 4;

/// The weights of `units` adjacent units lie in a panel [k][gates][units]. Units beyond the last one have weights of 0.
template <class T>
struct RecurrentProduct {
  int32_t units;  // the lanes of a vector
  /// sums [rows][gates][units] = the products of rows of h, h_row apart, with a panel. A sum depends on its row of h
  /// and its weights alone. Index: gates.
  void (*run[kMostRecurrentGates + 1])(const T* panel, const T* h, int64_t h_row, int64_t rows, int64_t k, T* sums);
};

struct RecurrentProducts {
  RecurrentProduct<float> float32;
  RecurrentProduct<double> float64;
};

/// Adjacent units of rows, which are sequences. Units of a row are contiguous; other strides are in elements.
template <class T>
struct RecurrentRows {
  int64_t rows, units;
  const T* x;  // products of inputs
  int64_t x_row, x_gate;
  const T* h;  // products of states
  int64_t h_row, h_gate;
  const T* bias;            // of x, or NULL; its gates are parameter_gate apart
  const T* recurrent_bias;  // of the candidate of a gru with linear_before_reset, or NULL
  const T* peepholes;       // as bias
  int64_t parameter_gate;
  int64_t state_row;  // of all states
  const T* now;       // h, where a gru reads it
  T* next;            // the new h
  T* c;               // the cell states of an lstm, which are replaced
  T *z, *kept;        // of a gru without linear_before_reset: the update gate, and r h
  T* y;               // for the new h too, or NULL
  int64_t y_row;
  T* cells;  // for the new cell states too, or NULL
  int64_t cells_row;
};

template <class T>
struct RecurrentGates {
  void (*lstm)(const RecurrentRows<T>& rows);
  void (*gru_linear)(const RecurrentRows<T>& rows);
  /// z and kept.
  void (*gru_first)(const RecurrentRows<T>& rows);
  /// The candidate, where x and h point to its products, and the new h.
  void (*gru_last)(const RecurrentRows<T>& rows);
};

struct RecurrentGateKernels {
  RecurrentGates<float> float32;
  RecurrentGates<double> float64;
};

namespace baseline {
extern const RecurrentProducts recurrent_kernels;
extern const RecurrentGateKernels gate_kernels;
}  // namespace baseline
namespace avx2 {
extern const RecurrentProducts recurrent_kernels;
extern const RecurrentGateKernels gate_kernels;
}  // namespace avx2
namespace avx512 {
extern const RecurrentProducts recurrent_kernels;
extern const RecurrentGateKernels gate_kernels;
}  // namespace avx512

}  // namespace compute::cpu
