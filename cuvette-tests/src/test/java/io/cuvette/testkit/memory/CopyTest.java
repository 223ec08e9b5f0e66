package io.cuvette.testkit.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.CopyBox;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryResource;
import io.cuvette.Scope;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.OnDevice;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Kind;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;

class CopyTest {
  private static final int[] SIZES = {1, 3, 511, 512, 4096, (1 << 20) + 7};

  @CudaTest
  void waitingCopy_betweenEveryPairOfKinds_bringsEveryByte(Cuda cuda) {
    for (Kind from : Kind.values()) {
      for (Kind to : Kind.values()) {
        for (int bytes : SIZES) {
          byte[] pattern = Bytes.random(bytes, bytes);
          try (Buffer source = from.allocate(cuda, bytes);
              Buffer target = to.allocate(cuda, bytes)) {
            Bytes.put(source, pattern);
            target.copyFrom(source);
            assertThat(Bytes.of(target)).as("%s to %s", from, to).isEqualTo(pattern);
          }
        }
      }
    }
  }

  @CudaTest(seeds = 3)
  void copyOnAStream_betweenEveryPairOfKinds_bringsEveryByte(Cuda cuda, CudaStream stream) {
    for (Kind from : Kind.values()) {
      for (Kind to : Kind.values()) {
        byte[] pattern = Bytes.random(from.ordinal() + 7L * to.ordinal(), 70_001);
        try (Buffer source = from.allocate(cuda, pattern.length);
            Buffer middle = to.allocate(cuda, pattern.length);
            Buffer target = from.allocate(cuda, pattern.length)) {
          Bytes.put(source, pattern);
          middle.copyFrom(source, stream);
          middle.copyTo(target, stream);
          stream.synchronize();
          assertThat(Bytes.of(target)).as("%s by %s", from, to).isEqualTo(pattern);
        }
      }
    }
  }

  @CudaTest
  void heapSegment_goesInAndOutOfEveryKind(Cuda cuda) {
    for (Kind kind : Kind.values()) {
      for (int bytes : SIZES) {
        byte[] pattern = Bytes.random(bytes, bytes);
        try (Buffer buffer = kind.allocate(cuda, bytes)) {
          buffer.copyFrom(MemorySegment.ofArray(pattern));
          byte[] back = new byte[bytes];
          buffer.copyTo(MemorySegment.ofArray(back));
          assertThat(back).as("%s of %d", kind, bytes).isEqualTo(pattern);
        }
      }
    }
  }

  /** Larger than two of the page-locked chunks that heap memory goes through, and no multiple. */
  @CudaTest
  void heapSegmentOfManyChunks_keepsTheOrderOfItsBytes(Cuda cuda) {
    int bytes = (13 << 20) + 5;
    byte[] pattern = Bytes.random(13, bytes);
    for (Kind kind : new Kind[] {Kind.POOLED, Kind.MANAGED}) {
      try (Buffer buffer = kind.allocate(cuda, bytes)) {
        Bytes.put(buffer, pattern);
        assertThat(Bytes.of(buffer)).isEqualTo(pattern);
      }
    }
    cuda.defaultPinnedMemoryPool().freeAllBlocks();
  }

  @CudaTest
  void heapArraysOfOtherTypes_areCopiedAsBytes(Cuda cuda) {
    long[] numbers = {1, -2, Long.MAX_VALUE, Long.MIN_VALUE};
    long[] back = new long[numbers.length];
    try (Buffer buffer = cuda.allocate(4 * Long.BYTES)) {
      buffer.copyFrom(MemorySegment.ofArray(numbers));
      buffer.copyTo(MemorySegment.ofArray(back));
    }
    assertThat(back).isEqualTo(numbers);
  }

  @CudaTest
  void nativeSegment_goesInAndOutOfEveryKind(Cuda cuda, CudaStream stream) {
    try (Arena arena = Arena.ofConfined()) {
      byte[] pattern = Bytes.random(5, 200_003);
      MemorySegment in = arena.allocate(pattern.length);
      in.copyFrom(MemorySegment.ofArray(pattern));
      for (Kind kind : Kind.values()) {
        MemorySegment waiting = arena.allocate(pattern.length);
        MemorySegment queued = arena.allocate(pattern.length);
        try (Buffer buffer = kind.allocate(cuda, pattern.length)) {
          buffer.copyFrom(in);
          buffer.copyTo(waiting);
          buffer.fill((byte) 0);
          buffer.copyFrom(in, stream);
          buffer.copyTo(queued, stream);
          stream.synchronize();
        }
        assertThat(waiting.mismatch(in)).as("%s, waiting", kind).isEqualTo(-1);
        assertThat(queued.mismatch(in)).as("%s, on a stream", kind).isEqualTo(-1);
      }
    }
  }

  @CudaTest
  void smallerSource_changesOnlyTheStart(Cuda cuda) {
    try (Buffer target = cuda.allocate(1000);
        Buffer source = cuda.allocate(10)) {
      target.fill((byte) 7);
      source.fill((byte) 9);
      target.copyFrom(source);
      byte[] content = Bytes.of(target);
      for (int i = 0; i < content.length; i++) {
        assertThat(content[i]).as("byte %d", i).isEqualTo((byte) (i < 10 ? 9 : 7));
      }
    }
  }

