package io.cuvette.internal.session;

import io.cuvette.ComputeCapability;
import io.cuvette.DeviceAttribute;
import io.cuvette.EventOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemoryInfo;
import io.cuvette.driver.PriorityRange;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.base.Once;
import io.cuvette.internal.base.SpareHandles;
import java.util.Collections;
import java.util.EnumMap;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** One device of a {@link Session}: one object for each. Thread-safe. */
public final class Device {
  /** CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and MINOR. */
  private static final int MAJOR = 75;

  private static final int MINOR = 76;

  private final Session session;
  private final int id;

  /** Events that order work of the library itself: no graph has one, and nobody queries it. */
  public final SpareHandles spareEvents = new SpareHandles(this::makeEvent, this::destroyEvent);

  private final AtomicLong waits = new AtomicLong();
  private final AtomicLong awaited = new AtomicLong();
  private volatile boolean used;
  private volatile @Nullable Map<DeviceAttribute, Integer> attributes;

  public Device(Session session, int id) {
    this.session = session;
    this.id = id;
  }

  private long makeEvent() {
    return session.driver().events().eventCreate(id, EventFlags.of(EventOptions.ORDER_ONLY));
  }

  private void destroyEvent(long event) {
    session.driver().events().eventDestroy(id, event);
  }

  /** The number of the device. */
  public int id() {
    return id;
  }

  public Session session() {
    return session;
  }

  /** The identity of the device (cuDeviceGetUuid). */
  public UUID uuid() {
    return session.ask(driver -> driver.devices().deviceGetUuid(id));
  }

  /** One attribute (cuDeviceGetAttribute). */
  public int attribute(DeviceAttribute attribute) {
    return attribute(attribute.code());
  }

  /** One attribute by its number. */
  public int attribute(int code) {
    return session.ask(driver -> driver.devices().deviceGetAttribute(code, id));
  }

  /** The generation of the instruction set. */
  public ComputeCapability computeCapability() {
    return new ComputeCapability(attribute(MAJOR), attribute(MINOR));
  }

  /** All attributes that the driver knows, queried once. Unmodifiable. */
  public Map<DeviceAttribute, Integer> attributes() {
    Map<DeviceAttribute, Integer> known = attributes;
    if (known == null) {
      known = Collections.unmodifiableMap(readAttributes());
      attributes = known;
    }
    return known;
  }

  private Map<DeviceAttribute, Integer> readAttributes() {
    Map<DeviceAttribute, Integer> known = new EnumMap<>(DeviceAttribute.class);
    for (DeviceAttribute attribute : DeviceAttribute.values()) {
      try {
        known.put(attribute, attribute(attribute));
      } catch (CudaException e) {
        if (e.status() != CudaStatus.INVALID_VALUE) {
          throw e;
        }
      }
    }
    return known;
  }

  /** The NUMA node of the host that is nearest; negative if there is none, or it is not known. */
  public int nearestNode() {
    try {
      return attribute(DeviceAttribute.HOST_NUMA_ID);
    } catch (CudaException e) {
      if (e.status() != CudaStatus.INVALID_VALUE) {
        throw e;
      }
      return -1; // the driver does not know the question
    }
  }

  /** Free and total memory now (cuMemGetInfo). */
  public MemoryInfo memoryInfo() {
    return ask(driver -> driver.devices().memGetInfo(id));
  }

  /** The memory of the device in bytes (cuDeviceTotalMem). */
  public long totalBytes() {
    return session.ask(driver -> driver.devices().deviceTotalMem(id));
  }

  /** The priorities a stream can have (cuCtxGetStreamPriorityRange). */
  public PriorityRange priorityRange() {
    return ask(driver -> driver.devices().ctxGetStreamPriorityRange(id));
  }

  /** Counts a wait for the device that begins; its number. */
  public long beginWait() {
    return waits.incrementAndGet();
  }

  /** Takes note that a wait has ended, with all work done that there was when it began. */
  public void endWait(long number) {
    awaited.accumulateAndGet(number, Math::max);
  }

  /** How many waits for the device have begun. */
  public long waits() {
    return waits.get();
  }

  /** Whether a wait for the device has ended that began after so many others. */
  public boolean isAwaitedSince(long others) {
    return awaited.get() > others;
  }

  /** The driver for a call that makes the context exist, which closing then waits for. */
  public CudaDriver context() {
    session.checkOpen();
    if (!used) {
      used = true;
    }
    return session.driver();
  }

  public boolean wasUsed() {
    return used;
  }

  /** Asks the driver something that makes the context exist; closing waits for the answer. */
  public <T> T ask(Function<CudaDriver, T> question) {
    context();
    return session.ask(question);
  }

  /** The same for a call without an answer. */
  public void run(Consumer<CudaDriver> call) {
    context();
    session.<@Nullable Void>ask(driver -> {
      call.accept(driver);
      return null;
    });
  }

  /** The number: what is kept by device comes in the same order each time. */
  @Override
  public int hashCode() {
    return id;
  }

  @Override
  public boolean equals(@Nullable Object other) {
    return this == other;
  }

  @Override
  public String toString() {
    return "device " + id;
  }

  /**
   * Waits for the work of all streams, whoever made them: freeing plain memory does (cuMemFree),
   * and lets captures go on. False if there is no memory to free. See {@link DeferredFrees}.
   */
  public boolean awaitWork() {
    CudaDriver driver = session.driver();
    long address;
    try {
      address = driver.memory().memAlloc(id, 1);
    } catch (CudaException e) {
      if (e.status() != CudaStatus.OUT_OF_MEMORY) {
        throw e;
      }
      return false;
    }
    Once freed = new Once();
    Runnable free = () -> freed.free(() -> driver.memory().memFree(id, address));
    try {
      free.run();
    } catch (RuntimeException | Error e) {
      Failures.runAfter(e, free);
      throw e;
    }
    return true;
  }
}
