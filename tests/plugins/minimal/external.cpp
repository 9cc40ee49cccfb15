// SPDX-License-Identifier: Apache-2.0
// Memory and semaphores that other devices and processes import. Both are files in memory (memfd), which stand for the
// descriptors of a driver.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>

#include "minimal.hpp"

namespace minimal {
namespace {

// Both devices are of one driver, which exchanges descriptors among them.
constexpr uint8_t kUuid[16] = {'m', 'i', 'n', 'i', 'm', 'a', 'l'};

void require_kind(uint32_t kind) {
  if (kind != COMPUTE_EXTERNAL_OPAQUE_FD)
    throw Failure(COMPUTE_ERROR_UNSUPPORTED, "minimal: no external objects of kind " + std::to_string(kind));
}

// A mapped file. Its descriptor can be closed.
class SharedFile {
 public:
  SharedFile(int descriptor, int64_t size_bytes) : size_bytes_(static_cast<size_t>(size_bytes)) {
    data_ = mmap(nullptr, size_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (data_ == MAP_FAILED) throw std::bad_alloc();
  }
  ~SharedFile() { munmap(data_, size_bytes_); }
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  void* data() const { return data_; }

 private:
  void* data_;
  size_t size_bytes_;
};
using File = std::shared_ptr<SharedFile>;

int new_descriptor(int64_t size_bytes) {
  const int descriptor = memfd_create("compute", MFD_CLOEXEC);
  if (descriptor < 0) throw Failure(COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY, "minimal: there is no file to share");
  if (ftruncate(descriptor, size_bytes) == 0) return descriptor;
  ::close(descriptor);
  throw Failure(COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY, "minimal: " + std::to_string(size_bytes) + " bytes to share");
}

File make_file(const compute_plugin_external_request& request, int64_t size_bytes, compute_external& out_external) {
  understand(request, "the request");
  require_kind(request.kind);
  understand(out_external, "the external object");
  out_external.kind = request.kind;
  out_external.descriptor = new_descriptor(size_bytes);
  std::copy(std::begin(kUuid), std::end(kUuid), out_external.device_uuid);
  try {
    return std::make_shared<SharedFile>(out_external.descriptor, size_bytes);
  } catch (...) {
    ::close(out_external.descriptor);
    out_external.descriptor = -1;
    throw;
  }
}

// Closes the descriptor at the end, if nothing was thrown.
File open_file(const compute_external& external, int64_t size_bytes) {
  understand(external, "the external object");
  require_kind(external.kind);
  if (!std::equal(std::begin(kUuid), std::end(kUuid), external.device_uuid))
    throw Failure(COMPUTE_ERROR_UNSUPPORTED, "minimal: the object is of another device");
  struct stat status = {};
  if (fstat(external.descriptor, &status) != 0 || status.st_size < size_bytes)
    throw Failure(COMPUTE_ERROR_INVALID_ARGUMENT,
                  "minimal: the descriptor is not of " + std::to_string(size_bytes) + " bytes");
  auto file = std::make_shared<SharedFile>(external.descriptor, size_bytes);
  ::close(external.descriptor);
  return file;
}

// ---- Memory ---------------------------------------------------------------------------------------------------------

uint64_t adopt(uint64_t device, const File& file, int64_t offset_bytes, int64_t size_bytes) {
  auto* const first = static_cast<std::byte*>(file->data()) + offset_bytes;
  return from_handle<Device>(device).memory.adopt(first, size_bytes, [keep = file]() mutable { keep.reset(); });
}

compute_error* memory_create(uint64_t device, const compute_plugin_external_request* request, uint64_t* out_buffer,
                             compute_external* out_external) {
  return guard([&] {
    if (request->alignment > sysconf(_SC_PAGESIZE))
      throw Failure(COMPUTE_ERROR_UNSUPPORTED,
                    "minimal: a file is not aligned to " + std::to_string(request->alignment));
    const File file = make_file(*request, request->size_bytes, *out_external);
    out_external->size_bytes = request->size_bytes;
    *out_buffer = adopt(device, file, 0, request->size_bytes);
  });
}

compute_error* memory_import(uint64_t device, const compute_external* external, uint64_t* out_buffer) {
  return guard([&] {
    const compute_external object = whole(*external);
    const File file = open_file(object, object.size_bytes);
    *out_buffer = adopt(device, file, object.offset_bytes, object.size_bytes - object.offset_bytes);
  });
}

// ---- Semaphores -----------------------------------------------------------------------------------------------------

// A handle points to one of these: the file holds the value.
using Value = std::atomic<uint64_t>;
Value& value_of(const File& file) { return *static_cast<Value*>(file->data()); }

compute_error* semaphore_create(uint64_t, const compute_plugin_external_request* request, uint64_t* out_semaphore,
                                compute_external* out_external) {
  return guard([&] { *out_semaphore = to_handle(new File(make_file(*request, sizeof(Value), *out_external))); });
}

compute_error* semaphore_import(uint64_t, const compute_external* external, uint64_t* out_semaphore) {
  return guard([&] { *out_semaphore = to_handle(new File(open_file(*external, sizeof(Value)))); });
}

void semaphore_release(uint64_t, uint64_t semaphore) { delete &from_handle<File>(semaphore); }

compute_error* semaphore_signal(uint64_t stream, uint64_t semaphore, uint64_t value) {
  return guard([&] {
    from_handle<Stream>(stream).submit([file = from_handle<File>(semaphore), value] { value_of(file).store(value); });
  });
}

compute_error* semaphore_wait(uint64_t stream, uint64_t semaphore, uint64_t value) {
  return guard([&] {
    Stream& self = from_handle<Stream>(stream);
    self.submit([file = from_handle<File>(semaphore), value, &self] {
      while (value_of(file).load() < value && !self.is_cancelled())
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    });
  });
}

}  // namespace

const compute_plugin_external_table& external_table() {
  static constexpr compute_plugin_external_table kTable = {sizeof(compute_plugin_external_table),
                                                           memory_create,
                                                           memory_import,
                                                           semaphore_create,
                                                           semaphore_import,
                                                           semaphore_release,
                                                           semaphore_signal,
                                                           semaphore_wait};
  return kTable;
}

}  // namespace minimal
