package io.cuvette.testkit.whole;

import io.cuvette.AllocationHandle;
import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Buffer;
import io.cuvette.CaptureBody;
import io.cuvette.CaptureOptions;
import io.cuvette.CompilerOptions;
import io.cuvette.CopyBatch;
import io.cuvette.CopyBox;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaGraph;
import io.cuvette.CudaLinker;
import io.cuvette.CudaModule;
import io.cuvette.CudaOptions;
import io.cuvette.CudaProgram;
import io.cuvette.CudaStream;
import io.cuvette.DebugPrintHook;
import io.cuvette.DeviceBuffer;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.Dim3;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.ElasticPoolOptions;
import io.cuvette.EventOptions;
import io.cuvette.GraphDefinition;
import io.cuvette.GraphDependency;
import io.cuvette.GraphMemoryResource;
import io.cuvette.GraphNode;
import io.cuvette.GraphOptions;
import io.cuvette.GrowableBuffer;
import io.cuvette.GrowableOptions;
import io.cuvette.IpcChannel;
import io.cuvette.IpcListener;
import io.cuvette.KernelCode;
import io.cuvette.LaunchConfig;
import io.cuvette.LaunchStream;
import io.cuvette.LineProfileHook;
import io.cuvette.LinkerOptions;
import io.cuvette.ManagedMemoryResource;
import io.cuvette.MemoryHook;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryLocation;
import io.cuvette.MemoryResource;
import io.cuvette.NativeFunctionResource;
import io.cuvette.Nvtx;
import io.cuvette.NvtxDomain;
import io.cuvette.NvtxEvent;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.PageHandles;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.PinnedMemoryResourceOptions;
import io.cuvette.PinnedPoolOptions;
import io.cuvette.PoolOptions;
import io.cuvette.PressureListener;
import io.cuvette.ProgramCache;
import io.cuvette.RecoveryStep;
import io.cuvette.StreamCallback;
import io.cuvette.StreamOptions;
import io.cuvette.driver.BoxCopy;
import io.cuvette.driver.CompilerException;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.FirstFailure;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.MatrixProduct;
import io.cuvette.driver.MatrixType;
import io.cuvette.instrument.DriverProxy;
import io.cuvette.instrument.Faults;
import io.cuvette.instrument.Misuse;
import io.cuvette.instrument.SanitizerDriver;
import io.cuvette.instrument.SanitizerReport;
import io.cuvette.instrument.TraceRing;
import io.cuvette.sim.FreeFunction;
import io.cuvette.sim.GridFunction;
import io.cuvette.sim.KernelFunction;
import io.cuvette.sim.MallocFunction;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedKernel;
import io.cuvette.sim.SimulatedKernels;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.sim.SimulatedParameter;
import io.cuvette.testkit.DriverCall;
import io.cuvette.testkit.FaultSweep;
import io.cuvette.testkit.FaultSweeps;
import io.cuvette.testkit.ScriptedDriver;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.Array;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.UUID;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.LongSupplier;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;

