package io.cuvette.testkit.support;

import io.cuvette.IpcChannel;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/**
 * The second JVM of a test. It connects to the socket that its argument names. It reads one command
 * a line: {@code run DEVICE CLASS}, {@code tell LINE}, {@code stacks}; and answers {@code ready},
 * {@code said LINE}, {@code done} or {@code failed WHY}. It ends at once when the test's JVM does,
 * in whatever way that ends.
 */
public final class PeerMain {
  private static final int EXIT_ORPHANED = 0;
  private static final Duration CONNECTING = Duration.ofSeconds(120);

  private final BlockingQueue<String> programs = new LinkedBlockingQueue<>();
  private final BlockingQueue<String> told = new LinkedBlockingQueue<>();
  private final PrintStream answers;
  private final IpcChannel channel;

  private PeerMain(PrintStream answers, IpcChannel channel) {
    this.answers = answers;
    this.channel = channel;
  }

  public static void main(String[] args) throws InterruptedException {
    PrintStream answers = System.out;
    System.setOut(System.err); // what a library prints is no answer
    PeerMain main = new PeerMain(answers, IpcChannel.connect(Path.of(args[0]), CONNECTING));
    Thread.ofPlatform().daemon().name("commands").start(main::read);
    main.answer("ready");
    while (true) {
      main.runNext();
    }
  }

  private void runNext() throws InterruptedException {
    String[] program = programs.take().split(" ", 2);
    try (PeerDriver driver = new PeerDriver(program[0])) {
      program(program[1])
          .run(new Peer(driver.cuda(), channel, told, line -> answer("said " + line)));
    } catch (Throwable e) { // whatever it is, the test must hear of it
      e.printStackTrace();
      answer("failed " + e);
      return;
    }
    answer("done");
  }

  private static PeerProgram program(String name) throws ReflectiveOperationException {
    var constructor = Class.forName(name).getDeclaredConstructor();
    constructor.setAccessible(true);
    return (PeerProgram) constructor.newInstance();
  }

  private void answer(String line) {
    answers.println(line.replace('\n', ' '));
    answers.flush();
  }

  private void read() {
    try (BufferedReader commands =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
      for (String line = commands.readLine(); line != null; line = commands.readLine()) {
        String[] command = line.split(" ", 2);
        switch (command[0]) {
          case "run" -> {
            told.clear(); // what the program before did not want to hear
            programs.add(command[1]);
          }
          case "tell" -> told.add(command[1]);
          default -> printStacks();
        }
      }
    } catch (IOException e) {
      e.printStackTrace();
    }
    Runtime.getRuntime().halt(EXIT_ORPHANED);
  }

  private static void printStacks() {
    for (Map.Entry<Thread, StackTraceElement[]> entry : Thread.getAllStackTraces().entrySet()) {
      System.err.println(entry.getKey());
      for (StackTraceElement frame : entry.getValue()) {
        System.err.println("  at " + frame);
      }
    }
  }
}
