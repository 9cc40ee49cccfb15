/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin.h: the interface between the compute core and a device plugin, in C11.
 *
 * A plugin includes no other header of this project and links none of its symbols.
 *
 * A plugin is a shared library. It exports compute_plugin_query and one compute_plugin_open per interface version that
 * it supports, and hides all other symbols. compute_plugin_query and the first fields of the manifest are the same in
 * all versions. The functions of version 1 are:
 *
 *   const compute_plugin_manifest* compute_plugin_query(void);
 *   compute_error* compute_plugin_open(uint32_t interface_version, const compute_plugin_core* core,
 *                                      const compute_plugin_table** out_table);
 *
 * The smallest useful plugin fills the slots that are not optional, about twenty, and implements five ops: map, copy,
 * reduce, gather and scatter. Core does the rest: handles and reference counts, argument checks, dtype promotion,
 * broadcasting, views, memory pools, hazards between streams, mirrors, graph replay, and the decomposition of every
 * other op into these five. `compute-cts --plugin FILE` tests a plugin. docs/writing-a-plugin.md is a tutorial.
 *
 * Terms:
 *
 * - Core is the library libcompute. A program calls core through compute.h. Core calls the plugin through this header.
 * - A table is a struct of function pointers. A slot is one of these pointers.
 * - A plan is an op that is prepared for given dtypes, shapes and strides. It can be run many times.
 * - An operand is the place of a tensor in memory: a buffer and an offset.
 * - A heap is a kind of memory of a device.
 * - A mark announces a number on a stream. When the stream has reached the mark, all work that was submitted before the
 *   mark has finished.
 * - A fault is an error that a kernel detects in the data, such as an index out of range.
 * - A refusal states that the plugin does not support an op, and why. It is not an error.
 *
 * The following rules hold for every function, unless its comment says otherwise.
 *
 * - Numbers. The interface uses fixed-width integers, doubles and pointers.
 * - Handles. A plugin names its objects (devices, streams, buffers, plans, kernels, graphs, host waits, semaphores,
 *   groups) by uint64_t handles of its choice. Core passes them back unchanged. A handle is never 0. A buffer handle of
 *   0 means that there is no buffer. compute_plugin_device_info.id is not a handle and may be 0.
 * - Structs. A sized struct begins with struct_size, struct_type and next. The side that fills the struct sets
 *   struct_size to the size that it was compiled with. The side that reads it reads at most that many bytes, and reads
 *   missing trailing fields as zero. No struct is larger than 65536 bytes. Some structs are answers: core sets
 *   struct_size and the plugin fills the other fields. The plugin then writes at most struct_size bytes, and does not
 *   change the first three fields. Core passes structs of at least their size in version 1. It refuses a struct that is
 *   smaller than COMPUTE_PLUGIN_…_SIZE_1, its size in version 1. All elements of an array of sized structs have the
 *   same struct_size, which is the distance between elements. A struct marked "fixed layout" has no struct_size and
 *   never changes. No struct is passed by value.
 * - Tables. A table begins with its size. It is const and stays valid until the plugin is closed. Core copies each
 *   table, including those of extensions, into a table of its own that is set to zero before. New slots are added at
 *   the end only. A slot must be filled unless its comment says that it is optional. The comment of an optional slot
 *   says what NULL means.
 * - Later versions of this header. A slot that is added is optional. A field that is added at the end of a struct never
 *   changes the meaning of the fields before it. A change that the other side must understand comes as a flag in bits
 *   16 to 31, as a `next` entry with the bit COMPUTE_STRUCT_MUST_UNDERSTAND, or as a new version of an op. An attribute
 *   that is added to an op is passed only if it differs from its default. A run-time attribute is added only with a new
 *   version of the op. A plugin learns what core knows from core->table_size and core->core_version alone.
 * - Unknown `next` entries. The reader skips an entry whose struct_type it does not know, unless the type has the bit
 *   COMPUTE_STRUCT_MUST_UNDERSTAND. A chain has at most 64 entries.
 * - Unknown flags. The reader ignores unknown flags in bits 0 to 15.
 * - What must be understood. For an unknown entry with the bit COMPUTE_STRUCT_MUST_UNDERSTAND, and for an unknown flag
 *   in bits 16 to 31, a plugin returns the error UNSUPPORTED, also from op_query and op_prepare, where core treats this
 *   error as a refusal with the reason NOT_IMPLEMENTED. Core refuses such a struct of a plugin with PLUGIN_REJECTED.
 * - Other unknown content. A plugin refuses an op whose name or version it does not know, and an op with more tensors
 *   or expressions than it knows, with COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED. It refuses an attribute whose name or
 *   value it does not know with COMPUTE_PLUGIN_REFUSE_ATTRIBUTE. In an expression, it refuses an unknown kind of node
 *   with COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, an unknown dtype with COMPUTE_PLUGIN_REFUSE_DTYPE, and an unknown
 *   intrinsic with COMPUTE_PLUGIN_REFUSE_INTRINSIC. Core treats a device of an unknown kind as an accelerator, a
 *   setting of an unknown kind as TEXT, and an unknown error code as INTERNAL.
 * - Errors. A function returns NULL, or an error made by core->error_new. Core owns the returned error and frees it. A
 *   plugin returns each error once. Comments name error codes without the prefix COMPUTE_ERROR_. A refusal of an op,
 *   and an answer that something is not supported, are not errors. If a function returns an error, core ignores its
 *   answer, and a refusal in the same call. After CONTEXT_LOST or DEVICE_LOST, functions of the device may
 *   still be called, such as stream_sync, mark_time and `clock`; they return the error.
 * - Out-parameters. Core sets every out-parameter before the call. It ignores them if the function returns an error,
 *   except *out_reached.
 * - Exceptions. A function of a plugin throws no exceptions into core, also not in a callback. It does not print, abort
 *   or exit. Core reports an exception as PLUGIN_REJECTED.
 * - Pointers. A pointer to an array may be NULL if the array has no elements. This holds in both directions.
 * - Text is UTF-8. Core accepts texts of at most 1 MiB.
 * - Ownership. Memory never changes owner. Data that a plugin returns is const and valid until the plugin is closed, or
 *   is passed to a callback that copies it. Data that core passes in is valid during the call only, unless stated
 *   otherwise.
 * - Threads. Core calls the functions of one stream from one thread at a time: stream_destroy, stream_mark, stream_wait
 *   (which counts for both streams), stream_wait_host, stream_handle, the slots that submit work, semaphore_signal and
 *   semaphore_wait. stream_reached, stream_sync, stream_cancel and mark_time may run at the same time as any other call
 *   on the stream, but not after stream_destroy has been called. They must not wait for such a call. All other
 *   functions may be called from any number of threads at once. A function that makes a context of the vendor's library
 *   current on the calling thread makes the earlier one current again before it returns: the program may use the
 *   library too.
 * - Floating-point environment. Core calls a plugin in the default environment: round to nearest, no traps, subnormals
 *   kept. Threads that a plugin starts inherit it. A plugin may raise exception flags and change errno. Core restores
 *   both for its caller.
 * - The core table is valid until the process ends. Its functions may be called from any thread, including threads of
 *   the vendor's driver. They never call the plugin.
 * - Initialization. compute_plugin_query calls no driver. compute_plugin_open and enumerate create no context and
 *   allocate no device memory. Core can first call them, and `list` of the extension for ops, in another process, to
 *   find out whether they crash; core ends that process without a call of `close` if they take too long. op_prepare may
 *   initialize, compile and allocate. plan_run does not initialize or compile. It does not wait or allocate device
 *   memory either, unless the plan has the flag COMPUTE_PLUGIN_PLAN_NOT_CAPTURABLE.
 */
#ifndef COMPUTE_PLUGIN_H_
#define COMPUTE_PLUGIN_H_

#include <stdint.h>

#if UINTPTR_MAX != UINT64_MAX
#error "plugin.h is for machines with 64-bit pointers"
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

/* ---- Versions ---------------------------------------------------------------------------------------------------- */

/*
 * The interface version of this header. An incompatible change gets a new number and a new entry point, such as
 * compute_plugin_open2. Core looks for the entry point of the newest version that both sides support.
 *
 * COMPUTE_PLUGIN_DRAFT is 0 in a released interface. Before the release of a later one it is not 0, and core accepts
 * only plugins of the same draft of it.
 */
#define COMPUTE_PLUGIN_INTERFACE 1u
#define COMPUTE_PLUGIN_DRAFT 0u

/* The maximum rank of a tensor in an op. It is larger than COMPUTE_MAX_RANK of compute.h, which is 32, because
 * decompositions add axes. */
#define COMPUTE_PLUGIN_MAX_RANK 40

/* True if a sized struct that the other side made is large enough for the field. */
#define COMPUTE_PLUGIN_HAS(object, field) \
  ((object)->struct_size >= (uint64_t)((const char*)&(object)->field - (const char*)(object)) + sizeof((object)->field))

#if defined(_WIN32)
#define COMPUTE_PLUGIN_EXPORT __declspec(dllexport)
#else
#define COMPUTE_PLUGIN_EXPORT __attribute__((visibility("default")))
#endif

/* Struct types. */
enum COMPUTE_UNDERLYING(uint32_t) {
  COMPUTE_PLUGIN_STRUCT_MANIFEST = 1001,
  COMPUTE_PLUGIN_STRUCT_ERROR_INFO = 1002,
  COMPUTE_PLUGIN_STRUCT_DEVICE_INFO = 1003,
  COMPUTE_PLUGIN_STRUCT_PROPERTY = 1004,
  COMPUTE_PLUGIN_STRUCT_REQUIREMENT = 1005,
  COMPUTE_PLUGIN_STRUCT_DEVICE_OPTIONS = 1006,
  COMPUTE_PLUGIN_STRUCT_CAPS = 1007,
  COMPUTE_PLUGIN_STRUCT_HEAP = 1008,
  COMPUTE_PLUGIN_STRUCT_STREAM_OPTIONS = 1009,
  COMPUTE_PLUGIN_STRUCT_EXPRESSION = 1010,
  COMPUTE_PLUGIN_STRUCT_TENSOR = 1011,
  COMPUTE_PLUGIN_STRUCT_OP = 1012,
  COMPUTE_PLUGIN_STRUCT_REFUSAL = 1013,
  COMPUTE_PLUGIN_STRUCT_PLAN_INFO = 1014,
  COMPUTE_PLUGIN_STRUCT_RUN = 1015,
  COMPUTE_PLUGIN_STRUCT_KERNEL_SOURCE = 1016,
  COMPUTE_PLUGIN_STRUCT_KERNEL_INFO = 1017,
  COMPUTE_PLUGIN_STRUCT_LAUNCH = 1018,
  COMPUTE_PLUGIN_STRUCT_IMPORT = 1019,
  COMPUTE_PLUGIN_STRUCT_ALLOCATION = 1020,
  COMPUTE_PLUGIN_STRUCT_QUERY_INFO = 1021,
  COMPUTE_PLUGIN_STRUCT_KERNEL_ARGUMENT = 1022,
  COMPUTE_PLUGIN_STRUCT_GRAPH_NODE = 1023,
  COMPUTE_PLUGIN_STRUCT_GRAPH = 1024,
  COMPUTE_PLUGIN_STRUCT_SETTING = 1025,
  COMPUTE_PLUGIN_STRUCT_TELEMETRY = 1026,
  COMPUTE_PLUGIN_STRUCT_VENDOR_OP = 1027,
  COMPUTE_PLUGIN_STRUCT_VENDOR_DTYPE = 1028,
  COMPUTE_PLUGIN_STRUCT_COLLECTIVE = 1029,
  COMPUTE_PLUGIN_STRUCT_MAPPING = 1030,
  COMPUTE_PLUGIN_STRUCT_PROCESS = 1031,
  COMPUTE_PLUGIN_STRUCT_GRAPH_RUN = 1032,
  COMPUTE_PLUGIN_STRUCT_EXTERNAL_REQUEST = 1033,
  COMPUTE_PLUGIN_STRUCT_GROUP_OPTIONS = 1034
};

