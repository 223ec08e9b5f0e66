package io.cuvette.instrument;

/** The kinds of mistakes that {@link SanitizerDriver} finds. */
public enum Misuse {
  /** Memory is used after it was freed. */
  USE_AFTER_FREE,
  /** Memory is freed, or a handle destroyed, a second time. */
  DOUBLE_FREE,
  /** An address is freed that is not the start of a block, or with the wrong function. */
  INVALID_FREE,
  /** A block is used beyond its end. */
  OUT_OF_BOUNDS,
  /** An address is used that is in no block this driver allocated. */
  UNKNOWN_ADDRESS,
  /** Memory is freed while work that uses it may still be running. */
  FREE_WHILE_IN_USE,
  /**
   * Two streams use the same bytes, one of them writes, and nothing orders the two; an allocation
   * in stream order counts as a write, and so does one of a pool where memory is used again. A
   * launch may read or write what its arguments point to; two launches are compared by the bytes
   * that they touched, where the driver knows them, which is on the simulated device.
   */
  RACE,
  /**
   * The host changes page-locked memory after work that reads it was queued and before the program
   * knows that the work is done; or a copy of the library, on the host, reads what such work
   * writes. Kernels use the bytes that they touched, where the driver knows them, as for {@link
   * #RACE}.
   */
  HOST_RACE,
  /**
   * Bytes of device memory are copied to the host, some of which were not written by work queued
   * before; or bytes of page-locked memory none of which was ever written.
   */
  UNINITIALIZED_READ,
  /** Mapped memory is used by a device that has no access to it. */
  NO_ACCESS,
  /** A copy reads bytes that it writes. */
  OVERLAPPING_COPY,
  /** A pool lends memory that it has lent already. */
  LENT_TWICE,
  /** A stream, event, graph or pool is used after it was destroyed. */
  DESTROYED_HANDLE,
  /** A stream, event, graph or pool is used that this driver did not make. */
  UNKNOWN_HANDLE,
  /** Memory or a handle is left when the driver is closed. */
  LEAK
}
