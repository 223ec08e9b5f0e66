/** What the sanitizer knows of streams and events: which work comes before which. */
@NullMarked
package io.cuvette.instrument.internal.order;

import org.jspecify.annotations.NullMarked;
