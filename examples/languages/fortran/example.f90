! SPDX-License-Identifier: Apache-2.0
program example
  use compute
  implicit none
  type(compute_device) :: device
  type(compute_tensor) :: a, b, product, y
  type(compute_error) :: error

  call device%open() ! COMPUTE_DEVICE, or the best device
  print '(2a)', 'device: ', device%name()
  ! The second array is written column by column.
  a = device%tensor(transpose(reshape([1., 2., 3., 4., 5., 6.], [3, 2])))
  b = device%tensor(reshape([1., 3., 5., 2., 4., 6.], [3, 2]))
  product = matmul(a, b)
  y = tanh(product * 0.01)
  call show('product', '(a, *(1x, i0))', product)
  call show('tanh', '(a, *(1x, f6.4))', y)
  y = matmul(a, a, error)
  if (error%code /= 0) print '(4a)', 'error: ', compute_error_name(error%code), ': ', error%message

contains

  ! Prints a matrix row by row.
  subroutine show(label, format, tensor)
    character(*), intent(in) :: label, format
    type(compute_tensor), intent(in) :: tensor
    real :: values(2, 2)
    call tensor%read(values) ! waits and copies
    if (index(format, 'i') > 0) then
      print format, label//':', nint(transpose(values))
    else
      print format, label//':', transpose(values)
    end if
  end subroutine show

end program example
