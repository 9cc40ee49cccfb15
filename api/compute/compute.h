/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compute.h: the client interface of the compute backend, in C11.
 *
 * A program includes this header and links libcompute. compute/ops.h, which this header includes at its end, declares a
 * typed function per op. C++ programs can use compute/compute.hpp instead.
 *
 * The following rules hold for every function, unless its comment says otherwise.
 *
 * - Errors. A function that can fail returns compute_error*: NULL on success, else an error that the caller frees with
 *   compute_error_free. There is no last-error state. The library never aborts, exits, throws or prints because of an
 *   argument.
 * - Out-parameters come last, are named out_x and must not be NULL. They are always written: NULL or 0 on error. For an
 *   out-struct the program sets struct_size (of the first element of an array) and next. The library writes all
 *   struct_size bytes, also on error: unknown fields become zero, and struct_type is set. In an array it fills as many
 *   elements as it reports, and sets their struct_size, struct_type and (from the second on, to NULL) next.
 * - Handles are opaque and reference counted. A function that makes an object returns one reference; _retain adds one,
 *   _release drops one. _release accepts NULL, may be called from any thread, and does nothing after compute_shutdown.
 *   The result of a getter is borrowed: it lives as long as the object that it was read from.
 * - Threads. Every function may be called from any thread at any time. There is no current device. Only scopes, and the
 *   default stream of `cpu`, belong to a thread.
 * - Streams. Functions that run an op, a map, a plan, a kernel or a graph accept a NULL stream: the default stream of
 *   the device. Each device has one; `cpu` has one per calling thread, on which work is complete when the call returns.
 *   Functions on a stream itself (_stream_, _event_, _graph_begin, _graph_end and the _async transfers) refuse NULL;
 *   compute_device_default_stream returns the default stream.
 * - Strings are UTF-8. A parameter is NUL-terminated. In a struct a string is a pair of fields, `x` and `x_size` in
 *   bytes. A program sets x_size, or -1 for a NUL-terminated string. A string that the library sets is NUL-terminated
 *   too, and lives as long as the process unless stated otherwise.
 * - Units. Extents and strides count elements. Offsets and sizes are in bytes, times in nanoseconds.
 * - Structs begin with struct_size (sizeof the struct), struct_type (its COMPUTE_STRUCT_ constant, or 0) and next
 *   (NULL). They grow at the end only. Missing trailing fields read as zero, which keeps the old meaning. The library
 *   refuses a struct smaller than COMPUTE_…_SIZE_1, its size in version 1 (16 for options of ops and
 *   reductions). All elements of an array have one struct_size, which is the step; mixed sizes are INVALID_ARGUMENT.
 *   Reserved fields are zero.
 * - Newer features. The library returns UNSUPPORTED for features newer than itself: a nonzero field beyond the part of
 *   a struct that it knows, an unknown flag in a request, a `next` entry whose struct_type has
 *   COMPUTE_STRUCT_MUST_UNDERSTAND. It skips other unknown entries. A program ignores unknown flags of information
 *   structs. It treats an unknown error code as INTERNAL, an unknown kind of device as any other device, and an unknown
 *   health as unusable.
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

/* The library's version; compute_version reports the one that runs. */
#define COMPUTE_VERSION_MAJOR 0
#define COMPUTE_VERSION_MINOR 1
#define COMPUTE_VERSION_PATCH 0

#define COMPUTE_MAX_RANK 32

/* Definitions that compute.h and plugin.h share. Both spell them out, so that each header stands alone. */
#ifndef COMPUTE_SHARED_DEFINITIONS_
#define COMPUTE_SHARED_DEFINITIONS_

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
  COMPUTE_ERROR_INTERNAL = 17             /* a bug in this library */
};

/*
 * Data types. compute/dtypes.def lists their sizes and categories.
 *
 * Reserved: 16 float8_e4m3fn, 17 float8_e5m2, 18 float8_e8m0fnu, 19 float4_e2m1fn, 20 int4 and 21 uint4 (packed along
 * the last axis); 64 to 127 for dtypes of vendors.
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
  COMPUTE_DTYPE_COMPLEX128 = 15
};

/* Levels of support for a dtype on a device; bits. */
enum COMPUTE_UNDERLYING(uint32_t) {
  COMPUTE_DTYPE_STORAGE = 1,    /* copy, slice, move */
  COMPUTE_DTYPE_CONVERT = 2,    /* convert from and to it */
  COMPUTE_DTYPE_ARITHMETIC = 4, /* all elementwise ops and reductions */
  COMPUTE_DTYPE_MATMUL = 8      /* matrix products */
};

enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_DEVICE_KIND_CPU = 1,
  COMPUTE_DEVICE_KIND_DISCRETE_GPU = 2,
  COMPUTE_DEVICE_KIND_INTEGRATED_GPU = 3,
  COMPUTE_DEVICE_KIND_ACCELERATOR = 4
};

/* Types of attribute values. */
enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_KIND_INT64 = 1,      /* int64_t */
  COMPUTE_KIND_FLOAT64 = 2,    /* double */
  COMPUTE_KIND_COMPLEX128 = 3, /* double[2] */
  COMPUTE_KIND_STRING = 4,     /* compute_string */
  COMPUTE_KIND_DTYPE = 5,      /* compute_dtype */
  COMPUTE_KIND_SCALAR = 6      /* compute_tensor*: a scalar or a graph slot; run-time attributes of compute.h only */
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

#endif /* COMPUTE_SHARED_DEFINITIONS_ */

/* compute_device_health. */
enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_HEALTH_GOOD = 0,
  COMPUTE_HEALTH_CONTEXT_LOST = 1,
  COMPUTE_HEALTH_DEVICE_LOST = 2,
  COMPUTE_HEALTH_RESTART_REQUIRED = 3,
  COMPUTE_HEALTH_FORKED = 4
};

/* compute_tensor_map. */
enum COMPUTE_UNDERLYING(int32_t) { COMPUTE_ACCESS_READ = 1, COMPUTE_ACCESS_WRITE = 2 };

/* compute_tensor_wrap_host: what the program promises about its memory. The result of an op on another device is in
 * EXPOSED memory when the call returns, and in TRACKED memory after compute_tensor_synchronize or the last release of
 * the tensor. compute_tensor_touch discards results that only a device holds. */
enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_WRAP_IMMUTABLE = 1, /* nobody writes the memory while it is wrapped; mirrors stay valid */
  COMPUTE_WRAP_TRACKED = 2,   /* the program calls compute_tensor_touch after it wrote; mirrors are valid until then */
  COMPUTE_WRAP_EXPOSED = 3    /* the program may write between any two calls; each use on a device copies */
};

/* Results of compute_op_query. */
enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_SUPPORT_NONE = 0,       /* the op does not run; out_reason tells why */
  COMPUTE_SUPPORT_NATIVE = 1,     /* one step: the plugin's own op, or the primitive that the op consists of */
  COMPUTE_SUPPORT_DECOMPOSED = 2, /* several steps, or a substitute for a primitive that the plugin refused */
  COMPUTE_SUPPORT_HOST = 3        /* the op runs on the host, as COMPUTE_FALLBACK allows; out_reason tells why */
};

enum COMPUTE_UNDERLYING(int32_t) { COMPUTE_FORMAT_TEXT = 0, COMPUTE_FORMAT_JSON = 1 };

