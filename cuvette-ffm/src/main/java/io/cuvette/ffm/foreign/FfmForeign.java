package io.cuvette.ffm.foreign;

import io.cuvette.driver.ForeignCalls;
import io.cuvette.ffm.link.Layouts;
import io.cuvette.ffm.link.NativeAccess;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Objects;
import java.util.function.LongConsumer;

/** {@link ForeignCalls} through the Foreign Function and Memory API. Stateless. */
public final class FfmForeign implements ForeignCalls {
  private static final System.Logger LOGGER = System.getLogger("io.cuvette.foreign");

  /** {@code void (*)(void *)}. */
  private static final FunctionDescriptor TYPE = FunctionDescriptor.ofVoid(Layouts.POINTER);

  private static final MethodHandle FUNCTION = NativeAccess.functions(TYPE);

  /** For the service loader. */
  public FfmForeign() {}

  @Override
  public MemorySegment memory(long address, long bytes) {
    return NativeAccess.memory(address, bytes);
  }

  @Override
  public MemorySegment memory(long address, long bytes, Arena arena) {
    return NativeAccess.memory(address, bytes, arena);
  }

  @Override
  public Runnable holdArena(MemorySegment memory) {
    return ArenaKeeper.of(memory)::letGo;
  }

  @Override
  public long callback(LongConsumer receiver) {
    Objects.requireNonNull(receiver, "receiver");
    LongConsumer guarded = argument -> pass(receiver, argument);
    try {
      MethodHandle accept =
          MethodHandles.publicLookup()
              .findVirtual(
                  LongConsumer.class, "accept", MethodType.methodType(void.class, long.class));
      return NativeAccess.callback(accept.bindTo(guarded), TYPE).address();
    } catch (ReflectiveOperationException e) {
      throw new LinkageError(e.getMessage(), e);
    }
  }

  private static void pass(LongConsumer receiver, long argument) {
    try {
      receiver.accept(argument);
    } catch (Throwable e) { // what leaves a function that C called ends the JVM
      report(e);
    }
  }

  private static void report(Throwable failure) {
    try {
      LOGGER.log(System.Logger.Level.ERROR, "a function that was called from C threw", failure);
    } catch (Throwable _) { // as above: nothing is left to try
    }
  }

  @Override
  public void call(long function, long argument) {
    if (function == 0) {
      throw new IllegalArgumentException("function: 0 (expected: an address)");
    }
    try {
      FUNCTION.invokeExact(MemorySegment.ofAddress(function), argument);
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }
}
