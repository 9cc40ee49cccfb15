/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compute.h: the client interface of the compute backend, in C11.
 *
 * A program includes this header and links libcompute. This header includes compute/ops.h at its end, which declares a
 * typed function for each op. C++ programs can use compute/compute.hpp instead.
 *
 * Terms:
 *
 * - A tensor is a dtype, a shape, strides and an offset over a buffer. A view is a tensor that shares the buffer of
 *   another tensor. Views are identical if their dtype, shape, strides and offset are the same.
 * - A host tensor is a tensor on the device `cpu`. A mirror is a copy of a host tensor that the library keeps on
 *   another device.
 * - A stream is an in-order queue of work on one device.
 * - A scalar is a tensor of rank 0 that holds a value but has no buffer. A slot is a scalar whose value in a recorded
 *   graph can be changed. A weak scalar takes the dtype of the other operands if its kind is not higher.
 * - A hazard is a pair of accesses to one buffer, at least one of which is a write. The library runs the two accesses
 *   in the order in which they were queued.
 *
 * The following rules hold for every function, unless its comment says otherwise.
 *
 * - Errors. A function that can fail returns compute_error*. It is NULL on success. Otherwise, the caller frees it with
 *   compute_error_free. There is no last-error state. The library never aborts, exits, throws or prints because of an
 *   invalid argument. Comments name error codes without the prefix COMPUTE_ERROR_.
 * - Pointers. A NULL pointer is INVALID_ARGUMENT unless the comment allows it. A pointer to an array may be NULL if its
 *   count or rank is 0. Arrays and structs that a program passes are read during the call only.
 * - Out-parameters come last, are named out_x and must not be NULL. They are always written. On error they become NULL
 *   or 0. For an out-struct, the program sets struct_size and next; in an array, only those of the first element. The
 *   library writes all struct_size bytes, also on error. It sets struct_type, and sets fields that it does not know to
 *   zero. In an array it fills as many elements as it reports. It sets their struct_size and struct_type, and sets next
 *   to NULL in all elements but the first.
 * - Handles are opaque and reference counted. A function that creates an object returns one reference, which the caller
 *   releases. _retain adds a reference, _release drops one. Both accept NULL. _release may be called from any thread
 *   and does nothing after compute_shutdown. A pointer that a getter returns is borrowed: it is valid as long as the
 *   object that it was read from. A getter that returns no error returns NULL, 0 or "" for a NULL handle.
 * - Threads. Every function may be called from any thread at any time. There is no current device. Only two things
 *   belong to a thread: scopes, and the default stream of `cpu`.
 * - Streams. Functions that run an op, a map, a reduction, a plan, a kernel or a graph accept a NULL stream. NULL means
 *   the default stream of the device. Each device has one default stream. `cpu` has one for each calling thread; its
 *   work is complete when the call returns. Functions on a stream itself (_stream_, _event_, _graph_begin, _graph_end
 *   and the _async transfers) refuse NULL. compute_device_default_stream returns the default stream.
 * - Strings are UTF-8. A string parameter is NUL-terminated, unless a size follows it. In a struct, a string is a pair
 *   of fields: `x`, and its size in bytes `x_size`. A size that a program sets may be -1 for a NUL-terminated string,
 *   also in a compute_string. A string that the
 *   library sets is NUL-terminated. Unless stated otherwise, a string in a struct is valid until the process ends.
 * - Units. Extents and strides count elements. Offsets and sizes are in bytes, times in nanoseconds.
 * - Structs begin with struct_size (sizeof the struct), struct_type (its COMPUTE_STRUCT_ constant, or 0) and next
 *   (NULL). Later versions add fields only at the end. The library reads missing trailing fields as zero, which means
 *   the behavior of the older version. It refuses a struct that is smaller than in version 1 (COMPUTE_…_SIZE_1; 16 for
 *   the options of ops and reductions). All elements of an array have the same struct_size, which is the distance
 *   between elements; mixed sizes are INVALID_ARGUMENT. Reserved fields must be zero; another value is UNSUPPORTED.
 *   compute_string and compute_number do not begin so, and never change.
 * - Newer features. The library returns UNSUPPORTED for a feature that is newer than itself: a nonzero field beyond the
 *   part of a struct that it knows, an unknown flag or access bit in a request, or an unknown `next` entry whose
 *   struct_type has the bit COMPUTE_STRUCT_MUST_UNDERSTAND. It ignores other unknown `next` entries. An unknown value
 *   of a choice, such as a format or a reduction, is INVALID_ARGUMENT. A program ignores unknown flags of information
 *   structs. It treats an unknown error code as INTERNAL, an unknown health as unusable, an unknown COMPUTE_REASON_ as
 *   NOT_IMPLEMENTED, and an unknown level of the log as COMPUTE_LOG_ERROR. It uses a device of an
 *   unknown kind as it uses the others.
 */
#ifndef COMPUTE_COMPUTE_H_
#define COMPUTE_COMPUTE_H_

#include <stdint.h>

#if defined(_WIN32)
#if defined(COMPUTE_BUILDING_LIBRARY)
#define COMPUTE_API __declspec(dllexport)
#else
#define COMPUTE_API __declspec(dllimport)
#endif
#else
#define COMPUTE_API __attribute__((visibility("default")))
#endif

#if defined(__clang__) && !defined(__cplusplus)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wfixed-enum-extension"
#if __has_warning("-Wc23-extensions")
#pragma clang diagnostic ignored "-Wc23-extensions"
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Constants --------------------------------------------------------------------------------------------------- */

#if UINTPTR_MAX != UINT64_MAX
#error "compute.h is for machines with 64-bit pointers"
#endif

/*
 * The version of this interface. The minor version rises with each addition. The major version is the number in the
 * library's name (libcompute.so.1); it would change only if something were removed or changed.
 */
#define COMPUTE_INTERFACE_MAJOR 1
#define COMPUTE_INTERFACE_MINOR 1

/* The version of the release with this header. compute_version returns the version of the loaded library. */
#define COMPUTE_VERSION_MAJOR 1
#define COMPUTE_VERSION_MINOR 1
#define COMPUTE_VERSION_PATCH 0

/* The maximum rank of a tensor. It never changes. */
#define COMPUTE_MAX_RANK 32

/* Definitions that compute.h and plugin.h share. Both spell them out, so that each header stands alone. */
#ifndef COMPUTE_SHARED_DEFINITIONS_
#define COMPUTE_SHARED_DEFINITIONS_ 1 /* rises with each change of this block */

/* Gives an enum the type of the fields that hold its constants, where the language can: in C++ and C23, and with clang,
 * through which many generators of bindings read headers. */
#if defined(__cplusplus) || defined(__clang__) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L)
#define COMPUTE_UNDERLYING(type) : type
#else
#define COMPUTE_UNDERLYING(type)
#endif

/* Error codes. The numbers never change. */
typedef int32_t compute_error_code;
enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_OK = 0,
  COMPUTE_ERROR_INVALID_ARGUMENT = 1,     /* the call is wrong on any device */
  COMPUTE_ERROR_OUT_OF_RANGE = 2,         /* a size or an index does not fit */
  COMPUTE_ERROR_UNSUPPORTED = 3,          /* the device does not support the call; the message says why */
  COMPUTE_ERROR_OUT_OF_MEMORY = 4,        /* host memory is exhausted */
  COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY = 5, /* device memory is exhausted; the message lists its holders */
  COMPUTE_ERROR_NOT_FOUND = 6,            /* no such device, op, plugin or library */
  COMPUTE_ERROR_DEVICE_MISMATCH = 7,      /* the operands are on different devices */
  COMPUTE_ERROR_COMPILE_FAILED = 8,       /* the message contains the compiler's log */
  COMPUTE_ERROR_KERNEL_FAILED = 9,        /* a kernel detected a fault, such as an index out of range */
  COMPUTE_ERROR_STREAM_FAILED = 10,       /* queued work failed; continue on a new stream */
  COMPUTE_ERROR_CONTEXT_LOST = 11,        /* reopen the device; host data and other devices are intact */
  COMPUTE_ERROR_DEVICE_LOST = 12,         /* the device is gone; other devices are intact */
  COMPUTE_ERROR_RESTART_REQUIRED = 13,    /* the plugin works again in a new process only */
  COMPUTE_ERROR_FORKED = 14,              /* the device was opened before fork(); use it in the parent only */
  COMPUTE_ERROR_SHUT_DOWN = 15,           /* compute_shutdown was called */
  COMPUTE_ERROR_PLUGIN_REJECTED = 16,     /* a plugin violated this interface */
  COMPUTE_ERROR_INTERNAL = 17,            /* a bug in this library */
  COMPUTE_ERROR_CANCELLED = 18,           /* the work was cancelled; see compute_stream_cancel */
  COMPUTE_ERROR_PEER_FAILED = 19,         /* another process of a group failed or is gone */
  COMPUTE_ERROR_NUMERICAL = 20,           /* the data have no result, such as a singular matrix */
  COMPUTE_ERROR_IO = 21                   /* a file cannot be read or written */
};

/*
 * Data types. compute/dtypes.def lists their sizes and categories.
 *
 * 18 to 21 are reserved for float8_e8m0fnu, float4_e2m1fn, int4 and uint4. 64 to 127 are dtypes of vendors: the library
 * assigns these numbers in each process, and compute_dtype_from_name finds them.
 *
 * FLOAT8_E4M3FN and FLOAT8_E5M2 (since 1.1) are stored, moved, converted and multiplied; other ops take a cast of them.
 * Devices store them as bytes, so that plugins see uint8 in their place.
 */
typedef int32_t compute_dtype;
enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_DTYPE_NONE = 0,
  COMPUTE_DTYPE_BOOL = 1,
  COMPUTE_DTYPE_INT8 = 2,
  COMPUTE_DTYPE_INT16 = 3,
  COMPUTE_DTYPE_INT32 = 4,
  COMPUTE_DTYPE_INT64 = 5,
  COMPUTE_DTYPE_UINT8 = 6,
  COMPUTE_DTYPE_UINT16 = 7,
  COMPUTE_DTYPE_UINT32 = 8,
  COMPUTE_DTYPE_UINT64 = 9,
  COMPUTE_DTYPE_FLOAT16 = 10,
  COMPUTE_DTYPE_BFLOAT16 = 11,
  COMPUTE_DTYPE_FLOAT32 = 12,
  COMPUTE_DTYPE_FLOAT64 = 13,
  COMPUTE_DTYPE_COMPLEX64 = 14,
  COMPUTE_DTYPE_COMPLEX128 = 15,
  COMPUTE_DTYPE_FLOAT8_E4M3FN = 16,
  COMPUTE_DTYPE_FLOAT8_E5M2 = 17
};

/* Levels of support for a dtype on a device; bits. */
enum COMPUTE_UNDERLYING(uint32_t) {
  COMPUTE_DTYPE_LEVEL_STORAGE = 1,    /* copy, slice, move */
  COMPUTE_DTYPE_LEVEL_CONVERT = 2,    /* convert from and to it */
  COMPUTE_DTYPE_LEVEL_ARITHMETIC = 4, /* all elementwise ops and reductions */
  COMPUTE_DTYPE_LEVEL_MATMUL = 8      /* matrix products */
};

enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_DEVICE_KIND_CPU = 1,
  COMPUTE_DEVICE_KIND_DISCRETE_GPU = 2,
  COMPUTE_DEVICE_KIND_INTEGRATED_GPU = 3,
  COMPUTE_DEVICE_KIND_ACCELERATOR = 4
};

/* How a device treats subnormal numbers of float32. */
enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_SUBNORMALS_UNKNOWN = 0,
  COMPUTE_SUBNORMALS_KEPT = 1,
  COMPUTE_SUBNORMALS_FLUSHED = 2 /* operands and results may be taken for 0 */
};

/* Types of attribute values. */
enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_KIND_INT64 = 1,      /* int64_t */
  COMPUTE_KIND_FLOAT64 = 2,    /* double */
  COMPUTE_KIND_COMPLEX128 = 3, /* double[2] */
  COMPUTE_KIND_STRING = 4,     /* compute_string */
  COMPUTE_KIND_DTYPE = 5,      /* compute_dtype */
  COMPUTE_KIND_SCALAR = 6,     /* compute_tensor*: a scalar or a graph slot; run-time attributes of compute.h only */
  COMPUTE_KIND_HANDLE = 7      /* uint64_t: the handle of an object, such as a group of devices */
};

/* How collectives combine the values of the ranks, and compute_reduce the values of an expression. */
enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_REDUCTION_SUM = 1,  /* collectives, of bool: or */
  COMPUTE_REDUCTION_PROD = 2, /* collectives, of bool: and */
  COMPUTE_REDUCTION_MIN = 3,  /* NaN if a value is NaN; not of complex numbers */
  COMPUTE_REDUCTION_MAX = 4,  /* the same */
  COMPUTE_REDUCTION_MEAN = 5, /* collectives only; not of integers and bool */
  COMPUTE_REDUCTION_ALL = 6,  /* compute_reduce only: 1 if no value is 0 */
  COMPUTE_REDUCTION_ANY = 7   /* compute_reduce only: 1 if a value is not 0 */
};

enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_LOG_ERROR = 1,
  COMPUTE_LOG_WARNING = 2,
  COMPUTE_LOG_INFO = 3,
  COMPUTE_LOG_DEBUG = 4,
  COMPUTE_LOG_TRACE = 5
};

typedef struct compute_error compute_error;

/* The first fields of every sized struct, and the type that `next` points to. */
typedef struct compute_struct_header {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
} compute_struct_header;

/* A bit of struct_type in a `next` chain. A reader that does not know the type refuses the call. */
#define COMPUTE_STRUCT_MUST_UNDERSTAND 0x80000000u

/* struct_type of compute_attribute. */
enum COMPUTE_UNDERLYING(uint32_t) { COMPUTE_STRUCT_ATTRIBUTE = 5 };

/* A string, not necessarily NUL-terminated. */
typedef struct compute_string {
  const char* data;
  int64_t size;
} compute_string;

/* An attribute of an op. Unknown names are an error. */
typedef struct compute_attribute {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  const char* name;
  int64_t name_size;
  int32_t kind; /* COMPUTE_KIND_ */
  int32_t reserved;
  int64_t count;      /* number of values */
  const void* values; /* `count` values of type `kind`; read during the call only */
} compute_attribute;

/*
 * Kinds of native handles: the objects of the interface below a plugin, such as a CUstream. Each kind has a struct,
 * whose struct_type is the number of the kind. A struct describes a device, a stream or a tensor. Fields that do not
 * concern the object are 0.
 *
 * Numbers from 0x40000000 to 0x7fffffff are for vendors: 0x40000000 + 256 * (PCI vendor id) + (0 to 255). The same
 * holds for the kinds of external objects.
 */
