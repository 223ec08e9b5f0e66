package io.cuvette.internal.box;

import io.cuvette.driver.StreamHandle;
import io.cuvette.internal.block.Block;
import io.cuvette.internal.block.BlockReports;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.hostcopy.PartialCopy;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.transfer.Transfers;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * Many copies between buffers at once: checks all of them first, then one call of the driver.
 * Stateless.
 */
public final class BatchTransfers {

  /** One of the copies, and its place among them. */
  private record Copy(int index, Memory target, Memory source) {
    long end() {
      return target.address() + source.byteSize();
    }
  }

  private BatchTransfers() {}

  /** Copies each source to the start of its target and waits. */
  public static void copy(List<Memory> targets, List<Memory> sources, OpenStream stream) {
    Transfers.checkCanWait(stream, "copy");
    copyAsync(targets, sources, stream);
    if (sources.stream().anyMatch(source -> source.byteSize() > 0)) {
      stream.awaitWork();
    }
  }

  /** Copies each source to the start of its target in order of a stream. */
  public static void copyAsync(List<Memory> targets, List<Memory> sources, OpenStream stream) {
    List<Copy> copies = new ArrayList<>();
    for (int i = 0; i < targets.size(); i++) {
      Memory target = targets.get(i);
      Memory source = sources.get(i);
      target.checkOpen();
      source.checkOpen();
      Transfers.checkFits(target, source.byteSize());
      target.checkWritable();
      Transfers.checkStream(target, source, stream);
      if (source.byteSize() > 0) {
        copies.add(new Copy(i, target, source));
      }
    }
    checkApart(copies);
    boolean takesBatch = !StreamHandle.isLegacy(stream.state.handle) && !stream.isCapturing();
    int done = 0;
    while (done < copies.size()) {
      int end = done + 1;
      if (takesBatch && isForBatch(copies.get(done), stream)) {
        while (end < copies.size() && isForBatch(copies.get(end), stream)) {
          end++;
        }
      }
      queue(copies, done, end, stream);
      done = end;
    }
  }

  /** The process does not survive an address in a batch that the driver does not know. */
  private static boolean isForBatch(Copy copy, OpenStream stream) {
    return copy.target.block().depth() != BlockReports.FOREIGN
        && copy.source.block().depth() != BlockReports.FOREIGN
        && Transfers.isDirect(copy.target, copy.source, stream);
  }

  /** Queues some of the copies; those before are queued, so that it is the first that are. */
  private static void queue(List<Copy> copies, int from, int end, OpenStream stream) {
    List<Copy> some = copies.subList(from, end);
    List<Memory> held = new ArrayList<>(2 * some.size());
    int unsure = 0;
    try {
      if (some.size() == 1) {
        Copy copy = some.getFirst();
        Memory part = copy.target.part(0, copy.source.byteSize());
        Transfers.copyAsync(part, copy.source, stream);
      } else {
        hold(some, held);
        unsure = some.size();
        queue(some, held.stream().map(Memory::block).distinct().toList(), stream);
      }
    } catch (RuntimeException | Error e) {
      String others = unsure == 0 ? "no other" : "of the next %d some may be".formatted(unsure);
      throw PartialCopy.explained(
          e,
          "batch of %d copies: those before targets[%d] are queued, %s"
              .formatted(copies.size(), some.getFirst().index, others));
    } finally {
      held.forEach(Memory::unhold);
    }
  }

  /** Until the copies are queued. */
  private static void hold(List<Copy> copies, List<Memory> held) {
    for (Copy copy : copies) {
      copy.target.hold();
      held.add(copy.target);
      copy.source.hold();
      held.add(copy.source);
    }
  }

  private static void queue(List<Copy> copies, List<Block> used, OpenStream stream) {
    long[] targets = copies.stream().mapToLong(copy -> copy.target.address()).toArray();
    long[] sources = copies.stream().mapToLong(copy -> copy.source.address()).toArray();
    long[] bytes = copies.stream().mapToLong(copy -> copy.source.byteSize()).toArray();
    Transfers.queueHeld(
        stream,
        used,
        driver ->
            driver
                .transfers()
                .memcpyBatchAsync(stream.on().id(), targets, sources, bytes, stream.state.handle));
  }

  /** The copies are in no order: what one writes no other may read or write. */
  private static void checkApart(List<Copy> copies) {
    List<Copy> byTarget = new ArrayList<>(copies);
    byTarget.sort(Comparator.comparingLong(copy -> copy.target.address()));
    for (int i = 1; i < byTarget.size(); i++) {
      Copy before = byTarget.get(i - 1);
      Copy after = byTarget.get(i);
      if (before.end() > after.target.address()) {
        throw refused("targets", before, "target", after, before.end() - after.target.address());
      }
    }
    for (Copy copy : copies) {
      checkUnwritten(copy, byTarget);
    }
  }

  private static void checkUnwritten(Copy reader, List<Copy> byTarget) {
    long begin = reader.source.address();
    long end = begin + reader.source.byteSize();
    int low = 0; // of the first target that ends behind the begin
    int high = byTarget.size();
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (byTarget.get(middle).end() > begin) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    if (low < byTarget.size() && byTarget.get(low).target.address() < end) {
      Copy writer = byTarget.get(low);
      long shared = Math.min(end, writer.end()) - Math.max(begin, writer.target.address());
      throw refused("targets", writer, "source", reader, shared);
    }
  }

  private static IllegalArgumentException refused(
      String firsts, Copy first, String what, Copy second, long shared) {
    return new IllegalArgumentException(
        "%s[%d] and %ss[%d]: %d bytes are in both (expected: none, for the copies are in no order)"
            .formatted(firsts, first.index, what, second.index, shared));
  }
}
