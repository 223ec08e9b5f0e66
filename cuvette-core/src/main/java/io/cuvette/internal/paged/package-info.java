/** Memory that is mapped into reserved addresses page by page: ranges that grow and shrink. */
@NullMarked
package io.cuvette.internal.paged;

import org.jspecify.annotations.NullMarked;
