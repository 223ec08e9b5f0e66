package io.cuvette.ffm;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.Nvtx;
import io.cuvette.NvtxCategory;
import io.cuvette.NvtxDomain;
import io.cuvette.NvtxEvent;
import io.cuvette.NvtxRange;
import io.cuvette.driver.NvtxCalls;

/** Shows a tool one of everything. */
final class NvtxMain {
  /** The property with the device whose names are shown; simulated if there is none. */
  static final String DEVICE = "nvtx.device";

  private NvtxMain() {}

  /** Prints what it finds, and then whether a range too many is an error. */
  public static void main(String[] arguments) throws InterruptedException {
    System.out.println("listening " + Nvtx.isListening());
    System.out.println("library " + Nvtx.library().orElse("none"));
    Nvtx.mark("plain");
    Nvtx.mark("green", 0);
    Nvtx.mark("no color", Nvtx.NO_COLOR);
    Nvtx.markC("argb", 0x80FF0000);
    Nvtx.mark("zero\0inside \u00e4\u20ac");
    Nvtx.rangePush("outer");
    Nvtx.rangePush("inner", 3);
    Nvtx.rangePushC("innermost", 0);
    System.out.println("depths " + Nvtx.rangePop() + Nvtx.rangePop() + Nvtx.rangePop());
    try (NvtxRange _ = Nvtx.rangeStart("scope")) {
      Nvtx.rangeEnd(Nvtx.rangeStartC("other", 1));
    }
    NvtxDomain domain = Nvtx.domain("solver");
    NvtxCategory category = domain.category(7, "solve");
    NvtxEvent event = NvtxEvent.of(domain.register("step")).category(category);
    domain.mark(event.payload(-5));
    domain.mark(event.payload(2.5).color(9));
    Thread.ofVirtual()
        .start(() -> {
          Nvtx.rangePush("virtual");
          Nvtx.rangePop();
        })
        .join();
    try {
      Nvtx.rangePop();
    } catch (IllegalStateException e) {
      System.out.println(e.getMessage());
    }
    Nvtx.domain("solver").mark("again"); // the same domain
    namesOfCuda();
    NvtxCalls.find().ifPresent(NvtxMain::names);
  }

  /** Of a GPU alone: the tool does not know the devices and streams of a simulation. */
  private static void namesOfCuda() {
    try (Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDevice(System.getProperty(DEVICE, "sim")));
        CudaStream stream = cuda.device(0).createStream()) {
      Nvtx.name(cuda.device(0), "first");
      Nvtx.name(stream, "a stream");
    }
  }

  private static void names(NvtxCalls calls) {
    calls.nameDevice(1, "second");
    calls.nameStream(4711, "copies");
    long heap = calls.memHeapRegister(4096, 8192, "pool");
    calls.memRegionRegister(heap, 4608, 512);
    calls.memRegionUnregister(4608);
    calls.memHeapUnregister(heap);
  }
}
