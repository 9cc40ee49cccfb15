/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin.h: the interface between the compute core and a device plugin, in C11. It stands alone: a plugin includes
 * nothing else of this project and links no symbol of it.
 *
 * A plugin is a shared library that exports exactly two functions,
 *
 *   const compute_plugin_manifest* compute_plugin_query(void);
 *   compute_error* compute_plugin_open(uint32_t interface_version, const compute_plugin_host* host,
 *                                      const compute_plugin_table** out_table);
 *
 * and hides everything else. The smallest useful plugin fills the slots that are not marked optional, about twenty, and
 * runs five ops: map, copy, reduce, gather and scatter. Core brings everything else: handles and reference counts,
 * checking of arguments, dtype promotion, broadcasting, views, memory pools, hazards between streams, mirrors, graphs
 * by replay, and a decomposition of every other op into these five. `compute-cts --plugin FILE` tests a plugin.
 *
 * Rules
 * - Numbers. Integers of fixed width, doubles and pointers. Objects of a plugin (devices, streams, buffers, plans,
 *   kernels) are uint64_t values of its choice, never 0 except for empty buffers, that core gives back untouched.
 * - Structs start with struct_size, struct_type and next. Both sides set struct_size to the size that they were
 *   compiled with and read at most the size that they were given; what is missing has its zero meaning. Tables begin
 *   with their size alone, are const and live until the plugin is closed; core copies them, extensions' too, into
 *   zero-filled tables of its own. Tables grow at the end only. An array of structs is stepped by the struct_size of
 *   its first element. Structs without a size of their own ("fixed layout") never change. No struct is passed by value.
 * - What a reader does not know. A `next` entry of an unknown struct_type is skipped, unless the type has the bit
 *   COMPUTE_STRUCT_MUST_UNDERSTAND: then the call is UNSUPPORTED, and a plugin that hands out such an entry is refused.
 *   In flags, unknown bits 0 to 15 are ignored, unknown bits 16 to 31 refused, in both directions. A plugin refuses an
 *   op that has more tensors, expressions, scalars or attributes than it knows of, or an attribute whose name or value
 *   it does not know; core treats unknown kinds of device as accelerators and unknown error codes as INTERNAL.
 * - A NULL slot means what its comment says. Slots without "optional" must be filled.
 * - Errors. A function returns NULL or an error made by host->error_new, which changes owner: the same error is never
 *   returned twice. Core presets out-parameters and ignores them where an error is returned, but for *out_reached.
 *   Nothing is thrown, printed, aborted or exited across the border, callbacks included; core reports what is thrown as
 *   PLUGIN_REJECTED. "Not supported" is an answer, not an error, where a slot has a way to say it.
 * - Memory never changes owner. What a plugin hands out is const and valid until close, or passed to an `emit` function
 *   and copied there. What core hands in is valid during the call only, unless stated.
 * - Threads. Core calls the functions of one stream from one thread at a time (stream_reached and stream_sync excepted,
 *   which may run beside anything), everything else from any number of threads at once.
 * - The floating-point environment. Core calls in the default one (round to nearest, no traps, subnormals kept), in
 *   which threads that a plugin starts are born, too. A plugin may leave exceptions raised and errno changed: core
 *   gives its caller both back as they were.
 * - The host table is immortal, callable from any thread including a vendor's callbacks, and never calls the plugin
 *   back.
 * - First use. compute_plugin_query makes no driver call. compute_plugin_open and enumerate create no context and
 *   allocate nothing on a device. op_run initialises, compiles, allocates and waits for nothing: that is op_prepare's
 *   work.
 */
#ifndef COMPUTE_PLUGIN_H_
#define COMPUTE_PLUGIN_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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

/* ---- Versions ---------------------------------------------------------------------------------------------------- */

/*
 * The interface version of this header. A break takes a new number and a new entry point (compute_plugin_open2).
 *
 * While COMPUTE_PLUGIN_DRAFT is not 0 the interface is not declared: a plugin is accepted only by a core of the same
 * draft.
 */
#define COMPUTE_PLUGIN_INTERFACE 1u
#define COMPUTE_PLUGIN_DRAFT 3u

/* The greatest rank of a tensor in an op: a client's 32 and what decompositions add. Core gives no more. */
#define COMPUTE_PLUGIN_MAX_RANK 40

#if defined(_WIN32)
#define COMPUTE_PLUGIN_EXPORT __declspec(dllexport)
#else
#define COMPUTE_PLUGIN_EXPORT __attribute__((visibility("default")))
#endif

/* Struct types. */
enum {
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
  COMPUTE_PLUGIN_STRUCT_GRAPH_NODE = 1023
};

/* compute_plugin_manifest.flags: none yet. */

/* What a plugin says of itself without touching a driver. Static data. */
typedef struct compute_plugin_manifest {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint32_t interface_min; /* interface versions that it can speak */
  uint32_t interface_max;
  uint32_t
      draft; /* COMPUTE_PLUGIN_DRAFT, of interface_max: it counts only where interface_max is what was negotiated */
  uint32_t flags;
  compute_string name;    /* prefix of its devices' names: letters and '_', not ending in a digit */
  compute_string version; /* its own */
  compute_string vendor;
  compute_string license; /* SPDX */
  compute_string url;
  compute_string build_id;  /* differs between any two builds that differ */
  compute_string sanitizer; /* "", "address", "thread", "memory": must suit the process */
  int32_t priority;         /* among devices of one kind for `auto`; greater first; 0 is normal */
  int32_t reserved;
} compute_plugin_manifest;

