/** Copies with a completion, until which both ends stay. */
@NullMarked
package io.cuvette.internal.completion;

import org.jspecify.annotations.NullMarked;
