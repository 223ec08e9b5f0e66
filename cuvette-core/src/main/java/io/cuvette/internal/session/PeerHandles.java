package io.cuvette.internal.session;

import io.cuvette.EventOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.PoolProperties;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.function.BooleanSupplier;
import java.util.function.IntConsumer;
import java.util.function.LongPredicate;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Refuses handles that would end this process, or give it memory that is not what was shared. A
 * driver (580) follows what the handle of another process claims: a size far beyond the pool or an
 * offset of 2<sup>40</sup> in that of a pool's memory, or a slot beyond its table in that of an
 * event, is a read of memory that is not there, and an offset in that of memory without a pool is
 * added to the address. Where a handle has these is not documented, so handles of this process's
 * own are looked at first; those of a driver that has them elsewhere are not checked. Thread-safe.
 */
public final class PeerHandles {
  private static final int OFFSET_AT = 24;
  private static final int SIZE_AT = 32;
  private static final int SLOT_AT = 16;
  private static final int PLAIN_SIZE_AT = 16;
  private static final int PLAIN_OFFSET_AT = 28;

  /**
   * All that is before it distinguishes pools and their blocks; behind the range nothing is read.
   */
  private static final int BLOCK_BYTES = OFFSET_AT;

  /** Each allocation of a pool begins at a multiple. */
  private static final int ALIGNMENT = 256;

  /** Small allocations without a pool are parts of blocks of this size. */
  private static final long PLAIN_BLOCK = 1L << 21;

  /** The driver looks up, block by block, whether so much is of the pool; more may end it. */
  private static final long LOOKED_UP_BYTES = 1L << 30;

  /** An event's slots are counted down from the last. */
  private static final long SLOTS = 1L << 12;

  private static final long PROBE_BYTES = 1L << 20;

  /** What the system calls descriptors that no driver makes. */
  private static final Pattern SYSTEMS =
      Pattern.compile(
          "(pipe|socket):|anon_inode:\\[?(event|timer|signal|inotify|io_uring|pidfd|bpf|userfault)"
              + "|/dev/(null|zero|full|u?random|tty|pts|shm|fuse)");

  private final IntConsumer closing;
  private volatile @Nullable Boolean knowsPointers;
  private volatile @Nullable Boolean knowsEvents;
  private volatile @Nullable Boolean knowsPlain;

  /**
   * Knows nothing yet.
   *
   * @param closing closes a descriptor
   */
  public PeerHandles(IntConsumer closing) {
    this.closing = closing;
  }

  /**
   * The part of a pool that a handle claims.
   *
   * @param block of the pool, which has one address wherever it is mapped
   * @param offset in the block
   */
  public record Range(ByteBuffer block, long offset, long bytes) {}

  /** The part of a pool that a handle claims; null where that is not known. */
  public @Nullable Range range(Device device, byte[] handle) {
    if (device.session().isSimulated() || !knowsPointers(device)) {
      return null;
    }
    ByteBuffer words = words(handle);
    ByteBuffer block = ByteBuffer.wrap(Arrays.copyOf(handle, BLOCK_BYTES));
    return new Range(block, words.getLong(OFFSET_AT), words.getLong(SIZE_AT));
  }

  /**
   * The descriptor of a pool, if it is safe to have the driver import it.
   *
   * @throws CudaException INVALID_VALUE if it is of something that the system itself has
   */
  public static int checkedPool(CudaDriver driver, int descriptor) {
    return checked(driver, descriptor, "cuMemPoolImportFromShareableHandle");
  }

  /** The same for memory that is mapped page by page. */
  public static int checkedMemory(CudaDriver driver, int descriptor) {
    return checked(driver, descriptor, "cuMemImportFromShareableHandle");
  }

  private static int checked(CudaDriver driver, int descriptor, String call) {
    Path link = Path.of("/proc/self/fd", Integer.toString(descriptor));
    if (!driver.isSimulated()
        && (Files.isRegularFile(link) || Files.isDirectory(link) || isSystems(link))) {
      throw new CudaException(
          CudaStatus.INVALID_VALUE,
          call,
          "descriptor: %d is of a file, a pipe, a socket or the like (expected: a driver's)"
              .formatted(descriptor));
    }
    return descriptor;
  }

