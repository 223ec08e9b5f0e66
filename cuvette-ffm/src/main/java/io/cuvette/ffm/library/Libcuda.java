package io.cuvette.ffm.library;

import static io.cuvette.ffm.link.Layouts.INT;
import static io.cuvette.ffm.link.Layouts.POINTER;
import static io.cuvette.ffm.link.Layouts.SEGMENT;
import static io.cuvette.ffm.link.Layouts.SIZE;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.ffm.link.NativeAccess;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.util.Collection;
import java.util.Optional;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * The driver library of this process, loaded once and never unloaded, and the search for its
 * functions. Thread-safe.
 *
 * <p>Only cuGetProcAddress_v2 is looked up by name. Every other function is looked up by it
 * together with the CUDA version whose form of the function is meant; the newest form is not always
 * the one that cuda.h means. The legacy forms are looked up: per-thread default streams belong to
 * OS threads, which is wrong for virtual ones, and who wants one passes its handle.
 */
public final class Libcuda {
  /** CU_GET_PROC_ADDRESS_LEGACY_STREAM. */
  private static final int LEGACY_SYMBOLS = 1;

  private static final AtomicReference<@Nullable Libcuda> LOADED = new AtomicReference<>();

  private final MethodHandle getProcAddress;
  private final Collection<CudaException> missing = new ConcurrentLinkedQueue<>();

  private Libcuda(MemorySegment getProcAddress) {
    this.getProcAddress =
        NativeAccess.function(
            getProcAddress, FunctionDescriptor.of(INT, SEGMENT, SEGMENT, INT, SIZE, SEGMENT));
  }

  /**
   * Loads the library if that has not happened yet.
   *
   * @throws CudaException if there is none, or it is no driver this library can use
   */
  public static void load() {
    if (LOADED.get() != null) {
      return;
    }
    SymbolLookup symbols = DriverLibrary.open();
    Optional<MemorySegment> entry = symbols.find("cuGetProcAddress_v2");
    if (entry.isEmpty()) {
      throw DriverLibrary.withoutEntry(symbols);
    }
    Libcuda found = new Libcuda(entry.get());
    if (found.isStub()) {
      throw DriverLibrary.stub("cuGetProcAddress");
    }
    LOADED.compareAndSet(null, found);
  }

  /** The library, once {@link #load} has succeeded. */
  public static Libcuda loaded() {
    Libcuda loaded = LOADED.get();
    if (loaded == null) {
      throw new IllegalStateException("the CUDA driver library is not loaded");
    }
    return loaded;
  }

  /**
   * Throws if the driver lacks a function that nothing works without. To be called once all
   * functions are bound; not thrown while binding, which happens in class initializers.
   */
  public void requireComplete() {
    for (CudaException missing : missing) {
      throw missing;
    }
  }

  /** Whether the driver has the form of a function that CUDA {@code version} introduced. */
  public static boolean has(String name, int version) {
    return loaded().find(name, version) != 0;
  }

  /** Like {@link #function}, for a function that every driver should have. */
  public static MethodHandle required(String name, int version, MemoryLayout... parameters) {
    noteMissing(name, version);
    return function(name, version, parameters);
  }

  /** The same for a function that returns at once and never calls back. */
  public static MethodHandle requiredAtOnce(String name, int version, MemoryLayout... parameters) {
    noteMissing(name, version);
    return link(
        name, version, FunctionDescriptor.of(INT, parameters), NativeAccess.returnsAtOnce());
  }

  private static void noteMissing(String name, int version) {
    if (!has(name, version)) {
      loaded()
          .missing
          .add(
              DriverLibrary.withoutFunction(
                  CudaStatus.SHARED_OBJECT_SYMBOL_NOT_FOUND, name, version));
    }
  }

  /**
   * The form of a function that CUDA {@code version} introduced. A function that the driver lacks
   * is one that throws when it is called.
   */
  public static MethodHandle function(String name, int version, MemoryLayout... parameters) {
    return link(name, version, FunctionDescriptor.of(INT, parameters));
  }

  private static MethodHandle link(
      String name, int version, FunctionDescriptor type, Linker.Option... options) {
    long address = loaded().find(name, version);
    return address == 0
        ? NativeAccess.missing(
            type.toMethodType(),
            () ->
                DriverLibrary.withoutFunction(CudaStatus.CALL_REQUIRES_NEWER_DRIVER, name, version))
        : NativeAccess.function(MemorySegment.ofAddress(address), type, options);
  }

  private boolean isStub() {
    return query("cuInit", 2000, results()) == CudaStatus.STUB_LIBRARY.code();
  }

  /** The address of a function; 0 if the driver does not have it in that version. */
  private long find(String name, int version) {
    MemorySegment results = results();
    int status = query(name, version, results);
    return status == CudaStatus.SUCCESS.code() ? results.get(POINTER, 0) : 0;
  }

  /** Room for an address, and for why there is none. */
  private static MemorySegment results() {
    return Arena.ofAuto().allocate(POINTER, 2);
  }

  private int query(String name, int version, MemorySegment results) {
    MemorySegment text = Arena.ofAuto().allocateFrom(name);
    MemorySegment reason = results.asSlice(POINTER.byteSize());
    try {
      return (int)
          getProcAddress.invokeExact(text, results, version, (long) LEGACY_SYMBOLS, reason);
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }
}
