package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.DescriptorCalls;
import io.cuvette.driver.EventCalls;
import io.cuvette.driver.IpcCalls;
import io.cuvette.driver.OrderedCalls;
import io.cuvette.driver.PoolCalls;
import io.cuvette.driver.PoolProperties;
import io.cuvette.driver.StreamCalls;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingEvents;
import io.cuvette.instrument.ForwardingIpc;
import io.cuvette.instrument.ForwardingOrdered;
import io.cuvette.instrument.ForwardingPools;
import io.cuvette.instrument.ForwardingStreams;
import io.cuvette.internal.channel.Descriptors;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.PeerHandles;
import io.cuvette.internal.share.Mappings;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Handles that a driver would follow out of its tables do not reach it. */
class PeerHandlesTest {
  private final AtomicInteger closed = new AtomicInteger();
  private final PeerHandles handles = new PeerHandles(this::close);
  private final Cuda cuda =
      Cuda.open(
          CudaOptions.simulated().withDevice("sim:memory=80GiB").withDecorator(Exporting::new));
  private final Device device = cuda.device(0).core();

  private static final long POOL_BYTES = 2L << 30;
  private static final long POOL = 4711;
  private static final Set<Long> IMPORTED = ConcurrentHashMap.newKeySet();
  private static final Set<Long> MADE = ConcurrentHashMap.newKeySet();

  /** Whether the driver has offsets, sizes and slots where one was seen to have them. */
  private static boolean usual = true;

  /** What it says of the size of plain memory. */
  private static long plainBytes = 256;

  /** The slot of the event that is looked at, and a byte of its handle that is not 0; or -1. */
  private static int ownSlot = 0xfff;

  private static int notZeroAt = -1;

  /** A size of a pool's memory that the driver's handles give as another. */
  private static long roundedBytes = -1;

  /** What is added to the second offset of plain memory that is seen, and to its size. */
  private static int plainOff;

  private static long plainMore;

  /** How often it was asked for handles of plain memory and of events. */
  private static int asked;

  /** Whether no pool can be made at the moment, and no handle had. */
  private static boolean failing;

  /** A driver whose handles are as those of a real one. */
  static final class Exporting extends ForwardingDriver {
    private final Map<Long, Long> bytes = new ConcurrentHashMap<>();
    private final Map<Long, Long> pools = new ConcurrentHashMap<>();
    private final Set<Long> exported = ConcurrentHashMap.newKeySet();

    /** Whether pools other than the library's own are made. */
    private boolean importing;

    Exporting(CudaDriver sim) {
      super(sim);
    }

    Exporting importing() {
      importing = true;
      return this;
    }

    @Override
    public boolean isSimulated() {
      return false;
    }

    private final PoolCalls poolCalls =
        new ForwardingPools(delegate().pools()) {
          @Override
          public long memPoolCreate(PoolProperties properties) {
            boolean isOwn = properties.equals(new PoolProperties(1, 1, 1, 0, 0));
            Exporting.check(!failing && (isOwn || importing));
            long pool =
                super.memPoolCreate(
                    new PoolProperties(
                        properties.allocationType(),
                        0,
                        properties.locationType(),
                        properties.locationId(),
                        0));
            MADE.add(pool);
            return pool;
          }

          @Override
          public void memPoolDestroy(long pool) {
            super.memPoolDestroy(pool);
            MADE.remove(pool);
          }
        };

    @Override
    public PoolCalls pools() {
      return poolCalls;
    }

    /** A stream of its own is to wait for nobody's. */
    private final StreamCalls streamCalls =
        new ForwardingStreams(delegate().streams()) {
          @Override
          public long streamCreateWithPriority(int device, int flags, int priority) {
            assertThat(importing || flags == 1).isTrue();
            return super.streamCreateWithPriority(device, flags, priority);
          }
        };

    @Override
    public StreamCalls streams() {
      return streamCalls;
    }

    private final OrderedCalls orderedCalls =
        new ForwardingOrdered(delegate().ordered()) {
          @Override
          public long memAllocFromPoolAsync(int device, long size, long pool, long stream) {
            long address = super.memAllocFromPoolAsync(device, size, pool, stream);
            bytes.put(address, size);
            pools.put(address, pool);
            return address;
          }

          @Override
          public void memFreeAsync(int device, long address, long stream) {
            if (!IMPORTED.remove(address)) {
              super.memFreeAsync(device, address, stream);
            }
          }
        };

