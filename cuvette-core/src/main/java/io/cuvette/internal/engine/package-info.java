/** The wiring of one Cuda, and its end. */
@NullMarked
package io.cuvette.internal.engine;

import org.jspecify.annotations.NullMarked;
