/**
 * The seam between the library and a CUDA driver: one method for one driver entry point, named
 * after it. Users of the library need only {@link io.cuvette.driver.CudaException} and the small
 * value records; the rest is for those who implement or decorate a driver.
 */
@NullMarked
package io.cuvette.driver;

import org.jspecify.annotations.NullMarked;
