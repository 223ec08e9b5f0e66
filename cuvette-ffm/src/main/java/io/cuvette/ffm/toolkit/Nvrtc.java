package io.cuvette.ffm.toolkit;

import static io.cuvette.ffm.link.Layouts.INT;
import static io.cuvette.ffm.link.Layouts.POINTER;
import static io.cuvette.ffm.link.Layouts.SEGMENT;

import io.cuvette.driver.OptionalLibrary;
import io.cuvette.ffm.link.NativeAccess;
import io.cuvette.ffm.link.SharedLibraries;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.Optional;

/** The functions of NVRTC, bound once. Immutable. */
final class Nvrtc {
  static final String PROPERTY = "cuvette.nvrtc";

  final ToolLibrary library;
  final int version;
  final MethodHandle errorString;
  final MethodHandle countArchitectures;
  final MethodHandle getArchitectures;
  final MethodHandle create;
  final MethodHandle destroy;
  final MethodHandle addNameExpression;
  final MethodHandle compile;
  final MethodHandle logSize;
  final MethodHandle log;
  final MethodHandle ptxSize;
  final MethodHandle ptx;
  final MethodHandle cubinSize;
  final MethodHandle cubin;
  final MethodHandle ltoIrSize;
  final MethodHandle ltoIr;
  final MethodHandle loweredName;

  private Nvrtc(ToolLibrary library) {
    this.library = library;
    errorString = library.bindText("nvrtcGetErrorString");
    version = version(library.bind("nvrtcVersion", SEGMENT, SEGMENT));
    countArchitectures = library.bind("nvrtcGetNumSupportedArchs", SEGMENT);
    getArchitectures = library.bind("nvrtcGetSupportedArchs", SEGMENT);
    create = library.bind("nvrtcCreateProgram", SEGMENT, SEGMENT, SEGMENT, INT, SEGMENT, SEGMENT);
    destroy = library.bind("nvrtcDestroyProgram", SEGMENT);
    addNameExpression = library.bind("nvrtcAddNameExpression", POINTER, SEGMENT);
    compile = library.bind("nvrtcCompileProgram", POINTER, INT, SEGMENT);
    logSize = library.bind("nvrtcGetProgramLogSize", POINTER, SEGMENT);
    log = library.bind("nvrtcGetProgramLog", POINTER, SEGMENT);
    ptxSize = library.bind("nvrtcGetPTXSize", POINTER, SEGMENT);
    ptx = library.bind("nvrtcGetPTX", POINTER, SEGMENT);
    cubinSize = library.bind("nvrtcGetCUBINSize", POINTER, SEGMENT);
    cubin = library.bind("nvrtcGetCUBIN", POINTER, SEGMENT);
    ltoIrSize = library.bind("nvrtcGetLTOIRSize", POINTER, SEGMENT);
    ltoIr = library.bind("nvrtcGetLTOIR", POINTER, SEGMENT);
    loweredName = library.bind("nvrtcGetLoweredName", POINTER, SEGMENT, SEGMENT);
  }

  /** Loads the library. */
  static Nvrtc load() {
    Nvrtc loaded = new Nvrtc(ToolLibrary.load(OptionalLibrary.NVRTC, PROPERTY));
    loadBuiltins(loaded.library.file(), loaded.version);
    return loaded;
  }

  /**
   * Loads the library of built-in functions that lies beside. NVRTC asks the loader for it by its
   * name, which does not find it in a folder that the loader does not know, as that of a package of
   * Python; once it is loaded it is found by its name.
   */
  private static void loadBuiltins(String file, int version) {
    if (!file.contains("/") || SharedLibraries.isWindows()) {
      return;
    }
    String name = "libnvrtc-builtins.so.%d.%d".formatted(version / 1000, version % 1000 / 10);
    try {
      Optional<SymbolLookup> _ =
          SharedLibraries.find(Path.of(file).toRealPath().resolveSibling(name).toString());
    } catch (IOException e) {
      throw new UnsupportedOperationException(file + " is gone since it was loaded", e);
    }
  }

  private int version(MethodHandle function) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment major = arena.allocate(INT);
      MemorySegment minor = arena.allocate(INT);
      library.check(
          "nvrtcVersion()", this::statusName, () -> (int) function.invokeExact(major, minor));
      return library.checkVersion(major.get(INT, 0), minor.get(INT, 0));
    }
  }

  /** The name of a status, such as NVRTC_ERROR_COMPILATION. */
  String statusName(int status) {
    try {
      return ToolLibrary.text((long) errorString.invokeExact(status));
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }
}
