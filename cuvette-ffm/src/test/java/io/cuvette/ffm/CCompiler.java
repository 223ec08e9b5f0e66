package io.cuvette.ffm;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;

/** The C compiler of the machine; tests that need it are skipped where there is none. */
public final class CCompiler {
  /** What was compiled in this JVM, by all that it was compiled from: most tests need the same. */
  private static final Map<List<String>, byte[]> COMPILED = new ConcurrentHashMap<>();

  private CCompiler() {}

  /**
   * Compiles a source; fails with the compiler's words if it does not compile. Each target is a
   * file of its own, as the linker knows libraries by their files.
   */
  public static Path compile(Path source, Path target, String... options)
      throws IOException, InterruptedException {
    List<String> key = key(source, options);
    byte[] compiled = COMPILED.get(key);
    if (compiled == null) {
      compileAnew(source, target, options);
      COMPILED.put(key, Files.readAllBytes(target));
    } else {
      Files.write(target, compiled);
      Files.setPosixFilePermissions(target, PosixFilePermissions.fromString("rwxr-xr-x"));
    }
    return target;
  }

  /** The options, the source and the headers beside it. */
  private static List<String> key(Path source, String... options) throws IOException {
    List<String> key = new ArrayList<>(List.of(options));
    key.add(Files.readString(source));
    try (Stream<Path> beside = Files.list(source.resolveSibling(""))) {
      for (Path file : beside.filter(each -> each.toString().endsWith(".h")).sorted().toList()) {
        key.add(file.getFileName().toString());
        key.add(Files.readString(file));
      }
    }
    return key;
  }

  private static void compileAnew(Path source, Path target, String... options)
      throws IOException, InterruptedException {
    List<String> command = new ArrayList<>(List.of(find(), "-o", target.toString()));
    command.addAll(List.of(options));
    command.add(source.toString());
    command.add("-lpthread");
    run(command);
  }

  /** What a program prints. */
  public static String run(List<String> command) throws IOException, InterruptedException {
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    String output;
    try (InputStream stream = process.getInputStream()) {
      output = new String(stream.readAllBytes(), StandardCharsets.UTF_8);
    }
    if (process.waitFor() != 0) {
      throw new AssertionError(String.join(" ", command) + "\n" + output);
    }
    return output;
  }

  private static String find() {
    Optional<String> compiler =
        Stream.of("gcc", "cc", "clang").filter(name -> onPath(name).isPresent()).findFirst();
    assumeTrue(compiler.isPresent(), "no C compiler on the path");
    return compiler.orElseThrow();
  }

  /** A program on the path. */
  static Optional<Path> onPath(String name) {
    return Stream.of(System.getenv().getOrDefault("PATH", "").split(":"))
        .map(folder -> Path.of(folder, name))
        .filter(Files::isExecutable)
        .findFirst();
  }

  /** The folder of cuda.h; tests that need it are skipped where there is none. */
  static Path cudaHeaders() {
    Optional<Path> nvcc = onPath("nvcc").map(CCompiler::realPath);
    Optional<Path> headers =
        Stream.of(
                Optional.ofNullable(System.getenv("CUDA_HOME")).map(Path::of),
                Optional.ofNullable(System.getenv("CUDA_PATH")).map(Path::of),
                nvcc.map(Path::getParent).map(Path::getParent),
                Optional.of(Path.of("/usr/local/cuda")),
                Optional.of(Path.of("/usr")))
            .flatMap(Optional::stream)
            .map(toolkit -> toolkit.resolve("include"))
            .filter(include -> Files.isRegularFile(include.resolve("cudaTypedefs.h")))
            .findFirst();
    assumeTrue(headers.isPresent(), "no cuda.h");
    return headers.orElseThrow();
  }

  private static Path realPath(Path path) {
    try {
      return path.toRealPath();
    } catch (IOException e) {
      return path;
    }
  }
}
