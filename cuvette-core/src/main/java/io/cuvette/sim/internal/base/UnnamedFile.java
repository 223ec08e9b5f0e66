package io.cuvette.sim.internal.base;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * A temporary file that only this user can open at any time, and no process by name once it is
 * open, where the system allows that: nothing is left of it, however the process ends. Guarded by
 * the driver's lock.
 */
public final class UnnamedFile {
  private static final Path DESCRIPTORS = Path.of("/proc/self/fd");

  /** Keeps the file, and is used for nothing that an interrupt could end. */
  private final FileChannel keeper;

  /** Where it can be opened again; null where the system has no such place. */
  private final @Nullable Path descriptor;

  private FileChannel channel;

  private UnnamedFile(FileChannel keeper, @Nullable Path descriptor) {
    this.keeper = keeper;
    this.descriptor = descriptor;
    this.channel = keeper;
  }

  public static UnnamedFile create(Path directory) throws IOException {
    String name = "cuvette-sim-" + UUID.randomUUID();
    Set<StandardOpenOption> options =
        Set.of(
            StandardOpenOption.CREATE_NEW,
            StandardOpenOption.READ,
            StandardOpenOption.WRITE,
            StandardOpenOption.DELETE_ON_CLOSE);
    FileAttribute<?>[] forThisUser =
        FileSystems.getDefault().supportedFileAttributeViews().contains("posix")
            ? new FileAttribute<?>[] {
              PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"))
            }
            : new FileAttribute<?>[0];
    FileChannel keeper = FileChannel.open(directory.resolve(name), options, forThisUser);
    return new UnnamedFile(keeper, descriptorOf(name));
  }

  private static @Nullable Path descriptorOf(String name) {
    try (DirectoryStream<Path> open = Files.newDirectoryStream(DESCRIPTORS)) {
      for (Path one : open) {
        if (target(one).contains(name)) {
          return one;
        }
      }
      return null;
    } catch (IOException | DirectoryIteratorException e) {
      return null; // not Linux
    }
  }

  private static String target(Path link) {
    try {
      return Files.readSymbolicLink(link).toString();
    } catch (IOException e) {
      return ""; // closed meanwhile
    }
  }

  /** The open file, opened again if an interrupt of a thread has closed it. */
  public FileChannel channel() throws IOException {
    if (descriptor != null && (channel == keeper || !channel.isOpen())) {
      channel = FileChannel.open(descriptor, StandardOpenOption.READ, StandardOpenOption.WRITE);
    }
    return channel;
  }

  public void close() throws IOException {
    try (keeper) {
      channel.close();
    }
  }
}
