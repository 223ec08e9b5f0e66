package io.cuvette.internal.program;

import io.cuvette.KernelCode;
import java.io.IOException;
import java.nio.file.AtomicMoveNotSupportedException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Keeps code in the files of a folder, for all processes of one user: an entry is written beside
 * and moved to its place at once, read as a whole and checked by its checksum. What fails is no
 * error: the folder is as good as empty, and the log says so once. Thread-safe.
 */
public final class CodeFolder {
  private static final System.Logger LOG = System.getLogger("io.cuvette.cache");
  private static final Set<Path> REPORTED = ConcurrentHashMap.newKeySet();
  private static final String SUFFIX = ".code";
  private static final String UNFINISHED = ".tmp";

  /** After this time nobody is writing a file any more. */
  private static final Duration ABANDONED = Duration.ofHours(1);

  private final Path folder;
  private final long limitBytes;
  private final System.Logger log;

  /**
   * A folder, which is made when it is first needed.
   *
   * @param limitBytes the bytes of all entries at most
   */
  public CodeFolder(Path folder, long limitBytes) {
    this(folder, limitBytes, LOG);
  }

  /** The same with a log of its own, for tests. */
  CodeFolder(Path folder, long limitBytes, System.Logger log) {
    this.folder = folder;
    this.limitBytes = limitBytes;
    this.log = log;
  }

  /** Code that was put, if it is still there and whole. Using it keeps it for longer. */
  Optional<KernelCode> get(String key) {
    try {
      if (!OwnFolder.isUsable(folder)) {
        return Optional.empty(); // not read: who makes it meanwhile may be somebody else
      }
      Path file = folder.resolve(key + SUFFIX);
      byte[] bytes = read(file);
      Optional<KernelCode> code = CodeEntry.decode(key, bytes);
      if (code.isEmpty()) {
        Files.deleteIfExists(file);
      } else {
        touch(file);
      }
      return code;
    } catch (NoSuchFileException e) {
      return Optional.empty(); // not there yet, or another process has just removed it
    } catch (IOException | UnsupportedOperationException e) {
      report(e);
      return Optional.empty();
    }
  }

  private byte[] read(Path file) throws IOException {
    BasicFileAttributes attributes =
        Files.readAttributes(file, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
    return attributes.isRegularFile() && attributes.size() <= limitBytes
        ? Files.readAllBytes(file)
        : new byte[0];
  }

  private void touch(Path file) {
    try {
      Files.setLastModifiedTime(file, FileTime.from(Instant.now()));
    } catch (IOException | UnsupportedOperationException e) {
      // It goes a little earlier than it might.
      log.log(System.Logger.Level.DEBUG, file + " is not touched", e);
    }
  }

  /** Keeps code, and lets go what was not used for longest if that is too much. */
  void put(String key, KernelCode code) {
    byte[] bytes = CodeEntry.encode(key, code);
    if (bytes.length > limitBytes) {
      return;
    }
    try {
      OwnFolder.makeOrCheck(folder);
      Path unfinished = OwnFolder.newFile(folder, UNFINISHED);
      try {
        Files.write(unfinished, bytes);
        move(unfinished, folder.resolve(key + SUFFIX));
      } finally {
        Files.deleteIfExists(unfinished);
      }
      trim();
    } catch (IOException | DirectoryIteratorException | UnsupportedOperationException e) {
      report(e);
    }
  }

  private static void move(Path from, Path to) throws IOException {
    try {
      Files.move(from, to, StandardCopyOption.ATOMIC_MOVE);
    } catch (AtomicMoveNotSupportedException e) {
      // Whoever reads half of it sees so by the checksum.
      Files.move(from, to, StandardCopyOption.REPLACE_EXISTING);
    }
  }

  private record Entry(Path file, long bytes, Instant used) {}

  /** Removes the entries that were not used for longest until the rest is within the limit. */
  private void trim() throws IOException {
    List<Entry> entries = new ArrayList<>();
    long total = 0;
    try (DirectoryStream<Path> files = Files.newDirectoryStream(folder)) {
      for (Path file : files) {
        Optional<Entry> entry = entry(file);
        if (entry.isPresent()) {
          entries.add(entry.get());
          total += entry.get().bytes();
        }
      }
    }
    entries.sort(Comparator.comparing(Entry::used));
    for (Entry entry : entries) {
      if (total <= limitBytes) {
        return;
      }
      Files.deleteIfExists(entry.file());
      total -= entry.bytes();
    }
  }

  /** What counts: entries. What a process left unfinished is removed; other files are not ours. */
  private static Optional<Entry> entry(Path file) throws IOException {
    String name = file.getFileName().toString();
    boolean unfinished = name.endsWith(UNFINISHED);
    if (!unfinished && !name.endsWith(SUFFIX)) {
      return Optional.empty();
    }
    BasicFileAttributes attributes;
    try {
      attributes = Files.readAttributes(file, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
    } catch (NoSuchFileException e) {
      return Optional.empty(); // another process removed it
    }
    Instant used = attributes.lastModifiedTime().toInstant();
    if (unfinished) {
      if (used.isBefore(Instant.now().minus(ABANDONED))) {
        Files.deleteIfExists(file);
      }
      return Optional.empty();
    }
    return attributes.isRegularFile()
        ? Optional.of(new Entry(file, attributes.size(), used))
        : Optional.empty();
  }

  private void report(Exception reason) {
    if (REPORTED.add(folder)) {
      log.log(
          System.Logger.Level.WARNING,
          "Compiled code is not kept in {0}: {1}",
          folder,
          reason.getMessage() == null || reason instanceof FileSystemException
              ? reason.toString() // as of a read-only file system, which has no message
              : reason.getMessage());
    }
  }
}
