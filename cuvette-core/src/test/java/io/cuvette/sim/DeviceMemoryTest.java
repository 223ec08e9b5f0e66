package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemoryInfo;
import io.cuvette.internal.base.Await;
import io.cuvette.sim.internal.base.PagedBytes;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Device memory: addresses, accounting, contents, and what each misuse says. */
class DeviceMemoryTest extends SimTestBase {

  @Test
  void addresses_areAligned_apart_andTellTheDevice() {
    List<long[]> ranges = new ArrayList<>();
    Random random = new Random(1);
    for (int i = 0; i < 500; i++) {
      long bytes = 1 + random.nextLong(64 * KIB);
      long address = driver.memory().memAlloc(i % 2, bytes);
      assertThat(address % 512).isZero();
      assertThat(driver.memory().pointerGetAttribute(0, 9, address)).isEqualTo(i % 2);
      ranges.add(new long[] {address, address + bytes});
    }
    ranges.sort((a, b) -> Long.compare(a[0], b[0]));
    for (int i = 1; i < ranges.size(); i++) {
      assertThat(ranges.get(i)[0] - ranges.get(i - 1)[1]).isGreaterThanOrEqualTo(512);
    }
  }

  @Test
  void freedAddress_isNotGivenAgainSoon_butAddressesAreBounded() {
    Set<Long> seen = new HashSet<>();
    for (int i = 0; i < 5000; i++) {
      long address = driver.memory().memAlloc(0, 4 * KIB);
      if (i < 1000) {
        assertThat(seen).doesNotContain(address);
      }
      seen.add(address);
      driver.memory().memFree(0, address);
    }
    assertThat(seen).hasSizeLessThan(1100);
  }

  @Test
  void memory_isTakenInPagesOf2MiB_andCountedInUnitsOf512() {
    assertThat(driver.devices().memGetInfo(0)).isEqualTo(new MemoryInfo(64 * MIB, 64 * MIB));
    for (int i = 0; i < 2; i++) { // a page that was given back is not there for the next block
      long address = driver.memory().memAlloc(0, 513);
      assertThat(driver.devices().memGetInfo(0).freeBytes()).isEqualTo(62 * MIB);
      assertThat(driver.liveBytes(0)).isEqualTo(1024);
      assertThat(driver.devices().memGetInfo(1).freeBytes()).isEqualTo(64 * MIB);
      driver.memory().memFree(0, address);
      assertThat(driver.devices().memGetInfo(0).freeBytes()).isEqualTo(64 * MIB);
    }
  }

  @Test
  void wholeDevice_canBeAllocated_andNotOneByteMore() {
    long all = driver.memory().memAlloc(0, 64 * MIB);
    assertFails(
        CudaStatus.OUT_OF_MEMORY,
        "cuMemAlloc(bytes=1, device=0): CUDA_ERROR_OUT_OF_MEMORY (2): out of memory: requested=1, "
            + "free=0, total=67108864 bytes on device 0",
        () -> driver.memory().memAlloc(0, 1));
    driver.memory().memFree(0, all);
    for (long bytes : new long[] {64 * MIB + 1, Long.MAX_VALUE}) {
      assertFails(CudaStatus.OUT_OF_MEMORY, "requested=", () -> driver.memory().memAlloc(0, bytes));
    }
    assertThat(driver.liveAllocations()).isZero();
  }

  @ParameterizedTest
  @ValueSource(longs = {0, -5})
  void allocation_isOfAtLeastOneByte(long bytes) {
    assertFails(
        CudaStatus.INVALID_VALUE, "bytes: " + bytes, () -> driver.memory().memAlloc(0, bytes));
  }

