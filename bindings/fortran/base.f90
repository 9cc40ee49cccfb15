! SPDX-License-Identifier: Apache-2.0
!> Devices, tensors and errors over compute.h, and the calls that ops.f90 fills.
module compute_base
  use iso_c_binding
  use iso_fortran_env, only: error_unit, int32, int64, real32, real64
  implicit none
  private
  public :: compute_call, compute_device, compute_devices, compute_error, compute_error_name, compute_scalar, &
      compute_tensor

  integer, parameter, public :: compute_invalid_argument = 1, compute_out_of_range = 2, compute_unsupported = 3, &
      compute_out_of_memory = 4, compute_out_of_device_memory = 5, compute_not_found = 6, compute_device_mismatch = 7, &
      compute_compile_failed = 8, compute_kernel_failed = 9, compute_stream_failed = 10, compute_context_lost = 11, &
      compute_device_lost = 12, compute_restart_required = 13, compute_forked = 14, compute_shut_down = 15, &
      compute_plugin_rejected = 16, compute_internal = 17

  integer, parameter, public :: compute_bool = 1, compute_int8 = 2, compute_int16 = 3, compute_int32 = 4, &
      compute_int64 = 5, compute_uint8 = 6, compute_uint16 = 7, compute_uint32 = 8, compute_uint64 = 9, &
      compute_float16 = 10, compute_bfloat16 = 11, compute_float32 = 12, compute_float64 = 13, compute_complex64 = 14, &
      compute_complex128 = 15, compute_float8_e4m3fn = 16, compute_float8_e5m2 = 17

  !> The outcome of a call: code 0 is success.
  type :: compute_error
    integer :: code = 0
    character(:), allocatable :: message
  end type compute_error

  type :: compute_device
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: open => device_open
    procedure :: name => device_name
    procedure :: synchronize => device_synchronize
    procedure :: statistics => device_statistics
    procedure, private :: device_assign, tensor_int32, tensor_int64, tensor_real32, tensor_real64
    generic :: tensor => tensor_int32, tensor_int64, tensor_real32, tensor_real64
    generic :: assignment(=) => device_assign
    final :: device_finalize
  end type compute_device

  !> A handle of a tensor. Assignment makes a second handle of the same tensor.
  type :: compute_tensor
    private
    type(c_ptr) :: handle = c_null_ptr
    logical :: is_result = .false. ! the result of a function, until it is assigned to a variable
  contains
    procedure :: dtype => tensor_dtype
    procedure :: shape => tensor_shape
    procedure :: to_device => tensor_to_device
    procedure :: mark_result => tensor_mark_result
    procedure, private :: tensor_assign, read_int32, read_int64, read_real32, read_real64
    generic :: read => read_int32, read_int64, read_real32, read_real64
    generic :: assignment(=) => tensor_assign
    final :: tensor_finalize
  end type compute_tensor

  ! ---- The part of compute.h that is used here -----------------------------------------------------------------------

  integer(c_int32_t), parameter :: kind_int64 = 1, kind_float64 = 2, kind_string = 4, kind_dtype = 5, &
      struct_attribute = 5

  type, bind(c) :: c_string
    type(c_ptr) :: data
    integer(c_int64_t) :: size
  end type c_string

  type, bind(c) :: c_attribute
    integer(c_int32_t) :: struct_size = 56, struct_type = struct_attribute
    type(c_ptr) :: next = c_null_ptr
    type(c_ptr) :: name = c_null_ptr
    integer(c_int64_t) :: name_size = -1
    integer(c_int32_t) :: kind = 0, reserved = 0
    integer(c_int64_t) :: count = 1
    type(c_ptr) :: values = c_null_ptr
  end type c_attribute

  ! The first fields of the struct; struct_size says so.
  type, bind(c) :: c_device_info
    integer(c_int32_t) :: struct_size = 32, struct_type = 0
    type(c_ptr) :: next = c_null_ptr
    type(c_ptr) :: name = c_null_ptr
    integer(c_int64_t) :: name_size = 0
  end type c_device_info

  ! The first fields of the struct; struct_size says so.
  type, bind(c) :: c_device_statistics
    integer(c_int32_t) :: struct_size = 64, struct_type = 0
    type(c_ptr) :: next = c_null_ptr
    integer(c_int64_t) :: memory_used = 0, memory_peak = 0, memory_reserved = 0, memory_limit = 0, memory_mirrors = 0, &
        blocks_live = 0
  end type c_device_statistics

  interface
    subroutine compute_error_free(error) bind(c)
      import :: c_ptr
      type(c_ptr), value :: error
    end subroutine
    function compute_error_get_code(error) bind(c) result(code)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: error
      integer(c_int32_t) :: code
    end function
    function compute_error_message(error) bind(c) result(text)
      import :: c_ptr
      type(c_ptr), value :: error
      type(c_ptr) :: text
    end function
    function compute_error_code_name(code) bind(c) result(text)
      import :: c_int32_t, c_ptr
      integer(c_int32_t), value :: code
      type(c_ptr) :: text
    end function
    function compute_dtype_name(dtype) bind(c) result(text)
      import :: c_int32_t, c_ptr
      integer(c_int32_t), value :: dtype
      type(c_ptr) :: text
    end function
    function compute_device_list(infos, capacity, count) bind(c) result(status)
      import :: c_device_info, c_int64_t, c_ptr
      type(c_device_info), intent(inout) :: infos(*)
      integer(c_int64_t), value :: capacity
      integer(c_int64_t), intent(out) :: count
      type(c_ptr) :: status
    end function
    function compute_device_open(selector, device) bind(c) result(status)
      import :: c_ptr
      type(c_ptr), value :: selector
      type(c_ptr), intent(out) :: device
      type(c_ptr) :: status
    end function
    subroutine compute_device_retain(device) bind(c)
      import :: c_ptr
      type(c_ptr), value :: device
    end subroutine
    subroutine compute_device_release(device) bind(c)
      import :: c_ptr
      type(c_ptr), value :: device
    end subroutine
    function compute_device_name(device) bind(c) result(text)
      import :: c_ptr
      type(c_ptr), value :: device
      type(c_ptr) :: text
    end function
    function compute_device_get_statistics(device, statistics) bind(c) result(status)
      import :: c_device_statistics, c_ptr
      type(c_ptr), value :: device
      type(c_device_statistics), intent(inout) :: statistics
      type(c_ptr) :: status
    end function
    function compute_device_synchronize(device) bind(c) result(status)
      import :: c_ptr
      type(c_ptr), value :: device
      type(c_ptr) :: status
    end function
    function compute_tensor_empty(device, dtype, rank, shape, tensor) bind(c) result(status)
      import :: c_int32_t, c_int64_t, c_ptr
      type(c_ptr), value :: device
      integer(c_int32_t), value :: dtype, rank
      integer(c_int64_t), intent(in) :: shape(*)
      type(c_ptr), intent(out) :: tensor
      type(c_ptr) :: status
    end function
    function compute_tensor_from_host(device, dtype, rank, shape, data, tensor) bind(c) result(status)
      import :: c_int32_t, c_int64_t, c_ptr
      type(c_ptr), value :: device, data
      integer(c_int32_t), value :: dtype, rank
      integer(c_int64_t), intent(in) :: shape(*)
      type(c_ptr), intent(out) :: tensor
      type(c_ptr) :: status
    end function
    function compute_tensor_scalar(dtype, value, weak, tensor) bind(c) result(status)
      import :: c_int32_t, c_ptr
      integer(c_int32_t), value :: dtype, weak
      type(c_ptr), value :: value
      type(c_ptr), intent(out) :: tensor
      type(c_ptr) :: status
    end function
    subroutine compute_tensor_retain(tensor) bind(c)
      import :: c_ptr
      type(c_ptr), value :: tensor
    end subroutine
    subroutine compute_tensor_release(tensor) bind(c)
      import :: c_ptr
      type(c_ptr), value :: tensor
    end subroutine
    function compute_tensor_dtype(tensor) bind(c) result(dtype)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: tensor
      integer(c_int32_t) :: dtype
    end function
    function compute_tensor_rank(tensor) bind(c) result(rank)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: tensor
      integer(c_int32_t) :: rank
    end function
    function compute_tensor_shape(tensor) bind(c) result(shape)
      import :: c_ptr
      type(c_ptr), value :: tensor
      type(c_ptr) :: shape
    end function
    function compute_tensor_permute(tensor, rank, axes, view) bind(c) result(status)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: tensor, axes
      integer(c_int32_t), value :: rank
      type(c_ptr), intent(out) :: view
      type(c_ptr) :: status
    end function
    function compute_tensor_read(tensor, dst, size_bytes) bind(c) result(status)
      import :: c_int64_t, c_ptr
      type(c_ptr), value :: tensor, dst
      integer(c_int64_t), value :: size_bytes
      type(c_ptr) :: status
    end function
    function compute_tensor_size_bytes(tensor) bind(c) result(size_bytes)
      import :: c_int64_t, c_ptr
      type(c_ptr), value :: tensor
      integer(c_int64_t) :: size_bytes
    end function
    function compute_tensor_to_device(tensor, device, moved) bind(c) result(status)
      import :: c_ptr
      type(c_ptr), value :: tensor, device
      type(c_ptr), intent(out) :: moved
      type(c_ptr) :: status
    end function
    function compute_op_find(name, version, op) bind(c) result(status)
      import :: c_char, c_int32_t, c_ptr
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int32_t), value :: version
      type(c_ptr), intent(out) :: op
      type(c_ptr) :: status
    end function
    function compute_op_run(op, stream, attributes, attribute_count, inputs, input_count, outputs, output_count) &
        bind(c) result(status)
      import :: c_attribute, c_int64_t, c_ptr
      type(c_ptr), value :: op, stream
      type(c_attribute), intent(in) :: attributes(*)
      integer(c_int64_t), value :: attribute_count, input_count, output_count
      type(c_ptr), intent(in) :: inputs(*)
      type(c_ptr), intent(inout) :: outputs(*)
      type(c_ptr) :: status
    end function
    function c_strlen(text) bind(c, name='strlen') result(length)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
      integer(c_size_t) :: length
    end function
  end interface

  ! ---- Calls of ops --------------------------------------------------------------------------------------------------

  type :: call_attribute
    character(kind=c_char, len=64) :: name
    integer(c_int32_t) :: kind
    integer(c_int64_t), allocatable :: integers(:)
    real(c_double) :: real
    real(c_double), allocatable :: reals(:)
    integer(c_int32_t) :: dtype
    character(kind=c_char), allocatable :: text(:)
    type(c_string) :: string
  end type call_attribute

  !> A call of one op, with its operands and attributes. An attribute that is absent has its default.
  type :: compute_call
    private
    type(c_ptr) :: op = c_null_ptr, status = c_null_ptr
    type(c_ptr) :: outputs(8) = c_null_ptr
    type(c_ptr), allocatable :: operands(:), results(:) ! all, and those that are released after the call
    integer :: attribute_count = 0
    type(call_attribute) :: attributes(12)
  contains
    procedure :: start => call_start
    procedure :: input => call_input
    procedure :: inputs => call_inputs
    procedure :: create => call_create
    procedure :: flag => call_flag
    procedure :: integer => call_integer
    procedure :: integers => call_integers
    procedure :: real => call_number
    procedure :: reals => call_reals
    procedure :: number => call_number
    procedure :: string => call_string
    procedure :: dtype => call_dtype
    procedure :: run => call_run
    procedure :: result => call_result
    procedure :: take => call_take
  end type compute_call

  ! ---- Results of functions ------------------------------------------------------------------------------------------

  ! The standard says that a result of a function is finalized after use. gfortran does so from version 13 on. Where the
  ! compiler does not, who uses a result releases it: the assignment takes its handle over, and an op releases its
  ! operand.
  type :: probe
    logical :: is_result = .false.
  contains
    final :: probe_finalize
  end type probe
  logical :: probed = .false., finalizes_results = .false.

