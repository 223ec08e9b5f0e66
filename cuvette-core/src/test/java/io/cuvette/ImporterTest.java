package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.IpcCalls;
import io.cuvette.driver.PointerAttribute;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Imported memory over a driver that counts its mappings wrongly, as real ones do. */
class ImporterTest extends OverFakeSharing {
  @Test
  void sameDescriptorTwice_isMappedOnceAndFreedOnce() {
    try (DeviceMemoryResource resource = mapped()) {
      DeviceBuffer one = resource.importBuffer(descriptor(1, 0, 4096));
      DeviceBuffer two = resource.importBuffer(descriptor(1, 1024, 100));
      assertThat(one.isMapped()).isTrue();
      assertThat(two.address()).isEqualTo(one.address() + 1024);
      assertThat(two.byteSize()).isEqualTo(100);
      one.close();
      one.close();
      assertThat(driver.frees).hasValue(0);
      two.fill((byte) 1);
      two.close();
      assertThat(driver.imports).hasValue(1);
      assertThat(driver.frees).hasValue(1);
    }
  }

  @Test
  void otherDescriptors_areMappedApart() {
    try (DeviceMemoryResource resource = mapped();
        DeviceBuffer one = resource.importBuffer(descriptor(1, 0, 1));
        DeviceBuffer two = resource.importBuffer(descriptor(2, 0, 1))) {
      assertThat(one.address()).isNotEqualTo(two.address());
      assertThat(driver.mappings()).isEqualTo(2);
      assertThat(cuda.engine().imports().size()).isEqualTo(2);
    }
  }

  @Test
  void claimBeyondTheAllocation_isRefusedAndGivenBack() {
    try (DeviceMemoryResource resource = mapped()) {
      for (BufferDescriptor claim :
          List.of(
              descriptor(1, 0, 4097),
              descriptor(1, 4096, 1),
              descriptor(1, 1, 4096),
              descriptor(1, 5000, 1))) {
        assertThatThrownBy(() -> resource.importBuffer(claim))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining("4096");
        assertThat(driver.mappings()).isZero();
      }
      try (DeviceBuffer fits = resource.importBuffer(descriptor(1, 96, 4000))) {
        assertThatThrownBy(() -> resource.importBuffer(descriptor(1, 0, 4097)))
            .isInstanceOf(IllegalArgumentException.class);
        fits.fill((byte) 1);
        assertThat(driver.mappings()).as("the other user keeps it").isEqualTo(1);
      }
    }
  }

