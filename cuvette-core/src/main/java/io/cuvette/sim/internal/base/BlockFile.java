package io.cuvette.sim.internal.base;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;

/** A file of which ranges hold the bytes of blocks. Guarded by the driver's lock. */
public interface BlockFile {

  /**
   * The content of memory that was not written yet: not zeros, as a driver returns old contents
   * too.
   */
  ByteBuffer UNTOUCHED = untouched();

  private static ByteBuffer untouched() {
    ByteBuffer bytes = ByteBuffer.allocateDirect(1 << 18);
    MemorySegment.ofBuffer(bytes).fill(PagedBytes.UNTOUCHED);
    return bytes.asReadOnlyBuffer();
  }

  /** A range once more, for as long as the arena lives. */
  MemorySegment map(long offset, long bytes, Arena arena);

  /** Gives a range back; nothing may be mapped there any more. */
  void release(Extent extent);

  /**
   * Writes into a range, so that the system has to provide the memory now. A page that it promised
   * and cannot provide when it is touched ends the process.
   *
   * @throws IOException if there is no room
   */
  static void provide(FileChannel file, long offset, long bytes) throws IOException {
    ByteBuffer untouched = UNTOUCHED.duplicate();
    for (long done = 0; done < bytes; ) {
      untouched.clear().limit((int) Math.min(untouched.capacity(), bytes - done));
      done += file.write(untouched, offset + done);
    }
  }
}
