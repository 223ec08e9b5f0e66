package io.cuvette.testkit.whole;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.ManagedBuffer;
import io.cuvette.PinnedBuffer;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;

/**
 * Takes host memory of simulated devices until there is none, and touches all it got. Prints what
 * went wrong, or {@link #FINE}.
 */
final class FullDiskProgram {
  static final String FINE = "fine";
  private static final int MIB = 1 << 20;
  private static final int MOST = 64;

  private FullDiskProgram() {}

  public static void main(String[] arguments) throws IOException {
    System.setProperty("cuvette.sim.dir", arguments[0]);
    try (Cuda one = Cuda.open(CudaOptions.simulated());
        Cuda other = Cuda.open(CudaOptions.simulated())) {
      try (PinnedBuffer early = one.allocatePinned(MIB)) {
        fill(Path.of(arguments[0], "filler"));
        touch(early.segment()); // was reserved when there was room
      }
      Files.delete(Path.of(arguments[0], "filler"));
      List<Buffer> buffers = new ArrayList<>();
      untilFull(one, other, buffers);
      buffers.forEach(FullDiskProgram::touch);
      buffers.removeFirst().close();
      one.defaultPinnedMemoryPool().freeAllBlocks();
      buffers.add(one.allocatePinned(MIB)); // what was given back can be had again
      buffers.forEach(FullDiskProgram::touch);
      buffers.forEach(Buffer::close);
    }
    System.out.println(FINE);
  }

  private static void untilFull(Cuda one, Cuda other, List<Buffer> buffers) {
    try {
      while (buffers.size() < MOST) {
        buffers.add(one.allocatePinned(MIB));
        buffers.add(other.allocateManaged(MIB));
      }
      throw new AssertionError("%d MiB on a small disk".formatted(buffers.size()));
    } catch (CudaException e) {
      if (e.status() != CudaStatus.OUT_OF_MEMORY || buffers.isEmpty()) {
        throw e;
      }
    }
  }

  private static void touch(Buffer buffer) {
    touch(
        buffer instanceof PinnedBuffer pinned
            ? pinned.segment()
            : ((ManagedBuffer) buffer).segment());
  }

  private static void touch(MemorySegment segment) {
    segment.fill((byte) 1);
    segment.asByteBuffer().asLongBuffer().put(0, 7);
  }

  /** Leaves no room. */
  private static void fill(Path file) throws IOException {
    byte[] zeros = new byte[MIB];
    try (FileChannel channel =
        FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
      for (int i = 0; i < MOST; i++) {
        channel.write(java.nio.ByteBuffer.wrap(zeros));
      }
    } catch (IOException e) {
      return; // full
    }
    throw new AssertionError("%d MiB on a small disk".formatted(MOST));
  }
}
