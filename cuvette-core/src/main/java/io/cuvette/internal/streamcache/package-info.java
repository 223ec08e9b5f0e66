/** The cached blocks of a stream, in parts of chunks from upstream. */
@NullMarked
package io.cuvette.internal.streamcache;

import org.jspecify.annotations.NullMarked;