/* Sizes in bytes, in version 1, of the structs that core reads. Core refuses smaller structs. */
#define COMPUTE_PLUGIN_MANIFEST_SIZE_1 160u
#define COMPUTE_PLUGIN_SETTING_SIZE_1 88u
#define COMPUTE_PLUGIN_ERROR_INFO_SIZE_1 56u
#define COMPUTE_PLUGIN_PROPERTY_SIZE_1 48u
#define COMPUTE_PLUGIN_DEVICE_INFO_SIZE_1 232u
#define COMPUTE_PLUGIN_REQUIREMENT_SIZE_1 120u
#define COMPUTE_PLUGIN_HEAP_SIZE_1 64u
#define COMPUTE_PLUGIN_REFUSAL_SIZE_1 56u
#define COMPUTE_PLUGIN_QUERY_INFO_SIZE_1 32u
#define COMPUTE_PLUGIN_PLAN_INFO_SIZE_1 48u
#define COMPUTE_PLUGIN_KERNEL_INFO_SIZE_1 24u
#define COMPUTE_PLUGIN_CAPS_SIZE_1 40u
#define COMPUTE_PLUGIN_TELEMETRY_SIZE_1 48u
#define COMPUTE_PLUGIN_PROCESS_SIZE_1 32u
#define COMPUTE_PLUGIN_VENDOR_OP_SIZE_1 152u
#define COMPUTE_PLUGIN_VENDOR_DTYPE_SIZE_1 40u

/* compute_plugin_setting.kind: the type of the value. Core takes an unknown kind for TEXT. */
enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_PLUGIN_SETTING_TEXT = 1,
  COMPUTE_PLUGIN_SETTING_FLAG = 2,    /* 1 or 0; also true, yes, on, false, no, off */
  COMPUTE_PLUGIN_SETTING_INTEGER = 3, /* an integer in the range that `choices` gives */
  COMPUTE_PLUGIN_SETTING_BYTES = 4,   /* a number of bytes, as 4G or 512M; or a part of the device's memory, as 30% */
  COMPUTE_PLUGIN_SETTING_CHOICE = 5,  /* one of `choices` */
  COMPUTE_PLUGIN_SETTING_WORDS = 6,   /* some of `choices`, separated by commas */
  COMPUTE_PLUGIN_SETTING_PATH = 7,    /* the path of a file that the plugin loads */
  COMPUTE_PLUGIN_SETTING_PATHS = 8    /* several paths, separated by colons */
};

/* compute_plugin_setting.flags */
enum COMPUTE_UNDERLYING(uint32_t) {
  COMPUTE_PLUGIN_SETTING_OF_DEVICE = 1 /* a device setting; a selector can set it, as in acme0+mode=fast */
};

/*
 * A setting of the plugin. Its value comes from a flag, the environment or a config file. Core checks the value.
 *
 * A plugin declares settings in this struct, in its JSON manifest, or in both. Core knows the settings of the JSON
 * manifest before it loads the plugin. It knows the settings of this struct only after it has called
 * compute_plugin_query. Until then, flags and config files cannot set them.
 *
 * A device setting has one value for each device. This is the value in the selector of the device if there is one,
 * otherwise the global value of the setting. device_open receives the value for its device. core->setting returns the
 * global value. A setting of kind PATH or PATHS cannot be a device setting.
 */
typedef struct compute_plugin_setting {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  compute_string name;    /* COMPUTE_, the plugin's name in capital letters, '_' and a rest, as in COMPUTE_ACME_MODE */
  int32_t kind;           /* COMPUTE_PLUGIN_SETTING_ */
  uint32_t flags;         /* COMPUTE_PLUGIN_SETTING_OF_DEVICE or 0 */
  compute_string choices; /* CHOICE, WORDS: words in lower case, "fast exact"; INTEGER: minimum and maximum, "0 10" */
  compute_string default_value; /* may be empty */
  compute_string help;          /* one line; not empty */
} compute_plugin_setting;

/* compute_plugin_manifest.flags: no flags are defined yet. */

/* The description of a plugin. It is static data. */
typedef struct compute_plugin_manifest {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint32_t interface_min; /* oldest interface version that the plugin supports */
  uint32_t interface_max; /* newest interface version that the plugin supports */
  uint32_t draft;         /* COMPUTE_PLUGIN_DRAFT; ignored unless interface_max is the negotiated version */
  uint32_t flags;
  compute_string name;    /* letters and '_' only; core names the devices by it (acme0, acme1); not auto or gpu */
  compute_string version; /* version of the plugin */
  compute_string vendor;
  compute_string license; /* SPDX identifier */
  compute_string url;
  compute_string build_id;  /* different for each build */
  compute_string sanitizer; /* "", "address", "thread" or "memory"; core refuses one that the process does not use */
  int32_t priority;         /* for `auto`: among devices of one kind, a higher priority wins; 0 is normal */
  int32_t setting_count;
  const compute_plugin_setting* settings; /* if the JSON manifest declares the same setting, that declaration wins */
} compute_plugin_manifest;

/* ---- The core table ---------------------------------------------------------------------------------------------- */

typedef struct compute_plugin_error_info {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  compute_error_code code;
  int32_t argument;       /* position of the operand at fault, or -1; operands are the inputs, then the outputs */
  int64_t native_code;    /* the vendor's error code */
  compute_string message; /* one line that states the values; a compiler log can follow on further lines */
  compute_error* cause;   /* the error that caused this one, or NULL; the new error owns it */
} compute_plugin_error_info;

/* Receives a blob from core's store; see compute_plugin_core.blob_load, which passes on its `context`. */
typedef void (*compute_plugin_take_blob)(void* context, const void* data, int64_t size_bytes);

/* The functions of core that a plugin may call. compute_plugin_open receives this table. */
typedef struct compute_plugin_core {
  int64_t table_size;
  uint32_t interface_newest; /* newest interface version that core supports */
  uint32_t core_version;     /* major << 16 | minor << 8 | patch */
  /* Makes an error. Never returns NULL. If there is not enough memory, it returns a static error with the code
   * OUT_OF_MEMORY. */
  compute_error* (*error_new)(const compute_plugin_error_info* info);
  /* Frees an error that the plugin made and does not return. */
  void (*error_free)(compute_error* error);
  compute_error_code (*error_code)(const compute_error* error);
  /* Writes a message to the log: one line, without a newline at its end. `level` is one of COMPUTE_LOG_. `category` is
   * load, select, place, copy, compile, memory or error. */
  void (*log)(int32_t level, const char* category, int64_t category_size, const char* text, int64_t text_size);
  /*
   * Reads a setting. `name` is the name of its environment variable, as COMPUTE_CPU_ISA. Copies the first `capacity`
   * bytes of the value to `buffer`, without a NUL. Returns the size of the whole value, or -1 if the setting is unset
   * or empty.
   *
   * The value of a declared setting comes from a flag, the environment, a config file or the default. A setting that
   * was not declared is read from the environment only. In a privileged process (setuid), such a setting is unset.
   */
  int64_t (*setting)(const char* name, int64_t name_size, char* buffer, int64_t capacity);
  /*
   * A store of blobs on disk, such as compiled kernels. All processes of the user share it, and blobs survive the
   * process. Core chooses the folder, limits its size and removes the blobs that were not used for the longest time.
   *
   * `key` is any sequence of bytes. It must name everything that the blob depends on, and begin with the name of the
   * plugin, because all plugins share the store. Names of settings: COMPUTE_CACHE_DIR, COMPUTE_CACHE_LIMIT.
   *
   * blob_load calls `take` with the bytes, which are valid during that call, and returns 1. If there is no such blob,
   * or the store cannot be trusted, it returns 0. blob_store replaces the blob with this key. If it cannot store the
   * blob, it does nothing.
   */
  int32_t (*blob_load)(const void* key, int64_t key_size, compute_plugin_take_blob take, void* context);
  void (*blob_store)(const void* key, int64_t key_size, const void* data, int64_t size_bytes);
} compute_plugin_core;

/* ---- Enumeration ------------------------------------------------------------------------------------------------- */

/* An additional property of a device, as text. `compute info` shows it. The name is in snake_case. */
typedef struct compute_plugin_property {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  compute_string name;
  compute_string value;
} compute_plugin_property;

/* The description of a device. The plugin makes it without creating a context. */
typedef struct compute_plugin_device_info {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint64_t id;                /* chosen by the plugin; different for each device, may be 0; passed to device_open */
  compute_string description; /* the vendor's name of the model */
  compute_string vendor;      /* the name of the vendor */
  compute_string driver_version;
  compute_string pci_address; /* dddd:bb:dd.f in lower case, or "" if unknown; core numbers devices in this order */
  compute_string uuid;        /* "" if unknown */
  compute_string libraries;   /* vendor libraries in use, one per line: name, version, path */
  int64_t memory_bytes;       /* -1 if unknown */
  int32_t kind;               /* COMPUTE_DEVICE_KIND_ */
  int32_t score;              /* for `auto`: among devices of one kind and priority, a higher score wins */
  /* If the plugin numbers its devices per platform, as OpenCL does, this is the platform of the device, 1 or higher;
   * otherwise 0. In names of devices core counts the platforms that have devices from 0, as in opencl0:1. */
  int32_t platform_index;
  int32_t property_count;
  const compute_plugin_property* properties;
  const uint32_t* dtypes;  /* element i: COMPUTE_DTYPE_LEVEL_ of dtype i. Further dtypes are not supported */
  int32_t dtype_count;     /* number of elements of `dtypes` */
  int32_t subnormals;      /* COMPUTE_SUBNORMALS_ */
  compute_string unusable; /* the reason why the device cannot be opened, or "" */
  compute_string platform; /* names of the platform, one per line, for selectors (opencl@platform~pocl); may be "" */
  /* Limits of kernels. 0: unknown. */
  int32_t subgroup_size_min;  /* number of work-items that run in lockstep (CUDA: a warp), at least */
  int32_t subgroup_size_max;  /* the same, at most */
  int64_t local_memory_bytes; /* memory that the work-items of a group can share */
  int64_t argument_bytes;     /* size of all arguments of a kernel */
  int32_t max_group_size;     /* number of work-items of a group */
  int32_t atomic_alignment;   /* bytes: an atomic operation on a smaller element accesses the aligned word around it */
} compute_plugin_device_info;

/* compute_plugin_requirement.state */
enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_PLUGIN_LIBRARY_NOT_SEARCHED = 0, /* the plugin has not looked for it yet */
  COMPUTE_PLUGIN_LIBRARY_FOUND = 1,
  COMPUTE_PLUGIN_LIBRARY_MISSING = 2,
  COMPUTE_PLUGIN_LIBRARY_UNUSABLE = 3 /* found, but too old or damaged */
};

/* A library or driver that the plugin loads at run time. The load report shows it. */
typedef struct compute_plugin_requirement {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  compute_string name;   /* name of the library, as cuBLAS */
  compute_string tried;  /* names and paths tried, one per line */
  compute_string found;  /* path and version; "" if not found */
  compute_string error;  /* the system's message */
  compute_string effect; /* what does not work without the library */
  compute_string remedy; /* how to install the library */
  int32_t required;      /* 1: the plugin has no devices without the library; otherwise 0 */
  int32_t state;         /* COMPUTE_PLUGIN_LIBRARY_ */
} compute_plugin_requirement;