  private static boolean isSystems(Path link) {
    try {
      return SYSTEMS.matcher(Files.readSymbolicLink(link).toString()).lookingAt();
    } catch (IOException e) {
      return false; // this system does not tell
    }
  }

  /**
   * The handle of a pool's memory, if it is safe to have the driver import it.
   *
   * @throws CudaException INVALID_VALUE if its range is no device's, or no allocation's
   */
  public byte[] checkedPointer(Device device, long pool, byte[] handle) {
    Range range = range(device, handle);
    if (range != null) {
      String call = "cuMemPoolImportPointer";
      long most = device.session().mostMemory();
      check(call, "offset", range.offset, 2 * Long.highestOneBit(most));
      check(call, "offset modulo %d".formatted(ALIGNMENT), range.offset % ALIGNMENT, 1);
      checkSize(call, range.bytes, most);
      if (range.bytes > LOOKED_UP_BYTES) {
        checkEnd(device, pool, handle, range);
      }
    }
    return handle;
  }

  /** Imports the last bytes alone, which fails where a size that is too large ends the process. */
  private static void checkEnd(Device device, long pool, byte[] handle, Range range) {
    long last = range.offset + range.bytes - 1;
    byte[] end = handle.clone();
    words(end).putLong(OFFSET_AT, last - last % ALIGNMENT).putLong(SIZE_AT, 1);
    CudaDriver driver = device.context();
    withStream(
        device,
        stream -> {
          long address = driver.sharing().memPoolImportPointer(pool, end);
          driver.ordered().memFreeAsync(device.id(), address, stream);
          return true;
        });
  }

  /**
   * The handle of memory without a pool, if it is safe to have the driver open it.
   *
   * @throws CudaException INVALID_VALUE if it is of no device's size, or not of the memory's block
   */
  public byte[] checkedPlain(Device device, byte[] handle) {
    if (!device.session().isSimulated() && knowsPlain(device)) {
      ByteBuffer words = words(handle);
      long offset = Integer.toUnsignedLong(words.getInt(PLAIN_OFFSET_AT));
      check("cuIpcOpenMemHandle", "offset", offset, PLAIN_BLOCK);
      long most = device.session().mostMemory();
      checkSize("cuIpcOpenMemHandle", words.getLong(PLAIN_SIZE_AT), most);
    }
    return handle;
  }

  /**
   * The handle of an event, if it is safe to have the driver open it.
   *
   * @throws CudaException INVALID_VALUE if it names a slot that no table has
   */
  public byte[] checkedEvent(Device device, byte[] handle) {
    if (!device.session().isSimulated() && knowsEvents(device)) {
      long slot = Integer.toUnsignedLong(words(handle).getInt(SLOT_AT));
      check("cuIpcOpenEventHandle", "slot", slot, SLOTS);
    }
    return handle;
  }

  private static void checkSize(String call, long bytes, long most) {
    if (bytes < 1 || bytes > most) {
      throw new CudaException(
          CudaStatus.INVALID_VALUE,
          call,
          "size in the handle: %s (expected: 1 to %d)"
              .formatted(Long.toUnsignedString(bytes), most));
    }
  }

  private static void check(String call, String what, long value, long end) {
    if (Long.compareUnsigned(value, end) >= 0) {
      throw new CudaException(
          CudaStatus.INVALID_VALUE,
          call,
          "%s in the handle: %s (expected: < %d)"
              .formatted(what, Long.toUnsignedString(value), end));
    }
  }

  private static ByteBuffer words(byte[] handle) {
    return ByteBuffer.wrap(handle).order(ByteOrder.nativeOrder());
  }

  private boolean knowsPointers(Device device) {
    Boolean known = knowsPointers;
    if (known == null) {
      known = tried(() -> lookAtPointers(device));
      knowsPointers = known;
    }
    return known != null && known;
  }

  private boolean knowsEvents(Device device) {
    Boolean known = knowsEvents;
    if (known == null) {
      known = tried(() -> lookAtEvent(device));
      knowsEvents = known;
    }
    return known != null && known;
  }

