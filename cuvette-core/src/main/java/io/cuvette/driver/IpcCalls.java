package io.cuvette.driver;

/**
 * Driver calls that share memory and events with other processes. What crosses the border is a
 * descriptor of the operating system or {@link #HANDLE_BYTES} opaque bytes; neither is a secret,
 * and neither protects against a process that makes them up. Handles of another length are an
 * {@link IllegalArgumentException}. Thread-safe.
 */
public interface IpcCalls {

  /** The size of CUmemPoolPtrExportData, CUipcMemHandle and CUipcEventHandle. */
  int HANDLE_BYTES = 64;

  /**
   * A descriptor that another process can import the pool from; it is the caller's to close. The
   * pool must have been made with handle type 1 (cuMemPoolExportToShareableHandle).
   */
  int memPoolExportToShareableHandle(long pool);

  /**
   * A pool of another process, from which nothing can be allocated; the descriptor stays the
   * caller's to close (cuMemPoolImportFromShareableHandle).
   */
  long memPoolImportFromShareableHandle(int descriptor);

  /**
   * What another process imports one allocation of an exported pool by (cuMemPoolExportPointer).
   */
  byte[] memPoolExportPointer(long address);

  /**
   * Memory of another process, whose allocation must be complete before it is touched; {@link
   * OrderedCalls#memFreeAsync} gives it back, before the exporter's own free
   * (cuMemPoolImportPointer). Two imports of the same bytes at once are not safe on every driver.
   */
  long memPoolImportPointer(long pool, byte[] handle);

  /** What another process opens the whole allocation at an address by (cuIpcGetMemHandle). */
  byte[] ipcGetMemHandle(int device, long address);

  /**
   * Memory of another process, from its first byte; not in the process that made it
   * (cuIpcOpenMemHandle, with lazy peer access).
   */
  long ipcOpenMemHandle(int device, byte[] handle);

  /** Gives back what {@link #ipcOpenMemHandle} opened (cuIpcCloseMemHandle). */
  void ipcCloseMemHandle(int device, long address);

  /**
   * What another process opens an event by, which was made with flags 4, interprocess, and 2, no
   * timing (cuIpcGetEventHandle).
   */
  byte[] ipcGetEventHandle(int device, long event);

  /**
   * An event of another process; {@link EventCalls#eventDestroy} ends it (cuIpcOpenEventHandle).
   */
  long ipcOpenEventHandle(int device, byte[] handle);
}
