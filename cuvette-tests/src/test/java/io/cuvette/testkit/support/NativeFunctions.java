package io.cuvette.testkit.support;

import io.cuvette.driver.CudaDriver;
import io.cuvette.sim.FreeFunction;
import io.cuvette.sim.MallocFunction;
import io.cuvette.testkit.Subject;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * A pair of allocator functions at addresses: C functions on a GPU, their stand-ins in the
 * simulator. Thread-safe.
 */
public final class NativeFunctions {
  private final MallocFunction mallocBody;
  private final FreeFunction freeBody;
  private final MemorySegment malloc;
  private final MemorySegment free;
  private final AtomicInteger mallocs = new AtomicInteger();
  private final AtomicInteger frees = new AtomicInteger();

  /** What a body threw, kept because an exception in a C function ends the process. */
  private final AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();

  public NativeFunctions(
      Subject subject, Arena arena, MallocFunction mallocBody, FreeFunction freeBody) {
    this.mallocBody = mallocBody;
    this.freeBody = freeBody;
    if (subject.isSimulated()) {
      malloc = MemorySegment.ofAddress(subject.simulator().registerMalloc(this::malloc));
      free = MemorySegment.ofAddress(subject.simulator().registerFree(this::free));
    } else {
      malloc = upcall(arena, "malloc", long.class, long.class, long.class, int.class);
      free = upcall(arena, "free", void.class, long.class, long.class, int.class);
    }
  }

  /** The driver's own allocation. */
  public static NativeFunctions ofDriver(Subject subject, Arena arena) {
    CudaDriver driver = subject.cuda().driver();
    return new NativeFunctions(
        subject,
        arena,
        (parameter, bytes, device) -> driver.memory().memAlloc(device, bytes),
        (parameter, address, device) -> driver.memory().memFree(device, address));
  }

  public MemorySegment malloc() {
    return malloc;
  }

  public MemorySegment free() {
    return free;
  }

  public int mallocs() {
    rethrow();
    return mallocs.get();
  }

  public int frees() {
    rethrow();
    return frees.get();
  }

  private long malloc(long parameter, long bytes, int device) {
    mallocs.incrementAndGet();
    try {
      return mallocBody.malloc(parameter, bytes, device);
    } catch (RuntimeException | Error e) {
      failure.compareAndSet(null, e);
      return 0;
    }
  }

  private void free(long parameter, long address, int device) {
    frees.incrementAndGet();
    try {
      freeBody.free(parameter, address, device);
    } catch (RuntimeException | Error e) {
      failure.compareAndSet(null, e);
    }
  }

  private void rethrow() {
    Throwable thrown = failure.get();
    if (thrown != null) {
      throw new AssertionError("in a native function", thrown);
    }
  }

  @SuppressWarnings("restricted") // a C function is needed
  private MemorySegment upcall(Arena arena, String name, Class<?> result, Class<?>... parameters) {
    try {
      MethodHandle method =
          MethodHandles.lookup().bind(this, name, MethodType.methodType(result, parameters));
      FunctionDescriptor descriptor =
          result == void.class
              ? FunctionDescriptor.ofVoid(
                  ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT)
              : FunctionDescriptor.of(
                  ValueLayout.JAVA_LONG,
                  ValueLayout.JAVA_LONG,
                  ValueLayout.JAVA_LONG,
                  ValueLayout.JAVA_INT);
      return Linker.nativeLinker().upcallStub(method, descriptor, arena);
    } catch (ReflectiveOperationException e) {
      throw new AssertionError(e);
    }
  }
}
