package io.cuvette.ffm.part;

import io.cuvette.ffm.call.Call;
import io.cuvette.ffm.call.CallFrame;
import io.cuvette.ffm.call.Contexts;
import io.cuvette.ffm.call.DriverFunction;
import io.cuvette.ffm.call.Entry;
import io.cuvette.ffm.link.Layouts;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;

/**
 * Calls of the driver about one subject. Thread-safe.
 *
 * <p>Each part binds the functions that it calls: name, CUDA version of the form that is meant,
 * parameters. A function of numbers is a {@link DriverFunction}, one that takes structures or
 * memory is called in a {@link Call}, and frequent calls are written out.
 */
abstract class Part {
  /** CUresult of a call that worked. */
  static final int SUCCESS = Call.SUCCESS;

  static final ValueLayout.OfInt INT = Layouts.INT;
  static final ValueLayout.OfLong SIZE = Layouts.SIZE;
  static final ValueLayout.OfLong POINTER = Layouts.POINTER;
  static final MemoryLayout SEGMENT = Layouts.SEGMENT;
  static final StructLayout LOCATION = Layouts.LOCATION;
  static final MemoryLayout OUT = DriverFunction.OUT;

  /** Where its calls start. */
  final Entry entry;

  Part(Entry entry) {
    this.entry = entry;
  }

  /** See {@link DriverFunction#required}. */
  static DriverFunction required(String format, int version, MemoryLayout... parameters) {
    return DriverFunction.required(format, version, parameters);
  }

  /** See {@link DriverFunction#optional}. */
  static DriverFunction optional(String format, int version, MemoryLayout... parameters) {
    return DriverFunction.optional(format, version, parameters);
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

  /** Undoes something after a failure, which takes along what fails then. */
  static void undo(Runnable undoing, Throwable failure) {
    try {
      undoing.run();
    } catch (RuntimeException e) {
      failure.addSuppressed(e);
    }
  }
}