/* compute_stream_options.flags. */
enum COMPUTE_UNDERLYING(uint32_t) {
  COMPUTE_STREAM_UNTRACKED = 1 /* no hazard tracking; the program orders the stream by events */
};

/* compute_event_options.flags. */
enum COMPUTE_UNDERLYING(uint32_t) { COMPUTE_EVENT_TIMED = 1 /* records the time at which the event happens */ };

/* compute_allocator.flags. */
enum COMPUTE_UNDERLYING(uint32_t) {
  COMPUTE_ALLOCATOR_CACHED = 1 /* the library keeps freed blocks and cuts large ones, as with its own memory */
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
  COMPUTE_STRUCT_OP_OPTIONS = 11, /* the options structs of compute/ops.h, compute_reduce_options */
  COMPUTE_STRUCT_GRAPH_INFO = 12,
  COMPUTE_STRUCT_EVENT_OPTIONS = 13,
  COMPUTE_STRUCT_ALLOCATOR = 14,
  COMPUTE_STRUCT_OP_REGISTRATION = 15
};

/* Sizes in version 1 of the structs that the library reads. Smaller ones are refused. */
#define COMPUTE_ATTRIBUTE_SIZE_1 56u
#define COMPUTE_STREAM_OPTIONS_SIZE_1 24u
#define COMPUTE_EVENT_OPTIONS_SIZE_1 24u
#define COMPUTE_TENSOR_SPEC_SIZE_1 48u
#define COMPUTE_KERNEL_OPTIONS_SIZE_1 32u
#define COMPUTE_KERNEL_ARGUMENT_SIZE_1 48u
#define COMPUTE_LAUNCH_SIZE_1 72u
#define COMPUTE_OP_REGISTRATION_SIZE_1 120u
#define COMPUTE_ALLOCATOR_SIZE_1 48u

#define COMPUTE_TIMEOUT_NONE INT64_MAX /* no limit */

/* ---- Types ------------------------------------------------------------------------------------------------------- */

typedef struct compute_text compute_text;
typedef struct compute_device compute_device;
typedef struct compute_tensor compute_tensor;
typedef struct compute_stream compute_stream;
typedef struct compute_event compute_event;
typedef struct compute_op compute_op;
typedef struct compute_plan compute_plan;
typedef struct compute_expression compute_expression;
typedef struct compute_kernel compute_kernel;
typedef struct compute_graph compute_graph;
struct DLManagedTensorVersioned; /* DLPack 1.x */
struct DLManagedTensor;          /* DLPack before 1.0 */

/*
 * Strings and errors that a callback receives: valid until it returns. They have names of their own because some
 * languages (cgo) cannot write `const` in the type of a function that they export.
 */
typedef const char* compute_borrowed_string; /* NUL-terminated */
typedef const compute_error* compute_borrowed_error;

/*
 * A number with its type: the value of a run-time attribute, or of a scalar of an expression. Kind 0 stands for the
 * default of the attribute. As a scalar of an expression INT64, FLOAT64 and COMPLEX128 are weak, like a literal.
 */
typedef struct compute_number {
  int32_t kind; /* COMPUTE_KIND_INT64, _FLOAT64, _COMPLEX128 or _SCALAR */
  int32_t reserved;
  int64_t integer;        /* INT64 */
  double real;            /* FLOAT64, COMPLEX128 */
  double imaginary;       /* COMPLEX128 */
  compute_tensor* tensor; /* SCALAR: made by compute_tensor_scalar or compute_scalar_create; read during the call */
} compute_number;

/* A device, described without opening it. */
typedef struct compute_device_info {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  const char* name; /* canonical name: cpu, cuda0, opencl0:1 */
  int64_t name_size;
  const char* plugin; /* cpu, cuda, opencl, … */
  int64_t plugin_size;
  const char* description; /* the vendor's name of the model */
  int64_t description_size;
  const char* vendor;
  int64_t vendor_size;
  const char* driver_version;
  int64_t driver_version_size;
  const char* pci_address; /* 0000:65:00.0, or "" */
  int64_t pci_address_size;
  const char* uuid; /* or "" */
  int64_t uuid_size;
  const char* same_as; /* canonical name of the same hardware under another plugin, or "" */
  int64_t same_as_size;
  const char* libraries; /* vendor libraries in use, one per line: name, version, path */
  int64_t libraries_size;
  const char* unusable; /* the reason why the device cannot be opened, or "" */
  int64_t unusable_size;
  int64_t memory_bytes;   /* total memory; -1 if unknown */
  int32_t kind;           /* COMPUTE_DEVICE_KIND_ */
  int32_t platform_index; /* -1 unless devices are numbered per platform */
  int32_t device_index;
  int32_t flat_index;     /* index among all devices of the plugin */
  const uint32_t* dtypes; /* indexed by dtype: COMPUTE_DTYPE_STORAGE | …; others are unsupported */
  int32_t dtype_count;
  int32_t reserved;
} compute_device_info;

/* A further property of a device, as text. */
typedef struct compute_device_attribute {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  const char* name; /* multiprocessors, l2_cache_bytes, … */
  int64_t name_size;
  const char* value;
  int64_t value_size;
} compute_device_attribute;

/* Counters since the device was opened. */
typedef struct compute_device_statistics {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int64_t memory_used;     /* bytes in live tensors, temporaries and mirrors */
  int64_t memory_peak;     /* maximum of memory_used */
  int64_t memory_reserved; /* bytes allocated from the device, including cached ones */
  int64_t memory_limit;    /* -1: none */
  int64_t memory_mirrors;  /* bytes in mirrors, part of memory_used */
  int64_t blocks_live;
  int64_t allocations;             /* requests served */
  int64_t allocations_from_device; /* those among them that called the driver, or the system on cpu */
  int64_t ops_run;                 /* plans submitted to this device */
  int64_t ops_fallback;            /* ops that ran elsewhere because this device does not support them */
  int64_t plans_live;
  int64_t plans_prepared;
  int64_t kernels_compiled;
  int64_t transfers_to_device; /* host to device, explicit and implicit */
  int64_t transfers_to_device_bytes;
  int64_t transfers_from_device;
  int64_t transfers_from_device_bytes;
  int64_t transfers_implicit; /* transfers for mirrors, exposed operands and results in host tensors */
  int64_t transfers_implicit_bytes;
  int64_t mirror_hits;      /* uses of a mirror that needed no transfer */
  int64_t memory_total;     /* of the device; on cpu what machine and limits allow; -1: unknown */
  int64_t memory_available; /* bytes of it that are free; -1: unknown */
} compute_device_statistics;

typedef struct compute_stream_options {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint32_t flags;   /* COMPUTE_STREAM_ */
  int32_t priority; /* a hint: 0 is normal, higher runs sooner; limited to what the device has */
} compute_stream_options;

typedef struct compute_event_options {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint32_t flags; /* COMPUTE_EVENT_ */
  int32_t reserved;
} compute_event_options;

/* Returns memory of at least `size_bytes` bytes at a multiple of `alignment`, or NULL if there is not enough. */
typedef void* (*compute_allocate_callback)(int64_t size_bytes, int64_t alignment, void* user_data);
/* Takes back what a compute_allocate_callback returned. No work uses the memory any more. */
typedef void (*compute_free_callback)(void* address, int64_t size_bytes, void* user_data);

