package io.cuvette.driver;

import java.util.Optional;
import java.util.ServiceLoader;

/**
 * Calls that pass marks, ranges and names to the tool that observes this process: Nsight Systems,
 * Nsight Compute, Compute Sanitizer or another one that speaks NVTX. They belong to the process and
 * to no driver. A domain of 0 is the default one. Texts have no 0 character. Found with {@link
 * ServiceLoader}. Thread-safe.
 */
public interface NvtxCalls {

  /** {@return the calls of this process; empty if no tool observes it, or no module has them} */
  static Optional<NvtxCalls> find() {
    return ServiceLoader.load(NvtxCalls.class, NvtxCalls.class.getClassLoader()).stream()
        .map(ServiceLoader.Provider::get)
        .filter(NvtxCalls::isListening)
        .findFirst();
  }

  /** {@return whether a tool observes this process; nothing else may be called if not} */
  boolean isListening();

  /** {@return the file of the library that passes the calls on} */
  String library();

  /**
   * Creates a domain (nvtxDomainCreateA). It is never destroyed.
   *
   * @param name its name
   * @return the handle, which is 0 if the tool keeps domains not apart
   */
  long domainCreate(String name);

  /**
   * Names a category of a domain (nvtxDomainNameCategoryA).
   *
   * @param domain the domain
   * @param category the number of the category, from 1
   * @param name its name
   */
  void domainNameCategory(long domain, int category, String name);

  /**
   * {@return the handle of a text, which is the same each time; 0 if the tool takes texts alone
   * (nvtxDomainRegisterStringA)}
   *
   * @param domain the domain
   * @param text the text
   */
  long domainRegisterString(long domain, String text);

  /**
   * Marks this moment (nvtxDomainMarkEx).
   *
   * @param domain the domain
   * @param event what the tool shows
   */
  void domainMark(long domain, NvtxAttributes event);

  /**
   * Begins a range of this OS thread (nvtxDomainRangePushEx).
   *
   * @param domain the domain
   * @param event what the tool shows
   */
  void domainRangePush(long domain, NvtxAttributes event);

  /**
   * Ends the innermost range of this OS thread (nvtxDomainRangePop).
   *
   * @param domain the domain
   */
  void domainRangePop(long domain);

  /**
   * Begins a range that any thread may end (nvtxDomainRangeStartEx).
   *
   * @param domain the domain
   * @param event what the tool shows
   * @return the number of the range
   */
  long domainRangeStart(long domain, NvtxAttributes event);

  /**
   * Ends a range of {@link #domainRangeStart} (nvtxDomainRangeEnd).
   *
   * @param domain the domain
   * @param range the number of the range
   */
  void domainRangeEnd(long domain, long range);

  /**
   * Names a device (nvtxNameCuDeviceA).
   *
   * @param device the device, from 0
   * @param name its name
   */
  void nameDevice(int device, String name);

  /**
   * Names a stream (nvtxNameCuStreamA).
   *
   * @param stream the handle of the stream
   * @param name its name
   */
  void nameStream(long stream, String name);

  /**
   * Declares that memory is given out in parts, and that none of it may be used but the parts that
   * are registered (nvtxMemHeapRegister, NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR).
   *
   * @param address the first address
   * @param bytes the size in bytes
   * @param name what the tool calls the memory
   * @return the handle of the heap; 0 if the tool does not follow memory
   */
  long memHeapRegister(long address, long bytes, String name);

  /**
   * Ends a heap, whose memory is used no more (nvtxMemHeapUnregister).
   *
   * @param heap the handle of the heap
   */
  void memHeapUnregister(long heap);

  /**
   * Declares that a part of a heap may be used (nvtxMemRegionsRegister).
   *
   * @param heap the handle of the heap
   * @param address the first address
   * @param bytes the size in bytes
   */
  void memRegionRegister(long heap, long address, long bytes);

  /**
   * Declares that a part of a heap may be used no more (nvtxMemRegionsUnregister).
   *
   * @param address the first address of the part
   */
  void memRegionUnregister(long address);
}