/* Receives the results of enumerate. Both functions copy their argument. */
typedef struct compute_plugin_sink {
  int64_t table_size;
  void* context; /* the first argument of both functions */
  void (*device)(void* context, const compute_plugin_device_info* info);
  void (*requirement)(void* context, const compute_plugin_requirement* requirement);
} compute_plugin_sink;

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

/* compute_plugin_heap.flags */
enum COMPUTE_UNDERLYING(uint32_t) {
  COMPUTE_PLUGIN_HEAP_HOST_VISIBLE = 1, /* memory_map can map the memory */
  /* The host addresses the memory: memory_allocate also returns an address, which is valid until memory_free. Core
   * reads and writes the memory there, without memory_map. The memory is coherent: each side sees what the other has
   * written once the work has ended or before it is submitted. */
  COMPUTE_PLUGIN_HEAP_HOST_SPACE = 2,
  /* The memory is page-locked. Core uses a heap that is also HOST_SPACE for transfers and fault records. */
  COMPUTE_PLUGIN_HEAP_PINNED = 4
};

/* compute_plugin_heap.role: what the memory is best for. Core treats ANY, DEVICE and SHARED alike. It stages transfers
 * in heaps for UPLOAD and READBACK, if they are PINNED and HOST_SPACE. */
enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_PLUGIN_HEAP_ROLE_ANY = 0,      /* not stated */
  COMPUTE_PLUGIN_HEAP_ROLE_DEVICE = 1,   /* tensors and temporaries */
  COMPUTE_PLUGIN_HEAP_ROLE_UPLOAD = 2,   /* the host writes, the device reads; the host may read slowly */
  COMPUTE_PLUGIN_HEAP_ROLE_READBACK = 3, /* the device writes, the host reads */
  COMPUTE_PLUGIN_HEAP_ROLE_SHARED = 4    /* both sides read and write at full speed */
};

/* compute_plugin_heap.suballocation */
enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_PLUGIN_SUBALLOCATE_NONE = 0,  /* one tensor per allocation; only its views use offsets */
  COMPUTE_PLUGIN_SUBALLOCATE_OFFSET = 1 /* tensors may share an allocation, at multiples of offset_alignment */
};

/* A kind of memory of a device. */
typedef struct compute_plugin_heap {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint32_t flags;               /* COMPUTE_PLUGIN_HEAP_ */
  int32_t suballocation;        /* COMPUTE_PLUGIN_SUBALLOCATE_ */
  int64_t size_bytes;           /* -1 if unknown */
  int64_t max_allocation_bytes; /* 0 or -1 if there is no known limit; core refuses larger ones and names the limit */
  int64_t offset_alignment;     /* bytes, a power of two; core uses at least 64, also for 0 */
  /* Alignment of the first byte of every allocation: bytes, a power of two, in the first heap at least 64. 0 means
   * 64. */
  int64_t base_alignment;
  int32_t role; /* COMPUTE_PLUGIN_HEAP_ROLE_ */
  int32_t reserved;
} compute_plugin_heap;

/* compute_plugin_allocation.flags: no flags are defined yet. */

/* A request for memory. */
typedef struct compute_plugin_allocation {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int32_t heap; /* index into compute_plugin_caps.heaps */
  uint32_t flags;
  int64_t size_bytes; /* > 0; a multiple of 64, unless that is more than max_allocation_bytes */
} compute_plugin_allocation;

/* compute_plugin_mapping.flags: no flags are defined yet. */

/* A range of memory that is mapped into the host's address space. */
typedef struct compute_plugin_mapping {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint64_t buffer;
  int64_t offset_bytes;
  int64_t size_bytes;
  int32_t heap;   /* the heap of the buffer */
  int32_t access; /* of the host: COMPUTE_PLUGIN_ACCESS_ */
  uint32_t flags;
  int32_t reserved;
} compute_plugin_mapping;

/* Memory to import: device memory of another library, or memory that a program lends for tensors. */
typedef struct compute_plugin_import {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int32_t dlpack_device_type; /* as in DLPack: kDLCUDA, kDLOpenCL, … */
  int32_t dlpack_device_id;   /* as in DLPack */
  void* data;         /* lowest address of the memory; for kDLOpenCL the cl_mem, whose first bytes are the memory */
  int64_t size_bytes; /* size of the memory */
} compute_plugin_import;

/* ---- Expressions ------------------------------------------------------------------------------------------------- */

/* Intrinsics: the functions that an expression can call. compute/intrinsics.def gives their meaning, NaN rules and
 * error bounds. If a plugin does not know the id of an intrinsic, it refuses the op with
 * COMPUTE_PLUGIN_REFUSE_INTRINSIC. Core then replaces the intrinsic by its definition and asks again. */
enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_PLUGIN_INTRINSIC_CONVERT = 1,
  COMPUTE_PLUGIN_INTRINSIC_BITCAST = 2,
  COMPUTE_PLUGIN_INTRINSIC_WHERE = 3,
  COMPUTE_PLUGIN_INTRINSIC_ADD = 4,
  COMPUTE_PLUGIN_INTRINSIC_SUB = 5,
  COMPUTE_PLUGIN_INTRINSIC_MUL = 6,
  COMPUTE_PLUGIN_INTRINSIC_DIV = 7,
  COMPUTE_PLUGIN_INTRINSIC_FLOOR_DIV = 8,
  COMPUTE_PLUGIN_INTRINSIC_MOD = 9,
  COMPUTE_PLUGIN_INTRINSIC_NEG = 10,
  COMPUTE_PLUGIN_INTRINSIC_ABS = 11,
  COMPUTE_PLUGIN_INTRINSIC_SIGN = 12,
  COMPUTE_PLUGIN_INTRINSIC_MIN = 13,
  COMPUTE_PLUGIN_INTRINSIC_MAX = 14,
  COMPUTE_PLUGIN_INTRINSIC_POW = 15,
  COMPUTE_PLUGIN_INTRINSIC_EQ = 16,
  COMPUTE_PLUGIN_INTRINSIC_NE = 17,
  COMPUTE_PLUGIN_INTRINSIC_LT = 18,
  COMPUTE_PLUGIN_INTRINSIC_LE = 19,
  COMPUTE_PLUGIN_INTRINSIC_GT = 20,
  COMPUTE_PLUGIN_INTRINSIC_GE = 21,
  COMPUTE_PLUGIN_INTRINSIC_BIT_AND = 22,
  COMPUTE_PLUGIN_INTRINSIC_BIT_OR = 23,
  COMPUTE_PLUGIN_INTRINSIC_BIT_XOR = 24,
  COMPUTE_PLUGIN_INTRINSIC_BIT_NOT = 25,
  COMPUTE_PLUGIN_INTRINSIC_SHL = 26,
  COMPUTE_PLUGIN_INTRINSIC_SHR = 27,
  COMPUTE_PLUGIN_INTRINSIC_MUL_HIGH = 28,
  COMPUTE_PLUGIN_INTRINSIC_FLOOR = 29,
  COMPUTE_PLUGIN_INTRINSIC_CEIL = 30,
  COMPUTE_PLUGIN_INTRINSIC_TRUNC = 31,
  COMPUTE_PLUGIN_INTRINSIC_ROUND = 32,
  COMPUTE_PLUGIN_INTRINSIC_SQRT = 33,
  COMPUTE_PLUGIN_INTRINSIC_RSQRT = 34,
  COMPUTE_PLUGIN_INTRINSIC_CBRT = 35,
  COMPUTE_PLUGIN_INTRINSIC_EXP = 36,
  COMPUTE_PLUGIN_INTRINSIC_EXP2 = 37,
  COMPUTE_PLUGIN_INTRINSIC_EXPM1 = 38,
  COMPUTE_PLUGIN_INTRINSIC_LOG = 39,
  COMPUTE_PLUGIN_INTRINSIC_LOG1P = 40,
  COMPUTE_PLUGIN_INTRINSIC_LOG2 = 41,
  COMPUTE_PLUGIN_INTRINSIC_LOG10 = 42,
  COMPUTE_PLUGIN_INTRINSIC_SIN = 43,
  COMPUTE_PLUGIN_INTRINSIC_COS = 44,
  COMPUTE_PLUGIN_INTRINSIC_TAN = 45,
  COMPUTE_PLUGIN_INTRINSIC_ASIN = 46,
  COMPUTE_PLUGIN_INTRINSIC_ACOS = 47,
  COMPUTE_PLUGIN_INTRINSIC_ATAN = 48,
  COMPUTE_PLUGIN_INTRINSIC_ATAN2 = 49,
  COMPUTE_PLUGIN_INTRINSIC_SINH = 50,
  COMPUTE_PLUGIN_INTRINSIC_COSH = 51,
  COMPUTE_PLUGIN_INTRINSIC_TANH = 52,
  COMPUTE_PLUGIN_INTRINSIC_ASINH = 53,
  COMPUTE_PLUGIN_INTRINSIC_ACOSH = 54,
  COMPUTE_PLUGIN_INTRINSIC_ATANH = 55,
  COMPUTE_PLUGIN_INTRINSIC_HYPOT = 56,
  COMPUTE_PLUGIN_INTRINSIC_COPYSIGN = 57,
  COMPUTE_PLUGIN_INTRINSIC_NEXTAFTER = 58,
  COMPUTE_PLUGIN_INTRINSIC_SIGNBIT = 59,
  COMPUTE_PLUGIN_INTRINSIC_ISNAN = 60,
  COMPUTE_PLUGIN_INTRINSIC_ISINF = 61,
  COMPUTE_PLUGIN_INTRINSIC_ISFINITE = 62,
  COMPUTE_PLUGIN_INTRINSIC_ERF = 63,
  COMPUTE_PLUGIN_INTRINSIC_ERFC = 64,
  COMPUTE_PLUGIN_INTRINSIC_REAL = 65,
  COMPUTE_PLUGIN_INTRINSIC_IMAG = 66,
  COMPUTE_PLUGIN_INTRINSIC_CONJ = 67,
  COMPUTE_PLUGIN_INTRINSIC_COMPLEX = 68,
  COMPUTE_PLUGIN_INTRINSIC_ARG = 69,
  COMPUTE_PLUGIN_INTRINSIC_LOGADDEXP = 70,
  COMPUTE_PLUGIN_INTRINSIC_ERFINV = 71,
  COMPUTE_PLUGIN_INTRINSIC_DIGAMMA = 72,
  COMPUTE_PLUGIN_INTRINSIC_LGAMMA = 73
};

/* Kinds of nodes. */
enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_PLUGIN_NODE_INPUT = 1,    /* an element of the input with the index `value` */
  COMPUTE_PLUGIN_NODE_SCALAR = 2,   /* the run-time scalar with the index `value` */
  COMPUTE_PLUGIN_NODE_INDEX = 3,    /* the position along axis `value` of the index space, as int32 or int64 */
  COMPUTE_PLUGIN_NODE_CONSTANT = 4, /* a constant, in `bits` */
  COMPUTE_PLUGIN_NODE_CALL = 5      /* a call of the intrinsic with the id `value`; its operands are earlier nodes */
};

/* A node of an expression. Fixed layout, 40 bytes. */
typedef struct compute_plugin_node {
  int32_t kind;          /* COMPUTE_PLUGIN_NODE_; for an unknown one: COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED */
  int32_t dtype;         /* dtype of the node's value */
  int32_t value;         /* meaning depends on `kind` */
  int32_t operand_count; /* CALL: number of operands */
  int64_t first_operand; /* CALL: position of the first operand in compute_plugin_expression.operands */
  uint8_t bits[16];      /* CONSTANT: the value, little-endian, padded with zeros */
} compute_plugin_node;

