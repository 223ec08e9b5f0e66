package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A driver knows the threads of the system: a capture is its carrier's, not a virtual thread's. */
class CarrierTest {
  private static final int ROUNDS = 100_000;

  private final SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
  private final long stream = driver.streamCreateWithPriority(0, 1, 0);
  private final AtomicBoolean ended = new AtomicBoolean();
  private final List<Thread> others = new ArrayList<>();

  @AfterEach
  void close() throws InterruptedException {
    ended.set(true);
    for (Thread other : others) {
      other.join();
    }
    driver.close();
  }

  /** Gives way to other virtual threads until another carrier goes on with this one. */
  private static boolean moves(Object before) {
    boolean moved = false;
    for (int i = 0; i < ROUNDS && !moved; i++) {
      Thread.yield();
      moved = !OsThread.current().equals(before);
    }
    return moved;
  }

  private void keepCarriersBusy() {
    for (int i = 0; i < 2 * Runtime.getRuntime().availableProcessors(); i++) {
      others.add(
          Thread.startVirtualThread(() -> {
            while (!ended.get()) {
              Thread.yield();
            }
          }));
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1})
  void captureThatIsNotRelaxed_isNotEndedOnAnotherCarrier(int mode) throws Exception {
    keepCarriersBusy();
    boolean moved =
        onVirtualThread(() -> {
          Object carrier = OsThread.current();
          driver.streamBeginCapture(0, stream, mode);
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
        .isThrownBy(() -> driver.streamEndCapture(0, stream))
        .satisfies(e -> assertThat(e.status()).isEqualTo(CudaStatus.STREAM_CAPTURE_WRONG_THREAD));
    return true;
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2})
  void relaxedCapture_orOneThatStaysOnItsCarrier_isEnded(int mode) throws Exception {
    keepCarriersBusy();
    long graph =
        onVirtualThread(() -> {
          Object carrier = OsThread.current();
          driver.streamBeginCapture(0, stream, mode);
          return (mode < 2 || moves(carrier)) ? end(carrier) : end(OsThread.current());
        });
    assertThat(graph).isNotZero();
  }

  /** The call may have waited for the driver's lock, and come back elsewhere. */
  private long end(Object carrier) {
    try {
      return driver.streamEndCapture(0, stream);
    } catch (CudaException e) {
      if (carrier.equals(OsThread.current())) {
        throw e;
      }
      return -1;
    }
  }
}
