! SPDX-License-Identifier: Apache-2.0
program package
  use compute
  use iso_fortran_env, only: error_unit, int32, int64, real32, real64
  implicit none
  type(compute_device) :: device
  integer(int64) :: used(3), blocks(3)
  integer :: pass

  call device%open('cpu')
  call expect(device%name() == 'cpu', 'the name')
  do pass = 1, 3
    call device%statistics(used(pass), blocks(pass))
    call values(device)
    call attributes(device)
    call errors(device)
    call another_device(device)
  end do
  call expect(all(used == used(1)) .and. all(blocks == blocks(1)), 'memory is released')

contains

  subroutine expect(ok, what)
    logical, intent(in) :: ok
    character(*), intent(in) :: what
    if (ok) return
    write (error_unit, '(2a)') 'not as expected: ', what
    error stop 1
  end subroutine expect

  subroutine values(device)
    type(compute_device), intent(in) :: device
    type(compute_tensor) :: x, y, same
    real(real32) :: a(2, 3), b(2, 3), row(3), scalar
    real(real64) :: c(2, 3, 4), d(2, 3, 4), sums(2, 4)
    integer(int32) :: whole(3)
    integer :: i
    a = reshape([1., 2., 3., 4., 5., 6.], [2, 3])
    x = device%tensor(a)
    call expect(all(x%shape() == [2, 3]) .and. x%dtype() == compute_float32, 'shape and dtype')
    y = 2. * x + 1 - x / x
    call y%read(b)
    call expect(all(b == 2 * a), 'operators')
    y = -x
    call y%read(b)
    call expect(all(b == -a), 'negative')
    y = sum(x, axes=[0]) ! the axis of the rows
    call y%read(row)
    call expect(all(row == sum(a, 1)), 'sum over rows')
    y = sum(x)
    call y%read(scalar)
    call expect(scalar == 21, 'sum')
    same = x
    x = device%tensor(a(2:1:-1, :)) ! not contiguous
    call same%read(b)
    call expect(all(b == a), 'assignment makes a second handle')
    call x%read(b(2:1:-1, :))
    call expect(all(b == a), 'arrays that are not contiguous')
    c = reshape([(real(i, real64), i=1, 24)], [2, 3, 4])
    y = device%tensor(c)
    call y%read(d)
    call expect(all(d == c), 'three axes')
    y = sum(y, axes=[1])
    call y%read(sums)
    call expect(all(sums == sum(c, 2)), 'sum over the middle axis')
    y = matmul(device%tensor(a), transposed(device, a))
    call expect(all(y%shape() == [2, 2]), 'results that are passed on')
    y = device%tensor([1_int32, 2_int32, 3_int32])
    call y%read(whole)
    call expect(all(whole == [1, 2, 3]), 'integers')
  end subroutine values

  function transposed(device, array) result(y)
    type(compute_device), intent(in) :: device
    real(real32), intent(in) :: array(:, :)
    type(compute_tensor) :: y
    y = device%tensor(transpose(array))
    call y%mark_result()
  end function transposed

  subroutine attributes(device)
    type(compute_device), intent(in) :: device
    type(compute_tensor) :: x, y, positions, parts(2)
    real(real32) :: row(6), two(2)
    integer(int64) :: indices(2)
    x = arange(device, 6, compute_float32, start=1, step=0.5)
    call x%read(row)
    call expect(all(row == [1., 1.5, 2., 2.5, 3., 3.5]), 'arange')
    call top_k(x, 2, y, positions, largest=.false.)
    call y%read(two)
    call positions%read(indices)
    call expect(all(two == [1., 1.5]) .and. all(indices == [0, 1]), 'top_k')
    parts(1) = x
    parts(2) = y
    y = concat(parts)
    call expect(all(y%shape() == [8]), 'concat')
    y = einsum([device%tensor(reshape(row, [2, 3]))], 'ij->ji')
    call expect(all(y%shape() == [3, 2]), 'einsum')
    y = layer_norm_of(x)
    y = where(greater(x, compute_scalar(2)), x, compute_scalar(0))
    call y%read(row)
    call expect(all(row == [0., 0., 0., 2.5, 3., 3.5]), 'where')
    call expect(tanh(0.) == 0 .and. maxval([1, 2]) == 2 .and. max(1, 2) == 2, 'intrinsics')
  end subroutine attributes

  function layer_norm_of(x) result(y)
    type(compute_tensor), intent(in) :: x
    type(compute_tensor) :: y, means, rstd
    call layer_norm(x, y, means, rstd, epsilon=1e-3)
    call y%mark_result()
  end function layer_norm_of

  subroutine errors(device)
    type(compute_device), intent(in) :: device
    type(compute_device) :: other
    type(compute_tensor) :: x, y, z
    type(compute_error) :: error
    real(real64) :: wrong(2)
    real(real32) :: short(1)
    x = device%tensor([1., 2.])
    y = device%tensor([1., 2., 3.], error)
    call expect(error%code == 0, 'no error')
    z = add(x, y, error)
    call expect(error%code == compute_invalid_argument, 'the code')
    call expect(error%message == 'add: shapes [2] and [3] do not broadcast', 'the message')
    call expect(compute_error_name(error%code) == 'INVALID_ARGUMENT', 'the name of the code')
    call other%open('cpu7', error)
    call expect(error%code == compute_not_found, 'no such device')
    call x%read(wrong, error)
    call expect(error%message == 'read: the tensor is float32, the array float64', 'another dtype')
    call x%read(short, error)
    call expect(error%message == 'read: the array has another shape than the tensor', 'another shape')
    z = arange(device, -1, compute_float32, error=error)
    call expect(error%code == compute_invalid_argument, 'a negative size')
  end subroutine errors

  subroutine another_device(cpu)
    type(compute_device), intent(in) :: cpu
    type(compute_device) :: other
    type(compute_tensor) :: x, y
    type(compute_error) :: error
    character(64), allocatable :: names(:)
    real(real32) :: product(2, 2)
    integer :: i
    names = compute_devices()
    call expect(names(1) == 'cpu', 'the first device')
    do i = 2, size(names)
      call other%open(trim(names(i)), error)
      if (error%code /= 0) cycle
      x = cpu%tensor(reshape([1., 3., 2., 4.], [2, 2]))
      y = x%to_device(other)
      y = matmul(y, y)
      call y%read(product)
      call expect(all(product == reshape([7., 15., 10., 22.], [2, 2])), 'another device')
      return
    end do
  end subroutine another_device

end program package
