package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.instrument.DriverProxy;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What the driver is asked once, however often users ask, and once more where it refused. */
@Timeout(60)
class ExportedOnceTest {
  private static final int BYTES = 4096;

  private final Map<String, AtomicInteger> calls = new ConcurrentHashMap<>();

  /** What the calls of a name fail with. */
  private final Map<String, CudaStatus> refusals = new ConcurrentHashMap<>();

  private final Cuda cuda =
      Cuda.open(
          CudaOptions.simulated()
              .withDecorator(driver ->
                  DriverProxy.of((method, arguments) -> {
                    String name = method.getName();
                    int count = counted(name).incrementAndGet();
                    CudaStatus refusal = refusals.get(name);
                    if (refusal != null) {
                      throw new CudaException(refusal, name, "the test's");
                    }
                    return name.equals("memPoolExportPointer") || name.equals("ipcGetEventHandle")
                        ? handle(count)
                        : DriverProxy.forward(driver, method, arguments);
                  })));
  private final CudaStream stream = cuda.device(0).createStream();

  @AfterEach
  void close() {
    cuda.close();
  }

  private AtomicInteger counted(String name) {
    return calls.computeIfAbsent(name, _ -> new AtomicInteger());
  }

  private static byte[] handle(int number) {
    byte[] handle = new byte[64];
    handle[0] = (byte) number;
    return handle;
  }

