package io.cuvette.testkit.crowd;

import io.cuvette.AllocationHandle;
import io.cuvette.Buffer;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.PageHandles;
import java.util.List;
import java.util.function.Function;

/**
 * Memory and events of another process, which all threads import, use and close as they like. What
 * a peer shares it frees after the import alone.
 */
final class ExchangeSteps {
  private static final int MOST_BYTES = 1 << 14;

  private ExchangeSteps() {}

  /** The steps, each as often as it is to be done. */
  static List<CrowdStep> all() {
    return List.of(
        ExchangeSteps::importPooled,
        ExchangeSteps::importPooled,
        ExchangeSteps::importPlain,
        ExchangeSteps::importPages,
        ExchangeSteps::map,
        ExchangeSteps::close,
        ExchangeSteps::close,
        ExchangeSteps::fill,
        ExchangeSteps::copy,
        ExchangeSteps::slice,
        ExchangeSteps::waitForEvent);
  }

  private static void exchange(
      CrowdMember by, Buffer exported, Function<Buffer, Buffer> importing) {
    Buffer imported;
    try {
      imported = importing.apply(exported);
    } catch (Throwable e) {
      exported.close();
      throw e;
    }
    by.crowd.exchanged.add(new Exchanged(exported, imported));
  }

  private static void importPooled(CrowdMember by) {
    DeviceMemoryResource mapped = by.any(by.crowd.mapped);
    if (mapped != null && !by.crowd.exchanged.isFull()) {
      CudaStream stream = by.stream();
      exchange(
          by,
          by.crowd.peer.pool.allocate(bytes(by)),
          exported -> mapped.importBuffer(exported.descriptor(), stream));
    }
  }

  private static void importPlain(CrowdMember by) {
    if (!by.crowd.exchanged.isFull()) {
      CudaStream stream = by.stream();
      exchange(
          by,
          by.crowd.peer.plain(bytes(by)),
          exported -> by.crowd.device.importBuffer(exported.descriptor(), stream));
    }
  }

  private static void importPages(CrowdMember by) {
    if (!by.crowd.exchanged.isFull()) {
      CudaStream stream = by.stream();
      exchange(
          by,
          by.crowd.peer.elastic.allocate(bytes(by)),
          exported -> {
            try (PageHandles pages = by.crowd.peer.elastic.export(exported)) {
              return by.crowd.device.importBuffer(pages, stream);
            }
          });
    }
  }

  private static long bytes(CrowdMember by) {
    return 1 + by.random.nextInt(MOST_BYTES);
  }

  /** Maps the peer's pool once more, or lets one of its mappings go. */
  private static void map(CrowdMember by) {
    if (by.crowd.mapped.isFull()) {
      DeviceMemoryResource taken = by.take(by.crowd.mapped);
      if (taken != null) {
        taken.close();
      }
    } else {
      try (AllocationHandle handle = by.crowd.peer.pool.allocationHandle().duplicate()) {
        by.crowd.mapped.add(DeviceMemoryResource.fromAllocationHandle(by.crowd.device, handle));
      }
    }
  }

  private static void close(CrowdMember by) {
    Exchanged taken = by.take(by.crowd.exchanged);
    if (taken != null) {
      taken.close(by.crowd);
    }
  }

  private static void fill(CrowdMember by) {
    Exchanged one = by.any(by.crowd.exchanged);
    if (one != null) {
      one.imported().fill((byte) 6, by.stream());
    }
  }

  private static void copy(CrowdMember by) {
    Exchanged one = by.any(by.crowd.exchanged);
    Buffer other = by.any(by.crowd.buffers);
    if (one != null && other != null) {
      long bytes = Math.min(one.imported().byteSize(), other.byteSize());
      other.slice(0, bytes).copyFrom(one.imported().slice(0, bytes), by.stream());
    }
  }

  private static void slice(CrowdMember by) {
    Exchanged one = by.any(by.crowd.exchanged);
    if (one != null) {
      Buffer part = one.imported().slice(0, one.imported().byteSize() / 2);
      part.fill((byte) 7, by.stream());
      part.close();
    }
  }

  private static void waitForEvent(CrowdMember by) {
    try (CudaEvent event = by.crowd.device.importEvent(by.crowd.peer.event.descriptor())) {
      by.stream().waitFor(event);
    }
  }
}
