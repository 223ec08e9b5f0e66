/**
 * Drivers around a driver, for tests and for finding mistakes: one that checks how memory, streams
 * and events are used, one that makes calls fail, one that records calls, and the sweep that fails
 * every call of a use case in turn. They work over a real device and over the simulated one, and
 * cost nothing where they are not used.
 */
@NullMarked
package io.cuvette.instrument;

import org.jspecify.annotations.NullMarked;