/* Memory of the program for the tensors of a device; see compute_device_set_allocator. */
typedef struct compute_allocator {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint32_t flags; /* COMPUTE_ALLOCATOR_ */
  int32_t reserved;
  compute_allocate_callback allocate;
  compute_free_callback release;
  void* user_data;
} compute_allocator;

/* compute_tensor_spec.flags. */
enum COMPUTE_UNDERLYING(uint32_t) {
  COMPUTE_SPEC_SCALAR = 1, /* a scalar, as of compute_tensor_scalar: rank 0 */
  COMPUTE_SPEC_WEAK = 2,   /* a weak scalar; only with SCALAR */
  COMPUTE_SPEC_ABSENT = 4  /* an absent optional input; other fields are ignored */
};

/* The description of an operand, for compute_op_query and compute_map_query. */
typedef struct compute_tensor_spec {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  compute_dtype dtype;
  int32_t rank;
  const int64_t* shape;
  const int64_t* strides; /* NULL: row-major */
  uint32_t flags;         /* COMPUTE_SPEC_ */
  int32_t reserved;
} compute_tensor_spec;

/* compute_op_info.flags. */
enum COMPUTE_UNDERLYING(uint32_t) { COMPUTE_OP_IN_PLACE = 4 /* an output may be the identical view of an input */ };

/*
 * The schema of an op.
 *
 * Bindings may be generated from `inputs` and `attributes`, so their grammar is part of the interface:
 *   inputs     := [name {" " name}]                 a name may end in "..." (one or more) or "?" (may be NULL)
 *   attributes := [attribute {"; " attribute}]
 *   attribute  := name ": " kind ["[]"] ["=" default] ["!"]
 *                 "[]": a list; no default: required; "!": a run-time attribute
 *   kind       := int64, float64, string, dtype, number
 *   default    := a number, a string, all, none
 * with blanks around = and !. Later versions may add kinds, defaults and marks. A reader refuses what it does not know.
 */
typedef struct compute_op_info {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  const char* name;
  int64_t name_size;
  const char* summary;
  int64_t summary_size;
  const char* inputs;
  int64_t inputs_size;
  const char* attributes;
  int64_t attributes_size;
  const char* expression; /* of an elementwise op; else "" */
  int64_t expression_size;
  const char* dtypes; /* elementwise ops: the class of dtypes; others: the dtype rule */
  int64_t dtypes_size;
  const char* bound; /* "ulp:N", "exact", "n", "log2" */
  int64_t bound_size;
  int32_t version;
  uint32_t flags; /* COMPUTE_OP_ */
} compute_op_info;

/*
 * The description of an op that a program adds. Strings are as in compute_op_info; an absent one has x NULL.
 *
 * The op is elementwise: it evaluates `expression` over its inputs, which broadcast. They are promoted to one dtype of
 * the class `dtypes`, which the result has too. Attributes are run-time attributes (marked !) and stand in the
 * expression by name. docs/expressions.md describes its text.
 */
typedef struct compute_op_registration {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  const char* name; /* with a dot: acme.double; of letters a to z, digits and _, each part begins with a letter */
  int64_t name_size;
  const char* summary; /* one line; may be NULL */
  int64_t summary_size;
  const char* inputs; /* 1 to 16 names without "..." and "?" */
  int64_t inputs_size;
  const char* attributes; /* up to 8 attributes; may be NULL */
  int64_t attributes_size;
  const char* dtypes; /* ANY, BOOL, INTEGER, BITS, REAL, FLOAT, COMPLEX, INEXACT or NUMERIC */
  int64_t dtypes_size;
  const char* expression; /* with one output */
  int64_t expression_size;
  int32_t version; /* from 1 */
  uint32_t flags;  /* none yet */
} compute_op_registration;

typedef struct compute_kernel_options {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  const char* compiler_options; /* passed to the compiler unchanged; NULL: none. Size 0 is refused */
  int64_t compiler_options_size;
} compute_kernel_options;

enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_ARGUMENT_TENSOR = 1,
  COMPUTE_ARGUMENT_VALUE = 2,
  COMPUTE_ARGUMENT_LOCAL_MEMORY = 3
};

/* An argument of a kernel. */
typedef struct compute_kernel_argument {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int32_t kind;           /* COMPUTE_ARGUMENT_ */
  int32_t access;         /* TENSOR: COMPUTE_ACCESS_READ | COMPUTE_ACCESS_WRITE */
  compute_tensor* tensor; /* TENSOR: the kernel gets the address of element 0 */
  const void* value;      /* VALUE */
  int64_t value_size;     /* VALUE: size in bytes; LOCAL_MEMORY: bytes per work-group */
} compute_kernel_argument;

typedef struct compute_launch {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int64_t groups[3];     /* work-groups (CUDA: blocks) per axis */
  int64_t group_size[3]; /* work-items (CUDA: threads) per group and axis */
  int64_t local_memory_bytes;
} compute_launch;

typedef struct compute_graph_info {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int64_t nodes;           /* number of recorded runs */
  int64_t temporary_bytes; /* memory for values inside the graph */
  int32_t native;          /* 1: the plugin runs the graph as one; 0: core replays it op by op */
  int32_t reserved;
} compute_graph_info;

/* ---- Errors and texts -------------------------------------------------------------------------------------------- */

/* Frees an error and its causes. Accepts NULL. */
COMPUTE_API void compute_error_free(compute_error* error);
COMPUTE_API compute_error_code compute_error_get_code(const compute_error* error);
/* One line that states the op, the argument and the values. A load report or compiler log follows on further lines. */
COMPUTE_API const char* compute_error_message(const compute_error* error);
/* What the error is about, as far as it is known: the op or "", the position of the operand at fault (outputs behind
 * inputs) or -1, the name of the attribute at fault or "", the canonical name of the device or "". */
COMPUTE_API const char* compute_error_op(const compute_error* error);
COMPUTE_API int32_t compute_error_argument(const compute_error* error);
COMPUTE_API const char* compute_error_attribute(const compute_error* error);
COMPUTE_API const char* compute_error_device(const compute_error* error);
COMPUTE_API int64_t compute_error_native_code(const compute_error* error);        /* the vendor's error code, or 0 */
COMPUTE_API const compute_error* compute_error_cause(const compute_error* error); /* borrowed; may be NULL */
/* "INVALID_ARGUMENT" for 1 and so on; "UNKNOWN" for an unknown code. */
COMPUTE_API const char* compute_error_code_name(compute_error_code code);

/* A text that the caller frees. */
COMPUTE_API const char* compute_text_data(const compute_text* text); /* NUL-terminated */
COMPUTE_API int64_t compute_text_size(const compute_text* text);     /* in bytes, without the NUL */
COMPUTE_API void compute_text_free(compute_text* text);

/* ---- The process ------------------------------------------------------------------------------------------------- */

COMPUTE_API void compute_version(int32_t* out_major, int32_t* out_minor, int32_t* out_patch);

/* The size of an element in bytes; 0 for an unknown dtype. */
COMPUTE_API int64_t compute_dtype_size(compute_dtype dtype);
/* "float32" and so on; "" for an unknown dtype. */
COMPUTE_API const char* compute_dtype_name(compute_dtype dtype);

/*
 * Replaces the default log sink, which writes the device selection and warnings to stderr. NULL restores it.
 *
 * `callback` receives every log line: level, category (load, select, place, copy, compile, error) and text without a
 * newline. It may be called from any thread and must not call this library. It is not called any more once this
 * function has replaced it.
 */
