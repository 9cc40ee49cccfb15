/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin.h: the interface between the compute core and a device plugin, in C11. The header stands alone: a plugin
 * includes no other header of this project and links none of its symbols.
 *
 * A plugin is a shared library that exports exactly two functions,
 *
 *   const compute_plugin_manifest* compute_plugin_query(void);
 *   compute_error* compute_plugin_open(uint32_t interface_version, const compute_plugin_core* core,
 *                                      const compute_plugin_table** out_table);
 *
 * and hides everything else. The smallest useful plugin fills the slots that are not optional, about twenty, and
 * implements five ops: map, copy, reduce, gather and scatter. Core does the rest: handles and reference counts,
 * argument checks, dtype promotion, broadcasting, views, memory pools, hazards between streams, mirrors, graph replay,
 * and a decomposition of every other op into these five. `compute-cts --plugin FILE` tests a plugin.
 *
 * Rules
 * - Numbers. The interface uses fixed-width integers, doubles and pointers. A plugin names its objects (devices,
 *   streams, buffers, plans, kernels) by uint64_t handles of its choice. Core passes them back unchanged. A handle is
 *   never 0; a buffer handle is 0 where there is no buffer.
 * - Structs. A sized struct begins with struct_size, struct_type and next. The side that fills it sets struct_size to
 *   the size it was compiled with. The side that reads it reads at most that many bytes; missing trailing fields read
 *   as zero. A plugin writes at most struct_size bytes of an answer that core sized, and none of its first three
 *   fields. Core passes structs of at least their size in version 1. Core refuses a struct smaller than
 *   COMPUTE_PLUGIN_…_SIZE_1, its size in version 1. In an array of sized structs every element has the struct_size of
 *   the first, which is the step. Structs marked "fixed layout" have no size and never change. No struct is passed by
 *   value.
 * - Tables. A table begins with its size, is const and lives until the plugin is closed. Core copies it, extensions'
 *   tables too, into a zero-filled table of its own. New slots are added at the end only. A slot that is not marked
 *   optional must be filled; the comment of an optional slot says what NULL means.
 * - Unknown content. A reader skips a `next` entry whose struct_type it does not know, unless the type has the bit
 *   COMPUTE_STRUCT_MUST_UNDERSTAND: a plugin then returns UNSUPPORTED, and core refuses the plugin. A reader ignores
 *   unknown flags in bits 0 to 15 and refuses unknown flags in bits 16 to 31. A plugin refuses an op with more tensors,
 *   expressions, scalars or attributes than it knows, and an attribute whose name or value it does not know. Core
 *   treats an unknown kind of device as an accelerator and an unknown error code as INTERNAL.
 * - Errors. A function returns NULL, or an error made by core->error_new. The error then belongs to core, which frees
 *   it; a plugin returns each error once. Core presets every out-parameter and ignores it where an error is returned,
 *   except *out_reached. A plugin throws, prints, aborts and exits nothing across the border, callbacks included; core
 *   reports an exception as PLUGIN_REJECTED. Where a slot can say "not supported" in its answer, that is no error.
 * - Pointers and text. A pointer to no elements may be NULL in both directions. Text is UTF-8.
 * - Ownership. Memory never changes owner. What a plugin hands out is const and valid until close, or is passed to a
 *   callback that copies it. What core passes in is valid during the call only, unless stated otherwise.
 * - Threads. Core calls the functions of one stream from one thread at a time, except stream_reached, stream_sync and
 *   mark_time, which may run beside any call. All other functions may be called from any number of threads at once.
 * - Floating-point environment. Core calls a plugin in the default environment: round to nearest, no traps, subnormals
 *   kept. Threads that a plugin starts inherit it. A plugin may raise exception flags and change errno; core restores
 *   both for its caller.
 * - Core table. It is immortal, may be called from any thread, also from a vendor's callbacks, and never calls the
 *   plugin.
 * - First use. compute_plugin_query calls no driver. compute_plugin_open and enumerate create no context and allocate
 *   no device memory. plan_run does not initialise, compile, wait or allocate device memory; op_prepare does.
 */
#ifndef COMPUTE_PLUGIN_H_
#define COMPUTE_PLUGIN_H_

#include <stdint.h>

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

/* ---- Versions ---------------------------------------------------------------------------------------------------- */

/*
 * The interface version of this header. An incompatible change gets a new number and a new entry point
 * (compute_plugin_open2).
 *
 * COMPUTE_PLUGIN_DRAFT is not 0 while the interface may still change. Core then accepts only plugins of the same draft.
 */
#define COMPUTE_PLUGIN_INTERFACE 1u
#define COMPUTE_PLUGIN_DRAFT 3u

/* The maximum rank of a tensor in an op. It exceeds a client's maximum of 32, because decompositions add axes. */
#define COMPUTE_PLUGIN_MAX_RANK 40

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
  COMPUTE_PLUGIN_STRUCT_TELEMETRY = 1026
};
#define COMPUTE_PLUGIN_STRUCT_RUN_PLACES (COMPUTE_STRUCT_MUST_UNDERSTAND | 1027u)

/* Sizes in version 1 of the structs that core reads, in bytes. Core refuses smaller ones. */
#define COMPUTE_PLUGIN_MANIFEST_SIZE_1 160u
#define COMPUTE_PLUGIN_SETTING_SIZE_1 88u
#define COMPUTE_PLUGIN_PROPERTY_SIZE_1 48u
#define COMPUTE_PLUGIN_DEVICE_INFO_SIZE_1 216u
#define COMPUTE_PLUGIN_REQUIREMENT_SIZE_1 120u
#define COMPUTE_PLUGIN_HEAP_SIZE_1 56u
#define COMPUTE_PLUGIN_REFUSAL_SIZE_1 56u
#define COMPUTE_PLUGIN_QUERY_INFO_SIZE_1 32u
#define COMPUTE_PLUGIN_PLAN_INFO_SIZE_1 40u
#define COMPUTE_PLUGIN_KERNEL_INFO_SIZE_1 24u
#define COMPUTE_PLUGIN_CAPS_SIZE_1 40u
#define COMPUTE_PLUGIN_TELEMETRY_SIZE_1 48u

