// Rebuild: nvcc -ptx -arch=sm_90 clusters.cu -o clusters.ptx && sed -i 's/^.version .*/.version 8.0/' clusters.ptx
#include <cooperative_groups.h>

/* Each block notes the number that the next block of its cluster has in shared memory. */
extern "C" __global__ void neighbours(int *out) {
  __shared__ int mine;
  auto cluster = cooperative_groups::this_cluster();
  mine = blockIdx.x;
  cluster.sync();
  out[blockIdx.x] = *cluster.map_shared_rank(&mine, (cluster.block_rank() + 1) % cluster.num_blocks());
  cluster.sync();
}

// Each block writes its number; the first one of a cluster adds up those of all, in their shared memory.
extern "C" __global__ void sumClusters(int *out) {
  __shared__ int own;
  cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
  if (threadIdx.x == 0) own = blockIdx.x + 1;
  cluster.sync();
  if (threadIdx.x == 0 && cluster.block_rank() == 0) {
    int sum = 0;
    for (int block = 0; block < cluster.num_blocks(); block++) sum += *cluster.map_shared_rank(&own, block);
    out[blockIdx.x / cluster.num_blocks()] = sum;
  }
  cluster.sync();
}
