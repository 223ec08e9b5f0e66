package io.cuvette;

/**
 * The numbers of the questions asked about pointers, and of their answers (CUpointer_attribute,
 * CUmemorytype).
 */
final class PointerAttribute {
  static final int MEMORY_TYPE = 2;
  static final int IS_MANAGED = 8;
  static final int DEVICE_ORDINAL = 9;
  static final int IS_LEGACY_IPC_CAPABLE = 10;
  static final int RANGE_START = 11;
  static final int RANGE_SIZE = 12;
  static final int POOL = 17;

  static final int TYPE_HOST = 1;
  static final int TYPE_DEVICE = 2;

  private PointerAttribute() {}
}