/* compute_plugin_setting.kind: the form of the value. */
enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_PLUGIN_SETTING_TEXT = 1,
  COMPUTE_PLUGIN_SETTING_FLAG = 2,    /* 1 or 0; also true, yes, on, false, no, off */
  COMPUTE_PLUGIN_SETTING_INTEGER = 3, /* in the range that `choices` gives */
  COMPUTE_PLUGIN_SETTING_BYTES = 4,   /* 4G, 512M; 30% of the device's memory */
  COMPUTE_PLUGIN_SETTING_CHOICE = 5,  /* one of `choices` */
  COMPUTE_PLUGIN_SETTING_WORDS = 6,   /* some of `choices`, separated by commas */
  COMPUTE_PLUGIN_SETTING_PATH = 7,    /* a file that is loaded */
  COMPUTE_PLUGIN_SETTING_PATHS = 8    /* several, separated by colons */
};

/* compute_plugin_setting.flags */
enum COMPUTE_UNDERLYING(uint32_t) {
  COMPUTE_PLUGIN_SETTING_OF_DEVICE = 1 /* a device setting: selectors can give it, as in acme0+mode=fast */
};

/*
 * A setting of the plugin. Its value comes from a flag, the environment or a config file; core checks it. Flags and
 * config files know settings of the JSON manifest at once, and those of this struct from compute_plugin_query on.
 *
 * A device setting has a value for each device. It is the value in the selector, else the value of the setting.
 * device_open gets it, and core->setting gives the value of the setting. A path cannot be a device setting.
 */
typedef struct compute_plugin_setting {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  compute_string name;          /* COMPUTE_ACME_MODE: COMPUTE_, the plugin's name and '_' come first */
  int32_t kind;                 /* COMPUTE_PLUGIN_SETTING_ */
  uint32_t flags;               /* COMPUTE_PLUGIN_SETTING_OF_DEVICE */
  compute_string choices;       /* "fast exact" for CHOICE and WORDS; "0 10", the least and the most, for INTEGER */
  compute_string default_value; /* may be empty */
  compute_string help;          /* one line */
} compute_plugin_setting;

/* compute_plugin_manifest.flags: none yet. */

/* The description of a plugin, made without calling a driver. Static data. */
typedef struct compute_plugin_manifest {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint32_t interface_min; /* range of supported interface versions */
  uint32_t interface_max;
  uint32_t draft; /* COMPUTE_PLUGIN_DRAFT; read only where interface_max is the negotiated version */
  uint32_t flags;
  compute_string name;    /* prefix of its device names: letters and '_', no digit at the end */
  compute_string version; /* of the plugin */
  compute_string vendor;
  compute_string license; /* SPDX identifier */
  compute_string url;
  compute_string build_id;  /* unique to each build */
  compute_string sanitizer; /* "", "address", "thread" or "memory"; must match the process */
  int32_t priority;         /* of its devices for `auto`, among devices of one kind; higher wins; 0 is normal */
  int32_t setting_count;
  const compute_plugin_setting* settings; /* beside those of a JSON manifest, which win */
} compute_plugin_manifest;

/* ---- The core table ---------------------------------------------------------------------------------------------- */

typedef struct compute_plugin_error_info {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  compute_error_code code;
  int32_t argument;       /* index of the operand at fault, or -1 */
  int64_t native_code;    /* the vendor's error code */
  compute_string message; /* one line that states the values; a compiler log may follow on further lines */
  compute_error* cause;   /* ownership passes to the new error; may be NULL */
} compute_plugin_error_info;

typedef struct compute_plugin_core {
  int64_t table_size;
  uint32_t interface_newest; /* newest version core supports; compute_plugin_open gets the negotiated one */
  uint32_t core_version;     /* major << 16 | minor << 8 | patch */
  /* Makes an error. Never returns NULL: without memory it returns a static out-of-memory error. */
  compute_error* (*error_new)(const compute_plugin_error_info* info);
  void (*error_free)(compute_error* error);
  compute_error_code (*error_code)(const compute_error* error);
  /* Writes one line to the log. category: load, select, place, copy, compile or error. */
  void (*log)(int32_t level, const char* category, int64_t category_size, const char* text, int64_t text_size);
  /*
   * Reads a setting by the name of its environment variable (COMPUTE_CPU_ISA). The value comes from a flag, the
   * environment or a config file; a setting that no manifest declares comes from the environment only. Copies at most
   * `capacity` bytes. Returns the size of the value, or -1 if it is unset.
   */
  int64_t (*setting)(const char* name, int64_t name_size, char* buffer, int64_t capacity);
  /*
   * Reports that queued work failed. May be called from any thread, before any thread that waits for the work is woken.
   * `core_stream` is the value that stream_create was given; 0 means all streams of `core_device`, and the numbers are
   * ignored then. Numbers up to `last_good` succeeded; those in (last_good, seen] may have failed. A plugin knows only
   * numbers that were marked. If work behind the last mark may have failed too, `seen` is UINT64_MAX, which stands for
   * all work submitted so far. Takes ownership of `error`. The queued work may still be running. Optional for a plugin:
   * core learns of a failure from stream_reached and stream_sync too.
   */
  void (*report_async)(uint64_t core_device, uint64_t core_stream, uint64_t last_good, uint64_t seen,
                       compute_error* error);
} compute_plugin_core;

/* ---- Enumeration ------------------------------------------------------------------------------------------------- */

/* A further property of a device, shown by `compute info`. The name is in snake_case. */
typedef struct compute_plugin_property {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  compute_string name;
  compute_string value;
} compute_plugin_property;

/* A device, described without creating a context. */
typedef struct compute_plugin_device_info {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint64_t id; /* passed to device_open */
  compute_string description;
  compute_string vendor;
  compute_string driver_version;
  compute_string pci_address; /* dddd:bb:dd.f in lower case, or "" if unknown; core numbers devices in this order */
  compute_string uuid;
  compute_string libraries; /* vendor libraries in use, one per line: name, version, path */
  int64_t memory_bytes;     /* -1 if unknown */
  int32_t kind;             /* COMPUTE_DEVICE_KIND_ */
  int32_t score;            /* for `auto`, among the devices of this plugin; higher wins */
  int32_t platform_index; /* -1, unless devices are numbered per platform; platforms without devices are not counted */
  int32_t property_count;
  const compute_plugin_property* properties;
  const uint32_t* dtypes; /* indexed by dtype: COMPUTE_DTYPE_STORAGE | …; dtypes from dtype_count on are unsupported */
  int32_t dtype_count;
  int32_t reserved;
  compute_string unusable; /* "", or the reason why the device cannot be opened */
  compute_string platform; /* names of its platform, one per line, for selectors (opencl@platform~pocl); may be "" */
  uint64_t parent_id;      /* id of the device that this one is a partition of; 0: of none */
  uint32_t pci_vendor_id;  /* 0 if unknown; core then looks up the address where the system tells it */
  uint32_t pci_device_id;
} compute_plugin_device_info;

