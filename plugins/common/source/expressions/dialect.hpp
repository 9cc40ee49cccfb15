// SPDX-License-Identifier: Apache-2.0
// What a device's compiler understands, as a table. Kernels are written in the portable dialect of C. A table says how
// a language spells its words, and what the language and the device can do. The code that prints kernels asks nothing
// but this table, so a new language is a new table.
#pragma once

#include <compute/plugin.h>

#include <bitset>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace compute::common {

/// A word of the portable dialect and its text in a language: "#define name text", or for a type "typedef text name;".
struct Word {
  std::string_view name;
  std::string_view text;
  std::string_view condition = {};  // of the preprocessor, such as "if __CUDA_ARCH__ >= 900"
  std::string_view otherwise = {};  // the text if the condition does not hold
};

/// A function that expressions call, in the portable dialect. See real_functions.inc.
struct FunctionText {
  std::string_view base;     // its name without the suffix for the dtype
  std::string_view classes;  // of dtypes: s signed, u unsigned, f float, 4 float32 alone, c complex, - none
  std::string_view needs;    // other functions, separated by blanks; "@r": for the real dtype
  std::string_view text;
};

/// Intrinsics by id.
using Intrinsics = std::bitset<128>;

struct Dialect {
  // ---- The language's words ----

  std::string_view heading;       // the first lines, such as pragmas
  std::span<const Word> types;    // i8, i16, i32, i64, u8, u16, u32, u64, f32 and c64; f64 and c128, or see `float64`
  std::span<const Word> words;    // COMPUTE_…: qualifiers, address spaces, barriers, ids of work items, bits, atomics
  std::span<const Word> vectors;  // compute_w8 and compute_w16, of 8 and 16 bytes; only for languages with pointers
  std::string_view float64;       // lines if has_fp64: what float64 needs
  std::string_view int64_atomics;           // lines if has_int64_atomics
  std::string_view halves;                  // lines if has_half_io: the functions compute_from_f16 and compute_to_f16
  std::string_view to_i32, to_u32;          // functions of float32 that truncate and saturate; empty: from the library
  std::span<const FunctionText> functions;  // in place of the library's, or in addition

  // ---- The language's grammar: what C has ----

  bool has_pointers = true;         // else kernels cannot be generated as a whole, only expressions
  bool has_typedefs = true;         // else types are macros
  bool has_prefix_casts = true;     // (f32)x, else f32(x); to_i8(x) for types that are wider than their values
  bool has_hex_floats = true;       // 0x1p-3f, else decimal ones
  bool has_bool_arithmetic = true;  // (x > 0) - (x < 0)
  std::string_view precise;         // qualifier of variables that must not be contracted; empty: an option does that
  std::string_view u64_suffix;      // of literals, i64's too; empty: COMPUTE_U64(x) and COMPUTE_I64(x) are words
  std::string_view f64_suffix;      // of literals

  // ---- Arithmetic ----

  Intrinsics native = Intrinsics().set();  // whose functions of float32 keep their bounds; else the library's are used
  Intrinsics native_wide = Intrinsics().set();  // the same for float64
  Intrinsics wide_intrinsics;                   // whose float32 form exceeds its bound: they use float64
  bool has_fp64 = true;                         // OpenCL: cl_khr_fp64
  bool has_half_io = true;                      // compute_from_f16 and compute_to_f16 work; else by integer arithmetic
  // The library's functions may call C's by name, such as log, fmod and copysign. Else they call the library's, of
  // float32 alone.
  bool has_c_math = true;
  bool has_rounded_division = true;  // of float32 quotients and roots; else they use float64

  // ---- For kernels as a whole, in languages with pointers ----

  bool has_int64_atomics = true;     // OpenCL: cl_khr_int64_base_atomics
  bool has_ptx = false;              // NVIDIA's inline assembly
  bool has_warps = false;            // 32 work items exchange registers and vote, in PTX
  bool has_matrix_units = false;     // mma.sync of float16 and bfloat16, and cp.async, in PTX
  bool has_float64_units = false;    // mma.sync of float64 with 16 rows
  bool has_vendor_products = false;  // a library whose products of halves and TF32 the plugin prefers: cuBLASLt
  bool starts_kernels = false;       // COMPUTE_START_KERNELS(): kernels behind this one may start, and wait for its end
  bool has_tile_units = false;       // wgmma of TF32 and halves, and local memory of Launch::local_bytes
  bool is_host = false;  // kernels run on CPU cores (PoCL): no tiles through local memory, scalar accesses, long loops
  int32_t item_registers = 64;      // that the variables of a work item may fill
  int32_t few_rows = 16;            // of a product, up to which generated kernels are faster than the plugin's library
  int32_t few_rows_of_float64 = 8;  // the same for float64
  int32_t few_rows_of_halves = 16;  // the same for float16 and bfloat16
  int32_t group_size = 256;         // work items of most launches: a power of two, at most the device's limit
  int32_t largest_group = 256;      // of kernels that ask for more: a power of two, at most the device's limit
  int32_t compute_units = 1;        // multiprocessors
  int32_t groups_per_unit = 8;      // groups that one compute unit runs at a time
  int64_t local_memory_bytes = 48 << 10;
  int64_t max_block_bytes = 4096;  // of all parameters of a kernel (CUDA 4096, OpenCL CL_DEVICE_MAX_PARAMETER_SIZE)
  int64_t max_groups = INT32_MAX;
  int32_t counters = 0;  // of Pointer::kCounters; 0: groups cannot wait for each other's results
};

}  // namespace compute::common
