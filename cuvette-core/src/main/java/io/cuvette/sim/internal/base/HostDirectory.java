package io.cuvette.sim.internal.base;

import java.io.IOException;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;

/**
 * The directory where a simulated driver keeps host memory: {@code -Dcuvette.sim.dir}, else
 * /dev/shm or the directory for temporary files, the first with a GiB of room. Immutable.
 *
 * @param path the directory
 * @param store what it is on
 */
public record HostDirectory(Path path, FileStore store) {
  private static final long ENOUGH = 1L << 30;

  /** Requests below this do not query how much memory the machine has left. */
  private static final long LARGE = 1L << 20;

  private static final long KIB = 1L << 10;

  /** The rest is for everybody else. */
  private static final long USABLE_SIXTEENTHS = 15;

  /** They write what is overwritten to another place, for which there may be no room by then. */
  private static final Set<String> COPIES_ON_WRITE =
      Set.of("btrfs", "zfs", "bcachefs", "nilfs2", "nfs", "nfs4", "cifs", "smb3");

  public static HostDirectory choose() throws IOException {
    String wanted = System.getProperty("cuvette.sim.dir");
    Path temporary = Path.of(System.getProperty("java.io.tmpdir"));
    if (wanted != null && !Files.isDirectory(Path.of(wanted))) {
      throw new IOException("-Dcuvette.sim.dir: '%s' (expected: a directory)".formatted(wanted));
    }
    HostDirectory chosen =
        wanted == null ? roomiest(Path.of("/dev/shm"), temporary) : of(Path.of(wanted));
    if (!chosen.keepsItsRoom()) {
      throw new IOException(
          "a %s file system, which promises memory that it may not have (expected: tmpfs, ext4, XFS or such)"
              .formatted(chosen.store.type()));
    }
    return chosen;
  }

  private static HostDirectory roomiest(Path first, Path second) throws IOException {
    List<HostDirectory> usable =
        Stream.of(first, second)
            .filter(Files::isWritable)
            .flatMap(path -> find(path).stream())
            .filter(HostDirectory::keepsItsRoom)
            .toList();
    Optional<HostDirectory> chosen =
        usable.stream()
            .filter(directory -> directory.roomOrNone() >= ENOUGH)
            .findFirst()
            .or(() -> usable.stream().max(Comparator.comparingLong(HostDirectory::roomOrNone)));
    return chosen.isPresent() ? chosen.get() : of(second);
  }

  private static HostDirectory of(Path path) throws IOException {
    return new HostDirectory(path, Files.getFileStore(path));
  }

  private static Optional<HostDirectory> find(Path path) {
    try {
      return Optional.of(of(path));
    } catch (IOException e) {
      return Optional.empty();
    }
  }

  private boolean keepsItsRoom() {
    return !COPIES_ON_WRITE.contains(store.type());
  }

  private long roomOrNone() {
    try {
      return store.getUsableSpace();
    } catch (IOException e) {
      return 0;
    }
  }

  /** How much of a request in bytes there may be room for: all of it, or less. */
  public long roomFor(long bytes) throws IOException {
    long room = Math.min(bytes, store.getUsableSpace());
    return bytes >= LARGE && store.type().equals("tmpfs") ? Math.min(room, freeMemory()) : room;
  }

  /** What is in memory can be larger than memory; the system would end processes then. */
  private static long freeMemory() {
    try (Stream<String> lines = Files.lines(Path.of("/proc/meminfo"))) {
      return lines
          .filter(line -> line.startsWith("MemAvailable:"))
          .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")) * KIB)
          .map(available -> available / (USABLE_SIXTEENTHS + 1) * USABLE_SIXTEENTHS)
          .findFirst()
          .orElse(Long.MAX_VALUE);
    } catch (IOException | RuntimeException e) {
      return Long.MAX_VALUE; // not reported here
    }
  }
}
