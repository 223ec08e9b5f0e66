package io.cuvette.ffm.part;

import io.cuvette.ffm.call.Call;
import io.cuvette.ffm.call.CallFrame;
import io.cuvette.ffm.call.Entry;
import io.cuvette.ffm.library.Libcuda;
import io.cuvette.ffm.link.Layouts;
import io.cuvette.ffm.link.NativeAccess;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * The driver's threads that run host functions. The first Java function attaches such a thread to
 * the JVM, from which it detaches where it ends. If that is in an exit handler of the process, as
 * when cuBLAS gives up the last context there, the thread waits for the JVM, which waits for its
 * exit handlers: the process never ends. So they are detached when the JVM begins to shut down.
 * Thread-safe.
 */
public final class HostThreads {
  private static final MethodHandle GET_STATE =
      Libcuda.function(
          "cuDevicePrimaryCtxGetState", 7000, Layouts.INT, Layouts.POINTER, Layouts.POINTER);

  private static final int NON_BLOCKING = 1;
  private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(1);
  private static final long PAUSE_NANOS = TimeUnit.MICROSECONDS.toNanos(100);

  /** The place of DetachCurrentThread in the table of functions that a JavaVM points to. */
  private static final int DETACH = 5;

  /** Devices whose threads ran Java functions. */
  private static final Set<Integer> USED = ConcurrentHashMap.newKeySet();

  private HostThreads() {}

  /** Notes that a thread of a device runs a Java function. */
  static void used(int device) {
    if (!USED.contains(device)) {
      USED.add(device);
    }
  }

  /** Detaches the threads of all devices; one whose function does not end stays attached. */
  public static void detach() {
    if (!USED.isEmpty()) {
      try {
        detachAll(new Entry());
      } catch (RuntimeException | LinkageError e) {
        // nobody is left to be told, and the process may end all the same
      }
    }
  }

  private static void detachAll(Entry entry) {
    FfmStreams streams = new FfmStreams(entry);
    long machine = machine();
    for (int device : USED) {
      if (machine != 0 && isActive(entry, device)) {
        detach(streams, device, word(word(machine, 0), DETACH), machine);
      }
    }
    entry.contexts().releaseAll();
  }

  /** The function is one of C, and is called as a host function is. */
  private static void detach(FfmStreams streams, int device, long function, long machine) {
    long stream = streams.streamCreateWithPriority(device, NON_BLOCKING, 0);
    streams.launchFunction(device, stream, function, machine);
    long end = System.nanoTime() + PATIENCE_NANOS;
    while (!streams.streamQuery(device, stream) && System.nanoTime() < end) {
      LockSupport.parkNanos(PAUSE_NANOS);
    }
    if (streams.streamQuery(device, stream)) {
      streams.streamDestroy(device, stream);
    }
  }

  /** Whether a device has its context, which is not to be made here. */
  private static boolean isActive(Entry entry, int device) {
    int handle = entry.contexts().handle(device);
    CallFrame frame = entry.enter();
    int status;
    try {
      status = (int) GET_STATE.invokeExact(handle, frame.out, frame.out + Long.BYTES);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    int active = (int) frame.second();
    frame.leave();
    return status == Call.SUCCESS && active != 0;
  }

  /** The address of this JVM (JavaVM); 0 if it cannot be asked for. */
  private static long machine() {
    Path home = Path.of(System.getProperty("java.home", ""));
    SymbolLookup library =
        NativeAccess.load(
            home.resolve("lib/server").resolve(System.mapLibraryName("jvm")).toString());
    MemorySegment created = library.find("JNI_GetCreatedJavaVMs").orElse(MemorySegment.NULL);
    if (created.address() == 0) {
      return 0;
    }
    MethodHandle get =
        NativeAccess.function(
            created,
            FunctionDescriptor.of(Layouts.INT, Layouts.SEGMENT, Layouts.INT, Layouts.SEGMENT));
    MemorySegment machines = Arena.ofAuto().allocate(Layouts.POINTER);
    MemorySegment count = Arena.ofAuto().allocate(Layouts.INT);
    try {
      int status = (int) get.invokeExact(machines, 1, count);
      return status == 0 && count.get(Layouts.INT, 0) > 0 ? machines.get(Layouts.POINTER, 0) : 0;
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }

  private static long word(long address, int index) {
    return NativeAccess.memory(address, (index + 1L) * Long.BYTES)
        .getAtIndex(Layouts.POINTER, index);
  }
}
