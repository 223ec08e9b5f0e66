/** When work is done: events that mark it, and captures. */
@NullMarked
package io.cuvette.internal.fence;

import org.jspecify.annotations.NullMarked;
