package io.cuvette.examples;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.NativeFunctionResource;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.SimulatedDriver;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicInteger;

/** An allocator that is a pair of C functions. Stateless. */
final class NativeFunctionsExample {
  private static final long MOST = 1L << 20;

  private NativeFunctionsExample() {}

  static void run(Cuda cuda, Output out) {
    if (cuda.driver() instanceof SimulatedDriver driver) {
      onSimulatedDevice(cuda, driver, out);
    } else {
      out.say("A pair of C functions is an allocator too: new NativeFunctionResource(");
      out.say("malloc, free, parameter, owner) with their addresses from your library");
      out.say("(SymbolLookup.libraryLookup, which needs --enable-native-access). There is no");
      out.say("such library here to show it with.");
    }
  }

  /** The simulated driver lets Java stand for the C functions. */
  private static void onSimulatedDevice(Cuda cuda, SimulatedDriver driver, Output out) {
    AtomicInteger live = new AtomicInteger();
    long malloc =
        driver.registerMalloc((parameter, bytes, device) -> {
          if (bytes > MOST) {
            return 0;
          }
          live.incrementAndGet();
          return driver.memory().memAlloc(device, bytes);
        });
    long free =
        driver.registerFree((parameter, address, device) -> {
          live.decrementAndGet();
          driver.memory().memFree(device, address);
        });
    NativeFunctionResource resource =
        new NativeFunctionResource(
            MemorySegment.ofAddress(malloc),
            MemorySegment.ofAddress(free),
            MemorySegment.NULL,
            driver);
    try (Buffer buffer = resource.allocate(1000, cuda.currentStream())) {
      buffer.fill((byte) 1);
      out.check("live blocks of the C functions", live.get(), 1);
    }
    out.check("live blocks after close", live.get(), 0);
    out.say("NULL is out of memory:");
    try (Buffer buffer = resource.allocate(MOST + 1, cuda.currentStream())) {
      throw new WrongResultException("%s where there is no memory".formatted(buffer));
    } catch (CudaException e) {
      out.check("status", e.status(), CudaStatus.OUT_OF_MEMORY);
    }
  }
}
