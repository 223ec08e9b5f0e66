package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.instrument.DriverProxy;
import io.cuvette.internal.base.SpareHandles;
import io.cuvette.internal.session.DeferredFrees;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What each status of the driver becomes, for whatever it refuses, and what is left then. */
@Timeout(60)
class RefusedByStatusTest {
  private static final int BYTES = 4096;
  private static final UUID ELSEWHERE = new UUID(7, 7);

  private final Map<String, CudaStatus> refusals = new ConcurrentHashMap<>();
  private final Map<String, AtomicInteger> calls = new ConcurrentHashMap<>();

  /** Whether a call that is refused has done its work. */
  private volatile boolean isDone;

  /** Those that memory was page-locked with last. */
  private final AtomicInteger flags = new AtomicInteger();

  private final Cuda cuda =
      Cuda.open(
          CudaOptions.simulated()
              .withDecorator(driver ->
                  DriverProxy.of((method, arguments) -> {
                    String name = method.getName();
                    counted(name).incrementAndGet();
                    if (name.equals("memHostRegister")) {
                      flags.set((int) arguments[2]);
                    }
                    CudaStatus refusal = refusals.get(name);
                    if (refusal == null) {
                      return name.equals("ipcOpenEventHandle")
                          ? driver.events().eventCreate((int) arguments[0], 0)
                          : DriverProxy.forward(driver, method, arguments);
                    }
                    if (isDone) {
                      DriverProxy.forward(driver, method, arguments);
                    }
                    throw new CudaException(refusal, name, "the test's");
                  })));
  private final CudaDevice device = cuda.device(0);

  @AfterEach
  void close() {
    cuda.close();
  }

  private AtomicInteger counted(String name) {
    return calls.computeIfAbsent(name, _ -> new AtomicInteger());
  }

  /** What a call throws as the driver refuses another with a status. */
  private Throwable refused(String call, CudaStatus status, Runnable what) {
    refusals.put(call, status);
    Throwable thrown = catchThrowable(what::run);
    refusals.clear();
    assertThat(thrown).as("%s by %s", status, call).isNotNull();
    return Objects.requireNonNull(thrown);
  }

  private static void checkSame(Throwable thrown, CudaStatus status) {
    assertThat(thrown)
        .isInstanceOfSatisfying(CudaException.class, e -> assertThat(e.status()).isEqualTo(status));
  }

  /** Lack of memory says nothing about the event. */
  @Test
  void eventThatCannotBeImported_isExplained_butForWantOfWhatItTakes() {
    for (CudaStatus status : CudaStatus.values()) {
      boolean isOfIt = status != CudaStatus.OPERATING_SYSTEM && status != CudaStatus.OUT_OF_MEMORY;
      for (UUID process : new UUID[] {ELSEWHERE, cuda.session().process()}) {
        EventDescriptor descriptor =
            new EventDescriptor(false, process, new UUID(0, 0), new byte[64]);
        Throwable thrown =
            refused("ipcOpenEventHandle", status, () -> device.importEvent(descriptor));
        checkSame(thrown, status);
        boolean isOwn = !process.equals(ELSEWHERE);
        assertThat(thrown.getMessage().contains("made by this very process"))
            .as("%s", status)
            .isEqualTo(isOfIt && isOwn);
        assertThat(thrown.getMessage().contains("process is gone or has closed it"))
            .as("%s", status)
            .isEqualTo(isOfIt && !isOwn);
      }
    }
  }

  @Test
  void memoryThatCannotBeMapped_isExplainedByWhatTheStatusSays() {
    BufferDescriptor descriptor =
        new BufferDescriptor(
            BufferDescriptor.Kind.PLAIN, 0, 64, ELSEWHERE, new UUID(0, 0), new byte[64]);
    for (CudaStatus status : CudaStatus.values()) {
      Throwable thrown = refused("ipcOpenMemHandle", status, () -> device.importBuffer(descriptor));
      String text = String.valueOf(thrown.getMessage());
      assertThat(text.contains("its memory was freed"))
          .as("%s: %s", status, text)
          .isEqualTo(status == CudaStatus.INVALID_VALUE || status == CudaStatus.INVALID_HANDLE);
      assertThat(text.contains("is mapped in this process already"))
          .as("%s: %s", status, text)
          .isEqualTo(status == CudaStatus.ALREADY_MAPPED);
      assertThat(text.contains("it is this very process"))
          .as("%s: %s", status, text)
          .isEqualTo(status == CudaStatus.INVALID_CONTEXT);
    }
  }

  private static Class<?> typeForMemory(CudaStatus status) {
    return switch (status) {
      case OUT_OF_MEMORY -> OutOfPinnedMemoryException.class;
      case HOST_MEMORY_ALREADY_REGISTERED -> IllegalStateException.class;
      case INVALID_VALUE, NOT_PERMITTED, NOT_SUPPORTED -> IllegalArgumentException.class;
      default -> CudaException.class;
    };
  }

