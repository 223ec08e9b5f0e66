package io.cuvette;

import io.cuvette.internal.devicepool.PoolHook;

/** A hook of the user, as the engine calls it. */
record HookOfUser(Cuda cuda, MemoryHook user) implements PoolHook {
  @Override
  public void beforeGrowth(Call call) {
    user.allocPreprocess(growth(call));
  }

  @Override
  public void afterGrowth(Call call) {
    user.allocPostprocess(growth(call));
  }

  @Override
  public void beforeAllocation(Call call) {
    user.mallocPreprocess(block(call));
  }

  @Override
  public void afterAllocation(Call call) {
    user.mallocPostprocess(block(call));
  }

  @Override
  public void beforeFree(Call call) {
    user.freePreprocess(block(call));
  }

  @Override
  public void afterFree(Call call) {
    user.freePostprocess(block(call));
  }

  private MemoryHook.Growth growth(Call call) {
    return new MemoryHook.Growth(
        cuda.device(call.device().id()), call.blockBytes(), call.address());
  }

  private MemoryHook.Block block(Call call) {
    return new MemoryHook.Block(
        cuda.device(call.device().id()),
        call.requestedBytes(),
        call.blockBytes(),
        call.address(),
        call.id());
  }
}