contains

  subroutine probe_finalize(self)
    type(probe), intent(inout) :: self
    if (self%is_result) finalizes_results = .true.
  end subroutine probe_finalize

  function probe_result() result(made)
    type(probe) :: made
    made%is_result = .true.
  end function probe_result

  subroutine probe_use(made)
    type(probe), intent(in) :: made
    probed = made%is_result
  end subroutine probe_use

  ! Whether who uses `tensor` releases it.
  logical function is_ours(tensor)
    type(compute_tensor), intent(in) :: tensor
    if (.not. probed) call probe_use(probe_result())
    is_ours = tensor%is_result .and. .not. finalizes_results
  end function is_ours

  ! ---- Errors --------------------------------------------------------------------------------------------------------

  function text_of(text) result(copy)
    type(c_ptr), intent(in) :: text
    character(:), allocatable :: copy
    character(kind=c_char), pointer :: characters(:)
    integer :: i
    call c_f_pointer(text, characters, [c_strlen(text)])
    allocate (character(size(characters)) :: copy)
    do i = 1, size(characters)
      copy(i:i) = characters(i)
    end do
  end function text_of

  !> The name of a code, as INVALID_ARGUMENT.
  function compute_error_name(code) result(name)
    integer, intent(in) :: code
    character(:), allocatable :: name
    name = text_of(compute_error_code_name(int(code, c_int32_t)))
  end function compute_error_name

  ! Ends the program if there is an error and nobody asked for it.
  subroutine fail(code, message, error)
    integer, intent(in) :: code
    character(*), intent(in) :: message
    type(compute_error), intent(inout), optional :: error
    if (present(error)) then
      error%code = code
      error%message = message
    else
      write (error_unit, '(a)') message
      error stop 1
    end if
  end subroutine fail

  subroutine check(status, error)
    type(c_ptr), intent(in) :: status
    type(compute_error), intent(inout), optional :: error
    character(:), allocatable :: message
    integer :: code
    if (.not. c_associated(status)) return
    code = compute_error_get_code(status)
    message = text_of(compute_error_message(status))
    call compute_error_free(status)
    call fail(code, message, error)
  end subroutine check

  ! ---- Devices -------------------------------------------------------------------------------------------------------

  !> The names of all devices; opens none.
  function compute_devices() result(names)
    character(64), allocatable :: names(:)
    type(c_device_info) :: infos(256)
    integer(c_int64_t) :: count
    integer :: i
    call check(compute_device_list(infos, size(infos, kind=c_int64_t), count))
    allocate (names(min(int(count), size(infos))))
    do i = 1, size(names)
      names(i) = text_of(infos(i)%name)
    end do
  end function compute_devices

  !> Opens the device that `selector` names, as 'cuda0'. Without it, the setting COMPUTE_DEVICE or the best device.
  subroutine device_open(self, selector, error)
    class(compute_device), intent(inout) :: self
    character(*), intent(in), optional :: selector
    type(compute_error), intent(out), optional :: error
    character(kind=c_char), allocatable, target :: text(:)
    type(c_ptr) :: handle, status
    if (present(selector)) then
      text = c_text(selector)
      status = compute_device_open(c_loc(text), handle)
    else
      status = compute_device_open(c_null_ptr, handle)
    end if
    call check(status, error)
    if (.not. c_associated(handle)) return
    call compute_device_release(self%handle)
    self%handle = handle
  end subroutine device_open

  function c_text(text) result(characters)
    character(*), intent(in) :: text
    character(kind=c_char) :: characters(len(text) + 1)
    integer :: i
    do i = 1, len(text)
      characters(i) = text(i:i)
    end do
    characters(len(text) + 1) = c_null_char
  end function c_text

  subroutine device_assign(self, other)
    class(compute_device), intent(inout) :: self
    type(compute_device), intent(in) :: other
    call compute_device_retain(other%handle)
    call compute_device_release(self%handle)
    self%handle = other%handle
  end subroutine device_assign

  impure elemental subroutine device_finalize(self)
    type(compute_device), intent(inout) :: self
    call compute_device_release(self%handle)
    self%handle = c_null_ptr
  end subroutine device_finalize

  !> The canonical name, as cuda0.
  function device_name(self) result(name)
    class(compute_device), intent(in) :: self
    character(:), allocatable :: name
    name = text_of(compute_device_name(self%handle))
  end function device_name

  !> Waits for all work of the device.
  subroutine device_synchronize(self, error)
    class(compute_device), intent(in) :: self
    type(compute_error), intent(out), optional :: error
    call check(compute_device_synchronize(self%handle), error)
  end subroutine device_synchronize

  !> The memory in use, in bytes, and its number of blocks.
  subroutine device_statistics(self, memory_used, blocks_live, error)
    class(compute_device), intent(in) :: self
    integer(int64), intent(out) :: memory_used, blocks_live
    type(compute_error), intent(out), optional :: error
    type(c_device_statistics) :: statistics
    call check(compute_device_get_statistics(self%handle, statistics), error)
    memory_used = statistics%memory_used
    blocks_live = statistics%blocks_live
  end subroutine device_statistics

  ! ---- Tensors -------------------------------------------------------------------------------------------------------

  ! An array of Fortran is, in memory, a row-major tensor with the axes in reverse order. The tensor is a view of that
  ! with the axes put right, so nothing is transposed on the host.
  subroutine from_host(device, dtype, extents, data, tensor, error)
    type(compute_device), intent(in) :: device
    integer, intent(in) :: dtype, extents(:)
    type(c_ptr), intent(in) :: data
    type(compute_tensor), intent(inout) :: tensor
    type(compute_error), intent(out), optional :: error
    type(c_ptr) :: status, reversed
    integer :: rank
    rank = size(extents)
    tensor%is_result = .true.
    status = compute_tensor_from_host(device%handle, dtype, rank, int(extents(rank:1:-1), c_int64_t), data, reversed)
    if (.not. c_associated(status)) then
      status = compute_tensor_permute(reversed, rank, c_null_ptr, tensor%handle)
      call compute_tensor_release(reversed)
    end if
    call check(status, error)
  end subroutine from_host

  function tensor_int32(self, array, error) result(tensor)
    class(compute_device), intent(in) :: self
    integer(int32), intent(in), contiguous, target :: array(..)
    type(compute_error), intent(out), optional :: error
    type(compute_tensor) :: tensor
    call from_host(self, compute_int32, shape(array), c_loc(array), tensor, error)
  end function tensor_int32

  function tensor_int64(self, array, error) result(tensor)
    class(compute_device), intent(in) :: self
    integer(int64), intent(in), contiguous, target :: array(..)
    type(compute_error), intent(out), optional :: error
    type(compute_tensor) :: tensor
    call from_host(self, compute_int64, shape(array), c_loc(array), tensor, error)
  end function tensor_int64

  function tensor_real32(self, array, error) result(tensor)
    class(compute_device), intent(in) :: self
    real(real32), intent(in), contiguous, target :: array(..)
    type(compute_error), intent(out), optional :: error
    type(compute_tensor) :: tensor
    call from_host(self, compute_float32, shape(array), c_loc(array), tensor, error)
  end function tensor_real32

  function tensor_real64(self, array, error) result(tensor)
    class(compute_device), intent(in) :: self
    real(real64), intent(in), contiguous, target :: array(..)
    type(compute_error), intent(out), optional :: error
    type(compute_tensor) :: tensor
    call from_host(self, compute_float64, shape(array), c_loc(array), tensor, error)
  end function tensor_real64

  ! Reads the elements in the order of Fortran: that of the view with the axes in reverse order.
  subroutine to_host(self, dtype, extents, data, error)
    class(compute_tensor), intent(in) :: self
    integer, intent(in) :: dtype, extents(:)
    type(c_ptr), intent(in) :: data
    type(compute_error), intent(out), optional :: error
    type(c_ptr) :: status, reversed
    integer, allocatable :: own(:)
    if (self%dtype() /= dtype) then
      call fail(compute_invalid_argument, 'read: the tensor is '//text_of(compute_dtype_name(self%dtype()))// &
          ', the array '//text_of(compute_dtype_name(dtype)), error)
      return
    end if
    own = self%shape()
    if (size(own) /= size(extents)) then
      call fail(compute_invalid_argument, 'read: the array has another rank than the tensor', error)
      return
    else if (any(own /= extents)) then
      call fail(compute_invalid_argument, 'read: the array has another shape than the tensor', error)
      return
    end if
    status = compute_tensor_permute(self%handle, size(own), c_null_ptr, reversed)
    if (.not. c_associated(status)) then
      status = compute_tensor_read(reversed, data, compute_tensor_size_bytes(reversed))
      call compute_tensor_release(reversed)
    end if
    call check(status, error)
  end subroutine to_host

  subroutine read_int32(self, array, error)
    class(compute_tensor), intent(in) :: self
    integer(int32), intent(inout), contiguous, target :: array(..)
    type(compute_error), intent(out), optional :: error
    call to_host(self, compute_int32, shape(array), c_loc(array), error)
  end subroutine read_int32

  subroutine read_int64(self, array, error)
    class(compute_tensor), intent(in) :: self
    integer(int64), intent(inout), contiguous, target :: array(..)
    type(compute_error), intent(out), optional :: error
    call to_host(self, compute_int64, shape(array), c_loc(array), error)
  end subroutine read_int64

  subroutine read_real32(self, array, error)
    class(compute_tensor), intent(in) :: self
    real(real32), intent(inout), contiguous, target :: array(..)
    type(compute_error), intent(out), optional :: error
    call to_host(self, compute_float32, shape(array), c_loc(array), error)
  end subroutine read_real32

  subroutine read_real64(self, array, error)
    class(compute_tensor), intent(in) :: self
    real(real64), intent(inout), contiguous, target :: array(..)
    type(compute_error), intent(out), optional :: error
    call to_host(self, compute_float64, shape(array), c_loc(array), error)
  end subroutine read_real64

  !> A scalar that takes the dtype of the other operands of an op. `value` is an integer or a real number.
  function compute_scalar(value, error) result(tensor)
    class(*), intent(in) :: value
    type(compute_error), intent(out), optional :: error
    type(compute_tensor) :: tensor
    type(call_attribute), target :: number
    call read_number(value, number)
    tensor%is_result = .true.
    if (number%kind == kind_int64) then
      call check(compute_tensor_scalar(compute_int64, c_loc(number%integers), 1, tensor%handle), error)
    else
      call check(compute_tensor_scalar(compute_float64, c_loc(number%real), 1, tensor%handle), error)
    end if
  end function compute_scalar

  subroutine tensor_assign(self, other)
    class(compute_tensor), intent(inout) :: self
    type(compute_tensor), intent(in) :: other
    type(c_ptr) :: handle
    handle = other%handle
    if (.not. is_ours(other)) call compute_tensor_retain(handle)
    call compute_tensor_release(self%handle)
    self%handle = handle
    self%is_result = .false.
  end subroutine tensor_assign

  impure elemental subroutine tensor_finalize(self)
    type(compute_tensor), intent(inout) :: self
    call compute_tensor_release(self%handle)
    self%handle = c_null_ptr
  end subroutine tensor_finalize

  !> For functions that return a tensor which they assigned to their result: who uses the result may release it.
  subroutine tensor_mark_result(self)
    class(compute_tensor), intent(inout) :: self
    self%is_result = .true.
  end subroutine tensor_mark_result

  integer function tensor_dtype(self)
    class(compute_tensor), intent(in) :: self
    tensor_dtype = compute_tensor_dtype(self%handle)
  end function tensor_dtype

  !> The shape, outermost axis first: that of the array from which the tensor was made.
  function tensor_shape(self) result(extents)
    class(compute_tensor), intent(in) :: self
    integer, allocatable :: extents(:)
    integer(c_int64_t), pointer :: own(:)
    allocate (extents(compute_tensor_rank(self%handle)))
    if (size(extents) == 0) return
    call c_f_pointer(compute_tensor_shape(self%handle), own, [size(extents)])
    extents = int(own)
  end function tensor_shape

  !> A copy on `device`, or the same tensor if it is there already.
  function tensor_to_device(self, device, error) result(moved)
    class(compute_tensor), intent(in) :: self
    type(compute_device), intent(in) :: device
    type(compute_error), intent(out), optional :: error
    type(compute_tensor) :: moved
    moved%is_result = .true.
    call check(compute_tensor_to_device(self%handle, device%handle, moved%handle), error)
  end function tensor_to_device

  ! ---- Calls of ops --------------------------------------------------------------------------------------------------

  subroutine call_start(self, name, version)
    class(compute_call), intent(inout) :: self
    character(*), intent(in) :: name
    integer, intent(in) :: version
    self%status = compute_op_find(c_text(name), version, self%op)
    allocate (self%operands(0), self%results(0))
  end subroutine call_start

  subroutine call_input(self, tensor)
    class(compute_call), intent(inout) :: self
    type(compute_tensor), intent(in), optional :: tensor
    if (.not. present(tensor)) then
      self%operands = [self%operands, c_null_ptr]
      return
    end if
    self%operands = [self%operands, tensor%handle]
    if (is_ours(tensor)) self%results = [self%results, tensor%handle]
  end subroutine call_input

  subroutine call_inputs(self, tensors)
    class(compute_call), intent(inout) :: self
    type(compute_tensor), intent(in) :: tensors(:)
    integer :: i
    do i = 1, size(tensors)
      call self%input(tensors(i))
    end do
  end subroutine call_inputs

  !> Makes the tensor that the op writes its result into.
  subroutine call_create(self, device, dtype, extents)
    class(compute_call), intent(inout) :: self
    type(compute_device), intent(in) :: device
    integer, intent(in) :: dtype, extents(:)
    if (c_associated(self%status)) return
    self%status = compute_tensor_empty(device%handle, dtype, size(extents), int(extents, c_int64_t), self%outputs(1))
  end subroutine call_create

  ! Begins the attribute attributes(attribute_count).
  subroutine add_attribute(self, name, kind)
    class(compute_call), intent(inout) :: self
    character(*), intent(in) :: name
    integer(c_int32_t), intent(in) :: kind
    self%attribute_count = self%attribute_count + 1
    self%attributes(self%attribute_count)%name = name//c_null_char
    self%attributes(self%attribute_count)%kind = kind
  end subroutine add_attribute

  subroutine call_flag(self, name, value)
    class(compute_call), intent(inout) :: self
    character(*), intent(in) :: name
    logical, intent(in), optional :: value
    if (present(value)) call call_integer(self, name, merge(1, 0, value))
  end subroutine call_flag

  subroutine call_integer(self, name, value)
    class(compute_call), intent(inout) :: self
    character(*), intent(in) :: name
    integer, intent(in), optional :: value
    if (present(value)) call call_integers(self, name, [value])
  end subroutine call_integer

  subroutine call_integers(self, name, values)
    class(compute_call), intent(inout) :: self
    character(*), intent(in) :: name
    integer, intent(in), optional :: values(:)
    if (.not. present(values)) return
    call add_attribute(self, name, kind_int64)
    self%attributes(self%attribute_count)%integers = int(values, c_int64_t)
  end subroutine call_integers

  subroutine call_reals(self, name, values)
    class(compute_call), intent(inout) :: self
    character(*), intent(in) :: name
    real(real64), intent(in), optional :: values(:)
    if (.not. present(values)) return
    call add_attribute(self, name, kind_float64)
    self%attributes(self%attribute_count)%reals = real(values, c_double)
  end subroutine call_reals

  subroutine read_number(value, number)
    class(*), intent(in) :: value
    type(call_attribute), intent(inout) :: number
    number%kind = kind_float64
    select type (value)
    type is (integer(int32))
      number%kind = kind_int64
      number%integers = [int(value, c_int64_t)]
    type is (integer(int64))
      number%kind = kind_int64
      number%integers = [int(value, c_int64_t)]
    type is (real(real32))
      number%real = value
    type is (real(real64))
      number%real = value
    class default
      error stop 'compute: not an integer or real number'
    end select
  end subroutine read_number

  subroutine call_number(self, name, value)
    class(compute_call), intent(inout) :: self
    character(*), intent(in) :: name
    class(*), intent(in), optional :: value
    if (.not. present(value)) return
    call add_attribute(self, name, kind_float64)
    call read_number(value, self%attributes(self%attribute_count))
  end subroutine call_number

  subroutine call_string(self, name, value)
    class(compute_call), intent(inout) :: self
    character(*), intent(in) :: name
    character(*), intent(in), optional :: value
    if (.not. present(value)) return
    call add_attribute(self, name, kind_string)
    self%attributes(self%attribute_count)%text = c_text(value)
  end subroutine call_string

  subroutine call_dtype(self, name, value)
    class(compute_call), intent(inout) :: self
    character(*), intent(in) :: name
    integer, intent(in), optional :: value
    if (.not. present(value)) return
    call add_attribute(self, name, kind_dtype)
    self%attributes(self%attribute_count)%dtype = value
  end subroutine call_dtype

  !> Runs the op, which has `count` outputs.
  subroutine call_run(self, count, error)
    class(compute_call), intent(inout), target :: self
    integer, intent(in) :: count
    type(compute_error), intent(out), optional :: error
    type(c_attribute) :: attributes(size(self%attributes))
    integer :: i
    do i = 1, self%attribute_count
      associate (a => self%attributes(i))
        attributes(i)%name = c_loc(a%name)
        attributes(i)%kind = a%kind
        select case (a%kind)
        case (kind_int64)
          attributes(i)%count = size(a%integers)
          if (size(a%integers) > 0) attributes(i)%values = c_loc(a%integers)
        case (kind_float64)
          if (allocated(a%reals)) then
            attributes(i)%count = size(a%reals)
            if (size(a%reals) > 0) attributes(i)%values = c_loc(a%reals)
          else
            attributes(i)%values = c_loc(a%real)
          end if
        case (kind_string)
          a%string%data = c_loc(a%text)
          a%string%size = size(a%text) - 1
          attributes(i)%values = c_loc(a%string)
        case (kind_dtype)
          attributes(i)%values = c_loc(a%dtype)
        end select
      end associate
    end do
    if (.not. c_associated(self%status)) self%status = compute_op_run(self%op, c_null_ptr, attributes, &
        int(self%attribute_count, c_int64_t), self%operands, size(self%operands, kind=c_int64_t), self%outputs, &
        int(count, c_int64_t))
    do i = 1, size(self%results)
      call compute_tensor_release(self%results(i))
    end do
    if (c_associated(self%status)) then
      do i = 1, count ! the one that was made for the op
        call compute_tensor_release(self%outputs(i))
      end do
      self%outputs = c_null_ptr
    end if
    call check(self%status, error)
  end subroutine call_run

  !> Gives the only output to the result of a function.
  subroutine call_result(self, tensor)
    class(compute_call), intent(inout) :: self
    type(compute_tensor), intent(inout) :: tensor
    tensor%handle = self%outputs(1)
    tensor%is_result = .true.
  end subroutine call_result

  !> Gives output `i` to a variable.
  subroutine call_take(self, i, tensor)
    class(compute_call), intent(in) :: self
    integer, intent(in) :: i
    type(compute_tensor), intent(inout) :: tensor
    call compute_tensor_release(tensor%handle)
    tensor%handle = self%outputs(i)
    tensor%is_result = .false.
  end subroutine call_take

end module compute_base
