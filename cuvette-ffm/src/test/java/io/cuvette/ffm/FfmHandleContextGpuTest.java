package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.driver.CudaDriver;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Calls on handles on a real GPU, with whatever context a thread has; skipped without a GPU. */
class FfmHandleContextGpuTest {
  private static final int BYTES = 4096;

  private CudaDriver driver;
  private long stream;
  private long event;
  private long later;
  private long memory;
  private long spare;
  private MemorySegment host;

  @BeforeEach
  void open() {
    FfmDriverProvider provider = new FfmDriverProvider();
    assumeTrue(provider.isAvailable(), "no GPU");
    driver = provider.open("");
    stream = driver.streamCreateWithPriority(0, 1, 0);
    event = driver.eventCreate(0, 0);
    later = driver.eventCreate(0, 0);
    memory = driver.memAlloc(0, BYTES);
    spare = driver.memAlloc(0, BYTES);
    host = driver.memHostAlloc(0, BYTES, 1);
  }

  @AfterEach
  void close() {
    if (driver != null) {
      driver.close();
    }
  }

  /** A thread of the operating system starts without a context. */
  private static void onNewThread(Runnable body) {
    CompletableFuture<Void> done =
        CompletableFuture.runAsync(body, task -> Thread.ofPlatform().start(task));
    assertThatCode(done::join).doesNotThrowAnyException();
  }

  /** Makes each call on handles that leaves the context alone, and checks what they did. */
  private void useHandles() {
    driver.eventRecord(0, event, stream);
    host.fill((byte) 3);
    driver.memcpyHtoDAsync(0, memory, host, stream);
    driver.memsetD8Async(0, memory, (byte) 4, 8, stream);
    driver.memsetD16Async(0, memory + 8, (short) 0x0505, 4, stream);
    driver.memsetD32Async(0, memory + 16, 0x0606_0606, 2, stream);
    driver.memcpyAsync(0, spare, memory, BYTES, stream);
    driver.memcpyPeerAsync(0, memory, 0, spare, 0, BYTES, stream);
    driver.memcpyDtoHAsync(0, host, memory, stream);
    CountDownLatch reached = new CountDownLatch(1);
    driver.launchHostFunc(0, stream, reached::countDown);
    driver.eventRecord(0, later, stream);
    driver.streamWaitEvent(0, stream, later);
    driver.eventSynchronize(0, later);
    driver.streamSynchronize(0, stream);
    assertThat(reached.getCount()).isZero();
    assertThat(driver.eventQuery(0, later)).isTrue();
    assertThat(driver.streamQuery(0, stream)).isTrue();
    assertThat(driver.eventElapsedTime(0, event, later)).isNotNegative();
    int[] positions = {0, 8, 16, 24, BYTES - 1};
    byte[] values = {4, 5, 6, 3, 3};
    for (int i = 0; i < positions.length; i++) {
      assertThat(host.get(ValueLayout.JAVA_BYTE, positions[i])).isEqualTo(values[i]);
    }
    describeAndCapture();
    useStreamOrderedMemory();
    giveBack();
  }

  private void describeAndCapture() {
    assertThat(driver.streamGetFlags(0, stream)).isOne();
    assertThat(driver.streamGetPriority(0, stream)).isZero();
    assertThat(driver.streamGetId(0, stream)).isNotZero();
    driver.streamBeginCapture(0, stream, 2);
    driver.memsetD8Async(0, memory, (byte) 1, 8, stream);
    assertThat(driver.streamIsCapturing(0, stream)).isOne();
    driver.graphDestroy(driver.streamEndCapture(0, stream));
  }

  private void useStreamOrderedMemory() {
    if (driver.deviceGetAttribute(115, 0) == 0) {
      return;
    }
    long first = driver.memAllocAsync(0, BYTES, stream);
    long second = driver.memAllocFromPoolAsync(0, BYTES, driver.deviceGetDefaultMemPool(0), stream);
    driver.memcpyAsync(0, second, first, BYTES, stream);
    driver.memFreeAsync(0, second, stream);
    driver.memFreeAsync(0, first, stream);
    driver.streamSynchronize(0, stream);
  }

  private void giveBack() {
    driver.memFreeHost(0, host.address());
    driver.memFree(0, spare);
    driver.memFree(0, memory);
    driver.eventDestroy(0, later);
    driver.eventDestroy(0, event);
    driver.streamDestroy(0, stream);
  }

  @Test
  void callsOnHandles_workWithoutAContext() {
    boolean leftAlone = driver.driverGetVersion() >= Versions.HANDLES_SUFFICE;
    onNewThread(() -> {
      useHandles();
      assertThat(OtherContext.current() == 0).isEqualTo(leftAlone);
    });
  }

  @Test
  void callsOnHandles_workInAContextOfSomebodyElse() {
    onNewThread(() -> {
      try (OtherContext other = new OtherContext()) {
        useHandles();
        assertThat(OtherContext.current()).isEqualTo(other.handle());
      }
    });
  }

  @Test
  void callsOnHandles_workInTheContextOfAnotherDevice() {
    assumeTrue(driver.deviceGetCount() > 1, "one GPU");
    onNewThread(() -> {
      driver.memGetInfo(1); // its context stays current
      long context = OtherContext.current();
      useHandles();
      assertThat(OtherContext.current()).isEqualTo(context);
    });
  }
}
