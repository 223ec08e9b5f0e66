package io.cuvette.testkit.tidy;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/** The text files of the repository that this test was built from. Stateless. */
final class Repository {
  private static final Set<String> TEXT =
      Set.of("java", "md", "xml", "sh", "py", "c", "h", "cpp", "cu", "txt", "properties");
  private static final Set<String> NAMES = Set.of("cuvette", "run");

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

  static List<SourceFile> read(Path root) {
    List<SourceFile> files = new ArrayList<>();
    try {
      Files.walkFileTree(root, new Reader(root, files));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return files;
  }

  private static boolean isText(String path) {
    String name = path.substring(path.lastIndexOf('/') + 1);
    return path.contains("/META-INF/services/")
        || NAMES.contains(name)
        || TEXT.contains(name.substring(name.lastIndexOf('.') + 1));
  }

  private static final class Reader extends SimpleFileVisitor<Path> {
    private final Path root;
    private final List<SourceFile> files;

    Reader(Path root, List<SourceFile> files) {
      this.root = root;
      this.files = files;
    }

    @Override
    public FileVisitResult preVisitDirectory(Path folder, BasicFileAttributes attributes) {
      String name = folder.getFileName().toString();
      boolean skip = !folder.equals(root) && (name.equals("target") || hidden(name));
      return skip ? FileVisitResult.SKIP_SUBTREE : FileVisitResult.CONTINUE;
    }

    private static boolean hidden(String name) {
      return name.startsWith(".") && !name.equals(".ci");
    }

    @Override
    public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) throws IOException {
      String path = root.relativize(file).toString().replace('\\', '/');
      if (attributes.isRegularFile() && isText(path)) {
        files.add(SourceFile.of(path, Files.readString(file)));
      }
      return FileVisitResult.CONTINUE;
    }
  }
}
