package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.AllocationHandle;
import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.AsyncPoolOptions;
import io.cuvette.BufferDescriptor;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.DeviceBuffer;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.Scope;
import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.ScriptedDriver;
import java.util.List;
import java.util.UUID;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;

/**
 * A pool that is imported again and again while one buffer of it stays open. Each import is a pool
 * of the driver with a descriptor: it must go with its resource, not with that buffer.
 */
class HeldMappingTest extends TwoProcesses {
  private static final int ROUNDS = 20;

  @Test
  void devicePoolImportedAgainUnderItsUuid_keepsNothing() {
    try (DeviceMemoryResource resource = shared();
        DeviceBuffer buffer = resource.allocate(4096)) {
      buffer.fill((byte) 1);
      BufferDescriptor descriptor = buffer.descriptor();
      DeviceMemoryResource first = mapped(resource);
      try (DeviceBuffer held = first.importBuffer(descriptor)) {
        first.close();
        long open = OpenFiles.count();
        for (int round = 0; round < ROUNDS; round++) {
          try (DeviceMemoryResource again = mapped(resource);
              DeviceBuffer part = again.importBuffer(buffer.slice(96).descriptor())) {
            assertThat(part.address()).isEqualTo(held.address() + 96);
            assertThat(bytes(part)).containsOnly(1);
          }
        }
        assertThat(OpenFiles.count()).isLessThanOrEqualTo(open);
        assertThat(bytes(held)).containsOnly(1);
      }
    }
  }

  @Test
  void rawPoolThatWasGivenAUuid_keepsNothing() {
    UUID uuid = new UUID(1, 2);
    try (DeviceMemoryResource resource = shared();
        DeviceBuffer buffer = resource.allocate(64)) {
      int raw = resource.allocationHandle().descriptor();
      DeviceMemoryResource first =
          DeviceMemoryResource.fromAllocationHandle(there(), raw).register(uuid);
      try (DeviceBuffer held = first.importBuffer(buffer.descriptor())) {
        first.close();
        long open = OpenFiles.count();
        for (int round = 0; round < ROUNDS; round++) {
          try (var again = DeviceMemoryResource.fromAllocationHandle(there(), raw);
              DeviceBuffer part = again.register(uuid).importBuffer(buffer.descriptor())) {
            assertThat(part.address()).isEqualTo(held.address());
          }
        }
        assertThat(OpenFiles.count()).isLessThanOrEqualTo(open);
      }
    }
  }

  @Test
  void bufferOfTheSecondImport_outlivesTheFirstAndBothResources() {
    try (DeviceMemoryResource resource = shared();
        DeviceBuffer buffer = resource.allocate(64)) {
      buffer.fill((byte) 3);
      AllocationHandle handle = resource.allocationHandle();
      DeviceMemoryResource first = mapped(resource);
      DeviceBuffer held = first.importBuffer(buffer.descriptor());
      first.close();
      var second = DeviceMemoryResource.fromAllocationHandle(there(), handle);
      DeviceBuffer last = second.importBuffer(buffer.descriptor());
      second.deallocate(second.importBuffer(buffer.descriptor()));
      second.close();
      held.close();
      there().synchronize();
      assertThat(bytes(last)).containsOnly(3);
      last.close();
    }
  }

  /** What a third process does with a shared pool and a buffer of it. */
  private interface Third {
    void use(Supplier<DeviceMemoryResource> imports, BufferDescriptor buffer, CudaDevice device);
  }

  /** Has a third process use a shared pool; its driver has no pool left in the end. */
  private void inAThird(ScriptedDriver script, Third body) {
    try (DeviceMemoryResource resource = shared();
        DeviceBuffer buffer = resource.allocate(64);
        SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
        Cuda third =
            Cuda.open(
                CudaOptions.DEFAULTS.withDriver(script.over(ScriptedDriver.keptOpen(driver))))) {
      int handle = resource.allocationHandle().descriptor();
      CudaDevice device = third.device(0);
      body.use(
          () -> DeviceMemoryResource.fromAllocationHandle(device, handle),
          buffer.descriptor(),
          device);
      assertThat(driver.livePools()).isZero();
    }
  }