enum COMPUTE_UNDERLYING(uint32_t) {
  COMPUTE_NATIVE_DLPACK = 32, /* compute_native_dlpack */
  COMPUTE_NATIVE_HOST = 33,   /* compute_native_host */
  COMPUTE_NATIVE_CUDA = 34,   /* compute_native_cuda */
  COMPUTE_NATIVE_OPENCL = 35, /* compute_native_opencl */
  COMPUTE_NATIVE_VULKAN = 36  /* compute_native_vulkan */
};

/* What DLPack says of an object. */
typedef struct compute_native_dlpack {
  uint32_t struct_size;
  uint32_t struct_type;
  void* next;
  int32_t device_type;  /* DLDevice.device_type */
  int32_t device_id;    /* DLDevice.device_id */
  uint64_t data;        /* tensor: DLTensor.data */
  uint64_t byte_offset; /* tensor: DLTensor.byte_offset */
  uint64_t stream;      /* stream: the stream as DLPack's functions take it */
} compute_native_dlpack;

/* Memory that the host addresses. */
typedef struct compute_native_host {
  uint32_t struct_size;
  uint32_t struct_type;
  void* next;
  void* address; /* tensor: of element 0 */
} compute_native_host;

typedef struct compute_native_cuda {
  uint32_t struct_size;
  uint32_t struct_type;
  void* next;
  int32_t device; /* CUdevice */
  int32_t reserved;
  uint64_t context; /* CUcontext */
  uint64_t stream;  /* stream: CUstream */
  uint64_t address; /* tensor: CUdeviceptr of element 0 */
} compute_native_cuda;

typedef struct compute_native_opencl {
  uint32_t struct_size;
  uint32_t struct_type;
  void* next;
  uint64_t platform;    /* cl_platform_id */
  uint64_t device;      /* cl_device_id */
  uint64_t context;     /* cl_context */
  uint64_t queue;       /* stream: cl_command_queue */
  uint64_t memory;      /* tensor: cl_mem */
  int64_t offset_bytes; /* tensor: of element 0, from the start of `memory` */
} compute_native_opencl;

typedef struct compute_native_vulkan {
  uint32_t struct_size;
  uint32_t struct_type;
  void* next;
  uint64_t get_instance_proc_addr; /* PFN_vkGetInstanceProcAddr of the loader that made `instance` */
  uint64_t instance;               /* VkInstance */
  uint64_t physical_device;        /* VkPhysicalDevice */
  uint64_t device;                 /* VkDevice */
  uint64_t queue;                  /* stream: VkQueue. Hold its lock while you call a function that uses the queue */
  void (*lock_queue)(void* queue_lock); /* the three fields are valid as long as the device is open */
  void (*unlock_queue)(void* queue_lock);
  void* queue_lock;
  uint32_t queue_family; /* of `queue`; for a device, of the queues that its streams use */
  uint32_t reserved;
  uint64_t semaphore;       /* stream: VkSemaphore, a timeline; never signal it */
  uint64_t semaphore_value; /* stream: `semaphore` has it when all work that is queued now has finished */
  uint64_t buffer;          /* tensor: VkBuffer */
  int64_t offset_bytes;     /* tensor: of element 0, from the start of `buffer` */
  uint64_t address;         /* tensor: VkDeviceAddress of element 0, or 0 */
} compute_native_vulkan;

/* Kinds of external objects: memory and semaphores that several plugins, libraries or processes share. For numbers of
 * vendors, see the kinds of native handles. */
enum COMPUTE_UNDERLYING(uint32_t) {
  COMPUTE_EXTERNAL_HOST_POINTER = 1, /* memory of this process, at `address` */
  /* A file descriptor that the drivers of one device exchange: memory, or a timeline semaphore (the OPAQUE_FD handles
   * of Vulkan and CUDA). */
  COMPUTE_EXTERNAL_OPAQUE_FD = 2,
  COMPUTE_EXTERNAL_DMA_BUF = 3 /* a file descriptor of a dma-buf of Linux: memory, of any device */
};

/* struct_type of compute_external. */
enum COMPUTE_UNDERLYING(uint32_t) { COMPUTE_STRUCT_EXTERNAL = 19 };

/*
 * External memory, or an external semaphore.
 *
 * Who receives a new descriptor owns it, and closes it or imports it. An import that succeeds takes the descriptor
 * over; to import an object twice, duplicate the descriptor (dup). The memory lives until its tensor and all imports of
 * it are released. Memory at an address is not owned; it must stay valid while it is in use. The bytes of a handle that
 * a call returns are valid until the tensor or semaphore is released. An import reads them during the call only.
 */
typedef struct compute_external {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint32_t kind;           /* COMPUTE_EXTERNAL_ */
  int32_t descriptor;      /* the file descriptor; -1 if there is none, also after an error */
  void* address;           /* HOST_POINTER: the address of byte 0 */
  const void* handle;      /* the handle, of kinds whose handles are neither descriptors nor addresses */
  int64_t handle_size;     /* its size in bytes */
  int64_t size_bytes;      /* of memory: the size of the whole object */
  int64_t offset_bytes;    /* of memory: where it begins in the object */
  uint8_t device_uuid[16]; /* OPAQUE_FD: the device, as deviceUUID of Vulkan; another device refuses it */
} compute_external;

#elif COMPUTE_SHARED_DEFINITIONS_ != 1
#error "compute.h and plugin.h are of different versions"
#endif /* COMPUTE_SHARED_DEFINITIONS_ */

/* Results of compute_device_health. A device whose health is not GOOD cannot be used; see the error of that name. */
enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_HEALTH_UNKNOWN = 0, /* after an error of compute_device_health */
  COMPUTE_HEALTH_GOOD = 1,
  COMPUTE_HEALTH_CONTEXT_LOST = 2,
  COMPUTE_HEALTH_DEVICE_LOST = 3,
  COMPUTE_HEALTH_RESTART_REQUIRED = 4,
  COMPUTE_HEALTH_FORKED = 5
};

/* Bits: how the host uses a mapped tensor (compute_tensor_map), or how a kernel uses an argument. */
enum COMPUTE_UNDERLYING(uint32_t) { COMPUTE_ACCESS_READ = 1, COMPUTE_ACCESS_WRITE = 2 };

/*
 * What the program promises about memory that it passes to compute_tensor_wrap_host.
 *
 * An op on another device can write its result to wrapped memory. In EXPOSED memory the result is there when the call
 * returns. In TRACKED memory it is there after compute_tensor_synchronize or the last release of the tensor.
 * compute_tensor_touch discards a result that has not been copied back yet.
 */
enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_WRAP_IMMUTABLE = 1, /* nobody writes the memory while it is wrapped; mirrors stay valid */
  COMPUTE_WRAP_TRACKED = 2,   /* the program calls compute_tensor_touch after it wrote; mirrors are valid until then */
  COMPUTE_WRAP_EXPOSED = 3    /* the program may write between any two calls; each use on another device copies */
};

/* What compute_tensor_set_transfers allows. */
enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_TRANSFERS_DEFAULT = 0, /* as the setting COMPUTE_TRANSFERS says */
  COMPUTE_TRANSFERS_ALLOW = 1,
  COMPUTE_TRANSFERS_WARN = 2, /* each writes a line to the log */
  COMPUTE_TRANSFERS_ERROR = 3 /* each fails with UNSUPPORTED */
};

/* How a device runs an op; see compute_support. */
enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_SUPPORT_NONE = 0,       /* the op does not run */
  COMPUTE_SUPPORT_NATIVE = 1,     /* the plugin's own op, or its primitives without a tensor between them in memory */
  COMPUTE_SUPPORT_DECOMPOSED = 2, /* with intermediate tensors, or a substitute for a primitive that was refused */
  COMPUTE_SUPPORT_HOST = 3        /* the op runs on the host (setting COMPUTE_FALLBACK) */
};

/* Why a plugin refused an op or a step of it; see compute_support. */
enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_REASON_NONE = 0,            /* the plugin refused nothing */
  COMPUTE_REASON_NOT_IMPLEMENTED = 1, /* the plugin has no such op */
  COMPUTE_REASON_DTYPE = 2,           /* the dtype of an operand, or of a value in an expression */
  COMPUTE_REASON_LAYOUT = 3,          /* the strides or the alignment of an operand */
  COMPUTE_REASON_RANK = 4,            /* the rank of an operand */
  COMPUTE_REASON_SHAPE = 5,           /* the extents of an operand */
  COMPUTE_REASON_ATTRIBUTE = 6,       /* the value of an attribute */
  COMPUTE_REASON_LIBRARY_MISSING = 7, /* a library of the vendor is missing or too old */
  COMPUTE_REASON_INTRINSIC = 8        /* a function in an expression */
};

/* Formats of reports. */
enum COMPUTE_UNDERLYING(int32_t) { COMPUTE_FORMAT_TEXT = 0, COMPUTE_FORMAT_JSON = 1 };

/* Flags of compute_stream_options. */
enum COMPUTE_UNDERLYING(uint32_t) {
  COMPUTE_STREAM_UNTRACKED = 1 /* no hazard tracking; the program orders the work with events */
};

/* Flags of compute_tensor_scalar. */
enum COMPUTE_UNDERLYING(uint32_t) {
  COMPUTE_SCALAR_WEAK = 1 /* as a literal: it takes the dtype of the other operands if its kind is not higher */
};

/* Flags of compute_event_options. */
enum COMPUTE_UNDERLYING(uint32_t) { COMPUTE_EVENT_TIMED = 1 /* for compute_event_elapsed */ };

/* Flags of compute_collective_options. */
enum COMPUTE_UNDERLYING(uint32_t) {
  COMPUTE_COLLECTIVE_DETERMINISTIC = 1 /* the same bits on all devices and in all runs: not by the vendor's library */
};

/* Flags of compute_allocator. */
enum COMPUTE_UNDERLYING(uint32_t) {
  COMPUTE_ALLOCATOR_CACHED = 1 /* the library caches free blocks and divides large ones, as with its own memory */
};

/* Struct types. */
enum COMPUTE_UNDERLYING(uint32_t) {
  COMPUTE_STRUCT_NONE = 0,
  COMPUTE_STRUCT_DEVICE_INFO = 1,
  COMPUTE_STRUCT_DEVICE_ATTRIBUTE = 2,
  COMPUTE_STRUCT_DEVICE_STATISTICS = 3,
  COMPUTE_STRUCT_STREAM_OPTIONS = 4,
  /* 5 is COMPUTE_STRUCT_ATTRIBUTE */
  COMPUTE_STRUCT_TENSOR_SPEC = 6,
  COMPUTE_STRUCT_KERNEL_ARGUMENT = 7,
  COMPUTE_STRUCT_KERNEL_OPTIONS = 8,
  COMPUTE_STRUCT_LAUNCH = 9,
  COMPUTE_STRUCT_OP_INFO = 10,
  COMPUTE_STRUCT_OP_OPTIONS = 11, /* all options structs of compute/ops.h, and compute_reduce_options */
  COMPUTE_STRUCT_GRAPH_INFO = 12,
  COMPUTE_STRUCT_EVENT_OPTIONS = 13,
  COMPUTE_STRUCT_ALLOCATOR = 14,
  COMPUTE_STRUCT_OP_REGISTRATION = 15,
  COMPUTE_STRUCT_OP_KERNEL = 16,
  COMPUTE_STRUCT_DEVICE_TELEMETRY = 17,
  COMPUTE_STRUCT_DEVICE_PROCESS = 18,
  /* 19 is COMPUTE_STRUCT_EXTERNAL; 32 to 63 are the kinds of native handles */
  COMPUTE_STRUCT_TRANSPORT = 20,
  COMPUTE_STRUCT_GROUP_OPTIONS = 21,
  COMPUTE_STRUCT_COLLECTIVE_OPTIONS = 22,
  COMPUTE_STRUCT_GRAPH_OPTIONS = 23,
  COMPUTE_STRUCT_SUPPORT = 24,
  COMPUTE_STRUCT_LOG_RECORD = 25
};

/* Sizes, in version 1, of the structs that the library reads. The library refuses smaller structs. */
#define COMPUTE_ATTRIBUTE_SIZE_1 56u
#define COMPUTE_STREAM_OPTIONS_SIZE_1 24u
#define COMPUTE_EVENT_OPTIONS_SIZE_1 24u
#define COMPUTE_TENSOR_SPEC_SIZE_1 48u
#define COMPUTE_KERNEL_OPTIONS_SIZE_1 32u
#define COMPUTE_KERNEL_ARGUMENT_SIZE_1 48u
#define COMPUTE_LAUNCH_SIZE_1 72u
#define COMPUTE_OP_REGISTRATION_SIZE_1 200u
#define COMPUTE_OP_KERNEL_SIZE_1 144u
#define COMPUTE_ALLOCATOR_SIZE_1 48u
#define COMPUTE_EXTERNAL_SIZE_1 80u
#define COMPUTE_TRANSPORT_SIZE_1 112u
#define COMPUTE_GROUP_OPTIONS_SIZE_1 32u
#define COMPUTE_COLLECTIVE_OPTIONS_SIZE_1 24u
#define COMPUTE_GRAPH_OPTIONS_SIZE_1 24u

#define COMPUTE_TIMEOUT_NONE INT64_MAX /* a timeout_ns without a limit */

/* A struct of `type` that is zero except for its struct_size, as in
 *   compute_device_info info = COMPUTE_SIZED(compute_device_info);
 * In C++ use compute::sized<compute_device_info>(). */
#ifndef __cplusplus
#define COMPUTE_SIZED(type) ((type){.struct_size = sizeof(type)})
#endif

/* ---- Types ------------------------------------------------------------------------------------------------------- */

typedef struct compute_text compute_text; /* a string that the caller frees; see compute_text_free */
typedef struct compute_device compute_device;
typedef struct compute_tensor compute_tensor;
typedef struct compute_stream compute_stream;
typedef struct compute_event compute_event;
typedef struct compute_op compute_op;
typedef struct compute_plan compute_plan;
typedef struct compute_expression compute_expression;
typedef struct compute_kernel compute_kernel;
typedef struct compute_graph compute_graph;
typedef struct compute_semaphore compute_semaphore;
typedef struct compute_group compute_group;
struct DLManagedTensorVersioned; /* DLPack 1.x */
struct DLManagedTensor;          /* DLPack before 1.0 */

