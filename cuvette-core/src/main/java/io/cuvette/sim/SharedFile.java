package io.cuvette.sim;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.DescriptorCalls;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.UUID;

/**
 * A file without a name that several processes map: a head that says what it is, and data behind
 * it. It lives as long as anybody has it open or mapped, and is sealed against getting shorter,
 * since that would take memory from under others. Guarded by the driver's lock.
 *
 * <pre>
 *   0       8         12     16   32       40            56         60    64         72
 *   | magic | version | kind | id | driver | device UUID | location | id | data size | own fields
 * </pre>
 */
final class SharedFile implements BlockFile {

  /** What a file holds. The head of a pool has a table, that of an event a ring. */
  enum Kind {
    POOL(1, SharedTable.BYTES),
    MEMORY(2, 0),
    EVENT(3, SharedRing.BYTES);

    /** What the file says it is. */
    final int code;

    /** Where the data starts. */
    final long headBytes;

    Kind(int code, long ownBytes) {
      this.code = code;
      this.headBytes = OWN + ownBytes;
    }
  }

  /** Where the fields of a kind start. */
  static final long OWN = FileExtents.PAGE;

  private static final long MAGIC = 0x31_45_54_54_45_56_55_43L;
  private static final int VERSION = 1;
  private static final int NONE = -1;

  final Kind kind;

  /** The head; of memory that another process made, everything. */
  private final MemorySegment mapped;

  private final SimSharing sharing;
  private final Arena arena;
  private int descriptor;
  private int users = 1;

  private SharedFile(
      SimSharing sharing, Kind kind, MemorySegment mapped, Arena arena, int descriptor) {
    this.sharing = sharing;
    this.kind = kind;
    this.mapped = mapped;
    this.arena = arena;
    this.descriptor = descriptor;
    sharing.opened(this);
  }

  /** Makes a file of this process, whose data is all 0. */
  static SharedFile create(SimSharing sharing, Kind kind, SharedPlace place, long dataBytes) {
    DescriptorCalls calls = sharing.descriptors();
    int descriptor =
        sharing.system(() -> calls.memoryFile("cuvette-sim", kind.headBytes + dataBytes));
    SharedFile file = map(sharing, kind, self(descriptor), descriptor, true);
    MemorySegment head = file.mapped;
    UUID id = UUID.randomUUID();
    head.set(ValueLayout.JAVA_INT, 8, VERSION);
    head.set(ValueLayout.JAVA_INT, 12, kind.code);
    set(head, 16, id);
    head.set(ValueLayout.JAVA_LONG, 32, sharing.driverId);
    set(head, 40, place.uuid());
    head.set(ValueLayout.JAVA_INT, 56, place.locationType());
    head.set(ValueLayout.JAVA_INT, 60, place.locationId());
    head.set(ValueLayout.JAVA_LONG, 64, dataBytes);
    head.set(ValueLayout.JAVA_LONG, 0, MAGIC);
    return file;
  }

  /** The file of a descriptor of this process, which stays the caller's. */
  static SharedFile ofDescriptor(SimSharing sharing, Kind kind, int number) {
    DescriptorCalls calls = sharing.descriptors();
    if (number < 0 || !calls.isOpen(number)) {
      throw SimRefusal.invalidValue("descriptor: %d (expected: an open one)".formatted(number));
    }
    if (sharing.system(() -> calls.neverShrinks(number) ? 1 : 0) == 0) {
      // Whoever else has it could take the memory from under this process.
      throw SimRefusal.invalidValue(
          "descriptor: %d is a file that can get shorter (expected: a %s that a simulated driver shares)"
              .formatted(number, kind));
    }
    int duplicate = sharing.system(() -> calls.duplicate(number));
    return map(sharing, kind, self(duplicate), duplicate, false);
  }

  /** The file of a handle, from the process that has it open. */
  static SharedFile ofHandle(SimSharing sharing, Kind kind, ShareHandle handle) {
    if (!handle.process().isAlive()) {
      throw SimRefusal.invalidValue(
          "handle: made by process %d, which has ended".formatted(handle.process().pid()));
    }
    Path path = handle.process().descriptor(handle.descriptor());
    SharedFile file;
    try {
      file = map(sharing, kind, path, NONE, false);
    } catch (SimRefusal e) {
      if (e.status() != CudaStatus.INVALID_VALUE) {
        throw e; // which says nothing about the handle
      }
      throw SimRefusal.invalidValue("handle: what it stood for was freed: " + e.text());
    }
    if (!file.id().equals(handle.file())) {
      file.release();
      throw SimRefusal.invalidValue("handle: what it stood for was freed");
    }
    return file;
  }

  private static SharedFile map(
      SimSharing sharing, Kind kind, Path path, int descriptor, boolean fresh) {
    Arena arena = Arena.ofShared();
    try {
      if (!Files.isRegularFile(path)) {
        throw notShared(kind, "no file of shared memory");
      }
      // Memory of another process is mapped whole, since its descriptor may be gone later.
      boolean whole = kind == Kind.MEMORY && descriptor == NONE;
      MemorySegment mapped = open(path, channel -> head(channel, kind, whole, fresh, arena));
      return new SharedFile(sharing, kind, mapped, arena, descriptor);
    } catch (IOException | RuntimeException e) {
      arena.close();
      if (descriptor != NONE) {
        sharing.descriptors().close(descriptor);
      }
      throw e instanceof SimRefusal refusal ? refusal : unmapped(sharing, kind, e);
    }
  }