  @Test
  void memoryThatCannotBePageLocked_isTheProgramsAlone() {
    for (CudaStatus status : CudaStatus.values()) {
      boolean mayBeDone = status.losesContext() || status == CudaStatus.HOST_MEMORY_NOT_REGISTERED;
      for (boolean hasWorked : mayBeDone ? new boolean[] {false, true} : new boolean[] {false}) {
        isDone = hasWorked;
        MemorySegment segment = Arena.ofAuto().allocate(BYTES);
        counted("memHostUnregister").set(0);
        Throwable thrown = refused("memHostRegister", status, () -> cuda.registerHost(segment));
        assertThat(thrown).as("%s", status).isInstanceOf(typeForMemory(status));
        checkSame(thrown.getCause() == null ? thrown : thrown.getCause(), status);
        assertThat(counted("memHostUnregister")).as("%s", status).hasValue(hasWorked ? 1 : 0);
        cuda.registerHost(segment).close();
      }
    }
  }

  /** Frees that found no gap between callbacks are made then, and the call once more. */
  @Test
  void memoryThatIsShort_isAskedForAgain_onceFreesThatWaitAreMade_andNoOtherRefusal() {
    DeferredFrees frees = cuda.session().frees();
    AtomicInteger released = new AtomicInteger();
    frees.beginHold();
    assertThat(frees.putOff(true, released::incrementAndGet)).isTrue();
    frees.endHold();
    CudaStream stream = device.createStream();
    Runnable takes = () -> MemoryResource.direct().allocate(BYTES, stream);
    checkSame(refused("memAlloc", CudaStatus.UNKNOWN, takes), CudaStatus.UNKNOWN);
    assertThat(counted("memAlloc")).hasValue(1);
    assertThat(released).hasValue(0);
    checkSame(refused("memAlloc", CudaStatus.OUT_OF_MEMORY, takes), CudaStatus.OUT_OF_MEMORY);
    assertThat(counted("memAlloc")).hasValue(3);
    assertThat(released).hasValue(1);
    checkSame(refused("memAlloc", CudaStatus.OUT_OF_MEMORY, takes), CudaStatus.OUT_OF_MEMORY);
    assertThat(counted("memAlloc")).as("nothing waits").hasValue(4);
  }

  /** It is tried again, now and with the next call. */
  @Test
  void eventThatWasKeptForLater_isDestroyedByWhoFreesAll_whoHearsOfARefusal() {
    SpareHandles events = device.core().spareEvents;
    events.give(cuda.driver().events().eventCreate(0, 2));
    MemoryPool pool = cuda.defaultMemoryPool();
    Runnable frees = () -> assertThat(pool.freeAllBlocks()).isZero();
    checkSame(refused("eventDestroy", CudaStatus.NOT_PERMITTED, frees), CudaStatus.NOT_PERMITTED);
    assertThat(counted("eventDestroy")).hasValue(2);
    assertThat(events.count()).isOne();
    frees.run();
    assertThat(counted("eventDestroy")).hasValue(3);
    assertThat(events.count()).isZero();
  }

  /** Whether a stream that waits for it can join a capture by that. */
  @Test
  void event_mayBeCaptured_onceOthersCanHaveRecordedIt() {
    CudaStream stream = device.createStream();
    CudaStream shown = device.createStream();
    assertThat(shown.handle()).isNotZero();
    CudaEvent event = device.createEvent();
    assertThat(event.isRecorded()).isFalse();
    assertThat(event.core().mayBeCaptured()).isFalse();
    event.record(stream);
    assertThat(event.isRecorded()).isTrue();
    assertThat(event.core().mayBeCaptured()).as("by a stream that is only here").isFalse();
    event.record(shown);
    assertThat(event.core().mayBeCaptured()).as("by one that others have").isTrue();
    CudaEvent other = device.createEvent();
    assertThat(other.handle()).isNotZero();
    assertThat(other.core().mayBeCaptured()).as("others have it").isTrue();
    CudaEvent imported =
        device.importEvent(new EventDescriptor(true, ELSEWHERE, new UUID(0, 0), new byte[64]));
    assertThat(imported.isRecorded()).isTrue();
    assertThat(imported.core().mayBeCaptured()).as("it is of others").isTrue();
    assertThat(imported.options()).isEqualTo(new EventOptions(true, false, true));
  }

  /** 1 portable, 2 mapped, 8 read-only; the driver would write into what may not be written. */
  @Test
  void memory_isPageLockedAsItMayBeUsed() {
    MemorySegment segment = Arena.ofAuto().allocate(BYTES);
    PinnedBuffer writable = cuda.registerHost(segment);
    assertThat(flags).hasValue(3);
    assertThat(writable.byteSize()).isEqualTo(BYTES);
    assertThat(writable.isClosed()).isFalse();
    writable.close();
    cuda.registerHost(segment.asReadOnly()).close();
    assertThat(flags).hasValue(3 | 8);
  }
}
