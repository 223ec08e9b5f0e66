/** The calls of the driver, one class for each part of the seam, with what they need in C. */
@NullMarked
package io.cuvette.ffm.part;

import org.jspecify.annotations.NullMarked;
