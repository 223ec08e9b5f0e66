package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.IpcCalls;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;

/** Descriptors that differ in bytes which the driver does not read: they are one allocation. */
class AlteredHandleTest extends OverFakeSharing {
  private static final int READ = 8;

  /** One of many descriptors of the same memory. */
  private static BufferDescriptor altered(BufferDescriptor.Kind kind, int memory, int alteration) {
    byte[] handle = new byte[IpcCalls.HANDLE_BYTES];
    Arrays.fill(handle, 0, READ, (byte) memory);
    handle[READ + 1] = (byte) alteration;
    return new BufferDescriptor(kind, 0, 64, OTHER_PROCESS, new UUID(0, 0), handle);
  }

  private static BufferDescriptor altered(int alteration) {
    return altered(BufferDescriptor.Kind.DEVICE_POOL, 1, alteration);
  }

  @Test
  void allocationOfAPool_isFreedWithTheLastOfItsDescriptors() {
    driver.bytesRead = READ;
    try (DeviceMemoryResource resource = mapped()) {
      DeviceBuffer one = resource.importBuffer(altered(1));
      DeviceBuffer two = resource.importBuffer(altered(2));
      DeviceBuffer three = resource.importBuffer(altered(3));
      assertThat(List.of(two.address(), three.address())).containsOnly(one.address());
      one.close();
      three.close();
      assertThat(driver.frees).hasValue(0);
      try (var own = cuda.allocate(4096)) {
        own.fill((byte) 7);
        two.fill((byte) 8);
        two.close();
        assertThat(driver.frees).hasValue(1);
        assertThat(driver.mappings()).isZero();
        own.fill((byte) 9);
      }
      DeviceBuffer again = resource.importBuffer(altered(2));
      again.close();
      assertThat(driver.frees).hasValue(2);
    }
  }

  /** Its place is all that tells that it is the same. */
  @Test
  void allocationWhoseSizeIsNotKnownAtOnce_isFreedWithTheLastOfItsDescriptors() {
    driver.bytesRead = READ;
    AtomicBoolean isNew = new AtomicBoolean(true);
    driver.during =
        call -> {
          if (call.equals("size") && isNew.getAndSet(false)) {
            throw new CudaException(CudaStatus.UNKNOWN, "pointerGetAttribute", "on purpose");
          }
          return call;
        };
    try (DeviceMemoryResource resource = mapped()) {
      DeviceBuffer one = resource.importBuffer(altered(1));
      DeviceBuffer two = resource.importBuffer(altered(2));
      assertThat(two.address()).isEqualTo(one.address());
      one.close();
      assertThat(driver.frees).hasValue(0);
      two.fill((byte) 8);
      two.close();
      assertThat(driver.frees).hasValue(1);
    }
  }

  @Test
  void poolOfAnAllocation_isDestroyed_howeverManyDescriptorsMappedIt() {
    driver.bytesRead = READ;
    try (DeviceMemoryResource resource = mapped();
        DeviceBuffer _ = resource.importBuffer(altered(1));
        DeviceBuffer _ = resource.importBuffer(altered(2))) {
      assertThat(driver.pools).hasSize(1);
    }
    device.synchronize(); // the pool goes after the frees that were queued
    assertThat(driver.pools).isEmpty();
  }

  @Test
  void plainAllocation_isClosedAsOftenAsItWasOpened() {
    driver.bytesRead = READ;
    DeviceBuffer one = device.importBuffer(altered(BufferDescriptor.Kind.PLAIN, 9, 1));
    DeviceBuffer two = device.importBuffer(altered(BufferDescriptor.Kind.PLAIN, 9, 2));
    assertThat(two.address()).isEqualTo(one.address());
    one.close();
    assertThat(driver.frees).hasValue(0);
    two.fill((byte) 1);
    two.close();
    assertThat(driver.frees).hasValue(1);
  }

