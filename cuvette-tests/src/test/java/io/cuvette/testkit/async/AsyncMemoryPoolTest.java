package io.cuvette.testkit.async;

import static io.cuvette.testkit.support.Sizes.MIB;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.DeviceBuffer;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.Scope;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemPoolAttribute;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.OnDevice;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Capture;
import java.util.ArrayList;
import java.util.List;

class AsyncMemoryPoolTest {

  @CudaTest
  void newPool_allocatesFromItself_andChangesNobodysCurrentPool(Cuda cuda, AsyncMemoryPool pool) {
    CudaDriver driver = cuda.driver();
    long current = driver.pools().deviceGetMemPool(0);
    assertThat(pool.handle(cuda.device(0))).isNotEqualTo(current);
    try (Buffer _ = pool.allocate(MIB)) {
      assertThat(pool.usedBytes()).isEqualTo(MIB);
      assertThat(pool.totalBytes()).isGreaterThanOrEqualTo(MIB);
      assertThat(pool.freeBytes()).isEqualTo(pool.totalBytes() - MIB);
    }
    assertThat(driver.pools().deviceGetMemPool(0)).isEqualTo(current);
  }

  @CudaTest
  void twoPools_eachCountTheirOwn(AsyncMemoryPool a, AsyncMemoryPool b) {
    try (Buffer _ = a.allocate(MIB);
        Buffer _ = b.allocate(2 * MIB)) {
      assertThat(a.usedBytes()).isEqualTo(MIB);
      assertThat(b.usedBytes()).isEqualTo(2 * MIB);
    }
  }

  @CudaTest
  void sizes_areRoundedUpTo512(AsyncMemoryPool pool) {
    try (Buffer buffer = pool.allocate(513)) {
      assertThat(buffer.byteSize()).isEqualTo(513);
      assertThat(buffer.blockBytes()).isEqualTo(1024);
      assertThat(pool.liveBytes()).isEqualTo(1024);
    }
  }

  @CudaTest
  void freeAllBlocks_givesBackWhatNobodyUses(Cuda cuda, AsyncMemoryPool pool) {
    pool.allocate(64 * MIB).close();
    cuda.currentStream().synchronize();
    long held = pool.totalBytes();
    assertThat(held).isGreaterThanOrEqualTo(64 * MIB);
    assertThat(pool.freeAllBlocks()).isEqualTo(held);
    assertThat(pool.totalBytes()).isZero();
    assertThat(pool.usedBytes()).isZero();
  }

  @CudaTest
  void freeAllBlocks_isAboutTheCurrentStream_unlessOneIsNamed(
      AsyncMemoryPool pool, @NonBlocking CudaStream stream) {
    try (Scope _ = stream.use()) {
      Buffer buffer = pool.allocate(64 * MIB);
      for (int i = 0; i < 50; i++) {
        buffer.fill((byte) i, stream);
      }
      buffer.close();
      assertThat(pool.freeAllBlocks()).isGreaterThanOrEqualTo(64 * MIB);
      assertThat(stream.isDone()).isTrue();
    }
  }

  /** The driver is asked twice, and others use the pool in between. */
  @CudaTest(simulatedOnly = true)
  void freeBytes_areNeverANegativeNumber(ScriptedDriver driver, AsyncMemoryPool pool) {
    driver.answer(
        "memPoolGetAttribute",
        call -> call.number("attribute") == MemPoolAttribute.USED_MEM_CURRENT ? MIB : 0L);
    assertThat(pool.freeBytes()).isZero();
    driver.unscript("memPoolGetAttribute");
  }

  /** What others take meanwhile was not released, nor is it less than nothing. */
  @CudaTest
  void freeAllBlocks_isNeverANegativeNumber(
      ScriptedDriver driver, AsyncMemoryPool pool, CudaStream stream) {
    List<Buffer> others = new ArrayList<>();
    driver.answer(
        "memPoolTrimTo",
        call -> {
          Object trimmed = call.proceed();
          others.add(pool.allocate(64 * MIB));
          return trimmed;
        });
    assertThat(pool.freeAllBlocks(stream)).isZero();
    assertThat(others).isNotEmpty();
    others.forEach(Buffer::close);
  }

