package io.cuvette;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.MemRangeAttribute;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Advises on, prefetches and queries exactly the range of a managed buffer. Thread-safe.
 *
 * @param buffer has at least one byte, or there is nothing to advise or query
 */
record ManagedRange(Memory buffer) {

  /** Since then the driver reports NUMA nodes, with a type and, one attribute on, a number. */
  private static final int TYPES_SINCE = 13000;

  Session session() {
    return buffer.on().session();
  }

  boolean isReadMostly() {
    return buffer.byteSize() > 0 && attribute(MemRangeAttribute.READ_MOSTLY) == 1;
  }

  Optional<MemoryLocation> preferred() {
    return location(
        MemRangeAttribute.PREFERRED_LOCATION, MemRangeAttribute.PREFERRED_LOCATION_TYPE);
  }

  Optional<MemoryLocation> lastPrefetch() {
    return location(
        MemRangeAttribute.LAST_PREFETCH_LOCATION, MemRangeAttribute.LAST_PREFETCH_LOCATION_TYPE);
  }

  /** The devices and the host for which the range is mapped. */
  LiveSet<MemoryLocation> accessedBy() {
    return new AccessedBy();
  }

  private Optional<MemoryLocation> location(int attribute, int typeAttribute) {
    buffer.checkOpen();
    if (buffer.byteSize() == 0) {
      return Optional.empty();
    }
    return Optional.ofNullable(
        session().driverVersion() >= TYPES_SINCE
            ? typed(attribute(typeAttribute), typeAttribute + 1)
            : untyped(attribute(attribute)));
  }

  private @Nullable MemoryLocation typed(int type, int idAttribute) {
    return switch (type) {
      case MemLocationType.DEVICE -> new MemoryLocation.Device(attribute(idAttribute));
      case MemLocationType.HOST -> MemoryLocation.host();
      case MemLocationType.HOST_NUMA -> MemoryLocation.hostNuma(attribute(idAttribute));
      case MemLocationType.HOST_NUMA_CURRENT -> MemoryLocation.hostNumaCurrent();
      default -> null;
    };
  }

  private static @Nullable MemoryLocation untyped(int place) {
    if (place == MemLocationType.HOST_AS_DEVICE) {
      return MemoryLocation.host();
    }
    return place < 0 ? null : new MemoryLocation.Device(place);
  }

  private int attribute(int attribute) {
    return ask(driver ->
        driver
            .memory()
            .memRangeGetAttribute(
                buffer.on().id(), attribute, buffer.address(), buffer.byteSize()));
  }

  private int[] attributeList(int attribute, int count) {
    buffer.checkOpen();
    if (buffer.byteSize() == 0) {
      return new int[0];
    }
    return ask(driver ->
        driver
            .memory()
            .memRangeGetAttributeList(
                buffer.on().id(), attribute, buffer.address(), buffer.byteSize(), count));
  }

  void advise(MemoryAdvice advice, MemoryLocation location) {
    buffer.checkOpen();
    MemoryLocation about = advice.ignoresLocation() ? MemoryLocation.host() : location;
    check(advice, about);
    if (buffer.byteSize() > 0) {
      buffer.block().advised();
      ask(driver -> {
        driver
            .memory()
            .memAdvise(
                buffer.on().id(),
                buffer.address(),
                buffer.byteSize(),
                advice.code(),
                about.type(),
                about.id());
        return advice;
      });
    }
  }

  /** A location that is there and that the advice can be about. */
  void check(MemoryAdvice advice, MemoryLocation location) {
    check(location);
    if (!advice.isAboutAccess()) {
      return;
    }
    if (location instanceof MemoryLocation.HostNuma
        || location instanceof MemoryLocation.HostNumaCurrent) {
      throw new IllegalArgumentException(
          "location: %s (expected: a device or the host, for %s)".formatted(location, advice));
    }
    if (location instanceof MemoryLocation.Device device
        && !canShare(session().device(device.id()))) {
      throw new IllegalArgumentException(
          "location: device %d has no concurrent managed access (expected: one that has, for %s)"
              .formatted(device.id(), advice));
    }
  }

  /** A location that is there; the driver alone knows the NUMA nodes. */
  void check(MemoryLocation location) {
    int devices = session().devices().size();
    if (location instanceof MemoryLocation.Device device && device.id() >= devices) {
      throw new IllegalArgumentException(
          "location: device %d (expected: 0 to %d)".formatted(device.id(), devices - 1));
    }
  }

  private static boolean canShare(Device device) {
    return device.attributes().getOrDefault(DeviceAttribute.CONCURRENT_MANAGED_ACCESS, 0) != 0;
  }

  private <T> T ask(Function<CudaDriver, T> question) {
    buffer.hold();
    try {
      return buffer.on().ask(question);
    } catch (CudaException e) {
      throw explained(e);
    } finally {
      buffer.unhold();
    }
  }

  private CudaException explained(CudaException e) {
    if (e.status() != CudaStatus.NOT_SUPPORTED) {
      return e;
    }
    String text =
        buffer.block().isPlain()
            ? "not for this memory with this driver"
            : "not for memory of a pool with this driver; Cuda.allocateManaged gives memory for"
                + " which it is";
    return e.explained(text);
  }

  /**
   * The devices and the host for which a range of managed memory is mapped; queries the driver each
   * time. Devices come first, in ascending order, then the host. Each change is one call of the
   * driver; if one is refused, those before it stay. Thread-safe.
   */
  private final class AccessedBy extends LiveSet<MemoryLocation> {
    @Override
    List<MemoryLocation> now() {
      int[] places = attributeList(MemRangeAttribute.ACCESSED_BY, session().devices().size() + 1);
      Stream<MemoryLocation> devices =
          Arrays.stream(places)
              .filter(place -> place >= 0)
              .sorted()
              .distinct()
              .mapToObj(MemoryLocation.Device::new);
      boolean byHost =
          Arrays.stream(places).anyMatch(place -> place == MemLocationType.HOST_AS_DEVICE);
      Stream<MemoryLocation> host = byHost ? Stream.of(MemoryLocation.host()) : Stream.empty();
      return Stream.concat(devices, host).toList();
    }

    @Override
    boolean canHave(MemoryLocation location) {
      check(MemoryAdvice.SET_ACCESSED_BY, location);
      return true;
    }

    @Override
    void change(List<MemoryLocation> out, List<MemoryLocation> in) {
      out.forEach(location -> advise(MemoryAdvice.UNSET_ACCESSED_BY, location));
      in.forEach(location -> advise(MemoryAdvice.SET_ACCESSED_BY, location));
    }
  }
}
