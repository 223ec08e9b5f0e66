/**
 * Decorators of a driver, for tests and for finding mistakes: one checks how memory, streams and
 * events are used, one makes calls fail, one records calls. They work over a real device and over
 * the simulated one, and cost nothing where they are not used.
 */
@NullMarked
package io.cuvette.instrument;

import org.jspecify.annotations.NullMarked;
