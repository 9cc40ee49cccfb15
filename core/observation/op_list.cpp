// SPDX-License-Identifier: Apache-2.0
#include "core/observation/op_list.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "core/devices/device.hpp"
#include "core/expressions/dtype.hpp"
#include "core/observation/amounts.hpp"
#include "core/text/printable.hpp"

namespace compute {

OpList::OpList(const std::string& path) {
  if (path != "-") file_.emplace("the list of ops", path, size_t{1} << 12);
}

void OpList::add(const Work& work) {
  const std::string time = time_text((work.is_timed ? work.on_device : work.on_host).length());
  std::string line;
  if (work.op) {
    const OpWork& op = *work.op;
    line = fmt::format("{:<11} {:<23} {} [{}]  {} ({})  {}", work.device->name, printable(work.name),
                       op.dtype != 0 ? dtype_name(op.dtype) : "-", fmt::join(op.shape, ","), op.how, op.steps, time);
  } else if (work.transfer) {
    const auto name = [](const Device* device) { return device != nullptr ? device->name : std::string("host"); };
    const TransferWork& transfer = *work.transfer;
    line = fmt::format("{:<11} {:<23} {}  {}→{}  {}  for {}{}  {}", work.device->name, "transfer",
                       printable(transfer.tensor), name(transfer.from), name(transfer.to),
                       bytes_text(transfer.size_bytes), transfer.cause, transfer.is_implicit ? ", implicit" : "", time);
  } else {
    line = fmt::format("{:<11} {:<23} {}", work.device->name, printable(work.name), time);
  }
  line += '\n';
  if (file_) {
    file_->put(line);
  } else {
    std::fputs(line.c_str(), stderr);
  }
}

}  // namespace compute
