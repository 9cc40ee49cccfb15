/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compute.h: the client interface of the compute backend, in C11.
 *
 * A program includes this one header, links libcompute, and has devices, tensors, streams and every op. Typed op
 * functions are in compute/ops.h, which this header includes at its end; C++ programs may prefer compute/compute.hpp.
 *
 * Rules that hold for every function, unless its comment says otherwise:
 *
 * - Errors. A function that can fail returns compute_error*; NULL is success. The caller frees the object with
 *   compute_error_free. There is no last-error state. Nothing aborts, exits, throws or prints because of an argument.
 * - Out-parameters come last, are called out_x, must not be NULL, and are written on every return: NULL or 0 on error.
 *   Out-structs: set struct_size (of the first element of an array) and next. The library writes all struct_size bytes,
 *   zero where it knows nothing, also on error, and sets struct_type. It fills the elements of an array up to the count
 *   that it reports, and sets struct_size, struct_type and (from the second on, to NULL) next of each.
 * - Handles are opaque and reference counted. `create`-like functions hand out one reference; _retain adds one,
 *   _release drops one. _release accepts NULL, is legal from any thread, and does nothing after compute_shutdown. What
 *   a getter returns is borrowed from its owner and lives as long as that.
 * - Threads. Every function may be called from any thread at any time. There is no thread-local current device; only
 *   scopes and `cpu`'s default stream belong to a thread.
 * - Streams. What runs an op, a map, a plan, a kernel or a graph takes a NULL stream: the default stream of the device
 *   that it runs on. There is one per device, and one per calling thread on `cpu`, where work is complete when the call
 *   returns. What concerns the stream itself (_stream_, _event_, _graph_begin, _graph_end, and the _async transfers)
 *   refuses NULL: compute_device_default_stream names it.
 * - Strings are UTF-8. A parameter is NUL-terminated. In a struct a string is a pointer and a size in bytes, `x` and
 *   `x_size`: one that the program sets has that size, or -1 if it ends with NUL; one that the library sets ends with
 *   NUL as well, and lives as long as the process where nothing else is said. Extents and strides are in elements,
 *   offsets and sizes in bytes, times in nanoseconds.
 * - Structs that cross start with struct_size (set it to sizeof the struct), struct_type (the COMPUTE_STRUCT_ constant,
 *   or 0) and next (NULL), and grow at their end. The struct of an older program is accepted: what is missing is zero,
 *   and zero keeps the old meaning. The least size of one that the library reads is that of version 1, COMPUTE_…_SIZE_1
 *   (options of ops: 16). An array is stepped by the struct_size of its first element; mixed sizes are
 *   INVALID_ARGUMENT. Fields called reserved are zero.
 * - What a reader does not know. The library answers UNSUPPORTED to what a newer program asks of it and it does not
 *   know: a field beyond the part that it knows which is not zero, a flag of a request, a `next` entry whose
 *   struct_type has COMPUTE_STRUCT_MUST_UNDERSTAND; it skips other unknown entries. A program ignores unknown flags of
 *   information structs, and takes an unknown error code as INTERNAL, an unknown kind of device as any other device, an
 *   unknown health as unusable.
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

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Constants --------------------------------------------------------------------------------------------------- */

/* The library's version; compute_version reports the one that runs. */
#define COMPUTE_VERSION_MAJOR 0
#define COMPUTE_VERSION_MINOR 1
#define COMPUTE_VERSION_PATCH 0

#define COMPUTE_MAX_RANK 32

/* What compute.h and plugin.h both define; written out in both, so that each stands alone. */
#ifndef COMPUTE_SHARED_DEFINITIONS_
#define COMPUTE_SHARED_DEFINITIONS_

/* Error codes. The numbers never change. */
typedef int32_t compute_error_code;
enum {
  COMPUTE_OK = 0,
  COMPUTE_ERROR_INVALID_ARGUMENT = 1,     /* the call is wrong, whatever the device */
  COMPUTE_ERROR_OUT_OF_RANGE = 2,         /* a size or an index does not fit */
  COMPUTE_ERROR_UNSUPPORTED = 3,          /* the device cannot; the message says why */
  COMPUTE_ERROR_OUT_OF_MEMORY = 4,        /* host memory */
  COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY = 5, /* with a table of what holds it; nothing sticks */
  COMPUTE_ERROR_NOT_FOUND = 6,            /* a device, op, plugin or library; with the load report for devices */
  COMPUTE_ERROR_DEVICE_MISMATCH = 7,      /* operands on two devices */
  COMPUTE_ERROR_COMPILE_FAILED = 8,       /* with the compiler's log */
  COMPUTE_ERROR_KERNEL_FAILED = 9,        /* work failed by a checked fault, such as an index out of range */
  COMPUTE_ERROR_STREAM_FAILED = 10,       /* queued work failed; a new stream heals */
  COMPUTE_ERROR_CONTEXT_LOST = 11,        /* reopen the device; host data and other devices survive */
  COMPUTE_ERROR_DEVICE_LOST = 12,         /* this device is gone, others are fine */
  COMPUTE_ERROR_RESTART_REQUIRED = 13,    /* this plugin needs a new process */
  COMPUTE_ERROR_FORKED = 14,              /* the device was opened before fork(); use it in the parent only */
  COMPUTE_ERROR_SHUT_DOWN = 15,           /* after compute_shutdown */
  COMPUTE_ERROR_PLUGIN_REJECTED = 16,     /* a plugin broke its contract */
  COMPUTE_ERROR_INTERNAL = 17             /* a defect of this library */
};

