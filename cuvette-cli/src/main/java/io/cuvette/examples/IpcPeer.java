package io.cuvette.examples;

import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaOptions;
import io.cuvette.IpcChannel;
import java.nio.file.Path;
import java.time.Duration;

/** The second JVM of {@link IpcExample}. An exception is its exit code 1. Stateless. */
public final class IpcPeer {
  /** What this process fills its own buffer with. */
  static final byte OWN = 3;

  /** What it writes into the second half of the other's buffer. */
  static final byte ANSWER = 2;

  /** What the other writes into the buffer of this process. */
  static final byte EXPECTED = 4;

  private static final byte SENT = 1;

  /** No wait: the other JVM listened before it started this one; if not now, it has ended. */
  private static final Duration LISTENS_ALREADY = Duration.ZERO;

  private static final int HALF = SharedBuffer.BYTES / 2;

  private IpcPeer() {}

  /**
   * Runs the other side.
   *
   * @param arguments the device specification and the path of the socket
   */
  public static void main(String[] arguments) {
    Path socket = Path.of(arguments[1]);
    try (Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDevice(arguments[0]));
        IpcChannel channel = IpcChannel.connect(socket, LISTENS_ALREADY)) {
      share(cuda.currentDevice(), channel);
    }
  }

  private static void share(CudaDevice device, IpcChannel channel) {
    try (SharedBuffer mine = SharedBuffer.make(device, OWN)) {
      try (SharedBuffer theirs = SharedBuffer.receive(device, channel)) {
        require(theirs.valueOf(0, SharedBuffer.BYTES), SENT);
        theirs.write(HALF, HALF, ANSWER);
      }
      mine.send(channel);
      channel.receiveMessage(SharedBuffer.PATIENCE).close();
      require(mine.valueOf(0, SharedBuffer.BYTES), EXPECTED);
    }
    channel.send(new byte[0]);
  }

  private static void require(byte found, byte expected) {
    if (found != expected) {
      throw new WrongResultException("bytes: %d (expected: %d)".formatted(found, expected));
    }
  }
}
