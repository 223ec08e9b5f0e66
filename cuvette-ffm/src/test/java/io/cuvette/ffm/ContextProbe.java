package io.cuvette.ffm;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.PoolProperties;
import io.cuvette.ffm.call.CallFrame;
import io.cuvette.ffm.call.DriverFunction;
import io.cuvette.ffm.part.FfmCaptures;
import io.cuvette.ffm.part.FfmDevices;
import io.cuvette.ffm.part.FfmEvents;
import io.cuvette.ffm.part.FfmMemory;
import io.cuvette.ffm.part.FfmOrdered;
import io.cuvette.ffm.part.FfmPools;
import io.cuvette.ffm.part.FfmStreams;
import io.cuvette.ffm.part.FfmTransfers;
import io.cuvette.ffm.part.HostFunctions;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Prints which driver functions work when no context is current, and when one is that their handles
 * do not belong to: those need no context set around them. Run by hand on a machine with a GPU.
 */
final class ContextProbe {
  private static final List<String> LINES = new ArrayList<>();
  private static final long OUT = CallFrame.take().out;
  private static final MemorySegment HOST = Arena.global().allocate(8);

  private ContextProbe() {}

  private record Call(String name, MethodHandle function, Object... arguments) {
    Call(String name, DriverFunction function, long... arguments) {
      this(name, function.handle().asSpreader(long[].class, 6), OUT, Arrays.copyOf(arguments, 6));
    }
  }

  /** What the calls are made on. */
  private record Handles(
      long context,
      long stream,
      long event,
      long later,
      long memory,
      long spare,
      long pinned,
      long pool,
      long ordered) {

    static Handles of(CudaDriver driver) {
      long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
      long event = driver.events().eventCreate(0, 0);
      long later = driver.events().eventCreate(0, 0);
      driver.events().eventRecord(0, event, stream);
      driver.events().eventRecord(0, later, stream);
      long pool = driver.pools().memPoolCreate(new PoolProperties(1, 0, 1, 0, 0));
      long ordered = driver.ordered().memAllocFromPoolAsync(0, 4096, pool, stream);
      driver.streams().streamSynchronize(0, stream);
      return new Handles(
          ((FfmDriver) driver).entry().context(0),
          stream,
          event,
          later,
          driver.memory().memAlloc(0, 4096),
          driver.memory().memAlloc(0, 4096),
          driver.memory().memHostAlloc(0, 4096, 1).address(),
          pool,
          ordered);
    }
  }

  public static void main(String[] arguments) throws InterruptedException {
    try (CudaDriver driver = new FfmDriverProvider().open("")) {
      List<Call> first = calls(Handles.of(driver));
      // A new thread of the operating system has no context.
      Thread.ofPlatform().start(() -> run("no context", first)).join();
      List<Call> second = calls(Handles.of(driver));
      Thread.ofPlatform().start(() -> runInOtherContext(second)).join();
    }
    LINES.forEach(System.out::println);
  }

  private static void runInOtherContext(List<Call> calls) {
    try (OtherContext _ = new OtherContext()) {
      run("another context", calls);
    }
  }

  private static void run(String situation, List<Call> calls) {
    LINES.add("with " + situation + ":");
    calls.forEach(ContextProbe::probe);
  }

  private static void probe(Call call) {
    try {
      int status = (int) call.function().invokeWithArguments(call.arguments());
      LINES.add("  %-28s %d".formatted(call.name(), status));
    } catch (Throwable e) {
      LINES.add("  " + call.name() + " " + e);
    }
  }

  private static List<Call> calls(Handles on) {
    List<Call> calls = new ArrayList<>();
    calls.addAll(onEventsAndStreams(on));
    calls.addAll(copiesAndFills(on));
    calls.addAll(onPools(on));
    calls.addAll(others(on));
    return calls;
  }

