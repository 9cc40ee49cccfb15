// SPDX-License-Identifier: Apache-2.0
//! A device plugin in Rust, with the standard library alone: the slots and the five primitives that plugin.h requires,
//! for bool, int32, int64, uint32 and float32. Build and try it:
//!
//!     rustc --edition 2021 -O --crate-type cdylib -o compute_plugin_rust.so lib.rs
//!     COMPUTE_PLUGIN_PATH=$PWD compute doctor
//!     compute-cts --plugin compute_plugin_rust.so --level quick
//!
//! The device is the host's memory and the calling thread: work has finished when the function that submits it returns.
mod abi;
mod intrinsics;
mod ops;
mod values;

use abi::{slice, Constant, Header, Operand, Status, Text};
use std::alloc::Layout;
use std::collections::HashMap;
use std::ffi::c_void;
use std::mem::size_of;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, Ordering};
use std::sync::Mutex;

// ---- Errors ---------------------------------------------------------------------------------------------------------

static CORE: AtomicPtr<abi::Core> = AtomicPtr::new(null_mut());

struct Failure {
    code: i32,
    message: String,
}

fn fail<T>(code: i32, message: String) -> Result<T, Failure> {
    Err(Failure { code, message })
}

fn make_error(failure: &Failure) -> Status {
    make_error_by(CORE.load(Ordering::Acquire), failure)
}

fn make_error_by(core: *const abi::Core, failure: &Failure) -> Status {
    let info = abi::ErrorInfo {
        header: Header::of::<abi::ErrorInfo>(abi::STRUCT_ERROR_INFO),
        code: failure.code,
        argument: -1,
        native_code: 0,
        message: Text::of(&failure.message),
        cause: null_mut(),
    };
    unsafe { ((*core).error_new)(&info) }
}

/// Every slot returns by it. No panic reaches core.
fn guard(body: impl FnOnce() -> Result<(), Failure>) -> Status {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => null_mut(),
        Ok(Err(failure)) => make_error(&failure),
        Err(_) => make_error(&Failure { code: abi::INTERNAL, message: "rust: the plugin panicked".into() }),
    }
}

/// Refuses flags that must be understood.
fn understand_flags(flags: u32) -> Result<(), Failure> {
    if flags >= 1 << 16 {
        return fail(abi::UNSUPPORTED, format!("rust: flags {flags:#x} are newer than the plugin"));
    }
    Ok(())
}

/// Refuses a struct with entries or flags that must be understood; the plugin knows none.
fn understand(header: &Header, flags: u32) -> Result<(), Failure> {
    let mut entry = header.next;
    while let Some(found) = unsafe { entry.as_ref() } {
        if found.struct_type & abi::MUST_UNDERSTAND != 0 {
            return fail(abi::UNSUPPORTED, format!("rust: entry {} is newer than the plugin", found.struct_type));
        }
        entry = found.next;
    }
    understand_flags(flags)
}

// ---- Memory ---------------------------------------------------------------------------------------------------------

const MEMORY_BYTES: i64 = 1 << 30;
const ALIGNMENT: usize = 64;

struct Blocks {
    layouts: HashMap<u64, Layout>,
    used_bytes: i64,
}

struct Device {
    blocks: Mutex<Blocks>,
}

/// A handle is the address of the object that it stands for.
unsafe fn from_handle<'a, T>(handle: u64) -> &'a T {
    &*(handle as *const T)
}

/// A buffer is its address.
fn address(operand: &Operand) -> *mut u8 {
    (operand.buffer as *mut u8).wrapping_offset(operand.offset_bytes as isize)
}

extern "C" fn memory_allocate(
    device: u64,
    request: &abi::Allocation,
    out_buffer: &mut u64,
    out_data: &mut *mut u8,
) -> Status {
    guard(|| {
        understand(&request.header, request.flags)?;
        let mut blocks = unsafe { from_handle::<Device>(device) }.blocks.lock().unwrap();
        let free = MEMORY_BYTES - blocks.used_bytes;
        let layout = Layout::from_size_align(request.size_bytes as usize, ALIGNMENT);
        let (true, Ok(layout)) = (request.size_bytes <= free, layout) else {
            return fail(abi::OUT_OF_DEVICE_MEMORY, format!("rust: {} bytes, {free} are free", request.size_bytes));
        };
        let memory = unsafe { std::alloc::alloc(layout) };
        if memory.is_null() {
            return fail(abi::OUT_OF_DEVICE_MEMORY, format!("rust: the host has no {} bytes", request.size_bytes));
        }
        blocks.used_bytes += request.size_bytes;
        blocks.layouts.insert(memory as u64, layout);
        *out_buffer = memory as u64;
        *out_data = memory;
        Ok(())
    })
}

