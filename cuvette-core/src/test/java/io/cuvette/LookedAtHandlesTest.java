package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.IpcCalls;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingIpc;
import io.cuvette.instrument.TracingDriver;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.PeerHandles;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;

/** What is made to look at handles of this process's own. */
class LookedAtHandlesTest {
  private static final int OFFSET_AT = 24;
  private static final int PLAIN_SIZE_AT = 16;

  private static final List<List<String>> PAIRS =
      List.of(
          List.of("memPoolCreate", "memPoolDestroy"),
          List.of("memAllocFromPoolAsync", "memFreeAsync"),
          List.of("memAlloc", "memFree"),
          List.of("streamCreateWithPriority", "streamDestroy"),
          List.of("eventCreate", "eventDestroy"));

  @Test
  void whatIsMadeToLookAt_isMadeOnce_andIsGoneAfterThat() {
    List<String> calls = new CopyOnWriteArrayList<>();
    try (Cuda cuda =
        Cuda.open(
            CudaOptions.simulated()
                .withDecorator(sim ->
                    TracingDriver.of(
                        new PeerHandlesTest.Exporting(sim), call -> calls.add(call.call()))))) {
      Device device = cuda.device(0).core();
      PeerHandles handles = new PeerHandles(_ -> calls.add("closed()"));
      byte[] handle = PeerHandlesTest.pointer(1 << 20, 4096);
      for (int round = 0; round < 3; round++) {
        calls.clear();
        PeerHandles.Range range = handles.range(device, handle);
        assertThat(range).isNotNull();
        assertThat(range.offset()).isEqualTo(1 << 20);
        assertThat(range.bytes()).isEqualTo(4096);
        byte[] plain = new byte[IpcCalls.HANDLE_BYTES];
        plain[17] = 1;
        assertThat(handles.checkedPlain(device, plain)).isSameAs(plain);
        assertThat(handles.checkedEvent(device, plain)).isSameAs(plain);
        for (List<String> pair : PAIRS) {
          long made = count(calls, pair.getFirst());
          assertThat(made > 0).as(pair.getFirst()).isEqualTo(round == 0);
          assertThat(count(calls, pair.getLast())).as(pair.getLast()).isEqualTo(made);
        }
        assertThat(count(calls, "closed")).isEqualTo(round == 0 ? 1 : 0);
      }
    }
  }

  /** What was queued for a look is done before others import, or destroy the pool. */
  @Test
  void lookingAtHandles_endsItsStreams_onceTheirWorkIsDone() {
    List<String> calls = new CopyOnWriteArrayList<>();
    try (Cuda traced =
        Cuda.open(
            CudaOptions.simulated()
                .withDevice("sim:memory=80GiB")
                .withDecorator(sim ->
                    TracingDriver.of(
                        new PeerHandlesTest.Exporting(sim), call -> calls.add(call.call()))))) {
      Device here = traced.device(0).core();
      calls.clear();
      byte[] handle = PeerHandlesTest.pointer(0, 2L << 30); // large, so that its end is tried
      assertThat(new PeerHandles(_ -> {}).checkedPointer(here, 4711, handle)).isSameAs(handle);
      List<String> ofStreams =
          calls.stream()
              .map(call -> call.replaceAll("[(].*", ""))
              .filter(call -> call.startsWith("stream") || call.startsWith("memPoolDestroy"))
              .toList();
      assertThat(ofStreams)
          .containsExactly(
              "streamCreateWithPriority",
              "streamSynchronize",
              "streamDestroy",
              "memPoolDestroy",
              "streamCreateWithPriority",
              "streamSynchronize",
              "streamDestroy");
    }
  }

  /** Its handles are then taken as they are, as with a driver that nothing is known of. */
  @Test
  void driverWhoseOffsetsAreNoBytes_isNotSecondGuessed() {
    for (boolean areBytes : new boolean[] {true, false}) {
      try (Cuda cuda =
          Cuda.open(
              CudaOptions.simulated()
                  .withDecorator(sim -> {
                    CudaDriver below = new PeerHandlesTest.Exporting(sim);
                    return areBytes ? below : new InUnits(below);
                  }))) {
        PeerHandles handles = new PeerHandles(_ -> {});
        byte[] handle = PeerHandlesTest.pointer(1 << 20, 4096);
        PeerHandles.Range range = handles.range(cuda.device(0).core(), handle);
        assertThat(range != null).as("offsets in bytes").isEqualTo(areBytes);
      }
    }
  }

  /** Each of the two that are looked at counts. */
  @Test
  void driverWhosePlainSizesAreNone_isNotSecondGuessed() {
    byte[] beyond = new byte[IpcCalls.HANDLE_BYTES];
    Arrays.fill(beyond, (byte) -1);
    for (int wrong : new int[] {1, 2}) {
      AtomicInteger asked = new AtomicInteger();
      try (Cuda cuda =
          Cuda.open(
              CudaOptions.simulated()
                  .withDecorator(sim ->
                      new SizeLeftOut(
                          new PeerHandlesTest.Exporting(sim),
                          () -> asked.incrementAndGet() == wrong)))) {
        PeerHandles handles = new PeerHandles(_ -> {});
        assertThat(handles.checkedPlain(cuda.device(0).core(), beyond)).isSameAs(beyond);
        assertThat(asked).hasValue(2);
      }
    }
  }

  /** Some of its handles of plain memory have no size. */
  private static final class SizeLeftOut extends ForwardingDriver {
    private final IpcCalls calls;

    SizeLeftOut(CudaDriver below, BooleanSupplier isWithout) {
      super(below);
      calls =
          new ForwardingIpc(below.sharing()) {
            @Override
            public byte[] ipcGetMemHandle(int device, long address) {
              byte[] handle = super.ipcGetMemHandle(device, address);
              if (isWithout.getAsBoolean()) {
                ByteBuffer.wrap(handle).order(ByteOrder.nativeOrder()).putLong(PLAIN_SIZE_AT, 0);
              }
              return handle;
            }
          };
    }

    @Override
    public IpcCalls sharing() {
      return calls;
    }
  }

  /** The offsets of its handles count units of 512 bytes. */
  private static final class InUnits extends ForwardingDriver {
    private final IpcCalls calls =
        new ForwardingIpc(delegate().sharing()) {
          @Override
          public byte[] memPoolExportPointer(long address) {
            byte[] handle = super.memPoolExportPointer(address);
            ByteBuffer words = ByteBuffer.wrap(handle).order(ByteOrder.nativeOrder());
            words.putLong(OFFSET_AT, words.getLong(OFFSET_AT) / 512);
            return handle;
          }
        };

    InUnits(CudaDriver below) {
      super(below);
    }

    @Override
    public IpcCalls sharing() {
      return calls;
    }
  }

  private static long count(List<String> calls, String name) {
    return calls.stream().filter(call -> call.startsWith(name + "(")).count();
  }
}