/* ---- The host table ---------------------------------------------------------------------------------------------- */

typedef struct compute_plugin_error_info {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  compute_error_code code;
  int32_t argument;       /* index of the faulty operand, or -1 */
  int64_t native_code;    /* the vendor's number */
  compute_string message; /* one line that names values; a compiler's log may follow on further lines */
  compute_error* cause;   /* consumed; may be NULL */
} compute_plugin_error_info;

typedef struct compute_plugin_host {
  int64_t table_size;
  uint32_t interface_newest; /* that core speaks; the negotiated one is compute_plugin_open's argument */
  uint32_t core_version;     /* major << 16 | minor << 8 | patch */
  /* Makes an error. Never fails, never returns NULL: for want of memory it returns the static out-of-memory object. */
  compute_error* (*error_new)(const compute_plugin_error_info* info);
  void (*error_free)(compute_error* error);
  compute_error_code (*error_code)(const compute_error* error);
  /* One line to the log; category is load, select, place, copy, compile or error. */
  void (*log)(int32_t level, const char* category, const char* text, int64_t text_size);
  /*
   * The value in force of a setting, from flag, environment or config file, by its environment name (COMPUTE_CPU_ISA; a
   * foreign plugin's own: ACME_MODE, environment only). Copies at most `capacity` bytes and returns the value's size,
   * or -1 if unset.
   */
  int64_t (*setting)(const char* name, int64_t name_size, char* buffer, int64_t capacity);
  /*
   * Reports that work failed, from any thread, before whatever waits for it is woken. `host_stream` is the value given
   * to stream_create, or 0 for all streams of `host_device`, which then tells no numbers. Numbers up to `last_good` are
   * known to have succeeded; those in (last_good, seen] may have failed. Consumes `error`. What was queued may still be
   * running: core asks stream_sync too, so a plugin without callbacks never calls this.
   */
  void (*report_async)(uint64_t host_device, uint64_t host_stream, uint64_t last_good, uint64_t seen,
                       compute_error* error);
} compute_plugin_host;

/* ---- Enumeration ------------------------------------------------------------------------------------------------- */

/* A further property of a device, shown by `compute info`: name in snake_case, value as text. */
typedef struct compute_plugin_property {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  compute_string name;
  compute_string value;
} compute_plugin_property;

/* A device, as known without creating a context. */
typedef struct compute_plugin_device_info {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint64_t id; /* given back to device_open */
  compute_string description;
  compute_string vendor;
  compute_string driver_version;
  compute_string pci_address; /* dddd:bb:dd.f, lower case; "" if unknown. Core numbers devices in its order */
  compute_string uuid;
  compute_string libraries; /* vendor libraries in use, one a line: name, version, path */
  int64_t memory_bytes;     /* -1 if unknown */
  int32_t kind;             /* COMPUTE_DEVICE_KIND_ */
  int32_t score;            /* among this plugin's devices for `auto`; greater first */
  int32_t platform_index;   /* of plugins that number in two levels; else -1. Core counts those that have devices */
  int32_t property_count;
  const compute_plugin_property* properties;
  const uint32_t* dtypes; /* by dtype id: COMPUTE_DTYPE_STORAGE | …; what lies beyond dtype_count is not supported */
  int32_t dtype_count;
  int32_t reserved;
  compute_string unusable; /* "", or why the device can be shown but not opened */
  compute_string platform; /* its platform's names, one a line, for selectors: opencl@platform~pocl; "": none */
} compute_plugin_device_info;

/* A library or driver that the plugin looks for at run time, for the load report. */
typedef struct compute_plugin_requirement {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  compute_string name;   /* cuBLAS */
  compute_string tried;  /* names and paths tried, one a line */
  compute_string found;  /* path and version; "" if not found */
  compute_string error;  /* the system's word on it */
  compute_string effect; /* what is lost without it */
  compute_string remedy; /* what the user can do */
  int32_t required;      /* 1: without it there are no devices */
  int32_t state;         /* 0 not looked for yet, 1 found, 2 missing, 3 too old or unusable */
} compute_plugin_requirement;

/* Where enumerate delivers; everything is copied during the call. */
typedef struct compute_plugin_sink {
  int64_t table_size;
  void* context;
  void (*device)(void* context, const compute_plugin_device_info* info);
  void (*requirement)(void* context, const compute_plugin_requirement* requirement);
} compute_plugin_sink;

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

/* compute_plugin_heap.flags */
enum {
  COMPUTE_HEAP_DEVICE_LOCAL = 1,
  COMPUTE_HEAP_HOST_VISIBLE = 2, /* memory_map works */
  COMPUTE_HEAP_HOST_SPACE = 4,   /* buffer handles are host addresses; core reads and writes them without memory_map */
  COMPUTE_HEAP_PINNED = 8,   /* the device reaches it directly; with HOST_SPACE it serves staging and fault records */
  COMPUTE_HEAP_COHERENT = 16 /* mapped memory needs no unmap for writes to be seen */
};

enum {
  COMPUTE_SUBALLOCATE_NONE = 0,  /* a tensor is a whole allocation (its views use offsets) */
  COMPUTE_SUBALLOCATE_OFFSET = 1 /* many tensors may share an allocation at multiples of offset_alignment */
};

