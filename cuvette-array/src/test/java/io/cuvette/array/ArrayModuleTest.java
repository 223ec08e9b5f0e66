package io.cuvette.array;

import static io.cuvette.array.ElementType.COMPLEX128;
import static io.cuvette.array.ElementType.COMPLEX64;
import static io.cuvette.array.ElementType.FLOAT32;
import static io.cuvette.array.ElementType.FLOAT64;
import static io.cuvette.array.ElementType.INT16;
import static io.cuvette.array.ElementType.INT32;
import static io.cuvette.array.ElementType.INT64;
import static io.cuvette.array.ElementType.UINT8;
import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.Scope;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.OnDevice;
import java.lang.foreign.MemorySegment;
import java.util.List;

/** What makes arrays: where, of which memory, in which order; and programs that run on both. */
class ArrayModuleTest {

  /** One text for both: the upper triangle of ones, as a table of shorts. */
  private static short[][] triangle(NdArray like) {
    ArrayModule<? extends NdArray> xp = ArrayModule.of(like);
    try (NdArray a = xp.zerosLike(like);
        NdArray ones = xp.ones(a.type(), a.shape()[0])) {
      for (int row = 0; row < a.shape()[0]; row++) {
        a.slice(Range.at(row), Range.from(row)).copyFrom(ones.slice(Range.from(row)));
      }
      a.transpose().slice(Range.at(0), Range.at(0)).fill(2.0);
      try (NdArray table = a.asType(INT16)) {
        return table.toArray(short[][].class);
      }
    }
  }

  @CudaTest
  void oneProgramText_runsOnDeviceAndHost(Cuda cuda) {
    short[][] expected = {{2, 1, 1}, {0, 1, 1}, {0, 0, 1}};
    for (ArrayModule<?> module : List.of(CudaArrays.of(cuda), HostArrays.of(cuda))) {
      try (NdArray a = module.array(new double[3][3])) {
        assertThat(a.module()).hasSameClassAs(module);
        assertThat(triangle(a)).isDeepEqualTo(expected);
      }
    }
  }

  @CudaTest
  void module_isThatOfTheDevice_ifAnyArrayIsThere(Cuda cuda) {
    try (CudaArray device = CudaArrays.of(cuda).zeros(INT32, 1);
        HostArray host = HostArrays.of(cuda).zeros(INT32, 1)) {
      assertThat(ArrayModule.of(host, device)).isInstanceOf(CudaArrays.class);
      assertThat(ArrayModule.of(device, host)).isInstanceOf(CudaArrays.class);
      assertThat(ArrayModule.of(host, host)).isInstanceOf(HostArrays.class);
    }
  }

  @CudaTest
  void memory_comesFromTheCurrentAllocator_andIsSeenInItsPool(Cuda cuda, MemoryPool pool) {
    try (Scope _ = cuda.useAllocator(pool);
        CudaArray a = CudaArrays.of(cuda).zeros(FLOAT32, 100)) {
      assertThat(a.byteSize()).isEqualTo(400);
      assertThat(pool.stats(cuda.currentDevice()).usedBytes()).isEqualTo(512);
      assertThat(a.slice(Range.from(50)).buffer()).isSameAs(a.buffer());
    }
    assertThat(pool.stats(cuda.currentDevice()).usedBytes()).isZero();
  }

  @CudaTest
  void memoryThatTheHostSeesToo_holdsArrays(Cuda cuda) {
    for (MemoryResource resource :
        List.of(MemoryResource.managed(), MemoryResource.async(), MemoryResource.direct())) {
      try (Scope _ = cuda.useAllocator(resource);
          CudaArray a = CudaArrays.of(cuda).array(new int[] {1, 2, 3});
          CudaArray turned = a.slice(Range.reversed()).copy()) {
        assertThat(turned.toArray(int[].class)).containsExactly(3, 2, 1);
      }
    }
  }

  @CudaTest
  void pinnedArrays_comeFromThePinnedPool(Cuda cuda, PinnedMemoryPool pool) {
    cuda.setPinnedAllocator(pool);
    try (HostArray a = HostArray.emptyPinned(cuda, FLOAT64, 10, 10);
        HostArray b = HostArray.zerosPinned(cuda, INT32, Order.F, 2, 3)) {
      assertThat(pool.stats().usedBytes()).isGreaterThanOrEqualTo(800 + 24);
      assertThat(a.isPinned()).isTrue();
      assertThat(b.layout()).isEqualTo(Layout.of(Order.F, 2, 3));
      assertThat(b.toArray(int[][].class)).isDeepEqualTo(new int[2][3]);
    } finally {
      cuda.setPinnedAllocator(cuda.defaultPinnedMemoryPool());
    }
    assertThat(pool.stats().usedBytes()).isZero();
  }