/* Dtypes; their sizes and categories are in compute/dtypes.def. */
typedef int32_t compute_dtype;
enum {
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

/* How far a device supports a dtype: bits. */
enum {
  COMPUTE_DTYPE_STORAGE = 1,    /* copied, sliced, moved */
  COMPUTE_DTYPE_CONVERT = 2,    /* cast to and from */
  COMPUTE_DTYPE_ARITHMETIC = 4, /* every elementwise op and reduction */
  COMPUTE_DTYPE_MATMUL = 8      /* matrix products */
};

enum {
  COMPUTE_DEVICE_KIND_CPU = 1,
  COMPUTE_DEVICE_KIND_DISCRETE_GPU = 2,
  COMPUTE_DEVICE_KIND_INTEGRATED_GPU = 3,
  COMPUTE_DEVICE_KIND_ACCELERATOR = 4
};

/* Kinds of attribute values. */
enum {
  COMPUTE_KIND_INT64 = 1,      /* int64_t */
  COMPUTE_KIND_FLOAT64 = 2,    /* double */
  COMPUTE_KIND_COMPLEX128 = 3, /* double[2] */
  COMPUTE_KIND_STRING = 4,     /* compute_string */
  COMPUTE_KIND_DTYPE = 5,      /* compute_dtype */
  COMPUTE_KIND_SCALAR = 6      /* compute_tensor*: a scalar or a graph's slot; run-time attributes of compute.h alone */
};

enum {
  COMPUTE_LOG_ERROR = 1,
  COMPUTE_LOG_WARNING = 2,
  COMPUTE_LOG_INFO = 3,
  COMPUTE_LOG_DEBUG = 4,
  COMPUTE_LOG_TRACE = 5
};

typedef struct compute_error compute_error;

/* What every sized struct begins with, and what `next` points to. */
typedef struct compute_struct_header {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
} compute_struct_header;

/* A bit of struct_type in a `next` chain: a reader that does not know the type must refuse the call. */
#define COMPUTE_STRUCT_MUST_UNDERSTAND 0x80000000u

/* struct_type of compute_attribute. */
enum { COMPUTE_STRUCT_ATTRIBUTE = 5 };

/* A string that need not end with NUL. */
typedef struct compute_string {
  const char* data;
  int64_t size;
} compute_string;

/* An attribute of an op. Unknown names are refused. */
typedef struct compute_attribute {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  const char* name;
  int64_t name_size;
  int32_t kind; /* COMPUTE_KIND_ */
  int32_t reserved;
  int64_t count;      /* of values */
  const void* values; /* `count` values of `kind`; read during the call only */
} compute_attribute;

#endif /* COMPUTE_SHARED_DEFINITIONS_ */

/* compute_device_health. */
enum {
  COMPUTE_HEALTH_GOOD = 0,
  COMPUTE_HEALTH_CONTEXT_LOST = 1,
  COMPUTE_HEALTH_DEVICE_LOST = 2,
  COMPUTE_HEALTH_RESTART_REQUIRED = 3,
  COMPUTE_HEALTH_FORKED = 4
};

/* compute_tensor_map. */
enum { COMPUTE_ACCESS_READ = 1, COMPUTE_ACCESS_WRITE = 2 };

/* compute_tensor_wrap_host: what the program promises about memory that it owns. What an op on another device writes
 * is in EXPOSED memory when the call returns, and in TRACKED memory after compute_tensor_synchronize or the last
 * release of the tensor; compute_tensor_touch discards what only a device holds. */
enum {
  COMPUTE_WRAP_IMMUTABLE = 1, /* never written while wrapped: read-only, mirrored */
  COMPUTE_WRAP_TRACKED = 2,   /* written by the program only between compute_tensor_touch calls: mirrored until then */
  COMPUTE_WRAP_EXPOSED = 3    /* written at any time between calls: copied to a device at each use, and counted */
};

/* What compute_op_query answers. */
enum {
  COMPUTE_SUPPORT_NONE = 0,       /* not at all; the reason says why */
  COMPUTE_SUPPORT_NATIVE = 1,     /* in one step: the plugin's own op, or the one primitive that the op is */
  COMPUTE_SUPPORT_DECOMPOSED = 2, /* in several steps, or by a primitive in place of one that the plugin lacks */
  COMPUTE_SUPPORT_HOST = 3        /* on the host, as COMPUTE_FALLBACK allows; the reason says why not on the device */
};

enum { COMPUTE_FORMAT_TEXT = 0, COMPUTE_FORMAT_JSON = 1 };

/* compute_stream_options.flags. */
enum { COMPUTE_STREAM_UNTRACKED = 1 /* no hazard tracking: the program orders its streams by events itself */ };

/* compute_event_options.flags. */
enum { COMPUTE_EVENT_TIMED = 1 /* takes the time; UNSUPPORTED so far */ };

/* Struct types. */
enum {
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
  COMPUTE_STRUCT_OP_OPTIONS = 11, /* the options structs of compute/ops.h */
  COMPUTE_STRUCT_GRAPH_INFO = 12,
  COMPUTE_STRUCT_EVENT_OPTIONS = 13
};

/* Sizes in version 1 of the structs that the library reads: the least that it accepts. */
#define COMPUTE_ATTRIBUTE_SIZE_1 56u
#define COMPUTE_STREAM_OPTIONS_SIZE_1 24u
#define COMPUTE_EVENT_OPTIONS_SIZE_1 24u
#define COMPUTE_TENSOR_SPEC_SIZE_1 48u
#define COMPUTE_KERNEL_OPTIONS_SIZE_1 32u
#define COMPUTE_KERNEL_ARGUMENT_SIZE_1 48u
#define COMPUTE_LAUNCH_SIZE_1 72u

#define COMPUTE_TIMEOUT_NONE INT64_MAX /* wait without a limit */

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

/* A number whose kind is stated. A kind of 0 means the default of the attribute that it is given for. */
typedef struct compute_number {
  int32_t kind; /* COMPUTE_KIND_INT64, _FLOAT64 or _COMPLEX128 */
  int32_t reserved;
  int64_t integer;
  double real;
  double imaginary;
} compute_number;

/* What is known of a device without opening it. */
typedef struct compute_device_info {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  const char* name; /* canonical: cpu, cuda0, opencl0:1 */
  int64_t name_size;
  const char* plugin; /* cpu, cuda, opencl, … */
  int64_t plugin_size;
  const char* description; /* the model, as the vendor spells it */
  int64_t description_size;
  const char* vendor;
  int64_t vendor_size;
  const char* driver_version;
  int64_t driver_version_size;
  const char* pci_address; /* 0000:65:00.0; "" if it has none */
  int64_t pci_address_size;
  const char* uuid; /* "" if it has none */
  int64_t uuid_size;
  const char* same_as; /* canonical name of the same card or processor under another plugin; "" if there is none */
  int64_t same_as_size;
  const char* libraries; /* vendor libraries found, one a line: name, version, path */
  int64_t libraries_size;
  const char* unusable; /* why it cannot be opened; "" if it can */
  int64_t unusable_size;
  int64_t memory_bytes;   /* total; -1 if unknown */
  int32_t kind;           /* COMPUTE_DEVICE_KIND_ */
  int32_t platform_index; /* of devices numbered in two levels; else -1 */
  int32_t device_index;
  int32_t flat_index;     /* over the plugin's devices */
  const uint32_t* dtypes; /* by dtype id: COMPUTE_DTYPE_STORAGE | …; what lies beyond dtype_count is not supported */
  int32_t dtype_count;
  int32_t reserved;
} compute_device_info;

/* A further property, as text. */
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
  int64_t memory_peak;     /* greatest memory_used */
  int64_t memory_reserved; /* bytes taken from the device, cached ones included */
  int64_t memory_limit;    /* -1: none */
  int64_t memory_mirrors;  /* bytes in mirrors, part of memory_used */
  int64_t blocks_live;
  int64_t allocations;             /* requests served */
  int64_t allocations_from_device; /* of these, requests that reached the driver (or, on cpu, the system) */
  int64_t ops_run;                 /* plans submitted on this device */
  int64_t ops_fallback;            /* ops that ran elsewhere for want of support here */
  int64_t plans_live;
  int64_t plans_prepared;
  int64_t kernels_compiled;
  int64_t transfers_to_device; /* host to device, explicit ones and mirrors */
  int64_t transfers_to_device_bytes;
  int64_t transfers_from_device;
  int64_t transfers_from_device_bytes;
  int64_t transfers_implicit; /* of these, made for mirrors, exposed operands and device outputs on host tensors */
  int64_t transfers_implicit_bytes;
  int64_t mirror_hits;      /* uses of a host tensor that needed no transfer */
  int64_t memory_total;     /* of the device; on cpu what the machine and its limits allow; -1: unknown */
  int64_t memory_available; /* of these, bytes that nobody has; -1: unknown */
} compute_device_statistics;

