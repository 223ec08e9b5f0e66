package io.cuvette.ffm.toolkit;

import static io.cuvette.ffm.link.Layouts.INT;
import static io.cuvette.ffm.link.Layouts.POINTER;
import static io.cuvette.ffm.link.Layouts.SEGMENT;
import static io.cuvette.ffm.link.Layouts.SIZE;

import io.cuvette.driver.OptionalLibrary;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.List;

/** The functions of nvJitLink, bound once, and the names of its statuses. Immutable. */
final class NvJitLink {
  static final String PROPERTY = "cuvette.nvjitlink";

  private static final List<String> NAMES =
      List.of(
          "SUCCESS",
          "ERROR_UNRECOGNIZED_OPTION",
          "ERROR_MISSING_ARCH",
          "ERROR_INVALID_INPUT",
          "ERROR_PTX_COMPILE",
          "ERROR_NVVM_COMPILE",
          "ERROR_INTERNAL",
          "ERROR_THREADPOOL",
          "ERROR_UNRECOGNIZED_INPUT",
          "ERROR_FINALIZE",
          "ERROR_NULL_INPUT",
          "ERROR_INCOMPATIBLE_OPTIONS",
          "ERROR_INCORRECT_INPUT_TYPE",
          "ERROR_ARCH_MISMATCH",
          "ERROR_OUTDATED_LIBRARY",
          "ERROR_MISSING_FATBIN",
          "ERROR_UNRECOGNIZED_ARCH",
          "ERROR_UNSUPPORTED_ARCH",
          "ERROR_LTO_NOT_ENABLED");

  final ToolLibrary library;
  final int version;
  final MethodHandle create;
  final MethodHandle destroy;
  final MethodHandle addData;
  final MethodHandle complete;
  final MethodHandle cubinSize;
  final MethodHandle cubin;
  final MethodHandle ptxSize;
  final MethodHandle ptx;
  final MethodHandle errorLogSize;
  final MethodHandle errorLog;
  final MethodHandle infoLogSize;
  final MethodHandle infoLog;

  private NvJitLink(ToolLibrary library) {
    this.library = library;
    version = version(library.bind("nvJitLinkVersion", SEGMENT, SEGMENT));
    create = library.bind("nvJitLinkCreate", SEGMENT, INT, SEGMENT);
    destroy = library.bind("nvJitLinkDestroy", SEGMENT);
    addData = library.bind("nvJitLinkAddData", POINTER, INT, SEGMENT, SIZE, SEGMENT);
    complete = library.bind("nvJitLinkComplete", POINTER);
    cubinSize = library.bind("nvJitLinkGetLinkedCubinSize", POINTER, SEGMENT);
    cubin = library.bind("nvJitLinkGetLinkedCubin", POINTER, SEGMENT);
    ptxSize = library.bind("nvJitLinkGetLinkedPtxSize", POINTER, SEGMENT);
    ptx = library.bind("nvJitLinkGetLinkedPtx", POINTER, SEGMENT);
    errorLogSize = library.bind("nvJitLinkGetErrorLogSize", POINTER, SEGMENT);
    errorLog = library.bind("nvJitLinkGetErrorLog", POINTER, SEGMENT);
    infoLogSize = library.bind("nvJitLinkGetInfoLogSize", POINTER, SEGMENT);
    infoLog = library.bind("nvJitLinkGetInfoLog", POINTER, SEGMENT);
  }

  /** Loads the library; nvJitLinkVersion is there since CUDA 12.3. */
  static NvJitLink load() {
    return new NvJitLink(ToolLibrary.load(OptionalLibrary.NVJITLINK, PROPERTY));
  }

  private int version(MethodHandle function) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment major = arena.allocate(INT);
      MemorySegment minor = arena.allocate(INT);
      library.check(
          "nvJitLinkVersion()",
          NvJitLink::statusName,
          () -> (int) function.invokeExact(major, minor));
      return library.checkVersion(major.get(INT, 0), minor.get(INT, 0));
    }
  }

  /** The name of a status, such as NVJITLINK_ERROR_PTX_COMPILE. */
  static String statusName(int status) {
    return status >= 0 && status < NAMES.size()
        ? "NVJITLINK_" + NAMES.get(status)
        : "an unknown nvJitLinkResult";
  }
}
