package io.cuvette.sim.internal.share;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.DescriptorCalls;
import io.cuvette.sim.internal.base.BlockFile;
import io.cuvette.sim.internal.base.Extent;
import io.cuvette.sim.internal.base.FileCall;
import io.cuvette.sim.internal.base.FileExtents;
import io.cuvette.sim.internal.base.SimRefusal;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * A file without a name that several processes map: a {@link SharedHead}, fields of its kind, and
 * data behind them. It lives as long as anybody has it open or mapped, and its size is sealed,
 * since a file that gets shorter takes memory from under others. Whoever has it can write all of it
 * at any time, so nothing that is read from it is an index before it was checked. Guarded by the
 * driver's lock.
 */
public final class SharedFile implements BlockFile {

  /** What a file holds. The head of a pool has a table, that of an event a ring. */
  public enum Kind {
    POOL(1, SharedTable.BYTES),
    MEMORY(2, 0),
    EVENT(3, SharedRing.BYTES),
    ALLOCATION(4, 0);

    /** The identity that the file states. */
    public final int code;

    /** Where the data starts. */
    public final long headBytes;

    Kind(int code, long ownBytes) {
      this.code = code;
      this.headBytes = OWN + ownBytes;
    }

    /** The refusal of a file that is none of this kind. */
    public SimRefusal refuse(String found) {
      return SimRefusal.invalidValue(
          "%s (expected: a %s that a simulated driver shares)".formatted(found, this));
    }
  }

  /** Where the fields of a kind start. */
  public static final long OWN = FileExtents.PAGE;

  private static final int NONE = -1;

  public final Kind kind;
  final SimSharing sharing;
  private final boolean madeHere;
  private final SharedHead head;
  private final Object key;

  /** The head and the fields of the kind. */
  private final MemorySegment mapped;

  private final Arena arena;

  /** All data; null if it is mapped part by part. */
  private @Nullable MemorySegment data;

  private int descriptor;
  private int users = 1;

  /** Makes or reads the head in the descriptor of a file, which is the file's from here on. */
  private SharedFile(
      SimSharing sharing, Kind kind, @Nullable SharedHead made, int descriptor, Arena arena)
      throws IOException {
    this.sharing = sharing;
    this.kind = kind;
    this.descriptor = descriptor;
    this.arena = arena;
    this.madeHere = made != null;
    Path path = self(descriptor);
    long bytes = Files.size(path);
    if (bytes < kind.headBytes) {
      throw kind.refuse("a file of %d bytes".formatted(bytes));
    }
    this.mapped = map(path, 0, kind.headBytes, arena);
    if (made == null) {
      head = SharedHead.read(mapped, kind, bytes, sharing.mostBytes);
    } else {
      made.write(mapped, kind, sharing.driverId);
      head = made;
    }
    this.key = Files.getAttribute(path, "unix:fileKey");
    sharing.opened(this);
  }

  /** Makes a file of this process, whose data is all 0. */
  public static SharedFile create(
      SimSharing sharing, Kind kind, SharedPlace place, long dataBytes) {
    DescriptorCalls calls = sharing.descriptors();
    SharedHead head = SharedHead.of(place, dataBytes);
    int descriptor =
        sharing.system(() -> calls.memoryFile("cuvette-sim", kind.headBytes + dataBytes));
    return of(sharing, kind, head, descriptor);
  }

  /** The file of a descriptor of this process, which stays the caller's. */
  public static SharedFile ofDescriptor(SimSharing sharing, Kind kind, int number) {
    DescriptorCalls calls = sharing.descriptors();
    if (number < 0 || !calls.isOpen(number)) {
      throw SimRefusal.invalidValue("descriptor: %d (expected: an open one)".formatted(number));
    }
    if (sharing.system(() -> calls.isMemoryFile(number) ? 1 : 0) == 0) {
      // Whoever else has it could take the memory from under this process.
      throw SimRefusal.invalidValue(
          "descriptor: %d is a file that can get shorter (expected: a %s that a simulated driver shares)"
              .formatted(number, kind));
    }
    return of(sharing, kind, null, sharing.system(() -> calls.duplicate(number)));
  }

  /** The file of a handle, from the process that has it open; all of it is mapped. */
  public static SharedFile ofHandle(SimSharing sharing, Kind kind, ShareHandle handle) {
    ProcessId process = handle.process();
    if (!process.isAlive()) {
      throw SimRefusal.invalidValue(
          "handle: made by process %d, which has ended".formatted(process.pid()));
    }
    int descriptor = open(sharing, kind, process.descriptor(handle.descriptor()));
    SharedFile file = of(sharing, kind, null, descriptor);
    try {
      if (!file.id().equals(handle.file())) {
        throw SimRefusal.invalidValue("handle: what it stood for was freed");
      }
      if (sharing.isMadeHere(file)) {
        throw new SimRefusal(
            CudaStatus.INVALID_CONTEXT, "handle: made by this process (expected: by another)");
      }
      file.mapAll();
      return file;
    } catch (RuntimeException | Error e) {
      file.release();
      throw e;
    }
  }

