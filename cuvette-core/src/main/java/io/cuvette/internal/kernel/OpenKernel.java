package io.cuvette.internal.kernel;

import io.cuvette.Dim3;
import io.cuvette.KernelAttribute;
import io.cuvette.LaunchConfig;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.PotentialBlockSize;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import io.cuvette.internal.stream.UsedMemory;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** A kernel of a module, for all devices. It keeps the module reachable. Thread-safe. */
public final class OpenKernel {
  final OpenModule module;
  final long handle;
  private final String name;
  private final @Nullable List<KernelParameter> places;

  /** What it needs and may have on each device, read when it is first launched there. */
  private final AtomicReferenceArray<@Nullable KernelLimits> limits;

  /** Room for the arguments of one launch, taken for it. */
  private final AtomicReference<@Nullable Arguments> room = new AtomicReference<>();

  private volatile @Nullable CheckedConfig checked;

  OpenKernel(OpenModule module, long handle, String name, @Nullable List<KernelParameter> places) {
    this.module = module;
    this.handle = handle;
    this.name = name;
    this.places = places;
    this.limits = new AtomicReferenceArray<>(module.session.devices().size());
  }

  public Session session() {
    return module.session;
  }

  public String name() {
    return name;
  }

  /** The handle of the driver (CUkernel). */
  public long handle() {
    module.ending.checkOpen();
    return handle;
  }

  /** Where each parameter lies; null if the driver does not tell. */
  public @Nullable List<KernelParameter> places() {
    return places;
  }

  public int attribute(KernelAttribute attribute, Device device) {
    return ask(
        device,
        driver -> driver.kernels().kernelGetAttribute(attribute.code(), handle, device.id()));
  }

  public void setAttribute(KernelAttribute attribute, int value, Device device) {
    this.<@Nullable Void>ask(
        device,
        driver -> {
          driver.kernels().kernelSetAttribute(attribute.code(), value, handle, device.id());
          return null;
        });
    limits.set(device.id(), null);
  }

  public int maxActiveBlocks(Device device, int blockThreads, long dynamicSharedBytes) {
    return ask(
        device,
        driver ->
            driver
                .kernels()
                .occupancyMaxActiveBlocksPerMultiprocessor(
                    device.id(), handle, blockThreads, dynamicSharedBytes));
  }

  public PotentialBlockSize maxPotentialBlockSize(
      Device device, long dynamicSharedBytes, int blockLimit) {
    return ask(
        device,
        driver ->
            driver
                .kernels()
                .occupancyMaxPotentialBlockSize(
                    device.id(), handle, dynamicSharedBytes, blockLimit));
  }

  public long availableDynamicSharedBytes(Device device, int blocks, int blockThreads) {
    return ask(
        device,
        driver ->
            driver
                .kernels()
                .occupancyAvailableDynamicSMemPerBlock(device.id(), handle, blocks, blockThreads));
  }

  public int maxActiveClusters(Device device, LaunchConfig config) {
    LaunchShape shape = KernelLimits.shape(config);
    return ask(
        device, driver -> driver.kernels().occupancyMaxActiveClusters(device.id(), handle, shape));
  }

  public int maxPotentialClusterSize(Device device, LaunchConfig config) {
    LaunchShape shape = KernelLimits.shape(config.withCluster(Dim3.ONE));
    return ask(
        device,
        driver -> driver.kernels().occupancyMaxPotentialClusterSize(device.id(), handle, shape));
  }

  /** The most blocks that can be resident on a device at once: those of a cooperative launch. */
  public long maxResidentBlocks(Device device, LaunchConfig config) {
    return limits(device).residentBlocks(this, device, config);
  }

  private <T extends @Nullable Object> T ask(Device device, Function<CudaDriver, T> question) {
    if (device.session() != session()) {
      throw new IllegalArgumentException("%s belongs to another Cuda".formatted(device));
    }
    device.context();
    try {
      return module.ask(question);
    } catch (CudaException e) {
      throw module.explained(e, device);
    }
  }

  KernelLimits limits(Device device) {
    KernelLimits known = limits.get(device.id());
    if (known == null) {
      known = KernelLimits.of(this, device);
      limits.set(device.id(), known);
    }
    return known;
  }

  /** Checks a configuration against a device, once for as long as it is the same. */
  CheckedConfig checked(@Nullable CheckedConfig last, Device device, LaunchConfig config) {
    return last != null && last.device() == device && last.config().equals(config)
        ? last
        : new CheckedConfig(device, config, limits(device).checked(this, device, config));
  }

  /** Launches with arguments that are packed for this launch alone. */
  public void launch(
      OpenStream stream, LaunchConfig config, @Nullable Object[] arguments, ArgumentReader reader) {
    Arguments mine = room.getAndSet(null);
    if (mine == null) {
      mine = new Arguments(this);
    }
    try {
      mine.pack(arguments, reader);
      CheckedConfig last = checked;
      CheckedConfig now = checked(last, mine.deviceOf(stream), config);
      if (now != last) {
        checked = now;
      }
      mine.launch(stream, now.shape());
    } finally {
      mine.clear();
      room.setRelease(mine);
    }
  }

  /** What makes or changes a node of a graph that launches the kernel. */
  @FunctionalInterface
  public interface LaunchNode<T> {
    T set(LaunchShape shape, LaunchParameters parameters);
  }

  /**
   * Has a node of a graph launch it, in the same way.
   *
   * @param use notes what the graph uses
   */
  public <T> T inGraph(
      Device device,
      LaunchConfig config,
      @Nullable Object[] arguments,
      ArgumentReader reader,
      Consumer<UsedMemory> use,
      LaunchNode<T> node) {
    if (device.session() != session()) {
      throw new IllegalArgumentException("%s belongs to another Cuda".formatted(device));
    }
    module.ending.checkOpen();
    Arguments packed = new Arguments(this);
    packed.pack(arguments, reader);
    LaunchShape shape = checked(null, device, config).shape();
    return packed.inGraph(device, use, parameters -> node.set(shape, parameters));
  }

  @Override
  public String toString() {
    return "kernel " + name;
  }
}
