package io.cuvette.internal.program;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.InstanceOfAssertFactories.STRING;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.KernelCode;
import io.cuvette.KernelCode.Kind;
import java.io.IOException;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.text.MessageFormat;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.ResourceBundle;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CodeFolderTest {
  private static final long MUCH = 1L << 30;
  private static final KernelCode CODE =
      new KernelCode(Kind.PTX, bytes("some code"), "a log", Map.of("f<int>", "_Z1f", "g", "_Z1g"));

  @TempDir private Path temporary;

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private Path folder() {
    return temporary.resolve("a/cache");
  }

  private CodeFolder cache() {
    return new CodeFolder(folder(), MUCH);
  }

  private List<Path> files() throws IOException {
    try (Stream<Path> files = Files.list(folder())) {
      return files.sorted().toList();
    }
  }

  @Test
  void code_isKeptForThisUserAlone() throws IOException {
    cache().put("k", CODE);
    assertThat(cache().get("k")).contains(CODE);
    assertThat(cache().get("other")).isEmpty();
    assertThat(files()).hasSize(1);
    assertThat(permissions(folder())).isEqualTo("rwx------");
    assertThat(permissions(folder().getParent())).isEqualTo("rwx------");
    assertThat(permissions(files().getFirst())).isEqualTo("rw-------");
  }

  /** As of a later version of the library, whose checksum is right. */
  @Test
  void entryOfAnotherFormat_isAMiss() throws Exception {
    assertThat(CodeEntry.decode("k", CodeEntry.encode("k", CODE))).contains(CODE);
    assertThat(CodeEntry.decode("l", CodeEntry.encode("k", CODE))).as("of another key").isEmpty();
    for (int at = 0; at < 8; at++) {
      byte[] entry = CodeEntry.encode("k", CODE);
      int content = entry.length - 32;
      entry[at]++;
      MessageDigest digest = MessageDigest.getInstance("SHA-256");
      digest.update(entry, 0, content);
      System.arraycopy(digest.digest(), 0, entry, content, 32);
      assertThat(CodeEntry.decode("k", entry)).as("byte %d", at).isEmpty();
    }
  }

  @Test
  void limit_isForTheFilesOfEntries() throws IOException {
    cache().put("k", CODE);
    long size = Files.size(files().getFirst());
    assertThat(new CodeFolder(folder(), size).get("k")).contains(CODE);
    assertThat(new CodeFolder(folder(), size - 1).get("k")).as("not read as a whole").isEmpty();
    new CodeFolder(folder(), size - 1).put("k", CODE);
    assertThat(cache().get("k")).isEmpty();
    new CodeFolder(folder(), size).put("k", CODE);
    assertThat(cache().get("k")).contains(CODE);
  }

  private static String permissions(Path path) throws IOException {
    return PosixFilePermissions.toString(Files.getPosixFilePermissions(path));
  }

  /** Whatever is not what was written, whichever byte it is. */
  @Test
  void damagedEntry_isAMiss_andGoes() throws IOException {
    cache().put("k", CODE);
    Path file = files().getFirst();
    byte[] whole = Files.readAllBytes(file);
    for (int i = 0; i < whole.length; i++) {
      byte[] damaged = whole.clone();
      damaged[i] ^= 0x10;
      Files.write(file, damaged);
      assertThat(cache().get("k")).as("byte %d", i).isEmpty();
      assertThat(file).doesNotExist();
    }
    for (int length : new int[] {0, 1, 31, 32, 33, whole.length - 1}) {
      Files.write(file, Arrays.copyOf(whole, length));
      assertThat(cache().get("k")).as("%d bytes", length).isEmpty();
    }
    Files.write(file, whole);
    assertThat(cache().get("k")).contains(CODE);
    Files.move(file, file.resolveSibling("l.code"));
    assertThat(cache().get("l")).as("the entry of another key").isEmpty();
  }

  /** Lengths that lie behind a checksum that is right. */
  @Test
  void contentThatLies_isAMiss() throws Exception {
    Random random = new Random(7);
    for (int round = 0; round < 2_000; round++) {
      byte[] whole = CodeEntry.encode("k", CODE);
      int content = whole.length - 32;
      int at = 8 + random.nextInt(content - 8);
      whole[at] = (byte) random.nextInt();
      byte[] sum = MessageDigest.getInstance("SHA-256").digest(Arrays.copyOf(whole, content));
      System.arraycopy(sum, 0, whole, content, 32);
      CodeEntry.decode("k", whole); // must not throw
    }
  }

  @Test
  void whatWasNotUsedForLongest_goesFirst() throws IOException {
    int size = CodeEntry.encode("k0", CODE).length;
    CodeFolder three = new CodeFolder(folder(), 3L * size);
    for (int i = 0; i < 3; i++) {
      three.put("k" + i, CODE);
      age("k" + i, Duration.ofMinutes(10 - i));
    }
    assertThat(three.get("k0")).isPresent();
    three.put("k3", CODE);
    assertThat(three.get("k1")).as("used least recently").isEmpty();
    assertThat(three.get("k0")).isPresent();
    assertThat(three.get("k2")).isPresent();
    assertThat(three.get("k3")).isPresent();
    new CodeFolder(folder(), size - 1).put("large", CODE);
    assertThat(files()).as("an entry larger than the limit changes nothing").hasSize(3);
  }

  private void age(String key, Duration duration) throws IOException {
    Files.setLastModifiedTime(
        folder().resolve(key + ".code"), FileTime.from(Instant.now().minus(duration)));
  }

  @Test
  void whatAnotherProcessLeftUnfinished_goesAfterAnHour() throws IOException {
    cache().put("k", CODE);
    Path recent = Files.writeString(folder().resolve(".new1.tmp"), "half");
    Path old = Files.writeString(folder().resolve(".new2.tmp"), "half");
    Path foreign = Files.writeString(folder().resolve("README"), "mine");
    Files.setLastModifiedTime(old, FileTime.from(Instant.now().minus(Duration.ofHours(2))));
    Files.setLastModifiedTime(foreign, FileTime.from(Instant.now().minus(Duration.ofHours(2))));
    cache().put("l", CODE);
    assertThat(old).doesNotExist();
    assertThat(recent).exists();
    assertThat(foreign).exists();
  }

  @Test
  void tenThousandEntries_stayWithinTheLimit() throws IOException {
    cache().put("first", CODE);
    byte[] entry = Files.readAllBytes(files().getFirst());
    for (int i = 0; i < 10_000; i++) {
      Files.write(folder().resolve("e" + i + ".code"), entry);
    }
    new CodeFolder(folder(), 1_000L * entry.length).put("last", CODE);
    long total = 0;
    for (Path file : files()) {
      total += Files.size(file);
    }
    assertThat(total).isBetween(900L * entry.length, 1_000L * entry.length);
    assertThat(cache().get("last")).contains(CODE);
  }

  @Test
  void folderThatOthersCanWriteTo_isNotUsed() throws IOException {
    cache().put("k", CODE);
    for (String permissions : new String[] {"rwxrwx---", "rwx----w-", "rwxrwxrwx"}) {
      Files.setPosixFilePermissions(folder(), PosixFilePermissions.fromString(permissions));
      assertThat(cache().get("k")).as(permissions).isEmpty();
      cache().put("l", CODE);
      assertThat(files()).as(permissions).hasSize(1);
    }
  }

  @Test
  void link_isNotUsed() throws IOException {
    Path real = Files.createDirectory(temporary.resolve("real"));
    Path link = Files.createSymbolicLink(temporary.resolve("link"), real);
    new CodeFolder(link, MUCH).put("k", CODE);
    assertThat(real).isEmptyDirectory();
    Path dangling = Files.createSymbolicLink(temporary.resolve("dangling"), Path.of("gone"));
    new CodeFolder(dangling, MUCH).put("k", CODE);
    assertThat(temporary.resolve("gone")).doesNotExist();
    cache().put("k", CODE);
    Path entry = files().getFirst();
    Files.move(entry, temporary.resolve("elsewhere"));
    Files.createSymbolicLink(entry, temporary.resolve("elsewhere"));
    assertThat(cache().get("k")).as("an entry that is a link").isEmpty();
    assertThat(temporary.resolve("elsewhere")).exists();
  }

  @Test
  void folderOfSomebodyElse_isNotUsed() throws IOException {
    cache().put("k", CODE);
    boolean given;
    try {
      Files.setAttribute(folder(), "unix:uid", 12_345, LinkOption.NOFOLLOW_LINKS);
      given = true;
    } catch (IOException e) {
      given = false; // this user cannot give a folder away
    }
    assumeTrue(given, "only root can give a folder to somebody else");
    assertThat(cache().get("k")).isEmpty();
    cache().put("l", CODE);
    assertThat(files()).hasSize(1);
  }

  @Test
  void folderThatCannotBeWritten_isReadAllTheSame() throws IOException {
    cache().put("k", CODE);
    Files.setPosixFilePermissions(folder(), PosixFilePermissions.fromString("r-x------"));
    try {
      assumeTrue(!Files.isWritable(folder()), "root can write to any folder");
      cache().put("l", CODE);
      assertThat(cache().get("l")).isEmpty();
      assertThat(cache().get("k")).contains(CODE);
    } finally {
      Files.setPosixFilePermissions(folder(), PosixFilePermissions.fromString("rwx------"));
    }
  }

  @Test
  void readOnlyFileSystem_isReadAllTheSame_andTheLogSaysOnceWhyNothingIsKept() throws IOException {
    Path archive = temporary.resolve("kept.zip");
    try (FileSystem writable = FileSystems.newFileSystem(archive, Map.of("create", true))) {
      new CodeFolder(writable.getPath("/cache"), MUCH).put("k", CODE);
    }
    try (FileSystem readOnly =
        FileSystems.newFileSystem(archive, Map.of("accessMode", "readOnly"))) {
      Path kept = readOnly.getPath("/cache");
      Log log = new Log();
      CodeFolder cache = new CodeFolder(kept, MUCH, log);
      cache.put("l", CODE);
      cache.put("m", CODE);
      assertThat(cache.get("l")).isEmpty();
      assertThat(cache.get("k")).contains(CODE);
      assertThat(log.texts)
          .containsExactly(
              "Compiled code is not kept in /cache: java.nio.file.ReadOnlyFileSystemException",
              "/cache/k.code is not touched");
    }
  }

  @Test
  void theLogSaysOnce_whatIsWrongWithAFolder() throws IOException {
    cache().put("k", CODE);
    Files.setPosixFilePermissions(folder(), PosixFilePermissions.fromString("rwxrwxrwx"));
    Log log = new Log();
    CodeFolder open = new CodeFolder(folder(), MUCH, log);
    assertThat(open.get("k")).isEmpty();
    open.put("l", CODE);
    assertThat(log.texts)
        .singleElement(STRING)
        .startsWith("Compiled code is not kept in " + folder())
        .endsWith("rwxrwxrwx (expected: writable for its owner alone)");
  }

  /** Also if only code is looked for there, and nothing is put. */
  @Test
  void theLogSays_whyCodeIsNotLookedFor() throws IOException {
    cache().put("k", CODE);
    Files.setPosixFilePermissions(folder(), PosixFilePermissions.fromString("rwxrwx---"));
    Log log = new Log();
    CodeFolder open = new CodeFolder(folder(), MUCH, log);
    assertThat(open.get("k")).isEmpty();
    assertThat(open.get("k")).isEmpty();
    assertThat(log.texts).singleElement(STRING).contains(" is not kept in ", "rwxrwx---");
  }

  /** In its own words alone. */
  @Test
  void theLogSays_whyAFileSystemCannot() {
    Path strange =
        (Path)
            Proxy.newProxyInstance(
                Path.class.getClassLoader(),
                new Class<?>[] {Path.class},
                (self, method, arguments) -> {
                  return switch (method.getName()) {
                    case "hashCode" -> 1;
                    case "equals" -> self == arguments[0];
                    case "toString" -> "strange";
                    default -> throw new UnsupportedOperationException("no files here");
                  };
                });
    Log log = new Log();
    CodeFolder cache = new CodeFolder(strange, MUCH, log);
    cache.put("k", CODE);
    assertThat(cache.get("k")).isEmpty();
    assertThat(log.texts).containsExactly("Compiled code is not kept in strange: no files here");
  }

  /** Keeps what is logged. */
  private static final class Log implements System.Logger {
    private final List<String> texts = new ArrayList<>();

    @Override
    public String getName() {
      return "tests";
    }

    @Override
    public boolean isLoggable(Level level) {
      return true;
    }

    @Override
    public void log(Level level, ResourceBundle bundle, String text, Throwable thrown) {
      texts.add(text);
    }

    @Override
    public void log(Level level, ResourceBundle bundle, String format, Object... values) {
      texts.add(MessageFormat.format(format, values));
    }
  }

  @Test
  void folderThatCannotBeMade_isNoError() throws IOException {
    Path file = Files.writeString(temporary.resolve("file"), "");
    for (Path none : List.of(file, file.resolve("below"), Path.of("/proc/cuvette-cache"))) {
      CodeFolder cache = new CodeFolder(none, MUCH);
      cache.put("k", CODE);
      assertThat(cache.get("k")).isEmpty();
    }
  }

  @Test
  void manyThreadsAtOnce_seeWholeEntriesOrNone() throws Exception {
    int size = CodeEntry.encode("k0", CODE).length;
    List<Callable<Integer>> all = new ArrayList<>();
    for (int thread = 0; thread < 8; thread++) {
      CodeFolder cache = new CodeFolder(folder(), 5L * size);
      Random random = new Random(thread);
      all.add(() -> {
        int hits = 0;
        for (int i = 0; i < 300; i++) {
          String key = "k" + random.nextInt(8);
          if (random.nextBoolean()) {
            cache.put(key, CODE);
          } else {
            var found = cache.get(key);
            assertThat(found.isEmpty() || found.get().equals(CODE)).isTrue();
            hits += found.isPresent() ? 1 : 0;
          }
        }
        return hits;
      });
    }
    int hits = 0;
    try (ExecutorService threads = Executors.newFixedThreadPool(8)) {
      for (Future<Integer> each : threads.invokeAll(all)) {
        hits += each.get();
      }
    }
    assertThat(hits).isPositive();
    assertThat(files()).allMatch(file -> file.toString().endsWith(".code"));
  }

  /** However old and large they are: they do not count, and stay. */
  @Test
  void whatIsNoEntry_isNotRemoved_whereThereIsTooMuch() throws IOException {
    int size = CodeEntry.encode("k0", CODE).length;
    CodeFolder two = new CodeFolder(folder(), 2L * size);
    two.put("k0", CODE);
    Path outside = Files.write(temporary.resolve("outside"), new byte[8 * size]);
    List<Path> others =
        List.of(
            Files.write(folder().resolve("notes.txt"), new byte[8 * size]),
            Files.createDirectory(folder().resolve("folder.code")),
            Files.createSymbolicLink(folder().resolve("link.code"), outside));
    FileTime old = FileTime.from(Instant.now().minus(Duration.ofDays(400)));
    for (Path each : others) {
      Files.setLastModifiedTime(each, old);
    }
    two.put("k1", CODE);
    assertThat(two.get("k0")).as("there is room for two").contains(CODE);
    age("k0", Duration.ofHours(2));
    age("k1", Duration.ofHours(1));
    two.put("k2", CODE);
    assertThat(two.get("k0")).isEmpty();
    assertThat(two.get("k1")).contains(CODE);
    for (Path each : others) {
      assertThat(Files.exists(each, LinkOption.NOFOLLOW_LINKS)).as("%s", each).isTrue();
    }
    assertThat(outside).exists();
  }
}