fn free(blocks: &mut Blocks, buffer: u64) {
    if let Some(layout) = blocks.layouts.remove(&buffer) {
        blocks.used_bytes -= layout.size() as i64;
        unsafe { std::alloc::dealloc(buffer as *mut u8, layout) };
    }
}

extern "C" fn memory_free(device: u64, _heap: i32, buffer: u64) {
    guard(|| {
        free(&mut unsafe { from_handle::<Device>(device) }.blocks.lock().unwrap(), buffer);
        Ok(())
    });
}

// ---- Streams --------------------------------------------------------------------------------------------------------

struct Stream {
    marked: AtomicU64,
    failure: Mutex<Option<(u64, String)>>, // the last number that succeeded, and the fault of later work
}

impl Stream {
    fn check(&self, out_reached: Option<&mut u64>) -> Result<(), Failure> {
        let failure = self.failure.lock().unwrap();
        if let Some(reached) = out_reached {
            *reached = failure.as_ref().map_or(self.marked.load(Ordering::Acquire), |(good, _)| *good);
        }
        match &*failure {
            Some((_, message)) => fail(abi::KERNEL_FAILED, message.clone()),
            None => Ok(()),
        }
    }
}

extern "C" fn stream_create(_device: u64, options: &abi::StreamOptions, out_stream: &mut u64) -> Status {
    guard(|| {
        understand(&options.header, options.flags)?;
        let stream = Box::new(Stream { marked: AtomicU64::new(0), failure: Mutex::new(None) });
        *out_stream = Box::into_raw(stream) as u64;
        Ok(())
    })
}

extern "C" fn stream_destroy(stream: u64) {
    drop(unsafe { Box::from_raw(stream as *mut Stream) });
}

extern "C" fn stream_mark(stream: u64, number: u64, flags: u32) -> Status {
    guard(|| {
        understand_flags(flags)?;
        let stream = unsafe { from_handle::<Stream>(stream) };
        stream.check(None)?;
        stream.marked.store(number, Ordering::Release);
        Ok(())
    })
}

/// The other stream's work has finished already.
extern "C" fn stream_wait(_stream: u64, _other: u64, _number: u64, flags: u32) -> Status {
    guard(|| understand_flags(flags))
}

extern "C" fn stream_reached(stream: u64, out_reached: &mut u64) -> Status {
    guard(|| unsafe { from_handle::<Stream>(stream) }.check(Some(out_reached)))
}

extern "C" fn stream_sync(stream: u64, _number: u64, _timeout_ns: i64, out_reached: &mut u64) -> Status {
    stream_reached(stream, out_reached)
}

fn submit(stream: u64, work: impl FnOnce(&Stream) -> Result<(), Failure>) -> Status {
    guard(|| {
        let stream = unsafe { from_handle::<Stream>(stream) };
        stream.check(None)?;
        work(stream)
    })
}

fn copy_bytes(stream: u64, src: *const u8, dst: *mut u8, size_bytes: i64, flags: u32) -> Status {
    submit(stream, |_| {
        understand_flags(flags)?;
        unsafe { std::ptr::copy_nonoverlapping(src, dst, size_bytes as usize) };
        Ok(())
    })
}

extern "C" fn copy_from_host(
    stream: u64,
    src: *const u8,
    _pinned: *const Operand,
    dst: &Operand,
    size_bytes: i64,
    flags: u32,
) -> Status {
    copy_bytes(stream, src, address(dst), size_bytes, flags)
}

extern "C" fn copy_to_host(
    stream: u64,
    src: &Operand,
    dst: *mut u8,
    _pinned: *const Operand,
    size_bytes: i64,
    flags: u32,
) -> Status {
    copy_bytes(stream, address(src), dst, size_bytes, flags)
}

extern "C" fn fill(
    stream: u64,
    dst: &Operand,
    size_bytes: i64,
    pattern: *const u8,
    pattern_size: i32,
    flags: u32,
) -> Status {
    submit(stream, |_| {
        understand_flags(flags)?;
        let (memory, pattern) = unsafe {
            let memory = std::slice::from_raw_parts_mut(address(dst), size_bytes as usize);
            (memory, slice(pattern, pattern_size as i64))
        };
        for part in memory.chunks_exact_mut(pattern.len()) {
            part.copy_from_slice(pattern);
        }
        Ok(())
    })
}

// ---- Ops ------------------------------------------------------------------------------------------------------------

/// Core's function that receives a refusal, and its context.
type Receiver = (abi::Refuse, *mut c_void);