/** One object of everything that can be called or given, on two simulated devices. */
final class NullSamples implements AutoCloseable {
  private final SimulatedDriver driver =
      SimulatedDriver.open(SimulatedOptions.parse("devices=2,memory=1GiB"));
  private final Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDriver(driver));
  private final Path folder = newFolder();
  private final List<Object> objects = new ArrayList<>();
  private final Map<Class<?>, Object> values = new HashMap<>();

  NullSamples() {
    makeObjects(cuda.device(0), cuda.device(0).createStream());
    makeShared(cuda.device(0));
    makeMarks();
    makeKernels();
    makeInstruments();
    makeValues();
  }

  private static GrowableBuffer grown(CudaDevice device) {
    GrowableBuffer buffer = device.growable(1L << 21);
    buffer.grow(4096);
    return buffer;
  }

  private void makeObjects(CudaDevice device, CudaStream stream) {
    objects.add(cuda);
    objects.add(device);
    objects.add(device.profiler());
    objects.add(device.useCublas(stream));
    objects.add(stream);
    objects.add(device.createEvent());
    objects.add(cuda.allocate(4096));
    objects.add(cuda.allocateManaged(4096));
    objects.add(grown(device));
    objects.add(cuda.allocatePinned(4096));
    objects.add(cuda.defaultMemoryPool());
    objects.add(cuda.defaultPinnedMemoryPool());
    objects.add(new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0)));
    objects.add(CopyBox.of(1, 1));
    objects.add(CopyBox.of(1, 1).source());
    objects.add(CopyBatch.of(List.of(), List.of()));
    objects.add(new BoxCopy(new BoxCopy.Side(1, 1, 1), new BoxCopy.Side(2, 1, 1), 1, 1, 1));
    objects.add(new BoxCopy.Side(1, 1, 1));
    objects.add(MemoryResource.direct());
    objects.add(MemoryResource.async());
    objects.add(MemoryResource.managed());
    objects.add(new ManagedMemoryResource(cuda));
    objects.add(driver);
    objects.add(CudaOptions.simulated());
    objects.add(PoolOptions.DEFAULTS);
    objects.add(ElasticPoolOptions.DEFAULTS);
    objects.add(PinnedPoolOptions.DEFAULTS);
    objects.add(SimulatedOptions.DEFAULTS);
    objects.add(new DebugPrintHook(new StringBuilder()));
    objects.add(new LineProfileHook());
    objects.add(new CudaException(CudaStatus.INVALID_VALUE, "call()", "detail"));
    MallocFunction malloc = (_, _, _) -> 0;
    FreeFunction free = (_, _, _) -> {};
    MemorySegment none = MemorySegment.NULL;
    objects.add(
        new NativeFunctionResource(
            MemorySegment.ofAddress(driver.registerMalloc(malloc)),
            MemorySegment.ofAddress(driver.registerFree(free)),
            none,
            null));
    values.put(MallocFunction.class, malloc);
    values.put(FreeFunction.class, free);
  }

  private void makeShared(CudaDevice device) {
    DeviceMemoryResource resource =
        new DeviceMemoryResource(device, DeviceMemoryResourceOptions.DEFAULTS.withIpcEnabled(true));
    AllocationHandle handle = resource.allocationHandle();
    objects.add(resource);
    objects.add(handle);
    DeviceBuffer buffer = resource.allocate(4096);
    objects.add(buffer);
    objects.add(buffer.descriptor());
    CudaEvent event = device.createEvent(EventOptions.ORDER_ONLY.withInterprocess(true));
    objects.add(event);
    objects.add(event.descriptor());
    objects.add(
        new PinnedMemoryResource(
            cuda, PinnedMemoryResourceOptions.DEFAULTS.withIpcEnabled(true).withNumaId(0)));
    ElasticMemoryPool elastic =
        new ElasticMemoryPool(cuda, ElasticPoolOptions.DEFAULTS.withExportable(true));
    Buffer paged = elastic.allocate(4096);
    objects.addAll(List.of(elastic, paged, elastic.export(paged)));
    IpcListener listener = IpcListener.open(folder.resolve("socket"));
    objects.add(listener);
    objects.add(IpcChannel.connect(folder.resolve("socket"), Duration.ofSeconds(40)));
  }

  private void makeMarks() {
    NvtxDomain domain = Nvtx.domain("nulls");
    objects.add(domain);
    objects.add(domain.category(1, "category"));
    objects.add(domain.register("text"));
    objects.add(domain.rangeStart("range"));
    objects.add(NvtxEvent.of("event"));
    objects.add(KernelCode.ofPtx("text"));
    objects.add(CompilerOptions.DEFAULTS);
    objects.add(LinkerOptions.of("sm_90"));
    objects.add(new CudaLinker(LinkerOptions.of("sm_90")));
    objects.add(ProgramCache.none());
    objects.add(CudaProgram.of("int a;").withCache(ProgramCache.none()));
    objects.add(new CompilerException("call()", 6, "status", "log"));
  }

  private void makeKernels() {
    SimulatedKernel kernel = SimulatedKernel.of("ofNulls", _ -> {});
    SimulatedKernels.Registered registered = SimulatedKernels.register(kernel);
    CudaModule module = CudaModule.load(cuda, SimulatedKernels.ptx(List.of(kernel)));
    objects.add(kernel);
    objects.add(registered);
    objects.add(module);
    objects.add(module.kernel("ofNulls"));
    objects.add(module.kernel("ofNulls").pack());
    objects.add(LaunchConfig.of(1, 1));
    objects.add(Dim3.ONE);
    makeGraphs();
    objects.add(SimulatedParameter.INT);
    objects.add(new LaunchParameters(MemorySegment.NULL, List.of()));
    values.put(GridFunction.class, (GridFunction) _ -> {});
    values.put(KernelFunction.class, (KernelFunction) _ -> {});
  }

  private void makeGraphs() {
    try (CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING)) {
      CudaGraph graph = stream.capture(() -> {});
      objects.add(graph);
      objects.add(graph.instantiate());
    }
    GraphDefinition definition = new GraphDefinition(cuda.device(0));
    GraphNode node = definition.root().empty();
    objects.add(definition);
    objects.add(node);
    objects.add(definition.root());
    objects.add(definition.createCondition(1));
    objects.add(new GraphMemoryResource(cuda.device(0)));
    objects.add(node.update());
    objects.add(new GraphDependency(node, node));
    objects.add(cuda.device(0).createGraphMemory());
    objects.add(CaptureOptions.DEFAULTS);
    objects.add(GraphOptions.DEFAULTS);
    objects.add(GrowableOptions.ofMaxBytes(1L << 21));
    values.put(LaunchStream.class, cuda.device(0).nullStream());
    values.put(CaptureBody.class, (CaptureBody<RuntimeException>) () -> {});
  }

  private void makeInstruments() {
    objects.add(new FirstFailure());
    FaultSweep sweep = FaultSweep.over(() -> SimulatedDriver.open(SimulatedOptions.DEFAULTS));
    objects.add(sweep);
    try {
      sweep.run(objects::add).orThrow(); // the driver of a run
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
    objects.add(Faults.none(driver));
    objects.add(SanitizerDriver.throwing(driver));
    objects.add(new TraceRing(10));
    ScriptedDriver script = new ScriptedDriver();
    objects.add(script);
    script.answer(
        "deviceGetCount",
        call -> {
          objects.add(call);
          return call.proceed();
        });
    int _ = script.over(driver).devices().deviceGetCount();
  }

  private void makeValues() {
    values.put(CudaDriver.class, driver);
    values.put(StreamCallback.class, (StreamCallback<Object>) (_, _) -> {});
    values.put(
        StreamCallback.WithStatus.class, (StreamCallback.WithStatus<Object>) (_, _, _) -> {});
    values.put(PressureListener.class, (PressureListener) (_, _) -> 0);
    values.put(FaultSweep.UseCase.class, (FaultSweep.UseCase) _ -> {});
    values.put(FaultSweep.Leftovers.class, (FaultSweep.Leftovers) _ -> List.of());
    values.put(FaultSweeps.CudaUse.class, (FaultSweeps.CudaUse) _ -> {});
    values.put(MemoryLimit.class, MemoryLimit.none());
    values.put(MemoryLocation.class, MemoryLocation.host());
    values.put(AsyncPoolChoice.class, AsyncPoolChoice.ofDefault());
    values.put(
        OutOfDeviceMemoryException.Details.class,
        new OutOfDeviceMemoryException.Details(
            0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, RecoveryStep.LIMIT));
    values.put(MemoryHook.Block.class, new MemoryHook.Block(cuda.device(0), 1, 1, 1, 1));
    values.put(MemoryHook.Growth.class, new MemoryHook.Growth(cuda.device(0), 1, 1));
    values.put(
        SanitizerReport.class, new SanitizerReport(Misuse.values()[0], "message", List.of()));
    values.put(MemorySegment.class, Arena.global().allocate(64));
    values.put(Arena.class, Arena.global());
    MatrixProduct.Operand matrix = new MatrixProduct.Operand(false, 1, 1);
    values.put(MatrixProduct.Operand.class, matrix);
    values.put(
        MatrixProduct.class,
        new MatrixProduct(MatrixType.FLOAT, 1, 1, 1, matrix, matrix, matrix, 1));
    values.put(LaunchShape.class, new LaunchShape(1, 1, 1, 1, 1, 1, 1, 1, 1, 0, false, false));
    values.put(String.class, "1");
    values.put(UUID.class, new UUID(1, 2));
    values.put(Path.class, folder.resolve("nothing"));
    values.put(Duration.class, Duration.ofMillis(1));
    values.put(OptionalInt.class, OptionalInt.empty());
    values.put(List.class, List.of());
    values.put(Class.class, IOException.class);
    values.put(Runnable.class, (Runnable) () -> {});
    values.put(Appendable.class, new StringBuilder());
    values.put(UnaryOperator.class, UnaryOperator.identity());
    values.put(Consumer.class, (Consumer<Object>) _ -> {});
    values.put(Function.class, Function.identity());
    values.put(Method.class, DriverProxy.methods().getFirst());
    values.put(Object[].class, new Object[0]);
    values.put(DriverProxy.Interceptor.class, (DriverProxy.Interceptor) (_, _) -> null);
    values.put(ScriptedDriver.Answer.class, (ScriptedDriver.Answer) DriverCall::proceed);
    values.put(Predicate.class, (Predicate<Object>) _ -> true);
    values.put(Supplier.class, (Supplier<Object>) () -> driver);
    values.put(LongSupplier.class, (LongSupplier) () -> 0);
    values.put(BooleanSupplier.class, (BooleanSupplier) () -> true);
    values.put(Map.class, Map.of());
    values.put(byte[].class, new byte[] {1});
    values.put(long.class, 1L);
    values.put(int.class, 1);
    values.put(short.class, (short) 1);
    values.put(byte.class, (byte) 1);
    values.put(boolean.class, true);
    values.put(double.class, 1.0);
  }

  /** The objects of a type. */
  List<Object> allOf(Class<?> type) {
    return objects.stream().filter(type::isInstance).toList();
  }

  /** Something that can be given for a parameter of a type. */
  Object argument(Class<?> type) {
    Object value = values.get(type);
    if (value != null) {
      return value;
    }
    if (type.isArray()) {
      return Array.newInstance(type.getComponentType(), 0);
    }
    if (type.isEnum()) {
      return type.getEnumConstants()[0];
    }
    for (Object object : objects) {
      if (type.isInstance(object)) {
        return object;
      }
    }
    return defaults(type);
  }

  private static Object defaults(Class<?> type) {
    try {
      return type.getField("DEFAULTS").get(null);
    } catch (ReflectiveOperationException e) {
      throw new AssertionError("no sample of " + type + " for an argument", e);
    }
  }

  /** What the devices hold and what is open. */
  String state() {
    return "%d and %d bytes, %d characters of what is open, device %d, used %d"
        .formatted(
            driver.liveBytes(0),
            driver.liveBytes(1),
            driver.report().length(),
            cuda.currentDevice().id(),
            cuda.defaultMemoryPool().usedBytes());
  }

  private static Path newFolder() {
    try {
      return Files.createTempDirectory("cuvette-nulls");
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  public void close() {
    for (Object object : objects) {
      if (object instanceof IpcListener
          || object instanceof IpcChannel
          || object instanceof PageHandles) {
        try {
          ((AutoCloseable) object).close();
        } catch (Exception e) {
          throw new AssertionError(e);
        }
      }
    }
    cuda.close();
    folder.toFile().delete();
  }
}