/* A line of the log. The strings are valid until the callback returns. */
typedef struct compute_log_record {
  uint32_t struct_size;
  uint32_t struct_type; /* COMPUTE_STRUCT_LOG_RECORD */
  const void* next;
  int32_t level; /* COMPUTE_LOG_; treat an unknown level as COMPUTE_LOG_ERROR */
  int32_t reserved;
  const char* category; /* load, select, place, copy, compile, memory or error; later versions may add some */
  int64_t category_size;
  const char* text; /* without a newline at the end */
  int64_t text_size;
} compute_log_record;

/*
 * What a callback receives. It is valid until the callback returns. These are typedefs because some languages (cgo)
 * cannot write `const` in the type of a function that they export.
 */
typedef const compute_error* compute_borrowed_error;
typedef const compute_log_record* compute_borrowed_log_record;

/*
 * A number with its type: the value of a run-time attribute, or of a scalar of an expression. `kind` selects the field
 * that holds the value. As an attribute, kind 0 means the default of the attribute; an expression has no defaults. As a
 * scalar of an expression, a number of kind INT64, FLOAT64 or COMPLEX128 is weak, like a literal.
 */
typedef struct compute_number {
  int32_t kind; /* COMPUTE_KIND_INT64, _FLOAT64, _COMPLEX128 or _SCALAR */
  int32_t reserved;
  int64_t integer;        /* INT64 */
  double real;            /* FLOAT64, COMPLEX128 */
  double imaginary;       /* COMPLEX128 */
  compute_tensor* tensor; /* SCALAR: from compute_tensor_scalar or compute_tensor_slot */
} compute_number;

/* The description of a device. The device need not be open. */
typedef struct compute_device_info {
  uint32_t struct_size;
  uint32_t struct_type;
  void* next;
  const char* name; /* canonical name: cpu, cuda0, opencl0:1 */
  int64_t name_size;
  const char* plugin; /* cpu, cuda, opencl, … */
  int64_t plugin_size;
  const char* description; /* the vendor's name of the model */
  int64_t description_size;
  const char* vendor; /* the name of the vendor */
  int64_t vendor_size;
  const char* driver_version; /* the vendor's text */
  int64_t driver_version_size;
  const char* pci_address; /* as 0000:65:00.0; "" if there is none */
  int64_t pci_address_size;
  const char* uuid; /* "" if there is none */
  int64_t uuid_size;
  const char* same_as; /* canonical name of the same hardware in another plugin, or "" */
  int64_t same_as_size;
  const char* libraries; /* vendor libraries in use, one per line: name, version, path */
  int64_t libraries_size;
  const char* unusable; /* the reason why the device cannot be opened, or "" */
  int64_t unusable_size;
  int64_t memory_bytes;   /* total memory of the device; -1 if unknown */
  int32_t kind;           /* COMPUTE_DEVICE_KIND_ */
  int32_t platform_index; /* the platform; -1 unless the plugin numbers its devices per platform */
  int32_t device_index;   /* index among the devices of the platform, or of the plugin */
  int32_t flat_index;     /* index among all devices of the plugin */
  const uint32_t* dtypes; /* element i: COMPUTE_DTYPE_LEVEL_ of dtype i. Further dtypes are not supported */
  int32_t dtype_count;    /* number of elements of `dtypes` */
  int32_t subnormals;     /* COMPUTE_SUBNORMALS_ */
  /* Limits of kernels. 0: unknown. */
  int32_t subgroup_size_min;  /* number of work-items that run in lockstep (CUDA: a warp), at least */
  int32_t subgroup_size_max;  /* the same, at most */
  int64_t local_memory_bytes; /* memory that the work-items of a group can share */
  int64_t argument_bytes;     /* size of all arguments of a kernel */
  int32_t max_group_size;     /* number of work-items of a group */
  int32_t atomic_alignment;   /* bytes: an atomic operation on a smaller element accesses the aligned word around it */
} compute_device_info;

/* An additional property of a device, as text. */
typedef struct compute_device_attribute {
  uint32_t struct_size;
  uint32_t struct_type;
  void* next;
  const char* name; /* multiprocessors, l2_cache_bytes, … */
  int64_t name_size;
  const char* value;
  int64_t value_size;
} compute_device_attribute;

/* The memory of a device, and counters since the device was opened. */
typedef struct compute_device_statistics {
  uint32_t struct_size;
  uint32_t struct_type;
  void* next;
  int64_t memory_used;                 /* bytes in live tensors, temporaries and mirrors */
  int64_t memory_peak;                 /* maximum of memory_used so far, in bytes */
  int64_t memory_reserved;             /* bytes allocated from the device, including cached bytes */
  int64_t memory_limit;                /* maximum of memory_reserved in bytes; -1: none */
  int64_t memory_mirrors;              /* bytes in mirrors; part of memory_used */
  int64_t blocks_live;                 /* blocks of memory in use */
  int64_t allocations;                 /* blocks allocated so far, from the cache or from the device */
  int64_t allocations_from_device;     /* calls of the driver (on cpu, of the system) to allocate memory */
  int64_t ops_run;                     /* ops that ran on this device */
  int64_t ops_fallback;                /* ops that ran on cpu because this device does not support them */
  int64_t plans_live;                  /* the plugin's plans that exist now, including cached plans */
  int64_t plans_prepared;              /* the plugin's plans that were prepared so far */
  int64_t kernels_compiled;            /* kernels compiled for ops and by compute_kernel_compile */
  int64_t transfers_to_device;         /* transfers to the device, explicit and implicit */
  int64_t transfers_to_device_bytes;   /* their size in bytes */
  int64_t transfers_from_device;       /* transfers from the device, explicit and implicit */
  int64_t transfers_from_device_bytes; /* their size in bytes */
  int64_t transfers_implicit;          /* implicit transfers: for mirrors, and for results in host tensors */
  int64_t transfers_implicit_bytes;    /* their size in bytes */
  int64_t mirror_hits;                 /* uses of a mirror that needed no transfer */
  int64_t memory_total;                /* bytes of the device; on cpu, of the machine within its limits; -1: unknown */
  int64_t memory_available;            /* free bytes of memory_total; -1: unknown */
} compute_device_statistics;

/* Measurements of a device by its driver. A value of -1 means that it is unknown. */
typedef struct compute_device_telemetry {
  uint32_t struct_size;
  uint32_t struct_type;
  void* next;
  int32_t utilization_percent;      /* recent utilization of the compute units; 0 to 100 */
  int32_t temperature_millidegrees; /* in 1/1000 degree Celsius */
  int64_t power_milliwatts;
  int64_t memory_process_bytes; /* device memory used by this process */
  int64_t memory_used_bytes;    /* device memory used by all processes */
} compute_device_telemetry;

/* A process that uses a device. */
typedef struct compute_device_process {
  uint32_t struct_size;
  uint32_t struct_type;
  void* next;
  int64_t process_id;   /* in the system; in a container the driver may give the id on the machine */
  int64_t memory_bytes; /* device memory that it uses; -1: unknown */
} compute_device_process;

typedef struct compute_stream_options {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint32_t flags;   /* COMPUTE_STREAM_ */
  int32_t priority; /* a hint: 0 is normal, a higher stream runs sooner; clamped to the device's range */
} compute_stream_options;

typedef struct compute_event_options {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint32_t flags; /* COMPUTE_EVENT_ */
  int32_t reserved;
} compute_event_options;

/* Returns the address of at least `size_bytes` bytes of memory, or NULL if there is not enough. The address is a
 * multiple of `alignment` bytes. */
typedef void* (*compute_allocate_callback)(int64_t size_bytes, int64_t alignment, void* user_data);
/* Takes back memory that a compute_allocate_callback returned. No work uses the memory any more. */
typedef void (*compute_free_callback)(void* address, int64_t size_bytes, void* user_data);

/* The program's own source of memory for a device; see compute_device_set_allocator. */
typedef struct compute_allocator {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint32_t flags; /* COMPUTE_ALLOCATOR_ */
  int32_t reserved;
  compute_allocate_callback allocate; /* not NULL */
  compute_free_callback release;      /* not NULL */
  void* user_data;                    /* passed to both callbacks */
} compute_allocator;

/* Flags of compute_tensor_spec. */
enum COMPUTE_UNDERLYING(uint32_t) {
  COMPUTE_SPEC_SCALAR = 1, /* a scalar, as from compute_tensor_scalar; the rank is 0 */
  COMPUTE_SPEC_WEAK = 2,   /* a weak scalar; only with SCALAR */
  COMPUTE_SPEC_ABSENT = 4  /* an absent optional input, or an output that the op creates; other fields are ignored */
};

/* The description of an operand, for compute_op_query, compute_map_query and compute_reduce_query. */
typedef struct compute_tensor_spec {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  compute_dtype dtype;
  int32_t rank;
  const int64_t* shape;   /* `rank` extents */
  const int64_t* strides; /* `rank` strides in elements; NULL: row-major */
  uint32_t flags;         /* COMPUTE_SPEC_ */
  int32_t reserved;
} compute_tensor_spec;

/*
 * How a device would run an op: the answer of compute_op_query, compute_map_query and compute_reduce_query.
 *
 * `reason`, `argument` and `text` state why the plugin refused the op or a step of it, also if the op then runs in
 * another way. If the plugin itself would run the op on the host, `text` says so and `reason` is NONE. `text` is empty
 * if there is nothing to state. Free it before you pass the struct again; the library overwrites the pointer.
 */
typedef struct compute_support {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int32_t support;  /* COMPUTE_SUPPORT_ */
  int32_t reason;   /* COMPUTE_REASON_ */
  int32_t argument; /* position of the operand at fault, as of compute_error_argument; or -1 */
  int32_t reserved;
  int64_t workspace_bytes; /* size of the temporary memory; -1 if it becomes known only when the op is prepared */
  compute_text* text;      /* one line; the caller frees it. NULL on error */
} compute_support;

/* Flags of compute_op_info. */
enum COMPUTE_UNDERLYING(uint32_t) {
  COMPUTE_OP_IN_PLACE = 1, /* an output and an input may be identical views */
  COMPUTE_OP_GROUPS = 2,   /* a call may have several groups of inputs and outputs; see compute_op_run */
  COMPUTE_OP_HOST = 4      /* runs on the host if the device does not support it, unless COMPUTE_FALLBACK is strict */
};

/*
 * The schema of an op.
 *
 * Bindings can be generated from `inputs` and `attributes`. Therefore their grammar is part of the interface:
 *   inputs     := [name {" " name}]                 a name may end in "..." (one or more) or "?" (may be NULL)
 *   attributes := [attribute {"; " attribute}]
 *   attribute  := name ": " kind ["[]"] ["=" default] ["!"]
 *                 "[]": a list; no default: required; "!": a run-time attribute
 *   kind       := int64, float64, string, dtype, number, handle
 *   default    := a number, a string, all, none
 * There are blanks around = and before !. Later versions may add kinds, defaults and marks. A reader must refuse what
 * it does not know.
 */
typedef struct compute_op_info {
  uint32_t struct_size;
  uint32_t struct_type;
  void* next;
  const char* name;
  int64_t name_size;
  const char* summary; /* one line */
  int64_t summary_size;
  const char* inputs; /* in the grammar above */
  int64_t inputs_size;
  const char* attributes; /* in the grammar above */
  int64_t attributes_size;
  const char* expression; /* of an elementwise op; "" for other ops */
  int64_t expression_size;
  const char* dtypes; /* elementwise ops: the class of dtypes of the inputs; other ops: the dtype rule */
  int64_t dtypes_size;
  const char* bound; /* the error bound: "ulp:N", "exact", "n" or "log2"; docs/ops.md explains them */
  int64_t bound_size;
  int32_t version;
  uint32_t flags;      /* COMPUTE_OP_ */
  const char* outputs; /* names, separated by blanks */
  int64_t outputs_size;
} compute_op_info;

/* Bits of compute_op_kernel.flags. */
enum COMPUTE_UNDERLYING(uint32_t) {
  COMPUTE_OP_KERNEL_STRIDED = 1 /* takes tensors of any strides; without it they are row-major */
};

/*
 * A kernel of a registered op. Its arguments are the inputs and then the outputs (the address of element 0), then
 * `values`. docs/kernels.md describes the texts.
 */
typedef struct compute_op_kernel {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  const char* language; /* as of compute_kernel_compile */
  int64_t language_size;
  const char* source;
  int64_t source_size;
  const char* name; /* of the kernel function */
  int64_t name_size;
  const char* compiler_options; /* may be NULL */
  int64_t compiler_options_size;
  const char* items; /* work-items along 1 to 3 axes, as "y.size" or "y.shape[1], y.shape[0]" */
  int64_t items_size;
  const char* values; /* as "y.size, x.strides[0], float32(alpha)"; may be NULL */
  int64_t values_size;
  int64_t group_size[3]; /* work-items of a group along each of these axes, at most 1024 in all; else 0 */
  uint32_t flags;        /* COMPUTE_OP_KERNEL_ bits */
  uint32_t reserved;     /* 0 */
} compute_op_kernel;

/*
 * The description of an op that a program adds. The strings are as in compute_op_info. A string that is absent is NULL
 * and has size 0.
 *
 * `expression`, `composition` or `kernels` are given. Kernels can be given beside one of the others: a device then runs
 * the first kernel whose language it supports, and otherwise the expression or composition, which also determines
 * dtypes and shapes.
 *
 * An op with an expression is elementwise: it evaluates `expression` over its inputs, which broadcast. The inputs are
 * promoted to one dtype of the class `dtypes`. The result has this dtype too. All attributes are run-time attributes
 * (marked !). The expression refers to inputs and attributes by name. docs/expressions.md describes expressions.
 *
 * An op with a composition runs other ops. `outputs` names its results. `composition` assigns them:
 *
 *   "z = matmul(x, weight); h = add(z, bias); y = softmax(h, axis=-1)"
 *
 * The arguments of a call are names of inputs or earlier results, or none for an optional input that is absent, then
 * attributes. The value of an attribute is a number, a list [1, 2], a string in double quotes, a dtype, or the name of
 * an attribute of the new op of the same kind. The ops determine dtypes and shapes. `dtypes` is NULL. The newest
 * versions of the ops at the time of this call are used, for good.
 *
 * An op with kernels only runs on devices that support one of their languages. `outputs` names its results. `shapes`
 * has for each of them the name of an input or a list in brackets, as "[x.shape[0], (x.shape[1] + 1) / 2]".
 * `result_dtypes` has for each of them the name of an input or a dtype. Inputs have dtypes of the class `dtypes`, which
 * may be NULL, and at least one element. They do not broadcast and are not promoted.
 */