  @Test
  void poolsThatAreOne_areHeldByTheOneMapping() {
    driver.bytesRead = READ;
    DeviceMemoryResource one = mapped();
    DeviceMemoryResource two = mapped();
    DeviceBuffer first = one.importBuffer(altered(1));
    DeviceBuffer second = two.importBuffer(altered(2));
    assertThat(second.address()).isEqualTo(first.address());
    one.close();
    two.close();
    first.close();
    assertThat(driver.poolsOpen).as("both, since the mapping may be of either").hasValue(2);
    second.fill((byte) 1);
    second.close();
    device.synchronize(); // the mapping ends behind the fill
    assertThat(cuda.leaksFound()).as("what is looked for next").isZero();
    assertThat(driver.poolsOpen).hasValue(0);
  }

  /** Whoever imports waits for the free, and no driver is asked during it. */
  @Test
  void descriptorImportedWhileTheMappingIsFreed_isMappedAnew() throws Exception {
    driver.bytesRead = READ;
    CountDownLatch freeing = new CountDownLatch(1);
    AtomicReference<Thread> importer = new AtomicReference<>();
    try (DeviceMemoryResource resource = mapped();
        var threads = Executors.newFixedThreadPool(2)) {
      DeviceBuffer one = resource.importBuffer(altered(1));
      AtomicInteger importsDuringTheFree = new AtomicInteger();
      driver.during =
          call -> {
            if (call.equals("free")) {
              driver.during = UnaryOperator.identity();
              int before = driver.imports.get();
              freeing.countDown();
              awaitWaiting(importer);
              importsDuringTheFree.set(driver.imports.get() - before);
            }
            return call;
          };
      Future<?> closing = threads.submit(one::close);
      Latches.await(freeing);
      Future<DeviceBuffer> importing =
          threads.submit(() -> {
            importer.set(Thread.currentThread());
            return resource.importBuffer(altered(2));
          });
      closing.get(40, TimeUnit.SECONDS);
      assertMappedAnew(importing.get(40, TimeUnit.SECONDS));
      assertThat(importsDuringTheFree).hasValue(0);
    }
  }

  /** The user that closes the mapping has begun to when the driver gives its address. */
  @Test
  void descriptorWhoseMappingIsFreedMeanwhile_isMappedAnew() throws Exception {
    driver.bytesRead = READ;
    AtomicReference<Thread> closer = new AtomicReference<>();
    try (DeviceMemoryResource resource = mapped();
        var threads = Executors.newFixedThreadPool(2)) {
      DeviceBuffer one = resource.importBuffer(altered(1));
      driver.during =
          call -> {
            if (call.equals("imported")) {
              driver.during = UnaryOperator.identity();
              threads.submit(() -> {
                closer.set(Thread.currentThread());
                one.close();
              });
              awaitWaiting(closer);
              assertThat(driver.frees).hasValue(0);
            }
            return call;
          };
      assertMappedAnew(resource.importBuffer(altered(2)));
    }
  }

  private void assertMappedAnew(DeviceBuffer two) {
    assertThat(driver.mappings()).isEqualTo(1);
    two.fill((byte) 1);
    device.synchronize();
    two.close();
    assertThat(driver.frees).hasValue(2);
  }

  private static void awaitWaiting(AtomicReference<Thread> thread) {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(40);
    while (thread.get() == null || thread.get().getState() != Thread.State.WAITING) {
      assertThat(System.nanoTime()).as("the thread waits").isLessThan(end);
      Thread.yield();
    }
  }

  @Test
  void questionThatFailsAfterAnImport_losesNoMapping() {
    driver.bytesRead = READ;
    try (DeviceMemoryResource resource = mapped()) {
      for (BufferDescriptor.Kind kind :
          List.of(BufferDescriptor.Kind.DEVICE_POOL, BufferDescriptor.Kind.PLAIN)) {
        for (String question : List.of("2", "12", "17")) {
          driver.failing.put("pointerGetAttribute " + question, CudaStatus.UNKNOWN);
          try {
            imported(resource, kind).close(); // a question may be asked again
          } catch (CudaException e) {
            assertThat(e.status()).isEqualTo(CudaStatus.UNKNOWN);
          }
          device.synchronize();
          assertThat(driver.mappings()).as("%s, attribute %s", kind, question).isZero();
          driver.failing.clear();
          imported(resource, kind).close();
        }
      }
    }
  }

