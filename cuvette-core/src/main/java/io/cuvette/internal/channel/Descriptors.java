package io.cuvette.internal.channel;

import io.cuvette.driver.DescriptorCalls;
import java.util.Optional;

/** Whether and how descriptors can be passed between the processes of this machine. Stateless. */
public final class Descriptors {
  private Descriptors() {}

  private static final class Found {
    static final Optional<DescriptorCalls> CALLS = DescriptorCalls.find();
  }

  /**
   * The calls of this machine.
   *
   * @param what needs them, for messages
   * @throws UnsupportedOperationException if there are none
   */
  public static DescriptorCalls require(String what) {
    String system = System.getProperty("os.name", "");
    if (!system.startsWith("Linux")) {
      throw new UnsupportedOperationException(
          "%s: memory can be shared between processes on Linux only (this is %s)"
              .formatted(what, system));
    }
    return Found.CALLS.orElseThrow(() ->
        new UnsupportedOperationException(
            what + " needs the module io.cuvette.ffm (artifact cuvette-ffm) on the path"));
  }

  /** Closes a descriptor that a driver gave; without the functions for that there is none. */
  public static void close(int descriptor) {
    Found.CALLS.ifPresent(calls -> Closing.close(calls, descriptor));
  }

  /** A number that can be a descriptor at all. */
  public static int checkNumber(int descriptor) {
    if (descriptor < 0) {
      throw new IllegalArgumentException("descriptor: %d (expected: >= 0)".formatted(descriptor));
    }
    return descriptor;
  }

  /** A descriptor that is open in this process. */
  public static int checkOpen(DescriptorCalls calls, int descriptor) {
    if (!calls.isOpen(checkNumber(descriptor))) {
      throw new IllegalArgumentException(
          "descriptor: %d is not open in this process".formatted(descriptor));
    }
    return descriptor;
  }
}