  private static List<Call> onEventsAndStreams(Handles on) {
    long stream = on.stream;
    return List.of(
        new Call("cuEventQuery", FfmEvents.QUERY, on.event),
        new Call("cuEventSynchronize", FfmEvents.SYNCHRONIZE, on.event),
        new Call("cuEventElapsedTime", FfmEvents.ELAPSED_TIME, on.event, on.later),
        new Call("cuEventRecord", FfmEvents.RECORD, on.event, stream),
        new Call("cuStreamQuery", FfmStreams.QUERY, stream),
        new Call("cuStreamSynchronize", FfmStreams.SYNCHRONIZE, stream),
        new Call("cuStreamWaitEvent", FfmStreams.WAIT_EVENT, stream, on.event, 0),
        new Call("cuStreamGetId", FfmStreams.GET_ID, stream),
        new Call("cuStreamGetFlags", FfmStreams.GET_FLAGS, stream),
        new Call("cuStreamGetPriority", FfmStreams.GET_PRIORITY, stream),
        new Call("cuStreamGetCtx", FfmStreams.GET_CONTEXT, stream),
        new Call("cuStreamIsCapturing", FfmCaptures.IS_CAPTURING, stream, OUT),
        new Call("cuStreamBeginCapture", FfmCaptures.BEGIN, stream, 2),
        new Call("cuStreamEndCapture", FfmCaptures.END, stream),
        new Call("cuLaunchHostFunc", FfmStreams.LAUNCH_HOST_FUNC, stream, HostFunctions.ENTRY, 0L));
  }

  private static List<Call> copiesAndFills(Handles on) {
    long stream = on.stream;
    long memory = on.memory;
    return List.of(
        new Call("cuMemcpyAsync", FfmTransfers.COPY, memory, on.spare, 4096L, stream),
        new Call("cuMemcpyAsync to host", FfmTransfers.COPY, on.pinned, memory, 8L, stream),
        new Call("cuMemcpyHtoDAsync", FfmTransfers.COPY_TO_DEVICE, memory, HOST, 8L, stream),
        new Call("cuMemcpyDtoHAsync", FfmTransfers.COPY_TO_HOST, HOST, memory, 8L, stream),
        new Call(
            "cuMemcpyPeerAsync",
            FfmTransfers.COPY_PEER,
            memory,
            on.context,
            on.spare,
            on.context,
            8L,
            stream),
        new Call("cuMemsetD8Async", FfmTransfers.FILL_8, memory, 1, 4096L, stream),
        new Call("cuMemsetD16Async", FfmTransfers.FILL_16, memory, 1, 2048L, stream),
        new Call("cuMemsetD32Async", FfmTransfers.FILL_32, memory, 1, 1024L, stream));
  }

  private static List<Call> onPools(Handles on) {
    long stream = on.stream;
    long pool = on.pool;
    return List.of(
        new Call("cuMemAllocAsync", FfmOrdered.ALLOC, OUT, 4096L, stream),
        new Call("cuMemAllocFromPoolAsync", FfmOrdered.ALLOC_FROM, OUT, 4096L, pool, stream),
        new Call("cuMemFreeAsync", FfmOrdered.FREE, on.ordered, stream),
        new Call("cuMemPoolGetAttribute", FfmPools.GET_ATTRIBUTE, pool, 7),
        new Call("cuMemPoolSetAttribute", FfmPools.SET_ATTRIBUTE, pool, 4, OUT),
        new Call("cuMemPoolTrimTo", FfmPools.TRIM_TO, pool, 0L),
        new Call("cuDeviceGetDefaultMemPool", FfmPools.DEVICE_GET_DEFAULT, 0),
        new Call("cuDeviceGetMemPool", FfmPools.DEVICE_GET, 0),
        new Call("cuMemPoolDestroy", FfmPools.DESTROY, pool));
  }

  private static List<Call> others(Handles on) {
    return List.of(
        new Call("cuPointerGetAttribute", FfmMemory.POINTER_GET_ATTRIBUTE, 9, on.memory),
        new Call("cuMemGetInfo", FfmDevices.GET_INFO, OUT, OUT + 8),
        new Call("cuMemAlloc", FfmMemory.ALLOC, 4096L),
        new Call("cuEventCreate", FfmEvents.CREATE, OUT, 0),
        new Call("cuMemFreeHost", FfmMemory.FREE_HOST, on.pinned),
        new Call("cuMemFree", FfmMemory.FREE, on.spare),
        new Call("cuEventDestroy", FfmEvents.DESTROY, on.later),
        new Call("cuStreamDestroy", FfmStreams.DESTROY, on.stream));
  }
}
