package io.cuvette.ffm.nvtx;

import io.cuvette.driver.OptionalLibrary;
import io.cuvette.ffm.link.SharedLibraries;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * The library libnvtx3interop, which attaches the tool by itself. The system property {@code
 * cuvette.nvtx} names another file. Thread-safe.
 */
record InteropLibrary(String file, SymbolLookup symbols) implements NvtxLibrary {
  private static final String NAME = "libnvtx3interop.so.1";

  static Optional<InteropLibrary> find() {
    for (String candidate : candidates()) {
      Optional<SymbolLookup> found = SharedLibraries.find(candidate);
      if (found.isPresent() && found.get().find("nvtxDomainMarkEx").isPresent()) {
        return Optional.of(new InteropLibrary(candidate, found.get()));
      }
    }
    return Optional.empty();
  }

  private static List<String> candidates() {
    String named = System.getProperty("cuvette.nvtx");
    if (named != null) {
      return named.isBlank() ? List.of() : List.of(named);
    }
    List<String> candidates = new ArrayList<>();
    candidates.add(SharedLibraries.isWindows() ? "nvtx3interop.dll" : NAME);
    OptionalLibrary.NVTX.find().map(Path::toString).ifPresent(candidates::add);
    return candidates;
  }

  @Override
  public long find(String function) {
    return symbols.find(function).map(MemorySegment::address).orElse(0L);
  }
}