    @Override
    public OrderedCalls ordered() {
      return orderedCalls;
    }

    private final IpcCalls ipcCalls =
        new ForwardingIpc(delegate().sharing()) {
          @Override
          public int memPoolExportToShareableHandle(long pool) {
            exported.add(pool);
            return DescriptorCalls.find().map(calls -> calls.memoryFile("pool", 1)).orElse(42);
          }

          @Override
          public byte[] memPoolExportPointer(long address) {
            check(exported.contains(pools.get(address)));
            long size = bytes.get(address);
            long at = size == roundedBytes - 1 ? address + 256 : address;
            return pointer(at, size == roundedBytes ? 2 * size : size);
          }

          // Of a pool of 2 GiB; what is longer than it is the end of a real driver's process.
          @Override
          public long memPoolImportPointer(long pool, byte[] handle) {
            ByteBuffer words = ByteBuffer.wrap(handle).order(ByteOrder.nativeOrder());
            assertThat(words.getLong(32)).isLessThanOrEqualTo(POOL_BYTES);
            check(words.getLong(24) % 256 == 0);
            check(words.getLong(24) + words.getLong(32) <= POOL_BYTES);
            IMPORTED.add(words.getLong(24));
            return words.getLong(24);
          }

          @Override
          public byte[] ipcGetMemHandle(int device, long address) {
            check(!failing);
            boolean isSecond = asked++ == 1;
            return plain(
                ((int) address & 0x1fffff) + (isSecond ? plainOff : 0),
                plainBytes + (isSecond ? plainMore : 0));
          }

          @Override
          public byte[] ipcGetEventHandle(int device, long event) {
            check(!failing);
            asked++;
            byte[] handle = event(ownSlot);
            if (notZeroAt >= 0) {
              handle[notZeroAt] = 1;
            }
            return handle;
          }
        };

    @Override
    public IpcCalls sharing() {
      return ipcCalls;
    }

    private final EventCalls eventCalls =
        new ForwardingEvents(delegate().events()) {
          @Override
          public long eventCreate(int device, int flags) {
            return super.eventCreate(device, flags & ~4);
          }
        };

    @Override
    public EventCalls events() {
      return eventCalls;
    }

    private static void check(boolean isRight) {
      if (!isRight) {
        throw new CudaException(CudaStatus.INVALID_VALUE, "test", "");
      }
    }
  }

  private void close(int descriptor) {
    closed.incrementAndGet();
    Descriptors.close(descriptor);
  }

  static byte[] pointer(long offset, long size) {
    int at = usual ? 24 : 48;
    return buffer().putLong(0, 462).putLong(at, offset).putLong(at + 8, size).array();
  }

  private static byte[] plain(int offset, long size) {
    return buffer().putLong(16, size).putInt(usual ? 28 : 40, offset).array();
  }

  private static byte[] event(int slot) {
    return buffer().putInt(0, 462).putInt(usual ? 16 : 60, slot).array();
  }

  private static ByteBuffer buffer() {
    return ByteBuffer.allocate(64).order(ByteOrder.nativeOrder());
  }

  @AfterEach
  void nothingIsLeft() {
    usual = true;
    plainBytes = 256;
    ownSlot = 0xfff;
    notZeroAt = -1;
    roundedBytes = -1;
    plainOff = 0;
    plainMore = 0;
    failing = false;
    asked = 0;
    MADE.clear();
    cuda.close();
  }

  @ParameterizedTest
  @ValueSource(longs = {1L << 37, 1L << 40, 1L << 62, Long.MIN_VALUE, -1})
  void rangeThatNoDeviceHas_isRefused(long value) {
    assertThatThrownBy(() -> handles.checkedPointer(device, POOL, pointer(value, 4096)))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("offset in the handle: " + Long.toUnsignedString(value));
    assertThatThrownBy(() -> handles.checkedPointer(device, POOL, pointer(0, value)))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("size in the handle: " + Long.toUnsignedString(value));
  }

