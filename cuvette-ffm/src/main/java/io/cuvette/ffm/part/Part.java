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
abstract class Part {
  /** CUresult of a call that worked. */
  static final int SUCCESS = Call.SUCCESS;

  /** Where its calls start. */
  final Entry entry;

  Part(Entry entry) {
    this.entry = entry;
  }

  /** The devices and their contexts. */
  final Contexts contexts() {
    return entry.contexts();
  }

  /** See {@link Entry#enter()}. */
  final CallFrame enter() {
    return entry.enter();
  }

  /** See {@link Entry#enter(int)}. */
  final CallFrame enter(int device) {
    return entry.enter(device);
  }

  /** See {@link Entry#enterFor}. */
  final CallFrame enterFor(int device, long handle) {
    return entry.enterFor(device, handle);
  }

  /** See {@link Entry#enterAsIs}. */
  final CallFrame enterAsIs(int device) {
    return entry.enterAsIs(device);
  }
}
