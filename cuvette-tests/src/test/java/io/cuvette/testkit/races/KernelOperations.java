package io.cuvette.testkit.races;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaStream;
import io.cuvette.KernelArguments;
import io.cuvette.KernelAttribute;
import io.cuvette.KernelCode;
import io.cuvette.LaunchConfig;
import io.cuvette.testkit.support.TestKernels;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.function.Function;

/** Operations of modules and kernels. Stateless. */
final class KernelOperations {
  private static final LaunchConfig CONFIG = LaunchConfig.of(1, 32);
  private static final int COUNT = Stage.BYTES / Float.BYTES;

  private KernelOperations() {}

  /** Launches scale. */
  interface Scale {
    void scale(CudaStream stream, LaunchConfig config, Buffer data, float factor, int count);
  }

  static List<Operation> all() {
    List<Operation> all = new ArrayList<>();
    for (Memory memory : List.of(Memory.POOLED, Memory.DIRECT, Memory.MANAGED, Memory.PINNED)) {
      addLaunches(all, memory);
    }
    addModules(all);
    addKernels(all);
    return all;
  }

  private static void addLaunches(List<Operation> all, Memory memory) {
    all.add(
        Operation.of(
            "CudaStream.launch(LaunchableKernel, LaunchConfig, Object[])",
            memory,
            stage -> {
              CudaKernel scale = stage.module().kernel("scale");
              Buffer data = written(stage.buffer(memory));
              CudaStream stream = stage.stream();
              return () -> stream.launch(scale, CONFIG, data, 1f, COUNT);
            }));
    all.add(
        Operation.of(
            "KernelArguments.launch(CudaStream, LaunchConfig)",
            memory,
            stage -> {
              KernelArguments arguments = packed(stage, memory);
              CudaStream stream = stage.stream();
              return () -> arguments.launch(stream, CONFIG);
            }));
    all.add(
        Operation.of(
            "CudaKernel.bind(Class)",
            memory,
            stage -> {
              CudaKernel scale = stage.module().kernel("scale");
              Buffer data = written(stage.buffer(memory));
              CudaStream stream = stage.stream();
              return () -> scale.bind(Scale.class).scale(stream, CONFIG, data, 1f, COUNT);
            }));
    all.add(
        Operation.of(
            "CudaKernel.pack(Object[])",
            memory,
            stage -> {
              CudaKernel scale = stage.module().kernel("scale");
              Buffer data = stage.buffer(memory);
              return () -> scale.pack(data, 1f, COUNT);
            }));
  }

  private static KernelArguments packed(Stage stage, Memory memory) {
    return stage.module().kernel("scale").pack(written(stage.buffer(memory)), 1f, COUNT);
  }

  private static Buffer written(Buffer data) {
    data.fill(0);
    return data;
  }

  private static void addModules(List<Operation> all) {
    all.add(load("CudaModule.load(Cuda, byte[])", cuda -> CudaModule.load(cuda, code())));
    all.add(
        load(
            "CudaModule.load(Cuda, KernelCode)",
            cuda -> CudaModule.load(cuda, KernelCode.of(KernelCode.Kind.PTX, code()))));
    all.add(
        load(
            "CudaModule.shared(Cuda, String, Supplier)",
            cuda -> CudaModule.shared(cuda, "raced", KernelOperations::code)));
    all.add(load("CudaModule.load(Cuda, Path)", KernelOperations::loadFile));
    all.add(module("kernel(String)", module -> module.kernel("scale")));
    all.add(module("kernelNames()", CudaModule::kernelNames));
    all.add(module("close()", CudaModule::close));
  }

  private static byte[] code() {
    return TestKernels.code("launches.ptx");
  }

  private static CudaModule loadFile(Cuda cuda) {
    try {
      Path file = Files.createTempFile("launches", ".ptx");
      try {
        return CudaModule.load(cuda, Files.write(file, code()));
      } finally {
        Files.delete(file);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static Operation load(String method, Function<Cuda, CudaModule> load) {
    return Operation.of(
        method,
        stage -> {
          Cuda cuda = stage.cuda;
          return () -> load.apply(cuda).close();
        });
  }

  private static Operation module(String method, Consumer<CudaModule> body) {
    return Operation.of(
        "CudaModule." + method,
        stage -> {
          CudaModule module = stage.module();
          return () -> body.accept(module);
        });
  }

  private static void addKernels(List<Operation> all) {
    all.add(kernel("handle()", (kernel, _) -> kernel.handle()));
    all.add(
        kernel(
            "attribute(KernelAttribute, CudaDevice)",
            (kernel, device) -> kernel.attribute(KernelAttribute.NUM_REGS, device)));
    all.add(
        kernel(
            "setAttribute(KernelAttribute, int, CudaDevice)",
            (kernel, device) ->
                kernel.setAttribute(KernelAttribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, 64, device)));
    all.add(
        kernel(
            "allowDynamicSharedBytes(CudaDevice, int)",
            (kernel, device) -> kernel.allowDynamicSharedBytes(device, 64)));
    all.add(
        kernel(
            "maxActiveBlocks(CudaDevice, int, long)",
            (kernel, device) -> kernel.maxActiveBlocks(device, 64, 0)));
    all.add(
        kernel(
            "maxPotentialBlockSize(CudaDevice, long, int)",
            (kernel, device) -> kernel.maxPotentialBlockSize(device, 0, 0)));
    all.add(
        kernel(
            "availableDynamicSharedBytes(CudaDevice, int, int)",
            (kernel, device) -> kernel.availableDynamicSharedBytes(device, 1, 64)));
    all.add(
        kernel(
            "maxActiveClusters(CudaDevice, LaunchConfig)",
            (kernel, device) -> kernel.maxActiveClusters(device, CONFIG)));
    all.add(
        kernel(
            "maxPotentialClusterSize(CudaDevice, LaunchConfig)",
            (kernel, device) -> kernel.maxPotentialClusterSize(device, CONFIG)));
    all.add(
        kernel(
            "maxResidentBlocks(CudaDevice, LaunchConfig)",
            (kernel, device) -> kernel.maxResidentBlocks(device, CONFIG)));
  }

  private static Operation kernel(String method, BiConsumer<CudaKernel, CudaDevice> body) {
    return Operation.of(
        "CudaKernel." + method,
        stage -> {
          CudaKernel kernel = stage.module().kernel("scale");
          CudaDevice device = stage.device;
          return () -> body.accept(kernel, device);
        });
  }
}
