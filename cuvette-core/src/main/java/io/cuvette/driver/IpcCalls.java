package io.cuvette.driver;

/**
 * Driver calls that share memory and events with other processes. They are passed as a descriptor
 * of the operating system or as {@link #HANDLE_BYTES} opaque bytes; neither is a secret, and
 * neither protects against a process that invents them. Handles of another length are an {@link
 * IllegalArgumentException}. Thread-safe.
 */
public interface IpcCalls {

  /** The size of CUmemPoolPtrExportData, CUipcMemHandle and CUipcEventHandle. */
  int HANDLE_BYTES = 64;

  /**
   * {@return a descriptor by which another process imports the pool; the caller closes it} The pool
   * must have been made with handle type 1 (cuMemPoolExportToShareableHandle).
   *
   * @param pool the handle of the pool
   * @throws CudaException if the driver reports an error
   */
  int memPoolExportToShareableHandle(long pool);

  /**
   * Imports a pool of another process, from which nothing can be allocated
   * (cuMemPoolImportFromShareableHandle).
   *
   * @param descriptor the descriptor of the pool, which stays open
   * @return the handle of the pool
   * @throws CudaException if the driver reports an error
   */
  long memPoolImportFromShareableHandle(int descriptor);

  /**
   * {@return the handle by which another process imports one allocation of an exported pool
   * (cuMemPoolExportPointer)}
   *
   * @param address the first address of an allocation of the pool
   * @throws CudaException if the driver reports an error
   */
  byte[] memPoolExportPointer(long address);

  /**
   * Imports memory of another process, whose allocation must be complete before it is used; {@link
   * OrderedCalls#memFreeAsync} frees it, before the exporter frees its own
   * (cuMemPoolImportPointer). Two imports of the same bytes at once are not safe on every driver.
   *
   * @param pool the handle of the pool
   * @param handle the {@value #HANDLE_BYTES} bytes that the exporter got
   * @return the first address of the allocation
   * @throws CudaException if the driver reports an error
   */
  long memPoolImportPointer(long pool, byte[] handle);

  /**
   * {@return the handle by which another process opens the whole allocation at an address
   * (cuIpcGetMemHandle)}
   *
   * @param device the device, from 0
   * @param address any address in the allocation
   * @throws CudaException if the driver reports an error
   */
  byte[] ipcGetMemHandle(int device, long address);

  /**
   * Opens memory of another process, from its first byte; fails in the process that allocated it
   * (cuIpcOpenMemHandle, with lazy peer access).
   *
   * @param device the device, from 0
   * @param handle the {@value #HANDLE_BYTES} bytes that the exporter got
   * @return the first address of the allocation
   * @throws CudaException if the driver reports an error
   */
  long ipcOpenMemHandle(int device, byte[] handle);

  /**
   * Closes what {@link #ipcOpenMemHandle} opened (cuIpcCloseMemHandle).
   *
   * @param device the device, from 0
   * @param address the address that was opened
   * @throws CudaException if the driver reports an error
   */
  void ipcCloseMemHandle(int device, long address);

  /**
   * {@return the handle by which another process opens an event made with flags 4, interprocess,
   * and 2, no timing (cuIpcGetEventHandle)}
   *
   * @param device the device, from 0
   * @param event the handle of the event
   * @throws CudaException if the driver reports an error
   */
  byte[] ipcGetEventHandle(int device, long event);

  /**
   * Opens an event of another process, which {@link EventCalls#eventDestroy} destroys
   * (cuIpcOpenEventHandle).
   *
   * @param device the device, from 0
   * @param handle the {@value #HANDLE_BYTES} bytes that the exporter got
   * @return the handle of the event
   * @throws CudaException if the driver reports an error
   */
  long ipcOpenEventHandle(int device, byte[] handle);
}
