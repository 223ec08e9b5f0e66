package io.cuvette.testkit.pool;

import static io.cuvette.testkit.support.Sizes.MIB;
import static io.cuvette.testkit.support.Sizes.POOL_STEP;
import static io.cuvette.testkit.support.Sizes.UNEVEN;
import static io.cuvette.testkit.support.Sizes.UNIT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.PoolOptions;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Forgetting;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/** Each step of the way out of a shortage, alone: it is this one that finds the memory. */
class RecoveryTest {
  private static final int QUEUED = 300;

  @CudaTest
  void ownBlockWhoseOtherUseIsDone_isFound(Cuda cuda, CudaStream other) {
    try (MemoryPool pool = limited(cuda, 4 * UNIT)) {
      Buffer used = pool.allocate(4 * UNIT);
      try (Gate _ = Gate.on(other)) {
        used.fill((byte) 1, other);
        used.close();
        assertThat(pool.stats().pendingBytes()).isEqualTo(4 * UNIT);
      }
      other.synchronize();
      try (Buffer found = pool.allocate(4 * UNIT)) {
        assertThat(found.address()).isEqualTo(used.address());
        assertThat(pool.stats().growths()).isEqualTo(1);
      }
    }
  }

  @CudaTest
  void cachedBlockOfAnIdleStream_isTakenBeforeItIsReleased(Cuda cuda, CudaStream other) {
    try (MemoryPool pool = limited(cuda, 4 * UNIT)) {
      Buffer cached = pool.allocate(4 * UNIT, other);
      cached.close();
      try (Buffer found = pool.allocate(4 * UNIT)) {
        assertThat(found.address()).isEqualTo(cached.address());
        assertThat(pool.stats().crossStreamReuses()).isEqualTo(1);
        assertThat(pool.stats().growths()).isEqualTo(1);
      }
    }
  }

  @CudaTest
  void partOfASplitChunkOfAnIdleStream_isLent_andGoesBack(Cuda cuda, CudaStream other) {
    try (MemoryPool pool = limited(cuda, 4 * UNIT)) {
      pool.allocate(4 * UNIT, other).close();
      try (Buffer kept = pool.allocate(UNIT, other)) {
        try (Buffer lent = pool.allocate(2 * UNIT)) {
          assertThat(lent.address()).isEqualTo(kept.address() + UNIT);
          lent.fill((byte) 1);
        }
        cuda.device(0).synchronize();
        assertThat(pool.stats().largestFreeBytes()).isEqualTo(3 * UNIT);
      }
    }
  }

  @CudaTest(memory = "64MiB")
  void otherPoolsCaches_areReleased_ifTheDriverIsShort(MemoryPool idle, MemoryPool pool) {
    idle.allocate(40 * MIB).close();
    try (Buffer found = pool.allocate(40 * MIB)) {
      assertThat(found.blockBytes()).isEqualTo(40 * MIB);
      assertThat(idle.totalBytes()).isZero();
    }
  }

  /** The limit has room to the byte: it is the driver that is short. */
  @CudaTest(memory = "64MiB")
  void otherPoolsCaches_areReleased_ifTheLimitHasJustTheRoom(Cuda cuda, MemoryPool idle) {
    idle.allocate(40 * MIB).close();
    try (MemoryPool pool = limited(cuda, 40 * MIB);
        Buffer _ = pool.allocate(40 * MIB)) {
      assertThat(idle.totalBytes()).isZero();
    }
  }

  /** What a limit of its own makes short is no reason to take the others' caches. */
  @CudaTest(memory = "64MiB")
  void otherPoolsCaches_areKept_ifOnlyTheLimitIsShort(Cuda cuda, MemoryPool idle) {
    try (MemoryPool pool = limited(cuda, 4 * UNIT)) {
      idle.allocate(MIB).close();
      try (Buffer _ = pool.allocate(4 * UNIT)) {
        assertThatThrownBy(() -> pool.allocate(UNIT))
            .isInstanceOf(OutOfDeviceMemoryException.class);
      }
      assertThat(idle.totalBytes()).isEqualTo(MIB);
    }
  }

