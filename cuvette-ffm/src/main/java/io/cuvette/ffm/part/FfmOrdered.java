package io.cuvette.ffm.part;

import io.cuvette.driver.OrderedCalls;
import io.cuvette.ffm.call.Call;
import io.cuvette.ffm.call.CallFrame;
import io.cuvette.ffm.call.Entry;
import io.cuvette.ffm.library.Libcuda;
import java.lang.invoke.MethodHandle;

/** Calls that allocate and free memory of pools in stream order; written out. Thread-safe. */
public final class FfmOrdered extends Part implements OrderedCalls {
  public static final MethodHandle ALLOC =
      Libcuda.function("cuMemAllocAsync", 11020, POINTER, SIZE, POINTER);
  public static final MethodHandle ALLOC_FROM =
      Libcuda.function("cuMemAllocFromPoolAsync", 11020, POINTER, SIZE, POINTER, POINTER);
  public static final MethodHandle FREE =
      Libcuda.function("cuMemFreeAsync", 11020, POINTER, POINTER);

  /** The part of the driver whose calls start here. */
  public FfmOrdered(Entry entry) {
    super(entry);
  }

  @Override
  public long memAllocAsync(int device, long bytes, long stream) {
    CallFrame frame = enterFor(device, stream);
    int status;
    do {
      try {
        status = (int) ALLOC.invokeExact(frame.out, bytes, stream);
      } catch (Throwable e) {
        throw frame.broken(e);
      }
    } while (frame.lacksContext(status));
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Call.of("cuMemAllocAsync(bytes=%d, stream=%#x, device=%d)", bytes, stream, device)
          .failed(status);
    }
    return result;
  }

  @Override
  public long memAllocFromPoolAsync(int device, long bytes, long pool, long stream) {
    CallFrame frame = enterFor(device, stream);
    int status;
    do {
      try {
        status = (int) ALLOC_FROM.invokeExact(frame.out, bytes, pool, stream);
      } catch (Throwable e) {
        throw frame.broken(e);
      }
    } while (frame.lacksContext(status));
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Call.of(
              "cuMemAllocFromPoolAsync(bytes=%d, pool=%#x, stream=%#x, device=%d)",
              bytes, pool, stream, device)
          .failed(status);
    }
    return result;
  }

  @Override
  public void memFreeAsync(int device, long address, long stream) {
    CallFrame frame = entry.enterToFree(device, stream);
    if (frame == null) {
      return;
    }
    int status;
    do {
      try {
        status = (int) FREE.invokeExact(address, stream);
      } catch (Throwable e) {
        throw frame.broken(e);
      }
    } while (frame.lacksContext(status));
    frame.leave();
    if (status != SUCCESS) {
      throw Call.of("cuMemFreeAsync(address=%#x, stream=%#x, device=%d)", address, stream, device)
          .failed(status);
    }
  }
}
