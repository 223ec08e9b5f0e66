package io.cuvette.ffm.nvtx;

import static io.cuvette.ffm.link.Layouts.INT;
import static io.cuvette.ffm.link.Layouts.POINTER;
import static io.cuvette.ffm.link.Layouts.SEGMENT;

import io.cuvette.ffm.link.NativeAccess;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.List;
import java.util.Map;

/**
 * A tool that is called without the interop library: it is given tables, as by every program that
 * has NVTX compiled in, and writes the addresses of its functions there. Thread-safe; the process
 * has it once, and keeps it.
 */
final class InjectedTool implements NvtxLibrary {
  /** NVTX_ETID_CALLBACKS and NVTX_ETID_VERSIONINFO. */
  private static final int CALLBACKS = 1;

  private static final int VERSION_INFO = 3;

  /** NvtxCallbackModule: CORE, CUDA, OPENCL, CUDART, CORE2, SYNC from 1, and their functions. */
  private static final int[] MODULE_SIZES = {0, 16, 9, 15, 7, 16, 7};

  /** NVTX_EXT_MEM_SLOT_COUNT. */
  private static final int MEMORY_SLOTS = 63;

  private static final int CUDA = 2;
  private static final int CORE2 = 5;
  private static final int MEMORY = MODULE_SIZES.length;

  /** The module and the number of each function that is called here. */
  private static final Map<String, List<Integer>> PLACES =
      Map.ofEntries(
          Map.entry("nvtxDomainMarkEx", List.of(CORE2, 1)),
          Map.entry("nvtxDomainRangeStartEx", List.of(CORE2, 2)),
          Map.entry("nvtxDomainRangeEnd", List.of(CORE2, 3)),
          Map.entry("nvtxDomainRangePushEx", List.of(CORE2, 4)),
          Map.entry("nvtxDomainRangePop", List.of(CORE2, 5)),
          Map.entry("nvtxDomainNameCategoryA", List.of(CORE2, 8)),
          Map.entry("nvtxDomainRegisterStringA", List.of(CORE2, 10)),
          Map.entry("nvtxDomainCreateA", List.of(CORE2, 12)),
          Map.entry("nvtxNameCuDeviceA", List.of(CUDA, 1)),
          Map.entry("nvtxNameCuStreamA", List.of(CUDA, 5)),
          Map.entry("nvtxMemHeapRegister", List.of(MEMORY, 0)),
          Map.entry("nvtxMemHeapUnregister", List.of(MEMORY, 1)),
          Map.entry("nvtxMemRegionsRegister", List.of(MEMORY, 3)),
          Map.entry("nvtxMemRegionsUnregister", List.of(MEMORY, 5)));

  private final String file;
  private final MemorySegment[] functions = new MemorySegment[MEMORY + 1];
  private final MemorySegment[] tables = new MemorySegment[MODULE_SIZES.length];
  private final MemorySegment callbacks;
  private final MemorySegment versionInfo;

  private InjectedTool(String file) {
    this.file = file;
    Arena ever = Arena.global();
    for (int module = 0; module < MODULE_SIZES.length; module++) {
      int size = MODULE_SIZES[module];
      functions[module] = ever.allocate(POINTER, size + 1L);
      tables[module] = ever.allocate(POINTER, size + 1L); // a 0 first and last
      for (int i = 1; i < size; i++) {
        long place = functions[module].address() + i * POINTER.byteSize();
        tables[module].setAtIndex(POINTER, i, place);
      }
    }
    functions[MEMORY] = ever.allocate(POINTER, MEMORY_SLOTS);
    callbacks = ever.allocate(POINTER, 2);
    callbacks.set(POINTER, 0, callbacks.byteSize());
    versionInfo = ever.allocate(POINTER, 3);
    versionInfo.set(POINTER, 0, versionInfo.byteSize());
    versionInfo.set(INT, POINTER.byteSize(), NvtxLayouts.VERSION);
  }

