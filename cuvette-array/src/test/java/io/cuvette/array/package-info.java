/** Tests of arrays. */
@NullMarked
package io.cuvette.array;

import org.jspecify.annotations.NullMarked;
