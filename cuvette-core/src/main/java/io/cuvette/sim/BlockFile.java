package io.cuvette.sim;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;

/** A file of which ranges hold the bytes of blocks. Guarded by the driver's lock. */
interface BlockFile {

  /** All that is ever written with it is zero. */
  ByteBuffer ZEROS = ByteBuffer.allocateDirect(1 << 18).asReadOnlyBuffer();

  /** A range once more, for as long as the arena lives. */
  MemorySegment map(long offset, long bytes, Arena arena);

  /** Gives a range back; nothing may be mapped there any more. */
  void release(FileExtents.Extent extent);

  /**
   * Writes zeros into a range, so that the system has to provide the memory now. A page that it
   * promised and cannot provide when it is touched ends the process.
   *
   * @throws IOException if there is no room
   */
  static void provide(FileChannel file, long offset, long bytes) throws IOException {
    ByteBuffer zeros = ZEROS.duplicate();
    for (long done = 0; done < bytes; ) {
      zeros.clear().limit((int) Math.min(zeros.capacity(), bytes - done));
      done += file.write(zeros, offset + done);
    }
  }
}
