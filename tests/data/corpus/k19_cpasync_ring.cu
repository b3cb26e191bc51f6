#include <cuda_pipeline.h>
// 64x64 tiles of a square product through a ring of S stages (S 1: one, waited for at once).
template <int S>
__device__ __forceinline__ void MatMul(const float*a,const float*b,float*c,int n){
__shared__ __align__(16) float A[S][64][16],B[S][16][64];int t=threadIdx.x,r=blockIdx.y*64,q=blockIdx.x*64,x=t%16,y=t/16,T=n/16;
auto f=[&](int i){if(i<T){__pipeline_memcpy_async(&A[i%S][t/4][t%4*4],a+(r+t/4)*n+i*16+t%4*4,16);__pipeline_memcpy_async(&B[i%S][y][x*4],b+(i*16+y)*n+q+x*4,16);}__pipeline_commit();};
for(int i=0;i<S-1;i++)f(i);float s[4][4]={};
for(int i=0;i<T;i++){if(S==1){f(i);}__pipeline_wait_prior(S==1?0:S-2);__syncthreads();if(S>1)f(i+S-1);
for(int k=0;k<16;k++)for(int u=0;u<4;u++)for(int v=0;v<4;v++)s[u][v]+=A[i%S][y*4+u][k]*B[i%S][k][x*4+v];if(S==1)__syncthreads();}
for(int u=0;u<4;u++)for(int v=0;v<4;v++)c[(r+y*4+u)*n+q+x*4+v]=s[u][v];}
extern "C" __global__ __launch_bounds__(256) void matmul_ring1(const float*a,const float*b,float*c,int n){MatMul<1>(a,b,c,n);}
extern "C" __global__ __launch_bounds__(256) void matmul_ring2(const float*a,const float*b,float*c,int n){MatMul<2>(a,b,c,n);}
extern "C" __global__ __launch_bounds__(256) void matmul_ring3(const float*a,const float*b,float*c,int n){MatMul<3>(a,b,c,n);}
extern "C" __global__ __launch_bounds__(256) void matmul_ring4(const float*a,const float*b,float*c,int n){MatMul<4>(a,b,c,n);}
extern "C" __global__ __launch_bounds__(256) void matmul_ring6(const float*a,const float*b,float*c,int n){MatMul<6>(a,b,c,n);}
