package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.DescriptorCalls;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

@EnabledOnOs(OS.LINUX)
class FfmDescriptorsTest {
  private static final int NEVER_OPEN = 1_000_000;

  private final DescriptorCalls calls = new FfmDescriptors();

  @Test
  void calls_areFoundAsAService() {
    assertThat(DescriptorCalls.find()).containsInstanceOf(FfmDescriptors.class);
  }

  @Test
  void otherSystems_haveNone() {
    String before = System.setProperty("os.name", "Windows 11");
    try {
      assertThat(DescriptorCalls.find()).isEmpty();
      List<ThrowingCallable> all =
          List.of(
              () -> calls.memoryFile("m", 1),
              () -> calls.duplicate(0),
              () -> calls.isOpen(0),
              () -> calls.close(NEVER_OPEN),
              () -> calls.neverShrinks(0),
              () -> calls.listen("s"),
              () -> calls.isBound("s"),
              () -> calls.lock("s", Duration.ZERO),
              () -> calls.accept(0, Duration.ZERO),
              () -> calls.connect("s", Duration.ZERO),
              () -> calls.peerUser(0),
              () -> calls.user(),
              () -> calls.send(0, new byte[1], new int[0], Duration.ZERO),
              () -> calls.receive(0, 1, Duration.ZERO));
      assertThat(all)
          .allSatisfy(call ->
              assertThatThrownBy(call)
                  .isInstanceOf(UnsupportedOperationException.class)
                  .hasMessageContaining("Windows 11 (expected: Linux)"));
    } finally {
      System.setProperty("os.name", before);
    }
  }

  @Test
  void memoryFile_hasItsSizeAndOnlyZeros() throws Exception {
    int descriptor = calls.memoryFile("of a test", 100_000);
    try (FileChannel file = FileChannel.open(OpenDescriptors.file(descriptor))) {
      ByteBuffer bytes = ByteBuffer.allocate(200_000);
      assertThat(file.read(bytes)).isEqualTo(100_000);
      assertThat(bytes.array()).containsOnly(0);
    } finally {
      calls.close(descriptor);
    }
  }

