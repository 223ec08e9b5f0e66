package io.cuvette.internal.program;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.net.URI;
import java.nio.file.FileSystem;
import java.nio.file.FileSystemException;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Why a folder cannot be used is said with the folder, what it is, and the rule. */
class OwnFolderTest {
  @TempDir private Path temporary;

  private static void refused(Path folder, String text) {
    assertThatThrownBy(() -> OwnFolder.isUsable(folder))
        .isInstanceOf(FileSystemException.class)
        .hasMessageContainingAll(folder.toString(), text);
    assertThatThrownBy(() -> OwnFolder.makeOrCheck(folder))
        .isInstanceOf(FileSystemException.class)
        .hasMessageContainingAll(folder.toString(), text);
  }

  @Test
  void folderThatOthersCanWriteTo_orThatIsNone_isRefused() throws IOException {
    Path open = Files.createDirectory(temporary.resolve("open"));
    Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxrwx---"));
    refused(open, "rwxrwx--- (expected: writable for its owner alone)");
    Path file = Files.createFile(temporary.resolve("file"));
    refused(file, "a link or a file (expected: a folder)");
    refused(Files.createSymbolicLink(temporary.resolve("link"), temporary), "a link or a file");
  }

  @Test
  void folderOfSomebodyElse_isRefused_withBothUsers() throws IOException {
    Path theirs = Files.createDirectory(temporary.resolve("theirs"));
    Files.setPosixFilePermissions(theirs, PosixFilePermissions.fromString("rwx------"));
    boolean given;
    try {
      Files.setAttribute(theirs, "unix:uid", 12_345, LinkOption.NOFOLLOW_LINKS);
      given = true;
    } catch (IOException e) {
      given = false;
    }
    assumeTrue(given, "only root can give a folder to somebody else");
    refused(theirs, "of the user 12345 (expected: of ");
  }

  @Test
  void folderThatCannotBeMade_isAnError_andOneThatIsNotThereNone() throws IOException {
    Path none = Path.of("/proc/cuvette-cache");
    assertThat(OwnFolder.isUsable(none)).isFalse();
    assertThatThrownBy(() -> OwnFolder.makeOrCheck(none)).isInstanceOf(IOException.class);
  }

  /** As an archive is, which knows no owners. */
  @Test
  void folderOfAFileSystemWithoutPermissions_isMadeAndUsed() throws IOException {
    URI archive = URI.create("jar:" + temporary.resolve("cache.zip").toUri());
    try (FileSystem files = FileSystems.newFileSystem(archive, Map.of("create", "true"))) {
      Path folder = files.getPath("/of/this/user");
      assertThat(OwnFolder.isUsable(folder)).isFalse();
      OwnFolder.makeOrCheck(folder);
      OwnFolder.makeOrCheck(folder);
      assertThat(OwnFolder.isUsable(folder)).isTrue();
      assertThat(OwnFolder.newFile(folder, ".code")).isRegularFile();
      refused(Files.createFile(folder.resolve("file")), "a link or a file (expected: a folder)");
    }
  }

  @Test
  void whatIsMade_isForThisUserAlone() throws IOException {
    Path folder = temporary.resolve("a/b");
    OwnFolder.makeOrCheck(folder);
    assertThat(OwnFolder.isUsable(folder)).isTrue();
    for (Path made : List.of(folder, folder.getParent())) {
      assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(made)))
          .isEqualTo("rwx------");
    }
    Path file = OwnFolder.newFile(folder, ".code");
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(file)))
        .isEqualTo("rw-------");
  }
}
