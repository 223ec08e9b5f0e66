package io.cuvette;

/** Frees memory when a pool runs out, for example by closing buffers. */
@FunctionalInterface
public interface PressureListener {

  /**
   * Called on the allocating thread, without a lock, and again if what it freed was not enough: in
   * pieces, or taken by others. May close buffers and call CUDA, not allocate from the same pool.
   *
   * @param device the device that is short of memory
   * @param neededBytes the size of the block that was not found
   * @return the bytes freed; 0 if there was nothing to give
   */
  long onPressure(CudaDevice device, long neededBytes);
}
