package io.cuvette.sim.internal.calls;

import io.cuvette.driver.BoxCopy;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.TransferCalls;
import io.cuvette.sim.internal.base.Addresses;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.graph.NodeTask;
import io.cuvette.sim.internal.graph.NodeWork;
import io.cuvette.sim.internal.machine.SimCosts;
import io.cuvette.sim.internal.machine.SimMachine;
import io.cuvette.sim.internal.memory.DevicePages;
import io.cuvette.sim.internal.memory.HostBlock;
import io.cuvette.sim.internal.memory.PageableCopy;
import io.cuvette.sim.internal.memory.SimPlace;
import io.cuvette.sim.internal.pool.PoolAccess;
import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.queue.SimOp;
import io.cuvette.sim.internal.queue.SimStream;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The calls that move bytes. Thread-safe. */
public final class SimTransferCalls implements TransferCalls {
  // The driver copies this much of pageable memory at once, so that the caller may change it.
  private static final long STAGED_BYTES = 64 << 10;

  private final SimMachine machine;
  private final SimBoxes boxes;

  public SimTransferCalls(SimMachine machine) {
    this.machine = machine;
    this.boxes = new SimBoxes(machine);
  }

  @Override
  public void memcpyAsync(int device, long target, long source, long bytes, long stream) {
    machine.run(
        () -> {
          SimStream queue = machine.stream(machine.working(device), stream);
          PoolAccess.check(queue.device, machine.find(target), machine.find(source), bytes);
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
    SimOp op = copy(stream, to, from, bytes);
    machine.submit(op, () -> copyNode(op, to, from, bytes));
  }

  private SimOp copy(SimStream stream, SimPlace to, SimPlace from, long bytes) {
    to.checkApart(from, bytes);
    long cost = SimCosts.copy(to.block(), from.block(), bytes);
    return machine.work(stream, () -> to.copyFrom(from, bytes), cost, to.block(), from.block());
  }

  private static NodeWork copyNode(SimOp op, SimPlace to, SimPlace from, long bytes) {
    return new NodeWork(
        op.stream.device,
        new GraphNodeParams.Copy(to.address(), from.address(), bytes),
        new NodeTask.Work(op),
        List.of(touched(to), touched(from)));
  }

  /** The device of a place; -1 for the host. */
  static int touched(SimPlace place) {
    return place.isOnDevice() ? place.block().device.index : -1;
  }

  /** A node that copies, whose operation is for a stream that never runs. */
  NodeWork node(SimStream stream, GraphNodeParams.Copy params) {
    checkPositive("bytes", params.bytes());
    PoolAccess.check(
        stream.device,
        machine.find(params.target()),
        machine.find(params.source()),
        params.bytes());
    SimPlace to = machine.place("target", params.target(), params.bytes());
    SimPlace from = machine.place("source", params.source(), params.bytes());
    return copyNode(copy(stream, to, from, params.bytes()), to, from, params.bytes());
  }

  /** A node that fills, likewise. */
  NodeWork node(SimStream stream, GraphNodeParams.Fill params) {
    int unit = params.elementBytes();
    checkPositive("count", params.count());
    if (unit != Byte.BYTES && unit != Short.BYTES && unit != Integer.BYTES) {
      throw SimRefusal.invalidValue("elementBytes: %d (expected: 1, 2 or 4)".formatted(unit));
    }
    return fillNode(fill(stream, params), params);
  }

  private static void checkPositive(String name, long value) {
    if (value <= 0) {
      throw SimRefusal.invalidValue("%s: %d (expected: > 0)".formatted(name, value));
    }
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
  public void memcpy3DAsync(int device, BoxCopy copy, long stream) {
    machine.run(
        () -> boxes.copy(machine.stream(machine.working(device), stream), copy),
        () -> "cuMemcpy3DAsync(%s, stream=0x%x, device=%d)".formatted(copy, stream, device));
  }

  @Override
  public void memcpyBatchAsync(
      int device, long[] targets, long[] sources, long[] bytes, long stream) {
    machine.run(
        () ->
            boxes.batch(
                machine.stream(machine.working(device), stream), stream, targets, sources, bytes),
        () ->
            "cuMemcpyBatchAsync(count=%d, stream=0x%x, device=%d)"
                .formatted(targets.length, stream, device));
  }

  @Override
  public void memcpyHtoDAsync(int device, long target, MemorySegment source, long stream) {
    machine.run(
        () -> {
          SimStream queue = machine.stream(machine.working(device), stream);
          long bytes = source.byteSize();
          if (bytes > 0) {
            SimPlace to = machine.place("target", target, bytes);
            PoolAccess.check(queue.device, to, null, bytes);
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
            PoolAccess.check(queue.device, null, from, bytes);
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
    fill(device, new GraphNodeParams.Fill(target, value, Byte.BYTES, count), stream);
  }

  @Override
  public void memsetD16Async(int device, long target, short value, long count, long stream) {
    fill(device, new GraphNodeParams.Fill(target, value, Short.BYTES, count), stream);
  }

  @Override
  public void memsetD32Async(int device, long target, int value, long count, long stream) {
    fill(device, new GraphNodeParams.Fill(target, value, Integer.BYTES, count), stream);
  }

  private void fill(int device, GraphNodeParams.Fill params, long stream) {
    machine.run(
        () -> {
          SimStream queue = machine.stream(machine.working(device), stream);
          checkNotNegative(params.count());
          if (params.count() == 0) {
            checkAligned(params);
          } else {
            SimOp op = fill(queue, params);
            machine.submit(op, () -> fillNode(op, params));
          }
        },
        () ->
            "cuMemsetD%dAsync(target=0x%x, value=%d, count=%d, stream=0x%x)"
                .formatted(
                    params.elementBytes() * Byte.SIZE,
                    params.target(),
                    params.value(),
                    params.count(),
                    stream));
  }

  private static void checkAligned(GraphNodeParams.Fill params) {
    if (params.target() % params.elementBytes() != 0) {
      throw SimRefusal.invalidValue(
          "target: 0x%x (expected: a multiple of %d)"
              .formatted(params.target(), params.elementBytes()));
    }
  }

  private SimOp fill(SimStream stream, GraphNodeParams.Fill params) {
    int unit = params.elementBytes();
    if (params.count() > Long.MAX_VALUE / unit) {
      throw SimRefusal.invalidValue("count: " + params.count() + " units of " + unit + " bytes");
    }
    checkAligned(params);
    long bytes = params.count() * unit;
    SimPlace place = machine.place("target", params.target(), bytes);
    PoolAccess.check(stream.device, place, bytes);
    DevicePages pages = machine.memory(stream.device).pages;
    int pattern = pattern(params.value(), unit);
    return machine.work(
        stream, () -> place.fill(bytes, pattern, pages), SimCosts.fill(bytes), place.block());
  }

  /** Four bytes of the low bytes of a value, again and again. */
  private static int pattern(int value, int unit) {
    return switch (unit) {
      case Byte.BYTES -> (value & 0xFF) * 0x01010101;
      case Short.BYTES -> (value & 0xFFFF) * 0x00010001;
      default -> value;
    };
  }

  private NodeWork fillNode(SimOp op, GraphNodeParams.Fill params) {
    SimPlace place = machine.place("target", params.target(), 0);
    return new NodeWork(op.stream.device, params, new NodeTask.Work(op), List.of(touched(place)));
  }

  private static void checkNotNegative(long bytes) {
    if (bytes < 0) {
      throw SimRefusal.invalidValue("bytes: %d (expected: >= 0)".formatted(bytes));
    }
  }
}