typedef struct compute_op_registration {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  const char* name; /* two words and a dot, as acme.double; a word is a letter, then letters (a to z), digits, _ */
  int64_t name_size;
  const char* summary; /* one line; may be NULL */
  int64_t summary_size;
  const char* inputs; /* 1 to 16 names, without "..." and "?" */
  int64_t inputs_size;
  const char* attributes; /* up to 8 attributes; may be NULL */
  int64_t attributes_size;
  const char* dtypes; /* ANY, BOOL, INTEGER, BITS, REAL, FLOAT, COMPLEX, INEXACT or NUMERIC */
  int64_t dtypes_size;
  const char* expression; /* has one output */
  int64_t expression_size;
  int32_t version; /* 1 or higher */
  uint32_t flags;  /* 0 */
  const char*
      outputs; /* output names of a composition, separated by blanks; NULL: y, or result if x is not the first input */
  int64_t outputs_size;
  const char* composition;
  int64_t composition_size;
  const compute_op_kernel* kernels; /* best first; NULL: none */
  int64_t kernel_count;
  const char* shapes; /* of an op with kernels only: the shape of each output, separated by ';' */
  int64_t shapes_size;
  const char* result_dtypes; /* of an op with kernels only: the dtype of each output, separated by ';' */
  int64_t result_dtypes_size;
} compute_op_registration;

typedef struct compute_kernel_options {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  const char* compiler_options; /* passed to the compiler unchanged; NULL with size 0: none */
  int64_t compiler_options_size;
} compute_kernel_options;

/* Kinds of kernel arguments. */
enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_ARGUMENT_TENSOR = 1, /* a pointer to the elements of a tensor */
  COMPUTE_ARGUMENT_VALUE = 2,  /* a value of `value_size` bytes */
  /* Memory that the work-items of a group share. CUDA: dynamic shared memory of the block, without a parameter. */
  COMPUTE_ARGUMENT_LOCAL_MEMORY = 3
};

/* An argument of a kernel. A capital word names the kind for which the field is used. */
typedef struct compute_kernel_argument {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int32_t kind;           /* COMPUTE_ARGUMENT_ */
  uint32_t access;        /* TENSOR: COMPUTE_ACCESS_READ | COMPUTE_ACCESS_WRITE */
  compute_tensor* tensor; /* TENSOR: on the device of the kernel; the kernel gets the address of element 0 */
  const void* value;      /* VALUE: `value_size` bytes, read during the call */
  int64_t value_size;     /* VALUE: size in bytes; LOCAL_MEMORY: bytes per work-group */
} compute_kernel_argument;

/* The number and size of the work-groups of a launch. */
typedef struct compute_launch {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int64_t groups[3];          /* work-groups (CUDA: blocks) per axis; 1 or more */
  int64_t group_size[3];      /* work-items (CUDA: threads) of a group per axis; 1 or more */
  int64_t local_memory_bytes; /* as one more argument LOCAL_MEMORY of this size, behind the others; or 0 */
} compute_launch;

/* Options of a recording. */
typedef struct compute_graph_options {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint32_t flags; /* no flags are defined yet */
  int32_t reserved;
} compute_graph_options;

/* Facts about a recorded graph. */
typedef struct compute_graph_info {
  uint32_t struct_size;
  uint32_t struct_type;
  void* next;
  int64_t nodes;           /* number of recorded steps; an op has one or more */
  int64_t temporary_bytes; /* bytes of temporary memory that the graph holds */
  int32_t native;          /* 1: the plugin runs the graph as a whole; 0: the library submits it step by step */
  int32_t reserved;
} compute_graph_info;

/* ---- Errors and texts -------------------------------------------------------------------------------------------- */

/* Frees an error and its causes. Accepts NULL. */
COMPUTE_API void compute_error_free(compute_error* error);
/* The functions below accept NULL, which stands for success: COMPUTE_OK, "", 0, position -1 and cause NULL. Strings are
 * valid as long as the error. */
COMPUTE_API compute_error_code compute_error_get_code(const compute_error* error);
/* One line that states the op, the argument and the values. A load report, a compiler log or a scope can follow on
 * further lines. */
COMPUTE_API const char* compute_error_message(const compute_error* error);
/* What the error is about, as far as it is known. */
COMPUTE_API const char* compute_error_op(const compute_error* error); /* the name of the op, or "" */
/* The position of the operand at fault, or -1. Operands are the inputs, the scalars of an expression, then the outputs;
 * of a kernel its arguments. */
COMPUTE_API int32_t compute_error_argument(const compute_error* error);
COMPUTE_API const char* compute_error_attribute(const compute_error* error); /* name of the attribute at fault, or "" */
COMPUTE_API const char* compute_error_device(const compute_error* error);    /* canonical name of the device, or "" */
COMPUTE_API int64_t compute_error_native_code(const compute_error* error);   /* the vendor's error code, or 0 */
COMPUTE_API const compute_error* compute_error_cause(const compute_error* error); /* borrowed; NULL if none */
/* The name of a code without its prefix, as "INVALID_ARGUMENT"; "UNKNOWN" for an unknown code. */
COMPUTE_API const char* compute_error_code_name(compute_error_code code);

/* A text is a string that the caller frees. All three functions accept NULL, which is an empty text. */
COMPUTE_API const char* compute_text_data(const compute_text* text); /* NUL-terminated */
COMPUTE_API int64_t compute_text_size(const compute_text* text);     /* in bytes, without the NUL */
COMPUTE_API void compute_text_free(compute_text* text);

/* ---- The process ------------------------------------------------------------------------------------------------- */

/* The version of the loaded library. A parameter may be NULL. */
COMPUTE_API void compute_version(int32_t* out_major, int32_t* out_minor, int32_t* out_patch);
/* Succeeds if the loaded library has this version of the interface, or a newer one that is compatible with it. A
 * program passes COMPUTE_INTERFACE_MAJOR and COMPUTE_INTERFACE_MINOR, or an older version that suffices for it. Else
 * UNSUPPORTED; the message names both versions and the file of the library. */
COMPUTE_API compute_error* compute_require_interface(int32_t major, int32_t minor);

/* The size of one element in bytes; 0 for an unknown dtype. */
COMPUTE_API int64_t compute_dtype_size(compute_dtype dtype);
/* The name of a dtype, as "float32"; "" for an unknown dtype. */
COMPUTE_API const char* compute_dtype_name(compute_dtype dtype);
/* The dtype with this name. NOT_FOUND: there is none. Dtypes of a vendor are known once a device of theirs is open. */
COMPUTE_API compute_error* compute_dtype_from_name(const char* name, compute_dtype* out_dtype);

/*
 * Replaces the default log sink, which writes the device selection and warnings to stderr. A NULL callback restores it.
 *
 * `callback` is called for log lines of every level: the setting COMPUTE_LOG is for the default sink. It may be called
 * from any thread and must not call this library. A callback that this function replaced is not called any more when
 * this function returns.
 */
typedef void (*compute_log_callback)(compute_borrowed_log_record record, void* user_data);
COMPUTE_API compute_error* compute_log_set_callback(compute_log_callback callback, void* user_data);

/*
 * Sets a setting for this process, or unsets it if `value` is NULL. `name` is the name of its environment variable
 * (COMPUTE_DEVICE) or its key in the config file (device). The value overrides flags, environment and config file.
 *
 * Errors: NOT_FOUND         no such setting; the message suggests the nearest name
 *         INVALID_ARGUMENT  the setting does not take this value
 */
COMPUTE_API compute_error* compute_config_set(const char* name, const char* value);
/* Returns the value in force of a setting and where it comes from, as "COMPUTE_DEVICE" (the variable), "the API" or
 * "default". out_origin may be NULL. A setting without a value has an empty one. An unknown name is NOT_FOUND. */
COMPUTE_API compute_error* compute_config_get(const char* name, compute_text** out_value, compute_text** out_origin);
/*
 * Describes every setting: its names, its kind, default and choices, what it does, the value in force and its origin.
 * Lists the settings of plugins too, as far as their manifests are known. `format` is one of COMPUTE_FORMAT_.
 */
COMPUTE_API compute_error* compute_config_describe(int32_t format, compute_text** out_description);
/*
 * Reads flags of the form --compute-NAME=VALUE (--compute-device=cuda0) from the arguments of main and removes them.
 * Changes *argc and `argv` in place. The other arguments keep their order.
 */
COMPUTE_API compute_error* compute_config_arguments(int32_t* argc, char** argv);

/*
 * Reports for each plugin whether it was loaded, with its number of devices, or rejected, with the reason and remedies.
 * Loads all plugins, but opens no device. `format` is one of COMPUTE_FORMAT_.
 */
COMPUTE_API compute_error* compute_load_report(int32_t format, compute_text** out_report);

/*
 * Reports what ran where since the start of the process: for each device the ops, how often each ran and whether in one
 * step or several; the transfers to and from each device; and the ops that ran on cpu because the device does not
 * support them, with the reasons. With COMPUTE_PLACEMENT=1 it also reports how often each input of an op was on the
 * device, was in a mirror, was copied, or was passed by value, and the library prints the report at process exit.
 * `format` is one of COMPUTE_FORMAT_.
 */
COMPUTE_API compute_error* compute_placement_report(int32_t format, compute_text** out_report);

/*
 * Starts a profile: the time of each op, transfer and preparation of a plan from now on, and how wall time divides into
 * ops on cpu, ops on devices and transfers. A profile that exists is dropped. The setting COMPUTE_PROFILE starts one
 * when the first device is opened, and prints it at the end of the process.
 *
 * The times of ops on a device come from the device, where it measures them. Some devices measure only on streams that
 * are made while the profile runs. A graph is one row.
 */
COMPUTE_API compute_error* compute_profile_start(void);
/* Ends the profile. It can still be reported. Does nothing if none runs. */
COMPUTE_API compute_error* compute_profile_stop(void);
/*
 * Reports the running profile or the last one. Waits for queued work. `format` is one of COMPUTE_FORMAT_. NOT_FOUND if
 * there is no profile.
 */
COMPUTE_API compute_error* compute_profile_report(int32_t format, compute_text** out_report);
/*
 * Starts a trace of ops, transfers, memory and waits in the Trace Event Format of Perfetto and chrome://tracing, in a
 * new file `path`. A trace that is being written is ended. The setting COMPUTE_TRACE starts one when the first device
 * is opened. IO if the file cannot be opened.
 */
COMPUTE_API compute_error* compute_trace_start(const char* path);
/* Waits for queued work and ends the trace. Does nothing if none is being written. IO if the file is not complete, as
 * on a full disk. */
COMPUTE_API compute_error* compute_trace_stop(void);
/*
 * Reports the tensors that are alive: their label, dtype, shape, bytes and device, and where they were created, by
 * device. Only tensors count that were created while the setting COMPUTE_LEAKS was 1, which is read when the first
 * device is opened. compute_shutdown and exit() then print the report, if there are such tensors. UNSUPPORTED without
 * the setting.
 */
COMPUTE_API compute_error* compute_leak_report(int32_t format, compute_text** out_report);

/*
 * Shuts the library down: refuses new calls, waits up to `timeout_ns` for calls, work and callbacks in progress, then
 * closes all devices and plugins. *out_drained is 1 if all of them finished in time. Otherwise nothing is closed,
 * because the work still uses it, and the program can call this function again. Several threads may call it at once;
 * one of them closes the devices. When all is closed, further calls have no effect and set *out_drained to 1.
 *
 * From the start of the shutdown, calls that use a device or its work fail with SHUT_DOWN, also in callbacks. Calls
 * that need no device (ops, dtypes, settings, infos, statistics, views, scopes, _free) still work. _release does
 * nothing. Memory that was exported by DLPack stays valid until its deleter is called.
 *
 * If the program does not call this function, the library waits at exit() for up to 2 s for work in progress. No other
 * thread may be inside a call then. Exit handlers and destructors that run before this wait can use the library. Those
 * that run after it get SHUT_DOWN. dlclose does not unload the library.
 *
 * fork() is supported while no other thread is inside a call. In the child `cpu` works, and other devices that were
 * open fail with FORKED. Streams of `cpu` that the parent created have failed there. The child must leave by _exit or
 * exec.
 *
 * Errors: INVALID_ARGUMENT  a negative timeout, or a call inside a callback (notification, deleter, log), which would
 *                           wait for itself
 */
COMPUTE_API compute_error* compute_shutdown(int64_t timeout_ns, int32_t* out_drained);

/*
 * Pushes a scope, which describes the place in the program where the calling thread is. Scopes nest. The strings are
 * copied; `file` may be NULL. Inside a scope, the message of an error that a call on this thread returns ends with a
 * line such as "scope: train (main.py:12) > forward". A fault in data has the scope of the call that queued the work.
 *
 * Threads: scopes belong to the calling thread. A runtime that moves tasks between threads must keep a task on one
 *          thread from _push to _pop (Go: runtime.LockOSThread).
 */
COMPUTE_API compute_error* compute_scope_push(const char* label, const char* file, int32_t line);
/* Pops the newest scope of the calling thread. INVALID_ARGUMENT if there is none. */
COMPUTE_API compute_error* compute_scope_pop(void);

/* ---- Devices ----------------------------------------------------------------------------------------------------- */

/*
 * Lists the devices of all plugins: `cpu` first, then in the order of plugin names and PCI addresses.
 *
 * *out_count is the number of devices. The function writes the first min(capacity, *out_count) of them to `infos`, as
 * structs of infos[0].struct_size bytes each. If `capacity` is 0, `infos` may be NULL. The function creates no context
 * and allocates no device memory. Devices of plugins that failed are missing; compute_load_report states why.
 */
COMPUTE_API compute_error* compute_device_list(compute_device_info* infos, int64_t capacity, int64_t* out_count);

/*
 * Opens the device that `selector` names. NULL means the setting COMPUTE_DEVICE, or auto if it has no value.
 *
 * docs/selecting-devices.md describes selectors. Examples: cpu, cuda0, opencl0:1, cuda@pci=0000:65:00.0, cuda0+mem=4G,
 * "cuda,cpu", auto, "auto,-opencl". A single name selects that device only. Opening a device again returns the same
 * handle. After CONTEXT_LOST it opens the device anew and returns a new handle; older handles, tensors and streams keep
 * failing. A device stays open until compute_shutdown, also if all handles are released.
 *
 * Errors: INVALID_ARGUMENT  the selector is malformed (the message has a caret under the fault), or its options differ
 *                           from those that the device was opened with
 *         NOT_FOUND         no such device; the message contains the load report
 *         DEVICE_LOST, RESTART_REQUIRED, FORKED: the device failed before, and opening it again does not help
 */
COMPUTE_API compute_error* compute_device_open(const char* selector, compute_device** out_device);
/* States which device a selector would open, where the choice comes from, and why other devices were not chosen. Opens
 * no device. `selector` is as in compute_device_open, `format` is one of COMPUTE_FORMAT_. */
