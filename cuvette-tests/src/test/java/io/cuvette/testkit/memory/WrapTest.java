package io.cuvette.testkit.memory;

import static io.cuvette.testkit.support.Sizes.MIB;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaStream;
import io.cuvette.DeviceBuffer;
import io.cuvette.ManagedBuffer;
import io.cuvette.PinnedBuffer;
import io.cuvette.Scope;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.PointerAttribute;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Forgetting;
import io.cuvette.testkit.support.Kind;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongSupplier;

class WrapTest {

  @CudaTest
  void wrappedMemory_isTheSameMemory(Cuda cuda) {
    for (Kind kind : Kind.values()) {
      try (Buffer original = kind.allocate(cuda, 1000)) {
        Bytes.put(original, Bytes.random(2, 1000));
        try (Buffer wrapped = cuda.wrap(original.address(), 1000, original)) {
          assertThat(wrapped.getClass()).as("%s", kind).isEqualTo(original.getClass());
          assertThat(wrapped.address()).isEqualTo(original.address());
          assertThat(wrapped.byteSize()).isEqualTo(1000);
          assertThat(wrapped.blockBytes()).isEqualTo(1000);
          assertThat(wrapped.device()).isEqualTo(cuda.device(0));
          assertThat(Bytes.of(wrapped)).isEqualTo(Bytes.random(2, 1000));
          wrapped.fill((byte) 1);
        }
        assertThat(Bytes.of(original)).containsOnly(1);
      }
    }
  }

  /** As of memory of the host that is not of one device. */
  @CudaTest(devices = 2, simulatedOnly = true)
  void memoryOfNoDevice_isOfTheCurrentOne(Cuda cuda, ScriptedDriver driver) {
    try (PinnedBuffer pinned = cuda.allocatePinned(64);
        Scope _ = cuda.device(1).use()) {
      answer(driver, PointerAttribute.DEVICE_ORDINAL, () -> -2);
      try (Buffer wrapped = cuda.wrap(pinned.address(), 64, pinned)) {
        assertThat(wrapped.device()).isEqualTo(cuda.device(1));
      }
    }
  }

  /** Memory that is of no device alone is used with any of them. */
  @CudaTest(devices = 2, simulatedOnly = true)
  void managedAndPageLockedMemory_isWrappedForEachDevice(Cuda cuda, ScriptedDriver driver) {
    try (ManagedBuffer managed = cuda.allocateManaged(64);
        PinnedBuffer pinned = cuda.allocatePinned(64)) {
      for (int residence = 0; residence < 2; residence++) {
        int now = residence;
        answer(driver, PointerAttribute.DEVICE_ORDINAL, () -> now);
        for (CudaDevice device : cuda.devices()) {
          for (Buffer each : List.of(managed, pinned)) {
            try (Buffer wrapped = device.wrap(each.address(), 64, each)) {
              assertThat(wrapped.device()).isEqualTo(device);
            }
          }
        }
      }
    }
  }

  @CudaTest(simulatedOnly = true)
  void memoryWhoseBeginningTheDriverDoesNotTell_isNotShared(Cuda cuda, ScriptedDriver driver) {
    try (Buffer plain = cuda.allocate(64)) {
      answer(driver, PointerAttribute.RANGE_START, () -> 0);
      assertThatThrownBy(plain::descriptor)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("the driver does not say where its allocation begins");
      assertThat(driver.count("ipcGetMemHandle")).isZero();
    }
  }

  private static void answer(ScriptedDriver driver, int attribute, LongSupplier value) {
    driver.answer(
        "pointerGetAttribute",
        call -> call.number("attribute") == attribute ? value.getAsLong() : call.proceed());
  }

  @CudaTest(simulatedOnly = true)
  void allocationThatTheDriverDoesNotKnow_isNotCheckedForItsSize(Cuda cuda, ScriptedDriver driver) {
    try (Buffer original = Kind.DEVICE.allocate(cuda, 64)) {
      long address = original.address();
      for (CudaStatus status : List.of(CudaStatus.INVALID_VALUE, CudaStatus.NOT_SUPPORTED)) {
        answer(driver, PointerAttribute.RANGE_START, () -> fail(status));
        cuda.wrap(address, MIB, null).close();
      }
      answer(driver, PointerAttribute.RANGE_SIZE, () -> 0);
      cuda.wrap(address, MIB, null).close();
      for (int each : new int[] {PointerAttribute.RANGE_START, PointerAttribute.MEMORY_TYPE}) {
        answer(driver, each, () -> fail(CudaStatus.NOT_PERMITTED));
        assertThatThrownBy(() -> cuda.wrap(address, 8, null)).isInstanceOf(CudaException.class);
      }
      driver.unscript("pointerGetAttribute");
    }
  }

  private static long fail(CudaStatus status) {
    throw new CudaException(status.code(), "cuPointerGetAttribute");
  }

