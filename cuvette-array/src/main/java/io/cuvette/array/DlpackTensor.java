package io.cuvette.array;

/**
 * A tensor of DLPack: the address of a structure that whoever has it must delete once, or hand on.
 * It is what a capsule of Python holds. Immutable; the address is taken on trust.
 *
 * @param address of a DLManagedTensorVersioned, or a DLManagedTensor
 * @param isVersioned whether it is the versioned structure, that of DLPack 1.0 and later
 */
public record DlpackTensor(long address, boolean isVersioned) {

  /** Checks the address. */
  public DlpackTensor {
    if (address == 0) {
      throw new IllegalArgumentException("address: 0 (expected: that of a tensor)");
    }
  }

  /**
   * {@return the name of a capsule of Python that holds the tensor, and that nobody has taken it
   * from}
   */
  public String capsuleName() {
    return isVersioned ? "dltensor_versioned" : "dltensor";
  }

  /** {@return the name that who takes the tensor from a capsule gives it} */
  public String usedCapsuleName() {
    return "used_" + capsuleName();
  }

  /**
   * Deletes the tensor by its deleter, as who has no use for it must: after {@link Dlpack#take} has
   * refused it, for example.
   *
   * @throws UnsupportedOperationException without the module of native access
   */
  public void delete() {
    DlpackStructure.of(this).delete();
  }
}
