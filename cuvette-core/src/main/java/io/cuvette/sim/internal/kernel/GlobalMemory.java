package io.cuvette.sim.internal.kernel;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.LaunchWatcher;
import io.cuvette.driver.LaunchWatcher.Touch;
import io.cuvette.sim.internal.base.PagedBytes;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.graph.SimCondition;
import io.cuvette.sim.internal.machine.SimMachine;
import io.cuvette.sim.internal.memory.DevicePages;
import io.cuvette.sim.internal.memory.HostBlock;
import io.cuvette.sim.internal.memory.MappedPiece;
import io.cuvette.sim.internal.memory.SimBlock;
import io.cuvette.sim.internal.memory.SimPlace;
import io.cuvette.sim.internal.memory.VirtualBlock;
import io.cuvette.sim.internal.pool.PoolAccess;
import io.cuvette.sim.internal.queue.SimDevice;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * Memory as the kernels of a device see it. No block comes or goes while a grid runs, so the last
 * one is remembered; of managed memory the last page, as others come to the device when they are
 * used. Guarded by the driver's lock, which whoever runs the grid holds.
 */
final class GlobalMemory {
  private final SimMachine machine;
  private final SimDevice device;
  private final @Nullable LaunchWatcher watcher;

  private final MemorySegment eight = MemorySegment.ofArray(new long[1]);
  private final MemorySegment four = eight.asSlice(0, Integer.BYTES);
  private final MemorySegment one = eight.asSlice(0, Byte.BYTES);

  private @Nullable SimBlock last;

  /** The part of the last block that needs no other look. */
  private long lastFrom;

  private long lastTo;

  /** Whether the device may also write to the last block. */
  private boolean isLastWritable;

  private UnaryOperator<SimRefusal> refusals = UnaryOperator.identity();

  GlobalMemory(SimMachine machine, SimDevice device, @Nullable LaunchWatcher watcher) {
    this.machine = machine;
    this.device = device;
    this.watcher = watcher;
  }

  /** What is refused goes through an operator: the launch fails, even if its function goes on. */
  void onRefusal(UnaryOperator<SimRefusal> operator) {
    refusals = operator;
  }

  byte getByte(long address) {
    read(address, one, Touch.READ);
    return one.get(ValueLayout.JAVA_BYTE, 0);
  }

  int getInt(long address, Touch touch) {
    read(address, four, touch);
    return four.get(ValueLayout.JAVA_INT, 0);
  }

  long getLong(long address, Touch touch) {
    read(address, eight, touch);
    return eight.get(ValueLayout.JAVA_LONG, 0);
  }

  /** Sets what a conditional node reads. */
  void setCondition(long handle, int value) {
    SimCondition condition = machine.graphs.conditions.find(handle);
    if (condition == null) {
      throw refusals.apply(
          new SimRefusal(
              CudaStatus.LAUNCH_FAILED,
              "condition: 0x%x (expected: that of a graph that is there)".formatted(handle)));
    }
    condition.value(value);
  }

  void setByte(long address, byte value) {
    one.set(ValueLayout.JAVA_BYTE, 0, value);
    write(address, one, Touch.WRITE);
  }

  void setInt(long address, int value, Touch touch) {
    four.set(ValueLayout.JAVA_INT, 0, value);
    write(address, four, touch);
  }

  void setLong(long address, long value, Touch touch) {
    eight.set(ValueLayout.JAVA_LONG, 0, value);
    write(address, eight, touch);
  }

  void getBytes(long address, MemorySegment target) {
    for (long done = 0; done < target.byteSize(); ) {
      SimBlock block = locate(address + done, 1, false);
      long count = Math.min(target.byteSize() - done, lastTo - address - done);
      read(block, address + done, target.asSlice(done, count), Touch.READ);
      done += count;
    }
  }

  void setBytes(long address, MemorySegment source) {
    for (long done = 0; done < source.byteSize(); ) {
      SimBlock block = locate(address + done, 1, true);
      long count = Math.min(source.byteSize() - done, lastTo - address - done);
      write(block, address + done, source.asSlice(done, count), Touch.WRITE);
      done += count;
    }
  }

  private void read(long address, MemorySegment target, Touch touch) {
    read(block(address, target.byteSize(), false), address, target, touch);
  }

  private void read(SimBlock block, long address, MemorySegment target, Touch touch) {
    note(address, target, touch);
    if (block.isLost()) {
      target.fill(PagedBytes.UNTOUCHED);
    } else {
      block.read(address - block.address, target);
    }
  }

  private void note(long address, MemorySegment value, Touch touch) {
    if (watcher != null) {
      long end = address + value.byteSize();
      for (long at = address; at < end; ) {
        long count = (at & 7) == 0 && end - at >= 8 ? 8 : (at & 3) == 0 && end - at >= 4 ? 4 : 1;
        watcher.touched(at, (int) count, touch);
        at += count;
      }
    }
  }

  private void write(long address, MemorySegment source, Touch touch) {
    write(block(address, source.byteSize(), true), address, source, touch);
  }

  private void write(SimBlock block, long address, MemorySegment source, Touch touch) {
    note(address, source, touch);
    if (!block.isLost()) {
      block.write(address - block.address, source);
    }
  }

  private SimBlock block(long address, long bytes, boolean writes) {
    if (address % bytes != 0) {
      throw refusals.apply(
          new SimRefusal(
              CudaStatus.MISALIGNED_ADDRESS,
              "0x%x (expected: a multiple of %d)".formatted(address, bytes)));
    }
    return locate(address, bytes, writes);
  }

  private SimBlock locate(long address, long bytes, boolean writes) {
    SimBlock block = last;
    boolean isKnown = address >= lastFrom && address <= lastTo - bytes;
    if (block == null || !isKnown || (writes && !isLastWritable)) {
      try {
        block = find(address, bytes, writes);
      } catch (SimRefusal e) {
        throw refusals.apply(e);
      }
      last = block;
      isLastWritable = writes;
    }
    return block;
  }

  private static boolean holds(SimBlock block, long address, long bytes) {
    long offset = address - block.address;
    return offset >= 0 && offset <= block.byteSize - bytes;
  }

  private SimBlock find(long address, long bytes, boolean writes) {
    SimPlace place = machine.find(address);
    if (place == null || !holds(place.block(), address, bytes)) {
      throw new SimRefusal(
          CudaStatus.ILLEGAL_ADDRESS,
          "%d bytes at 0x%x are not in %s"
              .formatted(
                  bytes,
                  address,
                  place != null
                      ? place.block()
                      : machine.wasFreed(address) ? "live memory: it was freed" : "any memory"));
    }
    SimBlock block = place.block();
    block.checkLive();
    try {
      PoolAccess.checkKernel(device, place, bytes, writes);
    } catch (SimRefusal e) { // which calls report at once, and kernels when they get there
      throw new SimRefusal(CudaStatus.ILLEGAL_ADDRESS, e.text());
    }
    lastFrom = block.address;
    lastTo = block.address + block.byteSize;
    if (block instanceof VirtualBlock mapped) {
      MappedPiece piece = mapped.piece(place.offset());
      lastFrom = piece.address;
      lastTo = piece.end();
    }
    if (block instanceof HostBlock host && host.kind == HostBlock.Kind.MANAGED) {
      long page = place.offset() / DevicePages.PAGE * DevicePages.PAGE;
      host.pages.bring(machine.memory(device).pages, page, bytes);
      lastFrom = block.address + page;
      lastTo = Math.min(lastTo, lastFrom + DevicePages.PAGE);
    }
    return block;
  }
}
