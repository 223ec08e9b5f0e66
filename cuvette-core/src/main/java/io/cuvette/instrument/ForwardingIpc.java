package io.cuvette.instrument;

import io.cuvette.driver.IpcCalls;
import java.util.Objects;

/**
 * Forwards the ipc calls to those of another driver; a decorator overrides what it changes.
 * Thread-safe if the other driver is.
 */
public abstract class ForwardingIpc implements IpcCalls {
  private final IpcCalls delegate;

  /**
   * Forwards to the part of a driver.
   *
   * @param delegate the driver or part that calls are forwarded to
   */
  protected ForwardingIpc(IpcCalls delegate) {
    this.delegate = Objects.requireNonNull(delegate, "delegate");
  }

  @Override
  public int memPoolExportToShareableHandle(long pool) {
    return delegate.memPoolExportToShareableHandle(pool);
  }

  @Override
  public long memPoolImportFromShareableHandle(int descriptor) {
    return delegate.memPoolImportFromShareableHandle(descriptor);
  }

  @Override
  public byte[] memPoolExportPointer(long address) {
    return delegate.memPoolExportPointer(address);
  }

  @Override
  public long memPoolImportPointer(long pool, byte[] handle) {
    return delegate.memPoolImportPointer(pool, handle);
  }

  @Override
  public byte[] ipcGetMemHandle(int device, long address) {
    return delegate.ipcGetMemHandle(device, address);
  }

  @Override
  public long ipcOpenMemHandle(int device, byte[] handle) {
    return delegate.ipcOpenMemHandle(device, handle);
  }

  @Override
  public void ipcCloseMemHandle(int device, long address) {
    delegate.ipcCloseMemHandle(device, address);
  }

  @Override
  public byte[] ipcGetEventHandle(int device, long event) {
    return delegate.ipcGetEventHandle(device, event);
  }

  @Override
  public long ipcOpenEventHandle(int device, byte[] handle) {
    return delegate.ipcOpenEventHandle(device, handle);
  }
}
