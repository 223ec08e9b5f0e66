package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.lang.foreign.Arena;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

class FaultsTest {
  private final TinyDriver tiny = new TinyDriver();

  private static CudaException failure(ThrowingCallable call) {
    return catchThrowableOfType(CudaException.class, call);
  }

  @Test
  void none_countsAndLetsEverythingThrough() {
    Faults faults = Faults.none(tiny.driver);

    long address = faults.driver().memory().memAlloc(0, 512);
    faults.driver().memory().memFree(0, address);

    assertThat(faults.calls()).isEqualTo(2);
    assertThat(faults.fired()).isFalse();
    assertThat(faults.failedCall()).isEmpty();
  }

  @Test
  void at_failsThatCallAlone() {
    Faults faults = Faults.at(tiny.driver, 2, CudaStatus.ILLEGAL_ADDRESS);
    faults.driver().memory().memAlloc(0, 1);

    CudaException thrown = failure(() -> faults.driver().memory().memAlloc(0, 2));
    faults.driver().memory().memAlloc(0, 3);

    assertThat(thrown.status()).isEqualTo(CudaStatus.ILLEGAL_ADDRESS);
    assertThat(thrown)
        .hasMessageContaining("memAlloc(")
        .hasMessageContaining("injected fault, call 2");
    assertThat(faults.fired()).isTrue();
    assertThat(faults.failedCall()).hasValueSatisfying(call -> assertThat(call).contains("2)"));
    assertThat(tiny.live()).as("the failing call did not reach the driver").hasSize(2);
  }

  @Test
  void from_failsThatCallAndAllAfterIt() {
    Faults faults = Faults.from(tiny.driver, 2);
    long address = faults.driver().memory().memAlloc(0, 1);

    assertThat(failure(() -> faults.driver().memory().memAlloc(0, 2)).status())
        .isEqualTo(CudaStatus.OUT_OF_MEMORY);
    assertThat(failure(() -> faults.driver().devices().ctxSynchronize(0)).status())
        .isEqualTo(CudaStatus.LAUNCH_FAILED);
    assertThat(failure(() -> faults.driver().memory().memFree(0, address)).status())
        .isEqualTo(CudaStatus.UNKNOWN);
    assertThat(faults.failedCall().orElseThrow()).as("the first one").startsWith("memAlloc(");
  }

  @Test
  void refusedFree_hasNotFreed_andIsFreedByTheNextAttempt() {
    Faults faults = Faults.at(tiny.driver, 2);
    long address = faults.driver().memory().memAlloc(0, 1);

    assertThat(failure(() -> faults.driver().memory().memFree(0, address))).isNotNull();
    assertThat(tiny.live()).containsOnlyKeys(address);

    faults.driver().memory().memFree(0, address);
    assertThat(tiny.live()).isEmpty();
    assertThat(faults.freeRefused()).as("nothing is owed").isEmpty();
  }

  @Test
  void freeRefused_freesWhatTheProgramTriedToFree_andNothingElse() {
    Faults faults = Faults.from(tiny.driver, 4);
    long tried = faults.driver().memory().memAlloc(0, 1);
    long forgotten = faults.driver().memory().memAlloc(0, 1);
    long stream = faults.driver().streams().streamCreateWithPriority(0, 1, 0);
    assertThat(failure(() -> faults.driver().memory().memFree(0, tried))).isNotNull();
    assertThat(failure(() -> faults.driver().streams().streamDestroy(0, stream))).isNotNull();

    assertThat(faults.freeRefused()).hasSize(2);
    assertThat(tiny.live()).containsOnlyKeys(forgotten);
  }

  @Test
  void freeRefused_freesEachOfAKind() {
    Faults faults = Faults.from(tiny.driver, 5);
    CudaDriver driver = faults.driver();
    long[] streams = new long[2];
    long[] events = new long[2];
    for (int i = 0; i < 2; i++) {
      streams[i] = driver.streams().streamCreateWithPriority(0, 1, 0);
      events[i] = driver.events().eventCreate(0, 0);
    }
    for (int i = 0; i < 2; i++) {
      int each = i;
      assertThat(failure(() -> driver.streams().streamDestroy(0, streams[each]))).isNotNull();
      assertThat(failure(() -> driver.events().eventDestroy(0, events[each]))).isNotNull();
    }
    assertThat(faults.freeRefused()).hasSize(4);
  }