typedef struct compute_stream_options {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint32_t flags;   /* COMPUTE_STREAM_ */
  int32_t priority; /* 0 is normal, greater is sooner; a hint */
} compute_stream_options;

typedef struct compute_event_options {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint32_t flags; /* COMPUTE_EVENT_ */
  int32_t reserved;
} compute_event_options;

/* compute_tensor_spec.flags. */
enum {
  COMPUTE_SPEC_SCALAR = 1, /* a scalar of compute_tensor_scalar: rank 0, given by value */
  COMPUTE_SPEC_WEAK = 2,   /* a weak one; only with SCALAR */
  COMPUTE_SPEC_ABSENT = 4  /* an optional input that is left out; nothing else in the struct counts */
};

/* An operand without memory, for compute_op_query and compute_map_query. */
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
enum { COMPUTE_OP_IN_PLACE = 4 /* may write into the identical view of an input */ };

/*
 * An op's schema.
 *
 * `inputs` and `attributes` are interface too, for bindings that are made from them:
 *   inputs     := [name {" " name}]                 a name may end in "..." (one or more) or "?" (may be NULL)
 *   attributes := [attribute {"; " attribute}]
 *   attribute  := name ": " kind ["[]"] ["=" default] ["!"]     "[]" a list; without a default it is required; "!" a
 *             run-time attribute
 *   kind       := int64, float64, string, dtype, number; default := a number, a string, all, none
 * with blanks around = and !. Later versions of the library may add kinds, defaults and marks; a reader refuses what it
 * does not know.
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
  const char* expression; /* elementwise ops; else "" */
  int64_t expression_size;
  const char* dtypes; /* the class of dtypes that an elementwise op takes, or the dtype rule of another */
  int64_t dtypes_size;
  const char* bound; /* "ulp:N", "exact", "n", "log2" */
  int64_t bound_size;
  int32_t version;
  uint32_t flags; /* COMPUTE_OP_ */
} compute_op_info;

typedef struct compute_kernel_options {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  const char* compiler_options; /* handed to the compiler as they are; NULL: none. Set with a size of 0 it is refused */
  int64_t compiler_options_size;
} compute_kernel_options;

enum { COMPUTE_ARGUMENT_TENSOR = 1, COMPUTE_ARGUMENT_VALUE = 2, COMPUTE_ARGUMENT_LOCAL_MEMORY = 3 };

/* An argument of a user kernel. */
typedef struct compute_kernel_argument {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int32_t kind;           /* COMPUTE_ARGUMENT_ */
  int32_t access;         /* TENSOR: COMPUTE_ACCESS_READ | COMPUTE_ACCESS_WRITE */
  compute_tensor* tensor; /* TENSOR: the kernel gets the address of its first element */
  const void* value;      /* VALUE */
  int64_t value_size;     /* VALUE: bytes of it; LOCAL_MEMORY: bytes per work-group */
} compute_kernel_argument;

typedef struct compute_launch {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int64_t groups[3];     /* work-groups (CUDA: blocks) per axis */
  int64_t group_size[3]; /* work-items (CUDA: threads) of a group per axis */
  int64_t local_memory_bytes;
} compute_launch;

typedef struct compute_graph_info {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int64_t nodes;           /* recorded plan runs */
  int64_t temporary_bytes; /* reserved for values inside the graph */
  int32_t native;          /* 1: the plugin made an executable of it; 0: replayed op by op */
  int32_t reserved;
} compute_graph_info;

/* ---- Errors and texts -------------------------------------------------------------------------------------------- */

