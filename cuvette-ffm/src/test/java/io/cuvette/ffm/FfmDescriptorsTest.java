package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.driver.DescriptorCalls;
import io.cuvette.driver.DescriptorCalls.Sameness;
import io.cuvette.ffm.link.Layouts;
import io.cuvette.ffm.linux.Libc;
import io.cuvette.ffm.linux.MemoryFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.FutureTask;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

@EnabledOnOs(OS.LINUX)
class FfmDescriptorsTest {
  private static final int NEVER_OPEN = 1_000_000;
  private static final int F_DUPFD = 0;

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
              () -> calls.isMemoryFile(0),
              () -> calls.openMemoryFile("m"),
              () -> calls.compare(0, 0),
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
  void memoryFile_keepsItsSize_whoeverHasIt() throws Exception {
    int descriptor = calls.memoryFile("sealed", 8192);
    try (FileChannel file =
        FileChannel.open(
            OpenDescriptors.file(descriptor), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      assertThat(calls.isMemoryFile(descriptor)).isTrue();
      assertThatThrownBy(() -> file.truncate(4096)).isInstanceOf(IOException.class);
      assertThatThrownBy(() -> file.write(ByteBuffer.allocate(1), 10_000))
          .isInstanceOf(IOException.class);
      assertThat(file.size()).isEqualTo(8192);
      int more = Libc.FCNTL.call(descriptor, MemoryFiles.F_ADD_SEALS, 8); // F_SEAL_WRITE
      assertThat(more).as("nobody adds a seal").isEqualTo(-1); // EPERM
    } finally {
      calls.close(descriptor);
    }
  }

  private static int memfd(int flags, int seals) {
    int made =
        Libc.MEMFD_CREATE.call(
            Arena.ofAuto().allocateFrom("other"),
            MemoryFiles.MFD_CLOEXEC | MemoryFiles.MFD_ALLOW_SEALING | flags);
    assertThat(Libc.FCNTL.call(made, MemoryFiles.F_ADD_SEALS, seals)).isZero();
    return made;
  }

  @Test
  void memoryFile_isNoOtherFile(@TempDir Path folder) throws Exception {
    int[] others = {
      calls.lock(folder.resolve("file").toString(), Duration.ZERO),
      calls.listen(folder.resolve("socket").toString()),
      memfd(0, 0),
      memfd(0, 2 | 1), // shrink, seal
      memfd(0, 2 | 4), // shrink, grow
      memfd(0, 4 | 1) // grow, seal
    };
    OpenDescriptors.assertKept(() -> {
      for (int descriptor : others) {
        assertThat(calls.isMemoryFile(descriptor)).isFalse();
        String path = OpenDescriptors.file(descriptor).toString();
        assertThatThrownBy(() -> calls.openMemoryFile(path))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining(path);
      }
    });
    for (int descriptor : others) {
      calls.close(descriptor);
    }
    assertThatThrownBy(() -> calls.isMemoryFile(NEVER_OPEN))
        .isInstanceOf(UncheckedIOException.class)
        .hasMessage("fcntl(descriptor=1000000, F_GET_SEALS): Bad file descriptor (errno 9)");
  }

  /** Their pages may not be there when they are touched, which is a fault in the JVM. */
  @Test
  void memoryInHugePages_isNoMemoryFile() {
    int hugetlb = 4;
    int made =
        Libc.MEMFD_CREATE.call(
            Arena.ofAuto().allocateFrom("huge"),
            MemoryFiles.MFD_CLOEXEC | MemoryFiles.MFD_ALLOW_SEALING | hugetlb);
    assumeTrue(made >= 0, "this system has no huge pages");
    assertThat(Libc.FCNTL.call(made, MemoryFiles.F_ADD_SEALS, MemoryFiles.SEALS)).isZero();
    assertThat(calls.isMemoryFile(made)).isFalse();
    calls.close(made);
  }

  @Test
  void openMemoryFile_isTheSameFile_thatNoChildInherits() throws Exception {
    int own = calls.memoryFile("own", 100);
    int other = calls.memoryFile("other", 100);
    OpenDescriptors.assertKept(() -> {
      int opened = calls.openMemoryFile(OpenDescriptors.file(own).toString());
      assertThat(OpenDescriptors.isClosedOnExec(opened)).isTrue();
      assertThat(calls.compare(own, opened)).isEqualTo(Sameness.SAME);
      assertThat(calls.compare(other, opened)).isEqualTo(Sameness.OTHER);
      calls.close(opened);
    });
    calls.close(own);
    calls.close(other);
    assertThatThrownBy(() -> calls.openMemoryFile(OpenDescriptors.file(own).toString()))
        .hasCauseInstanceOf(NoSuchFileException.class);
    assertThatThrownBy(() -> calls.openMemoryFile("/proc/-1/fd/-7"))
        .hasCauseInstanceOf(NoSuchFileException.class);
  }

  /** Opening one waits for who writes, or is what a device acts on. */
  @Test
  void openMemoryFile_doesNotOpenWhatIsNone(@TempDir Path folder) throws Exception {
    Path pipe = folder.resolve("pipe");
    assertThat(new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor()).isZero();
    Path running = Path.of("/proc/self/exe").toRealPath(); // which nobody may open to write
    for (Path other : List.of(pipe, folder, running, Path.of("/dev/null"), Path.of("/dev/full"))) {
      assertThatThrownBy(() -> calls.openMemoryFile(other.toString()))
          .isInstanceOf(IllegalArgumentException.class);
    }
  }

  /** Who waits for a reader of a pipe would find one. */
  @Test
  void pipeInMemory_isNotOpened() throws Exception {
    Path memory = Path.of("/dev/shm");
    assumeTrue(Files.isWritable(memory), "no folder in memory");
    Path pipe = memory.resolve("cuvette-test-" + UUID.randomUUID());
    assertThat(new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor()).isZero();
    try {
      FutureTask<Void> writing =
          new FutureTask<>(() -> {
            FileChannel.open(pipe, StandardOpenOption.WRITE).close();
            return null;
          });
      Thread writer = Thread.ofPlatform().daemon().start(writing);
      assertThatThrownBy(() -> calls.openMemoryFile(pipe.toString()))
          .isInstanceOf(IllegalArgumentException.class);
      writer.join(20);
      assertThatThrownBy(() -> calls.openMemoryFile(pipe.toString()))
          .isInstanceOf(IllegalArgumentException.class);
      writer.join(50);
      assertThat(writing.isDone()).isFalse();
      FileChannel.open(pipe, StandardOpenOption.READ).close();
      writing.get();
    } finally {
      Files.delete(pipe);
    }
  }

  @Test
  void objectsOfADevice_areToldApart_whereTheSystemDoes() throws Exception {
    Path device = Path.of("/dev/null");
    try (FileChannel one = FileChannel.open(device);
        FileChannel two = FileChannel.open(device)) {
      assertThat(one.isOpen() && two.isOpen()).isTrue();
      List<Integer> opened = OpenDescriptors.of(device);
      int first = opened.getFirst();
      int last = opened.getLast();
      int same = calls.duplicate(first);
      boolean knows = calls.compare(first, last) != Sameness.UNKNOWN;
      assertThat(calls.compare(first, last)).isNotEqualTo(Sameness.SAME);
      assertThat(calls.compare(first, same)).isEqualTo(knows ? Sameness.SAME : Sameness.UNKNOWN);
      calls.close(same);
    }
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

  /** As one that another library made may be. */
  @Test
  void descriptorThatChildrenInherit_isOpen() throws Exception {
    int descriptor = calls.memoryFile("m", 1);
    int inherited = Libc.FCNTL.call(descriptor, F_DUPFD, 0);
    assertThat(OpenDescriptors.isClosedOnExec(inherited)).isFalse();
    assertThat(calls.isOpen(inherited)).isTrue();
    calls.close(inherited);
    assertThat(calls.isOpen(inherited)).isFalse();
    calls.close(descriptor);
  }

  @Test
  void callsAboutClosedDescriptors_sayWhichAndWhy() {
    assertThatThrownBy(() -> calls.close(NEVER_OPEN))
        .isInstanceOf(UncheckedIOException.class)
        .hasMessage("close(descriptor=1000000): Bad file descriptor (errno 9)")
        .hasCauseExactlyInstanceOf(IOException.class)
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
    var function = Libc.function("no_such_function_of_any_c_library", Layouts.INT, Layouts.INT);
    assertThatThrownBy(() -> function.call(1))
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