COMPUTE_API compute_error* compute_device_which(const char* selector, int32_t format, compute_text** out_answer);
COMPUTE_API void compute_device_retain(compute_device* device);
COMPUTE_API void compute_device_release(compute_device* device);
/* The canonical name, as "cuda0". */
COMPUTE_API const char* compute_device_name(const compute_device* device);
COMPUTE_API compute_error* compute_device_get_info(compute_device* device, compute_device_info* out_info);
/* Lists additional properties of the device with the canonical name `name`. The device need not be open. `capacity` and
 * *out_count are as in compute_device_list. An unknown name is NOT_FOUND. */
COMPUTE_API compute_error* compute_device_attributes(const char* name, compute_device_attribute* attributes,
                                                     int64_t capacity, int64_t* out_count);
COMPUTE_API compute_error* compute_device_get_statistics(compute_device* device,
                                                         compute_device_statistics* out_statistics);
/* Asks the driver for measurements of the device. All are unknown if the plugin provides none, as `cpu`. */
COMPUTE_API compute_error* compute_device_get_telemetry(compute_device* device,
                                                        compute_device_telemetry* out_telemetry);
/* Lists the processes that use the device, as far as its driver knows them. `capacity` and *out_count are as in
 * compute_device_list. */
COMPUTE_API compute_error* compute_device_processes(compute_device* device, compute_device_process* processes,
                                                    int64_t capacity, int64_t* out_count);
/*
 * Native handles, for programs that use their own CUDA, OpenCL or Vulkan code on tensors. `kind` is one of
 * COMPUTE_NATIVE_ or a kind of the plugin's vendor. *out_handle is the struct of that kind. The library sets its
 * struct_type to `kind`. The handles in it are borrowed: they are valid as long as the object. A tensor without
 * elements has no memory: its address and memory are 0.
 *
 * The library does not track work that the program queues itself. Before that work, wait for the tensor with
 * compute_tensor_synchronize. After it, wait for it before the library uses the tensor again. No waits are needed if
 * both use the same native stream. The mirrors of a host tensor become stale at the call, as with
 * compute_tensor_to_dltensor.
 *
 * Errors: INVALID_ARGUMENT  the tensor is a scalar
 *         UNSUPPORTED       the device has no handles of this kind
 */
COMPUTE_API compute_error* compute_device_native_handle(compute_device* device, uint32_t kind, void* out_handle);
COMPUTE_API compute_error* compute_stream_native_handle(compute_stream* stream, uint32_t kind, void* out_handle);
COMPUTE_API compute_error* compute_tensor_native_handle(compute_tensor* tensor, uint32_t kind, void* out_handle);
/* *out_health is one of COMPUTE_HEALTH_. Does not ask the device; returns what earlier calls found. */
COMPUTE_API compute_error* compute_device_health(compute_device* device, int32_t* out_health);
/* Drops mirrors, and frees cached memory until at most `keep_bytes` bytes are cached. Mirrors that hold results which
 * were not copied back yet are kept. */
COMPUTE_API compute_error* compute_device_trim(compute_device* device, int64_t keep_bytes);
/*
 * Sets the source of the memory that the device uses for tensors, temporaries and mirrors. A program that has its own
 * memory pool uses this function so that two pools do not compete for one device. NULL restores the default source.
 * `allocator` is copied.
 *
 * `allocate` returns memory that all of the device can address and that no queued work uses. `alignment` is in bytes, a
 * power of two and at least 64. `release` is called once per block, when the work that uses the block has ended.
 * It receives the size that was requested. Without COMPUTE_ALLOCATOR_CACHED, a block has the size of its tensor and is
 * released as soon as it is free. With it, a free block is released when memory is short, by compute_device_trim and by
 * compute_shutdown.
 *
 * If `allocate` returns NULL, the library frees its cached memory, waits for freed blocks that queued work still uses,
 * and calls it again. If it returns NULL again, the call fails with OUT_OF_DEVICE_MEMORY (OUT_OF_MEMORY on cpu). The
 * setting COMPUTE_MEMORY_LIMIT applies. The allocator is not used for host memory that transfers use.
 *
 * Both callbacks may be called from any thread, and by several threads at once. They must not call this library or wait
 * for a thread that is inside it. compute_shutdown releases all blocks, except those of a device that was lost or that
 * has DLPack exports. The callbacks are not called after compute_shutdown. They are not called at exit().
 *
 * Errors: INVALID_ARGUMENT  a callback is NULL, or memory of the device is in use (by tensors or graphs)
 *         UNSUPPORTED       an unknown flag, or the device cannot use such memory; the message states why
 */
COMPUTE_API compute_error* compute_device_set_allocator(compute_device* device, const compute_allocator* allocator);
/*
 * Adds a function that is called when an allocation on any device, `cpu` included, would fail because memory is short.
 * In a language with garbage collection, the callback can collect unreachable tensors and release them. A process can
 * have several callbacks, such as one for each language that runs in it.
 *
 * When an allocation finds no memory, the library frees its cached memory and mirrors and tries again. Then it calls
 * each callback once, in the order in which they were added, with the device (borrowed) and the requested size in
 * bytes, and tries a last time. A callback runs on the thread of the call that allocates, and can run on several
 * threads at once. It may release handles, and call compute_device_trim, the functions on errors and the two functions
 * below. An allocation inside it that finds no memory fails; it calls no callback.
 *
 * _remove removes the callback that was added with the same two arguments. It waits for calls of it on other threads,
 * so two callbacks must not remove each other. When it returns, the callback is not called any more.
 *
 * Errors: INVALID_ARGUMENT  `callback` is NULL; _add: it was added before with this user_data; _remove: it was not
 */
typedef void (*compute_pressure_callback)(compute_device* device, int64_t size_bytes, void* user_data);
COMPUTE_API compute_error* compute_memory_add_pressure_callback(compute_pressure_callback callback, void* user_data);
COMPUTE_API compute_error* compute_memory_remove_pressure_callback(compute_pressure_callback callback, void* user_data);
/*
 * Returns the default stream of `device`, which a NULL stream means. The caller releases it. It cannot record graphs.
 * After work on it has failed, the device has a new default stream: call this function again. On `cpu` it is the stream
 * of the calling thread, which must not be used after the thread has ended.
 */
COMPUTE_API compute_error* compute_device_default_stream(compute_device* device, compute_stream** out_stream);
/* Waits for all work that was queued on any stream of the device before this call. */
COMPUTE_API compute_error* compute_device_synchronize(compute_device* device);

/* ---- Tensors ----------------------------------------------------------------------------------------------------- */

/*
 * Creates a row-major tensor with undefined contents.
 *
 * `shape` holds `rank` extents, outermost first, and is copied. An extent may be 0. A tensor of rank 0 has one element.
 * The memory is aligned to at least 64 bytes.
 *
 * Ownership: the caller releases *out_tensor.
 * Blocks:    while memory is allocated. Waits for queued work only if that work uses all the memory there is.
 * Errors:    INVALID_ARGUMENT      a null pointer, a negative extent, a rank outside [0, 32], an unknown dtype
 *            OUT_OF_RANGE          the size in bytes does not fit in int64_t
 *            UNSUPPORTED           the device does not support the dtype
 *            OUT_OF_DEVICE_MEMORY  not enough memory (OUT_OF_MEMORY on cpu)
 */
COMPUTE_API compute_error* compute_tensor_empty(compute_device* device, compute_dtype dtype, int32_t rank,
                                                const int64_t* shape, compute_tensor** out_tensor);
/* As compute_tensor_empty, with all elements set to *value, which has the type `dtype`. */
COMPUTE_API compute_error* compute_tensor_full(compute_device* device, compute_dtype dtype, int32_t rank,
                                               const int64_t* shape, const void* value, compute_tensor** out_tensor);
/* As compute_tensor_empty, with a copy of the row-major elements at `data`. `data` may be reused on return. */
COMPUTE_API compute_error* compute_tensor_from_host(compute_device* device, compute_dtype dtype, int32_t rank,
                                                    const int64_t* shape, const void* data,
                                                    compute_tensor** out_tensor);
/*
 * Creates a host tensor over memory of the program, without a copy.
 *
 * `data` is the address of element 0. It is a multiple of the element size (of half of it for complex dtypes), and may
 * be NULL if there are no elements. `strides` are in elements and may be negative; NULL means row-major. `promise` is
 * one of COMPUTE_WRAP_. If the memory lies inside memory that is already wrapped, the tensors share one buffer. Hazards
 * between them are then tracked.
 *
 * Ownership: the program owns the memory. On success, `deleter` (may be NULL) is called once with (data, user_data)
 *            when no tensor and no queued work uses the memory any more. It may be called from any thread and must not
 *            call this library. On error it is not called. If the memory lies inside memory that was wrapped with a
 *            deleter, that one keeps the memory, and `deleter` is called before this function returns.
 * Errors:    INVALID_ARGUMENT  a wrong shape, dtype or promise; `data` is not aligned; the range is already wrapped
 *                              with another promise
 *            OUT_OF_RANGE      the layout exceeds the address space
 *            UNSUPPORTED       the range overlaps a wrapped one without lying inside it; wrap the larger one first
 */
typedef void (*compute_deleter)(void* data, void* user_data);
COMPUTE_API compute_error* compute_tensor_wrap_host(compute_dtype dtype, int32_t rank, const int64_t* shape,
                                                    const int64_t* strides, void* data, int32_t promise,
                                                    compute_deleter deleter, void* user_data,
                                                    compute_tensor** out_tensor);
/* Announces that the program wrote to memory that is wrapped as COMPUTE_WRAP_TRACKED. Mirrors of it become stale. Waits
 * for queued work that uses the memory. INVALID_ARGUMENT for other tensors. */
COMPUTE_API compute_error* compute_tensor_touch(compute_tensor* tensor);
/*
 * Creates a scalar, which cannot be changed. *value has the type `dtype` and is copied. A scalar needs no memory and no
 * transfer, and plans do not depend on its value. `flags` are COMPUTE_SCALAR_. A weak scalar takes the dtype of the
 * other operands if its kind (bool, integer, real, complex) is not higher than theirs. docs/ops.md has the table of
 * common dtypes.
 */
COMPUTE_API compute_error* compute_tensor_scalar(compute_dtype dtype, const void* value, uint32_t flags,
                                                 compute_tensor** out_tensor);
/* Creates a slot: a scalar whose value in a recorded graph can be changed with compute_graph_set_slot. Its initial
 * value is 0. */
COMPUTE_API compute_error* compute_tensor_slot(compute_dtype dtype, compute_tensor** out_tensor);

COMPUTE_API void compute_tensor_retain(compute_tensor* tensor);
COMPUTE_API void compute_tensor_release(compute_tensor* tensor);

COMPUTE_API compute_dtype compute_tensor_dtype(const compute_tensor* tensor);
COMPUTE_API int32_t compute_tensor_rank(const compute_tensor* tensor);
COMPUTE_API const int64_t* compute_tensor_shape(const compute_tensor* tensor);   /* borrowed; `rank` values */
COMPUTE_API const int64_t* compute_tensor_strides(const compute_tensor* tensor); /* borrowed; `rank` values */
COMPUTE_API int64_t compute_tensor_offset_bytes(const compute_tensor* tensor);   /* of element 0 in the buffer */
COMPUTE_API int64_t compute_tensor_element_count(const compute_tensor* tensor);
COMPUTE_API int64_t compute_tensor_size_bytes(const compute_tensor* tensor);     /* element count * element size */
COMPUTE_API compute_device* compute_tensor_device(const compute_tensor* tensor); /* borrowed; scalars: cpu */
/* 1 if `a` and `b` share one buffer, else 0. */
COMPUTE_API int32_t compute_tensor_shares_buffer(const compute_tensor* a, const compute_tensor* b);
/* Sets a name for reports and messages. The label is copied. Pointers to earlier labels stay valid as long as the
 * tensor. */
COMPUTE_API compute_error* compute_tensor_set_label(compute_tensor* tensor, const char* label);
/* The label; "" if there is none. */
COMPUTE_API const char* compute_tensor_label(const compute_tensor* tensor);
/* States what happens if an op needs an implicit copy of the tensor's elements to or from another device. `transfers`
 * is one of COMPUTE_TRANSFERS_. It holds for the whole buffer, which views share. Explicit copies, as by _read and
 * _to_device, are not affected. INVALID_ARGUMENT for a scalar. */
COMPUTE_API compute_error* compute_tensor_set_transfers(compute_tensor* tensor, int32_t transfers);

/*
 * Views. A view shares the buffer of the tensor and keeps the buffer alive. Its creation calls no device. The caller
 * releases it. A scalar has no views. An axis may be negative: it then counts from the end.
 *
 * Errors: INVALID_ARGUMENT  a shape, rank, axis or step that does not fit the tensor; the tensor is a scalar
 */

/* Reshapes in row-major order. One extent may be -1, which means the extent that fits. UNSUPPORTED if no strides can
 * express the view; copy the tensor first. */
COMPUTE_API compute_error* compute_tensor_reshape(compute_tensor* tensor, int32_t rank, const int64_t* shape,
                                                  compute_tensor** out_view);
/* Permutes the axes: axis i of the view is axis axes[i] of the tensor. `rank` is the rank of the tensor. NULL axes
 * reverse the order. */
COMPUTE_API compute_error* compute_tensor_permute(compute_tensor* tensor, int32_t rank, const int32_t* axes,
                                                  compute_tensor** out_view);
/* Slices each axis as Python's x[start:stop:step] does. `rank` is the rank of the tensor. Negative indices count from
 * the end. Indices out of range are clipped. A start of INT64_MIN means an omitted start, and a stop of INT64_MAX an
 * omitted stop. NULL starts or stops are omitted for all axes. NULL steps are 1. A step may be negative but not 0. */
COMPUTE_API compute_error* compute_tensor_slice(compute_tensor* tensor, int32_t rank, const int64_t* starts,
                                                const int64_t* stops, const int64_t* steps, compute_tensor** out_view);
/* Broadcasts to `shape`, which holds `rank` extents. Axes of extent 1 and missing leading axes are repeated with stride
 * 0. */
COMPUTE_API compute_error* compute_tensor_broadcast(compute_tensor* tensor, int32_t rank, const int64_t* shape,
                                                    compute_tensor** out_view);
/* Inserts an axis of extent 1, which becomes axis `axis` of the view. */
COMPUTE_API compute_error* compute_tensor_expand(compute_tensor* tensor, int32_t axis, compute_tensor** out_view);
/* Removes axis `axis` of the tensor, which must have extent 1. */
COMPUTE_API compute_error* compute_tensor_squeeze(compute_tensor* tensor, int32_t axis, compute_tensor** out_view);
/* Creates a view with any shape, strides and offset that lies inside the buffer of the tensor. `dtype` has the element
 * size of the tensor's dtype, or is the dtype of the parts of its numbers. `offset_bytes` is the offset of element 0
 * from the start of the buffer. The address of element 0 is a multiple of the element size (of half of it for complex
 * dtypes); buffers begin at a multiple of 64, except for memory that the program or another library made. NULL strides
 * mean row-major. OUT_OF_RANGE if the view exceeds the buffer. */
