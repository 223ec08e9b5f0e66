package io.cuvette.testkit.tidy;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * The text files of the repository that this test was built from, and not those that a user has put
 * beside them. Stateless.
 */
final class Repository {
  private static final Set<String> TEXT =
      Set.of("java", "md", "xml", "sh", "py", "c", "h", "cpp", "cu", "txt", "properties");
  private static final Set<String> NAMES = Set.of("cuvette", "run");
  private static final Set<String> FOLDERS = Set.of(".ci", "build", "docs", "traces");
  private static final Set<String> PAGES = Set.of("README.md", "CONTRIBUTING.md", "CHANGELOG.md");

  private Repository() {}

  /** The root by the property of the build, else the nearest folder above that looks like it. */
  static Optional<Path> root() {
    String given = System.getProperty("cuvette.root");
    Path from = Path.of(given != null ? given : "").toAbsolutePath();
    for (Path folder = from; folder != null; folder = folder.getParent()) {
      if (Files.isRegularFile(folder.resolve("cuvette-core/pom.xml"))) {
        return Optional.of(folder);
      }
    }
    return Optional.empty();
  }

  /** The texts by their paths from the root, with slashes. */
  static SortedMap<String, String> read(Path root) {
    SortedMap<String, String> texts = new TreeMap<>();
    try {
      Files.walkFileTree(root, new Reader(root, texts));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return texts;
  }

  private static boolean isText(String path) {
    String name = path.substring(path.lastIndexOf('/') + 1);
    return path.contains("/META-INF/services/")
        || NAMES.contains(name)
        || TEXT.contains(name.substring(name.lastIndexOf('.') + 1));
  }

  /** Of the files of the root itself. */
  private static boolean isOurPage(String name) {
    return name.equals("pom.xml") || NAMES.contains(name) || PAGES.contains(name);
  }

  private static final class Reader extends SimpleFileVisitor<Path> {
    private final Path root;
    private final SortedMap<String, String> texts;

    Reader(Path root, SortedMap<String, String> texts) {
      this.root = root;
      this.texts = texts;
    }

    @Override
    public FileVisitResult preVisitDirectory(Path folder, BasicFileAttributes attributes) {
      boolean read = folder.equals(root) || isOurs(folder);
      return read ? FileVisitResult.CONTINUE : FileVisitResult.SKIP_SUBTREE;
    }

    private boolean isOurs(Path folder) {
      String name = folder.getFileName().toString();
      return folder.getParent().equals(root)
          ? FOLDERS.contains(name) || name.startsWith("cuvette-")
          : !name.equals("target") && !name.startsWith(".");
    }

    @Override
    public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) throws IOException {
      String path = root.relativize(file).toString().replace('\\', '/');
      if (attributes.isRegularFile() && isText(path) && (path.contains("/") || isOurPage(path))) {
        texts.put(path, Files.readString(file));
      }
      return FileVisitResult.CONTINUE;
    }
  }
}