/*
 * An expression: a directed acyclic graph (DAG) of nodes in topological order.
 *
 * Every node is used, and no two nodes are equal. The operands of commutative intrinsics are in node order. Conversions
 * are explicit `convert` nodes. The dtypes float16 and bfloat16 occur only in inputs, scalars, outputs, and operands or
 * results of convert and bitcast. A node may have a dtype that the device did not declare, such as int64 for an index.
 * If a plugin cannot compute with a dtype, it refuses the op with COMPUTE_PLUGIN_REFUSE_DTYPE.
 *
 * Core computes `digest`. Expressions with equal digests are equal. The digest is the XXH3-128 hash, in its big-endian
 * canonical form, of the following values, which are little-endian:
 *
 *   - node_count, input_count, scalar_count and output_count, as int32
 *   - for each node: kind, dtype, value, operand_count and the operands, as int32; for a CONSTANT node, then the 16
 *     bytes of `bits`
 *   - the output nodes, as int32
 */
typedef struct compute_plugin_expression {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint8_t digest[16];
  int32_t node_count;
  int32_t input_count;  /* the value of an INPUT node is less than this; an input may be unused */
  int32_t scalar_count; /* the value of a SCALAR node is less than this */
  int32_t output_count;
  const compute_plugin_node* nodes; /* `node_count` nodes */
  const int32_t* operands;          /* the operands of all CALL nodes: positions in `nodes` */
  int64_t operand_total;            /* number of elements of `operands` */
  const int32_t* outputs;           /* the output nodes: `output_count` positions in `nodes` */
} compute_plugin_expression;

/* ---- Ops --------------------------------------------------------------------------------------------------------- */

/* Access to a tensor of an op; bits. */
enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_PLUGIN_TENSOR_INPUT = 1, /* it is read */
  COMPUTE_PLUGIN_TENSOR_OUTPUT = 2 /* it is written; INPUT | OUTPUT: it is read and written, as in scatter */
};

/* The same bits, for a range of memory and for an argument of a kernel. */
enum COMPUTE_UNDERLYING(int32_t) { COMPUTE_PLUGIN_ACCESS_READ = 1, COMPUTE_PLUGIN_ACCESS_WRITE = 2 };

/* The storage of the elements of a tensor. Later versions may add block-scaled, tiled and padded layouts. If a plugin
 * does not know a layout, it refuses the op with COMPUTE_PLUGIN_REFUSE_LAYOUT. */
enum COMPUTE_UNDERLYING(int32_t) { COMPUTE_PLUGIN_LAYOUT_STRIDED = 0 /* elements are placed by `strides` */ };

/* The description of a tensor of an op. It does not include the place in memory; each run gives that. */
typedef struct compute_plugin_tensor {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int32_t dtype;
  int32_t rank;         /* 0 to COMPUTE_PLUGIN_MAX_RANK; -1: absent (dtype 0, shape NULL, and buffer 0 in the run) */
  const int64_t* shape; /* `rank` extents, all >= 1; core handles tensors without elements itself */
  /* `rank` strides in elements. A stride may be negative or 0. No two elements of an output share memory. The span of
   * the tensor in bytes fits in int64_t. */
  const int64_t* strides;
  int32_t access; /* COMPUTE_PLUGIN_TENSOR_ */
  /* Bytes, a power of two up to 64; the address of element 0 is a multiple of it in every run. At least the element
   * size, for complex dtypes half of it. */
  int32_t alignment;
  int32_t layout; /* COMPUTE_PLUGIN_LAYOUT_ */
  int32_t reserved;
} compute_plugin_tensor;

/* compute_plugin_op.flags */
enum COMPUTE_UNDERLYING(uint32_t) {
  COMPUTE_PLUGIN_OP_DETERMINISTIC = 1, /* every run on this device must give the same bits */
  COMPUTE_PLUGIN_OP_FAST_MATH = 2,     /* COMPUTE_MATH=fast: matrix products may use units of lower precision */
  COMPUTE_PLUGIN_OP_TF32 = 4 /* COMPUTE_MATH=tf32 or fast: float32 matrix products may round inputs to 11 bits */
};

/*
 * An op to prepare. `name` and `version` identify it.
 *
 * Most ops are primitives, which are described below. Core asks for some other ops by their own name before it
 * decomposes them; docs/ops.md describes these. A plugin refuses an unknown name or version with
 * COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED.
 *
 * `tensors` holds the inputs, then the outputs. A primitive gets all its attributes. Other ops, also those of vendors,
 * get only the attributes whose values differ from the default. Values of run-time attributes are passed as scalars, in
 * the order of the op's attributes, also if they are the default. Expressions after those that a primitive requires are
 * epilogues: they are applied to its results. A plugin without epilogues refuses such an op with
 * COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED. Core then adds a map.
 */
typedef struct compute_plugin_op {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  compute_string name;
  int32_t version;
  uint32_t flags; /* COMPUTE_PLUGIN_OP_ */
  int32_t input_count;
  int32_t output_count;
  const compute_plugin_tensor* tensors; /* input_count + output_count tensors */
  const compute_attribute* attributes;  /* `attribute_count` attributes */
  int32_t attribute_count;
  int32_t expression_count;
  const compute_plugin_expression* const* expressions; /* `expression_count` pointers */
  int32_t scalar_count;
  int32_t reserved;
  const int32_t* scalar_dtypes; /* dtypes of the run-time scalars; each run gives the values */
} compute_plugin_op;

/*
 * The primitives. Each has version 1, and scatter also version 2. A plugin must implement version 1 of map, copy,
 * reduce, gather and scatter. The others are optional: if a plugin refuses one, core decomposes it.
 *
 * The "index space" is the common shape of the tensors that the description names. Where a tensor is broadcast, its
 * stride is 0. Outputs share no memory with inputs, unless stated otherwise. Core passes every attribute of version 1
 * of the op as described here, also if its value is the default; an attribute added later is passed only if it differs
 * from its default. Core never asks for a conversion of complex numbers to real numbers.
 * A dtype with the level COMPUTE_DTYPE_LEVEL_STORAGE alone must be supported by copy without a conversion, by gather,
 * and by scatter with the reduction set.
 *
 * map       Evaluates expressions[0] at every point of the index space, which is the shape of the outputs. The inputs
 *           of the expression are inputs 0 to n-1 of the op; n may be 0. Output i receives the value of the node
 *           outputs[i] of the expression, and has its dtype. An output and an input may be identical views. A plugin
 *           must support every expression.
 *
 * copy      Copies input 0 to output 0. Both have the same shape, and any strides. If the dtypes differ, the elements
 *           are converted as by `convert`. If not, a plugin must take every alignment.
 *
 * reduce    Evaluates an expression, combines its values over axes, and evaluates a second expression on the result:
 *           1. Evaluates expressions[0], called `before`, at every point of the index space, which is the shape of the
 *              inputs. There is at least one input. `before` has one output.
 *           2. Combines the values over the axes in attribute `axes` (INT64 list, ascending, may be empty). Attribute
 *              `kind` (STRING) is sum, prod, min, max, all or any. Attribute `accumulator` (DTYPE) is the dtype of the
 *              result of `before` and of the combination. It is never float16 or bfloat16.
 *           3. Evaluates expressions[1], called `after`, with the combined value as its input 0.
 *           The outputs have extent 1 along the reduced axes. The scalars of `before` come first, then those of
 *           `after`. INDEX nodes of `before` refer to the index space. `after` has no INDEX nodes.
 *           sum and prod take numbers, min and max real numbers, all and any bool. If a value is NaN, min and max give
 *           NaN. Integers wrap. Core handles empty index spaces itself. A sum of values that are all -0 is -0. The
 *           error of a sum of floats is at most (log2(n) + 8) u sum|terms|, so add pairwise or in blocks. sum and prod
 *           of floats may be computed in a wider dtype.
 *
 * gather    Sets output 0[p] = input 0[q] at every point p of the index space, where q is p with coordinate `axis`
 *           replaced by input 1[p]. `axis` is an attribute (INT64). Input 1 (int32 or int64) and the output have the
 *           shape of the index space. Input 0 has this shape too, except along `axis`. An index i in [-extent, 0)
 *           means i + extent. Any other index outside [0, extent) is a fault: the run reports it, and the element of
 *           the output is undefined.
 *
 * scatter   Combines input 1[p] into output 0[q] at every point p of the index space, where q is p with coordinate
 *           `axis` (INT64) replaced by input 0[p]. Attribute `reduction` (STRING) is set, add, mul, min or max. The
 *           access of output 0 is INPUT | OUTPUT, and it is listed once, as an output. Inputs 0 and 1 have the shape of
 *           the index space. The output has this shape too, except along `axis`. Indices are as in gather. An index out
 *           of range is a fault and writes nothing. With the flag COMPUTE_PLUGIN_OP_DETERMINISTIC, values for the same
 *           element are combined in the same order in every run, and for `set` the last one in row-major order of p
 *           wins. Without the flag the order is any, and for `set` any one of them wins. Core does not ask for add and
 *           mul of float16 and bfloat16: it accumulates in float32 and converts once.
 *           Version 2 also has input 2, of the shape and dtype of output 0, which first gets its values. The access of
 *           output 0 is then OUTPUT. If a plugin refuses version 2, core asks for a copy and for version 1.
 *
 * contraction   A batched matrix product, as gemm of BLAS:
 *               output 0 [batch…, m, n] = alpha * sum_k input 0 [batch…, m, k] * input 1 [batch…, k, n]
 *                                         + beta * input 2 [batch…, m, n] + input 3
 *           Inputs 2 and 3 are optional. input_count is 2, 3 or 4, and an absent input has rank -1. If attribute
 *           `scaled` (INT64) is 1, alpha and beta are scalars of the dtype of the accumulator. If it is 0, alpha is 1
 *           and beta is 0. If beta is 0, the values of input 2 have no effect, even if they are NaN. Output 0
 *           and input 2 may be identical views. float16 and
 *           bfloat16 are accumulated in float32 and rounded once. Core may ask for a float32 output of float16 or
 *           bfloat16 inputs, which a plugin may refuse. An epilogue has one input: the result before it is
 *           rounded, in the dtype of the accumulator. It has one output, of the dtype of output 0. Its scalars follow
 *           alpha and beta.
 *
 * arg_reduce    The position (int64) of the first maximum or minimum along an axis. Attribute `kind` is max or min.
 *           Attribute `axis` is the axis; its extent is 1 in the output. If there are NaN values, the result is the
 *           position of the first one.
 *
 * row       Reduces in 1 to 4 stages along axes, then evaluates an expression on the results. Variances, softmax, norms
 *           and their gradients can so be computed with one read of the memory and without intermediate tensors. The
 *           index space is the shape of the inputs. Attribute `axes` is as in reduce. The stages are numbered from 0.
 *           Stage s consists of three steps:
 *           1. Evaluates expressions[2 s], called `before`, at every point of the index space. Its inputs are the
 *              inputs of the op, then the results of stages 0 to s-1. It has one output.
 *           2. Combines the values over the axes. Entry s of attribute `kinds` (STRING list) is the kind, as in reduce.
 *              Entry s of attribute `accumulators` (DTYPE list) is the dtype of the combination.
 *           3. Evaluates expressions[2 s + 1], called `after`. Its inputs are the combined value, then the results of
 *              stages 0 to s-1. It has one output, which is the result of stage s.
 *           If the number of expressions is odd, the last expression is evaluated at every point of the index space.
 *           Its inputs are the inputs of the op, then the results of all stages. Its outputs are the first outputs of
 *           the op. They have the shape of the index space, and may be identical views of an input.
 *           Attribute `stored` (INT64 list, ascending, may be empty) lists the stages whose results are the remaining
 *           outputs of the op. These have extent 1 along the axes. The results are converted to the dtype of the
 *           output. The scalars of all expressions follow each other in the order of the expressions. Sums have the
 *           error bound of reduce.
 *
 * convolution   output 0 [n, c_out, spatial…], input 0 [n, c_in, spatial…], input 1 [c_out, c_in / groups, kernel…],
 *           input 2 [c_out]: an optional bias that is added; if it is absent, it has rank -1. The attributes are
 *           strides, dilations, pads_begin, pads_end (INT64 lists, one entry per spatial axis; none is negative) and
 *           groups. The semantics are those of ONNX Conv. Memory layouts are expressed by strides. There are 1 to 3
 *           spatial axes. All dtypes are equal. float16 and bfloat16 accumulate in float32 and round once, after the
 *           bias. A product of padding and an infinite or NaN factor is either left out or NaN.
 * convolution_grad_input   Output 0 has the shape of the input of a convolution, and input 2 is an optional bias
 *           [c_in]. The inputs before it are the output gradient and the weight. The output may have elements that no
 *           window covers: they are 0 plus the bias. pads_end does not matter. Complex numbers are not conjugated.
 * convolution_grad_weight   Output 0 has the shape of the weight. The inputs are the output gradient and the input of
 *           the convolution. Complex numbers are not conjugated.
 *
 * scan      A running combination (prefix sum) along attribute `axis`. The other attributes are kind (sum, prod, min,
 *           max), `exclusive`, `reverse` (INT64) and `accumulator` (DTYPE), which is never float16 or bfloat16. Input 0
 *           is converted to the accumulator, and the results to the dtype of the output, which has the shape of the
 *           input. A NaN makes all later values NaN. An exclusive scan begins with the identity of kind. Sums have the
 *           error bound of reduce, with n the number of terms of each result.
 * sort      Sorts along `axis`. The sort is stable, also if `descending` (INT64) is 1. NaN comes last in both
 *           directions. -0 and +0 are equal, and false is less than true. Attribute `outputs` (STRING) is `values`
 *           (output 0), `indices` (output 0, int64) or `both` (output 0: values, output 1: int64 indices). The input
 *           has a real dtype or bool.
 * kernel    Runs a kernel from source, which a program has registered for an op. The attributes are language, source,
 *           name and options (STRING), as in compute_plugin_kernel_source, and groups and group_size (INT64, 3 entries
 *           each). The arguments of the kernel are the addresses of element 0 of the inputs and outputs, then the
 *           scalars, each with the size of its dtype. A plugin refuses languages that it does not support (ATTRIBUTE),
 *           and all if the compiler is missing (LIBRARY_MISSING). op_query does not compile. op_prepare fails with
 *           COMPILE_FAILED if the source does not compile. Outputs may have any strides, which the kernel knows.
 * segmented_reduce  Combines input 0 along axis 0 within segments. Input 1 holds the offsets of the segments: int64,
 *           ascending, one more than there are segments, from 0 to the extent. Core does not check them; invalid
 *           offsets are a fault. kind (sum, prod, min or max) and accumulator are as in reduce. An empty segment gives
 *           the identity of kind (min: the greatest value of the dtype, max: the least).
 */