typedef struct compute_plugin_heap {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint32_t flags;
  int32_t suballocation;
  int64_t size_bytes; /* -1 if unknown */
  int64_t max_allocation_bytes;
  int64_t offset_alignment; /* bytes, a power of two */
  int64_t base_alignment; /* alignment of an allocation's first byte: at least 64 in the first heap; 0 is taken as 64 */
} compute_plugin_heap;

/* compute_plugin_allocation.flags: none yet. */
typedef struct compute_plugin_allocation {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int32_t heap; /* index into compute_plugin_caps.heaps */
  uint32_t flags;
  int64_t size_bytes; /* > 0 */
} compute_plugin_allocation;

/* Foreign device memory, as DLPack describes it. */
typedef struct compute_plugin_import {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int32_t dlpack_device_type;
  int32_t dlpack_device_id;
  void* data;         /* of the byte with the lowest address */
  int64_t size_bytes; /* span of all that may be used */
} compute_plugin_import;

/* ---- Expressions ------------------------------------------------------------------------------------------------- */

/* Intrinsics; compute/intrinsics.def has their meaning, NaN rules and bounds. A plugin that does not know an id
 * refuses the expression with the reason INTRINSIC and gets it again with the intrinsic's definition in its place. */
enum {
  COMPUTE_INTRINSIC_CONVERT = 1,
  COMPUTE_INTRINSIC_BITCAST = 2,
  COMPUTE_INTRINSIC_WHERE = 3,
  COMPUTE_INTRINSIC_ADD = 4,
  COMPUTE_INTRINSIC_SUB = 5,
  COMPUTE_INTRINSIC_MUL = 6,
  COMPUTE_INTRINSIC_DIV = 7,
  COMPUTE_INTRINSIC_FLOOR_DIV = 8,
  COMPUTE_INTRINSIC_MOD = 9,
  COMPUTE_INTRINSIC_NEG = 10,
  COMPUTE_INTRINSIC_ABS = 11,
  COMPUTE_INTRINSIC_SIGN = 12,
  COMPUTE_INTRINSIC_MIN = 13,
  COMPUTE_INTRINSIC_MAX = 14,
  COMPUTE_INTRINSIC_POW = 15,
  COMPUTE_INTRINSIC_EQ = 16,
  COMPUTE_INTRINSIC_NE = 17,
  COMPUTE_INTRINSIC_LT = 18,
  COMPUTE_INTRINSIC_LE = 19,
  COMPUTE_INTRINSIC_GT = 20,
  COMPUTE_INTRINSIC_GE = 21,
  COMPUTE_INTRINSIC_BIT_AND = 22,
  COMPUTE_INTRINSIC_BIT_OR = 23,
  COMPUTE_INTRINSIC_BIT_XOR = 24,
  COMPUTE_INTRINSIC_BIT_NOT = 25,
  COMPUTE_INTRINSIC_SHL = 26,
  COMPUTE_INTRINSIC_SHR = 27,
  COMPUTE_INTRINSIC_MUL_HIGH = 28,
  COMPUTE_INTRINSIC_FLOOR = 29,
  COMPUTE_INTRINSIC_CEIL = 30,
  COMPUTE_INTRINSIC_TRUNC = 31,
  COMPUTE_INTRINSIC_ROUND = 32,
  COMPUTE_INTRINSIC_SQRT = 33,
  COMPUTE_INTRINSIC_RSQRT = 34,
  COMPUTE_INTRINSIC_CBRT = 35,
  COMPUTE_INTRINSIC_EXP = 36,
  COMPUTE_INTRINSIC_EXP2 = 37,
  COMPUTE_INTRINSIC_EXPM1 = 38,
  COMPUTE_INTRINSIC_LOG = 39,
  COMPUTE_INTRINSIC_LOG1P = 40,
  COMPUTE_INTRINSIC_LOG2 = 41,
  COMPUTE_INTRINSIC_LOG10 = 42,
  COMPUTE_INTRINSIC_SIN = 43,
  COMPUTE_INTRINSIC_COS = 44,
  COMPUTE_INTRINSIC_TAN = 45,
  COMPUTE_INTRINSIC_ASIN = 46,
  COMPUTE_INTRINSIC_ACOS = 47,
  COMPUTE_INTRINSIC_ATAN = 48,
  COMPUTE_INTRINSIC_ATAN2 = 49,
  COMPUTE_INTRINSIC_SINH = 50,
  COMPUTE_INTRINSIC_COSH = 51,
  COMPUTE_INTRINSIC_TANH = 52,
  COMPUTE_INTRINSIC_ASINH = 53,
  COMPUTE_INTRINSIC_ACOSH = 54,
  COMPUTE_INTRINSIC_ATANH = 55,
  COMPUTE_INTRINSIC_HYPOT = 56,
  COMPUTE_INTRINSIC_COPYSIGN = 57,
  COMPUTE_INTRINSIC_NEXTAFTER = 58,
  COMPUTE_INTRINSIC_SIGNBIT = 59,
  COMPUTE_INTRINSIC_ISNAN = 60,
  COMPUTE_INTRINSIC_ISINF = 61,
  COMPUTE_INTRINSIC_ISFINITE = 62,
  COMPUTE_INTRINSIC_ERF = 63,
  COMPUTE_INTRINSIC_ERFC = 64,
  COMPUTE_INTRINSIC_REAL = 65,
  COMPUTE_INTRINSIC_IMAG = 66,
  COMPUTE_INTRINSIC_CONJ = 67,
  COMPUTE_INTRINSIC_COMPLEX = 68,
  COMPUTE_INTRINSIC_ARG = 69,
  COMPUTE_INTRINSIC_LOGADDEXP = 70
};

