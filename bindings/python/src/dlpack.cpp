// SPDX-License-Identifier: Apache-2.0
//
// DLPack: capsules in both forms, and the exchange API of DLPack 1.2 for libraries that call from C.
#include <atomic>
#include <type_traits>

#include "module.hpp"

namespace compute_python {

namespace {

struct DLTensor {
  void* data;
  int32_t device_type, device_id, ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct Legacy {  // DLManagedTensor
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(Legacy*);
};
struct Versioned {  // DLManagedTensorVersioned
  uint32_t major, minor;
  void* manager_ctx;
  void (*deleter)(Versioned*);
  uint64_t flags;
  DLTensor dl_tensor;
};
static_assert(sizeof(DLTensor) == 48 && sizeof(Legacy) == 64 && sizeof(Versioned) == 80, "DLPack's layout");

template <class Managed>
struct Names;
template <>
struct Names<Legacy> {
  static constexpr const char* kFresh = "dltensor";
  static constexpr const char* kUsed = "used_dltensor";
};
template <>
struct Names<Versioned> {
  static constexpr const char* kFresh = "dltensor_versioned";
  static constexpr const char* kUsed = "used_dltensor_versioned";
};

template <class Managed>
void free_managed(void* object) {
  auto* const managed = static_cast<Managed*>(object);
  if (managed->deleter != nullptr) managed->deleter(managed);
}

/// A copy of a managed tensor, whose deleter does not call the producer's, which may wait for the interpreter.
template <class Managed>
Managed* deferred(Managed* managed) {
  auto* const copy = new Managed(*managed);
  copy->manager_ctx = managed;
  copy->deleter = [](Managed* self) {
    return_garbage(free_managed<Managed>, self->manager_ctx);
    delete self;
  };
  return copy;
}

compute_error* import(Versioned* managed, compute_tensor** out) {
  return compute_tensor_from_dlpack(reinterpret_cast<DLManagedTensorVersioned*>(managed), out);
}
compute_error* import(Legacy* managed, compute_tensor** out) {
  return compute_tensor_from_dlpack_unversioned(reinterpret_cast<DLManagedTensor*>(managed), out);
}

template <class Managed>
PyObject* import_capsule(PyObject* capsule) {
  auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, Names<Managed>::kFresh));
  if (managed == nullptr) return nullptr;
  Managed* const copy = deferred(managed);
  const ProgramLine line;
  compute_tensor* tensor = nullptr;
  if (!succeeded(import(copy, &tensor))) {  // the capsule still owns its content
    delete copy;
    return nullptr;
  }
  PyCapsule_SetName(capsule, Names<Managed>::kUsed);
  return array_object(tensor);
}

/// from_dlpack_capsule(capsule)
PyObject* from_dlpack_capsule(PyObject*, PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, Names<Versioned>::kFresh) != 0) return import_capsule<Versioned>(capsule);
  if (PyCapsule_IsValid(capsule, Names<Legacy>::kFresh) != 0) return import_capsule<Legacy>(capsule);
  return PyErr_Format(PyExc_ValueError, "%R is not an unused DLPack capsule", capsule);
}

/// What a capsule has in it: the managed tensor of the library behind one whose deleter may be called twice. A consumer
/// that fails may call the deleter and leave the capsule as it was, whose destructor then calls it again; PyTorch does
/// so for devices that it does not know.
template <class Managed>
struct Exported {
  Managed outer;
  Managed* inner;             // NULL: it was deleted
  std::atomic<int> users{2};  // the capsule, and who holds `outer`
  static void free(Managed* outer) {
    auto* const self = static_cast<Exported*>(outer->manager_ctx);
    Managed* const inner = std::exchange(self->inner, nullptr);
    if (inner == nullptr) return;
    free_managed<Managed>(inner);
    self->leave();
  }
  void leave() {
    if (users.fetch_sub(1) == 1) delete this;
  }
};

template <class Managed>
void destroy_capsule(PyObject* capsule) {
  const bool is_fresh = PyCapsule_IsValid(capsule, Names<Managed>::kFresh) != 0;
  auto* const exported = static_cast<Exported<Managed>*>(PyCapsule_GetContext(capsule));
  if (is_fresh) Exported<Managed>::free(&exported->outer);
  exported->leave();
}

template <class Managed>
PyObject* export_capsule(Managed* managed, bool copied) {
  constexpr uint64_t kIsCopied = 2;
  if constexpr (std::is_same_v<Managed, Versioned>) {
    if (copied) managed->flags |= kIsCopied;
  }
  auto* const exported = new Exported<Managed>{*managed, managed};
  exported->outer.manager_ctx = exported;
  exported->outer.deleter = Exported<Managed>::free;
  PyObject* const capsule = PyCapsule_New(&exported->outer, Names<Managed>::kFresh, destroy_capsule<Managed>);
  if (capsule == nullptr || PyCapsule_SetContext(capsule, exported) != 0) {
    free_managed<Managed>(managed);
    delete exported;
    return nullptr;
  }
  return capsule;
}