/* A library or driver that the plugin loads at run time, for the load report. */
typedef struct compute_plugin_requirement {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  compute_string name;   /* cuBLAS */
  compute_string tried;  /* names and paths tried, one per line */
  compute_string found;  /* path and version; "" if not found */
  compute_string error;  /* the system's message */
  compute_string effect; /* what does not work without it */
  compute_string remedy; /* how to install it */
  int32_t required;      /* 1: there are no devices without it */
  int32_t state;         /* 0 not looked for yet, 1 found, 2 missing, 3 too old or unusable */
} compute_plugin_requirement;

/* Receives the results of enumerate. Both functions copy what they are given. */
typedef struct compute_plugin_sink {
  int64_t table_size;
  void* context;
  void (*device)(void* context, const compute_plugin_device_info* info);
  void (*requirement)(void* context, const compute_plugin_requirement* requirement);
} compute_plugin_sink;

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

/* compute_plugin_heap.flags */
enum COMPUTE_UNDERLYING(uint32_t) {
  COMPUTE_PLUGIN_HEAP_DEVICE_LOCAL = 1,
  COMPUTE_PLUGIN_HEAP_HOST_VISIBLE = 2, /* memory_map works */
  COMPUTE_PLUGIN_HEAP_HOST_SPACE =
      4, /* buffer handles are host addresses, which core reads and writes without memory_map */
  COMPUTE_PLUGIN_HEAP_PINNED = 8,   /* page-locked; with HOST_SPACE core uses it for staging and fault records */
  COMPUTE_PLUGIN_HEAP_COHERENT = 16 /* writes to mapped memory are visible without memory_unmap */
};

enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_PLUGIN_SUBALLOCATE_NONE = 0,  /* one tensor per allocation; its views use offsets */
  COMPUTE_PLUGIN_SUBALLOCATE_OFFSET = 1 /* tensors may share an allocation, at multiples of offset_alignment */
};

typedef struct compute_plugin_heap {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint32_t flags;
  int32_t suballocation;
  int64_t size_bytes;           /* -1 if unknown */
  int64_t max_allocation_bytes; /* 0 or -1 if there is no known limit */
  int64_t offset_alignment;     /* bytes, a power of two */
  int64_t base_alignment; /* bytes, of the first byte of an allocation: at least 64 in the first heap; 0 means 64 */
} compute_plugin_heap;

/* compute_plugin_allocation.flags: none yet. */
typedef struct compute_plugin_allocation {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int32_t heap; /* index into compute_plugin_caps.heaps */
  uint32_t flags;
  int64_t size_bytes; /* > 0; a multiple of 64, unless that is more than max_allocation_bytes */
} compute_plugin_allocation;

/* Device memory of another library, described as DLPack does, or memory that a program lends for tensors. */
typedef struct compute_plugin_import {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int32_t dlpack_device_type;
  int32_t dlpack_device_id;
  void* data;         /* lowest address of the range; with kDLOpenCL the cl_mem, whose first bytes are the range */
  int64_t size_bytes; /* of the range */
} compute_plugin_import;

/* ---- Expressions ------------------------------------------------------------------------------------------------- */

/* Intrinsics. compute/intrinsics.def gives their meaning, NaN rules and error bounds. A plugin that does not know an
 * id refuses the expression with COMPUTE_PLUGIN_REFUSE_INTRINSIC. Core then replaces the intrinsic by its definition
 * and asks again. */
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
  COMPUTE_PLUGIN_INTRINSIC_LOGADDEXP = 70
};

enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_PLUGIN_NODE_INPUT = 1,    /* value: index of the input */
  COMPUTE_PLUGIN_NODE_SCALAR = 2,   /* value: index of the run-time scalar */
  COMPUTE_PLUGIN_NODE_INDEX = 3,    /* value: axis; the position along this axis of the index space; int32 or int64 */
  COMPUTE_PLUGIN_NODE_CONSTANT = 4, /* bits: a value of the node's dtype, little-endian, zero-padded */
  COMPUTE_PLUGIN_NODE_CALL = 5      /* value: intrinsic; operands: earlier nodes */
};

typedef struct compute_plugin_node {
  int32_t kind;
  int32_t dtype;
  int32_t value;
  int32_t operand_count;
  int64_t first_operand; /* into compute_plugin_expression.operands */
  uint8_t bits[16];
} compute_plugin_node; /* fixed layout, 40 bytes */

/*
 * An expression: a DAG of intrinsics in topological order. It has no dead nodes and no two equal nodes. The operands of
 * commutative intrinsics are in node order. Conversions are explicit `convert` nodes. float16 and bfloat16 occur only
 * as inputs, scalars, outputs, and operands or results of convert and bitcast. Nodes may have dtypes that the device
 * did not declare, such as int64 for an index; a plugin refuses an expression with a dtype that it cannot compute with
 * COMPUTE_PLUGIN_REFUSE_DTYPE.
 *
 * digest: XXH3-128 in big-endian canonical form over these values, all little-endian: the int32 values node_count,
 * input_count, scalar_count and output_count; for every node the int32 values kind, dtype, value, operand_count and the
 * operands, followed by the 16 bytes of bits for a CONSTANT node; the int32 output nodes. Core computes it. Expressions
 * with equal digests are equal.
 */
typedef struct compute_plugin_expression {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint8_t digest[16];
  int32_t node_count;
  int32_t input_count; /* INPUT nodes have value < input_count; inputs may be unused */
  int32_t scalar_count;
  int32_t output_count;
  const compute_plugin_node* nodes;
  const int32_t* operands;
  int64_t operand_total;
  const int32_t* outputs; /* nodes */
} compute_plugin_expression;

/* ---- Ops --------------------------------------------------------------------------------------------------------- */

enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_PLUGIN_TENSOR_INPUT = 1,
  COMPUTE_PLUGIN_TENSOR_OUTPUT = 2 /* INPUT | OUTPUT: read and written (scatter) */
};

/* How the elements of a tensor are stored. Block-scaled, tiled and padded storage will get further values. A plugin
 * refuses a layout that it does not know with COMPUTE_PLUGIN_REFUSE_LAYOUT. */
enum COMPUTE_UNDERLYING(int32_t) { COMPUTE_PLUGIN_LAYOUT_STRIDED = 0 /* one element per index, at the strides */ };