enum {
  COMPUTE_NODE_INPUT = 1,    /* value: index of the input */
  COMPUTE_NODE_SCALAR = 2,   /* value: index of the run-time scalar */
  COMPUTE_NODE_INDEX = 3,    /* value: axis of the index space; the position along it; dtype int32 or int64 */
  COMPUTE_NODE_CONSTANT = 4, /* bits: little-endian bit pattern of the node's dtype, zero-filled */
  COMPUTE_NODE_CALL = 5      /* value: intrinsic; operands: earlier nodes */
};

typedef struct compute_plugin_node {
  int32_t kind;
  int32_t dtype;
  int32_t value;
  int32_t operand_count;
  int64_t first_operand; /* into compute_plugin_expression.operands */
  uint8_t bits[16];
} compute_plugin_node; /* 40 bytes; a fixed layout that never changes */

/*
 * A small DAG of intrinsics in topological order, single assignment, dead nodes removed, equal nodes merged, operands
 * of commutative intrinsics in node order. Conversions are explicit `convert` nodes. float16 and bfloat16 appear only
 * as inputs, scalars, outputs and operands or results of convert and bitcast.
 *
 * digest: XXH3-128 (big-endian canonical form) over the int32 values node_count, input_count, scalar_count and
 * output_count; for every node the int32 values kind, dtype, value, operand_count and the operands, then for CONSTANT
 * nodes the 16 bytes of bits; then the int32 output nodes; all little-endian. Core computes it, plugins only compare
 * it: equal digests mean equal expressions.
 */
typedef struct compute_plugin_expression {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint8_t digest[16];
  int32_t node_count;
  int32_t input_count; /* INPUT nodes have value < input_count; an input may be unused */
  int32_t scalar_count;
  int32_t output_count;
  const compute_plugin_node* nodes;
  const int32_t* operands;
  int64_t operand_total;
  const int32_t* outputs; /* nodes */
} compute_plugin_expression;

/* ---- Ops --------------------------------------------------------------------------------------------------------- */

enum {
  COMPUTE_TENSOR_INPUT = 1,
  COMPUTE_TENSOR_OUTPUT = 2 /* with INPUT: read and written (scatter) */
};

/* A tensor as a plan sees it. Layout belongs to the plan; buffer and offset come with the run. */
typedef struct compute_plugin_tensor {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int32_t dtype;
  int32_t rank;           /* 0 to COMPUTE_PLUGIN_MAX_RANK; -1: absent (dtype 0, shape NULL, buffer 0 in the run) */
  const int64_t* shape;   /* extents, all >= 1: core answers for tensors without elements */
  const int64_t* strides; /* elements; any sign; 0 repeats. Those of outputs never make two elements share memory;
                             extent times stride in bytes fits in int64_t */
  int32_t access;         /* COMPUTE_TENSOR_ */
  int32_t alignment; /* bytes: a power of two up to 64 that divides the address of the first element in every run */
} compute_plugin_tensor;

/* compute_plugin_op.flags */
enum {
  COMPUTE_PLUGIN_OP_DETERMINISTIC = 1, /* same bits on every run on this device */
  COMPUTE_PLUGIN_OP_FAST_MATH = 2, /* COMPUTE_MATH=fast: matrix engines of less precision are allowed, nothing else */
  COMPUTE_PLUGIN_OP_TF32 = 4 /* COMPUTE_MATH=tf32 or fast: float32 matrix products may round their inputs to 11 bits */
};

/*
 * An op to be prepared. `name` and `version` identify it; primitives are described below, composites in docs/ops.md.
 * tensors are the inputs, then the outputs. A primitive's attributes are all present; of a composite's only those that
 * differ from its schema's default. Run-time attributes are not attributes here but scalars, in schema order.
 * Expressions that follow the required ones of a primitive are epilogues: a plugin that takes none refuses with
 * NOT_IMPLEMENTED, and core adds a map.
 */
typedef struct compute_plugin_op {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  compute_string name;
  int32_t version;
  uint32_t flags;
  int32_t input_count;
  int32_t output_count;
  const compute_plugin_tensor* tensors;
  const compute_attribute* attributes;
  int32_t attribute_count;
  int32_t expression_count;
  const compute_plugin_expression* const* expressions;
  int32_t scalar_count;
  int32_t reserved;
  const int32_t* scalar_dtypes;
} compute_plugin_op;