/* Frees an error and its causes. NULL is accepted. */
COMPUTE_API void compute_error_free(compute_error* error);
COMPUTE_API compute_error_code compute_error_get_code(const compute_error* error);
/* One line that names the op, the argument and the values. Load reports and compiler logs follow on further lines. */
COMPUTE_API const char* compute_error_message(const compute_error* error);
COMPUTE_API const char* compute_error_op(const compute_error* error);     /* "" if no op */
COMPUTE_API int32_t compute_error_argument(const compute_error* error);   /* index of the faulty argument; -1 if none */
COMPUTE_API const char* compute_error_device(const compute_error* error); /* canonical name, or "" */
COMPUTE_API int64_t compute_error_native_code(const compute_error* error); /* the vendor's own number; 0 if none */
COMPUTE_API const compute_error* compute_error_cause(const compute_error* error); /* borrowed; NULL if none */
/* "INVALID_ARGUMENT" for 1 and so on; "UNKNOWN" for a number without a name. */
COMPUTE_API const char* compute_error_code_name(compute_error_code code);

/* A text that the caller frees: reports and JSON. */
COMPUTE_API const char* compute_text_data(const compute_text* text); /* NUL-terminated */
COMPUTE_API int64_t compute_text_size(const compute_text* text);     /* bytes without the NUL */
COMPUTE_API void compute_text_free(compute_text* text);

/* ---- The process ------------------------------------------------------------------------------------------------- */

COMPUTE_API void compute_version(int32_t* out_major, int32_t* out_minor, int32_t* out_patch);

/* Bytes of an element; 0 for a number that is no dtype. */
COMPUTE_API int64_t compute_dtype_size(compute_dtype dtype);
/* "float32"; "" for a number that is no dtype. */
COMPUTE_API const char* compute_dtype_name(compute_dtype dtype);

/*
 * Receives every log line in place of the default sink, which writes the selection line and warnings to stderr.
 *
 * `callback` gets a level, a category (load, select, place, copy, compile, error) and one line without its end. NULL
 * brings the default sink back. The callback may be called from any thread, must not call this library, and is not
 * called after this function has replaced it.
 */
typedef void (*compute_log_callback)(int32_t level, const char* category, const char* text, void* user_data);
COMPUTE_API compute_error* compute_log_set_callback(compute_log_callback callback, void* user_data);

/*
 * Sets a setting with the strength of the API, or with that of a flag. `name` is that of the environment variable
 * (COMPUTE_DEVICE) or of the config file (device). NULL as value takes the setting back.
 *
 * Errors: NOT_FOUND         no such setting; the message has the nearest name
 *         INVALID_ARGUMENT  a value that it cannot have
 */
COMPUTE_API compute_error* compute_config_set(const char* name, const char* value);
/* The value in force and who set it, as text; `out_value` holds "value\torigin". Every setting, one a line, for a
 * NULL name. */
COMPUTE_API compute_error* compute_config_get(const char* name, compute_text** out_value);
/*
 * Takes the --compute-NAME=VALUE flags (--compute-device=cuda0) out of a program's arguments; the rest keep their
 * order. `argc` and `argv` are those of main and are changed in place.
 */
COMPUTE_API compute_error* compute_config_arguments(int32_t* argc, char** argv);

/*
 * What became of every plugin that was looked at: found, opened with n devices, or rejected and why, with remedies.
 * Opens every plugin, but no device.
 */
COMPUTE_API compute_error* compute_load_report(int32_t format, compute_text** out_report);

/*
 * Which op ran on which device, how often, and whether in one step or in several; per device the transfers, and the ops
 * that ran on cpu for want of support there. Counts since the process began.
 */
COMPUTE_API compute_error* compute_placement_report(int32_t format, compute_text** out_report);

/*
 * Refuses further calls, waits for those under way, for all work and for all callbacks, at most `timeout_ns`, then
 * closes all devices and plugins. `out_drained` is 1 if all had finished; if not, nothing is closed, for the work still
 * uses it, until the process ends or another call of this function finds it finished. Once all is closed, further calls
 * do nothing and give 1. Of several threads that call it at once, one closes.
 *
 * From its beginning on every call that would use a device or work on it reports SHUT_DOWN, in callbacks too. What the
 * library answers by itself (ops, dtypes, settings, infos, statistics, views, scopes) goes on, _free too, and _release
 * does nothing. Memory that was exported by DLPack lives until it is given back.
 *
 * At exit() the library waits for up to 2 s by itself if the program did not call this, and tells plugins that the
 * process ends unless they were closed; for a kernel that is being compiled it waits longer. Exit handlers and
 * destructors that run before it may make calls, those that run after it get SHUT_DOWN. The library stays loaded if it
 * is closed by dlclose.
 *
 * fork() waits for up to 2 s until no other thread is inside a call; calls that only wait for a device do not count. In
 * the child `cpu` works, other devices that were open report FORKED; if a call did not end in time, all of them do.
 *
 * Errors: INVALID_ARGUMENT  a negative time; a call inside a callback (a notification, a deleter, the log), which it
 *             would wait for
 */
COMPUTE_API compute_error* compute_shutdown(int64_t timeout_ns, int32_t* out_drained);

/*
 * Where in the user's program the calling thread is. Strings are copied. Scopes nest. An error that a call on this
 * thread returns has them in a further line of its message: "scope: train (main.py:12) > forward".
 *
 * Threads: scopes belong to the calling thread, the only state that does. Where a runtime moves work between threads,
 * such as
 *          goroutines, pin the thread from _push to _pop (Go: runtime.LockOSThread).
 */
COMPUTE_API compute_error* compute_scope_push(const char* label, const char* file, int32_t line);
COMPUTE_API compute_error* compute_scope_pop(void);

/* ---- Devices ----------------------------------------------------------------------------------------------------- */

/*
 * Lists every device of every plugin, `cpu` first, then in the order of plugin names and PCI addresses.
 *
 * Writes min(capacity, count) structs, each of infos[0].struct_size bytes, and the count. Allocates nothing on any
 * device and creates no context. Works also where some plugin failed: compute_load_report says why.
 */
COMPUTE_API compute_error* compute_device_list(compute_device_info* infos, int64_t capacity, int64_t* out_count);

