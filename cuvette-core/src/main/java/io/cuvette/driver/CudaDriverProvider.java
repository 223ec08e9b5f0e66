package io.cuvette.driver;

/** Opens drivers of one kind; found with {@link java.util.ServiceLoader}. Thread-safe. */
public interface CudaDriverProvider {

  /** {@return the name that a device specification starts with: {@code gpu} or {@code sim}} */
  String name();

  /**
   * {@return whether {@link #open} with no settings would work: a driver is installed and has a
   * device} Never throws.
   */
  boolean isAvailable();

  /**
   * Opens a driver.
   *
   * @param settings the text after the colon of a device specification, such as {@code
   *     devices=2,seed=7}, or the empty string
   * @return the driver, which the caller closes
   * @throws IllegalArgumentException if the settings are wrong
   * @throws CudaException if there is no usable driver or no device; the message says what to do
   */
  CudaDriver open(String settings);
}
