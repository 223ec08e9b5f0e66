package io.cuvette.ffm.part;

import io.cuvette.driver.MathCalls;
import io.cuvette.driver.MathLibrary;
import io.cuvette.ffm.call.Call;
import io.cuvette.ffm.call.CallFrame;
import io.cuvette.ffm.call.Entry;
import java.lang.invoke.MethodHandle;
import org.jspecify.annotations.Nullable;

/**
 * Calls about handles of cuBLAS and cuSOLVER, which take the context that is current. Thread-safe.
 */
public final class FfmMath extends Part implements MathCalls {
  /** libraryPropertyType: MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL. */
  private static final int PROPERTIES = 3;

  /** The part of the driver whose calls start here. */
  public FfmMath(Entry entry) {
    super(entry);
  }

  @Override
  public String mathLibraryVersion(MathLibrary library) {
    MathBinding binding = MathBinding.of(library);
    MethodHandle get = binding.property();
    StringBuilder version = new StringBuilder();
    for (int property = 0; property < PROPERTIES; property++) {
      int which = property;
      long value =
          run(
              binding,
              "getProperty(type=" + property + ")",
              frame -> (int) get.invokeExact(which, frame.out),
              enter());
      version.append(version.isEmpty() ? "" : ".").append((int) value);
    }
    return version.toString();
  }

  @Override
  public long mathHandleCreate(MathLibrary library, int device) {
    MathBinding binding = MathBinding.of(library);
    MethodHandle create = binding.create();
    return run(
        binding,
        "create(device=" + device + ")",
        frame -> (int) create.invokeExact(frame.out),
        enter(device));
  }

  @Override
  public void mathHandleDestroy(MathLibrary library, int device, long handle) {
    MathBinding binding = MathBinding.of(library);
    MethodHandle destroy = binding.destroy();
    free(
        binding,
        "destroy(handle=0x%x, device=%d)".formatted(handle, device),
        _ -> (int) destroy.invokeExact(handle),
        entry.enterToFree(device));
  }

  private static void free(
      MathBinding binding, String call, Call.Function function, @Nullable CallFrame frame) {
    if (frame != null) {
      run(binding, call, function, frame);
    }
  }

  @Override
  public void mathHandleSetStream(MathLibrary library, int device, long handle, long stream) {
    MathBinding binding = MathBinding.of(library);
    MethodHandle set = binding.setStream();
    run(
        binding,
        "setStream(handle=0x%x, stream=0x%x, device=%d)".formatted(handle, stream, device),
        _ -> (int) set.invokeExact(handle, stream),
        enter(device));
  }

  @Override
  public void mathHandleSetWorkspace(int device, long handle, long address, long bytes) {
    MathBinding binding = MathBinding.of(MathLibrary.CUBLAS);
    MethodHandle set = binding.setWorkspace();
    run(
        binding,
        "setWorkspace(handle=0x%x, address=0x%x, bytes=%d, device=%d)"
            .formatted(handle, address, bytes, device),
        _ -> (int) set.invokeExact(handle, address, bytes),
        enter(device));
  }

  private static long run(
      MathBinding binding, String call, Call.Function function, CallFrame frame) {
    int status;
    try {
      status = function.invoke(frame);
    } catch (Throwable e) { // what invokeExact declares
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      throw binding.failed(status, binding.library() + " " + call);
    }
    return result;
  }
}