  @Test
  void memoryFile_getsLongerAndNeverShorter() throws Exception {
    int descriptor = calls.memoryFile("sealed", 8192);
    try (FileChannel file =
        FileChannel.open(
            OpenDescriptors.file(descriptor), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      assertThat(calls.neverShrinks(descriptor)).isTrue();
      assertThatThrownBy(() -> file.truncate(4096)).isInstanceOf(IOException.class);
      file.write(ByteBuffer.allocate(1), 10_000);
      assertThat(file.size()).isEqualTo(10_001);
      assertThatThrownBy(() -> file.truncate(10_000)).isInstanceOf(IOException.class);
      int more = Libc.fcntl(descriptor, FfmDescriptors.F_ADD_SEALS, 4); // F_SEAL_GROW
      assertThat(more).as("nobody adds a seal").isEqualTo(-1); // EPERM
    } finally {
      calls.close(descriptor);
    }
  }

  @Test
  void neverShrinks_isNoOtherFile(@TempDir Path folder) {
    int file = calls.lock(folder.resolve("file").toString(), Duration.ZERO);
    int unsealed =
        Libc.memfdCreate(
            Arena.ofAuto().allocateFrom("unsealed"),
            FfmDescriptors.MFD_CLOEXEC | FfmDescriptors.MFD_ALLOW_SEALING);
    int socket = calls.listen(folder.resolve("socket").toString());
    for (int descriptor : new int[] {file, unsealed, socket}) {
      assertThat(calls.neverShrinks(descriptor)).isFalse();
      calls.close(descriptor);
    }
    assertThatThrownBy(() -> calls.neverShrinks(NEVER_OPEN))
        .isInstanceOf(UncheckedIOException.class)
        .hasMessage("fcntl(descriptor=1000000, F_GET_SEALS): Bad file descriptor (errno 9)");
  }

  /** The size goes to the system in 64 bits. */
  @Test
  void memoryFile_canBeLargerThanFourGibibytes() throws Exception {
    long bytes = (5L << 30) + 1;
    int descriptor = calls.memoryFile("large", bytes);
    try (FileChannel file = FileChannel.open(OpenDescriptors.file(descriptor))) {
      assertThat(file.size()).isEqualTo(bytes);
    } finally {
      calls.close(descriptor);
    }
  }

  @Test
  void memoryFile_ofLessThanNothing_isRefused() {
    assertThatThrownBy(() -> calls.memoryFile("m", -1))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("bytes: -1 (expected: >= 0)");
  }

  @Test
  void memoryFile_withALongName_isRefusedAndLeavesNothingOpen() throws Exception {
    String name = "n".repeat(250);
    OpenDescriptors.assertKept(() ->
        assertThatThrownBy(() -> calls.memoryFile(name, 1))
            .isInstanceOf(UncheckedIOException.class)
            .hasMessage("memfd_create(name=" + name + ", bytes=1): Invalid argument (errno 22)"));
  }

  @Test
  void duplicate_isAnotherDescriptorOfTheSameFile() throws Exception {
    int descriptor = calls.memoryFile("shared", 4);
    int duplicate = calls.duplicate(descriptor);
    try {
      assertThat(duplicate).isNotEqualTo(descriptor);
      write(descriptor, 1, 2, 3, 4);
      calls.close(descriptor);
      assertThat(calls.isOpen(descriptor)).isFalse();
      assertThat(read(duplicate)).containsExactly(1, 2, 3, 4);
    } finally {
      calls.close(duplicate);
    }
  }

  @Test
  void descriptorsMadeHere_areNotInheritedByChildren() throws Exception {
    int descriptor = calls.memoryFile("own", 4);
    int duplicate = calls.duplicate(descriptor);
    assertThat(OpenDescriptors.isClosedOnExec(descriptor)).isTrue();
    assertThat(OpenDescriptors.isClosedOnExec(duplicate)).isTrue();
    calls.close(descriptor);
    calls.close(duplicate);
  }

  @Test
  void isOpen_tellsOpenOnesFromOthers() {
    int descriptor = calls.memoryFile("m", 1);
    assertThat(calls.isOpen(descriptor)).isTrue();
    calls.close(descriptor);
    assertThat(calls.isOpen(descriptor)).isFalse();
    assertThat(calls.isOpen(-1)).isFalse();
    assertThat(calls.isOpen(NEVER_OPEN)).isFalse();
  }

  @Test
  void callsAboutClosedDescriptors_sayWhichAndWhy() {
    assertThatThrownBy(() -> calls.close(NEVER_OPEN))
        .isInstanceOf(UncheckedIOException.class)
        .hasMessage("close(descriptor=1000000): Bad file descriptor (errno 9)")
        .hasRootCauseMessage("close(descriptor=1000000): Bad file descriptor (errno 9)");
    assertThatThrownBy(() -> calls.duplicate(-1))
        .hasMessage("fcntl(descriptor=-1, F_DUPFD_CLOEXEC): Bad file descriptor (errno 9)");
  }

  @Test
  void user_isTheOwnerOfTheProcess() throws Exception {
    Object owner = Files.getAttribute(Path.of("/proc/self"), "unix:uid");
    assertThat(calls.user()).isEqualTo(owner);
  }

  @Test
  void functionThatTheSystemLacks_saysSoWhenItIsCalled() {
    var function = Libc.function("no_such_function_of_any_c_library", Layouts.INT);
    assertThatThrownBy(
            () -> {
              int _ = (int) function.invokeExact(Libc.state(), 1);
            })
        .isInstanceOf(UnsupportedOperationException.class)
        .hasMessageEndingWith("has no no_such_function_of_any_c_library");
  }

  private static void write(int descriptor, int... bytes) throws Exception {
    ByteBuffer buffer = ByteBuffer.allocate(bytes.length);
    for (int value : bytes) {
      buffer.put((byte) value);
    }
    try (FileChannel file =
        FileChannel.open(OpenDescriptors.file(descriptor), StandardOpenOption.WRITE)) {
      file.write(buffer.flip());
    }
  }

  private static byte[] read(int descriptor) throws Exception {
    return Files.readAllBytes(OpenDescriptors.file(descriptor));
  }
}