  @CudaTest
  void arraysLikeOthers_followTheOrdersOfCuPy(Cuda cuda) {
    try (CudaArray a = CudaArrays.of(cuda).empty(COMPLEX64, 2, 3, 4)) {
      CudaArray turned = a.transpose(2, 0, 1);
      try (HostArray k = HostArray.emptyLikePinned(turned);
          HostArray asC = HostArray.zerosLikePinned(turned, FLOAT32, Order.C);
          HostArray asF = HostArray.emptyLikePinned(turned, INT64, Order.F);
          HostArray asA = HostArray.zerosLikePinned(a.transpose(), UINT8, Order.A);
          HostArray other = HostArray.emptyLikePinned(turned, INT16, Order.K, 5, 6);
          HostArray flat = HostArray.emptyLikePinned(a.transpose(), INT16, Order.A, 5, 6);
          HostArray shaped = HostArray.zerosLikePinned(turned, INT16, Order.K, 6, 5, 7);
          HostArray zeros = HostArray.zerosLikePinned(turned)) {
        assertThat(k.type()).isEqualTo(COMPLEX64);
        assertThat(k.layout().strides()).containsExactly(1, 12, 4);
        assertThat(asC.isContiguous(Order.C)).isTrue();
        assertThat(asF.isContiguous(Order.F)).isTrue();
        assertThat(asA.isContiguous(Order.F)).isTrue();
        assertThat(other.layout()).isEqualTo(Layout.of(5, 6));
        assertThat(flat.layout()).isEqualTo(Layout.of(5, 6));
        assertThat(shaped.layout().strides()).containsExactly(1, 42, 6);
        assertThat(zeros.getComplex(3, 1, 2)).isEqualTo(Complex.ZERO);
      }
    }
  }

  @CudaTest
  void chosenStream_ordersAllItsArraysDo(Cuda cuda, @NonBlocking CudaStream stream) {
    CudaArrays cp = CudaArrays.of(cuda).on(stream);
    try (CudaArray a = cp.arange(INT32, 8);
        CudaArray b = cp.array(FLOAT32, a);
        CudaArray c = cp.fullLike(b, 3L);
        CudaArray d = cp.contiguous(a.slice(Range.reversed()), Order.C)) {
      assertThat(a.stream()).isEqualTo(stream);
      assertThat(c.stream()).isEqualTo(stream);
      assertThat(cp.stream()).isEqualTo(stream);
      try (Scope _ = stream.use()) {
        assertThat(d.toArray(int[].class)).containsExactly(7, 6, 5, 4, 3, 2, 1, 0);
        assertThat(b.toArray(float[].class)).containsExactly(0, 1, 2, 3, 4, 5, 6, 7);
        assertThat(c.toArray(float[].class)).containsOnly(3);
      }
    }
    assertThat(cuda.currentStream()).isNotEqualTo(stream);
  }

  @CudaTest(devices = 2)
  void chosenDevice_holdsItsArrays(Cuda cuda) {
    try (Scope _ = cuda.device(1).use();
        CudaArray current = CudaArrays.of(cuda).zeros(INT32, 4);
        CudaArray first = CudaArrays.of(cuda.device(0)).array(current)) {
      assertThat(current.device().id()).isEqualTo(1);
      assertThat(first.device().id()).isZero();
      assertThat(CudaArrays.of(cuda).asarray(current).isView()).isTrue();
      try (CudaArray copied = CudaArrays.of(cuda).asarray(first)) {
        assertThat(copied.isView()).isFalse();
        assertThat(copied.device().id()).isEqualTo(1);
        assertThat(copied.toArray(int[].class)).containsOnly(0);
      }
    }
  }

  @CudaTest(devices = 2, seeds = 5)
  void copyBetweenDevices_isOrderedByTheCurrentStreamsOfBoth(
      Cuda cuda, @NonBlocking CudaStream here, @NonBlocking @OnDevice(1) CudaStream there) {
    try (Scope _ = there.use();
        Scope _ = here.use();
        CudaArray source = CudaArrays.of(cuda.device(1)).full(INT32, 1L, 5000);
        CudaArray target = CudaArrays.of(cuda.device(0)).array(source)) {
      source.fill(2); // behind the copy
      assertThat(target.toArray(int[].class)).containsOnly(1);
      assertThat(source.toArray(int[].class)).containsOnly(2);
    }
  }

  /** Whichever halves of it are the same. */
  @CudaTest
  void valueOfSixteenBytes_fillsThemAll(Cuda cuda) {
    for (Complex value :
        List.of(new Complex(0, 1), new Complex(1, 0), new Complex(0, 0), new Complex(2, 2))) {
      try (CudaArray full = CudaArrays.of(cuda).full(COMPLEX128, value, 3);
          HostArray host = full.toHost()) {
        for (int i = 0; i < 3; i++) {
          assertThat(host.getComplex(i)).isEqualTo(value);
        }
      }
    }
  }