  @Test
  void claimThatNoDeviceHas_isRefusedBeforeTheDriver_andOneThatADeviceCouldHaveAfterIt() {
    long most = device.totalBytes();
    try (DeviceMemoryResource resource = mapped()) {
      assertThatThrownBy(() -> resource.importBuffer(descriptor(1, 96, most - 95)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage(
              "descriptor: %d bytes at offset 96 (expected: inside the memory of a device, which"
                  + " has %d)",
              most - 95, most);
      assertThat(driver.imports).hasValue(0);
      assertThatThrownBy(() -> resource.importBuffer(descriptor(1, 96, most - 96)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage(
              "descriptor: %d bytes at offset 96 (expected: inside the allocation, which has 4096)",
              most - 96);
      assertThat(driver.imports).hasValue(1);
    }
  }

  /** Else the last handle of a peer would decide over what the first one mapped. */
  @Test
  void claim_isHeldAgainstTheSizeAsItWasMapped_andAsItIs() {
    try (DeviceMemoryResource resource = mapped();
        DeviceBuffer first = resource.importBuffer(descriptor(1, 0, 4096))) {
      for (long growth : new long[] {1, -1}) {
        driver.growth = growth;
        assertThatThrownBy(() -> resource.importBuffer(descriptor(1, 0, 4096 + (growth + 1) / 2)))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining("inside the allocation");
      }
      driver.growth = 0;
      first.fill((byte) 1);
    }
  }

  @Test
  void claim_isHeldAgainstTheSize_alsoIfThatWasNotReportedAsItWasMapped() {
    try (DeviceMemoryResource resource = mapped()) {
      String call = "pointerGetAttribute " + PointerAttribute.RANGE_SIZE;
      driver.failing.put(call, CudaStatus.NOT_SUPPORTED);
      resource.importBuffer(descriptor(1, 0, 4096)).close();
      driver.failing.put(call, CudaStatus.NOT_SUPPORTED);
      assertThatThrownBy(() -> resource.importBuffer(descriptor(1, 0, 4097)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("which has 4096");
    }
  }

  @Test
  void descriptorOfAnotherPool_isTheDriversInvalidValueWithAReason() {
    try (DeviceMemoryResource resource = mapped()) {
      assertThatThrownBy(() -> resource.importBuffer(descriptor(0, 0, 1)))
          .isInstanceOfSatisfying(
              CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.INVALID_VALUE))
          .hasMessageContaining("another pool");
      assertThat(cuda.engine().imports().size()).isZero();
    }
  }

  @Test
  void descriptorOfAnotherKind_isRefusedBeforeTheDriver() {
    try (DeviceMemoryResource resource = mapped()) {
      assertThatThrownBy(
              () -> resource.importBuffer(descriptor(BufferDescriptor.Kind.HOST_POOL, 1, 0, 1)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("PinnedMemoryResource");
      assertThatThrownBy(
              () -> resource.importBuffer(descriptor(BufferDescriptor.Kind.PLAIN, 1, 0, 1)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("CudaDevice.importBuffer");
      assertThatThrownBy(() -> device.importBuffer(descriptor(1, 0, 1)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("DeviceMemoryResource");
      assertThat(driver.imports).hasValue(0);
    }
  }

  @Test
  void importAfterTheLastClose_mapsAnew() {
    try (CudaStream stream = device.createStream();
        DeviceMemoryResource resource = mapped()) {
      for (int round = 0; round < 5; round++) {
        try (DeviceBuffer buffer = resource.importBuffer(descriptor(1, 0, 64), stream)) {
          buffer.fill((byte) round, stream);
        }
      }
      assertThat(driver.imports).hasValue(5);
      assertThat(driver.frees).hasValue(5);
    }
  }

  @Test
  void importDuringTheFirst_waitsForIt_andIsMappedOnce() throws Exception {
    CountDownLatch goOn = new CountDownLatch(1);
    AtomicInteger inside = new AtomicInteger();
    driver.during =
        call -> {
          if (call.equals("import")) {
            inside.incrementAndGet();
            Latches.await(goOn);
          }
          return call;
        };
    try (DeviceMemoryResource resource = mapped()) {
      List<DeviceBuffer> made = new CopyOnWriteArrayList<>();
      List<Thread> threads = new ArrayList<>();
      for (int i = 0; i < 2; i++) {
        Thread thread =
            Thread.ofPlatform().start(() -> made.add(resource.importBuffer(descriptor(1, 0, 64))));
        threads.add(thread);
        while (inside.get() == 0 || !isWaiting(thread)) {
          Thread.onSpinWait();
        }
      }
      assertThat(inside).hasValue(1);
      goOn.countDown();
      for (Thread thread : threads) {
        thread.join();
      }
      assertThat(made).hasSize(2);
      assertThat(made.getFirst().address()).isEqualTo(made.getLast().address());
      assertThat(driver.imports).hasValue(1);
      made.forEach(DeviceBuffer::close);
    }
  }

  private static boolean isWaiting(Thread thread) {
    return thread.getState() == Thread.State.WAITING
        || thread.getState() == Thread.State.TIMED_WAITING;
  }

  /** The importer that comes while the last one is closing waits, and gets a mapping of its own. */
  @Test
  void importDuringTheLastClose_waitsForIt() throws Exception {
    CountDownLatch freeing = new CountDownLatch(1);
    CountDownLatch goOn = new CountDownLatch(1);
    try (DeviceMemoryResource resource = mapped();
        var threads = Executors.newVirtualThreadPerTaskExecutor()) {
      DeviceBuffer first = resource.importBuffer(descriptor(1, 0, 64));
      driver.during =
          call -> {
            if (call.equals("free")) {
              freeing.countDown();
              Latches.await(goOn);
            }
            return call;
          };
      Future<?> closing = threads.submit(first::close);
      Latches.await(freeing);
      Future<DeviceBuffer> importing =
          threads.submit(() -> resource.importBuffer(descriptor(1, 0, 64)));
      assertThat(importing.isDone()).isFalse();
      goOn.countDown();
      closing.get(40, TimeUnit.SECONDS);
      DeviceBuffer second = importing.get(40, TimeUnit.SECONDS);
      second.fill((byte) 1);
      driver.during = call -> call;
      second.close();
      assertThat(driver.imports).hasValue(2);
      assertThat(driver.frees).hasValue(2);
    }
  }

  @Test
  void threadsThatImportAndCloseTheSame_neverMeetADeadMapping() throws Exception {
    Random seeds = new Random(23);
    driver.during =
        call -> {
          Thread.yield();
          return call;
        };
    try (DeviceMemoryResource resource = mapped();
        var threads = Executors.newFixedThreadPool(8)) {
      List<Callable<Void>> work = new ArrayList<>();
      for (int thread = 0; thread < 8; thread++) {
        long seed = seeds.nextLong();
        work.add(() -> {
          importAndClose(resource, new Random(seed));
          return null;
        });
      }
      for (Future<Void> done : threads.invokeAll(work)) {
        done.get();
      }
      assertThat(driver.mappings()).isZero();
      assertThat(driver.frees).hasValue(driver.imports.get());
    }
  }

  private void importAndClose(DeviceMemoryResource resource, Random random) {
    List<DeviceBuffer> open = new ArrayList<>();
    for (int round = 0; round < 400; round++) {
      if (open.size() < 3 && random.nextBoolean()) {
        open.add(resource.importBuffer(descriptor(1 + random.nextInt(2), 0, 64)));
      } else if (!open.isEmpty()) {
        open.remove(random.nextInt(open.size())).close();
      }
    }
    open.forEach(DeviceBuffer::close);
  }

  @Test
  void failedImport_countsNothing_andTheNextOneWorks() {
    try (DeviceMemoryResource resource = mapped()) {
      driver.failing.put("memPoolImportPointer", CudaStatus.OUT_OF_MEMORY);
      assertThatThrownBy(() -> resource.importBuffer(descriptor(1, 0, 64)))
          .isInstanceOf(CudaException.class);
      assertThat(cuda.engine().imports().size()).isZero();
      resource.importBuffer(descriptor(1, 0, 64)).close();
    }
  }

  @Test
  void failedFree_isTriedAgainAtTheEnd() {
    DeviceMemoryResource resource = mapped();
    DeviceBuffer buffer = resource.importBuffer(descriptor(1, 0, 64));
    driver.failing.put("memFreeAsync", CudaStatus.INVALID_VALUE);
    assertThatThrownBy(buffer::close).isInstanceOf(CudaException.class);
    assertThat(driver.mappings()).isEqualTo(1);
    assertThat(buffer.isClosed()).isTrue();
    // closeAll() sees that the Cuda freed it
  }

  @Test
  void resourceClosedBeforeItsBuffers_endsWithTheLastOfThem() {
    DeviceMemoryResource resource = mapped();
    DeviceBuffer one = resource.importBuffer(descriptor(1, 0, 64));
    DeviceBuffer two = resource.importBuffer(descriptor(2, 0, 64));
    resource.close();
    assertThat(resource.isClosed()).isTrue();
    assertThat(resource.isHandleOwned()).isFalse();
    assertThatThrownBy(() -> resource.importBuffer(descriptor(1, 0, 64)))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("closed");
    assertThatThrownBy(resource::allocationHandle).isInstanceOf(IllegalStateException.class);
    one.fill((byte) 1);
    one.close();
    assertThat(driver.poolsOpen).hasValue(1);
    two.close();
    device.synchronize();
    cuda.leaksFound();
    assertThat(driver.poolsOpen).hasValue(0);
    assertThat(descriptors.open()).isEmpty();
  }

  @Test
  void mappedResource_saysWhatItIs_andAllocatesNothing() {
    try (DeviceMemoryResource resource = mapped()) {
      assertThat(resource.isMapped()).isTrue();
      assertThat(resource.isIpcEnabled()).isTrue();
      assertThat(resource.isHandleOwned()).isTrue();
      assertThat(resource.deviceId()).isZero();
      assertThat(resource.uuid()).isEmpty();
      for (long bytes : new long[] {0, 1, 4096}) {
        assertThatThrownBy(() -> resource.allocate(bytes))
            .isInstanceOf(UnsupportedOperationException.class)
            .hasMessageContaining("mapped");
      }
    }
    assertThat(descriptors.open()).isEmpty();
  }

  @Test
  void deallocate_takesImportedBuffersToo() {
    try (DeviceMemoryResource one = mapped();
        DeviceMemoryResource two = mapped();
        CudaStream stream = device.createStream()) {
      DeviceBuffer buffer = one.importBuffer(descriptor(1, 0, 64));
      assertThatThrownBy(() -> two.deallocate(buffer)).isInstanceOf(IllegalArgumentException.class);
      one.deallocate(buffer, stream);
      assertThat(driver.frees).hasValue(1);
    }
  }

  /** Two imports of one pool without a UUID cannot be told apart before the driver is asked. */
  @Test
  void sameMemoryThroughTwoResources_isFreedOnceByTheLast() {
    try (DeviceMemoryResource one = mapped();
        DeviceMemoryResource two = mapped()) {
      DeviceBuffer first = one.importBuffer(descriptor(1, 0, 64));
      DeviceBuffer second = two.importBuffer(descriptor(1, 0, 64));
      assertThat(second.address()).isEqualTo(first.address());
      first.close();
      assertThat(driver.frees).hasValue(0);
      second.fill((byte) 1);
      second.close();
      assertThat(driver.frees).hasValue(1);
    }
  }

  @Test
  void alreadyMapped_meansThatItIsTheSamePool() {
    try (DeviceMemoryResource one = mapped();
        DeviceMemoryResource two = mapped()) {
      try (DeviceBuffer first = one.importBuffer(descriptor(1, 0, 64))) {
        driver.failing.put("memPoolImportPointer", CudaStatus.ALREADY_MAPPED);
        try (DeviceBuffer second = two.importBuffer(descriptor(1, 0, 64))) {
          assertThat(second.address()).isEqualTo(first.address());
        }
        driver.failing.put("memPoolImportPointer", CudaStatus.INVALID_VALUE);
        try (DeviceMemoryResource foreign = mapped()) {
          assertThatThrownBy(() -> foreign.importBuffer(descriptor(1, 0, 64)))
              .isInstanceOf(CudaException.class);
        }
        assertThat(driver.mappings()).isEqualTo(1);
      }
    }
  }

  /** As when another library of this process has mapped it, whose address is not known. */
  @Test
  void alreadyMapped_ofWhatIsNotMappedHere_isRefused() {
    try (DeviceMemoryResource resource = mapped()) {
      driver.failing.put("memPoolImportPointer", CudaStatus.ALREADY_MAPPED);
      assertThatThrownBy(() -> resource.importBuffer(descriptor(1, 0, 64)).close())
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("memPoolImportPointer")
          .extracting(e -> ((CudaException) e).status())
          .isEqualTo(CudaStatus.ALREADY_MAPPED);
      assertThat(cuda.engine().imports().size()).isZero();
      resource.importBuffer(descriptor(1, 0, 64)).close();
    }
  }

  @Test
  void slicesAndReexports_nameTheOriginalMemory() {
    try (DeviceMemoryResource resource = mapped();
        DeviceBuffer buffer = resource.importBuffer(descriptor(1, 1000, 500))) {
      assertThat(EngineMemory.of(buffer).block().describe())
          .isEqualTo("imported buffer of 500 bytes at 0x%x", buffer.address());
      assertThat(buffer.blockBytes()).isEqualTo(500);
      BufferDescriptor again = buffer.slice(100, 50).descriptor();
      assertThat(again.kind()).isEqualTo(BufferDescriptor.Kind.DEVICE_POOL);
      assertThat(again.offset()).isEqualTo(1100);
      assertThat(again.byteSize()).isEqualTo(50);
      assertThat(again.handle()).isEqualTo(descriptor(1, 0, 1).handle());
      assertThat(again.process()).isEqualTo(OTHER_PROCESS);
      assertThat(buffer.slice(100, 50).isMapped()).isTrue();
      assertThatThrownBy(() -> buffer.slice(0, 0).descriptor())
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("empty");
    }
  }

  @Test
  void plainMemory_isOpenedOnce_andClosedWhenItsWorkIsDone() {
    try (CudaStream one = device.createStream();
        CudaStream two = device.createStream()) {
      BufferDescriptor all = descriptor(BufferDescriptor.Kind.PLAIN, 9, 0, 4096);
      BufferDescriptor part = descriptor(BufferDescriptor.Kind.PLAIN, 9, 4000, 96);
      DeviceBuffer first = device.importBuffer(all, one);
      DeviceBuffer second = device.importBuffer(part, two);
      assertThat(second.address()).isEqualTo(first.address() + 4000);
      first.fill((byte) 1, one);
      first.close();
      second.fill((byte) 2, two);
      second.close();
      assertThat(one.isDone()).isTrue();
      assertThat(two.isDone()).isTrue();
      assertThat(driver.imports).hasValue(1);
      assertThat(driver.frees).hasValue(1);
    }
  }

  @Test
  void plainMemoryOfThisProcess_isRefusedBeforeTheDriver() {
    byte[] handle = new byte[IpcCalls.HANDLE_BYTES];
    BufferDescriptor own =
        new BufferDescriptor(
            BufferDescriptor.Kind.PLAIN,
            0,
            1,
            cuda.engine().imports().process,
            device.uuid(),
            handle);
    assertThatThrownBy(() -> device.importBuffer(own))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("this very process");
    assertThat(driver.imports).hasValue(0);
  }

  @Test
  void buffersLeftOpen_areTakenBackByTheCuda() {
    DeviceMemoryResource resource = mapped();
    resource.importBuffer(descriptor(1, 0, 64));
    resource.importBuffer(descriptor(1, 0, 64));
    device.importBuffer(descriptor(BufferDescriptor.Kind.PLAIN, 9, 0, 4096));
    assertThat(driver.mappings()).isEqualTo(2);
    // closeAll() sees that nothing is left
  }

  @Test
  void closeWhileItsStreamCaptures_isDoneAfterTheCapture() {
    try (DeviceMemoryResource resource = mapped()) {
      CudaStream stream = device.createStream();
      DeviceBuffer buffer = resource.importBuffer(descriptor(1, 0, 64), stream);
      cuda.driver().captures().streamBeginCapture(0, stream.handle(), 2);
      buffer.close();
      assertThat(driver.frees).hasValue(0);
      DeviceBuffer again = resource.importBuffer(descriptor(1, 0, 64));
      assertThat(driver.imports).as("the mapping was still there").hasValue(1);
      long graph = cuda.driver().captures().streamEndCapture(0, stream.handle());
      cuda.driver().graphs().graphDestroy(graph);
      again.close();
      for (int i = 0; i < 2; i++) { // the marker is recorded by the first question
        assertThat(cuda.leaksFound()).as("what is looked for next").isZero();
        device.synchronize();
      }
      assertThat(cuda.leaksFound()).isZero();
      assertThat(driver.frees).hasValue(1);
      stream.close();
    }
  }
}
