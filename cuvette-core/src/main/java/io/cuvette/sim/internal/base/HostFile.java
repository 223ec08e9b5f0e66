package io.cuvette.sim.internal.base;

import io.cuvette.driver.CudaStatus;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import org.jspecify.annotations.Nullable;

/**
 * The host memory of a simulated driver: a temporary file of which ranges are mapped, any number of
 * times. The system provides each page before it is mapped, so that touching it cannot fail.
 * Guarded by the driver's lock.
 */
public final class HostFile implements BlockFile {
  private final FileExtents extents = new FileExtents();
  private @Nullable HostDirectory directory;
  private @Nullable UnnamedFile file;

  /** A range of the file that was not written. */
  public Extent reserve(long bytes) {
    try {
      long room =
          extents.largestFree() < bytes
              ? FileCall.uninterrupted(() -> directory().roomFor(bytes))
              : bytes;
      if (room < bytes) {
        // At once: to fill a directory to its end would hurt others.
        throw outOfMemory(bytes, room + " bytes are free");
      }
      return provided(bytes);
    } catch (IOException e) {
      throw failed(e);
    }
  }

  private Extent provided(long bytes) throws IOException {
    UnnamedFile opened = open();
    Extent extent = extents.reserve(bytes);
    try {
      return FileCall.uninterrupted(() -> {
        BlockFile.provide(opened.channel(), extent.offset(), extent.byteSize());
        return extent;
      });
    } catch (IOException e) {
      release(extent);
      throw outOfMemory(bytes, e.toString());
    }
  }

  /** Gives a range back; nothing may be mapped there any more. */
  @Override
  public void release(Extent extent) {
    long end = extents.release(extent);
    try {
      FileCall.<@Nullable Void>uninterrupted(() -> {
        FileChannel channel = open().channel();
        if (channel.size() > end) {
          channel.truncate(end);
        }
        return null;
      });
    } catch (IOException e) {
      // The memory is free all the same, and the file gets shorter with the next one.
    }
  }

  @Override
  public MemorySegment map(long offset, long bytes, Arena arena) {
    try {
      return FileCall.uninterrupted(
          () -> open().channel().map(FileChannel.MapMode.READ_WRITE, offset, bytes, arena));
    } catch (IOException e) {
      throw e.getCause() instanceof OutOfMemoryError
          ? outOfMemory(bytes, "no more can be mapped")
          : failed(e);
    }
  }

  /** The length of the file. */
  public long byteSize() throws IOException {
    return file == null ? 0 : FileCall.uninterrupted(() -> open().channel().size());
  }

  public void close() {
    try {
      if (file != null) {
        file.close();
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private UnnamedFile open() throws IOException {
    if (file == null) {
      file = UnnamedFile.create(directory().path());
    }
    return file;
  }

  private HostDirectory directory() throws IOException {
    if (directory == null) {
      directory = HostDirectory.choose();
    }
    return directory;
  }

  private SimRefusal outOfMemory(long bytes, String why) {
    return new SimRefusal(
        CudaStatus.OUT_OF_MEMORY,
        "requested=%d bytes of simulated host memory in %s (-Dcuvette.sim.dir names another): %s"
            .formatted(bytes, where(), why));
  }

  private SimRefusal failed(IOException e) {
    return new SimRefusal(
        CudaStatus.OPERATING_SYSTEM,
        "simulated host memory in %s (-Dcuvette.sim.dir names another directory): %s"
            .formatted(where(), e));
  }

  private String where() {
    return directory == null ? "a temporary file" : directory.path().toString();
  }
}