/*
 * The primitives. Required: map, copy, reduce, gather, scatter; the others are optional, core decomposes them.
 * "Index space" is a shape that all named tensors have, with stride 0 where one repeats. u8[], … are element types.
 * Core gives every attribute that is named here, also where its value is a default.
 *
 * map       expressions[0] over inputs 0…n-1 (n may be 0) at every point of the index space, which is the outputs'
 *           common shape. Output i holds node outputs[i] of its dtype. Outputs may be the identical view of an input.
 *           Every expression must be taken.
 * copy      input 0 to output 0, same shape, any strides, converted to the output's dtype as `convert` does.
 * reduce    expressions[0] (`before`, one output) over the inputs at every point of the index space = the inputs'
 *           common shape; combined over the axes in attribute `axes` (INT64, ascending; may be empty) by attribute
 *           `kind` (STRING: sum, prod, min, max, all, any); then expressions[1] (`after`) over the combined value as
 *           input 0. Outputs have the index space's rank with extent 1 at reduced axes. Attribute `accumulator` (DTYPE)
 *           is before's result dtype and that of the sum. min and max give NaN if there is one; integers wrap; all and
 *           any are over bool. Core answers for empty index spaces. A sum of -0 alone is -0. Sums of floats must meet
 *           |error| <= (log2(n) + 8) u sum|terms|: pairwise or in blocks. Scalars: the run-time scalars of before, then
 *           those of after. INDEX nodes in before are over the index space.
 * gather    out[p] = input 0[p with coordinate `axis` replaced by input 1[p]]; input 1 (int32 or int64) and the output
 *           have the index space's shape, input 0 the same but for its extent along attribute `axis` (INT64). An index
 *           i in [-extent, 0) means i + extent; others are a fault: the run reports it, the element's value is
 *           unspecified.
 * scatter   output 0 (INPUT | OUTPUT) at p with coordinate `axis` replaced by input 0[p] takes input 1[p]: attribute
 *           `reduction` (STRING) set, add, mul, min or max. Inputs have the index space's shape, the output differs
 *           along `axis`. Indices as in gather; one out of range writes nothing. With the flag DETERMINISTIC duplicates
 *           combine in row-major order of p (set: the last one stays); without it in any order (set: one of them
 *           stays). add and mul of float16 and bfloat16 are not asked for: core accumulates in float32 and converts
 *           once.
 *
 * contraction   output 0 [batch…, m, n] = alpha * sum_k input 0 [batch…, m, k] * input 1 [batch…, k, n] + beta * input
 *           2 [batch…, m, n] + input 3; input 2 and 3 are optional (input_count 2, 3 or 4; an absent one has rank -1).
 *           Scalars alpha and beta of the accumulator's dtype if attribute `scaled` (INT64) is 1, else 1 and 0. beta 0
 *           ignores input 2's NaN. float16 and bfloat16 accumulate in float32 and round once.
 * arg_reduce    int64 position of the first max or min (attribute kind) along `axis`, whose extent is 1 in the output;
 *             the first NaN wins.
 *
 * The following are not asked for by this version of core; their contracts are fixed so that a plugin can offer them
 * ahead of it.
 *
 * convolution   output 0 [n, c_out, spatial…], input 0 [n, c_in, spatial…], input 1 [c_out, c_in / groups, kernel…];
 *           attributes strides, dilations, pads_begin, pads_end (INT64 lists), groups. ONNX Conv semantics; layouts are
 *           strides.
 * convolution_grad_input, convolution_grad_weight   its gradients: inputs (output gradient, weight) and (output
 *             gradient, input).
 * reduce_window     output 0 over windows of input 0; attributes kind (max, sum, mean), window, strides, dilations,
 *           pads_begin, pads_end (INT64 lists with an entry for every axis; 1, 1, 1, 0 and 0 where an axis has no
 *           window) and count_padding. Padding takes no part: a window of padding alone gives the identity of kind
 *           (max: the dtype's least value, sum and mean: 0). mean divides by the elements that took part, with
 *           count_padding by the window's size.
 * reduce_window_grad  gradient of input 0 from (output gradient, input 0, output 0), same attributes. max: it goes to
 *           the first element in row-major order that equals the output (or is NaN).
 * scan      running combination along attribute `axis`; kind (sum, prod, min, max), `exclusive`, `reverse` (INT64),
 *           `accumulator` (DTYPE). Same shape. A NaN stays until the end; exclusive begins with the identity of kind.
 * sort      along `axis`, stable, `descending` (INT64; equal elements keep their order then too), NaN last in both
 *           directions, false before true; attribute outputs (STRING): values (output 0), indices (output 0, int64),
 *           both (output 0 values, output 1 int64). Real dtypes and bool.
 * segmented_reduce  input 0 along axis 0 combined by segment offsets input 1 (int64, ascending, count + 1, from 0 to
 *           the extent; core does not check them: offsets that are not so are a fault); kind and accumulator as reduce.
 *           An empty segment gives the identity of kind (min and max: the dtype's greatest and least value).
 * segmented_scan    as scan along axis 0, kind sum, prod, min or max, restarting at the offsets of input 1.
 * random_bits   uint32 output: word p of Philox 4x32-10 with scalars key (uint64: low word first) and offset (uint64),
 *           p row-major: the 128-bit counter is offset + p / 4, lane p % 4; its upper 64 bits are 0.
 */

/* Reasons of a refusal. */
enum {
  COMPUTE_REFUSE_NOT_IMPLEMENTED = 1,
  COMPUTE_REFUSE_DTYPE = 2,
  COMPUTE_REFUSE_LAYOUT = 3, /* core packs a row-major copy of `argument` and asks again */
  COMPUTE_REFUSE_RANK = 4,
  COMPUTE_REFUSE_SHAPE = 5,
  COMPUTE_REFUSE_ATTRIBUTE = 6,
  COMPUTE_REFUSE_LIBRARY_MISSING = 7,
  COMPUTE_REFUSE_DRIVER_OLD = 8,
  COMPUTE_REFUSE_INTRINSIC = 9 /* `argument` is the intrinsic's id */
};

typedef struct compute_plugin_refusal {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int32_t reason;
  int32_t argument;    /* operand index, or -1 */
  compute_string text; /* "float64 needs cl_khr_fp64" */
  compute_string hint; /* "cast to float32"; may be empty */
} compute_plugin_refusal;