  @Test
  void wrongFrees_areRefused() {
    long address = driver.memory().memAlloc(0, 8 * KIB);
    MemorySegment pinned = driver.memory().memHostAlloc(0, 100, 0);
    MemorySegment managed = driver.memory().memAllocManaged(0, 100, 1);
    CudaStatus status = CudaStatus.INVALID_VALUE;
    assertFails(status, "the start of", () -> driver.memory().memFree(0, address + 512));
    assertFails(status, "live memory", () -> driver.memory().memFree(0, 0));
    assertFails(status, "live memory", () -> driver.memory().memFree(0, 12_345));
    assertFails(status, "this is device memory", () -> driver.memory().memFreeHost(0, address));
    assertFails(status, "this is PINNED", () -> driver.memory().memFree(0, pinned.address()));
    assertFails(status, "this is MANAGED", () -> driver.memory().memFreeHost(0, managed.address()));
    driver.memory().memFree(0, address);
    assertFails(status, "this was freed", () -> driver.memory().memFree(0, address));
    assertFails(status, "live memory)", () -> driver.memory().memFree(0, address + 512));
    driver.memory().memFreeHost(0, pinned.address());
    assertFails(status, "live memory", () -> driver.memory().memFreeHost(0, pinned.address()));
    driver.memory().memFree(0, managed.address());
    assertThat(driver.report()).isEmpty();
  }

  @Test
  void untouchedMemory_readsAsThePattern() {
    long address = driver.memory().memAlloc(0, 200 * KIB);
    byte[] bytes = read(address + 60 * KIB, (int) (80 * KIB));
    for (byte b : bytes) {
      assertThat(b).isEqualTo(PagedBytes.UNTOUCHED);
    }
  }

  @Test
  void randomWrites_matchAPlainArray() {
    long seed = Long.getLong("cuvette.seed", 5);
    Random random = new Random(seed);
    int size = 300_000;
    long[] blocks = {driver.memory().memAlloc(0, size), driver.memory().memAlloc(1, size)};
    byte[][] models = new byte[2][size];
    for (byte[] model : models) {
      Arrays.fill(model, PagedBytes.UNTOUCHED);
    }
    MemorySegment host = driver.memory().memHostAlloc(0, size, 0);
    driver.devices().ctxEnablePeerAccess(0, 1); // the fills need it
    for (int i = 0; i < 400; i++) {
      int count = 1 + random.nextInt(random.nextBoolean() ? size : 1000);
      int from = random.nextInt(size - count + 1);
      int to = random.nextInt(4) == 0 ? from : random.nextInt(size - count + 1);
      int which = random.nextInt(2);
      switch (random.nextInt(5)) {
        case 0 -> {
          byte value = (byte) random.nextInt();
          driver.transfers().memsetD8Async(0, blocks[which] + to, value, count, 0);
          Arrays.fill(models[which], to, to + count, value);
        }
        case 1 -> fillInts(blocks[which], models[which], to, count, random.nextInt());
        case 2 -> fillShorts(blocks[which], models[which], to, count, (short) random.nextInt());
        case 3 -> {
          driver.transfers().memcpyAsync(0, blocks[1 - which] + to, blocks[which] + from, count, 0);
          System.arraycopy(models[which], from, models[1 - which], to, count);
        }
        default -> {
          byte[] bytes = new byte[count];
          random.nextBytes(bytes);
          driver.streams().streamSynchronize(0, 0);
          host.asSlice(0, count).copyFrom(MemorySegment.ofArray(bytes));
          driver.transfers().memcpyAsync(0, blocks[which] + to, host.address(), count, 0);
          System.arraycopy(bytes, 0, models[which], to, count);
        }
      }
    }
    for (int i = 0; i < 2; i++) {
      assertThat(read(blocks[i], size))
          .as("rerun with -Dcuvette.seed=" + seed)
          .isEqualTo(models[i]);
    }
  }

  private void fillInts(long block, byte[] model, int to, int count, int value) {
    int start = to / 4 * 4;
    driver.transfers().memsetD32Async(0, block + start, value, count / 4, 0);
    for (int i = 0; i < count / 4 * 4; i++) {
      model[start + i] = (byte) (value >>> (8 * (i % 4)));
    }
  }

