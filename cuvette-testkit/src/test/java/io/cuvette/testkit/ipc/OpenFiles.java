package io.cuvette.testkit.ipc;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** The descriptors of this process that passing memory around opens. Stateless. */
final class OpenFiles {
  private static final Path ALL = Path.of("/proc/self/fd");

  private OpenFiles() {}

  /** How many sockets and files without a name are open. */
  static long count() {
    return all().size();
  }

  /** The sockets and files without a name that are open. */
  static List<String> all() {
    return targets().stream()
        .filter(target -> target.startsWith("socket:") || target.contains("memfd:"))
        .toList();
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