typedef void (*compute_log_callback)(int32_t level, compute_borrowed_string category, compute_borrowed_string text,
                                     void* user_data);
COMPUTE_API compute_error* compute_log_set_callback(compute_log_callback callback, void* user_data);

/*
 * Sets a setting for this process, or unsets it if `value` is NULL. `name` is the name of its environment variable
 * (COMPUTE_DEVICE) or its key in the config file (device). The value overrides flags, environment and config file.
 *
 * Errors: NOT_FOUND         no such setting; the message suggests the nearest name
 *         INVALID_ARGUMENT  the setting does not take this value
 */
COMPUTE_API compute_error* compute_config_set(const char* name, const char* value);
/* The value in force and its origin, as "value\torigin". With a NULL name: all settings, one per line. */
COMPUTE_API compute_error* compute_config_get(const char* name, compute_text** out_value);
/*
 * Reads and removes the flags --compute-NAME=VALUE (--compute-device=cuda0) from the arguments of main. Changes `argc`
 * and `argv` in place; other arguments keep their order.
 */
COMPUTE_API compute_error* compute_config_arguments(int32_t* argc, char** argv);

/*
 * Reports what happened to each plugin: loaded with n devices, or rejected for a reason, with remedies. Opens all
 * plugins, but no device.
 */
COMPUTE_API compute_error* compute_load_report(int32_t format, compute_text** out_report);

/*
 * Reports which ops ran on which device, how often, and in one step or several; the transfers of each device; and the
 * ops that ran on cpu because the device does not support them. Counts since the start of the process.
 */
COMPUTE_API compute_error* compute_placement_report(int32_t format, compute_text** out_report);

/*
 * Shuts the library down: refuses new calls, waits up to `timeout_ns` for calls, work and callbacks in progress, then
 * closes all devices and plugins. *out_drained is 1 if everything had finished. If not, nothing is closed, because the
 * work still uses it; a later call may close it. May be called by several threads at once: one of them closes. Once
 * all is closed, further calls have no effect and return 1.
 *
 * From its start on, calls that use a device or work on it fail with SHUT_DOWN, in callbacks too. Calls that need no
 * device (ops, dtypes, settings, infos, statistics, views, scopes, _free) still work. _release does nothing. Memory
 * that was exported by DLPack stays valid until it is returned.
 *
 * If the program does not call it, the library waits for up to 2 s at exit(), and longer for a kernel that is being
 * compiled. Exit handlers and destructors that run earlier may use the library; those that run later get SHUT_DOWN.
 * dlclose does not unload the library.
 *
 * fork() waits for up to 2 s until no other thread is inside a call, not counting calls that wait for a device. In the
 * child `cpu` works, and devices that were open fail with FORKED. If a call did not end in time, all devices do.
 *
 * Errors: INVALID_ARGUMENT  a negative time, or a call inside a callback (notification, deleter, log)
 */
COMPUTE_API compute_error* compute_shutdown(int64_t timeout_ns, int32_t* out_drained);

/*
 * Pushes a scope, which tells where in the program the calling thread is. Scopes nest. Strings are copied. The message
 * of an error that a call on this thread returns ends with a line such as "scope: train (main.py:12) > forward".
 *
 * Threads: scopes belong to the calling thread. A runtime that moves work between threads must pin the thread from
 *          _push to _pop (Go: runtime.LockOSThread).
 */
COMPUTE_API compute_error* compute_scope_push(const char* label, const char* file, int32_t line);
COMPUTE_API compute_error* compute_scope_pop(void);

/* ---- Devices ----------------------------------------------------------------------------------------------------- */

/*
 * Lists the devices of all plugins: `cpu` first, then in the order of plugin names and PCI addresses.
 *
 * Writes min(capacity, count) structs of infos[0].struct_size bytes each, and the count. Creates no context and
 * allocates no device memory. Devices of plugins that failed are missing; compute_load_report tells why.
 */
COMPUTE_API compute_error* compute_device_list(compute_device_info* infos, int64_t capacity, int64_t* out_count);

/*
 * Opens the device that `selector` names. NULL means COMPUTE_DEVICE, else the config file, else auto.
 *
 * docs/selecting-devices.md has the grammar: cpu, cuda0, opencl0:1, cuda@pci=0000:65:00.0, cuda0+mem=4G, "cuda,cpu",
 * auto, auto,-opencl. A single name selects that device only. Opening a device again returns the same handle, except
 * after CONTEXT_LOST: then the device is opened anew, and older handles, tensors and streams keep failing.
 *
 * Errors: INVALID_ARGUMENT  a malformed selector, with a caret under the fault; other options than it was opened with
 *         NOT_FOUND         no such device; the message contains the load report
 *         DEVICE_LOST, RESTART_REQUIRED, FORKED: the device failed before, and opening it again does not help
 */
COMPUTE_API compute_error* compute_device_open(const char* selector, compute_device** out_device);
/* Tells which device a selector would open, what made the choice, and why others were not chosen. Opens nothing. */
COMPUTE_API compute_error* compute_device_which(const char* selector, int32_t format, compute_text** out_answer);
COMPUTE_API void compute_device_retain(compute_device* device);
COMPUTE_API void compute_device_release(compute_device* device);
COMPUTE_API const char* compute_device_name(const compute_device* device);
COMPUTE_API compute_error* compute_device_get_info(compute_device* device, compute_device_info* out_info);
/* The further properties of a device, by canonical name. The device need not be open. Lists as compute_device_list
 * does. */
COMPUTE_API compute_error* compute_device_attributes(const char* name, compute_device_attribute* attributes,
                                                     int64_t capacity, int64_t* out_count);
COMPUTE_API compute_error* compute_device_get_statistics(compute_device* device,
                                                         compute_device_statistics* out_statistics);
/*
 * Native handles, for programs that mix their own CUDA or OpenCL code with tensors: CUcontext or cl_context; CUstream
 * or cl_command_queue; CUdeviceptr or cl_mem, with the offset of element 0. Borrowed: a handle is valid as long as its
 * object.
 *
 * The library does not know work that the program queues itself. Wait for the tensor before that work
 * (compute_tensor_synchronize), and for that work before the tensor is used here again; or queue both on one stream.
 *
 * Errors: UNSUPPORTED  the plugin has no native handles; for memory of `cpu` use compute_tensor_map
 */
COMPUTE_API compute_error* compute_device_native_handle(compute_device* device, uint64_t* out_handle);
COMPUTE_API compute_error* compute_stream_native_handle(compute_stream* stream, uint64_t* out_handle);
COMPUTE_API compute_error* compute_tensor_native_handle(compute_tensor* tensor, uint64_t* out_handle,
                                                        int64_t* out_offset_bytes);
