/** Tests of columns on devices. */
@NullMarked
package io.cuvette.arrow;

import org.jspecify.annotations.NullMarked;