COMPUTE_API compute_error* compute_tensor_view(compute_tensor* tensor, compute_dtype dtype, int32_t rank,
                                               const int64_t* shape, const int64_t* strides, int64_t offset_bytes,
                                               compute_tensor** out_view);

/*
 * Copies all elements to `dst` in row-major order. `size_bytes` must equal compute_tensor_size_bytes.
 *
 * Waits for the work that writes the tensor and reports its failure.
 */
COMPUTE_API compute_error* compute_tensor_read(compute_tensor* tensor, void* dst, int64_t size_bytes);
/* As _read of a view of one element, without making the view. `indices` has `rank` of them, and `rank` is that of the
 * tensor. `size_bytes` must equal the size of the dtype. OUT_OF_RANGE for an index outside of [0, extent). */
COMPUTE_API compute_error* compute_tensor_read_element(compute_tensor* tensor, int32_t rank, const int64_t* indices,
                                                       void* dst, int64_t size_bytes);
/* Copies row-major elements from `src` into the tensor, after the work that uses it. `size_bytes` must equal
 * compute_tensor_size_bytes. `src` may be reused on return. INVALID_ARGUMENT for a scalar, a tensor in immutable memory
 * and a tensor whose elements overlap. */
COMPUTE_API compute_error* compute_tensor_write(compute_tensor* tensor, const void* src, int64_t size_bytes);
/* As _read and _write, but queued on `stream`, which is on the device of the tensor. The call does not wait for the
 * copy. The memory at `dst` and `src` must stay valid until the copy has finished (compute_stream_synchronize, an
 * event). DEVICE_MISMATCH if the stream is on another device. INVALID_ARGUMENT for a scalar and while the stream
 * records. */
COMPUTE_API compute_error* compute_tensor_read_async(compute_tensor* tensor, void* dst, int64_t size_bytes,
                                                     compute_stream* stream);
COMPUTE_API compute_error* compute_tensor_write_async(compute_tensor* tensor, const void* src, int64_t size_bytes,
                                                      compute_stream* stream);
/* Creates a row-major copy on `device`. If the tensor is on `device` already, it is returned with a new reference. The
 * copy may still be in progress when the call returns; uses of the result are ordered after it. */
COMPUTE_API compute_error* compute_tensor_to_device(compute_tensor* tensor, compute_device* device,
                                                    compute_tensor** out_tensor);
/*
 * Makes the elements of the tensor accessible to the host. Waits for the work on the tensor that was queued before.
 * `access` consists of COMPUTE_ACCESS_READ, COMPUTE_ACCESS_WRITE or both. *out_data is the address of element 0, or
 * NULL if there are no elements. If the host can address the memory of the tensor, *out_data is that memory, with the
 * tensor's strides, and *out_is_copy is 0. Otherwise *out_data is a row-major copy and *out_is_copy is 1. If `access`
 * has COMPUTE_ACCESS_WRITE, _unmap writes the whole copy back.
 *
 * With COMPUTE_ACCESS_READ the call reports a failure of the work that wrote the tensor. Without it, the contents are
 * undefined, and elements that the program does not write are undefined after _unmap. Until _unmap, the program must
 * not queue work that conflicts with `access`, because the library does not order such work.
 */
COMPUTE_API compute_error* compute_tensor_map(compute_tensor* tensor, uint32_t access, void** out_data,
                                              int32_t* out_is_copy);
/* Ends a mapping. `data` is the address that _map returned. Each _map needs one _unmap. */
COMPUTE_API compute_error* compute_tensor_unmap(compute_tensor* tensor, void* data);
/* Waits for the work that writes the tensor, but not for later work, except for ops of about a millisecond in all right
 * behind it on the stream. Reports its failure. Copies results back to wrapped memory. */
COMPUTE_API compute_error* compute_tensor_synchronize(compute_tensor* tensor);

/*
 * Exchange of tensors with other libraries through DLPack 1.x. DLTensor has no struct tag; below it is void*.
 *
 * _from_dlpack: on success the tensor owns `managed` and calls its deleter later, from any thread. On error the caller
 * still owns it. Host memory is wrapped without a copy: as COMPUTE_WRAP_IMMUTABLE if it is flagged read-only, else as
 * COMPUTE_WRAP_EXPOSED. Device memory needs an open device whose plugin can import it. A cl_mem (kDLOpenCL) must belong
 * to the context of an open device (compute_native_opencl.context).
 *
 * _to_dlpack: the caller owns *out_managed and calls its deleter. Until then the buffer is treated as
 * COMPUTE_WRAP_EXPOSED, unless it is immutable. `stream` is the consumer's stream, numbered as in DLPack. The call
 * waits for pending work on the buffer, so that the consumer's work runs after it. With -1 it does not wait for that
 * work, and reports only failures that are already known. It may still wait for the copy of a result back to a host
 * tensor, and for work that used the memory before the tensor was created. dl_tensor.data is the address of element 0.
 * With kDLOpenCL it is a cl_mem, and byte_offset is the offset of element 0.
 *
 * _unversioned: the same for DLManagedTensor, the struct of DLPack before 1.0. That struct has no flags. Imported host
 * memory is COMPUTE_WRAP_EXPOSED, and the export of immutable memory is UNSUPPORTED.
 */
COMPUTE_API compute_error* compute_tensor_from_dlpack(struct DLManagedTensorVersioned* managed,
                                                      compute_tensor** out_tensor);
COMPUTE_API compute_error* compute_tensor_to_dlpack(compute_tensor* tensor, int64_t stream,
                                                    struct DLManagedTensorVersioned** out_managed);
COMPUTE_API compute_error* compute_tensor_from_dlpack_unversioned(struct DLManagedTensor* managed,
                                                                  compute_tensor** out_tensor);
COMPUTE_API compute_error* compute_tensor_to_dlpack_unversioned(compute_tensor* tensor, int64_t stream,
                                                                struct DLManagedTensor** out_managed);
/*
 * Fills *out_dltensor, a DLTensor of 48 bytes. It borrows the shape, strides and memory of the tensor, and is valid as
 * long as the tensor. On error it is set to zero.
 *
 * Waits only as _to_dlpack with stream -1 does. The mirrors of a host tensor become stale at this call. If a host
 * tensor is then used on another device, call this function again before you write to its memory.
 */
COMPUTE_API compute_error* compute_tensor_to_dltensor(compute_tensor* tensor, void* out_dltensor);

/*
 * Two functions with the signatures of DLPack 1.2, for the DLPackExchangeAPI of a language binding. Both return 0 on
 * success and -1 on failure, and throw nothing.
 *
 * _allocate (managed_tensor_allocator): creates a row-major tensor with undefined contents and exports it. `prototype`,
 * a DLTensor, gives the dtype, ndim, shape and device. A device other than the host must be open. On failure
 * *out_managed is NULL, and `set_error` is called once with `error_context`, the name of a Python exception and a
 * message. Both strings are valid during that call. If `set_error` is NULL, the error is logged.
 *
 * _current_work_stream (current_work_stream): sets *out_stream to the native handle of the default stream of the open
 * device with this DLPack type and id, or to NULL for host memory. The handle is valid until work on that stream fails.
 * A failure is logged, with its reason.
 */
typedef void (*compute_dlpack_error_callback)(void* error_context, const char* kind, const char* message);
COMPUTE_API int32_t compute_dlpack_allocate(const void* prototype, struct DLManagedTensorVersioned** out_managed,
                                            void* error_context, compute_dlpack_error_callback set_error);
COMPUTE_API int32_t compute_dlpack_current_work_stream(int32_t device_type, int32_t device_id, void** out_stream);

/* ---- External memory and semaphores ----------------------------------------------------------------------------- */

/*
 * Memory and semaphores that devices of several plugins, other libraries and other processes share, without copies
 * through the host. One side creates an object and describes it in a compute_external; the other side imports it. Kinds
 * are COMPUTE_EXTERNAL_ or numbers of vendors.
 *
 * compute_tensor_empty_external creates a row-major tensor with undefined contents in memory of its own, whose byte 0
 * is element 0. compute_tensor_from_external creates a tensor of any strides over imported memory; element 0 is
 * `offset_bytes` behind byte 0, and NULL strides mean row-major. On `cpu` the kind is HOST_POINTER, and the memory is
 * treated as COMPUTE_WRAP_EXPOSED.
 *
 * The library orders work on one of the two tensors, but not the work on one with the work on the other. For that, wait
 * (compute_tensor_synchronize), or use a semaphore.
 *
 * Errors: INVALID_ARGUMENT  a negative offset
 *         OUT_OF_RANGE      the tensor exceeds the memory
 *         UNSUPPORTED       the device does not have this kind, or the object belongs to another device
 */
COMPUTE_API compute_error* compute_tensor_empty_external(compute_device* device, uint32_t kind, compute_dtype dtype,
                                                         int32_t rank, const int64_t* shape,
                                                         compute_external* out_external, compute_tensor** out_tensor);
COMPUTE_API compute_error* compute_tensor_from_external(compute_device* device, const compute_external* external,
                                                        compute_dtype dtype, int32_t rank, const int64_t* shape,
                                                        const int64_t* strides, int64_t offset_bytes,
                                                        compute_tensor** out_tensor);
/*
 * A semaphore is a number that only rises, from 0. _signal sets it to `value` when all work that was queued on `stream`
 * before has ended. _wait makes work that is queued on `stream` later wait until it is at least `value`. Neither call
 * waits. Each value is signaled once. A wait for a value that is signaled later, or never, is allowed.
 *
 * A semaphore carries no errors: a signal that follows failed work may never come. Without a signal the wait ends when
 * its stream is given up (COMPUTE_HANG_SECONDS).
 *
 * Errors: INVALID_ARGUMENT  `stream` records a graph
 *         DEVICE_MISMATCH   the stream is on another device than the semaphore
 *         UNSUPPORTED       the device has no such semaphores, as `cpu`
 */
COMPUTE_API compute_error* compute_semaphore_create(compute_device* device, uint32_t kind,
                                                    compute_external* out_external, compute_semaphore** out_semaphore);
COMPUTE_API compute_error* compute_semaphore_from_external(compute_device* device, const compute_external* external,
                                                           compute_semaphore** out_semaphore);
COMPUTE_API compute_error* compute_semaphore_signal(compute_semaphore* semaphore, compute_stream* stream,
                                                    uint64_t value);
COMPUTE_API compute_error* compute_semaphore_wait(compute_semaphore* semaphore, compute_stream* stream, uint64_t value);
COMPUTE_API void compute_semaphore_retain(compute_semaphore* semaphore);
COMPUTE_API void compute_semaphore_release(compute_semaphore* semaphore);

/* ---- Failures of queued work ------------------------------------------------------------------------------------- */

/*
 * Queued work can fail after the call that queued it has returned. The failure is reported by every use of a result
 * that depends on the failed work. The error names the op that failed.
 *
 * Tensors. The outputs of failed work have no values. Neither has anything that is computed from them, on any stream. A
 * call that reads, maps, synchronizes, moves or exports such a tensor, or uses it as an operand, returns the error of
 * the work that failed (KERNEL_FAILED, STREAM_FAILED, CONTEXT_LOST, …). The tensor has values again when all of it is
 * overwritten: by an op, by _write, or through a map without COMPUTE_ACCESS_READ. The inputs of failed work are
 * unchanged.
 *
 * Faults in data. KERNEL_FAILED is a fault that a kernel detected, such as an index out of range. It concerns the
 * results alone: the stream, the device and other threads continue, and work that does not use these results is not
 * affected. Besides the uses of these results, the first of the following calls on each stream whose work produced one
 * reports the fault: compute_stream_synchronize, _wait_for, _query and _notify, compute_event_synchronize and _query.
 * The work that the call waits for has finished all the same. Threads that share a default stream share this report.
 *
 * Streams. After STREAM_FAILED and the more severe codes, a stream accepts no more work, and no work after the last
 * completed submission has values. The calls above, and every call that queues work, report the failure as long as the
 * stream exists. Continue on a new stream. A NULL stream means a new default stream from then on. A stream that only
 * used results of the failed work stays usable, and reports the failure like a fault in data.
 *
 * Devices. compute_device_synchronize waits for all streams, including released ones. It reports a failure that no
 * other call has reported.
 *
 * Calls. If a call returns an error and none of its work was queued, its outputs are unchanged. If part of its work was
 * queued, its outputs have no values, and a call that reads them returns an error. An output of a recorded graph has no
 * values before the first run of the graph. Until then its use is INVALID_ARGUMENT.
 */

/* ---- Streams and events ------------------------------------------------------------------------------------------ */

/* Creates a stream, an in-order queue of work. `options` may be NULL. The library tracks hazards between streams for
 * each buffer, so programs need no events. */
COMPUTE_API compute_error* compute_stream_create(compute_device* device, const compute_stream_options* options,
                                                 compute_stream** out_stream);
COMPUTE_API void compute_stream_retain(compute_stream* stream);
COMPUTE_API void compute_stream_release(compute_stream* stream);                 /* queued work still runs */
COMPUTE_API compute_device* compute_stream_device(const compute_stream* stream); /* borrowed */
/*
 * Waits until all work queued on `stream` before this call has finished. The results are then visible to the host and
 * to other streams.
 *
 * Threads:   any thread, but not inside a callback of compute_stream_notify, which would wait for itself.
 * Blocks:    without a time limit. Spins for up to COMPUTE_SPIN_US microseconds, then sleeps.
 * Errors:    INVALID_ARGUMENT  `stream` is NULL or records a graph
 *            STREAM_FAILED     queued work failed; continue on a new stream
 *            KERNEL_FAILED     a kernel detected a fault; the stream stays usable
 *            CONTEXT_LOST, DEVICE_LOST, RESTART_REQUIRED: see "Failures of queued work"
 */
COMPUTE_API compute_error* compute_stream_synchronize(compute_stream* stream);
/* As compute_stream_synchronize, but waits at most `timeout_ns` nanoseconds, which must not be negative. *out_finished
 * is 1 if the work has finished. On timeout it is 0, and there is no error. */