  /** The driver reads beyond its table if a size is far beyond the pool, so the end goes first. */
  @Test
  void sizeBeyondThePool_isRefusedBeforeTheDriverHasIt() {
    for (long size : new long[] {POOL_BYTES + 1, 4L << 30, 80L << 30}) {
      assertThatThrownBy(() -> handles.checkedPointer(device, POOL, pointer(0, size)))
          .isInstanceOf(CudaException.class);
      assertThatThrownBy(
              () -> handles.checkedPointer(device, POOL, pointer(1L << 30, size - (1L << 30))))
          .isInstanceOf(CudaException.class);
    }
    assertThatThrownBy(() -> handles.checkedPointer(device, POOL, pointer(0, (80L << 30) + 1)))
        .hasMessageContaining("size in the handle: 85899345921 (expected: 1 to 85899345920)");
    byte[] whole = pointer(0, POOL_BYTES);
    assertThat(handles.checkedPointer(device, POOL, whole)).isSameAs(whole);
    assertThat(IMPORTED).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(ints = {4096, 0x10fff, Integer.MIN_VALUE, -1})
  void slotThatNoTableHas_isRefused(int slot) {
    assertThatThrownBy(() -> handles.checkedEvent(device, event(slot)))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("slot in the handle: " + Integer.toUnsignedString(slot));
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 128, 255, 257, 0x302000001L})
  void offsetThatNoAllocationHas_isRefused(long offset) {
    assertThatThrownBy(() -> handles.checkedPointer(device, POOL, pointer(offset, 4096)))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("offset modulo 256 in the handle: " + offset % 256);
  }

  /** The driver adds it to the address, and does not look whether that is still the memory. */
  @ParameterizedTest
  @ValueSource(ints = {1 << 21, 1 << 24, Integer.MIN_VALUE, -1})
  void offsetBeyondTheBlockOfPlainMemory_isRefused(int offset) {
    assertThatThrownBy(() -> handles.checkedPlain(device, plain(offset, 4096)))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("offset in the handle: " + Integer.toUnsignedString(offset));
  }

  @ParameterizedTest
  @ValueSource(longs = {0, (80L << 30) + 1, 1L << 39, 1L << 46, -1})
  void plainSizeThatNoDeviceHas_isRefused(long size) {
    assertThatThrownBy(() -> handles.checkedPlain(device, plain(0, size)))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("size");
  }

  @ParameterizedTest
  @ValueSource(longs = {256, 4096, 1L << 30, (1L << 37) - 256})
  void whatTheDriverChecksItself_isPassedOn(long value) {
    byte[] pointer = pointer(value, Math.min(value, 1L << 30));
    assertThat(handles.checkedPointer(device, POOL, pointer)).isSameAs(pointer);
    byte[] event = event((int) value & 0xfff);
    assertThat(handles.checkedEvent(device, event)).isSameAs(event);
    byte[] plain = plain((int) value & 0x1fffff, Math.min(value, device.totalBytes()));
    assertThat(handles.checkedPlain(device, plain)).isSameAs(plain);
  }

  /** What could not be looked at is not known: the driver gets it, and the next look decides. */
  @Test
  void handlesThatCouldNotBeLookedAt_areLookedAtAgain() {
    byte[] wrong = pointer(1, 4096);
    byte[] plain = plain(-1, 4096);
    byte[] event = event(-1);
    failing = true;
    assertThat(handles.checkedPointer(device, POOL, wrong)).isSameAs(wrong);
    assertThat(handles.checkedPlain(device, plain)).isSameAs(plain);
    assertThat(handles.checkedEvent(device, event)).isSameAs(event);
    failing = false;
    assertThatThrownBy(() -> handles.checkedPointer(device, POOL, wrong))
        .isInstanceOf(CudaException.class);
    assertThatThrownBy(() -> handles.checkedPlain(device, plain)).isInstanceOf(CudaException.class);
    assertThatThrownBy(() -> handles.checkedEvent(device, event)).isInstanceOf(CudaException.class);
  }

  @Test
  void whatTheDriverDoesNotRead_doesNotTellAllocationsApart() {
    byte[] one = pointer(512, 4096);
    byte[] two = one.clone();
    Arrays.fill(two, 40, 64, (byte) 7);
    two[32] = 1;
    assertThat(key(two)).isEqualTo(key(one)).hasSameHashCodeAs(key(one));
    assertThat(key(pointer(1024, 4096))).isNotEqualTo(key(one));
    two[8] = 1;
    assertThat(key(two)).isNotEqualTo(key(one));
    usual = false;
    assertThat(new PeerHandles(this::close).range(device, one)).isNull();
  }

