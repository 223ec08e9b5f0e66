package io.cuvette.cli;

import java.io.Console;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/**
 * Where a command writes. Not thread-safe.
 *
 * @param out results
 * @param err banners, progress and errors
 * @param interactive whether a person looks on, so that long work may show its progress
 */
public record Terminal(PrintStream out, PrintStream err, boolean interactive) {

  /** The standard streams of this process, in UTF-8. */
  public static Terminal standard() {
    OutputStream out = new PipedOutput(new FileOutputStream(FileDescriptor.out));
    return new Terminal(open(out), open(new FileOutputStream(FileDescriptor.err)), isTerminal());
  }

  private static PrintStream open(OutputStream stream) {
    return new PrintStream(stream, true, StandardCharsets.UTF_8);
  }

  @SuppressWarnings("SystemConsoleNull") // it may be, in a run-time image without jdk.internal.le
  private static boolean isTerminal() {
    Console console = System.console();
    return console != null && console.isTerminal();
  }
}