fn make_plan(op: &abi::Op, (refuse, context): Receiver) -> Result<Option<ops::Plan>, Failure> {
    understand(&op.header, op.flags)?;
    match unsafe { ops::Plan::new(op) } {
        Ok(plan) => Ok(Some(plan)),
        Err(refused) => {
            let refusal = abi::Refusal {
                header: Header::of::<abi::Refusal>(abi::STRUCT_REFUSAL),
                reason: refused.reason,
                argument: refused.argument,
                text: Text::of(refused.text),
                hint: Text::of(""),
            };
            refuse(context, &refusal);
            Ok(None)
        }
    }
}

extern "C" fn op_query(
    _: u64,
    op: &abi::Op,
    out: &mut abi::QueryInfo,
    refuse: abi::Refuse,
    context: *mut c_void,
) -> Status {
    guard(|| {
        out.supported = make_plan(op, (refuse, context))?.is_some() as i32;
        Ok(())
    })
}

extern "C" fn op_prepare(
    _device: u64,
    op: &abi::Op,
    out_plan: &mut u64,
    out_info: &mut abi::PlanInfo,
    refuse: abi::Refuse,
    context: *mut c_void,
) -> Status {
    guard(|| {
        if let Some(plan) = make_plan(op, (refuse, context))? {
            out_info.reports_faults = plan.reports_faults() as i32;
            *out_plan = Box::into_raw(Box::new(plan)) as u64;
        }
        Ok(())
    })
}

/// Writes the first fault to the record, `code` last. Without a record, the stream fails.
fn report(fault: abi::Fault, run: &abi::Run, stream: &Stream) {
    if run.fault.buffer == 0 {
        let message = format!("index {} is outside of an axis of extent {}", fault.value, fault.limit);
        *stream.failure.lock().unwrap() = Some((stream.marked.load(Ordering::Acquire), message));
        return;
    }
    let record = unsafe { &mut *address(&run.fault).cast::<abi::Fault>() };
    if record.code == 0 {
        let code = fault.code;
        *record = abi::Fault { code: 0, ..fault };
        unsafe { AtomicI32::from_ptr(&mut record.code) }.store(code, Ordering::Release);
    }
}

extern "C" fn plan_run(plan: u64, run: &abi::Run) -> Status {
    submit(run.stream, |stream| unsafe {
        understand(&run.header, 0)?;
        let bases: Vec<*mut u8> = slice(run.tensors, run.tensor_count as i64).iter().map(address).collect();
        let scalars = slice(run.scalars, run.scalar_count as i64);
        if let Some(fault) = from_handle::<ops::Plan>(plan).run(&bases, scalars) {
            report(fault, run, stream);
        }
        Ok(())
    })
}

extern "C" fn plan_release(_device: u64, plan: u64) {
    drop(unsafe { Box::from_raw(plan as *mut ops::Plan) });
}

// ---- Devices --------------------------------------------------------------------------------------------------------

static HEAP: Constant<abi::Heap> = Constant(abi::Heap {
    header: Header::of::<abi::Heap>(abi::STRUCT_HEAP),
    flags: abi::HEAP_HOST_SPACE | abi::HEAP_PINNED,
    suballocation: abi::SUBALLOCATE_OFFSET,
    size_bytes: MEMORY_BYTES,
    max_allocation_bytes: MEMORY_BYTES,
    offset_alignment: ALIGNMENT as i64,
    base_alignment: ALIGNMENT as i64,
    role: abi::HEAP_ROLE_SHARED,
    reserved: 0,
});

static CAPS: Constant<abi::Caps> = Constant(abi::Caps {
    header: Header::of::<abi::Caps>(abi::STRUCT_CAPS),
    flags: 0,
    heap_count: 1,
    heaps: &HEAP.0,
    priority_least: 0,
    priority_greatest: 0,
});

extern "C" fn caps(_device: u64) -> *const abi::Caps {
    &CAPS.0
}

/// Frees what core has left: buffers. Core may leave streams and plans too; a driver would free them here.
extern "C" fn close(device: u64) {
    let device = unsafe { Box::from_raw(device as *mut Device) };
    guard(|| {
        let mut blocks = device.blocks.lock().unwrap();
        let left: Vec<u64> = blocks.layouts.keys().copied().collect();
        left.into_iter().for_each(|buffer| free(&mut blocks, buffer));
        Ok(())
    });
}