  @CudaTest
  void ownPool_keepsItsMemoryAcrossSynchronisation(Cuda cuda, AsyncMemoryPool pool) {
    assertThat(pool.attributes().releaseThreshold()).isEqualTo(Long.MAX_VALUE);
    pool.allocate(MIB).close();
    cuda.device(0).synchronize();
    assertThat(pool.totalBytes()).isGreaterThanOrEqualTo(MIB);
  }

  @CudaTest
  void memory_isFreedInOrderOfItsStream_andReusedThere(
      Cuda cuda, AsyncMemoryPool pool, CudaStream stream) {
    try (Buffer result = cuda.allocate(MIB, stream)) {
      DeviceBuffer first = pool.allocate(MIB, stream);
      first.fill((byte) 1, stream);
      result.copyFrom(first, stream);
      first.close();
      try (DeviceBuffer second = pool.allocate(MIB, stream)) {
        second.fill((byte) 2, stream);
        stream.synchronize();
      }
      assertThat(Bytes.areAll(result, 1)).isTrue();
      stream.synchronize();
    }
  }

  @CudaTest(seeds = 20)
  void memoryUsedOnAnotherStream_isFreedBehindThatUse(
      Cuda cuda, AsyncMemoryPool pool, CudaStream home, CudaStream user) {
    try (Buffer result = cuda.allocate(MIB, user)) {
      DeviceBuffer block = pool.allocate(MIB, home);
      block.fill((byte) 1, home);
      user.waitFor(home);
      result.copyFrom(block, user);
      block.close();
      try (DeviceBuffer next = pool.allocate(MIB, home)) {
        next.fill((byte) 2, home);
        home.synchronize();
        user.synchronize();
      }
      assertThat(Bytes.areAll(result, 1)).isTrue();
    }
  }

  @CudaTest
  void memoryUsedOnSeveralStreams_isFreedBehindAllOfThem(
      Cuda cuda, AsyncMemoryPool pool, CudaStream home, CudaStream one, CudaStream two) {
    try (Buffer first = cuda.allocate(MIB, one);
        Buffer second = cuda.allocate(MIB, two)) {
      DeviceBuffer block = pool.allocate(MIB, home);
      block.fill((byte) 1, home);
      one.waitFor(home);
      first.copyFrom(block, one);
      two.waitFor(home);
      second.copyFrom(block, two);
      block.close();
      try (DeviceBuffer next = pool.allocate(MIB, home)) {
        next.fill((byte) 2, home);
        home.synchronize();
        one.synchronize();
        two.synchronize();
      }
      assertThat(Bytes.areAll(first, 1)).isTrue();
      assertThat(Bytes.areAll(second, 1)).isTrue();
    }
  }

  @CudaTest
  void bufferOfAClosedStream_canBeClosed(Cuda cuda, AsyncMemoryPool pool) {
    CudaStream stream = cuda.device(0).createStream();
    DeviceBuffer buffer = pool.allocate(MIB, stream);
    buffer.fill((byte) 1, stream);
    stream.close();
    buffer.close();
    cuda.device(0).synchronize();
    assertThat(pool.liveBytes()).isZero();
    cuda.device(0).synchronize();
    assertThat(pool.usedBytes()).isZero();
  }