/*
 * Opens the device that `selector` names; NULL: COMPUTE_DEVICE, else the config file, else auto.
 *
 * The grammar is in docs/selecting-devices.md: cpu, cuda0, opencl0:1, cuda@pci=0000:65:00.0, cuda0+mem=4G, "cuda,cpu",
 * auto, auto,-opencl. A single name is strict. The same device twice is the same handle, except after CONTEXT_LOST:
 * then it is opened anew, and handles, tensors and streams from before keep failing.
 *
 * Errors: INVALID_ARGUMENT  a malformed selector, with a caret under the fault; other options than it was opened with
 *         NOT_FOUND         no such device, with the load report
 *         DEVICE_LOST, RESTART_REQUIRED, FORKED: it was open, and opening it again does not help.
 */
COMPUTE_API compute_error* compute_device_open(const char* selector, compute_device** out_device);
/* Which device a selector would open, by whom it was chosen, and why not the others; opens nothing. */
COMPUTE_API compute_error* compute_device_which(const char* selector, int32_t format, compute_text** out_answer);
COMPUTE_API void compute_device_retain(compute_device* device);
COMPUTE_API void compute_device_release(compute_device* device);
COMPUTE_API const char* compute_device_name(const compute_device* device);
COMPUTE_API compute_error* compute_device_get_info(compute_device* device, compute_device_info* out_info);
/* The further properties of the device with that canonical name, opened or not; a two-call query like
 * compute_device_list. */
COMPUTE_API compute_error* compute_device_attributes(const char* name, compute_device_attribute* attributes,
                                                     int64_t capacity, int64_t* out_count);
COMPUTE_API compute_error* compute_device_get_statistics(compute_device* device,
                                                         compute_device_statistics* out_statistics);
/*
 * The vendor's own handles, for programs that mix their own CUDA or OpenCL code with tensors: CUcontext or cl_context,
 * CUstream or cl_command_queue, CUdeviceptr or cl_mem and where in it the element with all indices 0 lies. Borrowed:
 * valid as long as the object.
 *
 * Work that the program queues by itself is unknown to this library: wait for the tensor first
 * (compute_tensor_synchronize), and for that work before the tensor is used here again, or queue both on one stream.
 *
 * Errors: UNSUPPORTED  the plugin hands out none; memory of `cpu` is reached by compute_tensor_map.
 */
COMPUTE_API compute_error* compute_device_native_handle(compute_device* device, uint64_t* out_handle);
COMPUTE_API compute_error* compute_stream_native_handle(compute_stream* stream, uint64_t* out_handle);
COMPUTE_API compute_error* compute_tensor_native_handle(compute_tensor* tensor, uint64_t* out_handle,
                                                        int64_t* out_offset_bytes);
COMPUTE_API compute_error* compute_device_health(compute_device* device, int32_t* out_health);
/* Gives cached memory and mirrors back until at most `keep_bytes` are cached. */
COMPUTE_API compute_error* compute_device_trim(compute_device* device, int64_t keep_bytes);
/*
 * The stream that NULL stands for on `device`; the caller releases it. After its work has failed NULL stands for
 * another one: get it again. It records no graphs.
 *
 * Errors: UNSUPPORTED  `cpu`, and other devices whose default stream is one per calling thread.
 */
COMPUTE_API compute_error* compute_device_default_stream(compute_device* device, compute_stream** out_stream);
/* Waits for all work of all streams of the device that was queued before. */
COMPUTE_API compute_error* compute_device_synchronize(compute_device* device);

/* ---- Tensors ----------------------------------------------------------------------------------------------------- */

/*
 * Creates a row-major tensor with undefined contents.
 *
 * `shape` holds `rank` extents in elements, outermost first. An extent may be 0; rank 0 is a scalar. Storage is aligned
 * to at least 64 bytes; a tensor without elements has none.
 *
 * Ownership: *out_tensor is the caller's to release, and keeps `device` alive. `shape` is not kept.
 * Blocks:    for an allocation at most; for queued work only if what that uses is all the memory there is.
 * Errors:    INVALID_ARGUMENT     a null pointer, a negative extent, a rank outside [0, 32], no dtype
 *            OUT_OF_RANGE         the size in bytes does not fit in int64_t
 *            UNSUPPORTED          the device has no such dtype
 *            OUT_OF_DEVICE_MEMORY (OUT_OF_MEMORY on cpu).
 */
COMPUTE_API compute_error* compute_tensor_empty(compute_device* device, compute_dtype dtype, int32_t rank,
                                                const int64_t* shape, compute_tensor** out_tensor);
/* The same, every element equal to *value, one element of `dtype`. */
COMPUTE_API compute_error* compute_tensor_full(compute_device* device, compute_dtype dtype, int32_t rank,
                                               const int64_t* shape, const void* value, compute_tensor** out_tensor);
/* The same, with a copy of the row-major elements at `data`; `data` may be reused on return. */
COMPUTE_API compute_error* compute_tensor_from_host(compute_device* device, compute_dtype dtype, int32_t rank,
                                                    const int64_t* shape, const void* data,
                                                    compute_tensor** out_tensor);
/*
 * A host tensor over the program's own memory, without a copy.
 *
 * `strides` in elements, NULL for row-major; `data` is the address of the element with all indices 0, aligned to the
 * element's size. `promise` is one of COMPUTE_WRAP_. A range inside one that is wrapped already shares its buffer, so
 * that hazards between them are tracked.
 *
 * Ownership: the memory stays the program's. On success `deleter` (may be NULL) is called once with (data, user_data),
 * from any thread,
 *            when no tensor and no queued work uses the memory any more; it must not call this library. On error it is
 *            not called.
 * Errors:    INVALID_ARGUMENT  no shape, dtype or promise; `data` is not aligned; the range is wrapped with another
 *            promise OUT_OF_RANGE      the layout leaves the address space UNSUPPORTED       the range overlaps a
 *            wrapped one without lying inside it; wrap the larger one first.
 */
typedef void (*compute_deleter)(void* data, void* user_data);
COMPUTE_API compute_error* compute_tensor_wrap_host(compute_dtype dtype, int32_t rank, const int64_t* shape,
                                                    const int64_t* strides, void* data, int32_t promise,
                                                    compute_deleter deleter, void* user_data,
                                                    compute_tensor** out_tensor);
