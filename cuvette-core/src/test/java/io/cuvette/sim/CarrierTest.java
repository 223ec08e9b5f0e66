package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.internal.machine.OsThread;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A driver knows the threads of the system: a capture is its carrier's, not a virtual thread's. */
class CarrierTest {
  private static final int ROUNDS = 200;
  private static final int STEPS = 100_000;

  private final SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
  private final long stream = driver.streams().streamCreateWithPriority(0, 1, 0);

  @AfterEach
  void close() {
    driver.close();
  }

  /**
   * Gives way until another carrier goes on with this virtual thread. A second one that does not
   * give way keeps its carrier meanwhile, for a bounded number of steps: where there is one carrier
   * alone, nothing moves.
   */
  private static boolean moves(Object before) {
    for (int i = 0; i < ROUNDS && OsThread.current().equals(before); i++) {
      AtomicBoolean over = new AtomicBoolean();
      Thread.startVirtualThread(() -> keepCarrier(over));
      Thread.yield();
      over.set(true);
    }
    return !OsThread.current().equals(before);
  }

  private static void keepCarrier(AtomicBoolean over) {
    for (int i = 0; i < STEPS && !over.get(); i++) {
      Thread.onSpinWait();
    }
  }

  /** A driver knows threads of the operating system alone, of which many virtual ones are. */
  @Test
  void virtualThread_isNoThreadOfItsOwn() throws Exception {
    assertThat(OsThread.current()).isSameAs(Thread.currentThread()).isEqualTo(OsThread.current());
    Object[] seen =
        onVirtualThread(() -> new Object[] {OsThread.current(), Thread.currentThread()});
    assertThat(seen[0]).isNotEqualTo(seen[1]).isNotEqualTo(Thread.currentThread());
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1})
  void captureThatIsNotRelaxed_isNotEndedOnAnotherCarrier(int mode) throws Exception {
    boolean moved =
        onVirtualThread(() -> {
          Object carrier = OsThread.current();
          driver.captures().streamBeginCapture(0, stream, mode);
          return carrier.equals(OsThread.current()) && moves(carrier) && failsHere();
        });
    assumeTrue(moved, "one carrier had the thread all the time");
  }

  private static <T> T onVirtualThread(Supplier<T> work) throws Exception {
    return CompletableFuture.supplyAsync(work, Thread::startVirtualThread)
        .get(60, TimeUnit.SECONDS);
  }

  private boolean failsHere() {
    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(() -> driver.captures().streamEndCapture(0, stream))
        .satisfies(e -> assertThat(e.status()).isEqualTo(CudaStatus.STREAM_CAPTURE_WRONG_THREAD));
    return true;
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2})
  void relaxedCapture_orOneThatStaysOnItsCarrier_isEnded(int mode) throws Exception {
    long graph =
        onVirtualThread(() -> {
          Object carrier = OsThread.current();
          driver.captures().streamBeginCapture(0, stream, mode);
          return (mode < 2 || moves(carrier)) ? end(carrier) : end(OsThread.current());
        });
    assertThat(graph).isNotZero();
  }

  /** The call may have waited for the driver's lock, and come back elsewhere. */
  private long end(Object carrier) {
    try {
      return driver.captures().streamEndCapture(0, stream);
    } catch (CudaException e) {
      if (carrier.equals(OsThread.current())) {
        throw e;
      }
      return -1;
    }
  }
}
