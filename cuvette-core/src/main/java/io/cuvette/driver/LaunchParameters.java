package io.cuvette.driver;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The arguments of a launch in native memory: the value of each parameter at its offset, and the
 * table of their addresses that the driver reads. The table is built once, the values may change
 * between launches. Who launches keeps the memory of the values alive, and nobody changes them
 * meanwhile: the driver has copied them when the launch returns. Immutable but for the values.
 */
public final class LaunchParameters {
  private static final MemorySegment NO_TABLE = MemorySegment.NULL;

  private final MemorySegment values;
  private final List<KernelParameter> places;
  private final MemorySegment table;
  private final @Nullable LaunchWatcher watcher;

  /**
   * Builds the table of addresses.
   *
   * @param values native memory with the value of each parameter at its offset
   * @param places where each parameter lies in it, in the order of the kernel's parameters
   * @throws IllegalArgumentException if the memory is on the Java heap
   * @throws IndexOutOfBoundsException if a parameter lies outside it
   */
  public LaunchParameters(MemorySegment values, List<KernelParameter> places) {
    Objects.requireNonNull(values, "values");
    Objects.requireNonNull(places, "places");
    if (!values.isNative()) {
      throw new IllegalArgumentException("values: heap segment (expected: native memory)");
    }
    this.values = values;
    this.places = List.copyOf(places);
    this.watcher = null;
    this.table =
        places.isEmpty()
            ? NO_TABLE
            : Arena.ofAuto().allocate(ValueLayout.JAVA_LONG, this.places.size());
    long next = 0;
    for (KernelParameter place : this.places) {
      Objects.checkFromIndexSize(place.offset(), place.size(), values.byteSize());
      table.setAtIndex(ValueLayout.JAVA_LONG, next++, values.address() + place.offset());
    }
  }

  private LaunchParameters(LaunchParameters of, LaunchWatcher watcher) {
    this.values = of.values;
    this.places = of.places;
    this.table = of.table;
    this.watcher = watcher;
  }

  /**
   * {@return the same arguments for a launch that is watched, if the driver can}
   *
   * @param observer is notified of the memory that the launch touches
   */
  public LaunchParameters watchedBy(LaunchWatcher observer) {
    return new LaunchParameters(this, Objects.requireNonNull(observer, "observer"));
  }

  /** {@return who is notified of the memory that the launch touches; null if nobody is} */
  public @Nullable LaunchWatcher watcher() {
    return watcher;
  }

  /** {@return the values, each at the offset of its parameter} */
  public MemorySegment values() {
    return values;
  }

  /** {@return where each parameter lies, in order} */
  public List<KernelParameter> places() {
    return places;
  }

  /** {@return the addresses of the values, 8 bytes each, in order; NULL without parameters} */
  public MemorySegment table() {
    return table;
  }

  @Override
  public String toString() {
    return "%d parameters".formatted(places.size());
  }
}
