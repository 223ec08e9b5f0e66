package io.cuvette.ffm;

import io.cuvette.driver.CudaDriver;
import java.lang.invoke.MethodHandle;
import java.util.ArrayList;
import java.util.List;

/**
 * Prints which driver functions work on explicit handles when no context is current: those need no
 * context set around them. Run by hand on a machine with a GPU.
 */
final class ContextProbe {
  private static final List<String> LINES = new ArrayList<>();

  private ContextProbe() {}

  private record Call(String name, MethodHandle function, Object... arguments) {}

  public static void main(String[] arguments) throws InterruptedException {
    try (CudaDriver driver = new FfmDriverProvider().open("")) {
      long stream = driver.streamCreateWithPriority(0, 1, 0);
      long event = driver.eventCreate(0, 0);
      long later = driver.eventCreate(0, 0);
      driver.eventRecord(0, event, stream);
      driver.eventRecord(0, later, stream);
      long memory = driver.memAlloc(0, 4096);
      long spare = driver.memAlloc(0, 4096);
      long pinned = driver.memHostAlloc(0, 4096, 1).address();
      driver.streamSynchronize(0, stream);
      long out = CallFrame.take().out;
      List<Call> calls =
          List.of(
              new Call("cuEventQuery", EventFunctions.QUERY, event),
              new Call("cuEventSynchronize", EventFunctions.SYNCHRONIZE, event),
              new Call("cuEventElapsedTime", EventFunctions.ELAPSED_TIME, out, event, later),
              new Call("cuEventRecord", EventFunctions.RECORD, event, stream),
              new Call("cuStreamQuery", StreamFunctions.QUERY, stream),
              new Call("cuStreamSynchronize", StreamFunctions.SYNCHRONIZE, stream),
              new Call("cuStreamWaitEvent", StreamFunctions.WAIT_EVENT, stream, event, 0),
              new Call("cuStreamGetId", StreamFunctions.GET_ID, stream, out),
              new Call("cuStreamGetFlags", StreamFunctions.GET_FLAGS, stream, out),
              new Call("cuStreamGetPriority", StreamFunctions.GET_PRIORITY, stream, out),
              new Call("cuStreamGetDevice", StreamFunctions.GET_DEVICE, stream, out),
              new Call("cuStreamIsCapturing", CaptureFunctions.IS_CAPTURING, stream, out),
              new Call("cuStreamBeginCapture", CaptureFunctions.BEGIN, stream, 2),
              new Call("cuStreamEndCapture", CaptureFunctions.END, stream, out),
              new Call("cuMemcpyAsync", TransferFunctions.COPY, memory, spare, 4096L, stream),
              new Call("cuMemcpyAsync to host", TransferFunctions.COPY, pinned, memory, 8L, stream),
              new Call("cuMemsetD8Async", TransferFunctions.FILL_8, memory, 1, 4096L, stream),
              new Call("cuMemsetD32Async", TransferFunctions.FILL_32, memory, 1, 1024L, stream),
              new Call(
                  "cuPointerGetAttribute", MemoryFunctions.POINTER_GET_ATTRIBUTE, out, 9, memory),
              new Call("cuMemGetInfo", MemoryFunctions.GET_INFO, out, out + 8),
              new Call("cuMemAlloc", MemoryFunctions.ALLOC, out, 4096L),
              new Call(
                  "cuLaunchHostFunc",
                  StreamFunctions.LAUNCH_HOST_FUNC,
                  stream,
                  HostFunctions.ENTRY,
                  0L),
              new Call("cuEventCreate", EventFunctions.CREATE, out, 0),
              new Call("cuMemFreeHost", MemoryFunctions.FREE_HOST, pinned),
              new Call("cuMemFree", MemoryFunctions.FREE, spare),
              new Call("cuEventDestroy", EventFunctions.DESTROY, later),
              new Call("cuStreamDestroy", StreamFunctions.DESTROY, stream));
      run(calls);
    }
    LINES.forEach(System.out::println);
  }

  private static void run(List<Call> calls) throws InterruptedException {
    // A new thread of the operating system has no context.
    Thread thread = Thread.ofPlatform().start(() -> calls.forEach(ContextProbe::probe));
    thread.join();
  }

  private static void probe(Call call) {
    try {
      int status = (int) call.function().invokeWithArguments(call.arguments());
      LINES.add("%-24s %d without a context".formatted(call.name(), status));
    } catch (Throwable e) {
      LINES.add(call.name() + " " + e);
    }
  }
}
