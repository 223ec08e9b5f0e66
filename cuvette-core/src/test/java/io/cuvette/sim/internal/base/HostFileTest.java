package io.cuvette.sim.internal.base;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cuvette.driver.CudaStatus;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The file of host memory: its length, its content, and that nobody else sees it. */
class HostFileTest {
  private static final String PROPERTY = "cuvette.sim.dir";
  private static final Path DESCRIPTORS = Path.of("/proc/self/fd");

  @TempDir private Path directory;
  private final HostFile file = new HostFile();

  @BeforeEach
  void choose() {
    System.setProperty(PROPERTY, directory.toString());
  }

  @AfterEach
  void clear() {
    System.clearProperty(PROPERTY);
    file.close();
  }

  private void assertRefused(CudaStatus status, String reason, Runnable call) {
    assertThatExceptionOfType(SimRefusal.class)
        .isThrownBy(call::run)
        .satisfies(e -> {
          assertThat(e.status()).isEqualTo(status);
          assertThat(e.text()).contains("memory in " + directory).endsWith(reason);
        });
  }

  /** The descriptors of this process that lead to files of the directory. */
  private List<Path> descriptors() throws IOException {
    List<Path> found = new ArrayList<>();
    try (DirectoryStream<Path> all = Files.newDirectoryStream(DESCRIPTORS)) {
      for (Path each : all) {
        try {
          if (Files.readSymbolicLink(each).startsWith(directory)) {
            found.add(each);
          }
        } catch (IOException e) {
          assertThat(each).as("closed meanwhile").isNotNull();
        }
      }
    }
    return found;
  }

  @Test
  void range_isProvidedBeforeItIsMapped_andTheFileEndsWithTheLast() throws IOException {
    SplittableRandom random = new SplittableRandom(9);
    List<Extent> live = new ArrayList<>();
    for (int step = 0; step < 60; step++) {
      if (live.isEmpty() || random.nextInt(5) < 3) {
        live.add(file.reserve(1 + random.nextInt(20_000)));
      } else {
        file.release(live.remove(random.nextInt(live.size())));
      }
      long end = 0;
      for (Extent each : live) {
        end = Math.max(end, each.offset() + each.byteSize());
      }
      assertThat(file.byteSize()).isEqualTo(end);
    }
    try (Arena arena = Arena.ofConfined()) {
      for (Extent each : live) {
        MemorySegment mapped = file.map(each.offset(), each.byteSize(), arena);
        for (long at : new long[] {0, each.byteSize() / 2, each.byteSize() - 1}) {
          assertThat(mapped.get(ValueLayout.JAVA_BYTE, at)).isEqualTo(PagedBytes.UNTOUCHED);
        }
        mapped.fill((byte) 1); // which a range that comes again has no more
      }
    }
    for (Extent each : List.copyOf(live)) {
      file.release(each);
    }
    assertThat(file.byteSize()).isZero();
  }

  @Test
  void requestForMoreThanThereIs_isRefusedAtOnce_andNamesTheDirectory() throws IOException {
    assertRefused(
        CudaStatus.OUT_OF_MEMORY, "bytes are free", () -> file.reserve(Long.MAX_VALUE / 4));
    assertThat(file.byteSize()).isZero();
    Extent some = file.reserve(4096);
    assertRefused(
        CudaStatus.OUT_OF_MEMORY, "bytes are free", () -> file.reserve(Long.MAX_VALUE / 4));
    assertThat(file.byteSize()).isEqualTo(some.byteSize());
  }

  /** The file stays where it is, whatever the property says by then. */
  @Test
  void directory_isChosenOnce() throws IOException {
    Extent first = file.reserve(4096);
    System.setProperty(PROPERTY, directory.resolve("missing").toString());
    Extent second = file.reserve(8192);
    assertThat(file.byteSize()).isEqualTo(12_288);
    file.release(second);
    file.release(first);
    assertThat(file.byteSize()).isZero();
  }

  /** Nor is the directory asked for room where the file has it. */
  @Test
  void rangeThatIsFree_isTakenOfTheFile_thoughItsDirectoryIsGone() throws IOException {
    Path own = Files.createDirectory(directory.resolve("own"));
    System.setProperty(PROPERTY, own.toString());
    Extent first = file.reserve(8192);
    Extent last = file.reserve(4096);
    file.release(first);
    Files.delete(own);
    assertThat(file.reserve(8192)).isEqualTo(first);
    assertThatExceptionOfType(SimRefusal.class)
        .isThrownBy(() -> file.reserve(1))
        .satisfies(e -> assertThat(e.status()).isEqualTo(CudaStatus.OPERATING_SYSTEM));
    assertThat(file.byteSize()).isEqualTo(last.offset() + last.byteSize());
  }

  @Test
  void fileIsOpenOnce_forThisUserAlone_andHasNoName() throws IOException {
    Extent first = file.reserve(4096);
    file.release(first);
    for (int i = 0; i < 5; i++) {
      Extent _ = file.reserve(4096);
      assertThat(file.byteSize()).isEqualTo(4096L * (i + 1));
    }
    try (var left = Files.list(directory)) {
      assertThat(left).isEmpty();
    }
    if (Files.isDirectory(DESCRIPTORS)) {
      List<Path> open = descriptors();
      assertThat(open).hasSize(2); // one to keep it, and one that an interrupt may close
      for (Path each : open) {
        assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(each)))
            .isEqualTo("rw-------");
      }
      file.close();
      assertThat(descriptors()).isEmpty();
    }
  }

  @Test
  void channelThatWasClosed_isOpenedAgain_withWhatWasWritten() throws IOException {
    UnnamedFile unnamed = UnnamedFile.create(directory);
    FileChannel channel = unnamed.channel();
    assertThat(unnamed.channel()).isSameAs(channel);
    BlockFile.provide(channel, 0, 10);
    if (Files.isDirectory(DESCRIPTORS)) {
      channel.close();
      FileChannel next = unnamed.channel();
      assertThat(next).isNotSameAs(channel);
      assertThat(next.size()).isEqualTo(10);
      assertThat(unnamed.channel()).isSameAs(next);
      unnamed.close();
      assertThat(descriptors()).isEmpty();
    }
  }
}