  @CudaTest
  void closingTheWrapper_freesNothing(Cuda cuda) {
    try (Buffer original = Kind.DEVICE.allocate(cuda, 1000)) {
      Buffer wrapped = cuda.wrap(original.address(), 1000, null);
      wrapped.close();
      assertThat(wrapped.isClosed()).isTrue();
      assertThatThrownBy(() -> wrapped.fill((byte) 1))
          .isInstanceOf(IllegalStateException.class)
          .hasMessage("buffer of 1000 bytes at 0x%x is closed".formatted(original.address()));
      original.fill((byte) 1);
    }
  }

  /** Memory that the collector frees is not freed below a wrapper of it. */
  @CudaTest
  @SuppressWarnings("try") // the end of each is what is tested
  void ownerIsReachable_untilTheWrapperIsClosed(Cuda cuda) throws InterruptedException {
    try (Buffer original = Kind.DEVICE.allocate(cuda, 64);
        Buffer other = Kind.DEVICE.allocate(cuda, 64)) {
      List<WeakReference<Object>> owners = new ArrayList<>();
      try (Buffer wrapped = cuda.wrap(original.address(), 64, owner(owners));
          Buffer onDevice = cuda.device(0).wrap(other.address(), 64, owner(owners))) {
        System.gc();
        assertThat(owners).hasSize(2).noneMatch(owner -> owner.refersTo(null));
        wrapped.close();
        assertThat(Forgetting.collectUntil(() -> owners.getFirst().refersTo(null))).isTrue();
        assertThat(owners.getLast().refersTo(null)).isFalse();
        onDevice.close();
        assertThat(Forgetting.collectUntil(() -> owners.getLast().refersTo(null))).isTrue();
      }
    }
  }

  private static Object owner(List<WeakReference<Object>> owners) {
    Object owner = new Object();
    owners.add(new WeakReference<>(owner));
    return owner;
  }

  @CudaTest
  void hostViewsOfWrappedMemory_reachIt(Cuda cuda) {
    try (PinnedBuffer pinned = cuda.allocatePinned(64);
        ManagedBuffer managed = cuda.allocateManaged(64);
        Buffer ofPinned = cuda.wrap(pinned.address(), 64, pinned);
        Buffer ofManaged = cuda.wrap(managed.address(), 64, managed)) {
      ((PinnedBuffer) ofPinned).segment().set(ValueLayout.JAVA_INT, 4, 5);
      ((ManagedBuffer) ofManaged).segment().set(ValueLayout.JAVA_INT, 4, 6);
      assertThat(pinned.segment().get(ValueLayout.JAVA_INT, 4)).isEqualTo(5);
      assertThat(managed.segment().get(ValueLayout.JAVA_INT, 4)).isEqualTo(6);
    }
  }

  @CudaTest
  void partOfAnAllocation_canBeWrapped_butNotMoreThanTheRest(Cuda cuda) {
    try (Buffer original = Kind.DEVICE.allocate(cuda, 1024)) {
      try (Buffer part = cuda.wrap(original.address() + 512, 512, original)) {
        part.fill((byte) 1);
      }
      assertThatThrownBy(() -> cuda.wrap(original.address() + 512, 513, original))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("bytes: 513")
          .hasMessageContaining("expected: <= 512");
      assertThatThrownBy(() -> cuda.wrap(original.address(), Long.MAX_VALUE, original))
          .isInstanceOf(IllegalArgumentException.class);
    }
  }

  @CudaTest
  void unknownAddresses_areRefused(Cuda cuda) {
    for (long address : new long[] {1, 0x1234, Long.MAX_VALUE, -1, Long.MIN_VALUE}) {
      assertThatThrownBy(() -> cuda.wrap(address, 16, null))
          .as("0x%x", address)
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("address");
      assertThatThrownBy(() -> cuda.device(0).wrap(address, 16, null))
          .as("0x%x", address)
          .isInstanceOf(IllegalArgumentException.class);
    }
  }

