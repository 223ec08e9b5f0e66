package io.cuvette.instrument;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * A driver that keeps handles and addresses and does nothing else: queues accept all work, waits
 * return at once, queries answer {@link #idle}. Thread-safe.
 */
final class TinyDriver {
  /** What queries answer. */
  final AtomicBoolean idle = new AtomicBoolean(true);

  final AtomicBoolean closed = new AtomicBoolean();
  final CudaDriver driver;
  private final AtomicLong nextAddress = new AtomicLong(0x7f00_0000_0000L);
  private final AtomicLong nextHandle = new AtomicLong(0x100);
  private final Queue<Long> again = new ConcurrentLinkedQueue<>();
  private final Set<Object> openedTwice = ConcurrentHashMap.newKeySet();
  private volatile String refused = "nothing";
  private volatile long importedBytes = 1024;
  private final Map<Long, String> live = new ConcurrentHashMap<>();

  TinyDriver() {
    driver = DriverProxy.of(this::call);
  }

  /** What was made and not freed, by address or handle. */
  Map<Long, String> live() {
    return new TreeMap<>(live);
  }

  /** How large is what imports give from now on; 1024 bytes at first. */
  void importOf(long bytes) {
    importedBytes = bytes;
  }

  /** The next import gives an address that is open already. */
  void openAgain(long address) {
    again.add(address);
    openedTwice.add(address);
  }

  /** The next handle is one that there was before. */
  void handleAgain(long handle) {
    nextHandle.set(handle);
  }

  /** A method fails from now on; no other does. */
  void refuse(String method) {
    refused = method;
  }

  private @Nullable Object call(Method method, Object[] arguments) {
    if (method.getName().equals(refused)) {
      throw new CudaException(CudaStatus.UNKNOWN.code(), refused);
    }
    return switch (method.getName()) {
      case "name", "toString" -> "tiny";
      case "isSimulated" -> false; // nor does it tell what launches touch
      case "close" -> {
        closed.set(true);
        yield null;
      }
      case "memAlloc" -> made(nextAddress.getAndAdd(size(arguments[1])), "memory");
      case "memAllocAsync", "memAllocFromPoolAsync" ->
          made(nextAddress.getAndAdd(size(arguments[1])), "memory");
      case "memPoolCreate", "memPoolImportFromShareableHandle" ->
          made(nextHandle.getAndIncrement(), "pool");
      case "memPoolImportPointer", "ipcOpenMemHandle" ->
          again.isEmpty() ? made(nextAddress.getAndAdd(8192), "memory") : again.remove();
      case "pointerGetAttribute" -> importedBytes;
      case "ipcOpenEventHandle" -> made(nextHandle.getAndIncrement(), "event");
      case "ipcCloseMemHandle" ->
          openedTwice.remove(arguments[1]) ? null : free(method, arguments[1]);
      case "deviceGetDefaultMemPool", "deviceGetMemPool" -> 0x99L;
      case "memAddressReserve" -> made(nextAddress.getAndAdd(size(arguments[0])), "addresses");
      case "memCreate", "memImportFromShareableHandle", "memRetainAllocationHandle" ->
          made(nextHandle.getAndIncrement(), "allocation");
      case "callMalloc" -> made(nextAddress.getAndAdd(size(arguments[2])), "native");
      case "memAllocManaged", "memHostAlloc" -> host((long) arguments[1], method.getName());
      case "hostView" -> Arena.ofAuto().allocate((long) arguments[2]);
      case "streamCreateWithPriority" -> made(nextHandle.getAndIncrement(), "stream");
      case "eventCreate" -> made(nextHandle.getAndIncrement(), "event");
      case "streamEndCapture" -> made(nextHandle.getAndIncrement(), "graph");
      case "memFree", "memFreeAsync", "memFreeHost", "streamDestroy", "eventDestroy" ->
          free(method, arguments[1]);
      case "graphDestroy", "memPoolDestroy", "memAddressFree", "memRelease" ->
          free(method, arguments[0]);
      case "callFree" -> free(method, arguments[2]);
      case "streamQuery", "eventQuery" -> idle.get();
      case "launchHostFunc" -> {
        ((Runnable) arguments[2]).run();
        yield null;
      }
      default -> zero(method.getReturnType());
    };
  }

  private static long size(Object bytes) {
    return ((long) bytes + 4095) / 4096 * 4096 + 4096;
  }

  private long made(long key, String kind) {
    live.put(key, kind);
    return key;
  }

  private MemorySegment host(long bytes, String kind) {
    MemorySegment segment = Arena.ofAuto().allocate(bytes, 512);
    live.put(segment.address(), kind);
    return segment;
  }

  private @Nullable Object free(Method method, Object key) {
    if ((Long) key != 0 && live.remove((Long) key) == null) {
      throw new CudaException(CudaStatus.INVALID_VALUE.code(), method.getName() + "(" + key + ")");
    }
    return null;
  }

  private static @Nullable Object zero(Class<?> type) {
    return switch (type.getName()) {
      case "int" -> 0;
      case "long" -> 0L;
      case "boolean" -> false;
      case "float" -> 0f;
      default -> null;
    };
  }
}
