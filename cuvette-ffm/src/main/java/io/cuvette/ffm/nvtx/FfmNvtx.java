package io.cuvette.ffm.nvtx;

import static io.cuvette.ffm.link.Layouts.INT;
import static io.cuvette.ffm.link.Layouts.POINTER;

import io.cuvette.driver.NvtxAttributes;
import io.cuvette.driver.NvtxCalls;
import io.cuvette.ffm.link.NativeAccess;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * NVTX through the interop library where there is one, else through the library of the tool that
 * NVTX_INJECTION64_PATH names. Thread-safe.
 *
 * <p>A tool listens if the environment names one, or if the interop library, which knows other ways
 * to find one, gives a domain.
 */
public final class FfmNvtx implements NvtxCalls {
  private static final System.Logger LOG = System.getLogger("io.cuvette.nvtx");
  private static final String VARIABLE = "NVTX_INJECTION64_PATH";

  /** Compute Sanitizer wants memory to be in a domain that was created. */
  private static final String MEMORY_DOMAIN = "Cuvette";

  /** nvtxMemHeapRegister without a tool that follows memory: NVTX_MEM_HEAP_HANDLE_NO_TOOL. */
  private static final long NO_TOOL = -1;

  private final @Nullable NvtxLibrary library;
  private final @Nullable NvtxFunctions functions;

  /** The domain of memory, created when first used; tools give one name the same domain. */
  private volatile long memoryDomain;

  /** What the process has: a tool attaches once. */
  private static final class Here {
    static final @Nullable NvtxLibrary LIBRARY;
    static final @Nullable NvtxFunctions FUNCTIONS;

    static {
      String tool = System.getenv(VARIABLE);
      boolean named = tool != null && !tool.isBlank();
      Optional<InteropLibrary> interop = InteropLibrary.find();
      NvtxLibrary found = interop.isPresent() ? interop.get() : named ? injected(tool) : null;
      NvtxFunctions bound = found == null ? null : new NvtxFunctions(found);
      boolean listening = bound != null && (named || answers(bound));
      LIBRARY = listening ? found : null;
      FUNCTIONS = listening ? bound : null;
    }
  }

  /** For the service loader; finds the tool. */
  public FfmNvtx() {
    this.library = Here.LIBRARY;
    this.functions = Here.FUNCTIONS;
  }

  FfmNvtx(NvtxLibrary library) {
    this.library = library;
    this.functions = new NvtxFunctions(library);
  }

  private static @Nullable NvtxLibrary injected(String file) {
    try {
      return InjectedTool.attach(file);
    } catch (IllegalArgumentException e) {
      LOG.log(
          System.Logger.Level.WARNING,
          "NVTX is not used: {0}={1}: {2}",
          VARIABLE,
          file,
          e.getMessage());
      return null;
    }
  }

  private static boolean answers(NvtxFunctions functions) {
    return textCall("Cuvette", text -> (long) functions.domainCreate.invokeExact(text)) != 0;
  }

  private interface TextCall {
    long with(MemorySegment text) throws Throwable;
  }

  private static long textCall(String text, TextCall call) {
    try (Arena arena = Arena.ofConfined()) {
      return call.with(arena.allocateFrom(text));
    } catch (Throwable e) { // what a downcall throws
      throw NativeAccess.unexpected(e);
    }
  }

  private NvtxFunctions functions() {
    return Objects.requireNonNull(functions, "no tool listens");
  }

  @Override
  public boolean isListening() {
    return functions != null;
  }

  @Override
  public String library() {
    return Objects.requireNonNull(library, "no tool listens").file();
  }

  @Override
  public long domainCreate(String name) {
    return textCall(name, text -> (long) functions().domainCreate.invokeExact(text));
  }

  @Override
  public void domainNameCategory(long domain, int category, String name) {
    long _ =
        textCall(
            name,
            text -> {
              functions().domainNameCategory.invokeExact(domain, category, text);
              return 0;
            });
  }

  @Override
  public long domainRegisterString(long domain, String text) {
    return textCall(text, c -> (long) functions().domainRegisterString.invokeExact(domain, c));
  }

  private interface EventCall {
    long with(MemorySegment event) throws Throwable;
  }

