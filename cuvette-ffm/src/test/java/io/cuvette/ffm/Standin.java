package io.cuvette.ffm;

import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * A driver library with real host memory, for machines without a GPU: what crashes the JVM with a
 * GPU crashes it with this. So it is loaded by JVMs of their own, which a test starts.
 */
@SuppressWarnings("restricted")
final class Standin {
  private static final String[] PARTS = {
    "standin.h", "standin_captures.h", "standin_memory.h", "standin_streams.h"
  };

  /** What it counts, in the order of its numbers. */
  enum Count {
    MISUSES,
    STREAMS,
    EVENTS,
    DEVICE_BYTES,
    HOST_BLOCKS
  }

  private Standin() {}

  /** Compiles the library; tests that need it are skipped where there is no C compiler. */
  static Path compile(Path folder, String... options) throws IOException, InterruptedException {
    String[] all =
        Stream.concat(Stream.of("-shared", "-fPIC", "-O1"), Stream.of(options))
            .toArray(String[]::new);
    return CCompiler.compile(source(folder), folder.resolve("libcuda.so.1"), all);
  }

  private static Path source(Path folder) throws IOException {
    for (String part : PARTS) {
      copy(part, folder);
    }
    return copy("standin_libcuda.c", folder);
  }

  private static Path copy(String resource, Path folder) throws IOException {
    try (InputStream text = Standin.class.getResourceAsStream(resource)) {
      return Files.write(folder.resolve(resource), text.readAllBytes());
    }
  }

  /** What is counted in this JVM; empty if its driver is no stand-in. */
  static Optional<Long> count(Count count) {
    String library = System.getProperty("cuvette.libcuda", "libcuda.so.1");
    return SymbolLookup.libraryLookup(library, Arena.global())
        .find("standin_count")
        .map(address -> {
          MethodHandle function =
              Linker.nativeLinker()
                  .downcallHandle(
                      address, FunctionDescriptor.of(ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT));
          try {
            return (long) function.invokeExact(count.ordinal());
          } catch (Throwable e) {
            throw new AssertionError(e);
          }
        });
  }
}
