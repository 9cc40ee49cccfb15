// SPDX-License-Identifier: Apache-2.0
#include "core/loading/vendor_ops.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "core/base/sized.hpp"
#include "core/expressions/dtype.hpp"
#include "core/loading/plugin_core.hpp"
#include "core/ops/op_kernels.hpp"
#include "core/ops/schema.hpp"
#include "core/process/log.hpp"

namespace compute {
namespace {

// The callbacks of `list`. Exceptions must not pass through the plugin, so the first error is kept.
struct Offer {
  const Plugin& plugin;
  std::unique_ptr<compute_error, decltype(&compute_error_free)> fault{nullptr, compute_error_free};

  // The result of `body`; 0 if it throws. What core does not take is logged, and the plugin goes on without it.
  template <class F>
  int32_t take(F&& body) noexcept {
    int32_t result = 0;
    if (fault) return 0;
    fault.reset(guard([&] {
      try {
        result = body();
      } catch (const Error& error) {
        if (error.code == COMPUTE_ERROR_OUT_OF_MEMORY || error.code == COMPUTE_ERROR_PLUGIN_REJECTED) throw;
        log(COMPUTE_LOG_WARNING, "load", "not taken from the plugin " + plugin.name + ": " + error.message);
      }
    }));
    return result;
  }
};

[[noreturn]] void leave_out(const std::string& what) { throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, what); }

bool is_version_of(const OpSchema& op, const RegisteredOp& given) {
  return op.name == given.name && op.version == given.version;
}

compute_dtype add_dtype(const Offer& offer, const compute_plugin_vendor_dtype* given) {
  const compute_plugin_vendor_dtype dtype = read_plugin_struct(given, "a dtype");
  const std::string name = plugin_text(dtype.name, "the name of a dtype"), prefix = offer.plugin.name + "_";
  const bool is_word =
      std::ranges::all_of(name, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
  if (!name.starts_with(prefix) || name.size() == prefix.size() || !is_word)
    leave_out("dtype \"" + name + "\": the name must begin with " + prefix);
  return add_vendor_dtype(name, dtype.size_bits);
}

void add_op(const Offer& offer, const compute_plugin_vendor_op* given) {
  const compute_plugin_vendor_op op = read_plugin_struct(given, "an op");
  const std::string name = plugin_text(op.name, "the name of an op"), summary = plugin_text(op.summary, "its summary"),
                    inputs = plugin_text(op.inputs, "its inputs"), outputs = plugin_text(op.outputs, "its outputs"),
                    attributes = plugin_text(op.attributes, "its attributes"),
                    dtypes = plugin_text(op.dtypes, "its dtypes"), shapes = plugin_text(op.shapes, "its shapes"),
                    result_dtypes = plugin_text(op.result_dtypes, "its result_dtypes");
  if (!name.starts_with(offer.plugin.name + "."))
    leave_out("op \"" + name + "\": the name must begin with " + offer.plugin.name + ".");
  RegisteredOp registered;
  registered.name = name;
  registered.summary = summary;
  registered.inputs = inputs;
  registered.outputs = outputs;
  registered.attributes = attributes;
  registered.dtypes = dtypes;
  registered.shapes = shapes;
  registered.result_dtypes = result_dtypes;
  registered.version = op.version;
  registered.is_vendors = true;
  registered.parse_kernels = parse_kernels;
  // The plugin may be loaded again after its devices could not be listed.
  if (std::ranges::any_of(op_schemas(), [&](const OpSchema* known) { return is_version_of(*known, registered); }))
    return;
  register_op(registered);
}

}  // namespace

void add_vendor_ops(const Plugin& plugin) {
  Offer offer{plugin};
  compute_plugin_ops_sink sink{};
  sink.table_size = sizeof sink;
  sink.context = &offer;
  sink.op = [](void* context, const compute_plugin_vendor_op* op) {
    auto& self = *static_cast<Offer*>(context);
    return self.take([&] {
      add_op(self, op);
      return 1;
    });
  };
  sink.dtype = [](void* context, const compute_plugin_vendor_dtype* dtype) {
    auto& self = *static_cast<Offer*>(context);
    return self.take([&] { return add_dtype(self, dtype); });
  };
  plugin.table.list_ops(sink);
  if (!offer.fault) return;
  Error error = Error::adopt(offer.fault.release());
  if (error.code != COMPUTE_ERROR_OUT_OF_MEMORY) error.code = COMPUTE_ERROR_PLUGIN_REJECTED;
  throw error;
}

}  // namespace compute
