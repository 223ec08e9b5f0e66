package io.cuvette;

import io.cuvette.driver.DescriptorCalls;
import java.lang.ref.Cleaner;

/**
 * A descriptor of the operating system that an object closes, or the collector once that object was
 * forgotten. It is closed once, as the system gives its number to the next file. Thread-safe.
 */
final class OwnedDescriptor implements Runnable {
  private static final Cleaner CLEANER = Cleaner.create();

  private final DescriptorCalls calls;
  private final int number;
  private final Cleaner.Cleanable end;
  private volatile boolean exposed;

  OwnedDescriptor(Object owner, DescriptorCalls calls, int number) {
    this.calls = calls;
    this.number = number;
    this.end = CLEANER.register(owner, this);
  }

  int number() {
    return number;
  }

  /** Somebody may use the number without the owner, so that the collector has to leave it open. */
  void expose() {
    exposed = true;
  }

  void close() {
    exposed = false;
    end.clean();
  }

  /** Part of {@link #close} and of the collector's work. */
  @Override
  public void run() {
    if (!exposed) {
      Closing.close(calls, number);
    }
  }
}