  @Test
  void whatWasFreedAfterAll_isOwedNoMore() {
    Faults faults = Faults.from(tiny.driver, 1).only("memFree");
    long address = faults.driver().memory().memAlloc(0, 1);
    assertThat(failure(() -> faults.driver().memory().memFree(0, address))).isNotNull();
    assertThat(faults.freeRefused()).hasSize(1);
    assertThat(faults.freeRefused()).isEmpty();
    assertThat(tiny.live()).isEmpty();
  }

  /** Parts that could not be unmapped are, with the whole. */
  @Test
  void partsThatWereUnmappedWithTheWhole_areOwedNoMore_andTheOthersAre() {
    Faults faults = Faults.at(tiny.driver, 1).only("memUnmap");
    CudaDriver driver = faults.driver();
    assertThat(failure(() -> driver.virtual().memUnmap(0x10000, 0x1000))).isNotNull();
    driver.virtual().memUnmap(0x10000, 0x4000);
    assertThat(faults.freeRefused()).isEmpty();

    Faults again = Faults.at(tiny.driver, 1).only("memUnmap");
    CudaDriver other = again.driver();
    assertThat(failure(() -> other.virtual().memUnmap(0x10000, 0x2000))).isNotNull();
    other.virtual().memUnmap(0x11000, 0x1000);
    assertThat(again.freeRefused()).hasSize(1);
  }

  /** Only of what is gone already the driver may say that it is none. */
  @Test
  void freeRefused_failsWhereTheDriverRefusesAgain() {
    for (String free : List.of("memFree", "memUnmap")) {
      for (CudaStatus status : List.of(CudaStatus.INVALID_VALUE, CudaStatus.ILLEGAL_ADDRESS)) {
        CudaDriver refusing =
            DriverProxy.of((method, arguments) -> {
              if (method.getName().equals(free)) {
                throw new CudaException(status, free, "");
              }
              return DriverProxy.forward(tiny.driver, method, arguments);
            });
        Faults faults = Faults.from(refusing, 1).only("memFreeAsync", "memUnmap");
        CudaDriver driver = faults.driver();
        boolean isBlock = free.equals("memFree");
        long block = isBlock ? driver.ordered().memAllocAsync(0, 64, 0) : 0x10000;
        assertThat(
                failure(() -> {
                  if (isBlock) {
                    driver.ordered().memFreeAsync(0, block, 0);
                  } else {
                    driver.virtual().memUnmap(block, 0x1000);
                  }
                }))
            .isNotNull();
        if (status == CudaStatus.INVALID_VALUE) {
          assertThat(faults.freeRefused()).hasSize(1);
        } else {
          assertThat(failure(faults::freeRefused).status()).isEqualTo(status);
        }
      }
    }
  }

  /** Some other call has unmapped it: then there is nothing left to do. */
  @Test
  void unmapThatIsOwed_andWasDoneMeanwhile_isNoFailure() {
    CudaDriver without =
        DriverProxy.of((method, arguments) -> {
          if (method.getName().equals("memUnmap")) {
            throw new CudaException(CudaStatus.INVALID_VALUE.code(), "nothing is there");
          }
          return DriverProxy.forward(tiny.driver, method, arguments);
        });
    Faults faults = Faults.at(without, 1).only("memUnmap");
    assertThat(failure(() -> faults.driver().virtual().memUnmap(0x10000, 0x1000))).isNotNull();
    assertThat(faults.freeRefused()).hasSize(1);
  }

  @Test
  void functionOfTheProgram_neverFailsAfterItsEffect() {
    Faults faults = Faults.of(tiny.driver, 1, FaultMode.AFTER_EFFECT, null);
    assertThatIllegalArgumentException().isThrownBy(() -> faults.only("callFree"));
    long address = faults.driver().natives().callMalloc(1, 0, 64, 0);
    faults.driver().natives().callFree(2, 0, address, 0);
    assertThat(faults.calls()).isZero();
    assertThat(faults.fired()).isFalse();
    assertThat(tiny.live()).isEmpty();
  }

