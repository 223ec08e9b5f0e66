package io.cuvette.sim.internal.memory;

import io.cuvette.sim.internal.queue.SimDevice;

/** One mapping: memory, and where it is. Guarded by the driver's lock. */
public final class MappedPiece {
  public final PhysicalMemory memory;
  public final long address;

  /** When it was mapped: work that was queued before must not use it. */
  final long mappedNanos;

  /** For each device, and behind them for the host. */
  private final int[] access;

  MappedPiece(PhysicalMemory memory, long address, int devices, long nanos) {
    this.memory = memory;
    this.address = address;
    this.mappedNanos = nanos;
    this.access = new int[devices + 1];
  }

  long byteSize() {
    return memory.byteSize();
  }

  public long end() {
    return address + byteSize();
  }

  int access(SimDevice device) {
    return access[device.index];
  }

  /** Of a device by its number, or of the host, which comes behind them. */
  public int access(int place) {
    return access[place];
  }

  public void access(int place, int flags) {
    access[place] = flags;
  }
}