/* Filled by op_query; core sets struct_size. */
typedef struct compute_plugin_query_info {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int32_t supported;       /* 1: op_prepare would make a plan */
  uint32_t flags;          /* none yet */
  int64_t workspace_bytes; /* as in compute_plugin_plan_info; -1: known to op_prepare alone */
} compute_plugin_query_info;

/* Called at most once by op_query or op_prepare, before that returns. The refusal is copied. */
typedef void (*compute_plugin_refuse)(void* context, const compute_plugin_refusal* refusal);

enum { COMPUTE_PLAN_NOT_CAPTURABLE = 1 /* its op_run allocates, waits or calls back: no graphs */ };

/* Filled by op_prepare; core sets struct_size. */
typedef struct compute_plugin_plan_info {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int64_t workspace_bytes;  /* temporary memory of the first heap that each run needs; aligned to 256 bytes */
  int64_t kernels_compiled; /* by this call */
  uint32_t flags;           /* COMPUTE_PLAN_ */
  int32_t reports_faults;   /* 1: runs need a fault record */
} compute_plugin_plan_info;

/* Where a tensor is: fixed layout. */
typedef struct compute_plugin_operand {
  uint64_t buffer;
  int64_t offset_bytes; /* of the element with all indices 0 */
} compute_plugin_operand;

/* A run-time scalar: the bit pattern of its dtype, little-endian, zero-filled. Fixed layout. */
typedef struct compute_plugin_scalar {
  uint8_t bits[16];
} compute_plugin_scalar;

/*
 * What a kernel reports of a checked fault: 64 bytes in memory that the host reads after the run. Core zeroes it before
 * the first of the runs that share it; the first fault sets code last, and a record whose code is not 0 is left alone.
 * The record is complete, and core's again, once stream_reached or stream_sync of the stream that the run was queued on
 * gives the run's number; that another stream which waited for this one has come further says nothing. Core does not
 * read it before, and keeps it until then. Aligned to 64 bytes. Fixed layout.
 */
enum { COMPUTE_FAULT_NONE = 0, COMPUTE_FAULT_INDEX = 1 };
typedef struct compute_plugin_fault {
  int32_t code;
  int32_t argument; /* operand that held the value */
  int64_t value;    /* the index */
  int64_t limit;    /* the extent */
  int64_t position; /* row-major position in the index space; -1 if unknown */
  int64_t reserved[4];
} compute_plugin_fault;

typedef struct compute_plugin_run {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint64_t stream;
  const compute_plugin_operand* tensors; /* inputs, then outputs, as in the op */
  const compute_plugin_scalar* scalars;
  compute_plugin_operand workspace;
  compute_plugin_operand fault; /* a compute_plugin_fault in a PINNED or HOST_SPACE heap; buffer 0: none is given, and
                                   the plugin reports the fault through stream_sync (immediate: by op_run's error) */
  int32_t tensor_count;
  int32_t scalar_count;
  int64_t workspace_bytes;
} compute_plugin_run;

/* ---- User kernels ------------------------------------------------------------------------------------------------ */

typedef struct compute_plugin_kernel_source {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  compute_string language; /* cuda-c, opencl-c, portable */
  compute_string source;
  compute_string name;
  compute_string options;
} compute_plugin_kernel_source;

typedef struct compute_plugin_kernel_info {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int32_t argument_count; /* -1 if unknown */
  int32_t max_group_size;
} compute_plugin_kernel_info;

typedef struct compute_plugin_kernel_argument {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int32_t kind;   /* 1 tensor, 2 value, 3 local memory */
  int32_t access; /* COMPUTE_TENSOR_ */
  compute_plugin_operand tensor;
  const void* value;
  int64_t value_size;
} compute_plugin_kernel_argument;

typedef struct compute_plugin_launch {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint64_t stream;
  int64_t groups[3];
  int64_t group_size[3];
  int64_t local_memory_bytes;
  const compute_plugin_kernel_argument* arguments;
  int32_t argument_count;
  int32_t reserved;
} compute_plugin_launch;

typedef struct compute_plugin_kernel_table {
  int64_t table_size;
  /* COMPILE_FAILED with the whole log in the message. UNSUPPORTED for a language that it does not take. */
  compute_error* (*compile)(uint64_t device, const compute_plugin_kernel_source* source, uint64_t* out_kernel,
                            compute_plugin_kernel_info* out_info);
  compute_error* (*launch)(uint64_t kernel, const compute_plugin_launch* launch);
  /* No queued or running work uses it any more. */
  void (*release)(uint64_t device, uint64_t kernel);
} compute_plugin_kernel_table;

/* ---- Devices ----------------------------------------------------------------------------------------------------- */

typedef struct compute_plugin_device_options {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint64_t host_device; /* for host->report_async */
} compute_plugin_device_options;

/* compute_plugin_caps.flags */
enum {
  /* A stream made with COMPUTE_PLUGIN_STREAM_IMMEDIATE runs work on the calling thread inside op_run, the copies and
   * fill; all is reached on return, an error does not stick, and of its other slots core calls stream_wait and
   * stream_destroy alone. */
  COMPUTE_DEVICE_IMMEDIATE = 1,
  /* The host itself: any host address with offset 0 is a legal buffer, and core allocates. Of the plugin cpu alone. */
  COMPUTE_DEVICE_IS_HOST = 2
};

