package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;

/** What descriptors this process has, as the kernel tells it. */
public final class OpenDescriptors {
  private static final Path ALL = Path.of("/proc/self/fd");
  private static final int CLOEXEC = 02000000;
  private static final int ATTEMPTS = 5;

  private OpenDescriptors() {}

  public static List<String> all() {
    try (Stream<Path> entries = Files.list(ALL)) {
      // The listing has one of its own, which is gone when it is looked at.
      return entries.filter(Files::exists).map(Path::toString).sorted().toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The numbers of the descriptors of a file. */
  static List<Integer> of(Path file) {
    return all().stream()
        .map(Path::of)
        .filter(descriptor -> isOf(descriptor, file))
        .map(descriptor -> Integer.parseInt(descriptor.getFileName().toString()))
        .sorted()
        .toList();
  }

  private static boolean isOf(Path descriptor, Path file) {
    try {
      return Files.readSymbolicLink(descriptor).equals(file);
    } catch (IOException e) {
      return false; // closed meanwhile
    }
  }

  /**
   * Does something once, to load and open what it needs, then again and compares. Others open and
   * close theirs meanwhile (the JVM, say, the pipes of a process that a test before has started),
   * but not each of five times; what this leaves open or closes too often does so each time.
   */
  public static void assertKept(ThrowingCallable body) throws Exception {
    run(body);
    for (int i = 1; i < ATTEMPTS; i++) {
      int before = all().size();
      run(body);
      if (all().size() == before) {
        return;
      }
    }
    int before = all().size();
    run(body);
    assertThat(all()).hasSize(before);
  }

  private static void run(ThrowingCallable body) throws Exception {
    try {
      body.call();
    } catch (Exception | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  /** Whether children of this process would not get it. */
  public static boolean isClosedOnExec(int descriptor) throws IOException {
    String flags =
        Files.readAllLines(Path.of("/proc/self/fdinfo/" + descriptor)).stream()
            .filter(line -> line.startsWith("flags:"))
            .findFirst()
            .orElseThrow();
    return (Integer.parseInt(flags.substring(6).strip(), 8) & CLOEXEC) != 0;
  }

  /** A descriptor as a file that can be opened. */
  public static Path file(int descriptor) {
    return ALL.resolve(Integer.toString(descriptor));
  }
}
