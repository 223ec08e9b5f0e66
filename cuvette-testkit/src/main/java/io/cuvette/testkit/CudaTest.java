package io.cuvette.testkit;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.TestTemplate;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * A test that runs on the simulated device, and on a GPU when there is one; without one the GPU's
 * run is skipped and counted. {@code -Dcuvette.device=gpu} leaves only the GPU's runs, {@code sim}
 * only the simulator's.
 *
 * <p>The method can take a {@link Subject}, and with it the {@link io.cuvette.Cuda}, the {@link
 * io.cuvette.driver.CudaDriver} or the {@link io.cuvette.sim.SimulatedDriver} of the subject. Each
 * run has its own, opened with the leak level FULL. With a {@link ScriptedDriver} among the
 * parameters, that is below the Cuda.
 *
 * <p>What a test works with, but is not about, it takes as parameters as well: {@link
 * io.cuvette.CudaStream}, {@link io.cuvette.MemoryPool}, {@link io.cuvette.PinnedMemoryPool},
 * {@link io.cuvette.AsyncMemoryPool} of a new pool of the driver, {@link
 * io.cuvette.DeviceMemoryResource}. Each parameter is one of its own with default options, of
 * device 0 unless it is {@link OnDevice} another; a stream can be {@link NonBlocking}. They are
 * closed after the test, the last one first, and the caching pools of a test that passed are
 * checked for consistency before.
 *
 * <p>After the test, and before the Cuda is closed, everything must be back to zero: {@link
 * io.cuvette.Cuda#openObjects()} once the caches of the default pools are empty, and what the
 * driver has: memory, mappings, pools, streams, events, graphs, executable ones and user objects.
 * Whatever is left is named with the place where it was made. After the Cuda is closed, no thread
 * of the library and no file of a simulated device may be left; where tests run in parallel, that
 * is looked at in classes that are {@link org.junit.jupiter.api.parallel.Isolated} alone.
 *
 * <p>The message of a failure ends with the seed of the simulator, and how to run it again. What a
 * test throws that is no {@link AssertionError} is the cause of one.
 */
@Documented
@Target({ElementType.METHOD, ElementType.ANNOTATION_TYPE})
@Retention(RetentionPolicy.RUNTIME)
@TestTemplate
@ExtendWith(CudaExtension.class)
@Timeout(value = 180, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
public @interface CudaTest {

  /**
   * {@return the number of devices that the test needs, at least 1} A machine with fewer GPUs skips
   * it.
   */
  int devices() default 1;

  /**
   * {@return the memory of each simulated device, such as {@code 8GiB}} A test that says this runs
   * on the simulator alone: it needs numbers that no GPU has.
   */
  String memory() default "";

  /**
   * {@return the simulated devices that are peers, such as {@code none}} Such a test runs there
   * alone.
   */
  String peers() default "";

  /** {@return whether the test can only run on the simulator} */
  boolean simulatedOnly() default false;

  /**
   * {@return the number of seeds the simulator runs the test with, at least 1} The system property
   * {@code cuvette.seeds} raises it for all tests, or is the range of seeds, such as {@code
   * 501-1000}; {@code cuvette.seed}, or else a seed in the settings of {@code cuvette.device},
   * names the only one.
   */
  int seeds() default 1;

  /**
   * {@return whether the {@link io.cuvette.instrument.SanitizerDriver} watches the simulator's
   * runs: a use of freed memory, a block exceeded, or a race then fails the test}
   */
  boolean sanitized() default true;

  /**
   * {@return whether the test closes all it opens; false if it forgets or leaves things on purpose}
   */
  boolean tidy() default true;
}