/* Says that the program wrote wrapped memory: mirrors of it are stale from now on. */
COMPUTE_API compute_error* compute_tensor_touch(compute_tensor* tensor);
/*
 * An immutable rank-0 host operand: no memory, no transfer, no plan per value. A weak one (`weak` = 1) takes the dtype
 * of the other operands and does not take part in promotion, like a number literal.
 */
COMPUTE_API compute_error* compute_tensor_scalar(compute_dtype dtype, const void* value, int32_t weak,
                                                 compute_tensor** out_tensor);
/* A slot: a scalar whose value in a recorded graph is changed by compute_graph_set_scalar. Starts as 0. */
COMPUTE_API compute_error* compute_scalar_create(compute_dtype dtype, compute_tensor** out_tensor);

COMPUTE_API void compute_tensor_retain(compute_tensor* tensor);
COMPUTE_API void compute_tensor_release(compute_tensor* tensor);

COMPUTE_API compute_dtype compute_tensor_dtype(const compute_tensor* tensor);
COMPUTE_API int32_t compute_tensor_rank(const compute_tensor* tensor);
COMPUTE_API const int64_t* compute_tensor_shape(const compute_tensor* tensor); /* borrowed; `rank` extents */
COMPUTE_API const int64_t* compute_tensor_strides(
    const compute_tensor* tensor); /* borrowed; `rank` strides in elements */
COMPUTE_API int64_t compute_tensor_offset_bytes(const compute_tensor* tensor); /* of the element with all indices 0 */
COMPUTE_API int64_t compute_tensor_element_count(const compute_tensor* tensor);
COMPUTE_API int64_t
compute_tensor_size_bytes(const compute_tensor* tensor); /* element_count times the element's size */
COMPUTE_API compute_device* compute_tensor_device(const compute_tensor* tensor); /* borrowed */
/* 1 if `a` and `b` share one buffer. */
COMPUTE_API int32_t compute_tensor_shares_buffer(const compute_tensor* a, const compute_tensor* b);
/* A name for reports and messages; copied. Each is kept until the tensor goes, so that it can be read meanwhile. */
COMPUTE_API compute_error* compute_tensor_set_label(compute_tensor* tensor, const char* label);
COMPUTE_API const char* compute_tensor_label(const compute_tensor* tensor);

/* Views share the buffer and never call a device. */
/* Row-major reshape. One extent may be -1. A layout that cannot be viewed so is UNSUPPORTED, with copy as the hint. */
COMPUTE_API compute_error* compute_tensor_reshape(compute_tensor* tensor, int32_t rank, const int64_t* shape,
                                                  compute_tensor** out_view);
/* Axis i of the view is axis axes[i] of the tensor; NULL reverses all axes. */
COMPUTE_API compute_error* compute_tensor_permute(compute_tensor* tensor, int32_t rank, const int32_t* axes,
                                                  compute_tensor** out_view);
/* Python's x[start:stop:step] per axis: negative indices count from the end, out-of-range ones are clipped;
 * INT64_MIN as start or INT64_MAX as stop means the respective end (of the direction of step). A NULL array: whole
 * axes / steps of 1. */
COMPUTE_API compute_error* compute_tensor_slice(compute_tensor* tensor, int32_t rank, const int64_t* starts,
                                                const int64_t* stops, const int64_t* steps, compute_tensor** out_view);
/* Extents of 1 (and missing leading axes) repeat, with stride 0. */
COMPUTE_API compute_error* compute_tensor_broadcast(compute_tensor* tensor, int32_t rank, const int64_t* shape,
                                                    compute_tensor** out_view);
/* A new axis of extent 1 in front of axis `axis` of the result; negative counts from the end. */
COMPUTE_API compute_error* compute_tensor_expand(compute_tensor* tensor, int32_t axis, compute_tensor** out_view);
/* Without axis `axis`, which has extent 1. */
COMPUTE_API compute_error* compute_tensor_squeeze(compute_tensor* tensor, int32_t axis, compute_tensor** out_view);
/* Any dtype of the same element size, shape, strides and offset that stay inside the tensor's buffer. */
COMPUTE_API compute_error* compute_tensor_view(compute_tensor* tensor, compute_dtype dtype, int32_t rank,
                                               const int64_t* shape, const int64_t* strides, int64_t offset_bytes,
                                               compute_tensor** out_view);

/*
 * Copies all elements to `dst` in row-major order. `size_bytes` must be the tensor's.
 *
 * Waits for the work that writes the tensor, and reports its failure.
 */
COMPUTE_API compute_error* compute_tensor_read(compute_tensor* tensor, void* dst, int64_t size_bytes);
/* Copies row-major elements from `src` into the tensor, after the work that uses it. `src` may be reused on return. */
COMPUTE_API compute_error* compute_tensor_write(compute_tensor* tensor, const void* src, int64_t size_bytes);
/* The same in stream order: `dst` and `src` belong to the stream until it has passed this point. */
COMPUTE_API compute_error* compute_tensor_read_async(compute_tensor* tensor, void* dst, int64_t size_bytes,
                                                     compute_stream* stream);
COMPUTE_API compute_error* compute_tensor_write_async(compute_tensor* tensor, const void* src, int64_t size_bytes,
                                                      compute_stream* stream);
/* A row-major copy on `device`; on the tensor's own device a new reference to the tensor itself. */
COMPUTE_API compute_error* compute_tensor_to_device(compute_tensor* tensor, compute_device* device,
                                                    compute_tensor** out_tensor);
/*
 * The tensor's memory as a host address: its own where the host can address it, else a copy that _unmap writes back
 * whole if `access` has COMPUTE_ACCESS_WRITE. With COMPUTE_ACCESS_READ it reports the failure of the work that wrote
 * the tensor, as _read does. Without it the contents are undefined: what the program does not write has no value
 * afterwards. *out_data is the element with all indices 0; the strides are the tensor's where the memory is its own
 * (*out_is_copy = 0) and row-major otherwise. Until _unmap the buffer is exposed; work that conflicts with `access`
 * waits for nothing and is the program's fault, except that _map itself waits for the work queued before.
 */
COMPUTE_API compute_error* compute_tensor_map(compute_tensor* tensor, int32_t access, void** out_data,
                                              int32_t* out_is_copy);
