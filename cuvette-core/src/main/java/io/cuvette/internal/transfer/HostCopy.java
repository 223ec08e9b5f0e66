package io.cuvette.internal.transfer;

import io.cuvette.internal.block.BlockReports;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.hostcopy.CopyThreads;
import io.cuvette.internal.hostcopy.HostParts;
import io.cuvette.internal.hostcopy.PartialCopy;
import io.cuvette.internal.hostcopy.Pieces;
import java.lang.foreign.MemorySegment;

/**
 * Copies between memory of the host and a buffer that the host can access, in pieces, so that
 * closing the buffer waits for some of them alone. Stateless.
 */
final class HostCopy {
  private HostCopy() {}

  static void run(Memory buffer, MemorySegment memory, HostParts host, boolean in) {
    BlockReports.hostAccess(buffer, host, in);
    BlockReports.hostCopy(buffer, host.window(0, host.byteSize()), host.byteSize(), in);
    boolean helped =
        host.byteSize() >= CopyThreads.HELPED_BYTES
            && host.isForAllThreads()
            && HostParts.of("buffer", memory, !in).isForAllThreads();
    long bytes = host.byteSize();
    int copied;
    try {
      copied =
          Pieces.run(
              piece -> copy(buffer, memory, host, piece, in),
              host.pieces(),
              helped ? CopyThreads.MOST : 0,
              bytes > StagedCopy.PART_BYTES);
    } catch (RuntimeException | Error e) {
      throw PartialCopy.explained(e, in, bytes, bytes, 0, bytes);
    }
    if (copied < host.pieces()) {
      long written = (long) copied * HostParts.PIECE_BYTES;
      throw PartialCopy.explained(PartialCopy.interrupted(), in, bytes, bytes, written, 0);
    }
  }

  private static void copy(
      Memory buffer, MemorySegment memory, HostParts host, int piece, boolean in) {
    buffer.hold();
    try {
      host.copy(piece, memory, (long) piece * HostParts.PIECE_BYTES, in);
    } finally {
      buffer.unhold();
    }
  }
}
