package io.cuvette.testkit.ipc;

import static io.cuvette.driver.CudaStatus.INVALID_VALUE;
import static io.cuvette.driver.CudaStatus.OUT_OF_MEMORY;
import static io.cuvette.testkit.support.Sizes.UNEVEN;
import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.BufferDescriptor;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.DeviceBuffer;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.EventDescriptor;
import io.cuvette.EventOptions;
import io.cuvette.MemoryResource;
import io.cuvette.PageHandles;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.PinnedMemoryResourceOptions;
import io.cuvette.testkit.FaultSweeps;
import io.cuvette.testkit.FaultSweeps.CudaUse;
import io.cuvette.testkit.SweepReport;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Exporting and importing with each driver call failing, once and from then on. What hangs is found
 * by the sweep itself; all runs of one take their time.
 */
@Timeout(150)
@Tag("simulated")
class SharingUnderFaultsTest extends TwoProcesses {
  private static final PinnedMemoryResourceOptions PINNED =
      PinnedMemoryResourceOptions.DEFAULTS.withIpcEnabled(true);

  private static void sweep(CudaUse use) throws InterruptedException {
    long before = OpenFiles.count();
    SweepReport report =
        FaultSweeps.onSimulator("devices=2")
            .recoveringFrom(OUT_OF_MEMORY, "memAllocFromPoolAsync", "memAllocAsync")
            .recoveringFrom(OUT_OF_MEMORY, "memAddressReserve", "memCreate", "memMap")
            // What these answer so is no failure of the driver, but what memory or device is.
            .allowing(INVALID_VALUE, IllegalStateException.class)
            // Asked for once more where it counts, or only to explain.
            .recoveringWithin("Mappings.measured", "pointerGetAttribute")
            .recoveringWithin("DriverPool.rememberNumbers", "memPoolGetAttribute")
            .recoveringWithin("OwnedPool.destroy", "memPoolSetAccess") // one by one then
            // A stream that cannot be asked counts as working; a user's own events must fail.
            .recoveringWithin("DriverStream.isIdle", "streamIsCapturing", "streamQuery")
            .recoveringWithin(
                "DriverStream.isIdle", "eventCreate", "eventRecord", "eventQuery", "eventDestroy")
            // A mark behind a free that is queued: made when it is asked for.
            .recoveringWithin("Mapping.markerOf", "streamIsCapturing", "eventCreate", "eventRecord")
            .run(FaultSweeps.using(use));
    report.orThrow();
    assertThat(OpenFiles.count()).as("descriptors after all runs").isLessThanOrEqualTo(before);
  }

  @Test
  void exporterWhoseCallsFail_leavesNothing() throws InterruptedException {
    sweep(cuda -> {
      try (DeviceMemoryResource resource = new DeviceMemoryResource(cuda.device(0), SHARED);
          DeviceBuffer buffer = resource.allocate(UNEVEN);
          PinnedMemoryResource pinned = new PinnedMemoryResource(cuda, PINNED);
          PinnedBuffer host = pinned.allocate(UNEVEN);
          Buffer plain = MemoryResource.direct().allocate(UNEVEN, cuda.currentStream());
          CudaEvent event =
              cuda.device(0).createEvent(EventOptions.ORDER_ONLY.withInterprocess(true))) {
        resource.peerAccessibleBy().add(cuda.device(1));
        assertThat(resource.allocationHandle().uuid()).isPresent();
        buffer.descriptor();
        host.descriptor();
        plain.descriptor();
        event.descriptor();
        event.record();
        event.isDone();
        event.synchronize();
      }
    });
  }

  @Test
  void exporterOfPagesWhoseCallsFail_leavesNothing() throws InterruptedException {
    sweep(cuda -> {
      try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda, ElasticSharingTest.EXPORTABLE);
          Buffer buffer = pool.allocate(5 * MIB);
          PageHandles handles = pool.export(buffer);
          PageHandles again = pool.export(buffer.slice(0, UNEVEN))) {
        assertThat(handles.pageBytes()).isGreaterThanOrEqualTo(5 * MIB);
        assertThat(again.pages()).isPositive();
        buffer.fill((byte) 1);
      }
    });
  }

  @Test
  void importerOfPagesWhoseCallsFail_leavesNothing() throws InterruptedException {
    try (ElasticMemoryPool pool = new ElasticMemoryPool(exporter, ElasticSharingTest.EXPORTABLE);
        Buffer buffer = pool.allocate(5 * MIB);
        PageHandles handles = pool.export(buffer)) {
      sweep(cuda -> {
        try (CudaStream one = cuda.device(0).createStream();
            CudaStream two = cuda.device(0).createStream();
            DeviceBuffer first = cuda.device(0).importBuffer(handles, one);
            DeviceBuffer again = cuda.device(0).importBuffer(handles, two);
            DeviceBuffer far = cuda.device(1).importBuffer(handles, cuda.device(1).nullStream())) {
          first.fill((byte) 1, one);
          two.waitFor(one);
          again.fill((byte) 2, two);
          assertThat(far.isMapped()).isTrue();
        }
      });
    }
  }

  @Test
  void importerWhoseCallsFail_leavesNothing() throws InterruptedException {
    try (DeviceMemoryResource resource = shared();
        DeviceBuffer buffer = resource.allocate(UNEVEN);
        PinnedMemoryResource pinned = new PinnedMemoryResource(exporter, PINNED);
        PinnedBuffer host = pinned.allocate(UNEVEN);
        Buffer plain = MemoryResource.direct().allocate(UNEVEN, here().nullStream());
        CudaEvent event = here().createEvent(EventOptions.ORDER_ONLY.withInterprocess(true))) {
      BufferDescriptor ofBuffer = buffer.descriptor();
      BufferDescriptor ofHost = host.descriptor();
      BufferDescriptor ofPlain = plain.descriptor();
      EventDescriptor ofEvent = event.descriptor();
      sweep(cuda -> {
        try (DeviceMemoryResource mapped =
                DeviceMemoryResource.fromAllocationHandle(
                    cuda.device(0), resource.allocationHandle());
            PinnedMemoryResource mappedHost =
                PinnedMemoryResource.fromAllocationHandle(cuda, pinned.allocationHandle());
            CudaEvent imported = cuda.device(0).importEvent(ofEvent);
            CudaStream one = cuda.device(0).createStream();
            CudaStream two = cuda.device(0).createStream();
            DeviceBuffer first = mapped.importBuffer(ofBuffer, one);
            DeviceBuffer again = mapped.importBuffer(ofBuffer, two);
            PinnedBuffer hosts = mappedHost.importBuffer(ofHost, one);
            DeviceBuffer opened = cuda.device(0).importBuffer(ofPlain, two)) {
          imported.record(one);
          imported.isDone();
          imported.synchronize();
          two.waitFor(imported);
          first.fill((byte) 1, one);
          two.waitFor(one);
          again.fill((byte) 2, two);
          hosts.fill((byte) 3, one);
          opened.fill((byte) 4, two);
        }
      });
    }
  }
}
