package io.cuvette;

import io.cuvette.internal.base.Checks;

/** Which pool of the driver an {@link AsyncMemoryPool} uses on a device. Immutable. */
public sealed interface AsyncPoolChoice {

  /** {@return the choice of the default pool of the device} */
  static AsyncPoolChoice ofDefault() {
    return Borrowed.DEFAULT;
  }

  /**
   * {@return the choice of the pool that is current for the device when the {@link AsyncMemoryPool}
   * is created} A pool created elsewhere must stay alive as long as memory from it is in use here.
   * One that is no longer current at the end, and was not created here, is not queried any more and
   * keeps its release threshold.
   */
  static AsyncPoolChoice ofCurrent() {
    return Borrowed.CURRENT;
  }

  /**
   * {@return the choice of a pool created elsewhere (CUmemoryPool)} Its owner keeps it alive until
   * the {@link AsyncMemoryPool} is closed and no memory from it is in use here; that of a resource
   * of the same {@link Cuda} is not destroyed before.
   *
   * @param handle CUmemoryPool
   */
  static AsyncPoolChoice ofHandle(long handle) {
    return new Handle(handle);
  }

  /**
   * {@return the choice of a new pool, which keeps its memory until it is trimmed}
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
    /** Creates the choice. */
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
   * @param maxBytes the most bytes that the pool can grow to, >= 0; 0 for the driver's default
   */
  record New(long maxBytes) implements AsyncPoolChoice {
    /** Creates the choice. */
    public New {
      Checks.notNegative("maxBytes", maxBytes);
    }
  }
}
