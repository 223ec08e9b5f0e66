package io.cuvette.sim;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** A file of which ranges hold the bytes of blocks. Guarded by the driver's lock. */
interface BlockFile {

  /** A range once more, for as long as the arena lives. */
  MemorySegment map(long offset, long bytes, Arena arena);

  /** Gives a range back; nothing may be mapped there any more. */
  void release(FileExtents.Extent extent);
}