  @CudaTest
  void addressZero_isWrappedOnlyWithNoBytesAndADevice(Cuda cuda) {
    CudaDevice device = cuda.device(0);
    try (Buffer empty = device.wrap(0, 0, null)) {
      assertThat(empty).isInstanceOf(DeviceBuffer.class);
      assertThat(empty.byteSize()).isZero();
    }
    assertThatThrownBy(() -> cuda.wrap(0, 0, null))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("device.wrap");
    assertThatThrownBy(() -> device.wrap(0, 1, null)).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> device.wrap(0, -1, null))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("bytes: -1");
  }

  @CudaTest(devices = 2)
  void wrappedMemory_belongsToItsOwnDevice_whateverIsCurrent(Cuda cuda) {
    try (Buffer original = Kind.DEVICE.allocate(cuda.device(1), 64)) {
      try (Buffer wrapped = cuda.wrap(original.address(), 64, original)) {
        assertThat(wrapped.device()).isEqualTo(cuda.device(1));
        wrapped.fill((byte) 3);
      }
      assertThat(cuda.deviceOf(original.address())).isEqualTo(cuda.device(1));
      assertThatThrownBy(() -> cuda.device(0).wrap(original.address(), 64, original))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("memory of device 1");
    }
  }

  /** A driver may need a context for the question, and another device need have none. */
  @CudaTest(devices = 2, simulatedOnly = true)
  void deviceThatWraps_isTheOneThatIsAsked(Cuda cuda, ScriptedDriver driver) {
    try (Buffer original = Kind.DEVICE.allocate(cuda.device(1), 64)) {
      driver.note("pointerGetAttribute", call -> "of " + call.number("device"));
      cuda.device(1).wrap(original.address(), 64, original).close();
      assertThat(driver.notes()).isNotEmpty().containsOnly("of 1");
    }
  }

  @CudaTest
  void adoptedMemory_isGivenBackOnce(Cuda cuda) {
    CudaDriver driver = cuda.driver();
    long address = driver.memory().memAlloc(0, 512);
    AtomicInteger frees = new AtomicInteger();
    Buffer buffer =
        cuda.device(0)
            .adopt(
                address,
                512,
                () -> {
                  frees.incrementAndGet();
                  driver.memory().memFree(0, address);
                });
    buffer.fill((byte) 1);
    assertThat(frees).hasValue(0);
    buffer.close();
    buffer.close();
    assertThat(frees).hasValue(1);
  }

  @CudaTest
  void adoptedMemory_isGivenBackAfterTheStreamsThatUsedIt(Cuda cuda, CudaStream stream) {
    CudaDriver driver = cuda.driver();
    long address = driver.memory().memHostAlloc(0, 4096, 0).address();
    try (Buffer source = cuda.allocate(4096)) {
      source.fill((byte) 1);
      Buffer buffer =
          cuda.device(0)
              .adopt(
                  address,
                  4096,
                  () -> {
                    assertThat(stream.isDone()).isTrue();
                    driver.memory().memFreeHost(0, address);
                  });
      Gate gate = Gate.on(stream);
      buffer.copyFrom(source, stream);
      assertThat(stream.isDone()).isFalse();
      gate.open();
      buffer.close();
    }
  }

  @CudaTest(tidy = false)
  void adoptedMemoryLeftOpen_isGivenBackByTheCuda(Subject subject) {
    Cuda cuda = subject.open(options -> options);
    CudaDriver driver = cuda.driver();
    long address = driver.memory().memAlloc(0, 512);
    AtomicInteger frees = new AtomicInteger();
    Buffer buffer =
        cuda.device(0)
            .adopt(
                address,
                512,
                () -> {
                  frees.incrementAndGet();
                  driver.memory().memFree(0, address);
                });
    cuda.close();
    assertThat(frees).hasValue(1);
    buffer.close();
    assertThat(frees).hasValue(1);
  }

  @CudaTest
  void refusedAdoption_freesNothing(Cuda cuda) {
    AtomicInteger frees = new AtomicInteger();
    assertThatThrownBy(() -> cuda.device(0).adopt(0x1234, 16, frees::incrementAndGet))
        .isInstanceOf(IllegalArgumentException.class);
    assertThat(frees).hasValue(0);
  }

  /** The driver names the device, whichever is current. */
  @CudaTest(devices = 2)
  void memoryOfEachDevice_isOfThat_whicheverIsCurrent(Cuda cuda) {
    for (CudaDevice owner : cuda.devices()) {
      try (Buffer original = cuda.allocate(64, owner.nullStream())) {
        for (CudaDevice current : cuda.devices()) {
          try (Scope _ = current.use();
              Buffer wrapped = cuda.wrap(original.address(), 64, original)) {
            assertThat(wrapped.device()).as("%s, %s", owner, current).isSameAs(owner);
          }
        }
      }
    }
  }

  /** As that of memory which the library allocated: the driver is not needed for it. */
  @CudaTest(simulatedOnly = true)
  void hostCopyOfWrappedPageLockedMemory_isMadeByTheHost(Cuda cuda, ScriptedDriver driver) {
    byte[] pattern = Bytes.random(5, 100_000);
    byte[] back = new byte[pattern.length];
    try (PinnedBuffer original = cuda.allocatePinned(pattern.length);
        Buffer wrapped = cuda.wrap(original.address(), pattern.length, original)) {
      for (Buffer each : List.of(original, wrapped, wrapped.slice(0))) {
        original.segment().fill((byte) 0);
        Arrays.fill(back, (byte) 0);
        each.copyFrom(MemorySegment.ofArray(pattern));
        each.copyTo(MemorySegment.ofArray(back));
        assertThat(back).isEqualTo(pattern);
      }
    }
    for (String copy :
        List.of("memcpyAsync", "memcpyHtoDAsync", "memcpyDtoHAsync", "memHostAlloc")) {
      assertThat(driver.count(copy)).as(copy).isLessThanOrEqualTo(copy.endsWith("Alloc") ? 1 : 0);
    }
  }
}
