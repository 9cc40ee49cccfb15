// SPDX-License-Identifier: Apache-2.0
// Ops of networks over contiguous rows of float32: softmax, log_softmax and their gradients, layer_norm and its
// gradient, group_norm, batch_norm, cross_entropy. softmax and log_softmax take halves too.
#pragma once

#include "plugins/cpu/base/plan.hpp"

namespace compute::cpu {

std::optional<Refusal> refuse_softmax(const Op& op);
std::unique_ptr<Plan> prepare_softmax(const Op& op);

std::optional<Refusal> refuse_log_softmax(const Op& op);
std::unique_ptr<Plan> prepare_log_softmax(const Op& op);

std::optional<Refusal> refuse_softmax_grad(const Op& op);
std::unique_ptr<Plan> prepare_softmax_grad(const Op& op);

std::optional<Refusal> refuse_log_softmax_grad(const Op& op);
std::unique_ptr<Plan> prepare_log_softmax_grad(const Op& op);

std::optional<Refusal> refuse_layer_norm(const Op& op);
std::unique_ptr<Plan> prepare_layer_norm(const Op& op);

std::optional<Refusal> refuse_batch_norm(const Op& op);
std::unique_ptr<Plan> prepare_batch_norm(const Op& op);

std::optional<Refusal> refuse_group_norm(const Op& op);
std::unique_ptr<Plan> prepare_group_norm(const Op& op);

std::optional<Refusal> refuse_layer_norm_grad(const Op& op);
std::unique_ptr<Plan> prepare_layer_norm_grad(const Op& op);

std::optional<Refusal> refuse_cross_entropy(const Op& op);
std::unique_ptr<Plan> prepare_cross_entropy(const Op& op);

}  // namespace compute::cpu