  private static long eventCall(NvtxAttributes shown, EventCall call) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment event = arena.allocate(NvtxLayouts.EVENT);
      event.set(NvtxLayouts.SHORT, 0, NvtxLayouts.VERSION);
      event.set(NvtxLayouts.SHORT, Short.BYTES, (short) event.byteSize());
      event.setAtIndex(INT, 1, shown.category());
      event.setAtIndex(INT, 2, shown.hasColor() ? NvtxLayouts.COLOR_ARGB : 0);
      event.setAtIndex(INT, 3, shown.color());
      event.setAtIndex(INT, 4, shown.payloadType());
      event.setAtIndex(POINTER, 3, shown.payload());
      boolean registered = shown.registered() != 0;
      event.setAtIndex(
          INT, 8, registered ? NvtxLayouts.MESSAGE_REGISTERED : NvtxLayouts.MESSAGE_ASCII);
      event.setAtIndex(
          POINTER,
          5,
          registered ? shown.registered() : arena.allocateFrom(shown.message()).address());
      return call.with(event);
    } catch (Throwable e) { // what a downcall throws
      throw NativeAccess.unexpected(e);
    }
  }

  @Override
  public void domainMark(long domain, NvtxAttributes event) {
    long _ =
        eventCall(
            event,
            shown -> {
              functions().domainMark.invokeExact(domain, shown);
              return 0;
            });
  }

  @Override
  public void domainRangePush(long domain, NvtxAttributes event) {
    long _ =
        eventCall(event, shown -> (int) functions().domainRangePush.invokeExact(domain, shown));
  }

  @Override
  public void domainRangePop(long domain) {
    try {
      int _ = (int) functions().domainRangePop.invokeExact(domain);
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }

  @Override
  public long domainRangeStart(long domain, NvtxAttributes event) {
    return eventCall(
        event, shown -> (long) functions().domainRangeStart.invokeExact(domain, shown));
  }

  @Override
  public void domainRangeEnd(long domain, long range) {
    try {
      functions().domainRangeEnd.invokeExact(domain, range);
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }

  @Override
  public void nameDevice(int device, String name) {
    long _ =
        textCall(
            name,
            text -> {
              functions().nameDevice.invokeExact(device, text);
              return 0;
            });
  }

  @Override
  public void nameStream(long stream, String name) {
    long _ =
        textCall(
            name,
            text -> {
              functions().nameStream.invokeExact(stream, text);
              return 0;
            });
  }

  private long memoryDomain() {
    long known = memoryDomain;
    if (known == 0) {
      known = domainCreate(MEMORY_DOMAIN);
      memoryDomain = known;
    }
    return known;
  }

  @Override
  public long memHeapRegister(long address, long bytes, String name) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment range = range(arena, address, bytes);
      MemorySegment heap = batch(arena.allocate(NvtxLayouts.HEAP), 0);
      heap.setAtIndex(INT, 2, NvtxLayouts.SUB_ALLOCATOR);
      heap.setAtIndex(INT, 3, NvtxLayouts.VIRTUAL_ADDRESS);
      heap.setAtIndex(POINTER, 2, range.byteSize());
      heap.setAtIndex(POINTER, 3, range.address());
      heap.setAtIndex(INT, 9, NvtxLayouts.MESSAGE_ASCII);
      heap.setAtIndex(POINTER, 5, arena.allocateFrom(name).address());
      long made = (long) functions().memHeapRegister.invokeExact(memoryDomain(), heap);
      return made == NO_TOOL ? 0 : made;
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }

  @Override
  public void memHeapUnregister(long heap) {
    try {
      functions().memHeapUnregister.invokeExact(memoryDomain(), heap);
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }

  @Override
  public void memRegionRegister(long heap, long address, long bytes) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment range = range(arena, address, bytes);
      MemorySegment batch =
          batch(arena.allocate(NvtxLayouts.REGISTER), NvtxLayouts.VIRTUAL_ADDRESS);
      batch.setAtIndex(POINTER, 1, heap);
      batch.setAtIndex(POINTER, 2, 1);
      batch.setAtIndex(POINTER, 3, range.byteSize());
      batch.setAtIndex(POINTER, 4, range.address());
      batch.setAtIndex(POINTER, 5, arena.allocate(POINTER).address());
      functions().memRegionsRegister.invokeExact(memoryDomain(), batch);
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }

  @Override
  public void memRegionUnregister(long address) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment batch = batch(arena.allocate(NvtxLayouts.UNREGISTER), NvtxLayouts.BY_ADDRESS);
      batch.setAtIndex(POINTER, 1, 1);
      batch.setAtIndex(POINTER, 2, POINTER.byteSize());
      batch.setAtIndex(POINTER, 3, arena.allocateFrom(POINTER, address).address());
      functions().memRegionsUnregister.invokeExact(memoryDomain(), batch);
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }

  /** The beginning that the structures about memory share. */
  private static MemorySegment batch(MemorySegment structure, int kind) {
    structure.set(NvtxLayouts.SHORT, 0, NvtxLayouts.MEMORY_VERSION);
    structure.set(NvtxLayouts.SHORT, Short.BYTES, (short) structure.byteSize());
    structure.setAtIndex(INT, 1, kind);
    return structure;
  }

  private static MemorySegment range(Arena arena, long address, long bytes) {
    MemorySegment range = arena.allocate(NvtxLayouts.RANGE);
    range.setAtIndex(POINTER, 0, bytes);
    range.setAtIndex(POINTER, 1, address);
    return range;
  }
}
