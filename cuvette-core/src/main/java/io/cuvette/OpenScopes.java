package io.cuvette;

import org.jspecify.annotations.Nullable;

/** The scopes that are open on one thread. Confined to it. */
final class OpenScopes {
  final Thread thread = Thread.currentThread();
  @Nullable Scope innermost;
}
