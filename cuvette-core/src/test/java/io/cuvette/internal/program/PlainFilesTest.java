package io.cuvette.internal.program;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.KernelCode;
import io.cuvette.KernelCode.Kind;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Folders where files have no owners and nothing moves at once, as in some networks. */
class PlainFilesTest {
  private static final KernelCode CODE = KernelCode.of(Kind.PTX, new byte[] {1});
  private static final KernelCode OTHER = KernelCode.of(Kind.PTX, new byte[] {2, 3});

  private final PlainFiles files = new PlainFiles();
  @TempDir private Path temporary;

  @Test
  void code_isKept_andReplaced_andGoesWhereItIsTooMuch() throws IOException {
    Path real = temporary.resolve("a/cache");
    Path folder = files.path(real);
    CodeFolder cache = new CodeFolder(folder, 1L << 30);
    assertThat(cache.get("k")).isEmpty();
    cache.put("k", CODE);
    assertThat(cache.get("k")).contains(CODE);
    cache.put("k", OTHER);
    assertThat(cache.get("k")).contains(OTHER);
    assertThat(real).isDirectoryContaining("glob:**k.code");
    assertThat(real.toFile().list()).as("and nothing unfinished").hasSize(1);
    new CodeFolder(folder, Files.size(real.resolve("k.code"))).put("l", OTHER);
    assertThat(real.toFile().list()).containsExactly("l.code");
  }

  @Test
  void folder_isMadeWithThoseAboveIt_andUsedAgain() throws IOException {
    Path folder = files.path(temporary).resolve("of/this/user");
    assertThat(OwnFolder.isUsable(folder)).isFalse();
    OwnFolder.makeOrCheck(folder);
    OwnFolder.makeOrCheck(folder);
    assertThat(OwnFolder.isUsable(folder)).isTrue();
    Path first = OwnFolder.newFile(folder, ".code");
    assertThat(first.toString()).startsWith(folder.toString()).endsWith(".code");
    assertThat(OwnFolder.newFile(folder, ".code")).isNotEqualTo(first);
    assertThat(temporary.resolve("of/this/user").toFile().list()).hasSize(2);
  }

  /** It may be somebody else's: it is looked at before anything in it is read. */
  @Test
  void folderThatComesWhileItIsLookedFor_isNotRead() throws IOException {
    Path real = temporary.resolve("cache");
    new CodeFolder(real, 1L << 30).put("k", CODE);
    CodeFolder cache = new CodeFolder(files.path(real), 1L << 30);
    files.missOnce(real);
    assertThat(cache.get("k")).isEmpty();
    assertThat(cache.get("k")).contains(CODE);
  }
}
