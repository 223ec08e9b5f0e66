package io.cuvette.testkit;

import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * Looks at what a test leaves in the process itself: threads of the library, and open files of
 * simulated devices. Whatever was there when it was made belongs to others. Confined to one thread.
 */
final class ProcessWatch {
  private static final String OURS = "cuvette";
  private static final Path DESCRIPTORS = Path.of("/proc/self/fd");

  /** A thread that was told to end does so in its own time. */
  private static final Duration PATIENCE = Duration.ofSeconds(10);

  private final Duration patience;
  private final Set<Thread> threads = threads();
  private final Map<String, String> files = files();

  ProcessWatch() {
    this(PATIENCE);
  }

  /** Waits for the end of a thread so long. */
  ProcessWatch(Duration patience) {
    this.patience = patience;
  }

  /** Fails if there is more than before. */
  void check() {
    for (Thread thread : threads()) {
      if (!threads.contains(thread) && !ends(thread)) {
        throw new AssertionError(
            "thread '%s' is alive after the test (expected: none of the library's)"
                .formatted(thread.getName()));
      }
    }
    Map<String, String> now = files();
    now.entrySet().removeAll(files.entrySet());
    if (!now.isEmpty()) {
      throw new AssertionError(
          "files open after the test, by descriptor: %s (expected: none of simulated devices)"
              .formatted(now));
    }
  }

  private boolean ends(Thread thread) {
    try {
      return thread.join(patience);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return !thread.isAlive();
    }
  }

  private static Set<Thread> threads() {
    Set<Thread> ours = new HashSet<>(Thread.getAllStackTraces().keySet());
    ours.removeIf(thread -> !isOurs(thread));
    return ours;
  }

  static boolean isOurs(Thread thread) {
    return thread.getName().startsWith(OURS);
  }

  /** The numbers of all open files; none where the system does not report them. */
  static Set<String> descriptors() {
    String[] numbers = DESCRIPTORS.toFile().list();
    return numbers == null ? Set.of() : Set.of(numbers);
  }

  /** The open files by descriptor; none where the system does not report them. */
  private static Map<String, String> files() {
    Map<String, String> open = new HashMap<>();
    try (DirectoryStream<Path> descriptors = Files.newDirectoryStream(DESCRIPTORS)) {
      for (Path descriptor : descriptors) {
        String file = target(descriptor);
        if (file.contains(OURS + "-sim")) {
          open.put(descriptor.getFileName().toString(), file);
        }
      }
    } catch (IOException | DirectoryIteratorException e) {
      return new HashMap<>();
    }
    return open;
  }

  /** The open file of a descriptor; empty if there is none. */
  static String target(String descriptor) {
    return target(DESCRIPTORS.resolve(descriptor));
  }

  private static String target(Path descriptor) {
    try {
      return Files.readSymbolicLink(descriptor).toString();
    } catch (IOException e) {
      return ""; // closed meanwhile
    }
  }
}