  private static int open(SimSharing sharing, Kind kind, Path path) {
    try {
      return sharing.descriptors().openMemoryFile(path.toString());
    } catch (IllegalArgumentException | UncheckedIOException e) {
      SimRefusal why = unusable(sharing, kind, e);
      throw why.status() == CudaStatus.INVALID_VALUE
          ? SimRefusal.invalidValue("handle: what it stood for was freed: " + why.text())
          : why;
    }
  }

  private static SharedFile of(
      SimSharing sharing, Kind kind, @Nullable SharedHead made, int descriptor) {
    Arena arena = Arena.ofShared();
    try {
      return new SharedFile(sharing, kind, made, descriptor, arena);
    } catch (IOException e) {
      discard(sharing, arena, descriptor);
      throw unusable(sharing, kind, e);
    } catch (RuntimeException | Error e) {
      discard(sharing, arena, descriptor);
      throw e;
    }
  }

  private static void discard(SimSharing sharing, Arena arena, int descriptor) {
    arena.close();
    sharing.descriptors().close(descriptor);
  }

  /** What made a file unusable: this process, which has no room left, or the file. */
  private static SimRefusal unusable(SimSharing sharing, Kind kind, Exception e) {
    if (e.getCause() instanceof OutOfMemoryError) {
      return new SimRefusal(CudaStatus.OUT_OF_MEMORY, "mapping shared memory: " + e);
    }
    DescriptorCalls calls = sharing.descriptors();
    try {
      calls.close(sharing.system(() -> calls.memoryFile("cuvette-sim", 0)));
    } catch (SimRefusal none) {
      return none;
    }
    return kind.refuse(String.valueOf(e.getMessage()));
  }

  private static Path self(int descriptor) {
    return Path.of("/proc/self/fd/" + descriptor);
  }

  private interface Use<T> {
    T with(FileChannel channel) throws IOException;
  }

  /** Uses a file; again if an interrupt of the thread closes it. */
  private static <T> T open(Path path, Use<T> use) throws IOException {
    return FileCall.uninterrupted(() -> {
      try (FileChannel channel =
          FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
        return use.with(channel);
      }
    });
  }

  private static MemorySegment map(Path path, long offset, long bytes, Arena arena)
      throws IOException {
    return open(path, channel -> channel.map(FileChannel.MapMode.READ_WRITE, offset, bytes, arena));
  }

  /** Maps all data now, so that the descriptor is not needed any more. */
  private void mapAll() {
    data = map(0, dataBytes(), arena);
    closeDescriptor();
  }

  /** The identity of the file, whatever its content. */
  public Object key() {
    return key;
  }

  public boolean isMadeHere() {
    return madeHere;
  }

  /** The identity of the file. */
  public UUID id() {
    return head.id();
  }

  /** Where what is in the file was made. */
  public SharedPlace place() {
    return head.place();
  }

  public long dataBytes() {
    return head.dataBytes();
  }

  /** The fields of the kind. */
  public MemorySegment own() {
    return mapped.asSlice(OWN, kind.headBytes - OWN);
  }

  /** A descriptor of the file that is the caller's. */
  public int export() {
    return sharing.system(() -> sharing.descriptors().duplicate(descriptor));
  }

  /** What another process finds this file by as long as the descriptor is open. */
  public ShareHandle handle(ShareHandle.Kind handleKind) {
    return new ShareHandle(handleKind, id(), sharing.driverId, ProcessId.current(), descriptor, 0);
  }

  @Override
  public MemorySegment map(long offset, long bytes, Arena user) {
    if (data != null) {
      return data.asSlice(offset, bytes);
    }
    try {
      return map(self(descriptor), kind.headBytes + offset, bytes, user);
    } catch (IOException e) {
      throw new SimRefusal(
          e.getCause() instanceof OutOfMemoryError
              ? CudaStatus.OUT_OF_MEMORY
              : CudaStatus.OPERATING_SYSTEM,
          "mapping %d bytes of shared memory: %s".formatted(bytes, e));
    }
  }

  /** Writes into a range, for which there is memory then. */
  public void provide(Extent extent) {
    try {
      open(
          self(descriptor),
          channel -> {
            BlockFile.provide(channel, kind.headBytes + extent.offset(), extent.byteSize());
            return extent;
          });
    } catch (IOException e) {
      throw new SimRefusal(
          CudaStatus.OUT_OF_MEMORY,
          "requested=%d bytes of shared memory: %s".formatted(extent.byteSize(), e));
    }
  }

  /** One more needs the file. */
  public void retain() {
    users++;
  }

  @Override
  public void release(Extent extent) {
    release();
  }

  /** One less needs the file; the last one closes it. */
  public void release() {
    if (--users == 0) {
      close();
    }
  }

  /** Prevents further opening of the file; processes that have it keep it. */
  public void closeDescriptor() {
    if (descriptor != NONE) {
      int number = descriptor;
      descriptor = NONE;
      try {
        sharing.descriptors().close(number);
      } catch (UncheckedIOException e) {
        throw new SimRefusal(CudaStatus.OPERATING_SYSTEM, e.toString());
      }
    }
  }

  /** Closes the file in this process, even if it is in use. */
  public void close() {
    if (sharing.closed(this)) {
      arena.close();
      closeDescriptor();
    }
  }
}
