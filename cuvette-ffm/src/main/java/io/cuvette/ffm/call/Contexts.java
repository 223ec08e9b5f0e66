package io.cuvette.ffm.call;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemLocationType;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.stream.IntStream;

/**
 * The devices of the driver, by their place in its list, and their primary contexts: each is
 * retained when first needed and released once at the end. Thread-safe, without locks.
 */
public final class Contexts {
  private static final long NONE = 0;
  private static final long RELEASED = -1;

  private final int[] devices;
  private final AtomicLongArray retained;

  /** The devices the driver has now, without a context for any. */
  static Contexts ofAllDevices() {
    return new Contexts(IntStream.range(0, count()).map(Contexts::device).toArray());
  }

  private Contexts(int[] devices) {
    this.devices = devices;
    this.retained = new AtomicLongArray(devices.length);
  }

  /** How many devices the driver has; may be 0. */
  static int count() {
    return (int) CallFunctions.DEVICE_COUNT.call(CallFrame.take());
  }

  private static int device(int ordinal) {
    return (int) CallFunctions.DEVICE.call(ordinal, CallFrame.take());
  }

  /** The number of devices. */
  public int size() {
    return devices.length;
  }

  /** The CUdevice at a place in the list. */
  public int handle(int ordinal) {
    if (ordinal < 0 || ordinal >= devices.length) {
      throw Call.of("cuDeviceGet(ordinal=%d)", ordinal).failed(CudaStatus.INVALID_DEVICE.code());
    }
    return devices[ordinal];
  }

  /** The id of a CUmemLocation, where a device is given by its place in the list. */
  public int location(int type, int id) {
    return type == MemLocationType.DEVICE ? handle(id) : id;
  }

  /** The place of a CUdevice in the list. */
  public int ordinal(int handle) {
    for (int ordinal = 0; ordinal < devices.length; ordinal++) {
      if (devices[ordinal] == handle) {
        return ordinal;
      }
    }
    throw Call.of("cuDeviceGet(device=%d)", handle).failed(CudaStatus.INVALID_DEVICE.code());
  }

  /** The primary context of a device. */
  long of(int ordinal) {
    int device = handle(ordinal);
    long context = retained.get(ordinal);
    return context == NONE || context == RELEASED ? retain(ordinal, device) : context;
  }

  /** A device whose primary context is retained already, else the first one. */
  int any() {
    for (int ordinal = 0; ordinal < devices.length; ordinal++) {
      long context = retained.get(ordinal);
      if (context != NONE && context != RELEASED) {
        return ordinal;
      }
    }
    return 0;
  }

  private long retain(int ordinal, int device) {
    long context = CallFunctions.CONTEXT_RETAIN.call(device, ordinal, CallFrame.takeRelaxed());
    if (!retained.compareAndSet(ordinal, NONE, context)) {
      release(ordinal); // another thread was first: one retain is enough
      if (retained.get(ordinal) == RELEASED) {
        throw closed();
      }
    }
    return context;
  }

  /** Releases every context that was retained, even if one of them fails. */
  public void releaseAll() {
    CudaException failure = null;
    for (int ordinal = devices.length - 1; ordinal >= 0; ordinal--) {
      try {
        long context = retained.getAndSet(ordinal, RELEASED);
        if (context != NONE && context != RELEASED) {
          release(ordinal);
        }
      } catch (CudaException e) {
        if (failure == null) {
          failure = e;
        } else {
          failure.addSuppressed(e);
        }
      }
    }
    if (failure != null) {
      throw failure;
    }
  }

  private void release(int ordinal) {
    CallFunctions.CONTEXT_RELEASE.call(devices[ordinal], ordinal, CallFrame.takeRelaxed());
  }

  /** What calls get once the driver is closed. */
  static IllegalStateException closed() {
    return new IllegalStateException("driver ffm is closed");
  }
}
