package io.cuvette.testkit.stream;

import static io.cuvette.testkit.support.Sizes.MIB;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.Buffer;
import io.cuvette.CopyBox;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.ManagedMemoryResource;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.Scope;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.OnDevice;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.function.LongFunction;

/** What is current on a thread, and that scopes restore exactly what was. */
class CurrentTest {

  @CudaTest
  void nullStreamOfDeviceZero_isCurrentAtFirst(Cuda cuda) {
    assertThat(cuda.currentDevice()).isEqualTo(cuda.device(0));
    assertThat(cuda.currentStream()).isEqualTo(cuda.device(0).nullStream());
    assertThat(cuda.currentStream(cuda.device(0))).isEqualTo(cuda.device(0).nullStream());
  }

  @CudaTest
  void scopes_nest_andRestoreInTurn(Cuda cuda, CudaStream one, CudaStream two) {
    try (Scope _ = one.use()) {
      assertThat(cuda.currentStream()).isEqualTo(one);
      try (Scope _ = two.use()) {
        assertThat(cuda.currentStream()).isEqualTo(two);
        try (Scope _ = one.use()) {
          assertThat(cuda.currentStream()).isEqualTo(one);
        }
        assertThat(cuda.currentStream()).isEqualTo(two);
      }
      assertThat(cuda.currentStream()).isEqualTo(one);
    }
    assertThat(cuda.currentStream()).isEqualTo(cuda.device(0).nullStream());
  }

  /** CuPy forgets an earlier use() when a with block ends. */
  @CudaTest
  void scope_restoresAStreamThatWasSet(Cuda cuda, CudaStream set, CudaStream scoped) {
    cuda.setCurrentStream(set);
    try (Scope _ = scoped.use()) {
      assertThat(cuda.currentStream()).isEqualTo(scoped);
    }
    assertThat(cuda.currentStream()).isEqualTo(set);
    cuda.setCurrentStream(cuda.device(0).nullStream());
  }

  @CudaTest
  void exception_leavesTheScopeAsAnyExit(Cuda cuda, CudaStream stream) {
    assertThatThrownBy(
            () -> {
              try (Scope _ = stream.use()) {
                throw new UnsupportedOperationException("mine");
              }
            })
        .isInstanceOf(UnsupportedOperationException.class);
    assertThat(cuda.currentStream()).isEqualTo(cuda.device(0).nullStream());
  }

  @CudaTest
  void settingInsideAScope_isRefused(Cuda cuda, CudaStream stream) {
    try (Scope _ = stream.use()) {
      assertThatThrownBy(() -> cuda.setCurrentStream(cuda.device(0).nullStream()))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("inside the scope of stream");
      assertThatThrownBy(() -> cuda.setCurrentDevice(cuda.device(0)))
          .isInstanceOf(IllegalStateException.class);
      assertThat(cuda.currentStream()).isEqualTo(stream);
    }
  }

  @CudaTest
  void scopesClosedOutOfOrder_areRefused_andChangeNothing(
      Cuda cuda, CudaStream one, CudaStream two) {
    Scope outer = one.use();
    Scope inner = two.use();
    assertThatThrownBy(outer::close)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("opened later");
    assertThat(cuda.currentStream()).isEqualTo(two);
    inner.close();
    assertThat(cuda.currentStream()).isEqualTo(one);
    outer.close();
    outer.close();
    assertThat(cuda.currentStream()).isEqualTo(cuda.device(0).nullStream());
  }

  @CudaTest
  void scopeClosedByAnotherThread_isRefused(Cuda cuda) throws InterruptedException {
    Scope scope = cuda.device(0).use();
    Throwable[] thrown = new Throwable[1];
    Thread thread =
        Thread.ofPlatform()
            .unstarted(() -> {
              try {
                scope.close();
              } catch (RuntimeException e) {
                thrown[0] = e;
              }
            });
    thread.start();
    thread.join();
    assertThat(thrown[0])
        .isInstanceOf(WrongThreadException.class)
        .hasMessageStartingWith(
            "%s was opened by %s and cannot be closed by Thread[#%d,"
                .formatted(scope, Thread.currentThread(), thread.threadId()));
    scope.close();
  }

