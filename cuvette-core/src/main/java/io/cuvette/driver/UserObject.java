package io.cuvette.driver;

import java.util.Objects;
import java.util.function.BooleanSupplier;

/**
 * An object that graphs can hold references to.
 *
 * @param handle CUuserObject; not valid any more once the last reference is gone
 * @param destroyed whether the last reference is gone; asking makes no call and may be done by any
 *     thread, also after the driver was closed
 */
public record UserObject(long handle, BooleanSupplier destroyed) {
  /** Creates an object. */
  public UserObject {
    Objects.requireNonNull(destroyed, "destroyed");
  }

  /** {@return whether the last reference is gone} */
  public boolean isDestroyed() {
    return destroyed.getAsBoolean();
  }
}
