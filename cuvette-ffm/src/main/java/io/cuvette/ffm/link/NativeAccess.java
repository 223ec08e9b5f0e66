package io.cuvette.ffm.link;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.function.Supplier;

/**
 * The steps that the JVM takes on trust: what they are given wrong crashes it. All are here, and
 * the module needs {@code --enable-native-access} for them. Thread-safe.
 *
 * <p>No function is linked as critical but the two that read or exchange a word of the thread, its
 * context and its capture mode, and are part of nearly every call: the others may wait or call
 * back.
 */
@SuppressWarnings("restricted")
public final class NativeAccess {
  private static final Linker LINKER = Linker.nativeLinker();

  private NativeAccess() {}

  /**
   * A library, loaded for as long as the process lives.
   *
   * @throws IllegalArgumentException if it cannot be loaded
   */
  public static SymbolLookup load(String name) {
    return SymbolLookup.libraryLookup(name, Arena.global());
  }

  /** The C function at an address. */
  public static MethodHandle function(
      MemorySegment address, FunctionDescriptor type, Linker.Option... options) {
    return LINKER.downcallHandle(address, type, options);
  }

  /** What a function is linked with that returns at once and never calls back. */
  public static Linker.Option returnsAtOnce() {
    return Linker.Option.critical(false);
  }

  /** The address of a function of the C library; 0 if the system lacks it. */
  public static long address(String name) {
    return LINKER.defaultLookup().find(name).map(MemorySegment::address).orElse(0L);
  }

  /**
   * A function of the C library. One that the system lacks is one that throws when it is called.
   *
   * @param name its name, such as {@code poll}
   */
  public static MethodHandle function(
      String name, FunctionDescriptor type, Linker.Option... options) {
    return LINKER
        .defaultLookup()
        .find(name)
        .map(address -> LINKER.downcallHandle(address, type, options))
        .orElseGet(() -> {
          MethodType withAddress = LINKER.downcallHandle(type, options).type();
          String message = "the C library of this system has no " + name;
          return missing(
              withAddress.dropParameterTypes(0, 1),
              () -> new UnsupportedOperationException(message));
        });
  }

  /** A function that is not there: what calls it gets the failure. */
  public static MethodHandle missing(
      MethodType type, Supplier<? extends RuntimeException> failure) {
    try {
      MethodHandle get =
          MethodHandles.lookup()
              .findVirtual(Supplier.class, "get", MethodType.methodType(Object.class))
              .bindTo(failure)
              .asType(MethodType.methodType(RuntimeException.class));
      MethodHandle fail = MethodHandles.throwException(type.returnType(), RuntimeException.class);
      return MethodHandles.dropArguments(
          MethodHandles.collectArguments(fail, 0, get), 0, type.parameterList());
    } catch (ReflectiveOperationException e) {
      throw new LinkageError(e.getMessage(), e);
    }
  }

  /** C functions of a type, with the address as the first parameter. */
  public static MethodHandle functions(FunctionDescriptor type) {
    return LINKER.downcallHandle(type);
  }

  /** A C function, never freed, that runs a Java one; it must not throw. */
  public static MemorySegment callback(MethodHandle target, FunctionDescriptor type) {
    return LINKER.upcallStub(target, type, Arena.global());
  }

  /** Memory whose lifetime is managed elsewhere. */
  public static MemorySegment memory(long address, long bytes) {
    return MemorySegment.ofAddress(address).reinterpret(bytes);
  }

  /** Memory that cannot be used once the arena is closed. */
  public static MemorySegment memory(long address, long bytes, Arena arena) {
    return MemorySegment.ofAddress(address).reinterpret(bytes, arena, null);
  }

  /** A cause as it is if it is unchecked. A downcall throws nothing else. */
  public static RuntimeException unexpected(Throwable cause) {
    return switch (cause) {
      case RuntimeException e -> e;
      case Error e -> throw e;
      default -> throw new AssertionError(cause);
    };
  }
}
