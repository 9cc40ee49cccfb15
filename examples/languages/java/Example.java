// SPDX-License-Identifier: Apache-2.0
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.FloatByReference;
import com.sun.jna.ptr.PointerByReference;
import java.util.Locale;

public class Example {
  static final int FLOAT32 = 12; // COMPUTE_DTYPE_FLOAT32

  // Functions of compute.h. A pointer to a struct or a handle is a Pointer, an out-parameter a PointerByReference.
  static native Pointer compute_device_open(String selector, PointerByReference device);
  static native String compute_device_name(Pointer device);
  static native void compute_device_release(Pointer device);
  static native Pointer compute_tensor_from_host(
      Pointer device, int dtype, int rank, long[] shape, float[] data, PointerByReference tensor);
  static native Pointer compute_tensor_scalar(int dtype, FloatByReference value, int weak, PointerByReference tensor);
  static native Pointer compute_tensor_read(Pointer tensor, float[] values, long sizeBytes);
  static native void compute_tensor_release(Pointer tensor);
  static native Pointer compute_matmul(
      Pointer stream, Pointer a, Pointer b, Pointer options, PointerByReference result);
  static native Pointer compute_multiply(Pointer stream, Pointer x, Pointer y, PointerByReference result);
  static native Pointer compute_tanh(Pointer stream, Pointer x, PointerByReference y);
  static native int compute_error_get_code(Pointer error);
  static native String compute_error_code_name(int code);
  static native String compute_error_message(Pointer error);
  static native void compute_error_free(Pointer error);

  static {
    Native.register("compute"); // libcompute.so, through LD_LIBRARY_PATH or -Djna.library.path
  }

  static void check(Pointer error) {
    if (error == null) return;
    String message = compute_error_code_name(compute_error_get_code(error)) + ": " + compute_error_message(error);
    compute_error_free(error);
    throw new IllegalStateException(message);
  }

  // A handle that a try block releases.
  record Tensor(Pointer handle) implements AutoCloseable {
    interface Call {
      Pointer run(PointerByReference out);
    }

    static Tensor of(Call call) {
      PointerByReference out = new PointerByReference();
      check(call.run(out));
      return new Tensor(out.getValue());
    }

    void print(String label, String format) {
      float[] values = new float[4];
      check(compute_tensor_read(handle, values, 4L * values.length)); // waits and copies
      System.out.print(label + ":");
      for (float value : values) System.out.print(String.format(Locale.ROOT, format, value));
      System.out.println();
    }

    @Override
    public void close() {
      compute_tensor_release(handle);
    }
  }

  public static void main(String[] arguments) {
    PointerByReference out = new PointerByReference();
    check(compute_device_open(null, out)); // COMPUTE_DEVICE, or the best device
    Pointer device = out.getValue();
    System.out.println("device: " + compute_device_name(device));
    float[] values = {1, 2, 3, 4, 5, 6};
    FloatByReference hundredth = new FloatByReference(0.01f);
    try (Tensor a = Tensor.of(o -> compute_tensor_from_host(device, FLOAT32, 2, new long[] {2, 3}, values, o));
        Tensor b = Tensor.of(o -> compute_tensor_from_host(device, FLOAT32, 2, new long[] {3, 2}, values, o));
        Tensor factor = Tensor.of(o -> compute_tensor_scalar(FLOAT32, hundredth, 1, o));
        Tensor product = Tensor.of(o -> compute_matmul(null, a.handle, b.handle, null, o));
        Tensor scaled = Tensor.of(o -> compute_multiply(null, product.handle, factor.handle, o));
        Tensor y = Tensor.of(o -> compute_tanh(null, scaled.handle, o))) {
      product.print("product", " %.0f");
      y.print("tanh", " %.4f");
      Tensor.of(o -> compute_matmul(null, a.handle, a.handle, null, o));
    } catch (IllegalStateException error) {
      System.out.println("error: " + error.getMessage());
    }
    compute_device_release(device);
  }
}
