package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.cuvette.driver.MathLibrary;
import io.cuvette.instrument.DriverProxy;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.UUID;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Consumer;
import org.assertj.core.api.SoftAssertions;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Whatever takes a stream refuses one that it cannot work on, and does nothing then. */
@Timeout(60)
class StreamsGivenTest {
  private static final int BYTES = 4096;

  /** Calls that queue work, or take memory. */
  private final Queue<String> work = new ConcurrentLinkedQueue<>();

  private final Cuda cuda = open();
  private final Cuda another = open();
  private final CudaDevice device = cuda.device(0);
  private final CudaStream own = device.createStream();
  private final Arena arena = Arena.ofShared();
  private final Map<String, Consumer<CudaStream>> calls = new LinkedHashMap<>();

  private CudaGraphExec executable;

  private Cuda open() {
    return Cuda.open(
        CudaOptions.simulated()
            .withDecorator(driver ->
                DriverProxy.of((method, arguments) -> {
                  String name = method.getName();
                  if (name.startsWith("mem") && (name.contains("Async") || name.contains("Alloc"))
                      || name.contains("graphLaunch")
                      || name.contains("graphUpload")
                      || name.equals("streamWaitEvent")) {
                    work.add(name);
                  }
                  return DriverProxy.forward(driver, method, arguments);
                })));
  }

  @BeforeEach
  void listAll() {
    listPools();
    listCopies();
    try (GraphDefinition definition = new GraphDefinition(device)) {
      executable = definition.graph().instantiate();
    }
    calls.put("launch of a graph", s -> executable.launch(s));
    calls.put("upload of a graph", s -> executable.upload(s));
    calls.put("setCurrentStream", cuda::setCurrentStream);
    calls.put("useCublas", device::useCublas);
    calls.put("useLibrary", s -> device.useLibrary(MathLibrary.CUSOLVER_DN, s, 0));
    BufferDescriptor descriptor =
        new BufferDescriptor(
            BufferDescriptor.Kind.PLAIN, 0, 64, new UUID(7, 7), new UUID(0, 0), new byte[64]);
    calls.put("importBuffer", s -> device.importBuffer(descriptor, s));
    work.clear();
  }

  private void listPools() {
    calls.put("Cuda.allocate", s -> cuda.allocate(BYTES, s));
    Map<String, MemoryResource> resources =
        Map.of(
            "MemoryPool", new MemoryPool(cuda),
            "ElasticMemoryPool", new ElasticMemoryPool(cuda),
            "AsyncMemoryPool", new AsyncMemoryPool(cuda),
            "DeviceMemoryResource",
                new DeviceMemoryResource(device, DeviceMemoryResourceOptions.DEFAULTS),
            "PinnedMemoryResource",
                new PinnedMemoryResource(cuda, PinnedMemoryResourceOptions.DEFAULTS),
            "ManagedMemoryResource",
                new ManagedMemoryResource(cuda, ManagedMemoryResourceOptions.DEFAULTS));
    resources.forEach((name, resource) -> {
      Buffer open = resource.allocate(BYTES, own);
      calls.put(name + ".allocate", s -> resource.allocate(BYTES, s));
      calls.put(name + ".allocate of nothing", s -> resource.allocate(0, s));
      calls.put(name + ", recordUse", open::recordUse);
      if (resource instanceof DriverPoolResource of) {
        calls.put(name + ".deallocate", s -> of.deallocate(open, s));
        long address = open.address();
        calls.put(name + ".deallocate by address", s -> of.deallocate(address, BYTES, s));
      }
    });
  }

  private void listCopies() {
    Buffer one = MemoryResource.direct().allocate(BYTES, own);
    Buffer two = cuda.allocate(BYTES, own);
    ManagedBuffer managed = cuda.allocateManaged(BYTES);
    PinnedBuffer pinned = cuda.allocatePinned(BYTES);
    MemorySegment host = arena.allocate(BYTES);
    for (Buffer each : List.of(one, two, managed, pinned)) {
      String of = each.getClass().getSimpleName() + " " + each.stream();
      calls.put("copyFrom " + of, s -> one.slice(8, 8).copyFrom(each.slice(0, 8), s));
      calls.put("copyTo " + of, s -> two.slice(8, 8).copyTo(each.slice(0, 8), s));
      calls.put("copyFrom segment " + of, s -> each.copyFrom(host, s));
      calls.put("copyTo segment " + of, s -> each.copyTo(host, s));
      calls.put("copyFromAsync " + of, s -> each.copyFromAsync(host, s).join());
      calls.put("copyToAsync " + of, s -> each.copyToAsync(host, s).join());
      calls.put("fill " + of, s -> each.fill((byte) 1, s));
      calls.put("fill int " + of, s -> each.fill(1, s));
      calls.put("fillShorts " + of, s -> each.fillShorts((short) 1, s));
      calls.put("fillInts " + of, s -> each.fillInts(1, s));
    }
    calls.put("prefetch", s -> managed.prefetch(MemoryLocation.host(), s));
  }

  @AfterEach
  void close() {
    cuda.close();
    another.close();
    arena.close();
  }

  private void check(CudaStream given, Class<?> type, String text) {
    SoftAssertions all = new SoftAssertions();
    work.clear();
    calls.forEach((name, call) -> {
      Throwable thrown = catchThrowable(() -> call.accept(given));
      Throwable failure = thrown instanceof CompletionException ? thrown.getCause() : thrown;
      all.assertThat(failure).as(name).isInstanceOf(type).hasMessageContaining(text);
    });
    all.assertAll();
    assertThat(work).isEmpty();
  }

  @Test
  void streamOfAnotherCuda_isRefused() {
    for (CudaStream each :
        List.of(
            another.device(0).createStream(),
            another.device(0).nullStream(),
            another.device(0).legacyStream(),
            another.device(0).perThreadStream())) {
      check(each, IllegalArgumentException.class, "another Cuda");
    }
  }

  @Test
  void streamThatIsClosed_isRefused() {
    CudaStream closed = device.createStream();
    CudaStream wrapper = device.wrapStream(own.handle(), null);
    closed.close();
    wrapper.close();
    check(closed, IllegalStateException.class, "is closed");
    check(wrapper, IllegalStateException.class, "is closed");
  }

  @Test
  void closedCuda_isWhatIsNamed_whosesoeverTheStreamIs() {
    CudaStream foreign = another.device(0).createStream();
    CudaStream nullStream = device.nullStream();
    cuda.close();
    check(own, IllegalStateException.class, "closed");
    check(nullStream, IllegalStateException.class, "closed");
    calls.keySet().removeIf(name -> name.matches("(Async|Device)Memory\\w+\\.allocate.*"));
    check(foreign, IllegalStateException.class, "closed"); // which those two name
  }
}
