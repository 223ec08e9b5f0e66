import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Comparator;
import java.util.List;
import java.util.spi.ToolProvider;
import java.util.stream.Stream;

/**
 * Puts a Java runtime, the jars, the tests and the benchmarks into one archive. Runs on the JDK
 * whose runtime goes into it.
 *
 * <p>Arguments: the root of the sources (built), the folder of the jars, the folder for the result.
 */
final class Assemble {
  private static final long LIMIT_BYTES = 64L << 20;

  /** What the product, JUnit, AssertJ and JMH need; jcmd is there to look at a test that hangs. */
  private static final String JDK_MODULES =
      "java.base,java.instrument,java.logging,java.management,java.xml,"
          + "jdk.httpserver,jdk.jcmd,jdk.jfr,jdk.management,jdk.management.jfr,jdk.unsupported,"
          + "jdk.zipfs";

  private static final List<String> TESTED =
      List.of(
          "cuvette-core",
          "cuvette-ffm",
          "cuvette-tests",
          "cuvette-array",
          "cuvette-arrow",
          "cuvette-cli");

  private final Path root;
  private final Path jars;
  private final Path bundle;

  private Assemble(Path root, Path jars, Path bundle) {
    this.root = root;
    this.jars = jars;
    this.bundle = bundle;
  }

  public static void main(String[] args) throws IOException, InterruptedException {
    Path target = Path.of(args[2]);
    delete(target);
    Path bundle = Files.createDirectories(target.resolve("cuvette-gpu"));
    new Assemble(Path.of(args[0]), Path.of(args[1]), bundle).assemble();
    pack(target);
  }

  private void assemble() throws IOException {
    jlink();
    copy(root.resolve("cuvette-cli/target/lib"), bundle.resolve("lib"));
    copyOtherJars();
    for (String module : TESTED) {
      copy(root.resolve(module).resolve("target/test-classes"), bundle.resolve("tests/" + module));
    }
    copy(
        root.resolve("cuvette-benchmarks/target/benchmarks.jar"), bundle.resolve("benchmarks.jar"));
    copy(root.resolve("cuvette-benchmarks/anchors"), bundle.resolve("cuvette-benchmarks/anchors"));
    copy(root.resolve("cuvette-benchmarks/compare"), bundle.resolve("cuvette-benchmarks/compare"));
    copy(root.resolve("traces"), bundle.resolve("traces"));
    copy(root.resolve("LICENSE"), bundle.resolve("LICENSE"));
    copy(root.resolve("build/gpu-bundle/run"), bundle.resolve("run"));
  }

  private void jlink() {
    String[] options = {
      "--add-modules",
      JDK_MODULES,
      "--output",
      bundle.resolve("runtime").toString(),
      "--strip-debug",
      "--no-header-files",
      "--no-man-pages"
    };
    ToolProvider jlink =
        ToolProvider.findFirst("jlink").orElseThrow(() -> new IllegalStateException("no jlink"));
    if (jlink.run(new PrintWriter(System.out, true), new PrintWriter(System.err, true), options)
        != 0) {
      throw new IllegalStateException("jlink failed");
    }
  }

  /** The jars that only tests need: those that are not on the command line's module path. */
  private void copyOtherJars() throws IOException {
    Path testLib = Files.createDirectories(bundle.resolve("testlib"));
    try (Stream<Path> found = Files.list(jars)) {
      for (Path jar : found.toList()) {
        if (!Files.exists(bundle.resolve("lib").resolve(jar.getFileName()))) {
          copy(jar, testLib.resolve(jar.getFileName()));
        }
      }
    }
  }

  private static void pack(Path target) throws IOException, InterruptedException {
    Path archive = target.resolve("cuvette-gpu.tar.xz");
    ProcessBuilder tar =
        new ProcessBuilder(
                "tar", "-cJf", archive.toString(), "-C", target.toString(), "cuvette-gpu")
            .inheritIO();
    tar.environment().put("XZ_OPT", "-2 -T0");
    if (tar.start().waitFor() != 0) {
      throw new IllegalStateException("tar failed: are tar and xz installed?");
    }
    long bytes = Files.size(archive);
    System.out.printf("%s: %.1f MiB%n", archive, bytes / 1024.0 / 1024.0);
    if (bytes > LIMIT_BYTES) {
      throw new IllegalStateException(
          "archive: " + bytes + " bytes (expected: <= " + LIMIT_BYTES + ")");
    }
  }

  private static void copy(Path from, Path to) throws IOException {
    if (!Files.exists(from)) {
      return; // a module without tests
    }
    try (Stream<Path> found = Files.walk(from)) {
      for (Path path : found.toList()) {
        Path copy = to.resolve(from.relativize(path).toString());
        Files.createDirectories(copy.getParent());
        Files.copy(
            path, copy, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.COPY_ATTRIBUTES);
      }
    }
  }

  private static void delete(Path folder) throws IOException {
    if (Files.exists(folder)) {
      try (Stream<Path> found = Files.walk(folder)) {
        for (Path path : found.sorted(Comparator.reverseOrder()).toList()) {
          Files.delete(path);
        }
      }
    }
  }
}
