package io.cuvette.internal.channel;

import io.cuvette.driver.DescriptorCalls;
import java.lang.ref.Cleaner;

/**
 * A descriptor of the operating system that an object closes, or the collector once an object that
 * {@link #own owns} it was forgotten. It is closed once, as the system gives its number to the next
 * file. Thread-safe.
 */
public final class OwnedDescriptor implements Runnable {
  private static final Cleaner CLEANER = Cleaner.create();

  private final DescriptorCalls calls;
  private final int number;
  private final Cleaner.Cleanable end;
  private volatile boolean closable;

  public OwnedDescriptor(Object owner, DescriptorCalls calls, int number) {
    this.calls = calls;
    this.number = number;
    this.end = CLEANER.register(owner, this);
  }

  public int number() {
    return number;
  }

  /** The owner alone has the number from now on: if it is forgotten, the collector closes it. */
  public void own() {
    closable = true;
  }

  /** Somebody may use the number without the owner, so that the collector has to leave it open. */
  public void expose() {
    closable = false;
  }

  public void close() {
    closable = true;
    end.clean();
  }

  /** Part of {@link #close} and of the collector's work. */
  @Override
  public void run() {
    if (closable) {
      Closing.close(calls, number);
    }
  }
}