static DEVICE_TABLE: abi::DeviceTable = abi::DeviceTable {
    table_size: size_of::<abi::DeviceTable>() as i64,
    caps,
    close,
    memory_allocate,
    memory_free,
    memory_info: None,
    memory_map: None,
    memory_unmap: None,
    memory_import: None,
    stream_create,
    stream_destroy,
    stream_mark,
    stream_wait,
    stream_wait_host: None,
    signal_host_wait: None,
    stream_cancel: None,
    stream_reached,
    stream_sync,
    mark_time: None,
    clock: None,
    telemetry: None,
    copy_from_host,
    copy_to_host,
    fill,
    copy_peer: None,
    op_query,
    op_prepare,
    plan_warm: None,
    plan_run,
    plan_release,
    kernels: None,
};

/// By dtype id: bool, int32, int64, uint32 and float32.
static LEVELS: [u32; 13] = {
    let mut levels = [0; 13];
    levels[abi::DTYPE_BOOL as usize] = abi::DTYPE_ALL_LEVELS;
    levels[abi::DTYPE_INT32 as usize] = abi::DTYPE_ALL_LEVELS;
    levels[abi::DTYPE_INT64 as usize] = abi::DTYPE_ALL_LEVELS;
    levels[abi::DTYPE_UINT32 as usize] = abi::DTYPE_ALL_LEVELS;
    levels[abi::DTYPE_FLOAT32 as usize] = abi::DTYPE_ALL_LEVELS;
    levels
};

extern "C" fn enumerate(sink: &abi::Sink) -> Status {
    guard(|| {
        let info = abi::DeviceInfo {
            header: Header::of::<abi::DeviceInfo>(abi::STRUCT_DEVICE_INFO),
            id: 1,
            description: Text::of("The host, in Rust"),
            vendor: Text::of("Compute"),
            driver_version: Text::of(""),
            pci_address: Text::of(""),
            uuid: Text::of(""),
            libraries: Text::of(""),
            memory_bytes: MEMORY_BYTES,
            kind: abi::DEVICE_KIND_ACCELERATOR,
            score: 0,
            platform_index: 0,
            property_count: 0,
            properties: null(),
            dtypes: LEVELS.as_ptr(),
            dtype_count: LEVELS.len() as i32,
            subnormals: abi::SUBNORMALS_KEPT,
            unusable: Text::of(""),
            platform: Text::of(""),
            subgroup_size_min: 0,
            subgroup_size_max: 0,
            local_memory_bytes: 0,
            argument_bytes: 0,
            max_group_size: 0,
            atomic_alignment: 0,
        };
        (sink.device)(sink.context, &info);
        Ok(())
    })
}

extern "C" fn device_open(
    _id: u64,
    options: &abi::DeviceOptions,
    out_device: &mut u64,
    out_table: &mut *const abi::DeviceTable,
) -> Status {
    guard(|| {
        understand(&options.header, 0)?;
        let blocks = Mutex::new(Blocks { layouts: HashMap::new(), used_bytes: 0 });
        *out_device = Box::into_raw(Box::new(Device { blocks })) as u64;
        *out_table = &DEVICE_TABLE;
        Ok(())
    })
}

// ---- The plugin -----------------------------------------------------------------------------------------------------

static TABLE: abi::PluginTable = abi::PluginTable {
    table_size: size_of::<abi::PluginTable>() as i64,
    enumerate,
    device_open,
    on_fork_child: None,
    on_exit: None,
    close: None,
    get_extension: None,
};

static MANIFEST: Constant<abi::Manifest> = Constant(abi::Manifest {
    header: Header::of::<abi::Manifest>(abi::STRUCT_MANIFEST),
    interface_min: abi::INTERFACE,
    interface_max: abi::INTERFACE,
    draft: abi::DRAFT,
    flags: 0,
    name: Text::of("rust"),
    version: Text::of("1.0.0"),
    vendor: Text::of("Compute"),
    license: Text::of("Apache-2.0"),
    url: Text::of(""),
    build_id: Text::of("example"),
    sanitizer: Text::of(""),
    priority: 0,
    setting_count: 0,
    settings: null(),
});

#[no_mangle]
pub extern "C" fn compute_plugin_query() -> *const abi::Manifest {
    &MANIFEST.0
}

#[no_mangle]
pub extern "C" fn compute_plugin_open(
    _version: u32,
    core: *mut abi::Core,
    out_table: &mut *const abi::PluginTable,
) -> Status {
    *out_table = null();
    // Another copy of the library in this process has its own core table.
    let first = CORE.compare_exchange(null_mut(), core, Ordering::AcqRel, Ordering::Acquire).unwrap_or_else(|set| set);
    if !first.is_null() && first != core {
        let message = "rust: another copy of the library uses the plugin".into();
        return make_error_by(core, &Failure { code: abi::UNSUPPORTED, message });
    }
    std::panic::set_hook(Box::new(|_| {})); // a plugin does not print
    *out_table = &TABLE;
    null_mut()
}
