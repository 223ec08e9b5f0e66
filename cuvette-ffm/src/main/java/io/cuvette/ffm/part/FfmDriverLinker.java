package io.cuvette.ffm.part;

import static io.cuvette.ffm.link.Layouts.INT;
import static io.cuvette.ffm.link.Layouts.POINTER;
import static io.cuvette.ffm.link.Layouts.SEGMENT;
import static io.cuvette.ffm.link.Layouts.SIZE;

import io.cuvette.driver.CompilerException;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.LinkerCalls;
import io.cuvette.ffm.call.Call;
import io.cuvette.ffm.call.Entry;
import io.cuvette.ffm.call.Startup;
import io.cuvette.ffm.library.DriverLibrary;
import io.cuvette.ffm.library.Libcuda;
import io.cuvette.ffm.link.NativeAccess;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.ref.Reference;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;

/**
 * The driver's own linker (cuLinkCreate and what belongs to it), where nvJitLink is missing. It is
 * given nvJitLink's options and kinds of input, of which it knows fewer, and links to cubins alone.
 * It needs a device, whose primary context is retained while a linker exists. Thread-safe.
 */
public final class FfmDriverLinker implements LinkerCalls {
  private static final int LOG_BYTES = 1 << 16;

  /** CUjit_option. */
  private static final int INFO_LOG = 3;

  private static final int INFO_LOG_BYTES = 4;
  private static final int ERROR_LOG = 5;
  private static final int ERROR_LOG_BYTES = 6;

  private final Map<Long, Link> links = new ConcurrentHashMap<>();

  /** Bound once the driver is there. */
  private static final class Functions {
    static final MethodHandle CREATE =
        Libcuda.function("cuLinkCreate", 6050, INT, SEGMENT, SEGMENT, POINTER);
    static final MethodHandle ADD =
        Libcuda.function(
            "cuLinkAddData", 6050, POINTER, INT, SEGMENT, SIZE, SEGMENT, INT, POINTER, POINTER);
    static final MethodHandle COMPLETE =
        Libcuda.function("cuLinkComplete", 5050, POINTER, POINTER, POINTER);
    static final MethodHandle DESTROY = Libcuda.function("cuLinkDestroy", 5050, POINTER);
  }

  /** What a linker of the driver writes to while it exists. */
  private static final class Link {
    final Entry entry;
    final MemorySegment names;
    final MemorySegment values;
    final MemorySegment infos = Arena.ofAuto().allocate(LOG_BYTES);
    final MemorySegment errors = Arena.ofAuto().allocate(LOG_BYTES);
    volatile byte[] cubin = {};

    Link(Entry entry, DriverLinkOptions options) {
      this.entry = entry;
      options.add(INFO_LOG, infos.address());
      options.add(INFO_LOG_BYTES, LOG_BYTES);
      options.add(ERROR_LOG, errors.address());
      options.add(ERROR_LOG_BYTES, LOG_BYTES);
      this.names = options.names();
      this.values = options.values();
    }

    void end() {
      if (entry.close()) {
        entry.contexts().releaseAll();
      }
    }
  }

  /** For the service loader; loads nothing. */
  public FfmDriverLinker() {}

  @Override
  public String library() {
    return DriverLibrary.name();
  }

  @Override
  public int version() {
    return available(Startup::version);
  }

  private static <T> T available(Supplier<T> use) {
    try {
      Startup.init();
      return use.get();
    } catch (CudaException e) {
      throw new UnsupportedOperationException(
          "the driver's linker cannot be used: " + e.getMessage(), e);
    }
  }

  /** The functions are bound before a context is current, for that may wait. */
  private static Entry entry() {
    Objects.requireNonNull(Functions.CREATE, "functions");
    return new Entry();
  }

  @Override
  public long create(List<String> arguments) {
    DriverLinkOptions options = DriverLinkOptions.of(arguments);
    Link link = new Link(available(FfmDriverLinker::entry), options);
    int count = options.count();
    try {
      long state =
          run(
              Call.of("cuLinkCreate(options=%s)", arguments),
              frame ->
                  (int) Functions.CREATE.invokeExact(count, link.names, link.values, frame.out),
              link);
      links.put(state, link);
      return state;
    } catch (RuntimeException e) {
      link.end();
      throw e;
    }
  }

  @Override
  public void destroy(long linker) {
    Link link = links.remove(linker);
    if (link == null) {
      throw unknown(linker);
    }
    try {
      long _ =
          run(
              Call.of("cuLinkDestroy(state=%#x)", linker),
              _ -> (int) Functions.DESTROY.invokeExact(linker),
              link);
    } finally {
      link.end();
    }
  }

  /** PTX ends with a 0, which counts. */
  @Override
  public void addData(long linker, int type, byte[] data, String name) {
    Link link = link(linker);
    int kind = DriverLinkOptions.inputType(type);
    MemorySegment content = Arena.ofAuto().allocate(data.length + 1L, Long.BYTES);
    MemorySegment.copy(data, 0, content, ValueLayout.JAVA_BYTE, 0, data.length);
    long bytes = data.length + (kind == DriverLinkOptions.PTX ? 1L : 0L);
    MemorySegment called = Arena.ofAuto().allocateFrom(name);
    long _ =
        run(
            Call.of(
                "cuLinkAddData(state=%#x, type=%d, bytes=%d, name=%s)", linker, kind, bytes, name),
            _ -> (int) Functions.ADD.invokeExact(linker, kind, content, bytes, called, 0, 0L, 0L),
            link);
  }

  @Override
  public void complete(long linker) {
    Link link = link(linker);
    MemorySegment results = Arena.ofAuto().allocate(POINTER, 2);
    long address = results.address();
    try {
      long _ =
          run(
              Call.of("cuLinkComplete(state=%#x)", linker),
              _ -> (int) Functions.COMPLETE.invokeExact(linker, address, address + Long.BYTES),
              link);
      link.cubin =
          NativeAccess.memory(results.getAtIndex(POINTER, 0), results.getAtIndex(POINTER, 1))
              .toArray(ValueLayout.JAVA_BYTE);
    } finally {
      Reference.reachabilityFence(results);
    }
  }

  @Override
  public byte[] getLinkedCubin(long linker) {
    return link(linker).cubin.clone();
  }

  @Override
  public byte[] getLinkedPtx(long linker) {
    throw new UnsupportedOperationException("the driver links to cubins alone");
  }

  @Override
  public String getErrorLog(long linker) {
    return link(linker).errors.getString(0);
  }

  @Override
  public String getInfoLog(long linker) {
    return link(linker).infos.getString(0);
  }

  private Link link(long linker) {
    Link link = links.get(linker);
    if (link == null) {
      throw unknown(linker);
    }
    return link;
  }

  private static IllegalArgumentException unknown(long linker) {
    return new IllegalArgumentException(
        "linker: 0x%x (expected: one that was created and not destroyed)".formatted(linker));
  }

  /** Calls on a thread of its own, which ends with the context that was current on it. */
  private static long run(Call call, Call.Function function, Link link) {
    try {
      return CompletableFuture.supplyAsync(
              () -> call.run(function, link.entry.enter(0)),
              body -> Thread.ofPlatform().daemon().name("cuvette-linker").start(body))
          .join();
    } catch (CompletionException e) {
      if (e.getCause() instanceof CudaException failure) {
        throw new CompilerException(
            failure.call(),
            failure.status().code(),
            failure.status().name(),
            link.errors.getString(0));
      }
      throw e;
    } finally {
      Reference.reachabilityFence(link);
    }
  }
}