COMPUTE_API compute_error* compute_tensor_unmap(compute_tensor* tensor, void* data);
/* Waits for exactly the work that writes the tensor, and reports its failure. */
COMPUTE_API compute_error* compute_tensor_synchronize(compute_tensor* tensor);

/*
 * DLPack 1.x exchange.
 *
 * _from_dlpack takes ownership of `managed` on success (its deleter is called later, from any thread) and leaves it to
 * the caller on error. Host memory is wrapped without a copy (as COMPUTE_WRAP_EXPOSED, or IMMUTABLE if it is flagged
 * read-only); device memory needs the plugin's import. _to_dlpack: the caller owns *out_managed and calls its deleter;
 * the buffer is exposed until then. `stream` is the consumer's stream in DLPack's numbering (-1: no synchronisation, so
 * that only a failure that is known already is reported); else the call waits for pending work, so that the consumer's
 * comes after it.
 */
COMPUTE_API compute_error* compute_tensor_from_dlpack(struct DLManagedTensorVersioned* managed,
                                                      compute_tensor** out_tensor);
COMPUTE_API compute_error* compute_tensor_to_dlpack(compute_tensor* tensor, int64_t stream,
                                                    struct DLManagedTensorVersioned** out_managed);

/* ---- Failures of queued work ------------------------------------------------------------------------------------- */

/*
 * Work that was accepted may fail later. Whoever depends on it is told, each time, with the op that failed; nobody else
 * is.
 *
 * Tensors. What failed work was to write has no values, nor has what is computed from that, on any stream. Reading,
 * mapping, synchronizing, moving or exporting such a tensor, or using it as an operand, is the error of the work that
 * failed (KERNEL_FAILED, STREAM_FAILED, CONTEXT_LOST, …). Overwriting all of it, by an op, _write or a map without
 * COMPUTE_ACCESS_READ, gives it values. What failed work only read is as it was.
 *
 * Streams. After a checked fault (KERNEL_FAILED: an index out of range) the stream takes no more work; what was queued
 * behind it runs, and has values where it does not depend on it. After STREAM_FAILED and the severer codes nothing
 * behind the last good submission has values. Either way compute_stream_synchronize, _wait_until, _query and _notify,
 * compute_event_synchronize and _query, and every attempt to queue work report the failure as long as the stream lives;
 * a new stream heals, and NULL stands for a new one by itself. A stream that only computed with what failed elsewhere
 * goes on; the first of those calls after it is known says so once.
 *
 * compute_device_synchronize waits for all streams, also released ones, and reports a failure that no other call has
 * reported yet.
 *
 * A call that returns an error itself (a submission that a device refuses, any fault on an immediate stream) leaves its
 * outputs as they were if nothing of it had been queued, and else without values, which those who read them are told. A
 * tensor that is an output of a recorded graph holds no values before the graph's first run: looking at it is
 * INVALID_ARGUMENT.
 */

/* ---- Streams and events ------------------------------------------------------------------------------------------ */

/* An in-order queue of work. `options` may be NULL. Programs need no events: hazards between streams are tracked per
 * buffer. */
COMPUTE_API compute_error* compute_stream_create(compute_device* device, const compute_stream_options* options,
                                                 compute_stream** out_stream);
COMPUTE_API void compute_stream_retain(compute_stream* stream);
COMPUTE_API void compute_stream_release(compute_stream* stream);                 /* queued work still runs */
COMPUTE_API compute_device* compute_stream_device(const compute_stream* stream); /* borrowed */
/*
 * Waits until all work queued on `stream` before this call has finished.
 *
 * Afterwards, what that work wrote is visible to the host and to other streams.
 *
 * Threads:   any, except from inside a callback, where it would wait for itself.
 * Blocks:    yes, without a limit. It spins for at most COMPUTE_SPIN_US, then sleeps.
 * Errors:    INVALID_ARGUMENT  `stream` is NULL
 *            STREAM_FAILED     queued work failed; the stream is failed, make a new one
 *            KERNEL_FAILED     the same, by a checked fault in a kernel; CONTEXT_LOST, DEVICE_LOST, RESTART_REQUIRED.
 *             See above.
 */
COMPUTE_API compute_error* compute_stream_synchronize(compute_stream* stream);
/* The same for at most `timeout_ns` from now (a duration); a time-out is *out_reached = 0 and no error. */
COMPUTE_API compute_error* compute_stream_wait_until(compute_stream* stream, int64_t timeout_ns, int32_t* out_reached);
/* Whether all queued work has finished; never waits. */
COMPUTE_API compute_error* compute_stream_query(compute_stream* stream, int32_t* out_finished);
/*
 * Calls `callback` once all work queued before has finished; `error` is NULL, or why it failed (borrowed).
 *
 * Callbacks run one after another, in the order of the calls, on one thread of this library. So a stream that never
 * ends holds up the callbacks of all, and a callback may queue work, but must not wait for any; compute_shutdown is
 * refused there.
 */
typedef void (*compute_stream_callback)(const compute_error* error, void* user_data);
COMPUTE_API compute_error* compute_stream_notify(compute_stream* stream, compute_stream_callback callback,
                                                 void* user_data);

/* The point that a stream has reached with the work queued so far. `options` may be NULL. */
COMPUTE_API compute_error* compute_event_record(compute_stream* stream, const compute_event_options* options,
                                                compute_event** out_event);
/* Work queued on `stream` from now on runs after the event; does not block the caller within one plugin. */
COMPUTE_API compute_error* compute_event_wait(compute_event* event, compute_stream* stream);
COMPUTE_API compute_error* compute_event_synchronize(compute_event* event);
COMPUTE_API compute_error* compute_event_query(compute_event* event, int32_t* out_finished);
COMPUTE_API void compute_event_retain(compute_event* event);
COMPUTE_API void compute_event_release(compute_event* event);

/* ---- Ops --------------------------------------------------------------------------------------------------------- */