COMPUTE_API compute_error* compute_device_health(compute_device* device, int32_t* out_health);
/* Frees cached memory and mirrors until at most `keep_bytes` are cached. */
COMPUTE_API compute_error* compute_device_trim(compute_device* device, int64_t keep_bytes);
/*
 * Sets where the device takes memory for tensors, temporaries and mirrors from: the pool of a program that has one, so
 * that two pools do not compete for one device. NULL restores the device's own memory. `allocator` is copied.
 *
 * `allocate` returns memory that the whole device can address and that no queued work uses. `alignment` is a power of
 * two, at least 64. `release` is called once per block, with the size that was asked for, when the work that uses the
 * block has ended. Without CACHED, blocks have the size of their tensors, and a free block goes back at once. With
 * CACHED, it goes back under memory pressure, by compute_device_trim and compute_shutdown.
 *
 * If `allocate` returns NULL, the library frees what it has cached, waits for free blocks that are still in use, and
 * asks again. Then the call fails with OUT_OF_DEVICE_MEMORY (OUT_OF_MEMORY on cpu). COMPUTE_MEMORY_LIMIT applies.
 * Staging memory, which the host addresses, is not part of it.
 *
 * Both callbacks may be called from any thread, also several at once, and must not call this library or wait for a
 * thread that is inside of it. compute_shutdown gives all blocks back, except those of a device that was lost or that
 * has DLPack exports. Neither callback is called after it, nor at exit() without it.
 *
 * Errors: INVALID_ARGUMENT  a missing callback, or memory of the device is in use (by tensors or graphs)
 *         UNSUPPORTED       an unknown flag, or the memory of the device has no addresses or cannot be imported
 */
COMPUTE_API compute_error* compute_device_set_allocator(compute_device* device, const compute_allocator* allocator);
/*
 * Sets the function that is called before an allocation of memory of any device, `cpu` included, fails for want of
 * memory. NULL unsets it. A runtime that collects garbage releases tensors there that it has not collected yet.
 *
 * The library frees its cached memory and mirrors first, then calls `callback` once with the device (borrowed) and the
 * bytes that are wanted, then tries again, then fails. `callback` runs on the thread of the call that allocates, and
 * may run on several threads at once. It may release handles and call compute_device_trim and the functions on errors.
 * An allocation inside it that finds no memory fails without calling it again.
 *
 * It is not called any more once this function has replaced it: this function waits for calls in progress on other
 * threads.
 */
typedef void (*compute_pressure_callback)(compute_device* device, int64_t size_bytes, void* user_data);
COMPUTE_API compute_error* compute_memory_set_pressure_callback(compute_pressure_callback callback, void* user_data);
/*
 * Returns the stream that NULL stands for on `device`; the caller releases it. It records no graphs. After work on it
 * failed, NULL stands for a new stream: call this function again.
 *
 * Errors: UNSUPPORTED  the device has a default stream per calling thread, as `cpu` has
 */
COMPUTE_API compute_error* compute_device_default_stream(compute_device* device, compute_stream** out_stream);
/* Waits for all work that was queued on any stream of the device before this call. */
COMPUTE_API compute_error* compute_device_synchronize(compute_device* device);

/* ---- Tensors ----------------------------------------------------------------------------------------------------- */

/*
 * Creates a row-major tensor with undefined contents.
 *
 * `shape` holds `rank` extents, outermost first, and is copied. An extent may be 0; a tensor of rank 0 has one element.
 * Memory is aligned to at least 64 bytes.
 *
 * Ownership: the caller releases *out_tensor, which keeps `device` alive.
 * Blocks:    while memory is allocated; for queued work only if that work uses all the memory there is.
 * Errors:    INVALID_ARGUMENT      a null pointer, a negative extent, a rank outside [0, 32], an unknown dtype
 *            OUT_OF_RANGE          the size in bytes does not fit in int64_t
 *            UNSUPPORTED           the device does not support the dtype
 *            OUT_OF_DEVICE_MEMORY  not enough memory (OUT_OF_MEMORY on cpu)
 */
COMPUTE_API compute_error* compute_tensor_empty(compute_device* device, compute_dtype dtype, int32_t rank,
                                                const int64_t* shape, compute_tensor** out_tensor);
/* The same, with all elements set to *value, which has type `dtype`. */
COMPUTE_API compute_error* compute_tensor_full(compute_device* device, compute_dtype dtype, int32_t rank,
                                               const int64_t* shape, const void* value, compute_tensor** out_tensor);
/* The same, with a copy of the row-major elements at `data`, which may be reused on return. */
COMPUTE_API compute_error* compute_tensor_from_host(compute_device* device, compute_dtype dtype, int32_t rank,
                                                    const int64_t* shape, const void* data,
                                                    compute_tensor** out_tensor);
/*
 * Creates a host tensor over memory of the program, without a copy.
 *
 * `data` is the address of element 0, aligned to the element size. `strides` are in elements; NULL means row-major.
 * `promise` is one of COMPUTE_WRAP_. A range inside one that is already wrapped shares its buffer, so that hazards
 * between the two are tracked.
 *
 * Ownership: the program owns the memory. On success `deleter` (may be NULL) is called once with (data, user_data),
 *            from any thread, when no tensor and no queued work uses the memory any more. It must not call this
 *            library. On error it is not called.
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
/* Tells that the program wrote the wrapped memory. Mirrors of it are stale from now on. */
COMPUTE_API compute_error* compute_tensor_touch(compute_tensor* tensor);
/*
 * Creates an immutable scalar operand on the host. It needs no memory, no transfer and no plan per value. A weak scalar
 * (`weak` = 1) takes the dtype of the other operands and takes no part in promotion, like a literal.
 */
COMPUTE_API compute_error* compute_tensor_scalar(compute_dtype dtype, const void* value, int32_t weak,
                                                 compute_tensor** out_tensor);
/* Creates a slot: a scalar whose value in a recorded graph compute_graph_set_scalar changes. Its initial value is 0. */
COMPUTE_API compute_error* compute_scalar_create(compute_dtype dtype, compute_tensor** out_tensor);

COMPUTE_API void compute_tensor_retain(compute_tensor* tensor);
COMPUTE_API void compute_tensor_release(compute_tensor* tensor);

COMPUTE_API compute_dtype compute_tensor_dtype(const compute_tensor* tensor);
COMPUTE_API int32_t compute_tensor_rank(const compute_tensor* tensor);
COMPUTE_API const int64_t* compute_tensor_shape(const compute_tensor* tensor);   /* borrowed; `rank` values */
COMPUTE_API const int64_t* compute_tensor_strides(const compute_tensor* tensor); /* borrowed; `rank` values */
COMPUTE_API int64_t compute_tensor_offset_bytes(const compute_tensor* tensor);   /* of element 0 */
COMPUTE_API int64_t compute_tensor_element_count(const compute_tensor* tensor);
COMPUTE_API int64_t compute_tensor_size_bytes(const compute_tensor* tensor);     /* of all elements, without gaps */
COMPUTE_API compute_device* compute_tensor_device(const compute_tensor* tensor); /* borrowed */
/* 1 if `a` and `b` share one buffer. */
COMPUTE_API int32_t compute_tensor_shares_buffer(const compute_tensor* a, const compute_tensor* b);
/* Sets a name for reports and messages. The label is copied; earlier labels stay readable as long as the tensor. */
COMPUTE_API compute_error* compute_tensor_set_label(compute_tensor* tensor, const char* label);
COMPUTE_API const char* compute_tensor_label(const compute_tensor* tensor);

/* Views share the buffer of the tensor. Making one calls no device. */
/* Reshapes in row-major order. One extent may be -1. UNSUPPORTED if the layout needs a copy. */
COMPUTE_API compute_error* compute_tensor_reshape(compute_tensor* tensor, int32_t rank, const int64_t* shape,
                                                  compute_tensor** out_view);
/* Axis i of the view is axis axes[i] of the tensor. NULL reverses the axes. */
COMPUTE_API compute_error* compute_tensor_permute(compute_tensor* tensor, int32_t rank, const int32_t* axes,
                                                  compute_tensor** out_view);
