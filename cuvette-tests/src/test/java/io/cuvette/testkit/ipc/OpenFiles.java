package io.cuvette.testkit.ipc;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/**
 * The descriptors of this process that passing memory around opens, when the library's threads have
 * closed what they were told to. Stateless.
 */
final class OpenFiles {
  private static final Path ALL = Path.of("/proc/self/fd");
  private static final String CLOSING = "cuvette-close";
  private static final Duration PATIENCE = Duration.ofSeconds(40);

  private OpenFiles() {}

  /** How many sockets and files without a name are open. */
  static long count() {
    return all().size();
  }

  /** The sockets and files without a name that are open. */
  static List<String> all() {
    awaitClosing();
    return targets().stream()
        .filter(target -> target.startsWith("socket:") || target.contains("memfd:"))
        .toList();
  }

  /** Whoever closes a descriptor waits a moment only. */
  private static void awaitClosing() {
    for (Thread thread : Thread.getAllStackTraces().keySet()) {
      if (thread.getName().equals(CLOSING)) {
        try {
          boolean _ = thread.join(PATIENCE);
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
        }
      }
    }
  }

  private static List<String> targets() {
    List<String> targets = new ArrayList<>();
    try (Stream<Path> descriptors = Files.list(ALL)) {
      for (Path each : descriptors.toList()) {
        try {
          targets.add(Files.readSymbolicLink(each).toString());
        } catch (IOException e) {
          // the one that lists them, closed by now
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return targets;
  }
}
