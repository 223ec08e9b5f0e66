package io.cuvette.sim;

import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.regex.Pattern;

/**
 * A kernel of the simulated device: a Java function under the name and with the parameters of one
 * in CUDA C++. Immutable.
 *
 * @param name the name as it is in the code, mangled unless it has C linkage
 * @param parameters the types of the parameters, in order
 * @param sharedBytes the bytes of shared memory that the code declares with a size, 0 to 49,152;
 *     what a launch adds comes behind
 * @param function what each thread does
 * @param patience how long a call of the function may wait for another Java thread, 1 ms to 1 day;
 *     then its launch fails with LAUNCH_TIMEOUT
 */
public record SimulatedKernel(
    String name,
    List<SimulatedParameter> parameters,
    int sharedBytes,
    KernelFunction function,
    Duration patience) {
  private static final Duration DEFAULT_PATIENCE = Duration.ofSeconds(10);
  private static final Duration LEAST_PATIENCE = Duration.ofMillis(1);
  private static final Duration MOST_PATIENCE = Duration.ofDays(1);

  /** What compilers allow code to declare; more is for launches to add. */
  private static final int MOST_SHARED = 49_152;

  private static final Pattern NAME = Pattern.compile("[\\w$%]+");

  /**
   * A kernel.
   *
   * @throws IllegalArgumentException if the name is none of PTX, or {@code sharedBytes} or {@code
   *     patience} is out of its range
   */
  public SimulatedKernel {
    Objects.requireNonNull(name, "name");
    Objects.requireNonNull(parameters, "parameters");
    if (!NAME.matcher(name).matches()) {
      throw new IllegalArgumentException(
          "name: '%s' (expected: letters, digits, _, $ and %%)".formatted(name));
    }
    if (sharedBytes < 0 || sharedBytes > MOST_SHARED) {
      throw new IllegalArgumentException(
          "sharedBytes: %d (expected: 0 to %d)".formatted(sharedBytes, MOST_SHARED));
    }
    parameters = List.copyOf(parameters);
    Objects.requireNonNull(function, "function");
    Objects.requireNonNull(patience, "patience");
    if (patience.compareTo(LEAST_PATIENCE) < 0 || patience.compareTo(MOST_PATIENCE) > 0) {
      throw new IllegalArgumentException(
          "patience: %s (expected: %s to %s)".formatted(patience, LEAST_PATIENCE, MOST_PATIENCE));
    }
  }

  /**
   * {@return a kernel without shared memory of its own, whose function may wait for 10 s}
   *
   * @param name the name as it is in the code
   * @param function what each thread does
   * @param parameters the types of the parameters, in order
   */
  public static SimulatedKernel of(
      String name, KernelFunction function, SimulatedParameter... parameters) {
    Objects.requireNonNull(parameters, "parameters");
    return new SimulatedKernel(name, List.of(parameters), 0, function, DEFAULT_PATIENCE);
  }

  /**
   * {@return this kernel with another size of the shared memory that its code declares}
   *
   * @param bytes the bytes, 0 to 49,152
   * @throws IllegalArgumentException if it is out of its range
   */
  public SimulatedKernel withSharedBytes(int bytes) {
    return new SimulatedKernel(name, parameters, bytes, function, patience);
  }

  /**
   * {@return this kernel with another time for which a call of its function may wait}
   *
   * <p>A grid holds the lock of its driver. A function that waits for another Java thread, which
   * waits for the driver, would therefore wait for ever. Time in which it computes does not count,
   * nor does time that it waits at barriers.
   *
   * @param patience how long, 1 ms to 1 day
   * @throws IllegalArgumentException if it is out of its range
   */
  public SimulatedKernel withPatience(Duration patience) {
    return new SimulatedKernel(name, parameters, sharedBytes, function, patience);
  }
}
