/** What work is queued in and marked by: streams and events as operations use them. */
@NullMarked
package io.cuvette.internal.order;

import org.jspecify.annotations.NullMarked;
