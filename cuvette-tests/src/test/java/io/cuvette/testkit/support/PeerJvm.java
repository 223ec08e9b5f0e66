package io.cuvette.testkit.support;

import io.cuvette.IpcChannel;
import io.cuvette.IpcListener;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A second JVM that runs {@link PeerProgram}s beside a test. Whatever the program does, nothing
 * here waits for ever, and a failure shows what the second JVM printed. Closing ends it, or keeps
 * it for the next test if it is idle. Confined to one test at a time.
 */
public final class PeerJvm implements AutoCloseable {
  /** How long one answer may take; machines that build are slow to start a JVM. */
  private static final long PATIENCE_SECONDS = 120;

  private static final String END = "";

  private final Peers home;
  private final Process process;
  private final IpcChannel channel;
  private final PrintWriter commands;
  private final PeerLog log = new PeerLog();
  private final BlockingQueue<String> answers = new LinkedBlockingQueue<>();
  private boolean idle;
  private @Nullable String specification;

  PeerJvm(Peers home) {
    this.home = home;
    Path folder = temporaryFolder();
    try (IpcListener listener = IpcListener.open(folder.resolve("peer"))) {
      process = start(listener.path());
      commands = new PrintWriter(process.outputWriter(StandardCharsets.UTF_8), true);
      // Reading a pipe keeps a carrier, of which there may be one.
      reader(() -> log.drain(process.errorReader(StandardCharsets.UTF_8)));
      reader(this::readAnswers);
      channel = greet(listener);
      idle = true;
    } finally {
      delete(folder);
    }
  }

  private static void reader(Runnable read) {
    Thread.ofPlatform().daemon().start(read);
  }

  private static Path temporaryFolder() {
    try {
      return Files.createTempDirectory("cuvette");
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void delete(Path folder) {
    try {
      Files.delete(folder);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static Process start(Path socket) {
    List<String> command = new ArrayList<>(PeerCommand.of(PeerMain.class));
    command.add(socket.toString());
    try {
      return new ProcessBuilder(command).start();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private IpcChannel greet(IpcListener listener) {
    try {
      expect("ready", next());
      return listener.accept(Duration.ofSeconds(PATIENCE_SECONDS));
    } catch (RuntimeException | Error e) {
      process.destroyForcibly();
      throw e;
    }
  }

  /** The number of the process. */
  public long pid() {
    return process.pid();
  }

  /** The connection to {@link Peer#channel}, for what cannot be said in a line. */
  public IpcChannel channel() {
    return channel;
  }

  /** Lets it start a program; {@link #finish} waits for its end. */
  public PeerJvm run(Class<? extends PeerProgram> program) {
    if (!idle) {
      throw new IllegalStateException("the second JVM still runs a program, or has ended");
    }
    idle = false;
    commands.println("run " + specification + " " + program.getName());
    return this;
  }

  /** Says a line that {@link Peer#hear} gives. */
  public void say(Object line) {
    commands.println("tell " + line);
  }

  /** The next line of {@link Peer#say}. */
  public String hear() {
    String answer = next();
    if (!answer.startsWith("said ")) {
      throw failure("the second JVM said nothing (expected: a line), but " + answer);
    }
    return answer.substring("said ".length());
  }

  /** Waits for the end of the program, which must not have failed. */
  public void finish() {
    expect("done", next());
    idle = true;
  }

  /** Lets a program run from start to end. */
  public void runToEnd(Class<? extends PeerProgram> program) {
    run(program).finish();
  }

  /** Ends the process without a warning, as the system does when memory is out (SIGKILL). */
  public void kill() {
    idle = false;
    channel.close();
    boolean interrupted = Thread.interrupted();
    try {
      if (!process.destroyForcibly().waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
        throw failure("the second JVM cannot be killed");
      }
    } catch (InterruptedException e) {
      interrupted = true;
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Ends its input: it exits without closing anything, and nothing of it runs any more. */
  public void exit() {
    idle = false;
    channel.close();
    commands.close();
    try {
      if (!process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
        throw failure("the second JVM does not exit");
      }
    } catch (InterruptedException e) {
      kill();
      throw new AssertionError("interrupted while the second JVM exits", e);
    }
    if (process.exitValue() != 0) {
      throw failure("the second JVM exited with " + process.exitValue() + " (expected: 0)");
    }
  }

  /** Keeps it for the next test, or ends it if its program has not ended well. */
  @Override
  public void close() {
    if (idle && process.isAlive()) {
      home.giveBack(this);
    } else {
      kill();
    }
  }

  PeerJvm of(String specification) {
    this.specification = specification;
    return this;
  }

  private void readAnswers() {
    try (BufferedReader reader = process.inputReader(StandardCharsets.UTF_8)) {
      reader.lines().forEach(answers::add);
    } catch (IOException | UncheckedIOException e) {
      log.add(e.toString());
    }
    answers.add(END);
  }

  private String next() {
    try {
      String answer = answers.poll(PATIENCE_SECONDS, TimeUnit.SECONDS);
      if (answer != null && !answer.equals(END)) {
        return answer;
      }
      throw failure(answer == null ? "no answer from the second JVM" : "the second JVM has ended");
    } catch (InterruptedException e) {
      AssertionError failure = failure("interrupted while waiting for the second JVM");
      Thread.currentThread().interrupt();
      throw failure;
    }
  }

  private void expect(String expected, String answer) {
    if (!answer.equals(expected)) {
      throw failure("the second JVM: %s (expected: %s)".formatted(answer, expected));
    }
  }

  /** With what it printed, and where its threads are. */
  private AssertionError failure(String what) {
    if (process.isAlive()) {
      commands.println("stacks");
    }
    return new AssertionError(what + "\n" + log.settled());
  }
}