  private void fillShorts(long block, byte[] model, int to, int count, short value) {
    int start = to / 2 * 2;
    driver.transfers().memsetD16Async(0, block + start, value, count / 2, 0);
    for (int i = 0; i < count / 2 * 2; i++) {
      model[start + i] = (byte) (value >>> (8 * (i % 2)));
    }
  }

  @Test
  void fills_workOnHostMemory() {
    MemorySegment host = driver.memory().memHostAlloc(0, 1000, 0);
    driver.transfers().memsetD8Async(0, host.address(), (byte) 1, 1000, 0);
    driver.transfers().memsetD16Async(0, host.address() + 2, (short) 0x0302, 3, 0);
    driver.transfers().memsetD32Async(0, host.address() + 12, 0x07060504, 2, 0);
    driver.streams().streamSynchronize(0, 0);
    assertThat(host.asSlice(0, 21).toArray(ValueLayout.JAVA_BYTE))
        .containsExactly(1, 1, 2, 3, 2, 3, 2, 3, 1, 1, 1, 1, 4, 5, 6, 7, 4, 5, 6, 7, 1);
  }

  @Test
  void wrongRanges_areRefusedAtTheCall() {
    long address = driver.memory().memAlloc(0, 1000);
    long other = driver.memory().memAlloc(1, 1000);
    CudaStatus status = CudaStatus.INVALID_VALUE;
    assertFails(status, "inside", () -> driver.transfers().memcpyAsync(0, address, other, 1001, 0));
    assertFails(
        status, "inside", () -> driver.transfers().memcpyAsync(0, address + 1, other, 1000, 0));
    assertFails(
        status, "bytes: -1", () -> driver.transfers().memcpyAsync(0, address, other, -1, 0));
    assertFails(status, "source", () -> driver.transfers().memcpyAsync(0, address, 42, 10, 0));
    assertFails(status, "inside", () -> driver.transfers().memsetD32Async(0, address, 1, 251, 0));
    assertFails(
        status,
        "a multiple of 4",
        () -> driver.transfers().memsetD32Async(0, address + 2, 1, 1, 0));
    assertFails(
        status,
        "a multiple of 2",
        () -> driver.transfers().memsetD16Async(0, address + 1, (short) 1, 1, 0));
    assertFails(
        status, "count", () -> driver.transfers().memsetD32Async(0, address, 1, Long.MAX_VALUE, 0));
    assertFails(
        status,
        "of device 1",
        () -> driver.transfers().memcpyPeerAsync(0, address, 0, other, 0, 9, 0));
    assertFails(
        status,
        "of device 1",
        () -> driver.transfers().memcpyPeerAsync(0, other, 0, address, 0, 9, 0));
    MemorySegment heap = MemorySegment.ofArray(new byte[8]);
    assertFails(
        status, "heap segment", () -> driver.transfers().memcpyHtoDAsync(0, address, heap, 0));
    driver.transfers().memcpyAsync(0, 42, 43, 0, 0);
    driver.transfers().memsetD8Async(0, 42, (byte) 0, 0, 0);
    driver.devices().ctxSynchronize(0);
  }

  @Test
  @Timeout(60)
  void memoryThatTwoThreadsFree_isFreedByOneOfThem() throws InterruptedException {
    long address = driver.memory().memAlloc(0, KIB);
    CountDownLatch goOn = hold(0, stream(0));
    Queue<Throwable> refused = new ConcurrentLinkedQueue<>();
    List<Thread> freeing = new ArrayList<>();
    for (int i = 0; i < 2; i++) {
      freeing.add(
          Thread.ofPlatform()
              .uncaughtExceptionHandler((_, e) -> refused.add(e))
              .start(() -> driver.memory().memFree(0, address)));
    }
    for (Thread thread : freeing) {
      assertThat(Await.until(() -> thread.getState() == Thread.State.WAITING, 30_000_000_000L))
          .as("it waits for the device")
          .isTrue();
    }
    goOn.countDown();
    for (Thread thread : freeing) {
      thread.join();
    }
    assertThat(refused).hasSize(1);
    assertThat(refused.element()).isInstanceOf(CudaException.class);
    assertThat(driver.liveAllocations()).isZero();
  }