  @CudaTest
  void pressureListener_canCloseBuffers(Cuda cuda) {
    List<Buffer> cache = new ArrayList<>();
    try (MemoryPool pool = limited(cuda, 4 * UNIT)) {
      cache.add(pool.allocate(4 * UNIT));
      var registration =
          pool.addPressureListener((device, needed) -> {
            assertThat(device).isEqualTo(cuda.device(0));
            assertThat(needed).isEqualTo(2 * UNIT);
            cache.removeLast().close();
            return 4 * UNIT;
          });
      try (registration;
          Buffer found = pool.allocate(UNEVEN)) {
        assertThat(found.blockBytes()).isEqualTo(2 * UNIT);
      }
    }
  }

  /** The work is waited for first. */
  @CudaTest(simulatedOnly = true)
  void pressureListener_isAskedOnce_ifWorkIsStillAtWhatItGave(
      Cuda cuda, ScriptedDriver driver, CudaStream other) {
    AtomicInteger asked = new AtomicInteger();
    try (MemoryPool pool = limited(cuda, 4 * UNIT);
        Gate gate = Gate.on(other)) {
      for (String wait : new String[] {"eventSynchronize", "streamSynchronize"}) {
        driver.answer(
            wait,
            call -> {
              gate.open();
              return call.proceed();
            });
      }
      Buffer cached = pool.allocate(4 * UNIT);
      cached.fill((byte) 1, other);
      try (var _ =
              pool.addPressureListener((_, needed) -> {
                cached.close();
                return asked.getAndIncrement() == 0 ? needed : 0;
              });
          Buffer found = pool.allocate(4 * UNIT)) {
        assertThat(found.address()).isEqualTo(cached.address());
      }
    }
    assertThat(asked.get()).isOne();
  }

  /** It gives what was asked for each time, but the first two pieces lie apart. */
  @CudaTest
  void pressureListener_isAskedAgain_ifWhatItGaveLiesApart(Cuda cuda) {
    try (MemoryPool pool = limited(cuda, 4 * UNIT)) {
      pool.allocate(4 * UNIT).close();
      List<Buffer> pieces = new ArrayList<>();
      for (int i = 0; i < 4; i++) {
        pieces.add(pool.allocate(UNIT));
      }
      Iterator<Buffer> cache =
          List.of(pieces.get(0), pieces.get(2), pieces.get(1), pieces.get(3)).iterator();
      try (var _ =
              pool.addPressureListener((_, needed) -> {
                cache.next().close();
                return needed;
              });
          Buffer found = pool.allocate(2 * UNIT)) {
        assertThat(found.blockBytes()).isEqualTo(2 * UNIT);
        assertThat(pieces.get(3).isClosed()).isFalse();
      }
      pieces.getLast().close();
    }
  }

  @CudaTest
  void pressureListener_isNotAskedAfterItsRegistrationEnded(Cuda cuda) {
    AtomicInteger asked = new AtomicInteger();
    try (MemoryPool pool = limited(cuda, UNIT);
        Buffer _ = pool.allocate(UNIT)) {
      var registration =
          pool.addPressureListener((device, needed) -> {
            asked.incrementAndGet();
            return 0;
          });
      assertThatThrownBy(() -> pool.allocate(UNIT)).isInstanceOf(OutOfDeviceMemoryException.class);
      assertThat(asked).hasValue(1);
      registration.close();
      assertThatThrownBy(() -> pool.allocate(UNIT)).isInstanceOf(OutOfDeviceMemoryException.class);
      assertThat(asked).hasValue(1);
    }
  }

  @CudaTest
  void pressureListenerThatAllocatesFromThePool_isRefused(Cuda cuda) {
    try (MemoryPool pool = limited(cuda, UNIT);
        Buffer _ = pool.allocate(UNIT);
        var _ = pool.addPressureListener((device, needed) -> pool.allocate(UNIT).byteSize())) {
      assertThatThrownBy(() -> pool.allocate(UNIT))
          .isInstanceOfAny(IllegalStateException.class, OutOfDeviceMemoryException.class);
    }
  }

  @CudaTest
  void exceptionOfAListener_comesOut_andThePoolGoesOn(Cuda cuda) {
    try (MemoryPool pool = limited(cuda, 2 * UNIT);
        Buffer _ = pool.allocate(UNIT)) {
      try (var _ =
          pool.addPressureListener((device, needed) -> {
            throw new UnsupportedOperationException("mine");
          })) {
        assertThatThrownBy(() -> pool.allocate(2 * UNIT))
            .isInstanceOf(UnsupportedOperationException.class)
            .hasMessage("mine");
      }
      pool.allocate(UNIT).close();
    }
  }

