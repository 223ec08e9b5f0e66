package io.cuvette.sim.internal.calls;

import io.cuvette.driver.BoxCopy;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.GraphNodeType;
import io.cuvette.driver.StreamHandle;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.graph.NodeTask;
import io.cuvette.sim.internal.graph.NodeWork;
import io.cuvette.sim.internal.machine.SimCosts;
import io.cuvette.sim.internal.machine.SimMachine;
import io.cuvette.sim.internal.memory.SimPlace;
import io.cuvette.sim.internal.pool.PoolAccess;
import io.cuvette.sim.internal.queue.SimOp;
import io.cuvette.sim.internal.queue.SimStream;
import java.util.ArrayList;
import java.util.List;

/** Copies of several rows, or of several ranges, in one call. Guarded by the driver's lock. */
final class SimBoxes {
  private final SimMachine machine;

  SimBoxes(SimMachine machine) {
    this.machine = machine;
  }

  void copy(SimStream stream, BoxCopy copy) {
    check("width", copy.width());
    check("height", copy.height());
    check("depth", copy.depth());
    if (copy.byteSize() == 0) {
      return;
    }
    checkSide("target", copy.target(), copy);
    checkSide("source", copy.source(), copy);
    SimPlace to = machine.place("target", copy.target().address(), copy.span(copy.target()));
    SimPlace from = machine.place("source", copy.source().address(), copy.span(copy.source()));
    PoolAccess.check(stream.device, to, from, copy.byteSize());
    if (copy.commonBytes() > 0) {
      throw SimRefusal.invalidValue(
          "%d bytes are in rows of the source and of the target (expected: none)"
              .formatted(copy.commonBytes()));
    }
    SimOp op =
        machine.work(
            stream,
            () -> copyRows(to, from, copy),
            SimCosts.copy(to.block(), from.block(), copy.byteSize()),
            to.block(),
            from.block());
    machine.submit(
        op,
        () ->
            new NodeWork(
                op.stream.device,
                new GraphNodeParams.Other(GraphNodeType.MEMCPY),
                new NodeTask.Work(op),
                List.of(SimTransferCalls.touched(to), SimTransferCalls.touched(from))));
  }

  private static void copyRows(SimPlace to, SimPlace from, BoxCopy copy) {
    for (long row = 0; row < copy.allRows(); row++) {
      at(to, copy.target(), row, copy).copyFrom(at(from, copy.source(), row, copy), copy.width());
    }
  }

  private static SimPlace at(SimPlace start, BoxCopy.Side side, long row, BoxCopy copy) {
    long skipped = side.addressOf(row, copy.height()) - side.address();
    return new SimPlace(start.block(), start.offset() + skipped);
  }

  private static void check(String name, long value) {
    if (value < 0) {
      throw SimRefusal.invalidValue("%s: %d (expected: >= 0)".formatted(name, value));
    }
  }

  private static void checkSide(String name, BoxCopy.Side side, BoxCopy copy) {
    if (side.pitch() < copy.width() || side.pitch() > BoxCopy.MAX_PITCH) {
      throw SimRefusal.invalidValue(
          "%s: pitch %d (expected: %d to %d)"
              .formatted(name, side.pitch(), copy.width(), BoxCopy.MAX_PITCH));
    }
    if (side.rows() < copy.height()) {
      throw SimRefusal.invalidValue(
          "%s: %d rows from layer to layer (expected: >= %d)"
              .formatted(name, side.rows(), copy.height()));
    }
  }

  /** All copies are checked before the first is queued. */
  void batch(SimStream stream, long handle, long[] targets, long[] sources, long[] bytes) {
    if (StreamHandle.isLegacy(handle)) {
      throw SimRefusal.invalidValue("stream: the null stream (expected: another)");
    }
    if (stream.capture != null) {
      throw new SimRefusal( // the capture goes on
          CudaStatus.STREAM_CAPTURE_UNSUPPORTED, "a batch of copies in a stream that captures");
    }
    if (targets.length == 0 || sources.length != targets.length || bytes.length != targets.length) {
      throw SimRefusal.invalidValue(
          "%d targets, %d sources, %d sizes (expected: as many of each, >= 1)"
              .formatted(targets.length, sources.length, bytes.length));
    }
    List<SimOp> copies = new ArrayList<>();
    for (int i = 0; i < targets.length; i++) {
      copies.add(single(stream, i, targets[i], sources[i], bytes[i]));
    }
    copies.forEach(machine::queue);
  }

  private SimOp single(SimStream stream, int index, long target, long source, long bytes) {
    if (bytes <= 0) {
      throw SimRefusal.invalidValue("bytes[%d]: %d (expected: > 0)".formatted(index, bytes));
    }
    SimPlace to = machine.place("target[%d]".formatted(index), target, bytes);
    SimPlace from = machine.place("source[%d]".formatted(index), source, bytes);
    PoolAccess.check(stream.device, to, from, bytes);
    to.checkApart(from, bytes);
    long cost = SimCosts.copy(to.block(), from.block(), bytes);
    return machine.work(stream, () -> to.copyFrom(from, bytes), cost, to.block(), from.block());
  }
}
