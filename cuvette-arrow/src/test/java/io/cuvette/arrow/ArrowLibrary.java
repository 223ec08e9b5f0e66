package io.cuvette.arrow;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.SymbolLookup;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Optional;
import java.util.stream.Stream;

/** Producer and consumer in C, compiled once; tests are skipped where there is no compiler. */
@SuppressWarnings("restricted")
final class ArrowLibrary {
  private static ArrowLibrary known;

  private final SymbolLookup symbols;

  private ArrowLibrary(SymbolLookup symbols) {
    this.symbols = symbols;
  }

  static synchronized ArrowLibrary open() throws Exception {
    if (known == null) {
      Path folder = Files.createTempDirectory("arrow");
      Path source = folder.resolve("arrow.c");
      Path target = folder.resolve("libarrow.so");
      try (InputStream text = ArrowLibrary.class.getResourceAsStream("arrow.c")) {
        Files.copy(text, source);
      }
      Process compiler =
          new ProcessBuilder(
                  compiler(),
                  "-shared",
                  "-fPIC",
                  "-Wall",
                  "-Werror",
                  "-o",
                  target.toString(),
                  source.toString(),
                  "-lpthread")
              .redirectErrorStream(true)
              .start();
      String said = new String(compiler.getInputStream().readAllBytes());
      if (compiler.waitFor() != 0) {
        throw new AssertionError(said);
      }
      known = new ArrowLibrary(SymbolLookup.libraryLookup(target, Arena.global()));
      Files.delete(source);
      Files.delete(target);
      Files.delete(folder);
    }
    return known;
  }

  private static String compiler() {
    Optional<String> found =
        Stream.of("gcc", "cc", "clang")
            .filter(name ->
                Stream.of(System.getenv().getOrDefault("PATH", "").split(":"))
                    .anyMatch(folder -> Files.isExecutable(Path.of(folder, name))))
            .findFirst();
    assumeTrue(found.isPresent(), "no C compiler on the path");
    return found.orElseThrow();
  }

  long call(String name, Object... arguments) {
    return (long) invoke(name, JAVA_LONG, arguments);
  }

  private Object invoke(String name, MemoryLayout result, Object... arguments) {
    MemoryLayout[] types =
        Arrays.stream(arguments)
            .map(each -> each instanceof Integer ? JAVA_INT : JAVA_LONG)
            .toArray(MemoryLayout[]::new);
    try {
      return Linker.nativeLinker()
          .downcallHandle(symbols.find(name).orElseThrow(), FunctionDescriptor.of(result, types))
          .invokeWithArguments(arguments);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  long releases() {
    return call("releases");
  }
}