  /** As a driver refuses it for host memory that is mapped: it goes with the other one. */
  @Test
  void importThatCannotBeGivenBackBesideAnother_goesWithThat() {
    ScriptedDriver script = new ScriptedDriver();
    inAThird(
        script,
        (imports, buffer, device) -> {
          DeviceMemoryResource first = imports.get();
          DeviceBuffer held = first.importBuffer(buffer);
          DeviceMemoryResource second = imports.get();
          script.fail("memPoolDestroy", CudaStatus.INVALID_VALUE, 1).note("memPoolDestroy");
          second.close();
          held.close();
          first.close();
          device.synchronize(); // the free is done
          device.synchronize(); // and the pools go
          assertThat(script.notes()).as("the one that was refused twice").hasSize(3);
        });
  }

  /** It is gone with what it kept, for whoever imports it again. */
  @Test
  void lastBufferOfAClosedImport_endsIt() {
    ScriptedDriver script = new ScriptedDriver();
    inAThird(
        script,
        (imports, buffer, _) -> {
          DeviceMemoryResource imported = imports.get();
          DeviceBuffer held = imported.importBuffer(buffer);
          imported.close();
          script.answer(
              "memFreeAsync",
              call -> {
                Object result = call.proceed();
                call.below().devices().ctxSynchronize(0); // a quick device
                return result;
              });
          held.close();
        });
  }

  /** Whether that device has access is asked of a pool that is there. */
  @Test
  void bufferOfTheSecondImport_isCopiedForAnotherDevice_afterBothResources() {
    try (DeviceMemoryResource resource = shared();
        DeviceBuffer buffer = resource.allocate(64);
        PinnedBuffer host = hostMemoryOf(importer.device(1));
        CudaStream stream = importer.device(1).createStream()) {
      buffer.fill((byte) 4);
      DeviceMemoryResource first = mapped(resource);
      try (DeviceBuffer held = first.importBuffer(buffer.descriptor())) {
        first.close();
        DeviceMemoryResource second = mapped(resource);
        try (DeviceBuffer last = second.importBuffer(buffer.descriptor())) {
          second.close();
          held.close();
          host.copyFrom(last, stream);
          stream.synchronize();
          assertThat(bytes(host)).containsOnly(4);
        }
      }
    }
  }

  private PinnedBuffer hostMemoryOf(CudaDevice device) {
    try (Scope _ = device.use()) {
      return importer.directPinned().allocate(64);
    }
  }

  @Test
  void hostPoolImportedAgainUnderItsUuid_keepsNothing() {
    try (var resource = new PinnedMemoryResource(exporter, PINNED);
        PinnedBuffer buffer = resource.allocate(64)) {
      buffer.fill((byte) 1);
      AllocationHandle handle = resource.allocationHandle();
      var first = PinnedMemoryResource.fromAllocationHandle(importer, handle);
      try (PinnedBuffer held = first.importBuffer(buffer.descriptor())) {
        first.close();
        long open = OpenFiles.count();
        for (int round = 0; round < ROUNDS; round++) {
          try (var again = PinnedMemoryResource.fromAllocationHandle(importer, handle);
              PinnedBuffer part = again.importBuffer(buffer.descriptor())) {
            assertThat(part.address()).isEqualTo(held.address());
          }
        }
        assertThat(OpenFiles.count()).isLessThanOrEqualTo(open);
      }
    }
  }

  /** Who borrows the pool of another process has not made it. */
  @Test
  void bufferOfAPool_thatIsBorrowedByItsHandleToo_isImported() {
    try (DeviceMemoryResource resource = shared();
        DeviceBuffer buffer = resource.allocate(64);
        DeviceMemoryResource imported = mapped(resource);
        AsyncMemoryPool _ =
            new AsyncMemoryPool(
                importer,
                List.of(AsyncPoolChoice.ofHandle(imported.handle()), AsyncPoolChoice.ofDefault()),
                AsyncPoolOptions.DEFAULTS)) {
      buffer.fill((byte) 6);
      try (DeviceBuffer part = imported.importBuffer(buffer.descriptor())) {
        assertThat(bytes(part)).containsOnly(6);
      }
    }
  }
}