  private boolean knowsPlain(Device device) {
    Boolean known = knowsPlain;
    if (known == null) {
      known = tried(() -> lookAtPlain(device.context(), device.id()));
      knowsPlain = known;
    }
    return known != null && known;
  }

  /** What cannot be made here cannot be looked at; null, to be tried again. */
  private static @Nullable Boolean tried(BooleanSupplier look) {
    try {
      return look.getAsBoolean();
    } catch (CudaException e) {
      return null;
    }
  }

  private boolean lookAtPointers(Device device) {
    CudaDriver driver = device.context();
    int id = device.id();
    long pool = driver.pools().memPoolCreate(new PoolProperties(1, 1, 1, id, 0));
    try {
      closing.accept(
          driver.sharing().memPoolExportToShareableHandle(pool)); // else no memory of it is
      return withStream(device, stream -> lookAtPointers(driver, id, pool, stream));
    } finally {
      driver.pools().memPoolDestroy(pool);
    }
  }

  /** Does something on a stream of its own, and waits for it. */
  private static boolean withStream(Device device, LongPredicate work) {
    CudaDriver driver = device.context();
    long stream = driver.streams().streamCreateWithPriority(device.id(), 1, 0);
    try {
      return work.test(stream);
    } finally {
      driver.streams().streamSynchronize(device.id(), stream);
      driver.streams().streamDestroy(device.id(), stream);
    }
  }

  private static boolean lookAtPointers(CudaDriver driver, int device, long pool, long stream) {
    long one = driver.ordered().memAllocFromPoolAsync(device, PROBE_BYTES, pool, stream);
    try {
      long two = driver.ordered().memAllocFromPoolAsync(device, 2 * PROBE_BYTES, pool, stream);
      try {
        ByteBuffer first = words(driver.sharing().memPoolExportPointer(one));
        ByteBuffer second = words(driver.sharing().memPoolExportPointer(two));
        return first.getLong(SIZE_AT) == PROBE_BYTES
            && second.getLong(SIZE_AT) == 2 * PROBE_BYTES
            && second.getLong(OFFSET_AT) - first.getLong(OFFSET_AT) == two - one;
      } finally {
        driver.ordered().memFreeAsync(device, two, stream);
      }
    } finally {
      driver.ordered().memFreeAsync(device, one, stream);
    }
  }

  /** Of two small allocations both are in one block, as a rule. */
  private static boolean lookAtPlain(CudaDriver driver, int device) {
    long one = driver.memory().memAlloc(device, ALIGNMENT);
    try {
      long two = driver.memory().memAlloc(device, ALIGNMENT);
      try {
        ByteBuffer first = words(driver.sharing().ipcGetMemHandle(device, one));
        ByteBuffer second = words(driver.sharing().ipcGetMemHandle(device, two));
        int apart = second.getInt(PLAIN_OFFSET_AT) - first.getInt(PLAIN_OFFSET_AT);
        return apart != 0 && apart == two - one && isPlainSize(first) && isPlainSize(second);
      } finally {
        driver.memory().memFree(device, two);
      }
    } finally {
      driver.memory().memFree(device, one);
    }
  }

  private static boolean isPlainSize(ByteBuffer handle) {
    long size = handle.getLong(PLAIN_SIZE_AT);
    return size >= ALIGNMENT && size <= PLAIN_BLOCK;
  }

  private static boolean lookAtEvent(Device device) {
    CudaDriver driver = device.context();
    int flags = EventFlags.of(new EventOptions(false, false, true));
    long event = driver.events().eventCreate(device.id(), flags);
    try {
      ByteBuffer handle = words(driver.sharing().ipcGetEventHandle(device.id(), event));
      return Integer.toUnsignedLong(handle.getInt(SLOT_AT)) < SLOTS && isZeroAfter(handle);
    } finally {
      driver.events().eventDestroy(device.id(), event);
    }
  }

  private static boolean isZeroAfter(ByteBuffer handle) {
    for (int at = SLOT_AT + Integer.BYTES; at < handle.capacity(); at++) {
      if (handle.get(at) != 0) {
        return false;
      }
    }
    return true;
  }
}
