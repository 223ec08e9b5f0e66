package io.cuvette.sim.internal.calls;

import io.cuvette.driver.TransferCalls;
import io.cuvette.sim.internal.base.Addresses;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.machine.SimCosts;
import io.cuvette.sim.internal.machine.SimMachine;
import io.cuvette.sim.internal.memory.DevicePages;
import io.cuvette.sim.internal.memory.HostBlock;
import io.cuvette.sim.internal.memory.PageableCopy;
import io.cuvette.sim.internal.memory.SimPlace;
import io.cuvette.sim.internal.pool.PoolAccess;
import io.cuvette.sim.internal.schedule.SimDevice;
import io.cuvette.sim.internal.schedule.SimOp;
import io.cuvette.sim.internal.schedule.SimStream;
import java.lang.foreign.MemorySegment;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** The calls that move bytes. Thread-safe. */
public final class SimTransferCalls implements TransferCalls {
  // The driver copies this much of pageable memory at once, so that the caller may change it.
  private static final long STAGED_BYTES = 64 << 10;

  private final SimMachine machine;

  public SimTransferCalls(SimMachine machine) {
    this.machine = machine;
  }

  @Override
  public void memcpyAsync(int device, long target, long source, long bytes, long stream) {
    machine.run(
        () -> {
          SimStream queue = machine.stream(machine.working(device), stream);
          PoolAccess.check(queue.device, machine.find(target), machine.find(source));
          copy(queue, target, source, bytes);
        },
        () ->
            "cuMemcpyAsync(target=0x%x, source=0x%x, bytes=%d, stream=0x%x, device=%d)"
                .formatted(target, source, bytes, stream, device));
  }

  private void copy(SimStream stream, long target, long source, long bytes) {
    checkNotNegative(bytes);
    if (bytes > 0) {
      SimPlace to = machine.place("target", target, bytes);
      SimPlace from = machine.place("source", source, bytes);
      submit(stream, to, from, bytes);
    }
  }

  private void submit(SimStream stream, SimPlace to, SimPlace from, long bytes) {
    to.checkApart(from, bytes);
    long cost = SimCosts.copy(to.block(), from.block(), bytes);
    machine.submit(stream, () -> to.copyFrom(from, bytes), cost, to.block(), from.block());
  }

  @Override
  public void memcpyPeerAsync(
      int streamDevice,
      long target,
      int targetDevice,
      long source,
      int sourceDevice,
      long bytes,
      long stream) {
    machine.run(
        () -> {
          SimStream queue = machine.stream(machine.working(streamDevice), stream);
          checkOwner("target", target, machine.working(targetDevice));
          checkOwner("source", source, machine.working(sourceDevice));
          copy(queue, target, source, bytes);
        },
        () ->
            "cuMemcpyPeerAsync(target=0x%x on device %d, source=0x%x on device %d, bytes=%d, "
                    .formatted(target, targetDevice, source, sourceDevice, bytes)
                + "stream=0x%x, device=%d)".formatted(stream, streamDevice));
  }

  private void checkOwner(String name, long address, SimDevice device) {
    int owner = Addresses.deviceOf(address);
    if (owner >= 0 && owner != device.index) {
      throw SimRefusal.invalidValue(
          "%s: 0x%x is memory of device %d (expected: of device %d)"
              .formatted(name, address, owner, device.index));
    }
  }

  @Override
  public void memcpyHtoDAsync(int device, long target, MemorySegment source, long stream) {
    machine.run(
        () -> {
          SimStream queue = machine.stream(machine.working(device), stream);
          long bytes = source.byteSize();
          if (bytes > 0) {
            SimPlace to = machine.place("target", target, bytes);
            PoolAccess.check(queue.device, to, null);
            SimPlace from = known(source);
            if (from != null) {
              submit(queue, to, from, bytes);
            } else {
              copyPageable(queue, to, pageable(queue, source), bytes);
            }
          }
        },
        () ->
            "cuMemcpyHtoDAsync(target=0x%x, source=0x%x, bytes=%d, stream=0x%x, device=%d)"
                .formatted(target, source.address(), source.byteSize(), stream, device));
  }

  @Override
  public void memcpyDtoHAsync(int device, MemorySegment target, long source, long stream) {
    machine.run(
        () -> {
          SimStream queue = machine.stream(machine.working(device), stream);
          long bytes = target.byteSize();
          if (target.isReadOnly()) {
            throw SimRefusal.invalidValue("target: a read-only segment");
          }
          if (bytes > 0) {
            SimPlace from = machine.place("source", source, bytes);
            PoolAccess.check(queue.device, null, from);
            SimPlace to = known(target);
            if (to != null) {
              submit(queue, to, from, bytes);
            } else {
              copyPageable(queue, pageable(queue, target), from, bytes);
            }
          }
        },
        () ->
            "cuMemcpyDtoHAsync(target=0x%x, source=0x%x, bytes=%d, stream=0x%x, device=%d)"
                .formatted(target.address(), source, target.byteSize(), stream, device));
  }