  @CudaTest
  void currentStream_isOfTheThreadAlone(Cuda cuda, CudaStream stream) throws InterruptedException {
    try (Scope _ = stream.use()) {
      CudaStream[] elsewhere = new CudaStream[2];
      Thread.ofPlatform().start(() -> elsewhere[0] = cuda.currentStream()).join();
      Thread.ofVirtual().start(() -> elsewhere[1] = cuda.currentStream()).join();
      assertThat(elsewhere).containsOnly(cuda.device(0).nullStream());
    }
  }

  @CudaTest
  void allocationsAndCopies_takeTheCurrentStream(Cuda cuda, CudaStream stream) {
    try (Scope _ = stream.use();
        Buffer buffer = cuda.allocate(64);
        Buffer pooled = cuda.defaultMemoryPool().allocate(64)) {
      assertThat(buffer.stream()).isEqualTo(stream);
      assertThat(pooled.stream()).isEqualTo(stream);
    }
  }

  @CudaTest(simulatedOnly = true)
  void everyKindOfMemory_isOfTheCurrentStream_unlessOneIsNamed(
      Cuda cuda, CudaStream stream, DeviceMemoryResource resource) {
    try (ManagedMemoryResource managed = new ManagedMemoryResource(cuda);
        PinnedMemoryResource pinned = new PinnedMemoryResource(cuda);
        AsyncMemoryPool async = new AsyncMemoryPool(cuda);
        ElasticMemoryPool elastic = new ElasticMemoryPool(cuda);
        Scope _ = stream.use()) {
      List<LongFunction<Buffer>> all =
          List.of(
              cuda::allocate,
              cuda::allocateManaged,
              cuda.defaultMemoryPool()::allocate,
              resource::allocate,
              managed::allocate,
              pinned::allocate,
              async::allocate,
              elastic::allocate);
      for (LongFunction<Buffer> allocator : all) {
        try (Buffer buffer = allocator.apply(64)) {
          assertThat(buffer.stream()).as("%s", buffer).isEqualTo(stream);
        }
      }
    }
  }

  @CudaTest(devices = 2)
  void eachDevice_hasItsOwnCurrentStream(Cuda cuda, CudaStream near, @OnDevice(1) CudaStream far) {
    try (Scope _ = near.use()) {
      assertThat(cuda.currentDevice()).isEqualTo(cuda.device(0));
      assertThat(cuda.currentStream(cuda.device(1))).isEqualTo(cuda.device(1).nullStream());
      try (Scope _ = far.use()) {
        assertThat(cuda.currentDevice()).isEqualTo(cuda.device(1));
        assertThat(cuda.currentStream()).isEqualTo(far);
        assertThat(cuda.currentStream(cuda.device(0))).isEqualTo(near);
      }
      assertThat(cuda.currentDevice()).isEqualTo(cuda.device(0));
      assertThat(cuda.currentStream(cuda.device(1))).isEqualTo(cuda.device(1).nullStream());
    }
  }

  @CudaTest(devices = 2)
  void streamSetForADevice_isCurrentThereAlone(Cuda cuda, @OnDevice(1) CudaStream far) {
    cuda.setCurrentStream(far);
    assertThat(cuda.currentDevice()).isEqualTo(cuda.device(0));
    assertThat(cuda.currentStream()).isEqualTo(cuda.device(0).nullStream());
    try (Scope _ = cuda.device(1).use()) {
      assertThat(cuda.currentStream()).isEqualTo(far);
    }
    cuda.setCurrentStream(cuda.device(1).nullStream());
  }

  /** The scope restores what was really current, also what was set before it. */
  @CudaTest(devices = 2)
  void deviceScope_restoresADeviceThatWasSet(Cuda cuda) {
    cuda.setCurrentDevice(cuda.device(1));
    try (Scope _ = cuda.device(0).use()) {
      assertThat(cuda.currentDevice()).isEqualTo(cuda.device(0));
      try (Scope _ = cuda.device(1).use()) {
        assertThat(cuda.currentDevice()).isEqualTo(cuda.device(1));
      }
      assertThat(cuda.currentDevice()).isEqualTo(cuda.device(0));
    }
    assertThat(cuda.currentDevice()).isEqualTo(cuda.device(1));
    cuda.device(0).makeCurrent();
    assertThat(cuda.currentDevice()).isEqualTo(cuda.device(0));
    try (Scope _ = cuda.device(1).use()) {
      assertThatThrownBy(() -> cuda.device(0).makeCurrent())
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("setCurrentDevice inside the");
    }
  }

