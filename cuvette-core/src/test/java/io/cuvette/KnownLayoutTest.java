package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaException;
import io.cuvette.internal.channel.PoolHandle;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Where it is known what a driver reads of a handle, it is not asked to map anything twice. */
class KnownLayoutTest {
  private static final int BLOCK = 24;
  private static final long MIB = 1 << 20;

  private FakeSharing driver;
  private final Cuda cuda =
      Cuda.open(
          CudaOptions.simulated()
              .withDecorator(sim -> {
                driver = new FakeSharing(new PeerHandlesTest.Exporting(sim).importing());
                return driver;
              }));
  private final FakeDescriptors descriptors = new FakeDescriptors();
  private DeviceMemoryResource resource;

  @BeforeEach
  void importPool() {
    driver.bytesRead = BLOCK;
    try (AllocationHandle handle =
        new AllocationHandle(
            new PoolHandle(descriptors, descriptors.memoryFile("pool", 0), null))) {
      resource = DeviceMemoryResource.fromAllocationHandle(cuda.device(0), handle);
    }
  }

  @AfterEach
  void closeAll() {
    resource.close();
    cuda.close();
    assertThat(driver.wrong).isEmpty();
    assertThat(driver.mappings()).isZero();
    assertThat(driver.poolsOpen).hasValue(0);
  }

  /** The driver maps it so far behind the start of the pool. */
  private DeviceBuffer imported(long offset, long size, int unread) {
    driver.shift = offset - MIB;
    return resource.importBuffer(descriptor(offset, size, unread));
  }

  private static BufferDescriptor descriptor(long offset, long size, int unread) {
    byte[] handle = PeerHandlesTest.pointer(offset, size);
    handle[BLOCK - 1] = 1;
    handle[63] = (byte) unread;
    return new BufferDescriptor(
        BufferDescriptor.Kind.DEVICE_POOL, 0, 64, new UUID(7, 7), new UUID(0, 0), handle);
  }

  @Test
  void whatTheDriverDoesNotRead_doesNotReachIt() {
    try (DeviceBuffer one = imported(MIB, 4096, 0);
        DeviceBuffer two = imported(MIB, 4096, 1);
        DeviceBuffer three = imported(MIB, 1L << 60, 2)) {
      assertThat(two.address()).isEqualTo(one.address()).isEqualTo(three.address());
      assertThat(driver.imports).hasValue(1);
    }
    assertThat(driver.frees).hasValue(1);
  }

  @Test
  void whatWouldOverlapAnotherImport_doesNotReachTheDriver() {
    try (DeviceBuffer one = imported(MIB, 4096, 0)) {
      for (long offset : new long[] {256, 512, 4096 - 256, -256, -4096}) {
        long size = offset < 0 ? 1 - offset : 1;
        assertThatThrownBy(() -> imported(MIB + offset, size, 0))
            .as("%d bytes, %d behind", size, offset)
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining("overlap");
      }
      assertThat(driver.imports).hasValue(1);
      one.fill((byte) 1);
    }
  }

  @Test
  void whatLeadsBetweenAllocations_doesNotReachTheDriver() {
    assertThatThrownBy(() -> imported(MIB + 1, 64, 0)).isInstanceOf(CudaException.class);
    assertThat(driver.imports).hasValue(0);
  }

  @Test
  void whatWouldOverlapMemoryThatIsBeingFreed_reachesTheDriverAfterThat_andOnce() {
    CountDownLatch gate = new CountDownLatch(1);
    try (CudaStream stream = cuda.device(0).createStream()) {
      DeviceBuffer first = resource.importBuffer(descriptor(MIB, 4096, 0), stream);
      driver.streams().launchHostFunc(0, stream.handle(), () -> Latches.await(gate));
      first.close();
      assertThat(driver.frees).as("queued").hasValue(1);
      driver.during =
          call -> {
            if (call.equals("wait")) {
              gate.countDown();
            }
            assertThat(gate.getCount()).as("%s before the free is done", call).isZero();
            return call;
          };
      try (DeviceBuffer second = resource.importBuffer(descriptor(MIB + 512, 64, 0))) {
        second.fill((byte) 1);
        assertThat(driver.imports).hasValue(2);
      }
      driver.during = call -> call;
    } finally {
      gate.countDown();
    }
  }

  /** What a handle claims beyond its allocation was looked at when that was mapped. */
  @Test
  void mappedMemoryThatClaimsMore_isAddedToASecondPool_besideWhatIsThereByNow() {
    DeviceMemoryResource first = resource;
    importPool();
    try (first;
        DeviceBuffer one = first.importBuffer(descriptor(MIB, 512 * MIB, 0))) {
      long place = driver.ordered().memAllocAsync(0, 4096, 0);
      driver.streams().streamSynchronize(0, 0);
      driver.shift = place - one.address();
      assertThat(driver.shift).as("within what it claims").isBetween(4096L, 511 * MIB);
      try (DeviceBuffer _ = first.importBuffer(descriptor(MIB + driver.shift, 64, 0))) {
        driver.shift = 0;
        try (DeviceBuffer again = resource.importBuffer(descriptor(MIB, 512 * MIB, 0))) {
          assertThat(again.address()).isEqualTo(one.address());
          assertThat(driver.imports).as("of the two, and again").hasValue(3);
        }
      }
    }
  }
}