/* A tensor of an op: everything but its place in memory, which each run gives. */
typedef struct compute_plugin_tensor {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int32_t dtype;
  int32_t rank;           /* 0 to COMPUTE_PLUGIN_MAX_RANK; -1: absent (dtype 0, shape NULL, buffer 0 in the run) */
  const int64_t* shape;   /* extents, all >= 1; core handles tensors without elements */
  const int64_t* strides; /* in elements; may be negative or 0. Elements of an output never share memory. The span in
                             bytes fits in int64_t */
  int32_t access;         /* COMPUTE_PLUGIN_TENSOR_ */
  int32_t alignment;      /* bytes: a power of two up to 64 that divides the address of element 0 in every run */
  int32_t layout;         /* COMPUTE_PLUGIN_LAYOUT_ */
  int32_t reserved;
} compute_plugin_tensor;

/* compute_plugin_op.flags */
enum COMPUTE_UNDERLYING(uint32_t) {
  COMPUTE_PLUGIN_OP_DETERMINISTIC = 1, /* every run on this device gives the same bits */
  COMPUTE_PLUGIN_OP_FAST_MATH = 2,     /* COMPUTE_MATH=fast: matrix products may use engines of lower precision */
  COMPUTE_PLUGIN_OP_TF32 = 4, /* COMPUTE_MATH=tf32 or fast: float32 matrix products may round inputs to 11 bits */
  COMPUTE_PLUGIN_OP_AHEAD = 8 /* the plan is prepared ahead of use: nobody waits to run it */
};

/*
 * An op to prepare. `name` and `version` identify it. Primitives are described below; docs/ops.md describes the ops
 * that core offers by their own name first. `tensors` holds the inputs, then the outputs. A primitive has all its
 * attributes; other ops have only those that differ from the default. Run-time attributes are passed as scalars, in the
 * order of the op's attributes. Expressions beyond those that a primitive requires are epilogues. A plugin without
 * epilogues refuses them with NOT_IMPLEMENTED, and core adds a map.
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
 * The primitives. map, copy, reduce, gather and scatter are required. The others are optional: core decomposes what a
 * plugin refuses. Primitives have version 1. Outputs share no memory with inputs, except where it is said. Core never
 * asks to convert complex numbers to real ones. The "index space" is the common shape of the tensors that are named; a
 * stride is 0 where a tensor is broadcast. Core passes every attribute that is named here, also where it has its
 * default value.
 *
 * map       Evaluates expressions[0] over inputs 0 to n-1 (n may be 0) at every point of the index space, which is the
 *           shape of the outputs. Output i holds the node outputs[i] and has its dtype. An output may be the identical
 *           view of an input. Every expression must be supported.
 * copy      Copies input 0 to output 0, of the same shape and any strides. Converts to the output's dtype as `convert`
 *           does.
 * reduce    Evaluates expressions[0] (`before`, with one output) at every point of the index space, which is the shape
 *           of the inputs. Combines the values over the axes in attribute `axes` (INT64, ascending, may be empty) by
 *           attribute `kind` (STRING: sum, prod, min, max, all, any). Then evaluates expressions[1] (`after`) with the
 *           combined value as input 0. Outputs have extent 1 along reduced axes. Attribute `accumulator` (DTYPE) is the
 *           result dtype of `before` and the dtype of the combination; it is never float16 or bfloat16. sum and prod
 *           take numbers, min and max real ones, all and any bool. There is at least one input. min and max of a NaN
 *           give NaN. Integers wrap. Core handles empty index spaces. A sum of values that are all -0 is -0. A sum of
 *           floats meets |error| <= (log2(n) + 8) u sum|terms|: add pairwise or in blocks. The scalars of `before` come
 *           first, then those of `after`. INDEX nodes of `before` refer to the index space; `after` has none. sum and
 *           prod of floats may accumulate in a wider dtype.
 * gather    out[p] = input 0[q], where q is p with coordinate `axis` replaced by input 1[p]. Input 1 (int32 or int64)
 *           and the output have the shape of the index space. Input 0 differs from it along attribute `axis` (INT64)
 *           only. An index i in [-extent, 0) means i + extent. Any other index outside [0, extent) is a fault: the run
 *           reports it, and the element's value is unspecified.
 * scatter   Combines input 1[p] into output 0[q], where q is p with coordinate `axis` replaced by input 0[p]. Attribute
 *           `reduction` (STRING) is set, add, mul, min or max. Output 0 is INPUT | OUTPUT and listed once. The inputs
 *           have the shape of the index space; the output differs from it along `axis`. Indices are as for gather; an
 *           index out of range writes nothing. With the flag DETERMINISTIC, duplicates combine in row-major order of p,
 *           and for `set` the last one wins. Without it they combine in any order, and any one of them wins. Core does
 *           not ask for add and mul of float16 and bfloat16: it accumulates in float32 and converts once.
 *
 * contraction   output 0 [batch…, m, n] = alpha * sum_k input 0 [batch…, m, k] * input 1 [batch…, k, n] + beta * input
 *           2 [batch…, m, n] + input 3. Inputs 2 and 3 are optional: input_count is 2, 3 or 4, and an absent input has
 *           rank -1. If attribute `scaled` (INT64) is 1, alpha and beta are scalars of the accumulator's dtype; if it
 *           is 0, they are 1 and 0. With beta 0 the values of input 2 do not matter, NaN included. float16 and bfloat16
 *           accumulate in float32 and round once.
 * arg_reduce    int64 position of the first maximum or minimum (attribute `kind`: max, min) along attribute `axis`,
 *           whose extent is 1 in the output. The first NaN wins.
 *
 * row       Reduces in stages along axes, and maps over the results, so that variances, softmax, norms and their
 *           gradients read memory once and keep no intermediate tensor. The index space is the shape of the inputs.
 *           Attribute `axes` is as for reduce. Stage s (from 0) evaluates expressions[2 s] (`before`, with one output)
 *           over the inputs and the results of stages 0 to s-1 at every point of the index space; combines the values
 *           over the axes by entry s of `kinds` (STRING list, as kind of reduce) in the dtype that is entry s of
 *           `accumulators` (DTYPE list); and evaluates expressions[2 s + 1] (`after`, with one output) over the
 *           combined value and the results of stages 0 to s-1. This is the result of stage s. If the number of
 *           expressions is odd, the last one is evaluated at every point over the inputs and all results. Its outputs
 *           are the first outputs of the op; they have the shape of the index space and may be the identical view of
 *           an input. Attribute `stored` (INT64 list, ascending, may be empty) names the stages whose results are the
 *           remaining outputs, with extent 1 along the axes, converted to the dtype of the output. The scalars of the
 *           expressions follow one another in the order of the expressions. Sums meet the bound of reduce. There are 1
 *           to 4 stages.
 *
 * This version of core does not ask for the following primitives. Their contracts are fixed, so that plugins can offer
 * them early.
 *
 * convolution   output 0 [n, c_out, spatial…], input 0 [n, c_in, spatial…], input 1 [c_out, c_in / groups, kernel…];
 *           attributes strides, dilations, pads_begin, pads_end (INT64 lists), groups. Semantics of ONNX Conv; layouts
 *           are expressed by strides.
 * convolution_grad_input, convolution_grad_weight   the gradients of convolution, with inputs (output gradient, weight)
 *           and (output gradient, input).
 * reduce_window     output 0 over windows of input 0; attributes kind (max, sum, mean), window, strides, dilations,
 *           pads_begin, pads_end (INT64 lists with one entry per axis; 1, 1, 1, 0 and 0 for an axis without a window)
 *           and count_padding. Padding is ignored. A window that is all padding gives the identity of kind (max: the
 *           least value of the dtype; sum and mean: 0). mean divides by the number of elements that are not padding, or
 *           by the window's size if count_padding is 1.
 * reduce_window_grad  gradient of input 0 from (output gradient, input 0, output 0), with the same attributes. For max
 *           it goes to the first element in row-major order that equals the output or is NaN.
 * scan      running combination along attribute `axis`; kind (sum, prod, min, max), `exclusive`, `reverse` (INT64),
 *           `accumulator` (DTYPE). The output has the shape of the input. A NaN makes all later values NaN. An
 *           exclusive scan begins with the identity of kind.
 * sort      sorts along `axis`. The sort is stable, also with `descending` (INT64) 1. NaN comes last in both
 *           directions. false is less than true. Attribute outputs (STRING): values (output 0), indices (output 0,
 *           int64), both (output 0 values, output 1 int64 indices). Real dtypes and bool.
 * segmented_reduce  combines input 0 along axis 0 within segments. Input 1 holds the offsets (int64, ascending, one
 *           more than there are segments, from 0 to the extent). Core does not check them; others are a fault. kind and
 *           accumulator as for reduce. An empty segment gives the identity of kind (min: the greatest value of the
 *           dtype, max: the least).
 * segmented_scan    scan along axis 0 that restarts at the offsets of input 1; kind is sum, prod, min or max.
 * random_bits   a uint32 output. Element p in row-major order is word p % 4 of Philox 4x32-10 with counter offset + p /
 *           4, whose upper 64 bits are 0. Scalars: key (uint64, low word first) and offset (uint64).
 */

