package io.cuvette.ffm.toolkit;

import io.cuvette.driver.CompilerException;
import io.cuvette.driver.OptionalLibrary;
import io.cuvette.ffm.link.Layouts;
import io.cuvette.ffm.link.NativeAccess;
import io.cuvette.ffm.link.SharedLibraries;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * One library of the toolkit, loaded for as long as the process lives, and how what it returns is
 * read. Immutable.
 *
 * @param library which library
 * @param file its file, as it was loaded
 * @param symbols its functions
 */
record ToolLibrary(OptionalLibrary library, String file, SymbolLookup symbols) {
  /** The oldest version that works. */
  static final int OLDEST = 12_000;

  private static final int SUCCESS = 0;
  private static final long LONGEST = Integer.MAX_VALUE - 64L;
  private static final long LONGEST_NAME = 1L << 24;

  /** The versions of CUDA whose libraries the loader is asked for by name, the newest first. */
  private static final List<Integer> MAJORS = List.of(13, 12);

  /**
   * Loads a library.
   *
   * @param property the system property that names another file; none is looked for if it is blank
   * @throws UnsupportedOperationException if there is none that can be loaded
   */
  static ToolLibrary load(OptionalLibrary library, String property) {
    String named = System.getProperty(property);
    List<String> failures = new ArrayList<>();
    for (String candidate : candidates(library, named)) {
      Optional<SymbolLookup> found = SharedLibraries.find(candidate);
      if (found.isPresent()) {
        return new ToolLibrary(library, candidate, found.get());
      }
      if (candidate.contains("/")) {
        failures.add(candidate + ": " + SharedLibraries.loadError(candidate));
      }
    }
    if (named == null && failures.isEmpty()) {
      throw new UnsupportedOperationException(library.missing());
    }
    throw new UnsupportedOperationException(
        "%s cannot be loaded%s%s; install %s"
            .formatted(
                library.title(),
                named == null ? "" : ", -D%s=%s".formatted(property, named),
                failures.isEmpty() ? "" : ": " + String.join("; ", failures),
                library.install()));
  }

  private static List<String> candidates(OptionalLibrary library, @Nullable String named) {
    if (named != null) {
      return named.isBlank() ? List.of() : List.of(named);
    }
    List<String> candidates = new ArrayList<>();
    library.find().ifPresent(path -> candidates.add(path.toString()));
    if (!SharedLibraries.isWindows()) {
      MAJORS.forEach(major -> candidates.add(library.file() + "." + major));
    }
    return candidates;
  }

  /**
   * Binds a function whose result is a status.
   *
   * @throws UnsupportedOperationException if the library lacks it
   */
  MethodHandle bind(String name, MemoryLayout... parameters) {
    return NativeAccess.function(required(name), FunctionDescriptor.of(Layouts.INT, parameters));
  }

  /** Binds a function {@code const char* f(int)}. */
  MethodHandle bindText(String name) {
    return NativeAccess.function(
        required(name), FunctionDescriptor.of(Layouts.POINTER, Layouts.INT));
  }

  private MemorySegment required(String name) {
    return symbols
        .find(name)
        .orElseThrow(() ->
            new UnsupportedOperationException(
                "%s is no %s that can be used: it lacks %s; install %s, of CUDA 12.3 or newer"
                    .formatted(file, library.title(), name, library.install())));
  }

  /**
   * The number of a version, such as 13000.
   *
   * @throws UnsupportedOperationException if it is too old
   */
  int checkVersion(int major, int minor) {
    int version = major * 1000 + minor * 10;
    if (version < OLDEST) {
      throw new UnsupportedOperationException(
          "%s is %s %d.%d (expected: 12.0 or newer); install %s"
              .formatted(file, library.title(), major, minor, library.install()));
    }
    return version;
  }

  /** A call that returns a status. */
  interface StatusCall {
    int call() throws Throwable;
  }

  /** The status of a call. */
  static int status(StatusCall call) {
    try {
      return call.call();
    } catch (Throwable e) { // what a downcall throws
      throw NativeAccess.unexpected(e);
    }
  }

  /** Calls a function and throws if it reports an error. */
  void check(String call, StatusNames names, StatusCall function) {
    int status = status(function);
    if (status != SUCCESS) {
      throw new CompilerException(call, status, names.name(status), "");
    }
  }

  /** How a status is called. */
  interface StatusNames {
    String name(int status);
  }

  /**
   * What a pair of functions returns: the first the size in bytes, the second the bytes.
   *
   * @param call how messages show it
   * @param size takes a handle and the address of the size
   * @param get takes a handle and the address of the bytes
   */
  byte[] bytes(String call, StatusNames names, MethodHandle size, MethodHandle get, long handle) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment count = arena.allocate(Layouts.SIZE);
      check(call + "Size", names, () -> (int) size.invokeExact(handle, count));
      long bytes = count.get(Layouts.SIZE, 0);
      if (bytes == 0) {
        return new byte[0];
      }
      if (bytes < 0 || bytes > LONGEST) {
        throw new CompilerException(
            call + "Size",
            0,
            "%s bytes (expected: at most %d)".formatted(Long.toUnsignedString(bytes), LONGEST),
            "");
      }
      MemorySegment content = arena.allocate(bytes);
      check(call, names, () -> (int) get.invokeExact(handle, content));
      return content.toArray(ValueLayout.JAVA_BYTE);
    }
  }

  /** Bytes up to the first 0, if there is one. */
  static String text(byte[] bytes) {
    int end = 0;
    while (end < bytes.length && bytes[end] != 0) {
      end++;
    }
    return new String(bytes, 0, end, StandardCharsets.UTF_8);
  }

  /** Bytes without the 0 that ends them. */
  static byte[] withoutZero(byte[] bytes) {
    return bytes.length > 0 && bytes[bytes.length - 1] == 0
        ? Arrays.copyOf(bytes, bytes.length - 1)
        : bytes;
  }

  /** The text at an address; empty for none. */
  static String text(long address) {
    return address == 0 ? "" : NativeAccess.memory(address, LONGEST_NAME).getString(0);
  }

  /** Texts as C has them: an array of pointers. */
  static MemorySegment texts(Arena arena, List<String> texts) {
    MemorySegment array = arena.allocate(Layouts.POINTER, Math.max(1, texts.size()));
    for (int i = 0; i < texts.size(); i++) {
      array.setAtIndex(Layouts.POINTER, i, arena.allocateFrom(texts.get(i)).address());
    }
    return array;
  }
}
