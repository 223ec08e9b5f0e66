package io.cuvette;

import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.MemRangeAttribute;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/**
 * The devices and the host for which a range of managed memory is mapped; queries the driver each
 * time. Devices come first, in ascending order, then the host. Each change is one call of the
 * driver; if one is refused, those before it stay. Thread-safe.
 */
final class AccessedBy extends LiveSet<MemoryLocation> {

  private final ManagedRange range;

  AccessedBy(ManagedRange range) {
    this.range = range;
  }

  @Override
  List<MemoryLocation> now() {
    int[] places =
        range.attributeList(MemRangeAttribute.ACCESSED_BY, range.session().devices().size() + 1);
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
    range.check(MemoryAdvice.SET_ACCESSED_BY, location);
    return true;
  }

  @Override
  void change(List<MemoryLocation> out, List<MemoryLocation> in) {
    out.forEach(location -> range.advise(MemoryAdvice.UNSET_ACCESSED_BY, location));
    in.forEach(location -> range.advise(MemoryAdvice.SET_ACCESSED_BY, location));
  }
}