  @Test
  void bufferOfASharedPool_hasOneHandle_withAllItsParts() {
    try (DeviceMemoryResource resource =
        new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS)) {
      DeviceBuffer alone = resource.allocate(BYTES, stream);
      assertThatThrownBy(alone::descriptor).isInstanceOf(IllegalStateException.class);
      resource.pool().memory().shareAs(BufferDescriptor.Kind.DEVICE_POOL);
      DeviceBuffer first = resource.allocate(BYTES, stream);
      DeviceBuffer second = resource.allocate(BYTES, stream);
      refusals.put("memPoolExportPointer", CudaStatus.NOT_PERMITTED);
      assertThatThrownBy(first::descriptor).isInstanceOf(CudaException.class);
      refusals.clear();
      counted("memPoolExportPointer").set(0);
      BufferDescriptor descriptor = first.descriptor();
      assertThat(first.descriptor()).isEqualTo(descriptor);
      assertThat(first.slice(64, 8).descriptor().offset()).isEqualTo(64);
      assertThat(first.descriptor()).isEqualTo(descriptor);
      assertThat(counted("memPoolExportPointer")).hasValue(1);
      assertThat(second.descriptor()).isNotEqualTo(descriptor);
      assertThat(second.descriptor()).isEqualTo(second.descriptor());
      assertThat(counted("memPoolExportPointer")).hasValue(2);
    }
  }

  @Test
  void event_hasOneHandle() {
    EventOptions shared = new EventOptions(false, false, true);
    try (CudaEvent first = cuda.device(0).createEvent(shared);
        CudaEvent second = cuda.device(0).createEvent(shared)) {
      refusals.put("ipcGetEventHandle", CudaStatus.NOT_PERMITTED);
      assertThatThrownBy(first::descriptor).isInstanceOf(CudaException.class);
      refusals.clear();
      counted("ipcGetEventHandle").set(0);
      EventDescriptor descriptor = first.descriptor();
      assertThat(first.descriptor()).isEqualTo(descriptor);
      assertThat(counted("ipcGetEventHandle")).hasValue(1);
      assertThat(second.descriptor()).isNotEqualTo(descriptor);
      assertThat(counted("ipcGetEventHandle")).hasValue(2);
    }
  }

  /** A graph that has it may record it whenever it runs. */
  @Test
  void eventThatOnlyAGraphRecords_isRecorded_andMeasures() {
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0));
        CudaEvent start = cuda.device(0).createEvent(new EventOptions(false, true, false));
        CudaEvent end = cuda.device(0).createEvent(new EventOptions(false, true, false))) {
      assertThat(end.isRecorded()).isFalse();
      start.record(stream);
      assertThatThrownBy(() -> CudaEvent.elapsedMillis(start, end))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("was not recorded");
      GraphNode _ = definition.root().record(end);
      assertThat(end.isRecorded()).isTrue();
      try (CudaGraphExec executable = definition.graph().instantiate()) {
        executable.launch(stream);
        stream.synchronize();
        assertThat(end.isDone()).isTrue();
        assertThat(CudaEvent.elapsedMillis(start, end)).isNotNegative();
      }
    }
  }

  /** The others' stays for their next allocation. */
  @Test
  void waitForOneStream_givesBackWhatIsIdleOfThatAlone() {
    try (DeviceMemoryResource resource =
        new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS)) {
      CudaStream other = cuda.device(0).createStream();
      CudaStream third = cuda.device(0).createStream();
      for (CudaStream waits : new CudaStream[] {stream, other, third}) {
        for (CudaStream each : new CudaStream[] {stream, other, third}) {
          resource.allocate(BYTES, each).close();
        }
        counted("memFreeAsync").set(0);
        waits.synchronize();
        assertThat(counted("memFreeAsync")).as("%s", waits).hasValue(1);
        counted("memAllocFromPoolAsync").set(0);
        for (CudaStream each : new CudaStream[] {stream, other, third}) {
          resource.allocate(BYTES, each).close();
        }
        assertThat(counted("memAllocFromPoolAsync")).as("%s", waits).hasValue(1);
        cuda.device(0).synchronize();
        assertThat(counted("memFreeAsync")).as("of all").hasValue(4);
      }
    }
  }

  /** How often the driver gets memory back as a buffer is closed, after something was done. */
  private <B extends Buffer> long freedAtOnce(B buffer, Consumer<B> before) {
    before.accept(buffer);
    counted("memFreeAsync").set(0);
    buffer.close();
    return counted("memFreeAsync").get();
  }

  /** The next buffer would find traces of the one before, or others would find the next one's. */
  @Test
  void memoryThatOthersKnow_orThatHasAdvice_goesBackAtOnce_andOtherIsKept() {
    CudaStream other = cuda.device(0).createStream();
    try (DeviceMemoryResource resource =
            new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
        ManagedMemoryResource managed =
            new ManagedMemoryResource(cuda, ManagedMemoryResourceOptions.DEFAULTS)) {
      resource.pool().memory().shareAs(BufferDescriptor.Kind.DEVICE_POOL);
      assertThat(freedAtOnce(resource.allocate(BYTES, stream), _ -> {})).isZero();
      assertThat(freedAtOnce(resource.allocate(BYTES, stream), each -> each.recordUse(stream)))
          .as("used at home")
          .isZero();
      assertThat(freedAtOnce(resource.allocate(BYTES, stream), each -> each.recordUse(other)))
          .as("used elsewhere")
          .isOne();
      assertThat(freedAtOnce(resource.allocate(BYTES, stream), DeviceBuffer::descriptor))
          .as("exported")
          .isOne();
      assertThat(freedAtOnce(resource.allocate(64L << 20, stream), _ -> {})).isEqualTo(0);
      assertThat(freedAtOnce(resource.allocate((64L << 20) + 1, stream), _ -> {}))
          .as("large")
          .isOne();
      assertThat(freedAtOnce(managed.allocate(BYTES, stream), _ -> {})).isZero();
      MemoryLocation host = MemoryLocation.host();
      List<Consumer<ManagedBuffer>> advices =
          List.of(
              each -> each.prefetch(host, stream),
              each -> each.advise(MemoryAdvice.SET_READ_MOSTLY, host),
              each -> each.setReadMostly(true),
              each -> each.setReadMostly(false),
              each -> each.setPreferredLocation(host),
              ManagedBuffer::clearPreferredLocation,
              each -> each.setAccessedBy(List.of(MemoryLocation.device(cuda.device(0)))));
      for (int i = 0; i < advices.size(); i++) {
        assertThat(freedAtOnce(managed.allocate(BYTES, stream), advices.get(i)))
            .as("advice %d", i)
            .isOne();
      }
    }
  }
}
