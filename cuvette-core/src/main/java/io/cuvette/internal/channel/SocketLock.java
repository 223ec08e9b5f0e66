package io.cuvette.internal.channel;

import io.cuvette.driver.DescriptorCalls;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;

/**
 * The right to make, or to replace, the socket at a path, which one listener of all processes and
 * threads has at a time. It is a lock of a file beside the socket, which the system takes back when
 * the process ends, however it ends. The file is deleted with the lock. Used by one thread.
 */
public final class SocketLock implements AutoCloseable {
  /** It is held for a moment; only a process that was stopped in it holds it longer. */
  private static final Duration PATIENCE = Duration.ofSeconds(10);

  private final DescriptorCalls calls;
  private final Path file;
  private final int descriptor;

  private SocketLock(DescriptorCalls calls, Path file, int descriptor) {
    this.calls = calls;
    this.file = file;
    this.descriptor = descriptor;
  }

  public static SocketLock take(DescriptorCalls calls, Path socket) {
    Path file = socket.resolveSibling("." + socket.getFileName() + ".cuvette-lock");
    int descriptor = calls.lock(file.toString(), PATIENCE);
    try {
      return new SocketLock(calls, file, descriptor);
    } catch (RuntimeException | Error e) {
      Closing.closeAfter(e, calls, descriptor);
      throw e;
    }
  }

  /** Lets the next one in. */
  @Override
  public void close() {
    try {
      Files.deleteIfExists(file); // while it is locked: afterwards it may be the next one's
    } catch (IOException e) {
      // Left there, it is empty and locks nobody out.
    } finally {
      calls.close(descriptor);
    }
  }
}
