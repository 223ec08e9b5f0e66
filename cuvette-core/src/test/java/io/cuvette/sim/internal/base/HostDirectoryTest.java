package io.cuvette.sim.internal.base;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIOException;

import java.io.IOException;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileAttributeView;
import java.nio.file.attribute.FileStoreAttributeView;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Where host memory is kept, and how much of it there can be. */
class HostDirectoryTest {
  private static final long MIB = 1L << 20;
  private static final long GIB = 1L << 30;
  private static final String PROPERTY = "cuvette.sim.dir";

  /** A file system of some type with so many bytes left. */
  private static final class Store extends FileStore {
    private final String type;
    private final long usable;

    Store(String type, long usable) {
      this.type = type;
      this.usable = usable;
    }

    @Override
    public String name() {
      return "store";
    }

    @Override
    public String type() {
      return type;
    }

    @Override
    public boolean isReadOnly() {
      return false;
    }

    @Override
    public long getTotalSpace() {
      return Long.MAX_VALUE;
    }

    @Override
    public long getUsableSpace() {
      return usable;
    }

    @Override
    public long getUnallocatedSpace() {
      return usable;
    }

    @Override
    public boolean supportsFileAttributeView(Class<? extends FileAttributeView> view) {
      return false;
    }

    @Override
    public boolean supportsFileAttributeView(String name) {
      return false;
    }

    @Override
    public <V extends FileStoreAttributeView> @Nullable V getFileStoreAttributeView(Class<V> view) {
      return null;
    }

    @Override
    public Object getAttribute(String attribute) {
      throw new UnsupportedOperationException(attribute);
    }
  }

  private static long room(String type, long usable, long bytes) throws IOException {
    return new HostDirectory(Path.of("x"), new Store(type, usable)).roomFor(bytes);
  }

  @AfterEach
  void clear() {
    System.clearProperty(PROPERTY);
  }

  @Test
  void roomOfADirectory_isThatOfItsFileSystem() throws IOException {
    for (String type : List.of("ext4", "tmpfs")) {
      assertThat(room(type, 100, 100)).isEqualTo(100);
      assertThat(room(type, 99, 100)).isEqualTo(99);
      assertThat(room(type, 0, 4 * MIB)).isZero();
      assertThat(room(type, GIB, 2 * MIB)).isEqualTo(2 * MIB);
    }
  }

  /** What is kept in memory has no more room than memory has. */
  @Test
  void roomInMemory_isThatOfTheMachineToo() throws IOException {
    long most = 1L << 60;
    assertThat(room("ext4", Long.MAX_VALUE, most)).isEqualTo(most);
    if (Files.isReadable(Path.of("/proc/meminfo"))) {
      long before = available();
      long room = room("tmpfs", Long.MAX_VALUE, most);
      long after = available();
      assertThat(room * 16 / 15)
          .isBetween(Math.min(before, after) / 100 * 97, Math.max(before, after) / 100 * 103);
      assertThat(room("tmpfs", MIB, most)).isEqualTo(MIB);
    }
  }

  private static long available() throws IOException {
    String line =
        Files.readAllLines(Path.of("/proc/meminfo")).stream()
            .filter(each -> each.startsWith("MemAvailable:"))
            .findFirst()
            .orElseThrow();
    return Long.parseLong(line.replaceAll("\\D", "")) * 1024;
  }

  @Test
  void directory_isTheOneThatWasAskedFor(@TempDir Path wanted) throws IOException {
    System.setProperty(PROPERTY, wanted.toString());
    assertThat(HostDirectory.choose().path()).isEqualTo(wanted);
    System.setProperty(PROPERTY, wanted.resolve("none").toString());
    assertThatIOException()
        .isThrownBy(HostDirectory::choose)
        .withMessage(
            "-Dcuvette.sim.dir: '%s' (expected: a directory)".formatted(wanted.resolve("none")));
  }

  @Test
  void directory_isTheFirstWithRoom_ifNoneWasAskedFor() throws IOException {
    Path shared = Path.of("/dev/shm");
    boolean hasRoom =
        Files.isWritable(shared)
            && Files.getFileStore(shared).type().equals("tmpfs")
            && Files.getFileStore(shared).getUsableSpace() > 2 * GIB;
    Path chosen = HostDirectory.choose().path();
    assertThat(chosen).isIn(shared, Path.of(System.getProperty("java.io.tmpdir")));
    if (hasRoom) {
      assertThat(chosen).isEqualTo(shared);
    }
  }
}