/* Reasons for a refusal. */
enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED = 1,
  COMPUTE_PLUGIN_REFUSE_DTYPE = 2,
  /* Core then asks again, with a row-major copy of input `argument`; or with a row-major output `argument`, which it
   * copies afterwards, where elements are not aligned to their size. */
  COMPUTE_PLUGIN_REFUSE_LAYOUT = 3,
  COMPUTE_PLUGIN_REFUSE_RANK = 4,
  COMPUTE_PLUGIN_REFUSE_SHAPE = 5,
  COMPUTE_PLUGIN_REFUSE_ATTRIBUTE = 6,
  COMPUTE_PLUGIN_REFUSE_LIBRARY_MISSING = 7,
  COMPUTE_PLUGIN_REFUSE_INTRINSIC = 8 /* `argument` is the intrinsic's id */
};

typedef struct compute_plugin_refusal {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int32_t reason;      /* COMPUTE_PLUGIN_REFUSE_ */
  int32_t argument;    /* position of the operand that is the reason, or -1; INTRINSIC: the id of the intrinsic */
  compute_string text; /* why the op is not supported, as "float64 needs cl_khr_fp64" */
  compute_string hint; /* what the program can do, as "cast to float32"; may be empty */
} compute_plugin_refusal;

/* compute_plugin_query_info.flags */
enum COMPUTE_UNDERLYING(uint32_t) {
  COMPUTE_PLUGIN_QUERY_HOST = 1 /* the plugin would run the op on the host, so it is not native to the device */
};

/* The answer of op_query. Core sets the first three fields. */
typedef struct compute_plugin_query_info {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int32_t supported;       /* 1: op_prepare would make a plan; 0: it would refuse the op */
  uint32_t flags;          /* COMPUTE_PLUGIN_QUERY_ */
  int64_t workspace_bytes; /* as in compute_plugin_plan_info; -1 if only op_prepare knows it */
} compute_plugin_query_info;

/* Receives the reason why op_query or op_prepare refuses an op, and copies it. The plugin calls this function at most
 * once, before op_query or op_prepare returns. `context` is the `context` that these received. If op_query or
 * op_prepare returns an error, core ignores the refusal. */
typedef void (*compute_plugin_refuse)(void* context, const compute_plugin_refusal* refusal);

/* compute_plugin_plan_info.flags */
enum COMPUTE_UNDERLYING(uint32_t) {
  COMPUTE_PLUGIN_PLAN_NOT_CAPTURABLE =
      1,                       /* plan_run allocates, waits or uses host callbacks; graphs cannot contain the plan */
  COMPUTE_PLUGIN_PLAN_HOST = 2 /* as COMPUTE_PLUGIN_QUERY_HOST; reports count the runs as work of the host */
};

/* The answer of op_prepare. Core sets the first three fields. */
typedef struct compute_plugin_plan_info {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int64_t workspace_bytes;  /* temporary memory that each run needs, in the first heap, aligned to 256 bytes; or 0 */
  int64_t kernels_compiled; /* number of kernels that this call compiled */
  uint32_t flags;           /* COMPUTE_PLUGIN_PLAN_ */
  int32_t reports_faults;   /* 1: core gives each run a fault record if it can; 0: runs detect no faults */
  int64_t argument_bytes;   /* memory for arguments that each run needs; see compute_plugin_run.arguments; or 0 */
} compute_plugin_plan_info;

/* The place of a tensor in memory. Fixed layout. The buffer is one of the device of the plan, in its first heap or
 * imported. An extension can allow other heaps and devices. It then defines a `next` entry of the run that names them,
 * with the bit COMPUTE_STRUCT_MUST_UNDERSTAND. */
typedef struct compute_plugin_operand {
  uint64_t buffer;
  int64_t offset_bytes; /* offset of element 0, whose indices are all 0, from the start of the buffer */
} compute_plugin_operand;

/* The value of a run-time scalar: in its dtype, little-endian, padded with zeros. Fixed layout. */
typedef struct compute_plugin_scalar {
  uint8_t bits[16];
} compute_plugin_scalar;

/*
 * A fault record: a fault that a kernel detected. Fixed layout, aligned to 64 bytes.
 *
 * The record is in memory that the host can read. Several runs may share one record. Core sets it to zero before the
 * first of these runs. The kernel that detects the first fault writes the record, and sets `code` last. If several
 * faults occur at once, any one of them is written. A record whose code is not 0 must not be changed.
 *
 * The record must be complete when stream_reached or stream_sync of the run's own stream returns the run's number. Core
 * reads it only then, and keeps its memory until then. The progress of another stream that waited for this stream does
 * not count.
 *
 * If a run has no record, the plugin reports a fault as an error instead: stream_sync fails with KERNEL_FAILED.
 */
enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_PLUGIN_FAULT_NONE = 0,
  COMPUTE_PLUGIN_FAULT_INDEX = 1,    /* an index is out of range: KERNEL_FAILED */
  COMPUTE_PLUGIN_FAULT_SINGULAR = 2, /* a matrix is singular: NUMERICAL, as the following ones */
  COMPUTE_PLUGIN_FAULT_NOT_POSITIVE_DEFINITE = 3,
  COMPUTE_PLUGIN_FAULT_NOT_CONVERGED = 4 /* an iteration did not converge */
};
typedef struct compute_plugin_fault {
  int32_t code;     /* COMPUTE_PLUGIN_FAULT_; for a code that it does not know, core reports KERNEL_FAILED */
  int32_t argument; /* position of the operand at fault */
  int64_t value;    /* INDEX: the index; others: where in the matrix, as the pivot; -1 if unknown */
  int64_t limit;    /* INDEX: the extent */
  int64_t position; /* INDEX: row-major position in the index space; others: which matrix of the batch; -1: unknown */
  int64_t reserved[4];
} compute_plugin_fault;

/* compute_plugin_run.flags: no flags are defined yet. */

/* The arguments of plan_run. */
typedef struct compute_plugin_run {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint64_t stream;
  const compute_plugin_operand* tensors; /* inputs, then outputs, as in the op */
  const compute_plugin_scalar* scalars;  /* in the order of compute_plugin_op.scalar_dtypes */
  compute_plugin_operand workspace;      /* temporary memory; its contents are undefined before and after the run */
  /* The place of a compute_plugin_fault in a heap that is PINNED and HOST_SPACE, or on `cpu` in the heap. If `buffer`
   * is 0, there is no record. Then stream_sync reports a fault; on an immediate stream, plan_run reports it. */
  compute_plugin_operand fault;
  int32_t tensor_count;
  int32_t scalar_count;
  int64_t workspace_bytes; /* size of the workspace, as in compute_plugin_plan_info */
  uint32_t flags;
  int32_t reserved;
  /* Memory of argument_bytes bytes in a heap that is HOST_SPACE, aligned as offset_alignment of the heap says. The
   * plugin writes arguments there, which the device reads. They are the run's own until the run has ended. `buffer` is
   * 0 if the plan asked for none, or the device has no such heap. */
  compute_plugin_operand arguments;
} compute_plugin_run;

/* ---- User kernels ------------------------------------------------------------------------------------------------ */

/*
 * The source of a kernel.
 *
 * The arguments of a kernel in a binary language, in the order of the launch:
 *
 *   ptx, cubin     the parameters of the kernel
 *   spirv-kernel   SPIR-V for OpenCL (execution model Kernel): the arguments of the kernel
 *   spirv          SPIR-V for Vulkan (execution model GLCompute): one block of push constants. An argument lies at the
 *                  next multiple of its size, at most of 16. A TENSOR is the 64-bit device address of element 0
 *                  (PhysicalStorageBuffer64). LOCAL_MEMORY has no place in the block: the specialization constant 3 + i
 *                  is the size in bytes of the i-th such argument. The specialization constants 0, 1 and 2 are the
 *                  group size.
 */
typedef struct compute_plugin_kernel_source {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  /* portable, cuda-c, opencl-c, ptx, cubin, spirv, spirv-kernel, or a vendor's; docs/kernels.md describes them. The
   * plugin puts the definitions of the portable dialect before a text in `portable`. */
  compute_string language;
  compute_string source;  /* text, or for the last ones binary */
  compute_string name;    /* name of the kernel function in `source` */
  compute_string options; /* passed to the compiler unchanged; may be empty */
} compute_plugin_kernel_source;

