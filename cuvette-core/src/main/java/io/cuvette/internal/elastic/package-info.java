/** The caching pool that maps memory where its blocks need it. */
@NullMarked
package io.cuvette.internal.elastic;

import org.jspecify.annotations.NullMarked;
