/**
 * Devices, streams, events and memory of CUDA for the JVM. {@link io.cuvette.Cuda} is the entry;
 * everything else comes from it.
 */
@NullMarked
package io.cuvette;

import org.jspecify.annotations.NullMarked;
