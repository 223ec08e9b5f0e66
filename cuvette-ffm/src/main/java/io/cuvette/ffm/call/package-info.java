/**
 * Starts and ends calls of the driver: the frame with its results, the current context and the
 * capture mode of the thread.
 */
@NullMarked
package io.cuvette.ffm.call;

import org.jspecify.annotations.NullMarked;
