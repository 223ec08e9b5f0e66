package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.IpcCalls;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
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
    assertThat(driver.poolsOpen).hasValue(0);
  }

  /** The driver gives the address of a mapping, and then takes that mapping away. */
  @Test
  void descriptorImportedWhileTheMappingIsFreed_isMappedAnew() throws Exception {
    driver.bytesRead = READ;
    CountDownLatch freeing = new CountDownLatch(1);
    CountDownLatch imported = new CountDownLatch(1);
    AtomicBoolean first = new AtomicBoolean(true);
    try (DeviceMemoryResource resource = mapped();
        var threads = Executors.newVirtualThreadPerTaskExecutor()) {
      DeviceBuffer one = resource.importBuffer(altered(1));
      driver.during =
          call -> {
            if (call.equals("free") && first.getAndSet(false)) {
              freeing.countDown();
              await(imported); // the other thread has the address by then
            } else if (call.equals("imported")) {
              imported.countDown();
            }
            return call;
          };
      Future<?> closing = threads.submit(one::close);
      await(freeing);
      Future<DeviceBuffer> importing = threads.submit(() -> resource.importBuffer(altered(2)));
      closing.get(20, TimeUnit.SECONDS);
      DeviceBuffer two = importing.get(20, TimeUnit.SECONDS);
      assertThat(driver.mappings()).isEqualTo(1);
      two.fill((byte) 1);
      device.synchronize();
      two.close();
      assertThat(driver.frees).hasValue(2);
    }
  }

  /** The same with the free over before the importer knows its address. */
  @Test
  void descriptorWhoseMappingWasFreedMeanwhile_isMappedAnew() throws Exception {
    driver.bytesRead = READ;
    CountDownLatch got = new CountDownLatch(1);
    CountDownLatch freed = new CountDownLatch(1);
    AtomicBoolean first = new AtomicBoolean(true);
    try (DeviceMemoryResource resource = mapped();
        var threads = Executors.newVirtualThreadPerTaskExecutor()) {
      DeviceBuffer one = resource.importBuffer(altered(1));
      driver.during =
          call -> {
            if (call.equals("imported") && first.getAndSet(false)) {
              got.countDown();
              await(freed);
            }
            return call;
          };
      Future<DeviceBuffer> importing = threads.submit(() -> resource.importBuffer(altered(2)));
      await(got);
      one.close();
      freed.countDown();
      DeviceBuffer two = importing.get(20, TimeUnit.SECONDS);
      assertThat(driver.mappings()).isEqualTo(1);
      two.fill((byte) 1);
      device.synchronize();
      two.close();
      assertThat(driver.frees).hasValue(2);
    }
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
              .<Future<?>>mapToObj(
                  thread ->
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
}
