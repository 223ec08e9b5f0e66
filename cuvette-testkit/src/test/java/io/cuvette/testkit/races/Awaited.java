package io.cuvette.testkit.races;

import java.util.regex.Pattern;

/**
 * Cells that do not pass yet, and what they wait for; {@code -Dcuvette.races.all} runs them too.
 */
final class Awaited {
  private static final Pattern CELLS =
      Pattern.compile(
          // A closed caching pool keeps blocks that a stream used last until its Cuda ends.
          ".*Stream\\), (pooled|pinned) beside the end of: pool"
              // The books of a pool are torn down after its chunks.
              + "|MemoryPool\\.assertConsistent\\(\\) beside the end of: Cuda"
              // A block whose stream was closed within the allocation stays until the Cuda ends.
              + "|(Managed|Pinned)MemoryResource\\.allocate.*CudaStream\\) beside the end of:"
              + " stream");

  private Awaited() {}

  static boolean is(Cell cell) {
    return !Boolean.getBoolean("cuvette.races.all") && CELLS.matcher(cell.toString()).matches();
  }
}
