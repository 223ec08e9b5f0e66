package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.BoxCopy;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.PoolProperties;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.SplittableRandom;

/** What every driver promises about copies and fills. Extend it in the tests of a driver. */
public abstract class DriverTransferContract {
  private static final int BYTES = 100_000;
  private static final long NULL_STREAM = 0;

  /** For subclasses. */
  protected DriverTransferContract() {}

  /**
   * Copies to and from the device work on every kind of stream.
   *
   * @param driver the driver under test
   */
  @CudaTest(seeds = 3)
  public void bytes_goInAndOut_onEveryKindOfStream(CudaDriver driver) {
    byte[] pattern = random(1);
    long made = driver.streams().streamCreateWithPriority(0, 1, 0);
    long device = driver.memory().memAlloc(0, BYTES);
    try (Arena arena = Arena.ofConfined()) {
      for (long stream : new long[] {NULL_STREAM, 1, 2, made}) {
        MemorySegment in = arena.allocateFrom(ValueLayout.JAVA_BYTE, pattern);
        MemorySegment out = arena.allocate(BYTES);
        driver.transfers().memcpyHtoDAsync(0, device, in, stream);
        driver.transfers().memcpyDtoHAsync(0, out, device, stream);
        driver.streams().streamSynchronize(0, stream);
        assertThat(out.mismatch(in)).as("stream %d", stream).isEqualTo(-1);
      }
    }
    driver.memory().memFree(0, device);
    driver.streams().streamDestroy(0, made);
  }