/* Facts about a compiled kernel. Core sets the first three fields. */
typedef struct compute_plugin_kernel_info {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int32_t argument_count; /* of a launch; -1 if unknown */
  int32_t max_group_size; /* maximum number of work-items (CUDA: threads) per group; 0 if unknown */
} compute_plugin_kernel_info;

/* Kinds of kernel arguments. */
enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_PLUGIN_ARGUMENT_TENSOR = 1, /* a pointer to the elements of a tensor */
  COMPUTE_PLUGIN_ARGUMENT_VALUE = 2,  /* a value of `value_size` bytes */
  /* Memory that the work-items of a group share. CUDA: dynamic shared memory of the block, without a parameter. */
  COMPUTE_PLUGIN_ARGUMENT_LOCAL_MEMORY = 3
};

/* An argument of a kernel. A capital word names the kind for which the field is used. */
typedef struct compute_plugin_kernel_argument {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int32_t kind;                  /* COMPUTE_PLUGIN_ARGUMENT_ */
  int32_t access;                /* TENSOR: COMPUTE_PLUGIN_ACCESS_ */
  compute_plugin_operand tensor; /* TENSOR: its place; the kernel gets the address of element 0 */
  const void* value;             /* VALUE: `value_size` bytes */
  int64_t value_size;            /* VALUE: size in bytes; LOCAL_MEMORY: bytes per work-group */
} compute_plugin_kernel_argument;

/* A run of a kernel. If max_group_size is known, core has checked that a group has no more work-items. */
typedef struct compute_plugin_launch {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint64_t stream;
  int64_t groups[3];     /* work-groups (CUDA: blocks) per axis; 1 or more */
  int64_t group_size[3]; /* work-items (CUDA: threads) of a group per axis; 1 or more */
  const compute_plugin_kernel_argument* arguments;
  int32_t argument_count;
  uint32_t flags; /* no flags are defined yet */
} compute_plugin_launch;

/* The functions for user kernels. */
typedef struct compute_plugin_kernel_table {
  int64_t table_size;
  /*
   * Compiles a kernel.
   *
   * Errors: COMPILE_FAILED  the message contains the complete log of the compiler
   *         UNSUPPORTED     the device does not support the language
   */
  compute_error* (*compile)(uint64_t device, const compute_plugin_kernel_source* source, uint64_t* out_kernel,
                            compute_plugin_kernel_info* out_info);
  /* Queues a run of a kernel on the stream launch->stream. */
  compute_error* (*launch)(uint64_t kernel, const compute_plugin_launch* launch);
  /* Releases a kernel. No queued or running work uses it any more. */
  void (*release)(uint64_t device, uint64_t kernel);
} compute_plugin_kernel_table;

/* ---- Devices ----------------------------------------------------------------------------------------------------- */

/* A device setting and its value. Fixed layout. */
typedef struct compute_plugin_device_setting {
  compute_string name;  /* as in selectors: "mode" for COMPUTE_ACME_MODE */
  compute_string value; /* core has checked it; choices are in lower case, flags are 1 or 0 */
} compute_plugin_device_setting;

/* The options of device_open. */
typedef struct compute_plugin_device_options {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  const compute_plugin_device_setting* settings; /* all device settings that have a value */
  int32_t setting_count;
  int32_t reserved;
} compute_plugin_device_options;

/* compute_plugin_caps.flags */
enum COMPUTE_UNDERLYING(uint32_t) {
  /* The device supports immediate streams (COMPUTE_PLUGIN_STREAM_IMMEDIATE). On an immediate stream, the slots that
   * submit work run it on the calling thread before they return. An error of the work does not make the stream fail. Of
   * the other slots of a stream, core calls only stream_wait, stream_cancel and stream_destroy. */
  COMPUTE_PLUGIN_DEVICE_IMMEDIATE = 1,
  /* The device is the host. Core allocates the memory, and a buffer handle is any host address. Only the plugin `cpu`
   * may set this flag; other plugins fill the slots that may be NULL "only if the device is the host". */
  COMPUTE_PLUGIN_DEVICE_IS_HOST = 2
};

/* The capabilities of an open device. */
typedef struct compute_plugin_caps {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint32_t flags;                   /* COMPUTE_PLUGIN_DEVICE_ */
  int32_t heap_count;               /* 1 to 64 */
  const compute_plugin_heap* heaps; /* the first heap holds tensors and workspaces */
  int32_t priority_least;           /* lowest priority of a stream, 0 or less; both 0: all streams have priority 0 */
  int32_t priority_greatest;        /* highest priority of a stream, 0 or more */
} compute_plugin_caps;

/* Measurements of a device. Core sets the first three fields, and sets all values to -1, which means unknown. */
typedef struct compute_plugin_telemetry {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int32_t utilization_percent;      /* recent utilization of the compute units; 0 to 100 */
  int32_t temperature_millidegrees; /* in 1/1000 degree Celsius */
  int64_t power_milliwatts;
  int64_t memory_process_bytes; /* device memory used by this process */
  int64_t memory_used_bytes;    /* device memory used by all processes */
} compute_plugin_telemetry;

/* A process that uses a device. */
typedef struct compute_plugin_process {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int64_t process_id;   /* its id in the system */
  int64_t memory_bytes; /* device memory that it uses; -1: unknown */
} compute_plugin_process;

/* Receives a process, and copies it. `context` is the argument of the slot telemetry. */
typedef void (*compute_plugin_take_process)(void* context, const compute_plugin_process* process);

/* compute_plugin_stream_options.flags */
enum COMPUTE_UNDERLYING(uint32_t) {
  COMPUTE_PLUGIN_STREAM_IMMEDIATE = 1 /* an immediate stream; see COMPUTE_PLUGIN_DEVICE_IMMEDIATE */
};

/* Flags of stream_mark. */
enum COMPUTE_UNDERLYING(uint32_t) {
  COMPUTE_PLUGIN_MARK_TIMED = 65536 /* core will call mark_time for this mark; only used if mark_time is not NULL */
};

/* The options of stream_create. */
typedef struct compute_plugin_stream_options {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint32_t flags;   /* COMPUTE_PLUGIN_STREAM_ */
  int32_t priority; /* 0 is normal, a higher stream runs sooner; within the range of compute_plugin_caps */
} compute_plugin_stream_options;

/*
 * The functions of an open device.
 *
 * Streams. A stream is an in-order queue of work, with numbers as in a timeline semaphore of Vulkan. The slots that
 * submit work are plan_run, copy_from_host, copy_to_host, copy_peer, fill, `launch` of a kernel, and `run` of a graph
 * or of collectives. Core numbers these submissions of a stream 1, 2, 3, … and may skip numbers. A plugin learns a
 * number only from a mark: stream_mark(stream, n, flags) states that all work submitted so far has numbers up to n. The
 * numbers of marks ascend. The first may be much larger than 1. Core marks a stream when something outside it needs a
 * number, and before work that takes long. Before the first mark, stream_reached returns 0.
 *
 * Failed submissions. If a slot that submits work returns an error, it has queued nothing. The stream stays usable,
 * unless stream_reached returns an error. On an immediate stream, where the slot does the work itself, a part of it may
 * be done: the contents of its outputs are then undefined.
 *
 * Failed streams. If queued work fails, the stream fails and accepts no more work. (A fault that is written to a fault
 * record does not make the stream fail.) The slots that submit work, stream_mark, stream_wait, stream_wait_host,
 * semaphore_signal and semaphore_wait then return the error, or return NULL and do nothing. stream_cancel, mark_time
 * and stream_destroy accept a failed stream. stream_reached and stream_sync return the error and set *out_reached to
 * the last number that is known to have succeeded. After one of them has returned the error, no queued work may access
 * memory or fault records any more, because core may reuse them. As long as queued work can access them, stream_reached
 * and stream_sync must not return the error.
 *
 * Work that waits for a number by stream_wait starts when the work with that number has ended, whether it succeeded or
 * failed. Core asks the stream of that number for the result.
 *
 * Buffers. A buffer handle is unique among all heaps of a device.
 *
 * Flags. No flags of the copies, fill, stream_wait, memory_map and memory_unmap are defined yet.
 */