/* Slices as Python's x[start:stop:step], per axis. Negative indices count from the end; indices out of range are
 * clipped. INT64_MIN as start and INT64_MAX as stop mean the ends in the direction of step. NULL starts or stops mean
 * whole axes, NULL steps mean 1. */
COMPUTE_API compute_error* compute_tensor_slice(compute_tensor* tensor, int32_t rank, const int64_t* starts,
                                                const int64_t* stops, const int64_t* steps, compute_tensor** out_view);
/* Broadcasts to `shape`: extents of 1 and missing leading axes repeat, with stride 0. */
COMPUTE_API compute_error* compute_tensor_broadcast(compute_tensor* tensor, int32_t rank, const int64_t* shape,
                                                    compute_tensor** out_view);
/* Inserts an axis of extent 1 as axis `axis` of the view. A negative axis counts from the end. */
COMPUTE_API compute_error* compute_tensor_expand(compute_tensor* tensor, int32_t axis, compute_tensor** out_view);
/* Removes axis `axis`, whose extent is 1. */
COMPUTE_API compute_error* compute_tensor_squeeze(compute_tensor* tensor, int32_t axis, compute_tensor** out_view);
/* A view of any dtype of the same size, shape, strides and offset that lies inside the buffer of the tensor. NULL
 * strides mean row-major. */
COMPUTE_API compute_error* compute_tensor_view(compute_tensor* tensor, compute_dtype dtype, int32_t rank,
                                               const int64_t* shape, const int64_t* strides, int64_t offset_bytes,
                                               compute_tensor** out_view);

/*
 * Copies all elements to `dst` in row-major order. `size_bytes` must be the size of the tensor.
 *
 * Waits for the work that writes the tensor and reports its failure.
 */
COMPUTE_API compute_error* compute_tensor_read(compute_tensor* tensor, void* dst, int64_t size_bytes);
/* Copies row-major elements from `src` into the tensor, after work that uses it. `src` may be reused on return. */
COMPUTE_API compute_error* compute_tensor_write(compute_tensor* tensor, const void* src, int64_t size_bytes);
/* The same in stream order. `dst` and `src` must stay valid until the stream has passed this point. */
COMPUTE_API compute_error* compute_tensor_read_async(compute_tensor* tensor, void* dst, int64_t size_bytes,
                                                     compute_stream* stream);
COMPUTE_API compute_error* compute_tensor_write_async(compute_tensor* tensor, const void* src, int64_t size_bytes,
                                                      compute_stream* stream);
/* A row-major copy on `device`; on the tensor's own device a new reference to the tensor. */
COMPUTE_API compute_error* compute_tensor_to_device(compute_tensor* tensor, compute_device* device,
                                                    compute_tensor** out_tensor);
/*
 * Maps the tensor to a host address, after the work queued before. *out_data is the address of element 0. If the host
 * can address the memory, it is the tensor's own (*out_is_copy = 0), with the tensor's strides. Else it is a row-major
 * copy (*out_is_copy = 1), which _unmap writes back whole if `access` has COMPUTE_ACCESS_WRITE.
 *
 * With COMPUTE_ACCESS_READ the call reports a failure of the work that wrote the tensor. Without it the contents are
 * undefined, and elements that the program does not write are undefined afterwards. Until _unmap the program must not
 * queue work that conflicts with `access`: such work is not ordered.
 */
COMPUTE_API compute_error* compute_tensor_map(compute_tensor* tensor, int32_t access, void** out_data,
                                              int32_t* out_is_copy);
COMPUTE_API compute_error* compute_tensor_unmap(compute_tensor* tensor, void* data);
/* Waits for the work that writes the tensor, and for nothing else. Reports its failure. */
COMPUTE_API compute_error* compute_tensor_synchronize(compute_tensor* tensor);

/*
 * Exchange with other libraries by DLPack 1.x. DLTensor has no struct tag, so it is void* here.
 *
 * _from_dlpack: on success the tensor owns `managed` and calls its deleter later, from any thread; on error the caller
 * keeps it. Host memory is wrapped without a copy, as COMPUTE_WRAP_EXPOSED, or IMMUTABLE if it is flagged read-only.
 * Device memory needs an open device whose plugin imports it. A cl_mem (kDLOpenCL) must belong to the context of an
 * open device; compute_device_native_handle returns that context.
 *
 * _to_dlpack: the caller owns *out_managed and calls its deleter. The buffer is exposed until then. `stream` is the
 * consumer's stream, numbered as in DLPack. The call waits for pending work, so that the consumer's work comes after
 * it. With -1 it does not wait, and reports only failures that are already known. dl_tensor.data is the address of
 * element 0. With kDLOpenCL it is a cl_mem, and byte_offset is the offset of element 0.
 *
 * _unversioned: the same for DLManagedTensor, the struct of DLPack before 1.0. It has no flags: imported host memory is
 * EXPOSED, and immutable memory is not exported (UNSUPPORTED).
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
 * Fills *out_dltensor, a DLTensor of 48 bytes, with a borrowed view: shape and strides are the tensor's own. The view
 * is valid as long as the tensor. On error it is zeroed.
 *
 * Does not wait, as _to_dlpack with -1. Copies of a host tensor on other devices are stale from this call on. Fill a
 * new view before you write again to a host tensor that was used on another device in between.
 */
COMPUTE_API compute_error* compute_tensor_to_dltensor(compute_tensor* tensor, void* out_dltensor);

/*
 * Two functions with the signatures of DLPack 1.2, for the DLPackExchangeAPI of a language binding. Both return 0 on
 * success and -1 on failure, and throw nothing.
 *
 * _allocate (managed_tensor_allocator): creates a row-major tensor with undefined contents by dtype, ndim, shape and
 * device of `prototype`, a DLTensor, and exports it. A device other than the host must be open. On failure *out_managed
 * is NULL and `set_error` is called once with `error_context`, the name of a Python exception and a message, which are
 * valid during the call. NULL: the error is logged.
 *
 * _current_work_stream (current_work_stream): *out_stream becomes the native handle of the default stream of the open
 * device that has this DLPack type and id, or NULL for host memory. It is valid until work on that stream fails. A
 * failure is logged, with its reason.
 */
typedef void (*compute_dlpack_error_callback)(void* error_context, const char* kind, const char* message);
COMPUTE_API int32_t compute_dlpack_allocate(const void* prototype, struct DLManagedTensorVersioned** out_managed,
                                            void* error_context, compute_dlpack_error_callback set_error);
COMPUTE_API int32_t compute_dlpack_current_work_stream(int32_t device_type, int32_t device_id, void** out_stream);

/* ---- Failures of queued work ------------------------------------------------------------------------------------- */