/* Finds an op; version 0 means the newest. The handle is borrowed, never released. NOT_FOUND has the nearest name. */
COMPUTE_API compute_error* compute_op_find(const char* name, int32_t version, const compute_op** out_op);
/* Every op in the order of names; a two-call query like compute_device_list. */
COMPUTE_API compute_error* compute_op_list(compute_op_info* infos, int64_t capacity, int64_t* out_count);
COMPUTE_API compute_error* compute_op_get_info(const compute_op* op, compute_op_info* out_info);

/*
 * Runs an op.
 *
 * It runs on the stream's device; without a stream on the one device other than cpu among the operands; else on cpu.
 * Host tensors given to an op on another device are mirrored there. outputs[i] is in and out: a NULL entry is made (its
 * owner is the caller), another is written: exact shape and dtype, any strides that do not overlap themselves. It may
 * share memory with an input only as the identical view and where the op says IN_PLACE (all elementwise ops do); any
 * other overlap is an error. Optional inputs may be NULL. On error no output was made and given ones are unchanged,
 * unless the work failed while running.
 */
COMPUTE_API compute_error* compute_op_run(const compute_op* op, compute_stream* stream,
                                          const compute_attribute* attributes, int64_t attribute_count,
                                          compute_tensor* const* inputs, int64_t input_count, compute_tensor** outputs,
                                          int64_t output_count);
/*
 * How the device would run the op over operands like `inputs`, with outputs that it makes: COMPUTE_SUPPORT_, the exact
 * reason where it would not (else an empty text), and the bytes of temporary memory (-1: known when it is prepared).
 * What no device runs is INVALID_ARGUMENT, as of the run.
 */
COMPUTE_API compute_error* compute_op_query(compute_device* device, const compute_op* op,
                                            const compute_attribute* attributes, int64_t attribute_count,
                                            const compute_tensor_spec* inputs, int64_t input_count,
                                            int32_t* out_support, compute_text** out_reason,
                                            int64_t* out_workspace_bytes);

/*
 * A plan: an op prepared on a device for the dtypes, shapes and strides of given operands and its static attributes. A
 * NULL output stands for the row-major one that the op makes.
 *
 * compute_plan_run takes operands that agree in these (INVALID_ARGUMENT otherwise) and saves the look-up; where their
 * alignment differs, or other outputs are given, it looks up what fits. It runs on `stream`, and without one on the
 * default stream of the plan's device. `run_time` are values for run-time attributes (marked ! in
 * compute_op_info.attributes), in place of those given at creation; a static attribute is INVALID_ARGUMENT. `outputs`
 * as in compute_op_run.
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
 * Parses an elementwise expression over named inputs and run-time scalars: "tanh(a*b + 1)". Several outputs are
 * separated by semicolons. Operators and functions are those of docs/expressions.md; index(i) is the position along
 * axis i. A fault is an INVALID_ARGUMENT with a caret.
 */
COMPUTE_API compute_error* compute_expression_parse(const char* text, const char* const* input_names,
                                                    int64_t input_count, const char* const* scalar_names,
                                                    int64_t scalar_count, compute_expression** out_expression);
COMPUTE_API int32_t compute_expression_input_count(const compute_expression* expression);
COMPUTE_API int32_t compute_expression_scalar_count(const compute_expression* expression);
COMPUTE_API int32_t compute_expression_output_count(const compute_expression* expression);
COMPUTE_API void compute_expression_retain(compute_expression* expression);
COMPUTE_API void compute_expression_release(compute_expression* expression);
/* Runs an expression in one pass over its broadcast inputs. `scalars` are tensors made by compute_tensor_scalar or
 * compute_scalar_create. An expression without inputs needs all its outputs given. */
COMPUTE_API compute_error* compute_map(compute_stream* stream, compute_expression* expression,
                                       compute_tensor* const* inputs, int64_t input_count,
                                       compute_tensor* const* scalars, int64_t scalar_count, compute_tensor** outputs,
                                       int64_t output_count);
/* As compute_op_query. `scalars` count as COMPUTE_SPEC_SCALAR. `outputs` are those that are given, the others
 * COMPUTE_SPEC_ABSENT; NULL if none is. */
COMPUTE_API compute_error* compute_map_query(compute_device* device, compute_expression* expression,
                                             const compute_tensor_spec* inputs, int64_t input_count,
                                             const compute_tensor_spec* scalars, int64_t scalar_count,
                                             const compute_tensor_spec* outputs, int64_t output_count,
                                             int32_t* out_support, compute_text** out_reason,
                                             int64_t* out_workspace_bytes);

/* ---- User kernels ------------------------------------------------------------------------------------------------ */

/*
 * Compiles a kernel from source. `language` is "cuda-c", "opencl-c" or "portable" (docs/kernels.md).
 *
 * Errors: COMPILE_FAILED with the compiler's log; UNSUPPORTED if the device takes no such source.
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
 * Records what is queued on `stream` from now on instead of running it. Outputs made meanwhile belong to the caller and
 * hold no values before the first run: until then reading, mapping, moving or exporting them, and using them as
 * operands of work that runs, is INVALID_ARGUMENT. Host operands other than scalars, and reading, mapping or waiting on
 * the stream, are errors while recording; other streams are unaffected.
 */
COMPUTE_API compute_error* compute_graph_begin(compute_stream* stream);
/* Ends recording. After an error while recording it returns that error and no graph. */
COMPUTE_API compute_error* compute_graph_end(compute_stream* stream, compute_graph** out_graph);
/* Runs the graph as one submission on any stream of the device. Runs of one graph are ordered. */
COMPUTE_API compute_error* compute_graph_run(compute_graph* graph, compute_stream* stream);
/* Sets the value, of the slot's dtype, that later runs use for `scalar`. */
COMPUTE_API compute_error* compute_graph_set_scalar(compute_graph* graph, compute_tensor* scalar, const void* value);
COMPUTE_API compute_error* compute_graph_get_info(compute_graph* graph, compute_graph_info* out_info);
COMPUTE_API void compute_graph_retain(compute_graph* graph);
COMPUTE_API void compute_graph_release(compute_graph* graph);

#ifdef __cplusplus
}
#endif

#include "compute/ops.h"

#endif /* COMPUTE_COMPUTE_H_ */