  @Test
  void captureThatEndedBeforeItsError_leavesNoGraph() {
    Faults faults =
        Faults.of(tiny.driver, 1, FaultMode.AFTER_EFFECT, null).only("streamEndCapture");
    CudaException thrown = failure(() -> faults.driver().captures().streamEndCapture(0, 1));
    assertThat(thrown).hasMessageContaining("after it took effect");
    assertThat(thrown.status()).isEqualTo(CudaStatus.STREAM_CAPTURE_INVALIDATED);
    assertThat(tiny.live()).isEmpty();
  }

  /** What the driver refused itself is owed, as what the fault refused. */
  @Test
  void freeThatFailsItself_whereItWasToFailAfterItsEffect_isOwed() {
    Faults faults = Faults.of(tiny.driver, 1, FaultMode.AFTER_EFFECT, null).only("memFree");
    long address = faults.driver().memory().memAlloc(0, 1);
    tiny.refuse("memFree");
    assertThat(failure(() -> faults.driver().memory().memFree(0, address)))
        .hasMessageContaining("after it took effect");
    tiny.refuse("nothing");
    assertThat(tiny.live()).containsOnlyKeys(address);
    assertThat(faults.freeRefused()).hasSize(1);
    assertThat(tiny.live()).isEmpty();
  }

  @Test
  void stepsWithoutFaults_areNeitherCountedNorFailed_alsoInsideEachOther() {
    Faults faults = Faults.from(tiny.driver, 1);
    Runnable step =
        () -> {
          long _ = faults.driver().memory().memAlloc(0, 1);
        };
    faults.withoutFaults(() -> {
      step.run();
      faults.withoutFaults(step);
      step.run();
    });
    assertThat(failure(() -> faults.withoutFaults(() -> faults.driver().memory().memFree(0, 1))))
        .hasMessageNotContaining("injected");
    assertThat(faults.calls()).isZero();
    assertThat(faults.fired()).isFalse();
    assertThat(tiny.live()).hasSize(3);

    assertThat(failure(step::run)).hasMessageContaining("injected fault, call 1]");
  }

  /** The driver gives no addresses back at which something is mapped. */
  @Test
  void whatIsOwed_isUnmappedBeforeItsAddressesAreGivenBack_andStreamsEndBefore() {
    Faults faults = Faults.from(tiny.driver, 1).only("memUnmap", "memAddressFree", "streamDestroy");
    CudaDriver driver = faults.driver();
    for (int i = 0; i < 16; i++) {
      long addresses = driver.virtual().memAddressReserve(0x1000, 0, 0);
      long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
      assertThat(failure(() -> driver.virtual().memAddressFree(addresses, 0x1000))).isNotNull();
      assertThat(failure(() -> driver.virtual().memUnmap(addresses, 0x1000))).isNotNull();
      assertThat(failure(() -> driver.streams().streamDestroy(0, stream))).isNotNull();
    }
    List<String> freed = faults.freeRefused();
    assertThat(freed).hasSize(48);
    assertThat(freed.subList(0, 16)).allMatch(call -> call.startsWith("streamDestroy("));
    assertThat(freed.subList(16, 32)).allMatch(call -> call.startsWith("memUnmap("));
    assertThat(freed.subList(32, 48)).allMatch(call -> call.startsWith("memAddressFree("));
  }

  @Test
  void only_countsAndFailsTheNamedCallsAlone() {
    Faults faults = Faults.at(tiny.driver, 1, CudaStatus.OUT_OF_MEMORY).only("eventCreate");
    faults.driver().memory().memAlloc(0, 1);
    faults.driver().streams().streamCreateWithPriority(0, 1, 0);
    assertThat(faults.calls()).isZero();

    assertThat(failure(() -> faults.driver().events().eventCreate(0, 0))).isNotNull();
    assertThat(faults.calls()).isEqualTo(1);
  }

  @Test
  void only_takesANameTwice() {
    Faults faults = Faults.at(tiny.driver, 2).only("memAlloc", "memAlloc");
    faults.driver().memory().memAlloc(0, 1);

    assertThat(failure(() -> faults.driver().memory().memAlloc(0, 1))).isNotNull();
  }

