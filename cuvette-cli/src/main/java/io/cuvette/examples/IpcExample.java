package io.cuvette.examples;

import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.IpcChannel;
import io.cuvette.IpcListener;
import io.cuvette.driver.DescriptorCalls;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Memory of the device shared between two JVMs, without a copy: each makes a pool, a buffer and an
 * event, sends them to the other and writes into what it got. Stateless.
 */
public final class IpcExample {
  private static final byte MINE = 1;
  private static final int HALF = SharedBuffer.BYTES / 2;

  private IpcExample() {}

  /** Runs the example. */
  public static void run(Cuda cuda, Output out) {
    if (DescriptorCalls.find().isEmpty()) {
      out.say("Descriptors can be passed between processes on Linux only.");
      return;
    }
    Path folder = folder(); // no other user may look into it
    Path path = folder.resolve("channel");
    folder.toFile().deleteOnExit(); // if a signal ends this process meanwhile
    path.toFile().deleteOnExit();
    String device = cuda.isSimulated() ? "sim" : "gpu:" + cuda.currentDevice().id();
    try (IpcListener listener = IpcListener.open(path);
        PeerProcess peer = PeerProcess.start(device, path, listener)) {
      out.say("A second JVM was started; it connects over a Unix socket, for this user only.");
      peer.orItsFailure(() -> {
        try (IpcChannel channel = listener.accept(SharedBuffer.PATIENCE)) {
          delete(folder); // no other process is expected
          share(cuda.currentDevice(), channel, out);
        }
      });
      out.check("exit code of the second JVM", peer.exitCode(), 0);
    } finally {
      delete(folder);
    }
  }

  private static void share(CudaDevice device, IpcChannel channel, Output out) {
    try (SharedBuffer mine = SharedBuffer.make(device, MINE)) {
      out.check("isIpcEnabled()", mine.resource().isIpcEnabled(), true);
      out.say("Sent: the handle of a pool, the descriptor of a buffer of 1 MiB, and an event.");
      mine.send(channel);
      exchange(device, channel, mine, out);
    }
  }

  private static void exchange(
      CudaDevice device, IpcChannel channel, SharedBuffer mine, Output out) {
    try (SharedBuffer theirs = SharedBuffer.receive(device, channel)) {
      out.say("Received the same of the other: memory that it made and this process imported.");
      out.check("isMapped()", theirs.resource().isMapped(), true);
      out.check("what the other wrote there", theirs.valueOf(0, SharedBuffer.BYTES), IpcPeer.OWN);
      out.say("The other has written into the second half of what was sent to it:");
      out.check("first half, as it was", mine.valueOf(0, HALF), MINE);
      out.check("second half", mine.valueOf(HALF, HALF), IpcPeer.ANSWER);
      theirs.write(0, SharedBuffer.BYTES, IpcPeer.EXPECTED);
    }
    out.say("What was imported is closed first, on both sides; then its owners free it.");
    channel.send(new byte[0]);
    channel.receiveMessage(SharedBuffer.PATIENCE).close();
  }

  private static Path folder() {
    try {
      return Files.createTempDirectory("cuvette-ipc");
    } catch (IOException e) {
      throw new UncheckedIOException(
          "-Djava.io.tmpdir: no folder for the socket can be made in '%s': %s"
              .formatted(System.getProperty("java.io.tmpdir"), e),
          e);
    }
  }

  private static void delete(Path folder) {
    try {
      Files.deleteIfExists(folder.resolve("channel"));
      Files.deleteIfExists(folder);
    } catch (IOException e) {
      throw new UncheckedIOException("the folder of the socket cannot be deleted: " + e, e);
    }
  }
}
