package io.cuvette;

import java.util.Objects;

/**
 * An object that is open, and where it was made.
 *
 * @param what the object, with its size and address
 * @param bytes the bytes it holds, 0 for what is no memory
 * @param site the stack of the thread that made it
 * @see Cuda#openObjects()
 */
public record OpenObject(String what, long bytes, Throwable site) {
  /** Creates an open object. */
  public OpenObject {
    Objects.requireNonNull(what, "what");
    Objects.requireNonNull(site, "site");
  }
}
