// SPDX-License-Identifier: Apache-2.0
// What the C functions of ops.h and their parameters are called, for those who call them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/ops/schema.hpp"

namespace compute::opgen {

// A later version of an op is a separate function, so that programs keep the version that they were compiled against.
std::string function_name(const OpSchema& op);
// The same without the prefix, for languages with namespaces.
std::string plain_name(const OpSchema& op);
std::string options_name(const OpSchema& op);

// Whether a list of axes can be given as a bit mask too, by callers that cannot put a pointer into a struct.
bool has_mask(const AttributeSchema& a);

// A zero field means the default; where the default is another number, or none, the field is a pointer.
bool is_pointer_field(const AttributeSchema& a);

// Attributes of kind int64 whose value is 0 or 1.
bool is_flag(const AttributeSchema& a);

// An attribute that few calls give. It was added to functions that had a form: in C++ it follows the stream.
bool is_rare(const AttributeSchema& a);

// "top_k" as "TopK".
std::string camel(std::string_view name);

// The required attributes with the extents of the result of an op without inputs: "shape", a list, or numbers.
std::vector<std::string> creation_extents(const OpSchema& op);

// What comments say: of an op, of an error bound, and of the dtypes of an elementwise op.
std::string op_text(const OpSchema& op);
std::string bound_text(const OpSchema& op);
std::string elementwise_text(const OpSchema& op);

}  // namespace compute::opgen
