/** Which work of which streams is done, or comes before what, without asking the driver. */
@NullMarked
package io.cuvette.internal.clock;

import org.jspecify.annotations.NullMarked;
