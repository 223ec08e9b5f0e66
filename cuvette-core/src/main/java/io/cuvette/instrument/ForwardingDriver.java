package io.cuvette.instrument;

import io.cuvette.driver.BlockListener;
import io.cuvette.driver.CaptureCalls;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.DeviceCalls;
import io.cuvette.driver.EventCalls;
import io.cuvette.driver.GraphCalls;
import io.cuvette.driver.IpcCalls;
import io.cuvette.driver.KernelCalls;
import io.cuvette.driver.MathCalls;
import io.cuvette.driver.MemoryCalls;
import io.cuvette.driver.NativeCalls;
import io.cuvette.driver.OrderedCalls;
import io.cuvette.driver.PoolCalls;
import io.cuvette.driver.StreamCalls;
import io.cuvette.driver.TransferCalls;
import io.cuvette.driver.VirtualCalls;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * A driver whose parts are those of another one; a decorator overrides the parts that it cares for,
 * with a {@link ForwardingMemory} and its like where it changes single calls. Thread-safe if the
 * other driver is.
 */
public abstract class ForwardingDriver implements CudaDriver {
  private final CudaDriver delegate;

  /**
   * Forwards to a driver, which {@link #close} closes.
   *
   * @param delegate the driver or part that calls are forwarded to
   */
  protected ForwardingDriver(CudaDriver delegate) {
    this.delegate = Objects.requireNonNull(delegate, "delegate");
  }

  /** {@return the driver that calls are forwarded to} */
  public final CudaDriver delegate() {
    return delegate;
  }

  @Override
  public String name() {
    return delegate.name();
  }

  @Override
  public boolean isSimulated() {
    return delegate.isSimulated();
  }

  @Override
  public @Nullable BlockListener blockListener() {
    return delegate.blockListener();
  }

  @Override
  public void close() {
    delegate.close();
  }

  @Override
  public String toString() {
    return name();
  }

  @Override
  public DeviceCalls devices() {
    return delegate.devices();
  }

  @Override
  public MemoryCalls memory() {
    return delegate.memory();
  }

  @Override
  public TransferCalls transfers() {
    return delegate.transfers();
  }

  @Override
  public PoolCalls pools() {
    return delegate.pools();
  }

  @Override
  public OrderedCalls ordered() {
    return delegate.ordered();
  }

  @Override
  public StreamCalls streams() {
    return delegate.streams();
  }

  @Override
  public EventCalls events() {
    return delegate.events();
  }

  @Override
  public CaptureCalls captures() {
    return delegate.captures();
  }

  @Override
  public GraphCalls graphs() {
    return delegate.graphs();
  }

  @Override
  public IpcCalls sharing() {
    return delegate.sharing();
  }

  @Override
  public VirtualCalls virtual() {
    return delegate.virtual();
  }

  @Override
  public KernelCalls kernels() {
    return delegate.kernels();
  }

  @Override
  public MathCalls math() {
    return delegate.math();
  }

  @Override
  public NativeCalls natives() {
    return delegate.natives();
  }
}