/* Reasons of a refusal. */
enum COMPUTE_UNDERLYING(int32_t) {
  COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED = 1,
  COMPUTE_PLUGIN_REFUSE_DTYPE = 2,
  COMPUTE_PLUGIN_REFUSE_LAYOUT = 3, /* core passes a row-major copy of `argument` instead */
  COMPUTE_PLUGIN_REFUSE_RANK = 4,
  COMPUTE_PLUGIN_REFUSE_SHAPE = 5,
  COMPUTE_PLUGIN_REFUSE_ATTRIBUTE = 6,
  COMPUTE_PLUGIN_REFUSE_LIBRARY_MISSING = 7,
  COMPUTE_PLUGIN_REFUSE_DRIVER_OLD = 8,
  COMPUTE_PLUGIN_REFUSE_INTRINSIC = 9 /* `argument` is the intrinsic's id */
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

/* The answer of op_query. Core sets struct_size. */
typedef struct compute_plugin_query_info {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int32_t supported;       /* 1: op_prepare would make a plan */
  uint32_t flags;          /* none yet */
  int64_t workspace_bytes; /* as in compute_plugin_plan_info; -1 if only op_prepare knows it */
} compute_plugin_query_info;

/* Takes the reason why op_query or op_prepare refuses an op. Called at most once, before they return. Copies the
 * refusal. */
typedef void (*compute_plugin_refuse)(void* context, const compute_plugin_refusal* refusal);

enum COMPUTE_UNDERLYING(uint32_t) {
  COMPUTE_PLUGIN_PLAN_NOT_CAPTURABLE =
      1 /* plan_run allocates, waits or calls back: the plan cannot be used in graphs */
};

/* The answer of op_prepare. Core sets struct_size. */
typedef struct compute_plugin_plan_info {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int64_t workspace_bytes;  /* temporary memory that each run needs, in the first heap, aligned to 256 bytes */
  int64_t kernels_compiled; /* by this call */
  uint32_t flags;           /* COMPUTE_PLUGIN_PLAN_ */
  int32_t reports_faults;   /* 1: runs are given a fault record */
} compute_plugin_plan_info;

/* The place of a tensor in memory. Fixed layout. */
typedef struct compute_plugin_operand {
  uint64_t buffer;
  int64_t offset_bytes; /* of element 0, whose indices are all 0 */
} compute_plugin_operand;

/* A run-time scalar: a value of its dtype, little-endian, zero-padded. Fixed layout. */
typedef struct compute_plugin_scalar {
  uint8_t bits[16];
} compute_plugin_scalar;

/*
 * A fault that a kernel detected. The record lies in memory that the host can read. Core zeroes it before the first of
 * the runs that share it. The kernel that detects a fault first, of several any one, writes the record and sets `code`
 * last; a record whose code is not 0 is left unchanged. Without a record stream_sync fails with KERNEL_FAILED. The
 * record is complete once stream_reached or stream_sync of the run's own stream gives the run's number; progress of
 * another stream that waited for this one does not count. Core reads the record only then, and keeps it until then.
 * Aligned to 64 bytes. Fixed layout.
 */
enum COMPUTE_UNDERLYING(int32_t) { COMPUTE_PLUGIN_FAULT_NONE = 0, COMPUTE_PLUGIN_FAULT_INDEX = 1 };
typedef struct compute_plugin_fault {
  int32_t code;
  int32_t argument; /* operand that holds the index */
  int64_t value;    /* the index */
  int64_t limit;    /* the extent */
  int64_t position; /* row-major position in the index space; -1 if unknown */
  int64_t reserved[4];
} compute_plugin_fault;

/* Where an operand lies. Fixed layout. */
typedef struct compute_plugin_place {
  uint64_t device; /* an open device of the plugin */
  int32_t heap;    /* index into its heaps; -1: imported memory */
  int32_t reserved;
} compute_plugin_place;

/*
 * A `next` entry of compute_plugin_run: the places of its tensors, for operands on other devices and for collectives.
 * Without it all operands are on the device of the stream. This version of core never sends it. A plugin that does not
 * know the entry returns UNSUPPORTED; so does one that cannot reach a place.
 */
typedef struct compute_plugin_run_places {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  const compute_plugin_place* places; /* one per tensor of the run */
  int32_t place_count;
  int32_t reserved;
} compute_plugin_run_places;

typedef struct compute_plugin_run {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint64_t stream;
  const compute_plugin_operand* tensors; /* inputs, then outputs, as in the op */
  const compute_plugin_scalar* scalars;
  compute_plugin_operand workspace;
  compute_plugin_operand fault; /* a compute_plugin_fault in a PINNED or HOST_SPACE heap; buffer 0: no record. Then
                                   stream_sync reports the fault, or plan_run on an immediate stream */
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
  int32_t access; /* COMPUTE_PLUGIN_TENSOR_ */
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
  /* Fails with COMPILE_FAILED and the complete log, or with UNSUPPORTED for an unknown language. */
  compute_error* (*compile)(uint64_t device, const compute_plugin_kernel_source* source, uint64_t* out_kernel,
                            compute_plugin_kernel_info* out_info);
  compute_error* (*launch)(uint64_t kernel, const compute_plugin_launch* launch);
  /* No queued or running work uses the kernel any more. */
  void (*release)(uint64_t device, uint64_t kernel);
} compute_plugin_kernel_table;

/* ---- Devices ----------------------------------------------------------------------------------------------------- */

/* A device setting and its value. Fixed layout. */
typedef struct compute_plugin_device_setting {
  compute_string name;  /* as in selectors: "mode" for COMPUTE_ACME_MODE */
  compute_string value; /* checked by the setting's declaration; choices in small letters, flags 1 or 0 */
} compute_plugin_device_setting;

typedef struct compute_plugin_device_options {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint64_t core_device;                          /* for core->report_async */
  const compute_plugin_device_setting* settings; /* all device settings that have a value */
  int32_t setting_count;
  int32_t reserved;
} compute_plugin_device_options;

/* compute_plugin_caps.flags */
enum COMPUTE_UNDERLYING(uint32_t) {
  /* A stream with COMPUTE_PLUGIN_STREAM_IMMEDIATE runs plan_run, copies and fill on the calling thread before they
   * return. A failure does not make the stream fail. Core calls no other slots of it than
   * stream_wait and stream_destroy. */
  COMPUTE_PLUGIN_DEVICE_IMMEDIATE = 1,
  /* The device is the host. A buffer handle is any host address; core allocates. For the plugin `cpu` only. */
  COMPUTE_PLUGIN_DEVICE_IS_HOST = 2
};

/* The capabilities of an open device. */
typedef struct compute_plugin_caps {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint32_t flags;
  int32_t heap_count;
  const compute_plugin_heap* heaps; /* the first heap holds tensors and workspaces */
  int32_t priority_least;           /* the range of stream priorities, which contains 0; both 0: no priorities */
  int32_t priority_greatest;
} compute_plugin_caps;

/* What a device measures. Core sets struct_size, and all values to -1, which means unknown. */
typedef struct compute_plugin_telemetry {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int32_t utilisation_percent;      /* of the compute units, lately; 0 to 100 */
  int32_t temperature_millidegrees; /* Celsius */
  int64_t power_milliwatts;
  int64_t memory_process_bytes; /* used by this process */
  int64_t memory_used_bytes;    /* used by all processes */
} compute_plugin_telemetry;

/* compute_plugin_stream_options.flags */
enum COMPUTE_UNDERLYING(uint32_t) {
  COMPUTE_PLUGIN_STREAM_DEFAULT = 1, /* the stream that a client names NULL; ordered by stream_wait only */
  COMPUTE_PLUGIN_STREAM_IMMEDIATE = 2
};

/* Flags of stream_mark. */
enum COMPUTE_UNDERLYING(uint32_t) {
  COMPUTE_PLUGIN_MARK_TIMED = 65536 /* mark_time will be asked for this mark; only where there is a mark_time */
};

typedef struct compute_plugin_stream_options {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint32_t flags;
  int32_t priority;     /* 0 is normal; higher runs sooner; within the range of compute_plugin_caps */
  uint64_t core_stream; /* for core->report_async */
} compute_plugin_stream_options;

/*
 * Streams are timelines. Core numbers the submissions of a stream (plan_run, copies, fill and launch) 1, 2, 3, … and
 * may skip numbers. A plugin learns a number only by a mark: stream_mark(stream, n, flags) states that all work
 * submitted so far has numbers up to n. Marks ascend; the first may be far above 1. Core marks a stream only when
 * something outside the stream needs the number. Before the first mark stream_reached gives 0.
 *
 * A stream that failed takes no more work: the slots that submit, stream_mark and stream_wait return the error, or
 * accept and do nothing. stream_reached and stream_sync then return the error, with *out_reached the
 * last number known to have succeeded. From that moment nothing that was queued touches memory or fault records, which
 * core may reuse; while queued work still does, they do not return the error yet. Work that depends on a number by
 * stream_wait starts after the number ended, whether it succeeded or not; core asks the stream of the number how it
 * ended.
 *
 * An error of plan_run, a copy, fill or launch means that nothing was queued. The stream stays usable, unless
 * stream_reached returns an error. A buffer handle is unique among all heaps of a device.
 */
typedef struct compute_plugin_device_table {
  int64_t table_size;
  /* Const data, valid until close. */
  const compute_plugin_caps* (*caps)(uint64_t device);
  /* Closes the device and frees all that is left of it. Core need not have released plans, graphs, kernels, streams,
   * buffers and imports before, and does not use or release them after. No work is queued any more, unless the device
   * was lost. */
  void (*close)(uint64_t device);

  /* Fails with OUT_OF_DEVICE_MEMORY without further effect. NULL if the device is the host. */
  compute_error* (*memory_allocate)(uint64_t device, const compute_plugin_allocation* request, uint64_t* out_buffer);
  /* No queued work uses the buffer any more. */
  void (*memory_free)(uint64_t device, int32_t heap, uint64_t buffer);
  /* Free and total bytes, as reported by the driver. Optional; NULL: unknown. */
  compute_error* (*memory_info)(uint64_t device, int64_t* out_free, int64_t* out_total);
  /* The bytes of memory that a tensor needs in the first heap, for devices that pad: at least its span. Core asks for
   * every tensor that it allocates with elements, temporaries too; those are row-major. Views, imports and copies of
   * host memory are not padded, so a plugin that uses padding checks the size of the allocation. Optional; NULL: the
   * span of the elements. */
  compute_error* (*memory_allocation_size)(uint64_t device, const compute_plugin_tensor* tensor,
                                           int64_t* out_size_bytes);
  /* Maps a range of HOST_VISIBLE memory into the host's address space until memory_unmap. No queued work uses the range
   * meanwhile; other ranges of the buffer may be in use. `access` is COMPUTE_PLUGIN_TENSOR_INPUT (the host reads),
   * OUTPUT (the host writes) or both. Both slots are optional; NULL: no heap is HOST_VISIBLE. */
  compute_error* (*memory_map)(uint64_t device, int32_t heap, uint64_t buffer, int64_t offset_bytes, int64_t size_bytes,
                               int32_t access, void** out_data);
  void (*memory_unmap)(uint64_t device, int32_t heap, uint64_t buffer, void* data);
  /* Makes a buffer of memory that another library owns. Core keeps that memory alive until memory_free with heap -1
   * releases the buffer. UNSUPPORTED: the memory is not this device's; core then asks its next device. Optional; NULL:
   * unsupported. */
  compute_error* (*memory_import)(uint64_t device, const compute_plugin_import* import, uint64_t* out_buffer);

  compute_error* (*stream_create)(uint64_t device, const compute_plugin_stream_options* options, uint64_t* out_stream);
  /* Queued work still runs. Core does not use the handle again, also not as `other` of stream_wait. */
  void (*stream_destroy)(uint64_t stream);
  compute_error* (*stream_mark)(uint64_t stream, uint64_t number, uint32_t flags);
  /* Orders work that is submitted to `stream` later after mark `number` on `other`, a stream of any device of the same
   * plugin. The wait ends also where `other` fails. Does not block the caller, except on an immediate stream. Returns
   * UNSUPPORTED and queues nothing if the two streams cannot be ordered; core then waits on the host. */
  compute_error* (*stream_wait)(uint64_t stream, uint64_t other, uint64_t number);
  /* The greatest marked number that has finished. Never blocks. */
  compute_error* (*stream_reached)(uint64_t stream, uint64_t* out_reached);
  /* Waits for a marked number, never for one above the last mark, at most timeout_ns (INT64_MAX: no limit).
   * *out_reached as for stream_reached. A timeout is not an error. */
  compute_error* (*stream_sync)(uint64_t stream, uint64_t number, int64_t timeout_ns, uint64_t* out_reached);
  /* The time at which the work before a timed mark finished, in ns of the device's clock. `number` has been reached,
   * and the stream is not destroyed. Core asks once per timed mark; the plugin then forgets the time. out_ns NULL:
   * nobody wants the time, which the plugin forgets, also before the number is reached. INVALID_ARGUMENT: the mark was
   * not timed. mark_time and `clock` are optional together; NULL: the device has no times. */
  compute_error* (*mark_time)(uint64_t stream, uint64_t number, int64_t* out_ns);
  /* Reads the device's clock, which all its streams share, and the host's (CLOCK_MONOTONIC), in ns and as close to each
   * other as the driver allows. May wait for the device. */
  compute_error* (*clock)(uint64_t device, int64_t* out_device_ns, int64_t* out_host_ns);
  /* Fills what the device measures. Optional; NULL: nothing. */
  compute_error* (*telemetry)(uint64_t device, compute_plugin_telemetry* out_telemetry);

  /*
   * Copies, in stream order. size_bytes > 0. Host memory stays valid until the stream has passed the copy; a plugin may
   * also finish with it before it returns. copy: both operands are on this device and do not overlap. copy_peer: src is
   * on another device of the same plugin, and the stream is on the device of dst.
   */
  compute_error* (*copy_from_host)(uint64_t stream, const void* src, const compute_plugin_operand* dst,
                                   int64_t size_bytes);
  compute_error* (*copy_to_host)(uint64_t stream, const compute_plugin_operand* src, void* dst, int64_t size_bytes);
  compute_error* (*copy)(uint64_t stream, const compute_plugin_operand* src, const compute_plugin_operand* dst,
                         int64_t size_bytes);
  /* Repeats a pattern of 1, 2, 4, 8 or 16 bytes, which divide offset and size. */
  compute_error* (*fill)(uint64_t stream, const compute_plugin_operand* dst, int64_t size_bytes, const void* pattern,
                         int32_t pattern_size);
  /* Optional. With NULL, or UNSUPPORTED and nothing queued for a pair of devices, core copies through the host. */
  compute_error* (*copy_peer)(uint64_t stream, uint64_t src_device, const compute_plugin_operand* src,
                              const compute_plugin_operand* dst, int64_t size_bytes);

  /* Tells whether op_prepare would make a plan. Compiles nothing. Core calls it for compute_op_query only, never before
   * a run. A plugin that sets out_info->supported to 0 calls `refuse` once. */
  compute_error* (*op_query)(uint64_t device, const compute_plugin_op* op, compute_plugin_query_info* out_info,
                             compute_plugin_refuse refuse, void* context);
  /* Makes an immutable plan, which may run on several threads and streams at once. To refuse the op, a plugin calls
   * `refuse` once, leaves *out_plan 0 and returns no error; it has compiled nothing then. Takes less than 10 µs where
   * the kernel is known. Plans are many, kernels few: key kernels by expression digest or op, dtypes, layout class,
   * collapsed rank, alignment and index width, never by a size. Core may prepare a plan ahead of use, on any thread,
   * and says so by COMPUTE_PLUGIN_OP_AHEAD. */
  compute_error* (*op_prepare)(uint64_t device, const compute_plugin_op* op, uint64_t* out_plan,
                               compute_plugin_plan_info* out_info, compute_plugin_refuse refuse, void* context);
  compute_error* (*plan_run)(uint64_t plan, const compute_plugin_run* run);
  /* No queued or running work uses the plan any more. */
  void (*plan_release)(uint64_t device, uint64_t plan);

  /* Kernels that programs bring as source. Optional; NULL: unsupported. */
  const compute_plugin_kernel_table* (*kernels)(uint64_t device);
} compute_plugin_device_table;

/* ---- The plugin table -------------------------------------------------------------------------------------------- */

enum COMPUTE_UNDERLYING(uint32_t) {
  COMPUTE_PLUGIN_EXIT_PROCESS = 1 /* the process exits: leave memory to the system */
};

typedef struct compute_plugin_table {
  int64_t table_size;
  /* Delivers all devices, also unusable ones, and all requirements. May be called again. No device at all is a normal
   * result. */
  compute_error* (*enumerate)(const compute_plugin_sink* sink);
  /* A device may be opened several times, and again after CONTEXT_LOST and close. */
  compute_error* (*device_open)(uint64_t id, const compute_plugin_device_options* options, uint64_t* out_device,
                                const compute_plugin_device_table** out_table);
  /* Called in the child after fork(): forget threads and locks, call no driver. Returns 1 if the plugin's devices work
   * in the child; else they fail with FORKED there, and core calls nothing of the plugin in the child any more.
   * Optional; NULL: they fail with FORKED. */
  int32_t (*on_fork_child)(void);
  /* The process exits. All work has ended or was given up; devices may still be open, and threads of the program may be
   * inside other functions of the plugin. Optional. */
  void (*on_exit)(int32_t mode);
  /* Called last, after all devices are closed. Optional. */
  void (*close)(void);
  /* The table of an extension, which begins with its int64_t table_size, or NULL. Device 0 asks for an extension of the
   * plugin as a whole. Optional. */
  const void* (*get_extension)(uint64_t device, const char* name, int64_t name_size);
} compute_plugin_table;

/* The two functions that a plugin exports. */
COMPUTE_PLUGIN_EXPORT const compute_plugin_manifest* compute_plugin_query(void);
COMPUTE_PLUGIN_EXPORT compute_error* compute_plugin_open(uint32_t interface_version, const compute_plugin_core* core,
                                                         const compute_plugin_table** out_table);
typedef const compute_plugin_manifest* (*compute_plugin_query_function)(void);
typedef compute_error* (*compute_plugin_open_function)(uint32_t interface_version, const compute_plugin_core* core,
                                                       const compute_plugin_table** out_table);

/* ---- Extensions -------------------------------------------------------------------------------------------------- */

/* Graphs: a recorded list of runs becomes one executable. Without this extension core replays a graph by plan_run. */
#define COMPUTE_PLUGIN_EXT_GRAPH_V1 "compute.ext.graph.v1"

typedef struct compute_plugin_graph_node {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  int32_t kind; /* 1: a run; create fails with UNSUPPORTED for an unknown kind */
  int32_t reserved;
  uint64_t plan;
  const compute_plugin_run* run; /* `stream` is ignored */
  const int32_t* scalar_slots;   /* per scalar: the graph slot that replaces it at each run, or -1; NULL: none */
} compute_plugin_graph_node;

/* A range of memory of the device. Fixed layout. */
typedef struct compute_plugin_range {
  uint64_t buffer;
  int64_t offset_bytes;
  int64_t size_bytes;
} compute_plugin_range;

/* compute_plugin_graph.flags: none yet. */
typedef struct compute_plugin_graph {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
  uint32_t flags;
  int32_t slot_count;
  const compute_plugin_graph_node* nodes;
  int64_t node_count;
  /* Memory that only the nodes of this graph access as long as it exists, and whose contents nobody needs before or
   * after a run: temporaries, workspaces and outputs that the program has released. A plugin may use it in any way, or
   * not at all. The ranges are disjoint. */
  const compute_plugin_range* temporaries;
  int64_t temporary_count;
} compute_plugin_graph;

typedef struct compute_plugin_graph_table {
  int64_t table_size;
  /* Makes a graph. Nodes that use the same memory run in order. Core keeps the plans as long as the graph. UNSUPPORTED:
   * core replays by plan_run. */
  compute_error* (*create)(uint64_t device, const compute_plugin_graph* graph, uint64_t* out_graph);
  compute_error* (*run)(uint64_t graph, uint64_t stream, const compute_plugin_scalar* slots);
  void (*release)(uint64_t device, uint64_t graph);
} compute_plugin_graph_table;

/*
 * Plans as data, so that a later process need not compile. This version of core stores no plans yet.
 *
 * The data means something only to the plugin that wrote it: another build may refuse it, and so may another device.
 */
#define COMPUTE_PLUGIN_EXT_PLAN_CACHE_V1 "compute.ext.plan_cache.v1"

/* Takes the next piece of a plan's data and copies it. */
typedef void (*compute_plugin_write)(void* context, const void* data, int64_t size);

typedef struct compute_plugin_plan_cache_table {
  int64_t table_size;
  /* Writes a plan by one or several calls of `write`, before it returns. UNSUPPORTED: this plan cannot be saved. */
  compute_error* (*save)(uint64_t device, uint64_t plan, compute_plugin_write write, void* context);
  /* Makes the plan that `save` wrote; `op` is the one that it was prepared for. Answers as op_prepare does.
   * UNSUPPORTED: the data is of another build, device or op, or damaged; core then prepares the op. */
  compute_error* (*load)(uint64_t device, const compute_plugin_op* op, const void* data, int64_t size,
                         uint64_t* out_plan, compute_plugin_plan_info* out_info);
} compute_plugin_plan_cache_table;

/* Native handles, for programs that mix their own CUDA or OpenCL code with tensors. */
#define COMPUTE_PLUGIN_EXT_NATIVE_V1 "compute.ext.native.v1"

typedef struct compute_plugin_native_table {
  int64_t table_size;
  compute_error* (*device_handle)(uint64_t device, uint64_t* out_handle); /* CUcontext, cl_context */
  compute_error* (*stream_handle)(uint64_t stream, uint64_t* out_handle); /* CUstream, cl_command_queue */
  compute_error* (*buffer_handle)(uint64_t device, uint64_t buffer, uint64_t* out_handle); /* CUdeviceptr, cl_mem */
  const void* reserved;                                                                    /* NULL */
  /* DLPack device type and id (kDLCUDA, the CUDA ordinal). buffer_handle then gives what DLTensor.data is: an address
   * that the device can add offsets to, or with kDLOpenCL a cl_mem. NULL: memory is not exported. */
  compute_error* (*dlpack_device)(uint64_t device, int32_t* out_type, int32_t* out_id);
} compute_plugin_native_table;

#ifdef __cplusplus
}
#endif

#if defined(__clang__) && !defined(__cplusplus)
#pragma clang diagnostic pop
#endif

#endif /* COMPUTE_PLUGIN_H_ */