  /**
   * Copies work between any two addresses known to the driver.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void copy_worksBetweenAnyAddressesTheDriverKnows(CudaDriver driver) {
    long device = driver.memory().memAlloc(0, BYTES);
    MemorySegment pinned = driver.memory().memHostAlloc(0, BYTES, 1);
    MemorySegment managed = driver.memory().memAllocManaged(0, BYTES, 1);
    MemorySegment result = driver.memory().memHostAlloc(0, BYTES, 1);
    byte[] pattern = random(2);
    pinned.copyFrom(MemorySegment.ofArray(pattern));
    driver.transfers().memcpyAsync(0, device, pinned.address(), BYTES, NULL_STREAM);
    driver.transfers().memcpyAsync(0, managed.address(), device, BYTES, NULL_STREAM);
    driver.transfers().memcpyAsync(0, result.address(), managed.address(), BYTES, NULL_STREAM);
    driver.streams().streamSynchronize(0, NULL_STREAM);
    assertThat(result.toArray(ValueLayout.JAVA_BYTE)).isEqualTo(pattern);
    assertThat(managed.toArray(ValueLayout.JAVA_BYTE)).isEqualTo(pattern);
    driver.memory().memFree(0, device);
    driver.memory().memFree(0, managed.address());
    driver.memory().memFreeHost(0, pinned.address());
    driver.memory().memFreeHost(0, result.address());
  }

  /**
   * Copies between devices work with and without peer access.
   *
   * @param driver the driver under test
   */
  @CudaTest(devices = 2, seeds = 3)
  public void peerCopy_worksWithAndWithoutAccess(CudaDriver driver) {
    long source = driver.memory().memAlloc(0, BYTES);
    long target = driver.memory().memAlloc(1, BYTES);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment in = arena.allocateFrom(ValueLayout.JAVA_BYTE, random(3));
      MemorySegment out = arena.allocate(BYTES);
      driver.transfers().memcpyHtoDAsync(0, source, in, NULL_STREAM);
      driver.streams().streamSynchronize(0, NULL_STREAM);
      driver.transfers().memcpyPeerAsync(1, target, 1, source, 0, BYTES, NULL_STREAM);
      driver.transfers().memcpyDtoHAsync(1, out, target, NULL_STREAM);
      driver.streams().streamSynchronize(1, NULL_STREAM);
      assertThat(out.mismatch(in)).isEqualTo(-1);
    }
    driver.memory().memFree(0, source);
    driver.memory().memFree(1, target);
  }

  /**
   * In either direction; the owner copies, and so does a device that has access.
   *
   * @param driver the driver under test
   */
  @CudaTest(devices = 2)
  public void copyBetweenTheHostAndAPool_isRefusedOnADeviceWithoutAccess(CudaDriver driver) {
    long pool = driver.pools().memPoolCreate(new PoolProperties(1, 0, 1, 0, 0));
    long memory = driver.ordered().memAllocFromPoolAsync(0, BYTES, pool, NULL_STREAM);
    driver.devices().ctxSynchronize(0);
    long pinned = driver.memory().memHostAlloc(1, BYTES, 1).address();
    long managed = driver.memory().memAllocManaged(1, BYTES, 1).address();
    for (long host : new long[] {pinned, managed}) {
      Refused.with(
          CudaStatus.INVALID_VALUE,
          () -> driver.transfers().memcpyAsync(1, memory, host, BYTES, NULL_STREAM));
      Refused.with(
          CudaStatus.INVALID_VALUE,
          () -> driver.transfers().memcpyAsync(1, host, memory, BYTES, NULL_STREAM));
      driver.transfers().memcpyAsync(0, memory, host, BYTES, NULL_STREAM);
      driver.transfers().memcpyAsync(0, host, memory, BYTES, NULL_STREAM);
      driver.devices().ctxSynchronize(0);
    }
    if (driver.devices().deviceCanAccessPeer(1, 0)) {
      driver.pools().memPoolSetAccess(pool, 1, new int[] {1}, 3);
      driver.transfers().memcpyAsync(1, memory, pinned, BYTES, NULL_STREAM);
      driver.devices().ctxSynchronize(1);
      driver.pools().memPoolSetAccess(pool, 1, new int[] {1}, 0);
    }
    driver.ordered().memFreeAsync(0, memory, NULL_STREAM);
    driver.devices().ctxSynchronize(0);
    driver.pools().memPoolDestroy(pool);
    driver.memory().memFreeHost(1, pinned);
    driver.memory().memFree(1, managed);
  }

  /**
   * Rows and layers that lie apart are copied, and what lies between them is left.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void box_isCopied_andNothingBetweenItsRows(CudaDriver driver) {
    long device = driver.memory().memAlloc(0, 512);
    MemorySegment host = driver.memory().memHostAlloc(0, 512, 1);
    for (int i = 0; i < 512; i++) {
      host.set(ValueLayout.JAVA_BYTE, i, (byte) i);
    }
    driver.transfers().memsetD8Async(0, device, (byte) 0, 512, NULL_STREAM);
    BoxCopy.Side target = new BoxCopy.Side(device, 4, 3);
    BoxCopy.Side source = new BoxCopy.Side(host.address() + 1, 10, 2);
    driver.transfers().memcpy3DAsync(0, new BoxCopy(target, source, 3, 2, 2), NULL_STREAM);
    assertThat(read(driver, device, 24))
        .containsExactly(
            1, 2, 3, 0, 11, 12, 13, 0, 0, 0, 0, 0, 21, 22, 23, 0, 31, 32, 33, 0, 0, 0, 0, 0);
    driver.transfers().memcpy3DAsync(0, new BoxCopy(target, source, 0, 2, 2), NULL_STREAM);
    Refused.with(
        CudaStatus.INVALID_VALUE,
        () -> driver.transfers().memcpy3DAsync(0, new BoxCopy(target, source, 5, 2, 2), 0));
    driver.memory().memFree(0, device);
    driver.memory().memFreeHost(0, host.address());
  }

  /**
   * A batch of copies is in order with the other work of the stream; the null stream is refused.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void batch_isInOrderOfTheStream(CudaDriver driver) {
    long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
    long device = driver.memory().memAlloc(0, 512);
    driver.transfers().memsetD8Async(0, device, (byte) 7, 256, stream);
    driver
        .transfers()
        .memcpyBatchAsync(
            0,
            new long[] {device + 256, device + 384},
            new long[] {device, device + 128},
            new long[] {128, 128},
            stream);
    driver.streams().streamSynchronize(0, stream);
    assertThat(read(driver, device, 512)).containsOnly(7);
    Refused.with(
        CudaStatus.INVALID_VALUE,
        () ->
            driver
                .transfers()
                .memcpyBatchAsync(
                    0, new long[] {device}, new long[] {device + 256}, new long[] {8}, 0));
    Refused.with(
        CudaStatus.INVALID_VALUE,
        () ->
            driver
                .transfers()
                .memcpyBatchAsync(
                    0, new long[] {device}, new long[] {device + 256}, new long[] {0}, stream));
    driver.memory().memFree(0, device);
    driver.streams().streamDestroy(0, stream);
  }

  /**
   * A batch is refused in a capture, which goes on.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void batch_isRefusedInACapture_whichGoesOn(CudaDriver driver) {
    long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
    long device = driver.memory().memAlloc(0, 512);
    driver.captures().streamBeginCapture(0, stream, 1);
    Refused.with(
        CudaStatus.STREAM_CAPTURE_UNSUPPORTED,
        () ->
            driver
                .transfers()
                .memcpyBatchAsync(
                    0, new long[] {device}, new long[] {device + 256}, new long[] {8}, stream));
    BoxCopy.Side target = new BoxCopy.Side(device, 20, 2);
    BoxCopy.Side source = new BoxCopy.Side(device + 256, 20, 2);
    driver.transfers().memcpy3DAsync(0, new BoxCopy(target, source, 10, 2, 1), stream);
    long graph = driver.captures().streamEndCapture(0, stream);
    assertThat(graph).isNotZero();
    driver.graphs().graphDestroy(graph);
    driver.memory().memFree(0, device);
    driver.streams().streamDestroy(0, stream);
  }

  /**
   * Fills write values of 1, 2 and 4 bytes.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void fills_writeTheirUnits(CudaDriver driver) {
    long device = driver.memory().memAlloc(0, 16);
    driver.transfers().memsetD8Async(0, device, (byte) -1, 16, NULL_STREAM);
    assertThat(read(driver, device, 16)).containsOnly(0xFF);
    driver.transfers().memsetD16Async(0, device, (short) 0x0102, 8, NULL_STREAM);
    assertThat(read(driver, device, 4)).containsExactly(2, 1, 2, 1);
    driver.transfers().memsetD32Async(0, device + 4, 0x01020304, 2, NULL_STREAM);
    assertThat(read(driver, device, 16))
        .containsExactly(2, 1, 2, 1, 4, 3, 2, 1, 4, 3, 2, 1, 2, 1, 2, 1);
    driver.memory().memFree(0, device);
  }

  /**
   * Filling a misaligned address is refused.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void fillOfAMisalignedAddress_isRefused(CudaDriver driver) {
    long device = driver.memory().memAlloc(0, 512);
    Refused.withAny(
        () -> driver.transfers().memsetD16Async(0, device + 1, (short) 1, 2, NULL_STREAM));
    Refused.withAny(() -> driver.transfers().memsetD32Async(0, device + 2, 1, 2, NULL_STREAM));
    driver.memory().memFree(0, device);
  }

  /**
   * A real device may only find this out later, and is lost then.
   *
   * @param driver the driver under test
   */
  @CudaTest(simulatedOnly = true)
  public void transfersOutsideOfMemory_areInvalidValue(CudaDriver driver) {
    long device = driver.memory().memAlloc(0, 512);
    Refused.with(
        CudaStatus.INVALID_VALUE,
        () -> driver.transfers().memsetD8Async(0, device, (byte) 1, 513, NULL_STREAM));
    Refused.with(
        CudaStatus.INVALID_VALUE,
        () -> driver.transfers().memcpyAsync(0, device + 256, device, 257, NULL_STREAM));
    Refused.with(
        CudaStatus.INVALID_VALUE,
        () -> driver.transfers().memcpyAsync(0, 0x1234, device, 1, NULL_STREAM));
    Refused.with(
        CudaStatus.INVALID_VALUE,
        () -> driver.transfers().memcpyAsync(0, device, device, -1, NULL_STREAM));
    driver.memory().memFree(0, device);
  }

  /**
   * Work of one stream runs in order.
   *
   * @param driver the driver under test
   */
  @CudaTest(seeds = 20)
  public void workOfOneStream_runsInOrder(CudaDriver driver) {
    long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
    long other = driver.streams().streamCreateWithPriority(0, 1, 0);
    long device = driver.memory().memAlloc(0, 512);
    long unrelated = driver.memory().memAlloc(0, 512);
    for (int i = 0; i < 20; i++) {
      driver.transfers().memsetD8Async(0, unrelated, (byte) i, 512, other);
      driver.transfers().memsetD8Async(0, device, (byte) i, 512, stream);
    }
    driver.streams().streamSynchronize(0, stream);
    assertThat(read(driver, device, 512)).containsOnly(19);
    driver.memory().memFree(0, device);
    driver.memory().memFree(0, unrelated);
    driver.streams().streamDestroy(0, stream);
    driver.streams().streamDestroy(0, other);
  }

  /** As unsigned numbers. */
  private static int[] read(CudaDriver driver, long address, int bytes) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment out = arena.allocate(bytes);
      driver.devices().ctxSynchronize(0);
      driver.transfers().memcpyDtoHAsync(0, out, address, NULL_STREAM);
      driver.streams().streamSynchronize(0, NULL_STREAM);
      byte[] content = out.toArray(ValueLayout.JAVA_BYTE);
      int[] numbers = new int[bytes];
      Arrays.setAll(numbers, i -> content[i] & 0xFF);
      return numbers;
    }
  }

  private static byte[] random(long seed) {
    byte[] pattern = new byte[BYTES];
    new SplittableRandom(seed).nextBytes(pattern);
    return pattern;
  }
}