COMPUTE_API compute_error* compute_stream_wait_for(compute_stream* stream, int64_t timeout_ns, int32_t* out_finished);
/* *out_finished is 1 if all queued work has finished, else 0. Never waits. Reports the failure of the work. */
COMPUTE_API compute_error* compute_stream_query(compute_stream* stream, int32_t* out_finished);
/*
 * Asks the stream to end early. Queued work does not run, and work that runs stops as soon as the device can stop it:
 * on `cpu`, between two pieces of a loop. Does not wait.
 *
 * The stream fails with CANCELLED, as described in "Failures of queued work". Results that were complete before are
 * kept, as far as the library knows of their completion. If `stream` is the default stream of a thread on `cpu`, the
 * call of that thread that is computing returns CANCELLED, and the stream stays usable. If none is computing, nothing
 * happens.
 *
 * Threads: any thread. For a default stream of `cpu` the function is safe in a signal handler.
 * Errors:  UNSUPPORTED  the device cannot cancel work
 */
COMPUTE_API compute_error* compute_stream_cancel(compute_stream* stream);
/*
 * Calls `callback` once when all work queued on `stream` before this call has finished. `error` is NULL if the work
 * succeeded, and is valid during the callback.
 *
 * Callbacks run one at a time, in the order of the calls of this function, on one thread of the library. Work that
 * never ends therefore delays all later callbacks, also those of other streams. A callback may queue work. It must not
 * wait for work and cannot call compute_shutdown. It does not run if the process ends before the work does.
 */
typedef void (*compute_stream_callback)(compute_borrowed_error error, void* user_data);
COMPUTE_API compute_error* compute_stream_notify(compute_stream* stream, compute_stream_callback callback,
                                                 void* user_data);

/* Records an event, which happens when the work queued on `stream` so far has finished. `options` may be NULL. With
 * COMPUTE_EVENT_TIMED the device records the time, and the event keeps the stream alive; UNSUPPORTED if the device has
 * no times. INVALID_ARGUMENT while the stream records a graph. */
COMPUTE_API compute_error* compute_event_record(compute_stream* stream, const compute_event_options* options,
                                                compute_event** out_event);
/* Orders later work on `stream` after the event. If the devices of the event and the stream have different plugins, the
 * calling thread waits for the event; otherwise it does not. */
COMPUTE_API compute_error* compute_event_wait(compute_event* event, compute_stream* stream);
/* Waits until the event has happened. Reports the failure of the work before it. */
COMPUTE_API compute_error* compute_event_synchronize(compute_event* event);
/* *out_finished is 1 if the event has happened, else 0. Never waits. Reports the failure of the work before it. */
COMPUTE_API compute_error* compute_event_query(compute_event* event, int32_t* out_finished);
/*
 * Returns the time from `start` to `end` in nanoseconds. It is negative if `end` happened first. Both events must be
 * timed. Waits for both, as compute_event_synchronize does. If both are on one device, the times are of its clock.
 * Otherwise, they are converted to the host's clock, and the result is only as exact as this conversion.
 *
 * Errors: INVALID_ARGUMENT  an event was recorded without COMPUTE_EVENT_TIMED
 *         STREAM_FAILED     the stream failed after the event, and its times are lost
 *         The error of the work before an event, if it failed
 */
COMPUTE_API compute_error* compute_event_elapsed(compute_event* start, compute_event* end, int64_t* out_ns);
COMPUTE_API void compute_event_retain(compute_event* event);
COMPUTE_API void compute_event_release(compute_event* event);

/* ---- Ops --------------------------------------------------------------------------------------------------------- */

/* Finds an op by name and version. Version 0 means the newest. The handle is valid until the process ends and is not
 * released. If no op has the name, the message of NOT_FOUND suggests the nearest name. */
COMPUTE_API compute_error* compute_op_find(const char* name, int32_t version, const compute_op** out_op);
/* Lists all ops in the order of their names. `capacity` and *out_count are as in compute_device_list. */
COMPUTE_API compute_error* compute_op_list(compute_op_info* infos, int64_t capacity, int64_t* out_count);
/*
 * Adds an op to this process. All functions on ops then accept it as any other op. If the plugin of a device has an op
 * of this name and version, the device runs that op. Other devices run a kernel whose language they support, or the
 * expression in one pass, or the composition. An op cannot be removed. The strings are copied.
 *
 * Errors: INVALID_ARGUMENT  the description is invalid; the name and version exist already; 4096 ops are registered
 *         UNSUPPORTED       a flag or field that is newer than this library
 */
COMPUTE_API compute_error* compute_op_register(const compute_op_registration* registration, const compute_op** out_op);
/* Returns the schema of an op. */
COMPUTE_API compute_error* compute_op_get_info(const compute_op* op, compute_op_info* out_info);

/*
 * Runs an op.
 *
 * The op runs on the device of `stream`. If `stream` is NULL, the op runs on the device of the operands that are not on
 * cpu, or on cpu if there are none. Operands that are not on cpu must all be on the device of the op; otherwise the
 * error is DEVICE_MISMATCH. Host tensors are mirrored on that device.
 *
 * outputs[i] is both input and output. If it is NULL, the op creates the output, and the caller owns it. Otherwise, the
 * op writes into the given tensor. That tensor must have exactly the shape and dtype of the result, and no two of its
 * elements may share memory. It may share memory with an input only if both are identical views and the op has the flag
 * COMPUTE_OP_IN_PLACE, as all elementwise ops have. Optional inputs may be NULL.
 *
 * A call of an op with the flag COMPUTE_OP_GROUPS may have k groups of operands: k tensors in place of each input of
 * the schema, all first inputs first, and k outputs in place of each output. Each group is computed as if by a call of
 * its own, but in as few submissions as the device can.
 *
 * On error the op has created no output. Given outputs are unchanged, unless part of the work was queued; see "Failures
 * of queued work".
 */
COMPUTE_API compute_error* compute_op_run(const compute_op* op, compute_stream* stream,
                                          const compute_attribute* attributes, int64_t attribute_count,
                                          compute_tensor* const* inputs, int64_t input_count, compute_tensor** outputs,
                                          int64_t output_count);
/*
 * States how the device would run the op on operands as described by `inputs` and `outputs`. Runs nothing.
 *
 * `outputs` describes the given outputs. An output that the op creates is COMPUTE_SPEC_ABSENT. `outputs` may have no
 * elements if the op creates them all. A given output is taken to share no memory with an input.
 *
 * Errors: INVALID_ARGUMENT  the call is invalid on every device, as for compute_op_run
 */
COMPUTE_API compute_error* compute_op_query(compute_device* device, const compute_op* op,
                                            const compute_attribute* attributes, int64_t attribute_count,
                                            const compute_tensor_spec* inputs, int64_t input_count,
                                            const compute_tensor_spec* outputs, int64_t output_count,
                                            compute_support* out_support);

/*
 * A plan is an op that is prepared for a device, for the dtypes, shapes and strides of the given operands, and for the
 * given attributes. A run of a plan is cheaper than compute_op_run, because it looks nothing up.
 *
 * compute_plan_create reads the operands but runs nothing and does not keep them. A NULL output means a row-major
 * output that the op creates.
 *
 * compute_plan_run accepts operands of the same dtypes, shapes and strides; others are INVALID_ARGUMENT. It runs on
 * `stream`, or on the default stream of the plan's device if `stream` is NULL. A stream of another device is
 * DEVICE_MISMATCH. `run_time` gives new values of run-time attributes (marked ! in compute_op_info.attributes) for this
 * run. Other run-time attributes have their values from compute_plan_create. A static attribute in `run_time` is
 * INVALID_ARGUMENT. `outputs` are as in compute_op_run.
 */
COMPUTE_API compute_error* compute_plan_create(compute_device* device, const compute_op* op,
                                               const compute_attribute* attributes, int64_t attribute_count,
                                               compute_tensor* const* inputs, int64_t input_count,
                                               compute_tensor* const* outputs, int64_t output_count,
                                               compute_plan** out_plan);
COMPUTE_API compute_error* compute_plan_run(compute_plan* plan, compute_stream* stream,
                                            const compute_attribute* run_time, int64_t run_time_count,
                                            compute_tensor* const* inputs, int64_t input_count,
                                            compute_tensor** outputs, int64_t output_count);
COMPUTE_API void compute_plan_retain(compute_plan* plan);
COMPUTE_API void compute_plan_release(compute_plan* plan);

/*
 * Parses an elementwise expression of named inputs and run-time scalars, such as "tanh(a*b + 1)". Semicolons separate
 * the outputs. docs/expressions.md lists the operators and functions. index(i) is the position along axis i. A syntax
 * error is INVALID_ARGUMENT; the message has a caret under the fault. The strings are copied.
 */
COMPUTE_API compute_error* compute_expression_parse(const char* text, const char* const* input_names,
                                                    int64_t input_count, const char* const* scalar_names,
                                                    int64_t scalar_count, compute_expression** out_expression);
COMPUTE_API int32_t compute_expression_input_count(const compute_expression* expression);
COMPUTE_API int32_t compute_expression_scalar_count(const compute_expression* expression);
COMPUTE_API int32_t compute_expression_output_count(const compute_expression* expression);
COMPUTE_API void compute_expression_retain(compute_expression* expression);
COMPUTE_API void compute_expression_release(compute_expression* expression);
/*
 * Derives an expression that computes gradients. L is a real number that depends on the outputs of `expression`. The
 * derived expression computes the gradient of L with respect to inputs of `expression`.
 *
 * `wanted` holds the `wanted_count` positions of these inputs. If it is NULL, all inputs are wanted. The inputs of
 * *out_gradient are the inputs of `expression`, then the gradient of L with respect to each output of `expression`. Its
 * scalars are those of `expression`. Its outputs are the gradients with respect to the wanted inputs, in the order of
 * `wanted`. They have the dtypes of these inputs and the broadcast shape. If an input was broadcast, sum its gradient
 * over the broadcast axes. The gradient with respect to a complex z = a + ib is dL/da + i dL/db. compute/intrinsics.def
 * lists the derivatives. *out_gradient can be passed to this function again.
 *
 * Errors: INVALID_ARGUMENT  no input is wanted, too many are, or a position is not that of an input. compute_map
 *                           returns it too, if a wanted input of a gradient is a scalar or has an integer or bool dtype
 */
COMPUTE_API compute_error* compute_expression_gradient(compute_expression* expression, const int32_t* wanted,
                                                       int64_t wanted_count, compute_expression** out_gradient);
/* Evaluates an expression in one pass over its inputs, which broadcast. `scalars` holds the values of the scalars, in
 * the order of compute_expression_parse. `outputs` and the choice of the device are as in compute_op_run. If the
 * expression has no inputs, no output may be NULL. */
COMPUTE_API compute_error* compute_map(compute_stream* stream, compute_expression* expression,
                                       compute_tensor* const* inputs, int64_t input_count,
                                       const compute_number* scalars, int64_t scalar_count, compute_tensor** outputs,
                                       int64_t output_count);
/* As compute_op_query, for compute_map. `scalars` have COMPUTE_SPEC_SCALAR, also without the flag. */
COMPUTE_API compute_error* compute_map_query(compute_device* device, compute_expression* expression,
                                             const compute_tensor_spec* inputs, int64_t input_count,
                                             const compute_tensor_spec* scalars, int64_t scalar_count,
                                             const compute_tensor_spec* outputs, int64_t output_count,
                                             compute_support* out_support);

/*
 * Evaluates an expression and reduces its values over axes, in one pass over its inputs.
 *
 * `before` is the expression. It has one output and at least one input that is not a scalar. It is evaluated at every
 * point of the broadcast shape of its inputs. `reduction` states how the values are combined: COMPUTE_REDUCTION_SUM,
 * _PROD, _MIN, _MAX, _ALL or _ANY, as in the ops of these names. options->after is an expression that is applied to
 * each combined value. It has one input and one output. `options` may be NULL. `scalars` holds the scalars of `before`,
 * then those of `after`. *output is both input and output, as outputs[0] in compute_op_run.
 *
 * The combined value has the dtype options->accumulator. If that is 0, the dtype is that of the op: int64 or uint64 for
 * a sum or product of integers, bool for all and any, otherwise the dtype of `before`. float16 and bfloat16 values are
 * combined in float32 and rounded once, after `after`. If there are no elements, the combined value is 0 (sum, any) or
 * 1 (prod, all); min and max are INVALID_ARGUMENT.
 */
typedef struct compute_reduce_options {
  uint32_t struct_size;
  uint32_t struct_type; /* COMPUTE_STRUCT_OP_OPTIONS or 0 */
  const void* next;
  const int64_t* axes;       /* the axes to reduce; a negative axis counts from the end; NULL: see axes_mask */
  int64_t axes_count;        /* number of axes in `axes` */
  uint64_t axes_mask;        /* without `axes`: bit i stands for axis i; 0: all axes. With `axes`: 0 */
  compute_expression* after; /* NULL: the result is the combined value */
  compute_dtype accumulator; /* dtype of the combined value; 0: as above */
  int32_t keepdims;          /* 1: the result keeps the reduced axes, with extent 1; 0: it does not */
} compute_reduce_options;
COMPUTE_API compute_error* compute_reduce(compute_stream* stream, compute_expression* before, int32_t reduction,
                                          const compute_reduce_options* options, compute_tensor* const* inputs,
                                          int64_t input_count, const compute_number* scalars, int64_t scalar_count,
                                          compute_tensor** output);
/* As compute_map_query, for compute_reduce. `output` describes the given output. It is NULL if the op creates it. */
COMPUTE_API compute_error* compute_reduce_query(compute_device* device, compute_expression* before, int32_t reduction,
                                                const compute_reduce_options* options,
                                                const compute_tensor_spec* inputs, int64_t input_count,
                                                const compute_tensor_spec* scalars, int64_t scalar_count,
                                                const compute_tensor_spec* output, compute_support* out_support);

/* ---- User kernels ------------------------------------------------------------------------------------------------ */

/*
 * Compiles a kernel, or loads one that is compiled. `language` is the name of the form of `source`, as "portable",
 * "cuda-c", "opencl-c", "ptx" or "cubin"; plugins can have further ones. docs/kernels.md describes them. `source_size`
 * is the size of `source` in bytes, or -1 if it is NUL-terminated. `name` is the name of the kernel function in
 * `source`. `options` may be NULL.
 *
 * Errors: COMPILE_FAILED  the message contains the compiler's log
 *         UNSUPPORTED     the device does not support the language
 */
COMPUTE_API compute_error* compute_kernel_compile(compute_device* device, const char* language, const void* source,
                                                  int64_t source_size, const char* name,
                                                  const compute_kernel_options* options, compute_kernel** out_kernel);
