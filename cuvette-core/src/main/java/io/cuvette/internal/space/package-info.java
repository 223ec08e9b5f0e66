/**
 * Ranges of addresses in which memory is mapped here and there: what is in use, free, and a hole.
 */
@NullMarked
package io.cuvette.internal.space;

import org.jspecify.annotations.NullMarked;