  @Test
  void only_refusesNamesThatCanNeverFail() {
    Faults faults = Faults.from(tiny.driver, 1);

    assertThatIllegalArgumentException()
        .isThrownBy(() -> faults.only("memFree", "memAloc"))
        .withMessage("methodNames[1]: 'memAloc' (expected: a call of CudaDriver)");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> faults.only(new String[0]))
        .withMessage("methodNames: none (expected: at least one call of CudaDriver)");
    for (String name : List.of("close", "hostView", "blockListener")) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> faults.only("memAlloc", name))
          .withMessage("methodNames[1]: '%s' (expected: a call that can fail)", name);
    }
  }

  /** A fault that waits for a call that this mode does not count would never fire. */
  @Test
  void only_afterTheEffect_refusesCallsThatGiveSomethingBack() {
    Faults faults = Faults.of(tiny.driver, 1, FaultMode.AFTER_EFFECT, null);

    assertThatIllegalArgumentException()
        .isThrownBy(() -> faults.only("memFree", "memAlloc"))
        .withMessage(
            "methodNames[1]: 'memAlloc' (expected: a call that can fail after its effect)");
    assertThat(faults.only("memFree", "streamEndCapture").calls()).isZero();
  }

  @Test
  void whatCannotFail_isNotCounted() {
    Faults faults = Faults.from(tiny.driver, 1);

    assertThat(faults.driver().name()).isEqualTo("faults(tiny)");
    assertThat(faults.driver()).hasToString("faults(tiny)").isEqualTo(faults.driver());
    assertThat(faults.driver().isSimulated()).isFalse();
    faults.driver().memory().hostView(0, 4096, 1, Arena.global());
    faults.driver().close();

    assertThat(faults.calls()).isZero();
    assertThat(tiny.closed).isTrue();
  }

  @Test
  void nativeAllocator_failsWithNull_unlessAStatusIsGiven() {
    assertThat(Faults.at(tiny.driver, 1).driver().natives().callMalloc(1, 2, 3, 0)).isZero();

    Faults explicit = Faults.at(tiny.driver, 1, CudaStatus.INVALID_CONTEXT);
    assertThat(failure(() -> explicit.driver().natives().callMalloc(1, 2, 3, 0)).status())
        .isEqualTo(CudaStatus.INVALID_CONTEXT);
  }

  @Test
  void errorsOfTheDriver_passUnchanged() {
    Faults faults = Faults.none(tiny.driver);

    CudaException thrown = failure(() -> faults.driver().memory().memFree(0, 12345));

    assertThat(thrown).hasMessageNotContaining("injected");
    assertThat(thrown.status()).isEqualTo(CudaStatus.INVALID_VALUE);
  }

  @Test
  void wrongNumbersAndStatuses_areRefused() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Faults.at(tiny.driver, 0))
        .withMessage("callNumber: 0 (expected: >= 1)");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Faults.from(tiny.driver, 1, CudaStatus.SUCCESS))
        .withMessage("status: SUCCESS (expected: an error)");
  }

  /** Each form fails the calls that it says, with the status that it was given. */
  @Test
  void everyForm_failsItsCalls_withItsStatus() {
    CudaStatus given = CudaStatus.ECC_UNCORRECTABLE;
    CudaStatus usual = CudaStatus.LAUNCH_FAILED;
    CudaDriver target = tiny.driver;
    assertFails(Faults.none(target), usual, false, false, false, false);
    assertFails(Faults.at(target, 2), usual, false, true, false, false);
    assertFails(Faults.at(target, 2, given), given, false, true, false, false);
    assertFails(Faults.from(target, 2), usual, false, true, true, true);
    assertFails(Faults.from(target, 3, given), given, false, false, true, true);
    for (FaultMode mode : FaultMode.values()) {
      boolean isLasting = mode == FaultMode.FROM_THEN_ON;
      assertFails(Faults.of(target, 1, mode, given), given, true, isLasting, isLasting, isLasting);
    }
  }

  private static void assertFails(Faults faults, CudaStatus status, boolean... expected) {
    for (boolean each : expected) {
      CudaException thrown = failure(() -> faults.driver().devices().ctxSynchronize(0));
      assertThat(thrown != null).isEqualTo(each);
      assertThat(thrown == null ? status : thrown.status()).isEqualTo(status);
    }
    assertThat(faults.calls()).isEqualTo(expected.length);
    assertThat(faults.fault().map(Faults.Fault::status).orElse(status)).isEqualTo(status);
  }

  /** The program's frames are beside the library's, and those of the instruments are in neither. */
  @Test
  void fault_saysWhereInTheLibraryItWas_andWhoCalledThat() {
    Faults[] faults = new Faults[1];
    try (Cuda cuda =
        Cuda.open(
            CudaOptions.simulated()
                .withDecorator(driver -> {
                  faults[0] = Faults.at(driver, 1).only("eventCreate");
                  return faults[0].driver();
                }))) {
      CudaStream stream = cuda.device(0).createStream();
      Runnable inside = () -> cuda.device(0).createEvent().close();
      assertThat(failure(() -> stream.capture(inside::run).close())).isNotNull();
    }
    Faults.Fault fault = faults[0].fault().orElseThrow();
    assertThat(fault.method()).isEqualTo("eventCreate");
    assertThat(fault.place())
        .isNotEmpty()
        .allMatch(frame -> frame.contains("io.cuvette."))
        .noneMatch(frame -> frame.contains("FaultsTest") || frame.contains("instrument"))
        .last()
        .asString()
        .contains("CudaDevice.createEvent");
    assertThat(fault.place().getFirst()).contains("io.cuvette.internal.");
    assertThat(fault.callers())
        .contains("CudaDevice.createEvent")
        .noneMatch(frame -> frame.startsWith("Faults.") || frame.startsWith("DriverProxy"))
        .noneMatch(frame -> frame.contains("Proxy") || frame.contains("lambda"));
  }

  /** A range that was refused in parts and as a whole is owed once. */
  @Test
  void wholeThatWasRefusedToo_standsForItsParts() {
    Faults faults = Faults.from(tiny.driver, 1).only("memUnmap");
    CudaDriver driver = faults.driver();
    for (long at = 0x10000; at < 0x14000; at += 0x1000) {
      long from = at;
      assertThat(failure(() -> driver.virtual().memUnmap(from, 0x1000))).isNotNull();
    }
    assertThat(failure(() -> driver.virtual().memUnmap(0x11000, 0x2000))).isNotNull();
    assertThat(faults.freeRefused())
        .hasSize(3)
        .anyMatch(call -> call.contains("8192"))
        .allMatch(call -> call.startsWith("memUnmap("));
    assertThat(faults.freeRefused()).isEmpty();
  }

  @Test
  void wholeThatWasUnmappedSince_leavesNothingOwedOfItsParts() {
    Faults faults = Faults.at(tiny.driver, 1).only("memUnmap");
    assertThat(failure(() -> faults.driver().virtual().memUnmap(0x11000, 0x1000))).isNotNull();
    faults.driver().virtual().memUnmap(0x10000, 0x4000);
    assertThat(faults.freeRefused()).isEmpty();
  }

  /** Work of another device may use what is freed late: that waits for all devices. */
  @Test
  void freeRefused_waitsForTheWorkOfAllDevices() {
    try (SimulatedDriver simulated =
        SimulatedDriver.open(SimulatedOptions.parse("devices=2,pace=lazy"))) {
      Faults faults = Faults.at(simulated, 1).only("memFree");
      CudaDriver driver = faults.driver();
      long address = driver.memory().memAlloc(0, 64);
      long host = driver.memory().memHostAlloc(0, 64, 0).address();
      long stream = driver.streams().streamCreateWithPriority(1, 1, 0);
      driver.transfers().memcpyAsync(1, host, address, 64, stream);
      assertThat(driver.streams().streamQuery(1, stream)).isFalse();
      assertThat(failure(() -> driver.memory().memFree(0, address))).isNotNull();
      assertThat(faults.freeRefused()).hasSize(1);
      assertThat(driver.streams().streamQuery(1, stream)).isTrue();
    }
  }
}