/* What an open device can do. */
typedef struct compute_plugin_caps {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint32_t flags;
  int32_t heap_count;
  const compute_plugin_heap* heaps; /* the first one holds tensors and workspaces */
} compute_plugin_caps;

/* compute_plugin_stream_options.flags */
enum {
  COMPUTE_PLUGIN_STREAM_DEFAULT = 1, /* a NULL stream of the client; ordered by stream_wait alone */
  COMPUTE_PLUGIN_STREAM_IMMEDIATE = 2
};

/* Flags of stream_mark: none yet. */

typedef struct compute_plugin_stream_options {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint32_t flags;
  int32_t priority;     /* 0 normal, greater sooner */
  uint64_t host_stream; /* for host->report_async */
} compute_plugin_stream_options;

/*
 * Streams are timelines. Core numbers the submissions of a stream (op_run, the copies, fill and launch) 1, 2, 3, … and
 * may skip numbers. Only marks tell the plugin a number: stream_mark(stream, n, flags) says that everything submitted
 * so far carries numbers up to n. Marks ascend and are made only when something outside the stream needs one; the first
 * of a stream may be far above 1. Before the first, stream_reached gives 0. After a failure a stream takes no more
 * work; stream_reached and stream_sync return the error with *out_reached the last number known to be good, and from
 * then on nothing that was queued touches memory, fault records included: core gives it to others. While queued work
 * still does, they return no error yet. What a number depends on by stream_wait ends before it does, but only the
 * stream that it was queued on says how: core asks each one. An error that op_run, a copy, fill or launch returns means
 * that nothing was queued and that the stream is as good as before, unless stream_reached says otherwise. Buffer
 * handles are unique among all heaps of a device.
 */
typedef struct compute_plugin_device_table {
  int64_t table_size;
  /* const data, valid until close. */
  const compute_plugin_caps* (*caps)(uint64_t device);
  /* Frees what is left of it: kernels, graphs and imports too. No work is queued any more, unless the device was
   * lost. */
  void (*close)(uint64_t device);

  /* OUT_OF_DEVICE_MEMORY if there is not enough; nothing sticks. NULL if the device is the host. */
  compute_error* (*memory_allocate)(uint64_t device, const compute_plugin_allocation* request, uint64_t* out_buffer);
  /* No queued work uses the buffer any more. */
  void (*memory_free)(uint64_t device, int32_t heap, uint64_t buffer);
  /* Free and total bytes as the driver sees them. Optional: unknown. */
  compute_error* (*memory_info)(uint64_t device, int64_t* out_free, int64_t* out_total);
  /* Host address of a range of HOST_VISIBLE memory, valid until it is unmapped. No queued work uses the range
   * meanwhile; other ranges of the buffer may be in use. `access` is COMPUTE_TENSOR_INPUT (the host reads), OUTPUT
   * (writes) or both. Both optional: no such heap. */
  compute_error* (*memory_map)(uint64_t device, int32_t heap, uint64_t buffer, int64_t offset_bytes, int64_t size_bytes,
                               int32_t access, void** out_data);
  void (*memory_unmap)(uint64_t device, int32_t heap, uint64_t buffer, void* data);
  /* A buffer over foreign memory, freed by memory_free with heap -1. Optional: unsupported. */
  compute_error* (*memory_import)(uint64_t device, const compute_plugin_import* import, uint64_t* out_buffer);

  compute_error* (*stream_create)(uint64_t device, const compute_plugin_stream_options* options, uint64_t* out_stream);
  /* Work queued still runs; the handle is not used again, also not as `other`. */
  void (*stream_destroy)(uint64_t stream);
  compute_error* (*stream_mark)(uint64_t stream, uint64_t number, uint32_t flags);
  /* Work of `stream` from now on runs after `number` of `other`, a stream of the same plugin, perhaps of another of
   * its devices, on which that number has been marked. Where `other` fails, the wait ends. Does not block the
   * caller, except on an immediate stream. UNSUPPORTED, with nothing queued, where these two cannot wait for each
   * other: then core waits on the host. */
  compute_error* (*stream_wait)(uint64_t stream, uint64_t other, uint64_t number);
  /* Greatest marked number that has finished; never blocks. */
  compute_error* (*stream_reached)(uint64_t stream, uint64_t* out_reached);
  /* Waits at most timeout_ns (INT64_MAX: without limit) for a marked number. *out_reached as above; a time-out is no
   * error. */
  compute_error* (*stream_sync)(uint64_t stream, uint64_t number, int64_t timeout_ns, uint64_t* out_reached);

  /*
   * In stream order. Host memory must stay valid until the stream has passed; a plugin may also have finished with it
   * on return. `size_bytes` > 0. copy: both on this device, ranges do not overlap. copy_peer: from another device of
   * the same plugin, on a stream of the one that dst is on.
   */
  compute_error* (*copy_from_host)(uint64_t stream, const void* src, const compute_plugin_operand* dst,
                                   int64_t size_bytes);
  compute_error* (*copy_to_host)(uint64_t stream, const compute_plugin_operand* src, void* dst, int64_t size_bytes);
  compute_error* (*copy)(uint64_t stream, const compute_plugin_operand* src, const compute_plugin_operand* dst,
                         int64_t size_bytes);
  /* `pattern_size` is 1, 2, 4, 8 or 16 and divides offset and size. */
  compute_error* (*fill)(uint64_t stream, const compute_plugin_operand* dst, int64_t size_bytes, const void* pattern,
                         int32_t pattern_size);
  /* Optional, and UNSUPPORTED with nothing queued for a pair of devices: core goes through the host. */
  compute_error* (*copy_peer)(uint64_t stream, uint64_t src_device, const compute_plugin_operand* src,
                              const compute_plugin_operand* dst, int64_t size_bytes);

  /* Whether op_prepare would make a plan; compiles nothing. Core asks it for compute_op_query alone, never on the way
   * to a run. out_info->supported 0 goes with one call of `refuse`. */
  compute_error* (*op_query)(uint64_t device, const compute_plugin_op* op, compute_plugin_query_info* out_info,
                             compute_plugin_refuse refuse, void* context);
  /* Makes an immutable plan that may run on several threads and streams at once. An op that the plugin does not take
   * goes with one call of `refuse`, *out_plan 0 and no error; nothing was compiled for it. Under 10 µs where the kernel
   * is known. Plans are many, kernels few: kernels are keyed by expression digest or op, dtypes, layout class,
   * collapsed rank, alignment and index width, never by a size. */
  compute_error* (*op_prepare)(uint64_t device, const compute_plugin_op* op, uint64_t* out_plan,
                               compute_plugin_plan_info* out_info, compute_plugin_refuse refuse, void* context);
  compute_error* (*op_run)(uint64_t plan, const compute_plugin_run* run);
  /* No queued or running work uses it any more. */
  void (*op_release)(uint64_t device, uint64_t plan);

  /* Optional: user kernels are unsupported. */
  const compute_plugin_kernel_table* (*kernels)(uint64_t device);
} compute_plugin_device_table;

