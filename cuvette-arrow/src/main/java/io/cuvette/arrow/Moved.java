package io.cuvette.arrow;

import java.lang.ref.Reference;

/** An array that was moved out of the structure of its producer, which is to be released once. */
record Moved(ArrayStructure structure, long callback) {
  void release() {
    structure.setRelease(callback);
    try {
      NativeMemory.calls().call(callback, structure.memory().address());
    } finally {
      Reference.reachabilityFence(structure);
    }
  }
}
