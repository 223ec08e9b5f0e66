package io.cuvette;

import io.cuvette.internal.base.Checks;

/** Which pool of the driver an {@link AsyncMemoryPool} uses on a device. Immutable. */
public sealed interface AsyncPoolChoice {

  /** The pool the device was born with. */
  static AsyncPoolChoice ofDefault() {
    return Borrowed.DEFAULT;
  }

  /**
   * The pool that is current for the device when the {@link AsyncMemoryPool} is made. If somebody
   * made it, they keep it alive as long as memory from it is in use here. One that is no longer
   * current at the end, and was made by nobody here, is not asked any more and keeps its release
   * threshold.
   */
  static AsyncPoolChoice ofCurrent() {
    return Borrowed.CURRENT;
  }

  /**
   * A pool made elsewhere (CUmemoryPool). Its owner keeps it alive until the {@link
   * AsyncMemoryPool} is closed and no memory from it is in use here; that of a resource of the same
   * {@link Cuda} is not destroyed before.
   */
  static AsyncPoolChoice ofHandle(long handle) {
    return new Handle(handle);
  }

  /**
   * A pool of its own, which keeps what it once held until it is told to free it.
   *
   * @param maxBytes the size it may reach, 0 for the driver's default
   */
  static AsyncPoolChoice ofNew(long maxBytes) {
    return new New(maxBytes);
  }

  /** A pool the device has. */
  enum Borrowed implements AsyncPoolChoice {
    /** The one it was born with (cuDeviceGetDefaultMemPool). */
    DEFAULT,
    /** The current one (cuDeviceGetMemPool). */
    CURRENT
  }

  /**
   * A foreign pool.
   *
   * @param handle CUmemoryPool, an address and so above 0
   */
  record Handle(long handle) implements AsyncPoolChoice {
    public Handle {
      if (handle <= 0) {
        throw new IllegalArgumentException(
            "handle: %d (expected: a CUmemoryPool, > 0)".formatted(handle));
      }
    }
  }

  /**
   * A new pool.
   *
   * @param maxBytes at least 0; 0 for the driver's default
   */
  record New(long maxBytes) implements AsyncPoolChoice {
    public New {
      Checks.notNegative("maxBytes", maxBytes);
    }
  }
}