typedef struct compute_plugin_device_table {
  int64_t table_size;
  /* Returns the capabilities of the device. They are const and valid until the device is closed. */
  const compute_plugin_caps* (*caps)(uint64_t device);
  /* Closes the device and frees everything that it still owns. Core may have left plans, graphs, kernels, streams,
   * buffers and imports unreleased. It does not use or release them afterwards. No work is queued any more, unless the
   * device was lost. */
  void (*close)(uint64_t device);

  /* Allocates memory, whose contents are undefined. If there is not enough, it returns OUT_OF_DEVICE_MEMORY and changes
   * nothing. In a heap that is HOST_SPACE, *out_data is the address of the first byte; in other heaps it stays NULL.
   * The slot may be NULL only if the device is the host. */
  compute_error* (*memory_allocate)(uint64_t device, const compute_plugin_allocation* request, uint64_t* out_buffer,
                                    void** out_data);
  /* Frees a buffer. No queued work uses it any more. `heap` is the heap of the buffer, or -1 for a buffer from
   * memory_import or from the extension for external memory. The slot may be NULL only if the device is the host. */
  void (*memory_free)(uint64_t device, int32_t heap, uint64_t buffer);
  /* Returns the free and total bytes of a heap as the driver reports them now; -1: unknown. Optional; NULL: both are
   * unknown. */
  compute_error* (*memory_info)(uint64_t device, int32_t heap, int64_t* out_free, int64_t* out_total);
  /* Maps a range of HOST_VISIBLE memory into the host's address space, and makes it visible to the host if the host
   * reads. The mapping ends with memory_unmap. No queued work uses the range while it is mapped. Other ranges of the
   * buffer may be in use. Mappings of one buffer may overlap; each ends by itself. *out_data is the address of the
   * first byte of the range. memory_map and memory_unmap are optional together; NULL: no heap is HOST_VISIBLE. */
  compute_error* (*memory_map)(uint64_t device, const compute_plugin_mapping* mapping, void** out_data);
  /* Ends a mapping, and makes the range visible to the device if the host wrote. `mapping` has the values that
   * memory_map got, and `data` is the address that it returned. */
  void (*memory_unmap)(uint64_t device, const compute_plugin_mapping* mapping, void* data);
  /* Creates a buffer over memory that another library owns. Core keeps that memory valid until it has called
   * memory_free with heap -1 for the buffer. The same memory may be imported several times, also with the same handle;
   * core calls memory_free once for each import. Returns UNSUPPORTED if the memory does not belong to this device; core
   * then asks the next device. Optional; NULL: the device cannot import memory. */
  compute_error* (*memory_import)(uint64_t device, const compute_plugin_import* import, uint64_t* out_buffer);

  compute_error* (*stream_create)(uint64_t device, const compute_plugin_stream_options* options, uint64_t* out_stream);
  /* Destroys a stream. Does not wait: queued work still runs, and other streams may still wait for its marks. Core does
   * not use the handle again, also not as `other` of stream_wait. */
  void (*stream_destroy)(uint64_t stream);
  /* States that all work submitted to the stream so far has numbers up to `number`. `flags` is COMPUTE_PLUGIN_MARK_
   * or 0. */
  compute_error* (*stream_mark)(uint64_t stream, uint64_t number, uint32_t flags);
  /* Makes all work that is submitted to `stream` later wait for the mark `number` on `other`. `other` is another stream
   * of any device of the same plugin. No other thread is in a function of either stream, except those that may run at
   * any time. The wait also ends if `other` fails. The call does not block, except on an immediate stream. Returns
   * UNSUPPORTED and queues nothing if the plugin cannot order the two streams. Core then waits on the host. */
  compute_error* (*stream_wait)(uint64_t stream, uint64_t other, uint64_t number, uint32_t flags);
  /* Makes all work that is submitted to `stream` later wait until core calls signal_host_wait for *out_wait. Core does
   * not call it for an immediate stream. stream_wait_host and signal_host_wait are optional together; NULL: the device
   * cannot wait for the host in this way. */
  compute_error* (*stream_wait_host)(uint64_t stream, uint64_t* out_wait);
  /* Ends a wait of stream_wait_host and frees it. Core calls it once for each wait, on any thread of its own or of the
   * program, also if the stream has failed or was destroyed, and before the device is closed. Core never calls it from
   * a callback of the vendor's library. */
  void (*signal_host_wait)(uint64_t device, uint64_t wait);
  /*
   * Asks the stream to end early. Work that has not begun does not run. Work that runs stops as soon as the plugin can
   * stop it, as between two pieces of a loop. Never blocks.
   *
   * The stream then fails with CANCELLED, also if nothing is queued, unless it has failed before. On an immediate
   * stream, the call that is running returns CANCELLED; if none is running, the slot does nothing. The slot of an
   * immediate stream is safe in a signal handler. Optional; NULL: the device cannot cancel work.
   */
  compute_error* (*stream_cancel)(uint64_t stream);
  /* Returns the largest marked number whose work has finished. Never blocks. */
  compute_error* (*stream_reached)(uint64_t stream, uint64_t* out_reached);
  /* Waits until the work up to a marked number has finished or the stream has failed, for at most timeout_ns
   * nanoseconds (INT64_MAX: no limit). `number` is not larger than the last mark. *out_reached is as in stream_reached.
   * A timeout is not an error. */
  compute_error* (*stream_sync)(uint64_t stream, uint64_t number, int64_t timeout_ns, uint64_t* out_reached);
  /* Returns the time at which the work before a timed mark finished, in nanoseconds of the device's clock. `number` has
   * been reached, and the stream is not destroyed. Core calls it once per timed mark. After the call, the plugin may
   * discard the time. If out_ns is NULL, core does not need the time; the number need not have been reached then.
   * INVALID_ARGUMENT if the mark was not timed. mark_time and `clock` are optional together; NULL: the device measures
   * no times. */
  compute_error* (*mark_time)(uint64_t stream, uint64_t number, int64_t* out_ns);
  /* Reads the clock of the device, which all its streams share, and the clock of the host (CLOCK_MONOTONIC). Both are
   * in nanoseconds, and are read as close to each other in time as the driver allows. The call may wait for the
   * device. If the counter of the device has fewer than 64 valid bits, its times, also those of mark_time, start again
   * at 0 after *out_wrap_ns nanoseconds. 0 means never. */
  compute_error* (*clock)(uint64_t device, int64_t* out_device_ns, int64_t* out_host_ns, int64_t* out_wrap_ns);
  /* Fills in the measurements of the device, and calls `take` for each process that uses it, as far as the driver knows
   * them. Optional; NULL: all are unknown. */
  compute_error* (*telemetry)(uint64_t device, compute_plugin_telemetry* out_telemetry,
                              compute_plugin_take_process take, void* context);

  /*
   * Copies of size_bytes bytes, in stream order. size_bytes is larger than 0. Host memory stays valid until the copy
   * has finished. A plugin may also finish the copy before it returns. If the host memory is in a heap of the device
   * that is HOST_SPACE, `pinned` is the same place as an operand; otherwise it is NULL.
   */
  compute_error* (*copy_from_host)(uint64_t stream, const void* src, const compute_plugin_operand* pinned,
                                   const compute_plugin_operand* dst, int64_t size_bytes, uint32_t flags);
  compute_error* (*copy_to_host)(uint64_t stream, const compute_plugin_operand* src, void* dst,
                                 const compute_plugin_operand* pinned, int64_t size_bytes, uint32_t flags);
  /* Fills memory with a repeated pattern of 1, 2, 4, 8 or 16 bytes. The offset of `dst` and size_bytes are multiples of
   * pattern_size. `pattern` is valid during the call only. */
  compute_error* (*fill)(uint64_t stream, const compute_plugin_operand* dst, int64_t size_bytes, const void* pattern,
                         int32_t pattern_size, uint32_t flags);
  /* Copies from another device of the same plugin. `src` is on `src_device`. The stream is on the device of `dst`.
   * Returns UNSUPPORTED and queues nothing if the plugin cannot copy between the two devices. Core then copies through
   * the host. Optional; NULL: core always copies through the host. */
  compute_error* (*copy_peer)(uint64_t stream, uint64_t src_device, const compute_plugin_operand* src,
                              const compute_plugin_operand* dst, int64_t size_bytes, uint32_t flags);

  /* States whether op_prepare would make a plan. Compiles nothing. If the plugin sets out_info->supported to 0, it
   * calls `refuse` once. Core calls this slot only to answer queries of programs, as compute_op_query, and never before
   * a run. */
  compute_error* (*op_query)(uint64_t device, const compute_plugin_op* op, compute_plugin_query_info* out_info,
                             compute_plugin_refuse refuse, void* context);
  /*
   * Makes a plan for an op. A plan is immutable. It may run on several threads and streams at once.
   *
   * To refuse the op, the plugin calls `refuse` once, leaves *out_plan 0 and returns NULL. It must not have compiled
   * anything then.
   *
   * If the kernel is compiled already, the call should take less than 10 µs. A program may use very many plans, so
   * plans should share few kernels. Look kernels up by the digest of the expression or the op, and by dtypes, layout
   * class, collapsed rank, alignment and index width; never by a size.
   */
  compute_error* (*op_prepare)(uint64_t device, const compute_plugin_op* op, uint64_t* out_plan,
                               compute_plugin_plan_info* out_info, compute_plugin_refuse refuse, void* context);
  /* Does what the first run of a plan would do besides the work itself, as a driver that compiles at the first launch.
   * Core calls it if a program prepares ahead, as with compute_plan_create. Optional; NULL: there is nothing to do. */
  compute_error* (*plan_warm)(uint64_t plan);
  /* Queues a run of a plan on the stream run->stream. */
  compute_error* (*plan_run)(uint64_t plan, const compute_plugin_run* run);
  /* Releases a plan. No queued or running work uses it any more. */
  void (*plan_release)(uint64_t device, uint64_t plan);

  /* Returns the functions for user kernels, not NULL. Optional; NULL: the device does not support user kernels. */
  const compute_plugin_kernel_table* (*kernels)(uint64_t device);
} compute_plugin_device_table;

/* ---- The plugin table -------------------------------------------------------------------------------------------- */

/* The functions of a plugin. */
typedef struct compute_plugin_table {
  int64_t table_size;
  /* Passes all devices, including unusable ones, and all requirements to `sink`. Core may call it several times, also
   * while devices are open and in use, but on one thread at a time. It is not an error if there are no devices. */
  compute_error* (*enumerate)(const compute_plugin_sink* sink);
  /* Opens a device. `id` is compute_plugin_device_info.id. A device may be opened several times. After CONTEXT_LOST, it
   * is closed and may be opened again. */
  compute_error* (*device_open)(uint64_t id, const compute_plugin_device_options* options, uint64_t* out_device,
                                const compute_plugin_device_table** out_table);
  /* Core calls it in the child after fork(), once, if a device of the plugin was opened. The plugin must forget its
   * threads and locks, and call no driver. It returns 1 if its devices work in the child, otherwise 0. After 0, the
   * devices fail with FORKED in the child, and core calls no other function of the plugin there. Optional; NULL: as if
   * it returned 0. */
  int32_t (*on_fork_child)(void);
  /* Core calls it when the process exits, if a device of the plugin was opened. Do not free memory, because the system
   * does. All work has ended, or core has stopped waiting for it. Devices may still be open. Threads of the program may
   * be inside other functions of the plugin. Optional; NULL: nothing is done. */
  void (*on_exit)(void);
  /* Closes the plugin. Core calls it last, after all devices are closed. It does not call it if a device stays open, as
   * one that is lost or whose memory the program still uses. Optional; NULL: nothing is done. */
  void (*close)(void);
  /* Returns the table of the extension with this name, or NULL if there is none. The table begins with an int64_t
   * table_size. `device` 0 means an extension of the plugin as a whole. Core asks for the names below only. Names that
   * begin with "compute." are this project's; a vendor's begin with its plugin's name, as acme.ext.trace.v1, and are
   * for its own programs and plugins. Optional; NULL: there are no extensions. */
  const void* (*get_extension)(uint64_t device, const char* name, int64_t name_size);
} compute_plugin_table;

/*
 * The two functions that a plugin exports for this version.
 *
 * Two copies of libcompute in one process can load the same file of a plugin. A second compute_plugin_open with another
 * core table, while the plugin is open, returns UNSUPPORTED; the message says that another copy of the library uses the
 * plugin. The plugin is open until core has called `close`, or until the process ends if the slot is NULL. Core calls
 * compute_plugin_open again with the same table after OUT_OF_MEMORY.
 */
COMPUTE_PLUGIN_EXPORT const compute_plugin_manifest* compute_plugin_query(void);
COMPUTE_PLUGIN_EXPORT compute_error* compute_plugin_open(uint32_t interface_version, const compute_plugin_core* core,
                                                         const compute_plugin_table** out_table);
typedef const compute_plugin_manifest* (*compute_plugin_query_function)(void);
typedef compute_error* (*compute_plugin_open_function)(uint32_t interface_version, const compute_plugin_core* core,
                                                       const compute_plugin_table** out_table);

/* ---- Extensions -------------------------------------------------------------------------------------------------- */

/* Graphs. The plugin turns a recorded list of runs into one executable, as CUDA graphs do. Without this extension, core
 * replays a graph by plan_run. */
#define COMPUTE_PLUGIN_EXT_GRAPH_V1 "compute.ext.graph.v1"

/* compute_plugin_graph_node.kind */
enum COMPUTE_UNDERLYING(int32_t) { COMPUTE_PLUGIN_GRAPH_NODE_RUN = 1 /* a run of a plan */ };

/* A step of a graph. */
typedef struct compute_plugin_graph_node {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int32_t kind; /* COMPUTE_PLUGIN_GRAPH_NODE_; for an unknown kind, `create` returns UNSUPPORTED */
  int32_t reserved;
  uint64_t plan;
  const compute_plugin_run* run; /* the arguments of the run; `stream` is ignored */
  /* One entry per scalar of the run: the index of the slot of the graph that replaces the scalar at each run, or -1.
   * NULL: no scalar is replaced. */
  const int32_t* scalar_slots;
} compute_plugin_graph_node;

/* compute_plugin_graph.flags: no flags are defined yet. */

/* A graph to create. */
typedef struct compute_plugin_graph {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint32_t flags;
  int32_t slot_count; /* number of slots: scalars whose values each run of the graph sets */
  const compute_plugin_graph_node* nodes;
  int64_t node_count;
} compute_plugin_graph;

/* compute_plugin_graph_run.flags: no flags are defined yet. */

/* A run of a graph. */
typedef struct compute_plugin_graph_run {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint64_t stream;
  const compute_plugin_scalar* slots; /* the values of the slots */
  int32_t slot_count;                 /* as in compute_plugin_graph */
  uint32_t flags;
} compute_plugin_graph_run;

