// SPDX-License-Identifier: Apache-2.0
#include "fill.hpp"

#include <cstring>

#include "device.hpp"
#include "ops/builder.hpp"

namespace vulkan {

// The driver fills whole words with one word; a kernel writes all other patterns element by element.
void queue_fill(Stream& stream, const compute_plugin_operand& dst, int64_t size_bytes, const void* pattern,
                int32_t pattern_size) {
  Device& device = stream.device;
  std::byte bytes[16];
  for (int i = 0; i < 16; ++i) bytes[i] = static_cast<const std::byte*>(pattern)[i % pattern_size];
  int64_t offset = 0;
  const Buffer& buffer = device.find(dst, &offset);
  const bool one_word = std::memcmp(bytes, bytes + 4, 12) == 0;
  if (one_word && offset % 4 == 0 && size_bytes % 4 == 0) {
    uint32_t word;
    std::memcpy(&word, bytes, sizeof word);
    stream.fill_words(buffer, offset, size_bytes, word);
    return;
  }
  Plan plan;
  KernelBuilder k(device, plan, false, "fill");
  k.sign(pattern_size);
  const int y = k.tensor(0), value = k.scalars(0, 1), count = k.word(size_bytes / pattern_size);
  k.finish_loop(size_bytes / pattern_size, [&] {
    k.begin_loop(count, "uint64_t");
    const std::string step = std::to_string(pattern_size) + "l";
    const std::string place = k.address(y, "int64_t(i)*" + step), low = "uint64_t(" + k.at(value) + ")";
    switch (pattern_size) {
      case 1:
        k.out += "B8(" + place + ").v=uint8_t(" + low + ");\n";
        break;
      case 2:
        k.out += "B16(" + place + ").v=uint16_t(" + low + ");\n";
        break;
      case 4:
        k.out += "B32(" + place + ").v=uint(" + low + ");\n";
        break;
      case 8:
        k.out += "B64(" + place + ").v=" + low + ";\n";
        break;
      default:
        k.out += "B64(" + place + ").v=" + low + ";B64(" + place + "+8ul).v=uint64_t(" + k.at(value + 1) + ");\n";
    }
    k.end_loop();
  });
  compute_plugin_scalar scalar;
  std::memcpy(scalar.bits, bytes, sizeof scalar.bits);
  compute_plugin_run run = {};
  run.tensors = &dst;
  run.scalars = &scalar;
  run_plan(plan, stream, run);
}

}  // namespace vulkan