  @Test
  void freeingMemoryOfQueuedWork_waitsForIt() {
    long source = driver.memory().memAlloc(0, 64);
    long target = driver.memory().memAlloc(0, 64);
    long stream = stream(0);
    driver.transfers().memsetD8Async(0, source, (byte) 3, 64, stream);
    driver.transfers().memcpyAsync(0, target, source, 64, stream);
    driver.memory().memFree(0, source);
    assertThat(driver.streams().streamQuery(0, stream)).isTrue();
    assertThat(read(target, 1)).containsExactly(3);
  }

  @Test
  void freeingMemoryThatAnotherDeviceStillUses_failsThatDeviceForGood() {
    long source = driver.memory().memAlloc(0, 64);
    long target = driver.memory().memAlloc(1, 64);
    long stream = stream(1);
    long event = driver.events().eventCreate(1, 0);
    CountDownLatch goOn = hold(1, stream);
    driver.transfers().memcpyAsync(1, target, source, 64, stream);
    driver.events().eventRecord(1, event, stream);
    driver.memory().memFree(0, source);
    goOn.countDown();
    CudaStatus status = CudaStatus.ILLEGAL_ADDRESS;
    assertFails(status, "freed before", () -> driver.streams().streamSynchronize(1, stream));
    assertFails(status, "freed before", () -> driver.streams().streamQuery(1, stream));
    assertFails(status, "freed before", () -> driver.events().eventQuery(1, event));
    assertFails(status, "freed before", () -> driver.memory().memAlloc(1, 64));
    assertFails(status, "freed before", () -> driver.devices().ctxSynchronize(1));
    assertThat(driver.devices().deviceGetName(1)).startsWith("Simulated H200");
    driver.memory().memFree(0, driver.memory().memAlloc(0, 64));
    driver.devices().ctxSynchronize(0);
  }

  @Test
  void pointerAttributes_sayWhereAnAddressIs() {
    long address = driver.memory().memAlloc(1, 1000);
    MemorySegment pinned = driver.memory().memHostAlloc(1, 2000, 0);
    MemorySegment managed = driver.memory().memAllocManaged(0, 3000, 1);
    assertThat(driver.memory().pointerGetAttribute(0, 2, address + 9)).isEqualTo(2);
    assertThat(driver.memory().pointerGetAttribute(0, 11, address + 9)).isEqualTo(address);
    assertThat(driver.memory().pointerGetAttribute(0, 12, address + 9)).isEqualTo(1000);
    assertThat(driver.memory().pointerGetAttribute(0, 3, address + 9)).isEqualTo(address + 9);
    assertThat(driver.memory().pointerGetAttribute(0, 9, address)).isEqualTo(1);
    assertThat(driver.memory().pointerGetAttribute(0, 8, address)).isZero();
    assertThat(driver.memory().pointerGetAttribute(0, 2, pinned.address())).isEqualTo(1);
    assertThat(driver.memory().pointerGetAttribute(0, 4, pinned.address() + 7))
        .isEqualTo(pinned.address() + 7);
    assertThat(driver.memory().pointerGetAttribute(0, 8, managed.address())).isEqualTo(1);
    assertThat(driver.memory().pointerGetAttribute(0, 7, address))
        .isNotEqualTo(driver.memory().pointerGetAttribute(0, 7, pinned.address()));
    CudaStatus status = CudaStatus.INVALID_VALUE;
    assertFails(status, "host pointer", () -> driver.memory().pointerGetAttribute(0, 4, address));
    assertFails(status, "attribute: 99", () -> driver.memory().pointerGetAttribute(0, 99, address));
    assertFails(status, "live memory", () -> driver.memory().pointerGetAttribute(0, 2, 4096));
    assertFails(status, "inside", () -> driver.memory().pointerGetAttribute(0, 2, address + 1000));
  }
}