  /**
   * The listener lets the work go on, and gives nothing back itself: only waiting helps. A part of
   * the chunk is in use, for releasing it would wait too.
   */
  @CudaTest
  void workOfOtherStreams_isWaitedFor(Cuda cuda, CudaStream busy) {
    try (MemoryPool pool = limited(cuda, 4 * UNIT)) {
      pool.allocate(4 * UNIT, busy).close();
      try (Buffer kept = pool.allocate(UNIT, busy)) {
        Buffer cached = pool.allocate(3 * UNIT, busy);
        Gate gate = Gate.on(busy);
        for (int i = 0; i < QUEUED; i++) {
          cached.fill((byte) i, busy);
        }
        cached.close();
        try (var _ =
                pool.addPressureListener((device, needed) -> {
                  gate.open();
                  return 0;
                });
            Buffer found = pool.allocate(3 * UNIT)) {
          assertThat(found.address()).isEqualTo(kept.address() + UNIT);
          assertThat(busy.isDone()).isTrue();
        }
      }
    }
  }

  /** The listener lets one of two go on, and memory of that one is enough. */
  @CudaTest
  void oneOfTheOtherStreams_isWaitedFor_ifItHasEnough(
      Cuda cuda, CudaStream first, CudaStream second) {
    try (MemoryPool pool = limited(cuda, 8 * UNIT)) {
      Buffer one = pool.allocate(4 * UNIT, first);
      pool.allocate(4 * UNIT, second).close();
      one.close();
      try (Buffer kept = pool.allocate(UNIT, first);
          Buffer _ = pool.allocate(UNIT, second)) {
        Buffer cached = pool.allocate(3 * UNIT, first);
        Buffer others = pool.allocate(3 * UNIT, second);
        Gate gate = Gate.on(first);
        cached.fill((byte) 1, first);
        cached.close();
        try (Gate _ = Gate.on(second)) {
          others.fill((byte) 1, second);
          others.close();
          try (var _ =
                  pool.addPressureListener((device, needed) -> {
                    gate.open();
                    return 0;
                  });
              Buffer found = pool.allocate(3 * UNIT)) {
            assertThat(found.address()).isEqualTo(kept.address() + UNIT);
            assertThat(second.isDone()).isFalse();
          }
        }
      }
    }
  }

  @CudaTest
  void pendingFrees_areWaitedFor(Cuda cuda, CudaStream busy) {
    try (MemoryPool pool = limited(cuda, 4 * UNIT)) {
      Buffer pending = pool.allocate(4 * UNIT);
      Gate gate = Gate.on(busy);
      for (int i = 0; i < QUEUED; i++) {
        pending.fill((byte) i, busy);
      }
      pending.close();
      try (var _ =
              pool.addPressureListener((device, needed) -> {
                gate.open();
                return 0;
              });
          Buffer found = pool.allocate(4 * UNIT)) {
        assertThat(found.blockBytes()).isEqualTo(4 * UNIT);
        assertThat(pool.stats().pendingBytes()).isZero();
      }
    }
  }

  @CudaTest(tidy = false)
  void forgottenBuffers_areReclaimed(Subject subject) throws InterruptedException {
    Cuda cuda = subject.cuda();
    try (MemoryPool pool = limited(cuda, 4 * UNIT)) {
      Forgetting.of(() -> pool.allocate(4 * UNIT));
      Buffer found = Forgetting.retry(() -> pool.allocate(4 * UNIT));
      assertThat(found.byteSize()).isEqualTo(4 * UNIT);
      assertThat(cuda.leaksFound()).isEqualTo(1);
      assertThat(subject.leaks()).hasSize(1);
      found.close();
    }
  }

  @CudaTest(memory = "16MiB")
  void upstreamOfManagedMemory_isNotBoundedByTheDevice(Cuda cuda) {
    try (MemoryPool pool =
            new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(MemoryResource.managed()));
        Buffer large = pool.allocate(POOL_STEP)) {
      assertThat(large.isHostAccessible()).isTrue();
    }
  }

  private static MemoryPool limited(Cuda cuda, long bytes) {
    return new MemoryPool(cuda, PoolOptions.DEFAULTS.withLimit(MemoryLimit.ofBytes(bytes)));
  }
}
