package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Latches;
import io.cuvette.driver.CudaStatus;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Which streams wait for each other of themselves, and which go on. */
@Timeout(60)
class StreamsApartTest extends SimTestBase {
  private static final int LOOKS = 40;

  private final long memory = driver.memory().memAlloc(0, 64);
  private final long onSecond = driver.memory().memAlloc(1, 64);
  private final long blocking = driver.streams().streamCreateWithPriority(0, 0, 0);
  private final long alike = driver.streams().streamCreateWithPriority(0, 0, 0);
  private final long apart = stream(0);

  private void fill(int device, long stream) {
    long address = device == 0 ? memory : onSecond;
    driver.transfers().memsetD8Async(device, address, (byte) 1, 64, stream);
  }

  private void assertGoesOn(int device, long stream, long... held) {
    for (long each : held) {
      CountDownLatch goOn = hold(0, each);
      fill(device, stream);
      driver.streams().streamSynchronize(device, stream);
      assertThat(driver.streams().streamQuery(0, each)).as("%x is held", each).isFalse();
      goOn.countDown();
      driver.devices().ctxSynchronize(0);
    }
  }

  private void assertWaits(long stream, long... held) {
    for (long each : held) {
      CountDownLatch goOn = hold(0, each);
      fill(0, stream);
      for (int i = 0; i < LOOKS; i++) {
        assertThat(driver.streams().streamQuery(0, stream)).as("behind %x", each).isFalse();
      }
      goOn.countDown();
      driver.streams().streamSynchronize(0, stream);
      assertThat(driver.streams().streamQuery(0, stream)).isTrue();
    }
  }

  @Test
  void blockingStreams_waitForTheLegacyStreamAlone_andItForThem() {
    assertGoesOn(0, alike, blocking, apart);
    assertWaits(alike, 0, alike);
    assertWaits(0, blocking, alike);
    assertGoesOn(0, 0, apart);
  }

  @Test
  void streamApart_waitsForNone() {
    assertGoesOn(0, apart, 0, blocking, stream(0));
    assertWaits(apart, apart);
  }

  @Test
  void otherDevice_waitsForNone() {
    long blockingThere = driver.streams().streamCreateWithPriority(1, 0, 0);
    for (long stream : new long[] {0, blockingThere, stream(1)}) {
      assertGoesOn(1, stream, 0, blocking, apart);
    }
  }

  /** Each once: work that the legacy stream has waited for is no more waited for. */
  @Test
  void legacyStream_waitsForAllBlockingStreams_whateverEndsFirst() {
    CountDownLatch second = hold(0, alike);
    fill(0, blocking);
    fill(0, 0);
    driver.streams().streamSynchronize(0, blocking);
    for (int i = 0; i < LOOKS; i++) {
      assertThat(driver.streams().streamQuery(0, 0)).isFalse();
    }
    second.countDown();
    driver.streams().streamSynchronize(0, 0);
    assertThat(driver.streams().streamQuery(0, alike)).isTrue();
  }

  /** What it never does is not waited for. */
  @Test
  void deviceThatFails_letsOthersGoOn() {
    long there = stream(1);
    long event = driver.events().eventCreate(0, 2);
    CountDownLatch goOn = new CountDownLatch(1);
    driver
        .streams()
        .launchHostFunc(
            0,
            apart,
            () -> {
              Latches.await(goOn);
              throw new IllegalStateException("the device fails");
            });
    fill(0, apart);
    driver.events().eventRecord(0, event, apart);
    driver.streams().streamWaitEvent(1, there, event);
    fill(1, there);
    assertThat(driver.streams().streamQuery(1, there)).isFalse();
    goOn.countDown();
    driver.streams().streamSynchronize(1, there);
    driver.devices().ctxSynchronize(1);
    assertFails(
        CudaStatus.LAUNCH_FAILED,
        "the device fails",
        () -> driver.streams().streamSynchronize(0, apart));
    assertFails(
        CudaStatus.LAUNCH_FAILED, "the device fails", () -> driver.devices().ctxSynchronize(0));
  }
}
