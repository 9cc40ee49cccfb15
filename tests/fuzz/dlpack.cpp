// SPDX-License-Identifier: Apache-2.0
//
// Any structure of DLPack is imported or refused; an imported one is released once and no element outside of its memory
// is touched, a refused one stays its producer's.
#include "tests/dlpack/dlpack.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <vector>

#include "tests/fuzz/bytes.hpp"

namespace {

struct Producer {
  DLManagedTensorVersioned managed{};
  std::vector<int64_t> shape, strides;
  alignas(256) std::byte memory[4096] = {};
  std::atomic<int> deleted{0};
};

void fill(Producer& producer, fuzz::Bytes& bytes) {
  DLManagedTensorVersioned& m = producer.managed;
  DLTensor& t = m.dl_tensor;
  m.version = {bytes.one_in(16) ? bytes.byte() : 1U, bytes.below(4)};
  m.manager_ctx = &producer;
  m.deleter = [](DLManagedTensorVersioned* self) { ++static_cast<Producer*>(self->manager_ctx)->deleted; };
  m.flags = bytes.one_in(8) ? static_cast<uint64_t>(bytes.number()) : bytes.below(4);
  t.device = {bytes.one_in(8) ? bytes.byte() : 1, bytes.one_in(16) ? bytes.byte() : 0};
  constexpr DLDataType kDtypes[] = {{0, 8, 1},  {0, 16, 1}, {0, 32, 1}, {0, 64, 1}, {1, 8, 1},   {1, 64, 1}, {2, 16, 1},
                                    {2, 32, 1}, {2, 64, 1}, {4, 16, 1}, {5, 64, 1}, {5, 128, 1}, {6, 8, 1}};
  t.dtype = kDtypes[bytes.below(std::size(kDtypes))];
  if (bytes.one_in(16)) t.dtype = {bytes.byte(), bytes.byte(), bytes.byte()};
  t.ndim = bytes.one_in(16) ? static_cast<int8_t>(bytes.byte()) : static_cast<int32_t>(bytes.below(5));
  for (int i = 0; i < 130; ++i) {
    producer.shape.push_back(i < 6 ? bytes.extent() : 1);
    producer.strides.push_back(i < 6 ? bytes.step() : 0);
  }
  t.shape = bytes.one_in(32) ? nullptr : producer.shape.data();
  t.strides = bytes.one_in(4) ? nullptr : producer.strides.data();
  t.byte_offset = bytes.one_in(16) ? static_cast<uint64_t>(bytes.number()) : bytes.below(64) * 8U;
  t.data = bytes.one_in(32) ? nullptr : producer.memory + 1024 + (bytes.one_in(8) ? bytes.byte() : 0);
}

// Whether all elements lie within the producer's memory, in 128 bits.
bool lies_within(const Producer& producer, compute_tensor* tensor) {
  const DLTensor& t = producer.managed.dl_tensor;
  const int32_t rank = compute_tensor_rank(tensor);
  const int64_t* shape = compute_tensor_shape(tensor);
  __extension__ using Wide = __int128;
  const Wide element = compute_dtype_size(compute_tensor_dtype(tensor));
  Wide first = static_cast<const std::byte*>(t.data) - producer.memory + Wide{t.byte_offset}, last = first, packed = 1;
  for (int32_t i = rank - 1; i >= 0; --i) {
    if (shape[i] == 0) return true;
    const Wide stride = t.strides != nullptr ? Wide{t.strides[i]} : packed;
    (stride < 0 ? first : last) += stride * (shape[i] - 1) * element;
    packed *= shape[i];
  }
  return first >= 0 && last + element <= Wide{sizeof producer.memory} && packed <= 4096;
}

void use(compute_tensor* tensor) {
  int64_t size = compute_dtype_size(compute_tensor_dtype(tensor));
  for (int32_t i = 0; i < compute_tensor_rank(tensor); ++i) size *= compute_tensor_shape(tensor)[i];
  std::vector<std::byte> values(static_cast<size_t>(size) + 1);
  static_cast<void>(fuzz::failed(compute_tensor_read(tensor, values.data(), size)));
  compute_tensor* moved = nullptr;
  if (!fuzz::failed(compute_tensor_to_device(tensor, fuzz::minimal_device(), &moved))) {
    static_cast<void>(fuzz::failed(compute_tensor_read(moved, values.data(), size)));
  }
  compute_tensor_release(moved);
  DLManagedTensorVersioned* again = nullptr;
  if (!fuzz::failed(compute_tensor_to_dlpack(tensor, -1, &again))) again->deleter(again);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static_cast<void>(fuzz::cpu_device());
  fuzz::Bytes bytes(data, size);
  Producer producer;
  fill(producer, bytes);
  compute_tensor* tensor = nullptr;
  if (fuzz::failed(compute_tensor_from_dlpack(&producer.managed, &tensor))) {
    if (tensor != nullptr || producer.deleted != 0) std::abort();
    return 0;
  }
  if (lies_within(producer, tensor)) use(tensor);
  compute_tensor_release(tensor);
  // Copies that still read the memory keep it: until they are done.
  for (int i = 0; producer.deleted == 0 && i < 10000; ++i) {
    static_cast<void>(fuzz::failed(compute_device_synchronize(fuzz::minimal_device())));
    static_cast<void>(fuzz::failed(compute_device_trim(fuzz::minimal_device(), 0)));
    if (i > 10) usleep(1000);
  }
  if (producer.deleted != 1) std::abort();
  return 0;
}
