package io.cuvette.sim.internal.graph;

import io.cuvette.sim.internal.queue.SimDevice;
import org.jspecify.annotations.Nullable;

/** A value that kernels set and a conditional node reads. Guarded by the driver's lock. */
public final class SimCondition {
  public final long handle;
  public final SimGraph graph;
  public final SimDevice device;
  private final GraphTables tables;
  private final int defaultValue;
  private final boolean assignsDefault;
  private @Nullable SimNode node;
  private int value;
  private int references = 1;

  public SimCondition(
      GraphTables tables,
      SimGraph graph,
      SimDevice device,
      int defaultValue,
      boolean assignsDefault) {
    this.tables = tables;
    this.graph = graph;
    this.device = device;
    this.defaultValue = defaultValue;
    this.assignsDefault = assignsDefault;
    this.handle = tables.conditions.add(this);
  }

  /** A launch starts. */
  public void start() {
    if (assignsDefault) {
      value = defaultValue;
    }
  }

  public int value() {
    return value;
  }

  public void value(int set) {
    value = set;
  }

  /** The node that reads it; null if there is none yet. */
  public @Nullable SimNode node() {
    return node;
  }

  void readBy(@Nullable SimNode reader) {
    node = reader;
  }

  public void retain() {
    references++;
  }

  public void release() {
    if (--references == 0) {
      tables.conditions.remove(handle);
    }
  }
}