  @CudaTest
  void closedCurrentStream_isRefusedByItsUsers_andLeavesNoTrace(Cuda cuda) {
    CudaStream stream = cuda.device(0).createStream();
    try (Scope _ = stream.use()) {
      stream.close();
      assertThatThrownBy(() -> cuda.allocate(64))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("is closed");
    }
    cuda.allocate(64).close();
  }

  /** They would not be if they were about another stream. */
  @CudaTest
  void everyOperationWithoutAStream_isRefused_ifTheCurrentOneIsClosed(Cuda cuda, CudaStream own) {
    CudaStream stream = cuda.device(0).createStream();
    MemorySegment host = MemorySegment.ofArray(new byte[64]);
    CopyBox box = CopyBox.of(8, 8);
    try (Buffer buffer = cuda.allocate(64, own);
        Buffer other = cuda.allocate(64, own);
        Scope _ = stream.use()) {
      stream.close();
      for (Runnable each :
          List.<Runnable>of(
              () -> buffer.fill(1),
              () -> buffer.fillShorts((short) 1),
              () -> buffer.copyFrom(other),
              () -> buffer.copyTo(other),
              () -> buffer.copyFrom(host),
              () -> buffer.copyTo(host),
              () -> buffer.copyFrom(other, box),
              () -> buffer.copyFrom(host, box),
              () -> buffer.copyTo(host, box),
              () -> buffer.gatherFrom(List.of(host)),
              () -> buffer.scatterTo(List.of(host)))) {
        assertThatThrownBy(each::run)
            .isInstanceOf(IllegalStateException.class)
            .hasMessageStartingWith("stream")
            .hasMessageContaining("is closed");
      }
    }
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void whatAnElasticPoolIsAskedAndTold_isAboutTheCurrentDevice(Cuda cuda) {
    CudaDevice other = cuda.device(1);
    MemoryLimit limit = MemoryLimit.ofBytes(64 * MIB);
    try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda);
        Buffer _ = pool.allocate(MIB, cuda.device(0).nullStream());
        Scope _ = other.use()) {
      Buffer far = pool.allocate(8 * MIB);
      assertThat(pool.pages()).isEqualTo(pool.pages(other));
      assertThat(pool.fragmentation()).isEqualTo(pool.fragmentation(other));
      assertThat(pool.stats()).isEqualTo(pool.stats(other));
      assertThat(pool.usedBytes()).isEqualTo(8 * MIB);
      pool.setLimit(limit);
      assertThat(pool.limit()).isEqualTo(pool.limit(other)).isEqualTo(limit);
      assertThat(pool.limitBytes()).isEqualTo(64 * MIB);
      assertThat(pool.limit(cuda.device(0))).isNotEqualTo(limit);
      far.close();
      assertThat(pool.trim(0)).isEqualTo(8 * MIB);
      pool.allocate(8 * MIB).close();
      assertThat(pool.trim(Duration.ZERO)).isEqualTo(8 * MIB);
      pool.allocate(8 * MIB).close();
      assertThat(pool.freeAllBlocks()).isEqualTo(8 * MIB);
    }
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void whatACachingPoolIsAskedAndTold_isAboutTheCurrentDevice(Cuda cuda) {
    CudaDevice other = cuda.device(1);
    MemoryLimit limit = MemoryLimit.ofBytes(64 * MIB);
    try (MemoryPool pool = new MemoryPool(cuda);
        Buffer _ = pool.allocate(MIB, cuda.device(0).nullStream());
        Scope _ = other.use()) {
      Buffer far = pool.allocate(8 * MIB);
      assertThat(pool.stats()).isEqualTo(pool.stats(other));
      assertThat(pool.usedBytes()).isEqualTo(8 * MIB);
      pool.setLimit(limit);
      assertThat(pool.limit()).isEqualTo(pool.limit(other)).isEqualTo(limit);
      assertThat(pool.limit(cuda.device(0))).isNotEqualTo(limit);
      far.close();
      assertThat(pool.trim(0)).isEqualTo(8 * MIB);
      pool.allocate(8 * MIB).close();
      assertThat(pool.trim(Duration.ZERO)).isEqualTo(8 * MIB);
      pool.allocate(8 * MIB).close();
      assertThat(pool.freeAllBlocks()).isEqualTo(8 * MIB);
    }
  }
}
