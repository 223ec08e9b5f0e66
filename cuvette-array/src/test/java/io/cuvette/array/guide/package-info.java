/** The programs of the guide. */
@NullMarked
package io.cuvette.array.guide;

import org.jspecify.annotations.NullMarked;