  @CudaTest(seeds = 10)
  void pinnedArray_mayChangeOnceItIsCopied(Cuda cuda, @NonBlocking CudaStream stream) {
    try (Scope _ = stream.use();
        HostArray host = HostArray.zerosPinned(cuda, INT32, 100);
        CudaArray target = CudaArrays.of(cuda).full(INT32, 1L, 100)) {
      target.copyFrom(host);
      host.fill(2);
      assertThat(target.toArray(int[].class)).containsOnly(0);
    }
  }

  @CudaTest
  void asarray_copiesOnlyWhatIsElsewhere(Cuda cuda) {
    CudaArrays cp = CudaArrays.of(cuda);
    try (HostArray host = HostArrays.of(cuda).array(new float[] {1, 2});
        CudaArray there = cp.asarray(host);
        CudaArray java = cp.asarray(new long[][] {{1}, {2}});
        HostArray back = HostArrays.of(cuda).asarray(there)) {
      assertThat(there.isView()).isFalse();
      CudaArray same = cp.asarray(there);
      assertThat(same.isView()).isTrue();
      same.close();
      assertThat(there.isClosed()).isFalse();
      assertThat(java.shape()).containsExactly(2, 1);
      assertThat(back.getDouble(1)).isEqualTo(2);
    }
  }

  @CudaTest(seeds = 5)
  void queuedUpload_isOrdered_andKeepsItsSource(Cuda cuda, @NonBlocking CudaStream stream) {
    try (CudaArray target = CudaArrays.of(cuda).on(stream).empty(INT32, 30_000)) {
      try (HostArray source = HostArrays.of(cuda).full(INT32, 6L, 30_000)) {
        target.copyFrom(source, stream);
      }
      try (HostArray other = HostArrays.of(cuda).full(INT32, 1L, 30_000);
          HostArray found = target.toHost(stream, Order.C, null, true)) {
        assertThat(other.size()).isEqualTo(found.size());
        assertThat(found.toArray(int[].class)).containsOnly(6);
      }
    }
  }

  @CudaTest
  void queuedUpload_refusesWhatItWouldHaveToWaitFor(Cuda cuda, CudaStream stream) {
    try (CudaArray target = CudaArrays.of(cuda).on(stream).empty(INT32, 2, 2);
        HostArray turned = HostArrays.of(cuda).zeros(INT32, 2, 2)) {
      HostArray heap =
          HostArrays.of(cuda).wrap(MemorySegment.ofArray(new int[4]), INT32, Layout.of(2, 2));
      for (HostArray source : List.of(heap, turned.transpose())) {
        org.assertj.core.api.Assertions.assertThatIllegalArgumentException()
            .isThrownBy(() -> target.copyFrom(source, stream))
            .withMessageContaining("expected: page-locked memory, the same type");
      }
    }
  }

  @CudaTest
  void foreignMemory_isWrapped_andAdoptedMemoryClosed(Cuda cuda) {
    CudaArrays cp = CudaArrays.of(cuda);
    try (Buffer memory = cuda.allocate(256);
        Buffer foreign = cuda.wrap(memory.address() + 64, 64, memory)) {
      memory.fill((byte) 1);
      CudaArray a = cp.wrap(foreign, INT32, Layout.strided(new long[] {4}, new long[] {-4}, 12));
      a.fill(7);
      a.close();
      assertThat(foreign.isClosed()).isFalse();
      try (CudaArray whole = cp.wrap(foreign, INT32, Layout.of(4, 4)).copy()) {
        assertThat(whole.slice(Range.all(), Range.at(0)).toArray(int[].class)).containsOnly(7);
      }
    }
    Buffer given = cuda.allocate(64);
    cp.adopt(given, INT32, Layout.of(16)).close();
    assertThat(given.isClosed()).isTrue();
  }

  @CudaTest
  void arrayWithMoreThanAnIntOfElements_isAView(Cuda cuda) {
    try (CudaArray one = CudaArrays.of(cuda).full(UINT8, 9L)) {
      CudaArray many = one.broadcastTo(1L << 40, 3);
      assertThat(many.size()).isEqualTo(3L << 40);
      CudaArray corner = many.slice(Range.from(-2), Range.at(2));
      try (HostArray host = corner.toHost()) {
        assertThat(host.getLong(1)).isEqualTo(9);
      }
    }
  }

  @CudaTest
  void reshape_isAViewWhereItCanBe(Cuda cuda) {
    try (CudaArray a = CudaArrays.of(cuda).arange(INT32, 24);
        CudaArray cube = a.reshape(2, 3, 4);
        CudaArray copied = cube.transpose().reshape(-1)) {
      assertThat(cube.isView()).isTrue();
      assertThat(copied.isView()).isFalse();
      assertThat(copied.toArray(int[].class)).startsWith(0, 12, 4, 16, 8, 20, 1);
      assertThat(cube.expand(0).squeeze().shape()).containsExactly(2, 3, 4);
    }
  }
}
