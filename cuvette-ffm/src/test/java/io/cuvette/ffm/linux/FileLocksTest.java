package io.cuvette.ffm.linux;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.driver.DescriptorCalls;
import io.cuvette.ffm.FfmDescriptors;
import io.cuvette.ffm.OpenDescriptors;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.SocketTimeoutException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

@EnabledOnOs(OS.LINUX)
class FileLocksTest {
  private final DescriptorCalls calls = new FfmDescriptors();

  @TempDir private Path folder;

  @Test
  void lock_isOneDescriptorsAlone_untilItIsClosed() throws Exception {
    String file = folder.resolve("lock").toString();
    OpenDescriptors.assertKept(() -> {
      int first = calls.lock(file, Duration.ZERO);
      assertThat(OpenDescriptors.isClosedOnExec(first)).isTrue();
      assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(Path.of(file))))
          .isEqualTo("rw-------");
      assertThatThrownBy(() -> calls.lock(file, Duration.ofMillis(5)))
          .hasCauseInstanceOf(SocketTimeoutException.class)
          .hasMessageContaining("lock(path=" + file + ")");
      calls.close(first);
      calls.close(calls.lock(file, Duration.ZERO));
    });
  }

  /** Else two would have the lock, one of a file that nobody finds any more. */
  @Test
  void lockOfAFileThatWasDeletedMeanwhile_isThatOfTheNewOne() throws Exception {
    Path file = folder.resolve("lock");
    int first = calls.lock(file.toString(), Duration.ZERO);
    FutureTask<Integer> second =
        new FutureTask<>(() -> calls.lock(file.toString(), SocketPair.LONG));
    Thread.ofPlatform().start(second);
    awaitTwoDescriptors(file);
    Files.delete(file);
    calls.close(first);
    int locked = second.get();
    assertThat(OpenDescriptors.file(locked).toRealPath()).isEqualTo(file.toRealPath());
    assertThatThrownBy(() -> calls.lock(file.toString(), Duration.ZERO))
        .hasCauseInstanceOf(SocketTimeoutException.class);
    noneIsLeft();
    calls.close(locked);
  }

  @Test
  void lockOfAFileThatWasReplacedMeanwhile_isThatOfTheNewOne() throws Exception {
    Path file = folder.resolve("replaced");
    int first = calls.lock(file.toString(), Duration.ZERO);
    FutureTask<Integer> second =
        new FutureTask<>(() -> calls.lock(file.toString(), SocketPair.LONG));
    Thread.ofPlatform().start(second);
    awaitTwoDescriptors(file);
    Files.move(Files.createFile(folder.resolve("new")), file, StandardCopyOption.REPLACE_EXISTING);
    calls.close(first);
    int locked = second.get();
    assertThat(OpenDescriptors.file(locked).toRealPath()).isEqualTo(file.toRealPath());
    noneIsLeft();
    calls.close(locked);
  }

  /** No descriptor of a file that is gone is left. */
  private static void noneIsLeft() {
    assertThat(OpenDescriptors.all())
        .noneMatch(
            each -> target(Path.of(each)).toString().matches(".*(lock|replaced) \\(deleted\\)"));
  }

  private static void awaitTwoDescriptors(Path file) throws IOException {
    long open = 0;
    while (open < 2) {
      try (Stream<Path> all = Files.list(Path.of("/proc/self/fd"))) {
        open = all.filter(each -> file.equals(target(each))).count();
      }
    }
  }

  private static Path target(Path descriptor) {
    try {
      return Files.readSymbolicLink(descriptor);
    } catch (IOException e) {
      return descriptor; // closed meanwhile
    }
  }

  @Test
  void lockThatIsALink_isRefused() throws IOException {
    Path link = Files.createSymbolicLink(folder.resolve("link"), folder.resolve("target"));
    assertThatThrownBy(() -> calls.lock(link.toString(), Duration.ZERO))
        .isInstanceOf(IllegalArgumentException.class);
    assertThat(folder.resolve("target")).doesNotExist();
  }

  /** The lock's file is deleted with the lock. */
  @Test
  void lockOfWhatIsNoEmptyFileOfThisUser_isRefused_andLeft() throws Exception {
    Path pipe = folder.resolve("pipe");
    assertThat(new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor()).isZero();
    Path full = Files.writeString(folder.resolve("full"), "mine");
    Path inner = Files.createDirectory(folder.resolve("folder"));
    Path socket = folder.resolve("other-socket");
    calls.close(calls.listen(socket.toString()));
    OpenDescriptors.assertKept(() -> {
      for (Path each : List.of(pipe, full, inner, socket)) {
        assertThatThrownBy(() -> calls.lock(each.toString(), Duration.ZERO))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining(each.toString())
            .hasMessageContaining(", user %d and %d bytes ".formatted(calls.user(), size(each)))
            .hasMessageContaining("(expected: no file, or an empty one of user");
        assertThat(each).exists();
      }
    });
  }

  private static long size(Path path) {
    try {
      return (Long) Files.getAttribute(path, "unix:size");
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Test
  void lockThatCannotBeOpened_saysWhy() {
    String inNoFolder = folder.resolve("missing").resolve("lock").toString();
    assertThatThrownBy(() -> calls.lock(inNoFolder, Duration.ZERO))
        .isInstanceOf(UncheckedIOException.class)
        .hasMessageContaining("lock(path=" + inNoFolder + "): No such file or directory");
    String longest = folder.resolve("x".repeat(256)).toString();
    assertThatThrownBy(() -> calls.lock(longest, Duration.ZERO))
        .isInstanceOf(UncheckedIOException.class)
        .hasMessageContaining("File name too long");
  }

  @Test
  void lockOfAnotherUsersFile_isRefused() throws IOException {
    assumeTrue(calls.user() == 0, "only root gives files away");
    Path theirs = Files.createFile(folder.resolve("theirs"));
    Files.setAttribute(theirs, "unix:uid", 4711);
    assertThatThrownBy(() -> calls.lock(theirs.toString(), Duration.ZERO))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("user 4711");
    assertThat(theirs).exists();
  }
}
