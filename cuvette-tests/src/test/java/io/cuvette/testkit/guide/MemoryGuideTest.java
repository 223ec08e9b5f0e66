package io.cuvette.testkit.guide;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.DebugPrintHook;
import io.cuvette.LineProfileHook;
import io.cuvette.ManagedBuffer;
import io.cuvette.MemoryLocation;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.PoolOptions;
import io.cuvette.PoolStats;
import io.cuvette.Registration;
import io.cuvette.Scope;
import io.cuvette.testkit.CudaTest;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** The programs of docs/guide/memory.md. */
class MemoryGuideTest {
  @CudaTest
  void poolOperations_goFrom400BytesTo512AndBackToNothing(Cuda cuda) {
    MemoryPool pool = cuda.defaultMemoryPool();
    PinnedMemoryPool pinnedPool = cuda.defaultPinnedMemoryPool();

    float[] onHost = new float[100]; // 400 bytes on the Java heap: no pool knows of them
    assertThat(pool.usedBytes()).isEqualTo(0);
    assertThat(pool.totalBytes()).isEqualTo(0);
    assertThat(pinnedPool.freeBlocks()).isEqualTo(0);

    Buffer onDevice = cuda.allocate(400);
    onDevice.copyFrom(MemorySegment.ofArray(onHost)); // through page-locked memory; waits
    assertThat(onDevice.byteSize()).isEqualTo(400);
    assertThat(pool.usedBytes()).isEqualTo(512);
    assertThat(pool.totalBytes()).isEqualTo(512);
    assertThat(pinnedPool.freeBlocks()).isEqualTo(1);

    onDevice.close(); // back to the pool, not to the driver
    assertThat(pool.usedBytes()).isEqualTo(0);
    assertThat(pool.totalBytes()).isEqualTo(512);
    assertThat(pinnedPool.freeBlocks()).isEqualTo(1);

    assertThat(pool.freeAllBlocks()).isEqualTo(512); // back to the driver
    pinnedPool.freeAllBlocks();
    assertThat(pool.usedBytes()).isEqualTo(0);
    assertThat(pool.totalBytes()).isEqualTo(0);
    assertThat(pinnedPool.freeBlocks()).isEqualTo(0);
  }

  @CudaTest
  void stats_areOneConsistentRecord(Cuda cuda) {
    try (Buffer _ = cuda.allocate(1000)) {
      PoolStats stats = cuda.defaultMemoryPool().stats(cuda.device(0));
      assertThat(stats.usedBytes() + stats.freeBytes()).isEqualTo(stats.heldBytes());
      assertThat(stats.requestedBytes()).isEqualTo(1000);
      assertThat(stats.peakUsedBytes()).isEqualTo(1024);
    }
  }

  @CudaTest
  void managedPool_isVisibleToTheHost(Cuda cuda) {
    PoolOptions managed = PoolOptions.DEFAULTS.withUpstream(MemoryResource.managed());
    try (MemoryPool pool = new MemoryPool(cuda, managed);
        Scope _ = cuda.useAllocator(pool); // this thread, until the scope closes
        Buffer buffer = cuda.allocate(4096)) {
      buffer.fillInts(1);
      MemorySegment view = ((ManagedBuffer) buffer).segment();
      assertThat(view.get(ValueLayout.JAVA_INT, 4092)).isEqualTo(1);
    }
  }

  @CudaTest
  void ownAllocator_isALambdaOverItsUpstream(Cuda cuda) {
    StringBuilder log = new StringBuilder();
    MemoryResource upstream = cuda.currentAllocator();
    MemoryResource tracking =
        (bytes, stream) -> {
          log.append("Allocating ").append(bytes).append(" bytes");
          return upstream.allocate(bytes, stream);
        };
    try (Scope _ = cuda.useAllocator(tracking);
        Buffer ones = cuda.allocate(8_000_000)) {
      ones.fillInts(1);
    }
    assertThat(log).hasToString("Allocating 8000000 bytes");
  }

  @CudaTest
  void allocatorThatCallsItself_isRefused(Cuda cuda) {
    try (Scope _ = cuda.useAllocator((bytes, stream) -> cuda.allocate(bytes, stream))) {
      assertThatThrownBy(() -> cuda.allocate(1))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("re-entrant allocation");
    }
  }

  @CudaTest
  void pooling_canBeSwitchedOff(Cuda cuda) {
    cuda.setAllocator(MemoryResource.direct()); // all threads; every allocation asks the driver
    cuda.setPinnedAllocator(cuda.directPinned());
    try (Buffer buffer = cuda.allocate(400)) {
      assertThat(buffer.blockBytes()).isEqualTo(400); // not rounded
    }
  }

  @CudaTest
  void managedMemory_isPrefetchedByRange(Cuda cuda) {
    try (ManagedBuffer buffer = cuda.allocateManaged(1 << 20)) {
      buffer.segment().fill((byte) 1); // the host writes
      buffer.prefetch(MemoryLocation.device(cuda.currentDevice())); // queued
      buffer.slice(0, 4096).prefetch(MemoryLocation.host()); // these pages alone
      cuda.currentStream().synchronize();
      assertThat(buffer.segment().get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 1);
    }
  }

  @CudaTest
  void wrappedMemory_isNotFreed(Cuda cuda) {
    try (Buffer theirs = cuda.allocate(1024)) { // stands for memory of another library
      long address = theirs.address();
      try (Buffer ours = cuda.device(0).wrap(address, 512, theirs)) {
        ours.fill((byte) 3);
      }
      byte[] last = new byte[1];
      theirs.slice(511, 1).copyTo(MemorySegment.ofArray(last));
      assertThat(last[0]).isEqualTo((byte) 3);
    }
  }

  @CudaTest
  void recordUse_keepsMemoryThatForeignWorkReads(Cuda cuda) {
    try (CudaStream kernels = cuda.currentDevice().createStream()) {
      Buffer input = cuda.allocate(1 << 20);
      kernels.waitFor(input.stream());
      // a kernel of another library that reads input.address() is queued on kernels here
      input.recordUse(kernels);
      input.close(); // reused only when kernels is past this point
      kernels.synchronize();
    }
  }

  @CudaTest
  void hooks_seeWhatAPoolDoes(Cuda cuda) {
    StringBuilder lines = new StringBuilder();
    LineProfileHook profile = new LineProfileHook();
    try (Registration _ = cuda.defaultMemoryPool().addHook(new DebugPrintHook(lines));
        Registration _ = cuda.defaultMemoryPool().addHook(profile)) {
      cuda.allocate(1).close();
    }
    StringBuilder report = new StringBuilder();
    profile.printReport(report); // who allocates: File.java:line:method (used, acquired)
    assertThat(lines.toString().lines()).hasSize(3); // alloc, malloc, free
    assertThat(report).startsWith("_root (512.00B, 512.00B)");
  }

  @CudaTest
  void forgottenBuffers_areCounted(Cuda cuda) {
    assertThat(cuda.leaksFound()).isEqualTo(0); // looks for more first
  }
}
