package io.cuvette.ffm.call;

import io.cuvette.driver.CudaException;
import io.cuvette.ffm.library.Libcuda;
import io.cuvette.ffm.link.Layouts;
import java.lang.foreign.MemoryLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Collections;
import org.jspecify.annotations.Nullable;

/**
 * A function of the driver, bound once, and how messages show its calls; for functions that take
 * numbers alone. Immutable.
 *
 * <p>A call has the arguments of the function in their order, without {@link #OUT}. What follows
 * them is not passed but shown in messages, such as the device whose context is current. One place
 * calls all these functions: it is linked before the first device is known, and needs no heap. A
 * record, so that the compiler trusts its handle as it trusts a constant.
 *
 * @param format such as {@code cuMemAlloc(bytes=%d, device=%d)}; addresses and handles are {@code
 *     %#x}
 * @param handle takes the address of the results and six longs
 */
public record DriverFunction(String format, MethodHandle handle) {
  /** The parameter that is the address of the results. */
  public static final MemoryLayout OUT = Layouts.POINTER.withName("out");

  private static final MethodType TYPE =
      MethodType.methodType(int.class, Collections.nCopies(7, long.class));

  /** Binds a function that every driver should have; see {@link Libcuda#required}. */
  public static DriverFunction required(String format, int version, MemoryLayout... parameters) {
    return new DriverFunction(
        format, uniform(Libcuda.required(name(format), version, parameters), parameters));
  }

  /** Binds a function that a driver may lack; see {@link Libcuda#function}. */
  public static DriverFunction optional(String format, int version, MemoryLayout... parameters) {
    return new DriverFunction(
        format, uniform(Libcuda.function(name(format), version, parameters), parameters));
  }

  private static String name(String format) {
    return format.substring(0, format.indexOf('('));
  }

  private static MethodHandle uniform(MethodHandle function, MemoryLayout... parameters) {
    int[] places = new int[parameters.length];
    int next = 1;
    for (int i = 0; i < places.length; i++) {
      places[i] = parameters[i] == OUT ? 0 : next++;
    }
    MethodType longs = TYPE.dropParameterTypes(places.length, TYPE.parameterCount());
    return MethodHandles.permuteArguments(
        MethodHandles.explicitCastArguments(function, longs), TYPE, places);
  }

  /** See {@link #call(long, long, long, long, long, long, CallFrame)}. */
  public long call(CallFrame frame) {
    return call(0, 0, 0, 0, 0, 0, frame);
  }

  /** See {@link #call(long, long, long, long, long, long, CallFrame)}. */
  public long call(long first, CallFrame frame) {
    return call(first, 0, 0, 0, 0, 0, frame);
  }

  /** See {@link #call(long, long, long, long, long, long, CallFrame)}. */
  public long call(long first, long second, CallFrame frame) {
    return call(first, second, 0, 0, 0, 0, frame);
  }

  /** See {@link #call(long, long, long, long, long, long, CallFrame)}. */
  public long call(long first, long second, long third, CallFrame frame) {
    return call(first, second, third, 0, 0, 0, frame);
  }

  /** See {@link #call(long, long, long, long, long, long, CallFrame)}. */
  public long call(long first, long second, long third, long fourth, CallFrame frame) {
    return call(first, second, third, fourth, 0, 0, frame);
  }

  /**
   * Calls the function and ends the frame, which starts last: nothing may wait inside it ({@link
   * CallFrame#enter}).
   *
   * @return the first 8 bytes of results; a shorter value is in the low bytes
   * @throws CudaException if the driver refuses
   */
  public long call(
      long first, long second, long third, long fourth, long fifth, long sixth, CallFrame frame) {
    int status;
    do {
      try {
        status = (int) handle.invokeExact(frame.out, first, second, third, fourth, fifth, sixth);
      } catch (Throwable e) {
        throw frame.broken(e);
      }
    } while (frame.lacksContext(status));
    long result = frame.leave();
    if (status != Call.SUCCESS) {
      throw Call.of(format, first, second, third, fourth, fifth, sixth).failed(status);
    }
    return result;
  }

  /** Calls a function that frees a handle, if there is a frame to do it in. Needs no heap. */
  public void free(long handle, long second, @Nullable CallFrame frame) {
    if (frame != null) {
      call(handle, second, frame);
    }
  }
}
