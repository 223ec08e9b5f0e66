package io.cuvette.ffm.link;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.Locale;
import java.util.Optional;

/** Loading of shared libraries, with more than the JDK reports about it. Thread-safe. */
public final class SharedLibraries {
  private static final int RTLD_NOW = 2;
  private static final long LONGEST_MESSAGE = 4096;

  private SharedLibraries() {}

  /** Whether libraries are called as on Windows. */
  public static boolean isWindows() {
    return System.getProperty("os.name", "").toLowerCase(Locale.ROOT).startsWith("windows");
  }

  /** A library for as long as the process lives, if it can be loaded. */
  public static Optional<SymbolLookup> find(String name) {
    try {
      return Optional.of(NativeAccess.load(name));
    } catch (IllegalArgumentException e) {
      return Optional.empty();
    }
  }

  /** The version that a library reports: the status of the call, and the number. */
  public record Version(int status, int number) {}

  /** Calls a function {@code int f(int* version)}. */
  public static Version version(MemorySegment function) {
    MethodHandle getVersion =
        NativeAccess.function(function, FunctionDescriptor.of(Layouts.INT, Layouts.SEGMENT));
    MemorySegment number = Arena.ofAuto().allocate(Layouts.INT);
    try {
      return new Version((int) getVersion.invokeExact(number), number.get(Layouts.INT, 0));
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }

  /**
   * The message of the system's loader for a library that does not load, which the JDK keeps to
   * itself; empty where it cannot be had.
   */
  public static String loadError(String name) {
    SymbolLookup symbols = Linker.nativeLinker().defaultLookup();
    Optional<MemorySegment> dlopen = symbols.find("dlopen");
    Optional<MemorySegment> dlerror = symbols.find("dlerror");
    return dlopen.isEmpty() || dlerror.isEmpty()
        ? ""
        : loadError(name, dlopen.get(), dlerror.get());
  }

  private static String loadError(String name, MemorySegment dlopen, MemorySegment dlerror) {
    MethodHandle open =
        NativeAccess.function(
            dlopen,
            FunctionDescriptor.of(ValueLayout.ADDRESS, ValueLayout.ADDRESS, ValueLayout.JAVA_INT));
    MethodHandle error = NativeAccess.function(dlerror, FunctionDescriptor.of(ValueLayout.ADDRESS));
    MemorySegment text = Arena.ofAuto().allocateFrom(name);
    MemorySegment opened;
    MemorySegment message;
    try {
      opened = (MemorySegment) open.invokeExact(text, RTLD_NOW);
      message = (MemorySegment) error.invokeExact();
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
    return opened.address() != 0 || message.address() == 0
        ? ""
        : NativeAccess.memory(message.address(), LONGEST_MESSAGE).getString(0);
  }
}
