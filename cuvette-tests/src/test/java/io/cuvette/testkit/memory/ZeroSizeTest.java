package io.cuvette.testkit.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.ManagedBuffer;
import io.cuvette.MemoryLocation;
import io.cuvette.PinnedBuffer;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Kind;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;

class ZeroSizeTest {

  @CudaTest
  void bufferOfNoBytes_hasAddressZero_andNoStatisticsCountIt(Cuda cuda) {
    for (Kind kind : Kind.values()) {
      try (Buffer buffer = kind.allocate(cuda, 0)) {
        assertThat(buffer.address()).as("%s", kind).isZero();
        assertThat(buffer.byteSize()).isZero();
        assertThat(buffer.isClosed()).isFalse();
        assertThat(cuda.defaultMemoryPool().stats().usedBlocks()).isZero();
        assertThat(cuda.defaultMemoryPool().stats().allocations()).isZero();
        assertThat(cuda.defaultPinnedMemoryPool().stats().usedBlocks()).isZero();
      }
    }
  }

  @CudaTest
  void everyOperation_acceptsNoBytes(Cuda cuda) {
    CudaStream stream = cuda.currentStream();
    try (Buffer other = cuda.allocate(16)) {
      for (Kind kind : Kind.values()) {
        try (Buffer empty = kind.allocate(cuda, 0)) {
          for (Buffer none : new Buffer[] {empty, other.slice(16), other.slice(3, 0)}) {
            none.fill((byte) 1);
            none.fillShorts((short) 1, stream);
            none.fillInts(1, stream);
            none.copyFrom(other.slice(0, 0));
            none.copyTo(other, stream);
            none.copyFrom(MemorySegment.ofArray(new byte[0]));
            none.copyTo(MemorySegment.ofArray(new byte[0]));
            none.copyFrom(MemorySegment.NULL, stream);
            none.recordUse(stream);
            none.slice(0, 0).close();
          }
        }
      }
    }
  }

  /** Whoever waits for a stream that has to wait for this thread would hang. */
  @CudaTest
  void waitingCallsWithNoBytes_doNotWait(Cuda cuda, ScriptedDriver driver) {
    try (Buffer other = cuda.allocate(16)) {
      long waits = driver.count("streamSynchronize");
      for (Buffer none : new Buffer[] {other.slice(16), other.slice(3, 0)}) {
        none.fill((byte) 1);
        other.copyFrom(none);
        none.copyFrom(MemorySegment.NULL);
        none.copyTo(MemorySegment.ofArray(new byte[0]));
      }
      assertThat(driver.count("streamSynchronize")).isEqualTo(waits);
    }
  }

  @CudaTest
  void copiesAndFillsOfNoBytes_doNotComeToTheDriver(Cuda cuda, ScriptedDriver driver) {
    CudaStream stream = cuda.currentStream();
    try (Buffer other = cuda.allocate(16);
        PinnedBuffer pinned = cuda.allocatePinned(16);
        Arena arena = Arena.ofConfined()) {
      MemorySegment outside = arena.allocate(16).asSlice(16);
      driver.note("memcpyAsync", "memcpyHtoDAsync", "memcpyDtoHAsync", "memsetD8Async");
      for (Buffer none : new Buffer[] {other.slice(16), other.slice(3, 0)}) {
        none.fill((byte) 1, stream);
        none.copyTo(other, stream);
        none.copyFrom(outside, stream);
        none.copyTo(outside, stream);
        for (MemorySegment each : List.of(outside, pinned.segment().asSlice(4, 0))) {
          none.copyFrom(each);
          none.copyTo(each);
        }
      }
      assertThat(driver.notes()).isEmpty();
    }
  }

  @CudaTest
  void viewsOfNoBytes_areEmpty(Cuda cuda) {
    try (PinnedBuffer pinned = cuda.allocatePinned(0);
        ManagedBuffer managed = cuda.allocateManaged(0)) {
      assertThat(pinned.segment().byteSize()).isZero();
      assertThat(pinned.byteBuffer().capacity()).isZero();
      assertThat(managed.segment().byteSize()).isZero();
      assertThat(managed.byteBuffer().capacity()).isZero();
    }
  }

  @CudaTest
  void memoryOfNoBytes_isNotTheDrivers(Cuda cuda, ScriptedDriver driver) {
    CudaStream stream = cuda.currentStream();
    driver.note("memAlloc", "memAllocManaged", "memAllocAsync", "memHostAlloc");
    driver.note("memFree", "memFreeAsync", "memFreeHost");
    for (Kind kind : Kind.values()) {
      kind.allocate(cuda, 0).close();
    }
    PinnedBuffer direct = cuda.directPinned().allocate(0);
    assertThat(direct.address()).isZero();
    assertThat(direct.segment().byteSize()).isZero();
    direct.fill((byte) 1, stream);
    direct.close();
    assertThat(driver.notes()).isEmpty();
  }

  @CudaTest
  void copyOfSomethingIntoNothing_isOutOfBounds(Cuda cuda) {
    try (Buffer empty = cuda.allocate(0);
        Buffer one = cuda.allocate(1)) {
      assertThatThrownBy(() -> empty.copyFrom(one)).isInstanceOf(IndexOutOfBoundsException.class);
    }
  }

  @CudaTest
  void closedBufferOfNoBytes_isClosed(Cuda cuda) {
    for (Kind kind : Kind.values()) {
      Buffer empty = kind.allocate(cuda, 0);
      empty.close();
      empty.close();
      assertThat(empty.isClosed()).isTrue();
      assertThatThrownBy(() -> empty.fill((byte) 1))
          .as("%s", kind)
          .isInstanceOf(IllegalStateException.class);
    }
  }

  /** Nothing would be done, but the program is wrong all the same. */
  @CudaTest
  void closedBufferOfNoBytes_refusesWhatHasNothingToDo(Cuda cuda) {
    CudaStream stream = cuda.currentStream();
    try (Buffer none = cuda.allocate(0)) {
      for (Kind kind : Kind.values()) {
        Buffer empty = kind.allocate(cuda, 0);
        empty.close();
        assertClosed(kind, () -> empty.copyFrom(none));
        assertClosed(kind, () -> empty.copyFrom(none, stream));
        assertClosed(kind, () -> none.copyFrom(empty, stream));
        assertClosed(kind, () -> empty.copyFrom(MemorySegment.NULL, stream));
        assertClosed(kind, () -> empty.copyTo(MemorySegment.NULL, stream));
        assertClosed(kind, () -> empty.fill((byte) 1, stream));
        assertClosed(kind, empty::descriptor);
      }
      ManagedBuffer managed = cuda.allocateManaged(0);
      managed.close();
      assertClosed(Kind.MANAGED, () -> managed.prefetch(MemoryLocation.host(), stream));
      assertClosed(Kind.MANAGED, managed::lastPrefetchLocation);
    }
  }

  private static void assertClosed(Kind kind, Runnable call) {
    assertThatThrownBy(call::run)
        .as("%s", kind)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageEndingWith("is closed");
  }
}