  /**
   * Loads the library of a tool and lets it attach.
   *
   * @throws IllegalArgumentException if it cannot be loaded, is of no tool, or does not attach
   */
  static InjectedTool attach(String file) {
    SymbolLookup symbols = NativeAccess.load(file);
    MemorySegment attach =
        symbols
            .find("InitializeInjectionNvtx2")
            .orElseThrow(() ->
                new IllegalArgumentException(file + " has no function InitializeInjectionNvtx2"));
    InjectedTool tool = new InjectedTool(file);
    if (!tool.attach(attach)) {
      throw new IllegalArgumentException("InitializeInjectionNvtx2 of " + file + " returned 0");
    }
    symbols.find("InitializeInjectionNvtxExtension").ifPresent(tool::attachMemory);
    return tool;
  }

  private boolean attach(MemorySegment function) {
    callbacks.set(
        POINTER,
        POINTER.byteSize(),
        callback("table", FunctionDescriptor.of(INT, INT, POINTER, POINTER)));
    versionInfo.set(
        POINTER, 2 * POINTER.byteSize(), callback("version", FunctionDescriptor.ofVoid(INT)));
    long exports = callback("export", FunctionDescriptor.of(POINTER, INT));
    MethodHandle call = NativeAccess.function(function, FunctionDescriptor.of(INT, POINTER));
    try {
      return (int) call.invokeExact(exports) != 0;
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }

  /** The extension for memory, which a tool may have or not. */
  private void attachMemory(MemorySegment function) {
    MemorySegment segment = Arena.global().allocate(NvtxLayouts.SEGMENT);
    segment.setAtIndex(POINTER, 0, 1);
    segment.setAtIndex(POINTER, 1, MEMORY_SLOTS);
    segment.setAtIndex(POINTER, 2, functions[MEMORY].address());
    MemorySegment module = Arena.global().allocate(NvtxLayouts.MODULE);
    module.setAtIndex(NvtxLayouts.SHORT, 0, NvtxLayouts.VERSION);
    module.setAtIndex(NvtxLayouts.SHORT, 1, (short) module.byteSize());
    module.setAtIndex(NvtxLayouts.SHORT, 2, NvtxLayouts.MEMORY_MODULE);
    module.setAtIndex(NvtxLayouts.SHORT, 3, NvtxLayouts.MEMORY_VERSION);
    module.setAtIndex(POINTER, 1, 1);
    module.setAtIndex(POINTER, 2, segment.address());
    MethodHandle call = NativeAccess.function(function, FunctionDescriptor.of(INT, SEGMENT));
    try {
      int _ = (int) call.invokeExact(module); // what it does not follow stays 0
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }

  private long callback(String method, FunctionDescriptor type) {
    try {
      MethodType java = type.toMethodType();
      MethodHandle target = MethodHandles.lookup().bind(this, method, java);
      return NativeAccess.callback(target, type).address();
    } catch (ReflectiveOperationException e) {
      throw new LinkageError(e.getMessage(), e);
    }
  }

  /** NvtxGetExportTableFunc_t; called by the tool. */
  long export(int table) {
    return switch (table) {
      case CALLBACKS -> callbacks.address();
      case VERSION_INFO -> versionInfo.address();
      default -> 0;
    };
  }

  /** GetModuleFunctionTable; called by the tool. */
  int table(int module, long table, long size) {
    if (module < 1 || module >= MODULE_SIZES.length) {
      return 0;
    }
    if (table != 0) {
      NativeAccess.memory(table, Long.BYTES)
          .set(ValueLayout.JAVA_LONG_UNALIGNED, 0, tables[module].address());
    }
    if (size != 0) {
      NativeAccess.memory(size, Integer.BYTES)
          .set(ValueLayout.JAVA_INT_UNALIGNED, 0, MODULE_SIZES[module]);
    }
    return 1;
  }

  /** SetInjectionNvtxVersion; the version of a tool changes nothing here, as in nvtxInit.h. */
  void version(int number) {}

  @Override
  public String file() {
    return file;
  }

  @Override
  public long find(String function) {
    List<Integer> place = PLACES.getOrDefault(function, List.of());
    return place.isEmpty() ? 0 : functions[place.get(0)].getAtIndex(POINTER, place.get(1));
  }
}
