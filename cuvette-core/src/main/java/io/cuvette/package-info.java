/**
 * Devices, streams, events and memory of CUDA for the JVM. {@link io.cuvette.Cuda} is the entry;
 * everything else comes from it.
 *
 * <p>Unless stated otherwise, for all types of this package:
 *
 * <ul>
 *   <li>A {@code null} argument throws a {@link NullPointerException} that names the parameter.
 *   <li>Using an object that is closed, or whose {@link io.cuvette.Cuda} is closed, throws an
 *       {@link IllegalStateException} that names it. {@code close()} may be called again, and what
 *       was fixed when the object was made may still be read.
 *   <li>A call that the driver refuses throws a {@link io.cuvette.driver.CudaException} with the
 *       status, the name of the CUDA function and its arguments.
 *   <li>Arguments are checked before anything changes: a value that is out of range throws an
 *       {@link IllegalArgumentException} with the value and the rule.
 * </ul>
 */
@NullMarked
package io.cuvette;

import org.jspecify.annotations.NullMarked;
