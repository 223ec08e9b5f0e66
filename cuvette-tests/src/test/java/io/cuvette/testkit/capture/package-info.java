/**
 * Captures of streams into graphs, by the program and by other libraries, beside everything else.
 */
@NullMarked
package io.cuvette.testkit.capture;

import org.jspecify.annotations.NullMarked;
