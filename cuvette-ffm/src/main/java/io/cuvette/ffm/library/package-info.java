/** Finds and loads the driver library, and looks its functions up. */
@NullMarked
package io.cuvette.ffm.library;

import org.jspecify.annotations.NullMarked;