  /** What made a file unusable: this process, which has no room left, or the file. */
  private static SimRefusal unmapped(SimSharing sharing, Kind kind, Exception e) {
    if (e.getCause() instanceof OutOfMemoryError) {
      return new SimRefusal(CudaStatus.OUT_OF_MEMORY, "mapping shared memory: " + e);
    }
    DescriptorCalls calls = sharing.descriptors();
    try {
      calls.close(sharing.system(() -> calls.memoryFile("cuvette-sim", 0)));
    } catch (SimRefusal none) {
      return none;
    }
    return notShared(kind, e.toString());
  }

  private static MemorySegment head(
      FileChannel channel, Kind kind, boolean whole, boolean fresh, Arena arena)
      throws IOException {
    long bytes = channel.size();
    if (bytes < kind.headBytes) {
      throw notShared(kind, "a file of %d bytes".formatted(bytes));
    }
    MemorySegment mapped =
        channel.map(FileChannel.MapMode.READ_WRITE, 0, whole ? bytes : kind.headBytes, arena);
    if (!fresh) {
      check(mapped, kind, bytes);
    }
    return mapped;
  }

  private static void check(MemorySegment head, Kind kind, long bytes) {
    long magic = head.get(ValueLayout.JAVA_LONG, 0);
    int version = head.get(ValueLayout.JAVA_INT, 8);
    int found = head.get(ValueLayout.JAVA_INT, 12);
    long dataBytes = head.get(ValueLayout.JAVA_LONG, 64);
    if (magic != MAGIC || version != VERSION || found != kind.code) {
      throw notShared(kind, "a file of something else");
    }
    if (dataBytes < 0 || dataBytes > bytes - kind.headBytes) {
      throw notShared(kind, "a file of %d bytes that lacks some of its data".formatted(bytes));
    }
  }

  private static SimRefusal notShared(Kind kind, String found) {
    return SimRefusal.invalidValue(
        "%s (expected: a %s that a simulated driver shares)".formatted(found, kind));
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

  private static void set(MemorySegment head, long offset, UUID value) {
    head.set(ValueLayout.JAVA_LONG, offset, value.getMostSignificantBits());
    head.set(ValueLayout.JAVA_LONG, offset + 8, value.getLeastSignificantBits());
  }

  private static UUID uuid(MemorySegment head, long offset) {
    return new UUID(
        head.get(ValueLayout.JAVA_LONG, offset), head.get(ValueLayout.JAVA_LONG, offset + 8));
  }

  UUID id() {
    return uuid(mapped, 16);
  }

  /** Where what is in the file was made. */
  SharedPlace place() {
    return new SharedPlace(
        uuid(mapped, 40),
        mapped.get(ValueLayout.JAVA_INT, 56),
        mapped.get(ValueLayout.JAVA_INT, 60));
  }

  long dataBytes() {
    return mapped.get(ValueLayout.JAVA_LONG, 64);
  }

  /** The fields of the kind. */
  MemorySegment own() {
    return mapped.asSlice(OWN, kind.headBytes - OWN);
  }

  /** A descriptor of the file that is the caller's. */
  int export() {
    return sharing.system(() -> sharing.descriptors().duplicate(descriptor));
  }

  /** What another process finds this file by as long as the descriptor is open. */
  ShareHandle handle(ShareHandle.Kind handleKind) {
    return new ShareHandle(handleKind, id(), sharing.driverId, ProcessId.current(), descriptor, 0);
  }

  @Override
  public MemorySegment map(long offset, long bytes, Arena user) {
    if (descriptor == NONE) {
      return mapped.asSlice(kind.headBytes + offset, bytes);
    }
    try {
      // A mapping behind the end of the file makes the file longer.
      return open(
          self(descriptor),
          channel ->
              channel.map(FileChannel.MapMode.READ_WRITE, kind.headBytes + offset, bytes, user));
    } catch (IOException e) {
      throw new SimRefusal(
          e.getCause() instanceof OutOfMemoryError
              ? CudaStatus.OUT_OF_MEMORY
              : CudaStatus.OPERATING_SYSTEM,
          "mapping %d bytes of shared memory: %s".formatted(bytes, e));
    }
  }

  /** Writes zeros into a range, for which there is memory then. */
  void provide(FileExtents.Extent extent) {
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
  void retain() {
    users++;
  }

  @Override
  public void release(FileExtents.Extent extent) {
    release();
  }

  /** One less needs the file; the last one closes it. */
  void release() {
    if (--users == 0) {
      close();
    }
  }

  /** Nobody opens the file from here any more, though those who have it keep it. */
  void closeDescriptor() {
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

  /** Ends the file here, whoever needs it. */
  void close() {
    if (sharing.closed(this)) {
      users = 0;
      arena.close();
      closeDescriptor();
    }
  }
}
