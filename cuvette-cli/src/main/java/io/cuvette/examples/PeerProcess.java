package io.cuvette.examples;

import io.cuvette.IpcListener;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** A JVM like this one that runs {@link IpcPeer}; it never outlives its close. Not thread-safe. */
final class PeerProcess implements AutoCloseable {
  private static final long SOON_SECONDS = 5;
  private static final String NATIVE_MODULE = "io.cuvette.ffm";

  private final Process process;

  /** Completes when the process has ended and no thread waits for its connection. */
  private final CompletableFuture<Void> end;

  private PeerProcess(Process process, IpcListener listener) {
    this.process = process;
    this.end = process.onExit().thenRun(listener::close);
  }

  /** Starts it; if it ends without having connected, the listener is closed. */
  static PeerProcess start(String device, Path socket, IpcListener listener) {
    List<String> command = command();
    command.add(device);
    command.add(socket.toString());
    try {
      Process process =
          new ProcessBuilder(command)
              .redirectOutput(ProcessBuilder.Redirect.DISCARD)
              .redirectError(ProcessBuilder.Redirect.INHERIT)
              .start();
      return new PeerProcess(process, listener);
    } catch (IOException e) {
      throw new UncheckedIOException("the second JVM cannot be started: " + e, e);
    }
  }

  /** This JVM's program, settings of Cuvette, paths and native access. */
  private static List<String> command() {
    String installed = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    List<String> command = new ArrayList<>();
    command.add(ProcessHandle.current().info().command().orElse(installed));
    for (String name : System.getProperties().stringPropertyNames()) {
      if (name.startsWith("cuvette.")) {
        command.add("-D" + name + "=" + System.getProperty(name));
      }
    }
    Module module = IpcPeer.class.getModule();
    if (module.isNamed()) {
      command.add("--module-path=" + path("jdk.module.path"));
      command.add("--add-modules=" + NATIVE_MODULE);
      command.add("--enable-native-access=" + NATIVE_MODULE);
      command.add("--module=" + module.getName() + "/" + IpcPeer.class.getName());
    } else {
      command.add("--enable-native-access=ALL-UNNAMED");
      command.add("--class-path=" + path("java.class.path"));
      command.add(IpcPeer.class.getName());
    }
    return command;
  }

  private static String path(String property) {
    return Objects.requireNonNullElse(System.getProperty(property), "");
  }

  /** Runs this side's part; if it fails because the other JVM did, that is said. */
  void orItsFailure(Runnable part) {
    try {
      part.run();
    } catch (UncheckedIOException | IllegalStateException e) {
      if (!isFailed()) {
        throw e;
      }
      var failure =
          new WrongResultException(
              "the second JVM ended with %d (expected: 0)".formatted(process.exitValue()));
      failure.initCause(e);
      throw failure;
    }
  }

  private boolean isFailed() {
    return ended(SOON_SECONDS) && process.exitValue() != 0;
  }

  /** Waits for its end, and gives its exit code. */
  int exitCode() {
    if (!ended(SharedBuffer.PATIENCE.toSeconds())) {
      throw new WrongResultException("the second JVM does not end");
    }
    return process.exitValue();
  }

  private boolean ended(long seconds) {
    try {
      return process.waitFor(seconds, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  ProcessHandle handle() {
    return process.toHandle();
  }

  /** Kills it, if it still is, and waits until it is gone. */
  @Override
  public void close() {
    process.destroyForcibly();
    end.join();
  }
}
