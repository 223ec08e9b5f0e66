package io.cuvette.sim;

import io.cuvette.driver.CudaStatus;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * The host memory of a simulated driver: a sparse temporary file of which ranges are mapped, any
 * number of times. It is in /dev/shm if there is room, else in the directory for temporary files;
 * {@code -Dcuvette.sim.dir} names another. It has no name once it is open where the system allows
 * that, so nothing is left behind. Guarded by the driver's lock.
 */
final class HostFile implements BlockFile {
  private static final long ENOUGH = 1L << 30;

  private final FileExtents extents = new FileExtents();
  private @Nullable FileChannel channel;
  private @Nullable Path directory;
  private @Nullable FileStore store;
  private long usableAtStart;

  /** A range of the file that holds zeros. */
  FileExtents.Extent reserve(long bytes) {
    try {
      return FileCall.uninterrupted(() -> zeroed(bytes));
    } catch (IOException e) {
      throw failed(e);
    }
  }

  private FileExtents.Extent zeroed(long bytes) throws IOException {
    FileChannel file = open();
    long usable = usable();
    if (bytes > usable || extents.reservedBytes() > usableAtStart - bytes) {
      throw outOfMemory(bytes, Math.min(usable, usableAtStart - extents.reservedBytes()));
    }
    FileExtents.Extent extent = extents.reserve(bytes);
    try {
      zero(file, extent);
    } catch (IOException e) {
      extents.release(extent);
      throw e;
    }
    return extent;
  }

  /** Gives a range back; nothing may be mapped there any more. */
  @Override
  public void release(FileExtents.Extent extent) {
    long end = extents.release(extent);
    try {
      FileCall.<@Nullable Void>uninterrupted(() -> {
        FileChannel file = open();
        if (file.size() > end) {
          file.truncate(end);
        }
        return null;
      });
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  public MemorySegment map(long offset, long bytes, Arena arena) {
    try {
      return FileCall.uninterrupted(
          () -> open().map(FileChannel.MapMode.READ_WRITE, offset, bytes, arena));
    } catch (IOException e) {
      throw e.getCause() instanceof OutOfMemoryError ? outOfMemory(bytes, 0) : failed(e);
    }
  }

  /** The length of the file; the sparse parts of it too. */
  long byteSize() throws IOException {
    return channel == null ? 0 : channel.size();
  }

  void close() {
    try {
      if (channel != null) {
        channel.close();
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * Zeros what is inside the file: it was used before. What is behind its end is zero by itself.
   */
  private static void zero(FileChannel file, FileExtents.Extent extent) throws IOException {
    long bytes = Math.min(extent.byteSize(), file.size() - extent.offset());
    if (bytes <= 0) {
      return;
    }
    try (Arena arena = Arena.ofConfined()) {
      file.map(FileChannel.MapMode.READ_WRITE, extent.offset(), bytes, arena).fill((byte) 0);
    }
  }

  private FileChannel open() throws IOException {
    if (channel == null) {
      directory = directory();
      store = Files.getFileStore(directory);
      channel =
          FileChannel.open(
              directory.resolve("cuvette-sim-" + UUID.randomUUID()),
              StandardOpenOption.CREATE_NEW,
              StandardOpenOption.READ,
              StandardOpenOption.WRITE,
              StandardOpenOption.SPARSE,
              StandardOpenOption.DELETE_ON_CLOSE);
    }
    if (extents.reservedBytes() == 0) {
      usableAtStart = usable();
    }
    return channel;
  }

  private long usable() throws IOException {
    return store == null ? 0 : store.getUsableSpace();
  }

  private static Path directory() {
    String wanted = System.getProperty("cuvette.sim.dir");
    if (wanted != null) {
      return Path.of(wanted);
    }
    Path temporary = Path.of(System.getProperty("java.io.tmpdir"));
    return List.of(Path.of("/dev/shm"), temporary).stream()
        .filter(HostFile::hasRoom)
        .findFirst()
        .orElse(temporary);
  }

  private static boolean hasRoom(Path directory) {
    try {
      return Files.isWritable(directory)
          && Files.getFileStore(directory).getUsableSpace() >= ENOUGH;
    } catch (IOException e) {
      return false;
    }
  }

  private SimRefusal outOfMemory(long bytes, long usable) {
    return new SimRefusal(
        CudaStatus.OUT_OF_MEMORY,
        "requested=%d, free=%d bytes of simulated host memory in %s (-Dcuvette.sim.dir names another)"
            .formatted(bytes, Math.max(0, usable), directory));
  }

  private SimRefusal failed(IOException e) {
    return new SimRefusal(
        CudaStatus.OPERATING_SYSTEM,
        "the file of simulated host memory in %s (-Dcuvette.sim.dir names another directory): %s"
            .formatted(directory, e));
  }
}