  /** Where a segment is in page-locked or managed memory, if it is. */
  private @Nullable SimPlace known(MemorySegment segment) {
    if (!segment.isNative()) {
      throw SimRefusal.invalidValue("heap segment: copy it into page-locked memory first");
    }
    SimPlace place = machine.hostMemory.find(segment.address());
    if (place == null || place.offset() == place.block().byteSize) {
      return null;
    }
    place.checkRoom("segment", segment.byteSize());
    return place;
  }

  private static SimPlace pageable(SimStream stream, MemorySegment segment) {
    return new SimPlace(HostBlock.pageable(stream.device, segment), 0);
  }

  /**
   * As the driver does: small sources are staged, for everything else the call waits for its turn.
   */
  private void copyPageable(SimStream stream, SimPlace to, SimPlace from, long bytes) {
    if (stream.capture != null) {
      submit(stream, to, from, bytes);
    } else if (PageableCopy.isPageable(from.block()) && bytes <= STAGED_BYTES) {
      submit(stream, to, PageableCopy.staged(from, 0, bytes), bytes);
    } else {
      copyOnThisThread(stream, to, from, bytes);
    }
  }

  /**
   * Since only this thread may use the segment. The stream stops for it at its turn. What goes to
   * the device is in flight when the call returns; what comes from there is here.
   */
  private void copyOnThisThread(SimStream stream, SimPlace to, SimPlace from, long bytes) {
    machine.spend(SimCosts.SUBMIT);
    PageableCopy copy = new PageableCopy(to, from, bytes);
    SimOp turn =
        machine.queue(
            SimOp.waitingOutside(stream, copy::isStaged, copy::land, machine.hostNanos())
                .holding(HostBlock.managedOf(to.block(), from.block())));
    machine.scheduler.awaitUntil(() -> turn.isDone() || stream.queue.peek() == turn);
    try {
      stream.device.checkWorks();
      copy.stage();
      stream.nanos += SimCosts.copy(to.block(), from.block(), bytes);
    } finally {
      copy.end();
      machine.scheduler.pass(turn);
    }
    if (!copy.isInFlight()) {
      machine.await(turn);
    }
  }

  @Override
  public void memsetD8Async(int device, long target, byte value, long count, long stream) {
    int pattern = (value & 0xFF) * 0x01010101;
    fill(
        device,
        target,
        pattern,
        count,
        Byte.BYTES,
        stream,
        () -> call("cuMemsetD8Async", target, value, count, stream));
  }

  @Override
  public void memsetD16Async(int device, long target, short value, long count, long stream) {
    int pattern = (value & 0xFFFF) * 0x00010001;
    fill(
        device,
        target,
        pattern,
        count,
        Short.BYTES,
        stream,
        () -> call("cuMemsetD16Async", target, value, count, stream));
  }

  @Override
  public void memsetD32Async(int device, long target, int value, long count, long stream) {
    fill(
        device,
        target,
        value,
        count,
        Integer.BYTES,
        stream,
        () -> call("cuMemsetD32Async", target, value, count, stream));
  }

  private static String call(String name, long target, int value, long count, long stream) {
    return "%s(target=0x%x, value=%d, count=%d, stream=0x%x)"
        .formatted(name, target, value, count, stream);
  }

  private void fill(
      int device,
      long target,
      int pattern,
      long count,
      int unit,
      long stream,
      Supplier<String> name) {
    machine.run(
        () -> {
          SimStream queue = machine.stream(machine.working(device), stream);
          checkNotNegative(count);
          if (count > Long.MAX_VALUE / unit) {
            throw SimRefusal.invalidValue("count: " + count + " units of " + unit + " bytes");
          }
          if (target % unit != 0) {
            throw SimRefusal.invalidValue(
                "target: 0x%x (expected: a multiple of %d)".formatted(target, unit));
          }
          if (count > 0) {
            long bytes = count * unit;
            SimPlace place = machine.place("target", target, bytes);
            PoolAccess.check(queue.device, place);
            DevicePages pages = machine.memory(queue.device).pages;
            machine.submit(
                queue,
                () -> place.fill(bytes, pattern, pages),
                SimCosts.fill(bytes),
                place.block());
          }
        },
        name);
  }

  private static void checkNotNegative(long bytes) {
    if (bytes < 0) {
      throw SimRefusal.invalidValue("bytes: %d (expected: >= 0)".formatted(bytes));
    }
  }
}