  private DeviceBuffer imported(DeviceMemoryResource resource, BufferDescriptor.Kind kind) {
    BufferDescriptor descriptor = altered(kind, 1, 1);
    return kind == BufferDescriptor.Kind.PLAIN
        ? device.importBuffer(descriptor)
        : resource.importBuffer(descriptor);
  }

  /** What the driver counts once too often is taken back when the last user goes. */
  @Test
  void secondOpeningThatCannotBeTakenBack_isTakenBackInTheEnd() {
    driver.bytesRead = READ;
    DeviceBuffer one = device.importBuffer(altered(BufferDescriptor.Kind.PLAIN, 9, 1));
    driver.failing.put("ipcCloseMemHandle", CudaStatus.UNKNOWN);
    DeviceBuffer two = device.importBuffer(altered(BufferDescriptor.Kind.PLAIN, 9, 2));
    two.close();
    one.fill((byte) 1);
    one.close();
    assertThat(driver.mappings()).isZero();
  }

  /** It is refused: two that waited for each other's end would do so for ever. */
  @Test
  void importOfWhatIsMapped_doesNotWaitForMemoryThatEnds() {
    try (DeviceMemoryResource one = mapped();
        DeviceMemoryResource two = mapped();
        CudaStream stream = device.createStream();
        DeviceBuffer kept = one.importBuffer(descriptor(1, 0, 64))) {
      DeviceBuffer ending = one.importBuffer(descriptor(2, 0, 64));
      long place = ending.address();
      CountDownLatch gate = gate(stream);
      ending.fill((byte) 1, stream);
      ending.close();
      driver.during =
          call -> {
            if (call.equals("wait")) {
              gate.countDown(); // so that it fails, and does not wait on
            }
            return call;
          };
      driver.places = _ -> place;
      assertThatThrownBy(() -> two.importBuffer(descriptor(1, 0, 64)).close())
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("overlap memory that is imported");
      assertThat(isHeld(stream)).as("the memory has not ended").isTrue();
      driver.places = address -> address;
      gate.countDown();
      stream.synchronize();
      kept.fill((byte) 2);
    }
    assertThat(driver.frees).hasValue(2);
  }

  /** Freeing the part could free the whole, so nobody does. */
  @Test
  void partOfAnotherImport_isRefused_andLeft() {
    driver.bytesRead = READ;
    try (DeviceMemoryResource resource = mapped();
        DeviceBuffer one = resource.importBuffer(altered(1))) {
      for (long shift : new long[] {1, 512, FakeSharing.ALLOCATION_BYTES - 1}) {
        driver.shift = shift;
        assertThatThrownBy(() -> resource.importBuffer(altered(2)))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining("overlap memory that is imported");
        assertThat(driver.frees).hasValue(0);
      }
      driver.shift = 0;
      one.fill((byte) 1);
    }
    assertThat(driver.frees).hasValue(1);
  }

  @Test
  void threadsThatImportAndCloseOneAllocationByManyDescriptors_neverMeetADeadMapping()
      throws Exception {
    driver.bytesRead = READ;
    try (DeviceMemoryResource resource = mapped();
        var threads = Executors.newFixedThreadPool(6)) {
      List<Future<?>> all =
          java.util.stream.IntStream.range(0, 6)
              .<Future<?>>mapToObj(thread ->
                  threads.submit(() -> {
                    for (int round = 0; round < 300; round++) {
                      try (DeviceBuffer buffer = resource.importBuffer(altered(thread))) {
                        buffer.fill((byte) round);
                      }
                    }
                  }))
              .toList();
      for (Future<?> each : all) {
        each.get(40, TimeUnit.SECONDS);
      }
      device.synchronize();
      assertThat(driver.mappings()).isZero();
    }
  }

