// SPDX-License-Identifier: Apache-2.0
//
// compute.hpp: the client interface for C++20. Header-only, exceptions and ownership over compute.h; nothing is
// implemented twice.
//
//   compute::Device device = compute::Device::open();         // COMPUTE_DEVICE, or the best there is
//   compute::Tensor x = device.from_host({1.0f, 2.0f, 3.0f});
//   compute::Tensor y = compute::exp(x) + 1;
//   std::cout << y[compute::slice(1, compute::none)] << '\n';
//   std::vector<float> values = y.to_vector<float>();
//
// Every class holds one reference to its handle: copies share the object. A moved-from object holds none. Threads are
// those of compute.h; an error is thrown as compute::Error. The headers that this one includes are parts of it.
#ifndef COMPUTE_COMPUTE_HPP_
#define COMPUTE_COMPUTE_HPP_

#if !(__cplusplus >= 202002L || (defined(_MSVC_LANG) && _MSVC_LANG >= 202002L))
#error "compute.hpp needs C++20: compile with -std=c++20, or link the CMake target Compute::cxx"
#else

#include "compute/arrays.hpp"
#include "compute/device.hpp"
#include "compute/error.hpp"
#include "compute/graph.hpp"
#include "compute/group.hpp"
#include "compute/kernel.hpp"
#include "compute/op.hpp"
#include "compute/operators.hpp"
#include "compute/ops.hpp"
#include "compute/print.hpp"
#include "compute/process.hpp"
#include "compute/stream.hpp"
#include "compute/tensor.hpp"
#include "compute/types.hpp"

#endif

#endif  // COMPUTE_COMPUTE_HPP_