/*
 * Queues a run of a kernel. `stream` may be NULL. Tensor arguments must be on the device of the kernel; host tensors
 * are not mirrored. The library orders the run with other work by the `access` of each tensor argument.
 *
 * Errors: INVALID_ARGUMENT  a wrong number of arguments, an invalid argument or launch, a group that is too large
 *         OUT_OF_RANGE      the number of work-items does not fit in int64_t
 *         UNSUPPORTED       the stream records a graph
 *         DEVICE_MISMATCH   the stream or a tensor is on another device
 */
COMPUTE_API compute_error* compute_kernel_launch(compute_kernel* kernel, compute_stream* stream,
                                                 const compute_launch* launch, const compute_kernel_argument* arguments,
                                                 int64_t argument_count);
COMPUTE_API void compute_kernel_retain(compute_kernel* kernel);
COMPUTE_API void compute_kernel_release(compute_kernel* kernel);

/* ---- Graphs ------------------------------------------------------------------------------------------------------ */

/*
 * Starts recording. From now on, work queued on `stream` is recorded instead of run. The caller owns the outputs that
 * are created during the recording. They have no values before the first run of the graph. Until then, it is
 * INVALID_ARGUMENT to read, map, move or export them, or to use them in work that runs. While the stream records, host
 * operands other than scalars are errors. So are transfers on the stream, events of it and waits for it. Other streams
 * are unaffected.
 *
 * Errors: INVALID_ARGUMENT  the stream is recording already
 *         UNSUPPORTED       the stream is the default stream of its device
 */
COMPUTE_API compute_error* compute_graph_begin(compute_stream* stream, const compute_graph_options* options);
/* Ends the recording and creates the graph. If a call failed while it was recorded, this function returns the first
 * such error, and no graph. INVALID_ARGUMENT if the stream is not recording. */
COMPUTE_API compute_error* compute_graph_end(compute_stream* stream, compute_graph** out_graph);
/* Runs the graph as one submission, on any stream of its device. Runs of one graph are executed in the order of the
 * calls. DEVICE_MISMATCH if the stream is on another device. INVALID_ARGUMENT if the stream is recording. */
COMPUTE_API compute_error* compute_graph_run(compute_graph* graph, compute_stream* stream);
/* Sets the value of a slot for later runs of this graph. *value has the dtype of the slot and is copied.
 * INVALID_ARGUMENT if the graph does not use the slot. */
COMPUTE_API compute_error* compute_graph_set_slot(compute_graph* graph, compute_tensor* slot, const void* value);
/* Returns facts about the graph. */
COMPUTE_API compute_error* compute_graph_get_info(compute_graph* graph, compute_graph_info* out_info);
COMPUTE_API void compute_graph_retain(compute_graph* graph);
COMPUTE_API void compute_graph_release(compute_graph* graph);

/* ---- Groups of ranks --------------------------------------------------------------------------------------------- */

/*
 * A group is a set of ranks, numbered from 0, that exchange the contents of tensors. A rank is a process, or a device
 * of a process. Each rank has a handle of the group, for one device. Every rank calls the same collectives of a group
 * in the same order, with the same dtypes, shapes and arguments, unless stated otherwise.
 *
 * Between devices of one plugin that has a library for it, as CUDA with NCCL, the library exchanges the data. Otherwise
 * this library does, through host memory and the transport of the group. It combines the values in the order of the
 * ranks, float16 and bfloat16 in float32 with one rounding. All ranks then get the same bits, which depend neither on
 * the devices nor on the run. A vendor's library gives all ranks equal values.
 */

/*
 * Functions of a transport. They return 0, or another number if they fail. `rank` is of this transport. All memory is
 * host memory. The library keeps it valid until the request has ended; if the request fails or is given up, the library
 * never frees it. One thread at a time calls the functions of a transport, but `abort` may be called at any time.
 */
/* Starts an exchange. `dst` receives size_bytes bytes of each rank, in the order of the ranks, the caller included.
 * all_gather: `src` has size_bytes bytes; it may be the caller's part of `dst`. all_to_all: `src` has size_bytes bytes
 * for each rank. */
typedef int32_t (*compute_transport_exchange)(const void* src, void* dst, int64_t size_bytes, uint64_t* out_request,
                                              void* user_data);
/* Starts to send or receive size_bytes bytes. For a broadcast, `rank` is the rank that sends `data`; all others receive
 * it. Else it is the peer. Messages between two ranks arrive in the order in which they were sent. */
typedef int32_t (*compute_transport_transfer)(void* data, int64_t size_bytes, int32_t rank, uint64_t* out_request,
                                              void* user_data);
/* Sets *out_done to 1 and frees the request if it has ended; else sets it to 0. Never waits. Fails, and frees the
 * request, also if another rank has aborted or is gone. With request 0 it only looks for such a rank. */
typedef int32_t (*compute_transport_progress)(uint64_t request, int32_t* out_done, void* user_data);
struct compute_transport;
/* Makes a transport of the ranks that pass the same color, in the order of `key` and then of the ranks. All ranks call
 * it. May wait for them. The library sets struct_size, struct_type and next of *out_transport; the function leaves
 * these, and writes fields within struct_size bytes only. */
typedef int32_t (*compute_transport_split)(int32_t color, int32_t key, struct compute_transport* out_transport,
                                           void* user_data);
/* Ends the requests of the other ranks, whose `describe` then includes `reason`. Does not wait. */
typedef void (*compute_transport_abort)(const char* reason, void* user_data);
/* The transport is used no longer. Requests that have not ended are given up. */
typedef void (*compute_transport_close)(void* user_data);
/* Describes the last failure, on the thread that saw it; or the transport, if none has failed. The text is valid until
 * the thread calls a function of the transport again. */
typedef const char* (*compute_transport_describe)(void* user_data);

/* A transport of bytes between the ranks of a group. `split` and `describe` may be NULL. */
typedef struct compute_transport {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int32_t rank; /* of the caller */
  int32_t size; /* number of ranks */
  void* user_data;
  compute_transport_exchange all_gather;
  compute_transport_exchange all_to_all;
  compute_transport_transfer broadcast;
  compute_transport_transfer send;
  compute_transport_transfer recv;
  compute_transport_progress progress;
  compute_transport_split split;
  compute_transport_abort abort;
  compute_transport_close close;
  compute_transport_describe describe;
} compute_transport;

/* Options of a group. All ranks pass the same. */
typedef struct compute_group_options {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int64_t timeout_ns; /* how long a call waits for the other ranks; 0: as the setting COMPUTE_COLLECTIVE_TIMEOUT says */
  uint32_t flags;     /* no flags are defined yet */
  int32_t reserved;
} compute_group_options;

/* Options of a collective. All ranks pass the same. */
typedef struct compute_collective_options {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint32_t flags; /* COMPUTE_COLLECTIVE_ */
  int32_t reserved;
} compute_collective_options;

/*
 * Creates a group over a transport. All ranks of the transport call it; it waits for them. A NULL transport makes a
 * group of one rank. `options` may be NULL.
 *
 * Ownership: `transport` is copied. The library calls `close` once, when it no longer uses the transport. On error the
 *            transport stays the caller's, and `close` is not called.
 * Errors:    INVALID_ARGUMENT  a rank that is not below the size; a function is NULL
 *            PEER_FAILED       another rank failed
 */
COMPUTE_API compute_error* compute_group_create(const compute_transport* transport, compute_device* device,
                                                const compute_group_options* options, compute_group** out_group);
/*
 * Creates a group of all processes of an MPI program (MPI_COMM_WORLD). The processes were started by mpiexec, or by
 * `compute run`. Uses the MPI library that the process has loaded, else MPICH, Open MPI or another one with the ABI of
 * MPI 5. Initializes it if the program has not done so. In a process that no launcher started, the group has one rank.
 * `options` may be NULL.
 *
 * Errors: NOT_FOUND    no MPI library; the message lists the names that were tried
 *         UNSUPPORTED  the program initialized MPI without MPI_THREAD_MULTIPLE
 *         PEER_FAILED  another rank failed
 */
COMPUTE_API compute_error* compute_group_create_mpi(compute_device* device, const compute_group_options* options,
                                                    compute_group** out_group);
/* Creates a group of devices of this process: rank i is devices[i]. Writes `count` handles to out_groups; on error all
 * are NULL. Call the collectives of different ranks on different threads, because a call may wait for the other ranks.
 * A device may occur several times; its ranks then need streams of their own. `options` may be NULL. */
COMPUTE_API compute_error* compute_group_create_all(compute_device* const* devices, int64_t count,
                                                    const compute_group_options* options, compute_group** out_groups);
/* Creates a group of the ranks that pass the same `color`, which is not negative, in the order of `key` and then of the
 * ranks. All ranks of the group call it. UNSUPPORTED if the transport cannot be split. */
COMPUTE_API compute_error* compute_group_split(compute_group* group, int32_t color, int32_t key,
                                               compute_group** out_group);
COMPUTE_API int32_t compute_group_rank(const compute_group* group);
COMPUTE_API int32_t compute_group_size(const compute_group* group);
COMPUTE_API compute_device* compute_group_device(const compute_group* group); /* borrowed */
/* What carries the data, as "nccl 2.27.3, MPI (MPICH 5.0.2)"; borrowed. */
COMPUTE_API const char* compute_group_description(const compute_group* group);
/* Ends the group on all ranks. Calls in progress end, and they and all later ones fail with PEER_FAILED. */
COMPUTE_API compute_error* compute_group_abort(compute_group* group);
COMPUTE_API void compute_group_retain(compute_group* group);
/* The last release waits for the calls of the group that are queued. */
COMPUTE_API void compute_group_release(compute_group* group);

/*
 * Collectives. Tensors are on the device of the group, and `stream` is a stream of it or NULL. The work is in the order
 * of the stream, and the library tracks it as it does ops. The call waits for the work of the other ranks on a default
 * stream of `cpu`, and on devices whose plugin cannot wait for the host. *out_y is a new row-major tensor. `_into`
 * writes into `y`, which has exactly the shape and dtype of the result, and may be identical to `x` for all_reduce and
 * broadcast. `options` may be NULL. Scalars are no operands.
 *
 * A failure of a rank, or a disagreement between ranks, ends the group: the work that waits for it fails on all ranks,
 * and so do all later calls of the group. Other work goes on. The message names the rank, the collective and the number
 * of the call, counted from 1. A wait for other ranks ends after COMPUTE_COLLECTIVE_TIMEOUT seconds. With
 * COMPUTE_COLLECTIVE_CHECK=1 the ranks compare each call before they exchange data.
 *
 * A graph can contain the collectives that the vendor's library makes, and retains their group. Each run of the graph
 * is a call of each of them. If a run fails, the group ends.
 *
 * Errors: INVALID_ARGUMENT  a reduction that the dtype does not have; a shape that does not fit; an unknown rank
 *         DEVICE_MISMATCH   a tensor or the stream is not on the device of the group
 *         UNSUPPORTED       the stream records a graph, and the data would go through the host
 *         PEER_FAILED       another rank failed, is gone, or called something else; the group has ended
 */

/* y has the shape of x: element by element, x of all ranks combined by `reduction`, one of COMPUTE_REDUCTION_ without
 * ALL and ANY. */
COMPUTE_API compute_error* compute_group_all_reduce(compute_stream* stream, compute_group* group, compute_tensor* x,
                                                    int32_t reduction, const compute_collective_options* options,
                                                    compute_tensor** out_y);
COMPUTE_API compute_error* compute_group_all_reduce_into(compute_stream* stream, compute_group* group,
                                                         compute_tensor* x, int32_t reduction,
                                                         const compute_collective_options* options, compute_tensor* y);
/* Axis 0 of x is divided into as many equal parts as there are ranks. y is the part of the caller's rank of what
 * all_reduce gives. */
COMPUTE_API compute_error* compute_group_reduce_scatter(compute_stream* stream, compute_group* group, compute_tensor* x,
                                                        int32_t reduction, const compute_collective_options* options,
                                                        compute_tensor** out_y);
COMPUTE_API compute_error* compute_group_reduce_scatter_into(compute_stream* stream, compute_group* group,
                                                             compute_tensor* x, int32_t reduction,
                                                             const compute_collective_options* options,
                                                             compute_tensor* y);
/* y is x of all ranks, joined along axis 0 in the order of the ranks. An x of rank 0 counts as one of shape [1]. */
COMPUTE_API compute_error* compute_group_all_gather(compute_stream* stream, compute_group* group, compute_tensor* x,
                                                    const compute_collective_options* options, compute_tensor** out_y);
COMPUTE_API compute_error* compute_group_all_gather_into(compute_stream* stream, compute_group* group,
                                                         compute_tensor* x, const compute_collective_options* options,
                                                         compute_tensor* y);
/* y is x of the rank `root`. On other ranks only the shape and dtype of x count. */
COMPUTE_API compute_error* compute_group_broadcast(compute_stream* stream, compute_group* group, compute_tensor* x,
                                                   int32_t root, const compute_collective_options* options,
                                                   compute_tensor** out_y);
COMPUTE_API compute_error* compute_group_broadcast_into(compute_stream* stream, compute_group* group, compute_tensor* x,
                                                        int32_t root, const compute_collective_options* options,
                                                        compute_tensor* y);
/* Axis 0 of x is divided into as many equal parts as there are ranks. Part i of y is the part of the caller's rank of
 * x of rank i. */
COMPUTE_API compute_error* compute_group_all_to_all(compute_stream* stream, compute_group* group, compute_tensor* x,
                                                    const compute_collective_options* options, compute_tensor** out_y);
COMPUTE_API compute_error* compute_group_all_to_all_into(compute_stream* stream, compute_group* group,
                                                         compute_tensor* x, const compute_collective_options* options,
                                                         compute_tensor* y);
/* Sends x to the rank `peer`, which receives it into a tensor of the same dtype and shape. Only these two call. Two
 * ranks that send to each other must not both wait: one of them receives first. */
COMPUTE_API compute_error* compute_group_send(compute_stream* stream, compute_group* group, compute_tensor* x,
                                              int32_t peer, const compute_collective_options* options);
COMPUTE_API compute_error* compute_group_recv(compute_stream* stream, compute_group* group, compute_dtype dtype,
                                              int32_t rank, const int64_t* shape, int32_t peer,
                                              const compute_collective_options* options, compute_tensor** out_y);
COMPUTE_API compute_error* compute_group_recv_into(compute_stream* stream, compute_group* group, compute_tensor* y,
                                                   int32_t peer, const compute_collective_options* options);
/* Waits on the host until all ranks have called it, and until the earlier calls of the group have finished. */
COMPUTE_API compute_error* compute_group_barrier(compute_group* group);

#ifdef __cplusplus
}
#endif

#if defined(__clang__) && !defined(__cplusplus)
#pragma clang diagnostic pop
#endif

#include "compute/ops.h"

#endif /* COMPUTE_COMPUTE_H_ */
