package io.cuvette.ffm.library;

import io.cuvette.ffm.link.SharedLibraries;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;

/**
 * The CUDA runtime library, which this library does without and programs like to know of: where the
 * system's loader finds it, else in the toolkit that CUDA_PATH or CUDA_HOME names. Thread-safe.
 */
public final class RuntimeLibrary {
  private static final OptionalInt VERSION = search();

  private RuntimeLibrary() {}

  /** Its version, if there is one on the machine (cudaRuntimeGetVersion). */
  public static OptionalInt version() {
    return VERSION;
  }

  private static OptionalInt search() {
    for (String candidate : candidates()) {
      Optional<MemorySegment> function =
          SharedLibraries.find(candidate)
              .flatMap((SymbolLookup library) -> library.find("cudaRuntimeGetVersion"));
      if (function.isPresent()) {
        return version(function.get());
      }
    }
    return OptionalInt.empty();
  }

  private static List<String> candidates() {
    boolean windows = SharedLibraries.isWindows();
    List<String> names =
        windows
            ? List.of("cudart64_13.dll", "cudart64_12.dll")
            : List.of("libcudart.so.13", "libcudart.so.12", "libcudart.so");
    List<String> candidates = new ArrayList<>(names);
    for (String variable : List.of("CUDA_PATH", "CUDA_HOME")) {
      String toolkit = System.getenv(variable);
      if (toolkit != null && !toolkit.isBlank()) {
        Path folder = Path.of(toolkit, windows ? "bin" : "lib64");
        names.forEach(name -> candidates.add(folder.resolve(name).toString()));
      }
    }
    return candidates;
  }

  private static OptionalInt version(MemorySegment function) {
    SharedLibraries.Version version = SharedLibraries.version(function);
    return version.status() == 0 ? OptionalInt.of(version.number()) : OptionalInt.empty();
  }
}
