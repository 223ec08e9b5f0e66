/** The parts of the sanitizer: each checks the calls of one part of the seam, and forwards them. */
@NullMarked
package io.cuvette.instrument.internal.sanitizer;

import org.jspecify.annotations.NullMarked;