/* The functions of the extension for graphs. */
typedef struct compute_plugin_graph_table {
  int64_t table_size;
  /* Creates a graph. Nodes that use the same memory must run in the order of `nodes`. Core does not release the plans
   * before the graph. If it returns UNSUPPORTED, core replays the graph by plan_run. */
  compute_error* (*create)(uint64_t device, const compute_plugin_graph* graph, uint64_t* out_graph);
  /* Queues a run of the graph on a stream of its device. Runs of one graph never overlap: core calls `run` on one
   * thread at a time, and has a run on another stream wait for the one before it. */
  compute_error* (*run)(uint64_t graph, const compute_plugin_graph_run* run);
  /* Releases a graph. No queued or running work uses it any more. */
  void (*release)(uint64_t device, uint64_t graph);
} compute_plugin_graph_table;

/* Native handles, for programs that use the vendor's own interface on tensors. */
#define COMPUTE_PLUGIN_EXT_NATIVE_V1 "compute.ext.native.v1"

/*
 * The functions of the extension for native handles. Each is optional; NULL: there are no such handles.
 *
 * `kind` is one of COMPUTE_NATIVE_ or a vendor's. out_handle points to the struct of that kind, of which core has set
 * the first three fields, and the others to zero. The plugin writes the fields that concern the object, at most
 * struct_size bytes. For a kind that it does not know, it returns UNSUPPORTED. A plugin whose memory DLPack can name
 * supports the kind DLPACK for devices, buffers and streams.
 */
typedef struct compute_plugin_native_table {
  int64_t table_size;
  compute_error* (*device_handle)(uint64_t device, uint32_t kind, void* out_handle);
  compute_error* (*stream_handle)(uint64_t stream, uint32_t kind, void* out_handle);
  /* `place` is the place of element 0 of a tensor. */
  compute_error* (*buffer_handle)(uint64_t device, const compute_plugin_operand* place, uint32_t kind,
                                  void* out_handle);
} compute_plugin_native_table;

/* External memory and semaphores, which plugins, libraries and processes share without the host. The extension is a
 * draft and may change until devices of two vendors implement it. It is then called compute.ext.external.v1. */
#define COMPUTE_PLUGIN_EXT_EXTERNAL_DRAFT1 "compute.ext.external.draft1"

/* compute_plugin_external_request.flags: no flags are defined yet. */

/* A request for external memory or an external semaphore. */
typedef struct compute_plugin_external_request {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint32_t kind; /* COMPUTE_EXTERNAL_ or a vendor's */
  uint32_t flags;
  int64_t size_bytes; /* of memory: the least size; of a semaphore: 0 */
  int64_t alignment;  /* of memory: of its first byte, in bytes, a power of two; of a semaphore: 0 */
} compute_plugin_external_request;

/*
 * The functions of the extension for external objects. Each is optional; NULL: the device does not support it. The four
 * functions of semaphores that do not create one are optional together.
 *
 * For a kind that it does not know, a plugin returns UNSUPPORTED, and also for an object of another device. An
 * out_external has its first three fields and `kind` set, and `descriptor` is -1; the plugin fills the others. The
 * rules of ownership stand at compute_external.
 */
typedef struct compute_plugin_external_table {
  int64_t table_size;
  /* Allocates memory that can be imported elsewhere. */
  compute_error* (*memory_create)(uint64_t device, const compute_plugin_external_request* request, uint64_t* out_buffer,
                                  compute_external* out_external);
  /* Creates a buffer over external memory, which begins at its offset_bytes. */
  compute_error* (*memory_import)(uint64_t device, const compute_external* external, uint64_t* out_buffer);
  /* Creates a semaphore with the value 0 that can be imported elsewhere, and a semaphore over an external one. */
  compute_error* (*semaphore_create)(uint64_t device, const compute_plugin_external_request* request,
                                     uint64_t* out_semaphore, compute_external* out_external);
  compute_error* (*semaphore_import)(uint64_t device, const compute_external* external, uint64_t* out_semaphore);
  /* Queued work may still signal it or wait for it. */
  void (*semaphore_release)(uint64_t device, uint64_t semaphore);
  /* Sets the semaphore to `value` when all work that was submitted to the stream has ended. */
  compute_error* (*semaphore_signal)(uint64_t stream, uint64_t semaphore, uint64_t value);
  /* Makes all work that is submitted to the stream later wait until the semaphore is at least `value`. The call does
   * not block. */
  compute_error* (*semaphore_wait)(uint64_t stream, uint64_t semaphore, uint64_t value);
} compute_plugin_external_table;

/* Ops and dtypes of vendors. */
#define COMPUTE_PLUGIN_EXT_OPS_V1 "compute.ext.ops.v1"

/*
 * An op of a vendor. Programs find it by its name, and use it as any other op, also in graphs and plans. Core checks
 * the operands by this schema and passes the op to op_prepare by its name. A device that refuses it does not support
 * it. The texts are as in compute_op_registration of compute.h. Core does not take an op whose texts it cannot parse,
 * and says so in the log.
 */
typedef struct compute_plugin_vendor_op {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  compute_string name;    /* two words and a dot; the first one is the name of the plugin, as in acme.fused */
  compute_string summary; /* one line; may be empty */
  compute_string inputs;
  compute_string outputs; /* may be empty for one output */
  compute_string attributes;
  compute_string dtypes;        /* class of the inputs' dtypes; may be empty: ANY */
  compute_string shapes;        /* the shape of each output */
  compute_string result_dtypes; /* the dtype of each output */
  int32_t version;              /* 1 or higher */
  uint32_t flags;               /* no flags are defined yet */
} compute_plugin_vendor_op;

/*
 * A dtype of a vendor. All devices of the plugin state their level for it in compute_plugin_device_info.dtypes; only
 * COMPUTE_DTYPE_LEVEL_STORAGE has a meaning. Core asks for copies without a conversion, gather and scatter with the
 * reduction set, and for ops of vendors. Conversions are ops of the vendor.
 */
typedef struct compute_plugin_vendor_dtype {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  compute_string name; /* as acme_fp4x2: the name of the plugin, '_' and a rest of letters (a to z), digits and '_' */
  int32_t size_bits;   /* of an element: 8, 16, 32, 64 or 128; core does not take other sizes yet */
  uint32_t flags;      /* no flags are defined yet */
} compute_plugin_vendor_dtype;

/* Receives the ops and dtypes. Both functions copy their argument. */
typedef struct compute_plugin_ops_sink {
  int64_t table_size;
  void* context; /* the first argument of both functions */
  /* Returns 1, or 0 if core does not take the op. */
  int32_t (*op)(void* context, const compute_plugin_vendor_op* op);
  /* Returns the number of the dtype in this process, 64 to 127, or 0 if core does not take the dtype. The number of a
   * name stays the same until the process ends. */
  int32_t (*dtype)(void* context, const compute_plugin_vendor_dtype* dtype);
} compute_plugin_ops_sink;

/* The functions of the extension for ops. It is an extension of the plugin as a whole (`device` 0). */
typedef struct compute_plugin_ops_table {
  int64_t table_size;
  /* Passes all dtypes, then all ops to `sink`. Core calls it after compute_plugin_open, before enumerate, and again
   * after OUT_OF_MEMORY. It calls no driver. */
  compute_error* (*list)(const compute_plugin_ops_sink* sink);
} compute_plugin_ops_table;

/* Collectives: exchanges of data between devices of a group, as NCCL makes them. Without this extension, core exchanges
 * the data through the host. */
#define COMPUTE_PLUGIN_EXT_COLLECTIVE_V1 "compute.ext.collective.v1"

/* compute_plugin_group_options.flags: no flags are defined yet. */

/* A group of devices to join. */
typedef struct compute_plugin_group_options {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  const void* id; /* what make_id has written on rank 0 */
  int64_t id_size;
  int32_t size;       /* number of ranks */
  int32_t rank;       /* of the device, from 0 */
  int64_t timeout_ns; /* how long to wait for the other ranks, in nanoseconds; INT64_MAX: no limit */
  uint32_t flags;
  int32_t reserved;
} compute_plugin_group_options;

/* compute_plugin_collective.kind. `count` is the number of elements of one part. ALL_REDUCE, BROADCAST, SEND and RECV
 * have one part. Of the others, the larger operand has a part for each rank, in the order of the ranks. */
enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_PLUGIN_COLLECTIVE_ALL_REDUCE = 1,     /* `src` and `dst` may be the same */
  COMPUTE_PLUGIN_COLLECTIVE_REDUCE_SCATTER = 2, /* `dst` has one part */
  COMPUTE_PLUGIN_COLLECTIVE_ALL_GATHER = 3,     /* `src` has one part */
  COMPUTE_PLUGIN_COLLECTIVE_BROADCAST = 4,      /* `src` and `dst` may be the same */
  COMPUTE_PLUGIN_COLLECTIVE_ALL_TO_ALL = 5,     /* both have a part for each rank */
  COMPUTE_PLUGIN_COLLECTIVE_SEND = 6,           /* has no `dst` */
  COMPUTE_PLUGIN_COLLECTIVE_RECV = 7            /* has no `src` */
};

/* A collective. */
typedef struct compute_plugin_collective {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int32_t kind;      /* COMPUTE_PLUGIN_COLLECTIVE_ */
  int32_t dtype;     /* COMPUTE_DTYPE_ or a vendor's */
  int32_t reduction; /* COMPUTE_REDUCTION_, of ALL_REDUCE and REDUCE_SCATTER; else 0 */
  int32_t peer;      /* rank of the root of BROADCAST, or of the other side of SEND and RECV */
  int64_t count;     /* greater than 0 */
  compute_plugin_operand src;
  compute_plugin_operand dst;
} compute_plugin_collective;

/*
 * The functions of the extension for collectives. The ranks of a group are devices of this plugin, in one process or in
 * several. Each rank makes the same calls of `run` in the same order. Core exchanges the id between the processes.
 */
typedef struct compute_plugin_collective_table {
  int64_t table_size;
  /* Writes the id of a new group to `id`, and its size, which is at most `capacity`, to *out_size. The capacity is 8192
   * or more. Called on rank 0. Returns UNSUPPORTED or NOT_FOUND if the device cannot be in a group, as without the
   * vendor's library. */
  compute_error* (*make_id)(uint64_t device, void* id, int64_t capacity, int64_t* out_size);
  /* Joins a group. Waits until all ranks have done so, and returns PEER_FAILED after options->timeout_ns. Returns
   * UNSUPPORTED if two ranks are one device and the vendor's library does not allow that; core then exchanges the data
   * itself. */
  compute_error* (*join)(uint64_t device, const compute_plugin_group_options* options, uint64_t* out_group);
  /* States whether `run` supports a collective. The answer depends only on kind, dtype and reduction. It is 0 for an
   * unknown one of these. */
  int32_t (*supports)(uint64_t group, const compute_plugin_collective* collective);
  /* Queues `count` collectives on a stream of the device. They may proceed in any order among themselves. Two ranks of
   * one process may be inside the function at once. Does not wait for the device. */
  compute_error* (*run)(uint64_t group, uint64_t stream, const compute_plugin_collective* list, int32_t count);
  /* Returns the failure of queued collectives, as far as the vendor's library knows it, else NULL. Never blocks. */
  compute_error* (*failure)(uint64_t group);
  /* Ends queued collectives, whose results have no values then. May be called during `run`. After it, core calls only
   * `leave`. */
  void (*abort)(uint64_t group);
  /* Leaves the group and frees it. Unless it was aborted, no queued work uses it. */
  void (*leave)(uint64_t group);
  /* Writes the name and version of the vendor's library, as "nccl 2.27.3". Valid as long as the group. */
  void (*describe)(uint64_t group, compute_string* out_text);
} compute_plugin_collective_table;

#ifdef __cplusplus
}
#endif

#if defined(__clang__) && !defined(__cplusplus)
#pragma clang diagnostic pop
#endif

#endif /* COMPUTE_PLUGIN_H_ */
