package io.cuvette.internal.program;

import java.io.IOException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFileAttributeView;
import java.nio.file.attribute.PosixFileAttributes;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.nio.file.attribute.UserPrincipal;
import java.util.Set;

/**
 * A folder that only this user can change. Where the file system knows no owners and permissions,
 * whoever may use the folder is left to it. Stateless.
 */
final class OwnFolder {
  private static final FileAttribute<?> FOLDER =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));
  private static final FileAttribute<?> FILE =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));
  private static final FileAttribute<?>[] NONE = {};

  private OwnFolder() {}

  /**
   * Whether a folder is there.
   *
   * @throws IOException if it is there and somebody else could change what is in it
   */
  static boolean isUsable(Path folder) throws IOException {
    if (Files.notExists(folder, LinkOption.NOFOLLOW_LINKS)) {
      return false;
    }
    check(folder);
    return true;
  }

  /**
   * Makes a folder for this user alone, unless it is there.
   *
   * @throws IOException if it cannot be made, or somebody else could change what is in it
   */
  static void makeOrCheck(Path folder) throws IOException {
    if (Files.notExists(folder, LinkOption.NOFOLLOW_LINKS)) {
      Files.createDirectories(folder, hasOwners(folder) ? new FileAttribute<?>[] {FOLDER} : NONE);
    }
    check(folder);
  }

  /** A new file for this user alone, under a name that nobody can foresee. */
  static Path newFile(Path folder, String suffix) throws IOException {
    return Files.createTempFile(
        folder, ".new", suffix, hasOwners(folder) ? new FileAttribute<?>[] {FILE} : NONE);
  }

  private static boolean hasOwners(Path path) {
    return path.getFileSystem().supportedFileAttributeViews().contains("posix");
  }

  private static void check(Path folder) throws IOException {
    if (!Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS)) {
      throw new FileSystemException(
          folder.toString(), null, "a link or a file (expected: a folder)");
    }
    PosixFileAttributeView view =
        Files.getFileAttributeView(folder, PosixFileAttributeView.class, LinkOption.NOFOLLOW_LINKS);
    if (view == null) {
      return;
    }
    PosixFileAttributes attributes = view.readAttributes();
    Set<PosixFilePermission> permissions = attributes.permissions();
    if (permissions.contains(PosixFilePermission.GROUP_WRITE)
        || permissions.contains(PosixFilePermission.OTHERS_WRITE)) {
      throw new FileSystemException(
          folder.toString(),
          null,
          "%s (expected: writable for its owner alone)"
              .formatted(PosixFilePermissions.toString(permissions)));
    }
    UserPrincipal user = user(folder);
    if (!attributes.owner().equals(user)) {
      throw new FileSystemException(
          folder.toString(),
          null,
          "of the user %s (expected: of %s, whose process this is)"
              .formatted(attributes.owner().getName(), user.getName()));
    }
  }

  /** The user of this process. */
  private static UserPrincipal user(Path folder) throws IOException {
    try {
      return Files.getOwner(Path.of("/proc/self"));
    } catch (NoSuchFileException e) {
      return folder
          .getFileSystem()
          .getUserPrincipalLookupService()
          .lookupPrincipalByName(System.getProperty("user.name", ""));
    }
  }
}