  private Mappings.Key key(byte[] handle) {
    UUID process = new UUID(7, 7);
    return Mappings.Key.ofPool(
        new BufferDescriptor(
            BufferDescriptor.Kind.DEVICE_POOL, 0, 1, process, new UUID(0, 0), handle),
        handles.range(device, handle));
  }

  @ParameterizedTest
  @ValueSource(longs = {1L << 40, -1})
  void driverWithOtherHandles_isNotSecondGuessed(long value) {
    usual = false;
    byte[] pointer = pointer(value, value);
    assertThat(handles.checkedPointer(device, POOL, pointer)).isSameAs(pointer);
    byte[] event = event((int) value);
    assertThat(handles.checkedEvent(device, event)).isSameAs(event);
    byte[] plain = plain((int) value, value);
    assertThat(handles.checkedPlain(device, plain)).isSameAs(plain);
  }

  @ParameterizedTest
  @ValueSource(longs = {0, 255, 256, 1L << 21, (1L << 21) + 1})
  void driverWithOtherSizesOfPlainMemory_isNotSecondGuessed(long size) {
    plainBytes = size;
    byte[] plain = plain(-1, 4096);
    if (size >= 256 && size <= 1L << 21) {
      assertThatThrownBy(() -> handles.checkedPlain(device, plain)).hasMessageContaining("offset");
    } else {
      assertThat(handles.checkedPlain(device, plain)).isSameAs(plain);
    }
  }

  /** Such as one whose handles have the slot elsewhere, or more than that. */
  @ParameterizedTest
  @ValueSource(ints = {20, 21, 40, 63})
  void driverWithOtherHandlesOfEvents_isNotSecondGuessed(int at) {
    byte[] event = event(-1);
    notZeroAt = at;
    assertThat(new PeerHandles(this::close).checkedEvent(device, event)).isSameAs(event);
    notZeroAt = -1;
    ownSlot = 0x1000 << (at % 20);
    assertThat(new PeerHandles(this::close).checkedEvent(device, event)).isSameAs(event);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 3})
  void lookingAtItsOwnHandles_leavesNothing(int times) {
    long before = device.memoryInfo().freeBytes();
    for (int i = 0; i < times; i++) {
      handles.checkedPointer(device, POOL, pointer(0, 1));
      handles.checkedPlain(device, plain(0, 1));
      handles.checkedEvent(device, event(1));
    }
    assertThat(device.memoryInfo().freeBytes()).isEqualTo(before);
    assertThat(MADE).isEmpty();
    assertThat(closed).hasValue(1);
    assertThat(asked).as("two allocations and an event, once").isEqualTo(3);
  }

  /**
   * Each of the two sizes that are looked at, in a driver that gives another for it, or a place.
   */
  @ParameterizedTest
  @ValueSource(longs = {1 << 20, 2 << 20, (1 << 20) + 1, (2 << 20) + 1})
  void driverThatRoundsSizesOfPools_isNotSecondGuessed(long rounded) {
    roundedBytes = rounded;
    byte[] pointer = pointer(1, 4096);
    assertThat(handles.checkedPointer(device, POOL, pointer)).isSameAs(pointer);
  }

  @Test
  void driverWithPlainMemoryInSeveralBlocks_isNotSecondGuessed() {
    byte[] plain = plain(-1, 4096);
    plainOff = 512;
    assertThat(handles.checkedPlain(device, plain)).isSameAs(plain);
    plainOff = 0;
    plainMore = 1L << 21;
    asked = 0;
    assertThat(new PeerHandles(this::close).checkedPlain(device, plain)).isSameAs(plain);
  }

  @Test
  void lookingAtItsOwnHandles_isTheBusinessOfTheDeviceAlone() {
    DevicesAsked asked = new DevicesAsked();
    try (Cuda two =
        Cuda.open(
            CudaOptions.simulated()
                .withDevice("sim:devices=2,memory=80GiB")
                .withDecorator(sim -> asked.over(new Exporting(sim))))) {
      Device second = two.device(1).core();
      assertThat(
              asked.during(() -> {
                handles.checkedPointer(second, POOL, pointer(0, POOL_BYTES));
                handles.checkedPlain(second, plain(0, 1));
                handles.checkedEvent(second, event(1));
              }))
          .containsExactly(1);
    }
  }
}