  @Test
  void claimOfMoreThanADeviceHas_isRefusedBeforeTheDriver() {
    long most = device.totalBytes();
    try (DeviceMemoryResource resource = mapped()) {
      for (BufferDescriptor claim :
          List.of(
              descriptor(1, 0, most + 1),
              descriptor(1, most, 1),
              descriptor(1, 1, Long.MAX_VALUE - 1),
              descriptor(1, Long.MAX_VALUE - 1, 1))) {
        assertThatThrownBy(() -> resource.importBuffer(claim))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining("inside the memory of a device");
      }
      BufferDescriptor plain = descriptor(BufferDescriptor.Kind.PLAIN, 1, 0, most + 1);
      assertThatThrownBy(() -> device.importBuffer(plain))
          .isInstanceOf(IllegalArgumentException.class);
      assertThat(driver.imports).hasValue(0);
    }
  }

  /** Its place is known before and after the driver was asked about the second pool. */
  @Test
  void mappingThatIsOfASecondPoolToo_isStillKnownByItsPlace() {
    driver.bytesRead = READ;
    try (DeviceMemoryResource one = mapped();
        DeviceMemoryResource two = mapped()) {
      DeviceBuffer first = one.importBuffer(altered(1));
      DeviceBuffer second = two.importBuffer(altered(1));
      DeviceBuffer third = one.importBuffer(altered(2));
      assertThat(List.of(second.address(), third.address())).containsOnly(first.address());
      first.close();
      second.close();
      assertThat(driver.frees).hasValue(0);
      third.fill((byte) 1);
      third.close();
      assertThat(driver.frees).hasValue(1);
    }
  }

  /**
   * What a second pool's handle claims of memory that is mapped counts no more: it is where it is.
   */
  @Test
  void laterClaimOfMore_isNotHeldAgainstANeighbour() {
    driver.bytesRead = READ;
    try (DeviceMemoryResource one = mapped();
        DeviceMemoryResource two = mapped()) {
      List<DeviceBuffer> buffers = new ArrayList<>();
      for (int allocation = 1; allocation <= 2; allocation++) {
        buffers.add(one.importBuffer(descriptor(allocation, 0, 64)));
      }
      driver.growth = Math.abs(buffers.getFirst().address() - buffers.getLast().address());
      for (int allocation = 1; allocation <= 2; allocation++) {
        DeviceBuffer again = two.importBuffer(descriptor(allocation, 0, 64));
        assertThat(again.address()).isEqualTo(buffers.get(allocation - 1).address());
        buffers.add(again);
      }
      buffers.forEach(DeviceBuffer::close);
    }
    assertThat(driver.frees).hasValue(2);
  }

  /** Host memory may be more than a device has, and says so itself. */
  @Test
  void claimOfAHostPool_isNotHeldAgainstDevices_butAgainstWhatComes() {
    try (AllocationHandle handle = handle(null);
        var resource = PinnedMemoryResource.fromAllocationHandle(cuda, handle)) {
      BufferDescriptor large =
          descriptor(BufferDescriptor.Kind.HOST_POOL, 1, 0, 2 * device.totalBytes());
      assertThatThrownBy(() -> resource.importBuffer(large))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("descriptor: claims to be of kind HOST_POOL, and is device memory");
      assertThat(driver.imports).hasValue(1);
    }
  }

  /** As by the handle of what this process gave a peer: it would be freed under its owner. */
  @Test
  void memoryOfAPoolOfThisProcess_isNotTakenForAnothers_norFreed() {
    AtomicLong mapped = new AtomicLong();
    try (var own = new DeviceMemoryResource(device, DeviceMemoryResourceOptions.DEFAULTS);
        DeviceBuffer buffer = own.allocate(FakeSharing.ALLOCATION_BYTES);
        DeviceMemoryResource resource = mapped()) {
      driver.places =
          address -> {
            mapped.set(address);
            return buffer.address();
          };
      assertThatThrownBy(() -> resource.importBuffer(altered(1)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageStartingWith("descriptor: 0x%x is of pool 0x", buffer.address())
          .hasMessageEndingWith("(expected: another's; use the buffer itself)");
      assertThat(driver.frees).hasValue(0);
      buffer.fill((byte) 1);
      driver.places = address -> address;
      driver.ordered().memFreeAsync(0, mapped.get(), 0);
    }
  }
}
