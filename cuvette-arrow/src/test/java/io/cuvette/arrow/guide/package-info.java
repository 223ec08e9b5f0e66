/** The programs of the guide that use columns. */
@NullMarked
package io.cuvette.arrow.guide;

import org.jspecify.annotations.NullMarked;
