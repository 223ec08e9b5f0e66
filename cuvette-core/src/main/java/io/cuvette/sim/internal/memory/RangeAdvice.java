package io.cuvette.sim.internal.memory;

import io.cuvette.driver.MemLocationType;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.function.ToIntFunction;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;

/**
 * The advice of a program about ranges of one managed allocation, in pages of 4 KiB from its start;
 * a range counts for each page it touches. Guarded by the driver's lock.
 */
public final class RangeAdvice {
  private static final long PAGE = 4096;

  private final long byteSize;

  /** What holds from a page to the next key. */
  private final TreeMap<Long, Advice> advices = new TreeMap<>(Map.of(0L, Advice.NONE));

  public RangeAdvice(long byteSize) {
    this.byteSize = byteSize;
  }

  /** A location: CUmemLocationType and the device or node. Immutable. */
  public record Location(int type, int id) {
    public static final Location NONE = new Location(MemLocationType.NONE, 0);

    private static final int NO_DEVICE = -2;

    /** The location as the older attributes give it: a device, -1 for the host, -2 for none. */
    public int device() {
      return type == MemLocationType.DEVICE
          ? id
          : type == MemLocationType.NONE ? NO_DEVICE : MemLocationType.HOST_AS_DEVICE;
    }
  }

  /**
   * The advice about a page; {@code accessedBy} has a bit for each device, and the sign for the
   * host. Immutable.
   */
  public record Advice(
      boolean readMostly, Location preferred, long accessedBy, Location prefetched) {
    public static final Advice NONE = new Advice(false, Location.NONE, 0, Location.NONE);

    public Advice withReadMostly(boolean value) {
      return new Advice(value, preferred, accessedBy, prefetched);
    }

    public Advice withPreferred(Location location) {
      return new Advice(readMostly, location, accessedBy, prefetched);
    }

    public Advice withAccessedBy(Location location, boolean value) {
      long bit = location.type == MemLocationType.DEVICE ? 1L << location.id : Long.MIN_VALUE;
      long changed = value ? accessedBy | bit : accessedBy & ~bit;
      return new Advice(readMostly, preferred, changed, prefetched);
    }

    public Advice withPrefetched(Location location) {
      return new Advice(readMostly, preferred, accessedBy, location);
    }
  }

  public void change(long offset, long bytes, UnaryOperator<Advice> change) {
    long from = offset / PAGE;
    long to = (offset + bytes + PAGE - 1) / PAGE;
    split(from);
    if (to * PAGE < byteSize) {
      split(to);
    }
    advices.subMap(from, to).replaceAll((page, advice) -> change.apply(advice));
  }

  private void split(long page) {
    advices.putIfAbsent(page, Objects.requireNonNull(advices.floorEntry(page)).getValue());
  }

  /** The value all pages of a range agree on, or another where they do not. */
  public int common(long offset, long bytes, ToIntFunction<Advice> value, int otherwise) {
    int[] values = pages(offset, bytes).mapToInt(value).distinct().limit(2).toArray();
    return values.length == 1 ? values[0] : otherwise;
  }

  /** The location all pages of a range agree on, or none. */
  public Location common(long offset, long bytes, Function<Advice, Location> location) {
    List<Location> found = pages(offset, bytes).map(location).distinct().limit(2).toList();
    return found.size() == 1 ? found.getFirst() : Location.NONE;
  }

  /** The devices that access all pages of a range, -1 for the host, and then -2. */
  public int[] accessedBy(long offset, long bytes, int count) {
    long all = pages(offset, bytes).mapToLong(Advice::accessedBy).reduce(-1, (a, b) -> a & b);
    int[] devices = new int[count];
    Arrays.fill(devices, Location.NO_DEVICE);
    for (int i = 0; i < count && all != 0; i++, all &= all - 1) {
      int bit = Long.numberOfTrailingZeros(all);
      devices[i] = bit == Long.SIZE - 1 ? MemLocationType.HOST_AS_DEVICE : bit;
    }
    return devices;
  }

  private Stream<Advice> pages(long offset, long bytes) {
    Long first = Objects.requireNonNull(advices.floorKey(offset / PAGE));
    return advices.subMap(first, (offset + bytes + PAGE - 1) / PAGE).values().stream();
  }
}