/*
 * Queued work may fail after the call that queued it has returned. Every use of a result that depends on the failed
 * work reports the failure, with the op that failed. Nothing else does.
 *
 * Tensors. The outputs of failed work have no values, and neither has anything computed from them, on any stream. To
 * read, map, synchronize, move or export such a tensor, or to use it as an operand, returns the error of the work that
 * failed (KERNEL_FAILED, STREAM_FAILED, CONTEXT_LOST, …). Overwriting all of it, by an op, by _write or through a map
 * without COMPUTE_ACCESS_READ, gives it values again. The inputs of failed work are unchanged.
 *
 * Streams. After a checked fault (KERNEL_FAILED: an index out of range) a stream takes no more work. Work queued behind
 * the fault still runs, and its results are valid where they do not depend on the fault. After STREAM_FAILED and the
 * more severe codes nothing behind the last good submission has values. In both cases compute_stream_synchronize,
 * _wait_until, _query and _notify, compute_event_synchronize and _query, and every attempt to queue work report the
 * failure as long as the stream lives. Continue on a new stream; NULL stands for a new one by itself. A stream that
 * only used results of work that failed on another stream stays usable; the first of these calls reports that failure
 * once.
 *
 * compute_device_synchronize waits for all streams, released ones too, and reports a failure that no other call has
 * reported.
 *
 * A call that returns an error itself leaves its outputs unchanged if none of its work was queued. Else the outputs
 * have no values, and reading them reports so. An output of a recorded graph has no values before the first run of the
 * graph; using it is INVALID_ARGUMENT until then.
 */

/* ---- Streams and events ------------------------------------------------------------------------------------------ */

/* Creates a stream, an in-order queue of work. `options` may be NULL. Hazards between streams are tracked per buffer,
 * so programs need no events. */
COMPUTE_API compute_error* compute_stream_create(compute_device* device, const compute_stream_options* options,
                                                 compute_stream** out_stream);
COMPUTE_API void compute_stream_retain(compute_stream* stream);
COMPUTE_API void compute_stream_release(compute_stream* stream);                 /* queued work still runs */
COMPUTE_API compute_device* compute_stream_device(const compute_stream* stream); /* borrowed */
/*
 * Waits until all work queued on `stream` before this call has finished. The results are then visible to the host and
 * to other streams.
 *
 * Threads:   any, but not inside a callback, where it would wait for itself.
 * Blocks:    without limit. Spins for up to COMPUTE_SPIN_US, then sleeps.
 * Errors:    INVALID_ARGUMENT  `stream` is NULL
 *            STREAM_FAILED     queued work failed; continue on a new stream
 *            KERNEL_FAILED     a kernel detected a fault
 *            CONTEXT_LOST, DEVICE_LOST, RESTART_REQUIRED: see "Failures of queued work"
 */
COMPUTE_API compute_error* compute_stream_synchronize(compute_stream* stream);
/* The same, for at most `timeout_ns` from now. On timeout *out_reached is 0, and there is no error. */
COMPUTE_API compute_error* compute_stream_wait_until(compute_stream* stream, int64_t timeout_ns, int32_t* out_reached);
/* Tells whether all queued work has finished. Never waits. */
COMPUTE_API compute_error* compute_stream_query(compute_stream* stream, int32_t* out_finished);
/*
 * Calls `callback` when all work queued before has finished. `error` is NULL, or tells why the work failed (borrowed).
 *
 * Callbacks run one at a time, in the order of the calls, on one thread of the library. A stream that never ends
 * therefore delays all later callbacks. A callback may queue work, but must not wait for work and cannot call
 * compute_shutdown.
 */
typedef void (*compute_stream_callback)(compute_borrowed_error error, void* user_data);
COMPUTE_API compute_error* compute_stream_notify(compute_stream* stream, compute_stream_callback callback,
                                                 void* user_data);

/* Records an event: the end of the work queued on `stream` so far. `options` may be NULL. With COMPUTE_EVENT_TIMED the
 * device takes the time; UNSUPPORTED if it has no times. The event keeps the stream. */
COMPUTE_API compute_error* compute_event_record(compute_stream* stream, const compute_event_options* options,
                                                compute_event** out_event);
/* Orders later work on `stream` after the event. Does not block the caller if both are of one plugin. */
COMPUTE_API compute_error* compute_event_wait(compute_event* event, compute_stream* stream);
COMPUTE_API compute_error* compute_event_synchronize(compute_event* event);
COMPUTE_API compute_error* compute_event_query(compute_event* event, int32_t* out_finished);
/*
 * The time from `start` to `end` in nanoseconds, negative if `end` happened first. Both are timed. Waits for both, as
 * compute_event_synchronize does. On one device the times are of its clock. Between devices they are as exact as the
 * clocks of the devices and of the host can be related.
 *
 * Errors: INVALID_ARGUMENT  an event was recorded without COMPUTE_EVENT_TIMED
 *         the error of the work before an event, if it failed
 */
COMPUTE_API compute_error* compute_event_elapsed(compute_event* start, compute_event* end, int64_t* out_ns);
COMPUTE_API void compute_event_retain(compute_event* event);
COMPUTE_API void compute_event_release(compute_event* event);

/* ---- Ops --------------------------------------------------------------------------------------------------------- */

/* Finds an op. Version 0 is the newest. The handle is never released. For NOT_FOUND the message suggests a name. */
COMPUTE_API compute_error* compute_op_find(const char* name, int32_t version, const compute_op** out_op);
/* Lists all ops in the order of their names, as compute_device_list does. */
COMPUTE_API compute_error* compute_op_list(compute_op_info* infos, int64_t capacity, int64_t* out_count);
/*
 * Adds an op to those of this process. From then on it is found, listed, described, queried, run, planned and recorded
 * as any other op. Devices whose plugin has an op of this name and version run it as a whole; others evaluate the
 * expression in one pass. An op cannot be removed. The strings are copied.
 *
 * Errors: INVALID_ARGUMENT  a faulty description; name and version exist already; 4096 ops are registered
 *         UNSUPPORTED       a flag or field that is newer than this library
 */
COMPUTE_API compute_error* compute_op_register(const compute_op_registration* registration, const compute_op** out_op);
COMPUTE_API compute_error* compute_op_get_info(const compute_op* op, compute_op_info* out_info);

/*
 * Runs an op.
 *
 * The op runs on the device of `stream`. Without a stream it runs on the device of the operands that are not on cpu, of
 * which there may be one only; else on cpu. Host tensors are mirrored on the device.
 *
 * outputs[i] is in and out. If it is NULL, the op makes the output, which the caller owns. Else the op writes into it:
 * it must have the exact shape and dtype, and strides that do not overlap. It may share memory with an input only as
 * the identical view, and only if the op has IN_PLACE, as all elementwise ops have. Optional inputs may be NULL. On
 * error no output was made; given outputs are unchanged, unless the work failed while it ran.
 */
COMPUTE_API compute_error* compute_op_run(const compute_op* op, compute_stream* stream,
                                          const compute_attribute* attributes, int64_t attribute_count,
                                          compute_tensor* const* inputs, int64_t input_count, compute_tensor** outputs,
                                          int64_t output_count);
/*
 * Tells how the device would run the op on operands like `inputs`, with outputs that it makes.
 *
 * *out_support is one of COMPUTE_SUPPORT_. *out_reason tells why the op is not native, as far as the plugin refused it,
 * and is empty otherwise. *out_workspace_bytes is the size of temporary memory, or -1 if it is known only once the op
 * is prepared. A call that is wrong on any device is INVALID_ARGUMENT, as for compute_op_run.
 */
COMPUTE_API compute_error* compute_op_query(compute_device* device, const compute_op* op,
                                            const compute_attribute* attributes, int64_t attribute_count,
                                            const compute_tensor_spec* inputs, int64_t input_count,
                                            int32_t* out_support, compute_text** out_reason,
                                            int64_t* out_workspace_bytes);