/// to_dlpack(array, stream, versioned, copied)
PyObject* to_dlpack(PyObject*, PyObject* args) {
  PyObject* array = nullptr;
  long long stream = 0;
  int versioned = 0, copied = 0;
  if (PyArg_ParseTuple(args, "OLpp", &array, &stream, &versioned, &copied) == 0) return nullptr;
  compute_tensor* const tensor = tensor_from(array, "__dlpack__");
  if (tensor == nullptr) return nullptr;
  DLManagedTensorVersioned* managed = nullptr;
  DLManagedTensor* legacy = nullptr;
  compute_error* error = nullptr;
  {
    const ProgramLine line;
    const Unlocked unlocked;
    error = versioned != 0 ? compute_tensor_to_dlpack(tensor, stream, &managed)
                           : compute_tensor_to_dlpack_unversioned(tensor, stream, &legacy);
  }
  if (!succeeded(error)) return nullptr;
  return versioned != 0 ? export_capsule(reinterpret_cast<Versioned*>(managed), copied != 0)
                        : export_capsule(reinterpret_cast<Legacy*>(legacy), copied != 0);
}

/// dlpack_device(array): the type and id of the array's device.
PyObject* dlpack_device(PyObject*, PyObject* array) {
  compute_tensor* const tensor = tensor_from(array, "__dlpack_device__");
  if (tensor == nullptr) return nullptr;
  if (is_cpu(compute_tensor_device(tensor))) return Py_BuildValue("(ii)", 1, 0);
  DLTensor description{};
  if (!succeeded(compute_tensor_to_dltensor(tensor, &description))) return nullptr;
  return Py_BuildValue("(ii)", description.device_type, description.device_id);
}

// ---- The exchange API -----------------------------------------------------------------------------------------------

struct ExchangeHeader {  // DLPackExchangeAPIHeader
  uint32_t major, minor;
  ExchangeHeader* previous;
};
struct Exchange {  // DLPackExchangeAPI
  ExchangeHeader header;
  int (*allocate)(DLTensor*, Versioned**, void*, void (*)(void*, const char*, const char*));
  int (*managed_from_object)(void*, Versioned**);
  int (*managed_to_object)(Versioned*, void**);
  int (*tensor_from_object)(void*, DLTensor*);
  int (*current_work_stream)(int32_t, int32_t, void**);
};

int exchange_allocate(DLTensor* prototype, Versioned** out, void* error_context,
                      void (*set_error)(void*, const char*, const char*)) {
  return compute_dlpack_allocate(prototype, reinterpret_cast<DLManagedTensorVersioned**>(out), error_context,
                                 set_error);
}
int exchange_managed_from_object(void* object, Versioned** out) {
  constexpr int64_t kNoSynchronization = -1;
  *out = nullptr;
  compute_tensor* const tensor = tensor_from(static_cast<PyObject*>(object), "the exchange API of DLPack");
  if (tensor == nullptr) return -1;
  const ProgramLine line;
  compute_error* const error =
      compute_tensor_to_dlpack(tensor, kNoSynchronization, reinterpret_cast<DLManagedTensorVersioned**>(out));
  return succeeded(error) ? 0 : -1;
}
int exchange_managed_to_object(Versioned* managed, void** out) {
  Versioned* const copy = deferred(managed);
  const ProgramLine line;
  compute_tensor* tensor = nullptr;
  *out = nullptr;
  if (!succeeded(import(copy, &tensor))) {
    delete copy;
    return -1;
  }
  *out = array_object(tensor);
  return *out != nullptr ? 0 : -1;
}
int exchange_tensor_from_object(void* object, DLTensor* out) {
  compute_tensor* const tensor = tensor_from(static_cast<PyObject*>(object), "the exchange API of DLPack");
  return tensor != nullptr && succeeded(compute_tensor_to_dltensor(tensor, out)) ? 0 : -1;
}

Exchange exchange{{1, 2, nullptr},
                  exchange_allocate,
                  exchange_managed_from_object,
                  exchange_managed_to_object,
                  exchange_tensor_from_object,
                  compute_dlpack_current_work_stream};

PyMethodDef functions[] = {{"from_dlpack_capsule", from_dlpack_capsule, METH_O, nullptr},
                           {"to_dlpack", to_dlpack, METH_VARARGS, nullptr},
                           {"dlpack_device", dlpack_device, METH_O, nullptr},
                           {}};

}  // namespace

bool add_dlpack(PyObject* module) {
  // Consumers read this from the type of an array.
  const Ref capsule(PyCapsule_New(&exchange, "dlpack_exchange_api", nullptr));
  return capsule &&
         PyObject_SetAttrString(as_object(state.array_type), "__dlpack_c_exchange_api__", capsule.get()) == 0 &&
         PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace compute_python
