package io.cuvette.ffm.part;

import io.cuvette.ffm.call.Call;
import io.cuvette.ffm.call.CallFrame;
import io.cuvette.ffm.call.Contexts;
import io.cuvette.ffm.call.Entry;

/**
 * Calls of the driver about one subject. Thread-safe.
 *
 * <p>Each part binds the functions that it calls: name, CUDA version of the form that is meant,
 * parameters. Frequent calls are written out; the others are a {@link Call}.
 */
interface Part {
  /** CUresult of a call that worked. */
  int SUCCESS = Call.SUCCESS;

  /** Where its calls start. */
  Entry entry();

  /** The devices and their contexts. */
  default Contexts contexts() {
    return entry().contexts();
  }

  /** See {@link Entry#enter()}. */
  default CallFrame enter() {
    return entry().enter();
  }

  /** See {@link Entry#enter(int)}. */
  default CallFrame enter(int device) {
    return entry().enter(device);
  }

  /** See {@link Entry#enterFor}. */
  default CallFrame enterFor(int device, long handle) {
    return entry().enterFor(device, handle);
  }

  /** See {@link Entry#enterAsIs}. */
  default CallFrame enterAsIs(int device) {
    return entry().enterAsIs(device);
  }
}
