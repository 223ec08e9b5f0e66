package io.cuvette.testkit.whole;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Buffer;
import io.cuvette.BufferDescriptor;
import io.cuvette.CaptureOptions;
import io.cuvette.CopyBatch;
import io.cuvette.CopyBox;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.ForeignLoan;
import io.cuvette.GraphDefinition;
import io.cuvette.GraphMemory;
import io.cuvette.GraphNode;
import io.cuvette.KernelArguments;
import io.cuvette.LaunchConfig;
import io.cuvette.LibraryHandle;
import io.cuvette.ManagedBuffer;
import io.cuvette.MemoryLocation;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.driver.IpcCalls;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.TestKernels;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What was made before its Cuda was closed is of no use after, and says so. */
@Tag("simulated")
@Timeout(60)
class ClosedCudaTest {
  private static final LaunchConfig SMALL = LaunchConfig.of(1, 32);

  /** Calls that end with the driver alone, which they do not call. */
  private static final Set<String> WITHOUT_DRIVER = Set.of("known kernel", "graph memory");

  private final ScriptedDriver script = new ScriptedDriver();
  private final Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over));
  private final CudaDevice device = cuda.device(0);
  private final CudaStream stream = device.createStream();
  private final CudaStream other = device.createStream();
  private final CudaEvent event = stream.record();
  private final Buffer buffer = cuda.allocate(64, stream);
  private final Buffer source = cuda.allocate(64, stream);
  private final Map<String, ThrowingCallable> calls = new LinkedHashMap<>();

  /**
   * At first while others still use memory, so that nothing but the Cuda is closed; then after the
   * end of all. Also for a moment of the driver's: it has been given back.
   */
  private void refused() {
    ForeignLoan loan = ForeignLoan.of(cuda.allocate(64, other));
    cuda.close();
    Map<String, ThrowingCallable> all = new LinkedHashMap<>(calls);
    calls.keySet().removeAll(WITHOUT_DRIVER);
    allRefused("used by others: ");
    loan.giveBack();
    while (!loan.isOver()) {
      Thread.onSpinWait();
    }
    calls.putAll(all);
    allRefused("");
  }

  private void allRefused(String when) {
    long launches = script.count("graphLaunch") + script.count("launchKernel");
    calls.forEach((name, call) ->
        assertThatThrownBy(call)
            .as("%s%s", when, name)
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("closed"));
    assertThat(script.count("graphLaunch") + script.count("launchKernel")).isEqualTo(launches);
    assertThat(script.count("memcpyAsync") + script.count("memsetD8Async")).isZero();
  }

  @Test
  void buffersAndStreams_areRefused() {
    MemorySegment host = Arena.ofAuto().allocate(64);
    CopyBox box = CopyBox.of(8, 4);
    PinnedBuffer pinned = cuda.allocatePinned(64);
    calls.put("copyFrom", () -> buffer.copyFrom(source));
    calls.put("copyFrom in a stream", () -> buffer.copyFrom(source, stream));
    calls.put("copyFrom a segment", () -> buffer.copyFrom(host));
    calls.put("copyFrom a segment in a stream", () -> buffer.copyFrom(host, stream));
    calls.put("copyTo a segment", () -> buffer.copyTo(host));
    calls.put("copyTo a segment in a stream", () -> buffer.copyTo(host, stream));
    calls.put("copy of pinned memory", () -> pinned.copyFrom(host));
    calls.put("box", () -> buffer.copyFrom(source, box));
    calls.put("box of a segment", () -> buffer.copyTo(host, box, stream));
    calls.put("gatherFrom", () -> buffer.gatherFrom(List.of(host), stream));
    calls.put("scatterTo", () -> buffer.scatterTo(List.of(host)));
    calls.put("batch", () -> CopyBatch.of(List.of(buffer), List.of(source)).copy(stream));
    calls.put("fill", () -> buffer.fill((byte) 1));
    calls.put("fill in a stream", () -> buffer.fill((byte) 1, stream));
    calls.put("recordUse", () -> buffer.recordUse(other));
    calls.put("waitFor a stream", () -> stream.waitFor(other));
    calls.put("waitFor an event", () -> stream.waitFor(event));
    calls.put("record", () -> event.record(stream));
    calls.put("elapsed", () -> CudaEvent.elapsedMillis(event, event));
    calls.put("addCallback", () -> stream.addCallback(() -> {}));
    calls.put("capture", () -> stream.capture(() -> {}));
    calls.put("isCapturing", stream::isCapturing);
    CudaStream own = device.perThreadStream();
    assertThat(device.perThreadStream()).isSameAs(own);
    calls.put("the thread's stream", device::perThreadStream);
    refused();
  }

  @Test
  void graphs_areRefused() {
    GraphMemory memory = device.createGraphMemory();
    CaptureOptions options = CaptureOptions.DEFAULTS.withMemory(memory);
    CudaGraph graph = stream.capture(() -> {});
    CudaGraphExec executable = graph.instantiate();
    GraphDefinition definition = new GraphDefinition(device);
    GraphNode node = definition.root().fill(buffer, (byte) 1);
    CudaGraphExec built = definition.graph().instantiate();
    calls.put("launch", () -> executable.launch(stream));
    calls.put("upload", () -> executable.upload(stream));
    calls.put("update", () -> executable.update(graph));
    calls.put("instantiate", graph::instantiate);
    calls.put("copy", graph::copy);
    calls.put("toDot", () -> graph.toDot(false));
    calls.put("capture", () -> stream.capture(options, () -> {}));
    calls.put("captureChild", () -> stream.captureChild(graph));
    calls.put("definition", () -> new GraphDefinition(device));
    calls.put("node", () -> definition.root().empty());
    calls.put("fill node", () -> definition.root().fill(buffer, (byte) 1));
    calls.put("type", node::type);
    calls.put("parameters", node::parameters);
    calls.put("change", () -> node.update().fill(buffer, (byte) 2));
    calls.put("change in an executable", () -> node.updateIn(built).fill(buffer, (byte) 2));
    calls.put("setEnabledIn", () -> node.setEnabledIn(built, false));
    calls.put("remove", node::remove);
    Map<String, ThrowingCallable> ofEvents = new LinkedHashMap<>();
    ofEvents.put("record node", () -> definition.root().record(event));
    ofEvents.put("wait node", () -> definition.root().waitFor(event));
    calls.putAll(ofEvents);
    refused();
    ofEvents.forEach(
        (name, call) -> assertThatThrownBy(call).as(name).hasMessage("Cuda is closed"));
  }

  /** What is asked is not looked at, be it wrong or none of the driver's business. */
  @Test
  void whatNeedsNoDriver_isRefusedAsWell() {
    PinnedBuffer pinned = cuda.allocatePinned(64);
    ManagedBuffer managed = cuda.allocateManaged(64);
    UUID any = new UUID(1, 2);
    BufferDescriptor pooled =
        new BufferDescriptor(
            BufferDescriptor.Kind.DEVICE_POOL, 0, 64, any, any, new byte[IpcCalls.HANDLE_BYTES]);
    calls.put("segment", pinned::segment);
    calls.put("segment of managed memory", managed::segment);
    calls.put("descriptor", pinned::descriptor);
    calls.put("isReadMostly", managed::isReadMostly);
    calls.put("prefetch", () -> managed.prefetch(MemoryLocation.device(device), stream));
    calls.put("setAccessedBy", () -> managed.setAccessedBy(List.of()));
    calls.put("currentStream", () -> cuda.currentStream(device));
    calls.put("setCurrentDevice", () -> cuda.setCurrentDevice(device));
    calls.put("import of another kind", () -> device.importBuffer(pooled, stream));
    calls.put("wrap of nothing", () -> cuda.wrap(0, 0, null));
    calls.put("wrap of less than nothing", () -> cuda.wrap(0x1000, -1, null));
    calls.put("wrap of nothing on a device", () -> device.wrap(0, 8, null));
    calls.put("adopt of less than nothing", () -> device.adopt(0x1000, -1, () -> {}));
    refused();
  }

  /** What a program has to open again is the Cuda. */
  @Test
  void bufferThatWasClosedBefore_saysThatTheCudaIsClosed() {
    PinnedBuffer pinned = cuda.allocatePinned(64);
    ManagedBuffer managed = cuda.allocateManaged(64);
    List.of(buffer, pinned, managed).forEach(Buffer::close);
    List<ThrowingCallable> uses =
        List.of(
            pinned::segment,
            pinned::descriptor,
            managed::segment,
            managed::isReadMostly,
            () -> buffer.fill((byte) 1),
            () -> buffer.copyFrom(source));
    uses.forEach(use ->
        assertThatThrownBy(use)
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining(" is closed")
            .hasMessageNotContaining("Cuda"));
    cuda.close();
    uses.forEach(use -> assertThatThrownBy(use).hasMessage("Cuda is closed"));
  }

  @Test
  void kernelsAndHandles_areRefused() {
    CudaModule module = TestKernels.launches(cuda);
    CudaKernel kernel = module.kernel("scale");
    KernelArguments packed = kernel.pack(buffer, 2f, 16);
    LibraryHandle handle = device.useCublas(stream);
    calls.put("launch", () -> stream.launch(kernel, SMALL, buffer, 2f, 16));
    calls.put("launch of packed arguments", () -> packed.launch(stream, SMALL));
    calls.put("pack", () -> kernel.pack(buffer, 2f, 16));
    calls.put("kernel", () -> module.kernel("add"));
    calls.put("known kernel", () -> module.kernel("scale"));
    calls.put("kernelNames", module::kernelNames);
    calls.put("maxActiveBlocks", () -> kernel.maxActiveBlocks(device, 32, 0));
    calls.put("load", () -> TestKernels.launches(cuda));
    calls.put("handle", handle::handle);
    calls.put("useCublas", () -> device.useCublas(stream));
    calls.put("cublasHandle", device::cublasHandle);
    refused();
  }

  @Test
  void pools_areRefused() {
    MemoryPool pool = new MemoryPool(cuda);
    AsyncMemoryPool async = new AsyncMemoryPool(cuda);
    PinnedMemoryPool pinned = cuda.defaultPinnedMemoryPool();
    List<MemoryResource> others =
        List.of(
            pool,
            async,
            new ElasticMemoryPool(cuda),
            new DeviceMemoryResource(device),
            MemoryResource.direct(),
            MemoryResource.managed());
    for (long bytes : new long[] {64, 0}) {
      for (MemoryResource each : others) {
        each.allocate(bytes, stream).close(); // what is cached is refused as well
        calls.put("%d bytes of %s".formatted(bytes, each), () -> each.allocate(bytes, stream));
      }
      pinned.allocate(bytes).close();
      calls.put("pinned: " + bytes, () -> pinned.allocate(bytes));
      calls.put("directPinned: " + bytes, () -> cuda.directPinned().allocate(bytes));
    }
    DeviceMemoryResource resource = new DeviceMemoryResource(device);
    calls.put("deallocate", () -> resource.deallocate(buffer.address(), 64));
    calls.put("deallocate nothing", () -> resource.deallocate(0, 0));
    calls.put("deallocate nothing in a stream", () -> resource.deallocate(0, 0, stream));
    calls.put("freeAllBlocks", () -> async.freeAllBlocks(stream));
    calls.put("graph memory", device::createGraphMemory);
    calls.put("graph memory with room", () -> device.createGraphMemory(64));
    calls.put("growable", () -> device.growable(1 << 20));
    calls.put("elastic", () -> new ElasticMemoryPool(cuda));
    calls.put("driver's pool", () -> new DeviceMemoryResource(device));
    calls.put("pool of new ones", () -> new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0)));
    refused();
  }
}