  @CudaTest
  void slices_copyTheirPartAlone(Cuda cuda) {
    byte[] pattern = Bytes.random(3, 4096);
    try (Buffer source = cuda.allocate(4096);
        Buffer target = cuda.allocate(4096)) {
      Bytes.put(source, pattern);
      target.fill((byte) 0);
      target.slice(100, 50).copyFrom(source.slice(1000, 50));
      byte[] expected = new byte[4096];
      System.arraycopy(pattern, 1000, expected, 100, 50);
      assertThat(Bytes.of(target)).isEqualTo(expected);
    }
  }

  /** The stream is of the device of one of the buffers, which memory of the host does not ask. */
  @CudaTest(devices = 3)
  void streamOfAThirdDevice_copiesMemoryOfTheHostAlone(
      Cuda cuda, @OnDevice(1) CudaStream near, @OnDevice(2) CudaStream far) {
    try (Buffer zero = cuda.allocate(8);
        Buffer one = MemoryResource.direct().allocate(8, near);
        Buffer host = cuda.allocatePinned(8);
        Buffer other = cuda.allocatePinned(8)) {
      Bytes.put(host, new byte[] {1, 2, 3, 4, 5, 6, 7, 8});
      other.copyFrom(host, far);
      far.synchronize();
      assertThat(Bytes.of(other)).containsExactly(1, 2, 3, 4, 5, 6, 7, 8);
      checkRefused("a stream of device 0)", () -> zero.copyFrom(host, near));
      checkRefused("a stream of device 0)", () -> zero.copyTo(host, far));
      checkRefused("a stream of device 0 or device 1)", () -> zero.copyFrom(one, far));
      checkRefused("a stream of device 1 or device 0)", () -> one.copyFrom(zero, far));
    }
  }

  private static void checkRefused(String expected, Runnable copy) {
    assertThatThrownBy(copy::run)
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageEndingWith("(expected: " + expected);
  }

  @CudaTest(devices = 2, seeds = 3)
  void copyAcrossDevices_betweenEveryPairOfKinds_onEitherDevicesStream(
      Cuda cuda, CudaStream ofSource, @OnDevice(1) CudaStream ofTarget) {
    for (Kind from : Kind.values()) {
      for (Kind to : Kind.values()) {
        byte[] pattern = Bytes.random(from.ordinal() * 5L + to.ordinal(), 66_000);
        try (Buffer source = from.allocate(cuda.device(0), pattern.length);
            Buffer target = to.allocate(cuda.device(1), pattern.length)) {
          Bytes.put(source, pattern);
          for (CudaStream stream : new CudaStream[] {ofSource, ofTarget}) {
            target.fill((byte) 0);
            target.copyFrom(source, stream);
            stream.synchronize();
            assertThat(Bytes.of(target)).as("%s to %s", from, to).isEqualTo(pattern);
          }
          target.fill((byte) 0);
          target.copyFrom(source);
          assertThat(Bytes.of(target)).as("%s to %s, waiting", from, to).isEqualTo(pattern);
        }
      }
    }
  }

  @CudaTest(devices = 2, peers = "none")
  void copyAcrossDevices_worksWithoutPeerAccess(Cuda cuda) {
    byte[] pattern = Bytes.random(1, 5000);
    try (Buffer source = Kind.DEVICE.allocate(cuda.device(1), 5000);
        Buffer target = Kind.POOLED.allocate(cuda.device(0), 5000)) {
      Bytes.put(source, pattern);
      source.copyTo(target);
      assertThat(Bytes.of(target)).isEqualTo(pattern);
    }
  }

  /** What takes turns with the null stream comes after its work, also where the host copies. */
  @CudaTest(seeds = 12)
  void copyThatWaitsInABlockingStream_comesAfterTheNullStream(Cuda cuda, CudaStream stream) {
    int bytes = 4096;
    CudaStream none = cuda.currentDevice().nullStream();
    for (Kind kind : Kind.values()) {
      try (Buffer buffer = kind.allocate(cuda, bytes);
          Scope _ = stream.use()) {
        byte[] got = new byte[bytes];
        MemorySegment target = MemorySegment.ofArray(got);
        buffer.fill(1, none);
        buffer.copyTo(target);
        assertThat(got).as("%s", kind).containsOnly(1);
        buffer.fill(2, none);
        buffer.copyTo(target, CopyBox.of(bytes / 2, 2));
        assertThat(got).as("%s", kind).containsOnly(2);
        buffer.fill(3, none);
        buffer.scatterTo(List.of(target));
        assertThat(got).as("%s", kind).containsOnly(3);
        buffer.fill(4, none);
        buffer.copyFrom(target.asSlice(0, 8));
        assertThat(Bytes.of(buffer)).as("%s", kind).startsWith(3, 3, 3).endsWith(4, 4);
      }
    }
  }
}