/* ---- The plugin table -------------------------------------------------------------------------------------------- */

enum { COMPUTE_EXIT_PROCESS = 1 /* the process is exiting: free nothing that the system frees */ };

typedef struct compute_plugin_table {
  int64_t table_size;
  /* Delivers all devices, also unusable ones, and every requirement. May be called again. No devices is a normal
   * answer; an error is for what nobody expects. */
  compute_error* (*enumerate)(const compute_plugin_sink* sink);
  /* May be called again for an id after CONTEXT_LOST and close, and for several open devices of one id. */
  compute_error* (*device_open)(uint64_t id, const compute_plugin_device_options* options, uint64_t* out_device,
                                const compute_plugin_device_table** out_table);
  /* In the child after fork(): forget threads and locks; touch no driver. Core reports FORKED for the plugin's
   * devices unless this returns 1 (rebuilt). Optional: core reports FORKED. */
  int32_t (*on_fork_child)(void);
  /* The process is exiting, all work has drained or was given up. Optional. */
  void (*on_exit)(int32_t mode);
  /* All devices are closed. Optional. */
  void (*close)(void);
  /* A table of an extension, which begins with its int64_t table_size, or NULL; `device` 0 asks for one of the
   * plugin as a whole. Optional. */
  const void* (*get_extension)(uint64_t device, const char* name);
} compute_plugin_table;

typedef const compute_plugin_manifest* (*compute_plugin_query_function)(void);
typedef compute_error* (*compute_plugin_open_function)(uint32_t interface_version, const compute_plugin_host* host,
                                                       const compute_plugin_table** out_table);

/* ---- Extensions -------------------------------------------------------------------------------------------------- */

/* A recorded list of runs becomes one executable. Without it core replays by a loop of op_run. */
#define COMPUTE_EXT_GRAPH_V1 "compute.ext.graph.v1"

typedef struct compute_plugin_graph_node {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int32_t kind; /* 1: a run; nodes of unknown kinds make create UNSUPPORTED */
  int32_t reserved;
  uint64_t plan;
  const compute_plugin_run* run; /* its stream is ignored */
  const int32_t* scalar_slots;   /* per scalar: the graph's slot that replaces it at each run, or -1; NULL: none */
} compute_plugin_graph_node;

typedef struct compute_plugin_graph_table {
  int64_t table_size;
  /* Nodes run in order where they depend on one another through memory. Plans stay alive as long as the graph.
   * UNSUPPORTED: core replays by op_run. */
  compute_error* (*create)(uint64_t device, const compute_plugin_graph_node* nodes, int64_t node_count,
                           int32_t slot_count, uint64_t* out_graph);
  compute_error* (*run)(uint64_t graph, uint64_t stream, const compute_plugin_scalar* slots);
  void (*release)(uint64_t device, uint64_t graph);
} compute_plugin_graph_table;

/* Native handles, so that a program can mix its own CUDA or OpenCL code with tensors. */
#define COMPUTE_EXT_NATIVE_V1 "compute.ext.native.v1"

typedef struct compute_plugin_native_table {
  int64_t table_size;
  compute_error* (*device_handle)(uint64_t device, uint64_t* out_handle); /* CUcontext, cl_context */
  compute_error* (*stream_handle)(uint64_t stream, uint64_t* out_handle); /* CUstream, cl_command_queue */
  compute_error* (*buffer_handle)(uint64_t device, uint64_t buffer, uint64_t* out_handle); /* CUdeviceptr, cl_mem */
  const void* reserved;                                                                    /* NULL */
  /* DLPack's type and number of the device (kDLCUDA, CUDA's ordinal). NULL: its memory is not exported. Handles of
   * its buffers are addresses then. */
  compute_error* (*dlpack_device)(uint64_t device, int32_t* out_type, int32_t* out_id);
} compute_plugin_native_table;

#ifdef __cplusplus
}
#endif

#endif /* COMPUTE_PLUGIN_H_ */
