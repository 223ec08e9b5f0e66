/** Sizes, checks and failures, and what threads wait by. */
@NullMarked
package io.cuvette.internal.base;

import org.jspecify.annotations.NullMarked;