  @CudaTest
  void borrowedPools_stayWhenTheObjectIsClosed(Cuda cuda) {
    CudaDriver driver = cuda.driver();
    long byDefault = driver.pools().deviceGetDefaultMemPool(0);
    for (AsyncPoolChoice choice :
        List.of(
            AsyncPoolChoice.ofDefault(),
            AsyncPoolChoice.ofCurrent(),
            AsyncPoolChoice.ofHandle(byDefault))) {
      try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda, Choices.first(cuda, choice))) {
        assertThat(pool.handle(cuda.device(0))).isEqualTo(byDefault);
        pool.allocate(100).close();
      }
    }
    cuda.device(0).synchronize();
    assertThat(driver.pools().memPoolGetAttribute(byDefault, 7)).isZero();
  }

  @CudaTest(devices = 2)
  void memory_isOfTheDeviceOfTheStream(
      Cuda cuda, AsyncMemoryPool pool, @OnDevice(1) CudaStream other) {
    try (Buffer buffer = pool.allocate(MIB, other)) {
      assertThat(buffer.device()).isEqualTo(cuda.device(1));
      assertThat(pool.attributes(cuda.device(1)).usedMemCurrent()).isEqualTo(MIB);
      assertThat(pool.attributes(cuda.device(0)).usedMemCurrent()).isZero();
    }
  }

  @CudaTest
  void pool_isAnAllocatorOfTheCuda(Cuda cuda, AsyncMemoryPool pool) {
    try (Scope _ = cuda.useAllocator(pool);
        Buffer buffer = cuda.allocate(MIB)) {
      assertThat(pool.usedBytes()).isEqualTo(MIB);
      buffer.fill((byte) 3);
      assertThat(Bytes.of(buffer)).containsOnly(3);
    }
  }

  @CudaTest
  void zeroBytes_takeNothing(AsyncMemoryPool pool) {
    try (Buffer buffer = pool.allocate(0)) {
      assertThat(buffer.address()).isZero();
      assertThat(pool.usedBytes()).isZero();
    }
  }

  @CudaTest
  void wrongInput_isRefusedBeforeTheDriver(Cuda cuda) {
    AsyncMemoryPool pool = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0));
    assertThatThrownBy(() -> pool.allocate(-1)).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> pool.allocate(Long.MAX_VALUE)).isInstanceOf(RuntimeException.class);
    assertThatThrownBy(pool::freeBlocks).isInstanceOf(UnsupportedOperationException.class);
    assertThatThrownBy(() -> AsyncPoolChoice.ofHandle(0))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> AsyncPoolChoice.ofNew(-1))
        .isInstanceOf(IllegalArgumentException.class);
    pool.close();
    pool.close();
    assertThatThrownBy(() -> pool.allocate(1)).isInstanceOf(IllegalStateException.class);
  }

  @CudaTest(memory = "1GiB")
  void outOfMemory_releasesWhatOtherPoolsCache_thenSaysWhy(Cuda cuda, AsyncMemoryPool pool) {
    cuda.allocate(800 * MIB).close(); // cached by the default pool
    try (Buffer _ = pool.allocate(512 * MIB)) {
      assertThatThrownBy(() -> pool.allocate(800 * MIB))
          .isInstanceOf(OutOfDeviceMemoryException.class)
          .hasMessageContaining("requested=");
    }
  }

  @CudaTest
  void asyncResource_takesFromTheCurrentPool(Cuda cuda, CudaStream stream) {
    long current = cuda.driver().pools().deviceGetMemPool(0);
    try (Buffer buffer = io.cuvette.MemoryResource.async().allocate(MIB, stream)) {
      assertThat(cuda.driver().pools().memPoolGetAttribute(current, 7)).isGreaterThanOrEqualTo(MIB);
      buffer.fill((byte) 1, stream);
      stream.synchronize();
    }
    cuda.device(0).synchronize();
  }

  /** It waits for the work of the stream, and nobody need allocate again for it to go back. */
  @CudaTest
  void asyncMemoryOfAClosedStream_goesBackWhenSomebodySynchronises(Cuda cuda) {
    CudaDriver driver = cuda.driver();
    long current = driver.pools().deviceGetMemPool(0);
    long before = driver.pools().memPoolGetAttribute(current, 7);
    CudaStream stream = cuda.device(0).createStream();
    Buffer buffer = io.cuvette.MemoryResource.async().allocate(MIB, stream);
    buffer.fill((byte) 1, stream);
    stream.close();
    buffer.close();
    cuda.device(0).synchronize(); // its work is done
    cuda.device(0).synchronize(); // and so is its free
    assertThat(driver.pools().memPoolGetAttribute(current, 7)).isEqualTo(before);
  }

  @CudaTest
  void freeAllBlocks_leavesWhatOtherStreamsUse_andGivesBackTheRest(
      AsyncMemoryPool pool, CudaStream one, CudaStream two) {
    pool.allocate(64 * MIB, one).close();
    try (Buffer used = pool.allocate(64 * MIB, two)) {
      used.fill((byte) 3, two);
      long before = pool.totalBytes();
      long released = pool.freeAllBlocks(one);
      assertThat(pool.totalBytes()).isEqualTo(before - released).isGreaterThanOrEqualTo(64 * MIB);
      assertThat(pool.liveBytes()).isEqualTo(64 * MIB);
      two.synchronize();
      assertThat(Bytes.areAll(used, 3)).isTrue();
    }
    assertThat(pool.freeAllBlocks(two)).isPositive();
    assertThat(pool.totalBytes()).isZero();
    assertThat(pool.freeAllBlocks(one)).isZero();
  }

  @CudaTest
  void memoryOfAStreamThatIsGone_isFreedOnTheNullStream(
      Cuda cuda, AsyncMemoryPool pool, CudaStream user) {
    CudaStream gone = cuda.device(0).createStream();
    Buffer buffer = pool.allocate(MIB, gone);
    gone.synchronize();
    buffer.fill((byte) 1, user);
    gone.close();
    buffer.close();
    pool.freeAllBlocks(user);
    assertThat(pool.liveBytes()).isZero();
    pool.freeAllBlocks(cuda.device(0).nullStream()); // takes over from streams that are gone
    assertThat(pool.totalBytes()).isZero();
  }

  /** Else nothing was freed there, and what others do in it may take as long as it likes. */
  @CudaTest(simulatedOnly = true)
  void nullStream_isWaitedForOnlyIfSomethingWasFreedInItsOrder(
      Cuda cuda, ScriptedDriver driver, AsyncMemoryPool pool, @NonBlocking CudaStream stream) {
    CudaStream nullStream = cuda.device(0).nullStream();
    for (String call : new String[] {"streamSynchronize", "streamQuery", "eventRecord"}) {
      driver.note(call, each -> each.number("stream") == nullStream.handle() ? call : null);
    }
    pool.allocate(MIB, stream).close();
    assertThat(pool.freeAllBlocks(stream)).isPositive();
    assertThat(driver.takeNotes()).isEmpty();
    assertThat(pool.freeAllBlocks(nullStream)).isZero();
    assertThat(driver.takeNotes()).as("it is asked by these calls").isNotEmpty();
  }

  /** Its free is queued on the null stream, and waited for too. */
  @CudaTest(seeds = 24)
  void memoryOfAStreamThatIsGone_isReleasedAtOnce(
      Cuda cuda, AsyncMemoryPool pool, CudaStream user) {
    CudaStream gone = cuda.device(0).createStream();
    Buffer buffer = pool.allocate(MIB, gone);
    gone.synchronize();
    try (Gate _ = Gate.on(user)) {
      buffer.fill((byte) 1, user);
      gone.close();
      buffer.close();
    }
    assertThat(pool.freeAllBlocks(user)).isPositive();
    assertThat(pool.totalBytes()).isZero();
  }

  /** It was nobody's yet, and the capture goes on. */
  @CudaTest(simulatedOnly = true)
  void memoryBesideACapture_thatCannotBeWaitedFor_isFreed(
      ScriptedDriver driver, AsyncMemoryPool pool, @NonBlocking CudaStream stream) {
    driver.note("memFree");
    for (String name : new String[] {"streamSynchronize", "streamDestroy"}) {
      Capture.of(
          stream,
          () -> {
            driver.answer(
                name,
                call -> {
                  Object _ = call.proceed();
                  throw new CudaException(CudaStatus.INVALID_HANDLE, name, "on purpose");
                });
            assertThatThrownBy(() -> pool.allocate(MIB, stream)).hasMessageContaining("on purpose");
            assertThat(driver.takeNotes()).as(name).containsExactly("memFree");
            driver.unscript(name);
          });
    }
    stream.synchronize();
    assertThat(pool.usedBytes()).isZero();
  }

  @CudaTest
  void freeAllBlocks_doesNotBreakACapture(AsyncMemoryPool pool, CudaStream stream) {
    Capture.of(
        stream,
        () ->
            assertThatThrownBy(() -> pool.freeAllBlocks(stream))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("freeAllBlocks")
                .hasMessageContaining("captur"));
  }

  @CudaTest
  void freeAllBlocks_isOfAStreamThatIsOpen(Cuda cuda, AsyncMemoryPool pool) {
    CudaStream stream = cuda.device(0).createStream();
    pool.allocate(MIB, stream).close();
    stream.close();
    assertThatThrownBy(() -> pool.freeAllBlocks(stream))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("is closed");
  }
}
