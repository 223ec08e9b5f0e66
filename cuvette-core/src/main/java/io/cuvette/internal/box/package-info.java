/** Copies of rows that lie apart, and of many ranges at once. */
@NullMarked
package io.cuvette.internal.box;

import org.jspecify.annotations.NullMarked;
