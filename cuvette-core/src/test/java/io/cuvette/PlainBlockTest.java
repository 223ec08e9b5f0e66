package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.internal.block.Block;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Faces;
import io.cuvette.internal.block.PlainBlock;
import io.cuvette.internal.loan.RegisteredMemory;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.session.DeferredFrees;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongConsumer;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Memory that no pool caches: whose it is, and that it is freed once. */
class PlainBlockTest {
  private static final int BYTES = 512;

  private final Cuda cuda = Cuda.open(CudaOptions.simulated().withLeakLevel(LeakLevel.FULL));
  private final OpenStream stream = cuda.currentStream().core();
  private final List<Long> freed = new ArrayList<>();

  @AfterEach
  void close() {
    cuda.close();
  }

  private static Buffer buffer(Cuda cuda) {
    return MemoryResource.direct().allocate(BYTES, cuda.currentStream());
  }

  @Test
  void memory_isListedUntilItIsClosed() {
    Buffer buffer = buffer(cuda);
    assertThat(cuda.openObjects()).singleElement().extracting(OpenObject::bytes).isEqualTo(512L);
    buffer.close();
    assertThat(cuda.openObjects()).isEmpty();
  }

  /** The collector's thread may be what the callback waits for. */
  @Test
  void forgottenMemory_isTakenBackOnceNoCallbackHoldsAStream() {
    DeferredFrees frees = cuda.session().frees();
    Buffer buffer = buffer(cuda);
    Block block = ((BufferBase) buffer).block();
    frees.beginHold();
    assertThat(block.reclaim()).isFalse();
    frees.endHold();
    assertThat(block.reclaim()).isTrue();
    assertThat(buffer.isClosed()).isTrue();
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void memoryWithoutHeapForItsBuffer_isFreedOnce(boolean hasBuffer) {
    Faces faces = new WithoutHeap(hasBuffer);
    MemorySegment memory = Arena.ofAuto().allocate(BYTES);
    long address = memory.address();
    LongConsumer free = freed::add;
    PlainBlock.By driver = PlainBlock.By.DRIVER;
    assertIsFreed(address, () -> PlainBlock.own(faces, address, BYTES, stream, free, driver));
    assertIsFreed(address, () -> PlainBlock.own(faces, memory, stream, free));
    Face buffer = BufferKind.PINNED.make(address, BYTES, stream);
    assertIsFreed(address, () -> PlainBlock.ownRegistered(faces, buffer, memory, stream, free));
    cuda.close();
    assertThat(freed).isEmpty();
  }

  @Test
  void pageLockedMemoryWithoutHeapForItsBuffer_isTheProgramsAloneAgain() {
    MemorySegment memory = Arena.ofAuto().allocate(BYTES);
    Face buffer = BufferKind.PINNED.make(memory.address(), BYTES, stream);
    Faces faces = new WithoutHeap(true);
    assertThatThrownBy(() -> RegisteredMemory.own(faces, buffer, memory, stream))
        .isInstanceOf(OutOfMemoryError.class);
    try (Buffer device = buffer(cuda)) {
      device.copyFrom(memory);
    }
    cuda.registerHost(memory).close();
    assertThat(cuda.openObjects()).isEmpty();
  }

  private void assertIsFreed(long address, Runnable makes) {
    assertThatThrownBy(makes::run).isInstanceOf(OutOfMemoryError.class);
    assertThat(freed).containsExactly(address);
    freed.clear();
  }

  /** Somebody closes it as the collector's thread comes by. */
  @Test
  void memoryThatHasEnded_isNotTakenBackOnceMore() {
    CudaDevice device = cuda.device(0);
    Buffer base = buffer(cuda);
    PinnedMemoryPool pinned = cuda.defaultPinnedMemoryPool();
    MemoryPool pool = cuda.defaultMemoryPool();
    List<Supplier<Buffer>> kinds =
        List.of(
            () -> buffer(cuda),
            () -> cuda.allocate(BYTES),
            () -> cuda.allocatePinned(BYTES),
            () -> cuda.directPinned().allocate(BYTES),
            () -> cuda.allocateManaged(BYTES),
            () -> MemoryResource.async().allocate(BYTES, device.nullStream()),
            () -> device.adopt(base.address(), BYTES, () -> freed.add(0L)),
            () -> cuda.registerHost(Arena.ofAuto().allocate(BYTES)));
    for (Supplier<Buffer> kind : kinds) {
      for (boolean isClosed : new boolean[] {true, false}) {
        Buffer buffer = kind.get();
        Block block = ((BufferBase) buffer).block();
        if (isClosed) {
          buffer.close();
        }
        assertThat(block.reclaim()).as("%s", buffer).isEqualTo(!isClosed);
        assertThat(block.reclaim()).as("%s", buffer).isFalse();
        assertThat(buffer.isClosed()).isTrue();
        try (Buffer one = kind.get();
            Buffer other = kind.get()) {
          assertThat(one).isNotSameAs(other);
        }
      }
    }
    assertThat(freed).as("both, and four to look at").hasSize(6);
    assertThat(pinned.usedBytes() + pool.usedBytes()).isZero();
    pool.assertConsistent();
    base.close();
  }

  /** Its free is the program's own call, which waits for no stream, and for no callback. */
  @Test
  void adoptedMemory_isGivenBackAtOnce_whileACallbackHoldsAStream() {
    Buffer base = buffer(cuda);
    Buffer adopted = cuda.device(0).adopt(base.address(), BYTES, () -> freed.add(7L));
    cuda.session().frees().beginHold();
    try {
      adopted.close();
      assertThat(freed).containsExactly(7L);
    } finally {
      cuda.session().frees().endHold();
    }
    base.close();
  }

  /** It is there before the buffer, and after it. */
  @Test
  void segmentOfRegisteredMemory_isTheProgramsOwn() {
    MemorySegment memory = Arena.ofAuto().allocate(BYTES);
    PinnedBuffer buffer = cuda.registerHost(memory);
    MemorySegment seen = buffer.segment();
    MemorySegment part = buffer.slice(64, 8).segment();
    assertThat(seen).isEqualTo(memory);
    assertThat(List.of(seen.scope(), part.scope())).containsOnly(memory.scope());
    assertThat(part.address()).isEqualTo(memory.address() + 64);
    buffer.close();
    seen.fill((byte) 7);
    assertThat(memory.get(ValueLayout.JAVA_BYTE, BYTES - 1)).isEqualTo((byte) 7);
  }
}
