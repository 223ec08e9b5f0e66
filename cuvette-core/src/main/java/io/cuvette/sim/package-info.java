/**
 * The simulated device: the whole driver seam without a GPU. Streams interleave by a seed, memory
 * is made on first write, and time is counted from figures measured on an H200.
 */
@NullMarked
package io.cuvette.sim;

import org.jspecify.annotations.NullMarked;
