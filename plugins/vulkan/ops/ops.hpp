// SPDX-License-Identifier: Apache-2.0
// One function per primitive. Each adds its launches to the plan, or throws Refused.
#pragma once

#include "builder.hpp"

namespace vulkan {

struct Request {
  Device& device;
  const Op& op;
  Plan& plan;
  bool query;
};

void map(const Request& request);
void copy(const Request& request);
void gather(const Request& request);
void scatter(const Request& request);
void reduce(const Request& request);
void row(const Request& request);
void arg_reduce(const Request& request);
void scan(const Request& request);
void sort(const Request& request);
void contraction(const Request& request);
void convolution(const Request& request);
void kernel_op(const Request& request);

}  // namespace vulkan
