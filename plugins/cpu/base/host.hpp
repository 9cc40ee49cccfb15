// SPDX-License-Identifier: Apache-2.0
// The code that plugins share, under this plugin's own names.
#pragma once

#include "plugins/common/op/core.hpp"
#include "plugins/common/op/op.hpp"

namespace compute::cpu {

using common::borrow;
using common::current_exception_to_error;
using common::dtype_name;
using common::Error;
using common::guard;
using common::integer_setting;
using common::is_complex;
using common::log;
using common::make_error;
using common::Op;
using common::Refusal;
using common::refuse_unknown;
using common::setting;
using common::view;

}  // namespace compute::cpu
