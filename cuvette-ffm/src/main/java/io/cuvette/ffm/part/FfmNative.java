package io.cuvette.ffm.part;

import io.cuvette.driver.NativeCalls;
import io.cuvette.ffm.call.CallFrame;
import io.cuvette.ffm.call.Entry;
import io.cuvette.ffm.link.Layouts;
import io.cuvette.ffm.link.NativeAccess;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/** Calls of allocators written in C. Thread-safe if they are. */
public final class FfmNative extends Part implements NativeCalls {
  /** void* f(void* parameter, size_t bytes, int device). */
  public static final MethodHandle MALLOC =
      NativeAccess.functions(
          FunctionDescriptor.of(Layouts.POINTER, Layouts.POINTER, Layouts.SIZE, Layouts.INT));

  /** void f(void* parameter, void* address, int device). */
  public static final MethodHandle FREE =
      NativeAccess.functions(
          FunctionDescriptor.ofVoid(Layouts.POINTER, Layouts.POINTER, Layouts.INT));

  /** The part of the driver whose calls start here. */
  public FfmNative(Entry entry) {
    super(entry);
  }

  @Override
  public long callMalloc(long function, long parameter, long bytes, int device) {
    MemorySegment code = code(function);
    CallFrame frame = enter(device);
    long address;
    try {
      address = (long) MALLOC.invokeExact(code, parameter, bytes, device);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    return address;
  }

  @Override
  public void callFree(long function, long parameter, long address, int device) {
    MemorySegment code = code(function);
    CallFrame frame = entry.enterToFree(device);
    if (frame == null) {
      return;
    }
    try {
      FREE.invokeExact(code, parameter, address, device);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
  }

  private static MemorySegment code(long function) {
    if (function == 0) {
      throw new IllegalArgumentException("function: 0 (expected: the address of a C function)");
    }
    return MemorySegment.ofAddress(function);
  }
}
