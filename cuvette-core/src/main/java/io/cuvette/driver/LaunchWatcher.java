package io.cuvette.driver;

/**
 * Learns which bytes of memory a launch touched, from drivers that know it: the simulated one. See
 * {@link LaunchParameters#watchedBy}.
 */
@FunctionalInterface
public interface LaunchWatcher {

  /** What was done with bytes. */
  enum Touch {
    /** They were read. */
    READ,
    /** They were written. */
    WRITE,
    /** They were read and written in an atomic operation. */
    ATOMIC
  }

  /**
   * Notes an access, while the kernel runs, on whichever thread runs it and on one at a time. It is
   * called within the driver and must not call it. What waits for the launch comes after all calls.
   *
   * @param address where the bytes are, a multiple of their number
   * @param bytes 1, 4 or 8
   * @param touch what was done
   */
  void touched(long address, int bytes, Touch touch);

  /**
   * Called when the kernel has run; that of a node of a graph may run once more. Does nothing
   * unless overridden.
   */
  default void ran() {}
}