/*
 * A plan is an op prepared for a device, for the dtypes, shapes and strides of given operands and for its static
 * attributes. It saves the look-up of each run. A NULL output stands for a row-major output that the op makes.
 *
 * compute_plan_run takes operands of the same dtypes, shapes and strides; others are INVALID_ARGUMENT. It runs on
 * `stream`, or on the default stream of the plan's device. `run_time` gives values of run-time attributes (marked ! in
 * compute_op_info.attributes) in place of those at creation; a static attribute there is INVALID_ARGUMENT. `outputs`
 * are as in compute_op_run.
 */
COMPUTE_API compute_error* compute_plan_create(const compute_op* op, compute_device* device,
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
 * several outputs. docs/expressions.md lists operators and functions; index(i) is the position along axis i. A syntax
 * error is INVALID_ARGUMENT, with a caret under the fault.
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
 * Derives an expression that computes the gradients of a number L by inputs of `expression`.
 *
 * `wanted` holds the positions of these inputs; NULL stands for all. The inputs of *out_gradient are those of
 * `expression`, then the gradient of L by each of its outputs; its scalars are the same. Its outputs are the gradients
 * by the wanted inputs, with the dtypes of these inputs and the broadcast shape: sum a gradient over the axes along
 * which its input was broadcast. The gradient of L by a complex z = a + ib is dL/da + i dL/db. compute/intrinsics.def
 * has the derivatives. A gradient can be derived again.
 *
 * Errors: INVALID_ARGUMENT  a position is not that of an input. compute_map of the gradient fails likewise if a wanted
 *                           input is an integer, bool or a scalar
 */
COMPUTE_API compute_error* compute_expression_gradient(compute_expression* expression, const int32_t* wanted,
                                                       int64_t wanted_count, compute_expression** out_gradient);
/* Evaluates an expression in one pass over its inputs, which broadcast. If the expression has no inputs, all outputs
 * must be given; they are in and out, as in compute_op_run. */
COMPUTE_API compute_error* compute_map(compute_stream* stream, compute_expression* expression,
                                       compute_tensor* const* inputs, int64_t input_count,
                                       const compute_number* scalars, int64_t scalar_count, compute_tensor** outputs,
                                       int64_t output_count);
/* As compute_op_query. `scalars` are taken as COMPUTE_SPEC_SCALAR. `outputs` describes given outputs; others are
 * COMPUTE_SPEC_ABSENT. It may be NULL if none is given. */
COMPUTE_API compute_error* compute_map_query(compute_device* device, compute_expression* expression,
                                             const compute_tensor_spec* inputs, int64_t input_count,
                                             const compute_tensor_spec* scalars, int64_t scalar_count,
                                             const compute_tensor_spec* outputs, int64_t output_count,
                                             int32_t* out_support, compute_text** out_reason,
                                             int64_t* out_workspace_bytes);

/*
 * Combines the values of an expression over axes, in one pass over its inputs.
 *
 * `before` has one output and at least one input that is no scalar. It is evaluated at every point of the common shape
 * of its inputs. The values are combined by `kind`: "sum", "prod", "min", "max", "all" or "any", as the ops of these
 * names do. options->after has one input, the combined value, and one output. `options` may be NULL. *output is in and
 * out, as outputs[0] in compute_op_run. `scalars` holds those of `before`, then those of `after`.
 *
 * The combined value has the dtype options->accumulator; without it, what the op gives: int64 or uint64 for a sum or
 * product of integers, bool for all and any, else the dtype of `before`. float16 and bfloat16 are combined in float32
 * and rounded once, behind `after`. Over no elements the combined value is 0 (sum, any) or 1 (prod, all); min and max
 * are INVALID_ARGUMENT.
 */
typedef struct compute_reduce_options {
  uint32_t struct_size;
  uint32_t struct_type; /* COMPUTE_STRUCT_OP_OPTIONS or 0 */
  const void* next;
  const int64_t* axes; /* negative ones count from the end; NULL: as axes_mask says */
  int64_t axes_count;
  uint64_t axes_mask;        /* bit i is axis i; 0 and NULL axes: all axes */
  compute_expression* after; /* NULL: the combined value itself */
  compute_dtype accumulator; /* 0: as above */
  int32_t keepdims;          /* 1: reduced axes stay, with extent 1 */
} compute_reduce_options;
COMPUTE_API compute_error* compute_reduce(compute_stream* stream, compute_expression* before, const char* kind,
                                          const compute_reduce_options* options, compute_tensor* const* inputs,
                                          int64_t input_count, const compute_number* scalars, int64_t scalar_count,
                                          compute_tensor** output);
/* As compute_map_query. `output` describes a given output, and may be NULL. */
COMPUTE_API compute_error* compute_reduce_query(compute_device* device, compute_expression* before, const char* kind,
                                                const compute_reduce_options* options,
                                                const compute_tensor_spec* inputs, int64_t input_count,
                                                const compute_tensor_spec* scalars, int64_t scalar_count,
                                                const compute_tensor_spec* output, int32_t* out_support,
                                                compute_text** out_reason, int64_t* out_workspace_bytes);

/* ---- User kernels ------------------------------------------------------------------------------------------------ */

/*
 * Compiles a kernel from source. `language` is "cuda-c", "opencl-c" or "portable" (docs/kernels.md).
 *
 * Errors: COMPILE_FAILED  the message contains the compiler's log
 *         UNSUPPORTED     the device does not support the language
 */
COMPUTE_API compute_error* compute_kernel_compile(compute_device* device, const char* language, const char* source,
                                                  const char* name, const compute_kernel_options* options,
                                                  compute_kernel** out_kernel);
COMPUTE_API compute_error* compute_kernel_launch(compute_kernel* kernel, compute_stream* stream,
                                                 const compute_launch* launch, const compute_kernel_argument* arguments,
                                                 int64_t argument_count);
COMPUTE_API void compute_kernel_retain(compute_kernel* kernel);
COMPUTE_API void compute_kernel_release(compute_kernel* kernel);

/* ---- Graphs ------------------------------------------------------------------------------------------------------ */

/*
 * Starts recording: work queued on `stream` from now on is recorded instead of run. Outputs made meanwhile belong to
 * the caller. They have no values before the first run of the graph: to read, map, move or export them, or to use them
 * in work that runs, is INVALID_ARGUMENT until then. While recording, host operands other than scalars are errors, and
 * so are reading from, mapping through or waiting for the stream. Other streams are unaffected.
 */
COMPUTE_API compute_error* compute_graph_begin(compute_stream* stream);
/* Ends recording and makes the graph. If recording failed, returns that error and no graph. */
COMPUTE_API compute_error* compute_graph_end(compute_stream* stream, compute_graph** out_graph);
/* Runs the graph as one submission, on any stream of its device. Runs of one graph are ordered. */
COMPUTE_API compute_error* compute_graph_run(compute_graph* graph, compute_stream* stream);
/* Sets the value of slot `scalar` for later runs; *value has the dtype of the slot. */
COMPUTE_API compute_error* compute_graph_set_scalar(compute_graph* graph, compute_tensor* scalar, const void* value);
COMPUTE_API compute_error* compute_graph_get_info(compute_graph* graph, compute_graph_info* out_info);
COMPUTE_API void compute_graph_retain(compute_graph* graph);
COMPUTE_API void compute_graph_release(compute_graph* graph);

#ifdef __cplusplus
}
#endif

#if defined(__clang__) && !defined(__cplusplus)
#pragma clang diagnostic pop
#endif

#include "compute/ops.h"

#endif /* COMPUTE_COMPUTE_H_ */
